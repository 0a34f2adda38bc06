// KEP-4216, what histories/handlers.jsonl can't say: a damaged copy, an observer, lists that are
// wrong.

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(handler_changes)

namespace {

const std::vector<RuntimeHandler> kRuncAndKata = {{"runc", true, true}, {"kata", false, true}};

RuntimeHandler Handler(const std::string& name, std::optional<Platform> guest = std::nullopt) {
  return {name, name == "runc", true, std::move(guest)};
}

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

// Replacing one damaged record counts the table anew; what else can't be read may be another
// handler's copy.
BOOST_AUTO_TEST_CASE(a_damaged_copy_still_closes_its_ref_after_a_recount) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
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

BOOST_AUTO_TEST_CASE(an_observer_asks_by_handler_too) {
  ScratchStore store(Rules::kClosed);
  Must(store->ReplaceRuntimeHandlers(kRuncAndKata));
  Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef, .runtime_handler = "kata"},
                                WithSecret(kSecretA)));
  store.Stop();
  auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  Pod pod(kSecretA);
  BOOST_TEST(
      !observer
           ->MustAttemptPull({.image = kImage, .image_ref = kRef, .runtime_handler = "kata"}, pod)
           .pull);
  BOOST_TEST(observer->MustAttemptPull({.image = kImage, .image_ref = kRef}, pod).pull);
  BOOST_TEST(
      observer
          ->MustAttemptPull({.image = kImage, .image_ref = kRef, .runtime_handler = "runsc"}, pod)
          .pull);
  BOOST_TEST(Must(observer->ListRuntimeHandlers()).size() == 2U);
}

BOOST_AUTO_TEST_CASE(a_list_that_is_wrong_changes_nothing) {
  ScratchStore store(Rules::kClosed);
  Must(store->ReplaceRuntimeHandlers({Handler("runc"), Handler("kata")}));
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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
