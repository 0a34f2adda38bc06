// A call that must fail: with which code, and what it must say.

#ifndef WAYBILL_TESTS_SUPPORT_EXPECT_ERROR_H_
#define WAYBILL_TESTS_SUPPORT_EXPECT_ERROR_H_

#include <boost/test/unit_test.hpp>
#include <source_location>
#include <string>
#include <string_view>

#include "waybill/result.h"

namespace waybill::testing {

// Once it was compared, it may be ignored.
struct ExpectedError : Error {};

// `about`: part of its words. Ends the test case where the call succeeded.
template <typename T>
ExpectedError ExpectError(const Result<T>& result, ErrorCode code, std::string_view about = "",
                          const std::source_location& at = std::source_location::current()) {
  BOOST_TEST_CONTEXT(at.file_name() << ":" << at.line()) {
    BOOST_TEST_REQUIRE(!result.has_value());
    const Error& error = result.error();
    BOOST_TEST((error.code == code), ErrorCodeName(code) << " is not " << error.ToString());
    BOOST_TEST(error.ToString().find(about) != std::string::npos, error.ToString());
  }
  return {result.error()};
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_EXPECT_ERROR_H_
