// KEP-4216: an image on the node is (image ref, runtime handler).

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(handler_copies)

namespace {

const Platform kWindows2019{"amd64", "windows", "10.0.17763"};
const Platform kWindows2022{"amd64", "windows", "10.0.20348"};

RuntimeHandler Handler(const std::string& name, std::optional<Platform> guest = std::nullopt) {
  return {name, name == "runc", true, std::move(guest)};
}

// A store that knows runc, the default, and kata.
struct Handlers : ScratchStore {
  explicit Handlers(Rules rules, VerificationPolicy policy = {})
      : ScratchStore(rules, std::move(policy)) {
    Must((*this)->ReplaceRuntimeHandlers({Handler("runc"), Handler("kata")}));
  }
  Decision Ask(std::string_view handler, Pod pod = Pod(), std::string_view image = kImage) {
    return (*this)->MustAttemptPull(image, kRef, pod, handler);
  }
  void PullFor(std::string_view handler, const ImagePullCredentials& credentials) {
    Must((*this)->RecordPullIntent(kImage, handler));
    Must((*this)->RecordImagePulled(kImage, kRef, credentials, handler));
  }
  bool Knows(std::string_view handler) { return (*this)->GetRecord(kRef, handler).has_value(); }
};

bool Refused(const Result<void>& result, ErrorCode code, std::string_view text = {}) {
  return !result && result.error().code == code &&
         result.error().message.find(text) != std::string::npos;
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_copy_pulled_for_one_handler_is_not_preloaded_for_another) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    BOOST_TEST((store.Ask("").reason == Reason::kPolicyPresumedPreloaded));
    store.PullFor("kata", WithSecret(kSecretA));
    const Decision decision = store.Ask("");
    BOOST_TEST(decision.pull);
    BOOST_TEST((decision.reason == Reason::kPulledForOtherHandler));
    BOOST_TEST((decision.result == CheckResult::kMustAuthenticate));
  });
}

BOOST_AUTO_TEST_CASE(credentials_of_one_copy_do_not_open_another) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("kata", WithSecret(kSecretA));
    BOOST_TEST(!store.Ask("kata", Pod(kSecretA)).pull);
    BOOST_TEST(store.Ask("kata", Pod(kSecretB)).pull);
    BOOST_TEST(store.Ask("", Pod(kSecretA)).pull);
    store.PullFor("", WithSecret(kSecretB));
    BOOST_TEST(!store.Ask("", Pod(kSecretB)).pull);
    BOOST_TEST(store.Ask("", Pod(kSecretA)).pull);
    BOOST_TEST(store.Ask("kata", Pod(kSecretB)).pull);
    store.PullFor("kata", NodeWide());
    BOOST_TEST(!store.Ask("kata").pull);
    BOOST_TEST(store.Ask("").pull);
  });
}

BOOST_AUTO_TEST_CASE(the_default_handler_s_own_name_is_the_empty_one) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("runc", WithSecret(kSecretA));
    BOOST_TEST(!store.Ask("", Pod(kSecretA)).pull);
    BOOST_TEST(!store.Ask("runc", Pod(kSecretA)).pull);
    BOOST_TEST(Must(store->GetRecord(kRef, "runc")).runtime_handler.empty());
    BOOST_TEST(Must(store->GetStatistics()).nondefault_handler_records == 0U);
    Must(store->RecordPullIntent(kImage, "runc"));
    BOOST_TEST(Must(store->HasIntent(kImage)));
    Must(store->RecordImagePullFailed(kImage, PullFailure::kFailed, ""));
    BOOST_TEST(!Must(store->HasIntent(kImage, "runc")));
  });
}

