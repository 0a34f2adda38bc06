// Calls with unusual arguments or credentials, and of stores that are closed, stale or large.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "store/base/policy.h"
#include "store/runtimes/runtime_handlers.h"
#include "tests/support/damage.h"
#include "tests/support/expect_error.h"
#include "tests/support/metrics.h"
#include "tests/support/rows.h"
#include "tests/support/store_fixture.h"
#include "waybill/limits.h"

namespace waybill::testing {

// What a call returns if it is given another member of a copy of an image than it needs; which code
// it returns if the store can't be read.
BOOST_AUTO_TEST_SUITE(image_copy)

// With positional strings the answer would be "no record, no intent", as if nothing had been
// pulled.
BOOST_FIXTURE_TEST_CASE(the_other_member_alone_is_refused_and_is_no_answer, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  constexpr auto kWrong = ErrorCode::kInvalidArgument;
  const ImageCopy only_ref = {.image_ref = kRef};
  ExpectError(store->RecordImagePullFailed(only_ref), kWrong);
  ExpectError(store->RecordImagePulled(only_ref, WithSecret(kSecretA)), kWrong);
  ExpectError(store->HasIntent(only_ref), kWrong);
  BOOST_TEST(DecisionOf(*store, only_ref).pull);

  const ImageCopy only_image = {.image = kImage};
  ExpectError(store->GetRecord(only_image), kWrong);
  ExpectError(store->DeleteRecord(only_image), kWrong);
  ExpectError(store->RecordImagePulled(only_image, WithSecret(kSecretA)), kWrong);
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
  BOOST_TEST(Must(store->ListIntents()).empty());
}

BOOST_FIXTURE_TEST_CASE(reading_from_a_store_that_was_taken_away_says_so_and_not_damaged,
                        ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  std::filesystem::remove(store.directory() / "owner.lock");
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  ExpectError(store->PutIntent(copy), ErrorCode::kOwned);
  ExpectError(store->GetRecord(copy), ErrorCode::kOwned);
  ExpectError(store->ListIntents(), ErrorCode::kOwned);
}

BOOST_AUTO_TEST_SUITE_END()

// Credentials fetched only after a decision turned out to depend on them: the second call answers
// and counts as if the store had fetched them itself.
BOOST_AUTO_TEST_SUITE(deferred_credentials)

BOOST_AUTO_TEST_CASE(an_outcome_that_needs_them_starts_nothing_and_is_not_counted) {
  UnderBothRules([](ScratchStore& store) {
    BOOST_REQUIRE(store->RecordPullIntent({.image = kImage}));
    BOOST_REQUIRE(
        store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    DeferredCredentials deferred;
    for (const auto& [policy, action] : {std::pair{PullPolicy::kIfNotPresent, EnsureAction::kPull},
                                         std::pair{PullPolicy::kNever, EnsureAction::kNeverPull}}) {
      const EnsureOutcome outcome =
          store->EnsureImage({.image = kImage, .image_ref = kRef}, policy, deferred);
      BOOST_TEST(outcome.action == action);
      BOOST_REQUIRE(outcome.decision.has_value());
      BOOST_TEST(outcome.decision->reason == Reason::kCredentialsNeeded);
    }
    BOOST_TEST((CountedIn(store->GetMetrics()).ensure_image_requests == EnsureImageRequests()));
  });
}

BOOST_AUTO_TEST_SUITE_END()

// Lists that are empty, and dry runs, where histories/empty-lists.jsonl does not reach.
BOOST_AUTO_TEST_SUITE(empty_lists)

BOOST_FIXTURE_TEST_CASE(
    opening_with_an_empty_list_of_runtime_handlers_is_refused_where_there_are_some, ClosedStore) {
  Must(store->ReplaceRuntimeHandlers({{"runc", true, true}}));
  store.Stop();
  NodeStoreOptions options = store.Options({});
  options.runtime_handlers.emplace();
  options.allow_empty = false;
  const Error refused = ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
  BOOST_TEST((refused.hint_code == Hint::kAllowEmpty));
  options.allow_empty = true;
  BOOST_TEST(Must(Must(NodeStore::Open(options))->ListRuntimeHandlers()).empty());
}

BOOST_AUTO_TEST_SUITE_END()

// A store that may be older than its witness: it shows what is in it, and opens nothing.
BOOST_AUTO_TEST_SUITE(stale_observer)

BOOST_AUTO_TEST_CASE(without_its_witness_a_store_is_shown_and_opens_nothing) {
  for (const Mode rules : {Mode::kStrict, Mode::kKubelet}) {
    ScratchStore store(rules, Must(VerificationPolicy::Make(Verification::kNeverVerify, {})));
    store.Pull("nginx", "ref", ImagePullCredentials{.node_pods_accessible = true});
    BOOST_TEST(!store.Check("nginx", "ref").pull);
    store.Stop();
    std::filesystem::remove(store.witness());
    ObserveOptions options{.directory = store.directory()};
    ExpectError(NodeStore::Observe(options), ErrorCode::kDamaged);
    options.asks_witness = false;
    const auto shown = Must(NodeStore::Observe(options));
    BOOST_TEST(Must(shown->ListRecords()).size() == 1U);
    Pod pod;
    const ImageCopy copy = {.image = "nginx", .image_ref = "ref"};
    BOOST_TEST(shown->MustAttemptPull(copy, pod).pull);
    BOOST_TEST((shown->EnsureImage(copy, PullPolicy::kIfNotPresent, pod).action !=
                EnsureAction::kUsePresent));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// KEP-4216, what histories/handlers.jsonl can't say: a damaged copy, an observer, many keys, lists
// that are too long.
BOOST_AUTO_TEST_SUITE(handler_changes)

namespace {

const std::vector<RuntimeHandler> kRuncAndKata = {{"runc", true, true}, {"kata", false, true}};

// Every place of the file that holds `text`, also in pages that are no longer in use. The file
// stays open.
void DamageEach(const std::filesystem::path& path, const std::string& text) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto places = PlacesOf(ReadFile(path), text);
  BOOST_TEST_REQUIRE(!places.empty());
  for (const std::size_t at : places) file.seekp(static_cast<std::streamoff>(at)).put('!');
}

}  // namespace

// Replacing one damaged record recounts the table. Another unreadable value may be another
// handler's copy.
BOOST_AUTO_TEST_CASE(a_damaged_copy_still_closes_its_ref_after_a_recount) {
  UnderBothRules([](ScratchStore& store) {
    Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
    Must(store->RecordImagePulled(
        {.image = kImage, .image_ref = "ref-of-kata", .runtime_handler = "kata"},
        WithSecret(kSecretA)));
    Must(store->RecordImagePulled({.image = kImage, .image_ref = "ref-of-runc"},
                                  WithSecret(kSecretA)));
    for (const char* ref : {"ref-of-kata", "ref-of-runc"}) {
      DamageEach(store.directory() / "data.mdb", ref);
      BOOST_TEST((store.Check(kImage, ref).reason == Reason::kRecordDamaged));
    }
    Must(store->RecordImagePulled({.image = kImage, .image_ref = "ref-of-runc"},
                                  WithSecret(kSecretA)));
    BOOST_TEST(!store.Check(kImage, "ref-of-runc", Pod(kSecretA)).pull);
    BOOST_TEST((store.Check(kImage, "ref-of-kata").reason == Reason::kRecordDamaged));
  });
}

// What it said is not known, so no later word than a pull's opens the image.
BOOST_FIXTURE_TEST_CASE(no_list_and_no_operator_opens_a_damaged_record, ClosedStore) {
  const std::string id = "sha256:" + std::string(64, 'a');
  ListedImage listed{.id = id, .imported = true};
  listed.repo_tags = {std::string(kImage)};
  Must(store->RecordImagePulled({.image = kImage, .image_ref = id}, WithSecret(kSecretA)));
  DamageEach(store.directory() / "data.mdb", "team-a");
  BOOST_TEST((store.Check(kImage, id).reason == Reason::kRecordDamaged));
  ExpectError(store->RemoveFromLedger({.image_ref = id}, "ours"), ErrorCode::kDamaged);
  for (int lists = 0; lists < 2; ++lists) {
    const ListToken token = Must(store->BeginList());
    Must(store->ObserveImages({.images = {listed}, .token = token, .complete = true}));
    BOOST_TEST(store.Check(kImage, id).pull);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// Limits of lists of runtime handlers. What else is wrong with one: histories/handlers.jsonl.
BOOST_AUTO_TEST_SUITE(runtime_handlers)

namespace {

std::string ErrorOf(const std::vector<RuntimeHandler>& handlers,
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto checked = internal::CheckRuntimeHandlers(handlers);
  if (checked) return "sound";
  BOOST_TEST((checked.error().code == code), checked.error().message);
  return checked.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(limits) {
  const std::string message =
      ErrorOf({{.name = std::string(1 << 20, 'n')}}, ErrorCode::kLimitExceeded);
  BOOST_TEST(message.ends_with("its name has 1048576 bytes, and 253 are allowed"));
  BOOST_TEST(message.size() < 400u);
  std::vector<RuntimeHandler> many;
  for (std::size_t i = 0; i < kMaxRuntimeHandlers; ++i) many.push_back({.name = std::to_string(i)});
  BOOST_TEST(ErrorOf(many) == "sound");
  many.push_back({.name = "x"});
  BOOST_TEST(ErrorOf(many, ErrorCode::kLimitExceeded) != "sound");

  const std::string long_field(kMaxPlatformFieldBytes + 1, 'x');
  for (std::string Platform::*field :
       {&Platform::architecture, &Platform::os, &Platform::os_version, &Platform::variant}) {
    Platform guest;
    guest.*field = long_field.substr(1);
    BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}) == "sound");
    guest.*field = long_field;
    BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}, ErrorCode::kLimitExceeded) !=
               "sound");
  }
  Platform guest;
  guest.os_features = {long_field};
  BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}, ErrorCode::kLimitExceeded) !=
             "sound");
  guest.os_features.assign(kMaxOsFeatures, "f");
  BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}) == "sound");
  guest.os_features.emplace_back("f");
  BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}, ErrorCode::kLimitExceeded) !=
             "sound");
}

