// One image under several refs, where histories/evidence.jsonl and spellings_property do not reach:
// records that become one, quarantine, names in the ledger, runtime handlers, ways back.

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <vector>

#include "store/base/image_spellings.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "tests/support/versions.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(spellings)

namespace {

const std::string kHex(64, '1');  // of kRef
const std::string kByDigest = std::string(kName) + "@sha256:" + std::string(64, 'd');
const std::string kMirrored = "mirror.example.com/app@sha256:" + std::string(64, 'd');

// As the runtime lists it.
ImageOnNode Entry() {
  return {.id = std::string(kRef), .repo_tags = {std::string(kImage)}, .repo_digests = {kByDigest}};
}
const std::vector<std::string> kSpellings = {
    std::string(kRef),   kHex, kByDigest, kMirrored, "sha256:" + std::string(64, 'd'),
    std::string(64, 'd')};

void PullUnder(ScratchStore& store, std::string_view ref, const ImagePullCredentials& credentials,
               std::string_view handler = {}) {
  const ImageCopy copy{.image = kImage, .image_ref = ref, .runtime_handler = handler};
  const PullId pull = Must(store->RecordPullIntent(copy));
  Must(store->RecordImagePulled(copy, credentials, {.pull = pull}));
}

// Asked by each spelling.
void ExpectEverywhere(ScratchStore& store, const std::function<Pod()>& pod, bool pull) {
  for (const std::string& ref : kSpellings) {
    BOOST_TEST(store.Check(kImage, ref, pod()).pull == pull, ref);
  }
}
Pod Nobody() { return Pod(); }
Pod TenantA() { return Pod(kSecretA); }
Pod TenantB() { return Pod(kSecretB); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_digest_has_one_spelling_and_three_plain_ones) {
  const std::string digest = "sha256:" + kHex;
  for (const std::string& ref : {kHex, digest, std::string(kName) + "@" + digest}) {
    BOOST_TEST(internal::SpellingOf(ref) == digest);
    const auto plain = internal::PlainSpellings(ref);
    BOOST_TEST(plain.front() == ref);
    for (const std::string& other : {kHex, digest}) {
      BOOST_TEST(std::count(plain.begin(), plain.end(), other) == 1, other);
    }
  }
  for (const std::string& other :
       {std::string("short"), "SHA256:" + kHex, kHex.substr(1), kHex + "1", "sha512:" + kHex,
        std::string(kName) + "@sha256:" + kHex.substr(1), std::string()}) {
    BOOST_TEST(internal::SpellingOf(other) == other);
    BOOST_TEST(internal::PlainSpellings(other).size() == 1U);
  }
}

// --- Records

BOOST_AUTO_TEST_CASE(one_record_answers_under_every_spelling_once_a_list_tells_them) {
  for (const std::string& recorded : kSpellings) {
    ScratchStore store(Rules::kClosed);
    PullUnder(store, recorded, WithSecret(kSecretA));
    ObservePart(*store, {Entry()});
    BOOST_TEST_CONTEXT("recorded under " << recorded) {
      ExpectEverywhere(store, TenantA, false);
      ExpectEverywhere(store, TenantB, true);
      ExpectEverywhere(store, Nobody, true);
      BOOST_TEST(Must(store->ListRecords()).size() == 1U);
    }
  }
}

BOOST_FIXTURE_TEST_CASE(records_under_several_spellings_become_one_with_what_each_proved,
                        ClosedStore) {
  std::vector<ImagePullSecret> secrets;
  for (const std::string& ref : {kByDigest, kMirrored, std::string(kRef)}) {
    const std::string number = std::to_string(secrets.size());
    secrets.push_back(MakeSecret("team", "s" + number, "uid-" + number, "hash-" + number));
    ImagePulledRecord record{.image_ref = ref};
    record.credential_mapping[std::string(kName)] = WithSecret(secrets.back());
    Must(store->PutRecord(record));
  }
  ObservePart(*store, {Entry()});
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
  for (const ImagePullSecret& secret : secrets) {
    ExpectEverywhere(
        store, [&] { return Pod(secret); }, false);
  }
  ExpectEverywhere(store, TenantB, true);
  BOOST_TEST(Must(store->Verify()).sound);
}

// A record that a list closed names no guest: it takes nothing from one that a pull proved for a
// guest.
BOOST_AUTO_TEST_CASE(a_record_that_a_list_closed_leaves_what_was_proven_for_a_guest) {
  for (const bool closed_first : {true, false}) {
    ScratchStore store(Rules::kClosed);
    const Platform guest{.architecture = "amd64", .os = "windows"};
    Must(store->ReplaceRuntimeHandlers(
        {{.name = "runhcs", .is_default = true, .guest_platform = guest}}));
    const auto close = [&] { ObservePart(*store, {{.id = std::string(kRef)}}); };
    if (closed_first) close();
    PullUnder(store, kByDigest, WithSecret(kSecretA));
    if (!closed_first) close();
    BOOST_TEST(Must(store->ListRecords()).size() == 2U);
    ObservePart(*store, {Entry()});
    BOOST_TEST(Must(store->ListRecords()).size() == 1U);
    BOOST_TEST_CONTEXT((closed_first ? "closed first" : "pulled first")) {
      ExpectEverywhere(store, TenantA, false);
      ExpectEverywhere(store, TenantB, true);
    }
  }
}

// What was rotated away in the newer record must not come back from the older one.
BOOST_AUTO_TEST_CASE(of_two_records_the_newer_hash_stays) {
  const ImagePullSecret rotated = MakeSecret("team-a", "pull", "uid-a", "hash-a-2");
  const ImagePullSecret thief = MakeSecret("team-c", "pull", "uid-c", "hash-a");
  for (const bool digest_first : {true, false}) {
    ScratchStore store(Rules::kClosed);
    const std::string first = digest_first ? kByDigest : std::string(kRef);
    const std::string second = digest_first ? std::string(kRef) : kByDigest;
    PullUnder(store, first, WithSecret(kSecretA));
    PullUnder(store, second, WithSecret(rotated));
    ObservePart(*store, {Entry()});
    ExpectEverywhere(
        store, [&] { return Pod(rotated); }, false);
    ExpectEverywhere(
        store, [&] { return Pod(thief); }, true);
  }
}

BOOST_FIXTURE_TEST_CASE(records_of_other_manifests_do_not_lend_each_other_credentials,
                        ClosedStore) {
  const auto pull = [&](std::string_view ref, const ImagePullSecret& secret, char manifest) {
    Must(store->RecordImagePulled(
        {.image = kImage, .image_ref = ref}, WithSecret(secret),
        {.manifest = PulledManifest{"sha256:" + std::string(64, manifest), {"amd64", "linux"}}}));
  };
  pull(kByDigest, kSecretA, 'a');
  pull(kRef, kSecretB, 'b');
  ObservePart(*store, {Entry()});
  ExpectEverywhere(store, TenantB, false);
  ExpectEverywhere(store, TenantA, true);
}

// A credential that decisions met under one spelling is written back to the record under another.
BOOST_FIXTURE_TEST_CASE(a_write_back_finds_the_record, ClosedStore) {
  PullUnder(store, kByDigest, WithSecret(kSecretA));
  ObservePart(*store, {Entry()});
  const ImagePullSecret moved = MakeSecret("team-b", "copy", "uid-b", "hash-a");
  BOOST_TEST(!store.Check(kImage, kHex, Pod(moved)).pull);
  Must(store->Flush());
  const auto records = Must(store->ListRecords());
  BOOST_TEST_REQUIRE(records.size() == 1U);
  BOOST_TEST(records[0].credential_mapping.at(std::string(kName)).kubernetes_secrets.size() == 2U);
}

// The caller's own functions for whole records.
BOOST_AUTO_TEST_CASE(a_record_that_is_replaced_or_deleted_leaves_nothing_under_another_spelling) {
  for (const std::string& other : {kHex, kByDigest}) {
    BOOST_TEST_CONTEXT(other) {
      ScratchStore store(Rules::kClosed);
      PullUnder(store, other, WithSecret(kSecretA));
      ObservePart(*store, {Entry()});
      ImagePulledRecord record{.image_ref = std::string(kRef)};
      record.credential_mapping[std::string(kName)] = WithSecret(kSecretB);
      Must(store->PutRecord(record));
      ExpectEverywhere(store, TenantB, false);
      ExpectEverywhere(store, TenantA, true);
      Must(store->DeleteRecord({.image_ref = other}));
      ExpectEverywhere(store, TenantB, true);
      BOOST_TEST(Must(store->ListRecords()).empty());
    }
  }
}

// --- Quarantine

BOOST_AUTO_TEST_CASE(quarantine_under_any_spelling_closes_all_until_a_pull) {
  for (const std::string& unreadable : {std::string(kRef), kHex, kByDigest}) {
    BOOST_TEST_CONTEXT(unreadable) {
      ScratchStore store(Rules::kClosed);
      PullUnder(store, kByDigest, NodeWide());
      Must(store->AddToLedger(Entry(), "operator", "also preloaded"));
      ObservePart(*store, {Entry()});
      WriteRecordFile(store.kubelet_directory(), "pulled", unreadable, "{");
      store.Restart();
      for (const std::string& ref : kSpellings) {
        BOOST_TEST(store.Check(kImage, ref).reason == Reason::kQuarantined, ref);
      }
      BOOST_TEST(ObservePart(*store, {Entry()}).known == 1U);
      PullUnder(store, kRef, WithSecret(kSecretA));
      BOOST_TEST(Must(store->ListQuarantine()).empty());
      ExpectEverywhere(store, TenantA, false);
    }
  }
}

BOOST_AUTO_TEST_CASE(going_back_opens_nothing_that_is_in_quarantine) {
  for (const bool has_record : {false, true}) {
    ScratchStore store(Rules::kClosed);
    if (has_record) PullUnder(store, kByDigest, WithSecret(kSecretA));
    Must(store->AddToLedger(Entry(), "operator", "preloaded"));
    ObservePart(*store, {Entry()});
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, "{");
    store.Restart();
    BOOST_TEST_REQUIRE(store.Check(kImage, kHex, Pod(kSecretA)).pull);

    const auto exported = store.scratch() / "exported";
    std::filesystem::create_directory(exported);
    Must(store->Export(
        {.kubelet_directory = exported, .images_on_node = std::vector<ImageOnNode>{Entry()}}));
    for (const std::string& ref : {std::string(kRef), kHex, kByDigest}) {
      const auto file = exported / RecordFile("pulled", ref);
      BOOST_TEST_REQUIRE(std::filesystem::exists(file), ref << " would pass for preloaded");
      const auto record = DecodePulledRecord(ReadFile(file));
      BOOST_TEST((!record || record->credential_mapping.empty()), ref);
    }

    store.Stop();
    Must(Migrate({.directory = store.directory(), .to = 4, .accept_loss = true}));
    const Contents older = ContentsOf(store.directory());
    for (const std::string& ref : {std::string(kRef), kHex, kByDigest}) {
      const ImagePulledRecord* const record = FindRecord(older, ref);
      const bool in_quarantine =
          std::any_of(older.quarantine.begin(), older.quarantine.end(),
                      [&](const QuarantineEntry& entry) { return entry.sha256 == Sha256Hex(ref); });
      BOOST_TEST((in_quarantine || (record != nullptr && record->credential_mapping.empty())), ref);
    }
  }
}

