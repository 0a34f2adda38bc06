/* Addresses of streaming servers, and rates of connections. */

#include <stdint.h>
#include <string.h>

#include "support.h"

static waybill_error* error;
#define LOCAL WAYBILL_STRING("http://127.0.0.1:41231/exec/t0ken?a=b")

static void wrong_arguments(void) {
  const waybill_string nowhere = {NULL, 7};
  waybill_stream_url_check* check = check_poison();
  INVALID(waybill_check_stream_url(LOCAL, NULL, NULL, &error));
  INVALID(waybill_check_stream_redirect(LOCAL, LOCAL, NULL, NULL, &error));
  INVALID(waybill_check_stream_url(nowhere, NULL, &check, &error));
  CHECK(check == NULL);
  INVALID(waybill_check_stream_redirect(nowhere, LOCAL, NULL, &check, &error));
  INVALID(waybill_check_stream_redirect(LOCAL, nowhere, NULL, &check, &error));
  waybill_stream_url_policy policy = WAYBILL_STREAM_URL_POLICY_INIT;
  policy.port_count = 1;
  INVALID(waybill_check_stream_url(LOCAL, &policy, &check, &error));
  policy.port_count = 0;
  policy.hosts.count = 1;
  INVALID(waybill_check_stream_url(LOCAL, &policy, &check, &error));
  policy.hosts.items = &nowhere;
  INVALID(waybill_check_stream_redirect(LOCAL, LOCAL, &policy, &check, &error));
  CHECK(check == NULL);
}

static void rates(void) {
  waybill_rate_limit limit = waybill_rate_limit_make(1000, 100, INT64_MIN);
  CHECK(waybill_rate_limit_take(&limit, 60, INT64_MIN) == 60);
  waybill_rate_limit_give_back(&limit, 10);
  CHECK(waybill_rate_limit_take(&limit, 60, INT64_MIN) == 50);
  CHECK(waybill_rate_limit_wait(&limit, 3, INT64_MIN) == 3000000);
  CHECK(waybill_rate_limit_take(&limit, 60, INT64_MIN + 3000000) == 3);
  waybill_rate_limit copy = limit;
  CHECK(waybill_rate_limit_take(&limit, 200, INT64_MAX) == 100);
  CHECK(waybill_rate_limit_take(&copy, 200, INT64_MAX) == 100);

  waybill_rate_limit zero;
  memset(&zero, 0, sizeof zero);
  CHECK(waybill_rate_limit_take(&zero, UINT64_MAX, 5) == UINT64_MAX);
  CHECK(waybill_rate_limit_wait(&zero, UINT64_MAX, 5) == 0);

  CHECK(waybill_rate_limit_take(NULL, 1, 0) == 0);
  CHECK(waybill_rate_limit_wait(NULL, 1, 0) == INT64_MAX);
  waybill_rate_limit_give_back(NULL, 1);

  /* Bytes that are not a bucket's give some answer. */
  memset(&limit, 0xff, sizeof limit);
  waybill_rate_limit_give_back(&limit, UINT64_MAX);
  waybill_rate_limit_take(&limit, 1, INT64_MIN);
  waybill_rate_limit_wait(&limit, UINT64_MAX, INT64_MAX);
}

int main(void) {
  wrong_arguments();
  rates();
  return check_result();
}
