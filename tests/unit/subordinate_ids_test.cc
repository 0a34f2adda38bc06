#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "waybill/user_namespace.h"

namespace waybill {
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

BOOST_AUTO_TEST_SUITE(subordinate_ids)

BOOST_AUTO_TEST_CASE(the_line_is_the_pool) {
  for (const std::string& output :
       {kLine, std::string("0: kubelet 65536 2147483648"), "\n\n" + kLine + "\n\n",
        std::string("  0:\tkubelet \v 65536\r\f2147483648 \n"),
        std::string("0: kubelet 0065536 02147483648")}) {
    const auto pool = PoolOf(output, output);
    BOOST_TEST_REQUIRE(pool.has_value(), output);
    BOOST_TEST((*pool == UserNamespacePool{65536, 2147483648, 65536, 110}));
  }
}

// Where v1.36.3 does not start without the tool, the KEP takes the default.
BOOST_AUTO_TEST_CASE(without_the_user_or_the_tool_it_is_the_default) {
  for (const SubordinateIds& found :
       {SubordinateIds{false, false, "", ""}, SubordinateIds{true, false, kLine, kLine},
        SubordinateIds{false, true, "a", "b"}}) {
    const auto pool = PoolOfSubordinateIds(found, 131072, 50);
    BOOST_TEST_REQUIRE(pool.has_value());
    BOOST_TEST((*pool == UserNamespacePool::Default(131072, 50)));
  }
  // It, too, must be one.
  BOOST_TEST(!PoolOfSubordinateIds({}, 0));
  BOOST_TEST(!PoolOfSubordinateIds({}, 65537));
  BOOST_TEST(!PoolOfSubordinateIds({}, 65536, 65535));
}

BOOST_AUTO_TEST_CASE(other_output_is_refused_in_the_kubelets_words) {
  BOOST_TEST(ErrorOf(kLine, "0: kubelet 65536 2147418112\n") ==
             "mismatched subuids and subgids for user \"kubelet\"");
  BOOST_TEST(ErrorOf(kLine, "") == "mismatched subuids and subgids for user \"kubelet\"");
  BOOST_TEST(ErrorOf("0: kubelet 65536 65536\n1: kubelet 131072 65536\n") ==
             "error parsing line \"0: kubelet 65536 65536\\n1: kubelet 131072 65536\\n\": it must "
             "contain only one line");
  BOOST_TEST(ErrorOf("") == "invalid line \"\"");
  BOOST_TEST(ErrorOf("\n") == "invalid line \"\\n\"");
  BOOST_TEST(ErrorOf("0: kubelet 65536") == "invalid line \"0: kubelet 65536\"");
  BOOST_TEST(ErrorOf("0: kubelet 65536 65536 65536") ==
             "invalid line \"0: kubelet 65536 65536 65536\"");
  BOOST_TEST(ErrorOf("0: someone 65536 7208960") == "invalid line \"0: someone 65536 7208960\"");
  BOOST_TEST(ErrorOf("1: kubelet 65536 7208960") == "invalid line \"1: kubelet 65536 7208960\"");
  for (const std::string bad :
       {"x", "-65536", "+65536", "65_536", "0x10000", "65536.0", "65536,"}) {
    const std::string line = "0: kubelet " + bad + " 7208960";
    BOOST_TEST(ErrorOf(line) ==
               "error parsing line \"" + line + "\": \"" + bad + "\": invalid syntax");
  }
  BOOST_TEST(ErrorOf("0: kubelet 65536 4294967296") ==
             "error parsing line \"0: kubelet 65536 4294967296\": \"4294967296\": value out of "
             "range");
  BOOST_TEST(ErrorOf("0: kubelet 99999999999999999999999 1").ends_with("value out of range"));
}

BOOST_AUTO_TEST_CASE(a_line_that_is_no_pool_is_refused) {
  BOOST_TEST(ErrorOf("0: kubelet 100000 7208960") ==
             "kubelet user assigned ID 100000 is not a multiple of 65536");
  BOOST_TEST(ErrorOf("0: kubelet 0 7208960") ==
             "kubelet user assigned ID 0 must be greater or equal to 65536");
  BOOST_TEST(ErrorOf("0: kubelet 65536 7208959") ==
             "kubelet user assigned IDs length 7208959 is not a multiple of 65536");
  BOOST_TEST(ErrorOf("0: kubelet 65536 7143424") ==
             "kubelet user assigned IDs are not enough to support 110 pods");
  BOOST_TEST(ErrorOf("0: kubelet 65536 4294901760") == "accepted");
  BOOST_TEST(ErrorOf("0: kubelet 131072 4294901760").ends_with("reach past 4294967295"));
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
