/* Addresses of streaming servers, and rates of connections. */

#include <stdint.h>
#include <string.h>

#include "support.h"

static waybill_error* error;
#define LOCAL WAYBILL_STRING("http://127.0.0.1:41231/exec/t0ken?a=b")

static waybill_stream_url_check* check_of(waybill_string url,
                                          const waybill_stream_url_policy* policy) {
  waybill_stream_url_check* check = NULL;
  MUST(waybill_check_stream_url(url, policy, &check, &error));
  return check;
}

static void urls(void) {
  waybill_stream_url_check* check = check_of(LOCAL, NULL);
  CHECK(check->refusal == WAYBILL_STREAM_URL_ALLOWED && check->scheme == WAYBILL_STREAM_HTTP);
  CHECK_TEXT("127.0.0.1", check->host);
  CHECK_TEXT("/exec/t0ken?a=b", check->path);
  CHECK_TEXT("", check->message);
  CHECK(check->port == 41231);
  waybill_free(check);

  check = check_of(WAYBILL_STRING("//127.0.0.1:41231/exec/t0ken"), NULL);
  CHECK(check->refusal == WAYBILL_STREAM_URL_NO_SCHEME && check->port == 0);
  CHECK_CONTAINS("no scheme", check->message);
  CHECK(strstr(check->message.data, "t0ken") == NULL);
  CHECK_TEXT("", check->host);
  CHECK_TEXT("", check->path);
  CHECK_TEXT("noScheme", waybill_stream_url_refusal_name(check->refusal));
  waybill_free(check);

  const waybill_string hosts[] = {WAYBILL_STRING("10.0.0.7"), WAYBILL_STRING("crio.local")};
  const uint16_t ports[] = {443, 10010};
  waybill_stream_url_policy policy = WAYBILL_STREAM_URL_POLICY_INIT;
  policy.hosts = (waybill_strings){hosts, 2};
  policy.ports = ports;
  policy.port_count = 2;
  policy.require_https = true;
  check = check_of(WAYBILL_STRING("https://CRIO.local"), &policy);
  CHECK(check->refusal == WAYBILL_STREAM_URL_ALLOWED && check->scheme == WAYBILL_STREAM_HTTPS);
  CHECK(check->port == 443);
  CHECK_TEXT("crio.local", check->host);
  CHECK_TEXT("/", check->path);
  CHECK_TEXT("https", waybill_stream_scheme_name(check->scheme));
  waybill_free(check);
}

static void redirects(void) {
  waybill_stream_url_check* check = NULL;
  const waybill_string there = WAYBILL_STRING("../attach/other");
  MUST(waybill_check_stream_redirect(LOCAL, there, NULL, &check, &error));
  CHECK(check->refusal == WAYBILL_STREAM_URL_REDIRECT);
  waybill_free(check);
  waybill_stream_url_policy policy = WAYBILL_STREAM_URL_POLICY_INIT;
  policy.same_host_redirects = true;
  MUST(waybill_check_stream_redirect(LOCAL, there, &policy, &check, &error));
  CHECK(check->refusal == WAYBILL_STREAM_URL_ALLOWED && check->port == 41231);
  CHECK_TEXT("/attach/other", check->path);
  waybill_free(check);
}

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
  urls();
  redirects();
  wrong_arguments();
  rates();
  return check_result();
}
