// What one flush a commit must stand: lives of a store, one after the other, that end by a kill, a
// failing call or a power cut, also while an earlier end is being recovered. What is written but
// not synced is on the disk in part, in any order, torn at 512 bytes; what a failed sync left
// unwritten never is, unless it is written again, and may vanish from memory.
//
// Judged to the letter: each opening finds all values of the last acknowledged commit, or of the
// one that was under way; it trusts them, and sets nothing aside. WAYBILL_POWER_CUTS: how many
// states; WAYBILL_SEED: other ones. The protocol is in store/disk/committer.h and
// store/opening/unfinished_commit.h.

#include <fcntl.h>
#include <xxhash.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "store/base/files.h"
#include "store/disk/page_walk/page_check.h"
#include "tests/crash/recorder.h"
#include "tests/crash/workload.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(power_cut_commits)

namespace {

namespace fs = std::filesystem;
using Kind = DiskEvent::Kind;
using Log = std::vector<DiskEvent>;

// Of all values in data.mdb's newest tree; 0: it is torn, or there is none.
using Content = std::uint64_t;

class ContentOf final : public internal::PageVisitor {
 public:
  void OnTable(std::string_view, std::uint64_t) override {}
  void OnValue(std::string_view table, internal::PageKey key,
               std::span<const std::byte> value) override {
    sum_ += XXH3_64bits(table.data(), table.size()) ^
            XXH3_64bits_withSeed(value.data(), value.size(), XXH3_64bits(key.data(), key.size()));
  }
  Content sum() const { return sum_; }

 private:
  Content sum_ = 1;
};

Content ContentIn(const fs::path& store) {
  auto file = internal::OpenFile(store / "data.mdb", O_RDONLY);
  if (!file) return 0;
  ContentOf content;
  const auto walked = internal::WalkFile(file->get(), content);
  return walked && walked->sound ? content.sum() : 0;
}

// How a log is changed before it is played: a broken protocol, which the judge must notice.
enum class Broken : std::uint8_t {
  kNo,
  kAcknowledgesBeforeFlush,
  kNoWayBack,           // opening does not find the mark
  kServesBeforeFlush,   // opening does not flush what it found
  kFlushesOnceAtFirst,  // the first commit after an opening, too
  kDoesNotWriteAgain,   // after a flush that failed
  kHasNoRoomAhead,
  kDoesNotSettleSizes,  // of commits that found no room
};

constexpr std::size_t kOpened = 1'000'000;  // marks: an opening ended
constexpr std::size_t kAcknowledged = 1;    // an operation ended well

struct Outcome {
  std::uint64_t states = 0;
  std::uint64_t undone = 0;  // commits that an opening took back
  std::string difference;    // the first
};

class Lives {
 public:
  Lives(std::uint64_t seed, Mode rules, Broken broken)
      : seed_(seed), draw_(seed), rules_(rules), broken_(broken) {}

  // Until `states` were judged, or one differs.
  Outcome Live(std::uint64_t states) {
    Begin();
    while (outcome_.states < states && outcome_.difference.empty()) OneLife();
    ShowFullDisk(false);
    return outcome_;
  }

 private:
  // A life as it was recorded: where in the log each content was acknowledged.
  struct Step {
    std::size_t at = 0;
    Content content = 0;
  };

  NodeStoreOptions Options() {
    NodeStoreOptions options = OptionsIn(root_.path(), rules_);
    options.witness = Witness::At(root_ / "kubelet" / "waybill");
    options.continues_pulls = true;  // opening changes nothing
    options.boot_clock = clock_.AsBootClock();
    MakeRoomForWorkers(options);
    options.evidence = kEvidenceOfWorkers;
    if (!first_) options.runtime_handlers.reset();
    return options;
  }
  fs::path StoreDirectory() const { return root_ / "store"; }

  void Begin() {
    has_no_space_ = broken_ == Broken::kDoesNotSettleSizes ||
                    (broken_ != Broken::kHasNoRoomAhead && draw_.OneIn(3));
    ShowFullDisk(true);  // the lives make the first room
    fs::create_directory(root_ / "kubelet");
    auto store = Must(NodeStore::Open(Options()));
    Must(store->Close());
    first_ = false;
    log_ = LogOf(root_.path());
    may_be_ = {ContentIn(StoreDirectory())};
  }

