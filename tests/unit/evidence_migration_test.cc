// The step "evidence", 4 to 5, where histories/evidence.jsonl does not reach.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/rows.h"
#include "tests/support/versioned_store.h"
#include "tests/support/versions.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(evidence_migration)

namespace {

const std::string kDigest = "sha256:" + std::string(64, 'e');

}  // namespace

BOOST_AUTO_TEST_CASE(intents_become_pulls_of_unknown_end) {
  const VersionedStore store(4);
  const MigrationReport up = store.Migrate(5);
  BOOST_TEST_REQUIRE(up.steps.size() == 1U);
  BOOST_TEST(up.steps[0].name == "evidence");
  BOOST_TEST(up.losses.empty());
  store.Open([](NodeStore& opened) {
    const auto pulls = Must(opened.ListOpenPulls());
    BOOST_TEST(pulls.size() == Must(opened.ListIntents()).size());
    BOOST_TEST(!pulls.empty());
    for (const OpenPull& pull : pulls) {
      BOOST_TEST((pull.state == PullState::kUnknown));
      BOOST_TEST(pull.ended.has_value());
      BOOST_TEST(!pull.anything);
    }
    BOOST_TEST(Must(opened.ListLedger()).empty());
  });
}

// Version 4 has no last ID, and there is no open pull to tell it by.
BOOST_AUTO_TEST_CASE(an_id_from_before_the_way_down_was_given) {
  const TempDir scratch;
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  PullId given;
  {
    const auto opened = Must(NodeStore::Open(OptionsIn(scratch.path())));
    given = Must(opened->RecordPullIntent(copy));
    Must(opened->RecordImagePulled(copy, WithSecret(kSecretA), {.pull = given}));
  }
  Must(Migrate({.directory = OptionsIn(scratch.path()).directory, .to = 4, .accept_loss = true}));
  const auto opened = Must(NodeStore::Open(OptionsIn(scratch.path())));
  Must(opened->RecordImagePulled(copy, WithSecret(kSecretB), {.pull = given}));
  BOOST_TEST(!Must(opened->GetRecord(copy)).credential_mapping.empty());
}

// The order of keys is each store's own. Under kubelet rules an image had got two records.
BOOST_AUTO_TEST_CASE(a_spelling_of_two_records_gets_the_same_one_in_every_store) {
  const std::string bare(kRef.substr(kRef.find(':') + 1));
  const std::string digest = "registry.example.com/team/app@" + kDigest;
  for (int store = 0; store < 12; ++store) {
    const TempDir scratch;
    const auto open = [&](Rules rules) {
      return Must(NodeStore::Open(OptionsIn(scratch.path(), rules)));
    };
    const auto pull = [](NodeStore& opened, std::string_view ref, const ImagePullSecret& secret) {
      const ImageCopy copy = {.image = kImage, .image_ref = ref};
      const PullId id = Must(opened.RecordPullIntent(copy));
      Must(opened.RecordImagePulled(copy, WithSecret(secret), {.pull = id}));
    };
    {
      const auto opened = open(Rules::kClosed);
      pull(*opened, kRef, kSecretA);
      Must(opened->ObserveImages({.images = {{.id = std::string(kRef), .repo_digests = {digest}}},
                                  .token = Must(opened->BeginList())}));
    }
    pull(*open(Rules::kKubelet), digest, kSecretB);
    BOOST_TEST(Must(open(Rules::kClosed)->ListRecords()).size() == 2U);
    Must(Migrate({.directory = scratch.path() / "store", .to = 4, .accept_loss = true}));
    const auto opened = open(Rules::kKubelet);
    const auto record = Must(opened->GetRecord({.image_ref = bare}));
    BOOST_TEST((record.credential_mapping.at(std::string(kName)).kubernetes_secrets ==
                std::vector<ImagePullSecret>{kSecretB}));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
