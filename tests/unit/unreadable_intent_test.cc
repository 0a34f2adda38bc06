// An intent that can't be read, beside a good record of the same image.

#include <boost/test/unit_test.hpp>

#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(unreadable_intent)

BOOST_AUTO_TEST_CASE(beside_a_record_it_closes_under_closed_rules_only) {
  UnderBothRules([](Rules rules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    store.Stop();
    WriteRecordFile(store.kubelet_directory(), "pulling", kImage, "{\"kind\":");
    store.Start();
    if (rules == Rules::kKubelet) {
      Expect(store.Check(kImage, kRef, Pod(kSecretA)), false, CheckResult::kCredentialRecordFound,
             Reason::kSecretHashMatches);
      Expect(store.Check(kImage, kRef, Pod(kSecretB)), true, CheckResult::kMustAuthenticate,
             Reason::kNoCredentialMatches);
    } else {
      Expect(store.Check(kImage, kRef, Pod(kSecretA)), true, CheckResult::kError,
             Reason::kQuarantined);
    }
    // Where there is no record it is all that is known.
    Expect(store.Check(kImage, kRef2, Pod(kSecretA)), true, CheckResult::kError,
           Reason::kQuarantined);
  });
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
