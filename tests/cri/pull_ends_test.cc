// When a pull that ended can bring nothing any more: by hand, and in worlds that are drawn.
// WAYBILL_WORLDS: how many. WAYBILL_SEED: play one again.

#include "runtime/cri/pull_ends.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/draw.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(pull_ends)

namespace {

using cri::ContainerdImage;
using cri::NotShown;
using cri::PullEnds;
using cri::PullLook;
using cri::ServerProcess;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kMillisecond = 1'000'000;

// Looks of a tenth of a second at a containerd that started at 10 s.
class Looks {
 public:
  void At(std::int64_t seconds, std::vector<std::string> leases) {
    ends.Saw({.began = seconds * kSecond,
              .ended = seconds * kSecond + 100 * kMillisecond,
              .process = process,
              .leases = std::move(leases)});
  }
  bool Quiet(std::int64_t ended) const { return ends.Quiet(ended * kSecond); }

  PullEnds ends;
  ServerProcess process{.pid = 7, .started = 10 * kSecond};
};

}  // namespace

// A look, and of which ends all is over then, and of which not.
struct Row {
  std::int64_t at = 0;
  std::vector<std::string> leases = {};
  std::vector<std::int64_t> quiet = {};
  std::vector<std::int64_t> not_quiet = {};
};

const std::pair<const char*, std::vector<Row>> kHistories[] = {
    // Ten seconds from the first look's end to the last one's beginning.
    {"without leases",
     {{99}, {101}, {109, {}, {}, {100}}, {111, {}, {}, {100}}, {112, {}, {100, 101}, {102}}}},
    // What a pull does after its lease went: further names.
    {"a lease that goes",
     {{101, {"a"}},
      {112, {"a"}, {}, {100}},
      {113, {}, {}, {100}},
      {122, {}, {}, {100}},
      {124, {}, {100}}}},
    {"another's that stays", {{50, {"stuck"}}, {101, {"stuck"}}, {112, {"stuck"}, {}, {100}}}},
    {"one that may have come right after the first look", {{101}, {112, {"young"}, {}, {100}}}},
    {"one that came long after it",
     {{101}, {108}, {109}, {119}, {120, {"young"}, {100, 108}, {109}}}},
    {"one that comes late",
     {{101}, {105, {"late"}}, {112, {"late"}, {}, {100}}, {113}, {124, {}, {100}}}},
};

