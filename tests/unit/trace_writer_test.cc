// What an owner writes of what it does (NodeStoreOptions::trace).

#include "store/base/trace_writer.h"

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/trace.h"
#include "tests/support/allocations.h"
#include "tests/support/expect_error.h"
#include "tests/support/in_threads.h"
#include "tests/support/metrics.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(trace_writer)

namespace {

using testing::DecisionOf;
using testing::ExpectError;
using testing::Must;
using testing::Pod;
using testing::ReadFile;

constexpr const char* kImage = "registry.example.com/team/app:1";
constexpr const char* kRef = "sha256:0123";
constexpr const char* kHash = "0000000000000000000000000000000000000000000000000000000000000abc";

class Traced {
 public:
  explicit Traced(TraceOptions options = {}, Mode rules = Mode::kStrict)
      : options_(std::move(options)), rules_(rules) {
    options_.path = directory_ / "node.trace";
    options_.written_within = std::chrono::milliseconds(10);
    Start();
  }
  void Start() {
    NodeStoreOptions options = testing::OptionsIn(directory_.path(), rules_);
    options.clock = clock_.AsClock();
    options.trace = options_;
    store_ = Must(testing::NodeStore::Open(std::move(options)));
  }
  void Stop() {
    if (store_) Must(store_->Close());
    store_.reset();
  }
  testing::NodeStore& store() { return *store_; }
  testing::FakeClock& clock() { return clock_; }
  std::filesystem::path path() const { return options_.path; }
  std::filesystem::path operator/(const std::string& name) const { return directory_ / name; }

  void Decide(int times, const Pod& pod = Pod()) {
    for (int i = 0; i < times; ++i)
      static_cast<void>(DecisionOf(*store_, {.image = kImage, .image_ref = kRef}, pod));
  }
  void List(std::vector<ListedImage> images, const ChangeOptions& change = {},
            bool complete = true) {
    const auto token = Must(store_->BeginList());
    Must(store_->ObserveImages({.images = std::move(images), .token = token, .complete = complete},
                               change));
  }
  std::uint64_t EventsThatAre(std::string_view result) const {
    return static_cast<std::uint64_t>(
        testing::ValueOf(store_->GetMetrics(), "waybill_trace_events_total", {result}));
  }
  // Waits until so many events are written, or dropped.
  void AwaitWritten(std::uint64_t events) const {
    while (EventsThatAre("written") < events) std::this_thread::yield();
  }
  void AwaitDropped(std::uint64_t events) const {
    while (EventsThatAre("dropped") < events) std::this_thread::yield();
  }

  // Ends the owner.
  std::vector<TraceEvent> Events() {
    Stop();
    std::vector<TraceEvent> events;
    auto reader = Must(TraceReader::Open(path()));
    BOOST_TEST(reader.source() == "owner");
    while (auto event = Must(reader.Next())) events.push_back(*std::move(event));
    return events;
  }

