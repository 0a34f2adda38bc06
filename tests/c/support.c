#define _XOPEN_SOURCE 700

#include "support.h"

#include <ftw.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS = 1024, PATH_BYTES = 256, PARAMETERS_BYTES = 1024 };

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

static const char* scratch_directory(void) {
  if (directory[0] == '\0') {
    snprintf(directory, sizeof(directory), "%s/waybill-c-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    if (mkdtemp(directory) == NULL) give_up(directory);
    maker = getpid();
    atexit(remove_directory);
  }
  return directory;
}

waybill_text scratch(const char* name) {
  const int index = atomic_fetch_add(&path_count, 1);
  if (index >= PATHS) give_up("too many paths");
  const int length = snprintf(paths[index], PATH_BYTES, "%s/%s", scratch_directory(), name);
  if (length < 0 || length >= PATH_BYTES) give_up("a long path");
  return waybill_text_of(paths[index]);
}

void make_directory(waybill_text path) {
  if (mkdir(path.data, 0700) != 0) give_up(path.data);
}

void empty_directory(waybill_text path) {
  nftw(path.data, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
  make_directory(path);
}

bool is_there(waybill_text path) { return access(path.data, F_OK) == 0; }

const char kOptions[] =
    "{\"settings\": {\"mapBytes\": 67108864}, "
    "\"runtimes\": [{\"name\": \"runc\", \"isDefault\": true, \"userNamespaces\": true}]}";

waybill_store* open_with(const char* name, const char* options) {
  waybill_store* store = NULL;
  waybill_error* error;
  MUST(waybill_open(scratch(name), WAYBILL_NO_LOSS_MARKER, waybill_text_of(options), &store,
                    &error));
  if (!CHECK(store != NULL)) check_exit();
  return store;
}

waybill_store* open_store(const char* name) { return open_with(name, kOptions); }

waybill_store* observe(const char* name) {
  waybill_store* store = NULL;
  waybill_error* error;
  MUST(waybill_observe(scratch(name), &store, &error));
  return store;
}

void end_store(waybill_store* store) {
  waybill_error* error;
  CHECK_CODE(WAYBILL_OK, waybill_close(store, &error));
  waybill_store_free(store);
}

#define STRING(literal) \
  { literal, sizeof(literal) - 1 }
const waybill_credential kSecret = {STRING("tenant-a"), STRING("pull"), STRING("uid-1"),
                                    STRING("hash-1")};
const waybill_credentials kPod = {.secrets = &kSecret, .secret_count = 1};
const waybill_credentials kPodWithout = {.secrets = NULL};

void pull(waybill_store* store) {
  waybill_error* error;
  uint64_t number = 0;
  MUST(waybill_begin_pull(store, APP, &number, &error));
  CHECK(number != 0);
  MUST(waybill_end_pull(store, APP, number, WAYBILL_PULLED, &kPod, NONE, &error));
}

bool may_use(waybill_store* store, const waybill_credentials* pod) {
  return waybill_decide(store, APP, pod).use;
}

void expect(waybill_store* store, const char* name, const char* parameters, const char* part) {
  char* answer = NULL;
  waybill_error* error;
  if (!CHECK_CODE(WAYBILL_OK,
                  waybill_call(store, name, waybill_text_of(parameters), &answer, &error)) ||
      !CHECK_CONTAINS(part, answer)) {
    fprintf(stderr, "  in %s %s\n", name, parameters);
  }
  waybill_free(answer);
}

#define OTHER "\"registry.example.com/other:v1\""
#define LISTED "[{\"id\": \"sha256:aa\", \"repoTags\": [\"" IMAGE "\"]}]"
#define INDEX                                                                             \
  "{\\\"schemaVersion\\\": 2, \\\"manifests\\\": [{\\\"mediaType\\\": "                   \
  "\\\"application/vnd.oci.image.manifest.v1+json\\\", \\\"size\\\": 7, \\\"digest\\\": " \
  "\\\"sha256:9a3f2c5ef0d8a6b1c4e7d09f8b6a5c4d3e2f1a0b9c8d7e6f5a4b3c2d1e0f9a8b\\\", "     \
  "\\\"platform\\\": {\\\"os\\\": \\\"linux\\\", \\\"architecture\\\": \\\"amd64\\\"}}]}"

const json_call kCalls[] = {
    {"MustPull", 'D', "{\"image\": \"" IMAGE "\", \"imageRef\": \"sha256:aa\"}", "\"pull\":true"},
    {"EnsureImage", 'R', "{\"pullPolicy\": \"Always\", \"image\": \"" IMAGE "\"}", "\"action\":\""},
    {"Explain", 'R', "{\"image\": \"" IMAGE "\", \"imageRef\": \"sha256:aa\"}", "tenant-a"},
    {"BeginPull", 'W', "{\"image\": " OTHER "}", "\"pull\":"},
    {"ListPulls", 'R', "{}", OTHER},
    {"EndPull", 'W', "{\"image\": " OTHER ", \"outcome\": \"failed\"}", "{}"},
    {"DropPulls", 'W', "{\"image\": " OTHER ", \"reason\": \"a test\"}", "\"dropped\":"},
    {"BeginList", 'W', "{}", "\"token\":\""},
    {"ClassifyImages", 'W', "{\"images\": " LISTED ", \"token\": \"%T\", \"complete\": true}",
     "\"listed\":1"},
    {"ListImages", 'R', "{\"hashes\": true}", "hash-1"},
    {"AllowImage", 'W',
     "{\"image\": {\"id\": \"sha256:bb\", \"repoTags\": [" OTHER "]}, \"reason\": \"a test\"}",
     "\"changed\":"},
    {"DenyImage", 'W', "{\"imageRef\": \"sha256:bb\", \"reason\": \"a test\"}", "\"changed\":"},
    {"PutImage", 'W', "{\"record\": {\"imageRef\": \"sha256:cc\", \"credentials\": {}}}", "{}"},
    {"DeleteImage", 'W', "{\"imageRef\": \"sha256:cc\"}", "{}"},
    {"PruneBefore", 'W', "{\"images\": " LISTED ", \"token\": \"%T\"}", "\"deleted\":0"},
    {"Revoke", 'W', "{\"kind\": \"secret\", \"namespace\": \"tenant-x\", \"name\": \"gone\"}",
     "\"stored\":"},
    {"RevokeMissing", 'W',
     "{\"secrets\": [{\"namespace\": \"tenant-a\", \"name\": \"pull\"}], "
     "\"serviceAccounts\": [], \"token\": \"%T\"}",
     "\"missing\":0"},
    {"ListRevocations", 'R', "{}", "tenant-x"},
    {"ListRuntimes", 'R', "{}", "runc"},
    {"SetRuntimes", 'W',
     "{\"handlers\": [{\"name\": \"runc\", \"isDefault\": true, "
     "\"userNamespaces\": true}]}",
     "\"added\":[]"},
    {"ClaimUserNamespace", 'W', "{\"podUid\": \"pod-1\", \"hostUsers\": false}", "\"hostId\":"},
    {"AssignUserNamespace", 'W',
     "{\"podUid\": \"pod-2\", \"hostId\": 1073741824, "
     "\"length\": 65536}",
     "{}"},
    {"ListUserNamespaces", 'R', "{}", "\"pod-1\""},
    {"ReleaseUserNamespace", 'W', "{\"podUid\": \"pod-1\"}", "\"released\":"},
    {"CleanUpUserNamespaces", 'W',
     "{\"existing\": [\"pod-3\"], \"running\": [], "
     "\"token\": \"%T\", \"allowEmpty\": true}",
     "\"examined\":"},
    {"GetStatus", 'R', "{}", "\"schemaVersion\":"},
    {"GetMetrics", 'D', "{}", "waybill_"},
    {"Flush", 'R', "{}", "{}"},
    {"NoteUnrecordedPeriod", 'W', "{\"reason\": \"a test\"}", "{}"},
    {"AcceptLoss", 'W', "{\"reason\": \"a test\", \"images\": " LISTED "}", "\"listed\":1"},
    {"Verify", 'R', "{}", "\"sound\":true"},
    {"MakeBackup", 'W', "{}", "\"path\":"},
    {"ExportKubeletFiles", 'R', "{\"kubeletDirectory\": \"%D/exported\", \"images\": " LISTED "}",
     "\"records\":"},
    {"ListKubeletFiles", 'R', "{\"kubeletDirectory\": \"%D/exported\"}", "\"missing\":["},
    {"Migrate", 'L', "{\"directory\": \"%D/nothing\"}", NULL},
    {"ListBackups", 'L', "{\"directory\": \"%D/made\"}", "\"backups\":["},
    {"Restore", 'L', "{\"directory\": \"%D/nothing\", \"backup\": \"%D/nothing\"}", NULL},
    {"WhoChecks", 'L',
     "{\"image\": \"" IMAGE "\", \"runtime\": \"containerd v2.1.0\", "
     "\"root\": \"%D\"}",
     "\"verifiedBy\":"},
    {"ChooseManifest", 'L',
     "{\"index\": \"" INDEX "\", \"host\": {\"os\": \"linux\", "
     "\"architecture\": \"amd64\"}}",
     "\"digest\":\"sha256:9a3f"},
    {"ParseImage", 'L', "{\"image\": \"nginx:1\"}", "\"tag\":\"1\""},
    {"CheckStreamUrl", 'L', "{\"url\": \"http://127.0.0.1:1/exec/x\"}", "\"port\":1"},
    {"PlanStreams", 'L', "{\"apiServer\": \"1.36\", \"kubelet\": \"1.36\"}", "\"outcome\":\""},
    {"PrepareStream", 'S',
     "{\"kind\": \"exec\", \"containerId\": \"c\", \"command\": [\"sh\"], "
     "\"stdout\": true}",
     "\"token\":\""},
    {"ListStreams", 'S', "{}", "\"kind\":\"exec\""},
    {"ConsumeStream", 'S',
     "{\"token\": \"00000000000000000000000000000000\", "
     "\"kind\": \"exec\"}",
     NULL},
};
const size_t kCallCount = COUNT(kCalls);

char* draw_token(waybill_store* store) {
  char* token = NULL;
  waybill_error* error;
  MUST(waybill_call(store, "BeginList", NONE, &token, &error));
  /* {"token":"…"} */
  char* const begin = strstr(token, ":\"");
  char* const end = begin == NULL ? NULL : strchr(begin + 2, '"');
  if (!CHECK(end != NULL)) check_exit();
  const size_t length = (size_t)(end - begin) - 2;
  memmove(token, begin + 2, length);
  token[length] = '\0';
  return token;
}

waybill_code make_call(waybill_store* store, const json_call* call, const char* token,
                       char** answer, waybill_error** error) {
  char parameters[PARAMETERS_BYTES];
  size_t size = 0;
  for (const char* from = call->parameters; *from != '\0'; ++from) {
    const char* put = from[0] != '%' ? NULL : from[1] == 'T' ? token : scratch_directory();
    const int length = put == NULL
                           ? snprintf(parameters + size, PARAMETERS_BYTES - size, "%c", *from)
                           : snprintf(parameters + size, PARAMETERS_BYTES - size, "%s", put);
    size += (size_t)length;
    if (size >= PARAMETERS_BYTES) give_up("long parameters");
    if (put != NULL) ++from;
  }
  *answer = check_poison();
  const waybill_code code =
      waybill_call(store, call->name, (waybill_text){parameters, size}, answer, error);
  CHECK((code == WAYBILL_OK) == (*answer != NULL) && *answer != check_poison());
  return code;
}
