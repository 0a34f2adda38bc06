#include "store/engine/recovery/rebuild.h"

#include <algorithm>
#include <array>
#include <utility>

#include "store/base/try.h"
#include "store/engine/recovery/kept_databases.h"
#include "store/engine/recovery/map_bytes.h"
#include "store/engine/recovery/new_database.h"
#include "store/engine/recovery/open_store.h"
#include "store/engine/recovery/product.h"
#include "store/engine/recovery/salvage.h"

namespace waybill::internal {

namespace {

struct Choice {
  int which = -1;  // the meta page to salvage from; −1: neither
  std::optional<State> state;
  bool newest = false;  // proven to be the last commit; then there is a state
};

Choice ChooseTree(const Inspection& inspection, const Signs& signs) {
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
  const std::array<std::uint8_t, 16> none{};
  const std::uint64_t last = signs.LastCommitOf(inspection.identity ? inspection.identity->uuid
                                                : signs.mark        ? signs.mark->uuid
                                                                    : none);
  const bool is_newest = other_is_older && state.lmdb_txn_id >= std::max(txn_id(0), txn_id(1)) &&
                         signs.stale().empty() && state.commit_sequence >= last;
  return {static_cast<int>(chosen), state, is_newest};
}

}  // namespace

Result<void> Rebuild(const NodeStoreOptions& options, const Fd& file, const Inspection& inspection,
                     const Signs& signs, const Product& product, OpeningReport& report) {
  const std::filesystem::path& directory = options.directory;
  const Choice choice = ChooseTree(inspection, signs);
  Salvaged salvaged;
  if (choice.which >= 0) {
    salvaged = TRY(Salvage(file, choice.which, OnReadErrorIn(options)));
  }
  NewDatabase made;
  made.now = options.clock();
  made.boot = options.boot_clock();
  made.map_bytes = ChooseMapBytes(options.map_bytes, RememberedMapBytes(inspection));
  made.map_may_grow = options.map_bytes == 0;
  made.sequence = choice.state ? choice.state->commit_sequence : 0;
  made.journal = std::move(salvaged.journal);
  if (salvaged.identity) {
    made.identity = *salvaged.identity;
    made.identity.schema_version = newest_schema;
  } else {
    made.identity = TRY(NewIdentity(made.now));
  }
  TRY(product.CheckRebuild(
      salvaged, "the database in " + directory.string() + " fails its check" + inspection.Why()));
  made.identity.purpose = product.purpose();
  if (signs.witness && !salvaged.identity) made.identity.uuid = signs.witness->uuid;
  made.sequence = std::max(made.sequence, signs.LastCommitOf(made.identity.uuid));

  auto aside = TRY(KeepAside(directory, file));
  made.distrust = {DegradedKind::kStoreRebuilt, "the database failed its check"};
  if (!inspection.findings.empty()) {
    made.distrust.reason += " (" + inspection.findings.front() + ")";
  }
  if (!signs.stale().empty()) made.distrust.reason += ", and " + signs.stale();
  made.distrust.reason += "; it is kept as " + aside.string();
  const Rebuilding from{salvaged, choice.state, choice.newest, made.distrust.reason};
  made.fill = [&](StoreTxn& txn) -> Result<void> {
    if (choice.state) {
      txn.state().latest_time = choice.state->latest_time;
      txn.state().clocks = choice.state->clocks;
    }
    return product.FillRebuilt(txn, from, report);
  };
  if (auto r = PrepareDatabase(directory, made); !r) return r;
  if (auto r = InstallDatabase(directory, made); !r) return r;
  report.set_aside = true;
  report.set_aside_path = aside.string();
  report.removed_paths = RemoveOldDatabases(directory);
  return {};
}

}  // namespace waybill::internal
