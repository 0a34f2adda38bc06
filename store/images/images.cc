#include "store/images/images.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/revoked.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

bool IsDamaged(const Error& error) { return error.code == ErrorCode::kDamaged; }

void AddText(std::string text, std::vector<std::string>& texts) {
  if (std::ranges::find(texts, text) == texts.end()) texts.push_back(std::move(text));
}

}  // namespace

std::string Images::SubjectOf(std::string_view ref) const {
  return learns_aliases() ? SpellingOf(ref) : std::string(ref);
}

// --- Names ---------------------------------------------------------------------------------------

Result<std::optional<AliasPart>> Images::AliasOf(const std::string& subject) const {
  std::optional<AliasPart> alias;
  if (!learns_aliases()) return alias;
  auto row = Find(subject);
  if (!row && !IsDamaged(row.error())) return row.error();
  if (row && *row && (*row)->alias) return (*row)->alias;
  const auto keys = TRY(aliases_.Find(txn_, subject));
  for (const Key16& key : keys) {
    const auto payload = txn_.Get(Table::kImages, key);
    const auto image = payload && *payload ? DecodeImage(**payload) : std::nullopt;
    // The index may tell of a row that could not be read, and was replaced.
    if (!image || !ImageView(**payload).HasAlias(subject)) continue;
    if (alias && alias->image != image->subject) return AliasPart{};  // two images have it
    const std::uint64_t since =
        alias ? std::min(alias->stamp, image->alias_since) : image->alias_since;
    alias = AliasPart{.image = image->subject, .stamp = since};
  }
  return alias;
}

Result<std::string> Images::Home(std::string_view ref) const {
  // An image may have moved since its digest was learnt.
  constexpr int kMostMoves = 4;
  std::string subject = SubjectOf(ref);
  for (int moves = 0; moves < kMostMoves; ++moves) {
    auto alias = TRY(AliasOf(subject));
    if (!alias || alias->image.empty() || alias->image == subject) break;
    subject = std::move(alias->image);
  }
  return subject;
}

Result<std::optional<std::string>> Images::Spelt(const std::string& subject) const {
  auto alias = TRY(AliasOf(subject));
  if (alias) return std::optional(std::move(alias->image));
  const auto rows = TRY(RowsOf(subject));
  const bool listed = std::ranges::any_of(rows, &ImageRow::listed);
  return listed ? std::optional(subject) : std::nullopt;
}

Result<bool> Images::WasListed(std::string_view ref) const {
  const auto spelt = TRY(Spelt(SubjectOf(ref)));
  return spelt.has_value();
}

Result<std::vector<std::string>> Images::TextsOf(std::string_view ref) const {
  if (!learns_aliases()) return std::vector<std::string>{std::string(ref)};
  std::vector<std::string> texts = PlainSpellings(ref);
  const auto home = TRY(Home(ref));
  const auto rows = TRY(RowsOf(home));
  for (const ImageRow& row : rows) {
    for (std::string& text : internal::TextsOf(row)) AddText(std::move(text), texts);
  }
  for (std::string& text : PlainSpellings(home)) AddText(std::move(text), texts);
  return texts;
}

Result<void> Images::CheckOfOneImage(std::string_view ref) const {
  const auto spelt = TRY(Spelt(SubjectOf(ref)));
  if (!spelt || !spelt->empty()) return {};
  return Error{ErrorCode::kInvalidArgument,
               "two images have the digest of " + QuoteForMessage(ref) + "; nothing was changed",
               "name the image by its ID"};
}

// --- Rows ----------------------------------------------------------------------------------------

Result<std::optional<ImageRow>> Images::Find(const std::string& subject,
                                             const std::string& runtime_handler) const {
  const auto unreadable = [&] {
    return Error{ErrorCode::kDamaged,
                 "the record of \"" + subject + "\" can't be read",
                 {},
                 Hint::kPullAgain};
  };
  const auto payload = txn_.Get(Table::kImages, ImageKey(subject, runtime_handler, txn_.seed()));
  if (!payload) return IsDamaged(payload.error()) ? unreadable() : payload.error();
  if (!*payload) return std::optional<ImageRow>();
  auto row = DecodeImage(**payload);
  if (!row) return unreadable();
  if (row->subject != subject || row->runtime_handler != runtime_handler) {
    return KeyIsTaken("image ref \"" + subject + "\"");
  }
  return row;
}

