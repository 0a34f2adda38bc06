/* Whole stores: witness, an observer in another process, and what taking over, checking and
 * migrating tell of their progress. */

#define _XOPEN_SOURCE 700

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support.h"

static waybill_error* error;

static void witness_that_is_left(void) {
  waybill_open_options options = store_options("tried");
  options.witness_kind = WAYBILL_WITNESS_AT;
  options.witness_path = scratch("left");
  options.leaves_witness = true;
  end_store(open_with(&options));
  CHECK(!is_there(options.witness_path));
}

/* A store that was wiped while its witness was not. */
static void witnesses(void) {
  waybill_open_options options = store_options("witnessed");
  options.witness_kind = WAYBILL_WITNESS_AT;
  options.witness_path = scratch("witness");
  waybill_store* store = open_with(&options);
  waybill_recovery_report* report = report_of(store);
  CHECK(report->created && !report->set_aside && !report->distrustful);
  CHECK(report->migration == NULL && report->runtimes == NULL);
  CHECK(report->user_namespaces != NULL);
  waybill_free(report);
  pull(store, IMAGE, REF);
  end_store(store);
  CHECK(is_there(options.witness_path));

  /* A new store in its place. */
  options.directory = scratch("wiped");
  store = open_with(&options);
  report = report_of(store);
  CHECK(report->created && report->distrustful && report->distrust_reason.length > 0);
  waybill_free(report);
  const waybill_decision decision = waybill_must_attempt_pull(store, APP, &kPod);
  CHECK(decision.pull && decision.reason == WAYBILL_REASON_STORE_DISTRUSTFUL);

  waybill_trust_state* trust = NULL;
  MUST(waybill_get_trust(store, &trust, &error));
  CHECK(trust->distrustful && trust->journal_count > 0);
  CHECK(trust->journal[trust->journal_count - 1].distrustful);
  CHECK(trust->journal[trust->journal_count - 1].kind == WAYBILL_TRUST_STORE_LOST);
  CHECK(trust->journal[trust->journal_count - 1].action == WAYBILL_TRUST_DISTRUST);
  CHECK(trust->journal[trust->journal_count - 1].reason.length > 0);
  waybill_free(trust);
  waybill_clear_options adopting = WAYBILL_CLEAR_OPTIONS_INIT;
  const waybill_image_on_node there = {.id = REF};
  const waybill_images_on_node all = {&there, 1};
  adopting.images_on_node = &all;
  adopting.adopt = true;
  waybill_observe_report* cleared = NULL;
  MUST(waybill_clear_distrust(store, WAYBILL_STRING("looked at"), &adopting, &cleared, &error));
  CHECK(cleared->listed == 1 && cleared->preloaded == 1 && cleared->closed == 0);
  waybill_free(cleared);
  MUST(waybill_get_trust(store, &trust, &error));
  CHECK(!trust->distrustful);
  CHECK_TEXT("looked at", trust->journal[trust->journal_count - 1].reason);
  CHECK(trust->journal[trust->journal_count - 1].kind == WAYBILL_TRUST_OPERATOR);
  CHECK(trust->journal[trust->journal_count - 1].action == WAYBILL_TRUST_TRUST);
  waybill_free(trust);
  end_store(store);

  /* The remembered witness, and another one where it is gone. */
  options.witness_kind = WAYBILL_WITNESS_REMEMBERED;
  options.witness_path = NONE;
  options.must_exist = true;
  end_store(open_with(&options));
  CHECK(unlink(scratch("witness").data) == 0);
  options.witness_kind = WAYBILL_WITNESS_ANEW;
  options.witness_path = scratch("witness-anew");
  store = open_with(&options);
  report = report_of(store);
  CHECK(!report->distrustful && report->witness_made && !report->witness_in_store);
  CHECK(report->removed_paths.count == 0);
  waybill_free(report);
  CHECK(unlink(options.witness_path.data) == 0);
  CHECK_CODE(WAYBILL_DAMAGED, waybill_close(store, &error));
  waybill_store_free(store);
  options.witness_kind = WAYBILL_WITNESS_REMEMBERED;
  options.witness_path = NONE;
  options.directory = scratch("nothing");
  waybill_store* none = NULL;
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_open(&options, &none, &error));
}

static bool count_calls(void* context, uint64_t done, uint64_t total) {
  int* calls = context;
  ++*calls;
  CHECK(done <= total);
  return true;
}

