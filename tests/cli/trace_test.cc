// `waybill trace`: a node's history out of what others recorded. fixtures/trace/ has such files, in
// the forms that kubectl 1.33 and crictl have.

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

std::string Fixture(const std::string& name) { return WAYBILL_FIXTURES "/trace/" + name; }

CommandResult Import(Strings more, const std::string& input = {}) {
  more.insert(more.begin(), {"trace", "import"});
  return RunWaybill(more, input);
}

// The lines behind header and start, which are looked at here.
Strings LinesOf(const CommandResult& result, const std::string& source) {
  BOOST_REQUIRE_MESSAGE(result.exit_code == 0, result.err);
  Strings lines;
  std::size_t at = 0;
  while (at < result.out.size()) {
    const std::size_t end = result.out.find('\n', at);
    BOOST_REQUIRE(end != std::string::npos);
    lines.push_back(result.out.substr(at, end - at));
    at = end + 1;
  }
  BOOST_REQUIRE(lines.size() > 2U);
  BOOST_TEST(lines[0].starts_with(R"({"waybill_trace":1,"source":")" + source + '"'), lines[0]);
  const std::string time = lines[2].substr(0, lines[2].find(','));
  BOOST_TEST(lines[1] == time + ",\"event\":\"start\"}");
  for (std::size_t i = 1; i < lines.size(); ++i) {
    BOOST_TEST(ParseTraceLine(lines[i]).has_value(), lines[i]);
  }
  lines.erase(lines.begin(), lines.begin() + 2);
  return lines;
}

std::vector<TraceEvent> EventsOf(const CommandResult& result, const std::string& source) {
  std::vector<TraceEvent> events;
  for (const std::string& line : LinesOf(result, source)) {
    events.push_back(Must(ParseTraceLine(line)));
  }
  return events;
}

constexpr const char* kWeb = "\"image\":\"registry.example.com/team-a/web:1\"";

std::string Line(const std::string& time, const std::string& rest) {
  return "{\"time\":\"" + time + "\"," + rest + "}";
}

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

BOOST_AUTO_TEST_CASE(events) {
  const CommandResult result = Import({"--events", Fixture("events.json"), "--node", "worker-1"});
  BOOST_TEST(result.err == "note: left out, of other nodes: 1\n");
  const std::string of = std::string(kWeb) + ",\"namespace\":\"team-a\"";
  const Strings expected = {
      Line("2026-11-20T08:00:01Z", "\"event\":\"use\"," + of + ",\"mustPull\":true"),
      Line("2026-11-20T08:00:01Z", "\"event\":\"pullBegun\"," + of),
      Line("2026-11-20T08:00:03Z",
           "\"event\":\"pulled\"," + of + ",\"bytes\":129338587,\"tookMs\":1200"),
      Line("2026-11-20T08:10:00Z", "\"event\":\"use\"," + of + ",\"mustPull\":false"),
      Line("2026-11-20T08:15:00Z", "\"event\":\"use\"," + of + ",\"mustPull\":false"),
      Line("2026-11-20T08:20:00Z", "\"event\":\"use\"," + of + ",\"mustPull\":false")};
  BOOST_TEST(LinesOf(result, "events") == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(a_mixture_of_nodes_is_said) {
  const CommandResult result = Import({"--events", Fixture("events.json")});
  BOOST_TEST(result.err ==
             "warning: the trace mixes 2 nodes, as if all shared one disk\n"
             "hint: take one by --node, as --node worker-1\n");
  BOOST_TEST(LinesOf(result, "events").size() == 7U);
}

BOOST_AUTO_TEST_CASE(a_watch_tells_an_event_again) {
  const auto event = [](const char* last, int count) {
    return R"({"kind":"Event","involvedObject":{"kind":"Pod","namespace":"a","name":"p"},)"
           R"("reason":"Pulled","message":"Container image \"x:1\" already present on machine",)"
           R"("metadata":{"uid":"1"},"firstTimestamp":"2026-11-20T08:00:00Z","lastTimestamp":")" +
           std::string(last) + R"(","count":)" + std::to_string(count) + "}\n";
  };
  const auto events = EventsOf(Import({"--events", "-"}, event("2026-11-20T08:00:00Z", 1) +
                                                             event("2026-11-20T08:00:00Z", 1) +
                                                             event("2026-11-20T08:10:00Z", 3)),
                               "events");
  BOOST_REQUIRE(events.size() == 3U);
  BOOST_TEST(events[1].time_ms - events[0].time_ms == 300'000);
  BOOST_TEST(events[2].time_ms - events[1].time_ms == 300'000);
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
  const CommandResult result = Import({"--events", "-"}, input);
  BOOST_TEST(result.exit_code == 2);
  BOOST_TEST(result.out.empty());
  BOOST_TEST(result.err.find("more than 512 MiB; nothing was printed") != std::string::npos,
             result.err.substr(0, 300));
}

BOOST_AUTO_TEST_CASE(an_event_of_the_events_api) {
  const std::string once = R"({"involvedObject":{"kind":"Pod","namespace":"a","name":"p"},
      "reason":"Pulling","message":"Pulling image \"x:1\"","eventTime":"2026-11-20T10:00:00Z"})";
  BOOST_TEST(EventsOf(Import({"--events", "-"}, once + once), "events").size() == 4U);
  const auto events =
      EventsOf(Import({"--events", "-", "--node", "n"},
                      R"({"involvedObject":{"kind":"Pod","namespace":"a","name":"p"},
                          "reason":"Pulled","message":"Container image \"x:1\" already present",
                          "eventTime":"2026-11-20T08:00:00.000001Z","reportingInstance":"n",
                          "series":{"count":2,"lastObservedTime":"2026-11-20T09:00:00.000000Z"}})"),
               "events");
  BOOST_REQUIRE(events.size() == 2U);
  BOOST_TEST(events[1].time_ms - events[0].time_ms == 3'600'000);
}

