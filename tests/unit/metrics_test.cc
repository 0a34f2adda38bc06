// What a store counts and holds, and how that is spelt. fixtures/metrics.txt has every series of an
// owner, without values: names stay. WAYBILL_REWRITE=1 writes what this build says over it.

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/store_fixture.h"
#include "tests/support/userns_store.h"

namespace waybill::testing {

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
  return Series(store.GetMetrics().ToPrometheusText());
}

std::uint64_t Decided(const Metrics& metrics, Reason reason) {
  return metrics.counters.value().decisions[static_cast<std::size_t>(reason)];
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(names_stay, ClosedStore) {
  Pod pod;
  store->EnsureImage({.image = kImage}, PullPolicy::kNever, pod);
  Must(store->RecordImagePullFailed({.image = kImage}));
  std::istringstream text(store->GetMetrics().ToPrometheusText());
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
  for (const Rules rules : kBothRules) {
    ScratchStore store(rules);
    const ImagePullSecret secret = MakeSecret("ns", "s", "uid", "hash");
    store.Pull(kImage, kRef, WithSecret(secret));
    store.Check(kImage, kRef, Pod(secret));
    store.Check(kImage, kRef, Pod(secret));
    store.Check(kImage, kRef, Pod(MakeSecret("other", "s", "uid-2", "other")));
    store.Check(kImage, kRef, Pod::Unavailable());
    store.Check(kImage, "", Pod());
    store.Check(kImage, std::string(kMaxImageRefBytes + 1, 'x'), Pod());
    const Metrics metrics = store->GetMetrics();
    BOOST_TEST(Decided(metrics, Reason::kSecretHashMatches) == 2U);
    BOOST_TEST(Decided(metrics, Reason::kNoCredentialMatches) == 1U);
    BOOST_TEST(Decided(metrics, Reason::kCredentialsUnavailable) == 1U);
    BOOST_TEST(Decided(metrics, Reason::kArgumentTooLong) == 1U);
    BOOST_TEST(Decided(metrics, Reason::kImageAbsent) == 0U);
    std::uint64_t sum = 0;
    for (const std::uint64_t count : metrics.counters->decisions) sum += count;
    BOOST_TEST(sum == 5U);
    BOOST_TEST((metrics.mustpull_checks == std::array<std::uint64_t, 5>{0, 0, 2, 1, 2}));
    BOOST_TEST((metrics.counters->mustpull_checks == metrics.mustpull_checks));
  }
}

BOOST_FIXTURE_TEST_CASE(only_a_live_owner_has_the_kubelets_names, ClosedStore) {
  store.Pull(kImage, kRef, NodeWide());
  store.Check(kImage, kRef);
  auto owners = Series(*store);
  BOOST_TEST(owners.at("waybill_live_owner") == 1);
  BOOST_TEST(
      owners.at(
          "kubelet_imagemanager_image_mustpull_checks_total{result=\"credentialRecordFound\"}") ==
      1);
  BOOST_TEST(owners.at("kubelet_imagemanager_ondisk_pulledrecords") == 1);
  store.Stop();  // a process opens a store once
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  auto observed = Series(*observer);
  BOOST_TEST(observed.at("waybill_live_owner") == 0);
  BOOST_TEST(observed.at("waybill_records{runtime_handler=\"(default)\"}") == 1);
  BOOST_TEST(owners.at("waybill_decisions_total{reason=\"nodePodsAccessible\"}") == 1);
  BOOST_TEST(!observed.contains("waybill_decisions_total{reason=\"nodePodsAccessible\"}"));
  BOOST_TEST(owners.contains("waybill_last_opening_timestamp_seconds"));
  BOOST_TEST(!observed.contains("waybill_last_opening_timestamp_seconds"));
  for (const auto& [name, value] : observed) {
    BOOST_TEST(!name.starts_with("kubelet_"), name);
    BOOST_TEST(owners.contains(name), name);
  }
}

BOOST_FIXTURE_TEST_CASE(a_store_that_cannot_be_read_has_no_gauges, ClosedStore) {
  store.Pull(kImage, kRef, NodeWide());
  store.Check(kImage, kRef);
  Must(store->Close());
  const Metrics metrics = store->GetMetrics();
  BOOST_TEST(!metrics.readable);
  BOOST_TEST(metrics.mustpull_checks[2] == 1U);
  const auto series = Series(metrics.ToPrometheusText());
  BOOST_TEST(series.at("waybill_store_readable") == 0);
  BOOST_TEST(
      series.at(
          "kubelet_imagemanager_image_mustpull_checks_total{result=\"credentialRecordFound\"}") ==
      1);
  for (const auto& [name, value] : series) {
    BOOST_TEST(name.find("ondisk") == std::string::npos, name);
    BOOST_TEST(name.find("waybill_records") == std::string::npos, name);
    BOOST_TEST(name.find("waybill_distrust") == std::string::npos, name);
  }
}

BOOST_AUTO_TEST_CASE(pulls_are_counted_by_outcome_and_class) {
  for (const Rules rules : kBothRules) {
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
    Must(store->RecordImagePullError(copy, {.failure = PullFailure::kUnknown,
                                            .error_class = PullErrorClass::kUnavailable,
                                            .pull = pull}));
    pull = begin();
    Must(store->RecordImagePullFailed(copy, PullFailure::kNothingTransferred, pull));
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
  ScratchStore store(Rules::kClosed);
  const ImageCopy copy = {.image = kImage, .image_ref = kRef};
  const PullId first = Must(store->RecordPullIntent(copy));
  const PullId second = Must(store->RecordPullIntent(copy));
  store.clock().AdvanceSeconds(5);
  Must(store->RecordImagePullError(copy, {.error_class = PullErrorClass::kAuth, .pull = first}));
  store.Check(kImage, kRef);
  StoreCounters counters = store->GetMetrics().counters.value();
  BOOST_TEST(counters.pulls[1][1] == 1U);
  BOOST_TEST(counters.pull_count == 1U);
  BOOST_TEST(counters.pull_nanoseconds == 5'000'000'000U);
  store.Restart();
  BOOST_TEST((store->GetMetrics().counters == StoreCounters()));
  store.clock().AdvanceSeconds(5);
  Must(store->RecordImagePullError(copy, {.error_class = PullErrorClass::kAuth, .pull = second}));
  counters = store->GetMetrics().counters.value();
  BOOST_TEST(counters.pulls[1][1] == 1U);
  BOOST_TEST(counters.pull_count == 0U);
  BOOST_TEST(counters.pull_nanoseconds == 0U);
}

BOOST_AUTO_TEST_CASE(what_closes_images_is_counted) {
  ScratchStore store(Rules::kClosed, {},
                     {{.id = std::string(kRef), .repo_tags = {"r.example/a:1"}}});
  BOOST_TEST(Series(*store).at("waybill_preloaded_images") == 1);
  const PullId failed = Must(store->RecordPullIntent({.image = "r.example/b:1"}));
  Must(store->RecordImagePullFailed({.image = "r.example/b:1"}, PullFailure::kFailed, failed));
  const PullId unknown = Must(store->RecordPullIntent({.image = "r.example/c:1"}));
  Must(store->RecordImagePullFailed({.image = "r.example/c:1"}, PullFailure::kUnknown, unknown));
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
  auto series = Series(*store.operator->());
  BOOST_TEST(series.at("waybill_id_ranges{state=\"free\"}") == 3);
  BOOST_TEST(series.at("waybill_id_ranges{state=\"used\"}") == 0);
  for (const char* const pod : {"a", "b", "c", "d", "e"}) {
    static_cast<void>(store->GetOrCreateUserNamespace({.pod_uid = pod, .host_users = false}));
  }
  static_cast<void>(store->GetOrCreateUserNamespace({.pod_uid = "f", .host_users = true}));
  static_cast<void>(store->GetOrCreateUserNamespace(
      {.pod_uid = "g", .host_users = false, .runtime_handler = "gvisor"}));
  series = Series(*store.operator->());
  BOOST_TEST(series.at("waybill_id_mappings") == 3);
  BOOST_TEST(series.at("waybill_id_ranges{state=\"free\"}") == 0);
  BOOST_TEST(series.at("waybill_id_ranges{state=\"used\"}") == 3);
  BOOST_TEST(series.at("waybill_id_range_failures_total") == 3);
  BOOST_TEST(series.at("waybill_id_ranges_refused") == 0);
  Must(store->ReleaseUserNamespace("b"));
  BOOST_TEST(Series(*store.operator->()).at("waybill_id_ranges{state=\"free\"}") == 1);
  // A held pod whose range is not known.
  std::filesystem::create_directories(store.pods() / "held");
  WriteFile(store.pods() / "held/userns", "{");
  store.Reopen();
  series = Series(*store.operator->());
  BOOST_TEST(series.at("waybill_held_pods") == 1);
  BOOST_TEST(series.at("waybill_id_ranges_refused") == 1);
  BOOST_TEST(series.at("waybill_last_opening_findings{kind=\"idRangeProblems\"}") == 1);
  store.Close();
  store.SwitchOff();
  store.Open();
  series = Series(*store.operator->());
  BOOST_TEST(!series.contains("waybill_id_ranges{state=\"free\"}"));
  BOOST_TEST(series.at("waybill_held_pods") == 1);
}

BOOST_AUTO_TEST_CASE(records_are_counted_by_handler) {
  const TempDir scratch;
  OpenOptions options = OptionsIn(scratch.path());
  const std::string hostile = "a\"b\\c\x7f\xff";
  options.runtime_handlers = {
      {{.name = "runc", .is_default = true}, {.name = "kata"}, {.name = hostile}}};
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
  const Metrics metrics = store->GetMetrics();
  BOOST_TEST((metrics.records_by_handler ==
              std::vector<HandlerRecords>{{"", 2}, {hostile, 1}, {"kata", 2}}));
  BOOST_TEST(metrics.nondefault_runtime_handler_images == 3U);
  const auto series = Series(metrics.ToPrometheusText());
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"(default)\"}") == 2);
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"kata\"}") == 2);
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"a\\\"b\\\\c\x7f\xef\xbf\xbd\"}") == 1);
}

