// Runtime handlers and user namespaces.

#include <fmt/format.h>

#include "bench/micro/rows.h"

namespace waybill::bench {

namespace {

std::string UidOf(std::size_t i) { return fmt::format("{:08x}-2222-4222-8333-444444444444", i); }

}  // namespace

void MeasureHandlersAndNamespaces(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  const auto read = [&](const char* what, const auto& ours) {
    BesideLookup(micro.figures, micro.pace, on.bare, what, ours);
  };
  const auto write = [&](const char* what, const auto& ours, const auto& undo) {
    BesideCommit(micro.figures, micro.pace, on.bare, what, ours, undo);
  };

  const std::vector<RuntimeHandler> handlers = {
      {.name = "", .is_default = true, .user_namespaces = true},
      {.name = "kata", .user_namespaces = true}};
  write(
      "ReplaceRuntimeHandlers", [&](std::size_t) { Must(store.ReplaceRuntimeHandlers(handlers)); },
      [&](std::size_t) { Must(store.CollapseRuntimeHandlers()); });
  Must(store.ReplaceRuntimeHandlers(handlers));
  write(
      "CollapseRuntimeHandlers", [&](std::size_t) { Must(store.CollapseRuntimeHandlers()); },
      [&](std::size_t) { Must(store.ReplaceRuntimeHandlers(handlers)); });
  read("ListRuntimeHandlers", [&](std::size_t) {
    if (Must(store.ListRuntimeHandlers()).size() != 2) Unexpected("ListRuntimeHandlers");
  });

  const std::size_t pods = micro.pace.quick ? 5 : 110;  // as many as a kubelet runs
  std::vector<std::string> uids;
  for (std::size_t i = 0; i < pods; ++i) {
    uids.push_back(UidOf(i));
    Must(store.GetOrCreateUserNamespace({.pod_uid = uids.back(), .host_users = false}));
  }
  read("GetOrCreateUserNamespace: existing", [&](std::size_t i) {
    const auto got =
        Must(store.GetOrCreateUserNamespace({.pod_uid = uids[i % pods], .host_users = false}));
    if (got.mode != NamespaceMode::kPod) Unexpected("GetOrCreateUserNamespace");
  });
  read("GetUserNamespace", [&](std::size_t i) { Must(store.GetUserNamespace(uids[i % pods])); });
  read("ListUserNamespaces: 110", [&](std::size_t) {
    if (Must(store.ListUserNamespaces()).size() != pods) Unexpected("ListUserNamespaces");
  });
  read("ListHeldPods", [&](std::size_t) { Must(store.ListHeldPods()); });
  read("GetUserNamespaceStatistics",
       [&](std::size_t) { Must(store.GetUserNamespaceStatistics()); });

  const std::string uid = UidOf(pods);
  const auto release = [&](std::size_t) {
    if (!Must(store.ReleaseUserNamespace(uid))) Unexpected("ReleaseUserNamespace");
  };
  const auto create = [&](std::size_t) {
    Must(store.GetOrCreateUserNamespace({.pod_uid = uid, .host_users = false}));
  };
  write("GetOrCreateUserNamespace: new", create, release);
  create(0);
  write("ReleaseUserNamespace", release, create);
  release(0);
  constexpr std::uint64_t kFarRange = 60'000 * kIdsPerBlock;
  write(
      "AdoptUserNamespace",
      [&](std::size_t) { Must(store.AdoptUserNamespace(uid, kFarRange, kIdsPerBlock)); }, release);
  read("ReleaseLostUserNamespaces: none", [&](std::size_t) {
    if (Must(store.ReleaseLostUserNamespaces())) Unexpected("ReleaseLostUserNamespaces");
  });
  ListToken token;
  const auto add_pod = [&](std::size_t) {
    create(0);
    token = Must(store.BeginList());
  };
  add_pod(0);
  write(
      "CleanUpUserNamespaces: one pod of 110 is gone",
      [&](std::size_t) {
        if (Must(store.CleanUpUserNamespaces(uids, uids, token)).released != 1) {
          Unexpected("CleanUpUserNamespaces");
        }
      },
      add_pod);
  Must(store.ReleaseUserNamespace(uid));
}

void MeasureFullPool(const Micro& micro) {
  ScratchStore empty(micro.scratch.path() / "pool-empty");
  ScratchStore full(micro.scratch.path() / "pool-full");
  const std::size_t few = micro.pace.pods / 100;
  for (const auto& [store, pods] : {std::pair(&empty, few), {&full, micro.pace.pods - few}}) {
    store->Open();
    Must((*store)->ReplaceRuntimeHandlers(
        {{.name = "", .is_default = true, .user_namespaces = true}}));
    FromAllCallers(pods, [&, store = store](std::size_t i) {
      return (*store)
          ->GetOrCreateUserNamespace({.pod_uid = UidOf(i), .host_users = false})
          .has_value();
    });
  }
  const std::string uid = UidOf(micro.pace.pods);
  const auto create = [&](ScratchStore& store) {
    Must(store->GetOrCreateUserNamespace({.pod_uid = uid, .host_users = false}));
  };
  Beside(
      micro.figures, micro.pace, "GetOrCreateUserNamespace: new, pool 99 % full", 1,
      [&](std::size_t) { create(full); }, 1, [&] { create(empty); },
      [&] {
        // In front of the next turn. The first finds none to release.
        for (ScratchStore* store : {&empty, &full}) Must((*store)->ReleaseUserNamespace(uid));
      },
      micro.pace.fewest_turns);
  for (ScratchStore* store : {&empty, &full}) store->Close();
}

}  // namespace waybill::bench
