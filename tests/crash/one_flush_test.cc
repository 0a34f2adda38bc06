// One flush a commit, case by case: how often a commit flushes, what each state of commit.mark says
// about a torn newest tree, what a failed flush and a taken-back commit leave to those who have the
// store open, and what the store's other features make of all that. power_cut_commits_test.cc draws
// histories at random, and breaks the protocol at each of its points.

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "store/disk/commit_mark.h"
#include "store/maintenance.h"
#include "tests/crash/recorder.h"
#include "tests/support/damage.h"
#include "tests/support/draw.h"
#include "tests/support/drawn_random.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/forked_child.h"
#include "tests/support/in_threads.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "tests/support/userns_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(one_flush)

namespace {

namespace fs = std::filesystem;
using internal::MarkLine;
using Kind = DiskEvent::Kind;
using Images = std::set<std::string>;

const std::string kRef = "sha256:" + std::string(64, 'a');
const std::string kUnknown = "sha256:" + std::string(64, 'b');

// A store whose opening changes nothing, with a witness beside it, on a file system on which a
// commit flushes once.
class Bench {
 public:
  NodeStoreOptions Options() const {
    NodeStoreOptions options = OptionsIn(root_.path());
    options.continues_pulls = true;
    options.boot_clock = clock_.AsBootClock();
    options.clock = clock_.AsClock();
    return options;
  }
  std::unique_ptr<NodeStore> Open() const { return Must(NodeStore::Open(Options())); }

  fs::path root() const { return root_.path(); }
  fs::path store() const { return root_ / "store"; }
  fs::path data() const { return root_ / "store/data.mdb"; }
  fs::path mark() const { return root_ / "store/commit.mark"; }
  fs::path witness() const { return root_ / "witness"; }
  FakeClock& clock() { return clock_; }

  // What is on the disk, in the place of what is there.
  void Put(const Tree& tree) const {
    for (const auto& entry : fs::directory_iterator(root())) fs::remove_all(entry.path());
    for (const auto& [path, content] : tree) {
      fs::create_directories((root() / path).parent_path());
      fs::permissions((root() / path).parent_path(), fs::perms::owner_all);
      if (content == "directory") {
        fs::create_directories(root() / path);
        fs::permissions(root() / path, fs::perms::owner_all);
      } else {
        WriteFile(root() / path, content);
        fs::permissions(root() / path, fs::perms::owner_read | fs::perms::owner_write);
      }
    }
  }

 private:
  const MemoryDir root_;
  FakeClock clock_;
};

std::string Named(const std::string& name) { return "registry.example/" + name; }

Images IntentsOf(const NodeStore& store) {
  Images images;
  for (const ImagePullIntent& intent : Must(store.ListIntents())) images.insert(intent.image);
  return images;
}

std::optional<MarkLine> MarkIn(const fs::path& store) {
  return Must(internal::ReadCommitMark(store)).line;
}

// A store with an open mark: the content of `mark` is what the disk has of it.
void WriteMark(const fs::path& store, const MarkLine& mark) {
  fs::remove(store / "commit.mark");
  if (!mark.open) {
    Must(internal::WriteCommitMark(store, mark));
    return;
  }
  const BootClock clock = [&mark] { return BootTime{mark.boot_id, mark.written}; };
  internal::CommitMark file(store, mark, true, clock);
  Must(file.Begin(mark.begun, mark.acknowledged));
}

// A crash while commit `sequence` + 1 was flushed: its meta page is on the disk, its pages are not.
struct Crash {
  Tree disk;          // before the commit, with the owner's files as they were
  std::string torn;   // data.mdb
  std::string whole;  // as if all had reached the disk
  MarkLine mark;      // as the disk had it before: begun and acknowledged are `sequence`
  std::uint64_t sequence = 0;
  std::size_t meta = 0;       // the page that was written
  std::string witness_after;  // as if the commit had been acknowledged

