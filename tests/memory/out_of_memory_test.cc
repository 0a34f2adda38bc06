// Each allocation of every function of the C++ API fails in turn: no exception escapes, nothing is
// half done, nothing counts as damage, and the store stays usable.

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "runtime/files/documents.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/platform.h"
#include "store/base/policy.h"
#include "store/base/timestamp.h"
#include "store/base/words.h"
#include "store/images/judge.h"
#include "store/maintenance.h"
#include "store/pods/pool.h"
#include "tests/support/forked_child.h"
#include "tests/support/node_store.h"
#include "tests/support/rows.h"
#include "tests/support/streaming_scene.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace {

// Allocations of this thread until one fails; 0: none does.
thread_local unsigned long countdown = 0;
thread_local bool failed = false;

bool Fails() {
  if (countdown == 0 || --countdown > 0) return false;
  failed = true;
  errno = ENOMEM;
  return true;
}

}  // namespace

// The C library's own functions. The ones below replace them in the whole process.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* old, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) noexcept { return Fails() ? nullptr : __libc_malloc(size); }
void* calloc(std::size_t count, std::size_t size) noexcept {
  return Fails() ? nullptr : __libc_calloc(count, size);
}
void* realloc(void* old, std::size_t size) noexcept {
  return Fails() ? nullptr : __libc_realloc(old, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return Fails() ? nullptr : __libc_memalign(alignment, size);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t size) noexcept {
  if (Fails()) return ENOMEM;
  *result = __libc_memalign(alignment, size);
  return *result == nullptr ? ENOMEM : 0;
}
}

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(out_of_memory)

namespace {

using Code = std::optional<ErrorCode>;

template <typename T>
Code CodeOf(const Result<T>& result) {
  if (result) return std::nullopt;
  return result.error().code;
}

// Of a function without a Result, which may throw std::bad_alloc and nothing else.
template <typename Work>
Code CodeOfPlain(const Work& work) {
  try {
    static_cast<void>(work());
    return std::nullopt;
  } catch (const std::bad_alloc&) {
    return ErrorCode::kOutOfMemory;
  }
}

struct Outcome {
  Code code;
  bool had_failure = false;
  bool threw = false;
};

// Runs `call` with its n-th allocation failing.
template <typename Call>
Outcome WithFailure(unsigned long n, const Call& call) {
  Outcome outcome;
  failed = false;
  countdown = n;
  try {
    outcome.code = call();
  } catch (...) {
    outcome.threw = true;
  }
  countdown = 0;
  outcome.had_failure = failed;
  return outcome;
}

struct Counts {
  unsigned long calls = 0;
  unsigned long out_of_memory = 0;
};

// Each allocation of `call` in turn; `after` follows each with what came of it.
template <typename Call, typename After>
Counts EachFails(const char* name, const Call& call, const After& after) {
  Counts counts;
  while (true) {
    const Outcome outcome = WithFailure(++counts.calls, call);
    BOOST_TEST_CONTEXT(name << ", allocation " << counts.calls) {
      BOOST_TEST(!outcome.threw);
      BOOST_TEST((!outcome.code || *outcome.code != ErrorCode::kInternal));
      if (outcome.code == ErrorCode::kOutOfMemory) {
        ++counts.out_of_memory;
        BOOST_TEST(outcome.had_failure);
      }
      after(outcome);
    }
    if (!outcome.had_failure) return counts;
  }
}

template <typename Call>
Counts EachFails(const char* name, const Call& call) {
  return EachFails(name, call, [](const Outcome&) {});
}

enum Ending : int { kHadFailure = 0, kWrong = 1, kNoMore = 2, kThrew = 3, kBrokenSince = 4 };

// Each allocation in turn fails in a child of its own.
void EachFailsInChild(const std::function<Ending(unsigned long n)>& run) {
  for (unsigned long n = 1;; ++n) {
    Child child([&]() -> int { return run(n); });
    const int code = child.Wait();
    if (code == kNoMore) return;
    BOOST_REQUIRE_MESSAGE(code == kHadFailure, "allocation " << n << ": " << code);
  }
}

const ImagePullCredentials kCredentials = WithSecret(kSecretA);

const std::string kDigest = std::string(kName) + "@sha256:" + std::string(64, 'd');
const std::string kPreloadedDigest = "registry.example.com/by-hand@sha256:" + std::string(64, 'e');

// Nothing counted as damage, and the record still opens.
void ExpectSound(ScratchStore& store) {
  store.Start();
  const OpeningReport& report = store->recovery_report();
  BOOST_TEST(!report.set_aside);
  BOOST_TEST(!report.distrustful);
  BOOST_TEST(report.findings.empty());
  BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  store.Stop();
}

}  // namespace

