// waybill_instructions: the hot operations, for callgrind, which counts the instructions of each,
// and pulls, for strace, which counts their system calls (count and calls, beside this file). The
// files are prepared by a run of their own, without callgrind.

#include <fmt/format.h>
#include <lmdb.h>
#include <unistd.h>
#include <xxhash.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "bench/bare_lmdb.h"
#include "bench/data_set.h"
#include "bench/scratch.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/node/facade/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

// A store of 2,000 records and 200 preloaded images, of which a node asks for some again and again.
inline constexpr std::size_t kRecords = 2000;
inline constexpr std::size_t kHot = 200;
inline constexpr std::uint64_t kPreloaded = 30'000'000;
inline constexpr std::uint64_t kShared = 40'000'000;
inline constexpr std::size_t kSecrets = 100;
// Each pass asks all kHot once. The least of the passes counts: now and then the library looks
// whether it still owns the store.
inline constexpr int kPasses = 5;

struct Operations {
  NodeStore* store = nullptr;
  BareLmdb* peer = nullptr;
  std::vector<Question> hits;
  std::vector<Question> preloaded;
  std::vector<Question> shared;                // an image with kSecrets Secrets, each time
  std::vector<ImagePullSecretView> of_tenant;  // of a pod with as many; the last one matches
  std::vector<std::string> pods;
  std::size_t good = 0;  // answers as expected
};

}  // namespace waybill::bench

// The functions that callgrind counts in, by name.

using waybill::bench::Operations;
using waybill::bench::Question;

namespace {

bool Answers(Operations& all, const Question& question, waybill::Reason reason) {
  return Decide(*all.store, question).reason == reason;
}

}  // namespace

#if defined(__x86_64__) && defined(__clang__)
constexpr const char* kCompiler = "x86-64, Clang";
constexpr int kCompilerVersion = __clang_major__;
#elif defined(__x86_64__)
constexpr const char* kCompiler = "x86-64, GCC";
constexpr int kCompilerVersion = __GNUC__;
#else
constexpr const char* kCompiler = "another processor, GCC";
constexpr int kCompilerVersion = __GNUC__;
#endif

extern "C" {

[[gnu::noinline]] void counted_bare_lookup(Operations& all) {
  for (const Question& question : all.hits) {
    all.good += !all.peer->Lookup(question.image_ref).empty();
  }
}

[[gnu::noinline]] void counted_decision_hit(Operations& all) {
  for (const Question& question : all.hits) {
    all.good += Answers(all, question, waybill::Reason::kSecretHashMatches);
  }
}

[[gnu::noinline]] void counted_decision_miss(Operations& all) {
  for (std::size_t i = 0; i < all.hits.size(); ++i) {
    Question question = all.hits[i];
    question.secret = all.hits[(i + 1) % all.hits.size()].secret;
    all.good += Answers(all, question, waybill::Reason::kNoCredentialMatches);
  }
}

[[gnu::noinline]] void counted_decision_secrets(Operations& all) {
  for (const Question& question : all.shared) {
    waybill::FixedCredentials credentials({.secrets = all.of_tenant, .service_account = {}});
    all.good += !all.store
                     ->MustAttemptPull({.image = question.image, .image_ref = question.image_ref},
                                       credentials)
                     .pull;
  }
}

[[gnu::noinline]] void counted_decision_preloaded(Operations& all) {
  for (const Question& question : all.preloaded) {
    all.good += Answers(all, question, waybill::Reason::kPolicyKnownPreloaded);
  }
}

[[gnu::noinline]] void counted_decision_allowlisted(Operations& all) {
  for (const Question& question : all.hits) {
    all.good += Answers(all, question, waybill::Reason::kPolicyAllowlisted);
  }
}

[[gnu::noinline]] void counted_id_mapping(Operations& all) {
  for (const std::string& pod : all.pods) {
    const auto got = all.store->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false});
    all.good += got && got->mode == waybill::NamespaceMode::kPod;
  }
}

}  // extern "C"

namespace waybill::bench {

namespace {

NodeStoreOptions Options(const std::filesystem::path& directory) {
  return ScratchStore(directory / "store").Options();
}

std::vector<std::string> Pods() {
  std::vector<std::string> pods;
  for (std::size_t i = 0; i < kHot; ++i) {
    pods.push_back(fmt::format("{:08x}-1111-4222-8333-444444444444", i * 7919));
  }
  return pods;
}

std::vector<ImagePullSecret> SecretsFrom(std::uint64_t first) {
  std::vector<ImagePullSecret> secrets;
  for (std::uint64_t i = first; i < first + kSecrets; ++i) {
    secrets.push_back(CredentialsOf(i).kubernetes_secrets.front());
  }
  return secrets;
}

void Prepare(const std::filesystem::path& directory) {
  const auto store = Must(NodeStore::Open(Options(directory)));
  for (std::size_t i = 0; i < kRecords; ++i) Must(store->PutRecord(RecordOf(i)));
  ImagePulledRecord shared = RecordOf(kShared);
  auto& secrets = shared.credential_mapping.begin()->second.kubernetes_secrets;
  secrets = SecretsFrom(kShared);
  Must(store->PutRecord(shared));
  ImageList list{.images = ListOfImages(kPreloaded, kHot)};
  for (ListedImage& image : ListOfImages(0, kRecords)) list.images.push_back(std::move(image));
  list.images.push_back(ListOfImages(kShared, 1).front());
  list.token = Must(store->BeginList());
  list.complete = true;
  if (Must(store->ObserveImages(list)).preloaded != kHot) {
    throw std::runtime_error("the preloaded images were not judged as expected");
  }
  Must(store->ReplaceRuntimeHandlers({{.name = "", .is_default = true, .user_namespaces = true}}));
  for (const std::string& pod : Pods()) {
    Must(store->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false}));
  }
  Must(store->Close());
}