  // As the kernel shows it to the next process of the same boot.
  MarkLine Begun() const {
    MarkLine begun = mark;
    begun.begun = sequence + 1;
    return begun;
  }
};

const Images kAcknowledged = {Named("a"), Named("b"), Named("c")};
const Images kWithLast = {Named("a"), Named("b"), Named("c"), Named("last")};

// The store works until the crash. `restart`: its next commit is the owner's second.
Crash MakeCrash(const Bench& bench) {
  Crash crash;
  auto store = bench.Open();
  for (const char* name : {"a", "b", "c"}) Must(store->PutIntent({.image = Named(name)}));
  crash.disk = TreeOf(bench.root());
  const std::string before = crash.disk.at("store/data.mdb");
  Must(store->PutIntent({.image = Named("last")}));
  crash.whole = ReadFile(bench.data());
  crash.witness_after = ReadFile(bench.witness());
  const auto after = MarkIn(bench.store());
  BOOST_REQUIRE(after.has_value());
  crash.mark = *after;
  crash.sequence = after->acknowledged - 1;
  crash.mark.begun = crash.mark.acknowledged = crash.sequence;
  crash.meta = before.compare(0, kPage, crash.whole, 0, kPage) == 0 ? 1 : 0;
  crash.torn = before;
  crash.torn.resize(crash.whole.size(), '\0');
  PutPageBack(crash.torn, crash.whole, crash.meta);
  store.reset();
  return crash;
}

void Put(const Bench& bench, const Crash& crash, const MarkLine& mark) {
  bench.Put(crash.disk);
  WriteFile(bench.data(), crash.torn);
  WriteMark(bench.store(), mark);
}

enum class Found : std::uint8_t { kTakenBack, kWhole, kDamage };

std::ostream& operator<<(std::ostream& out, Found found) {
  constexpr const char* kNames[] = {"taken back", "whole", "damage"};
  return out << kNames[static_cast<std::size_t>(found)];
}

Found FoundBy(const OpeningReport& report) {
  const bool damage = report.set_aside;
  BOOST_TEST(damage == report.distrustful);
  BOOST_TEST(damage == !report.findings.empty());
  BOOST_TEST(!(damage && report.commit_undone));
  return damage ? Found::kDamage : report.commit_undone ? Found::kTakenBack : Found::kWhole;
}

// Opens, and judges what is there; then writes, closes and opens once more.
Found OpenAfter(const Bench& bench, const NodeStoreOptions& options, bool may_be_gone = false) {
  auto store = Must(NodeStore::Open(options));
  const Found found = FoundBy(store->recovery_report());
  Images expected = found == Found::kWhole ? kWithLast : kAcknowledged;
  if (found != Found::kDamage) {
    // A commit of which no meta page was left is not there, and is not taken back either.
    if (may_be_gone && IntentsOf(*store) == kAcknowledged) expected = kAcknowledged;
    BOOST_TEST((IntentsOf(*store) == expected));
    const auto mark = MarkIn(bench.store());
    BOOST_REQUIRE(mark.has_value());
    BOOST_TEST(!mark->open);
  }
  for (const char* name : {"later", "latest"}) Must(store->PutIntent({.image = Named(name)}));
  expected.insert({Named("later"), Named("latest")});
  BOOST_TEST(Must(store->Verify()).sound);
  Must(store->Close());
  store = Must(NodeStore::Open(options));
  if (found != Found::kDamage) {
    BOOST_TEST((FoundBy(store->recovery_report()) == Found::kWhole));
    BOOST_TEST((IntentsOf(*store) == expected));
  }
  BOOST_TEST(!store->recovery_report().commit_undone);
  Must(store->Close());
  return found;
}
Found OpenAfter(const Bench& bench) { return OpenAfter(bench, bench.Options()); }

// How often data.mdb was flushed, and how many of its pages were written, after each mark.
struct Cost {
  std::size_t flushes = 0;
  std::size_t pages = 0;
};
std::vector<Cost> CostsOf(const std::vector<DiskEvent>& log, std::size_t data) {
  std::vector<Cost> costs;
  for (const DiskEvent& event : log) {
    if (event.kind == Kind::kMark) costs.emplace_back();
    if (costs.empty()) continue;
    Cost& cost = costs.back();
    if (event.kind == Kind::kSynced && event.file == data) ++cost.flushes;
    if (event.kind == Kind::kWritten && log[event.index].file == data) ++cost.flushes;
    if (event.kind == Kind::kWrite && event.file == data) {
      cost.pages += (event.bytes.size() + kPage - 1) / kPage;
    }
  }
  return costs;
}

class Costs {
 public:
  // Of a store that is not there yet.
  explicit Costs(const fs::path& root) : recorder_(root) {}
  Costs(const fs::path& root, const KnownFiles& known)
      : recorder_(root, known), data_(known.files.at("/store/data.mdb")) {}
  void Do(const std::function<void()>& step) {
    Recorder::Mark(0);
    step();
  }
  std::vector<Cost> Take() {
    Recorder::Mark(1);
    const std::vector<DiskEvent> log = recorder_.Take();
    if (data_ == 0) data_ = FilesAfter(log).files.at("/store/data.mdb");
    std::vector<Cost> costs = CostsOf(log, data_);
    costs.pop_back();
    return costs;
  }
  std::vector<std::size_t> Flushes() {
    std::vector<std::size_t> flushes;
    for (const Cost& cost : Take()) flushes.push_back(cost.flushes);
    return flushes;
  }

 private:
  Recorder recorder_;
  std::size_t data_ = 0;
};

// Of three commits, which no earlier call made.
std::vector<std::size_t> FlushesOfThree(const Bench& bench, const NodeStoreOptions& options,
                                        const std::string& prefix = "") {
  std::optional<Costs> costs;
  if (fs::exists(bench.data())) {
    costs.emplace(bench.root(), FilesAfter(LogOf(bench.root())));
  } else {
    costs.emplace(bench.root());
  }
  auto store = Must(NodeStore::Open(options));
  for (const char* name : {"a", "b", "c"}) {
    costs->Do([&] { Must(store->PutIntent({.image = Named(prefix + name)})); });
  }
  auto flushes = costs->Flushes();
  Must(store->Close());
  return flushes;
}

const std::vector<std::size_t> kOnceAfterTheFirst = {2, 1, 1};
const std::vector<std::size_t> kAlwaysTwice = {2, 2, 2};

// Syncs of data.mdb fail while this lives.
class FailingFlush {
 public:
  explicit FailingFlush(const fs::path& data, int error_number = EIO) {
    SetBeforeSync([path = data.string(), error_number](const std::string& synced) {
      return synced == path ? error_number : 0;
    });
  }
  ~FailingFlush() { SetBeforeSync(nullptr); }
  FailingFlush(const FailingFlush&) = delete;
  FailingFlush& operator=(const FailingFlush&) = delete;
};

struct WithBench {
  Bench bench;
};

}  // namespace

// ---- How often a commit flushes

