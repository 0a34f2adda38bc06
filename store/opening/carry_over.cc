#include "store/opening/carry_over.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/images/images.h"
#include "store/images/kubelet_file_row.h"
#include "store/images/learn.h"
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
#include "store/opening/restore_ranges.h"
#include "store/runtimes/runtime_handlers.h"

namespace waybill::internal {

namespace {

// Of the source's rows, what may open images.
class WhatOpens {
 public:
  explicit WhatOpens(const Replacing& from)
      : from_(from),
        images_proven_(from.Proves(Table::kImages)),
        // With a lost revocation, credentials that it has still to take out of records would come
        // back.
        keeps_credentials_(!from.is_newest || from.source.state->unfinished == 0 ||
                           from.source.Has(Table::kRevocations)),
        // An unreadable file closes an image under every alias: without one of them, what is known
        // of its coming would open it.
        keeps_preloaded_((images_proven_ && from.source.Has(Table::kImages)) ||
                         (from.source.of(Table::kQuarantine).empty() &&
                          (from.old == nullptr || from.old->of(Table::kQuarantine).empty()))) {
    if (!from.old_is_newest) return;
    for (ImageRow& row : from.old->All(Table::kImages, DecodeImage)) {
      there_.emplace(std::pair(row.subject, row.runtime_handler), std::move(row));
    }
  }

  // Leaves the rest out. False: the row had credentials, and has none now.
  bool Keep(ImageRow& row) const {
    const ImageRow* const there = Find(row);
    if (row.preloaded && !(keeps_preloaded_ && there != nullptr &&
                           there->preloaded == row.preloaded && there->absent == row.absent)) {
      row.preloaded.reset();
    }
    const bool keeps = KeepCredentials(there, row);
    if (!images_proven_) KeepAliases(there, row);
    return keeps;
  }
  // The same of a table of other values.
  bool Keeps(const TableSpec& spec, const std::vector<std::uint8_t>& payload) const {
    return from_.Proves(spec.table) ||
           (from_.old_is_newest && std::ranges::count(from_.old->of(spec.table), payload) > 0);
  }

 private:
  // The row that proves this one: itself, or that of the store that is replaced.
  const ImageRow* Find(const ImageRow& row) const {
    if (images_proven_) return &row;
    const auto at = there_.find({row.subject, row.runtime_handler});
    return at == there_.end() ? nullptr : &at->second;
  }

  // Credentials that the replaced store does not have as well may have been revoked since. Of the
  // others its proofs count: it may have proven them again, or lost their time.
  bool KeepCredentials(const ImageRow* there, ImageRow& row) const {
    if (!row.pulled || row.pulled->entries.empty()) return true;
    const bool has = keeps_credentials_ && there != nullptr && there->pulled &&
                     there->pulled->entries == row.pulled->entries;
    const PulledPart was = *row.pulled;
    row.pulled->entries = has ? there->pulled->entries : decltype(row.pulled->entries)();
    KeepPrivateNames(was, *row.pulled);
    return has;
  }

  // Another image may have one of its digests since. The next list tells.
  static void KeepAliases(const ImageRow* there, ImageRow& row) {
    row.alias = there != nullptr ? there->alias : std::nullopt;
    row.listed = there != nullptr && row.listed && there->listed;
    std::erase_if(row.aliases, [&](const std::string& alias) {
      return there == nullptr || std::ranges::count(there->aliases, alias) == 0;
    });
  }