  void Replace(const std::function<void(const fs::path&)>& play) {
    const MemoryDir after;
    play(after.path());
    for (const char* name : {"store", "kubelet"}) {
      fs::remove_all(root_ / name);
      if (fs::exists(after / name)) fs::rename(after / name, root_ / name);
    }
  }

  void Differs(const std::string& what) {
    if (!outcome_.difference.empty()) return;
    outcome_.difference = "seed " + std::to_string(seed_) + ", state " +
                          std::to_string(outcome_.states) + ", boot " + std::to_string(boots_) +
                          ": " + what;
  }

  // Opens, and compares what is there. Null: there is a difference, or a call failed.
  std::unique_ptr<NodeStore> OpenAndJudge(bool may_fail) {
    auto opened = NodeStore::Open(Options());
    if (!opened) {
      if (!may_fail) Differs(opened.error().ToString());
      return nullptr;
    }
    const OpeningReport& report = (*opened)->recovery_report();
    outcome_.undone += report.commit_undone ? 1 : 0;
    if (report.set_aside || report.distrustful || !report.findings.empty()) {
      Differs(report.findings.empty() ? "distrustful: " + report.distrust_reason
                                      : report.findings.front());
    } else if (!may_be_.contains(ContentIn(StoreDirectory()))) {
      Differs("what was acknowledged is not what is there");
    }
    if (!outcome_.difference.empty()) return nullptr;
    return std::move(*opened);
  }

  // Opens, works, and ends well or by a call that fails. Leaves the recorded steps.
  void Record(bool with_fault) {
    steps_.clear();
    doer_ = StoreDoer();  // a new process
    const KnownFiles known = FilesAfter(log_);
    Log recorded;
    bool closed = false;
    ShowFullDisk(has_no_space_);
    {
      Recorder recorder(root_.path(), known);
      if (with_fault) {
        InjectFault({.kind = draw_.OneIn(4)   ? Fault::Kind::kShortBySectors
                             : draw_.OneIn(3) ? Fault::Kind::kFailDone
                                              : Fault::Kind::kFail,
                     .call = 1 + draw_.Below(120),
                     .error_number = draw_.OneIn(3) ? ENOSPC : EIO,
                     .lasting = draw_.OneIn(8)});
      }
      if (auto store = OpenAndJudge(with_fault)) {
        Recorder::Mark(kOpened);
        now_ = ContentIn(StoreDirectory());
        steps_.push_back({0, now_});
        closed = Work(*store, with_fault) && draw_.OneIn(2);
        if (closed) {
          closed = store->Close().has_value();
          failed_half_way_ = failed_half_way_ || !closed;
        }
        if (closed) {
          Recorder::Mark(kAcknowledged);
          steps_.push_back({0, ContentIn(StoreDirectory())});
        }
        // Closing is the last thing that is recorded, so the power may fail before it is done.
        if (!closed) recorded = recorder.Take();
      }
      StopFaults();
      if (recorded.empty()) recorded = recorder.Take();
    }
    life_begins_ = log_.size();
    Append(log_, std::move(recorded));
    std::size_t step = 0;
    for (std::size_t i = life_begins_; i < log_.size(); ++i) {
      if (log_[i].kind == Kind::kMark && step < steps_.size()) steps_[step++].at = i;
    }
  }

  // False: the store refuses every later write.
  bool Work(NodeStore& store, bool with_fault) {
    const std::uint64_t operations = draw_.Below(12);
    for (std::uint64_t i = 0; i < operations; ++i) {
      const auto done = doer_.Do(store, worker_.Next());
      const Content after = ContentIn(StoreDirectory());
      if (!done && done.error().code == ErrorCode::kOutcomeUnknown) {
        failed_half_way_ = true;
        return false;
      }
      if (!done) {
        if (!with_fault) Differs(done.error().ToString());
        if (after != now_)
          Differs("a write failed, and changed something: " + done.error().ToString());
        continue;
      }
      now_ = after;
      Recorder::Mark(kAcknowledged);
      steps_.push_back({0, now_});
    }
    return true;
  }

