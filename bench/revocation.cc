// Forgetting a namespace, which must not look at records that do not mention it, and a truth that
// lacks half of all credentials; beside bare LMDB that rewrites every record in one commit.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/peer_lmdb.h"
#include "bench/rows.h"

namespace waybill::bench {

namespace {

namespace fs = std::filesystem;

constexpr char kGone[] = "gone-tenant";
// Of the large store's records, one in so many mentions the namespace.
constexpr std::size_t kOneIn = 100;

ImagePulledRecord RecordIn(std::uint64_t index, std::size_t one_in) {
  ImagePulledRecord record = RecordOf(index);
  if (index % one_in != 0) return record;
  for (auto& [name, entry] : record.credential_mapping) {
    for (ImagePullSecret& secret : entry.kubernetes_secrets) secret.namespace_name = kGone;
  }
  return record;
}

// A store that each turn finds as it was filled.
class RenewedStore {
 public:
  // Every `one_in`th of its records mentions the namespace.
  RenewedStore(const fs::path& directory, std::size_t records, std::size_t one_in)
      : store_(directory), kept_(directory) {
    kept_ += ".kept";
    store_.Open();
    FromAllCallers(
        records, [&](std::size_t i) { return store_->PutRecord(RecordIn(i, one_in)).has_value(); });
    store_.Close();
    fs::create_directory(kept_);
    Copy(directory, kept_ / "store");
    Copy(Witness(), kept_ / "witness");
  }
  ~RenewedStore() {
    store_.Close();
    for (const fs::path& path : {kept_, store_.directory(), Witness()}) fs::remove_all(path);
  }
  RenewedStore(const RenewedStore&) = delete;
  RenewedStore& operator=(const RenewedStore&) = delete;

  // Opens it.
  NodeStore& Renew() {
    store_.Close();
    fs::remove_all(store_.directory());
    fs::remove_all(Witness());
    Copy(kept_ / "store", store_.directory());
    Copy(kept_ / "witness", Witness());
    store_.Open();
    const RecoveryReport& report = store_->recovery_report();
    if (report.distrustful || !report.findings.empty()) {
      throw std::runtime_error("a copied store did not open clean; the figures are void");
    }
    return *store_;
  }
  void Close() { store_.Close(); }
  const fs::path& directory() const { return store_.directory(); }

 private:
  fs::path Witness() const {
    fs::path witness = store_.directory();
    witness += ".witness";
    return witness;
  }
  static void Copy(const fs::path& from, const fs::path& to) {
    fs::copy(from, to, fs::copy_options::recursive);
  }

  ScratchStore store_;
  fs::path kept_;
};

void Expect(std::uint64_t got, std::uint64_t wanted) {
  if (got != wanted) throw std::runtime_error("not all was forgotten; the figures are void");
}

double Forget(NodeStore& store, std::size_t mentions) {
  ForgetReport report;
  const double time = NanosecondsOf([&] { report = Must(store.ForgetNamespace(kGone)); });
  Expect(report.records, mentions);
  return time;
}

// Every second credential of the records exists.
double ReconcileHalf(NodeStore& store, std::size_t records) {
  ExistingCredentials truth;
  for (std::uint64_t i = 0; i < records; i += 2) {
    for (const auto& [name, entry] : RecordIn(i, kOneIn).credential_mapping) {
      for (const ImagePullSecret& one : entry.kubernetes_secrets) {
        truth.secrets.push_back({one.namespace_name, one.name, one.uid});
      }
    }
  }
  const ListToken token = Must(store.BeginList());
  ReconcileReport report;
  const double time = NanosecondsOf([&] { report = Must(store.Reconcile(truth, token)); });
  Expect(report.gone, records / 2);
  return time;
}

// The target is for 100,000 records.
Reach MostMilliseconds(std::size_t records) { return records == 100'000 ? AtMost(500) : Reach{}; }

void AddTime(const Bench& bench, const std::string& what, const std::vector<double>& times,
             Reach reach = {}) {
  const Spread spread(times);
  Spread milliseconds = spread.median / 1e6;
  milliseconds.low = spread.low / 1e6;
  milliseconds.high = spread.high / 1e6;
  bench.report.Add({what, Duration(spread.median), "", milliseconds, "ms", reach});
}

// A call that forgets what very many records have, what tidying up afterwards takes, and LMDB.
template <typename Work>
void MeasureBesideRewrite(const Bench& bench, RenewedStore& store, std::size_t records,
                          const std::string& what, Reach reach, const Work& work) {
  store.Close();
  BareLmdb peer(store.directory(), fs::path(store.directory()).concat(".peer"));
  Turns turns;
  std::vector<double> calls;
  std::vector<double> with_tidying;
  for (std::size_t i = 0; i < bench.effort.forgets; ++i) {
    NodeStore& renewed = store.Renew();
    const double call = work(renewed);
    const double tidied = call + NanosecondsOf([&] { Must(renewed.TidyUp()); });
    calls.push_back(call);
    with_tidying.push_back(tidied);
    turns.Add(call, NanosecondsOf([&] { peer.RewriteRecords(); }));
  }
  const Comparison result = turns.Result();
  bench.report.Add({what, Duration(result.ours), "bare rewrite of all " + Duration(result.theirs),
                    result.ratio, "x"});
  AddTime(bench, fmt::format("  in all, {} records", Grouped(records)), calls, reach);
  AddTime(bench, fmt::format("  with tidying up, {} records", Grouped(records)), with_tidying);
}

}  // namespace

void MeasureRevocation(const Bench& bench, std::size_t records) {
  const fs::path directory = bench.scratch.path() / fmt::format("forgetting-{}", records);
  const std::size_t mentions = (records + kOneIn - 1) / kOneIn;
  {
    RenewedStore large(directory, records, kOneIn);
    RenewedStore small(fs::path(directory).concat("-small"), mentions, 1);
    Turns turns;
    std::vector<double> calls;
    for (std::size_t i = 0; i < bench.effort.forgets; ++i) {
      calls.push_back(Forget(large.Renew(), mentions));
      turns.Add(calls.back(), Forget(small.Renew(), mentions));
    }
    const Comparison result = turns.Result();
    const std::string what =
        fmt::format("forget a namespace of {} in {} records", Grouped(mentions), Grouped(records));
    bench.report.Add({what, Duration(result.ours), "no other records " + Duration(result.theirs),
                      result.ratio, "x"});
    AddTime(bench, fmt::format("  in all, {} records", Grouped(records)), calls,
            MostMilliseconds(records));
    MeasureBesideRewrite(bench, large, records,
                         fmt::format("reconcile, half of {} gone", Grouped(records)), {},
                         [&](NodeStore& store) { return ReconcileHalf(store, records); });
  }
  RenewedStore all(fs::path(directory).concat("-all"), records, 1);
  MeasureBesideRewrite(
      bench, all, records, fmt::format("forget a namespace of all {} records", Grouped(records)),
      MostMilliseconds(records), [&](NodeStore& store) { return Forget(store, records); });
}

}  // namespace waybill::bench
