// What is counted of a trace, and the shape that is fitted to it.

#include "sizing/node_history.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <string>
#include <vector>

#include "sizing/curves.h"
#include "sizing/shape_fit.h"
#include "store/base/trace.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(node_history)

namespace {

using namespace waybill::sizing;  // NOLINT(google-build-using-namespace)
using Kind = TraceEvent::Kind;

constexpr std::int64_t kHour = 3'600'000;

Result<NodeHistory> Read(const std::vector<TraceEvent>& events, const HistoryLimits& limits = {},
                         std::string_view source = "generated") {
  std::string text = TraceHeaderLine(source);
  for (const TraceEvent& event : events) text += TraceLine(event);
  auto reader = TraceReader::OfText(text);
  if (!reader) return reader.error();
  return ReadHistory(*reader, limits);
}

TraceEvent At(std::int64_t hour, Kind kind, const std::string& image, const std::string& ref = {}) {
  return {.kind = kind,
          .time_ms = 1'800'000'000'000 + hour * kHour,
          .image = image.empty() ? "" : "registry.example.com/" + image,
          .ref = ref};
}

TraceEvent Use(std::int64_t hour, const std::string& image, const std::string& ref,
               const std::string& tenant, const std::string& credential, Reason reason) {
  TraceEvent event = At(hour, Kind::kUse, image, ref);
  event.pod_namespace = tenant;
  if (!credential.empty()) event.credentials = {credential};
  event.reason = ReasonName(reason);
  event.must_pull = reason == Reason::kImageAbsent || reason == Reason::kNoCredentialMatches;
  return event;
}

TraceEvent Pulled(std::int64_t hour, const std::string& image, const std::string& ref,
                  const std::string& tenant, const std::string& credential, std::uint64_t bytes) {
  TraceEvent event = At(hour, Kind::kPulled, image, ref);
  event.pod_namespace = tenant;
  if (!credential.empty()) event.credentials = {credential};
  event.bytes = bytes;
  return event;
}

constexpr const char* kA = "aaaaaaaaaaaaaaaa";
constexpr const char* kB = "bbbbbbbbbbbbbbbb";

}  // namespace

BOOST_AUTO_TEST_CASE(a_day_is_counted) {
  const auto history = Read({
      At(0, Kind::kStart, ""),
      // Absent: the pull that follows says which image it was.
      Use(0, "app:1", "", "one", kA, Reason::kImageAbsent),
      Pulled(1, "app:1", "sha256:1", "one", kA, 1000),
      Use(2, "app:1", "sha256:1", "one", kA, Reason::kSecretHashMatches),
      Use(3, "app:1", "sha256:1", "two", kA, Reason::kSecretHashMatches),
      Use(4, "app:1", "sha256:1", "two", kB, Reason::kNoCredentialMatches),
      Pulled(5, "app:1", "sha256:1", "two", kB, 1000),
      Use(6, "app:2", "", "two", kB, Reason::kImageAbsent),
      At(6, Kind::kPullFailed, "app:2"),
      Pulled(7, "app:2", "sha256:2", "two", kB, 3000),
      Use(8, "tool", "sha256:3", "two", kB, Reason::kNodePodsAccessible),
      At(9, Kind::kImage, "pause", "sha256:4"),
      At(10, Kind::kList, ""),
      At(11, Kind::kRemoved, "app:1", "sha256:1"),
      At(12, Kind::kList, ""),
      Use(24, "app:2", "sha256:2", "two", kB, Reason::kSecretCoordinatesMatch),
  });
  BOOST_REQUIRE(history.has_value());
  BOOST_TEST(history->days() == 1);
  BOOST_TEST(history->uses == 7U);
  BOOST_TEST(history->must_pull == 3U);
  BOOST_TEST(history->pulls == 3U);
  BOOST_TEST(history->failed_pulls == 1U);
  BOOST_TEST(history->lists == 2U);
  BOOST_TEST(history->collections == 1U);
  BOOST_TEST(history->starts == 1U);
  BOOST_TEST(history->write_backs == 2U);
  BOOST_TEST(history->reasons.at("secretHashMatches") == 2U);
  BOOST_TEST(history->must_prove == 1U);
  BOOST_TEST(history->images_at_once == 4U);
  BOOST_TEST(history->records_at_once == 2U);
  // Three images are used; the tool's bytes are unknown.
  BOOST_TEST(history->requests.all.size() == 7U);
  BOOST_TEST((history->requests.bytes == std::vector<std::uint64_t>{1000, 3000, 3000}));
  BOOST_TEST(history->images_without_bytes == 1U);
  BOOST_TEST(history->requests.all[0].object == history->requests.all[1].object);
  auto secrets = history->secrets;
  std::sort(secrets.begin(), secrets.end());
  // The tool's is open to all.
  BOOST_TEST((secrets == std::vector<std::uint32_t>{0, 1, 2}));
  BOOST_TEST(history->has_credentials);
  BOOST_TEST(history->tenants.size() == 2U);
  BOOST_TEST(std::count_if(history->tenants.begin(), history->tenants.end(),
                           [](const SeenTenant& tenant) { return tenant.shares; }) == 2);
}