// --- The ledger

BOOST_AUTO_TEST_CASE(an_entry_answers_under_every_spelling) {
  for (const std::string& named : kSpellings) {
    ScratchStore store(Rules::kClosed);
    ObservePart(*store, {{.id = std::string(kRef), .repo_digests = {kByDigest}}});
    Must(store->RemoveFromLedger({.image_ref = kRef}, "to be named by hand"));
    Must(store->AddToLedger({.id = named}, "operator", "preloaded"));
    BOOST_TEST_CONTEXT("named as " << named) {
      BOOST_TEST(Must(store->ListLedger()).size() == 1U);
      ExpectEverywhere(store, Nobody, false);
      // A name that no registry has, or that is none, too.
      BOOST_TEST(!store.Check("Not A Name", kRef).pull);
      BOOST_TEST(Must(store->RemoveFromLedger({.image_ref = kHex}, "a mistake")));
      ExpectEverywhere(store, Nobody, true);
      BOOST_TEST(Must(store->ListLedger()).empty());
    }
  }
}

// Named by hand under a digest before any list tells of which image that is.
BOOST_FIXTURE_TEST_CASE(an_entry_under_a_digest_becomes_its_images, ClosedStore) {
  Must(store->AddToLedger({.id = kByDigest, .repo_tags = {"r.example/first:1"}}, "a", "b"));
  Must(
      store->AddToLedger({.id = std::string(kRef), .repo_tags = {"r.example/second:1"}}, "a", "b"));
  BOOST_TEST(Must(store->ListLedger()).size() == 2U);
  ObservePart(*store, {Entry()});
  const auto ledger = Must(store->ListLedger());
  BOOST_TEST_REQUIRE(ledger.size() == 1U);
  BOOST_TEST(ledger[0].image_ref == kRef);
  const std::vector<std::string> both = {"r.example/first:1", "r.example/second:1"};
  BOOST_TEST(ledger[0].names == both, boost::test_tools::per_element());
  ExpectEverywhere(store, Nobody, false);
}

