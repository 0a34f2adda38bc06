// The steps of a history on a whole store: down to an older version and up again, and back to a
// backup.

#include <algorithm>

#include "store/base/options.h"
#include "store/maintenance.h"
#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"
#include "tests/support/node_store.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

namespace {

constexpr std::size_t kBackupsKept = 3;
constexpr std::uint64_t kMapBytes = std::uint64_t{64} << 20U;

// Every image that was known as pulled or in flight still is.
bool NothingForgotten(const Model& before, const Model& after) {
  for (const auto& [copy, record] : before.records()) {
    if (!after.records().contains({copy.first, ""})) return false;
  }
  const auto intents = before.intents();
  return std::all_of(intents.begin(), intents.end(), [&](const Model::IntentKey& intent) {
    return after.intents().contains({intent.first, ""});
  });
}

}  // namespace

void History::MaintenanceStep() {
  if (relation_ == Relation::kSameAnswers) return;
  if (draw_.OneIn(8)) {
    for (const Side& side : sides_) ExpectOwned(side);
  }
  if (draw_.OneIn(3)) return RestoreBackup();
  return MigrateDownAndUp();
}

// A store in use is refused.
void History::ExpectOwned(const Side& side) const {
  const auto migrated = MigrateStore({.directory = side.directory, .to = 1, .accept_loss = true});
  Expect(!migrated && migrated.error().code == ErrorCode::kOwned, side, "migrated in use");
  if (side.backups.empty()) return;
  const auto restored =
      RestoreStore({.directory = side.directory, .backup = side.backups.back().path});
  Expect(!restored && restored.error().code == ErrorCode::kOwned, side, "restored in use");
}

void History::MigrateDownAndUp() {
  const auto loses = [](const Model& model) { return model.DownLoses(); };
  // If only one side went down, they could not be compared any more.
  const bool accept_loss = draw_.OneIn(2) || !Agree(loses);
  const bool dry_run = draw_.OneIn(6);
  const bool up_by_itself = draw_.OneIn(2);
  Note(std::string("migrate down") + (accept_loss ? ", accepting loss" : "") +
       (dry_run ? ", dry run" : "") + (up_by_itself ? ", and up" : ""));
  ++moment_;
  std::vector<Model> before;
  for (Side& side : sides_) {
    before.push_back(side.model);
    Stop(side);
    GoDown(side, accept_loss, dry_run);
  }
  ++moment_;
  for (std::size_t i = 0; i < sides_.size(); ++i) {
    Side& side = sides_[i];
    const bool went_down = side.version != kNewestSchema;
    if (went_down && up_by_itself) GoUp(side);
    // RestartStep plays what else an opening does.
    Open(side, {.gap = Gap::kNo});
    const auto verified = side.store->Verify();
    Expect(verified.has_value() && verified->sound, side, "the store is not sound");
    CompareBackups(side);
    if (went_down) {
      Expect(NothingForgotten(before[i], side.model), side, "something was forgotten");
    }
    ExpectNothingOpened(side, before[i], {""});
  }
}

void History::GoDown(Side& side, bool accept_loss, bool dry_run) {
  MigrateOptions options{.directory = side.directory, .to = 1};
  options.accept_loss = accept_loss;
  options.dry_run = dry_run;
  options.clock = clock_.AsClock();
  options.boot_clock = clock_.AsBootClock();
  options.map_bytes = kMapBytes;
  const bool loses = side.model.DownLoses();
  const auto migrated = MigrateStore(options);
  if (loses && !accept_loss && !dry_run) {
    Expect(!migrated && migrated.error().code == ErrorCode::kConflict, side,
           "lost something unasked");
    return;
  }
  if (!migrated) Expect(false, side, migrated.error().ToString());
  Expect(migrated->from == kNewestSchema && migrated->to == 1 &&
             migrated->steps.size() == kNewestSchema - 1 && migrated->losses.empty() == !loses &&
             migrated->backup.empty() == dry_run,
         side, "the report of the migration is wrong");
  if (dry_run) return;
  NoteBackup(side, migrated->backup);
  side.model.Down();
  side.version = 1;
  if (!draw_.OneIn(4)) return;
  const auto observed = NodeStore::Observe({.directory = side.directory});
  Expect(!observed && observed.error().code == ErrorCode::kOlderSchema, side, "observed");
  NodeStoreOptions open{.directory = side.directory, .witness = Witness::Remembered()};
  open.migrate = false;
  const auto opened = NodeStore::Open(std::move(open));
  Expect(!opened && opened.error().code == ErrorCode::kOlderSchema, side, "opened as it is");
}

