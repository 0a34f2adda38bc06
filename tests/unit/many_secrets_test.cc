// Pods and records with many Secrets: the answer is that of comparing each with each, in the
// kubelet's order.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "tests/support/draw.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(many_secrets)

namespace {

constexpr std::int64_t kAge = 36'000;

// Few pools of parts, so that Secrets often match by one part and seldom by another. Both forms in
// which a store keeps a UID and a hash.
ImagePullSecret DrawSecret(Draw& draw, std::size_t pool) {
  const std::size_t uid = draw.Below(pool);
  const std::size_t hash = draw.Below(pool);
  ImagePullSecret secret = MakeSecret("team-" + std::to_string(draw.Below(3)),
                                      "pull-" + std::to_string(draw.Below(pool)),
                                      "uid-" + std::to_string(uid), "hash-" + std::to_string(hash));
  if (uid % 2 == 0) {
    const std::string digits = std::to_string(1000 + uid);
    secret.uid = "5b1e0000-0000-4000-8000-00000000" + digits.substr(digits.size() - 4);
  }
  if (hash % 2 == 0)
    secret.credential_hash = internal::HexEncode(*internal::Sha256(secret.credential_hash));
  if (hash % 7 == 0) secret.credential_hash.clear();
  return secret;
}

std::vector<ImagePullSecret> DrawSecrets(Draw& draw, std::size_t count, std::size_t pool) {
  std::vector<ImagePullSecret> secrets;
  for (std::size_t i = 0; i < count; ++i) secrets.push_back(DrawSecret(draw, pool));
  return secrets;
}

struct Expected {
  Reason reason = Reason::kNoCredentialMatches;
  std::optional<ImagePullSecret> written_back;
};

// As the kubelet compares: each of the pod's with each stored one.
Expected CompareEach(const std::vector<ImagePullSecret>& stored,
                     const std::vector<ImagePullSecret>& of_pod, std::int64_t now) {
  const bool may_write_back = stored.size() < kMaxSecretsForWriteBack;
  Expected expected;
  for (const ImagePullSecret& secret : of_pod) {
    for (const ImagePullSecret& one : stored) {
      const bool hash =
          !one.credential_hash.empty() && one.credential_hash == secret.credential_hash;
      const bool coordinates = one.uid == secret.uid && one.name == secret.name &&
                               one.namespace_name == secret.namespace_name;
      if (!hash && !(coordinates && may_write_back)) continue;
      if (now - one.proof.proven->seconds > kAge) {
        expected.reason = Reason::kProofTooOld;
        continue;
      }
      expected.reason = hash ? Reason::kSecretHashMatches : Reason::kSecretCoordinatesMatch;
      if (may_write_back && !(hash && coordinates)) expected.written_back = secret;
      return expected;
    }
  }
  return expected;
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_answer_is_that_of_comparing_each_with_each) {
  Draw draw(SeedOfThisRun());
  UnderBothRules([&](ScratchStore& store) {
    store.Stop();
    OpenOptions options = store.Options({});
    options.ages = AgeLimits{.credentials = std::chrono::seconds(kAge)};
    Must(Must(NodeStore::Open(options))->Close());
    store.Start();
    std::size_t opened = 0;
    std::size_t written_back = 0;
    for (std::size_t round = 0; round < 150; ++round) {
      const std::string ref = "ref-" + std::to_string(round);
      const std::size_t pool = draw.From(std::vector<std::size_t>{40, 300, 4000});
      const std::size_t most = draw.From(std::vector<std::size_t>{9, 60, 99, 99, 200, 700});
      ImagePullCredentials pulled;
      // What an earlier pull proved is too old by now.
      pulled.kubernetes_secrets = DrawSecrets(draw, 1 + draw.Below(most / 2), pool);
      store.Pull(kImage, ref, pulled);
      store.clock().AdvanceSeconds(kAge - 1);
      pulled.kubernetes_secrets = DrawSecrets(draw, 1 + draw.Below(most / 2), pool);
      store.Pull(kImage, ref, pulled);
      const auto stored = EntryOf(store, ref).kubernetes_secrets;
      store.clock().AdvanceSeconds(2);

      const ImagePullCredentials before = EntryOf(store, ref);  // without what is too old
      const auto of_pod = DrawSecrets(draw, 1 + draw.Below(round % 4 == 0 ? 400 : 20), pool);
      const Expected expected = CompareEach(stored, of_pod, store.clock().Now().seconds);
      const Decision decision = store.Check(kImage, ref, Pod(of_pod));
      BOOST_TEST_CONTEXT("round " << round << ": " << stored.size() << " stored, the pod has "
                                  << of_pod.size()) {
        BOOST_TEST(decision.reason == expected.reason);
        Must(store->Flush());
        const ImagePullCredentials after = EntryOf(store, ref);
        if (expected.written_back) {
          BOOST_TEST(std::ranges::count(after.kubernetes_secrets, *expected.written_back) == 1);
        } else {
          BOOST_TEST((after == before));
        }
      }
      opened += decision.pull ? 0 : 1;
      written_back += expected.written_back ? 1 : 0;
    }
    BOOST_TEST(opened > 20U);
    BOOST_TEST(opened < 150U);
    BOOST_TEST(written_back > 5U);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
