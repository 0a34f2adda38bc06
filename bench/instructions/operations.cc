// waybill_instructions: the hot operations, for callgrind, which counts the instructions of each,
// and pulls, for strace, which counts their system calls (count, beside this file). The
// files are prepared by a run of their own, without callgrind.

#include <fmt/format.h>
#include <lmdb.h>
#include <unistd.h>
#include <valgrind/callgrind.h>
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
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

// A store of 2,000 records and 200 preloaded images, of which a node asks for some again and again.
constexpr std::size_t kRecords = 2000;
constexpr std::size_t kHot = 200;
constexpr std::uint64_t kPreloaded = 30'000'000;
constexpr std::uint64_t kShared = 40'000'000;  // an image of kSecrets Secrets
constexpr std::size_t kSecrets = 100;

// What was counted depends on it. Patch releases of the compiler and of LMDB make no difference
// that counts.
std::string BuiltBy() {
#if !defined(__x86_64__)
  const std::string compiler = fmt::format("another processor, GCC {}", __GNUC__);
#elif defined(__clang__)
  const std::string compiler = fmt::format("x86-64, Clang {}", __clang_major__);
#else
  const std::string compiler = fmt::format("x86-64, GCC {}", __GNUC__);
#endif
  return fmt::format("{}, LMDB {}.{}, xxHash {}.{}", compiler, MDB_VERSION_MAJOR, MDB_VERSION_MINOR,
                     XXH_VERSION_MAJOR, XXH_VERSION_MINOR);
}

// Each pass asks kHot times: `ask` gets the number, and says whether the answer was as expected. A
// pass is a dump. The least of the passes counts: now and then the library looks whether it still
// owns the store.
template <typename Ask>
void Count(const char* name, const Ask& ask) {
  for (int pass = 0; pass < 5; ++pass) {
    std::size_t good = 0;
    CALLGRIND_TOGGLE_COLLECT;
    for (std::size_t i = 0; i < kHot; ++i) good += ask(i) ? 1 : 0;
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS_AT(name);
    if (good != kHot)
      throw std::runtime_error("an answer was not as expected; the counts are void");
  }
}

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
  for (std::size_t i = 0; i < kRecords; ++i) Must(store->Call(PutImage{.record = RecordOf(i)}));
  ImagePulledRecord shared = RecordOf(kShared);
  shared.credential_mapping.begin()->second.kubernetes_secrets = SecretsFrom(kShared);
  Must(store->Call(PutImage{.record = shared}));
  ImageList list{.images = ListOfImages(kPreloaded, kHot)};
  for (ListedImage& image : ListOfImages(0, kRecords)) list.images.push_back(std::move(image));
  list.images.push_back(ListOfImages(kShared, 1).front());
  list.token = Must(store->Call(BeginList())).token;
  list.complete = true;
  if (Must(store->Call(ClassifyImages{.list = list})).preloaded != kHot) {
    throw std::runtime_error("the preloaded images were not judged as expected");
  }
  Must(store->Call(
      SetRuntimes{.handlers = {{.name = "", .is_default = true, .user_namespaces = true}}}));
  for (const std::string& pod : Pods()) {
    Must(store->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false}));
  }
  Must(store->Close());
  fmt::print("{}\n", BuiltBy());
}

