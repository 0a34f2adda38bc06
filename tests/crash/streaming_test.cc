// The streaming server is killed, its calls on files fail, or the power does, while two threads
// prepare streams and race for the same tokens: whatever dies when, no token opens two streams, and
// every one that nobody used opens its own request, where a restart keeps tokens. WAYBILL_KILLS:
// how often.

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/calls/streaming_store.h"
#include "tests/crash/recorder.h"
#include "tests/support/draw.h"
#include "tests/support/forked_child.h"
#include "tests/support/in_threads.h"
#include "tests/support/streaming_scene.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(streaming)

namespace {

constexpr std::size_t kThreads = 2;
constexpr std::size_t kPrepares = 12;  // of a thread in one life
constexpr std::size_t kOldTokens = 64;

// What a life of the server tells, before and after each call.
struct Told {
  struct Prepared {
    std::array<char, 32> token{};
    std::atomic<bool> done{false};
  };
  struct Consumed {
    std::atomic<std::uint32_t> started{0};
    std::atomic<std::uint32_t> opened{0};
    std::atomic<std::uint32_t> wrong{0};  // another request than was prepared
  };
  std::array<std::array<Prepared, kPrepares>, kThreads> prepared;
  std::array<Consumed, kOldTokens> old;
  std::array<std::array<Consumed, kPrepares>, kThreads> fresh;
};

struct Life {
  std::uint64_t number = 0;
  std::vector<std::pair<std::string, std::size_t>>
      old;  // tokens, and the numbers of their requests
};

std::size_t NumberOf(const Life& life, std::size_t thread, std::size_t i) {
  return life.number * 1000 + thread * 100 + i;
}

void TryToOpen(StreamingStore& store, std::string_view token, std::size_t number,
               Told::Consumed& told) {
  ++told.started;
  const auto request = store.Consume(token, StreamKind::kExec);
  if (!request) return;
  if (!(*request == NumberedExec(number))) ++told.wrong;
  ++told.opened;
}

// Both threads try each token; calls that fail end nothing.
void Live(StreamingStore& store, const Life& life, Told& told) {
  InThreads(kThreads, [&](std::size_t thread) {
    for (std::size_t i = 0; i < kPrepares; ++i) {
      Told::Prepared& mine = told.prepared[thread][i];
      const auto token = store.Prepare(NumberedExec(NumberOf(life, thread, i)));
      if (!token) continue;
      std::copy(token->begin(), token->end(), mine.token.begin());
      mine.done = true;
      for (std::size_t at = i; at < life.old.size(); at += kPrepares) {
        TryToOpen(store, life.old[at].first, life.old[at].second, told.old[at]);
      }
      // Some stay for the next life.
      if (i % 3 == 0) continue;
      for (std::size_t other = 0; other < kThreads; ++other) {
        const Told::Prepared& theirs = told.prepared[other][i];
        if (!theirs.done) continue;
        TryToOpen(store, {theirs.token.data(), theirs.token.size()}, NumberOf(life, other, i),
                  told.fresh[other][i]);
      }
    }
  });
}

// What is known of every token over all lives.
struct Known {
  std::size_t number = 0;
  std::uint32_t opened = 0;
  bool may_be_used = false;  // a call that did not say how it ended
};

class Judge {
 public:
  void Learn(const Life& life, const Told& told) {
    for (std::size_t i = 0; i < life.old.size(); ++i) Learn(life.old[i].first, told.old[i]);
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      for (std::size_t i = 0; i < kPrepares; ++i) {
        const Told::Prepared& prepared = told.prepared[thread][i];
        if (!prepared.done) continue;
        const std::string token(prepared.token.begin(), prepared.token.end());
        tokens_[token].number = NumberOf(life, thread, i);
        Learn(token, told.fresh[thread][i]);
      }
    }
  }
  // The tokens of before open nothing any more.
  void Forget() { tokens_.clear(); }
  // They may be void.
  void MayBeVoid() {
    for (auto& [token, known] : tokens_) known.may_be_used = true;
  }

  // Some that may be open, and some that may not.
  Life Next(std::uint64_t number, Draw& draw) const {
    Life life{number, {}};
    for (const auto& [token, known] : tokens_) {
      if (life.old.size() == kOldTokens) break;
      if (draw.OneIn(known.opened == 0 ? 2 : 8)) life.old.emplace_back(token, known.number);
    }
    return life;
  }

  // All that nobody opened opens once now, and what was opened does not.
  void CheckAll(StreamingStore& store) {
    for (auto& [token, known] : tokens_) {
      const auto request = store.Consume(token, StreamKind::kExec);
      known.opened += request ? 1 : 0;
      BOOST_TEST(known.opened <= 1U);
      if (!known.may_be_used) BOOST_TEST(known.opened == 1U);
      if (request) BOOST_TEST((*request == NumberedExec(known.number)));
    }
  }
  std::uint64_t opened() const {
    return static_cast<std::uint64_t>(std::count_if(
        tokens_.begin(), tokens_.end(), [](const auto& one) { return one.second.opened > 0; }));
  }

 private:
  void Learn(const std::string& token, const Told::Consumed& told) {
    Known& known = tokens_[token];
    known.opened += told.opened;
    known.may_be_used = known.may_be_used || told.started > 0;
    BOOST_TEST(known.opened <= 1U, "a token opened " << known.opened << " streams");
    BOOST_TEST(told.wrong == 0U);
  }

  std::map<std::string, Known> tokens_;
};

std::uint64_t Times() { return NumberFromEnv("WAYBILL_KILLS", 240) / 4; }

