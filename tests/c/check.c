#include "check.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static atomic_int made;
static atomic_int failed;
static char nobodys;

void* check_poison(void) { return &nobodys; }
waybill_error* check_error(void) { return check_poison(); }

bool check_that(bool held, const char* what, const char* file, int line) {
  atomic_fetch_add(&made, 1);
  if (!held) {
    atomic_fetch_add(&failed, 1);
    fprintf(stderr, "%s:%d: %s\n", file, line, what);
  }
  return held;
}

/* What every function promises about its error. */
static bool error_matches(waybill_code code, const waybill_error* error) {
  if (error == check_poison()) return true; /* the call was not given it */
  if (code == WAYBILL_OK || code == WAYBILL_OUT_OF_MEMORY) return error == NULL;
  return error != NULL && error->code == code && error->message[0] != '\0' && error->hint != NULL;
}

bool check_code(waybill_code expected, waybill_code got, waybill_error** error, const char* what,
                const char* file, int line) {
  const bool matches = error_matches(got, *error);
  const bool held = check_that(got == expected && matches, what, file, line);
  const bool has_text = *error != NULL && *error != check_poison();
  if (!held) {
    fprintf(stderr, "  expected %s, got %s%s: %s (%s)\n", waybill_code_name(expected),
            waybill_code_name(got), matches ? "" : ", with an error that does not match it",
            has_text ? (*error)->message : "", has_text ? (*error)->hint : "");
  }
  if (has_text) waybill_free(*error);
  *error = NULL;
  return held;
}

bool check_contains(const char* part, const char* text, const char* file, int line) {
  const bool held = text != NULL && strstr(text, part) != NULL;
  check_that(held, "a text without what it should have", file, line);
  if (!held) fprintf(stderr, "  expected \"%s\" in \"%s\"\n", part, text == NULL ? "" : text);
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
