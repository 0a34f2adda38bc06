// Pulls that a kubelet began: their intents in pulling/, taken over into the store, and put right
// by it. A pull whose end nobody saw is one of unknown end: its intent stays until the store knows
// that it can bring nothing any more.

#ifndef WAYBILL_GUARD_PULLS_H_
#define WAYBILL_GUARD_PULLS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "guard/listed_images.h"
#include "guard/session.h"

namespace waybill::guard {

class Pulls {
 public:
  Pulls(Life& life, ListedImages& listed) : life_(life), listed_(listed) {}

  // Takes over what is in pulling/. In a hurry, some of it.
  Result<void> TakeOverAll();
  // `was_written`: just now; otherwise it is there, from whenever.
  Result<void> TakeOver(const std::string& name, bool was_written);
  // The intent was removed.
  Result<void> Gone(const std::string& name);
  // An intent that nobody has time to take over.
  Result<void> LeaveToNext(const std::string& name, Left& left);
  // A pull of unknown end.
  Result<void> NoteUnknown(const std::string& image);

  // The kubelet wrote `after` over `before`: that may show that a running pull succeeded.
  void NoteProof(const ImagePulledRecord& before, const ImagePulledRecord& after);
  // A list was taken. It may have been made before what the kubelet did last.
  void CountList() { ++lists_; }
  // Ends the pulls that this list shows to have ended, and those that it can't settle any more.
  Result<void> Settle(const std::vector<ListedImage>& images);
  // Whether a pull of that name runs.
  bool IsRunning(const std::string& name) const;
  // Ends the running pulls as of unknown end; with `before`, only those that began before it.
  Result<void> EndRunning(std::optional<std::int64_t> before);
  // Nobody will see how they end.
  Result<void> EndAll();

  // Puts right which intents are there, by the store and the last list. `preloaded`: what files of
  // records the images that are open by the ledger would have.
  Result<void> PutRight(const std::set<std::string>& preloaded);

 private:
  // The pulls of one image string, while its intent exists.
  struct Running {
    std::string image;
    std::vector<PullId> ids;  // empty: they have ended, and the intent was left
    std::int64_t since = 0;   // of the last one; nanoseconds since the boot
    // The ref of a record that only a pull of this image name can have written since.
    std::string proven_ref;
    // There may be several such pulls or refs, so no record proves that this one succeeded.
    bool ambiguous = false;
  };
  // A pull whose intent vanished as a record appeared: the next list tells whether that record is
  // its own.
  struct Ended {
    std::string image;
    PullId id;
    std::string image_ref;
    std::uint64_t lists_before = 0;
  };

  Result<void> Plan(const std::set<std::string>& preloaded);
  Result<void> TakeOverUnreadable(const std::string& name, const RecordFile& file);
  Result<void> Missed(const std::string& name);
  std::optional<std::string> StringOf(const std::string& name) const;
  Result<void> End(const std::string& image, PullId id);
  static const ListedImage* ImageOf(const Ended& pull, const std::vector<ListedImage>& images);
  std::size_t CountOfRepository(const std::string& image) const;

  Life& life_;
  ListedImages& listed_;
  std::map<std::string, Running> running_;  // by the intent's file name
  std::vector<Ended> ended_;
  std::map<std::string, std::string> wanted_;  // image strings by file name
  std::uint64_t lists_ = 0;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_PULLS_H_