Result<ImageRow> Images::FindOrMake(const std::string& subject,
                                    const std::string& runtime_handler) const {
  auto row = Find(subject, runtime_handler);
  if (!row && !IsDamaged(row.error())) return row.error();
  if (row && *row) return **std::move(row);
  ImageRow made{.subject = subject, .runtime_handler = runtime_handler};
  if (!row) {
    made.pulled = PulledPart{.last_updated = txn_.now(),
                             .closed_because = "what was known of it can't be read",
                             .closed_by = ClosedBy::kOther};
  }
  return made;
}

Result<std::vector<ImageRow>> Images::RowsOf(const std::string& subject) const {
  std::vector<ImageRow> rows;
  TRY(txn_.ForEachWithPrefix(Table::kImages, FirstImageKey(subject, txn_.seed()), kSubjectKeyBytes,
                             [&](const Key16&, Payload payload) -> Result<bool> {
                               auto row = DecodeImage(payload);
                               if (row && row->subject == subject) rows.push_back(*std::move(row));
                               return true;
                             }));
  std::ranges::sort(rows, {}, &ImageRow::runtime_handler);
  return rows;
}

Result<bool> Images::AnyRecorded(const std::string& subject) const {
  bool any = false;
  TRY(txn_.ForEachWithPrefix(Table::kImages, FirstImageKey(subject, txn_.seed()), kSubjectKeyBytes,
                             [&](const Key16&, Payload payload) -> Result<bool> {
                               if (payload.empty()) {
                                 any = true;
                               } else {
                                 const ImageView view(payload);
                                 any = view.is_recorded() && view.SubjectIs(subject);
                               }
                               return !any;
                             }));
  return any;
}

Result<void> Images::ForEach(FunctionRef<Result<bool>(const ImageRow*)> visit) const {
  return txn_.ForEach(Table::kImages, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto row = DecodeImage(payload);
    return visit(row ? &*row : nullptr);
  });
}

Result<std::vector<ImageRow>> Images::All(FunctionRef<bool(const ImageRow&)> is_it) const {
  std::vector<ImageRow> all;
  TRY(txn_.ForEach(Table::kImages, [&](const Key16&, Payload payload) -> Result<bool> {
    auto row = DecodeImage(payload);
    if (row && is_it(*row)) all.push_back(*std::move(row));
    return true;
  }));
  return all;
}

Result<void> Images::Put(ImageRow row, Confirms confirms, Room room) {
  if (row.pulled) TRY(LeaveOutRevoked(*this, row));
  const bool is_outdone =
      row.pulled && (row.absent != 0 || row.pulled->closed_by == ClosedBy::kOperator);
  if (is_outdone) row.preloaded.reset();
  if (!row.pulled && !row.preloaded) row.absent = 0;
  TRY(KeepWithinAliases(row));
  if (row.aliases.empty()) {
    row.alias_since = 0;
  } else if (row.alias_since == 0) {
    row.alias_since = txn_.sequence();
  }
  auto before = Find(row.subject, row.runtime_handler);
  if (!before && !IsDamaged(before.error())) return before.error();
  const bool is_known = before && *before;
  if (is_known && (*before)->pulled && row.pulled) {
    KeepPrivateNames(*(*before)->pulled, *row.pulled);
  }
  if (confirms == Confirms::kYes) row.stamp = txn_.sequence();
  if (is_known && **before == row) return {};
  const std::vector<std::string> none;
  if (row.SaysNothing()) row.aliases.clear();
  TRY(aliases_.Change(txn_, row, is_known ? (*before)->aliases : none));
  const Key16 key = ImageKey(row.subject, row.runtime_handler, txn_.seed());
  if (row.SaysNothing()) {
    TRY(txn_.Delete(Table::kImages, key));
    return {};
  }
  const auto payload = TRY(EncodeImage(row));
  return room == Room::kReserve ? txn_.PutFromReserve(Table::kImages, key, payload)
                                : txn_.Put(Table::kImages, key, payload);
}

