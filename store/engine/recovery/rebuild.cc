#include "store/engine/recovery/rebuild.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/engine/recovery/kept_databases.h"
#include "store/engine/recovery/map_bytes.h"
#include "store/engine/recovery/new_database.h"
#include "store/engine/recovery/open_store.h"
#include "store/engine/recovery/salvage.h"
#include "store/engine/trust/trust.h"
#include "store/node/userns/lost_ranges.h"

namespace waybill::internal {

namespace {

struct Choice {
  int which = -1;  // the meta page to salvage from; −1: neither
  std::optional<State> state;
  bool newest = false;  // proven to be the last commit; then there is a state
};

Choice ChooseTree(const Inspection& inspection, const Hearing& hearing) {
  const auto& meta = inspection.meta;
  const auto& states = inspection.states_by_meta;
  if (!states[0] && !states[1]) return {inspection.newer_meta, std::nullopt, false};
  const auto txn_id = [&](std::size_t i) { return meta[i].valid ? meta[i].txn_id : 0; };
  const bool is_second =
      !states[0] || (states[1] && states[1]->commit_sequence >= states[0]->commit_sequence);
  const std::size_t chosen = is_second ? 1 : 0;
  const std::size_t other = 1 - chosen;
  const State& state = *states[chosen];
  const bool other_is_older = states[other] || (meta[other].valid && !meta[other].rooted);
  // Without an identity, a mark or a witness of any store counts.
  const auto last_in = [](const std::optional<Testimony>& one) {
    return one ? one->commit_sequence : std::uint64_t{0};
  };
  const std::uint64_t last = inspection.identity
                                 ? hearing.LastCommitOf(inspection.identity->uuid)
                                 : std::max(last_in(hearing.testimony), last_in(hearing.mark));
  const bool is_newest = other_is_older && state.lmdb_txn_id >= std::max(txn_id(0), txn_id(1)) &&
                         hearing.contradiction.empty() && state.commit_sequence >= last;
  return {static_cast<int>(chosen), state, is_newest};
}

// Whether the store was distrustful for a loss: then it may be an old copy.
bool LostBefore(const Journal& journal, const State& state) {
  if (!state.distrustful) return false;
  const std::vector<bool> in_force = InForce(journal);
  bool is_known = false;
  for (std::size_t i = 0; i < journal.size(); ++i) {
    if (!in_force[i]) continue;
    if (!LosesNothing({journal[i].kind, journal[i].reason})) return true;
    is_known = true;
  }
  return !is_known;
}

// Whether a store that is not sound may be rebuilt as one for `wanted`. Where nothing says what it
// was for it is a node's: of one of streams nothing is worth keeping.
bool MayBeFor(const Salvaged& salvaged, Purpose wanted) {
  const Purpose said = salvaged.identity ? salvaged.identity->purpose : Purpose::kUnknown;
  if (said != Purpose::kUnknown) return said == wanted;
  const bool has_streams = !salvaged.payloads[Index(Table::kStreamingTokens)].empty();
  return wanted == Purpose::kNode && !has_streams;
}

}  // namespace

Result<void> Rebuild(const OpenOptions& options, const Fd& file, const Inspection& inspection,
                     const Hearing& hearing, Purpose purpose, RecoveryReport& report) {
  const std::filesystem::path& directory = options.directory;
  const std::optional<Testimony>& testimony = hearing.testimony;
  const Choice choice = ChooseTree(inspection, hearing);
  Salvaged salvaged;
  if (choice.which >= 0) {
    salvaged = TRY(Salvage(file, choice.which, OnReadErrorIn(options)));
  }
  NewDatabase made;
  made.now = options.clock();
  made.map_bytes = ChooseMapBytes(options.map_bytes, RememberedMapBytes(inspection));
  made.map_may_grow = options.map_bytes == 0;
  made.sequence = choice.state ? choice.state->commit_sequence : 0;
  made.journal = std::move(salvaged.journal);
  std::uint32_t schema_before = kNewestSchema;
  if (salvaged.identity) {
    made.identity = *salvaged.identity;
    schema_before = made.identity.schema_version;
    made.identity.schema_version = kNewestSchema;
  } else {
    made.identity = TRY(NewIdentity(made.now));
  }
  if (!MayBeFor(salvaged, purpose)) {
    return Error{ErrorCode::kDamaged,
                 "the database in " + directory.string() + " fails its check" + inspection.Why() +
                     ", and does not say that it is for " +
                     (purpose == Purpose::kNode ? "images" : "streaming requests") +
                     "; nothing was changed",
                 "if it was for streaming requests, remove the directory: every token is void in "
                 "any case"};
  }
  made.identity.purpose = purpose;
  if (testimony && !salvaged.identity) made.identity.uuid = testimony->uuid;
  made.sequence = std::max(made.sequence, hearing.LastCommitOf(made.identity.uuid));

  auto aside = TRY(KeepAside(directory, file));
  made.distrust = {TrustKind::kStoreRebuilt, "the database failed its check"};
  if (!inspection.findings.empty()) {
    made.distrust.reason += " (" + inspection.findings.front() + ")";
  }
  if (!hearing.contradiction.empty()) made.distrust.reason += ", and " + hearing.contradiction;
  made.distrust.reason += "; it is kept as " + aside.string();
  const auto proven_whole = [&](Table table) {
    return salvaged.sound[Index(table)] == choice.state->digest(table);
  };
  const auto proven = [&](Table table) {
    return choice.newest && salvaged.Proves(table, *choice.state);
  };
  // With a lost revocation, credentials that it has still to take out of records would come back.
  const bool revocations_proven =
      choice.state && (choice.state->untidied == 0 || proven_whole(Table::kRevocations));
  const bool credentials_proven = proven(Table::kPulled) && revocations_proven;
  // A tree older than the last commit may have an older schema version, too.
  const bool had_ranges =
      !choice.newest || !salvaged.identity || SchemaOf(schema_before).has(Table::kUsernsHeld);
  const bool ranges_lost =
      had_ranges && !(choice.newest && HasAllIdRanges(salvaged, *choice.state));
  const bool lost_before = !had_ranges && LostBefore(made.journal, *choice.state);
  made.fill = [&](StoreTxn& txn) -> Result<void> {
    if (choice.state) txn.state().latest_time = choice.state->latest_time;
    if (purpose == Purpose::kStreaming) {  // tokens of before are void
      txn.state().last_list = kNoListEver;
      return {};
    }
    if (choice.state) {
      txn.state().last_list = choice.state->last_list;
      txn.state().kubelet_rules = choice.state->kubelet_rules;
      txn.state().last_truth = choice.state->last_truth;
      txn.state().ages = choice.state->ages;
    }
    // Quarantine closes an image under every spelling: without one of them, its entry would open
    // it.
    const auto& quarantine = salvaged.payloads[Index(Table::kQuarantine)];
    const bool has_spellings = choice.state && salvaged.sound[Index(Table::kSpellings)] ==
                                                   choice.state->digest(Table::kSpellings);
    const bool ledger_proven = proven(Table::kLedger) && (quarantine.empty() || has_spellings);
    auto carried = TRY(CarryOver(
        txn, salvaged,
        {.keeps_credentials = [&](const ImagePulledRecord&) { return credentials_proven; },
         .keeps_entry = [&](const LedgerEntry&) { return ledger_proven; },
         .preloaded = proven(Table::kPreloaded),
         .spellings = proven(Table::kSpellings),
         .now = options.boot_clock()}));
    report.records_carried = carried.records;
    report.records_without_credentials = carried.records_without_credentials;
    report.intents_carried = carried.intents;
    if (auto r = CarryCounters(txn, salvaged); !r) return r;
    if (auto r = CarryIdRanges(txn, salvaged); !r) return r;
    if (ranges_lost || lost_before) return HoldLostRanges(txn, made.distrust.reason);
    const bool may_have_imported =
        !proven(Table::kImported) || txn.state().digest(Table::kImported).count > 0;
    return had_ranges || !may_have_imported ? Result<void>() : HoldRangesOfKubelet(txn);
  };
  if (auto r = PrepareDatabase(directory, made); !r) return r;
  if (auto r = InstallDatabase(directory, made); !r) return r;
  report.set_aside = true;
  report.set_aside_path = aside.string();
  report.removed_paths = RemoveOldDatabases(directory);
  return {};
}

}  // namespace waybill::internal