std::vector<Question> Hot(const Questions& questions) {
  std::vector<Question> hot;
  for (std::size_t i = 0; i < kHot; ++i) hot.push_back(questions[i]);
  return hot;
}

void Count(Operations& all, void (*counted)(Operations&)) {
  all.good = 0;
  for (int pass = 0; pass < kPasses; ++pass) counted(all);
  if (all.good != kHot * kPasses) {
    throw std::runtime_error("an answer was not as expected; the counts are void");
  }
}

// The first two policies that a node may have; the second reads no credentials.
void Measure(const std::filesystem::path& directory) {
  const Questions hits(kRecords);
  const Questions preloaded(kHot, kPreloaded);
  const Questions shared(1, kShared);
  const std::vector<ImagePullSecret> of_tenant = SecretsFrom(kShared + kSecrets - 1);
  BareLmdb peer(directory / "store", directory / "lookups");
  Operations all{nullptr, &peer, Hot(hits), Hot(preloaded), {}, {}, Pods()};
  all.shared.assign(kHot, shared[0]);
  all.of_tenant.assign(of_tenant.rbegin(), of_tenant.rend());
  Count(all, counted_bare_lookup);

  NodeStoreOptions options = Options(directory);
  auto store = Must(NodeStore::Open(options));
  all.store = store.get();
  Count(all, counted_decision_hit);
  Count(all, counted_decision_miss);
  Count(all, counted_decision_secrets);
  Count(all, counted_decision_preloaded);
  Count(all, counted_id_mapping);
  Must(store->Close());
  store.reset();

  std::vector<std::string> patterns = {"registry.example.com/*"};
  for (std::size_t i = 0; i < 30; ++i) patterns.push_back(fmt::format("docker.io/team-{}/*", i));
  options.policy = Must(
      VerificationPolicy::Make(Verification::kNeverVerifyAllowlistedImages, std::move(patterns)));
  store = Must(NodeStore::Open(options));
  all.store = store.get();
  Count(all, counted_decision_allowlisted);
  Must(store->Close());
}

// For calls, beside this file: strace sees the names that access is asked for.
void Pull(const std::filesystem::path& directory) {
  constexpr std::uint64_t kFirst = 40'000'000;
  constexpr std::uint64_t kPulls = 17;
  const auto store = Must(NodeStore::Open(Options(directory)));
  // A directory that was changed in the last second is looked at more closely after each commit.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  for (std::uint64_t i = kFirst; i < kFirst + kPulls; ++i) {
    const std::string image = ImageOf(i);
    const std::string ref = ImageRefOf(i);
    const ImagePullCredentials credentials = CredentialsOf(i);
    static_cast<void>(access("pull_begins", F_OK));
    const PullId id = Must(store->RecordPullIntent({.image = image}));
    Must(store->RecordImagePulled({.image = image, .image_ref = ref}, credentials, {.pull = id}));
    static_cast<void>(access("pull_ends", F_OK));
  }
  Must(store->Close());
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  try {
    if (argc == 3 && std::string_view(arguments[1]) == "prepare") {
      waybill::bench::Prepare(arguments[2]);
    } else if (argc == 3 && std::string_view(arguments[1]) == "measure") {
      waybill::bench::Measure(arguments[2]);
    } else if (argc == 3 && std::string_view(arguments[1]) == "pulls") {
      waybill::bench::Pull(arguments[2]);
    } else if (argc == 2 && std::string_view(arguments[1]) == "hot") {
      std::printf("%zu\n", waybill::bench::kHot);
    } else if (argc == 2 && std::string_view(arguments[1]) == "built") {
      // Patch releases of the compiler and of LMDB make no difference that counts.
      std::printf("%s %d, LMDB %d.%d, xxHash %d.%d\n", kCompiler, kCompilerVersion,
                  MDB_VERSION_MAJOR, MDB_VERSION_MINOR, XXH_VERSION_MAJOR, XXH_VERSION_MINOR);
    } else {
      std::fprintf(stderr,
                   "usage: waybill_instructions prepare|measure|pulls DIRECTORY, or built|hot\n");
      return 2;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
  return 0;
}
