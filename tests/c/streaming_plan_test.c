/* Streaming: the plan of a pair, and what a release makes of settings. */

#include <string.h>

#include "support.h"

static waybill_error* error;

static void names(void) {
  waybill_kubernetes_version version = {0, 0};
  MUST(waybill_parse_kubernetes_version(WAYBILL_STRING("v1.36.0-rc.1+k3s1"), &version, &error));
  CHECK(version.major == 1 && version.minor == 36);
  INVALID(waybill_parse_kubernetes_version(WAYBILL_STRING("1"), &version, &error));
  INVALID(waybill_parse_kubernetes_version(WAYBILL_STRING("1.22"), NULL, &error));
  for (int32_t gate = 0; gate <= WAYBILL_GATE_ALL_BETA; ++gate) {
    int32_t found = -1;
    CHECK(waybill_find_streaming_gate(waybill_streaming_gate_name(gate), &found));
    CHECK(found == gate);
  }
  CHECK(waybill_find_streaming_gate(WAYBILL_STRING("AllBeta"), NULL));
  CHECK(!waybill_find_streaming_gate(NONE, NULL));
  CHECK_TEXT("", waybill_streaming_gate_name(8));
  CHECK_TEXT("ignored", waybill_streaming_severity_name(WAYBILL_STREAMING_IGNORED));
  CHECK_TEXT("fatal", waybill_streaming_severity_name(WAYBILL_STREAMING_FATAL));
  CHECK_TEXT("", waybill_streaming_severity_name(-1));
  CHECK(waybill_is_streaming_flag(WAYBILL_STRING("Redirect_container-streaming")));
  CHECK(!waybill_is_streaming_flag(WAYBILL_STRING("config")));
}

static void plan(void) {
  waybill_streaming_plan_request request = WAYBILL_STREAMING_PLAN_REQUEST_INIT;
  waybill_streaming_answer* answer = check_poison();
  INVALID(waybill_streaming_plan(&request, &answer, &error)); /* no versions */
  CHECK(answer == NULL);
  request.api_server = (waybill_kubernetes_version){1, 21};
  request.kubelet = (waybill_kubernetes_version){1, 19};
  request.redirect_container_streaming = WAYBILL_FLAG_TRUE;
  MUST(waybill_streaming_plan(&request, &answer, &error));
  CHECK(answer->proxy == WAYBILL_STREAMING_PROXY_REDIRECT);
  CHECK(answer->follower == WAYBILL_REDIRECT_API_SERVER);
  CHECK(answer->check == WAYBILL_REDIRECT_CHECK_SAME_HOST);
  CHECK(answer->outcome == WAYBILL_STREAMING_WORKS_ON_SAME_HOST);
  CHECK(answer->skew == WAYBILL_SKEW_SUPPORTED);
  CHECK(answer->exec_websockets == WAYBILL_WEBSOCKETS_NOBODY);
  CHECK(answer->findings.count == 1 &&
        answer->findings.items[0].severity == WAYBILL_STREAMING_DEPRECATED);
  CHECK_TEXT("--redirect-container-streaming", answer->findings.items[0].subject);
  CHECK_CONTAINS("has been deprecated", answer->findings.items[0].words);
  CHECK(answer->notes.count == 1);
  waybill_free(answer);

  const waybill_streaming_gate_setting off[] = {{WAYBILL_GATE_STREAMING_PROXY_REDIRECTS, false}};
  request.api_server_gates = off;
  request.api_server_gate_count = 1;
  MUST(waybill_streaming_plan(&request, &answer, &error));
  CHECK(answer->follower == WAYBILL_REDIRECT_NOBODY);
  CHECK(answer->outcome == WAYBILL_STREAMING_FAILS);
  waybill_free(answer);

  const waybill_streaming_gate_setting none[] = {{8, false}};
  request.kubelet_gates = none;
  request.kubelet_gate_count = 1;
  INVALID(waybill_streaming_plan(&request, &answer, &error));
  request.kubelet_gates = NULL;
  INVALID(waybill_streaming_plan(&request, &answer, &error));
  request.kubelet_gate_count = 0;
  INVALID(waybill_streaming_plan(&request, NULL, &error));
  INVALID(waybill_streaming_plan(NULL, &answer, &error));
  request.redirect_container_streaming = 3;
  INVALID(waybill_streaming_plan(&request, &answer, &error));
}

static void lint(void) {
  const waybill_string arguments[] = {WAYBILL_STRING("--redirect-container-streaming=T"),
                                      WAYBILL_STRING("--feature-gates=ValidateProxyRedirects=1")};
  waybill_streaming_lint_request request = WAYBILL_STREAMING_LINT_REQUEST_INIT;
  request.component = WAYBILL_STREAMING_KUBELET;
  request.version = (waybill_kubernetes_version){1, 20};
  request.arguments = (waybill_strings){arguments, 2};
  waybill_streaming_lint* found = check_poison();
  MUST(waybill_lint_streaming(&request, &found, &error));
  CHECK(found->findings.count == 2);
  CHECK(found->findings.items[0].severity == WAYBILL_STREAMING_REMOVED);
  CHECK(found->findings.items[0].origin == WAYBILL_STREAMING_COMMAND_LINE);
  CHECK_TEXT("--redirect-container-streaming=T", found->findings.items[0].setting);
  CHECK(found->findings.items[1].severity == WAYBILL_STREAMING_IGNORED);
  CHECK(found->redirect_container_streaming == WAYBILL_FLAG_TRUE);
  CHECK(found->gate_count == 1 && found->gates[0].gate == WAYBILL_GATE_VALIDATE_PROXY_REDIRECTS &&
        found->gates[0].enabled);
  waybill_free(found);

  const waybill_streaming_config_value values[] = {
      {WAYBILL_STRING("featureGates.StreamingProxyRedirects"), WAYBILL_STRING("true")}};
  request.version.minor = 24;
  request.arguments = (waybill_strings){NULL, 0};
  request.configuration = values;
  request.configuration_count = 1;
  MUST(waybill_lint_streaming(&request, &found, &error));
  CHECK(found->findings.count == 0); /* has_configuration is false */
  CHECK(found->redirect_container_streaming == WAYBILL_FLAG_NOT_GIVEN);
  waybill_free(found);
  request.has_configuration = true;
  MUST(waybill_lint_streaming(&request, &found, &error));
  CHECK(found->findings.count == 1 &&
        found->findings.items[0].severity == WAYBILL_STREAMING_FATAL &&
        found->findings.items[0].origin == WAYBILL_STREAMING_CONFIGURATION);
  waybill_free(found);

  request.component = WAYBILL_STREAMING_API_SERVER;
  INVALID(waybill_lint_streaming(&request, &found, &error));
  CHECK(found == NULL);
  request.component = 2;
  INVALID(waybill_lint_streaming(&request, &found, &error));
  INVALID(waybill_lint_streaming(&request, NULL, &error));
  INVALID(waybill_lint_streaming(NULL, &found, &error));
}

int main(void) {
  names();
  plan();
  lint();
  return check_result();
}
