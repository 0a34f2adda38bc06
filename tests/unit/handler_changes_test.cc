// What a change of the runtime handlers must not open: the default one renamed or gone, runtime
// classes turned off with pulls left over, records of a time without handlers, a damaged copy.

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(handler_changes)

namespace {

const std::vector<RuntimeHandler> kRuncAndKata = {{"runc", true, true}, {"kata", false, true}};

// Every place of the file that holds `text`, also in pages that are no longer in use.
void DamageEach(const std::filesystem::path& path, const std::string& text) {
  const std::string content = ReadFile(path);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  std::size_t found = 0;
  for (auto at = content.find(text); at != std::string::npos; at = content.find(text, at + 1)) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put('!');
    ++found;
  }
  BOOST_TEST_REQUIRE(found > 0U);
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_default_that_vanishes_and_comes_back_as_another_is_verified_again) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->ReplaceRuntimeHandlers({{"runc", true, true}}));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    const RuntimesReport gone = Must(store->ReplaceRuntimeHandlers({}, {.allow_empty = true}));
    BOOST_TEST(gone.records_to_verify == 1U);
    Must(store->ReplaceRuntimeHandlers({{"crun", true, true}}));
    BOOST_TEST(
        (store.Check(kImage, kRef, Pod(kSecretA)).reason == Reason::kEntryWithoutCredentials));
  });
}

// Once runtime classes are off, nobody knows for which handler a pull was begun, and the runtime
// may still list its image under that one.
BOOST_AUTO_TEST_CASE(an_intent_that_was_collapsed_closes_what_it_brought) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
    Must(store->RecordPullIntent(kImage, "kata"));
    store.Restart();
    Must(store->CollapseRuntimeHandlers());
    ImageOnNode listed{std::string(kRef), {std::string(kImage)}, {}};
    listed.runtime_handler = "kata";
    store.Restart({listed});
    BOOST_TEST(store->recovery_report().intents_replayed == 1U);
    store.Pull(kImage, kRef2, WithSecret(kSecretA));
    BOOST_TEST(
        (store.Check(kImage, kRef, Pod(kSecretB)).reason == Reason::kEntryWithoutCredentials));
  });
}

BOOST_AUTO_TEST_CASE(an_intent_for_another_handler_is_not_replayed) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->ReplaceRuntimeHandlers(
        {{"runc", true, true}, {"kata", false, true}, {"other", false, true}}));
    Must(store->RecordPullIntent(kImage, "kata"));
    ImageOnNode listed{std::string(kRef), {std::string(kImage)}, {}};
    listed.runtime_handler = "other";
    store.Restart({listed});
    BOOST_TEST(store->recovery_report().intents_replayed == 0U);
    BOOST_TEST(Must(store->HasIntent(kImage, "kata")));
    BOOST_TEST(store.Check(kImage, kRef).pull);
  });
}

// An intent file that could not be read is of a kubelet without handlers: another handler's pull of
// that image does not tell how it ended.
BOOST_AUTO_TEST_CASE(a_quarantined_intent_outlives_a_pull_for_another_handler) {
  for (const bool in_flight : {false, true}) {
    ScratchStore store(Rules::kClosed);
    WriteRecordFile(store.kubelet_directory(), "pulling", kImage, "broken");
    store.Restart();
    Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
    if (in_flight) Must(store->RecordPullIntent(kImage));
    Must(store->RecordPullIntent(kImage, "kata"));
    Must(store->RecordImagePulled(kImage, kRef2, WithSecret(kSecretA), "kata"));
    BOOST_TEST(Must(store->ListQuarantine()).empty());
    BOOST_TEST(Must(store->HasIntent(kImage)));
    if (in_flight) Must(store->RecordImagePullFailed(kImage));
    BOOST_TEST((store.Check(kImage, kRef).reason == Reason::kPullInFlight));
    Pod pod(kSecretA);
    BOOST_TEST(!store->MustAttemptPull(kImage, kRef2, pod, "kata").pull);
    store.Pull(kImage, kRef2, WithSecret(kSecretA));
    BOOST_TEST(!Must(store->HasIntent(kImage)));
  }
}

