// Each way in which the kubelet opens a private image. Under its rules waybill opens it too, unless
// that takes a loss, which waybill notices. Under the closed rules the image stays closed.

#include "tests/support/kubelet_opens.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kubelet_opens)

namespace {

void Play(std::string_view name) {
  for (const Way& way : WaysTheKubeletOpens()) {
    if (way.name != name) continue;
    const Decision kubelet = way.play(Rules::kKubelet);
    BOOST_TEST_INFO("kubelet rules: " << ReasonText(kubelet.reason));
    BOOST_TEST(kubelet.pull != way.opens_under_kubelet_rules);
    const Decision closed = way.play(Rules::kClosed);
    BOOST_TEST_INFO("closed rules: " << ReasonText(closed.reason));
    BOOST_TEST(closed.pull);
    return;
  }
  BOOST_FAIL("no such way: " << name);
}

}  // namespace

BOOST_AUTO_TEST_CASE(garbage_collection_forgets) { Play("garbage_collection_forgets"); }

BOOST_AUTO_TEST_CASE(garbage_collection_cuts_to_seconds) {
  Play("garbage_collection_cuts_to_seconds");
}

BOOST_AUTO_TEST_CASE(garbage_collection_misses_a_confirmation) {
  Play("garbage_collection_misses_a_confirmation");
}

BOOST_AUTO_TEST_CASE(power_cut_after_a_pull) { Play("power_cut_after_a_pull"); }

BOOST_AUTO_TEST_CASE(empty_record_file) { Play("empty_record_file"); }

BOOST_AUTO_TEST_CASE(wiped_directory) { Play("wiped_directory"); }

BOOST_AUTO_TEST_CASE(half_restored_directory) { Play("half_restored_directory"); }

BOOST_AUTO_TEST_CASE(another_ref_inside) { Play("another_ref_inside"); }

BOOST_AUTO_TEST_CASE(replay_matches_an_older_image) { Play("replay_matches_an_older_image"); }

BOOST_AUTO_TEST_CASE(failed_pull_drops_an_inherited_intent) {
  Play("failed_pull_drops_an_inherited_intent");
}

BOOST_AUTO_TEST_CASE(asked_by_digest_while_pulled_by_tag) {
  Play("asked_by_digest_while_pulled_by_tag");
}

BOOST_AUTO_TEST_CASE(short_name_never_matches_at_start) {
  Play("short_name_never_matches_at_start");
}

BOOST_AUTO_TEST_CASE(every_way_has_a_test) {
  namespace boost_test = boost::unit_test;
  const boost_test::test_unit_id suite = boost_test::framework::current_test_case().p_parent_id;
  for (const Way& way : WaysTheKubeletOpens()) {
    BOOST_TEST_INFO(way.name);
    BOOST_TEST(boost_test::framework::get<boost_test::test_suite>(suite).get(
                   std::string(way.name)) != boost_test::INV_TEST_UNIT_ID);
  }
}

BOOST_AUTO_TEST_CASE(short_name_has_an_alias) { Play("short_name_has_an_alias"); }

BOOST_AUTO_TEST_CASE(asked_by_id_after_a_crash) { Play("asked_by_id_after_a_crash"); }

BOOST_AUTO_TEST_CASE(tag_and_digest_cut_short) { Play("tag_and_digest_cut_short"); }

BOOST_AUTO_TEST_CASE(a_success_forgets_a_cancelled_pull) {
  Play("a_success_forgets_a_cancelled_pull");
}

BOOST_AUTO_TEST_CASE(the_runtime_changes_its_refs) { Play("the_runtime_changes_its_refs"); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
