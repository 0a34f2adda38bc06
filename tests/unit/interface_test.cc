// dev.waybill.varlink is kept by hand, since it is the manual: what the code says of itself must be
// the same.

#include <boost/test/unit_test.hpp>
#include <cctype>
#include <map>
#include <string>
#include <string_view>

#include "store/door.h"
#include "waybill/store.h"

namespace {

// By name, "type Mode" or "method Explain": its text without comments and spaces.
std::map<std::string, std::string> DeclarationsOf(std::string_view text) {
  std::map<std::string, std::string> declarations;
  std::string* current = nullptr;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view code = line.substr(0, line.find('#'));
    const bool begins = code.starts_with("type ") || code.starts_with("method ");
    if (begins) current = &declarations[std::string(code.substr(0, code.find('(')))];
    if (code.starts_with("error ") || code.starts_with("interface ")) current = nullptr;
    if (current == nullptr) continue;
    for (const char c : begins ? code.substr(code.find('(')) : code) {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) *current += c;
    }
  }
  return declarations;
}

std::string Stripped(std::string name) {
  while (name.ends_with(' ')) name.pop_back();
  return name;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interface)

BOOST_AUTO_TEST_CASE(TheTextSaysWhatTheDescriptionsSay) {
  const std::string_view text = waybill::InterfaceText();
  BOOST_TEST(text.data()[text.size()] == '\0');
  std::map<std::string, std::string> written;
  for (const auto& [name, body] : DeclarationsOf(text)) written[Stripped(name)] = body;
  std::map<std::string, std::string> described;
  for (const auto& [name, body] : DeclarationsOf(waybill::door::DescribedInterface())) {
    described[Stripped(name)] = body;
  }
  BOOST_TEST(described.size() > 80U);
  for (const auto& [name, body] : described) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_REQUIRE(written.contains(name));
      BOOST_TEST(written[name] == body);
    }
  }
  for (const auto& [name, body] : written) {
    BOOST_TEST_CONTEXT(name) { BOOST_TEST(described.contains(name)); }
  }
}

// An error that a client can't match would be an unknown one to it.
BOOST_AUTO_TEST_CASE(TheTextHasEveryError) {
  const std::string_view text = waybill::InterfaceText();
  using waybill::ErrorCode;
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kLimitExceeded, ErrorCode::kNotFound,
        ErrorCode::kDamaged, ErrorCode::kOwned, ErrorCode::kNewerSchema, ErrorCode::kOlderSchema,
        ErrorCode::kUnsafePath, ErrorCode::kStoreFull, ErrorCode::kDiskFull, ErrorCode::kIo,
        ErrorCode::kConflict, ErrorCode::kNotOwner, ErrorCode::kInterrupted,
        ErrorCode::kOutcomeUnknown, ErrorCode::kUnavailable, ErrorCode::kClosed,
        ErrorCode::kOutOfMemory, ErrorCode::kInternal}) {
    std::string name(waybill::ErrorCodeName(code));
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    BOOST_TEST(text.find("error " + name + " (") != std::string_view::npos, name);
  }
}

BOOST_AUTO_TEST_SUITE_END()
