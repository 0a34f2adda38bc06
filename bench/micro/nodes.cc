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
    BesideLookup(micro, on.bare, what, ours);
  };
  const auto write = [&](const char* what, const auto& before, const auto& ours,
                         const auto& after) {
    BesideCommit(micro, on.bare, what, before, ours, after);
  };

  const std::vector<RuntimeHandler> handlers = {
      {.name = "", .is_default = true, .user_namespaces = true},
      {.name = "kata", .user_namespaces = true}};
  const auto replace = [&] { Must(store.ReplaceRuntimeHandlers(handlers)); };
  const auto collapse = [&] { Must(store.CollapseRuntimeHandlers()); };
  write("ReplaceRuntimeHandlers", kNothing, replace, collapse);
  write("CollapseRuntimeHandlers", replace, collapse, kNothing);
  replace();
  read("ListRuntimeHandlers", [&](std::size_t) {
    if (Must(store.ListRuntimeHandlers()).size() != 2) Unexpected("ListRuntimeHandlers");
  });

  const std::size_t pods = micro.quick ? 5 : 110;  // as many as a kubelet runs
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
  const auto release = [&] {
    if (!Must(store.ReleaseUserNamespace(uid))) Unexpected("ReleaseUserNamespace");
  };
  const auto create = [&] {
    Must(store.GetOrCreateUserNamespace({.pod_uid = uid, .host_users = false}));
  };
  write("GetOrCreateUserNamespace: new", kNothing, create, release);
  write("ReleaseUserNamespace", create, release, kNothing);
  constexpr std::uint64_t kFarRange = 60'000 * kIdsPerBlock;
  write(
      "AdoptUserNamespace", kNothing,
      [&] { Must(store.AdoptUserNamespace(uid, kFarRange, kIdsPerBlock)); }, release);
  read("ReleaseLostUserNamespaces: none", [&](std::size_t) {
    if (Must(store.ReleaseLostUserNamespaces())) Unexpected("ReleaseLostUserNamespaces");
  });
  ListToken token;
  write(
      "CleanUpUserNamespaces: one pod of 110 is gone",
      [&] {
        create();
        token = Must(store.BeginList());
      },
      [&] {
        if (Must(store.CleanUpUserNamespaces(uids, uids, token)).released != 1) {
          Unexpected("CleanUpUserNamespaces");
        }
      },
      kNothing);
}

void MeasureFullPool(const Micro& micro) {
  ScratchStore empty(micro.scratch.path() / "pool-empty");
  ScratchStore full(micro.scratch.path() / "pool-full");
  const std::size_t all = micro.quick ? 200 : 65'534;
  const std::size_t few = all / 100;
  for (const auto& [store, pods] : {std::pair(&empty, few), {&full, all - few}}) {
    store->Open();
    Must((*store)->ReplaceRuntimeHandlers(
        {{.name = "", .is_default = true, .user_namespaces = true}}));
    FromAllCallers(pods, [&, store = store](std::size_t i) {
      return (*store)
          ->GetOrCreateUserNamespace({.pod_uid = UidOf(i), .host_users = false})
          .has_value();
    });
  }
  const std::string uid = UidOf(all);
  const auto create = [&](ScratchStore& store) {
    Must(store->GetOrCreateUserNamespace({.pod_uid = uid, .host_users = false}));
  };
  const auto release = [&] {
    for (ScratchStore* store : {&empty, &full}) Must((*store)->ReleaseUserNamespace(uid));
  };
  micro.Row("GetOrCreateUserNamespace: new, pool 99 % full", [&](State& state) {
    Beside(
        state, [&] { create(empty); }, kNothing, [&] { create(full); }, release);
  });
  for (ScratchStore* store : {&empty, &full}) store->Close();
}

}  // namespace waybill::bench
