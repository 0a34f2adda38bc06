// `waybill top` asks the process that decides.

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/run_command.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(top)

BOOST_AUTO_TEST_CASE(the_owner_says_what_had_to_be_pulled_again) {
  ScratchStore store(Rules::kClosed);
  const auto top = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"top", "--store", store.directory().string()};
    words.insert(words.end(), more.begin(), more.end());
    return RunWaybill(words);
  };
  const CommandResult alone = top({});
  BOOST_TEST(alone.exit_code == 3);
  BOOST_TEST(alone.err.find("in the memory of the process that decides") != std::string::npos,
             alone.err);
  Must(store->Serve());
  BOOST_TEST(top({"-o", "json"}).out.find("\"counted\":0") != std::string::npos);
  store.Pull("r.example/a:1", "ref",
             ImagePullCredentials{.kubernetes_secrets = {MakeSecret("x", "s", "1", "h")}});
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(store.Check("r.example/a:1", "ref", Pod(MakeSecret("y", "s", "2", "g"))).pull);
  }
  BOOST_TEST(store.Check("r.example/a:1", "ref").pull);
  const auto told = nlohmann::json::parse(top({"-o", "json"}).out);
  BOOST_TEST(told["counted"] == 4);
  BOOST_TEST(told["images"] ==
             nlohmann::json::parse(R"([{"name":"r.example/a:1","count":4,"over":0}])"));
  BOOST_TEST(
      told["namespaces"] ==
      nlohmann::json::parse(R"([{"name":"y","count":3,"over":0},{"name":"","count":1,"over":0}])"));
  const std::string text = top({"--limit", "1"}).out;
  BOOST_TEST(text.find("r.example/a:1") != std::string::npos, text);
  BOOST_TEST(text.find("(not known)") == std::string::npos, text);
  // What the command says of a failed pull reaches the owner's counters.
  Must(store->RecordImagePulled({.image = "r.example/b:1", .image_ref = "b"}, NodeWide()));
  const std::string directory = store.directory().string();
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{"--class", "auth"},
        {"--error", "unexpected status from HEAD request to https://r/v2/x: 401 Unauthorized"},
        {"--unknown", "--error", "dial tcp: lookup r.example: no such host"},
        {}}) {
    const CommandResult begun =
        RunWaybill({"intent", "--store", directory, "--image", "r.example/c:1"});
    BOOST_TEST(begun.exit_code == 0, begun.err);
    std::vector<std::string> words = {"failed", "--store", directory, "--image", "r.example/c:1"};
    words.insert(words.end(), more.begin(), more.end());
    const CommandResult result = RunWaybill(words);
    BOOST_TEST(result.exit_code == 0, result.err);
  }
  const auto pulls = store->GetMetrics().counters.value().pulls;
  BOOST_TEST(pulls[1][static_cast<std::size_t>(PullErrorClass::kAuth)] == 2U);
  BOOST_TEST(pulls[2][static_cast<std::size_t>(PullErrorClass::kUnavailable)] == 1U);
  BOOST_TEST(pulls[1][static_cast<std::size_t>(PullErrorClass::kUnknown)] == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
