// dev.waybill.varlink is kept by hand, since it is the manual: what the code says of itself must be
// the same.

#include <boost/test/unit_test.hpp>
#include <cctype>
#include <map>
#include <string>
#include <string_view>

#include "store/door/calls.h"
#include "waybill/store.h"

namespace waybill {
namespace {

using internal::Type;

// By name, "type Mode" or "method Explain": its text without comments and spaces.
using Declarations = std::map<std::string, std::string>;

Declarations DeclarationsOf(std::string_view text) {
  Declarations declarations;
  std::string* current = nullptr;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::string_view code = line.substr(0, line.find('#'));
    const bool begins = code.starts_with("type ") || code.starts_with("method ");
    if (begins) {
      const std::string_view name = code.substr(0, code.find('('));
      current = &declarations[std::string(name.substr(0, name.find_last_not_of(' ') + 1))];
    }
    if (code.starts_with("error ") || code.starts_with("interface ")) current = nullptr;
    if (current == nullptr) continue;
    for (const char c : begins ? code.substr(code.find('(')) : code) {
      if (std::isspace(static_cast<unsigned char>(c)) == 0) *current += c;
    }
  }
  return declarations;
}

// What the descriptions say. `all` gets each type that this one is made of.
std::string BodyOf(const Type& type, Declarations& all);

std::string Spelled(const Type& type, Declarations& all) {
  switch (type.kind) {
    case Type::Kind::kBool:
      return "bool";
    case Type::Kind::kWhole:
      return "int";
    case Type::Kind::kReal:
      return "float";
    case Type::Kind::kString:
    case Type::Kind::kText:
      return "string";
    case Type::Kind::kJson:
      return "object";
    case Type::Kind::kOptional:
      return "?" + Spelled(*type.inner, all);
    case Type::Kind::kList:
      return "[]" + Spelled(*type.inner, all);
    case Type::Kind::kMap:
      return "[string]" + Spelled(*type.inner, all);
    case Type::Kind::kEnum:
    case Type::Kind::kStruct:
      break;
  }
  const std::string body = BodyOf(type, all);
  BOOST_TEST(all.try_emplace("type " + std::string(type.name), body).first->second == body,
             "two types are called " << type.name);
  return std::string(type.name);
}

std::string BodyOf(const Type& type, Declarations& all) {
  std::string body;
  for (const auto& one : type.names) body.append(body.empty() ? "" : ",").append(one.name);
  for (const Type::Member& member : type.members) {
    const std::string inner = Spelled(*member.type, all);
    body.append(body.empty() ? "" : ",").append(member.name).append(":");
    body.append(member.required || inner[0] == '?' ? "" : "?").append(inner);
  }
  return "(" + body + ")";
}

template <typename C>
void AddCall(Declarations& all) {
  all["method " + std::string(internal::TypeName<C>())] =
      BodyOf(internal::TypeOf<C>(), all) + "->" +
      BodyOf(internal::TypeOf<typename C::Answer>(), all);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(interface)

BOOST_AUTO_TEST_CASE(TheTextSaysWhatTheDescriptionsSay) {
  const std::string_view text = InterfaceText();
  BOOST_TEST(text.data()[text.size()] == '\0');
  const Declarations written = DeclarationsOf(text);
  Declarations described;
#define WAYBILL_TELL(C) AddCall<C>(described);
  WAYBILL_READING_CALLS(WAYBILL_TELL)
  WAYBILL_CHANGING_CALLS(WAYBILL_TELL)
  WAYBILL_UNSERVED_CALLS(WAYBILL_TELL)
  WAYBILL_LIBRARY_CALLS(WAYBILL_TELL)
  WAYBILL_STREAM_CALLS(WAYBILL_TELL)
#undef WAYBILL_TELL
  BOOST_TEST(described.size() > 80U);
  for (const auto& [name, body] : described) {
    BOOST_TEST_CONTEXT(name) {
      BOOST_REQUIRE(written.contains(name));
      BOOST_TEST(written.at(name) == body);
    }
  }
  for (const auto& [name, body] : written) {
    BOOST_TEST_CONTEXT(name) { BOOST_TEST(described.contains(name)); }
  }
}

// An error that a client can't match would be an unknown one to it.
BOOST_AUTO_TEST_CASE(TheTextHasEveryError) {
  const std::string_view text = InterfaceText();
  for (const ErrorCode code :
       {ErrorCode::kInvalidArgument, ErrorCode::kLimitExceeded, ErrorCode::kNotFound,
        ErrorCode::kDamaged, ErrorCode::kOwned, ErrorCode::kNewerSchema, ErrorCode::kOlderSchema,
        ErrorCode::kUnsafePath, ErrorCode::kStoreFull, ErrorCode::kDiskFull, ErrorCode::kIo,
        ErrorCode::kConflict, ErrorCode::kNotOwner, ErrorCode::kInterrupted,
        ErrorCode::kOutcomeUnknown, ErrorCode::kUnavailable, ErrorCode::kClosed,
        ErrorCode::kOutOfMemory, ErrorCode::kInternal}) {
    std::string name(ErrorCodeName(code));
    name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
    BOOST_TEST(text.find("error " + name + " (") != std::string_view::npos, name);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
