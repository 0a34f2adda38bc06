// Migrating between schema versions.

#include <fcntl.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "store/disk/page_walk/page_check.h"
#include "store/disk/tables.h"
#include "store/maintenance.h"
#include "store/opening/witness.h"
#include "tests/support/child_process.h"
#include "tests/support/damage.h"
#include "tests/support/expect_error.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/pod.h"
#include "tests/support/rows.h"
#include "tests/support/third_version.h"
#include "tests/support/versioned_store.h"
#include "tests/support/versions.h"

namespace waybill::testing {

// Migrating between schema versions: what each step keeps, loses and says. What a store that went
// down and up answers: tests/model. Why it refuses: migration_refused_test.cc.
BOOST_AUTO_TEST_SUITE(migration)

namespace {

constexpr const char* kStepName = "runtime-handlers";  // 1 to 2

RawModel Tables(const VersionedStore& store) {
  RawModel values = ValuesIn(store.directory());
  values.erase("");
  return values;
}

void CheckSound(const VersionedStore& store, std::uint32_t version) {
  const auto inspection = InspectPath(store.database());
  BOOST_TEST_REQUIRE(inspection.sound, FirstFinding(inspection));
  BOOST_TEST(inspection.identity->schema_version == version);
}

void CheckWitnessFollows(const VersionedStore& store) {
  const auto reading = Must(internal::ReadMark(store.witness()));
  BOOST_TEST_REQUIRE(reading.line.has_value());
  BOOST_TEST((reading.line->uuid == IdentityOf(store.directory()).uuid));
  BOOST_TEST(reading.line->acknowledged == StateOf(store.directory()).commit_sequence);
}

std::string RefOf(const std::string& name) { return "sha256:" + Sha256Hex(name); }
std::string ImageOf(const std::string& name) { return "registry.example/" + name + ":v1"; }

void Pull(NodeStore& store, const std::string& name, const std::string& handler,
          const std::optional<PulledManifest>& manifest = std::nullopt) {
  Must(store.RecordPullIntent({.image = ImageOf(name), .runtime_handler = handler}));
  Must(store.RecordImagePulled(
      {.image = ImageOf(name), .image_ref = RefOf(name), .runtime_handler = handler},
      WithSecret(kSecretA), {.manifest = manifest}));
}

// Fills a store with everything that version 1 can't express.
void FillWithHandlers(NodeStore& store) {
  Must(store.ReplaceRuntimeHandlers(SomeHandlers()));
  Pull(store, "plain", "");
  Pull(store, "both", "");
  Pull(store, "both", "kata");
  Pull(store, "of-kata", "kata");
  Pull(store, "of-gvisor", "gvisor");
  Pull(store, "chosen", "", PulledManifest{"sha256:" + Sha256Hex("m"), {"amd64", "linux"}});
  Must(store.PutIntent({.image = ImageOf("in-flight"), .runtime_handler = "kata"}));
  Must(store.PutIntent({.image = ImageOf("both-in-flight"), .runtime_handler = "kata"}));
  Must(store.PutIntent({.image = ImageOf("both-in-flight"), .runtime_handler = "gvisor"}));
  Must(store.PutIntent({.image = ImageOf("both-in-flight")}));
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(up_and_down_gives_back_every_byte_of_every_table, OldestStore) {
  const RawModel before = Tables(store);
  const auto digests = StateOf(store.directory()).tables;
  const auto identity = IdentityOf(store.directory());
  store.Migrate(2);
  const MigrationReport report = store.Migrate(1);
  BOOST_TEST(report.from == 2U);
  BOOST_TEST(report.to == 1U);
  BOOST_TEST(report.losses.empty());
  BOOST_TEST_REQUIRE(report.steps.size() == 1U);
  BOOST_TEST(report.steps[0].name == kStepName);

  CheckSound(store, 1);
  BOOST_TEST((Tables(store) == before));
  BOOST_TEST((StateOf(store.directory()).tables == digests));
  BOOST_TEST((IdentityOf(store.directory()).uuid == identity.uuid));
  BOOST_TEST(IdentityOf(store.directory()).last_migration == std::string("2 to 1: ") + kStepName);
  const RawModel after = ValuesIn(store.directory());
  for (const auto& [key, value] : after.at("")) BOOST_TEST(VersionOf(value) == 1U);
  // And up again.
  const Contents contents = ContentsOf(store.directory());
  store.Migrate(2);
  CheckSound(store, 2);
  BOOST_TEST((ContentsOf(store.directory()) == contents));
}

BOOST_FIXTURE_TEST_CASE(each_loss_is_a_line, NoStoreYet) {
  store.Open([](NodeStore& opened) {
    FillWithHandlers(opened);
    Must(opened.AddToLedger({.id = RefOf("by-hand"), .runtime_handler = "kata"}, "operator", "a"));
    Must(opened.Forget(
        {.kind = RevocationKind::kImage, .image_ref = "no digest", .runtime_handler = "gvisor"}));
  });
  MigrateOptions options = store.To(1);
  options.dry_run = true;
  const std::vector<std::string> expected = {
      "1 image of runtime handler gvisor: to be verified again",
      "2 images of runtime handler kata: to be verified again",
      "1 pull intent of runtime handler gvisor: kept for the default one",
      "2 pull intents of runtime handler kata: kept for the default one",
      "1 preloaded image of runtime handler kata: to be judged anew",
      "1 revocation of runtime handler gvisor: kept for the default one",
      "the manifest or guest platform of 1 image of the default handler: to be verified again",
      "the runtime handler gvisor in the registry",
      "the runtime handler kata in the registry"};
  const MigrationReport report = Must(MigrateStore(options));
  BOOST_TEST(report.losses == expected, boost::test_tools::per_element());
  BOOST_TEST(report.steps.size() == kNewestSchema - 1);
  BOOST_TEST(report.backup.empty());

  // The refusal names each of them.
  const auto refused = MigrateStore(store.To(1));
  BOOST_TEST_REQUIRE(!refused.has_value());
  for (const std::string& loss : expected) {
    BOOST_TEST(refused.error().message.find(loss) != std::string::npos);
  }
}

BOOST_FIXTURE_TEST_CASE(a_guest_platform_of_the_default_handler_is_a_loss, NoStoreYet) {
  store.Open([](NodeStore& opened) {
    std::vector<RuntimeHandler> handlers = SomeHandlers();
    handlers[0].guest_platform = Platform{"arm64", "linux"};
    Must(opened.ReplaceRuntimeHandlers({handlers[0]}));
    Pull(opened, "plain", "");
  });
  const Error refused =
      ExpectError(MigrateStore(store.To(1)), ErrorCode::kConflict, "guest platform");
  BOOST_TEST(refused.message.find("runc") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_dry_run_changes_nothing, OldestStore) {
  const auto dry_run = [&](std::uint32_t to) {
    MigrateOptions options = store.To(to);
    options.dry_run = true;
    const Tree before = store.Files();
    const MigrationReport report = Must(MigrateStore(options));
    BOOST_TEST((store.Files() == before));
    BOOST_TEST(report.to == to);
    BOOST_TEST_REQUIRE(report.steps.size() == 1U);
    BOOST_TEST(report.steps[0].name == kStepName);
    BOOST_TEST(report.backup.empty());
  };
  dry_run(2);
  store.Open(FillWithHandlers);
  store.Migrate(2, true);
  dry_run(1);
  // Nor does it correct a missing or wrong witness.
  std::filesystem::remove(store.witness());
  dry_run(1);
  WriteFile(store.witness(), "not a witness");
  dry_run(1);
}

// An observer goes on reading while the store goes down: that must open nothing.
BOOST_FIXTURE_TEST_CASE(an_observer_beside_a_way_down_fails_closed, NoStoreYet) {
  store.Open(FillWithHandlers);
  ChildProcess observer([&]() -> ChildProcess::Serve {
    std::shared_ptr<NodeStore> observed =
        Must(NodeStore::Observe({.directory = store.directory(), .clock = store.Options().clock}));
    return [observed](const std::string& line) -> std::string {
      const auto space = line.find(' ');
      const std::string name = line.substr(0, space);
      const Decision decision = DecisionOf(*observed, {.image = ImageOf(name),
                                                       .image_ref = RefOf(name),
                                                       .runtime_handler = line.substr(space + 1)});
      return decision.pull ? "pull" : "open";
    };
  });
  const auto all_closed = [&] {
    for (const char* name : {"plain", "both", "of-kata", "of-gvisor", "chosen", "in-flight"}) {
      for (const char* handler : {"", "kata", "gvisor"}) {
        BOOST_TEST_CONTEXT(name << " under '" << handler << "'") {
          BOOST_TEST(observer.Ask(std::string(name) + " " + handler) == "pull");
        }
      }
    }
  };
  all_closed();
  store.Migrate(1, true);
  all_closed();
  store.Migrate(2);
  all_closed();
}

// What carries versions carries further ones (tests/support/third_version.h).
BOOST_FIXTURE_TEST_CASE(both_ways_in_two_steps, ThirdVersion) {
  const VersionedStore store;
  store.Open(FillWithHandlers);
  BOOST_TEST(IdentityOf(store.directory()).schema_version == kThirdVersion);
  store.Migrate(1, true);
  const Contents oldest = ContentsOf(store.directory());
  const MigrationReport up = store.Migrate(kThirdVersion);
  BOOST_TEST_REQUIRE(up.steps.size() == 2U);
  BOOST_TEST(up.losses.empty());
  BOOST_TEST(up.steps[1].name == "notes");
  BOOST_TEST(up.steps[1].values_written == oldest.records.size());
  CheckSound(store, kThirdVersion);
  CheckWitnessFollows(store);
  for (const ImagePulledRecord& record : ContentsOf(store.directory()).records) {
    BOOST_TEST(record.closed_because == "a note of version 3");
  }
  const RawModel values = ValuesIn(store.directory());
  for (const auto& [key, value] : values.at("")) BOOST_TEST(VersionOf(value) == kThirdVersion);

  store.Open([](NodeStore& opened) { Must(opened.ReplaceRuntimeHandlers(SomeHandlers())); });
  const Tree before = store.Files();
  // The losses of later steps are told, too, before the first one runs.
  const Error refused = ExpectError(MigrateStore(store.To(1)), ErrorCode::kConflict, "gvisor");
  BOOST_TEST(refused.message.find("the notes of 5 records; ") != std::string::npos);
  BOOST_TEST((store.Files() == before));
  BOOST_TEST(store.Migrate(1, true).steps.size() == 2U);
  CheckSound(store, 1);
  BOOST_TEST((ContentsOf(store.directory()).records == oldest.records));
}

// One commit a step: a step that is stopped leaves the ones before it.
BOOST_FIXTURE_TEST_CASE(a_second_step_that_is_stopped, ThirdVersion) {
  const VersionedStore store(1);
  MigrateOptions options = store.To(kThirdVersion);
  options.progress = [](std::uint64_t, std::uint64_t) { return false; };
  const Error error = ExpectError(MigrateStore(options), ErrorCode::kInterrupted);
  BOOST_TEST(error.message.find("the store is still of version 2") != std::string::npos);
  CheckSound(store, 2);
  BOOST_TEST(store.Migrate(kThirdVersion).steps.size() == 1U);
  CheckSound(store, kThirdVersion);
}

BOOST_AUTO_TEST_SUITE_END()

// After a migration down, the older version's code must find the store sound. That code reads the
// header under both meta pages, and knows only its own version.
BOOST_AUTO_TEST_SUITE(older_readers)

namespace {

// The version in the envelope of the state record in the tree of one meta page.
int HeaderVersion(const std::filesystem::path& database, int meta) {
  const auto file = Must(internal::OpenFile(database, O_RDONLY));
  const auto value = Must(internal::FindInMain(file.get(), meta, internal::kStateKey.bytes));
  std::uint16_t version = 0;
  std::memcpy(&version, value.data() + 2, sizeof(version));
  return version;
}

void ExpectBothHeaders(const ScratchStore& store, int version) {
  for (const int meta : {0, 1}) {
    BOOST_TEST(HeaderVersion(store.directory() / "data.mdb", meta) == version);
  }
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(both_meta_pages_lead_to_a_header_of_the_version_that_was_gone_to,
                        ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  BOOST_TEST(Must(MigrateStore({.directory = store.directory(), .to = 1})).steps.size() ==
             kNewestSchema - 1);
  ExpectBothHeaders(store, 1);
  // If an earlier call was cut short, the same call repairs that.
  Must(MigrateStore({.directory = store.directory(), .to = 1}));
  ExpectBothHeaders(store, 1);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
