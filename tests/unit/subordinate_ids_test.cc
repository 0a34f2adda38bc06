#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "waybill/user_namespace.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(subordinate_ids)

namespace {

const std::string kLine = "0: kubelet 65536 2147483648\n";

Result<UserNamespacePool> PoolOf(const std::string& uids, const std::string& gids) {
  return PoolOfSubordinateIds(
      {.user_exists = true, .tool_exists = true, .uids = uids, .gids = gids});
}

std::string ErrorOf(const std::string& uids, const std::string& gids) {
  const auto pool = PoolOf(uids, gids);
  if (pool) return "accepted";
  BOOST_TEST((pool.error().code == ErrorCode::kInvalidArgument));
  BOOST_TEST(!pool.error().hint.empty());
  return pool.error().message;
}

std::string ErrorOf(const std::string& both) { return ErrorOf(both, both); }

}  // namespace

// Without the tool the KEP uses the default; kubelet v1.36.3 does not start.
BOOST_AUTO_TEST_CASE(without_the_user_or_the_tool_it_is_the_default) {
  for (const SubordinateIds& found :
       {SubordinateIds{false, false, "", ""}, SubordinateIds{true, false, kLine, kLine},
        SubordinateIds{false, true, "a", "b"}}) {
    const auto pool = PoolOfSubordinateIds(found, 131072, 50);
    BOOST_TEST_REQUIRE(pool.has_value());
    BOOST_TEST((*pool == UserNamespacePool::Default(131072, 50)));
  }
  // The default, too, must be a valid pool.
  BOOST_TEST(!PoolOfSubordinateIds({}, 0));
  BOOST_TEST(!PoolOfSubordinateIds({}, 65537));
  BOOST_TEST(!PoolOfSubordinateIds({}, 65536, 65535));
}

BOOST_AUTO_TEST_CASE(the_two_outputs_must_agree) {
  for (const char* const gids : {"0: kubelet 65536 2147418112\n", ""}) {
    BOOST_TEST(ErrorOf(kLine, gids) == "mismatched subuids and subgids for user \"kubelet\"");
  }
}

BOOST_AUTO_TEST_CASE(hostile_output_is_quoted_and_cut) {
  const std::string escape = "0: kubelet \x1b[2J\x7f \xc2\x9b \xff";
  BOOST_TEST(ErrorOf(escape) == "invalid line \"0: kubelet \\u001b[2J\\u007f \\u009b \\ufffd\"");
  BOOST_TEST(ErrorOf(std::string("0: kubelet\0 1 1", 15)).find('\0') == std::string::npos);
  for (const std::string& flood :
       {std::string(1 << 20, 'x'), std::string(1 << 20, ' '), std::string(1 << 20, '\n') + "x",
        std::string(1 << 20, '\0'), "0: kubelet 1 " + std::string(1 << 20, '9'),
        "0: kubelet " + std::string(1 << 20, '0') + "x 1"}) {
    const std::string error = ErrorOf(flood);
    BOOST_TEST(error.size() < 4000);
    BOOST_TEST(error != "accepted");
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
