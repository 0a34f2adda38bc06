// Forgetting a namespace, which must not look at records that do not mention it, and a truth that
// lacks half of all credentials; beside bare LMDB that rewrites every record in one commit.

#include <fmt/format.h>

#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>

#include "bench/micro/rows.h"

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
  // Every `one_in`th of its records mentions the namespace. The store and its witness lie below
  // `node`.
  RenewedStore(const fs::path& node, std::size_t records, std::size_t one_in)
      : node_(node), kept_(fs::path(node).concat(".kept")), store_(node / "store") {
    fs::create_directory(node_);
    store_.Open();
    FromAllCallers(records, [&](std::size_t i) { Must(store_->PutRecord(RecordIn(i, one_in))); });
    store_.Close();
    fs::copy(node_, kept_, fs::copy_options::recursive);
  }
  ~RenewedStore() {
    store_.Close();
    for (const fs::path& path : {kept_, node_}) fs::remove_all(path);
  }
  RenewedStore(const RenewedStore&) = delete;
  RenewedStore& operator=(const RenewedStore&) = delete;

  // Opens it.
  NodeStore& Renew() {
    store_.Close();
    fs::remove_all(node_);
    fs::copy(kept_, node_, fs::copy_options::recursive);
    store_.Open();
    const OpeningReport& report = store_->recovery_report();
    if (report.distrustful || !report.findings.empty()) {
      throw std::runtime_error("a copied store did not open clean; the figures are void");
    }
    return *store_;
  }
  void Close() { store_.Close(); }
  const fs::path& directory() const { return store_.directory(); }

 private:
  fs::path node_;
  fs::path kept_;
  ScratchStore store_;
};

void Forget(NodeStore& store, std::size_t mentions) {
  Expect(Must(store.ForgetNamespace(kGone)).records == mentions, "ForgetNamespace");
}

// Every second credential of the records exists.
ExistingCredentials HalfOf(std::size_t records) {
  ExistingCredentials truth;
  for (std::uint64_t i = 0; i < records; i += 2) {
    for (const auto& [name, entry] : RecordIn(i, kOneIn).credential_mapping) {
      for (const ImagePullSecret& one : entry.kubernetes_secrets) {
        truth.secrets.push_back({one.namespace_name, one.name, one.uid});
      }
    }
  }
  return truth;
}

// Beside `bare`, which is LMDB, or a store that has nothing else.
void MeasureRenewed(const Micro& micro, RenewedStore& store, const std::string& what,
                    const std::function<void(NodeStore&)>& work,
                    const std::function<double()>& bare) {
  const auto body = [&](State& state) {
    for (auto _ : state) {
      NodeStore& renewed = store.Renew();
      state.SetIterationTime(NanosecondsOf([&] { work(renewed); }) / 1e9);
      state.counters[kBare] = bare();
    }
  };
  micro.Row(what, body, kLong);
}

}  // namespace

void MeasureRevocation(const Micro& micro, std::size_t records) {
  const fs::path directory = micro.scratch.path() / fmt::format("forgetting-{}", records);
  const std::size_t mentions = (records + kOneIn - 1) / kOneIn;
  RenewedStore large(directory, records, kOneIn);
  RenewedStore small(fs::path(directory).concat("-small"), mentions, 1);
  RenewedStore all(fs::path(directory).concat("-all"), records, 1);
  large.Close();
  BareLmdb peer(large.directory(), fs::path(directory).concat(".peer"));
  const auto rewrite = [&] { return NanosecondsOf([&] { peer.RewriteRecords(); }); };

  micro.figures.Begin(
      fmt::format("forgetting a namespace of one in {} of {} records", kOneIn, Grouped(records)),
      "x without others");
  MeasureRenewed(
      micro, large, fmt::format("ForgetNamespace: {}", Grouped(mentions)),
      [&](NodeStore& store) { Forget(store, mentions); },
      [&] {
        NodeStore& renewed = small.Renew();
        return NanosecondsOf([&] { Forget(renewed, mentions); });
      });
  micro.figures.Begin(fmt::format("forgetting very many of {} records", Grouped(records)),
                      "x rewriting all");
  const ExistingCredentials truth = HalfOf(records);
  MeasureRenewed(
      micro, large, "Reconcile: half is gone",
      [&](NodeStore& store) {
        const auto report = Must(store.Reconcile(truth, Must(store.BeginList())));
        Expect(report.gone == records / 2, "Reconcile");
      },
      rewrite);
  MeasureRenewed(
      micro, all, "ForgetNamespace: all", [&](NodeStore& store) { Forget(store, records); },
      rewrite);
}

}  // namespace waybill::bench
