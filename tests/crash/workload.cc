#include "tests/crash/workload.h"

#include <cstdio>
#include <span>
#include <thread>

namespace waybill::testing {

namespace {

using Kind = Operation::Kind;
constexpr std::size_t kRefs = 12;
constexpr std::size_t kImages = 8;
constexpr std::size_t kPods = 8;
constexpr std::size_t kPreloaded = 6;

std::string Owner(std::size_t worker) { return "w" + std::to_string(worker) + ".example"; }
std::string Prefix(std::size_t worker) { return Owner(worker) + "/"; }
std::string Preloaded(std::size_t worker, std::size_t number) {
  return Prefix(worker) + "preloaded-" + std::to_string(number);
}
std::string PodUid(std::size_t worker, std::size_t number) {
  return Owner(worker) + "-pod-" + std::to_string(number);
}

Result<std::uint32_t> FirstHostId(const Result<UserNamespace>& got) {
  if (got) return got->uids.front().host_id;
  if (got.error().code == ErrorCode::kLimitExceeded) return std::uint32_t{0};
  return got.error();
}

}  // namespace

bool BelongsTo(std::size_t worker, const std::string& ref_or_image_or_pod_uid) {
  return ref_or_image_or_pod_uid.starts_with(Owner(worker));
}

bool IsPreloaded(const std::string& ref) { return ref.find("/preloaded-") != std::string::npos; }

std::string Worker::Ref(std::size_t number) const {
  return Prefix(which_) + "ref-" + std::to_string(number);
}

KnownImage Worker::Image() {
  const std::string name = Prefix(which_) + "app" + std::to_string(draw_.Below(kImages));
  const std::string image = name + ":v" + std::to_string(draw_.Below(2));
  return {image, name, image, name};
}

Operation Worker::Next() {
  static constexpr Kind kAny[] = {
      Kind::kIntent,       Kind::kIntent,       Kind::kIntent,          Kind::kPulled,
      Kind::kPulled,       Kind::kPulled,       Kind::kPulled,          Kind::kFailed,
      Kind::kFailed,       Kind::kPutRecord,    Kind::kDeleteRecord,    Kind::kPrune,
      Kind::kPutIntent,    Kind::kDeleteIntent, Kind::kDrawToken,       Kind::kGetMapping,
      Kind::kGetMapping,   Kind::kGetMapping,   Kind::kReleaseMapping,  Kind::kCleanUpMappings,
      Kind::kAddPreloaded, Kind::kAddPreloaded, Kind::kRemovePreloaded, Kind::kDrawToken,
      Kind::kObserve,      Kind::kObserve,      Kind::kObserve};
  static constexpr Kind kOfMappings[] = {
      Kind::kGetMapping,     Kind::kGetMapping,     Kind::kGetMapping,     Kind::kGetMapping,
      Kind::kGetMapping,     Kind::kGetMapping,     Kind::kGetMapping,     Kind::kReleaseMapping,
      Kind::kReleaseMapping, Kind::kReleaseMapping, Kind::kReleaseMapping, Kind::kDrawToken,
      Kind::kCleanUpMappings};
  const std::span<const Kind> kinds =
      doing_ == Doing::kAnything ? std::span<const Kind>(kAny) : std::span<const Kind>(kOfMappings);
  Operation operation;
  operation.kind = kinds[draw_.Below(kinds.size())];
  operation.image = Image();
  operation.ref = Ref(draw_.Below(kRefs));
  ImagePullCredentials credentials;
  const std::size_t secrets = draw_.OneIn(10) ? 80 : draw_.Below(3);
  for (std::size_t i = 0; i < secrets; ++i) {
    credentials.kubernetes_secrets.push_back(
        {"uid", "ns", "s" + std::to_string(draw_.Below(100)), std::to_string(draw_.Below(3))});
  }
  if (!draw_.OneIn(10)) operation.credentials = credentials;
  if (draw_.OneIn(3)) operation.failure = PullOutcome::kUnknown;
  if (draw_.OneIn(4)) operation.failure = PullOutcome::kNothing;
  operation.preloaded = Preloaded(which_, draw_.Below(kPreloaded));
  operation.record = {operation.ref, std::nullopt, {{*operation.image.name, credentials}}};
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    for (std::size_t i = 0; i < kRefs; ++i) {
      if (worker != which_ || draw_.OneIn(2)) {
        operation.listed.push_back({.id = Prefix(worker) + "ref-" + std::to_string(i)});
      }
    }
    for (std::size_t i = 0; i < kPreloaded; ++i) {
      if (worker != which_ || draw_.OneIn(2)) {
        operation.listed.push_back({.id = Preloaded(worker, i)});
      }
    }
  }
  operation.pod_uid = PodUid(which_, draw_.Below(kPods));
  for (std::size_t worker = 0; worker < kWorkers; ++worker) {
    for (std::size_t i = 0; i < kPods; ++i) {
      if (worker != which_ || draw_.OneIn(2)) operation.listed_pods.push_back(PodUid(worker, i));
    }
  }
  return operation;
}

