#include "waybill/credential_hash.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "store/base/hex.h"
#include "store/base/sha256.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(credential_hash)

namespace {

std::string Unhex(const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string HashOf(std::string_view json) {
  return internal::HexEncode(internal::Sha256(json).value());
}

}  // namespace

BOOST_AUTO_TEST_CASE(equals_what_go_computes) {
  std::ifstream in(WAYBILL_FIXTURES "/credential_hashes.jsonl");
  std::size_t seen = 0;
  for (std::string line; std::getline(in, line); ++seen) {
    const auto vector = nlohmann::json::parse(line);
    const AuthConfig auth{Unhex(vector["username"]), Unhex(vector["password"]),
                          Unhex(vector["email"])};
    BOOST_TEST(HashCredentials(auth).value() == vector["hash"].get<std::string>(), line);
  }
  BOOST_TEST(seen == 560u);
}

BOOST_AUTO_TEST_CASE(hashes_the_json_that_the_header_describes) {
  BOOST_TEST(HashCredentials({}).value() == HashOf("{}"));
  BOOST_TEST(HashCredentials({"u", "p", "e"}).value() ==
             HashOf(R"({"username":"u","password":"p","email":"e"})"));
  BOOST_TEST(HashCredentials({"", "", "e"}).value() == HashOf(R"({"email":"e"})"));
  BOOST_TEST(HashCredentials({"", std::string("\0\x7f<>&\xff\n\"\\", 9), ""}).value() ==
             HashOf("{\"password\":\"\\u0000\x7f\\u003c\\u003e\\u0026\\ufffd\\n\\\"\\\\\"}"));
  BOOST_TEST(HashCredentials({"\u2028\u2029é", "", ""}).value() ==
             HashOf("{\"username\":\"\\u2028\\u2029é\"}"));
}

BOOST_AUTO_TEST_CASE(differs_where_a_field_moves) {
  BOOST_TEST(HashCredentials({"a", "", ""}).value() != HashCredentials({"", "a", ""}).value());
  BOOST_TEST(HashCredentials({"a\",\"password\":\"b", "", ""}).value() !=
             HashCredentials({"a", "b", ""}).value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