static void take_over_with_progress(void) {
  const waybill_string kubelet = scratch("kubelet");
  copy_tree(fixture("kubelet-v1.36"), kubelet);
  int calls = 0;
  waybill_open_options options = store_options("taken-over");
  options.kubelet_directory = kubelet;
  options.import_progress = count_calls;
  options.import_context = &calls;
  const waybill_images_on_node nothing = {NULL, 0};
  options.images_on_node = &nothing;
  options.allow_empty = true;
  waybill_store* store = open_with(&options);
  CHECK(calls > 0);
  end_store(store);
}

static bool stop(void* context, uint64_t done, uint64_t total) {
  (void)context;
  (void)done;
  (void)total;
  return false;
}

static void take_over_that_is_stopped(void) {
  waybill_open_options options = store_options("stopped");
  options.kubelet_directory = fixture("kubelet-v1.33");
  options.import_progress = stop;
  waybill_store* store = check_poison();
  CHECK_CODE(WAYBILL_INTERRUPTED, waybill_open(&options, &store, &error));
  CHECK(store == NULL);
  options.import_progress = NULL;
  end_store(open_with(&options));
}

static void verified_with_progress(void) {
  waybill_open_options options = store_options("verified");
  waybill_store* store = open_with(&options);
  int calls = 0;
  waybill_verify_report* report = NULL;
  MUST(waybill_verify_with_progress(store, count_calls, &calls, &report, &error));
  CHECK(calls > 0 && report->sound && report->values > 0);
  waybill_free(report);
  CHECK_CODE(WAYBILL_INTERRUPTED, waybill_verify_with_progress(store, stop, NULL, &report, &error));
  CHECK(report == NULL);
  end_store(store);
}

/* What the observing process does. */
static int observe(const char* directory) {
  waybill_observe_options options = WAYBILL_OBSERVE_OPTIONS_INIT;
  options.directory = text(directory);
  waybill_store* store = NULL;
  MUST(waybill_observe(&options, &store, &error));
  CHECK(may_use(store, &kPod));
  CHECK(!may_use(store, &kPodWithout));
  CHECK_CODE(WAYBILL_NOT_OWNER, waybill_put_intent(store, COPY(.image = IMAGE), &error));
  waybill_image_pulled_records* records = NULL;
  MUST(waybill_list_records(store, &records, &error));
  CHECK(records->count == 1);
  waybill_free(records);
  waybill_recovery_report* report = report_of(store);
  CHECK(!report->created && report->findings.count == 0);
  waybill_free(report);
  end_store(store);
  waybill_open_options own = WAYBILL_OPEN_OPTIONS_INIT;
  own.directory = text(directory);
  own.witness_kind = WAYBILL_WITNESS_NONE;
  CHECK_CODE(WAYBILL_OWNED, waybill_open(&own, &store, &error));
  CHECK(store == NULL);
  return check_result();
}

static void observer_beside_the_owner(const char* program) {
  waybill_store* store = open_store("observed");
  pull(store, IMAGE, REF);
  const waybill_string directory = scratch("observed");
  const pid_t child = fork();
  if (child == 0) {
    execl(program, program, "observe", directory.data, (char*)NULL);
    _exit(127);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  waybill_observe_options options = WAYBILL_OBSERVE_OPTIONS_INIT;
  options.directory = directory;
  waybill_store* second = NULL;
  CHECK_CODE(WAYBILL_OWNED, waybill_observe(&options, &second, &error));
  end_store(store);
}

static void migration_with_progress(void) {
  waybill_open_options options = store_options("down");
  end_store(open_with(&options));
  int calls = 0;
  waybill_migrate_options migrate = WAYBILL_MIGRATE_OPTIONS_INIT;
  migrate.directory = options.directory;
  migrate.map_bytes = SMALL_MAP;
  migrate.to = 1;
  migrate.progress = stop;
  CHECK_CODE(WAYBILL_INTERRUPTED, waybill_migrate(&migrate, NULL, &error));
  migrate.progress = count_calls;
  migrate.progress_context = &calls;
  MUST(waybill_migrate(&migrate, NULL, &error));
  CHECK(calls > 0);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "observe") == 0) return observe(argv[2]);
  witness_that_is_left();
  witnesses();
  take_over_with_progress();
  take_over_that_is_stopped();
  verified_with_progress();
  observer_beside_the_owner(argv[0]);
  migration_with_progress();
  return check_result();
}
