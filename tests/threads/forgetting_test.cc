// Credentials are forgotten while others decide, record by record.

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/in_threads.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(forgetting)

namespace {

constexpr std::size_t kImagesOfARound = 5;
constexpr std::size_t kRounds = 60;

std::string RefOf(std::size_t i) { return "ref-" + std::to_string(i); }

// Each round has a Secret of its own, which nothing proves again.
ImagePullSecret SecretOf(std::size_t round) {
  const std::string number = std::to_string(round);
  return MakeSecret("ns-" + number, "pull", "uid-" + number, "hash-" + number);
}

Result<RevokeReport> ForgetSomehow(NodeStore& store, std::size_t round) {
  const ImagePullSecret secret = SecretOf(round);
  switch (round % 4) {
    case 0:
      return store.ForgetNamespace(secret.namespace_name);
    case 1:
      return store.ForgetSecret({secret.namespace_name, secret.name, {}});
    case 2:
      return store.ForgetSecret({secret.namespace_name, secret.name, secret.uid});
    default:
      return store.ForgetCredential(secret.credential_hash);
  }
}

bool Opens(ScratchStore& store, const ImagePullSecret& secret, std::size_t ref) {
  return !store.Check(kImage, RefOf(ref), Pod(secret)).pull;
}

}  // namespace

// A decision that begins after a Secret was forgotten never opens, and nobody sees half of it:
// where one image is closed for the Secret, so are the others.
BOOST_AUTO_TEST_CASE(deciding_while_credentials_are_forgotten) {
  UnderBothRules([](Mode rules) {
    ScratchStore store(rules);
    store.ChangeAtOnce(1);
    std::atomic<std::size_t> proven{0};     // rounds whose Secrets opened all images
    std::atomic<std::size_t> forgotten{0};  // rounds whose Secrets are forgotten
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> closed{0};
    const std::size_t threw = InThreads(4, [&](std::size_t which) {
      if (which == 0) {
        for (std::size_t round = 0; round < kRounds; ++round) {
          for (std::size_t i = 0; i < kImagesOfARound; ++i) {
            store.Pull(kImage, RefOf(i), WithSecret(SecretOf(round)));
          }
          proven = round + 1;
          const auto done = ForgetSomehow(*store, round);
          if (!done || done->records != kImagesOfARound) ++wrong;
          forgotten = round + 1;
        }
        return;
      }
      if (which == 1) {
        // A pull that began before ends after it.
        for (std::size_t i = 0; forgotten < kRounds; ++i) {
          const ImagePullSecret own = SecretOf(kRounds + i);
          const ImageCopy copy{.image = "registry.example.com/own:v1", .image_ref = "own"};
          store.Pull(copy.image, copy.image_ref, WithSecret(own));
          const PullId pull = Must(store->RecordPullIntent(copy));
          Must(ForgetSomehow(*store, kRounds + i));
          Must(store->RecordImagePulled(copy, WithSecret(own), {.pull = pull}));
          if (!store.Check(copy.image, copy.image_ref, Pod(own)).pull) ++wrong;
        }
        return;
      }
      for (std::size_t i = which; forgotten < kRounds; ++i) {
        const std::size_t gone = forgotten;
        for (std::size_t round = gone < 3 ? 0 : gone - 3; round < gone; ++round) {
          if (Opens(store, SecretOf(round), i % kImagesOfARound)) ++wrong;
        }
        const std::size_t last = proven;
        if (last == 0) continue;
        if (Opens(store, SecretOf(last - 1), i % kImagesOfARound)) continue;
        ++closed;
        if (Opens(store, SecretOf(last - 1), (i + 1) % kImagesOfARound)) ++wrong;
      }
    });
    BOOST_TEST(threw == 0U);
    BOOST_TEST(wrong == 0U);
    BOOST_TEST(closed > 0U);
    for (const Revocation& one : Must(store->ListRevocations())) BOOST_TEST(!one.unfinished);
    for (std::size_t i = 0; i < kImagesOfARound; ++i) {
      BOOST_TEST(Must(store->GetRecord({.image_ref = RefOf(i)})).credential_mapping.empty());
    }
    BOOST_TEST(Must(store->Verify()).sound);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