  // What a write that failed half way may leave: what was to be seen after each write of a meta
  // page, until one was put back.
  void FindUnderWay() {
    under_way_.clear();
    if (!failed_half_way_) return;
    const KnownFiles known = FilesAfter(log_);
    const std::size_t data = known.files.at("/store/data.mdb");
    for (std::size_t i = steps_.back().at; i < log_.size(); ++i) {
      constexpr std::uint64_t kMetaPagesEnd = 8192;
      const DiskEvent& event = log_[i];
      if (event.kind != Kind::kWrite || event.file != data || event.offset >= kMetaPagesEnd) {
        continue;
      }
      const MemoryDir then;
      PlayKill(log_, i + 1, then.path());
      if (const Content content = ContentIn(then / "store"); content != 0) {
        under_way_.insert(content);
      }
    }
  }

  // What may be there if the life ends after so many events.
  std::set<Content> ContentsAt(std::size_t cut) const {
    if (steps_.empty() || cut <= steps_.front().at) {
      std::set<Content> contents = may_be_;
      if (!steps_.empty() && cut > steps_.front().at) contents = {steps_.front().content};
      return contents;
    }
    std::size_t last = 0;
    while (last + 1 < steps_.size() && steps_[last + 1].at < cut) ++last;
    std::set<Content> contents{steps_[last].content};
    if (last + 1 < steps_.size()) {
      contents.insert(steps_[last + 1].content);
    } else {
      contents.insert(under_way_.begin(), under_way_.end());
    }
    return contents;
  }

  void OneLife() {
    failed_half_way_ = false;
    Record(draw_.OneIn(3));
    if (!outcome_.difference.empty()) return;
    FindUnderWay();
    const std::size_t events = log_.size() - life_begins_;
    // A kill keeps the room that was made.
    if (draw_.OneIn(3) && broken_ != Broken::kHasNoRoomAhead) {
      Kill(life_begins_ + draw_.Below(events + 1));
    } else {
      PowerCuts();
    }
  }

  void Kill(std::size_t cut) {
    may_be_ = ContentsAt(cut);
    log_.resize(cut);
    if (draw_.OneIn(2)) ForgetUnwritten(log_, draw_);
    const Log played = log_;
    Replace([&](const fs::path& into) { PlayKill(played, played.size(), into); });
    ++outcome_.states;
  }

  // Half of them just before something was synced: there most can be lost.
  std::size_t DrawCut(const Log& played) {
    const std::size_t cut = life_begins_ + draw_.Below(played.size() - life_begins_ + 1);
    if (draw_.OneIn(2)) return cut;
    for (std::size_t i = cut; i < played.size(); ++i) {
      if (played[i].kind == Kind::kSynced) return i;
    }
    return cut;
  }

  // The same life is cut at several points; the store lives on after the last one.
  void PowerCuts() {
    const Log played = Changed();
    const std::set<Content> before = may_be_;
    constexpr int kCuts = 12;
    for (int i = 0; i < kCuts && outcome_.difference.empty(); ++i) {
      const std::size_t cut = DrawCut(played);
      may_be_ = before;
      may_be_ = ContentsAt(cut);
      clock_.Reboot();
      ++boots_;
      Replace([&](const fs::path& into) { PlayPowerCut(played, cut, draw_, into); });
      if (broken_ == Broken::kNoWayBack) fs::remove(StoreDirectory() / "commit.mark");
      ++outcome_.states;
      const bool is_last = i + 1 == kCuts;
      if (is_last) break;
      if (auto store = OpenAndJudge(false)) Must(store->Close());
    }
    log_ = LogOf(root_.path());
  }

  // The log as a broken protocol would have made it.
  Log Changed() const;

  const std::uint64_t seed_;
  Draw draw_;
  const Mode rules_;
  const Broken broken_;
  const MemoryDir root_;
  FakeClock clock_;
  bool first_ = true;
  bool has_no_space_ = false;  // for room ahead
  Worker worker_{seed_, 0, Doing::kAnything};
  StoreDoer doer_;

