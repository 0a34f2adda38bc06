// A store in a directory of its own, with a fake clock, that can be closed and started again.

#ifndef WAYBILL_TESTS_SUPPORT_STORE_FIXTURE_H_
#define WAYBILL_TESTS_SUPPORT_STORE_FIXTURE_H_

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "tests/support/fake_clock.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "tests/support/temp_dir.h"
#include "waybill/values.h"

namespace waybill::testing {

inline constexpr Mode kBothRules[] = {Mode::kKubelet, Mode::kStrict};

// The value, or an exception with the error's text: for steps that a test takes for granted.
template <typename T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

inline VerificationPolicy MakePolicy(Verification mode, std::vector<std::string> patterns = {},
                                     AllowlistScope scope = AllowlistScope::kAnyImage) {
  return Must(VerificationPolicy::Make(mode, std::move(patterns), scope));
}

// A store below `directory` with a witness beside it, a clock that stands still and a small map.
inline NodeStoreOptions OptionsIn(const std::filesystem::path& directory,
                                  Mode rules = Mode::kStrict) {
  NodeStoreOptions options{.directory = directory / "store",
                           .witness = Witness::At(directory / "witness")};
  options.rules = rules;
  options.clock = FakeClock().AsClock();
  options.boot_clock = FakeClock().AsBootClock();
  options.map_bytes = std::uint64_t{64} << 20U;
  return options;
}

// What a store decides for a pod; by default one without credentials.
inline Decision DecisionOf(waybill::NodeStore& store, const ImageCopy& copy, Pod pod = Pod()) {
  return store.MustAttemptPull(copy, pod);
}

class ScratchStore {
 public:
  // Opens at once: the default policy, and a node without images.
  explicit ScratchStore(Mode rules, VerificationPolicy policy = {},
                        std::vector<ListedImage> images = {}, bool with_witness = true)
      : rules_(rules), policy_(std::move(policy)), with_witness_(with_witness) {
    std::filesystem::create_directory(kubelet_directory());
    Start(std::move(images));
  }

  NodeStore* operator->() { return store_.get(); }
  NodeStore& operator*() { return *store_; }
  FakeClock& clock() { return clock_; }
  Mode rules() const { return rules_; }

  std::filesystem::path directory() const { return scratch_ / "store"; }
  std::filesystem::path witness() const { return scratch_ / "witness"; }
  // Imported at each start as soon as there are files in it.
  std::filesystem::path kubelet_directory() const { return scratch_ / "kubelet"; }
  std::filesystem::path scratch() const { return scratch_.path(); }

  // From here on nothing is remembered of images that are gone.
  void RememberNothing() {
    evidence_.remember = std::chrono::seconds(0);
    Restart();
  }
  // From here on forgetting rewrites so many records in one commit.
  void ChangeAtOnce(std::size_t records) {
    rows_at_once_ = records;
    Restart();
  }
  void set_policy(VerificationPolicy policy) { policy_ = std::move(policy); }

  void Stop() {
    if (store_) Must(store_->Close());
    store_.reset();
  }
  // As if there had been no store: the next start is a first one.
  void Vanish() {
    Stop();
    std::filesystem::remove_all(directory());
    std::filesystem::remove(witness());
  }
  void Start(std::vector<ListedImage> images = {}) {
    store_ = Must(NodeStore::Open(Options(std::move(images))));
  }
  void Restart(std::vector<ListedImage> images = {}) {
    Stop();
    Start(std::move(images));
  }

  // What this store is opened with, for a process that opens it itself.
  NodeStoreOptions Options(std::vector<ListedImage> images) const {
    NodeStoreOptions options = OptionsIn(scratch(), rules_);
    if (!with_witness_) options.witness = Witness::None();
    options.policy = policy_;
    options.evidence = evidence_;
    if (rows_at_once_) options.rows_at_once = *rows_at_once_;
    options.images_on_node = std::move(images);
    options.allow_empty = true;
    if (std::filesystem::exists(kubelet_directory() / "image_manager")) {
      options.kubelet_directory = kubelet_directory();
    }
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    return options;
  }

  Decision Check(std::string_view image, std::string_view image_ref, Pod& pod) {
    return store_->MustAttemptPull({.image = image, .image_ref = image_ref}, pod);
  }
  Decision Check(std::string_view image, std::string_view image_ref, Pod&& pod = Pod()) {
    return store_->MustAttemptPull({.image = image, .image_ref = image_ref}, pod);
  }

  // A whole pull: the intent before, the outcome after.
  void Pull(std::string_view image, std::string_view image_ref,
            const std::optional<ImagePullCredentials>& credentials) {
    Must(store_->RecordPullIntent({.image = image}));
    Must(store_->RecordImagePulled({.image = image, .image_ref = image_ref}, credentials));
  }

 private:
  TempDir scratch_;
  FakeClock clock_;
  Mode rules_;
  VerificationPolicy policy_;
  EvidenceOptions evidence_;
  std::optional<std::size_t> rows_at_once_;
  bool with_witness_;
  std::unique_ptr<NodeStore> store_;
};

// Fixtures.
struct ClosedStore {
  ScratchStore store{Mode::kStrict};
};
struct KubeletStore {
  ScratchStore store{Mode::kKubelet};
};

// Whether the ledger has the image, and says that it is gone.
inline bool IsGone(const waybill::NodeStore& store, std::string_view ref) {
  const auto ledger = Must(store.ListLedger());
  return std::any_of(ledger.begin(), ledger.end(), [&](const PreloadedImage& entry) {
    return entry.image_ref == ref && entry.absent_since.has_value();
  });
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_STORE_FIXTURE_H_