BOOST_AUTO_TEST_CASE(an_allowlist_of_preloaded_images_asks_for_the_ledgers_names) {
  const auto allow = [](const char* pattern) {
    return MakePolicy(VerificationMode::kNeverVerifyAllowlistedImages, {pattern},
                      AllowlistScope::kPreloadedOnly);
  };
  ScratchStore store(Rules::kClosed, allow(kName.data()));
  Must(store->AddToLedger(Entry(), "operator", "preloaded"));
  Must(store->AddToLedger({.id = std::string(kRef2)}, "operator", "without a name"));
  // By a name of the ledger, by another, by an ID.
  for (const std::string& image : {std::string(kImage), std::string("r.example/own:1"), kHex}) {
    Expect(store.Check(image, kRef), false, CheckResult::kCredentialPolicyAllowed,
           Reason::kPolicyAllowlisted);
    BOOST_TEST(store.Check(image, kRef2).pull);
  }
  // The pod's name is on the list, the image's is not.
  store.Stop();
  store.set_policy(allow("r.example/own"));
  store.Start();
  BOOST_TEST(store.Check("r.example/own:1", kRef).pull);
  store.Stop();
  store.set_policy(MakePolicy(VerificationMode::kAlwaysVerify));
  store.Start();
  BOOST_TEST(store.Check(kImage, kRef).pull);
  store.Stop();
  store.set_policy(MakePolicy(VerificationMode::kNeverVerify));
  store.Start();
  BOOST_TEST(!store.Check(kImage, kRef).pull);
  BOOST_TEST(!store.Check(kImage, "sha256:unheard-of").pull);
}

