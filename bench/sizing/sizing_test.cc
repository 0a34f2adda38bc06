// The simulator: its traces, its side of files against waybill as ground truth, its counters, and
// whether the recorded model of `waybill advise` still tells the truth. Bytes and counts only,
// never times.

#define BOOST_TEST_MODULE sizing
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "bench/disk_calls.h"
#include "bench/sizing/kubelet_files.h"
#include "bench/sizing/replay.h"
#include "bench/sizing/store_side.h"
#include "bench/sizing/study.h"
#include "bench/sizing/trace.h"
#include "bindings/cli/sizing_model.h"
#include "sizing/shape_fit.h"
#include "store/base/trace.h"
#include "tests/support/memory_dir.h"

namespace waybill::bench {
namespace {

// Few images, and tenants that come and go all day with one credential: entries of 100 Secrets and
// more, collections, restarts.
cli::NodeShape RestlessNode() {
  cli::NodeShape shape = *cli::FindPreset("edge");
  shape.images = 30;
  shape.tenants = 12;
  shape.secrets_per_image = 4;
  shape.pod_starts_per_day = 3000;
  shape.versions_per_day = 30;
  shape.shared_percent = 70;
  shape.turnover_percent = 4000;
  shape.rotations_per_year = 1000;
  shape.failed_pulls_percent = 20;
  shape.lists_per_day = 24;
  shape.restarts_per_year = 1000;
  return shape;
}

// Within 10 %. Both may be 0.
void CheckNear(double found, double recorded, const std::string& what) {
  BOOST_TEST_CONTEXT(what << ": found " << found << ", recorded " << recorded
                          << "; if the change is intended: ./dev bench sizing") {
    BOOST_TEST(std::abs(found - recorded) <= 0.1 * std::abs(recorded));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_trace_depends_on_its_seed_alone) {
  const cli::NodeShape& shape = *cli::FindPreset("default");
  const std::string text = TraceText(shape, 1, 2);
  BOOST_TEST((text == TraceText(shape, 1, 2)));
  BOOST_TEST((text != TraceText(shape, 2, 2)));
  BOOST_TEST((text != TraceText(shape, 1, 1)));
}

// Every decision, and at the end every record to the byte, against an implementation of its own.
BOOST_AUTO_TEST_CASE(under_kubelet_rules_both_sides_answer_and_hold_the_same) {
  for (const std::size_t cache : {5, 500}) {
    const testing::MemoryDir directory;
    ReplayOptions options{.directory = directory.path(), .seed = cache, .days = 1};
    options.rules = Mode::kKubelet;
    options.keeps_records = true;
    const ReplayResult result = Replay(RestlessNode(), options);
    BOOST_TEST(result.differences == 0, result.first_difference);
    options.cache = cache;
    const ReplayResult files = Replay(RestlessNode(), options);
    BOOST_TEST(files.differences == 0, files.first_difference);
    BOOST_TEST(result.records == files.records, boost::test_tools::per_element());
    // The trace asks what it is made to ask.
    BOOST_TEST(result.decisions > 5000);
    BOOST_TEST(result.allowed < result.decisions);
    BOOST_TEST(result.end.most_secrets >= 100);
    BOOST_TEST(result.collections.count > 0);
    BOOST_TEST(result.failed_pulls.count > 0);
    BOOST_TEST(result.restarts.count > 0);
    BOOST_TEST(files.decisions == result.decisions);
    BOOST_TEST(files.resident_bytes > 0);
    BOOST_TEST((cache == 5 ? files.hit_rate < 1 : files.hit_rate == 1));
  }
}

BOOST_AUTO_TEST_CASE(closed_rules_give_the_answers_of_the_trace) {
  const testing::MemoryDir directory;
  ReplayOptions options{.directory = directory.path(), .seed = 3, .days = 1};
  const ReplayResult result = Replay(RestlessNode(), options);
  BOOST_TEST(result.differences == 0, result.first_difference);
  BOOST_TEST(result.write_backs.count > 0);
}

BOOST_AUTO_TEST_CASE(a_cache_forgets_what_was_not_used_and_then_knows_no_absence) {
  const auto named = [](const char* ref) {
    return std::make_shared<const ImagePulledRecord>(ImagePulledRecord{.image_ref = ref});
  };
  RecordCache cache(2);
  cache.Put(named("a"));
  cache.Put(named("b"));
  BOOST_TEST(cache.holds_all());
  BOOST_TEST(cache.Get("a")->image_ref == "a");
  cache.Put(named("c"));
  BOOST_TEST(!cache.Get("b"));
  BOOST_TEST(!cache.holds_all());
  BOOST_TEST(cache.Get("a")->image_ref == "a");
  cache.Remove("a");
  BOOST_TEST(!cache.Get("a"));
  BOOST_TEST(cache.Get("c")->image_ref == "c");
}

BOOST_AUTO_TEST_CASE(flushes_and_bytes_are_counted) {
  const testing::MemoryDir directory;
  const int plain = open((directory.path() / "a").c_str(), O_CREAT | O_RDWR, 0600);
  const int synced = open((directory.path() / "b").c_str(), O_CREAT | O_RDWR | O_DSYNC, 0600);
  BOOST_TEST_REQUIRE(plain >= 0);
  BOOST_TEST_REQUIRE(synced >= 0);
  char byte = 'w';
  const iovec part{&byte, 1};
  const auto counted = [](const char* what, std::uint64_t flushes, std::uint64_t bytes,
                          const auto& call) {
    const DiskCalls before = DiskCallsSoFar();
    BOOST_TEST(call() >= 0, what);
    const DiskCalls made = DiskCallsSoFar() - before;
    BOOST_TEST(made.flushes == flushes, what);
    BOOST_TEST(made.bytes == bytes, what);
    BOOST_TEST(made.block_bytes == 4096 * bytes, what);
  };
  counted("write", 0, 1, [&] { return write(plain, &byte, 1); });
  counted("pwrite", 0, 1, [&] { return pwrite(plain, &byte, 1, 0); });
  counted("fsync", 1, 0, [&] { return fsync(plain); });
  counted("fdatasync", 1, 0, [&] { return fdatasync(plain); });
  counted("write to O_DSYNC", 1, 1, [&] { return write(synced, &byte, 1); });
  counted("pwrite to O_DSYNC", 1, 1, [&] { return pwrite(synced, &byte, 1, 0); });
  counted("pwritev to O_DSYNC", 1, 1, [&] { return pwritev(synced, &part, 1, 0); });
  void* const map = mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, plain, 0);
  counted("msync", 1, 0, [&] { return msync(map, 1, MS_SYNC); });
  munmap(map, 1);
  close(plain);
  close(synced);
}

BOOST_AUTO_TEST_CASE(the_recorded_model_tells_the_size_of_records) {
  const testing::MemoryDir directory;
  const cli::SizingModel& model = cli::RecordedModel();
  const double empty = MeasureStore(directory.path(), 0, 0).bytes;
  CheckNear(empty, model.empty_bytes, "an empty store");
  for (const std::uint32_t secrets : {1, 8}) {
    const double bytes = (MeasureStore(directory.path(), 1000, secrets).bytes - empty) / 1000;
    CheckNear(bytes, cli::BytesOfRecord(model, secrets),
              "a record of " + std::to_string(secrets) + " Secrets");
  }
}

// The opening can't know whether the commit's pages reached the disk, and writes all pages again.
BOOST_AUTO_TEST_CASE(what_recovers_was_killed_within_a_commit) {
  const testing::MemoryDir directory;
  NodeState node({});
  StoreSide side(directory.path() / "store", Mode::kStrict, node);
  for (std::uint32_t i = 0; i < 100; ++i) {
    node.Add({i, i});
    side.BeginPull({i, i});
    side.EndPull({i, i}, {});
  }
  side.Restart();  // learns what the images are called
  const auto written_by = [](const auto& opening) {
    const DiskCalls before = DiskCallsSoFar();
    BOOST_TEST(opening() > 0);
    return (DiskCallsSoFar() - before).bytes;
  };
  BOOST_TEST(written_by([&] { return side.Restart(); }) < side.UsedBytes());
  BOOST_TEST(written_by([&] { return side.Recover(); }) > side.UsedBytes());
  // The store itself goes on, with the pulls that Recover began.
  BOOST_TEST(side.store().GetStatistics().value().intents == 2);
}

BOOST_AUTO_TEST_CASE(the_recorded_model_tells_what_a_node_writes) {
  const testing::MemoryDir directory;
  const cli::NodeShape& shape = *cli::FindPreset("edge");
  const cli::PresetFigures* recorded = cli::FindFigures(cli::RecordedModel(), shape.name);
  BOOST_TEST_REQUIRE(recorded != nullptr);
  ReplayOptions options{.directory = directory.path(), .seed = 1, .days = recorded->days};
  Study study{.shape = shape, .days = recorded->days};
  study.store = Replay(shape, options);
  const cli::PresetFigures found = FiguresOf(study, {});
  CheckNear(found.decisions_per_day, recorded->decisions_per_day, "decisions a day");
  using Figures = cli::PresetFigures;
  const std::pair<cli::OperationFigures Figures::*, std::string> operations[] = {
      {&Figures::pulls, "pulls"}, {&Figures::write_backs, "write-backs"}};
  for (const auto& [operation, what] : operations) {
    const cli::OperationFigures& one = found.*operation;
    const cli::OperationFigures& before = recorded->*operation;
    CheckNear(one.per_day, before.per_day, what + " a day");
    CheckNear(one.flushes, before.flushes, "flushes of " + what);
    CheckNear(one.bytes, before.bytes, "bytes of " + what);
  }
  // Few lists commit anything, so a single one more is a large part of them.
  const double lists = static_cast<double>(study.store.lists.count);
  BOOST_TEST(std::abs(found.lists.flushes - recorded->lists.flushes) * lists <= 3);
  BOOST_TEST(std::abs(found.lists.bytes - recorded->lists.bytes) * lists <= 100'000);
}

BOOST_AUTO_TEST_CASE(advice_follows_the_question) {
  const cli::SizingModel& model = cli::RecordedModel();
  for (const cli::PresetFigures& figures : model.presets) {
    const cli::NodeShape& shape = *cli::FindPreset(figures.name);
    const cli::SizingAdvice as_is = Advise(model, figures, {.shape = shape});
    cli::NodeShape larger = shape;
    larger.images *= 10;
    const cli::SizingAdvice more = Advise(model, figures, {.shape = larger});
    BOOST_TEST(more.disk_bytes > 5 * as_is.disk_bytes);
    BOOST_TEST(more.map_bytes > more.disk_bytes + more.reserve_bytes);
    BOOST_TEST(more.start_seconds > as_is.start_seconds);
    BOOST_TEST(more.recovery_seconds > as_is.recovery_seconds);
    BOOST_TEST(as_is.recovery_seconds >= as_is.start_seconds);
    const cli::SizingAdvice idle = Advise(model, figures, {.shape = shape, .pulls_per_day = 0});
    BOOST_TEST(idle.flushes_per_day < as_is.flushes_per_day);
    // No cache holds more than all, and none pays on a node that decides nothing.
    cli::NodeShape still = shape;
    still.pod_starts_per_day = 0;
    BOOST_TEST(!Advise(model, figures, {.shape = still}).cache_pays);
    BOOST_TEST(as_is.cache.hit_rate <= 1);
  }
}

// What is fitted to a simulated node's trace is the shape that it was made from, as near as a month
// can tell: of what happens some times a year it knows little.
BOOST_AUTO_TEST_CASE(the_shape_of_a_node_is_found_again_in_its_trace) {
  struct Bound {
    std::string_view flag;
    double part;
    double plus;
  };
  constexpr Bound kBounds[] = {{"--images", 0.05, 0},
                               {"--zipf-skew", 0, 0.03},
                               {"--public-percent", 0, 5},
                               {"--secrets-per-image", 0.1, 0},
                               {"--preloaded", 0, 0},
                               {"--pod-starts-per-day", 0.01, 0},
                               {"--versions-per-day", 0.15, 0},
                               {"--fixed-percent", 0, 5},
                               {"--lists-per-day", 0.01, 0},
                               {"--tenants", 0.1, 0},
                               {"--shared-percent", 0, 10},
                               {"--turnover-percent", 0.2, 1},
                               {"--failed-pulls-percent", 0, 1},
                               {"--rotations-per-year", 0.5, 0},
                               {"--restarts-per-year", 0, 30}};
  for (const std::string_view preset : {"default", "ci"}) {
    const cli::NodeShape& shape = *cli::FindPreset(preset);
    auto reader = TraceReader::OfText(TraceText(shape, 1, preset == "ci" ? 12 : 30));
    BOOST_REQUIRE(reader.has_value());
    const auto history = sizing::ReadHistory(*reader);
    BOOST_REQUIRE(history.has_value());
    const auto fitted = sizing::FitShape(*history, shape.containers_per_pod);
    BOOST_TEST(fitted.size() == std::size(kBounds));
    for (const Bound& bound : kBounds) {
      const auto found = std::find_if(fitted.begin(), fitted.end(),
                                      [&](const auto& one) { return one.flag == bound.flag; });
      BOOST_REQUIRE(found != fitted.end());
      const auto field =
          std::find_if(cli::kShapeFields.begin(), cli::kShapeFields.end(),
                       [&](const cli::ShapeField& one) { return one.flag == bound.flag; });
      const double truth = shape.*field->value;
      BOOST_TEST(std::abs(found->value - truth) <= truth * bound.part + bound.plus,
                 preset << " " << bound.flag << ": " << found->value << ", made from " << truth
                        << "; " << found->from);
    }
  }
}

// The trace that an owner really writes of a simulated node, beside the one that is made of it.
BOOST_AUTO_TEST_CASE(an_owners_trace_tells_what_happened) {
  const testing::MemoryDir directory;
  ReplayOptions options{.directory = directory.path(), .seed = 1, .days = 1};
  options.trace = directory.path() / "node.trace";
  const cli::NodeShape& shape = *cli::FindPreset("default");
  const ReplayResult result = Replay(shape, options);
  BOOST_TEST(result.differences == 0, result.first_difference);
  auto written = TraceReader::Open(options.trace.string());
  BOOST_REQUIRE(written.has_value());
  const auto found = sizing::ReadHistory(*written);
  BOOST_REQUIRE(found.has_value());
  auto made = TraceReader::OfText(TraceText(shape, 1, 1));
  BOOST_REQUIRE(made.has_value());
  const auto truth = sizing::ReadHistory(*made);
  BOOST_REQUIRE(truth.has_value());
  BOOST_TEST(found->source == "owner");
  BOOST_TEST(found->uses == truth->uses);
  BOOST_TEST(found->must_pull == truth->must_pull);
  BOOST_TEST(found->must_prove == truth->must_prove);
  BOOST_TEST(found->images_at_once == truth->images_at_once);
  BOOST_TEST(found->requests.bytes.size() == truth->requests.bytes.size());
  // The images that it begins with are pulled there, too.
  BOOST_TEST(found->pulls > truth->pulls);
  for (const Reason reason : {Reason::kImageAbsent, Reason::kNoCredentialMatches,
                              Reason::kNodePodsAccessible, Reason::kPolicyKnownPreloaded}) {
    const std::string name(ReasonName(reason));
    BOOST_TEST(found->reasons.at(name) == truth->reasons.at(name), name);
  }
  // Whose the credentials of a pull were an owner does not say of each.
  BOOST_TEST(10 * found->write_backs <= 12 * truth->write_backs);
  BOOST_TEST(10 * found->write_backs >= 8 * truth->write_backs);
  for (const sizing::Fitted& one : sizing::FitShape(*truth, shape.containers_per_pod)) {
    // Of these the two know different things: what was before, and lists that change nothing.
    if (one.flag == "--lists-per-day" || one.flag == "--restarts-per-year") continue;
    for (const sizing::Fitted& other : sizing::FitShape(*found, shape.containers_per_pod)) {
      if (other.flag != one.flag) continue;
      BOOST_TEST(std::abs(other.value - one.value) <= 0.01 * one.value,
                 one.flag << ": " << other.value << ", and it was " << one.value);
    }
  }
}

}  // namespace waybill::bench