BOOST_AUTO_TEST_CASE(an_intent_for_one_handler_closes_the_image_for_all) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    Must(store->RecordPullIntent(kImage, "kata"));
    BOOST_TEST((store.Ask("").reason == Reason::kPullInFlight));
    BOOST_TEST((store.Ask("kata").reason == Reason::kPullInFlight));
    const bool other_tag = store.Ask("", Pod(), std::string(kName) + ":another").pull;
    BOOST_TEST(other_tag == (rules == Rules::kClosed));
  });
}

BOOST_AUTO_TEST_CASE(pulls_of_one_image_for_two_handlers_end_one_by_one) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    Must(store->RecordPullIntent(kImage));
    Must(store->RecordPullIntent(kImage, "kata"));
    BOOST_TEST(Must(store->ListIntents()).size() == 2U);
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA), "kata"));
    BOOST_TEST(Must(store->HasIntent(kImage)));
    BOOST_TEST(!Must(store->HasIntent(kImage, "kata")));
    Must(store->RecordImagePullFailed(kImage));
    BOOST_TEST(Must(store->ListIntents()).empty());
    BOOST_TEST(store.Ask("").pull);
  });
}

BOOST_AUTO_TEST_CASE(quarantine_closes_every_handler_s_copy) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, "damaged");
    store.Restart();
    for (const std::string_view handler : {"", "kata"}) {
      BOOST_TEST((store.Ask(handler).reason == Reason::kQuarantined));
    }
    store.PullFor("kata", WithSecret(kSecretA));
    BOOST_TEST(!store.Ask("kata", Pod(kSecretA)).pull);
    BOOST_TEST((store.Ask("").reason == Reason::kPulledForOtherHandler));
  });
}

BOOST_AUTO_TEST_CASE(an_unknown_handler_is_refused_and_the_known_ones_are_listed) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules, MakePolicy(VerificationMode::kNeverVerify));
    const Decision decision = store.Ask("runsc");
    BOOST_TEST(decision.pull);
    BOOST_TEST((decision.reason == Reason::kRuntimeHandlerUnknown));
    BOOST_TEST((decision.result == CheckResult::kError));
    constexpr auto kWrong = ErrorCode::kInvalidArgument;
    constexpr std::string_view kKnown = "known are: kata, runc (the default)";
    BOOST_TEST(Refused(store->RecordPullIntent(kImage, "runsc"), kWrong, kKnown));
    BOOST_TEST(Refused(store->PutIntent(kImage, "runsc"), kWrong, kKnown));
    BOOST_TEST(
        Refused(store->RecordImagePulled(kImage, kRef, NodeWide(), "runsc"), kWrong, kKnown));
    BOOST_TEST(Refused(store->RecordImagePullFailed(kImage, PullFailure::kFailed, "runsc"), kWrong,
                       kKnown));
    const ImagePulledRecord record{std::string(kRef), std::nullopt, {}, 0, "runsc"};
    BOOST_TEST(Refused(store->PutRecord(record), kWrong, kKnown));
    BOOST_TEST(Must(store->ListRecords()).empty());
    BOOST_TEST(Must(store->ListIntents()).empty());
    const std::string too_long(kMaxRuntimeHandlerBytes + 1, 'a');
    BOOST_TEST(store.Ask(too_long).pull);
    BOOST_TEST(Refused(store->RecordPullIntent(kImage, too_long), ErrorCode::kLimitExceeded));
  });
}

BOOST_AUTO_TEST_CASE(without_a_registry_only_the_default_handler_is_known) {
  ScratchStore store(Rules::kClosed);
  Pod nobody;
  BOOST_TEST((store->MustAttemptPull(kImage, kRef, nobody, "kata").reason ==
              Reason::kRuntimeHandlerUnknown));
  BOOST_TEST(Refused(store->RecordPullIntent(kImage, "kata"), ErrorCode::kInvalidArgument,
                     "no list of handlers was loaded"));
  BOOST_TEST(Must(store->ListRuntimeHandlers()).empty());
}