// Those that an unreadable file is about go last: they keep the image closed under all its refs.
Result<void> Images::KeepWithinAliases(ImageRow& row) const {
  if (row.aliases.size() <= kMaxSpellingsPerImage) return {};
  std::vector<std::string> others;
  std::vector<std::string> kept;
  for (std::string& alias : row.aliases) {
    const bool is_needed =
        alias == row.ref || TRY(AnyUnreadable(QuarantineKind::kImageRef, {alias}));
    (is_needed ? kept : others).push_back(std::move(alias));
  }
  kept.insert(kept.end(), std::make_move_iterator(others.begin()),
              std::make_move_iterator(others.end()));
  kept.resize(kMaxSpellingsPerImage);
  std::ranges::sort(kept);
  row.aliases = std::move(kept);
  return {};
}

Result<void> Images::Unrecord(ImageRow row) {
  row.pulled.reset();
  row.ref.clear();
  row.absent = 0;
  return Put(std::move(row), Confirms::kNo, Room::kReserve);
}

Result<void> Images::Unload(ImageRow row) {
  row.preloaded.reset();
  return Put(std::move(row), Confirms::kNo, Room::kReserve);
}

Result<bool> Images::Close(const std::string& ref, const std::string& runtime_handler,
                           std::string_view because, ClosedBy by) {
  if (ref.empty() || ref.size() > kMaxImageRefBytes) return false;
  const auto home = TRY(Home(ref));
  auto found = Find(home, runtime_handler);
  if (!found) {
    // It closes the image as well.
    if (IsDamaged(found.error())) return false;
    return found.error();
  }
  if (*found && (*found)->pulled) return false;
  ImageRow row = *found ? Present(**std::move(found))
                        : ImageRow{.subject = home, .runtime_handler = runtime_handler};
  row.ref = ref;
  row.pulled = PulledPart{.last_updated = txn_.now(),
                          .closed_because = std::string(because.substr(0, kMaxReasonBytes)),
                          .closed_by = by};
  TRY(Put(std::move(row), Confirms::kYes));
  return true;
}

Result<void> Images::SetAlias(const std::string& subject, std::optional<AliasPart> alias) {
  auto row = TRY(FindOrMake(subject));
  row.alias = std::move(alias);
  return Put(std::move(row), Confirms::kNo);
}

// --- Unreadable files of a kubelet ---------------------------------------------------------------

Result<bool> Images::AnyUnreadable(QuarantineKind kind,
                                   const std::vector<std::string>& texts) const {
  if (txn_.state().digest(Table::kQuarantine).count == 0) return false;
  for (const std::string& text : texts) {
    if (TRY(IsQuarantined(txn_, kind, text))) return true;
  }
  return false;
}

Result<bool> Images::IsUnreadable(std::string_view ref) const {
  if (txn_.state().digest(Table::kQuarantine).count == 0) return false;
  const auto texts = TRY(TextsOf(ref));
  return AnyUnreadable(QuarantineKind::kImageRef, texts);
}

Result<void> Images::ClearUnreadable(std::string_view ref) {
  if (txn_.state().digest(Table::kQuarantine).count == 0) return {};
  const auto texts = TRY(TextsOf(ref));
  for (const std::string& text : texts) {
    TRY(EraseQuarantine(txn_, QuarantineKind::kImageRef, text));
  }
  return {};
}

// -------------------------------------------------------------------------------------------------

Result<Held> CountHeld(const Images& images) {
  Held held;
  TRY(images.txn().ForEach(Table::kImages, [&](const Key16&, Payload payload) -> Result<bool> {
    if (payload.empty() || ImageView(payload).is_recorded()) ++held.records;
    if (!payload.empty() && ImageView(payload).has_preloaded()) ++held.preloaded;
    return true;
  }));
  return held;
}