BOOST_AUTO_TEST_CASE(all_of_a_node_together) {
  const CommandResult result =
      Import({"--events", Fixture("events.json"), "--pods", Fixture("pods.json"), "--containers",
              Fixture("containers.json"), "--images",
              Fixture("images-monday.json") + "@2026-11-20T08:00:00Z", "--images",
              Fixture("images-friday.json") + "@2026-11-24T00:00:00Z", "--node", "worker-1"});
  const auto events = EventsOf(result, "events+pods+crictl");
  std::vector<std::string> told;
  std::set<std::string> credentials;
  for (const TraceEvent& event : events) {
    told.push_back(std::string(TraceKindName(event.kind)) + " " +
                   (event.ref.empty() ? "-" : event.ref.substr(7, 4)) + " " +
                   std::to_string(event.bytes.value_or(0)));
    credentials.insert(event.credentials.begin(), event.credentials.end());
  }
  // What an event and a pod's status tell, or the runtime, is there once; all have the runtime's ID
  // and the size by its list.
  const Strings expected = {"use bbbb 4269694",
                            "image aaaa 129338587",
                            "image bbbb 4269694",
                            "list - 0",
                            "use cccc 0",
                            "use aaaa 129338587",
                            "pullBegun aaaa 129338587",
                            "pulled aaaa 129338587",
                            "use aaaa 129338587",
                            "use aaaa 129338587",
                            "use aaaa 129338587",
                            "removed bbbb 4269694",
                            "list - 0"};
  BOOST_TEST(told == expected, boost::test_tools::per_element());
  BOOST_TEST(credentials.size() == 1U);
  BOOST_TEST(result.out.find("\"pull\"") == std::string::npos);
}

// Of the list before it; as crictl 1.29 prints it, and as older ones do.
BOOST_AUTO_TEST_CASE(what_images_take_on_the_disk) {
  const TempDir scratch;
  const std::string older = (scratch / "older.json").string();
  WriteFile(older, R"({"status":{"timestamp":"1","fsId":{"mountpoint":"/a"},)"
                   R"("usedBytes":{"value":"425593877"},"inodesUsed":{"value":"1"}}})");
  const std::string monday = Fixture("images-monday.json") + "@2026-11-20T08:00:00Z";
  const std::string friday = Fixture("images-friday.json") + "@2026-11-24T08:00:00Z";
  for (const std::string& info : {Fixture("imagefs.json"), older}) {
    std::vector<std::optional<std::uint32_t>> lists;
    for (const TraceEvent& event :
         EventsOf(Import({"--images", monday, "--images", info + "@2026-11-20T08:00:05Z",
                          "--images", friday}),
                  "crictl")) {
      if (event.kind == TraceEvent::Kind::kList) lists.push_back(event.unpacked_percent);
    }
    BOOST_TEST((lists == std::vector<std::optional<std::uint32_t>>{319, std::nullopt}));
  }
  const auto refused = [&](const Strings& images, const std::string& about) {
    Strings arguments;
    for (const std::string& image : images) {
      arguments.insert(arguments.end(), {"--images", image});
    }
    const CommandResult result = Import(arguments);
    BOOST_TEST(result.exit_code == 2);
    BOOST_TEST(result.out == "");
    BOOST_TEST(result.err.find(about) != std::string::npos, result.err);
  };
  refused({monday, older + "@2026-11-20T07:00:00Z"}, "is older than each list of images");
  WriteFile(older, R"({"status":{"imageFilesystems":[{"usedBytes":{"value":"1000"}}]}})");
  refused({monday, older + "@2026-11-20T08:00:05Z"}, "it is not of the list before it");
}