BOOST_AUTO_TEST_CASE(reasons_of_a_later_version_are_one) {
  std::vector<TraceEvent> events;
  for (int i = 0; i < 3; ++i) {
    events.push_back(Use(i, "app", "sha256:1", "one", kA, Reason::kSecretHashMatches));
    events.back().reason = "newReason" + std::to_string(i);
  }
  const auto history = Read(events);
  BOOST_REQUIRE(history.has_value());
  BOOST_TEST(history->reasons.size() == 1U);
  BOOST_TEST(history->reasons.at("other") == 3U);
}

BOOST_AUTO_TEST_CASE(without_uses_pulls_are_what_is_asked_for) {
  const auto history = Read({Pulled(0, "a", "", "", "", 5), Pulled(1, "b", "", "", "", 6),
                             Pulled(2, "a", "", "", "", 5)});
  BOOST_REQUIRE(history.has_value());
  BOOST_TEST(history->requests.all.size() == 3U);
  BOOST_TEST(history->requests.bytes.size() == 2U);
  // Nothing is known of credentials, so nothing is public.
  for (const Fitted& field : FitShape(*history, 2)) {
    BOOST_TEST(field.flag != "--public-percent");
    BOOST_TEST(field.flag != "--tenants");
  }
}

BOOST_AUTO_TEST_CASE(whose_sizes_they_are) {
  const auto of = [](std::vector<TraceEvent> events, std::optional<std::uint32_t> percent) {
    events.push_back(At(9, Kind::kList, ""));
    events.back().unpacked_percent = percent;
    const auto history = Read(events);
    BOOST_REQUIRE(history.has_value());
    return std::pair(history->requests.unpacked, history->unpacked_as);
  };
  const TraceEvent containerd = Pulled(0, "a", "sha256:" + std::string(64, '1'), "", "", 5);
  const TraceEvent crio = Pulled(0, "a", std::string(64, '1'), "", "", 5);
  BOOST_TEST((of({containerd}, {}) ==
              std::pair(kContainerdUnpacked, std::string("as unpacked on containerd, estimated"))));
  BOOST_TEST((of({crio}, {}) == std::pair(1.0, std::string("as CRI-O lists them, unpacked"))));
  for (const TraceEvent& event : {containerd, crio}) {
    BOOST_TEST((of({event}, 319) == std::pair(3.19, std::string("as unpacked, measured"))));
  }
}

// A cluster's events say of no pull what it took, so that is neither public nor without Secrets.
BOOST_AUTO_TEST_CASE(what_events_do_not_tell_is_not_known) {
  const std::vector<TraceEvent> events = {
      Use(0, "a:1", "sha256:1", "one", kA, Reason::kImageAbsent),
      Pulled(1, "a:1", "sha256:1", "one", "", 5), Pulled(2, "b:1", "sha256:2", "one", "", 6),
      Pulled(3, "c:1", "sha256:3", "one", kA, 6)};
  const auto has_public = [](const NodeHistory& history) {
    const auto shape = FitShape(history, 2);
    return std::any_of(shape.begin(), shape.end(),
                       [](const Fitted& field) { return field.flag == "--public-percent"; });
  };
  const auto owner = Read(events, {}, "owner");
  BOOST_REQUIRE(owner.has_value());
  BOOST_TEST(has_public(*owner));
  BOOST_TEST((owner->secrets == std::vector<std::uint32_t>{0, 0, 1}));
  for (const char* const source : {"events", "events+pods", "trace+events"}) {
    const auto history = Read(events, {}, source);
    BOOST_REQUIRE(history.has_value());
    BOOST_TEST(!has_public(*history), source);
    BOOST_TEST((history->secrets == std::vector<std::uint32_t>{1}), source);
    BOOST_TEST(history->records_at_once == 3U);
  }
}

