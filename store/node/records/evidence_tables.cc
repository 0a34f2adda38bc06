#include "store/node/records/evidence_tables.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <utility>

#include "schema/v2/evidence_generated.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/engine/database/flatbuffer.h"
#include "store/node/records/keys.h"
#include "store/node/records/typed_tables.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v2 = schema::v2;

namespace {

bool AllFit(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* strings,
            std::size_t most, std::size_t bytes) {
  if (strings == nullptr) return true;
  if (strings->size() > most) return false;
  return std::all_of(strings->begin(), strings->end(),
                     [&](const flatbuffers::String* text) { return Fits(text, bytes); });
}

std::vector<std::string> Strings(
    const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* strings) {
  std::vector<std::string> all;
  if (strings == nullptr) return all;
  for (const flatbuffers::String* text : *strings) all.push_back(text->str());
  return all;
}

void AddRefsOf(const SpellingRow& row, std::vector<std::string>& refs) {
  for (const std::string& ref : row.refs) {
    if (std::find(refs.begin(), refs.end(), ref) == refs.end()) refs.push_back(ref);
  }
}

void AddPlain(std::string_view of, std::vector<std::string>& refs) {
  for (std::string& ref : PlainSpellings(of)) {
    if (std::find(refs.begin(), refs.end(), ref) == refs.end()) refs.push_back(std::move(ref));
  }
}

}  // namespace

std::vector<std::uint8_t> EncodeLedgerEntry(const PreloadedImage& entry) {
  flatbuffers::FlatBufferBuilder builder(512);
  const auto ref = builder.CreateString(entry.image_ref);
  const auto handler = StringUnlessEmpty(builder, entry.runtime_handler);
  const auto names = builder.CreateVectorOfStrings(entry.names);
  const auto source = builder.CreateString(entry.source);
  const auto reason = StringUnlessEmpty(builder, entry.reason);
  const v1::Time since = ToTime(entry.since);
  return Finish(builder,
                v2::CreateLedgerEntry(builder, ref, names, source, reason, &since, entry.stamp,
                                      entry.absent_since ? entry.absent_since->seconds : 0,
                                      entry.absent_since ? entry.absent_ran : 0, handler));
}

std::optional<PreloadedImage> DecodeLedgerEntry(Payload payload) {
  const auto* root = Root<v2::LedgerEntry>(payload);
  if (root == nullptr || root->image_ref() == nullptr || root->source() == nullptr ||
      root->since() == nullptr || root->names() == nullptr ||
      !Fits(root->image_ref(), kMaxImageRefBytes) ||
      !Fits(root->runtime_handler(), kMaxRuntimeHandlerBytes) ||
      !Fits(root->source(), kMaxReasonBytes) || !Fits(root->reason(), kMaxReasonBytes) ||
      !AllFit(root->names(), kMaxNamesPerImage, kMaxImageBytes)) {
    return std::nullopt;
  }
  std::optional<Timestamp> absent_since;
  if (root->absent_since() != 0) absent_since = Timestamp{root->absent_since(), 0};
  return PreloadedImage{.image_ref = root->image_ref()->str(),
                        .runtime_handler = std::string(Text(root->runtime_handler())),
                        .names = Strings(root->names()),
                        .source = root->source()->str(),
                        .reason = std::string(Text(root->reason())),
                        .since = FromTime(*root->since()),
                        .stamp = root->stamp(),
                        .absent_since = absent_since,
                        .absent_ran = root->absent_ran()};
}

std::vector<std::uint8_t> EncodeSpelling(const SpellingRow& row) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto spelling = builder.CreateString(row.spelling);
  const auto image = StringUnlessEmpty(builder, row.image);
  const auto refs = row.refs.empty() ? 0 : builder.CreateVectorOfStrings(row.refs);
  return Finish(builder, v1::CreateSpelling(builder, spelling, image, refs, row.stamp));
}

std::optional<SpellingRow> DecodeSpelling(Payload payload) {
  const auto* root = Root<v1::Spelling>(payload);
  if (root == nullptr || root->spelling() == nullptr ||
      !Fits(root->spelling(), kMaxImageRefBytes) || !Fits(root->image(), kMaxImageRefBytes) ||
      !AllFit(root->refs(), kMaxSpellingsPerImage, kMaxImageRefBytes)) {
    return std::nullopt;
  }
  return SpellingRow{root->spelling()->str(), std::string(Text(root->image())),
                     Strings(root->refs()), root->stamp()};
}

