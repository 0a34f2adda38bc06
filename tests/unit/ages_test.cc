// How long a proof counts, where histories/time.jsonl does not reach: observers, absurd ages.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(ages)

namespace {

using std::chrono::hours;
using std::chrono::seconds;

}  // namespace

BOOST_AUTO_TEST_CASE(an_observer_goes_by_the_stores_limits_or_its_own) {
  UnderBothRules([](ScratchStore& store) {
    store.Stop();
    OpenOptions options = store.Options({});
    options.ages = AgeLimits{.credentials = hours(10)};
    Must(Must(NodeStore::Open(options))->Close());
    store.Start();
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.clock().AdvanceSeconds(11 * 3600);
    store.Stop();
    const auto reason = [&](const std::optional<AgeLimits>& ages) {
      const auto observer = Must(NodeStore::Observe({.directory = store.directory(),
                                                     .rules = store.rules(),
                                                     .ages = ages,
                                                     .clock = store.clock().AsClock()}));
      return DecisionOf(*observer, {.image = kImage, .image_ref = kRef}, Pod(kSecretA)).reason;
    };
    BOOST_TEST(reason(std::nullopt) == Reason::kProofTooOld);
    BOOST_TEST(reason(AgeLimits{}) == Reason::kSecretHashMatches);
  });
}

BOOST_FIXTURE_TEST_CASE(absurd_ages_are_refused, ClosedStore) {
  store.Stop();
  for (const AgeLimits& ages :
       {AgeLimits{.credentials = seconds(-1)}, AgeLimits{.credentials = seconds(59)},
        AgeLimits{.credentials = kMaxAge + seconds(1)}, AgeLimits{.service_accounts = seconds(-5)},
        AgeLimits{.node_pods = seconds::min()}, AgeLimits{.revocations = hours(23)},
        AgeLimits{.credentials = hours(1), .service_accounts = hours(2)},
        AgeLimits{.credentials = seconds::max()}}) {
    OpenOptions options = store.Options({});
    options.ages = ages;
    ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
    ExpectError(NodeStore::Observe({.directory = store.directory(), .ages = ages}),
                ErrorCode::kInvalidArgument);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
