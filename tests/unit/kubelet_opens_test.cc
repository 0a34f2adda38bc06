// Each way in which the kubelet opens a private image. Under its rules waybill opens it too, unless
// that takes a loss, which waybill notices. Under the closed rules the image stays closed.

#include "tests/support/kubelet_opens.h"

#include <boost/test/unit_test.hpp>

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kubelet_opens)

BOOST_AUTO_TEST_CASE(no_way_opens_under_the_closed_rules) {
  BOOST_TEST(!WaysTheKubeletOpens().empty());
  for (const Way& way : WaysTheKubeletOpens()) {
    BOOST_TEST_CONTEXT(way.name) {
      const Decision kubelet = way.play(Rules::kKubelet);
      BOOST_TEST_INFO("kubelet rules: " << ReasonText(kubelet.reason));
      BOOST_TEST(kubelet.pull != way.opens_under_kubelet_rules);
      const Decision closed = way.play(Rules::kClosed);
      BOOST_TEST_INFO("closed rules: " << ReasonText(closed.reason));
      BOOST_TEST(closed.pull);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
