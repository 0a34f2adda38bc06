// What is to be done about a look at a kubelet's files. Pure: what it says depends on its
// arguments alone.
//
// The rows of the decision table have the names that stand beside them in compare.cc. "New" is a
// credential in a file that a running kubelet can't have from its memory (may_have).

#ifndef WAYBILL_GUARD_COMPARE_H_
#define WAYBILL_GUARD_COMPARE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "guard/known_files.h"
#include "guard/look.h"
#include "store/for_the_guard.h"

namespace waybill::guard {

using internal::MustFind;

// What is known of images and of strings beside what a kubelet must find.
class Known {
 public:
  Known(const internal::StoreContent& content, std::vector<ListedImage> list)
      : content_(content), list_(std::move(list)), images_(content) {}

  const internal::KnownImages& images() const { return images_; }
  const std::vector<ListedImage>& list() const { return list_; }
  // What is on record of the image, or that it is preloaded, on the node or away; nullptr: nothing.
  const internal::StoreContent::Image* Find(const std::string& image_ref) const;
  // By which ref an image is known whose file has this name; the string of an intent's.
  std::optional<std::string> RefOf(const FileName& name) const;
  std::optional<std::string> StringOf(const FileName& name) const;

 private:
  const internal::StoreContent& content_;
  std::vector<ListedImage> list_;
  internal::KnownImages images_;
  // Made when they are needed.
  mutable std::optional<std::map<FileName, std::string>> refs_;
  mutable std::optional<std::map<FileName, std::string>> strings_;
};

// Everything else that counts.
struct Context {
  std::string life = {};                   // of the kubelet that runs; empty: none does
  std::optional<std::int64_t> began = {};  // when it did, in nanoseconds since 1970, if known
  bool began_seen = false;                 // whatever it has in memory was seen to come there
  bool watched = false;                    // nothing happened unseen since the look before
  bool first = false;                      // the store is new, and so is waybill on this directory
  bool lost = false;           // the store is degraded: something newer than it may be lost
  bool nothing_ends = false;   // nothing is revoked, and no age is set
  bool live = true;            // the guard stays
  std::int64_t now = 0;        // by the boot clock, in nanoseconds
  std::int64_t window = 0;     // no pull takes longer
  bool had_list = false;       // a list was taken
  bool no_list_comes = false;  // so any record may be of an image on the node
  // Names of the files that images of the list would have that is about to be judged; nullptr: none
  // is.
  const std::set<FileName>* listing = nullptr;
  // Whether the node had no credential for images of that name since before any pull of them that
  // runs began. Missing: nobody knows.
  std::function<bool(const std::string& image_name)> node_had_none = {};
  // How files are written.
  KubeletApiVersion version = KubeletApiVersion::kV1Alpha1;
  bool verifies_recorded = true;  // GuardOptions
};

// Something that the store has to take over.
struct Taken {
  enum class What : std::uint8_t {
    kUnrecorded,  // text: what nobody saw
    kLostSight,   // what the kubelet has in memory is not known any more
    kTookOver,    // it may have given pulls up before waybill came
    kProven,      // items of the record
    kPulled,      // the record shows that its image was pulled
    kSeen,        // nothing that counts; what a kubelet may have in memory
    kGone,        // the record is
    kDamaged,     // text: the ref, if it is known
    kBegan,       // a pull of the intent
    kUnknownEnd,  // text: a pull of that string ended somehow; name: it has an intent
    kUnreadableIntent,
    kEnded,            // the pulls of an intent; `stays`: their intent is still there
    kEndedWithoutRow,  // text: of that string
    kLife,             // another kubelet, or none
    kFolders,          // nothing is left to do
  };
  What what = What::kUnrecorded;
  FileName name = {};
  std::string text = {};
  const SeenFile* file = nullptr;
  Items items = {};
  bool watched = false;
  bool several = false;
  bool stays = false;
};

// A change of a file.
struct Act {
  enum class What : std::uint8_t { kCreate, kExchange, kRemove };
  enum class Why : std::uint8_t {
    kMissing,  // a record that must be there
    kUnreadable,
    kPlanted,
    kStale,      // it has other credentials than it must
    kForm,       // the same in another form
    kPreloaded,  // its image is open without it
    kOfNobody,   // about no image that anybody knows
    kUnlisted,   // its image is away
    kIntent,
    kNoIntent,
  };
  What what = What::kCreate;
  Why why = Why::kMissing;
  KubeletFolder folder = KubeletFolder::kPulled;
  FileName name = {};
  const SeenFile* was = nullptr;  // null: there was none
  std::string content = {};       // of the new one
  Items items = {};               // of that
  bool keeps = false;             // a copy of what was there
  bool was_there = false;         // before it went
  std::string subject = {};       // the image's ref, or the intent's string
};

// What a kubelet may have in memory by a change, noted before it is made.
struct MayHave {
  FileName name;
  Items items = {};
  bool changing = false;
  bool unknown = false;  // anything
};

struct Compared {
  std::vector<Taken> into;
  std::vector<MayHave> may_have;
  std::vector<Act> acts;
  bool wants_list = false;      // only a list settles something
  bool waits_for_list = false;  // and until then nobody may forget that it was seen
  std::vector<std::pair<KubeletFolder, FileName>> later_formats = {};
  // Names of records whose image a running kubelet may open to whom it must not, until it starts
  // again.
  std::set<std::string> waiting = {};  // refs
};

// Whether the folders are as they were when nothing was left to do. Not, if that is not known.
inline bool IsAsNoted(const Look& look, const KnownFiles& known) {
  return !look.folders.empty() && look.folders == known.node.folders;
}

Compared Compare(const Look& look, const KnownFiles& files, const Known& known,
                 const MustFind& must, const Context& context);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_COMPARE_H_