BOOST_AUTO_TEST_CASE(a_list_that_is_wrong_changes_nothing) {
  Handlers store(Rules::kClosed);
  const std::uint64_t before = Must(store->GetStatistics()).commit_sequence;
  const std::vector<std::vector<RuntimeHandler>> wrong = {
      {Handler("a"), Handler("a")},
      {{"a", true, false}, {"b", true, false}},
      {{"", false, false}},
      {Handler("with space")},
      {Handler("a/b")},
      {Handler(std::string("a\0b", 3))},
      {Handler(std::string(kMaxRuntimeHandlerBytes + 1, 'a'))},
      {Handler("a", Platform{std::string(kMaxPlatformFieldBytes + 1, 'a'), "linux"})},
      std::vector<RuntimeHandler>(kMaxRuntimeHandlers + 1, Handler("a"))};
  for (const auto& handlers : wrong) {
    const auto replaced = store->ReplaceRuntimeHandlers(handlers);
    BOOST_TEST_REQUIRE(!replaced.has_value());
    BOOST_TEST((replaced.error().code == ErrorCode::kInvalidArgument ||
                replaced.error().code == ErrorCode::kLimitExceeded));
  }
  BOOST_TEST(Must(store->ListRuntimeHandlers()).size() == 2U);
  BOOST_TEST(Must(store->GetStatistics()).commit_sequence == before);
  const auto same = Must(store->ReplaceRuntimeHandlers({Handler("kata"), Handler("runc")}));
  BOOST_TEST(same.added.empty());
  BOOST_TEST(Must(store->GetStatistics()).commit_sequence == before);
}

BOOST_AUTO_TEST_CASE(handlers_that_vanish_are_reported_and_their_records_kept) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("kata", WithSecret(kSecretA));
    Must(store->RecordPullIntent(kImage, "kata"));
    const RuntimesReport report =
        Must(store->ReplaceRuntimeHandlers({Handler("runc"), Handler("runsc")}));
    BOOST_TEST((report.vanished == std::vector<std::string>{"kata"}));
    BOOST_TEST((report.added == std::vector<std::string>{"runsc"}));
    BOOST_TEST(!report.turned_on);
    BOOST_TEST((store.Ask("kata", Pod(kSecretA)).reason == Reason::kRuntimeHandlerUnknown));
    BOOST_TEST((store.Ask("").reason == Reason::kPulledForOtherHandler));
    BOOST_TEST(store.Knows("kata"));
    // Its pull may still end.
    Must(store->RecordImagePulled(kImage, kRef, std::nullopt, "kata"));
    BOOST_TEST(Must(store->ListIntents()).empty());
    Must(store->ReplaceRuntimeHandlers({Handler("runc"), Handler("kata")}));
    BOOST_TEST(!store.Ask("kata", Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(another_guest_platform_is_verified_again) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    Must(store->ReplaceRuntimeHandlers({Handler("runc"), Handler("kata", kWindows2019)}));
    store.PullFor("kata", WithSecret(kSecretA));
    store.PullFor("", WithSecret(kSecretA));
    BOOST_TEST((Must(store->GetRecord(kRef, "kata")).guest_platform == kWindows2019));
    // Also where the handler was away in between.
    Must(store->ReplaceRuntimeHandlers({Handler("runc"), Handler("other")}));
    const RuntimesReport report = Must(store->ReplaceRuntimeHandlers(
        {Handler("runc"), Handler("other"), Handler("kata", kWindows2022)}));
    BOOST_TEST((report.changed == std::vector<std::string>{"kata"}));
    BOOST_TEST(report.records_to_verify == 1U);
    BOOST_TEST((store.Ask("kata", Pod(kSecretA)).reason == Reason::kEntryWithoutCredentials));
    BOOST_TEST(!store.Ask("", Pod(kSecretA)).pull);
    store.PullFor("kata", WithSecret(kSecretA));
    BOOST_TEST(!store.Ask("kata", Pod(kSecretA)).pull);
    BOOST_TEST((Must(store->GetRecord(kRef, "kata")).guest_platform == kWindows2022));
  });
}