BOOST_FIXTURE_TEST_CASE(is_enough_after_the_first_commit_of_an_opening, WithBench) {
  for (int opening = 0; opening < 2; ++opening) {
    BOOST_TEST(
        FlushesOfThree(bench, bench.Options(), std::to_string(opening)) == kOnceAfterTheFirst,
        boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_CASE(is_not_used_if_the_caller_says_so_or_the_boot_is_unknown) {
  for (const bool by_caller : {true, false}) {
    Bench bench;
    NodeStoreOptions options = bench.Options();
    options.flushes_twice = by_caller;
    if (!by_caller) bench.clock().ForgetBootId();
    BOOST_TEST(FlushesOfThree(bench, options) == kAlwaysTwice, boost::test_tools::per_element());
    BOOST_TEST(!MarkIn(bench.store()).value().open);
  }
}

BOOST_FIXTURE_TEST_CASE(is_not_enough_after_a_transaction_that_was_given_up, WithBench) {
  Costs costs(bench.root());
  auto store = bench.Open();
  const auto put = [&](const char* name) {
    costs.Do([&] { Must(store->PutIntent({.image = Named(name)})); });
  };
  Must(store->AddToLedger({.id = kRef}, "test", "preloaded"));
  put("a");
  // It writes, and takes back.
  costs.Do([&] {
    BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kRef}, "test", {.dry_run = true})));
  });
  put("b");
  put("c");
  // One that writes nothing gives nothing up.
  costs.Do([&] { BOOST_TEST(!Must(store->RemoveFromLedger({.image_ref = kUnknown}, "test"))); });
  put("d");
  const std::vector<std::size_t> expected = {1, 0, 2, 1, 0, 1};
  BOOST_TEST(costs.Flushes() == expected, boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(is_not_used_if_the_mark_cannot_be_written, WithBench) {
  Costs costs(bench.root());
  auto store = bench.Open();
  const auto put = [&](const char* name) {
    costs.Do([&] { Must(store->PutIntent({.image = Named(name)})); });
  };
  put("a");
  put("b");
  InjectFault({.kind = Fault::Kind::kFail,
               .call = 1,
               .error_number = EIO,
               .lasting = true,
               .below = bench.mark().string()});
  put("c");
  put("d");
  StopFaults();
  // That of c was on the disk when the mark said so.
  const std::vector<std::size_t> expected = {2, 1, 1, 2};
  BOOST_TEST(costs.Flushes() == expected, boost::test_tools::per_element());
  Must(store->Close());
  store = bench.Open();
  BOOST_TEST(IntentsOf(*store).size() == 4U);
  BOOST_TEST((FoundBy(store->recovery_report()) == Found::kWhole));
}

// Of a new image at 2,000 records, alone and beside 20 pulls that run; half of the pulls write no
// more. Its system calls are counted by bench/instructions/count.
BOOST_FIXTURE_TEST_CASE(writes_few_pages_for_a_pull, WithBench) {
  const DrawnRandom random(1);  // which keys lie side by side
  const auto image = [](int number) {
    char name[64];
    std::snprintf(name, sizeof(name), "registry.example.com/team-%03d/service-%06d", number % 500,
                  number);
    return std::string(name);
  };
  const auto ref = [](int number) { return "sha256:" + Sha256Hex(std::to_string(number)); };
  const ImagePullCredentials credentials =
      WithSecret(MakeSecret("team-001", "registry-pull-secret",
                            "5d3d9a5e-0000-4000-8000-000000000001", Sha256Hex("secret")));
  auto store = bench.Open();
  for (int i = 0; i < 2000; ++i) {
    ImagePulledRecord record{.image_ref = ref(i)};
    record.credential_mapping[image(i)] = credentials;
    Must(store->PutRecord(record));
  }
  Must(store->Close());
  Costs costs(bench.root(), FilesAfter(LogOf(bench.root())));
  store = bench.Open();
  int number = 10'000;
  const auto begin = [&] {
    return Must(store->RecordPullIntent({.image = image(++number) + ":v1.12.3"}));
  };
  begin();  // the first commit flushes twice
  Must(store->DeleteIntent({.image = image(number) + ":v1.12.3"}));
  constexpr std::size_t kPulls = 15;
  const auto pull = [&] {
    const PullId id = begin();
    Must(store->RecordImagePulled({.image = image(number) + ":v1.12.3", .image_ref = ref(number)},
                                  credentials, {.pull = id}));
  };
  for (std::size_t i = 0; i < kPulls; ++i) costs.Do(pull);
  costs.Do([&] {
    for (int i = 0; i < 20; ++i) begin();
  });
  for (std::size_t i = 0; i < kPulls; ++i) costs.Do(pull);
  const std::vector<Cost> found = costs.Take();
  BOOST_REQUIRE(found.size() == 2 * kPulls + 1);
  for (const auto& [first, most] : {std::pair{std::size_t{0}, 7}, {kPulls + 1, 10}}) {
    std::vector<std::size_t> pages;
    for (std::size_t i = first; i < first + kPulls; ++i) {
      BOOST_TEST(found[i].flushes == 2U);
      pages.push_back(found[i].pages - 2);  // but for the meta pages
    }
    std::ranges::sort(pages);
    BOOST_TEST_MESSAGE("pages: " << pages.front() << " to " << pages.back());
    BOOST_TEST(pages[kPulls / 2] <= static_cast<std::size_t>(most));
  }
}

// ---- What the mark says of a torn tree

// A limit: "A commit flushes the disk once"
BOOST_FIXTURE_TEST_CASE(a_torn_commit_is_taken_back_if_the_mark_and_the_witness_allow_it,
                        WithBench) {
  const Crash crash = MakeCrash(bench);
  const MarkLine& behind = crash.mark;
  MarkLine acknowledged = crash.Begun();
  acknowledged.acknowledged = crash.sequence + 1;
  MarkLine shut = crash.mark;
  shut.open = false;
  MarkLine far_behind = crash.mark;
  far_behind.begun = far_behind.acknowledged = 1;
  MarkLine of_another = crash.Begun();
  of_another.uuid[3] ^= 1;
  const struct {
    const char* name;
    MarkLine mark;
    bool same_boot;
    Found expected;
  } kCases[] = {
      {"behind, after a power cut", behind, false, Found::kTakenBack},
      {"far behind, after a power cut", far_behind, false, Found::kTakenBack},
      {"begun, after a power cut", crash.Begun(), false, Found::kTakenBack},
      {"begun, in the same boot", crash.Begun(), true, Found::kTakenBack},
      {"acknowledged, after a power cut", acknowledged, false, Found::kDamage},
      {"acknowledged, in the same boot", acknowledged, true, Found::kDamage},
      {"not begun, in the same boot", behind, true, Found::kDamage},
      {"shut, after a power cut", shut, false, Found::kDamage},
      {"shut, in the same boot", shut, true, Found::kDamage},
      {"of another store", of_another, false, Found::kDamage},
  };
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.name) {
      Put(bench, crash, one.mark);
      if (!one.same_boot) bench.clock().Reboot();
      // The mark's boot is the first one.
      NodeStoreOptions options = bench.Options();
      if (one.same_boot) options.boot_clock = FakeClock().AsBootClock();
      BOOST_TEST(OpenAfter(bench, options) == one.expected);
    }
  }
  // A witness that knows of the commit.
  for (const bool same_boot : {true, false}) {
    Put(bench, crash, crash.Begun());
    WriteFile(bench.witness(), crash.witness_after);
    NodeStoreOptions options = bench.Options();
    if (same_boot) options.boot_clock = FakeClock().AsBootClock();
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(store->recovery_report().set_aside);
    BOOST_TEST(store->recovery_report().distrustful);
    BOOST_TEST(!store->recovery_report().commit_undone);
  }
}

