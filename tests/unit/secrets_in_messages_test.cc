#include <boost/test/unit_test.hpp>
#include <string>

#include "waybill/kubelet_format.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(secrets_in_messages)

// A registry may be a URL with a password in it, and a secret may stand in the wrong field.
BOOST_AUTO_TEST_CASE(errors_never_quote_what_a_document_holds) {
  const std::string documents[] = {
      R"({"auths":{"S":{"password":7}}})",
      R"({"auths":{"https://u:S@r.io":[]}})",
      R"({"auths":{"S":{},"S":{}}})",
      R"({"auths":{"r":{"S":1,"S":2}}})",
      R"({"S":"x"})",
      R"({"auths":"S"})",
      R"({"kind":"S"})",
      R"({"kind":"Secret","type":"S"})",
      R"({"kind":"Secret","type":"kubernetes.io/dockercfg","data":{".dockercfg":"S"}})",
      R"({"kind":"Secret","type":"kubernetes.io/dockercfg","stringData":{".dockercfg":"{\"S\":1}"}})",
      R"({"auths":{"S":{"auth":"S"}}})",
      R"({"auths":{"r":{"Password":"S"}}} S)"};
  for (const std::string& document : documents) {
    BOOST_TEST_CONTEXT(document) {
      std::string text = document;
      for (std::size_t at = 0; (at = text.find("S\"", at)) != std::string::npos; at += 7) {
        text.replace(at, 1, "hunter2");
      }
      const auto read = DecodeAuthDocument(text);
      BOOST_REQUIRE(!read);
      const std::string message = read.error().ToString();
      BOOST_TEST(message.find("hunter2") == std::string::npos, message);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
