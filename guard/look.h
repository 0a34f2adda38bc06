// A look at a kubelet's directory: everything that its files say at one moment. Changes nothing.

#ifndef WAYBILL_GUARD_LOOK_H_
#define WAYBILL_GUARD_LOOK_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "guard/items.h"
#include "store/base/sha256.h"
#include "store/for_the_guard.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::guard {

using internal::KubeletFolder;
using FileName = std::string;

// A file of a folder. Beyond these the rest of a folder is not read.
inline constexpr std::size_t kMaxSeenFiles = 200'000;

struct SeenFile {
  enum class What : std::uint8_t {
    kRecord,
    kIntent,
    kUnreadable,
    kLaterFormat,  // a later kubelet's: left alone
    kMoving,       // it changes while it is read: nothing is said of it
  };
  enum class Form : std::uint8_t {
    kKubelets,
    kOwn,      // waybill's, which a kubelet reads (OwnForm)
    kClosing,  // waybill's, which no kubelet reads (ClosingForm)
  };
  What what = What::kUnreadable;
  Form form = Form::kKubelets;
  std::string planted = {};  // why somebody else may have written it; empty: nobody can have
  std::string problem = {};  // why it can't be read
  internal::Sha256Digest digest = {};
  FileName about = {};  // what the file would be called that is about this; empty: unknown
  ImagePulledRecord record = {};  // what a kubelet reads there, who ever wrote it
  Items items = {};               // of the record
  std::string image = {};         // of an intent
  bool is_beta = false;           // v1beta1
  std::uint64_t inode = 0;
  std::int64_t changed = 0;  // ctime, in nanoseconds since 1970

  bool is_own() const { return form != Form::kKubelets; }
  // What a kubelet may read, and nobody here can: behind a link, say, or above a limit.
  bool is_read_unknown() const {
    return what == What::kUnreadable && form != Form::kClosing &&
           (!planted.empty() || digest == internal::Sha256Digest());
  }
  // What a running kubelet that reads it keeps in memory.
  bool is_read_as_record() const { return what == What::kRecord && form != Form::kClosing; }
};
using SeenFiles = std::map<FileName, SeenFile>;

struct Look {
  SeenFiles pulled;
  SeenFiles pulling;
  // The folders as they were before and after. Empty: something changed meanwhile, or just now.
  std::string folders;
  bool pulled_has_marker = false;
  bool pulling_has_marker = false;
  std::string wide;       // why others may have written in pulled/; empty: they may not
  std::string too_many;   // which folder has more files than are read
  bool was_used = false;  // by a kubelet, before the guard looked first

  // What the queue of events told since the look before, for as long as it was whole.
  std::map<std::pair<KubeletFolder, FileName>, int> written;
  bool overflow = false;
};

struct Places {
  std::filesystem::path image_manager;
  std::filesystem::path pulled;
  std::filesystem::path pulling;
  std::vector<std::filesystem::path> links = {};  // that lead there
};

// Not thread-safe.
class Looker {
 public:
  explicit Looker(std::uint64_t seed) : seed_(seed) {}

  // pulling/ first: a kubelet writes a record before it removes the intent, so where that is gone
  // the record is seen. Files that did not change since the look before are not read again. The
  // look lasts until the next one. kIo: a folder can't be listed.
  Result<Look*> LookAt(const Places& places);
  const Look& look() const { return look_; }

 private:
  Result<void> ReadFolder(const std::filesystem::path& path, KubeletFolder folder, SeenFiles before,
                          SeenFiles& files);
  SeenFile ReadFile(const std::filesystem::path& path, KubeletFolder folder,
                    const FileName& name) const;

  std::uint64_t seed_;
  Look look_;
  std::int64_t began_ = 0;  // that look
};

// Where others decide what a kubelet finds there, so nothing that is in it tells anything.
Result<internal::KubeletPlace> FindFolder(const std::filesystem::path& named);

// Whether it is a directory, not through a symlink.
bool IsDirectoryItself(const std::filesystem::path& path);

// Whether others may write in the folders, and why. Empty: they may not.
std::string WideAmong(const std::vector<std::filesystem::path>& folders);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_LOOK_H_
