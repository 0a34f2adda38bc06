// What the kubelet does with stored intents when it starts, one test a row, and what the closed
// rules do instead.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/rows.h"

namespace waybill::testing {

namespace {

const std::string kDigested = std::string(kName) + "@sha256:" + std::string(64, 'd');

ImageOnNode Tagged(std::string_view ref, std::string_view tag) {
  return {std::string(ref), {std::string(tag)}, {}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(start_rows)

BOOST_AUTO_TEST_CASE(intent_that_equals_a_tag_becomes_a_record_without_credentials) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    store.Restart({Tagged(kRef2, "registry.example.com/else:v1"), Tagged(kRef, kImage)});
    const RecoveryReport& report = store->recovery_report();
    BOOST_TEST(report.intents_found == 1U);
    BOOST_TEST(report.intents_replayed == 1U);
    BOOST_TEST(report.replayed == std::vector<std::string>{std::string(kImage)},
               boost::test_tools::per_element());
    BOOST_TEST(Must(store->ListRecords()).size() == 1U);
    BOOST_TEST(Must(store->GetRecord(kRef)).credential_mapping.empty());
    Expect(store.Check(kImage, kRef, Pod(kSecretA)), true, CheckResult::kMustAuthenticate,
           Reason::kEntryWithoutCredentials);
    // Gone under the kubelet's rules, kept until the image is pulled under the closed ones.
    const bool kept = rules == Rules::kClosed;
    BOOST_TEST(Must(store->HasIntent(kImage)) == kept);
    BOOST_TEST(report.intents_left == (kept ? 1U : 0U));
  });
}

BOOST_AUTO_TEST_CASE(intent_that_equals_a_digest) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kDigested));
    store.Restart({{std::string(kRef), {}, {kDigested}}});
    BOOST_TEST(store->recovery_report().intents_replayed == 1U);
    BOOST_TEST(store.Check(kDigested, kRef).pull);
    BOOST_TEST(Must(store->HasIntent(kDigested)) == (rules == Rules::kClosed));
  });
}

BOOST_AUTO_TEST_CASE(intent_that_matches_a_known_record_adds_nothing_to_it) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Must(store->RecordPullIntent(kImage));
    store.Restart({Tagged(kRef, kImage)});
    BOOST_TEST((EntryOf(store) == WithSecret(kSecretA)));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(other_intents_stay) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    Must(store->RecordPullIntent("Not A Name"));
    store.Restart({Tagged(kRef, "registry.example.com/team/app:v2"),
                   Tagged(kRef2, "registry.example.com/team/app")});
    BOOST_TEST(store->recovery_report().intents_replayed == 0U);
    BOOST_TEST(store->recovery_report().intents_left == 2U);
    BOOST_TEST(Must(store->ListIntents()).size() == 2U);
    BOOST_TEST(Must(store->ListRecords()).empty());
    BOOST_TEST(store.Check(kImage, "sha256:late").pull);
  });
}

// The runtime lists full names; pods write short ones. Only the closed rules see that they match.
BOOST_AUTO_TEST_CASE(short_names_are_matched_by_the_closed_rules_alone) {
  UnderBothRules([](Rules rules) {
    const bool closed = rules == Rules::kClosed;
    ScratchStore store(rules);
    Must(store->RecordPullIntent("nginx"));
    store.Restart({Tagged(kRef, "docker.io/library/nginx:latest")});
    BOOST_TEST(store->recovery_report().intents_replayed == (closed ? 1U : 0U));
    BOOST_TEST(store->GetRecord(kRef).has_value() == closed);
    BOOST_TEST(Must(store->HasIntent("nginx")));
    BOOST_TEST(store.Check("docker.io/library/nginx:latest", kRef).pull == closed);
  });
}

BOOST_AUTO_TEST_CASE(every_image_that_matches_is_closed) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent("Not A Name"));
    Must(store->RecordPullIntent(kImage));
    store.Restart({Tagged(kRef, "Not A Name"), Tagged(kRef2, kImage)});
    BOOST_TEST(store->recovery_report().intents_replayed == (rules == Rules::kClosed ? 2U : 1U));
  });
}

// Without the runtime's list nothing can be replayed, and nothing is opened.
BOOST_AUTO_TEST_CASE(without_a_list_of_images_every_intent_stays) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    store.Stop();
    OpenOptions options = store.Options({});
    options.images_on_node.reset();
    auto opened = Must(NodeStore::Open(std::move(options)));
    BOOST_TEST(opened->recovery_report().replay_skipped);
    BOOST_TEST(Must(opened->HasIntent(kImage)));
    Pod pod;
    BOOST_TEST(opened->MustAttemptPull(kImage, kRef, pod).pull);
    Must(opened->Close());
  });
}

// What a start did, a second start finds done.
BOOST_AUTO_TEST_CASE(starting_again_changes_nothing) {
  UnderBothRules([](Rules rules) {
    const std::vector<ImageOnNode> images = {Tagged(kRef, kImage)};
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    store.Restart(images);
    const auto records = Must(store->ListRecords());
    const auto intents = Must(store->ListIntents());
    store.clock().AdvanceSeconds(60);
    store.Restart(images);
    BOOST_TEST((Must(store->ListRecords()) == records));
    BOOST_TEST((Must(store->ListIntents()) == intents));
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
