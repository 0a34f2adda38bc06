// The rows of images within one change: how an image is found by any of its refs, and the one way
// in which a row is stored. Runtime handlers are as stored, "" for the default one.
//
// A row lies under its subject: in mode strict the digest that a ref spells (`sha256:D`, `D` and
// `any/repo@sha256:D` spell one), in mode kubelet the very ref, since a kubelet knows no aliases.
// The image's own row is that of the default handler: it has the aliases.

#ifndef WAYBILL_STORE_IMAGES_IMAGES_H_
#define WAYBILL_STORE_IMAGES_IMAGES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/function_ref.h"
#include "store/disk/clocks.h"
#include "store/disk/store_txn.h"
#include "store/images/aliases.h"
#include "store/images/image_row.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// What the modes differ in.
constexpr bool LearnsAliases(Mode mode) { return mode == Mode::kStrict; }
constexpr bool Presumes(Mode mode) { return mode == Mode::kKubelet; }
constexpr bool KeepsEndedPulls(Mode mode) { return mode == Mode::kStrict; }
constexpr bool WaitsForWriteBack(Mode mode) { return mode == Mode::kKubelet; }

class Images {
 public:
  Images(StoreTxn& txn, Aliases& aliases) : txn_(txn), aliases_(aliases) {}

  StoreTxn& txn() const { return txn_; }
  // The store's, whatever the process was told: its rows lie where its mode looks for them.
  Mode mode() const { return txn_.state().kubelet_rules ? Mode::kKubelet : Mode::kStrict; }
  bool learns_aliases() const { return LearnsAliases(mode()); }

  // --- Names -------------------------------------------------------------------------------------

  std::string SubjectOf(std::string_view ref) const;
  // Of which image the digest is, by a row of its own or by that image's; nullopt: nobody says.
  Result<std::optional<AliasPart>> AliasOf(const std::string& subject) const;
  // The subject of the ref's image: the ref's own if nobody says otherwise, or two images have it.
  Result<std::string> Home(std::string_view ref) const;
  // As what it is known to be: an image's subject, "" (two images have it), nullopt: unknown.
  Result<std::optional<std::string>> Spelt(const std::string& subject) const;
  // Whether a list, or the runtime's entry of a pull, ever had the ref or an alias of it.
  Result<bool> WasListed(std::string_view ref) const;
  // Every known way to write the ref's image, `ref` first.
  Result<std::vector<std::string>> TextsOf(std::string_view ref) const;
  // kInvalidArgument: two images have the digest, so it names neither.
  Result<void> CheckOfOneImage(std::string_view ref) const;

  // --- Rows --------------------------------------------------------------------------------------

  // nullopt: none. kDamaged: unreadable. kConflict: the key is another identity's.
  Result<std::optional<ImageRow>> Find(const std::string& subject,
                                       const std::string& runtime_handler = {}) const;
  // An empty one if there is none; a closed one in place of one that can't be read, of which nobody
  // knows what it said.
  Result<ImageRow> FindOrMake(const std::string& subject,
                              const std::string& runtime_handler = {}) const;
  // Of every handler, that of the default one first. What can't be read is left out.
  Result<std::vector<ImageRow>> RowsOf(const std::string& subject) const;
  // Whether a pull is on record for any handler. A row that can't be read counts.
  Result<bool> AnyRecorded(const std::string& subject) const;
  // In key order, until the visitor returns false; nullptr: it can't be read. The table must not
  // change meanwhile.
  Result<void> ForEach(FunctionRef<Result<bool>(const ImageRow*)> visit) const;
  // Those that `is_it` accepts.
  Result<std::vector<ImageRow>> All(FunctionRef<bool(const ImageRow&)> is_it) const;

  // Stores the row, or deletes it if it says nothing. Leaves out what was revoked, and the
  // preloaded part beside a record that is absent, since what comes back may be what the pull
  // brought, or that an operator closed. Replaces one that can't be read. An event that confirms
  // the image stamps the row.
  enum class Confirms : std::uint8_t { kNo, kYes };
  // kReserve: the change stands for a deletion, or keeps an image closed: it finds room on a full
  // store, too.
  enum class Room : std::uint8_t { kGrowth, kReserve };
  Result<void> Put(ImageRow row, Confirms confirms, Room room = Room::kGrowth);
  // The record goes; what else is known of the image stays.
  Result<void> Unrecord(ImageRow row);
  // What was known of its coming goes.
  Result<void> Unload(ImageRow row);
  // A record without credentials, if there is none: pods must verify.
  Result<bool> Close(const std::string& ref, const std::string& runtime_handler,
                     std::string_view because, ClosedBy by);

  // nullopt: it says nothing of the digest.
  Result<void> SetAlias(const std::string& subject, std::optional<AliasPart> alias);

  // --- Unreadable files of a kubelet -------------------------------------------------------------

  // Whether one of the texts is that of an unreadable file.
  Result<bool> AnyUnreadable(QuarantineKind kind, const std::vector<std::string>& texts) const;
  // Under any alias of the ref.
  Result<bool> IsUnreadable(std::string_view ref) const;
  // The files of the ref's image are outdone.
  Result<void> ClearUnreadable(std::string_view ref);

 private:
  Result<void> KeepWithinAliases(ImageRow& row) const;

  StoreTxn& txn_;
  Aliases& aliases_;
};

// How many records and preloaded images there are, on the node or away. A row that can't be read
// counts as a record.
struct Held {
  std::uint64_t records = 0;
  std::uint64_t preloaded = 0;
};
Result<Held> CountHeld(const Images& images);

// kLimitExceeded: an argument is longer.
Result<void> CheckLength(std::string_view what, std::string_view text, std::size_t limit);

// Which lists can be placed in time. kInvalidArgument: another store drew the token, or a later
// state of this one, which is lost. `begin`: how to draw one for such a list.
Result<void> CheckToken(const StoreTxn& txn, const ListToken& token, Hint begin);

// Something that kept images closed is gone: a list whose token is older must not enter what that
// may have brought.
void NoteEvidenceRemoved(StoreTxn& txn);

// For a record that is about to be put: of one that is absent, what was known of its coming is
// over.
ImageRow Present(ImageRow row);
// An operator's closing lasts until an operator takes it back.
inline ClosedBy WordOfOperator(const ImageRow& row) {
  return row.pulled && row.pulled->closed_by == ClosedBy::kOperator ? ClosedBy::kOperator
                                                                    : ClosedBy::kNobody;
}
// What is known of an image from now on that came without the kubelet.
PreloadedPart PreloadedNow(const StoreTxn& txn, std::vector<std::string> names,
                           std::string_view source, std::string_view reason);
// Adds the text, unless it needs no alias.
void AddAlias(ImageRow& row, const std::string& text);

// A row as callers see it. `now` by the clock `clock`: a row tells by running time since when it is
// away, and callers see a time by the wall clock that long ago. The row has a record.
ImagePulledRecord RecordOf(const ImageRow& row, const Clocks& now, Timestamp clock);
// The row has a preloaded part.
PreloadedImage PreloadedOf(const ImageRow& row, const Clocks& now, Timestamp clock);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_IMAGES_H_