void Measure(const std::filesystem::path& directory) {
  const Questions hits(kRecords);  // the first kHot of them are asked
  const Questions preloaded(kHot, kPreloaded);
  {
    BareLmdb peer(directory / "store", directory / "lookups");
    Count("bare_lookup", [&](std::size_t i) { return !peer.Lookup(hits[i].image_ref).empty(); });
  }
  NodeStoreOptions options = Options(directory);
  auto store = Must(NodeStore::Open(options));
  const auto answers = [&](const Question& question, Reason reason) {
    return Decide(*store, question).reason == reason;
  };
  Count("decision_hit",
        [&](std::size_t i) { return answers(hits[i], Reason::kSecretHashMatches); });
  Count("decision_miss", [&](std::size_t i) {
    Question question = hits[i];
    question.secret = hits[(i + 1) % kHot].secret;
    return answers(question, Reason::kNoCredentialMatches);
  });
  // Of a pod with as many Secrets; the last one matches.
  const Questions shared(1, kShared);
  const std::vector<ImagePullSecret> secrets = SecretsFrom(kShared + kSecrets - 1);
  const std::vector<ImagePullSecretView> of_tenant(secrets.rbegin(), secrets.rend());
  Count("decision_secrets", [&](std::size_t) {
    FixedCredentials credentials({.secrets = of_tenant, .service_account = {}});
    return !store
                ->MustAttemptPull({.image = shared[0].image, .image_ref = shared[0].image_ref},
                                  credentials)
                .pull;
  });
  Count("decision_preloaded",
        [&](std::size_t i) { return answers(preloaded[i], Reason::kPolicyKnownPreloaded); });
  const std::vector<std::string> pods = Pods();
  Count("id_mapping", [&](std::size_t i) {
    const auto got = store->GetOrCreateUserNamespace({.pod_uid = pods[i], .host_users = false});
    return got && got->mode == NamespaceMode::kPod;
  });
  Must(store->Close());
  store.reset();

  // A policy that reads no credentials.
  std::vector<std::string> patterns = {"registry.example.com/*"};
  for (std::size_t i = 0; i < 30; ++i) patterns.push_back(fmt::format("docker.io/team-{}/*", i));
  options.policy = Must(
      VerificationPolicy::Make(Verification::kNeverVerifyAllowlistedImages, std::move(patterns)));
  store = Must(NodeStore::Open(options));
  Count("decision_allowlisted",
        [&](std::size_t i) { return answers(hits[i], Reason::kPolicyAllowlisted); });
  Must(store->Close());
  fmt::print("hot: {}\n", kHot);
}

// strace sees the names that access is asked for.
void Pulls(NodeStore& store, std::uint64_t first, const char* begins) {
  constexpr std::uint64_t kPulls = 17;
  for (std::uint64_t i = first; i < first + kPulls; ++i) {
    const std::string image = ImageOf(i);
    const std::string ref = ImageRefOf(i);
    const ImagePullCredentials credentials = CredentialsOf(i);
    static_cast<void>(access(begins, F_OK));
    const std::uint64_t pull = Must(store.Call(BeginPull{.image = image})).pull;
    Must(store.Call(EndPull{.image = image,
                            .image_ref = ref,
                            .pull = pull,
                            .outcome = PullOutcome::kPulled,
                            .credentials = credentials}));
    static_cast<void>(access("pull_ends", F_OK));
  }
}

void PullAloneAndBesideOthers(const std::filesystem::path& directory) {
  constexpr std::uint64_t kFirst = 40'000'000;
  constexpr std::uint64_t kOthers = 50'000'000;
  const auto store = Must(NodeStore::Open(Options(directory)));
  // A directory that was changed in the last second is looked at more closely after each commit.
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  Pulls(*store, kFirst, "pull_begins");
  for (std::uint64_t i = kOthers; i < kOthers + 20; ++i) {
    Must(store->Call(BeginPull{.image = ImageOf(i)}));
  }
  Pulls(*store, kFirst + 1000, "pull_begins_beside_20");
  Must(store->Close());
}

}  // namespace
}  // namespace waybill::bench

int main(int argc, char** argv) {
  using namespace waybill::bench;
  const std::pair<std::string_view, void (*)(const std::filesystem::path&)> runs[] = {
      {"prepare", Prepare}, {"measure", Measure}, {"pulls", PullAloneAndBesideOthers}};
  try {
    for (const auto& [name, run] : runs) {
      if (argc != 3 || argv[1] != name) continue;
      run(argv[2]);
      return 0;
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error: %s\n", e.what());
    return 1;
  }
  std::fprintf(stderr, "usage: waybill_instructions prepare|measure|pulls DIRECTORY\n");
  return 2;
}
