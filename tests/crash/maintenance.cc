#include "tests/crash/maintenance.h"

#include <string>

#include "store/maintenance.h"
#include "tests/support/fake_clock.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/pod.h"
#include "tests/support/third_version.h"

namespace waybill::testing {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMapBytes = std::uint64_t{64} << 20U;

Timestamp Now() { return {kFakeEpoch, 0}; }

ImagePulledRecord RecordOf(std::size_t i) {
  const std::string number = std::to_string(i);
  ImagePulledRecord record;
  record.image_ref = "sha256:" + Sha256Hex(number);
  record.last_updated = Now();
  record.credential_mapping["registry.example/app" + number] =
      WithSecret(MakeSecret("ns", "pull", "uid", Sha256Hex("password " + number)));
  if (i % 10 == 0) record.runtime_handler = "kata";
  if (i % 10 == 1) record.manifest_digest = "sha256:" + Sha256Hex("manifest");
  return record;
}

Is LookAt(const fs::path& directory) {
  Is is{IdentityOf(directory).schema_version, WithoutStamps(ContentsOf(directory))};
  is.contents.journal.clear();
  return is;
}

}  // namespace

Result<void> Place::Open(const std::function<void(NodeStore&)>& then) const {
  auto opened = NodeStore::Open(Options());
  if (!opened) return opened.error();
  if (then) then(**opened);
  return (*opened)->Close();
}

Result<void> Place::MigrateTo(std::uint32_t version) const {
  MigrateOptions options{.directory = store(), .to = version, .accept_loss = true};
  options.clock = Now;
  options.map_bytes = kMapBytes;
  auto migrated = MigrateStore(options);
  if (!migrated) return migrated.error();
  return {};
}

Result<void> Place::RestoreOldest() const {
  const auto backups = BackupsOf(store());
  if (!backups) return backups.error();
  RestoreOptions options{.directory = store(), .backup = backups->back().path};
  options.clock = Now;
  options.map_bytes = kMapBytes;
  auto restored = RestoreStore(options);
  if (!restored) return restored.error();
  return {};
}

bool Place::Sound() const { return InspectPath(database()).sound; }

Is Place::Look() const { return LookAt(store()); }

bool Place::KeepsAside(const Is& is) const {
  if (!fs::exists(store() / "quarantine")) return false;
  for (const auto& entry : fs::directory_iterator(store() / "quarantine")) {
    if (fs::exists(entry.path() / "data.mdb") && LookAt(entry.path()) == is) return true;
  }
  return false;
}

std::span<const Scenario> MaintenanceScenarios() {
  static const Scenario scenarios[] = {
      {"going down",
       [](const Place&) {},
       [](const Place& place) { return place.MigrateTo(1); },
       false,
       {2}},
      {"going up",
       [](const Place& place) { Must(place.MigrateTo(1)); },
       [](const Place& place) { return place.MigrateTo(kThirdVersion); },
       false,
       {2}},
      {"opening an older version",
       [](const Place& place) {
         Must(place.Open());  // ends the pulls, which would be one more commit
         Must(place.MigrateTo(1));
       },
       [](const Place& place) { return place.Open(); },
       false,
       {2}},
      {"putting a backup back",
       [](const Place& place) {
         Must(place.MigrateTo(1));
         Must(place.Open([](NodeStore& store) { Must(store.PutIntent({.image = "in-flight"})); }));
       },
       [](const Place& place) { return place.RestoreOldest(); }, true}};
  return scenarios;
}

void Begin(const Scenario& scenario, std::size_t records, const Place& place) {
  Must(place.Open([&](NodeStore& store) {
    Must(store.ReplaceRuntimeHandlers(SomeHandlers()));
    for (std::size_t i = 0; i < records; ++i) Must(store.PutRecord(RecordOf(i)));
    for (std::size_t i = 0; i < records / 20; ++i) {
      Must(store.PutIntent({.image = "registry.example/app" + std::to_string(i) + ":v2",
                            .runtime_handler = i % 2 == 0 ? "gvisor" : ""}));
      const std::string number = std::to_string(i);
      Must(store.AddToLedger({.id = "sha256:" + Sha256Hex("preloaded " + number)}, "operator",
                             "a test"));
      const std::string cancelled = "registry.example/cancelled:v" + number;
      const PullId pull = Must(store.RecordPullIntent({.image = cancelled}));
      Must(store.RecordImagePullFailed({.image = cancelled}, PullOutcome::kUnknown, pull));
    }
  }));
  scenario.begin(place);
}

std::vector<Is> BetweenSteps(const Scenario& scenario, std::size_t records) {
  std::vector<Is> between;
  for (const std::uint32_t version : scenario.between) {
    const Place place;
    Begin(scenario, records, place);
    Must(place.MigrateTo(version));
    between.push_back(place.Look());
  }
  return between;
}

}  // namespace waybill::testing
