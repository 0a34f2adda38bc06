/* Streaming requests: what is refused, and what a null pointer does. What tokens open is judged in
 * Go. */

#include <string.h>

#include "support.h"

static waybill_error* error;
static waybill_boot_time now = {.boot_id = {1}, .nanoseconds = 1000000000000};

static waybill_boot_time stands(void* context) {
  (void)context;
  return now;
}

static const waybill_string kCommand[] = {{"sh", 2}, {"-c", 2}, {"a\nb", 3}};
static const uint16_t kPorts[] = {80, 65535};
static const waybill_streaming_request kExec = {.kind = WAYBILL_STREAM_EXEC,
                                                .container_id = {"c1", 2},
                                                .command = {kCommand, 3},
                                                .std_in = true,
                                                .std_out = true,
                                                .tty = true};
static const waybill_streaming_request kForward = {.kind = WAYBILL_STREAM_PORT_FORWARD,
                                                   .pod_sandbox_id = {"s1", 2},
                                                   .ports = kPorts,
                                                   .port_count = 2};

static waybill_streaming_options options_of(const char* name) {
  waybill_streaming_options options = WAYBILL_STREAMING_OPTIONS_INIT;
  options.directory = scratch(name);
  options.witness_kind = WAYBILL_WITNESS_NONE;
  options.map_bytes = SMALL_MAP;
  options.clock = tick;
  options.boot_clock = stands;
  return options;
}

static waybill_streaming_store* open_streams(const waybill_streaming_options* options) {
  waybill_streaming_store* store = NULL;
  MUST(waybill_streaming_open(options, &store, &error));
  return store;
}

static void requests_are_checked(void) {
  MUST(waybill_check_streaming_request(&kExec, &error));
  waybill_streaming_request wrong = kExec;
  wrong.std_err = true;
  INVALID(waybill_check_streaming_request(&wrong, &error));
  wrong = kExec;
  wrong.kind = 4;
  INVALID(waybill_check_streaming_request(&wrong, &error));
  wrong = kForward;
  wrong.ports = NULL;
  INVALID(waybill_check_streaming_request(&wrong, &error));
  wrong = kExec;
  wrong.command.items = NULL;
  INVALID(waybill_check_streaming_request(&wrong, &error));
  INVALID(waybill_check_streaming_request(NULL, &error));
  CHECK_TEXT("portforward", waybill_stream_kind_name(WAYBILL_STREAM_PORT_FORWARD));
  CHECK_TEXT("", waybill_stream_kind_name(0));
}

static void null_pointers(void) {
  waybill_streaming_options options = options_of("null");
  waybill_streaming_store* store = NULL;
  INVALID(waybill_streaming_open(NULL, &store, &error));
  INVALID(waybill_streaming_open(&options, NULL, &error));
  options.witness_kind = 0;
  INVALID(waybill_streaming_open(&options, &store, &error));
  options.witness_kind = WAYBILL_WITNESS_NONE;
  options.time_to_live_ns = UINT64_MAX;
  INVALID(waybill_streaming_open(&options, &store, &error));
  CHECK(!is_there(options.directory));
  INVALID(waybill_streaming_observe(options.directory, NULL, &error));
  CHECK_CODE(WAYBILL_NOT_FOUND, waybill_streaming_observe(options.directory, &store, &error));
  options = options_of("null");
  store = open_streams(&options);
  waybill_string* token = NULL;
  waybill_streaming_request* request = NULL;
  const waybill_string nowhere = {NULL, 7};
  INVALID(waybill_prepare_stream(store, &kExec, NULL, &error));
  INVALID(waybill_prepare_stream(store, NULL, &token, &error));
  INVALID(waybill_prepare_stream(NULL, &kExec, &token, &error));
  INVALID(waybill_consume_stream(store, nowhere, WAYBILL_STREAM_EXEC, &request, &error));
  INVALID(waybill_consume_stream(store, NONE, 0, &request, &error));
  INVALID(waybill_consume_stream(store, NONE, WAYBILL_STREAM_EXEC, NULL, &error));
  INVALID(waybill_list_streams(store, NULL, &error));
  INVALID(waybill_get_streaming_counters(store, NULL, &error));
  INVALID(waybill_get_streaming_report(store, NULL, &error));
  INVALID(waybill_verify_streaming(store, NULL, &error));
  INVALID(waybill_stream_token_id(NONE, NULL, &error));
  INVALID(waybill_stream_token_id(nowhere, &token, &error));
  INVALID(waybill_streaming_close(NULL, &error));
  waybill_streaming_store_free(store);
  waybill_streaming_store_free(NULL);
}

int main(void) {
  requests_are_checked();
  null_pointers();
  return check_result();
}
