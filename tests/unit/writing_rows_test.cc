// What the kubelet writes about a pull, one test a row.

#include <boost/test/unit_test.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(writing_rows)

BOOST_AUTO_TEST_CASE(intent_is_stored_before_the_pull) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    BOOST_TEST(Must(store->HasIntent(kImage)));
    store.Restart();
    BOOST_TEST(Must(store->HasIntent(kImage)));
    BOOST_TEST(!Must(store->HasIntent(kName)));
  });
}

BOOST_AUTO_TEST_CASE(intent_of_an_image_that_does_not_parse) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent("Not A Name"));
    BOOST_TEST(Must(store->HasIntent("Not A Name")));
    Must(store->RecordImagePullFailed("Not A Name"));
    BOOST_TEST(!Must(store->HasIntent("Not A Name")));
  });
}

BOOST_AUTO_TEST_CASE(pulled_writes_the_record_and_removes_the_last_intent) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const ImagePulledRecord record = Must(store->GetRecord(kRef));
    BOOST_TEST(record.image_ref == kRef);
    BOOST_TEST((record.last_updated == store.clock().Now()));
    BOOST_TEST(record.credential_mapping.size() == 1U);
    BOOST_TEST((EntryOf(store) == WithSecret(kSecretA)));
    BOOST_TEST(Must(store->ListIntents()).empty());
  });
}

BOOST_AUTO_TEST_CASE(pulled_keeps_the_intent_while_another_pull_is_in_flight) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    Must(store->RecordPullIntent(kImage));
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
    BOOST_TEST(Must(store->HasIntent(kImage)));
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
    BOOST_TEST(!Must(store->HasIntent(kImage)));
  });
}

BOOST_AUTO_TEST_CASE(pulled_removes_an_intent_that_is_not_in_flight) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    store.Restart();
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
    BOOST_TEST(!Must(store->HasIntent(kImage)));
  });
}

BOOST_AUTO_TEST_CASE(pulled_without_an_intent_is_recorded) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(pulled_of_an_image_that_does_not_parse_leaves_intent_and_count) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent("Not A Name"));
    const auto result = store->RecordImagePulled("Not A Name", kRef, NodeWide());
    BOOST_REQUIRE(!result);
    BOOST_TEST((result.error().code == ErrorCode::kInvalidArgument));
    BOOST_TEST(Must(store->HasIntent("Not A Name")));
    BOOST_TEST(Must(store->ListRecords()).empty());
    // The count is still one: one failure more ends it.
    Must(store->RecordImagePullFailed("Not A Name"));
    BOOST_TEST(!Must(store->HasIntent("Not A Name")));
  });
}

BOOST_AUTO_TEST_CASE(pulled_replaces_an_unreadable_record) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Stop();
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, "{\"kind\":");
    store.Start();
    BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretA)).pull);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
    BOOST_TEST(store.Check(kImage, kRef).pull);
    // A later start meets the same file again: it is known.
    store.Restart();
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(merge_node_wide_access_clears_both_lists_and_stays) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef, WithServiceAccount(kBuilder));
    store.Pull(kImage, kRef, NodeWide());
    BOOST_TEST((EntryOf(store) == NodeWide()));
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    BOOST_TEST((EntryOf(store) == NodeWide()));
  });
}

BOOST_AUTO_TEST_CASE(merge_secrets_by_coordinates_sorted_by_namespace_name_uid) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    const std::vector<ImagePullSecret> sorted = {
        MakeSecret("a", "p", "1", "h1"), MakeSecret("a", "p", "2", "h2"),
        MakeSecret("a", "q", "0", "h3"), MakeSecret("b", "a", "0", "h4")};
    for (const std::size_t i : {3U, 1U, 0U, 2U}) {
      store.Pull(kImage, kRef, WithSecret(sorted[i]));
    }
    BOOST_TEST((EntryOf(store).kubernetes_secrets == sorted));

    // The new hash of known coordinates replaces the old one.
    store.Pull(kImage, kRef, WithSecret(MakeSecret("a", "p", "2", "new")));
    const auto secrets = EntryOf(store).kubernetes_secrets;
    BOOST_TEST(secrets.size() == 4U);
    BOOST_TEST(secrets.at(1).credential_hash == "new");
  });
}

BOOST_AUTO_TEST_CASE(merge_service_accounts_sorted) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    const std::vector<ImagePullServiceAccount> sorted = {
        {"2", "a", "x"}, {"3", "a", "x"}, {"1", "a", "y"}, {"0", "b", "a"}};
    for (const std::size_t i : {2U, 3U, 1U, 0U}) {
      store.Pull(kImage, kRef, WithServiceAccount(sorted[i]));
    }
    BOOST_TEST((EntryOf(store).kubernetes_service_accounts == sorted));
  });
}

BOOST_AUTO_TEST_CASE(merge_service_accounts_only_where_no_secrets_are_given) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    ImagePullCredentials both = WithSecret(kSecretB);
    both.kubernetes_service_accounts.push_back(kBuilder);
    store.Pull(kImage, kRef, both);
    BOOST_TEST(EntryOf(store).kubernetes_secrets.size() == 2U);
    BOOST_TEST(EntryOf(store).kubernetes_service_accounts.empty());
  });
}

// The closed rules confirm the record, so that a garbage collection that began before spares it.
BOOST_AUTO_TEST_CASE(merge_of_nothing_new_leaves_the_record) {
  UnderBothRules([](Rules rules) {
    const bool closed = rules == Rules::kClosed;
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const ImagePulledRecord first = Must(store->GetRecord(kRef));
    store.clock().AdvanceSeconds(60);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef, std::nullopt);
    const ImagePulledRecord second = Must(store->GetRecord(kRef));
    BOOST_TEST((second.credential_mapping == first.credential_mapping));
    BOOST_TEST((second.last_updated == first.last_updated) == !closed);
    BOOST_TEST((second.stamp == first.stamp) == !closed);
    store.Pull(kImage, kRef, WithSecret(kSecretB));
    BOOST_TEST((Must(store->GetRecord(kRef)).last_updated == store.clock().Now()));
  });
}

