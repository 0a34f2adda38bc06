// The histories of the demonstration's second and third table, under both sets of rules.

#include "tests/support/evidence_ways.h"

#include <boost/test/unit_test.hpp>
#include <set>
#include <string>

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(evidence_ways)

namespace {

void Play(std::span<const EvidenceWay> ways) {
  std::set<std::string_view> names;
  for (const EvidenceWay& way : ways) {
    BOOST_TEST_CONTEXT(way.name) {
      BOOST_TEST(names.insert(way.name).second);
      const Decision kubelet = way.play(Rules::kKubelet);
      BOOST_TEST_INFO("kubelet rules: " << ReasonText(kubelet.reason));
      BOOST_TEST(kubelet.pull != way.open_under_kubelet_rules);
      const Decision closed = way.play(Rules::kClosed);
      BOOST_TEST_INFO("closed rules: " << ReasonText(closed.reason));
      BOOST_TEST(closed.pull != way.open_under_closed_rules);
    }
  }
  BOOST_TEST(!names.empty());
}

}  // namespace

BOOST_AUTO_TEST_CASE(no_way_opens_a_private_image) { Play(WaysToAPrivateImage()); }

BOOST_AUTO_TEST_CASE(no_tenant_shuts_a_preloaded_image) { Play(WaysToAPreloadedImage()); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
