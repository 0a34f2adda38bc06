// Durable writes, in turn with bare commits of values of the same size.

#include <fmt/format.h>

#include <vector>

#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/peer_lmdb.h"
#include "bench/rows.h"

namespace waybill::bench {

namespace {

// The kubelet's pull at 2,000 records, without a sync, recorded on another machine; see README.md.
constexpr double kKubeletPullNs = 3'500'000;

// Indices of images that no store has.
constexpr std::uint64_t kNewIntents = 10'000'000;
constexpr std::uint64_t kNewPulls = 20'000'000;

}  // namespace

void MeasureIntents(const Bench& bench, ScratchStore& store, std::size_t records) {
  store.Close();
  BareLmdb peer(store.directory(), bench.scratch.path() / fmt::format("intents-{}", records));
  store.Open();

  Turns alone;
  for (std::size_t i = 0; i < bench.effort.commits; ++i) {
    const std::string image = ImageOf(kNewIntents + i);
    const double mine = NanosecondsOf([&] { Must(store->RecordPullIntent({.image = image})); });
    const double bare = NanosecondsOf([&] { peer.PutIntent(image); });
    alone.Add(mine, bare);
    Must(store->RecordImagePullFailed({.image = image}));
    peer.DeleteIntent(image);
  }
  const Comparison one = alone.Result();
  bench.report.Add({fmt::format("durable intent, alone, {} records", Grouped(records)),
                    Duration(one.ours), "bare commit " + Duration(one.theirs), one.ratio, "x",
                    AtMost(1.15)});

  std::vector<std::string> images;
  const std::size_t together = kCallers * (bench.effort.quick ? 2 : 32);
  for (std::size_t i = 0; i < together; ++i) images.push_back(ImageOf(kNewIntents + i));
  Turns rates;
  for (std::size_t turn = 0; turn < bench.effort.group_turns; ++turn) {
    const double all = NanosecondsOf([&] {
      FromAllCallers(together, [&](std::size_t i) {
        return store->RecordPullIntent({.image = images[i]}).has_value();
      });
    });
    FromAllCallers(together, [&](std::size_t i) {
      return store->RecordImagePullFailed({.image = images[i]}).has_value();
    });
    const std::size_t singles = kCallers / 2;
    const double single = NanosecondsOf([&] {
      for (std::size_t i = 0; i < singles; ++i) Must(store->RecordPullIntent({.image = images[i]}));
    });
    for (std::size_t i = 0; i < singles; ++i) {
      Must(store->RecordImagePullFailed({.image = images[i]}));
    }
    rates.Add(static_cast<double>(together) / all, static_cast<double>(singles) / single);
  }
  const Comparison group = rates.Result();
  bench.report.Add(
      {fmt::format("durable intents, {} callers, {} records", kCallers, Grouped(records)),
       fmt::format("{:.0f} /s", group.ours * 1e9),
       fmt::format("1 caller {:.0f} /s", group.theirs * 1e9), group.ratio, "x", AtLeast(15)});
}

double MeasurePulls(const Bench& bench, ScratchStore& store, std::size_t records) {
  store.Close();
  BareLmdb peer(store.directory(), bench.scratch.path() / fmt::format("pulls-{}", records));
  store.Open();

  Turns turns;
  for (std::size_t i = 0; i < bench.effort.commits; ++i) {
    const std::string image = ImageOf(kNewPulls + i);
    const std::string image_ref = ImageRefOf(kNewPulls + i);
    const ImagePullCredentials credentials = CredentialsOf(kNewPulls + i);
    const double mine = NanosecondsOf([&] {
      Must(store->RecordPullIntent({.image = image}));
      Must(store->RecordImagePulled({.image = image, .image_ref = image_ref}, credentials));
    });
    const double bare = NanosecondsOf([&] {
      peer.PutIntent(image);
      peer.PutRecord(image, image_ref);
    });
    turns.Add(mine, bare);
  }
  const Comparison result = turns.Result();
  bench.report.Add({fmt::format("new pull, durable, {} records", Grouped(records)),
                    Duration(result.ours), "2 bare commits " + Duration(result.theirs),
                    result.ratio, "x", AtMost(1.2)});
  if (records < 100'000) {
    bench.report.Add({fmt::format("  times faster than the kubelet, {} records", Grouped(records)),
                      Duration(result.ours), "undurable, recorded: " + Duration(kKubeletPullNs),
                      kKubeletPullNs / result.ours, "x"});
  }
  return result.ours;
}

}  // namespace waybill::bench