  Log log_;  // since the last power cut
  std::size_t life_begins_ = 0;
  std::vector<Step> steps_;
  std::set<Content> may_be_;  // when the next life begins
  Content now_ = 0;
  bool failed_half_way_ = false;  // the life's last write
  std::set<Content> under_way_;   // of that one
  std::uint64_t boots_ = 0;
  Outcome outcome_;
};

Log Lives::Changed() const {
  Log log = log_;
  if (broken_ == Broken::kNo || broken_ == Broken::kNoWayBack) return log;
  const auto known = FilesAfter(log);
  const auto found = known.files.find("/store/data.mdb");
  const std::size_t data = found == known.files.end() ? 0 : found->second;
  const std::size_t opened = steps_.empty() ? log.size() : steps_.front().at;
  const auto drop = [](DiskEvent& event) { event = {.kind = Kind::kMark, .index = 0}; };
  bool first = true;
  for (std::size_t i = life_begins_; i < log.size(); ++i) {
    DiskEvent& event = log[i];
    const bool of_data = event.file == data;
    const bool is_flush = of_data && event.kind == Kind::kSynced;
    if (broken_ == Broken::kAcknowledgesBeforeFlush && is_flush && i > opened) drop(event);
    if (broken_ == Broken::kServesBeforeFlush && is_flush && i < opened) drop(event);
    const bool is_write = of_data && event.kind == Kind::kWrite;
    const bool is_room = is_write && event.bytes.find_first_not_of('\0') == std::string::npos;
    if (broken_ == Broken::kHasNoRoomAhead && is_room) drop(event);
    // The commit's own flush comes first.
    const bool follows_flush =
        is_flush && log[i - 1].kind == Kind::kSynced && log[i - 1].file == data;
    if (broken_ == Broken::kDoesNotSettleSizes && follows_flush) drop(log[i - 1]);
    if (broken_ == Broken::kDoesNotWriteAgain && is_write && i < opened) drop(event);
    if (broken_ == Broken::kFlushesOnceAtFirst && first && i > opened) {
      // The flush of its pages goes; that of its meta page is for all of it.
      if (is_flush) drop(event);
      if (event.kind == Kind::kWritten && log[event.index].file == data) {
        event = {.kind = Kind::kSynced, .file = data};
        first = false;
      }
    }
  }
  return log;
}

Outcome LiveOften(std::uint64_t states, Broken broken) {
  // The same lives in each run of the tests, or others.
  const std::uint64_t seed = NumberFromEnv("WAYBILL_SEED", 20261122);
  Outcome sum;
  constexpr std::uint64_t kStatesPerStore = 400;
  for (std::uint64_t i = 0; sum.states < states && sum.difference.empty(); ++i) {
    const Mode rules = (seed + i) % 2 == 0 ? Mode::kStrict : Mode::kKubelet;
    const Outcome one = Lives(seed + i, rules, broken).Live(kStatesPerStore);
    sum.states += one.states;
    sum.undone += one.undone;
    sum.difference = one.difference;
  }
  BOOST_TEST_MESSAGE(sum.states << " states, " << sum.undone << " commits taken back");
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_CASE(lose_nothing_that_was_acknowledged) {
  const Outcome outcome = LiveOften(NumberFromEnv("WAYBILL_POWER_CUTS", 3000), Broken::kNo);
  BOOST_TEST(outcome.difference == "");
  BOOST_TEST(outcome.undone > 0U);
}

// The controls: each of these breaks the protocol at one point, and is noticed.
constexpr std::uint64_t kEnough = 20000;

BOOST_AUTO_TEST_CASE(acknowledged_before_the_flush_are_lost) {
  BOOST_TEST(LiveOften(kEnough, Broken::kAcknowledgesBeforeFlush).difference != "");
}

BOOST_AUTO_TEST_CASE(that_are_torn_are_damage_without_a_way_back) {
  BOOST_TEST(LiveOften(kEnough, Broken::kNoWayBack).difference != "");
}

BOOST_AUTO_TEST_CASE(served_before_they_are_flushed_are_lost) {
  BOOST_TEST(LiveOften(kEnough, Broken::kServesBeforeFlush).difference != "");
}

BOOST_AUTO_TEST_CASE(over_pages_of_one_that_was_taken_back_must_flush_twice) {
  BOOST_TEST(LiveOften(kEnough, Broken::kFlushesOnceAtFirst).difference != "");
}

BOOST_AUTO_TEST_CASE(whose_flush_failed_must_be_written_again) {
  BOOST_TEST(LiveOften(kEnough, Broken::kDoesNotWriteAgain).difference != "");
}

BOOST_AUTO_TEST_CASE(that_make_the_file_longer_are_lost_with_the_journal) {
  BOOST_TEST(LiveOften(kEnough, Broken::kHasNoRoomAhead).difference != "");
}

BOOST_AUTO_TEST_CASE(that_find_no_room_must_settle_the_size) {
  BOOST_TEST(LiveOften(kEnough, Broken::kDoesNotSettleSizes).difference != "");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