BOOST_AUTO_TEST_CASE(a_trace_without_events_is_empty) {
  const auto history = Read({});
  BOOST_REQUIRE(history.has_value());
  BOOST_TEST(history->events == 0U);
  BOOST_TEST(history->PerDay(5) == 0);
  BOOST_TEST(FitShape(*history, 2).empty());
}

BOOST_AUTO_TEST_CASE(what_is_kept_has_bounds) {
  // Of uses alone, of images, of namespaces, and of credentials.
  for (const char* kind : {"uses", "images", "namespaces", "credentials"}) {
    const std::string what = kind;
    const auto history_of = [&](int count) {
      std::vector<TraceEvent> events;
      for (int i = 0; i < count; ++i) {
        const auto number = [&](const char* of) {
          const std::string digits = what == of ? std::to_string(i) : "";
          return std::string(16 - digits.size(), 'a') + digits;
        };
        events.push_back(Use(i % 60, number("images"), "sha256:" + number("images"),
                             number("namespaces"), number("credentials"),
                             Reason::kSecretHashMatches));
      }
      return Read(events, {.bytes = 20'000});
    };
    BOOST_TEST(history_of(5).has_value(), what);
    const auto history = history_of(2000);
    BOOST_REQUIRE(!history.has_value());
    BOOST_TEST((history.error().code == ErrorCode::kLimitExceeded));
    BOOST_TEST(history.error().message.find("more than 20000 bytes of memory") != std::string::npos,
               history.error().message);
    BOOST_TEST(!history.error().hint.empty());
  }
  auto large = TraceReader::OfText(
      TraceHeaderLine("owner") +
      R"({"time":"1970-01-01T00:00:01Z","event":"pulled","ref":"sha256:1","bytes":274877906945})"
      "\n");
  BOOST_REQUIRE(large.has_value());
  const auto too_large = ReadHistory(*large);
  BOOST_REQUIRE(!too_large.has_value());
  BOOST_TEST(too_large.error().message.find("bytes: it is above 274877906944") != std::string::npos,
             too_large.error().message);
  const auto far = Read({At(0, Kind::kList, ""), At(24 * 4000, Kind::kList, "")});
  BOOST_REQUIRE(!far.has_value());
  BOOST_TEST(far.error().message.find("more than ten years") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back_stands_still) {
  const auto history =
      Read({At(5, Kind::kUse, "a"), At(1, Kind::kUse, "a"), At(6, Kind::kUse, "a")});
  BOOST_REQUIRE(history.has_value());
  BOOST_TEST(history->requests.all[0].time_ms == history->requests.all[1].time_ms);
  BOOST_TEST(history->days() * 24 == 1, boost::test_tools::tolerance(1e-9));
}

BOOST_AUTO_TEST_CASE(a_zipf_law_is_found_again) {
  for (const double skew : {0.0, 0.6, 0.9, 1.3}) {
    std::vector<std::uint64_t> uses;
    for (int i = 1; i <= 300; ++i) {
      uses.push_back(static_cast<std::uint64_t>(std::llround(1e6 * std::pow(i, -skew))));
    }
    BOOST_TEST(std::abs(FitZipf(uses) - skew) < 0.01, skew << ": " << FitZipf(uses));
  }
  BOOST_TEST(FitZipf(std::vector<std::uint64_t>{5}) == 0);
}

BOOST_AUTO_TEST_CASE(what_never_changes_is_told_from_what_has_not_changed_yet) {
  // 100 repositories, of which 30 never change; 35 versions of the others: half of these have one.
  const double unchanged = 30 + 70 * std::exp(-0.5);
  BOOST_TEST(std::abs(FitFixedPart(100, unchanged, 35) - 0.3) < 0.001);
  BOOST_TEST(FitFixedPart(100, 100, 0) > 0.99);
  BOOST_TEST(FitFixedPart(0, 0, 0) == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
