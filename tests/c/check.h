/* Checks of the C tests. Each prints what failed, and where, and the program goes on; main ends
 * with `return check_result();`. */

#ifndef WAYBILL_TESTS_C_CHECK_H_
#define WAYBILL_TESTS_C_CHECK_H_

#include <stdbool.h>
#include <stdio.h>

#include "waybill.h"

/* Whether it held. */
#define CHECK(condition) check_that((condition), #condition, __FILE__, __LINE__)
/* Checks that `call` returns `expected`. The call may use the variable `error`, which is checked,
 * freed and NULL afterwards. */
#define CHECK_CODE(expected, call) \
  (error = check_poison(), check_code((expected), (call), &error, #call, __FILE__, __LINE__))
#define INVALID(call) CHECK_CODE(WAYBILL_INVALID_ARGUMENT, call)
/* A step that a test takes for granted: the program ends if it fails. */
#define MUST(call)                                   \
  do {                                               \
    if (!CHECK_CODE(WAYBILL_OK, call)) check_exit(); \
  } while (0)
/* Checks that a waybill_string is exactly this, with its zero byte. */
#define CHECK_TEXT(expected, string) check_text((expected), (string), #string, __FILE__, __LINE__)
#define CHECK_CONTAINS(part, string) check_contains((part), (string), #string, __FILE__, __LINE__)

bool check_that(bool held, const char* what, const char* file, int line);
bool check_code(waybill_code expected, waybill_code got, waybill_error** error, const char* what,
                const char* file, int line);
bool check_text(const char* expected, waybill_string got, const char* what, const char* file,
                int line);
bool check_contains(const char* part, waybill_string got, const char* what, const char* file,
                    int line);

/* What results and errors point to before a call, to see whether the call set them. Not NULL, and
 * not valid memory. */
void* check_poison(void);

/* 1 if a check failed or none was made, else 0. */
int check_result(void);
_Noreturn void check_exit(void);

#endif /* WAYBILL_TESTS_C_CHECK_H_ */