Result<void> CheckLength(std::string_view what, std::string_view text, std::size_t limit) {
  if (text.size() <= limit) return {};
  return Error{ErrorCode::kLimitExceeded, "the " + std::string(what) + " is longer than " +
                                              std::to_string(limit) +
                                              " bytes; nothing was changed"};
}

Result<void> CheckToken(const StoreTxn& txn, const ListToken& token, Hint begin) {
  const std::string what = "the token " + std::to_string(token.commit);
  if (token.store != txn.store_id()) {
    return Error{ErrorCode::kInvalidArgument,
                 what + " is from another store; nothing was changed",
                 {},
                 begin};
  }
  if (token.commit >= txn.sequence()) {
    return Error{
        ErrorCode::kInvalidArgument, what + " is from the future; nothing was changed", {}, begin};
  }
  return {};
}

void NoteEvidenceRemoved(StoreTxn& txn) {
  txn.state().evidence_removed = txn.sequence();
  txn.state().awaits_first_list = false;
  txn.Touch();
}

ImageRow Present(ImageRow row) {
  if (row.absent == 0) return row;
  row.absent = 0;
  row.preloaded.reset();
  return row;
}

PreloadedPart PreloadedNow(const StoreTxn& txn, std::vector<std::string> names,
                           std::string_view source, std::string_view reason) {
  SortUnique(names);
  if (names.size() > kMaxNamesPerImage) names.resize(kMaxNamesPerImage);
  return {.names = std::move(names),
          .source = std::string(source),
          .reason = std::string(reason),
          .since = txn.now(),
          .as_of = txn.sequence()};
}

void AddAlias(ImageRow& row, const std::string& text) {
  const auto plain = PlainSpellings(row.subject);
  if (std::ranges::find(plain, text) != plain.end()) return;
  const auto at = std::ranges::lower_bound(row.aliases, text);
  if (at == row.aliases.end() || *at != text) row.aliases.insert(at, text);
}

namespace {

std::optional<Timestamp> AbsentSince(const ImageRow& row, const Clocks& now, Timestamp clock) {
  if (row.absent == 0) return std::nullopt;
  auto ran = static_cast<std::int64_t>(std::max(now.RanSeconds(), row.absent) - row.absent);
  // Seconds of the two clocks do not begin together: the answer would change from call to call.
  if (clock.nanoseconds < now.ran.count() % 1'000'000'000) ++ran;
  return Timestamp{std::max<std::int64_t>(clock.seconds - ran, 1), 0};
}

}  // namespace

ImagePulledRecord RecordOf(const ImageRow& row, const Clocks& now, Timestamp clock) {
  const PulledPart& pulled = *row.pulled;
  ImagePulledRecord record;
  record.image_ref = row.Ref();
  record.last_updated = pulled.last_updated;
  record.credential_mapping = pulled.entries;
  record.private_names = pulled.private_names;
  record.stamp = row.stamp;
  record.runtime_handler = row.runtime_handler;
  record.manifest_digest = pulled.manifest_digest;
  record.platform = pulled.platform;
  record.guest_platform = pulled.guest_platform;
  record.closed_because = pulled.closed_because;
  record.closed_by_list = pulled.closed_by == ClosedBy::kList;
  record.closed_by_operator = pulled.closed_by == ClosedBy::kOperator;
  record.absent_since = AbsentSince(row, now, clock);
  record.absent_ran = row.absent;
  return record;
}

PreloadedImage PreloadedOf(const ImageRow& row, const Clocks& now, Timestamp clock) {
  const PreloadedPart& part = *row.preloaded;
  return {.image_ref = row.subject,
          .runtime_handler = row.runtime_handler,
          .names = part.names,
          .source = part.source,
          .reason = part.reason,
          .since = part.since,
          .stamp = part.as_of,
          .absent_since = AbsentSince(row, now, clock),
          .absent_ran = row.absent};
}

}  // namespace waybill::internal
