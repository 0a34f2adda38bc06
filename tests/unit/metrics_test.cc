// What a store tells of what it does.

#include "store/base/metrics.h"

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "store/base/options.h"
#include "store/base/trace.h"
#include "tests/support/expect_error.h"
#include "tests/support/metrics.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/userns_store.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

// What a store counts and holds, and how that is spelt. fixtures/metrics.txt has every series of an
// owner, without values: names stay. WAYBILL_REWRITE=1 writes what this build says over it.
BOOST_AUTO_TEST_SUITE(metrics)

namespace {

constexpr std::string_view kImage = "r.example/app:v1";
constexpr std::string_view kRef =
    "sha256:0000000000000000000000000000000000000000000000000000000000000001";

// Of the text, each series with its value.
std::map<std::string, double> Series(const std::string& text) {
  std::map<std::string, double> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("# ")) continue;
    const std::size_t space = line.rfind(' ');
    BOOST_TEST_REQUIRE(space != std::string::npos, line);
    const bool is_new =
        all.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second;
    BOOST_TEST(is_new, line << " is there twice");
  }
  return all;
}

std::map<std::string, double> Series(const NodeStore& store) {
  return Series(ToPrometheusText(store.GetMetrics()));
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(names_stay, ClosedStore) {
  Pod pod;
  store->EnsureImage({.image = kImage}, PullPolicy::kNever, pod);
  Must(store->RecordImagePullFailed({.image = kImage}));
  std::istringstream text(ToPrometheusText(store->GetMetrics()));
  std::string names;
  for (std::string line; std::getline(text, line);) {
    names += line.starts_with("# ") ? line : line.substr(0, line.rfind(' '));
    names += '\n';
  }
  const std::string path = WAYBILL_FIXTURES "/metrics.txt";
  if (std::getenv("WAYBILL_REWRITE") != nullptr) WriteFile(path, names);
  BOOST_TEST(names == ReadFile(path));
}

BOOST_AUTO_TEST_CASE(decisions_are_counted_by_reason) {
  for (const Mode rules : kBothRules) {
    ScratchStore store(rules);
    const ImagePullSecret secret = MakeSecret("ns", "s", "uid", "hash");
    store.Pull(kImage, kRef, WithSecret(secret));
    static_cast<void>(store.Check(kImage, kRef, Pod(secret)));
    static_cast<void>(store.Check(kImage, kRef, Pod(secret)));
    static_cast<void>(store.Check(kImage, kRef, Pod(MakeSecret("other", "s", "uid-2", "other"))));
    static_cast<void>(store.Check(kImage, kRef, Pod::Unavailable()));
    static_cast<void>(store.Check(kImage, "", Pod()));
    static_cast<void>(store.Check(kImage, std::string(kMaxImageRefBytes + 1, 'x'), Pod()));
    const Metrics metrics = store->GetMetrics();
    const auto series = Series(*store);
    double sum = 0;
    for (const auto& [name, value] : series) {
      if (name.starts_with("waybill_decisions_total")) sum += value;
    }
    BOOST_TEST(sum == 5);
    for (const auto& [reason, count] : {std::pair("secretHashMatches", 2),
                                        {"noCredentialMatches", 1},
                                        {"credentialsUnavailable", 1},
                                        {"argumentTooLong", 1}}) {
      BOOST_TEST(ValueOf(metrics, "waybill_decisions_total", {reason}) == count, reason);
    }
    const std::array<std::uint64_t, 5> checks = {0, 0, 2, 1, 2};
    BOOST_TEST((CountedIn(metrics).mustpull_checks == checks));
    for (std::size_t i = 1; i < checks.size(); ++i) {
      const std::string_view result = CheckResultName(static_cast<CheckResult>(i));
      BOOST_TEST(ValueOf(metrics, "waybill_mustpull_checks_total", {result}) ==
                 static_cast<double>(checks[i]));
    }
  }
}

BOOST_AUTO_TEST_CASE(pulls_are_counted_by_outcome_and_class) {
  for (const Mode rules : kBothRules) {
    ScratchStore store(rules);
    FakeClock& clock = store.clock();
    BOOST_TEST(!Series(*store).contains("waybill_pull_durations_total"));
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    const auto begin = [&] { return Must(store->RecordPullIntent(copy)); };
    PullId pull = begin();
    clock.AdvanceSeconds(3);
    clock.JumpSeconds(-1000);  // the wall clock alone
    Must(store->RecordImagePulled(copy, NodeWide(), {.pull = pull}));
    clock.JumpSeconds(1000);
    pull = begin();
    clock.AdvanceSeconds(4);
    Must(store->RecordImagePullError(copy, {.error_class = PullErrorClass::kAuth, .pull = pull}));
    pull = begin();
    Must(store->RecordImagePullError(copy, {.failure = PullOutcome::kUnknown,
                                            .error_class = PullErrorClass::kUnavailable,
                                            .pull = pull}));
    pull = begin();
    Must(store->RecordImagePullFailed(copy, PullOutcome::kNothing, pull));
    // Without an intent there is no duration; what is refused is not counted.
    Must(store->RecordImagePullError({.image = "r.example/other:1"},
                                     {.error_class = PullErrorClass::kNotFound}));
    const std::string too_long(kMaxImageBytes + 1, 'x');
    BOOST_TEST(!store->RecordImagePullError({.image = too_long}, {}).has_value());
    const auto series = Series(*store);
    const std::map<std::string, double> expected = {
        {"{outcome=\"succeeded\"}", 1},
        {"{outcome=\"failed\",class=\"auth\"}", 1},
        {"{outcome=\"failed\",class=\"notFound\"}", 1},
        {"{outcome=\"failed\",class=\"unknown\"}", 1},
        {"{outcome=\"unknown\",class=\"unavailable\"}", 1}};
    double sum = 0;
    for (const auto& [name, value] : series) {
      if (name.starts_with("waybill_pulls_total")) sum += value;
    }
    BOOST_TEST(sum == 5);
    for (const auto& [labels, count] : expected) {
      BOOST_TEST(series.at("waybill_pulls_total" + labels) == count, labels);
    }
    BOOST_TEST(series.at("waybill_pull_duration_seconds_total") == 7);
    BOOST_TEST(series.at("waybill_pull_durations_total") == 4);
  }
}

BOOST_AUTO_TEST_CASE(each_opening_counts_from_0_and_times_no_pull_of_another_process) {
  ScratchStore store(Mode::kStrict);
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  const PullId first = Must(store->RecordPullIntent(copy));
  const PullId second = Must(store->RecordPullIntent(copy));
  store.clock().AdvanceSeconds(5);
  Must(store->RecordImagePullError(copy, {.error_class = PullErrorClass::kAuth, .pull = first}));
  static_cast<void>(store.Check(kImage, kRef));
  const std::string of_auth = "waybill_pulls_total{outcome=\"failed\",class=\"auth\"}";
  auto series = Series(*store);
  BOOST_TEST(series.at(of_auth) == 1);
  BOOST_TEST(series.at("waybill_pull_durations_total") == 1);
  BOOST_TEST(series.at("waybill_pull_duration_seconds_total") == 5);
  store.Restart();
  for (const auto& [name, value] : Series(*store)) {
    const bool counts = name.find("_total") != std::string::npos;
    BOOST_TEST((!counts || name == "waybill_commits_total" || value == 0), name);
  }
  BOOST_TEST(!Series(*store).contains(of_auth));
  store.clock().AdvanceSeconds(5);
  Must(store->RecordImagePullError(copy, {.error_class = PullErrorClass::kAuth, .pull = second}));
  series = Series(*store);
  BOOST_TEST(series.at(of_auth) == 1);
  BOOST_TEST(series.at("waybill_pull_durations_total") == 0);
  BOOST_TEST(series.at("waybill_pull_duration_seconds_total") == 0);
}

BOOST_AUTO_TEST_CASE(what_closes_images_is_counted) {
  ScratchStore store(Mode::kStrict, {},
                     {{.id = std::string(kRef), .repo_tags = {"r.example/a:1"}}});
  BOOST_TEST(Series(*store).at("waybill_preloaded_images") == 1);
  const PullId failed = Must(store->RecordPullIntent({.image = "r.example/b:1"}));
  Must(store->RecordImagePullFailed({.image = "r.example/b:1"}, PullOutcome::kFailed, failed));
  const PullId unknown = Must(store->RecordPullIntent({.image = "r.example/c:1"}));
  Must(store->RecordImagePullFailed({.image = "r.example/c:1"}, PullOutcome::kUnknown, unknown));
  Must(store->RecordPullIntent({.image = "r.example/d:1"}));
  auto series = Series(*store);
  BOOST_TEST(series.at("waybill_open_pulls") == 3);
  for (const char* const state : {"running", "failed", "unknown"}) {
    BOOST_TEST(series.at("waybill_open_pulls_by_state{state=\"" + std::string(state) + "\"}") == 1);
  }
  BOOST_TEST(series.at("waybill_open_pulls_by_state{state=\"anything\"}") == 0);
  // An image that a pull of unknown end may have brought.
  const ListToken token = Must(store->BeginList());
  Must(store->ObserveImages(
      {.images = {{.id = "sha256:" + std::string(64, '2'), .repo_tags = {"r.example/c:1"}},
                  {.id = std::string(kRef), .repo_tags = {"r.example/a:1"}}},
       .token = token,
       .complete = true}));
  BOOST_TEST(Series(*store).at("waybill_closed_images") == 1);
  // Distrust, and one pull of anything when it is cleared.
  store.Stop();
  std::filesystem::remove_all(store.directory());
  store.Start();
  series = Series(*store);
  BOOST_TEST(series.at("waybill_distrustful") == 1);
  BOOST_TEST(series.at("waybill_distrust_reasons{kind=\"storeLost\"}") == 1);
  BOOST_TEST(series.at("waybill_last_opening_findings{kind=\"created\"}") == 1);
  Must(store->ClearDistrust("looked"));
  series = Series(*store);
  BOOST_TEST(series.at("waybill_distrustful") == 0);
  for (const auto& [name, value] : series) {
    if (name.starts_with("waybill_distrust_reasons")) BOOST_TEST(value == 0, name);
  }
  BOOST_TEST(series.at("waybill_open_pulls_by_state{state=\"anything\"}") == 1);
}

BOOST_AUTO_TEST_CASE(ranges_of_host_ids_are_counted) {
  UsernsStore store(SmallPool(2, 3));
  store.Open();
  auto series = Series(*store);
  BOOST_TEST(series.at("waybill_id_ranges{state=\"free\"}") == 3);
  BOOST_TEST(series.at("waybill_id_ranges{state=\"used\"}") == 0);
  for (const char* const pod : {"a", "b", "c", "d", "e"}) {
    static_cast<void>(store->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false}));
  }
  static_cast<void>(store->GetOrCreateUserNamespace({.pod_uid = "f", .host_users = true}));
  static_cast<void>(store->GetOrCreateUserNamespace(
      {.pod_uid = "g", .host_users = false, .runtime_handler = "gvisor"}));
  series = Series(*store);
  BOOST_TEST(series.at("waybill_id_mappings") == 3);
  BOOST_TEST(series.at("waybill_id_ranges{state=\"free\"}") == 0);
  BOOST_TEST(series.at("waybill_id_ranges{state=\"used\"}") == 3);
  BOOST_TEST(series.at("waybill_id_range_failures_total") == 3);
  BOOST_TEST(series.at("waybill_id_ranges_refused") == 0);
  Must(store->ReleaseUserNamespace("b"));
  BOOST_TEST(Series(*store).at("waybill_id_ranges{state=\"free\"}") == 1);
  // A held pod whose range is not known.
  std::filesystem::create_directories(store.pods() / "held");
  WriteFile(store.pods() / "held/userns", "{");
  store.Reopen();
  series = Series(*store);
  BOOST_TEST(series.at("waybill_held_pods") == 1);
  BOOST_TEST(series.at("waybill_id_ranges_refused") == 1);
  BOOST_TEST(series.at("waybill_last_opening_findings{kind=\"idRangeProblems\"}") == 1);
  store.Close();
  store.SwitchOff();
  store.Open();
  series = Series(*store);
  BOOST_TEST(!series.contains("waybill_id_ranges{state=\"free\"}"));
  BOOST_TEST(series.at("waybill_held_pods") == 1);
}