BOOST_AUTO_TEST_CASE(merge_keeps_a_first_entry_as_given) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    ImagePullCredentials given;
    given.kubernetes_secrets = {kSecretB, kSecretA};
    given.kubernetes_service_accounts = {kBuilder};
    store.Pull(kImage, kRef, given);
    BOOST_TEST((EntryOf(store) == given));
  });
}

BOOST_AUTO_TEST_CASE(merge_by_image_name) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull("mirror.example.com/app:v1", kRef, WithSecret(kSecretB));
    BOOST_TEST(Must(store->GetRecord(kRef)).credential_mapping.size() == 2U);
    BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretB)).pull);
    BOOST_TEST(!store.Check("mirror.example.com/app", kRef, Pod(kSecretB)).pull);
  });
}

BOOST_AUTO_TEST_CASE(pulled_with_credentials_unknown_only_says_that_it_was_pulled) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, std::nullopt);
    BOOST_TEST(Must(store->GetRecord(kRef)).credential_mapping.empty());
    BOOST_TEST(store.Check(kImage, kRef, Pod(kSecretA)).pull);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef, std::nullopt);
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(pulled_with_empty_credentials_on_a_new_record_is_an_empty_entry) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, ImagePullCredentials{});
    BOOST_TEST(Must(store->GetRecord(kRef)).credential_mapping.size() == 1U);
    BOOST_TEST(EntryOf(store).empty());
    // On a record with credentials they add nothing.
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Pull(kImage, kRef, ImagePullCredentials{});
    BOOST_TEST((EntryOf(store) == WithSecret(kSecretA)));
  });
}

BOOST_AUTO_TEST_CASE(failed_drops_one_count_and_at_zero_the_intent) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    Must(store->RecordPullIntent(kImage));
    Must(store->RecordImagePullFailed(kImage));
    BOOST_TEST(Must(store->HasIntent(kImage)));
    Must(store->RecordImagePullFailed(kImage));
    BOOST_TEST(!Must(store->HasIntent(kImage)));
  });
}

// Step 3 counts a pull in flight, whatever an adapter deletes meanwhile.
BOOST_AUTO_TEST_CASE(deleting_an_intent_does_not_end_a_pull) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->RecordPullIntent(kImage));
    Must(store->DeleteIntent(kImage));
    Expect(store.Check(kImage, kRef, Pod(kSecretA)), true, CheckResult::kMustAuthenticate,
           Reason::kPullInFlight);
    Must(store->RecordImagePullFailed(kImage));
    BOOST_TEST(!Must(store->HasIntent(kImage)));

    Must(store->PutIntent(kImage));
    Must(store->DeleteIntent(kImage));
    BOOST_TEST(!Must(store->HasIntent(kImage)));
  });
}

BOOST_AUTO_TEST_CASE(prune_deletes_what_is_not_listed_and_older) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull("registry.example.com/listed:v1", kRef, WithSecret(kSecretA));
    store.Pull("registry.example.com/gone:v1", kRef2, WithSecret(kSecretA));
    store.clock().AdvanceSeconds(10);
    const Timestamp until = store.clock().Now();
    store.Pull("registry.example.com/newer:v1", "sha256:newer", WithSecret(kSecretA));

    const PruneReport report = Must(store->PruneBefore({std::string(kRef)}, until));
    BOOST_TEST(report.removed == 1U);
    BOOST_TEST(Must(store->GetRecord(kRef)).image_ref == kRef);
    const auto gone = store->GetRecord(kRef2);
    BOOST_REQUIRE(!gone);
    BOOST_TEST((gone.error().code == ErrorCode::kNotFound));
    // Updated at `until`, and so not before it.
    BOOST_TEST(Must(store->GetRecord("sha256:newer")).image_ref == "sha256:newer");
  });
}

// Its time is of a clock that was ahead; a pull that adds nothing leaves it under kubelet rules,
// and must not make it older under closed ones.
BOOST_AUTO_TEST_CASE(a_pull_that_confirms_a_record_does_not_make_it_older) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    ImagePulledRecord record;
    record.image_ref = kRef;
    record.last_updated = store.clock().Now();
    record.last_updated->seconds += 60;
    record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
    Must(store->PutRecord(record));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST((Must(store->GetRecord(kRef)).last_updated == record.last_updated));
    Timestamp until = store.clock().Now();
    until.seconds += 30;
    BOOST_TEST(Must(store->PruneBefore({}, until, {.allow_empty = true})).kept_newer == 1U);
  });
}

BOOST_AUTO_TEST_CASE(prune_by_token_spares_what_was_confirmed_since) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull("registry.example.com/confirmed:v1", kRef, WithSecret(kSecretA));
    store.Pull("registry.example.com/gone:v1", kRef2, WithSecret(kSecretA));
    const PruneToken token = Must(store->BeginPrune());
    store.Pull("registry.example.com/newer:v1", "sha256:newer", WithSecret(kSecretA));
    const PruneReport report = Must(store->Prune({std::string(kRef)}, token));
    BOOST_TEST(report.removed == 1U);
    BOOST_TEST(report.kept_in_list == 1U);
    BOOST_TEST(report.kept_newer == 1U);
    BOOST_TEST(!store->GetRecord(kRef2).has_value());
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
