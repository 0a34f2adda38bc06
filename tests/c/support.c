#define _XOPEN_SOURCE 700

#include "support.h"

#include <dirent.h>
#include <ftw.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS = 4096, PATH_BYTES = 512 };

static char directory[PATH_BYTES];
static pid_t maker;
static char paths[PATHS][PATH_BYTES];
static atomic_int path_count;

static _Noreturn void give_up(const char* what) {
  perror(what);
  exit(1);
}

static int remove_entry(const char* path, const struct stat* status, int kind, struct FTW* where) {
  (void)status;
  (void)kind;
  (void)where;
  return remove(path);
}

static void remove_directory(void) {
  if (getpid() == maker) nftw(directory, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

waybill_string text(const char* zero_terminated) {
  return (waybill_string){zero_terminated, strlen(zero_terminated)};
}

static waybill_string join(const char* parent, const char* name) {
  const int index = atomic_fetch_add(&path_count, 1);
  if (index >= PATHS) give_up("too many paths");
  const int length = snprintf(paths[index], PATH_BYTES, "%s/%s", parent, name);
  if (length < 0 || length >= PATH_BYTES) give_up("a long path");
  return text(paths[index]);
}

waybill_string scratch(const char* name) {
  if (directory[0] == '\0') {
    snprintf(directory, sizeof(directory), "%s/waybill-c-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(directory) == NULL) give_up(directory);
    maker = getpid();
    atexit(remove_directory);
  }
  return join(directory, name);
}

waybill_string fixture(const char* name) { return join(WAYBILL_FIXTURES, name); }

void make_directory(waybill_string path) {
  if (mkdir(path.data, 0700) != 0) give_up(path.data);
}

void copy_file(waybill_string from, waybill_string to) {
  FILE* in = fopen(from.data, "rb");
  FILE* out = fopen(to.data, "wb");
  if (in == NULL || out == NULL) give_up(from.data);
  char bytes[4096];
  for (size_t count; (count = fread(bytes, 1, sizeof(bytes), in)) > 0;) {
    if (fwrite(bytes, 1, count, out) != count) give_up(to.data);
  }
  if (fclose(in) != 0 || fclose(out) != 0) give_up(to.data);
}

void copy_tree(waybill_string from, waybill_string to) {
  make_directory(to);
  DIR* entries = opendir(from.data);
  if (entries == NULL) give_up(from.data);
  for (struct dirent* entry; (entry = readdir(entries)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    const waybill_string source = join(from.data, entry->d_name);
    const waybill_string copy = join(to.data, entry->d_name);
    struct stat status;
    if (stat(source.data, &status) != 0) give_up(source.data);
    if (S_ISDIR(status.st_mode)) {
      copy_tree(source, copy);
    } else {
      copy_file(source, copy);
    }
  }
  closedir(entries);
}

bool is_there(waybill_string path) { return access(path.data, F_OK) == 0; }

static atomic_llong seconds = 1767225600; /* 2026-01-01 */

waybill_timestamp tick(void* context) {
  (void)context;
  return (waybill_timestamp){atomic_fetch_add(&seconds, 1), 0};
}

void empty_directory(waybill_string path) {
  if (!is_there(path)) return;
  nftw(path.data, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  make_directory(path);
}

/* So that a list that lacks an image shows what it deletes. */
static const waybill_evidence_options kForgets = {.struct_size = sizeof(kForgets),
                                                  .remember_seconds = -1};

waybill_open_options store_options(const char* name) {
  waybill_open_options options = WAYBILL_OPEN_OPTIONS_INIT;
  options.directory = scratch(name);
  options.witness_kind = WAYBILL_WITNESS_NONE;
  options.map_bytes = SMALL_MAP;
  options.clock = tick;
  options.evidence = &kForgets;
  return options;
}

waybill_store* open_with(const waybill_open_options* options) {
  waybill_store* store = NULL;
  waybill_error* error;
  MUST(waybill_open(options, &store, &error));
  if (!CHECK(store != NULL)) check_exit();
  return store;
}

waybill_store* open_store(const char* name) {
  const waybill_open_options options = store_options(name);
  return open_with(&options);
}

waybill_recovery_report* report_of(waybill_store* store) {
  waybill_recovery_report* report = NULL;
  waybill_error* error;
  MUST(waybill_get_recovery_report(store, &report, &error));
  return report;
}

void end_store(waybill_store* store) {
  waybill_error* error;
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  waybill_store_free(store);
}

#define STRING(literal) \
  { literal, sizeof(literal) - 1 }
const waybill_image_pull_secret kSecret = {STRING("uid-1"), STRING("tenant-a"), STRING("pull"),
                                           STRING("hash-1")};
const waybill_image_pull_credentials kCredentials = {.secrets = &kSecret, .secret_count = 1};
const waybill_change_options kMeant = {.struct_size = sizeof(waybill_change_options),
                                       .allow_empty = true};
const waybill_change_options kDryRun = {
    .struct_size = sizeof(waybill_change_options), .allow_empty = true, .dry_run = true};
const waybill_pod_credentials kPod = {.secrets = &kSecret, .secret_count = 1};
const waybill_pod_credentials kPodWithout = {.secrets = NULL};

void pull(waybill_store* store, waybill_string image, waybill_string image_ref) {
  waybill_error* error;
  waybill_pull_result result = WAYBILL_PULL_RESULT_INIT;
  MUST(waybill_record_pull_intent(store, COPY(.image = image), &result.pull, &error));
  MUST(waybill_record_image_pulled(store, COPY(.image = image, .image_ref = image_ref),
                                   &kCredentials, &result, &error));
}

bool may_use(waybill_store* store, const waybill_pod_credentials* pod) {
  return !waybill_must_attempt_pull(store, APP, pod).pull;
}
