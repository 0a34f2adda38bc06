#include "waybill/trace.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(trace)

namespace {

using testing::ExpectError;

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

void WriteText(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
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

BOOST_AUTO_TEST_CASE(a_line) {
  BOOST_TEST(TraceHeaderLine("owner") == "{\"waybill_trace\":1,\"source\":\"owner\"}\n");
  BOOST_TEST(TraceLine(Full()) ==
             "{\"time\":\"2026-11-30T00:53:20.123Z\",\"event\":\"use\","
             "\"image\":\"registry.example.com/team/app:1\",\"ref\":\"sha256:0123\","
             "\"handler\":\"kata\",\"namespace\":\"team-a\","
             "\"credentials\":[\"0123456789abcdef\",\"fedcba9876543210\"],"
             "\"reason\":\"secretHashMatches\",\"mustPull\":false,\"bytes\":123456789012,"
             "\"tookMs\":1200}\n");
}

BOOST_AUTO_TEST_CASE(each_event_comes_back) {
  for (int kind = 0; !TraceKindName(static_cast<TraceEvent::Kind>(kind)).empty(); ++kind) {
    TraceEvent event{.kind = static_cast<TraceEvent::Kind>(kind), .time_ms = -1 - kind};
    auto again = ParseTraceLine(TraceLine(event));
    BOOST_REQUIRE_MESSAGE(again.has_value(), TraceLine(event));
    BOOST_TEST((*again == event));
    event = Full();
    event.kind = static_cast<TraceEvent::Kind>(kind);
    again = ParseTraceLine(TraceLine(event));
    BOOST_REQUIRE(again);
    BOOST_TEST((*again == event));
  }
}

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

BOOST_AUTO_TEST_CASE(fields_of_later_versions_are_ignored) {
  const auto event = ParseTraceLine(
      R"({"time":"1970-01-01T00:00:01Z","event":"removed","ref":"sha256:1","node":{"a":[1]}})");
  BOOST_REQUIRE(event);
  BOOST_TEST(event->time_ms == 1000);
  BOOST_TEST(event->ref == "sha256:1");
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
  refused(R"("event":"gone")", "event: there is no event \"gone\"");
  refused(R"("event":7)", "event: expected a string");
  refused(R"("image":"a")", "\"event\" is missing");
  refused(R"("event":"use","image":[])", "image: expected a string, got an array");
  refused(R"("event":"use","image":")" + std::string(kMaxImageBytes + 1, 'a') + '"', "image: has");
  refused(R"("event":"use","credentials":["0123456789ABCDEF"])", "credentials: a pseudonym");
  refused(R"("event":"use","credentials":["0123"])", "credentials: a pseudonym");
  refused(R"("event":"use","bytes":-1)", "bytes: expected a whole number");
  refused(R"("event":"use","bytes":18446744073709551616)", "bytes: expected a whole number");
  refused(R"("event":"pulled","bytes":274877906945)", "bytes: is above 274877906944");
  refused(R"("event":"pulled","tookMs":9223372036854775808)", "tookMs: is above");
  refused(R"("event":"use","mustPull":"no")", "mustPull: expected a boolean");
  refused(R"("event":"use","event":"use")", "is there twice");
  ExpectError(ParseTraceLine(R"({"time":"yesterday","event":"use"})"), ErrorCode::kInvalidArgument,
              "time: ");
  ExpectError(ParseTraceLine("[]"), ErrorCode::kInvalidArgument, "expected an object");
  ExpectError(ParseTraceLine(""), ErrorCode::kInvalidArgument);
  ExpectError(ParseTraceLine(std::string(kMaxTraceLineBytes + 1, ' ')), ErrorCode::kLimitExceeded);
}

BOOST_AUTO_TEST_CASE(parts_are_read_from_the_oldest_on) {
  const testing::TempDir directory;
  const std::string path = directory / "node.trace";
  WriteText(path + ".2", TraceHeaderLine("owner") + Use("a") + Use("b"));
  WriteText(path + ".1", TraceHeaderLine("owner") + Use("c"));
  WriteText(path, TraceHeaderLine("owner") + Use("d"));
  WriteText(path + ".4", "not a part: there is no .3");
  auto reader = TraceReader::Open(path);
  BOOST_REQUIRE(reader);
  BOOST_TEST(reader->source() == "owner");
  BOOST_TEST(Images(*reader) == std::vector<std::string>({"a", "b", "c", "d"}));
  BOOST_TEST(reader->events() == 4U);
  BOOST_TEST(reader->where() == path + ":2");
}

BOOST_AUTO_TEST_CASE(a_part_under_two_names_is_read_once) {
  const testing::TempDir directory;
  const std::string path = directory / "node.trace";
  WriteText(path, TraceHeaderLine("owner") + Use("a"));
  std::filesystem::create_hard_link(path, path + ".1");
  auto reader = TraceReader::Open(path);
  BOOST_REQUIRE(reader);
  BOOST_TEST(Images(*reader) == std::vector<std::string>({"a"}));
}

BOOST_AUTO_TEST_CASE(what_breaks_off) {
  const testing::TempDir directory;
  const std::string path = directory / "node.trace";
  WriteText(path + ".1", TraceHeaderLine("owner") + Use("a") + Use("b").substr(0, 20));
  WriteText(path, "");
  auto reader = TraceReader::Open(path);
  BOOST_REQUIRE(reader);
  BOOST_TEST(Images(*reader) == std::vector<std::string>({"a"}));
  BOOST_TEST(reader->cut_lines() == 1U);
}

BOOST_AUTO_TEST_CASE(errors_name_file_and_line) {
  const testing::TempDir directory;
  const std::string path = directory / "node.trace";
  ExpectError(TraceReader::Open(path), ErrorCode::kNotFound, path);
  ExpectError(TraceReader::Open(directory.path()), ErrorCode::kIo, "directory");
  WriteText(path, "");
  ExpectError(TraceReader::Open(path), ErrorCode::kInvalidArgument, path + ":1: this is no trace");
  WriteText(path, Use("a"));
  ExpectError(TraceReader::Open(path), ErrorCode::kInvalidArgument, path + ":1: this is no trace");
  WriteText(path, "{\"waybill_trace\":2}\n");
  ExpectError(TraceReader::Open(path), ErrorCode::kInvalidArgument, ":1: the trace has version 2");
  WriteText(path, std::string(kMaxTraceLineBytes * 4, 'x'));
  ExpectError(TraceReader::Open(path), ErrorCode::kLimitExceeded, ":1: the line has more than");

  WriteText(path, TraceHeaderLine("owner") + Use("a") + "{}\n" + Use("b"));
  auto reader = TraceReader::Open(path);
  BOOST_REQUIRE(reader);
  BOOST_REQUIRE(reader->Next());
  ExpectError(reader->Next(), ErrorCode::kInvalidArgument, path + ":3: ");
  // Whoever wants to goes on behind it.
  BOOST_TEST(Images(*reader) == std::vector<std::string>({"b"}));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