BOOST_AUTO_TEST_CASE(records_are_counted_by_handler) {
  const TempDir scratch;
  NodeStoreOptions options = OptionsIn(scratch.path());
  const std::string hostile = "a\"b\\c\x7f\xff";
  options.runtime_handlers = {{{.name = "runc", .is_default = true},
                               {.name = "kata"},
                               {.name = hostile},
                               {.name = "x\xfe"},
                               {.name = "x\xff"}}};
  const auto store = Must(NodeStore::Open(options));
  const auto pull = [&](std::string_view ref, std::string_view handler) {
    Must(store->RecordImagePulled({.image = kImage, .image_ref = ref, .runtime_handler = handler},
                                  NodeWide()));
  };
  pull("one", "");
  pull("one", "kata");
  pull("two", "kata");
  pull("two", hostile);
  pull("three", "runc");
  pull("one", "x\xfe");
  pull("two", "x\xff");
  const auto series = Series(*store);
  BOOST_TEST(series.at("waybill_nondefault_runtime_handler_images") == 5);
  // A label that two names share is one series with their sum.
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"x\xef\xbf\xbd\"}") == 2);
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"(default)\"}") == 2);
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"kata\"}") == 2);
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"a\\\"b\\\\c\x7f\xef\xbf\xbd\"}") == 1);
}

