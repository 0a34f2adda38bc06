/* Scratch stores, values and calls that the C tests share. */

#ifndef WAYBILL_TESTS_C_SUPPORT_H_
#define WAYBILL_TESTS_C_SUPPORT_H_

#include "check.h"

#ifdef __cplusplus
extern "C" {
#endif

#define IMAGE "registry.example.com/team/app:v1"
#define REF "sha256:aa"
#define COPY(...) ((waybill_copy){__VA_ARGS__})
#define APP COPY(.image = WAYBILL_TEXT(IMAGE), .image_ref = WAYBILL_TEXT(REF))
#define NONE WAYBILL_NONE
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* `name` in this program's scratch directory, which is removed when the program ends. */
waybill_text scratch(const char* name);
void make_directory(waybill_text path);
void empty_directory(waybill_text path);
bool is_there(waybill_text path);

/* Options of open_store: a small map, and the handler runc. */
extern const char kOptions[];
/* A store in `name`, made if missing, without a loss marker. Never NULL. */
waybill_store* open_with(const char* name, const char* options);
waybill_store* open_store(const char* name);
waybill_store* observe(const char* name);
/* Closes, which must succeed, and frees. */
void end_store(waybill_store* store);

/* The secret of these tests' pods; pods with it, and without credentials. */
extern const waybill_credential kSecret;
extern const waybill_credentials kPod;
extern const waybill_credentials kPodWithout;

/* A whole pull of IMAGE with `kSecret`. */
void pull(waybill_store* store);
/* Whether a pod may use IMAGE without a pull. */
bool may_use(waybill_store* store, const waybill_credentials* pod);
/* Makes a call, and checks that its answer has this part; "" is in each. */
void expect(waybill_store* store, const char* name, const char* parameters, const char* part);

/* One call of each kind. */
typedef struct json_call {
  const char* name;
  /* R reads, W writes, L needs no store, S is of streams; D is a decision or metrics: it never
   * fails. */
  char kind;
  /* %T: a fresh token. %D: the scratch directory. */
  const char* parameters;
  const char* part; /* of the answer on a store in which IMAGE was pulled; NULL: not found */
} json_call;
extern const json_call kCalls[];
extern const size_t kCallCount;

/* Makes it with a token of `store`. The answer must be set if it succeeds, else NULL. */
waybill_code make_call(waybill_store* store, const json_call* call, const char* token,
                       char** answer, waybill_error** error);
/* One of an owner, for %T. waybill_free. */
char* draw_token(waybill_store* store);

#ifdef __cplusplus
}
#endif

#endif /* WAYBILL_TESTS_C_SUPPORT_H_ */
