#include <boost/test/unit_test.hpp>

#include "migrations/base64.h"
#include "waybill/kubelet_format.h"

namespace waybill {
namespace {

// "registry user password email" a line.
std::string Read(std::string_view json) {
  const auto list = DecodeAuthDocument(json);
  if (!list) return list.error().message;
  std::string text;
  for (const RegistryAuth& entry : *list) {
    text += entry.registry + '|' + entry.auth.username + '|' + entry.auth.password + '|' +
            entry.auth.email + '\n';
  }
  return text;
}

std::string ReadAuth(const std::string& auth) {
  return Read(R"({"auths":{"r":{"auth":")" + auth + "\"}}}");
}

std::string Base64(std::string_view encoded, internal::Base64Padding padding) {
  internal::WipedString out;
  return internal::DecodeBase64(encoded, padding, out) ? "=" + out.text : "refused";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(auth_document)

BOOST_AUTO_TEST_CASE(config_json_in_its_own_order) {
  BOOST_TEST(Read(R"({"auths":{
      "z.example":{"username":"u","password":"p","email":"e","identitytoken":"t"},
      "https://a.example/v1/":{"auth":"dXNlcjpwYXNz"}, "empty":{}, "null":null},
      "credsStore":"desktop","HttpHeaders":{"User-Agent":"x"}})") ==
             "z.example|u|p|e\nhttps://a.example/v1/|user|pass|\nempty|||\nnull|||\n");
  BOOST_TEST(Read(R"({"auths":null})") == "");
  BOOST_TEST(Read(R"({"auths":{}})") == "");
}

BOOST_AUTO_TEST_CASE(legacy_dockercfg) {
  BOOST_TEST(Read(R"({"r.example":{"auth":"dXNlcjpwYXNz","email":"e"}})") ==
             "r.example|user|pass|e\n");
  BOOST_TEST(Read("{}") == "");
  BOOST_TEST(Read(R"({"credsStore":"x"})") == "credsStore: expected an object, got a string");
}

BOOST_AUTO_TEST_CASE(auth_wins) {
  BOOST_TEST(Read(R"({"auths":{"r":{"username":"x","password":"y","auth":"dXNlcjpwYXNz"}}})") ==
             "r|user|pass|\n");
  BOOST_TEST(Read(R"({"auths":{"r":{"username":"x","password":"y","auth":""}}})") == "r|x|y|\n");
  BOOST_TEST(Read(R"({"auths":{"r":{"username":"x","password":"y","auth":null}}})") == "r|x|y|\n");
}

BOOST_AUTO_TEST_CASE(auth_is_split_at_the_first_colon) {
  BOOST_TEST(ReadAuth("dTpwOnE6") == "r|u|p:q:|\n");
  BOOST_TEST(ReadAuth("Og==") == "r|||\n");
  BOOST_TEST(ReadAuth("Og") == "r|||\n");             // padding may be missing
  BOOST_TEST(ReadAuth("O\\ng=\\r\\n=") == "r|||\n");  // line ends are skipped
  const std::string refused = R"(auths.r.auth: not the base64 of "user:password")";
  for (const std::string auth :
       {"dXNlcg==", "Og=", "O", " Og==", "Og== ", "Og==Og==", "O*==", "Zm9vOg-_", "====", "="}) {
    BOOST_TEST_CONTEXT(auth) { BOOST_TEST(ReadAuth(auth) == refused); }
  }
}

BOOST_AUTO_TEST_CASE(secret_of_either_type) {
  // {"auths":{"r":{"username":"u","password":"p"}}}
  const std::string config = "eyJhdXRocyI6eyJyIjp7InVzZXJuYW1lIjoidSIsInBhc3N3b3JkIjoicCJ9fX0=";
  BOOST_TEST(Read(R"({"apiVersion":"v1","kind":"Secret","type":"kubernetes.io/dockerconfigjson",)"
                  R"("metadata":{"name":"s"},"data":{".dockerconfigjson":")" +
                  config + "\"}}") == "r|u|p|\n");
  // {"r":{"auth":"dXNlcjpwYXNz"}}
  const std::string legacy = "eyJyIjp7ImF1dGgiOiJkWE5sY2pwd1lYTnoifX0=";
  BOOST_TEST(Read(R"({"kind":"Secret","type":"kubernetes.io/dockercfg","data":{".dockercfg":")" +
                  legacy + "\"}}") == "r|user|pass|\n");
  BOOST_TEST(Read(R"({"type":"kubernetes.io/dockercfg","data":{".dockercfg":")" + legacy +
                  "\"}}") == "r|user|pass|\n");
}

BOOST_AUTO_TEST_CASE(string_data_goes_first) {
  BOOST_TEST(Read(R"({"kind":"Secret","type":"kubernetes.io/dockercfg",)"
                  R"("stringData":{".dockercfg":"{\"r\":{\"username\":\"new\"}}"},)"
                  R"("data":{".dockercfg":"e30="}})") == "r|new||\n");
}

BOOST_AUTO_TEST_CASE(secret_that_holds_no_pull_credentials) {
  BOOST_TEST(Read(R"({"kind":"Secret","type":"Opaque","data":{}})") ==
             R"(type: expected "kubernetes.io/dockerconfigjson" or "kubernetes.io/dockercfg", )"
             R"(got "Opaque")");
  BOOST_TEST(Read(R"({"kind":"Secret"})") == R"(document: field "type" is missing)");
  BOOST_TEST(Read(R"({"kind":"List","items":[]})") == R"(kind: expected "Secret")");
  BOOST_TEST(Read(R"({"kind":"Secret","type":"kubernetes.io/dockercfg","data":{}})") ==
             R"(document: neither data nor stringData has ".dockercfg")");
  BOOST_TEST(
      Read(R"({"kind":"Secret","type":"kubernetes.io/dockercfg","data":{".dockercfg":"e30"}})") ==
      R"(data[".dockercfg"]: not base64)");
  BOOST_TEST(
      Read(R"({"kind":"Secret","type":"kubernetes.io/dockercfg","data":{".dockercfg":"ezE="}})") ==
      R"(data[".dockercfg"]: not JSON at byte 1)");
}

BOOST_AUTO_TEST_CASE(errors_name_the_field_and_no_value) {
  BOOST_TEST(Read(R"({"auths":{"r.io":{"password":7}}})") ==
             R"(auths["r.io"].password: expected a string, got a number)");
  BOOST_TEST(Read(R"({"auths":{"r":"hunter2"}})") == "auths.r: expected an object, got a string");
  BOOST_TEST(Read(R"({"auths":{"r":{"Password":"hunter2"}}})") ==
             R"(auths.r.Password: expected this field to be spelled "password")");
  BOOST_TEST(Read(R"({"Auths":{}})") == R"(Auths: expected this field to be spelled "auths")");
  BOOST_TEST(Read(R"({"auths":{"r":{},"r":{}}})") == R"(auths: key "r" is there twice)");
  BOOST_TEST(Read(R"({"auths":{"r":{"password":"hunter2)") == "JSON breaks off at byte 34");
}

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