std::optional<Key16> KeyOfLedgerEntry(Payload payload, std::uint64_t seed) {
  const auto entry = DecodeLedgerEntry(payload);
  return entry ? std::optional(PulledKey(entry->image_ref, entry->runtime_handler, seed))
               : std::nullopt;
}

std::optional<Key16> KeyOfSpelling(Payload payload, std::uint64_t seed) {
  const auto row = DecodeSpelling(payload);
  return row ? std::optional(HashKey(row->spelling, seed)) : std::nullopt;
}

// --- For changes ---------------------------------------------------------------------------------

Result<std::optional<SpellingRow>> FindSpelling(const StoreTxn& txn, std::string_view spelling) {
  auto payload = TRY(txn.Get(Table::kSpellings, HashKey(spelling, txn.seed())));
  if (!payload) return std::optional<SpellingRow>();
  auto row = DecodeSpelling(*payload);
  if (!row) {
    return Error{ErrorCode::kDamaged,
                 "the spelling \"" + std::string(spelling) + "\" can't be read",
                 {},
                 Hint::kVerify};
  }
  if (row->spelling != spelling) return KeyIsTaken("the spelling " + std::string(spelling));
  return row;
}

Result<void> PutSpelling(StoreTxn& txn, SpellingRow row) {
  row.stamp = txn.sequence();
  return txn.Put(Table::kSpellings, HashKey(row.spelling, txn.seed()), EncodeSpelling(row));
}

Result<std::string> ImageOf(const StoreTxn& txn, std::string_view image_ref) {
  const Spelling spelling(image_ref);
  auto row = TRY(FindSpelling(txn, spelling.text()));
  return row && !row->image.empty() ? row->image : std::string(spelling.text());
}

Result<void> CheckOfOneImage(const StoreTxn& txn, std::string_view image_ref) {
  auto row = TRY(FindSpelling(txn, SpellingOf(image_ref)));
  if (!row || !row->image.empty()) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      "two images have the digest of " + QuoteForMessage(image_ref) + "; nothing was changed",
      "name the image by its ID"};
}

Result<std::vector<std::string>> RefsOfImage(const StoreTxn& txn, std::string_view image_ref) {
  std::vector<std::string> refs;
  AddPlain(image_ref, refs);
  auto image = TRY(ImageOf(txn, image_ref));
  AddPlain(image, refs);
  auto row = TRY(FindSpelling(txn, image));
  if (row && row->image == image) AddRefsOf(*row, refs);
  return refs;
}

Result<void> LearnRef(StoreTxn& txn, std::string_view image_ref) {
  auto refs = TRY(RefsOfImage(txn, image_ref));
  auto image = TRY(ImageOf(txn, image_ref));
  const std::vector<std::string> plain = PlainSpellings(image);
  if (std::find(plain.begin(), plain.end(), image_ref) != plain.end()) return {};
  auto row = TRY(FindSpelling(txn, image));
  if (!row || row->image != image) return {};
  auto& known = row->refs;
  if (std::find(known.begin(), known.end(), image_ref) != known.end()) return {};
  if (known.size() < kMaxSpellingsPerImage) {
    known.emplace_back(image_ref);
    return PutSpelling(txn, std::move(*row));
  }
  // One that nothing is stored under makes room.
  for (std::string& ref : known) {
    if (TRY(IsInUse(txn, ref))) continue;
    ref = image_ref;
    return PutSpelling(txn, std::move(*row));
  }
  return {};
}

Result<bool> WasListed(const StoreTxn& txn, std::string_view image_ref) {
  auto row = TRY(FindSpelling(txn, SpellingOf(image_ref)));
  return row.has_value();
}

Result<void> EraseSpellings(StoreTxn& txn, std::string_view image) {
  auto row = TRY(FindSpelling(txn, image));
  if (!row || row->image != image) return {};
  for (const std::string& ref : row->refs) {
    const std::string spelling = SpellingOf(ref);
    auto of = TRY(FindSpelling(txn, spelling));
    if (!of || of->image != image) continue;
    TRY(txn.Delete(Table::kSpellings, HashKey(spelling, txn.seed())));
  }
  auto erased = txn.Delete(Table::kSpellings, HashKey(image, txn.seed()));
  return erased ? Result<void>() : erased.error();
}

Result<bool> IsInUse(const StoreTxn& txn, std::string_view image_ref) {
  if (TRY(AnyRecordOf(txn, image_ref))) return true;
  return IsQuarantined(txn, QuarantineKind::kImageRef, image_ref);
}