// A label that two names share is one series with their sum; a new line stays in its line.
BOOST_AUTO_TEST_CASE(labels_are_escaped) {
  Metrics metrics;
  metrics.readable = true;
  metrics.records_by_handler = {{"", 1}, {"x\xfe", 2}, {"x\xff", 3}, {"two\nlines", 4}};
  const auto series = Series(metrics.ToPrometheusText());
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"x\xef\xbf\xbd\"}") == 5);
  BOOST_TEST(series.at("waybill_records{runtime_handler=\"two\\nlines\"}") == 4);
}

BOOST_AUTO_TEST_CASE(the_ratio_is_that_of_the_kep) {
  StoreCounters counters;
  BOOST_TEST(!counters.ReverificationRatio().has_value());
  counters.ensure_image_requests[0] = {{{9, 9, 9}, {9, 9, 9}, {9, 9, 9}}};  // Always
  counters.ensure_image_requests[1][2][2] = 5;                              // errors
  counters.ensure_image_requests[1][1][2] = 5;
  BOOST_TEST(!counters.ReverificationRatio().has_value());
  counters.ensure_image_requests[1][1][1] = 2;
  counters.ensure_image_requests[2][1][1] = 1;
  counters.ensure_image_requests[1][1][0] = 3;
  counters.ensure_image_requests[2][0][1] = 6;
  BOOST_TEST(counters.ReverificationRatio().value() == 0.25);
}

BOOST_AUTO_TEST_CASE(changes_that_cannot_be_written_are_counted) {
  const TempDir scratch;
  OpenOptions options = OptionsIn(scratch.path());
  options.map_bytes = std::uint64_t{1} << 20U;
  const auto store = Must(NodeStore::Open(options));
  // What asks for too much is the caller's mistake.
  BOOST_TEST(!store->PutRecord({std::string(kMaxImageRefBytes + 1, 'x'), {}, {}}).has_value());
  BOOST_TEST(store->GetMetrics().counters->commit_failures == 0U);
  Result<void> put;
  for (int i = 0; put; ++i) {
    put = store->PutRecord({std::string(4000, 'x') + std::to_string(i), {}, {}});
  }
  BOOST_TEST((put.error().code == ErrorCode::kStoreFull));
  BOOST_TEST(store->GetMetrics().counters->commit_failures == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
