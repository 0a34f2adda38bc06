// Garbage collection where one image ref is on the node for several runtime handlers (KEP-4216).

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(prune_handlers)

namespace {

// Records of kRef under the default handler and under kata, each opened by a secret of its own.
struct TwoCopies : ScratchStore {
  explicit TwoCopies(Rules rules) : ScratchStore(rules) {
    Must((*this)->ReplaceRuntimeHandlers(
        {{"runc", true, true}, {"kata", false, true}, {"other", false, true}}));
    Must((*this)->RecordImagePulled(kImage, kRef, WithSecret(kSecretA)));
    Must((*this)->RecordImagePulled(kImage, kRef, WithSecret(kSecretB), "kata"));
  }
  PruneReport Prune(const std::vector<ListedImage>& images) {
    const PruneToken token = Must((*this)->BeginPrune());
    return Must((*this)->Prune(images, token, {.allow_empty = true}));
  }
  bool Opens(std::string_view handler, const ImagePullSecret& secret) {
    Pod pod(secret);
    return !(*this)->MustAttemptPull(kImage, kRef, pod, handler).pull;
  }
  std::size_t Records() { return Must((*this)->ListRecords()).size(); }
};

std::string Ref() { return std::string(kRef); }

}  // namespace

BOOST_AUTO_TEST_CASE(listed_without_a_handler_keeps_all_copies) {
  UnderBothRules([](Rules rules) {
    TwoCopies store(rules);
    const PruneReport report = store.Prune({Ref()});
    BOOST_TEST(report.kept_in_list == 2U);
    BOOST_TEST(store.Opens("", kSecretA));
    BOOST_TEST(store.Opens("kata", kSecretB));
  });
}

BOOST_AUTO_TEST_CASE(removing_one_copy_leaves_the_other_alone) {
  UnderBothRules([](Rules rules) {
    {
      TwoCopies store(rules);
      const PruneReport report = store.Prune({{Ref(), "kata"}});
      BOOST_TEST(report.removed == 1U);
      BOOST_TEST(store.Opens("kata", kSecretB));
      BOOST_TEST(!store.Opens("", kSecretA));
    }
    {
      TwoCopies store(rules);
      const PruneReport report = store.Prune({{Ref(), "runc"}});
      BOOST_TEST(report.removed == 1U);
      BOOST_TEST(store.Opens("", kSecretA));
      BOOST_TEST(!store.Opens("kata", kSecretB));
    }
  });
}

BOOST_AUTO_TEST_CASE(both_listed_by_name_are_kept) {
  UnderBothRules([](Rules rules) {
    TwoCopies store(rules);
    BOOST_TEST(store.Prune({{Ref(), "kata"}, {Ref(), "runc"}}).kept_in_list == 2U);
  });
}

BOOST_AUTO_TEST_CASE(not_listed_at_all_both_go) {
  UnderBothRules([](Rules rules) {
    TwoCopies store(rules);
    BOOST_TEST(store.Prune({"sha256:another"}).removed == 2U);
    BOOST_TEST(store.Records() == 0U);
  });
}

// Or the copy that is still there would pass for preloaded.
BOOST_AUTO_TEST_CASE(the_last_record_of_a_ref_that_is_listed_stays_without_credentials) {
  UnderBothRules([](Rules rules) {
    TwoCopies store(rules);
    const PruneReport report = store.Prune({{Ref(), "other"}});
    BOOST_TEST(report.removed == 1U);
    BOOST_TEST(report.kept_without_credentials == 1U);
    BOOST_TEST(store.Records() == 1U);
    for (const std::string_view handler : {"", "kata", "other"}) {
      BOOST_TEST(!store.Opens(handler, kSecretA));
      BOOST_TEST(!store.Opens(handler, kSecretB));
    }
    const std::uint64_t before = Must(store->GetStatistics()).commit_sequence;
    BOOST_TEST(store.Prune({{Ref(), "other"}}).kept_without_credentials == 1U);
    BOOST_TEST(Must(store->GetStatistics()).commit_sequence == before);
    BOOST_TEST(store.Prune({}).removed == 1U);
  });
}

BOOST_AUTO_TEST_CASE(a_record_that_is_newer_than_the_token_counts_as_one_that_stays) {
  UnderBothRules([](Rules rules) {
    TwoCopies store(rules);
    const PruneToken token = Must(store->BeginPrune());
    Must(store->RecordImagePulled("another.example.com/app", kRef, WithSecret(kSecretA), "other"));
    const PruneReport report = Must(store->Prune({{Ref(), "unknown-to-us"}}, token));
    BOOST_TEST(report.kept_newer == 1U);
    BOOST_TEST(report.removed == 2U);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
