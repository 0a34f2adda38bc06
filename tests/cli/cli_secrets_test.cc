// Pull Secrets that are handed over in files: arguments can be seen by every user of the node. And
// no error quotes one.

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "tests/support/cli_store.h"

namespace waybill::testing {

namespace {

using Strings = std::vector<std::string>;

const std::string kHash = "5ecret5ecret";
const std::string kLine =
    R"({"namespace":"ns","name":"pull","uid":"uid-1","credentialHash":"5ecret5ecret"})";

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// An image that is open to that Secret.
struct Pulled {
  Pulled() {
    store.Start();
    store.Run("pulled", {"--image", "nginx", "--image-ref", "ref", "--secrets", "-"}, kLine);
  }
  CommandResult Check(Strings more, const std::string& input = {}) const {
    Strings arguments = {"--image", "nginx", "--image-ref", "ref"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return store.Run("check", arguments, input);
  }
  std::string Place(const std::string& content) const {
    testing::WriteFile(store / "secret", content);
    return (store / "secret").string();
  }

  CliStore store;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_secrets)

BOOST_FIXTURE_TEST_CASE(secrets_come_from_files_and_standard_input, Pulled) {
  BOOST_TEST(Contains(store.Run("list").out, "1 secret"));
  // By the hash alone: the coordinates are another Secret's.
  const std::string other =
      R"({"namespace":"b","name":"c","uid":"d","credentialHash":"5ecret5ecret"})";
  BOOST_TEST(Check({"--secret", "b/c/d/" + kHash}).exit_code == 0);
  BOOST_TEST(Check({"--secret", "@" + Place("b/c/d/" + kHash)}).exit_code == 0);
  BOOST_TEST(Check({"--secret", "@" + Place("b/c/d/" + kHash + "\r\n")}).exit_code == 0);
  BOOST_TEST(Check({"--secrets", "-"}, other).exit_code == 0);
  const std::string unknown = R"({"uid":"x","name":"y","namespace":"z"})";
  BOOST_TEST(Check({"--secrets", Place(unknown + "\n\n" + other + "\n")}).exit_code == 0);
  BOOST_TEST(Check({"--secrets", Place(unknown)}).exit_code == 1);
  BOOST_TEST(Check({"--secrets", "-"}, "").exit_code == 1);
  // Both flags together.
  BOOST_TEST(Check({"--secret", "z/y/x", "--secrets", "-"}, other).exit_code == 0);
}

// Without a credential the image would be open to all pods of the node.
BOOST_FIXTURE_TEST_CASE(a_pull_with_an_empty_list_of_secrets_is_not_recorded, Pulled) {
  for (const std::string content : {"", "\n \n"}) {
    const CommandResult result =
        store.Run("pulled", {"--image", "b", "--image-ref", "ref-b", "--secrets", "-"}, content);
    BOOST_TEST(result.exit_code == 2, result.out);
  }
  BOOST_TEST(store.Json("stats")["records"] == 1);
}

BOOST_FIXTURE_TEST_CASE(no_error_quotes_a_secret, Pulled) {
  const auto refused = [&](const CommandResult& result) {
    BOOST_TEST(result.exit_code == 2, result.out);
    BOOST_TEST(!Contains(result.err, "5ecret"), result.err);
    BOOST_TEST(!Contains(result.out, "5ecret"), result.out);
  };
  const Strings texts = {kHash,           "a/" + kHash,    "a/b/c/d/" + kHash,
                         "/b/c/" + kHash, "a//c/" + kHash, "a/b/c/" + kHash + "\na/b/c/" + kHash};
  for (const std::string& text : texts) {
    BOOST_TEST_CONTEXT(text) {
      if (!Contains(text, "\n")) refused(Check({"--secret", text}));
      refused(Check({"--secret", text, "--json"}));
      refused(Check({"--secret", "@" + Place(text)}));
      refused(Check({"--service-account", text}));
    }
  }
  refused(Check({"--secret", "@" + (store / "absent").string()}));
  refused(Check({"--secret", "@"}));
  refused(Check({"--secret", "@-"}, "a/b/c/" + kHash));
  for (const std::string line :
       {R"(5ecret)", R"({"5ecret":1})", R"({"namespace":"5ecret"})",
        R"({"namespace":"a","name":"b","uid":"c","credentialHash":7,"x":"5ecret"})",
        R"({"namespace":"a","name":"b","uid":"c","credentialHash":"5ecret","uid":"d"})",
        R"({"namespace":"a","name":"b","uid":"","credentialHash":"5ecret"})",
        R"({"namespace":"a","name":"b","uid":"c","credentialHash":"5ecret"} 5ecret)",
        R"({"namespace":"a","name":"b","uid":"c","credentialHash":"5ecret)",
        R"({"namespace":{"5ecret":1},"name":"b","uid":"c"})", R"(["5ecret"])", R"("5ecret")",
        "{\"namespace\":\"a\",\"name\":\"b\",\"uid\":\"c\",\"credentialHash\":\"5ecret\xff\"}"}) {
    BOOST_TEST_CONTEXT(line) {
      refused(Check({"--secrets", "-"}, line));
      const CommandResult second = Check({"--secrets", "-"}, kLine + "\n" + line);
      refused(second);
      BOOST_TEST(Contains(second.err, "line 2 of standard input"), second.err);
    }
  }
  // A flag that was mistyped.
  refused(Check({"--secrt", "a/b/c/" + kHash}));
  refused(Check({"--secrt=a/b/c/" + kHash}));
  refused(Check({"a/b/c/" + kHash}));
  const CommandResult mistyped = Check({"--secrt", "x"});
  BOOST_TEST(Contains(mistyped.err, "there is no flag --secrt"), mistyped.err);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
