#include "tests/crash/workload.h"

#include <cstdio>
#include <thread>
#include <utility>

namespace waybill::testing {

namespace {

using Kind = Operation::Kind;
constexpr std::size_t kRefs = 12;
constexpr std::size_t kImages = 8;

std::string Prefix(std::size_t worker) { return "w" + std::to_string(worker) + ".example/"; }

}  // namespace

bool BelongsTo(std::size_t worker, const std::string& ref_or_image) {
  return ref_or_image.starts_with(Prefix(worker));
}

std::string Worker::Ref(std::size_t number) const {
  return Prefix(which_) + "ref-" + std::to_string(number);
}

KnownImage Worker::Image() {
  const std::string name = Prefix(which_) + "app" + std::to_string(draw_.Below(kImages));
  const std::string image = name + ":v" + std::to_string(draw_.Below(2));
  return {image, name, image, name};
}

Operation Worker::Next() {
  static constexpr Kind kKinds[] = {
      Kind::kIntent, Kind::kIntent,    Kind::kIntent,       Kind::kPulled,    Kind::kPulled,
      Kind::kPulled, Kind::kPulled,    Kind::kFailed,       Kind::kPutRecord, Kind::kDeleteRecord,
      Kind::kPrune,  Kind::kPutIntent, Kind::kDeleteIntent, Kind::kDrawToken};
  Operation operation;
  operation.kind = kKinds[draw_.Below(std::size(kKinds))];
  operation.image = Image();
  operation.ref = Ref(draw_.Below(kRefs));
  ImagePullCredentials credentials;
  const std::size_t secrets = draw_.OneIn(10) ? 80 : draw_.Below(3);
  for (std::size_t i = 0; i < secrets; ++i) {
    credentials.kubernetes_secrets.push_back(
        {"uid", "ns", "s" + std::to_string(draw_.Below(100)), std::to_string(draw_.Below(3))});
  }
  if (!draw_.OneIn(10)) operation.credentials = credentials;
  if (draw_.OneIn(3)) operation.failure = PullFailure::kUnknown;
  operation.record = {operation.ref, std::nullopt, {{*operation.image.name, credentials}}, 0};
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    for (std::size_t i = 0; i < kRefs; ++i) {
      if (worker != which_ || draw_.OneIn(2)) {
        operation.listed.push_back(Prefix(worker) + "ref-" + std::to_string(i));
      }
    }
  }
  return operation;
}

Result<void> StoreDoer::Do(NodeStore& store, const Operation& operation) {
  switch (operation.kind) {
    case Kind::kIntent:
      return store.RecordPullIntent(operation.image.image);
    case Kind::kPulled:
      return store.RecordImagePulled(operation.image.image, operation.ref, operation.credentials);
    case Kind::kFailed:
      return store.RecordImagePullFailed(operation.image.image, operation.failure);
    case Kind::kPutRecord:
      return store.PutRecord(operation.record);
    case Kind::kDeleteRecord:
      return store.DeleteRecord(operation.ref);
    case Kind::kPutIntent:
      return store.PutIntent(operation.image.image);
    case Kind::kDeleteIntent:
      return store.DeleteIntent(operation.image.image);
    case Kind::kDrawToken: {
      auto token = store.BeginPrune();
      if (!token) return token.error();
      token_ = *token;
      return {};
    }
    case Kind::kPrune: {
      if (!token_) return {};
      auto pruned = store.Prune({operation.listed.begin(), operation.listed.end()}, *token_);
      if (!pruned) return pruned.error();
      return {};
    }
  }
  return {};
}

