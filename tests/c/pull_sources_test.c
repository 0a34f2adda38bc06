/* Who serves a pull: what only C can do wrong. The answers are judged in Go. */

#include <string.h>

#include "support.h"

static waybill_error* error;

int main(void) {
  const waybill_string nowhere = {NULL, 7};
  waybill_runtime_answers answers = WAYBILL_RUNTIME_ANSWERS_INIT;
  answers.version = WAYBILL_STRING("containerd v2.4.2");
  answers.root = scratch("none");
  waybill_runtime_pulls* pulls = check_poison();
  INVALID(waybill_read_runtime_pulls(&answers, NULL, &error));
  answers.status = nowhere;
  INVALID(waybill_read_runtime_pulls(&answers, &pulls, &error));
  CHECK(pulls == NULL);
  answers.status = NONE;
  answers.struct_size = 8;
  INVALID(waybill_read_runtime_pulls(&answers, &pulls, &error));
  answers.struct_size = sizeof answers;
  MUST(waybill_read_runtime_pulls(&answers, &pulls, &error));
  CHECK(pulls->runtime == WAYBILL_RUNTIME_CONTAINERD);
  CHECK(pulls->problems.count == 1);

  waybill_pull_sources* sources = check_poison();
  INVALID(waybill_pull_sources_of(NULL, IMAGE, NONE, &sources, &error));
  CHECK(sources == NULL);
  INVALID(waybill_pull_sources_of(pulls, IMAGE, NONE, NULL, &error));
  INVALID(waybill_pull_sources_of(pulls, nowhere, NONE, &sources, &error));
  INVALID(waybill_pull_sources_of(pulls, IMAGE, nowhere, &sources, &error));
  waybill_runtime_pulls wrong = *pulls;
  wrong.runtime = 3;
  INVALID(waybill_pull_sources_of(&wrong, IMAGE, NONE, &sources, &error));
  wrong = *pulls;
  wrong.mirrors = NULL;
  wrong.mirror_count = 1;
  INVALID(waybill_pull_sources_of(&wrong, IMAGE, NONE, &sources, &error));
  MUST(waybill_pull_sources_of(pulls, IMAGE, NONE, &sources, &error));
  CHECK(sources->checker == WAYBILL_CHECKER_UNKNOWN);
  CHECK_TEXT("registry.example.com", sources->registry);
  CHECK_TEXT("unknown", waybill_proof_checker_name(sources->checker));
  CHECK(waybill_proof_checker_name(4).length == 0);
  waybill_free(sources);
  waybill_free(pulls);
  return check_result();
}
