// Forgetting a namespace, which must not look at records that do not mention it, and a truth that
// lacks half of all credentials; beside bare LMDB that rewrites every record in one commit.

#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "bench/micro/rows.h"

namespace waybill::bench {

namespace {

namespace fs = std::filesystem;

constexpr char kGone[] = "gone-tenant";
// Of the large store's records, one in so many mentions the namespace.
constexpr std::size_t kOneIn = 100;

ImagePullSecret& SecretOf(ImagePulledRecord& record) {
  return record.credential_mapping.begin()->second.kubernetes_secrets.front();
}

ImagePulledRecord RecordIn(std::uint64_t index, std::size_t one_in) {
  ImagePulledRecord record = RecordOf(index);
  if (index % one_in == 0) SecretOf(record).namespace_name = kGone;
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
    FromAllCallers(records, [&](std::size_t i) {
      Must(store_->Call(PutImage{.record = RecordIn(i, one_in)}));
    });
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
  void Renew() {
    store_.Close();
    fs::remove_all(node_);
    fs::copy(kept_, node_, fs::copy_options::recursive);
    store_.Open();
  }
  NodeStore& operator*() { return *store_; }
  void Close() { store_.Close(); }
  const fs::path& directory() const { return store_.directory(); }

 private:
  fs::path node_;
  fs::path kept_;
  ScratchStore store_;
};

}  // namespace

void MeasureRevocation(const Micro& micro, std::size_t records) {
  const fs::path directory = micro.scratch.path() / fmt::format("forgetting-{}", records);
  const std::size_t mentions = (records + kOneIn - 1) / kOneIn;
  RenewedStore large(directory, records, kOneIn);
  RenewedStore small(fs::path(directory).concat("-small"), mentions, 1);
  RenewedStore all(fs::path(directory).concat("-all"), records, 1);
  large.Close();
  BareLmdb peer(large.directory(), fs::path(directory).concat(".peer"));
  const auto rewrite = [&] { peer.RewriteRecords(); };
  const auto forget = [](RenewedStore& store, std::size_t wanted) {
    const Revoke revoke{.what = {.kind = RevocationKind::kNamespace,
                                 .who = {.namespace_name = std::string(kGone)}}};
    Expect(Must((*store).Call(revoke)).records == wanted, "ForgetNamespace");
  };
  const auto row = [&](const std::string& what, const auto& bare, RenewedStore& store,
                       const auto& work) {
    const auto renew = [&] {
      small.Renew();
      store.Renew();
    };
    renew();
    micro.Row(
        what, [&](State& state) { Beside(state, bare, renew, work); }, kLong);
  };

  micro.figures.Begin(
      fmt::format("forgetting a namespace of one in {} of {} records", kOneIn, Grouped(records)),
      "x without others");
  row(
      fmt::format("ForgetNamespace: {}", Grouped(mentions)), [&] { forget(small, mentions); },
      large, [&] { forget(large, mentions); });
  micro.figures.Begin(fmt::format("forgetting very many of {} records", Grouped(records)),
                      "x rewriting all");
  ExistingCredentials truth;  // every second credential of the records
  for (std::uint64_t i = 0; i < records; i += 2) {
    ImagePulledRecord record = RecordIn(i, kOneIn);
    const ImagePullSecret& secret = SecretOf(record);
    truth.secrets.push_back({secret.namespace_name, secret.name, secret.uid});
  }
  row("Reconcile: half is gone", rewrite, large, [&] {
    const ListToken token = Must((*large).Call(BeginList())).token;
    const auto report = Must((*large).Call(RevokeMissing{.existing = truth, .token = token}));
    Expect(report.gone == records / 2, "Reconcile");
  });
  row("ForgetNamespace: all", rewrite, all, [&] { forget(all, records); });
}

}  // namespace waybill::bench