void ModelDoer::Do(Model& model, const Operation& operation) {
  switch (operation.kind) {
    case Kind::kIntent:
      static_cast<void>(model.Intent(operation.image));
      return;
    case Kind::kPulled:
      static_cast<void>(model.Pulled(operation.image, operation.ref, operation.credentials));
      return;
    case Kind::kFailed:
      static_cast<void>(model.Failed(operation.image, operation.failure));
      return;
    case Kind::kPutRecord:
      static_cast<void>(model.Put(operation.record));
      return;
    case Kind::kDeleteRecord:
      return model.Delete(operation.ref);
    case Kind::kPutIntent:
      static_cast<void>(model.PutIntent(operation.image));
      return;
    case Kind::kDeleteIntent:
      return model.DeleteIntent(operation.image);
    case Kind::kDrawToken:
      token_ = model.token();
      return;
    case Kind::kPrune:
      if (!token_) return;
      static_cast<void>(model.Prune({operation.listed.begin(), operation.listed.end()}, *token_));
      return;
  }
}

bool Work(const WorkPlan& plan) {
  struct Hand {
    Worker worker;
    StoreDoer doer;
    std::uint64_t next = 0;
    bool well = true;
  };
  std::vector<Hand> hands;
  for (std::size_t i = 0; i < kWorkers; ++i) hands.push_back({Worker(plan.seed, i), {}});
  const auto run = [&](NodeStore& store, std::size_t which) {
    Hand& hand = hands[which];
    for (std::uint64_t i = 0; i < plan.operations; ++i, ++hand.next) {
      const Operation operation = hand.worker.Next();
      plan.started(which, hand.next);
      const auto result = hand.doer.Do(store, operation);
      if (!result) {
        std::fprintf(stderr, "worker %zu: %s\n", which, result.error().ToString().c_str());
        hand.well = false;
        return;
      }
      plan.done(which, hand.next);
    }
  };
  for (std::uint64_t session = 0; session < plan.sessions; ++session) {
    auto store = NodeStore::Open(plan.options);
    if (!store) {
      std::fprintf(stderr, "opening: %s\n", store.error().ToString().c_str());
      return false;
    }
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < kWorkers; ++i) {
      threads.emplace_back([&, i] { run(**store, i); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const Hand& hand : hands) {
      if (!hand.well) return false;
    }
    if (auto closed = (*store)->Close(); !closed) {
      std::fprintf(stderr, "closing: %s\n", closed.error().ToString().c_str());
      return false;
    }
  }
  return true;
}

WorkJudge::WorkJudge(Rules rules, Timestamp now) : models_(kWorkers, Model(rules)) {
  for (Model& model : models_) model.set_now(now);
}

std::string WorkJudge::Judge(const WorkPlan& plan, const std::vector<Progress>& progress,
                             const NodeStore& store) {
  const auto records = store.ListRecords();
  if (!records) return records.error().ToString();
  const auto intents = store.ListIntents();
  if (!intents) return intents.error().ToString();
  for (std::size_t which = 0; which < kWorkers; ++which) {
    std::vector<ImagePulledRecord> own_records;
    for (const auto& record : *records) {
      if (BelongsTo(which, record.image_ref)) own_records.push_back(record);
    }
    std::vector<ImagePullIntent> own_intents;
    for (const auto& intent : *intents) {
      if (BelongsTo(which, intent.image)) own_intents.push_back(intent);
    }
    Model& model = models_[which];
    Worker worker(plan.seed, which);
    ModelDoer doer;
    std::string difference;
    for (std::uint64_t i = 0;; ++i) {
      if (i % plan.operations == 0) static_cast<void>(model.Restart());
      if (i == progress[which].acknowledged)
        difference = Difference(model, own_records, own_intents);
      if (i == progress[which].started) break;
      if (i == progress[which].acknowledged && difference.empty()) break;
      doer.Do(model, worker.Next());
    }
    if (difference.empty()) continue;
    if (Difference(model, own_records, own_intents).empty()) continue;
    return "worker " + std::to_string(which) + " after " +
           std::to_string(progress[which].acknowledged) +
           " operations and perhaps one more: " + difference;
  }
  return "";
}

}  // namespace waybill::testing
