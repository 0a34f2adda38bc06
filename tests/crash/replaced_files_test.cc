// Locks and data are removed or replaced under an owner that writes, while a second one wants to
// start. What the first acknowledged is the judge: none of it is lost unless the first has failed,
// nothing that began after the disturbance is acknowledged, and no credential that was rotated away
// opens again.

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "store/base/files.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(replaced_files)

namespace {

namespace fs = std::filesystem;

constexpr Timestamp kNow{kFakeEpoch, 0};
const std::string kImage = "registry.example/team/app:v1";
const std::string kRef = "sha256:" + std::string(64, 'a');
const std::string kUnknownRef = "sha256:" + std::string(64, 'b');

std::string HashOf(std::uint64_t step) {
  const std::string digits = std::to_string(step);
  return std::string(64 - digits.size(), '0') + digits;
}

ImagePullSecret SecretOf(std::uint64_t step, const std::string& namespace_name) {
  return MakeSecret(namespace_name, "pull", "uid-" + namespace_name, HashOf(step));
}

std::string IntentOf(std::uint64_t step) { return "registry.example/pull/" + std::to_string(step); }

struct Told {
  std::atomic<std::uint64_t> begun{0};
  std::atomic<std::uint64_t> acknowledged{0};
  std::atomic<int> code{0};
  std::atomic<bool> opens{false};  // after it failed
  std::atomic<bool> disturbed{false};
};

// Rotates the secret of the only record, and stores an intent, at each step.
Result<void> Step(NodeStore& store, std::uint64_t step) {
  ImagePulledRecord record;
  record.image_ref = kRef;
  record.last_updated = kNow;
  record.credential_mapping["registry.example/team/app"] = WithSecret(SecretOf(step, "mine"));
  if (auto r = store.PutRecord(record); !r) return r;
  return store.PutIntent({.image = IntentOf(step)});
}

bool Opens(NodeStore& store, std::uint64_t step, const std::string& namespace_name) {
  return !DecisionOf(store, {.image = kImage, .image_ref = kRef},
                     Pod(SecretOf(step, namespace_name)))
              .pull;
}

// Writes until it fails, then closes.
int WriteOn(const NodeStoreOptions& options, Told& told) {
  auto store = NodeStore::Open(options);
  if (!store) return 2;
  for (std::uint64_t step = 1;; ++step) {
    told.begun = step;
    if (auto r = Step(**store, step); !r) {
      told.opens = Opens(**store, step - 1, "mine") || Opens(**store, step, "mine");
      told.code = static_cast<int>(r.error().code);
      if (auto after = (*store)->PutIntent({.image = "registry.example/after"}); after) return 3;
      static_cast<void>((*store)->Close());
      return 0;
    }
    told.acknowledged = step;
  }
}

struct Disturbance {
  const char* name;
  bool data_is_lost;
  std::function<void(const fs::path& store)> run;
};

void ReplaceByCopy(const fs::path& path) {
  const fs::path copy = path.string() + ".copy";
  fs::copy_file(path, copy);
  fs::rename(copy, path);
}

const Disturbance kDisturbances[] = {
    {"owner.lock removed", false, [](const fs::path& store) { fs::remove(store / "owner.lock"); }},
    {"owner.lock replaced", false,
     [](const fs::path& store) { ReplaceByCopy(store / "owner.lock"); }},
    {"lock.mdb removed", false, [](const fs::path& store) { fs::remove(store / "lock.mdb"); }},
    {"both locks removed", false,
     [](const fs::path& store) {
       fs::remove(store / "owner.lock");
       fs::remove(store / "lock.mdb");
     }},
    {"data.mdb removed", true, [](const fs::path& store) { fs::remove(store / "data.mdb"); }},
    {"data.mdb replaced", true, [](const fs::path& store) { ReplaceByCopy(store / "data.mdb"); }},
    {"owner.lock and data.mdb removed", true,
     [](const fs::path& store) {
       fs::remove(store / "owner.lock");
       fs::remove(store / "data.mdb");
     }},
    {"owner.lock removed, data.mdb replaced", true,
     [](const fs::path& store) {
       fs::remove(store / "owner.lock");
       ReplaceByCopy(store / "data.mdb");
     }},
    {"all removed", true,
     [](const fs::path& store) {
       for (const char* name : {"owner.lock", "lock.mdb", "data.mdb"}) fs::remove(store / name);
     }},
    {"the directory moved away", true,
     [](const fs::path& store) { fs::rename(store, store.string() + ".old"); }},
};

// What the second owner finds where the first one's file is still the store's.
void JudgeKept(NodeStore& store, std::uint64_t acknowledged) {
  BOOST_TEST(!store.recovery_report().set_aside);
  BOOST_TEST(!store.recovery_report().created);
  BOOST_TEST(!store.recovery_report().distrustful, store.recovery_report().distrust_reason);
  for (std::uint64_t step = 1; step <= acknowledged; ++step) {
    if (!Must(store.HasIntent({.image = IntentOf(step)}))) {
      BOOST_ERROR("of " << acknowledged << " acknowledged steps, " << step << " is lost");
      return;
    }
  }
}

void JudgeClosed(NodeStore& store, std::uint64_t acknowledged) {
  for (std::uint64_t step = 1; step < acknowledged; ++step) {
    if (Opens(store, step, "thief")) {
      BOOST_ERROR("a secret opens that was rotated away at step " << step + 1);
      return;
    }
  }
}

void Disturb(const Disturbance& disturbance, std::uint64_t steps) {
  const MemoryDir scratch;
  const NodeStoreOptions options = OptionsIn(scratch.path());
  Shared<Told> told;
  Child writer([&] { return WriteOn(options, *told); });
  while (told->acknowledged < steps) sched_yield();
  disturbance.run(options.directory);
  const std::uint64_t begun = told->begun;
  // The second owner may come in while the first is at work, but then the first must have noticed.
  auto second = NodeStore::Open(options);
  while (!second && second.error().code == ErrorCode::kOwned && told->code == 0) {
    sched_yield();
    second = NodeStore::Open(options);
  }
  BOOST_TEST(writer.Wait() == 0);
  if (!second) second = NodeStore::Open(options);
  BOOST_REQUIRE_MESSAGE(second.has_value(), (second ? "" : second.error().ToString()));
  const std::uint64_t acknowledged = told->acknowledged;
  const bool said = told->code == static_cast<int>(ErrorCode::kOwned) ||
                    told->code == static_cast<int>(ErrorCode::kOutcomeUnknown);
  BOOST_TEST(said, "the first failed with code " << told->code);
  BOOST_TEST(!told->opens);
  BOOST_TEST(acknowledged <= begun);
  if (!disturbance.data_is_lost) JudgeKept(**second, acknowledged);
  JudgeClosed(**second, acknowledged);
  // What a lost record or open pull closed does not pass for preloaded.
  ImageList list{.images = {{.id = kRef, .repo_tags = {kImage}},
                            {.id = kUnknownRef, .repo_tags = {IntentOf(acknowledged)}}}};
  list.token = Must((*second)->BeginList());
  BOOST_TEST(Must((*second)->ObserveImages(list)).preloaded == 0U);
  for (const std::string& ref : {kRef, kUnknownRef}) {
    BOOST_TEST(DecisionOf(**second, {.image = kImage, .image_ref = ref}).pull);
  }
  Must((*second)->Close());
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_writing_owner_loses_nothing_that_it_acknowledged) {
  Draw draw(SeedOfThisRun());
  for (const Disturbance& disturbance : kDisturbances) {
    for (int run = 0; run < 6; ++run) {
      const std::uint64_t steps = 1 + draw.Below(400);
      BOOST_TEST_CONTEXT(disturbance.name << " after " << steps << " steps") {
        Disturb(disturbance, steps);
      }
    }
  }
}

// Between the look before a commit and the one after it, in a directory that has not changed for
// long: then the latter looks at the directory alone.
BOOST_AUTO_TEST_CASE(what_happens_during_a_commit_is_noticed_after_it) {
  for (const Disturbance& disturbance : kDisturbances) {
    BOOST_TEST_CONTEXT(disturbance.name) {
      const MemoryDir scratch;
      NodeStoreOptions options = OptionsIn(scratch.path());
      bool disturbs = false;
      options.clock = [&, clock = options.clock] {
        if (std::exchange(disturbs, false)) disturbance.run(options.directory);
        return clock();
      };
      auto store = Must(NodeStore::Open(options));
      Must(Step(*store, 1));
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
      Must(Step(*store, 2));
      disturbs = true;
      ExpectError(store->PutIntent({.image = "registry.example/late"}), ErrorCode::kOutcomeUnknown);
      BOOST_TEST(!disturbs);
      BOOST_TEST(!Opens(*store, 2, "mine"));
      static_cast<void>(store->Close());
    }
  }
}

// It would see nothing at a commit, since it makes none.
BOOST_AUTO_TEST_CASE(an_owner_that_only_decides_opens_nothing_any_more) {
  for (const Disturbance& disturbance : kDisturbances) {
    BOOST_TEST_CONTEXT(disturbance.name) {
      const MemoryDir scratch;
      auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
      Must(Step(*store, 1));
      BOOST_TEST(Opens(*store, 1, "mine"));
      disturbance.run(scratch / "store");
      while (Opens(*store, 1, "mine")) sched_yield();
      // For good, whatever is put under the names now.
      const Error failed =
          ExpectError(store->PutIntent({.image = "registry.example/after"}), ErrorCode::kOwned);
      BOOST_TEST_MESSAGE(failed.ToString());
      BOOST_TEST(!Opens(*store, 1, "mine"));
    }
  }
}

// The same file, and not shorter for a moment: only what is in it says so. LMDB would end the
// process, since what it remembers contradicts the older tree.
// A limit: "Who writes into the open `data.mdb`"
BOOST_AUTO_TEST_CASE(an_older_data_mdb_that_is_written_in_place_is_noticed) {
  for (const std::uint64_t later : {1, 2, 3, 4, 5, 40}) {
    BOOST_TEST_CONTEXT(later << " commits later") {
      const MemoryDir scratch;
      const fs::path data = scratch / "store" / "data.mdb";
      auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
      std::uint64_t step = 0;
      while (step < 20) Must(Step(*store, ++step));
      const std::string older = ReadFile(data);
      for (std::uint64_t i = 0; i < later; ++i) Must(Step(*store, ++step));
      const internal::Fd file = Must(internal::OpenFile(data, O_RDWR));
      Must(internal::PWriteAll(file, older, 0, data));
      ExpectError(store->PutIntent({.image = "registry.example/after"}), ErrorCode::kOwned);
      for (std::uint64_t i = 1; i <= step; ++i) BOOST_TEST(!Opens(*store, i, "mine"));
      const auto again = store->PutIntent({.image = "registry.example/after"});
      BOOST_TEST(!again);
      static_cast<void>(store->Close());
    }
  }
}

// Readers meet it before any commit does.
BOOST_AUTO_TEST_CASE(meta_pages_that_are_written_over_end_no_process) {
  const MemoryDir scratch;
  const fs::path data = scratch / "store" / "data.mdb";
  auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
  std::uint64_t step = 0;
  while (step < 20) Must(Step(*store, ++step));
  const std::string before = ReadFile(data);
  const internal::Fd file = Must(internal::OpenFile(data, O_RDWR));
  const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::string metas = before.substr(0, 2 * page);
  while (step < 23) Must(Step(*store, ++step));
  for (const std::string& content : {std::string(2 * page, '\0'), metas}) {
    Must(internal::PWriteAll(file, content, 0, data));
    for (std::uint64_t i = 1; i <= step; ++i) BOOST_TEST(!Opens(*store, i, "mine"));
    BOOST_TEST(!store->ListRecords());
    BOOST_TEST(!store->ListLedger());
    BOOST_TEST(!store->GetTrust());
  }
  ExpectError(store->PutIntent({.image = "registry.example/after"}), ErrorCode::kOwned);
  static_cast<void>(store->Close());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
