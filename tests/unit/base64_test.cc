#include "store/base/base64.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <string_view>

namespace waybill {

BOOST_AUTO_TEST_SUITE(base64)

namespace {

std::string Base64(std::string_view encoded, internal::Base64Padding padding) {
  internal::WipedString out;
  return internal::DecodeBase64(encoded, padding, out) ? "=" + out.text : "refused";
}

}  // namespace

BOOST_AUTO_TEST_CASE(base64_as_go_reads_it) {
  using internal::Base64Padding;
  BOOST_TEST(Base64("", Base64Padding::kRequired) == "=");
  BOOST_TEST(Base64("YWI=", Base64Padding::kRequired) == "=ab");
  BOOST_TEST(Base64("YWJ=", Base64Padding::kRequired) == "=ab");  // spare bits are not looked at
  BOOST_TEST(Base64("YW\nI=\n", Base64Padding::kRequired) == "=ab");
  BOOST_TEST(Base64("YWI", Base64Padding::kRequired) == "refused");
  BOOST_TEST(Base64("YWI", Base64Padding::kOptional) == "=ab");
  BOOST_TEST(Base64("YQ=", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("YWJj=", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("Y", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("Y=I=", Base64Padding::kOptional) == "refused");
  BOOST_TEST(Base64("YWI\t", Base64Padding::kOptional) == "refused");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