BOOST_AUTO_TEST_CASE(another_default_handler_is_verified_again) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("", WithSecret(kSecretA));
    Must(store->RecordPullIntent(kImage, "kata"));
    Must(store->RecordImagePullFailed(kImage, PullFailure::kUnknown, "kata"));
    const RuntimesReport report =
        Must(store->ReplaceRuntimeHandlers({{"runc", false, true}, {"kata", true, true}}));
    BOOST_TEST(report.records_to_verify == 1U);
    BOOST_TEST((report.changed == std::vector<std::string>{"kata"}));
    BOOST_TEST(store.Ask("", Pod(kSecretA)).pull);
    BOOST_TEST(store.Ask("kata", Pod(kSecretA)).pull);
    BOOST_TEST(store.Ask("runc", Pod(kSecretA)).pull);
    for (const ImagePullIntent& intent : Must(store->ListIntents())) {
      BOOST_TEST(intent.runtime_handler.empty());
    }
  });
}

BOOST_AUTO_TEST_CASE(another_manifest_is_another_image) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    const PulledManifest first{"sha256:1", kWindows2019};
    const PulledManifest second{"sha256:2", kWindows2022};
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretA), "kata", first));
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretB), "kata", first));
    BOOST_TEST(!store.Ask("kata", Pod(kSecretA)).pull);
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretB), "kata"));
    BOOST_TEST(!store.Ask("kata", Pod(kSecretA)).pull);
    Must(store->RecordImagePulled(kImage, kRef, WithSecret(kSecretB), "kata", second));
    BOOST_TEST(store.Ask("kata", Pod(kSecretA)).pull);
    BOOST_TEST(!store.Ask("kata", Pod(kSecretB)).pull);
    const ImagePulledRecord record = Must(store->GetRecord(kRef, "kata"));
    BOOST_TEST(record.manifest_digest == second.digest);
    BOOST_TEST((record.platform == kWindows2022));
  });
}

BOOST_AUTO_TEST_CASE(collapsing_leaves_everything_to_be_verified) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("kata", WithSecret(kSecretA));
    store.PullFor("", WithSecret(kSecretB));
    Must(store->RecordImagePulled("nginx", kRef2, NodeWide()));
    Must(store->PutIntent("busybox:1", "kata"));
    const CollapseReport report = Must(store->CollapseRuntimeHandlers());
    BOOST_TEST(report.records == 1U);
    BOOST_TEST(report.records_to_verify == 1U);
    BOOST_TEST(report.intents == 1U);
    BOOST_TEST((report.handlers == std::vector<std::string>{"kata"}));
    BOOST_TEST(!store.Knows("kata"));
    BOOST_TEST((store.Ask("", Pod(kSecretB)).reason == Reason::kEntryWithoutCredentials));
    BOOST_TEST(!store.Check("nginx", kRef2).pull);
    BOOST_TEST(Must(store->HasIntent("busybox:1")));
    BOOST_TEST((store.Ask("kata", Pod(kSecretA)).reason == Reason::kRuntimeHandlerUnknown));
    const auto handlers = Must(store->ListRuntimeHandlers());
    BOOST_TEST_REQUIRE(handlers.size() == 1U);
    BOOST_TEST(handlers[0].name == "runc");
    BOOST_TEST(Must(store->GetStatistics()).nondefault_handler_records == 0U);
  });
}

BOOST_AUTO_TEST_CASE(turning_it_on_again_cleans_up_what_an_earlier_time_left) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("kata", WithSecret(kSecretA));
    Must(store->ReplaceRuntimeHandlers({Handler("runc")}));  // off, and nobody collapsed
    BOOST_TEST(store.Knows("kata"));
    const RuntimesReport report =
        Must(store->ReplaceRuntimeHandlers({Handler("runc"), Handler("kata")}));
    BOOST_TEST(report.turned_on);
    BOOST_TEST(report.records_collapsed == 1U);
    BOOST_TEST(!store.Knows("kata"));
    BOOST_TEST(store.Ask("kata", Pod(kSecretA)).pull);
    BOOST_TEST(store.Ask("", Pod(kSecretA)).pull);
  });
}

