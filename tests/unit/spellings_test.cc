// One image under several refs, where histories/evidence.jsonl and spellings_property do not reach:
// how a digest is spelt, ways back, more refs than an image may have.

#include <boost/test/unit_test.hpp>
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

// As the runtime lists it.
ImageOnNode Entry() {
  return {.id = std::string(kRef), .repo_tags = {std::string(kImage)}, .repo_digests = {kByDigest}};
}

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

BOOST_AUTO_TEST_CASE(going_back_opens_nothing_that_is_in_quarantine) {
  for (const bool has_record : {false, true}) {
    ScratchStore store(Rules::kClosed);
    if (has_record) store.Pull(kImage, kByDigest, WithSecret(kSecretA));
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