BOOST_AUTO_TEST_CASE(a_new_line_stays_in_its_line) {
  BOOST_TEST(ToPrometheusText({{"m", "gauge", "h", {{{{"name", "two\nlines"}}, 4}}}}) ==
             "# HELP m h\n# TYPE m gauge\nm{name=\"two\\nlines\"} 4\n");
}

BOOST_AUTO_TEST_CASE(the_ratio_is_that_of_the_kep) {
  EnsureImageRequests requests{};
  BOOST_TEST(!ReverificationRatio(requests).has_value());
  requests[0] = {{{9, 9, 9}, {9, 9, 9}, {9, 9, 9}}};  // Always
  requests[1][2][2] = 5;                              // errors
  requests[1][1][2] = 5;
  BOOST_TEST(!ReverificationRatio(requests).has_value());
  requests[1][1][1] = 2;
  requests[2][1][1] = 1;
  requests[1][1][0] = 3;
  requests[2][0][1] = 6;
  BOOST_TEST(ReverificationRatio(requests).value() == 0.25);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(trace)

namespace {

using testing::ExpectError;
using testing::WriteFile;

TraceEvent Full() {
  return {.kind = TraceEvent::Kind::kUse,
          .time_ms = 1'796'000'000'123,
          .image = "registry.example.com/team/app:1",
          .ref = "sha256:0123",
          .runtime_handler = "kata",
          .pod_namespace = "team-a",
          .credentials = {"0123456789abcdef", "fedcba9876543210"},
          .reason = "secretHashMatches",
          .must_pull = false,
          .bytes = 123'456'789'012,
          .took_ms = 1200};
}

// The images of what is left of a trace.
std::vector<std::string> Images(TraceReader& reader) {
  std::vector<std::string> images;
  for (;;) {
    auto event = reader.Next();
    BOOST_REQUIRE_MESSAGE(event.has_value(), (event ? "" : event.error().message));
    if (!*event) return images;
    images.push_back((*event)->image);
  }
}

std::string Use(std::string image) {
  TraceEvent event;
  event.image = std::move(image);
  return TraceLine(event);
}

}  // namespace

BOOST_AUTO_TEST_CASE(the_longest_event_fits_a_line) {
  TraceEvent event = Full();
  event.image.assign(kMaxImageBytes, '<');
  event.ref.assign(kMaxImageRefBytes, '\x01');
  event.runtime_handler.assign(kMaxRuntimeHandlerBytes, '&');
  event.pod_namespace.assign(kMaxCoordinateBytes, '>');
  event.credentials.assign(kMaxTraceCredentials, "0123456789abcdef");
  const std::string line = TraceLine(event);
  BOOST_TEST(line.size() <= kMaxTraceLineBytes);
  auto reader = TraceReader::OfText(TraceHeaderLine("owner") + line);
  BOOST_REQUIRE(reader);
  const auto again = reader->Next();
  BOOST_REQUIRE((again && *again));
  BOOST_TEST((**again == event));
}

// What a reader would refuse is not written: the other lines of a trace stay readable.
BOOST_AUTO_TEST_CASE(a_size_that_no_image_has_is_unknown) {
  TraceEvent event = Full();
  event.bytes = kMaxTraceImageSize;
  BOOST_TEST((ParseTraceLine(TraceLine(event)).value() == event));
  event.bytes = kMaxTraceImageSize + 1;
  const auto again = ParseTraceLine(TraceLine(event));
  BOOST_REQUIRE(again);
  BOOST_TEST(!again->bytes.has_value());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named) {
  const auto refused = [](const std::string& fields, std::string_view about) {
    const std::string line = R"({"time":"1970-01-01T00:00:01Z",)" + fields + "}";
    BOOST_TEST_CONTEXT(line) {
      const auto event = ParseTraceLine(line);
      BOOST_REQUIRE(!event);
      BOOST_TEST(event.error().message.find(about) != std::string::npos, event.error().message);
    }
  };
  refused(R"("event":"gone")", "event: expected one of start, image, use");
  refused(R"("event":"use","image":")" + std::string(kMaxImageBytes + 1, 'a') + '"',
          "image: it has");
  refused(R"("event":"use","credentials":["0123456789ABCDEF"])", "credentials: a pseudonym");
  refused(R"("event":"use","credentials":["0123"])", "credentials: a pseudonym");
  refused(R"("event":"pulled","bytes":274877906945)", "bytes: it is above 274877906944");
  refused(R"("event":"pulled","tookMs":-1)", "tookMs: it is below 0");
  refused(R"("event":"list","unpackedPercent":10001)", "unpackedPercent: it is above 10000");
  ExpectError(ParseTraceLine(R"({"time":"yesterday","event":"use"})"), ErrorCode::kInvalidArgument,
              "time: ");
  ExpectError(ParseTraceLine("[]"), ErrorCode::kInvalidArgument, "expected an object");
  ExpectError(ParseTraceLine(""), ErrorCode::kInvalidArgument);
  ExpectError(ParseTraceLine(std::string(kMaxTraceLineBytes + 1, ' ')), ErrorCode::kLimitExceeded);
}