Result<std::optional<PreloadedImage>> FindLedgerEntry(const StoreTxn& txn,
                                                      std::string_view image_ref,
                                                      std::string_view runtime_handler) {
  auto entry = FindRememberedEntry(txn, image_ref, runtime_handler);
  if (entry && *entry && (*entry)->absent_since) return std::optional<PreloadedImage>();
  return entry;
}

Result<std::optional<PreloadedImage>> FindRememberedEntry(const StoreTxn& txn,
                                                          std::string_view image_ref,
                                                          std::string_view runtime_handler) {
  std::optional<PreloadedImage> entry;
  auto image = TRY(ImageOf(txn, image_ref));
  for (const std::string& spelling : {SpellingOf(image_ref), image}) {
    auto payload = TRY(txn.Get(Table::kLedger, PulledKey(spelling, runtime_handler, txn.seed())));
    if (!payload) continue;
    entry = DecodeLedgerEntry(*payload);
    if (entry && entry->image_ref == spelling && entry->runtime_handler == runtime_handler) {
      return entry;
    }
    entry.reset();
  }
  return entry;
}

Result<void> PutLedgerEntry(StoreTxn& txn, PreloadedImage entry) {
  if (auto erased = EraseLedgerEntry(txn, entry.image_ref, entry.runtime_handler); !erased) {
    return erased.error();
  }
  entry.image_ref = TRY(ImageOf(txn, entry.image_ref));
  entry.stamp = txn.sequence();
  return txn.Put(Table::kLedger, PulledKey(entry.image_ref, entry.runtime_handler, txn.seed()),
                 EncodeLedgerEntry(entry));
}

Result<void> StoreAbsence(StoreTxn& txn, PreloadedImage entry) {
  entry.stamp = txn.sequence();
  return txn.PutFromReserve(Table::kLedger,
                            PulledKey(entry.image_ref, entry.runtime_handler, txn.seed()),
                            EncodeLedgerEntry(entry));
}

Result<bool> EraseLedgerEntry(StoreTxn& txn, std::string_view image_ref,
                              std::string_view runtime_handler) {
  auto image = TRY(ImageOf(txn, image_ref));
  bool was_there = false;
  for (const std::string& spelling : {SpellingOf(image_ref), image}) {
    auto erased = TRY(txn.Delete(Table::kLedger, PulledKey(spelling, runtime_handler, txn.seed())));
    was_there = was_there || erased;
  }
  return was_there;
}

Result<void> EraseRemembered(StoreTxn& txn, std::string_view image_ref,
                             std::string_view runtime_handler) {
  auto entry = TRY(FindRememberedEntry(txn, image_ref, runtime_handler));
  if (!entry || !entry->absent_since) return {};
  auto erased = EraseLedgerEntry(txn, image_ref, runtime_handler);
  return erased ? Result<void>() : erased.error();
}

Result<void> DropFromLedger(StoreTxn& txn, FunctionRef<bool(const PreloadedImage&)> drops) {
  std::vector<PreloadedImage> dropped;
  TRY(txn.ForEach(Table::kLedger, [&](const Key16&, Payload payload) -> Result<bool> {
    auto entry = DecodeLedgerEntry(payload);
    if (entry && drops(*entry)) dropped.push_back(std::move(*entry));
    return true;
  }));
  for (const PreloadedImage& entry : dropped) {
    TRY(EraseLedgerEntry(txn, entry.image_ref, entry.runtime_handler));
  }
  if (!dropped.empty()) NoteEvidenceRemoved(txn);
  return {};
}

void NoteEvidenceRemoved(StoreTxn& txn) {
  txn.state().evidence_removed = txn.sequence();
  txn.state().awaits_first_list = false;
  txn.Touch();
}

Result<bool> AnyRecordOfImage(const StoreTxn& txn, std::string_view image_ref) {
  auto refs = TRY(RefsOfImage(txn, image_ref));
  for (const std::string& ref : refs) {
    if (TRY(AnyRecordOf(txn, ref))) return true;
  }
  return false;
}

// --- For decisions -------------------------------------------------------------------------------