// A tenant pulls the same content into a repository of his own.
BOOST_FIXTURE_TEST_CASE(a_record_does_not_shut_what_is_preloaded, ClosedStore) {
  Must(store->AddToLedger(Entry(), "operator", "preloaded"));
  ObservePart(*store, {Entry()});
  PullUnder(store, kByDigest, WithSecret(kSecretA));
  for (const auto& pod : {Nobody, TenantA, TenantB}) ExpectEverywhere(store, pod, false);
  BOOST_TEST(!store.Check("r.example/own:1", kHex).pull);
}

// --- Runtime handlers

struct WithHandlers : ScratchStore {
  WithHandlers() : ScratchStore(Rules::kClosed) {
    Must((*this)->ReplaceRuntimeHandlers({{"runc", true, true}, {"kata", false, false}}));
  }
  Decision Ask(std::string_view handler, std::string_view ref = kRef, Pod pod = Pod()) {
    return (*this)->MustAttemptPull({.image = kImage, .image_ref = ref, .runtime_handler = handler},
                                    pod);
  }
};

BOOST_FIXTURE_TEST_CASE(an_entry_is_of_one_handler, WithHandlers) {
  ObservePart(**this, {Entry()});
  for (const std::string_view handler : {"", "runc"}) BOOST_TEST(!Ask(handler).pull);
  BOOST_TEST(Ask("kata").pull);
  BOOST_TEST(Ask("kata", kByDigest).pull);
  ImageOnNode of_kata = Entry();
  of_kata.runtime_handler = "kata";
  Must((*this)->AddToLedger(of_kata, "operator", "for kata, too"));
  BOOST_TEST(!Ask("kata", kByDigest).pull);
  BOOST_TEST(Must((*this)->ListLedger()).size() == 2U);
  BOOST_TEST(Must((*this)->RemoveFromLedger({.image_ref = kHex, .runtime_handler = "runc"}, "no")));
  BOOST_TEST(Ask("").pull);
  BOOST_TEST(!Ask("kata").pull);
}