BOOST_AUTO_TEST_CASE(one_node_names_the_trace) {
  const auto header = [](const CommandResult& result) {
    return result.out.substr(0, result.out.find('\n') + 1);
  };
  BOOST_TEST(header(Import({"--pods", Fixture("pods.json")})) ==
             TraceHeaderLine("pods", "worker-1"));
  BOOST_TEST(header(Import({"--events", Fixture("events.json")})) == TraceHeaderLine("events"));
  BOOST_TEST(header(Import({"--events", Fixture("events.json"), "--node", "worker-1"})) ==
             TraceHeaderLine("events", "worker-1"));
  auto reader = Must(TraceReader::OfText(TraceHeaderLine("owner", "worker-1")));
  BOOST_TEST(reader.node() == "worker-1");
  BOOST_TEST(TraceHeaderLine("owner", std::string(254, 'x')) == TraceHeaderLine("owner"));
}

BOOST_AUTO_TEST_CASE(a_pod_tells_when_its_containers_started) {
  const auto events = EventsOf(Import({"--pods", Fixture("pods.json")}), "pods");
  BOOST_REQUIRE(events.size() == 3U);
  BOOST_TEST(events[0].image == "busybox");
  BOOST_TEST(events[1].image == "registry.example.com/team-a/web:1");
  BOOST_TEST(events[2].time_ms - events[1].time_ms == 1'197'000);
  for (const TraceEvent& event : events) {
    BOOST_TEST((event.kind == TraceEvent::Kind::kUse));
    BOOST_TEST(event.credentials == events[0].credentials);
    BOOST_TEST(event.credentials.size() == 1U);
  }
}

BOOST_AUTO_TEST_CASE(what_an_owner_wrote_joins_in) {
  CliStore store;
  const std::string path = (store / "trace").string();
  BOOST_TEST(store.Start({"--trace", path, "--images", Fixture("images-friday.json")}).exit_code ==
             0);
  const auto events =
      EventsOf(Import({"--trace", path, "--pods", Fixture("pods.json")}), "trace+pods");
  BOOST_REQUIRE(events.size() == 6U);
  std::vector<TraceEvent> written;
  for (const TraceEvent& event : events) {
    if (event.kind != TraceEvent::Kind::kUse) written.push_back(event);
  }
  BOOST_REQUIRE(written.size() == 3U);
  BOOST_TEST((written[0].kind == TraceEvent::Kind::kStart));
  BOOST_TEST((written[1].kind == TraceEvent::Kind::kImage));
  BOOST_TEST((written[1].bytes == 129338587U));
  BOOST_TEST((written[2].kind == TraceEvent::Kind::kList));
}