// Replacing one damaged record counts the table anew; what else can't be read may be another
// handler's copy.
BOOST_AUTO_TEST_CASE(a_damaged_copy_still_closes_its_ref_after_a_recount) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
    Must(store->RecordImagePulled(kImage, "ref-of-kata", WithSecret(kSecretA), "kata"));
    Must(store->RecordImagePulled(kImage, "ref-of-runc", WithSecret(kSecretA)));
    for (const char* ref : {"ref-of-kata", "ref-of-runc"}) {
      DamageEach(store.directory() / "data.mdb", ref);
      BOOST_TEST((store.Check(kImage, ref).reason == Reason::kRecordDamaged));
    }
    Must(store->RecordImagePulled(kImage, "ref-of-runc", WithSecret(kSecretA)));
    BOOST_TEST(!store.Check(kImage, "ref-of-runc", Pod(kSecretA)).pull);
    BOOST_TEST((store.Check(kImage, "ref-of-kata").reason == Reason::kRecordDamaged));
  });
}

BOOST_AUTO_TEST_CASE(collapsing_makes_no_record_older) {
  UnderBothRules([](Rules rules) {
    for (const std::string ahead : {"", "kata"}) {
      ScratchStore store(rules);
      Must(store->ReplaceRuntimeHandlers({{"runc", true, true}, {"kata", false, true}}));
      Must(store->RecordImagePulled(kImage, kRef, NodeWide()));
      Must(store->RecordImagePulled(kImage, kRef, NodeWide(), "kata"));
      ImagePulledRecord record = Must(store->GetRecord(kRef, ahead));
      record.last_updated->seconds += 60;
      Must(store->PutRecord(record));
      Must(store->CollapseRuntimeHandlers());
      BOOST_TEST((Must(store->GetRecord(kRef)).last_updated == record.last_updated));
    }
  });
}

BOOST_AUTO_TEST_CASE(a_pull_in_flight_holds_back_what_would_change_what_it_brings) {
  UnderBothRules([](Rules rules) {
    const Platform guest{"amd64", "windows", "10.0.17763"};
    const RuntimeHandler runc{"runc", true, true};
    const RuntimeHandler kata{"kata", false, true};
    ScratchStore store(rules);
    Must(store->ReplaceRuntimeHandlers({runc, kata}));
    const auto refused = [&](const std::vector<RuntimeHandler>& handlers) {
      const auto replaced = store->ReplaceRuntimeHandlers(handlers);
      return !replaced && replaced.error().code == ErrorCode::kConflict;
    };
    Must(store->RecordPullIntent(kImage));
    BOOST_TEST(refused({{"runc", false, true}, {"kata", true, true}}));
    BOOST_TEST(refused({{"runc", true, true, guest}, kata}));
    Must(store->ReplaceRuntimeHandlers({runc, {"kata", false, true, guest}}));
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
    Must(store->RecordPullIntent(kImage, "kata"));
    BOOST_TEST(refused({runc, kata}));
    Must(store->RecordImagePullFailed(kImage, PullFailure::kFailed, "kata"));
    Must(store->ReplaceRuntimeHandlers({runc, kata}));
    BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(a_pull_that_ends_after_its_handler_vanished_proves_nothing) {
  UnderBothRules([](Rules rules) {
    const Platform guest{"amd64", "windows", "10.0.17763"};
    ScratchStore store(rules);
    const RuntimeHandler runc{"runc", true, true};
    const RuntimeHandler other{"other", false, true};
    Must(store->ReplaceRuntimeHandlers({runc, other, {"vm", false, true, guest}}));
    Must(store->RecordPullIntent(kImage, "vm"));
    Must(store->ReplaceRuntimeHandlers({runc, other}));
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA), "vm"));
    Must(store->ReplaceRuntimeHandlers({runc, other, {"vm", false, true}}));
    Pod pod(kSecretA);
    BOOST_TEST(store->MustAttemptPull(kImage, kRef, pod, "vm").pull);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