// Listed by the runtime for one handler; a record of another's copy tells that the kubelet pulled.
BOOST_FIXTURE_TEST_CASE(a_record_under_any_handler_and_spelling_is_a_record, WithHandlers) {
  PullUnder(*this, kByDigest, WithSecret(kSecretA), "kata");
  const ObserveReport report = ObservePart(**this, {Entry()});
  BOOST_TEST(report.known == 1U);
  BOOST_TEST(Must((*this)->ListLedger()).empty());
  for (const std::string& ref : kSpellings) {
    BOOST_TEST(Ask("", ref).pull, ref);
    BOOST_TEST(Ask("", ref, Pod(kSecretA)).pull, ref);
    BOOST_TEST(!Ask("kata", ref, Pod(kSecretA)).pull, ref);
  }
  // It never loses the last record while it is listed.
  const ListToken token = Must((*this)->BeginList());
  Must((*this)->ObserveImages({.images = {Entry()}, .token = token, .complete = true}));
  BOOST_TEST(Must((*this)->ListRecords()).size() == 1U);
  ImageOnNode of_runc = Entry();
  of_runc.runtime_handler = "runc";
  const ListToken later = Must((*this)->BeginList());
  Must((*this)->ObserveImages({.images = {of_runc}, .token = later, .complete = true}));
  BOOST_TEST(Must((*this)->ListRecords()).size() == 1U);
  BOOST_TEST(Ask("").pull);
}

BOOST_FIXTURE_TEST_CASE(open_pulls_of_any_handler_count_against_any, WithHandlers) {
  const ImageCopy copy{.image = kImage, .runtime_handler = "kata"};
  const PullId pull = Must((*this)->RecordPullIntent(copy));
  Must((*this)->RecordImagePullFailed(copy, PullFailure::kUnknown, pull));
  ImageOnNode of_runc = Entry();
  of_runc.runtime_handler = "runc";
  of_runc.repo_digests.clear();
  BOOST_TEST(ObservePart(**this, {of_runc}).closed == 1U);
}

// --- An image that the runtime lists by another ID than before

BOOST_FIXTURE_TEST_CASE(an_upgrade_that_changes_ids_keeps_what_is_known, ClosedStore) {
  PullUnder(store, kRef, WithSecret(kSecretA));
  ObservePart(*store, {Entry()});
  // From now on its ID is the manifest's digest.
  const ImageOnNode renamed{.id = "sha256:" + std::string(64, 'd'),
                            .repo_tags = {std::string(kImage)},
                            .repo_digests = {kByDigest}};
  store.Restart();
  const ListToken token = Must(store->BeginList());
  const ObserveReport report =
      Must(store->ObserveImages({.images = {renamed}, .token = token, .complete = true}));
  BOOST_TEST(report.known == 1U);
  BOOST_TEST(report.records_removed == 0U);
  ExpectEverywhere(store, TenantA, false);
  ExpectEverywhere(store, Nobody, true);
}

// One content in as many repositories as a tenant likes, pulled between two lists.
BOOST_FIXTURE_TEST_CASE(more_records_of_one_image_than_it_may_have_refs, ClosedStore) {
  constexpr std::size_t kRefs = kMaxSpellingsPerImage + 3;
  const std::string digest = "@sha256:" + std::string(64, 'd');
  const auto repository = [](std::size_t i) { return "evil.example/x" + std::to_string(i); };
  for (std::size_t i = 0; i < kRefs; ++i) {
    const std::string image = repository(i) + ":v1";
    const std::string ref = repository(i) + digest;
    Must(store->RecordPullIntent({.image = image}));
    Must(store->RecordImagePulled({.image = image, .image_ref = ref}, WithSecret(kSecretA)));
  }
  ImageOnNode listed = Entry();
  listed.repo_digests = {repository(0) + digest};
  const ObserveReport report = ObservePart(*store, {listed});
  BOOST_TEST(report.united == kRefs - 1);
  BOOST_TEST(report.known == 1U);
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
  // Each name that was proven is, under every spelling.
  for (const std::size_t i : {std::size_t{0}, kRefs - 1}) {
    BOOST_TEST(!store.Check(repository(i) + ":v1", kRef, Pod(kSecretA)).pull);
    BOOST_TEST(store.Check(repository(i) + ":v1", kRef).pull);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
