// Migrates down and up, backup and check included, beside bare LMDB that rewrites as many values in
// one transaction. Going down rewrites every value; going up reads them.

#include <fmt/format.h>

#include <stdexcept>

#include "bench/measure.h"
#include "bench/peer_lmdb.h"
#include "bench/rows.h"
#include "waybill/maintenance.h"

namespace waybill::bench {

namespace {

void MigrateTo(const std::filesystem::path& directory, std::uint32_t version) {
  const auto report = Migrate({.directory = directory, .to = version});
  if (!report) throw std::runtime_error(report.error().ToString());
  if (report->steps.empty()) throw std::runtime_error("nothing was migrated; the figures are void");
}

}  // namespace

void MeasureMigrations(const Bench& bench, ScratchStore& store, std::size_t records) {
  store.Close();
  BareLmdb peer(store.directory(), bench.scratch.path() / fmt::format("migrating-{}", records));
  Turns down;
  Turns up;
  for (std::size_t i = 0; i < bench.effort.migrations; ++i) {
    const double bare = NanosecondsOf([&] {
      if (peer.RewriteRecords() < records) throw std::runtime_error("bare LMDB lost records");
    });
    down.Add(NanosecondsOf([&] { MigrateTo(store.directory(), 1); }), bare);
    up.Add(NanosecondsOf([&] { MigrateTo(store.directory(), kNewestSchema); }), bare);
  }
  // The target is for 100,000 records.
  const Reach reach = records == 100'000 ? AtMost(1500) : Reach{};
  for (const auto& [way, turns] : {std::pair("down to", &down), std::pair("up from", &up)}) {
    const Comparison result = turns->Result();
    bench.report.Add({fmt::format("migrate {} version 1, {} records", way, Grouped(records)),
                      Duration(result.ours), "bare rewriting " + Duration(result.theirs),
                      result.ratio, "x"});
    bench.report.Add({fmt::format("  in all, {} version 1, {} records", way, Grouped(records)),
                      Duration(result.ours), "backup and check included", result.ours / 1e6, "ms",
                      reach});
  }
  store.Open();
}

}  // namespace waybill::bench
