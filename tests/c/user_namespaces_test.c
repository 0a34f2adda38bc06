/* Ranges of host IDs for pods: one that is held. Who gets which is judged in Go. */

#include <string.h>

#include "support.h"

static waybill_error* error;

enum { BLOCK = 65536 };

static uint32_t range_of(waybill_store* store, const char* pod) {
  waybill_user_namespace_request request = WAYBILL_USER_NAMESPACE_REQUEST_INIT;
  request.pod_uid = text(pod);
  request.host_users = WAYBILL_HOST_USERS_FALSE;
  waybill_user_namespace got = {.mode = -1};
  MUST(waybill_get_or_create_user_namespace(store, &request, &got, &error));
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

/* A file of a kubelet that can't be understood holds its pod, and an operator lets it go. */
static void held_pods(void) {
  const waybill_runtime_handler runc = {
      .name = {"runc", 4}, .is_default = true, .user_namespaces = true};
  const waybill_runtime_handlers registry = {&runc, 1};
  waybill_open_options options = store_options("store");
  options.runtime_handlers = &registry;
  options.pods_directory = scratch("pods");
  waybill_store* store = open_with(&options);
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
  write_broken_pod();
  held_pods();
  return check_result();
}