BOOST_AUTO_TEST_CASE(parts_are_read_from_the_oldest_on) {
  const testing::TempDir directory;
  const std::string path = directory / "node.trace";
  WriteFile(path + ".2", TraceHeaderLine("owner") + Use("a") + Use("b"));
  WriteFile(path + ".1", TraceHeaderLine("owner") + Use("c"));
  WriteFile(path, TraceHeaderLine("owner") + Use("d"));
  WriteFile(path + ".4", "not a part: there is no .3");
  auto reader = TraceReader::Open(path);
  BOOST_REQUIRE(reader);
  BOOST_TEST(reader->source() == "owner");
  BOOST_TEST(Images(*reader) == std::vector<std::string>({"a", "b", "c", "d"}));
  BOOST_TEST(reader->events() == 4U);
  BOOST_TEST(reader->where() == path + ":2");
}

BOOST_AUTO_TEST_CASE(errors_name_file_and_line) {
  const testing::TempDir directory;
  const std::string path = directory / "node.trace";
  ExpectError(TraceReader::Open(path), ErrorCode::kNotFound, path);
  ExpectError(TraceReader::Open(directory.path()), ErrorCode::kIo, "directory");
  WriteFile(path, "");
  ExpectError(TraceReader::Open(path), ErrorCode::kInvalidArgument, path + ":1: this is no trace");
  WriteFile(path, Use("a"));
  ExpectError(TraceReader::Open(path), ErrorCode::kInvalidArgument, path + ":1: this is no trace");
  WriteFile(path, "{\"waybill_trace\":2}\n");
  ExpectError(TraceReader::Open(path), ErrorCode::kInvalidArgument, ":1: the trace has version 2");
  WriteFile(path, std::string(kMaxTraceLineBytes * 4, 'x'));
  ExpectError(TraceReader::Open(path), ErrorCode::kLimitExceeded, ":1: the line has more than");

  WriteFile(path, TraceHeaderLine("owner") + Use("a") + "{}\n" + Use("b"));
  auto reader = TraceReader::Open(path);
  BOOST_REQUIRE(reader);
  BOOST_REQUIRE(reader->Next());
  ExpectError(reader->Next(), ErrorCode::kInvalidArgument, path + ":3: ");
  // Whoever wants to goes on behind it.
  BOOST_TEST(Images(*reader) == std::vector<std::string>({"b"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