 private:
  testing::TempDir directory_;
  testing::FakeClock clock_;
  TraceOptions options_;
  Mode rules_;
  std::unique_ptr<testing::NodeStore> store_;
};

std::vector<std::string> Kinds(const std::vector<TraceEvent>& events) {
  std::vector<std::string> kinds;
  for (const TraceEvent& event : events) kinds.emplace_back(TraceKindName(event.kind));
  return kinds;
}

ImagePullSecret Secret(const char* name_space = "team-a", const char* hash = kHash) {
  return {"uid-1", name_space, "pull", hash};
}

void PullIt(testing::NodeStore& store, std::uint64_t bytes = 0) {
  const ImageCopy copy{.image = kImage, .image_ref = kRef};
  const PullId pull = Must(store.RecordPullIntent(copy));
  testing::PullResult result{.pull = pull};
  if (bytes > 0) {
    result.image = ListedImage{.id = kRef, .repo_tags = {kImage}};
    result.image->bytes = bytes;
  }
  Must(store.RecordImagePulled(copy, ImagePullCredentials{.kubernetes_secrets = {Secret()}},
                               result));
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_day) {
  Traced node;
  PullIt(node.store(), 123);
  const ImageCopy copy{.image = kImage, .image_ref = kRef};
  BOOST_TEST(!DecisionOf(node.store(), copy, Pod({Secret()})).pull);
  BOOST_TEST(DecisionOf(node.store(), copy).pull);
  Must(node.store().RecordPullIntent({.image = "other:1"}));
  Must(node.store().RecordImagePullFailed({.image = "other:1"}, PullOutcome::kFailed));

  const std::vector<TraceEvent> events = node.Events();
  BOOST_REQUIRE(Kinds(events) == std::vector<std::string>({"start", "pullBegun", "pulled", "use",
                                                           "use", "pullBegun", "pullFailed"}));
  BOOST_TEST(events[1].image == kImage);
  const TraceEvent& pulled = events[2];
  BOOST_TEST(pulled.image == kImage);
  BOOST_TEST(pulled.ref == kRef);
  BOOST_TEST(pulled.pod_namespace == "team-a");
  BOOST_TEST((pulled.bytes == 123U));
  BOOST_TEST(pulled.took_ms.has_value());
  BOOST_REQUIRE(pulled.credentials.size() == 1U);
  const TraceEvent& use = events[3];
  BOOST_TEST(use.reason == "secretHashMatches");
  BOOST_TEST((use.must_pull == false));
  BOOST_TEST(use.pod_namespace == "team-a");
  BOOST_TEST(use.credentials == pulled.credentials);
  BOOST_TEST(events[4].credentials.empty());
  BOOST_TEST((events[4].must_pull == true));
  BOOST_TEST(events[6].image == "other:1");
}

// Each byte that is not UTF-8 is read as three.
BOOST_AUTO_TEST_CASE(what_a_caller_names_makes_no_line_unreadable) {
  Traced node;
  Pod pod({Secret(std::string(kMaxCoordinateBytes, '\xff').c_str())});
  const std::string image(kMaxImageBytes, '\xff');
  static_cast<void>(node.store().MustAttemptPull({.image = image, .image_ref = image}, pod));
  static_cast<void>(node.store().MustAttemptPull(
      {.image = "a\xff", .image_ref = std::string_view("\0b", 2)}, pod));
  PullIt(node.store());
  BOOST_TEST(Kinds(node.Events()) ==
             std::vector<std::string>({"start", "use", "use", "pullBegun", "pulled"}));
}

BOOST_AUTO_TEST_CASE(it_has_no_secret) {
  Traced node;
  PullIt(node.store());
  Pod pod({Secret(), Secret("team-b", "")});
  static_cast<void>(node.store().MustAttemptPull({.image = kImage, .image_ref = kRef}, pod));
  const auto events = node.Events();
  BOOST_TEST(events.back().credentials.size() == 2U);
  const std::string text = ReadFile(node.path());
  const std::string salt = ReadFile(node.path().string() + ".salt");
  BOOST_TEST(salt.size() == 32U);
  for (const std::string& hidden : {std::string(kHash), std::string("uid-1"), salt}) {
    BOOST_TEST(text.find(hidden) == std::string::npos);
  }
  BOOST_TEST(testing::ModeOf(node.path()) == 0600U);
  BOOST_TEST(testing::ModeOf(node.path().string() + ".salt") == 0600U);
}

BOOST_AUTO_TEST_CASE(pseudonyms_stay_over_a_restart_and_differ_between_traces) {
  Traced node;
  PullIt(node.store());
  node.Stop();
  node.Start();
  PullIt(node.store());
  std::set<std::string> pseudonyms;
  int pulls = 0;
  for (const TraceEvent& event : node.Events()) {
    if (event.kind != TraceEvent::Kind::kPulled) continue;
    ++pulls;
    pseudonyms.insert(event.credentials.begin(), event.credentials.end());
  }
  BOOST_TEST(pulls == 2);
  BOOST_TEST(pseudonyms.size() == 1U);
  Traced other;
  PullIt(other.store());
  BOOST_TEST(!pseudonyms.contains(other.Events()[2].credentials.front()));
}

BOOST_AUTO_TEST_CASE(of_lists_only_changes_are_written) {
  for (const Mode rules : testing::kBothRules) {
    Traced node({}, rules);
    ListedImage a{.id = "sha256:a", .repo_tags = {"a:1"}};
    a.bytes = 10;
    const ListedImage b{.id = "sha256:b", .repo_tags = {"b:1"}};
    node.List({a, b});
    node.List({a, b});
    node.List({b, a});
    node.List({{.id = "sha256:a", .repo_tags = {"a:1"}}, b});
    node.List({a}, {}, false);
    a.bytes = 11;
    node.List({a});
    node.clock().AdvanceSeconds(3599);
    node.List({a});
    node.clock().AdvanceSeconds(1);
    node.List({a});
    const auto events = node.Events();
    BOOST_REQUIRE(Kinds(events) == std::vector<std::string>({"start", "image", "image", "list",
                                                             "image", "removed", "list", "list"}));
    BOOST_TEST(events[1].ref == "sha256:a");
    BOOST_TEST(events[1].image == "a:1");
    BOOST_TEST((events[1].bytes == 10U));
    BOOST_TEST(!events[2].bytes.has_value());
    BOOST_TEST((events[4].bytes == 11U));
    BOOST_TEST(events[5].ref == "sha256:b");
  }
}

BOOST_AUTO_TEST_CASE(a_record_that_is_put_shows_its_new_credentials) {
  Traced node;
  ImagePulledRecord record{.image_ref = kRef};
  record.credential_mapping["registry.example.com/team/app"].kubernetes_secrets = {Secret()};
  Must(node.store().PutRecord(record));
  Must(node.store().PutRecord(record));
  record.credential_mapping["registry.example.com/team/app"].kubernetes_secrets.push_back(
      Secret("team-b", "1111111111111111111111111111111111111111111111111111111111111111"));
  Must(node.store().PutRecord(record));
  const auto events = node.Events();
  BOOST_REQUIRE(Kinds(events) == std::vector<std::string>({"start", "use", "use"}));
  BOOST_TEST(events[1].pod_namespace == "team-a");
  BOOST_TEST(events[2].pod_namespace == "team-b");
  BOOST_TEST(!events[2].must_pull.has_value());
}

BOOST_AUTO_TEST_CASE(its_files_are_bounded) {
  Traced node({.max_file_bytes = 256 << 10, .files = 3});
  for (int round = 0; round < 12; ++round) {
    static_cast<void>(node.Decide(700));
    node.Stop();
    node.Start();
  }
  node.Stop();
  for (const char* part : {"node.trace", "node.trace.1", "node.trace.2"}) {
    BOOST_TEST(std::filesystem::file_size(node / part) <= 256U << 10, part);
    BOOST_TEST(ReadFile(node / part).starts_with(TraceHeaderLine("owner")), part);
  }
  BOOST_TEST(!std::filesystem::exists(node / "node.trace.3"));
  BOOST_TEST(node.Events().size() > 1000U);
}

BOOST_AUTO_TEST_CASE(each_part_has_the_images_of_its_time) {
  Traced node({.max_file_bytes = 256 << 10, .files = 2});
  node.List({{.id = "sha256:a"}});
  for (std::uint64_t asked = 303; asked < 3300; asked += 300) {
    static_cast<void>(node.Decide(300));
    node.AwaitWritten(asked);
  }
  node.List({{.id = "sha256:a"}});
  node.List({{.id = "sha256:a"}});
  node.Stop();
  const std::string newest = ReadFile(node.path());
  BOOST_TEST(std::filesystem::exists(node.path().string() + ".1"));
  const std::size_t image = newest.find("\"event\":\"image\"");
  BOOST_TEST(image != std::string::npos);
  BOOST_TEST(newest.find("\"event\":\"image\"", image + 1) == std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_no_trace_stays_as_it_is) {
  for (const char* name : {"node.trace", "node.trace.1", "node.trace.5", "node.trace.salt"}) {
    BOOST_TEST_CONTEXT(name) {
      const testing::TempDir directory;
      const std::filesystem::path theirs = directory / name;
      std::ofstream(theirs) << "theirs";
      std::filesystem::permissions(theirs, std::filesystem::perms(0644));
      const auto opened =
          internal::TraceWriter::Open({.path = directory / "node.trace", .files = 2}, [] {
            return Timestamp{testing::kFakeEpoch, 0};
          });
      BOOST_TEST(!opened.has_value());
      BOOST_TEST(ReadFile(theirs) == "theirs");
      BOOST_TEST((std::filesystem::status(theirs).permissions() == std::filesystem::perms(0644)));
      BOOST_TEST((name == std::string("node.trace.salt") ||
                  !std::filesystem::exists(directory / "node.trace.salt")));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_store_opens_without_its_trace) {
  testing::TempDir directory;
  const auto warning = [&](const std::filesystem::path& path) {
    NodeStoreOptions options = testing::OptionsIn(directory.path());
    options.trace.path = path;
    auto store = Must(testing::NodeStore::Open(std::move(options)));
    const auto& warnings = store->recovery_report().warnings;
    BOOST_REQUIRE(warnings.size() == 1U);
    BOOST_TEST((ToPrometheusText(store->GetMetrics()).find("waybill_trace_events_total") ==
                std::string::npos));
    const std::string text = warnings.front();
    Must(store->Close());
    return text;
  };
  const auto says = [&](const std::filesystem::path& path, std::string_view about) {
    const std::string text = warning(path);
    BOOST_TEST(text.starts_with("no trace is written: "), text);
    BOOST_TEST(text.find(about) != std::string::npos, text);
  };
  says(directory / "missing" / "trace", "missing");
  std::ofstream(directory / "diary") << "Dear diary,\n";
  says(directory / "diary", "is no trace of an owner");
  BOOST_TEST(ReadFile(directory / "diary") == "Dear diary,\n");
  says(directory / "store" / "trace", "lies in the store's directory");
  BOOST_TEST(!std::filesystem::exists(directory / "store" / "trace"));
  std::filesystem::create_symlink(directory / "elsewhere", directory / "link");
  says(directory / "link", "link");
  BOOST_TEST(!std::filesystem::exists(directory / "elsewhere"));
  std::ofstream(directory / "two");
  std::filesystem::create_hard_link(directory / "two", directory / "names");
  says(directory / "two", "second name");
}

BOOST_AUTO_TEST_CASE(a_trace_has_one_writer) {
  Traced node;
  testing::TempDir directory;
  NodeStoreOptions options = testing::OptionsIn(directory.path());
  options.trace.path = node.path();
  auto store = Must(testing::NodeStore::Open(std::move(options)));
  BOOST_REQUIRE(store->recovery_report().warnings.size() == 1U);
  BOOST_TEST(store->recovery_report().warnings[0].find("another process writes the trace") !=
             std::string::npos);
  BOOST_TEST(node.store().recovery_report().warnings.empty());
}

BOOST_AUTO_TEST_CASE(a_file_that_is_emptied_or_cut_off_under_its_owner_stays_a_trace) {
  Traced node;
  node.List({{.id = "sha256:a"}});
  std::uint64_t events = 3;  // with the start
  node.AwaitWritten(events);
  const std::string header = ReadFile(node.path()).substr(0, ReadFile(node.path()).find('\n') + 1);
  // To nothing, within the first line, to just that.
  for (const std::size_t bytes : {std::size_t{0}, header.size() / 2, header.size()}) {
    std::filesystem::resize_file(node.path(), bytes);
    PullIt(node.store());
    node.AwaitWritten(events += 2);
    const std::string content = ReadFile(node.path());
    BOOST_TEST(content.starts_with(header));
    BOOST_TEST(content.find("pulled") != std::string::npos);
  }
  // Within an event: that ends a part.
  std::filesystem::resize_file(node.path(), header.size() + 5);
  PullIt(node.store());
  node.AwaitWritten(events += 2);
  BOOST_TEST(std::filesystem::exists(node.path().string() + ".1"));
  // What the images are is told again.
  std::filesystem::resize_file(node.path(), 0);
  node.List({{.id = "sha256:a"}});
  PullIt(node.store());
  node.AwaitWritten(events += 4);
  node.List({{.id = "sha256:a"}});
  node.AwaitWritten(events += 2);
  const auto kinds = Kinds(node.Events());
  BOOST_TEST(kinds.back() == "list");
  // Another owner goes on with it.
  node.Start();
  BOOST_TEST(Kinds(node.Events()).size() == kinds.size() + 1);
}

// What somebody wrote over it is not the owner's any more.
BOOST_AUTO_TEST_CASE(a_file_that_was_written_over_stays_as_it_is) {
  Traced node;
  PullIt(node.store());
  node.AwaitWritten(3);
  const std::string other = "something else\n";
  std::ofstream(node.path(), std::ios::trunc) << other;
  PullIt(node.store());
  node.AwaitDropped(2);
  node.Stop();
  BOOST_TEST(ReadFile(node.path()) == other);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_written_is_dropped_and_counted) {
  Traced node;
  node.AwaitWritten(1);
  // As a full disk would: in the place of the file is something that can't be one.
  std::filesystem::remove(node.path());
  std::filesystem::create_directory(node.path());
  PullIt(node.store());
  node.AwaitDropped(2);
  BOOST_TEST(node.EventsThatAre("written") == 1U);
  BOOST_TEST(node.EventsThatAre("dropped") == 2U);
  std::filesystem::remove(node.path());
  PullIt(node.store());
  BOOST_TEST(Kinds(node.Events()) == std::vector<std::string>({"pullBegun", "pulled"}));
}

BOOST_AUTO_TEST_CASE(a_decision_allocates_nothing_for_it) {
  Traced node;
  PullIt(node.store());
  const ImagePullSecret secret = Secret();
  const ImagePullSecretView view(secret);
  const auto decide = [&] {
    FixedCredentials credentials({.secrets = {&view, 1}});
    return node.store().MustAttemptPull({.image = kImage, .image_ref = kRef}, credentials);
  };
  BOOST_TEST(!decide().pull);
  const std::size_t before = testing::AllocationsOfThread();
  for (int i = 0; i < 100; ++i) static_cast<void>(decide());
  const std::size_t after = testing::AllocationsOfThread();
  BOOST_TEST(after == before);
  BOOST_TEST(node.Events().size() == 3U + 101U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
