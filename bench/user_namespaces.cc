// ID mappings of pods: an existing one beside a decision; a new one in a nearly full pool beside
// one in a nearly empty pool.

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/rows.h"
#include "waybill/user_namespace.h"

namespace waybill::bench {

namespace {

// UIDs of the usual form.
std::string PodUid(std::size_t i) { return fmt::format("{:08x}-1111-4222-8333-444444444444", i); }

UserNamespace GetOrCreate(NodeStore& store, const std::string& pod_uid) {
  return Must(store.GetOrCreateUserNamespace({.pod_uid = pod_uid, .host_users = false}));
}

void SupportUserNamespaces(NodeStore& store) {
  Must(store.ReplaceRuntimeHandlers({{.name = "", .is_default = true, .user_namespaces = true}}));
}

// Mappings for pods 0 to pods - 1.
void Fill(NodeStore& store, std::size_t pods) {
  FromAllCallers(pods, [&](std::size_t i) {
    const std::string pod_uid = PodUid(i);
    return store.GetOrCreateUserNamespace({.pod_uid = pod_uid, .host_users = false}).has_value();
  });
}

void MeasureLookups(const Bench& bench, ScratchStore& store, std::size_t records) {
  Fill(*store, records);
  const Questions questions(records);
  std::vector<std::string> pods;
  for (std::size_t i = 0; i < records; ++i) pods.push_back(PodUid(i * 7919 % records));
  for (const std::string& pod : pods) GetOrCreate(*store, pod);
  std::size_t next = 0;
  const std::size_t batch = bench.effort.decision_batch;
  Turns turns;
  for (std::size_t i = 0; i < bench.effort.decision_turns; ++i) {
    std::size_t good = 0;
    const std::size_t first = next;
    next = (next + batch) % records;
    const double mine = NanosecondsOf([&] {
      for (std::size_t k = 0; k < batch; ++k) {
        const UserNamespace got = GetOrCreate(*store, pods[(first + k) % records]);
        good += got.mode == NamespaceMode::kPod ? 1 : 0;
      }
    });
    const double decision = NanosecondsOf([&] {
      for (std::size_t k = 0; k < batch; ++k) {
        good += Hit(*store, questions[(first + k) % records]) ? 1 : 0;
      }
    });
    if (good != 2 * batch) throw std::runtime_error("an answer was wrong; the figures are void");
    turns.Add(mine / static_cast<double>(batch), decision / static_cast<double>(batch));
  }
  const Comparison result = turns.Result();
  bench.report.Add({fmt::format("ID mapping of a pod, {} of each", Grouped(records)),
                    Duration(result.ours), "decision " + Duration(result.theirs), result.ratio, "x",
                    AtMost(1)});
}

void MeasureAllocations(const Bench& bench) {
  ScratchStore empty(bench.scratch.path() / "pool-empty");
  ScratchStore full(bench.scratch.path() / "pool-full");
  for (ScratchStore* store : {&empty, &full}) {
    store->Open();
    SupportUserNamespaces(**store);
  }
  Fill(*empty, bench.effort.pods / 100);
  Fill(*full, bench.effort.pods - bench.effort.pods / 100);
  Turns turns;
  for (std::size_t i = 0; i < bench.effort.allocations; ++i) {
    const std::string pod = PodUid(10'000'000 + i);
    const double nearly_full = NanosecondsOf([&] { GetOrCreate(*full, pod); });
    const double nearly_empty = NanosecondsOf([&] { GetOrCreate(*empty, pod); });
    Must(full->ReleaseUserNamespace(pod));
    Must(empty->ReleaseUserNamespace(pod));
    turns.Add(nearly_full, nearly_empty);
  }
  const Comparison result = turns.Result();
  bench.report.Add({"new ID mapping, durable, pool 99 % full", Duration(result.ours),
                    "pool 1 % full " + Duration(result.theirs), result.ratio, "x", AtMost(1.3)});
  for (ScratchStore* store : {&empty, &full}) store->Close();
}

}  // namespace

void MeasureUserNamespaces(const Bench& bench, ScratchStore& store, std::size_t records) {
  SupportUserNamespaces(*store);
  MeasureLookups(bench, store, records);
  MeasureAllocations(bench);
}

}  // namespace waybill::bench
