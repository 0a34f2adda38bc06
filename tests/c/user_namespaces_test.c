/* Ranges of host IDs for pods. */

#include <string.h>

#include "support.h"

static waybill_error* error;

enum { BLOCK = 65536 };

static const waybill_runtime_handler kHandlers[] = {
    {.name = {"runc", 4}, .is_default = true, .user_namespaces = true}, {.name = {"old", 3}}};
static const waybill_runtime_handlers kRegistry = {kHandlers, 2};

static waybill_store* open_for_pods(const char* pods) {
  waybill_open_options options = store_options("store");
  options.runtime_handlers = &kRegistry;
  if (pods != NULL) options.pods_directory = scratch(pods);
  return open_with(&options);
}

static waybill_code ask(waybill_store* store, waybill_string pod, int32_t host_users,
                        waybill_string handler, uint32_t length, waybill_user_namespace* got) {
  waybill_user_namespace_request request = WAYBILL_USER_NAMESPACE_REQUEST_INIT;
  request.pod_uid = pod;
  request.host_users = host_users;
  request.runtime_handler = handler;
  request.length = length;
  return waybill_get_or_create_user_namespace(store, &request, got, &error);
}

static uint32_t range_of(waybill_store* store, const char* pod) {
  waybill_user_namespace got = {.mode = -1};
  MUST(ask(store, text(pod), WAYBILL_HOST_USERS_FALSE, NONE, 0, &got));
  CHECK(got.mode == WAYBILL_NAMESPACE_POD && got.mapping_count == 1);
  CHECK(got.uids.container_id == 0 && got.uids.length == BLOCK);
  CHECK(memcmp(&got.uids, &got.gids, sizeof(got.uids)) == 0);
  return got.uids.host_id;
}

static void pools(void) {
  waybill_user_namespace_pool pool = waybill_default_user_namespace_pool(BLOCK, 110);
  CHECK(pool.first_id == BLOCK && pool.ids_per_pod == BLOCK && pool.max_pods == 110);
  pool.first_id = 5;
  INVALID(waybill_check_user_namespace_pool(&pool, &error));
}

static void lookups(waybill_store* store) {
  const uint32_t first = range_of(store, "a");
  CHECK(first % BLOCK == 0 && first >= BLOCK);
  CHECK(range_of(store, "b") != first);
  CHECK(range_of(store, "a") == first);
  waybill_user_namespace got;
  MUST(ask(store, text("c"), WAYBILL_HOST_USERS_TRUE, NONE, 0, &got));
  CHECK(got.mode == WAYBILL_NAMESPACE_NODE && got.mapping_count == 0);
  INVALID(ask(store, text("c"), WAYBILL_HOST_USERS_FALSE, text("old"), 0, &got));
  CHECK_CODE(WAYBILL_CONFLICT,
             ask(store, text("a"), WAYBILL_HOST_USERS_FALSE, NONE, 2 * BLOCK, &got));

  waybill_user_namespace_allocation* allocation = NULL;
  MUST(waybill_get_user_namespace(store, text("a"), &allocation, &error));
  CHECK_TEXT("a", allocation->pod_uid);
  CHECK(allocation->host_id == first && allocation->length == BLOCK);
  CHECK(allocation->relation == WAYBILL_POOL_INSIDE && allocation->created.seconds > 0);
  waybill_free(allocation);
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_get_user_namespace(store, text("c"), &allocation, &error));
  CHECK(allocation == NULL);
  waybill_user_namespace_allocations* all = NULL;
  MUST(waybill_list_user_namespaces(store, &all, &error));
  CHECK(all->count == 2 && all->items[0].host_id < all->items[1].host_id);
  waybill_free(all);
}

/* A file of a kubelet that can't be understood holds its pod, and an operator lets it go. */
static void held_pods(void) {
  waybill_store* store = open_for_pods("pods");
  waybill_held_pods* held = NULL;
  MUST(waybill_list_held_pods(store, &held, &error));
  CHECK(held->count == 1);
  CHECK_TEXT("broken", held->items[0].pod_uid);
  CHECK(held->items[0].reason.length > 0 && held->items[0].source.length > 0);
  CHECK(held->items[0].range_count == 0);
  waybill_free(held);
  waybill_user_namespace_allocation* allocation = NULL;
  CHECK_CODE(WAYBILL_CONFLICT,
             waybill_get_user_namespace(store, text("broken"), &allocation, &error));
  MUST(waybill_adopt_user_namespace(store, text("broken"), (uint64_t)40000 * BLOCK, BLOCK, &error));
  CHECK(range_of(store, "broken") == 40000U * BLOCK);
  bool released = true;
  MUST(waybill_release_lost_user_namespaces(store, NULL, &released, &error));
  CHECK(!released);
  end_store(store);
}

static void write_broken_pod(void) {
  make_directory(scratch("pods"));
  make_directory(scratch("pods/broken"));
  FILE* file = fopen(scratch("pods/broken/userns").data, "w");
  if (file == NULL || fputs("{\"uidMappings\":", file) < 0 || fclose(file) != 0) check_exit();
}

int main(void) {
  pools();
  waybill_store* store = open_for_pods(NULL);
  lookups(store);
  end_store(store);
  write_broken_pod();
  held_pods();
  return check_result();
}
