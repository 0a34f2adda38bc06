// Lists that are empty, and dry runs, where histories/empty-lists.jsonl does not reach.

#include <boost/test/unit_test.hpp>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"

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

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