Result<std::uint32_t> StoreDoer::Do(NodeStore& store, const Operation& operation) {
  if (operation.kind == Kind::kGetMapping) {
    return FirstHostId(
        store.GetOrCreateUserNamespace({.pod_uid = operation.pod_uid, .host_users = false}));
  }
  if (operation.kind == Kind::kReleaseMapping) {
    const auto released = store.ReleaseUserNamespace(operation.pod_uid);
    if (!released) return released.error();
    return std::uint32_t{*released};
  }
  if (operation.kind == Kind::kAddPreloaded || operation.kind == Kind::kRemovePreloaded ||
      operation.kind == Kind::kObserve) {
    return ChangeLedger(store, operation);
  }
  if (auto r = Change(store, operation); !r) return r.error();
  return std::uint32_t{0};
}

// The rules `kubelet` keep no ledger.
Result<std::uint32_t> StoreDoer::ChangeLedger(NodeStore& store, const Operation& operation) {
  if (operation.kind == Kind::kAddPreloaded) {
    const auto added = store.AddToLedger({.id = operation.preloaded}, "operator", "a test");
    if (!added && added.error().code != ErrorCode::kInvalidArgument) return added.error();
    return std::uint32_t{added.has_value()};
  }
  if (operation.kind == Kind::kRemovePreloaded) {
    const auto removed = store.RemoveFromLedger({.image_ref = operation.preloaded}, "a test");
    if (!removed && removed.error().code != ErrorCode::kInvalidArgument) return removed.error();
    return std::uint32_t{removed.has_value() && *removed};
  }
  if (!token_) return std::uint32_t{kRefused};
  const ListedImage image{.id = operation.preloaded, .repo_tags = {operation.preloaded + ":v1"}};
  const auto observed = store.ObserveImages({.images = {image}, .token = *token_});
  if (!observed) {
    // Another worker's list was newer.
    if (observed.error().code != ErrorCode::kInvalidArgument) return observed.error();
    return std::uint32_t{kRefused};
  }
  return std::uint32_t{observed->known != 0       ? kKnown
                       : observed->preloaded != 0 ? kEntered
                       : observed->closed != 0    ? kClosed
                                                  : kLeft};
}

Result<void> StoreDoer::Change(NodeStore& store, const Operation& operation) {
  switch (operation.kind) {
    case Kind::kIntent:
      if (auto begun = store.RecordPullIntent({.image = operation.image.image}); !begun) {
        return begun.error();
      }
      return {};
    case Kind::kPulled:
      return store.RecordImagePulled({.image = operation.image.image, .image_ref = operation.ref},
                                     operation.credentials);
    case Kind::kFailed:
      return store.RecordImagePullFailed({.image = operation.image.image}, operation.failure);
    case Kind::kPutRecord:
      return store.PutRecord(operation.record);
    case Kind::kDeleteRecord:
      return store.DeleteRecord({.image_ref = operation.ref});
    case Kind::kPutIntent:
      return store.PutIntent({.image = operation.image.image});
    case Kind::kDeleteIntent:
      return store.DeleteIntent({.image = operation.image.image});
    case Kind::kDrawToken: {
      auto token = store.BeginList();
      if (!token) return token.error();
      token_ = *token;
      return {};
    }
    case Kind::kPrune: {
      if (!token_) return {};
      auto pruned = store.Prune(operation.listed, *token_, {.allow_empty = true});
      if (!pruned) return pruned.error();
      return {};
    }
    case Kind::kGetMapping:
    case Kind::kReleaseMapping:
    case Kind::kAddPreloaded:
    case Kind::kRemovePreloaded:
    case Kind::kObserve:
      return {};
    case Kind::kCleanUpMappings: {
      if (!token_) return {};
      auto cleaned =
          store.CleanUpUserNamespaces(operation.listed_pods, {}, *token_, {.allow_empty = true});
      if (!cleaned) return cleaned.error();
      return {};
    }
  }
  return {};
}

void MakeRoomForWorkers(NodeStoreOptions& options) {
  constexpr std::uint64_t kRanges = kWorkers * kPods;
  options.runtime_handlers = {{{.name = "runc", .is_default = true, .user_namespaces = true}}};
  options.user_namespaces.pool = {kIdsPerBlock, kRanges * kIdsPerBlock, kIdsPerBlock, kRanges};
}

bool Work(const WorkPlan& plan) {
  struct Hand {
    Worker worker;
    StoreDoer doer;
    std::uint64_t next = 0;
    bool well = true;
  };
  std::vector<Hand> hands;
  for (std::size_t i = 0; i < kWorkers; ++i) {
    hands.push_back({Worker(plan.seed, i, plan.doing), {}});
  }
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
      plan.done(which, hand.next, *result);
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

}  // namespace waybill::testing