BOOST_AUTO_TEST_CASE(histories) {
  BOOST_TEST(!Looks().Quiet(100));
  for (const auto& [what, rows] : kHistories) {
    Looks looks;
    for (const Row& row : rows) {
      looks.At(row.at, row.leases);
      BOOST_TEST_CONTEXT(what << " at " << row.at) {
        for (const std::int64_t ended : row.quiet) BOOST_TEST(looks.Quiet(ended));
        for (const std::int64_t ended : row.not_quiet) BOOST_TEST(!looks.Quiet(ended));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(another_process) {
  Looks looks;
  looks.At(101, {"a"});
  looks.process = {.pid = 8, .started = 103 * kSecond};
  looks.At(104, {"a", "unseen"});
  BOOST_TEST(looks.Quiet(102));
  BOOST_TEST(!looks.Quiet(103));
  looks.ends.Failed();
  BOOST_TEST(!looks.Quiet(102));
  looks.At(105, {"a", "unseen"});
  BOOST_TEST(looks.Quiet(102));
  // What the process before left is nobody's; of what was not seen then that is not known.
  looks.At(116, {"a", "unseen"});
  BOOST_TEST(!looks.Quiet(103));
  looks.At(117, {"a"});
  looks.At(128, {"a"});
  BOOST_TEST(looks.Quiet(103));
}

BOOST_AUTO_TEST_CASE(errors) {
  Looks looks;
  looks.At(101, {});
  looks.At(112, {});
  BOOST_TEST(looks.Quiet(100));
  looks.ends.Failed();
  BOOST_TEST(!looks.Quiet(100));
  looks.At(113, {});
  BOOST_TEST(!looks.Quiet(100));
  looks.At(124, {});
  BOOST_TEST(looks.Quiet(100));
  // Looks that overlap, or end before they began.
  looks.At(124, {});
  BOOST_TEST(!looks.Quiet(100));
  looks.At(135, {});
  looks.At(146, {});
  BOOST_TEST(looks.Quiet(100));
  looks.ends.Saw({.began = 150 * kSecond, .ended = 149 * kSecond, .process = looks.process});
  BOOST_TEST(!looks.Quiet(100));
}

BOOST_AUTO_TEST_CASE(many_looks) {
  Looks looks;
  const auto count = static_cast<std::int64_t>(PullEnds::kMaxLooks);
  for (std::int64_t at = 100; at < 100 + 3 * count; ++at) {
    looks.At(at, {std::to_string(at / 20)});
  }
  BOOST_TEST(looks.Quiet(50));
  BOOST_TEST(looks.Quiet(100 + 3 * count - 60));
  BOOST_TEST(!looks.Quiet(100 + 3 * count - 5));
}

// --- NotShown

BOOST_AUTO_TEST_CASE(names_that_cri_does_not_show) {
  const std::string config = "sha256:" + std::string(64, 'c');
  const std::string manifest = "sha256:" + std::string(64, 'd');
  const std::string moved = "sha256:" + std::string(64, 'e');
  std::vector<ContainerdImage> containerd = {
      {.name = config, .target = manifest},
      {.name = "r.example/app:v1", .target = manifest},
      {.name = "r.example/app@" + manifest, .target = manifest},
  };
  std::vector<ListedImage> cri = {{.id = config,
                                   .repo_tags = {"r.example/app:v1"},
                                   .repo_digests = {"r.example/app@" + manifest}}};
  BOOST_TEST(NotShown(containerd, cri).empty());
  BOOST_TEST(NotShown({}, cri).empty());
  BOOST_TEST(NotShown(containerd, {}).size() == 3U);
  // CRI still has the image that the tag named before.
  containerd[1].target = moved;
  BOOST_TEST((NotShown(containerd, cri) == std::vector<std::string>{"r.example/app:v1"}));
  // The digest is enough, while the name of the ID is still missing.
  containerd[1].target = manifest;
  containerd.erase(containerd.begin());
  BOOST_TEST(NotShown(containerd, cri).empty());
  cri[0].repo_digests.clear();
  BOOST_TEST(NotShown(containerd, cri).size() == 2U);
}

// --- drawn worlds

namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

struct DrawnLease {
  std::string id = {};
  std::int64_t from = 0;
  std::int64_t until = kNever;
};

struct DrawnPull {
  std::int64_t began = 0;
  std::int64_t ended = 0;         // as its client sees it
  std::int64_t last_record = -1;  // -1: it brings nothing
};

// A containerd that is killed now and then, and what runs on it.
class World {
 public:
  explicit World(Draw& draw) : draw_(draw) {
    std::int64_t at = 1 + Milliseconds(5'000);
    for (;;) {
      processes_.push_back({at, draw_.OneIn(2) ? kNever : at + Milliseconds(120'000)});
      if (processes_.back().ended == kNever || processes_.size() == 4) break;
      at = processes_.back().ended + 1 + Milliseconds(draw_.OneIn(2) ? 50 : 10'000);
    }
    for (std::size_t i = 0; i < 1 + draw_.Below(12); ++i) AddPull();
    // What a client left behind, or holds.
    for (std::size_t i = 0; i < draw_.Below(3); ++i) {
      const std::int64_t from = Milliseconds(200'000);
      AddLease(from, draw_.OneIn(2) ? kNever : from + Milliseconds(60'000));
    }
  }

  const std::vector<DrawnPull>& pulls() const { return pulls_; }

  // nullopt: none serves. Up to a clock tick too early, as /proc has it.
  std::optional<ServerProcess> ProcessAt(std::int64_t at) const {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      if (at < processes_[i].started || at >= processes_[i].ended) continue;
      constexpr std::int64_t kTick = 10 * kMillisecond;
      return ServerProcess{.pid = 100 + static_cast<std::int64_t>(i),
                           .started = processes_[i].started / kTick * kTick};
    }
    return std::nullopt;
  }
  std::vector<std::string> LeasesAt(std::int64_t at) const {
    std::vector<std::string> ids;
    for (const DrawnLease& lease : leases_) {
      if (lease.from <= at && at < lease.until) ids.push_back(lease.id);
    }
    return ids;
  }

 private:
  struct Life {
    std::int64_t started = 0;
    std::int64_t ended = kNever;
  };

  std::int64_t Milliseconds(std::size_t below) {
    return static_cast<std::int64_t>(draw_.Below(below)) * kMillisecond;
  }
  void AddLease(std::int64_t from, std::int64_t until) {
    leases_.push_back({std::to_string(leases_.size()), from, until});
  }

  void AddPull() {
    DrawnPull pull;
    pull.began = Milliseconds(200'000);
    pull.ended = pull.began + Milliseconds(draw_.OneIn(2) ? 300 : 30'000);
    const auto life = std::find_if(processes_.begin(), processes_.end(),
                                   [&](const Life& one) { return one.ended > pull.began; });
    if (life != processes_.end()) Run(pull, *life);
    pulls_.push_back(pull);
  }

  void Run(DrawnPull& pull, const Life& life) {
    // The client gave up before anybody heard of it.
    const std::int64_t heard = std::max(pull.began, life.started);
    if (heard > pull.ended) return;
    std::int64_t leased = heard + Milliseconds(draw_.OneIn(4) ? 9'000 : 50);
    std::int64_t recorded = leased + Milliseconds(draw_.OneIn(3) ? 60'000 : 500);
    std::int64_t released = recorded + Milliseconds(draw_.OneIn(3) ? 5'000 : 20);
    // More names of the same image.
    std::int64_t named = released + Milliseconds(draw_.OneIn(3) ? 9'000 : 20);
    if (leased > pull.ended) {
      // It was cancelled before, so it hardly comes this far; and if it does, not for long.
      if (named > pull.ended + 9 * kSecond) recorded = named = -1;
    } else if (draw_.OneIn(2) && recorded > pull.ended) {
      recorded = named = -1;
    }
    if (leased >= life.ended) return;
    // A lease outlives the process.
    AddLease(leased, released < life.ended ? released : kNever);
    for (const std::int64_t record : {recorded, named}) {
      if (record < life.ended) pull.last_record = std::max(pull.last_record, record);
    }
  }

  Draw& draw_;
  std::vector<Life> processes_;
  std::vector<DrawnPull> pulls_;
  std::vector<DrawnLease> leases_;
};

struct Figures {
  std::size_t asked = 0;
  std::size_t quiet = 0;
  std::size_t late = 0;  // pulls that recorded something after their end
};

// What was wrongly called quiet. Empty: nothing.
std::string Play(Draw& draw, Figures& figures) {
  const World world(draw);
  PullEnds ends;
  std::vector<std::int64_t> looked;  // when looks of this PullEnds ended
  std::int64_t now = 0;
  const auto milliseconds = [&](std::size_t below) {
    return static_cast<std::int64_t>(draw.Below(below)) * kMillisecond;
  };
  const std::size_t usual = draw.OneIn(2) ? 2'000 : 20'000;
  while (now < 320 * kSecond) {
    now += 1 + milliseconds(usual);
    if (draw.OneIn(60)) ends = PullEnds();
    const std::int64_t began = now;
    const std::int64_t listed = began + milliseconds(200);
    now = listed + milliseconds(200);
    const auto before = world.ProcessAt(began);
    if (!before || before != world.ProcessAt(now) || draw.OneIn(40)) {
      ends.Failed();
      continue;
    }
    ends.Saw({.began = began, .ended = now, .process = *before, .leases = world.LeasesAt(listed)});
    for (const DrawnPull& pull : world.pulls()) {
      if (pull.ended > now) continue;
      // What is known of the pull may be too wide.
      const std::int64_t to = pull.ended + milliseconds(draw.OneIn(2) ? 1 : 5'000);
      ++figures.asked;
      if (!ends.Quiet(to)) continue;
      ++figures.quiet;
      if (pull.last_record > now) {
        return "a pull that ended at " + std::to_string(pull.ended) + " was quiet at " +
               std::to_string(now) + ", and recorded something at " +
               std::to_string(pull.last_record);
      }
    }
  }
  for (const DrawnPull& pull : world.pulls()) figures.late += pull.last_record > pull.ended;
  return "";
}

}  // namespace

BOOST_AUTO_TEST_CASE(drawn_worlds) {
  const bool again = NumberFromEnv("WAYBILL_SEED", 0) != 0;
  const std::uint64_t seed = SeedOfThisRun();
  const std::uint64_t worlds = again ? 1 : NumberFromEnv("WAYBILL_WORLDS", 300);
  Figures figures;
  for (std::uint64_t i = 0; i < worlds; ++i) {
    Draw draw(seed + i);
    const std::string wrong = Play(draw, figures);
    if (!wrong.empty()) BOOST_FAIL("WAYBILL_SEED=" << seed + i << ": " << wrong);
  }
  BOOST_TEST_MESSAGE(figures.asked << " questions, quiet " << figures.quiet
                                   << "; pulls that came late: " << figures.late);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