BOOST_AUTO_TEST_SUITE_END()

// What ../../docs/limits.md names and no other test plays: here the limit itself is expected. Each
// of its lines is named by a test (../limits looks).
BOOST_AUTO_TEST_SUITE(limits)

// A limit: "The check at opening reads the whole file"
BOOST_AUTO_TEST_CASE(bytes_of_a_record) {
  constexpr std::size_t kRecords = 2000;
  ScratchStore store(Mode::kStrict);
  for (std::size_t i = 0; i < kRecords; ++i) {
    ImagePulledRecord record;
    record.image_ref = "sha256:" + std::string(64 - 4, 'a') + std::to_string(1000 + i);
    const std::string name = "registry.example.com/team-" + std::to_string(i % 50) + "/app";
    record.credential_mapping[name] = WithSecret(kSecretA);
    Must(store->PutRecord(record));
  }
  const std::uint64_t bytes = Must(store->GetStatistics()).used_bytes;
  BOOST_TEST(bytes / kRecords >= 300U);
  BOOST_TEST(bytes / kRecords <= 800U);
}

// A limit: "Without a witness"
BOOST_AUTO_TEST_CASE(a_wiped_store_without_a_witness) {
  for (const bool has_witness : {false, true}) {
    ScratchStore store(Mode::kStrict, {}, {}, has_witness);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Stop();
    std::filesystem::remove_all(store.directory());
    store.Start({{.id = std::string(kRef), .repo_tags = {std::string(kImage)}}});
    BOOST_TEST(Must(store->GetTrust()).distrustful == has_witness);
    BOOST_TEST(store.Check(kImage, kRef).pull == has_witness);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