namespace {

// The row of a spelling. `row` is set if it is found.
Lookup FindRow(const ReaderPool::Lease& snapshot, std::string_view spelling,
               const v1::Spelling** row) {
  if (snapshot.state().digest(Table::kSpellings).count == 0) {
    return snapshot.CountIsTrue(Table::kSpellings) ? Lookup::kAbsent : Lookup::kDamaged;
  }
  Payload payload;
  const Lookup found = snapshot.Get(Table::kSpellings, HashKey(spelling, snapshot.seed()), payload);
  if (found != Lookup::kFound) return found;
  *row = flatbuffers::GetRoot<v1::Spelling>(payload.data());
  return Text((*row)->spelling()) == spelling ? Lookup::kFound : Lookup::kDamaged;
}

// As ImageOf, without a copy. `image` is a view of `own` or of the snapshot.
Lookup FindImage(const ReaderPool::Lease& snapshot, std::string_view own, std::string_view& image) {
  image = own;
  const v1::Spelling* row = nullptr;
  const Lookup found = FindRow(snapshot, own, &row);
  if (found == Lookup::kFound && row->image() != nullptr) image = Text(row->image());
  return found == Lookup::kDamaged ? found : Lookup::kFound;
}

enum class Whose : std::uint8_t { kOnNode, kGone };

Lookup FindEntryUnder(const ReaderPool::Lease& snapshot, std::string_view spelling,
                      std::string_view runtime_handler, Whose whose, Payload& payload) {
  const Lookup found =
      snapshot.Get(Table::kLedger, PulledKey(spelling, runtime_handler, snapshot.seed()), payload);
  if (found != Lookup::kFound) return found;
  const auto* entry = flatbuffers::GetRoot<v2::LedgerEntry>(payload.data());
  const bool is_it =
      Text(entry->image_ref()) == spelling && Text(entry->runtime_handler()) == runtime_handler;
  if (!is_it) return Lookup::kDamaged;
  const Whose its = entry->absent_since() == 0 ? Whose::kOnNode : Whose::kGone;
  return its == whose ? Lookup::kFound : Lookup::kAbsent;
}

Lookup FindEntry(const ReaderPool::Lease& snapshot, std::string_view image_ref,
                 std::string_view runtime_handler, Whose whose, Payload& payload) {
  if (snapshot.state().digest(Table::kLedger).count == 0) {
    return snapshot.CountIsTrue(Table::kLedger) ? Lookup::kAbsent : Lookup::kDamaged;
  }
  const Spelling own(image_ref);
  const Lookup found = FindEntryUnder(snapshot, own.text(), runtime_handler, whose, payload);
  if (found != Lookup::kAbsent) return found;
  std::string_view image;
  if (FindImage(snapshot, own.text(), image) == Lookup::kDamaged) return Lookup::kDamaged;
  if (image == own.text()) return Lookup::kAbsent;
  return FindEntryUnder(snapshot, image, runtime_handler, whose, payload);
}

}  // namespace

Lookup FindLedgerEntry(const ReaderPool::Lease& snapshot, std::string_view image_ref,
                       std::string_view runtime_handler, Payload& payload) {
  return FindEntry(snapshot, image_ref, runtime_handler, Whose::kOnNode, payload);
}

Lookup FindGoneEntry(const ReaderPool::Lease& snapshot, std::string_view image_ref,
                     std::string_view runtime_handler, Payload& payload) {
  return FindEntry(snapshot, image_ref, runtime_handler, Whose::kGone, payload);
}

Lookup RefsOfImage(const ReaderPool::Lease& snapshot, std::string_view image_ref,
                   std::vector<std::string>& refs) {
  AddPlain(image_ref, refs);
  const Spelling own(image_ref);
  std::string_view image;
  if (FindImage(snapshot, own.text(), image) == Lookup::kDamaged) return Lookup::kDamaged;
  AddPlain(image, refs);
  const v1::Spelling* row = nullptr;
  const Lookup found = FindRow(snapshot, image, &row);
  if (found == Lookup::kDamaged) return found;
  if (found == Lookup::kFound && Text(row->image()) == image && row->refs() != nullptr) {
    for (const flatbuffers::String* ref : *row->refs()) {
      if (std::find(refs.begin(), refs.end(), Text(ref)) == refs.end()) refs.push_back(ref->str());
    }
  }
  return Lookup::kFound;
}

bool AnyNameOf(Payload ledger_entry, FunctionRef<bool(std::string_view)> is_it) {
  const auto* entry = flatbuffers::GetRoot<v2::LedgerEntry>(ledger_entry.data());
  return std::any_of(entry->names()->begin(), entry->names()->end(),
                     [&](const flatbuffers::String* name) { return is_it(Text(name)); });
}

}  // namespace waybill::internal
