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
#include <utility>
#include <variant>
#include <vector>

#include "guard/known_files.h"
#include "guard/look.h"
#include "store/for_the_guard.h"
#include "waybill/calls.h"

namespace waybill::guard {

using internal::MustFind;

// What is known of images and of strings beside what a kubelet must find.
class Known {
 public:
  Known(const internal::StoreContent& content, std::vector<ListedImage> list)
      : content_(content), list_(std::move(list)), images_(content) {}

  const internal::StoreContent& content() const { return content_; }
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
  bool lost = false;          // the store is degraded: something newer than it may be lost
  bool nothing_ends = false;  // nothing is revoked, and no age is set
  bool live = true;           // the guard stays
  std::int64_t now = 0;       // by the boot clock, in nanoseconds
  Timestamp wall = {};
  std::int64_t window = 0;     // no pull takes longer
  bool had_list = false;       // a list was taken
  bool no_list_comes = false;  // so any record may be of an image on the node
  // Names of the files that images of the list would have that is about to be judged; nullptr: none
  // is.
  const std::set<FileName>* listing = nullptr;
  // Who checks the credentials of a pull of an image of that name. Missing: nobody knows.
  std::function<VerifiedBy(const std::string& image_name)> who_checks = {};
  // Whether the node had no credential for images of that name since before any pull of them that
  // runs began. Missing: nobody knows.
  std::function<bool(const std::string& image_name)> node_had_none = {};
  // How files are written.
  KubeletApiVersion version = KubeletApiVersion::kV1Alpha1;
  bool verifies_recorded = true;  // GuardOptions
};

// A pull of that string that ended somehow, and nobody saw how.
struct PullOfUnknownEnd {
  std::string image;
};
struct PullOfAnything {};
// What a record proves, beside what counts of its image when the store is told.
struct ProvenRecord {
  PutImage put = {};     // with what was proven alone
  Items items = {};      // all that the file says
  bool watched = false;  // so it is newer than what is on record
};
using StoreCall = std::variant<NoteUnrecordedPeriod, PullOfAnything, ProvenRecord, PutImage,
                               BeginPull, EndPull, PullOfUnknownEnd>;

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

struct Compared {
  // Into the store, in this order and in one commit, before any file is changed.
  std::vector<StoreCall> calls = {};
  // As they are then; nullopt: as they were.
  std::optional<KnownFiles> rows = {};
  // Files by which the store is told: they are on the disk before it.
  std::set<std::pair<KubeletFolder, FileName>> evidence = {};
  std::vector<Act> acts = {};

  bool takes = false;           // the look showed something that the store did not know
  bool wants_list = false;      // only a list settles something
  bool waits_for_list = false;  // and until then nobody may forget that it was seen
  std::vector<std::pair<KubeletFolder, FileName>> later_formats = {};
  std::set<FileName> ended = {};             // intents of pulls that ended at this look
  std::vector<std::string> ended_some = {};  // strings of which one of several pulls ended
  // Refs of images that a running kubelet may open to whom it must not, until it starts again.
  std::set<std::string> waiting = {};

  bool has_unrecorded() const;  // a period of which nobody knows what happened
  // To be changed.
  KnownFiles& Rows(const KnownFiles& before) { return rows ? *rows : rows.emplace(before); }
};

// Whether the folders are as they were when nothing was left to do. Not, if that is not known.
inline bool IsAsNoted(const Look& look, const KnownFiles& known) {
  return !look.folders.empty() && look.folders == known.node.folders;
}

Compared Compare(const Look& look, const KnownFiles& files, const Known& known,
                 const MustFind& must, const Context& context);

// The call by which the store takes it over. `counts`: what counts of its image, by GetRecord.
PutImage Beside(const ProvenRecord& proven, ImagePulledRecord counts, std::uint64_t seed);

// What a list settles before it is judged: pulls that proved a record before their intents went
// brought its image, if the list has it (S1). `drawn`: when the list's token was, by the boot
// clock.
Compared SettleProven(const KnownFiles& files, const Known& known, std::int64_t drawn);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_COMPARE_H_
