// A store that may be older than its witness: it shows what is in it, and opens nothing.

#include <boost/test/unit_test.hpp>
#include <filesystem>

#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(stale_observer)

BOOST_AUTO_TEST_CASE(without_its_witness_a_store_is_shown_and_opens_nothing) {
  for (const Rules rules : {Rules::kClosed, Rules::kKubelet}) {
    ScratchStore store(rules);
    store.Pull("nginx", "ref", ImagePullCredentials{.node_pods_accessible = true});
    BOOST_TEST(!store.Check("nginx", "ref").pull);
    store.Stop();
    std::filesystem::remove(store.witness());
    ObserveOptions options{.directory = store.directory(), .rules = rules};
    ExpectError(NodeStore::Observe(options), ErrorCode::kDamaged);
    options.asks_witness = false;
    options.policy = Must(VerificationPolicy::Make(VerificationMode::kNeverVerify, {}));
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

}  // namespace waybill::testing