// Each life is killed before a call, or one or all from it on fail.
void LiveOften(bool kills) {
  Draw draw(SeedOfThisRun());
  StreamingScene scene(true);
  scene.Start();
  scene.Stop();
  Judge judge;
  std::uint64_t disturbed = 0;
  std::uint64_t opened = 0;
  for (std::uint64_t number = 1; number <= Times(); ++number) {
    const Life life = judge.Next(number, draw);
    Shared<Told> told;
    const std::uint64_t call = 1 + draw.Below(400);
    if (kills) {
      Child child([&] {
        KillBeforeCall(call);
        scene.Start();
        Live(*scene, life, *told);
        scene.Stop();
        return 0;
      });
      const int ended = child.Wait();
      BOOST_TEST((ended == -SIGKILL || ended == 0));
      disturbed += ended == -SIGKILL ? 1 : 0;
    } else {
      InjectFault({.kind = draw.OneIn(3) ? Fault::Kind::kShort : Fault::Kind::kFail,
                   .call = call,
                   .error_number = draw.OneIn(2) ? EIO : ENOSPC,
                   .lasting = draw.OneIn(2)});
      auto store = StreamingStore::Open(scene.Options());
      // A mark that could not be written is removed, and without one all tokens are void.
      if (!store || !(*store)->report().void_reason.empty()) judge.MayBeVoid();
      if (store) {
        Live(**store, life, *told);
        static_cast<void>((*store)->Close());
        store->reset();
      }
      disturbed += FaultHappened() ? 1 : 0;
      StopFaults();
    }
    BOOST_TEST_CONTEXT("life " << number << ", call " << call) {
      judge.Learn(life, *told);
      opened += judge.opened();
      if (!draw.OneIn(4)) continue;
      scene.Start();
      BOOST_TEST(Must(scene->Verify()).sound);
      // The witness may be behind; it never makes a sound store doubtful.
      const std::string& why = scene->report().void_reason;
      const bool may_be_void = !kills && why.find("commit.mark is gone") != std::string::npos;
      BOOST_TEST((why.empty() || may_be_void), why);
      if (!why.empty()) judge.MayBeVoid();
      judge.CheckAll(*scene);
      scene.Stop();
      judge.Forget();
    }
  }
  BOOST_TEST(disturbed > 0U);
  BOOST_TEST(opened > 0U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_killed_server_opens_nothing_twice) { LiveOften(true); }

BOOST_AUTO_TEST_CASE(calls_that_fail_open_nothing_twice) { LiveOften(false); }

// What noticed that an older copy was put back is not forgotten by an opening that is killed.
BOOST_AUTO_TEST_CASE(a_killed_opening_of_an_older_copy_opens_nothing) {
  for (const bool has_witness : {true, false}) {
    StreamingScene scene(true);
    StreamingOptions options = scene.Options();
    if (!has_witness) options.witness = Witness::None();
    scene.Start(options);
    const std::string used = scene.Prepare(1);
    scene.Stop();
    const std::filesystem::path data = scene.directory() / "data.mdb";
    const std::string older = ReadFile(data);
    scene.Start(options);
    BOOST_TEST(!scene.Refused(used));
    scene.Prepare(2);
    scene.Stop();
    const std::string mark = ReadFile(scene.directory() / "commit.mark");
    const std::string witness = has_witness ? ReadFile(scene.witness()) : std::string();
    std::uint64_t killed = 0;
    for (std::uint64_t call = 1;; ++call) {
      WriteFile(data, older);
      WriteFile(scene.directory() / "commit.mark", mark);
      if (has_witness) WriteFile(scene.witness(), witness);
      Child child([&] {
        KillBeforeCall(call);
        scene.Start(options);
        scene.Stop();
        return 0;
      });
      const int ended = child.Wait();
      killed += ended == -SIGKILL ? 1 : 0;
      BOOST_TEST_CONTEXT("killed before call " << call << (has_witness ? ", with a witness" : "")) {
        scene.Start(options);
        BOOST_TEST((scene.Refused(used) == ErrorCode::kNotFound));
        scene.Stop();
      }
      if (ended != -SIGKILL) break;
    }
    BOOST_TEST(killed > 5U);
  }
}

// After a power cut nothing is open, whatever of the files is left.
BOOST_AUTO_TEST_CASE(a_power_cut_makes_all_void) {
  Draw draw(SeedOfThisRun());
  StreamingScene scene(true);
  const Life life{1, {}};
  const auto told = std::make_unique<Told>();
  std::vector<DiskEvent> log;
  {
    Recorder recorder(scene.scratch());
    scene.Start();
    Live(*scene, life, *told);
    scene.Stop();
    log = recorder.Take();
  }
  for (std::uint64_t i = 0; i < Times(); ++i) {
    const std::size_t cut = draw.Below(log.size() + 1);
    BOOST_TEST_CONTEXT("state " << i << ", cut at " << cut) {
      const MemoryDir place;
      PlayPowerCut(log, cut, draw, place.path());
      StreamingOptions options = scene.Options();
      options.directory = place / "streams";
      options.witness = Witness::At(place / "witness");
      FakeClock rebooted;
      rebooted.Reboot();
      rebooted.AdvanceSeconds(1'000'000);
      options.boot_clock = rebooted.AsBootClock();
      auto store = Must(StreamingStore::Open(options));
      BOOST_TEST(store->report().open == 0U);
      for (const auto& of_thread : told->prepared) {
        for (const Told::Prepared& one : of_thread) {
          if (!one.done) continue;
          BOOST_TEST(!store->Consume({one.token.data(), one.token.size()}, StreamKind::kExec));
        }
      }
      const std::string token = Must(store->Prepare(NumberedExec(7)));
      BOOST_TEST((Must(store->Consume(token, StreamKind::kExec)) == NumberedExec(7)));
      Must(store->Close());
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