// Some virtual machines keep their boot ID over a power cut. The disk's mark may be behind then,
// and only the time since the boot tells.
// A limit: "On a machine that keeps its boot ID over a power cut"
BOOST_FIXTURE_TEST_CASE(a_boot_that_keeps_its_id_is_told_by_its_time, WithBench) {
  const Crash crash = MakeCrash(bench);
  BOOST_TEST(crash.mark.written == FakeClock().Boot().nanoseconds);
  MarkLine acknowledged = crash.Begun();
  acknowledged.acknowledged = crash.sequence + 1;
  MarkLine of_unknown_time = crash.mark;
  of_unknown_time.written = 0;
  const struct {
    const char* name;
    MarkLine mark;
    std::int64_t later;  // than the mark, in nanoseconds
    Found expected;
  } kCases[] = {
      {"behind, and booted since", crash.mark, -1, Found::kTakenBack},
      {"behind, and not booted as far as is known", crash.mark, 0, Found::kDamage},
      {"behind, later", crash.mark, 1, Found::kDamage},
      {"acknowledged, and booted since", acknowledged, -1, Found::kDamage},
      {"at a time that is not known", of_unknown_time, -1, Found::kDamage},
  };
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.name) {
      Put(bench, crash, one.mark);
      NodeStoreOptions options = bench.Options();
      const BootTime now{crash.mark.boot_id, crash.mark.written + one.later};
      options.boot_clock = [now] { return now; };
      BOOST_TEST(OpenAfter(bench, options) == one.expected);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_torn_commit_is_damage_without_a_valid_mark, WithBench) {
  const Crash crash = MakeCrash(bench);
  bench.clock().Reboot();
  Put(bench, crash, crash.mark);
  const std::string mark = ReadFile(bench.mark());
  const std::size_t second = mark.size() / 2;
  const auto spoilt = [&](std::initializer_list<std::size_t> places) {
    std::string content = mark;
    for (const std::size_t place : places) content[place + 100] ^= 1;
    return content;
  };
  // The second line is used if the first is spoilt, and says what it says.
  MarkLine ahead = crash.Begun();
  ahead.acknowledged = crash.sequence + 1;
  WriteMark(bench.store(), ahead);
  const std::string ahead_line = ReadFile(bench.mark()).substr(second);
  const std::string first_is_behind = mark.substr(0, second) + ahead_line;
  std::string second_is_ahead = first_is_behind;
  second_is_ahead[100] ^= 1;
  const struct {
    const char* name;
    std::optional<std::string> content;
    Found expected;
  } kCases[] = {
      {"missing", std::nullopt, Found::kDamage},
      {"empty", "", Found::kDamage},
      {"too short", mark.substr(0, second - 1), Found::kDamage},
      {"too long", mark + mark, Found::kDamage},
      {"zeros", std::string(512, '\0'), Found::kDamage},
      {"garbage", std::string(512, 'x'), Found::kDamage},
      {"the first line is spoilt", spoilt({0}), Found::kTakenBack},
      {"the second line is spoilt", spoilt({second}), Found::kTakenBack},
      {"both lines are spoilt", spoilt({0, second}), Found::kDamage},
      {"the first is spoilt, the second ahead", second_is_ahead, Found::kDamage},
      {"the second is ahead", first_is_behind, Found::kTakenBack},
      {"whole", mark, Found::kTakenBack},
  };
  for (const auto& one : kCases) {
    BOOST_TEST_CONTEXT(one.name) {
      Put(bench, crash, crash.mark);
      fs::remove(bench.mark());
      if (one.content) WriteFile(bench.mark(), *one.content);
      BOOST_TEST(OpenAfter(bench) == one.expected);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_torn_commit_is_damage_if_the_one_before_is_not_whole, WithBench) {
  Crash crash = MakeCrash(bench);
  bench.clock().Reboot();
  // One bit of each page that the older tree or its free list may use.
  const std::string untouched = crash.torn;
  std::size_t damaged = 0;
  for (std::size_t page = 0; page < untouched.size() / kPage; ++page) {
    if (page == crash.meta) continue;
    crash.torn = untouched;
    // Where each page has bytes in use: its header.
    FlipBit(crash.torn, (page * kPage + 11) * 8);
    Put(bench, crash, crash.Begun());
    const Found found = OpenAfter(bench);
    BOOST_TEST((found == Found::kTakenBack || found == Found::kDamage));
    if (found == Found::kDamage) ++damaged;
  }
  BOOST_TEST(damaged > 2U);
}

// A tree that is whole counts, whatever the mark says.
BOOST_FIXTURE_TEST_CASE(a_whole_tree_needs_no_mark, WithBench) {
  Crash crash = MakeCrash(bench);
  crash.torn = crash.whole;
  MarkLine shut = crash.mark;
  shut.open = false;
  for (const MarkLine& mark : {crash.mark, crash.Begun(), shut}) {
    for (const bool same_boot : {true, false}) {
      Put(bench, crash, mark);
      if (!same_boot) bench.clock().Reboot();
      BOOST_TEST(OpenAfter(bench) == Found::kWhole);
    }
  }
  Put(bench, crash, crash.mark);
  fs::remove(bench.mark());
  BOOST_TEST((IntentsOf(*bench.Open()) == kWithLast));
}

BOOST_FIXTURE_TEST_CASE(a_mark_that_is_not_a_file_or_cannot_be_read_is_an_error, WithBench) {
  const Crash crash = MakeCrash(bench);
  const auto refused = [&](ErrorCode code) {
    const std::string before = ReadFile(bench.data());
    ExpectError(NodeStore::Open(bench.Options()), code, "commit.mark");
    BOOST_TEST((ReadFile(bench.data()) == before));
    BOOST_TEST(!fs::exists(bench.store() / "quarantine"));
  };
  Put(bench, crash, crash.Begun());
  const std::string mark = ReadFile(bench.mark());
  fs::remove(bench.mark());
  WriteFile(bench.root() / "elsewhere", mark);
  fs::create_symlink(bench.root() / "elsewhere", bench.mark());
  refused(ErrorCode::kUnsafePath);
  BOOST_TEST((ReadFile(bench.root() / "elsewhere") == mark));
  fs::remove(bench.mark());
  fs::create_directory(bench.mark());
  refused(ErrorCode::kUnsafePath);
  fs::remove(bench.mark());
  BOOST_REQUIRE(mkfifo(bench.mark().c_str(), 0600) == 0);
  refused(ErrorCode::kUnsafePath);
  fs::remove(bench.mark());
  if (geteuid() == 0) {
    constexpr uid_t kNobody = 65534;
    WriteFile(bench.mark(), mark);
    BOOST_REQUIRE(chown(bench.mark().c_str(), kNobody, kNobody) == 0);
    refused(ErrorCode::kUnsafePath);
    fs::remove(bench.mark());
  }
  // Its read fails, at whichever call.
  int failed = 0;
  for (std::uint64_t call = 1; call < 100; ++call) {
    Put(bench, crash, crash.Begun());
    InjectFault({.kind = Fault::Kind::kFail,
                 .call = call,
                 .error_number = EIO,
                 .below = bench.mark().string()});
    const auto opened = NodeStore::Open(bench.Options());
    const bool happened = FaultHappened();
    const std::string where = FaultedCall();
    StopFaults();
    if (!happened) break;
    if (where.starts_with("read ")) ++failed;
    if (opened) continue;
    BOOST_TEST((opened.error().code == ErrorCode::kIo), where << opened.error().ToString());
    BOOST_TEST(!fs::exists(bench.store() / "quarantine"));
    BOOST_TEST(OpenAfter(bench, bench.Options(), true) != Found::kDamage);
  }
  BOOST_TEST(failed > 0);
}

// ---- Counterexamples to simpler protocols

namespace {

// A life that was killed after the meta page of its last commit was written, before the flush.
// Leaves in its place what the kernel shows to other processes.
std::vector<DiskEvent> LiveUntilKilled(const Bench& bench) {
  std::vector<DiskEvent> log = LogOf(bench.root());
  {
    Recorder recorder(bench.root(), FilesAfter(log));
    auto store = bench.Open();
    for (const char* name : {"a", "b", "c"}) Must(store->PutIntent({.image = Named(name)}));
    Recorder::Mark(1);
    Must(store->PutIntent({.image = Named("last")}));
    Append(log, recorder.Take());
  }
  const std::size_t data = FilesAfter(log).files.at("/store/data.mdb");
  std::size_t cut = PlaceOfMark(log, 1);
  while (log[cut].kind != Kind::kSynced || log[cut].file != data) ++cut;
  log.resize(cut);
  const MemoryDir killed;
  PlayKill(log, cut, killed.path());
  bench.Put(TreeOf(killed.path()));
  return log;
}

}  // namespace

// The next owner serves, and then the power fails.
BOOST_FIXTURE_TEST_CASE(what_a_killed_owner_did_not_flush_is_flushed_before_it_is_served,
                        WithBench) {
  Must(bench.Open()->Close());
  std::vector<DiskEvent> log = LiveUntilKilled(bench);
  const KnownFiles known = FilesAfter(log);
  {
    Recorder recorder(bench.root(), known);
    const auto store = bench.Open();
    BOOST_TEST((IntentsOf(*store) == kWithLast));
    BOOST_TEST((FoundBy(store->recovery_report()) == Found::kWhole));
    Append(log, recorder.Take());
  }
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Draw draw(seed);
    const MemoryDir after;
    PlayPowerCut(log, log.size(), draw, after.path());
    bench.Put(TreeOf(after.path()));
    bench.clock().Reboot();
    BOOST_TEST_CONTEXT("draw " << seed) { BOOST_TEST(OpenAfter(bench) == Found::kWhole); }
  }
}

// The mark may have been behind, so that it tells of no commit to take back. An opening takes one
// back all the same, its flush fails, and the next opening finds a store that looks whole.
BOOST_FIXTURE_TEST_CASE(a_way_back_whose_flush_failed_is_written_again, WithBench) {
  const Crash crash = MakeCrash(bench);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Put(bench, crash, crash.mark);
    bench.clock().Reboot();
    std::vector<DiskEvent> log = LogOf(bench.root());
    {
      Recorder recorder(bench.root(), FilesAfter(log));
      {
        const FailingFlush failing(bench.data());
        ExpectError(NodeStore::Open(bench.Options()), ErrorCode::kIo);
      }
      const auto store = bench.Open();
      BOOST_TEST((IntentsOf(*store) == kAcknowledged));
      Append(log, recorder.Take());
    }
    Draw draw(seed);
    const MemoryDir after;
    PlayPowerCut(log, log.size(), draw, after.path());
    bench.Put(TreeOf(after.path()));
    bench.clock().Reboot();
    BOOST_TEST_CONTEXT("draw " << seed) {
      const auto store = bench.Open();
      BOOST_TEST((FoundBy(store->recovery_report()) != Found::kDamage));
      BOOST_TEST((IntentsOf(*store) == kAcknowledged));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(after_a_failed_flush_nothing_is_written_or_opened_until_the_next_opening,
                        WithBench) {
  auto store = bench.Open();
  Must(store->AddToLedger({.id = kRef}, "test", "preloaded"));
  const auto pulls = [&] {
    return DecisionOf(*store, {.image = Named("x"), .image_ref = kRef}).pull;
  };
  for (const char* name : {"a", "b", "c"}) Must(store->PutIntent({.image = Named(name)}));
  BOOST_TEST(!pulls());
  {
    const FailingFlush failing(bench.data());
    ExpectError(store->PutIntent({.image = Named("last")}), ErrorCode::kOutcomeUnknown, "data.mdb");
  }
  BOOST_TEST(pulls());
  ExpectError(store->PutIntent({.image = Named("later")}), ErrorCode::kOutcomeUnknown);
  BOOST_TEST(!store->ListIntents());
  Must(store->Close());
  // Closing does not shut the mark.
  const auto mark = MarkIn(bench.store());
  BOOST_REQUIRE(mark.has_value());
  BOOST_TEST(mark->open);
  BOOST_TEST(mark->begun == mark->acknowledged + 1);
  BOOST_TEST(OpenAfter(bench) == Found::kWhole);
}

namespace {

// An observer in a process of its own, which looks when it is told to.
class Watcher {
 public:
  explicit Watcher(const Bench& bench) : child_([this, &bench] { return Watch(bench); }) {}
  ~Watcher() {
    told_->stop = true;
    child_.Wait();
  }
  // How many intents it sees, of those that were acknowledged; −1: it can't tell. Never opens.
  int Look() {
    const int asked = ++told_->asked;
    while (told_->answered < asked) sched_yield();
    BOOST_TEST(!told_->opened);
    return told_->count;
  }

 private:
  struct Told {
    std::atomic<int> asked{0};
    std::atomic<int> answered{0};
    std::atomic<int> count{0};
    std::atomic<bool> opened{false};
    std::atomic<bool> stop{false};
  };

  int Watch(const Bench& bench) {
    std::unique_ptr<NodeStore> store;
    while (!told_->stop) {
      if (told_->answered == told_->asked) {
        sched_yield();
        continue;
      }
      if (store == nullptr) {
        ObserveOptions options{.directory = bench.store()};
        if (auto opened = NodeStore::Observe(options)) store = std::move(*opened);
      }
      int count = -1;
      if (store != nullptr) {
        if (!DecisionOf(*store, {.image = Named("x"), .image_ref = kRef}).pull) {
          told_->opened = true;
        }
        if (const auto intents = store->ListIntents()) count = static_cast<int>(intents->size());
      }
      told_->count = count;
      ++told_->answered;
    }
    return 0;
  }

  Shared<Told> told_;
  Child child_;
};

// Overwrites the file that processes have mapped.
void PutInPlace(const fs::path& path, const std::string& content) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
  BOOST_REQUIRE(fd >= 0);
  BOOST_REQUIRE(pwrite(fd, content.data(), content.size(), 0) ==
                static_cast<ssize_t>(content.size()));
  close(fd);
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_live_observer_never_sees_less_than_was_acknowledged, WithBench) {
  Watcher watcher(bench);
  auto store = bench.Open();
  for (const char* name : {"a", "b", "c"}) Must(store->PutIntent({.image = Named(name)}));
  BOOST_TEST(watcher.Look() == 3);
  std::string torn = ReadFile(bench.data());
  {
    const FailingFlush failing(bench.data());
    BOOST_TEST(!store->PutIntent({.image = Named("last")}));
  }
  store.reset();
  // The kernel drops the pages, of which only the meta page reached the disk.
  const std::string whole = ReadFile(bench.data());
  const std::size_t meta = torn.compare(0, kPage, whole, 0, kPage) == 0 ? 1 : 0;
  torn.resize(whole.size(), '\0');
  PutPageBack(torn, whole, meta);
  PutInPlace(bench.data(), torn);
  const auto sees_no_less = [&] {
    const int count = watcher.Look();
    BOOST_TEST((count == -1 || count >= 3), count);
  };
  sees_no_less();
  int looks = 0;
  bool taken_back = false;
  SetBeforeSync([&](const std::string&) {
    // The observer's lock.mdb names the transaction that is taken back.
    if (!taken_back && ReadFile(bench.data()) != torn) {
      taken_back = true;
      BOOST_TEST(!fs::exists(bench.store() / "lock.mdb"));
    }
    sees_no_less();
    ++looks;
    return 0;
  });
  store = bench.Open();
  SetBeforeSync(nullptr);
  BOOST_TEST(looks > 2);
  BOOST_TEST((FoundBy(store->recovery_report()) == Found::kTakenBack));
  BOOST_TEST(watcher.Look() == 3);
  // As many as it takes until every page of then is written over.
  for (int i = 1; i <= 20; ++i) {
    Must(store->PutIntent({.image = Named("later/" + std::to_string(i))}));
    BOOST_TEST(watcher.Look() == 3 + i);
  }
  Must(store->Close());
}

// ---- ID mappings

BOOST_AUTO_TEST_CASE(an_id_mapping_is_given_to_nobody_before_it_is_flushed) {
  for (const int error_number : {0, EIO}) {
    UsernsStore store;
    store.Get("first");
    store.Get("second");  // it flushes once from here on
    std::atomic<bool> flushing{false};
    std::atomic<bool> go_on{false};
    SetBeforeSync([&](const std::string& path) {
      if (path != store.database().string()) return 0;
      flushing = true;
      while (!go_on) sched_yield();
      return error_number;
    });
    std::optional<Result<UserNamespace>> one;
    std::optional<Result<UserNamespace>> other;
    std::thread first([&] { one = store.Try("pod"); });
    while (!flushing) sched_yield();
    std::atomic<pid_t> thread_id{0};
    std::atomic<bool> done{false};
    std::thread second([&] {
      thread_id = static_cast<pid_t>(syscall(SYS_gettid));
      other = store.Try("pod");
      done = true;
    });
    while (thread_id == 0) sched_yield();
    // It waits for nothing else: nobody holds a mutex meanwhile.
    while (!done && !Sleeps(thread_id)) sched_yield();
    BOOST_TEST(!done);
    go_on = true;
    first.join();
    second.join();
    SetBeforeSync(nullptr);
    BOOST_REQUIRE(one.has_value() && other.has_value());
    BOOST_TEST(one->has_value() == (error_number == 0));
    BOOST_TEST(other->has_value() == (error_number == 0));
    if (error_number == 0) {
      BOOST_TEST((**one == **other));
    } else {
      BOOST_TEST((other->error().code == ErrorCode::kOutcomeUnknown));
      store.Close();
    }
  }
}

// ---- Other features, where the newest commit on the disk is torn

BOOST_FIXTURE_TEST_CASE(opening_in_any_way_takes_it_back, WithBench) {
  const Crash crash = MakeCrash(bench);
  const std::pair<const char*, std::function<void(NodeStoreOptions&)>> kWays[] = {
      {"migrate=false", [](NodeStoreOptions& o) { o.migrate = false; }},
      {"skip_unreadable", [](NodeStoreOptions& o) { o.skip_unreadable = true; }},
      {"kubelet rules",
       [](NodeStoreOptions& o) {
         o.rules = Mode::kKubelet;
         o.continues_pulls = false;
       }},
      {"no witness", [](NodeStoreOptions& o) { o.witness = Witness::None(); }},
      {"remembered witness", [](NodeStoreOptions& o) { o.witness = Witness::Remembered(); }},
      {"two flushes", [](NodeStoreOptions& o) { o.flushes_twice = true; }},
      {"the boot is unknown",
       [](NodeStoreOptions& o) { o.boot_clock = [] { return BootTime(); }; }},
  };
  bench.clock().Reboot();
  for (const auto& [name, change] : kWays) {
    BOOST_TEST_CONTEXT(name) {
      Put(bench, crash, crash.Begun());
      NodeStoreOptions options = bench.Options();
      change(options);
      auto store = Must(NodeStore::Open(options));
      BOOST_TEST(store->recovery_report().commit_undone);
      BOOST_TEST(!store->recovery_report().set_aside);
      BOOST_TEST((IntentsOf(*store).contains(Named("c")) || options.rules == Mode::kKubelet));
      BOOST_TEST(!IntentsOf(*store).contains(Named("last")));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(an_observer_without_an_owner_refuses_it, WithBench) {
  const Crash crash = MakeCrash(bench);
  Put(bench, crash, crash.Begun());
  const Tree before = TreeOf(bench.root());
  ExpectError(NodeStore::Observe({.directory = bench.store()}), ErrorCode::kDamaged);
  BOOST_TEST((TreeOf(bench.root()) == before));
  bench.clock().Reboot();
  Must(bench.Open()->Close());
  auto store = Must(NodeStore::Observe({.directory = bench.store()}));
  BOOST_TEST((IntentsOf(*store) == kAcknowledged));
}

BOOST_FIXTURE_TEST_CASE(a_migration_takes_it_back_and_its_dry_run_changes_nothing, WithBench) {
  const Crash crash = MakeCrash(bench);
  Put(bench, crash, crash.Begun());
  bench.clock().Reboot();
  MigrateOptions options{.directory = bench.store(), .to = 1, .dry_run = true};
  options.accept_loss = true;
  options.clock = bench.clock().AsClock();
  options.boot_clock = bench.clock().AsBootClock();
  options.map_bytes = bench.Options().map_bytes;
  const std::string before = ReadFile(bench.data());
  ExpectError(MigrateStore(options), ErrorCode::kDamaged);
  BOOST_TEST((ReadFile(bench.data()) == before));
  BOOST_TEST((*MarkIn(bench.store()) == crash.Begun()));
  options.dry_run = false;
  Must(MigrateStore(options));
  const auto mark = MarkIn(bench.store());
  BOOST_REQUIRE(mark.has_value());
  BOOST_TEST(!mark->open);
  BOOST_TEST((mark->boot_id == bench.clock().Boot().boot_id));
  auto store = bench.Open();
  BOOST_TEST(store->recovery_report().migration.has_value());
  BOOST_TEST((FoundBy(store->recovery_report()) == Found::kWhole));
  BOOST_TEST((IntentsOf(*store) == kAcknowledged));
}

namespace {

// Leaves backups: the store goes down by a version, and up again.
void MakeBackups(const Bench& bench) {
  Must(bench.Open()->Close());
  MigrateOptions options{.directory = bench.store(), .to = 1, .accept_loss = true};
  options.clock = bench.Options().clock;
  options.boot_clock = bench.Options().boot_clock;
  options.map_bytes = bench.Options().map_bytes;
  Must(MigrateStore(options));
  Must(bench.Open()->Close());
}

RestoreOptions NewestBackupOf(const Bench& bench) {
  RestoreOptions options{.directory = bench.store()};
  options.backup = Must(BackupsOf(bench.store())).front().path;
  options.clock = bench.Options().clock;
  options.boot_clock = bench.Options().boot_clock;
  options.map_bytes = bench.Options().map_bytes;
  return options;
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(restoring_keeps_closed_what_was_acknowledged, WithBench) {
  MakeBackups(bench);
  const Crash crash = MakeCrash(bench);
  bench.clock().Reboot();
  MarkLine acknowledged = crash.Begun();
  acknowledged.acknowledged = crash.sequence + 1;
  for (const bool is_damage : {false, true}) {
    Put(bench, crash, is_damage ? acknowledged : crash.Begun());
    RestoreOptions options = NewestBackupOf(bench);
    options.dry_run = true;
    const Tree before = TreeOf(bench.root());
    Must(RestoreStore(options));
    Tree after = TreeOf(bench.root());
    after["store/owner.lock"] = before.at("store/owner.lock");
    BOOST_TEST((after == before));
    options.dry_run = false;
    const RestoreReport report = Must(RestoreStore(options));
    BOOST_TEST((ReadFile(report.replaced_path) == crash.torn) == is_damage);
    BOOST_TEST(!MarkIn(bench.store()).value().open);
    auto store = bench.Open();
    BOOST_TEST(!store->recovery_report().commit_undone);
    BOOST_TEST(!store->recovery_report().set_aside);
    BOOST_TEST(store->recovery_report().distrustful);
    if (!is_damage) BOOST_TEST((IntentsOf(*store) == kAcknowledged));
  }
}

// What is restored in the boot in which an owner was killed, while the power fails: the replaced
// store is there, whole, or the backup.
BOOST_FIXTURE_TEST_CASE(a_power_cut_while_restoring_damages_nothing, WithBench) {
  MakeBackups(bench);
  std::vector<DiskEvent> log = LiveUntilKilled(bench);
  const std::size_t begin = log.size();
  {
    Recorder recorder(bench.root(), FilesAfter(log));
    Must(RestoreStore(NewestBackupOf(bench)));
    Append(log, recorder.Take());
  }
  int restored = 0;
  int before = 0;
  for (std::size_t cut = begin; cut <= log.size(); ++cut) {
    Draw draw(cut);
    const MemoryDir after;
    PlayPowerCut(log, cut, draw, after.path());
    bench.Put(TreeOf(after.path()));
    bench.clock().Reboot();
    BOOST_TEST_CONTEXT(cut - begin << " events of restoring") {
      const auto store = bench.Open();
      const OpeningReport& report = store->recovery_report();
      BOOST_TEST(!report.set_aside, report.distrust_reason);
      const Images intents = IntentsOf(*store);
      BOOST_TEST((intents == kAcknowledged || intents == kWithLast));
      ++(report.distrustful ? restored : before);
    }
  }
  BOOST_TEST(restored > 0);
  BOOST_TEST(before > 0);
}

// ---- The mark where something else goes wrong

// The disk takes the write, and holds something else: opening ends all the same.
BOOST_FIXTURE_TEST_CASE(a_commit_that_cannot_be_taken_back_is_damage, WithBench) {
  const Crash crash = MakeCrash(bench);
  Put(bench, crash, crash.Begun());
  bench.clock().Reboot();
  InjectFault(
      {.kind = Fault::Kind::kGarble, .call = 1, .lasting = true, .below = bench.data().string()});
  const auto opened = NodeStore::Open(bench.Options());
  StopFaults();
  BOOST_REQUIRE(opened);
  BOOST_TEST((*opened)->recovery_report().set_aside);
  BOOST_TEST((*opened)->recovery_report().distrustful);
}

// Where only the mark is left of a store, the next one is distrustful, whenever its making ends.
BOOST_AUTO_TEST_CASE(a_mark_alone_tells_of_a_store_that_was_lost) {
  int killed = 0;
  for (std::uint64_t call = 1; call < 200; ++call) {
    const Bench bench;
    {
      const Bench other;
      auto store = other.Open();
      for (const char* name : {"a", "b"}) Must(store->PutIntent({.image = Named(name)}));
      fs::create_directory(bench.store());
      fs::permissions(bench.store(), fs::perms::owner_all);
      WriteFile(bench.mark(), ReadFile(other.mark()));
      fs::permissions(bench.mark(), fs::perms::owner_read | fs::perms::owner_write);
    }
    Child child([&] {
      KillBeforeCall(call);
      const auto store = NodeStore::Open(bench.Options());
      return store ? 0 : 1;
    });
    const int end = child.Wait();
    if (end < 0) ++killed;
    const auto store = bench.Open();
    BOOST_TEST(store->recovery_report().distrustful, "killed before call " << call);
    if (end >= 0) break;
  }
  BOOST_TEST(killed > 10);
}

// An owner that lost its store leaves the mark of the next one alone.
BOOST_FIXTURE_TEST_CASE(closing_shuts_no_mark_of_another_owner, WithBench) {
  auto store = bench.Open();
  for (const char* name : {"a", "b"}) Must(store->PutIntent({.image = Named(name)}));
  fs::remove(bench.store() / "owner.lock");
  MarkLine others = *MarkIn(bench.store());
  others.begun += 5;
  others.acknowledged += 4;
  others.written = 0;
  const MemoryDir scratch;
  {
    internal::CommitMark file(scratch.path(), others);
    Must(file.Begin(others.begun, others.acknowledged));
  }
  PutInPlace(bench.mark(), ReadFile(scratch / "commit.mark"));
  static_cast<void>(store->Close());
  const auto after = MarkIn(bench.store());
  BOOST_REQUIRE(after.has_value());
  BOOST_TEST((*after == others));
}

// What was acknowledged is known to the disk after closing, also where the mark stays open.
BOOST_AUTO_TEST_CASE(closing_flushes_the_mark) {
  for (const bool fails : {false, true}) {
    const Bench bench;
    Recorder recorder(bench.root());
    auto store = bench.Open();
    for (const char* name : {"a", "b"}) Must(store->PutIntent({.image = Named(name)}));
    if (fails) {
      const FailingFlush failing(bench.data());
      BOOST_TEST(!store->PutIntent({.image = Named("last")}));
    }
    Must(store->Close());
    const std::vector<DiskEvent> log = recorder.Take();
    const std::size_t mark = FilesAfter(log).files.at("/store/commit.mark");
    bool flushed = false;
    for (const DiskEvent& event : log) {
      if (event.file != mark) continue;
      if (event.kind == Kind::kWrite) flushed = false;
      if (event.kind == Kind::kSynced) flushed = true;
    }
    BOOST_TEST(flushed);
    BOOST_TEST(MarkIn(bench.store())->open == fails);
  }
}

// A mark that can't be kept would fall behind, and damage would pass for a commit cut short.
BOOST_AUTO_TEST_CASE(a_mark_that_cannot_be_flushed_takes_back_nothing) {
  for (const bool same_boot : {true, false}) {
    Bench bench;
    NodeStoreOptions options = bench.Options();
    options.witness = Witness::None();
    {
      auto store = Must(NodeStore::Open(options));
      const FailingFlush failing(bench.mark());
      for (const char* name : {"a", "b", "c", "last"}) {
        Must(store->PutIntent({.image = Named(name)}));
      }
      static_cast<void>(store->Close());
    }
    if (!same_boot) bench.clock().Reboot();
    std::string data = ReadFile(bench.data());
    const std::vector<std::size_t> places = PlacesOf(data, Named("last"));
    BOOST_REQUIRE(!places.empty());
    for (const std::size_t place : places) FlipBit(data, place * 8);
    WriteFile(bench.data(), data);
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(!store->recovery_report().commit_undone);
    BOOST_TEST(store->recovery_report().distrustful);
  }
}

// Nor one that the thread which flushes it could not flush.
BOOST_FIXTURE_TEST_CASE(a_mark_that_could_not_be_flushed_is_removed, WithBench) {
  auto store = bench.Open();
  int commits = 0;
  const auto put = [&] { Must(store->PutIntent({.image = Named(std::to_string(++commits))})); };
  put();
  BOOST_TEST(fs::exists(bench.mark()));
  {
    const FailingFlush failing(bench.mark());
    while (fs::exists(bench.mark())) put();
  }
  put();
  Must(store->Close());
  BOOST_TEST(!fs::exists(bench.mark()));
  store = bench.Open();
  BOOST_TEST((FoundBy(store->recovery_report()) == Found::kWhole));
  BOOST_TEST(IntentsOf(*store).size() == static_cast<std::size_t>(commits));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
