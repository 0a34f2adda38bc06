// Lists that are empty, and dry runs, where histories/empty-lists.jsonl does not reach.

#include <boost/test/unit_test.hpp>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"
#include "tests/support/tree.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(empty_lists)

namespace {

constexpr waybill::ChangeOptions kDryRun{.allow_empty = true, .dry_run = true};

}  // namespace

BOOST_FIXTURE_TEST_CASE(
    opening_with_an_empty_list_of_runtime_handlers_is_refused_where_there_are_some, ClosedStore) {
  Must(store->ReplaceRuntimeHandlers({{"runc", true, true}}));
  store.Stop();
  OpenOptions options = store.Options({});
  options.runtime_handlers.emplace();
  options.allow_empty = false;
  const Error refused = ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
  BOOST_TEST((refused.hint_code == Hint::kAllowEmpty));
  options.allow_empty = true;
  BOOST_TEST(Must(Must(NodeStore::Open(options))->ListRuntimeHandlers()).empty());
}

BOOST_FIXTURE_TEST_CASE(an_observer_makes_no_dry_run, ClosedStore) {
  store.Stop();
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  ExpectError(observer->CollapseRuntimeHandlers(kDryRun), ErrorCode::kNotOwner);
}

BOOST_AUTO_TEST_CASE(a_dry_run_of_a_restore_reports_it_and_changes_nothing) {
  VersionedStore store;
  store.Open([](NodeStore& opened) {
    Must(opened.RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
  });
  RestoreOptions options{.directory = store.directory(), .backup = store.Migrate(1).backup};
  store.Open([](NodeStore& opened) {
    Must(opened.RecordImagePulled({.image = kImage, .image_ref = kRef2}, WithSecret(kSecretA)));
  });
  // All but the line that names the owner.
  const auto tree = [&] {
    Tree all = TreeOf(store.directory());
    all.erase("owner.lock");
    return all;
  };
  const Tree before = tree();
  options.dry_run = true;
  const RestoreReport dry = Must(Restore(options));
  BOOST_TEST(dry.replaced_path.empty());
  BOOST_TEST((tree() == before));
  store.Open([](NodeStore& opened) {
    BOOST_TEST(!opened.recovery_report().distrustful);
    // Going down stored the first one under its other spelling, too.
    BOOST_TEST(Must(opened.ListRecords()).size() == 3U);
  });
  options.dry_run = false;
  const RestoreReport done = Must(Restore(options));
  BOOST_TEST(!done.replaced_path.empty());
  BOOST_TEST(dry.records == done.records);
  BOOST_TEST(dry.records_without_credentials == done.records_without_credentials);
  BOOST_TEST(dry.distrust_reason == done.distrust_reason);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