BOOST_AUTO_TEST_CASE(collapsing_waits_for_pulls_in_flight) {
  Handlers store(Rules::kClosed);
  Must(store->RecordPullIntent(kImage, "kata"));
  const auto collapsed = store->CollapseRuntimeHandlers();
  BOOST_TEST((!collapsed && collapsed.error().code == ErrorCode::kConflict));
  BOOST_TEST(Must(store->HasIntent(kImage, "kata")));
  Must(store->RecordImagePullFailed(kImage, PullFailure::kFailed, "kata"));
  Must(store->CollapseRuntimeHandlers());
}

BOOST_AUTO_TEST_CASE(a_rotated_secret_is_written_back_to_its_handler_s_record) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("kata", WithSecret(kSecretA));
    store.PullFor("", WithSecret(kSecretA));
    ImagePullSecret rotated = kSecretA;
    rotated.credential_hash = Sha256Hex("rotated");
    BOOST_TEST(!store.Ask("kata", Pod(rotated)).pull);
    Must(store->Flush());
    const auto hash_of = [&](std::string_view handler) {
      return Must(store->GetRecord(kRef, handler))
          .credential_mapping.begin()
          ->second.kubernetes_secrets.front()
          .credential_hash;
    };
    BOOST_TEST(hash_of("kata") == rotated.credential_hash);
    BOOST_TEST(hash_of("") == kSecretA.credential_hash);
  });
}

BOOST_AUTO_TEST_CASE(images_of_other_handlers_are_a_metric) {
  Handlers store(Rules::kClosed);
  store.PullFor("", WithSecret(kSecretA));
  BOOST_TEST(store->GetMetrics().nondefault_runtime_handler_images == 0U);
  store.PullFor("kata", WithSecret(kSecretA));
  store.PullFor("kata", WithSecret(kSecretB));
  const Metrics metrics = store->GetMetrics();
  BOOST_TEST(metrics.nondefault_runtime_handler_images == 1U);
  BOOST_TEST(metrics.ondisk_pulledrecords == 2U);
  BOOST_TEST(metrics.ToPrometheusText().find("waybill_nondefault_runtime_handler_images 1\n") !=
             std::string::npos);
  Must(store->DeleteRecord(kRef, "kata"));
  BOOST_TEST(store->GetMetrics().nondefault_runtime_handler_images == 0U);
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_CASE(an_observer_asks_by_handler_too) {
  Handlers store(Rules::kClosed);
  store.PullFor("kata", WithSecret(kSecretA));
  store.Stop();
  auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  Pod pod(kSecretA);
  BOOST_TEST(!observer->MustAttemptPull(kImage, kRef, pod, "kata").pull);
  BOOST_TEST(observer->MustAttemptPull(kImage, kRef, pod).pull);
  BOOST_TEST(observer->MustAttemptPull(kImage, kRef, pod, "runsc").pull);
  BOOST_TEST(Must(observer->ListRuntimeHandlers()).size() == 2U);
}

BOOST_AUTO_TEST_CASE(ensuring_asks_by_handler) {
  UnderBothRules([](Rules rules) {
    Handlers store(rules);
    store.PullFor("kata", NodeWide());
    Pod pod;
    const auto action = [&](std::string_view handler) {
      return store->EnsureImage(kImage, kRef, PullPolicy::kNever, pod, handler).action;
    };
    BOOST_TEST((action("kata") == EnsureAction::kUsePresent));
    BOOST_TEST((action("") == EnsureAction::kNeverPull));
    BOOST_TEST((action("runsc") == EnsureAction::kNeverPull));
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