void History::GoUp(Side& side) {
  MigrateOptions options{.directory = side.directory};
  options.clock = clock_.AsClock();
  options.boot_clock = clock_.AsBootClock();
  options.map_bytes = kMapBytes;
  const auto migrated = MigrateStore(options);
  if (!migrated) Expect(false, side, migrated.error().ToString());
  Expect(migrated->from == 1 && migrated->to == kNewestSchema && migrated->losses.empty(), side,
         "the report of the migration is wrong");
  NoteBackup(side, migrated->backup);
  side.model.Up();
  side.version = kNewestSchema;
}

void History::NoteBackup(Side& side, const std::string& path) {
  Expect(std::filesystem::exists(path), side, "there is no backup " + path);
  // Of several of the same state only the last is kept.
  std::erase_if(side.backups, [&](const ModelBackup& one) {
    return one.path == path || !std::filesystem::exists(one.path);
  });
  side.backups.push_back({path, side.version, moment_, std::make_shared<Model>(side.model)});
  if (side.backups.size() > kBackupsKept) side.backups.pop_front();
}

void History::CompareBackups(const Side& side) const {
  const auto listed = BackupsOf(side.directory);
  if (!listed) Expect(false, side, listed.error().ToString());
  Expect(listed->size() == side.backups.size(), side, "other backups are kept");
  for (std::size_t i = 0; i < listed->size(); ++i) {
    const ModelBackup& backup = side.backups[side.backups.size() - 1 - i];
    Expect((*listed)[i].path == backup.path && (*listed)[i].schema_version == backup.version, side,
           "other backups are kept");
  }
}

void History::RestoreBackup() {
  // A moment of which all sides have a backup.
  std::vector<std::uint64_t> moments;
  for (const ModelBackup& backup : sides_[0].backups) moments.push_back(backup.moment);
  const auto of = [](const Side& side, std::uint64_t moment) {
    return std::find_if(side.backups.begin(), side.backups.end(),
                        [&](const ModelBackup& backup) { return backup.moment == moment; });
  };
  for (const Side& side : sides_) {
    std::erase_if(moments,
                  [&](std::uint64_t moment) { return of(side, moment) == side.backups.end(); });
  }
  if (moments.empty()) return Note("no backup");
  const std::uint64_t moment = draw_.From(moments);
  const bool bad_first = draw_.OneIn(6);
  Note("restore the backup of moment " + std::to_string(moment));
  ++moment_;
  for (Side& side : sides_) {
    Stop(side);
    const ModelBackup backup = *of(side, moment);
    RestoreOptions options{.directory = side.directory, .backup = backup.path};
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    options.map_bytes = kMapBytes;
    if (bad_first) {
      RestoreOptions bad = options;
      bad.backup = side.directory.string() + ".no-backup";
      WriteFile(bad.backup, "broken");
      const auto refused = RestoreStore(bad);
      Expect(!refused && refused.error().code == ErrorCode::kDamaged, side, "took what is none");
    }
    const Model before = side.model;
    const auto restored = RestoreStore(options);
    if (!restored) Expect(false, side, restored.error().ToString());
    const std::uint64_t without_credentials = side.model.Restore(*backup.model);
    Expect(restored->schema_version == kNewestSchema &&
               restored->records == backup.model->records().size() &&
               restored->records_without_credentials == without_credentials &&
               std::filesystem::exists(restored->replaced_path) &&
               !restored->distrust_reason.empty(),
           side, "the report of the restoration is wrong");
    side.version = kNewestSchema;
    Open(side, {.gap = Gap::kNo});
    ExpectNothingOpened(side, before, {""});
  }
}

}  // namespace waybill::testing