// The guard sees pulls and lists, and no pods: those are the cluster's to tell.
BOOST_AUTO_TEST_CASE(pods_add_their_uses_to_a_guards_trace) {
  const CommandResult result = Import(
      {"--trace", Fixture("guard.trace"), "--pods", Fixture("pods.json"), "--node", "worker-1"});
  std::vector<std::string> told;
  for (const TraceEvent& event : EventsOf(result, "trace+pods")) {
    told.push_back(std::string(TraceKindName(event.kind)) + " " + event.ref.substr(0, 11) + " " +
                   event.pod_namespace + " " + std::to_string(event.bytes.value_or(0)));
  }
  // A pod calls its image as the guard's list does, so it is that one, of that size.
  const Strings expected = {"start   0",
                            "use docker.io/l team-a 0",
                            "pullBegun   0",
                            "use sha256:aaaa team-a 129338587",
                            "image sha256:aaaa  129338587",
                            "list   0",
                            "pulled sha256:aaaa team-a 129338587",
                            "use sha256:aaaa team-a 129338587"};
  BOOST_TEST(told == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(wrong_input_is_named) {
  const TempDir scratch;
  const std::string file = (scratch / "file").string();
  const auto says = [](const CommandResult& result, const std::string& about) {
    BOOST_TEST(result.exit_code == 2, result.err);
    BOOST_TEST(result.err.find(about) != std::string::npos, result.err);
    BOOST_TEST(result.out == "");
  };
  says(Import({"--events", file}), file);
  WriteFile(file, "{\"items\":[yes]}");
  says(Import({"--events", file}), file + ": byte 0: not JSON at byte 10");
  WriteFile(file, "[]");
  says(Import({"--events", file}), "there is no event in what was given");
  says(Import({"--events", Fixture("events.json"), "--node", "worker-9"}), "--node");
  says(Import({"--images", "-"}), "does not say when it was made");
  says(Import({"--containers", Fixture("pods.json")}), "it says no createdAt");
  says(Import({"--trace", Fixture("events.json")}), ":1: this is no trace");
  says(Import({}), "--events");
}

BOOST_AUTO_TEST_CASE(what_is_in_a_trace_and_what_is_wrong) {
  const TempDir scratch;
  const std::string path = (scratch / "node.trace").string();
  WriteFile(path, Import({"--events", Fixture("events.json"), "--pods", Fixture("pods.json"),
                          "--node", "worker-1"})
                      .out);
  const auto shown = nlohmann::json::parse(RunWaybill({"trace", "show", path, "-o", "json"}).out);
  BOOST_TEST(shown["source"] == "events+pods");
  BOOST_TEST(shown["events"] == 8);
  BOOST_TEST(shown["use"] == 5);
  BOOST_TEST(shown["pulled"] == 1);
  BOOST_TEST(shown["answers"] == 4);
  BOOST_TEST(shown["mustPull"] == 1);
  BOOST_TEST(shown["namespaces"] == 1);
  BOOST_TEST(shown["credentials"] == 1);
  BOOST_TEST(shown["pulledBytes"] == 129338587);
  BOOST_TEST(shown["from"] == "2026-11-20T07:59:58Z");
  BOOST_TEST(shown["to"] == "2026-11-20T08:20:00Z");
  BOOST_TEST(shown["wrong"] == 0);
  BOOST_TEST(shown["timeGoesBack"] == 0);
  BOOST_TEST(shown["problems"].empty());
  BOOST_TEST(RunWaybill({"trace", "show", path}).exit_code == 0);

  WriteFile(path, TraceHeaderLine("generated") + TraceLine({.time_ms = 2}) + "{}\n" +
                      TraceLine({.time_ms = 1}) + "{\"time");
  const CommandResult wrong = RunWaybill({"trace", "show", path, "-o", "json"});
  BOOST_TEST(wrong.exit_code == 1);
  const auto found = nlohmann::json::parse(wrong.out);
  BOOST_TEST(found["events"] == 2);
  BOOST_TEST(found["wrong"] == 1);
  BOOST_TEST(found["timeGoesBack"] == 1);
  BOOST_TEST(found["cutLines"] == 1);
  BOOST_TEST(found["problems"][0] == path + ":3: document: field \"event\" is missing");
  BOOST_TEST(found["problems"][1] == path + ":4: the time goes back");
}

// Sizes whose sum is 2^64 and more: whoever reads a trace refuses the same line of it.
BOOST_AUTO_TEST_CASE(sizes_that_no_image_has) {
  const TempDir scratch;
  const std::string path = (scratch / "node.trace").string();
  std::string trace = TraceHeaderLine("generated");
  for (const std::string size : {"5000", "18446744073709551615"}) {
    trace += R"({"time":"2026-01-01T00:00:00Z","event":"pulled","ref":"sha256:)" + size +
             R"(","bytes":)" + size + "}\n";
  }
  WriteFile(path, trace);
  const std::string says = path + ":3: bytes: is above 274877906944";
  for (const std::vector<std::string>& call :
       {std::vector<std::string>{"trace", "import", "--trace", path},
        {"advise", "--trace", path}}) {
    const CommandResult refused = RunWaybill(call);
    BOOST_TEST(refused.exit_code == 2, call[0] + " " + call[1] + ": " + refused.out);
    BOOST_TEST(refused.err.find(says) != std::string::npos, refused.err);
  }
  const CommandResult wrong = RunWaybill({"trace", "show", path, "-o", "json"});
  BOOST_TEST(wrong.exit_code == 1);
  BOOST_TEST(nlohmann::json::parse(wrong.out)["problems"][0] == says);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
