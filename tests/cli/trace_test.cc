// What `waybill trace` reads: messages of a kubelet, durations, streams of JSON. What it makes of
// them: transcripts/trace.txt.

#include "store/base/trace.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "bindings/cli/json_stream.h"
#include "bindings/cli/pull_message.h"
#include "tests/support/cli_store.h"
#include "tests/support/expect_error.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(trace)

namespace {

using Strings = std::vector<std::string>;

}  // namespace

BOOST_AUTO_TEST_CASE(messages_of_a_kubelet) {
  using cli::ParsePullMessage;
  using Kind = TraceEvent::Kind;
  const auto says = [](const char* reason, const char* message) {
    const auto pull = ParsePullMessage(reason, message);
    BOOST_REQUIRE_MESSAGE(pull.has_value(), message);
    return *pull;
  };
  auto pull = says("Pulled",
                   "Successfully pulled image \"a:1\" in 796ms (1.594s including waiting). Image "
                   "size: 543804759 bytes.");
  BOOST_TEST((pull.kind == Kind::kPulled));
  BOOST_TEST(pull.image == "a:1");
  BOOST_TEST((pull.took_ms == 796));
  BOOST_TEST((pull.bytes == 543804759U));
  // Before 1.30, 1.27 and 1.19.
  pull = says("Pulled", "Successfully pulled image \"a:1\" in 1m2.5s (1m3s including waiting)");
  BOOST_TEST((pull.took_ms == 62500));
  BOOST_TEST(!pull.bytes.has_value());
  pull = says("Pulled", "Successfully pulled image \"a:1\" in 2.000000001s");
  BOOST_TEST((pull.took_ms == 2000));
  pull = says("Pulled", "Successfully pulled image \"a:1\"");
  BOOST_TEST(!pull.took_ms.has_value());
  BOOST_TEST(
      (says("Pulled", "Container image \"a:1\" already present on machine").kind == Kind::kUse));
  BOOST_TEST((says("Pulling", "Pulling image \"a:1\"").kind == Kind::kPullBegun));
  BOOST_TEST((says("Failed", "Failed to pull image \"a:1\": rpc error").kind == Kind::kPullFailed));
  for (const auto& [reason, message] :
       {std::pair("Failed", "Error: ErrImagePull"), std::pair("Pulling", "Pulling image \"\""),
        std::pair("Pulling", "Pulling image \"a"), std::pair("Pulled", "Pulling image \"a:1\""),
        std::pair("Pulled", "Container image \"a:1\" is somewhere"),
        std::pair("BackOff", "Back-off pulling image \"a:1\"")}) {
    BOOST_TEST(!ParsePullMessage(reason, message).has_value(), message);
  }
}

BOOST_AUTO_TEST_CASE(durations_of_go) {
  using cli::ParseGoDuration;
  BOOST_TEST((ParseGoDuration("1h2m3.004s") == 3723004));
  BOOST_TEST((ParseGoDuration("15.6µs") == 0));
  BOOST_TEST((ParseGoDuration("0") == 0));
  for (const char* wrong :
       {"", "s", "1", "-1s", "1d", "1s ", "1e9s", "nan", "infs", "99999999999999999999999h"}) {
    BOOST_TEST(!ParseGoDuration(wrong).has_value(), wrong);
  }
}

BOOST_AUTO_TEST_CASE(objects_one_behind_the_other) {
  const TempDir scratch;
  const auto objects = [&](const std::string& text, std::size_t most = 100) -> Result<Strings> {
    const std::string path = (scratch / "file").string();
    WriteFile(path, text);
    auto stream = cli::JsonStream::Open(path, most);
    if (!stream) return stream.error();
    Strings found;
    for (;;) {
      auto next = stream->Next();
      if (!next) return next.error();
      if (!*next) return found;
      found.emplace_back(**next);
    }
  };
  const Strings both = {R"({"a":"}]\"\\"})", R"({"b":[{}]})"};
  for (const std::string& text :
       {both[0] + both[1], both[0] + "\n" + both[1] + "\n", "[" + both[0] + ",\n " + both[1] + "]",
        "[" + both[0] + "]\n[" + both[1] + "]"}) {
    BOOST_TEST(Must(objects(text)) == both, text);
  }
  BOOST_TEST(Must(objects("")).empty());
  BOOST_TEST(Must(objects("[]\n")).empty());
  ExpectError(objects("[{}"), ErrorCode::kInvalidArgument, "byte 3: the array breaks off");
  ExpectError(objects("{\"a\":\"}"), ErrorCode::kInvalidArgument, "JSON breaks off");
  ExpectError(objects("{}x"), ErrorCode::kInvalidArgument, "byte 2: expected an object");
  ExpectError(objects("[[{}]]"), ErrorCode::kInvalidArgument, "byte 1: expected an object");
  ExpectError(objects("{\"a\":\"" + std::string(100, 'x') + "\"}"), ErrorCode::kLimitExceeded,
              "byte 0: an object has more than 100 bytes");
  // Longer than what is read at once.
  const std::string large = "{\"a\":\"" + std::string(300'000, 'x') + "\"}";
  BOOST_TEST(Must(objects(large + large, 1 << 20)).size() == 2U);
}

// An event stands for up to 100,000 lines, which are all in memory.
BOOST_AUTO_TEST_CASE(a_small_file_makes_no_trace_of_any_size) {
  std::string input;
  for (int i = 0; i < 3; ++i) {
    input += R"({"involvedObject":{"kind":"Pod","namespace":"a","name":"p"},"reason":"Pulled",)"
             R"("message":"Container image \")" +
             std::string(3000, 'x') +
             R"(:1\" already present","lastTimestamp":"2026-11-20T08:00:00Z","count":100000})";
  }
  const CommandResult result = RunWaybill({"trace", "import", "--events", "-"}, input);
  BOOST_TEST(result.exit_code == 2);
  BOOST_TEST(result.out.empty());
  BOOST_TEST(result.err.find("more than 512 MiB; nothing was printed") != std::string::npos,
             result.err.substr(0, 300));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
