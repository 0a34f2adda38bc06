/* Scratch stores and values that the C tests share. */

#ifndef WAYBILL_TESTS_C_SUPPORT_H_
#define WAYBILL_TESTS_C_SUPPORT_H_

#include "check.h"

#define IMAGE WAYBILL_STRING("registry.example.com/team/app:v1")
#define IMAGE_NAME "registry.example.com/team/app"
#define REF WAYBILL_STRING("sha256:aa")
#define COPY(...) ((waybill_image_copy){__VA_ARGS__})
#define APP COPY(.image = IMAGE, .image_ref = REF)
#define NONE WAYBILL_STRING("")
#define POD WAYBILL_STRING("11111111-2222-3333-4444-555555555555")
#define DIGEST \
  WAYBILL_STRING("sha256:9a3f2c5ef0d8a6b1c4e7d09f8b6a5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b")

enum { SMALL_MAP = 64 << 20 };

/* A string that ends with a zero byte. Not copied. */
waybill_string text(const char* zero_terminated);
/* `name` in this program's scratch directory, which is removed when the program ends. */
waybill_string scratch(const char* name);
/* A file or directory of tests/fixtures. */
waybill_string fixture(const char* name);

void make_directory(waybill_string path);
void copy_file(waybill_string from, waybill_string to);
/* Creates `to`. */
void copy_tree(waybill_string from, waybill_string to);
bool is_there(waybill_string path);
/* Does nothing if there is no such directory. */
void empty_directory(waybill_string path);

/* Options of a store in `name`, created if missing: no witness, the clock `tick`, a small map. */
waybill_open_options store_options(const char* name);
/* A store with these options; NULL is never returned. */
waybill_store* open_with(const waybill_open_options* options);
waybill_store* open_store(const char* name);
waybill_recovery_report* report_of(waybill_store* store);
/* Closes, which must succeed, and frees. */
void end_store(waybill_store* store);

/* A clock that is one second later at each call. */
waybill_timestamp tick(void* context);

/* The secret of these tests' pods, and credentials with only this secret. */
extern const waybill_image_pull_secret kSecret;
extern const waybill_image_pull_credentials kCredentials;
extern const waybill_change_options kMeant;  /* allow_empty */
extern const waybill_change_options kDryRun; /* allow_empty, too */
extern const waybill_pod_credentials kPod;
extern const waybill_pod_credentials kPodWithout;

/* A whole pull of `image` with `kSecret`. */
void pull(waybill_store* store, waybill_string image, waybill_string image_ref);
/* Whether a pod may use IMAGE without a pull. */
bool may_use(waybill_store* store, const waybill_pod_credentials* pod);

#endif /* WAYBILL_TESTS_C_SUPPORT_H_ */