  const Replacing& from_;
  const bool images_proven_;
  const bool keeps_credentials_;
  const bool keeps_preloaded_;
  std::map<std::pair<std::string, std::string>, ImageRow> there_;
};

Result<void> CarryRow(Images& images, ImageRow row, const WhatOpens& opens, Carried& carried) {
  if (row.pulled) ++carried.records;
  if (!opens.Keep(row)) ++carried.records_without_credentials;
  // How long it is retained begins anew.
  if (row.absent != 0) row.absent = images.txn().clocks().RanSeconds();
  return images.Put(std::move(row), Images::Confirms::kYes);
}

// Of both stores. An existing value under the key stays.
Result<void> CarryValue(StoreTxn& txn, const TableSpec& spec, Payload payload) {
  const auto key = spec.key_of(payload, txn.seed());
  if (key) TRY(txn.PutNew(spec.table, *key, payload));
  return {};
}

// Rows may be lost, or older than the files: a guard must not take these for looked at. What a
// kubelet has in memory is hashed with the other store's seed.
Result<void> CarryKubeletFile(StoreTxn& txn, Payload payload) {
  auto row = DecodeKubeletFile(payload);
  if (!row || row->node) return {};
  row->may_have.clear();
  return PutKubeletFile(txn, *row);
}

Result<void> CarryRevocations(StoreTxn& txn, const Salvaged& of) {
  for (Revocation& one : of.All(Table::kRevocations, DecodeRevocation)) {
    one.unfinished = false;  // records are stored without it
    // The other store may count from another beginning: its time begins anew.
    one.ran = static_cast<std::uint64_t>(txn.clocks().ran.count());
    TRY(PutRevocation(txn, one));
  }
  return {};
}

// Handlers get the names that the registry has for them.
Result<void> CarryPulls(StoreTxn& txn, const Salvaged& of,
                        const std::vector<RuntimeHandler>& registry) {
  for (UnresolvedPull& pull : of.All(Table::kIntents, DecodeUnresolvedPull)) {
    pull.runtime_handler = StoredName(registry, pull.runtime_handler);
    TRY(CarryPull(txn, std::move(pull)));
  }
  return {};
}

Result<void> CarryValues(StoreTxn& txn, const Replacing& from, const WhatOpens& opens) {
  for (const TableSpec& spec : kTables) {
    const bool has_own_form = spec.table == Table::kIntents || spec.table == Table::kRevocations;
    if (has_own_form || spec.kept == Kept::kNone || spec.kept == Kept::kOwnRules) continue;
    for (const auto& payload : from.source.of(spec.table)) {
      if (spec.kept == Kept::kProven && !opens.Keeps(spec, payload)) continue;
      if (spec.table == Table::kKubeletFiles) {
        TRY(CarryKubeletFile(txn, payload));
      } else {
        TRY(CarryValue(txn, spec, payload));
      }
    }
    if (from.old == nullptr || spec.kept != Kept::kOfBoth) continue;
    for (const auto& payload : from.old->of(spec.table)) TRY(CarryValue(txn, spec, payload));
  }
  return {};
}

void CarryState(const Replacing& from, StoreTxn& txn) {
  State& state = txn.state();
  for (const Salvaged* one : {&from.source, from.old}) {
    if (one == nullptr || !one->state) continue;
    state.last_truth = std::max(state.last_truth, one->state->last_truth);
    state.max_age = one->state->max_age;
    // What is carried over is forgotten by the rules that it was kept under.
    state.kubelet_rules = one->state->kubelet_rules;
    if (from.old == nullptr) state.last_list = one->state->last_list;
  }
  // Of a revocation that is lost nobody knows what it was about: pulls that began before prove no
  // Secret and no service account any more.
  const Salvaged& newest = from.old != nullptr ? *from.old : from.source;
  if (!newest.Has(Table::kRevocations)) state.last_truth = txn.sequence();
}

// A record of the replaced store closes what the backup has no record of: it was pulled or closed
// since. An operator's closing stays beside what both stores have proven, and of two closings the
// one that is no guess.
void KeepClosing(const ImageRow& there, const Clocks& now, ImageRow& row) {
  const PulledPart& old = *there.pulled;
  const bool is_new = !row.pulled;
  bool closes = is_new || old.closed_by == ClosedBy::kOperator;
  ClosedBy by = old.closed_by;
  if (!is_new) {
    const PulledPart& kept = *row.pulled;
    const bool no_guess = kept.closed_by == ClosedBy::kList && by != ClosedBy::kList;
    const bool other_word = kept.closed_because.empty() != old.closed_because.empty();
    closes = closes || (kept.entries.empty() && old.entries.empty() && (other_word || no_guess));
    if (by == ClosedBy::kList && kept.closed_by != ClosedBy::kList) by = ClosedBy::kRestore;
  }
  if (!is_new) KeepPrivateNames(old, *row.pulled);
  if (!closes) return;
  if (is_new) {
    row.ref = there.ref;
    if (!row.preloaded) row.absent = there.absent == 0 ? 0 : now.RanSeconds();
    row.pulled = PulledPart{.last_updated = old.last_updated, .guest_platform = old.guest_platform};
    KeepPrivateNames(old, *row.pulled);
  }
  row.pulled->closed_because = old.closed_because;
  row.pulled->closed_by = by;
  if (old.closed_because.empty() && row.pulled->entries.empty()) {
    row.pulled->closed_because = "it was pulled after the backup";
    if (by != ClosedBy::kOperator) row.pulled->closed_by = ClosedBy::kRestore;
  }
}

// Of an image with a record, whose a digest is stays known: it may come back with another ID when
// its disk does.
Result<void> KeepRecorded(Images& images, const Salvaged& old,
                          const std::vector<RuntimeHandler>& registry) {
  auto rows = old.All(Table::kImages, DecodeImage);
  std::ranges::sort(rows, {},
                    [](const ImageRow& row) { return std::tie(row.subject, row.runtime_handler); });
  std::set<std::string> recorded;
  for (const ImageRow& there : rows) {
    if (there.pulled) recorded.insert(there.subject);
  }
  for (const ImageRow& there : rows) {
    if (there.alias) {
      ImageRow of_digest = TRY(images.FindOrMake(there.subject));
      if (!of_digest.pulled || there.alias->image.empty()) {
        of_digest.alias = there.alias;
        TRY(images.Put(std::move(of_digest), Images::Confirms::kNo));
      }
    }
    if (!recorded.contains(there.subject)) continue;
    const auto home = TRY(images.Home(there.subject));
    ImageRow row = TRY(images.FindOrMake(home, StoredName(registry, there.runtime_handler)));
    row.listed = row.listed || there.listed;
    for (const std::string& alias : there.aliases) {
      const std::string digest = images.SubjectOf(alias);
      const auto of = TRY(images.RowsOf(digest));
      if (digest == row.subject || of.empty()) AddAlias(row, alias);
    }
    if (there.pulled) KeepClosing(there, images.txn().clocks(), row);
    TRY(images.Put(std::move(row), Images::Confirms::kYes));
  }
  return {};
}

// Rows lie where their store's mode looks for them: whether one of the two had another, or does not
// say which.
bool MayBeOfOtherMode(const Replacing& from, const State& state) {
  return std::ranges::any_of(std::array{&from.source, from.old}, [&](const Salvaged* one) {
    return one != nullptr && (!one->state || one->state->kubelet_rules != state.kubelet_rules);
  });
}

// No image is shown under a ref that leads elsewhere by now.
Result<void> ForgetRefsOfOthers(Images& images) {
  auto rows = TRY(images.All([](const ImageRow& row) { return !row.ref.empty(); }));
  for (ImageRow& row : rows) {
    const auto home = TRY(images.Home(row.ref));
    if (home == row.subject) continue;
    row.ref.clear();
    TRY(images.Put(std::move(row), Images::Confirms::kNo));
  }
  return {};
}

}  // namespace

Result<Carried> CarryOver(StoreTxn& txn, const Replacing& from) {
  const WhatOpens opens(from);
  Aliases aliases;
  Images images(txn, aliases);
  Carried carried;
  CarryState(from, txn);
  // First, so that no record brings back what was forgotten.
  for (const Salvaged* one : {from.old, &from.source}) {
    if (one != nullptr) TRY(CarryRevocations(txn, *one));
  }
  for (const auto& payload : from.source.of(Table::kImages)) {
    if (auto row = DecodeImage(payload)) TRY(CarryRow(images, *std::move(row), opens, carried));
  }
  const bool moves = MayBeOfOtherMode(from, txn.state());
  if (moves) TRY(ChangeMode(images));
  TRY(CarryValues(txn, from, opens));
  TRY(CarryPulls(txn, from.source, {}));
  carried.intents = from.source.of(Table::kIntents).size();
  CountAllAsGiven(txn);
  // A list that was drawn before may miss what was lost.
  NoteEvidenceRemoved(txn);
  if (from.old != nullptr) {
    const auto registry = TRY(ReadRuntimeHandlers(txn));
    TRY(CarryPulls(txn, *from.old, registry));
    TRY(KeepRecorded(images, *from.old, registry));
  }
  if (moves) TRY(ChangeMode(images));
  TRY(ForgetRefsOfOthers(images));
  TRY(CarryHostIds(txn, from, carried));
  return carried;
}

}  // namespace waybill::internal