// This case is first, since this process has not used libcrypto yet: each allocation of the first
// use fails in a child of its own.
BOOST_AUTO_TEST_CASE(the_first_hash_of_a_process_is_right_or_an_error) {
  const AuthConfig auth{"user", "password", ""};
  constexpr const char* kExpected =
      "a55436fc140d516560d072c5fe8700385ce9f41629abf65c1edcbcb39fac691d";
  EachFailsInChild([&](unsigned long n) {
    std::string hash;
    const Outcome outcome = WithFailure(n, [&] {
      auto hashed = HashCredentials(auth);
      const Code code = CodeOf(hashed);
      if (hashed) hash = std::move(*hashed);
      return code;
    });
    if (outcome.threw) return kThrew;
    if (!outcome.code && hash != kExpected) return kWrong;
    const auto again = HashCredentials(auth);
    if (!again || *again != kExpected) return kBrokenSince;
    return outcome.had_failure ? kHadFailure : kNoMore;
  });
}

// In a child, so that libcrypto stays unused in this process.
BOOST_AUTO_TEST_CASE(making_the_first_store_of_a_process) {
  const TempDir scratch;
  EachFailsInChild([&](unsigned long n) {
    NodeStoreOptions options{.directory = scratch / std::to_string(n), .witness = Witness::None()};
    options.map_bytes = std::uint64_t{1} << 20U;
    const NodeStoreOptions again = options;
    const Outcome outcome =
        WithFailure(n, [&] { return CodeOf(waybill::NodeStore::Open(std::move(options))); });
    if (outcome.threw) return kThrew;
    const auto opened = waybill::NodeStore::Open(again);
    if (!opened || (*opened)->recovery_report().distrustful) return kBrokenSince;
    return outcome.had_failure ? kHadFailure : kNoMore;
  });
}

