#include "check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int made;
static atomic_int failed;
static char nobodys;

void* check_poison(void) { return &nobodys; }

bool check_that(bool held, const char* what, const char* file, int line) {
  atomic_fetch_add(&made, 1);
  if (!held) {
    atomic_fetch_add(&failed, 1);
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
  }
  return held;
}

static bool ends_with_zero(waybill_string string) {
  return string.data != NULL && string.data[string.length] == '\0';
}

/* What every function promises about its error. */
static bool error_matches(waybill_code code, const waybill_error* error) {
  if (error == check_poison()) return true; /* the call was not given it */
  if (code == WAYBILL_OK) return error == NULL;
  if (error == NULL) return code == WAYBILL_OUT_OF_MEMORY;
  return error->code == code && error->message.length > 0 && ends_with_zero(error->message) &&
         ends_with_zero(error->hint);
}

bool check_code(waybill_code expected, waybill_code got, waybill_error** error, const char* what,
                const char* file, int line) {
  const bool matches = error_matches(got, *error);
  const bool held = got == expected && matches;
  check_that(held, what, file, line);
  const bool has_text = *error != NULL && *error != check_poison();
  if (!held) {
    fprintf(stderr, "  expected %s, got %s%s", waybill_code_name(expected).data,
            waybill_code_name(got).data, matches ? "" : ", with an error that does not match it");
    if (has_text) {
      fprintf(stderr, ": %s (%s)", (*error)->message.data, (*error)->hint.data);
    }
    fprintf(stderr, "\n");
  }
  if (has_text) waybill_free(*error);
  *error = NULL;
  return held;
}

bool check_text(const char* expected, waybill_string got, const char* what, const char* file,
                int line) {
  const bool held = ends_with_zero(got) && got.length == strlen(expected) &&
                    memcmp(got.data, expected, got.length) == 0;
  check_that(held, what, file, line);
  if (!held) {
    fprintf(stderr, "  expected \"%s\", got \"%.*s\"\n", expected, (int)got.length,
            got.data == NULL ? "" : got.data);
  }
  return held;
}

bool check_contains(const char* part, waybill_string got, const char* what, const char* file,
                    int line) {
  const bool held = ends_with_zero(got) && strstr(got.data, part) != NULL;
  check_that(held, what, file, line);
  if (!held) {
    fprintf(stderr, "  expected \"%s\" in \"%.*s\"\n", part, (int)got.length,
            got.data == NULL ? "" : got.data);
  }
  return held;
}

int check_result(void) {
  const int bad = atomic_load(&failed);
  const int all = atomic_load(&made);
  fprintf(stderr, "%d checks, %d failed\n", all, bad);
  return bad != 0 || all == 0;
}

void check_exit(void) {
  check_result();
  exit(1);
}
