// Runtime handlers; host IDs for pods in user namespaces.

#include "bindings/c/store.h"
#include "store/base/try.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

waybill_user_namespace_pool waybill_default_user_namespace_pool(uint64_t ids_per_pod,
                                                                uint64_t max_pods) {
  return ToC(waybill::IdPool::Default(ids_per_pod, max_pods),
             *std::pmr::null_memory_resource());
}

waybill_code waybill_pool_of_subordinate_ids(bool user_exists, bool tool_exists,
                                             waybill_string uids, waybill_string gids,
                                             uint64_t ids_per_pod, uint64_t max_pods,
                                             waybill_user_namespace_pool* pool,
                                             waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(pool, "pool");
    const waybill::SubordinateIds found{.user_exists = user_exists,
                                        .tool_exists = tool_exists,
                                        .uids = arguments.String(uids, "uids"),
                                        .gids = arguments.String(gids, "gids")};
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::PoolOfSubordinateIds(found, ids_per_pod, max_pods), pool);
  });
}

waybill_code waybill_get_or_create_user_namespace(waybill_store* store,
                                                  const waybill_user_namespace_request* request,
                                                  waybill_user_namespace* user_namespace,
                                                  waybill_error** error) {
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    arguments.Given(user_namespace, "user_namespace");
    const auto r = arguments.Options(request, "request");
    waybill::UserNamespaceRequest to{};
    to.pod_uid = arguments.Text(r.pod_uid, "pod_uid");
    to.runtime_handler = arguments.Text(r.runtime_handler, "runtime_handler");
    switch (r.host_users) {
      case WAYBILL_HOST_USERS_UNSET:
        break;
      case WAYBILL_HOST_USERS_TRUE:
      case WAYBILL_HOST_USERS_FALSE:
        to.host_users = r.host_users == WAYBILL_HOST_USERS_TRUE;
        break;
      default:
        arguments.Wrong("host_users", "has no such value");
    }
    if (r.length != 0) to.length = r.length;
    if (!arguments.ok()) return arguments.error();
    const auto made = TRY(node_store.GetOrCreateUserNamespace(to));
    const auto mapping = [](const waybill::IdMappings& mappings) {
      if (mappings.empty()) return waybill_id_mapping{};
      const waybill::IdMapping& only = mappings.front();
      return waybill_id_mapping{only.host_id, only.container_id, only.length};
    };
    *user_namespace = {.mode = static_cast<std::int32_t>(made.mode),
                       .mapping_count = static_cast<std::uint32_t>(made.uids.size()),
                       .uids = mapping(made.uids),
                       .gids = mapping(made.gids)};
    return {};
  });
}
