/* Checks of the C tests. Each prints what failed, and where, and the program goes on; main ends
 * with `return check_result();`. */

#ifndef WAYBILL_TESTS_C_CHECK_H_
#define WAYBILL_TESTS_C_CHECK_H_

#include <stdbool.h>
#include <stdio.h>

#include "waybill.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether it held. */
#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)
/* Checks that `call` returns `expected`. The call may use the variable `error`, which is checked,
 * freed and NULL afterwards. */
#define CHECK_CODE(expected, call) \
  (error = check_error(), check_code((expected), (call), &error, #call, __FILE__, __LINE__))
#define INVALID(call) CHECK_CODE(WAYBILL_INVALID_ARGUMENT, call)
/* A step that a test takes for granted: the program ends if it fails. */
#define MUST(call)                                   \
  do {                                               \
    if (!CHECK_CODE(WAYBILL_OK, call)) check_exit(); \
  } while (0)
#define CHECK_CONTAINS(part, text) check_contains((part), (text), __FILE__, __LINE__)

bool check_that(bool held, const char* what, const char* file, int line);
bool check_code(waybill_code expected, waybill_code got, waybill_error** error, const char* what,
                const char* file, int line);
bool check_contains(const char* part, const char* text, const char* file, int line);

/* What results and errors point to before a call, to see whether the call set them. Not NULL, and
 * not valid memory. */
void* check_poison(void);
waybill_error* check_error(void); /* the same */

/* 1 if a check failed or none was made, else 0. */
int check_result(void);
__attribute__((noreturn)) void check_exit(void);

#ifdef __cplusplus
}
#endif

#endif /* WAYBILL_TESTS_C_CHECK_H_ */
