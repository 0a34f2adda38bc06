// Judging images of which nothing is known: which may a pull have brought, and which came without
// the kubelet. The rule is in store/calls/lists.cc, ClassifyImages.

#ifndef WAYBILL_STORE_IMAGES_JUDGE_H_
#define WAYBILL_STORE_IMAGES_JUDGE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/base/image_spellings.h"
#include "store/images/images.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// Which names the pull could have given an image: "r.example/x:1", "r.example/x@…", or "anything".
std::vector<std::string> NamesGivenBy(const UnresolvedPull& pull, ShortNames short_names);

}  // namespace waybill

namespace waybill::internal {

// An image of a list, prepared for judging and for removing (observe.h).
struct ImageInList {
  std::string id;               // as listed
  std::string runtime_handler;  // as stored: "" for the default one, or none was listed
  bool has_handler = false;     // the list names one
  bool pinned = false;
  bool imported = false;
  std::vector<std::string> names;    // those that parse
  std::vector<NamedImage> parsed;    // likewise, in the same order
  std::vector<std::string> digests;  // repo digests

  std::string subject;  // of its row (Images::Home of the ID)
  // Repo digests that another image has as well, so they are of neither.
  std::vector<std::string> shared;
  // Images that had its ID or one of its digests, and are not on this list: it may be one of them,
  // under another ID.
  std::vector<std::string> formerly;
  // Two images had one of its digests, and its ID is new: it may be either.
  bool was_shared = false;
  bool same_id = false;  // an earlier list had it by the same ID
};

// Whether the image is pulled, preloaded or in quarantine already. A record or a quarantine entry
// under any handler counts, a ledger entry under the image's own.
Result<bool> IsKnown(const Images& images, const ImageInList& image);

// Who may have given names to images: the open pulls, and pulls whose record has a ref that no list
// ever had, so that their image may be listed under another.
class Givers {
 public:
  struct Options {
    ShortNames short_names = ShortNames::kAnywhere;
    // The list's token. A pull that began after it may have brought an image before the list was
    // made; it closes nothing, since that is for a later list to tell. nullopt: every pull closes.
    std::optional<std::uint64_t> until;
    // As a kubelet would presume: strings that can't be read count by their hash, those without a
    // host by how the name ends, and records that no list had not at all.
    bool first_start = false;
  };
  static Result<Givers> Collect(const Images& images, const Options& options);

  enum class Verdict : std::uint8_t {
    kPreloaded,  // it has a name that nobody may have given
    kPulled,     // each name may have been given, or it has none
    kUnplaced,   // likewise, but by a record that no list had: a complete list tells
    kLater,      // likewise, but by a pull that began after the token: a later list tells
  };
  struct Judgement {
    Verdict verdict = Verdict::kPulled;
    std::string because;  // one sentence
  };
  Result<Judgement> Judge(const Images& images, const ImageInList& image) const;
  // Whether pulls that can be named may have given it every name; a short one counts if the name
  // ends so.
  bool IsNamedByPulls(const ImageInList& image) const;
  // Whether it has one of `names` that no pull may have given it; a pull that may give any name is
  // one.
  bool HasOwnName(const ImageInList& image, const std::vector<std::string>& names) const;
  // Why a record or a quarantine entry under a ref that is not the image's own may be about it.
  // Empty: there is none.
  Result<std::string> MayBeKnown(const Images& images, const ImageInList& image) const;

 private:
  struct Giver {
    UnresolvedPull pull;
    NamedImage named;
    bool is_record = false;
  };
  // One that closes, if there is one; otherwise one that leaves the image to a later list.
  // `dropped`: what stands for dropped images counts, too.
  const Giver* FindGiver(const NamedImage& name, bool pinned, bool records,
                         bool dropped = true) const;
  bool IsLater(const Giver& giver) const;
  const Giver* IntentFor(const ImageInList& image) const;
  Result<bool> UnreadableIntentGives(const Images& images, const std::string& name,
                                     const NamedImage& parsed) const;

  Options options_;
  std::vector<Giver> givers_;
  std::vector<std::size_t> anything_;  // indexes of those that may give any name
  std::unordered_map<std::string, std::vector<std::size_t>> by_repository_;
  // The subjects of records.
  std::unordered_set<std::string> recorded_;
  bool unreadable_intents_ = false;
  bool leaves_anything_out_ = false;  // an open pull of anything, which does not count
};

// How a closed image is opened.
inline constexpr std::string_view kAPullProves =
    "a pod whose credentials the registry accepts pulls it, which proves them";
// Sets `text` and `hint` of an explanation by its other members.
void Conclude(Mode rules, bool has_credentials, Explanation& why);

// What of a pull a person wants to know: `the pull of "r/p:1" that began … and ended …`.
std::string Describe(const UnresolvedPull& pull);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_JUDGE_H_
