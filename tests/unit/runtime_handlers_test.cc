// Limits of lists of runtime handlers. What else is wrong with one: histories/handlers.jsonl.

#include "store/node/handlers/runtime_handlers.h"

#include <boost/test/unit_test.hpp>
#include <string>

#include "waybill/limits.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(runtime_handlers)

namespace {

std::string ErrorOf(const std::vector<RuntimeHandler>& handlers,
                    ErrorCode code = ErrorCode::kInvalidArgument) {
  const auto checked = internal::CheckRuntimeHandlers(handlers);
  if (checked) return "sound";
  BOOST_TEST((checked.error().code == code), checked.error().message);
  return checked.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(limits) {
  const std::string message =
      ErrorOf({{.name = std::string(1 << 20, 'n')}}, ErrorCode::kLimitExceeded);
  BOOST_TEST(message.ends_with("its name has 1048576 bytes, and 253 are allowed"));
  BOOST_TEST(message.size() < 400u);
  std::vector<RuntimeHandler> many;
  for (std::size_t i = 0; i < kMaxRuntimeHandlers; ++i) many.push_back({.name = std::to_string(i)});
  BOOST_TEST(ErrorOf(many) == "sound");
  many.push_back({.name = "x"});
  ErrorOf(many, ErrorCode::kLimitExceeded);

  const std::string long_field(kMaxPlatformFieldBytes + 1, 'x');
  for (std::string Platform::*field :
       {&Platform::architecture, &Platform::os, &Platform::os_version, &Platform::variant}) {
    Platform guest;
    guest.*field = long_field.substr(1);
    BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}) == "sound");
    guest.*field = long_field;
    BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}, ErrorCode::kLimitExceeded) !=
               "sound");
  }
  Platform guest;
  guest.os_features = {long_field};
  BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}, ErrorCode::kLimitExceeded) !=
             "sound");
  guest.os_features.assign(kMaxOsFeatures, "f");
  BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}) == "sound");
  guest.os_features.emplace_back("f");
  BOOST_TEST(ErrorOf({{.name = "a", .guest_platform = guest}}, ErrorCode::kLimitExceeded) !=
             "sound");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
