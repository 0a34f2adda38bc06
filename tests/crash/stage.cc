#include "tests/crash/stage.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <iterator>
#include <set>

#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/userns_file.h"
#include "store/base/options.h"
#include "tests/support/damage.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/model.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill::testing {

namespace {

namespace fs = std::filesystem;

void Copy(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
  // An import tells by them what was written since.
  for (const auto& entry : fs::recursive_directory_iterator(from)) {
    fs::last_write_time(to / entry.path().lexically_relative(from), entry.last_write_time());
  }
}

std::string Everything(const NodeStore& store, const fs::path& directory) {
  std::set<std::string> lines;
  for (const auto& record : Must(store.ListRecords())) lines.insert(DescribeRecord(record));
  for (const UnresolvedPull& pull : Must(store.ListOpenPulls())) {
    // One that runs has ended when the store is opened again.
    lines.insert("pull " + (pull.anything ? "of anything" : pull.image) +
                 (pull.state == PullState::kFailed ? " failed" : " unknown") +
                 (pull.several ? ", several" : ""));
  }
  for (const PreloadedImage& entry : Must(store.ListLedger())) {
    lines.insert("preloaded " + entry.image_ref + " by " + entry.source);
  }
  for (const auto& entry : Must(store.ListQuarantine())) {
    lines.insert("quarantine " + entry.sha256 + " " + entry.source);
  }
  for (const auto& pod : Must(store.ListUserNamespaces())) {
    lines.insert("pod " + pod.pod_uid + " " + std::to_string(pod.host_id));
  }
  for (const auto& pod : Must(store.ListHeldPods())) lines.insert("held " + pod.pod_uid);
  const TrustState trust = Must(store.GetTrust());
  std::string text = trust.distrustful ? "distrustful " : "trusting ";
  // An import leaves entries only if it was cut short.
  text += std::to_string(std::count_if(trust.journal.begin(), trust.journal.end(),
                                       [](const DegradedEvent& event) {
                                         return event.kind != DegradedKind::kImportUnfinished;
                                       })) +
          "\n";
  for (const auto& line : lines) text += line + "\n";
  if (fs::exists(directory / "quarantine")) {
    const fs::directory_iterator aside(directory / "quarantine");
    text += std::to_string(std::distance(begin(aside), end(aside))) + " databases set aside\n";
  }
  return text;
}

}  // namespace

void Stage::Keep() const { Copy(now(), scratch_ / "before"); }
void Stage::PutBack() const { Copy(scratch_ / "before", now()); }

NodeStoreOptions Stage::Options(Mode rules) const {
  NodeStoreOptions options = OptionsIn(now(), rules);
  options.map_bytes = std::uint64_t{512} << 20U;
  if (fs::exists(kubelet())) options.kubelet_directory = kubelet();
  return options;
}

std::string Ref(std::size_t i) { return "ref number " + std::to_string(100 + i); }
std::string Image(std::size_t i) { return "registry.example/app" + std::to_string(i) + ":v1"; }

void WriteKubeletFiles(const fs::path& directory, std::size_t records, std::size_t intents,
                       std::size_t broken) {
  for (std::size_t i = 0; i < records; ++i) {
    ImagePulledRecord record{Ref(i), Timestamp{kFakeEpoch, 0}, {}};
    record.credential_mapping["registry.example/app" + std::to_string(i)] =
        WithSecret(MakeSecret("ns", "pull", "uid", std::to_string(i)));
    WriteRecordFile(directory, "pulled", record.image_ref, EncodePulledRecord(record));
  }
  for (std::size_t i = 0; i < intents; ++i) {
    WriteRecordFile(directory, "pulling", Image(i), EncodePullIntent({Image(i)}));
  }
  for (std::size_t i = 0; i < broken; ++i) {
    WriteRecordFile(directory, "pulled", "broken " + std::to_string(i), "{");
  }
  for (const std::uint32_t i : {1U, 2U}) {
    const fs::path pod = directory / "pods" / ("pod-" + std::to_string(i));
    fs::create_directories(pod);
    WriteFile(pod / "userns", internal::EncodeUsernsFile(i << 20U, 65536));
  }
  fs::create_directories(directory / "pods" / "without");
}

void Fill(const NodeStoreOptions& options, std::size_t records, std::size_t intents) {
  auto store = Must(NodeStore::Open(options));
  for (std::size_t i = 0; i < records; ++i) {
    Must(store->RecordImagePulled({.image = Image(i), .image_ref = Ref(i)},
                                  WithSecret(MakeSecret("ns", "pull", "uid", "hash"))));
  }
  for (std::size_t i = 0; i < intents; ++i) Must(store->PutIntent({.image = Image(records + i)}));
  // Evidence: a cancelled pull, a preloaded image, one under two spellings, one that is closed.
  const std::string cancelled = Image(records + intents);
  const PullId pull = Must(store->RecordPullIntent({.image = cancelled}));
  Must(store->RecordImagePullFailed({.image = cancelled}, PullOutcome::kUnknown, pull));
  const std::string digest = "registry.example/app0@sha256:" + std::string(64, 'a');
  ImageList list{.images = {{.id = Ref(0), .repo_digests = {digest}},
                            {.id = "preloaded", .repo_tags = {"registry.example/by-hand:v1"}},
                            {.id = "late", .repo_tags = {cancelled}}}};
  list.token = Must(store->BeginList());
  Must(store->ObserveImages(list));
  Must(store->Close());
}

void DamageRecord(const fs::path& database, const std::string& ref) {
  std::string bytes = ReadFile(database);
  for (const std::size_t at : PlacesOf(bytes, ref)) bytes[at] = 'R';
  WriteFile(database, bytes);
}

std::string OpenAndTell(const NodeStoreOptions& options,
                        const std::function<void(NodeStore&)>& then) {
  auto store = Must(NodeStore::Open(options));
  if (then) then(*store);
  BOOST_TEST(Must(store->Verify()).sound);
  std::string text = Everything(*store, options.directory);
  Must(store->Close());
  return text;
}

}  // namespace waybill::testing
