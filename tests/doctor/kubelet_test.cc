// The kubelet of a recorded node.

#include <boost/test/unit_test.hpp>

#include "tests/doctor/recorded_node.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(kubelet)

using testing::ExpectOnly;
using testing::RecordedNode;

BOOST_AUTO_TEST_CASE(nothing_is_wrong) {
  const RecordedNode node;
  const doctor::Findings findings = node.Examine();
  BOOST_TEST(testing::Wrong(findings) == "");
  BOOST_TEST((doctor::ProtectionBy(findings) == doctor::Protection::kYes));
  // Each check says something.
  for (const doctor::Check& check : doctor::Checks()) {
    bool spoke = false;
    for (const doctor::Finding& finding : findings) spoke = spoke || finding.check == check.name;
    BOOST_TEST(spoke, check.name << " said nothing");
  }
}

BOOST_AUTO_TEST_CASE(a_release_before_the_feature) {
  RecordedNode node;
  node.RunsKubelet("v1.32.9");
  ExpectOnly(node, "kubelet-version", "fail", "v1.32.9 verifies nothing");
}

BOOST_AUTO_TEST_CASE(a_release_that_is_not_known_yet) {
  RecordedNode node;
  node.RunsKubelet("v1.38.0");
  ExpectOnly(node, "kubelet-version", "warn", "v1.38.0 is newer");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
