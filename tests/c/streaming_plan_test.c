/* Streaming: the plan of a pair, and what a release makes of settings. What is refused. */

#include <string.h>

#include "support.h"

static waybill_error* error;

static void names(void) {
  waybill_kubernetes_version version = {0, 0};
  MUST(waybill_parse_kubernetes_version(WAYBILL_STRING("v1.36.0-rc.1+k3s1"), &version, &error));
  CHECK(version.major == 1 && version.minor == 36);
  INVALID(waybill_parse_kubernetes_version(WAYBILL_STRING("1"), &version, &error));
  INVALID(waybill_parse_kubernetes_version(WAYBILL_STRING("1.22"), NULL, &error));
  int32_t gate = -1;
  CHECK(waybill_find_streaming_gate(waybill_streaming_gate_name(WAYBILL_GATE_ALL_BETA), &gate));
  CHECK(gate == WAYBILL_GATE_ALL_BETA);
  CHECK(waybill_find_streaming_gate(WAYBILL_STRING("AllBeta"), NULL));
  CHECK(!waybill_find_streaming_gate(NONE, NULL));
  CHECK_TEXT("", waybill_streaming_gate_name(8));
  CHECK_TEXT("", waybill_streaming_severity_name(-1));
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
  CHECK(answer->findings.count == 1 && answer->notes.count == 1);
  CHECK_TEXT("--redirect-container-streaming", answer->findings.items[0].subject);
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
  const waybill_string gate = WAYBILL_STRING("--feature-gates=StreamingProxyRedirects=true");
  waybill_streaming_lint_request request = WAYBILL_STREAMING_LINT_REQUEST_INIT;
  request.component = WAYBILL_STREAMING_KUBELET;
  request.version = (waybill_kubernetes_version){1, 24};
  waybill_streaming_lint* found = check_poison();
  MUST(waybill_lint_streaming(&request, &found, &error));
  CHECK(found->findings.count == 0);
  waybill_free(found);
  request.arguments = (waybill_strings){&gate, 1};
  MUST(waybill_lint_streaming(&request, &found, &error));
  CHECK(found->findings.count == 1 && found->gate_count == 1);
  waybill_free(found);

  request.component = 2;
  INVALID(waybill_lint_streaming(&request, &found, &error));
  CHECK(found == NULL);
  INVALID(waybill_lint_streaming(&request, NULL, &error));
  INVALID(waybill_lint_streaming(NULL, &found, &error));
}

int main(void) {
  names();
  plan();
  lint();
  return check_result();
}