BOOST_AUTO_TEST_CASE(opening_owning_and_observing) {
  for (const Mode rules : kBothRules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Stop();
    unsigned long out_of_memory = 0;
    bool more = true;
    for (unsigned long n = 1; more; ++n) {
      NodeStoreOptions options = store.Options({{.id = std::string(kRef)}});
      options.runtime_handlers.emplace();
      const Outcome outcome =
          WithFailure(n, [&] { return CodeOf(waybill::NodeStore::Open(std::move(options))); });
      more = outcome.had_failure;
      out_of_memory += outcome.code == ErrorCode::kOutOfMemory;
      BOOST_TEST_CONTEXT("allocation " << n) {
        BOOST_TEST(!outcome.threw);
        BOOST_TEST((!outcome.code || more));
        ExpectSound(store);
      }
    }
    BOOST_TEST(out_of_memory > 100U);
    more = true;
    for (unsigned long n = 1; more; ++n) {
      ObserveOptions options{.directory = store.directory()};
      const Outcome outcome =
          WithFailure(n, [&] { return CodeOf(waybill::NodeStore::Observe(std::move(options))); });
      more = outcome.had_failure;
      BOOST_TEST_CONTEXT("allocation " << n) {
        BOOST_TEST(!outcome.threw);
        BOOST_TEST((!outcome.code || more));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(decisions) {
  for (const Mode rules : kBothRules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    if (rules == Mode::kStrict) {
      // Under another spelling, so that the table of spellings is asked.
      ImageList list{.images = {{.id = "sha256:preloaded", .repo_digests = {kPreloadedDigest}},
                                {.id = std::string(kRef), .repo_digests = {kDigest}}}};
      list.token = Must(store->BeginList());
      BOOST_TEST(Must(store->ObserveImages(list)).preloaded == 1U);
    }
    Pod with(kSecretA);
    Pod without;
    bool more = true;
    for (unsigned long n = 1; more; ++n) {
      Decision allowed;
      Decision denied;
      Decision preloaded;
      Decision spelt;
      EnsureOutcome ensured;
      const Outcome outcome = WithFailure(n, [&] {
        allowed = store->MustAttemptPull({.image = kImage, .image_ref = kRef}, with);
        denied = store->MustAttemptPull({.image = kImage, .image_ref = kRef}, without);
        preloaded =
            store->MustAttemptPull({.image = kImage, .image_ref = kPreloadedDigest}, without);
        spelt = store->MustAttemptPull({.image = kImage, .image_ref = kDigest}, without);
        ensured =
            store->EnsureImage({.image = kImage, .image_ref = kRef}, PullPolicy::kNever, without);
        return Code();
      });
      more = outcome.had_failure;
      BOOST_TEST(!outcome.threw);
      BOOST_TEST((more || !allowed.pull));
      BOOST_TEST((more || !preloaded.pull));
      BOOST_TEST(denied.pull);
      // The kubelet's rules know it under one ref.
      BOOST_TEST((spelt.pull || rules == Mode::kKubelet));
      BOOST_TEST((ensured.action != EnsureAction::kUsePresent));
    }
  }
}

// Open pulls of each end, records that no list had, an unreadable record and intent: whatever may
// have brought an image that is listed now.
BOOST_FIXTURE_TEST_CASE(a_list_beside_all_that_may_have_brought_its_images, ClosedStore) {
  const std::string repository = "registry.example.com/a-team/an-app-of-some-length";
  const auto manager = store.kubelet_directory() / "image_manager";
  for (const char* folder : {"pulled", "pulling"}) {
    std::filesystem::create_directories(manager / folder);
    WriteFile(manager / folder / ("sha256-" + std::string(64, 'e')), "cut off");
  }
  store.Restart();
  BOOST_TEST(Must(store->ListQuarantine()).size() == 2U);
  const auto ref_of = [](char digit) { return "sha256:" + std::string(64, digit); };
  const auto begin = [&](const std::string& tag) {
    return Must(store->RecordPullIntent({.image = repository + tag}));
  };
  store.Pull(repository + ":proven", ref_of('1'), WithSecret(kSecretA));
  store.Pull(repository + "-of-unknown:v1", ref_of('2'), std::nullopt);
  begin(":runs");
  Must(store->RecordImagePullFailed({.image = repository + ":failed"}, PullOutcome::kFailed,
                                    begin(":failed")));
  Must(store->RecordImagePullFailed({.image = repository + ":unknown"}, PullOutcome::kUnknown,
                                    begin(":unknown")));
  begin("-a-short-name-that-nobody-completes");
  const auto observe = [&]() -> Code {
    auto token = store->BeginList();
    if (!token) return token.error().code;
    ClassifyImages call{.dry_run = true};
    ImageList& list = call.list;
    try {
      for (const char* tag : {":proven", ":runs", ":failed", ":unknown", ":other", "-x:v1"}) {
        list.images.push_back({.id = ref_of('a') + tag, .repo_tags = {repository + tag}});
      }
      list.images.push_back({.id = ref_of('3'), .repo_tags = {"registry.example.com/other:v1"}});
    } catch (const std::bad_alloc&) {
      return ErrorCode::kOutOfMemory;  // the caller's own
    }
    list.token = *token;
    list.complete = false;
    return CodeOf(store->Call(call));
  };
  const Counts counts = EachFails("ObserveImages", observe);
  BOOST_TEST(counts.out_of_memory > 100U);
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_FIXTURE_TEST_CASE(maintenance, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  const MigrateOptions down{
      .directory = store.directory(), .to = kNewestSchema - 1, .accept_loss = true};
  const MigrateOptions up{.directory = store.directory(), .to = kNewestSchema};
  for (const MigrateOptions* options : {&down, &up}) {
    const Counts counts = EachFails("Migrate", [&] { return CodeOf(MigrateStore(*options)); });
    BOOST_TEST(counts.out_of_memory > 10U);
  }
  const auto directory = store.directory();
  EachFails("ListBackups", [&] { return CodeOf(BackupsOf(directory)); });
  const auto backup = store.scratch() / "backup";
  std::filesystem::copy(store.directory() / "data.mdb", backup);
  const RestoreOptions restore{.directory = store.directory(), .backup = backup};
  // A failed restore keeps a database aside. Without this, each next call would have more to look
  // at.
  const auto sweep = [&](const Outcome&) { std::filesystem::remove_all(directory / "quarantine"); };
  const Counts counts = EachFails(
      "Restore", [&] { return CodeOf(RestoreStore(restore)); }, sweep);
  BOOST_TEST(counts.out_of_memory > 10U);
  store.Start();
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
}

// The calls of the library: c/memory.
BOOST_AUTO_TEST_CASE(functions_of_values) {
  const std::vector<std::string> pattern = {"registry.example.com/a-long-name/of-it/*"};
  const Platform platform{"arm64", "linux"};
  ImagePulledRecord record;
  record.image_ref = std::string(kRef);
  record.credential_mapping["registry.example.com/team/app"] = kCredentials;
  const std::string pulled = EncodePulledRecord(record);
  const std::string pods =
      R"({"kind":"PodList","apiVersion":"v1","metadata":{},"items":[{"metadata":{"uid":"a-uid-of-some-length"}}]})";
  unsigned long out_of_memory = 0;
  const auto each = [&](const char* name, const auto& call) {
    out_of_memory += EachFails(name, call).out_of_memory;
  };
  each("VerificationPolicy::Make", [&] {
    std::vector<std::string> patterns;
    try {
      patterns = pattern;
    } catch (const std::bad_alloc&) {
      return Code(ErrorCode::kOutOfMemory);  // the caller's own
    }
    return CodeOf(
        VerificationPolicy::Make(Verification::kNeverVerifyAllowlistedImages, std::move(patterns)));
  });
  each("ParseRules", [] { return CodeOf(FromWord<Mode>("no set of rules", "mode")); });
  each("ParsePullPolicy",
       [] { return CodeOf(FromWord<PullPolicy>("no pull policy", "pull policy")); });
  each("ParseVerification", [] {
    return CodeOf(FromWord<Verification>("no such mode", "credential verification policy"));
  });
  each("ParsePlatform",
       [] { return CodeOf(ParsePlatform("linux/amd64/v-of-some-length/too-much")); });
  each("ParseTimestamp", [] { return CodeOf(ParseTimestamp("not a timestamp at all")); });
  each("CheckIdPool", [] { return CodeOf(CheckIdPool({1, 1, 1})); });
  each("PoolOfSubordinateIds", [] {
    SubordinateIds found;
    found.user_exists = found.tool_exists = true;
    return CodeOf(PoolOfSubordinateIds(found));
  });
  each("DecodePulledRecord", [&] { return CodeOf(DecodePulledRecord(pulled)); });
  each("DecodePullIntent", [&] { return CodeOf(DecodePullIntent(pulled)); });
  each("DecodePreloadedRecord", [&] { return CodeOf(DecodePreloadedRecord(pulled)); });
  each("DecodePodList", [&] { return CodeOf(DecodePodList(pods)); });
  each("DecodeImageList",
       [&] { return CodeOf(DecodeImageList(R"({"images":[{"id":"an-id"}]})")); });
  each("DecodePreloadedList",
       [&] { return CodeOf(DecodePreloadedList(R"({"images":[{"repoTags":["a:1"]}]})")); });
  each("ParseShortNames", [] {
    return CodeOf(FromWord<ShortNames>("no such short names", "meaning of short names"));
  });
  each("NamesGivenBy", [&] {
    return CodeOfPlain([&] { return NamesGivenBy({}, ShortNames::kDockerHub).size(); });
  });
  each("DecodeImageIndex", [&] { return CodeOf(DecodeImageIndex(R"({"manifests":[]})")); });
  each("DecodeRuntimeStatus",
       [&] { return CodeOf(DecodeRuntimeStatus(R"({"runtimeHandlers":[{"name":"a"}]})")); });
  each("DecodeAuthDocument", [&] {
    return CodeOf(DecodeAuthDocument(R"({"auths":{"registry.example.com":{"username":"a"}}})"));
  });
  each("plain values", [&] {
    return CodeOfPlain([&] {
      return NormaliseImage("a-name-that-is-long-enough").value_or("") + RepositoryOf(kImage) +
             FormatPlatform(platform) + EncodePulledRecord(record) + FormatTimestamp({});
    });
  });
  BOOST_TEST(out_of_memory > 50U);
}

// A token that could not be given out is not open; one that could not be used up still is.
BOOST_FIXTURE_TEST_CASE(streaming_requests, Streams) {
  scene.Start();
  const StreamRequest request = NumberedExec(1);
  Must(scene->Consume(scene.Prepare(), StreamKind::kExec));  // what is allocated once
  std::optional<Result<std::string>> token;
  const auto expected = [](const Outcome& outcome) {
    return !outcome.code || outcome.code == ErrorCode::kOutOfMemory ||
           outcome.code == ErrorCode::kIo || outcome.code == ErrorCode::kOutcomeUnknown;
  };
  // LMDB allocates while it commits.
  const auto restarts = [&](const Outcome& outcome) {
    if (outcome.code == ErrorCode::kOutcomeUnknown) scene.Restart();
    return outcome.code == ErrorCode::kOutcomeUnknown;
  };
  const auto prepare = [&] {
    token.emplace(scene->Prepare(request));
    return CodeOf(*token);
  };
  const Counts prepared = EachFails("Prepare", prepare, [&](const Outcome& outcome) {
    BOOST_TEST(expected(outcome));
    if (restarts(outcome)) return;
    if (!outcome.code) Must(scene->Consume(**token, StreamKind::kExec));
    BOOST_TEST(scene->GetCounters().open == 0U);
  });
  BOOST_TEST(prepared.out_of_memory > 5U);
  std::string open = scene.Prepare();
  const auto consume = [&] { return CodeOf(scene->Consume(open, StreamKind::kExec)); };
  const Counts consumed = EachFails("Consume", consume, [&](const Outcome& outcome) {
    BOOST_TEST(expected(outcome));
    if (!restarts(outcome) && outcome.code) {
      BOOST_TEST((Must(scene->Consume(open, StreamKind::kExec)) == NumberedExec(1)));
    }
    BOOST_TEST(scene->GetCounters().open == 0U);
    open = scene.Prepare();
  });
  BOOST_TEST(consumed.out_of_memory > 5U);
  BOOST_TEST(Must(scene->Verify()).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
