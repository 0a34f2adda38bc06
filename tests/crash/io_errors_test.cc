// Each call of opening on a file fails with EIO, once or from then on. Such an error says nothing
// about what is stored: the message names the call and the path, and nothing is set aside. The next
// opening ends like an undisturbed one, with the same trust and with everything that was
// acknowledged. WAYBILL_CALLS_ONE_IN=N: one in N of the calls, from a random one on.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "migrations/kubelet_files/kubelet_export.h"
#include "tests/crash/recorder.h"
#include "tests/crash/stage.h"
#include "tests/support/damage.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/forked_child.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "tests/support/versions.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(io_errors)

namespace {

namespace fs = std::filesystem;

// Injects an error as long as it exists.
class FailingCall {
 public:
  FailingCall(const fs::path& below, std::uint64_t call, bool lasting) {
    InjectFault({.kind = Fault::Kind::kFail,
                 .call = call,
                 .error_number = EIO,
                 .lasting = lasting,
                 .below = below.string()});
  }
  ~FailingCall() { StopFaults(); }
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
};

using Work = std::function<Result<void>(NodeStore&)>;

// kIo or kOutcomeUnknown. Names the path, and does not speak of a loss.
void CheckMessage(const Error& error, const fs::path& below) {
  const std::string text = error.ToString();
  BOOST_TEST_CONTEXT(text) {
    BOOST_TEST((error.code == ErrorCode::kIo || error.code == ErrorCode::kOutcomeUnknown));
    BOOST_TEST(text.find(below.string()) != std::string::npos);
    if (error.code == ErrorCode::kIo) {
      BOOST_TEST(text.find("Input/output error") != std::string::npos);
      BOOST_TEST(text.find("try again") != std::string::npos);
    }
    for (const char* word : {"gone", "lost", "damage", "fails its check", "does not verify"}) {
      BOOST_TEST(text.find(word) == std::string::npos);
    }
  }
}

// Fails call 1, 2, 3 … of `run` below `place`, alone or with all after it, until `run` makes no
// such call; `judge` follows each. The number of calls.
std::uint64_t AtEachCall(const fs::path& place, const std::function<void()>& prepare,
                         const std::function<std::optional<Error>()>& run,
                         const std::function<void(bool failed)>& judge) {
  const std::uint64_t one_in = NumberFromEnv("WAYBILL_CALLS_ONE_IN", 1);
  std::uint64_t calls = 0;
  for (const bool lasting : {false, true}) {
    for (std::uint64_t call = 1 + SeedOfThisRun() % one_in;; call += one_in, calls += one_in) {
      if (prepare) prepare();
      std::optional<Error> error;
      {
        const FailingCall failing(place, call, lasting);
        error = run();
        if (!FaultHappened()) break;
      }
      BOOST_TEST_CONTEXT((lasting ? "from call " : "call ") << call << " on, " << FaultedCall()) {
        if (error) CheckMessage(*error, place);
        judge(error.has_value());
      }
    }
  }
  BOOST_TEST_MESSAGE(calls << " calls failed");
  return calls;
}

// Fails each call of opening what is on the stage and of `work`. The number of calls.
std::uint64_t FailEachCall(const Stage& stage, const NodeStoreOptions& options,
                           const Work& work = nullptr) {
  stage.Keep();
  const std::string expected = OpenAndTell(options);
  std::string expected_after = expected;
  if (work) {
    stage.PutBack();
    expected_after = OpenAndTell(options, [&](NodeStore& store) { Must(work(store)); });
  }
  return AtEachCall(
      stage.now(), [&] { stage.PutBack(); },
      [&]() -> std::optional<Error> {
        auto store = NodeStore::Open(options);
        if (!store) return store.error();
        std::optional<Error> error;
        if (work) {
          if (auto r = work(**store); !r) error = r.error();
        }
        if (auto r = (*store)->Close(); !r && !error) error = r.error();
        return error;
      },
      [&](bool failed) {
        const std::string after = OpenAndTell(options);
        // What was not acknowledged may be there or not.
        if (!failed || after != expected) BOOST_TEST(after == expected_after);
      });
}

NodeStoreOptions WithWitness(NodeStoreOptions options, Witness witness) {
  options.witness = std::move(witness);
  return options;
}

Witness BesideRecords(const Stage& stage) {
  return Witness::At(stage.kubelet() / "image_manager" / "waybill");
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(at_first_creation, OnStage) {
  BOOST_TEST(FailEachCall(stage, stage.Options()) > 100U);
}

BOOST_FIXTURE_TEST_CASE(at_first_creation_beside_a_kubelet, OnStage) {
  fs::create_directories(stage.kubelet() / "pods");
  BOOST_TEST(FailEachCall(stage, WithWitness(stage.Options(), BesideRecords(stage))) > 100U);
}

BOOST_FIXTURE_TEST_CASE(at_an_ordinary_opening_and_where_the_witness_is_remembered_or_moved,
                        OnStage) {
  for (const Witness& witness : {Witness::At(stage.now() / "witness"), Witness::Remembered(),
                                 Witness::At(stage.now() / "another")}) {
    fs::remove_all(stage.now());
    fs::create_directory(stage.now());
    Fill(stage.Options(), 20, 3);
    BOOST_TEST(FailEachCall(stage, WithWitness(stage.Options(), witness)) > 100U);
  }
}

BOOST_FIXTURE_TEST_CASE(after_a_crash, OnStage) {
  Fill(stage.Options(), 20, 3);
  {
    // As a killed owner leaves it: its lock file says that it was open.
    auto store = Must(NodeStore::Open(stage.Options()));
    fs::copy(stage.store(), stage.now() / "killed", fs::copy_options::recursive);
    Must(store->Close());
  }
  fs::remove_all(stage.store());
  fs::rename(stage.now() / "killed", stage.store());
  fs::create_directory(stage.store() / "new.tmp");
  WriteFile(stage.store() / "new.tmp" / "data.mdb", "half a database");
  NodeStoreOptions options = stage.Options();
  options.images_on_node = {{Ref(20), {Image(20)}, {}}};
  BOOST_TEST(FailEachCall(stage, options) > 100U);
}

BOOST_FIXTURE_TEST_CASE(while_a_kubelet_directory_is_imported, OnStage) {
  WriteKubeletFiles(stage.kubelet(), 6, 2, 1);
  BOOST_TEST(FailEachCall(stage, stage.Options()) > 200U);
}

// A look that fails must not make a file look as if it were written since.
BOOST_FIXTURE_TEST_CASE(while_a_kubelet_directory_is_imported_again, OnStage) {
  WriteKubeletFiles(stage.kubelet(), 6, 2, 1);
  const NodeStoreOptions options = WithWitness(stage.Options(), BesideRecords(stage));
  static_cast<void>(OpenAndTell(options));
  BOOST_TEST(FailEachCall(stage, options) > 200U);
}

// Only what can be named is closed; each opening ends the same.
BOOST_FIXTURE_TEST_CASE(what_cannot_be_read_is_skipped_where_that_is_said, OnStage) {
  WriteKubeletFiles(stage.kubelet(), 6, 2, 1);
  const fs::path bad = stage.kubelet() / RecordFile("pulled", Ref(3));
  const fs::path pod = stage.kubelet() / "pods" / "pod-1" / "userns";
  for (int i = 0; i < 3; ++i) {
    NodeStoreOptions options = WithWitness(stage.Options(), BesideRecords(stage));
    for (const fs::path& path : {bad, pod}) {
      const FailingCall failing(path, 1, true);
      const Error refused = ExpectError(NodeStore::Open(options), ErrorCode::kIo, path.string());
      BOOST_TEST((refused.hint_code == Hint::kSkipUnreadable));
    }
    options.skip_unreadable = true;
    const FailingCall failing(bad, 1, true);
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(!Must(store->GetTrust()).distrustful);
    BOOST_TEST(Must(store->ListRecords()).size() == 5U);
    const auto closed = Must(store->ListQuarantine());
    BOOST_TEST(std::count_if(closed.begin(), closed.end(), [](const QuarantinedFile& entry) {
                 return entry.sha256 == Sha256Hex(Ref(3));
               }) == 1);
    BOOST_TEST(Must(store->ListUserNamespaces()).size() == 2U);
    Must(store->Close());
  }
  // A file that was imported before is known: if it can't be read, that is not a gap.
  const fs::path known = stage.kubelet() / RecordFile("pulled", Ref(4));
  NodeStoreOptions options = WithWitness(stage.Options(), BesideRecords(stage));
  options.skip_unreadable = true;
  const FailingCall failing(known, 1, true);
  auto store = Must(NodeStore::Open(options));
  BOOST_TEST(!Must(store->GetTrust()).distrustful);
  BOOST_TEST(!store->recovery_report().after_gap);
}

// Unless the caller says so, a bad sector is not damage: the store stays as it is.
BOOST_FIXTURE_TEST_CASE(a_bad_sector_is_damage_where_that_is_said, OnStage) {
  Fill(stage.Options(), 20, 3);
  const fs::path database = stage.database();
  const std::string before = ReadFile(database);
  std::vector<off_t> bad;
  for (const std::size_t at : PlacesOf(before, Ref(7))) bad.push_back(static_cast<off_t>(at));
  BOOST_TEST_REQUIRE(!bad.empty());
  struct stat st {};
  BOOST_TEST_REQUIRE(stat(database.c_str(), &st) == 0);
  NodeStoreOptions options = stage.Options();
  for (int i = 0; i < 2; ++i) {
    SpoilSectors(st.st_ino, bad);
    const auto refused = NodeStore::Open(options);
    SpoilSectors(0, {});
    BOOST_TEST_REQUIRE(!refused.has_value());
    CheckMessage(refused.error(), database);
    BOOST_TEST((refused.error().hint_code == Hint::kSkipUnreadable));
    BOOST_TEST(!fs::exists(stage.store() / "quarantine"));
    BOOST_TEST((ReadFile(database) == before));
  }
  options.skip_unreadable = true;
  SpoilSectors(st.st_ino, bad);
  {
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(store->recovery_report().set_aside);
    BOOST_TEST(Must(store->GetTrust()).distrustful);
    // The page may have held other tables' values as well: those are lost, too.
    BOOST_TEST(Must(store->ListIntents()).size() <= 4U);
    BOOST_TEST(Must(store->ListRecords()).size() < 21U);
  }
  SpoilSectors(0, {});
}

BOOST_AUTO_TEST_CASE(while_an_older_store_is_migrated) {
  for (const std::uint32_t version : {1U, 2U}) {
    const Stage stage;
    PlaceGolden(stage.store(), version);
    BOOST_TEST(FailEachCall(stage, WithWitness(stage.Options(), Witness::None())) > 100U);
  }
}

// The damage is real: any attempt carries over what can be proven.
BOOST_FIXTURE_TEST_CASE(while_a_damaged_store_is_rebuilt, OnStage) {
  Fill(stage.Options(), 20, 3);
  DamageRecord(stage.database(), Ref(7));
  BOOST_TEST(FailEachCall(stage, stage.Options()) > 200U);
  auto store = Must(NodeStore::Open(stage.Options()));
  BOOST_TEST(Must(store->GetTrust()).distrustful);
  BOOST_TEST(Must(store->ListRecords()).size() == 20U);
}

// Among the calls is the write of the meta page: LMDB leaves the roots of a commit that fails
// there.
BOOST_FIXTURE_TEST_CASE(while_a_pull_is_recorded, OnStage) {
  Fill(stage.Options(), 20, 3);
  const Work work = [](NodeStore& store) -> Result<void> {
    const auto begun = store.RecordPullIntent({.image = "registry.example/new:v1"});
    if (!begun) return begun.error();
    return {};
  };
  BOOST_TEST(FailEachCall(stage, stage.Options(), work) > 100U);
}

BOOST_FIXTURE_TEST_CASE(while_a_list_is_judged_and_an_operator_speaks, OnStage) {
  Fill(stage.Options(), 20, 3);
  const Work judge = [](NodeStore& store) -> Result<void> {
    auto token = store.BeginList();
    if (!token) return token.error();
    ImageList list{.token = *token, .complete = true};
    for (std::size_t i = 0; i < 22; ++i)
      list.images.push_back({.id = Ref(i), .repo_tags = {Image(i)}});
    list.images.push_back({.id = "another", .repo_tags = {"registry.example/another:v1"}});
    const auto observed = store.ObserveImages(list);
    if (!observed) return observed.error();
    return {};
  };
  BOOST_TEST(FailEachCall(stage, stage.Options(), judge) > 100U);
  const Work speak = [](NodeStore& store) -> Result<void> {
    return store.AddToLedger({.id = "by-hand"}, "operator", "a test");
  };
  BOOST_TEST(FailEachCall(stage, stage.Options(), speak) > 100U);
}

BOOST_AUTO_TEST_CASE(while_a_store_is_observed) {
  for (const bool has_owner : {false, true}) {
    const Stage stage;
    Fill(stage.Options(), 20, 3);
    Shared<std::atomic<bool>> is_open;
    std::optional<Child> owner;
    if (has_owner) {
      owner.emplace([&] {
        auto store = Must(NodeStore::Open(stage.Options()));
        is_open->store(true);
        while (true) pause();
        return 0;
      });
      while (!is_open->load()) std::this_thread::yield();
    }
    const auto observe = [&] { return NodeStore::Observe({.directory = stage.store()}); };
    AtEachCall(
        stage.now(), nullptr,
        [&]() -> std::optional<Error> {
          if (auto store = observe(); !store) return store.error();
          return std::nullopt;
        },
        [&](bool) {
          auto store = Must(observe());
          BOOST_TEST(!Must(store->GetTrust()).distrustful);
          BOOST_TEST(Must(store->ListRecords()).size() == 21U);
          BOOST_TEST(Must(store->ListLedger()).size() == 1U);
          BOOST_TEST(Must(store->ListOpenPulls()).size() == 4U);
        });
  }
}

// A lookup that fails is neither yes nor no: the search for a free name must end.
BOOST_FIXTURE_TEST_CASE(an_export_ends_where_every_look_fails, OnStage) {
  WriteKubeletFiles(stage.kubelet(), 6, 2, 1);
  stage.Keep();
  const Tree before = TreeOf(stage.kubelet());
  internal::ExportContent content;
  content.now = Timestamp{kFakeEpoch, 0};
  content.store.images.push_back(
      {{.subject = Ref(1),
        .pulled = internal::PulledPart{.last_updated = Timestamp{kFakeEpoch, 0}}}});
  content.allocations.push_back({"pod-1", 7U << 20U, 65536, {}, PoolRelation::kInPool});
  const auto run = [&] {
    return internal::ExportKubeletDirectory(content, {.kubelet_directory = stage.kubelet()});
  };
  AtEachCall(
      stage.now(), [&] { stage.PutBack(); },
      [&]() -> std::optional<Error> {
        if (auto done = run(); !done) return done.error();
        return std::nullopt;
      },
      [&](bool) {
        BOOST_TEST(FirstLost(before, TreeOf(stage.kubelet())) == "");
        Must(run());
      });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
