// Counters of the store's whole life: what keeps them, what drops them, and that nothing else
// depends on them.

#include <boost/test/unit_test.hpp>
#include <string>

#include "store/node/records/counters_record.h"
#include "tests/support/child_process.h"
#include "tests/support/damage.h"
#include "tests/support/forked_child.h"
#include "tests/support/versioned_store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(kept_counters)

namespace {

constexpr std::size_t kEnvelope = 16;  // bytes between a key and the payload
constexpr std::string_view kImage = "r.example/app:v1";
constexpr std::string_view kRef =
    "sha256:0000000000000000000000000000000000000000000000000000000000000001";

void Pull(NodeStore& store) {
  Must(store.RecordImagePulled({.image = kImage, .image_ref = kRef}, NodeWide()));
}

// Each is kNodePodsAccessible.
void Decide(NodeStore& store, int times) {
  for (int i = 0; i < times; ++i) {
    DecisionOf(store, {.image = kImage, .image_ref = kRef});
  }
}

std::uint64_t Decided(const Metrics& metrics) {
  const auto reason = static_cast<std::size_t>(Reason::kNodePodsAccessible);
  return metrics.counters ? metrics.counters->decisions[reason] : 0;
}

// What the next owner counts from.
std::uint64_t Kept(const VersionedStore& store) {
  std::uint64_t kept = 0;
  store.Open([&](NodeStore& opened) { kept = Decided(opened.GetMetrics()); });
  return kept;
}

// A store with a record, and so many decisions that are kept.
struct Counted : VersionedStore {
  Counted() {
    Open([](NodeStore& opened) {
      Pull(opened);
      Decide(opened, 5);
    });
  }

  // Both meta pages lead to the newest values then.
  void CommitTwice() const {
    Open([](NodeStore& opened) {
      Must(opened.PutIntent({.image = "other"}));
      Must(opened.DeleteIntent({.image = "other"}));
    });
  }
  // Damages the payload of the value under the key, wherever a page has it. Returns how often.
  std::size_t Damage(std::string_view key) const {
    std::string bytes = ReadFile(database());
    const auto places = PlacesOf(bytes, key);
    for (const std::size_t at : places) bytes[at + key.size() + kEnvelope + 4] ^= 1;
    WriteFile(database(), bytes);
    return places.size();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(they_go_on_after_a_restart, Counted) {
  Open([](NodeStore& opened) {
    Metrics metrics = opened.GetMetrics();
    BOOST_TEST(Decided(metrics) == 5U);
    // The kubelet's own count since its start.
    BOOST_TEST(metrics.mustpull_checks[2] == 0U);
    Decide(opened, 2);
    Pod pod;
    opened.EnsureImage({.image = kImage, .image_ref = kRef}, PullPolicy::kNever, pod);
    metrics = opened.GetMetrics();
    BOOST_TEST(Decided(metrics) == 8U);
    BOOST_TEST(metrics.counters->mustpull_checks[2] == 8U);
    BOOST_TEST(metrics.mustpull_checks[2] == 3U);
  });
  Open([](NodeStore& opened) {
    const Metrics metrics = opened.GetMetrics();
    BOOST_TEST(Decided(metrics) == 8U);
    BOOST_TEST(metrics.counters->ensure_image_requests[2][1][0] == 1U);
    BOOST_TEST(metrics.ensure_image_requests[2][1][0] == 0U);
  });
}

BOOST_FIXTURE_TEST_CASE(a_crash_takes_those_since_the_last_commit, Counted) {
  // The child ends without closing.
  Child child([this] {
    auto store = Must(NodeStore::Open(Options()));
    Decide(*store, 3);
    Must(store->PutIntent({.image = "other"}));
    Decide(*store, 4);
    _exit(0);
    return 0;
  });
  BOOST_TEST(child.Wait() == 0);
  BOOST_TEST(Kept(*this) == 8U);
}

BOOST_FIXTURE_TEST_CASE(an_observer_shows_them, Counted) {
  const auto observer = Must(NodeStore::Observe({.directory = directory()}));
  const Metrics metrics = observer->GetMetrics();
  BOOST_TEST(!metrics.live_owner);
  BOOST_TEST(Decided(metrics) == 5U);
  BOOST_TEST_REQUIRE(metrics.last_opening.has_value());
  BOOST_TEST(metrics.last_opening->created);
  const std::string text = metrics.ToPrometheusText();
  BOOST_TEST(text.find("waybill_decisions_total{reason=\"nodePodsAccessible\"} 5\n") !=
             std::string::npos);
  BOOST_TEST(text.find("kubelet_") == std::string::npos);
  // Its own decisions are nobody's.
  Decide(*observer, 3);
  BOOST_TEST(Decided(observer->GetMetrics()) == 5U);
}

BOOST_FIXTURE_TEST_CASE(closing_writes_only_what_was_counted, Counted) {
  CommitTwice();
  const std::string before = ReadFile(database());
  Open();
  BOOST_TEST((ReadFile(database()) == before));
  Open([](NodeStore& opened) { Decide(opened, 1); });
  BOOST_TEST((ReadFile(database()) != before));
  BOOST_TEST(Kept(*this) == 6U);
}

BOOST_FIXTURE_TEST_CASE(damaged_ones_begin_at_0_and_harm_nothing_else, Counted) {
  CommitTwice();
  BOOST_TEST(Damage("waybill-counters") > 0U);
  {
    const auto observer = Must(NodeStore::Observe({.directory = directory()}));
    const VerifyReport verified = Must(observer->Verify());
    BOOST_TEST(!verified.sound);
    BOOST_TEST_REQUIRE(verified.findings.size() == 1U);
    BOOST_TEST(verified.findings[0].find("counters") != std::string::npos);
    const Metrics metrics = observer->GetMetrics();
    BOOST_TEST(metrics.readable);
    BOOST_TEST(!metrics.counters.has_value());
  }
  const RecoveryReport report = Open([](NodeStore& opened) {
    const Metrics metrics = opened.GetMetrics();
    BOOST_TEST(Decided(metrics) == 0U);
    BOOST_TEST(metrics.last_opening->damage == 1U);
    Decide(opened, 2);
    BOOST_TEST(opened.GetMetrics().mustpull_checks[2] == 2U);
  });
  BOOST_TEST(!report.set_aside);
  BOOST_TEST(!report.distrustful);
  BOOST_TEST_REQUIRE(report.findings.size() == 1U);
  BOOST_TEST(report.findings[0].find("begin at 0") != std::string::npos);
  const RecoveryReport after = Open([](NodeStore& opened) {
    BOOST_TEST(Decided(opened.GetMetrics()) == 2U);
    BOOST_TEST(Must(opened.Verify()).sound);
  });
  BOOST_TEST(after.findings.empty());
}

BOOST_FIXTURE_TEST_CASE(a_rebuilt_store_has_them, Counted) {
  CommitTwice();
  BOOST_TEST(Damage("waybill-trust---") > 0U);
  BOOST_TEST(Open().set_aside);
  BOOST_TEST(Kept(*this) == 5U);
}

BOOST_FIXTURE_TEST_CASE(a_backup_that_is_put_back_takes_none_away, Counted) {
  const std::string backup = Migrate(5).backup;
  const std::string copy = ReadFile(backup);
  // Version 5 has no place for them.
  BOOST_TEST(Kept(*this) == 0U);
  Open([](NodeStore& opened) { Decide(opened, 2); });
  // The replaced store has some.
  Must(Restore(From(backup)));
  BOOST_TEST(Kept(*this) == 2U);
  // There is no store.
  WriteFile(scratch() / "copy.mdb", copy);
  std::filesystem::remove_all(directory());
  std::filesystem::remove(witness());
  std::filesystem::create_directory(directory());
  std::filesystem::permissions(directory(), std::filesystem::perms::owner_all);
  Must(Restore(From(scratch() / "copy.mdb")));
  BOOST_TEST(Kept(*this) == 5U);
}

// What checks the file after the step refuses records that are not of that version.
BOOST_FIXTURE_TEST_CASE(an_older_version_finds_nothing_of_them, Counted) {
  BOOST_TEST(Migrate(5).steps.size() == kNewestSchema - 5U);
  BOOST_TEST(Open().findings.empty());
}

BOOST_AUTO_TEST_CASE(their_record_is_read_as_it_was_written) {
  internal::KeptCounters kept;
  const std::size_t empty = internal::EncodeCounters(kept).size();
  std::uint64_t next = 1;
  for (std::uint64_t& one : kept.counters.decisions) one = next++ << 40U;
  for (std::uint64_t& one : kept.counters.mustpull_checks) one = next++;
  for (auto& present : kept.counters.ensure_image_requests) {
    for (auto& required : present) {
      for (std::uint64_t& one : required) one = next++;
    }
  }
  kept.counters.commit_failures = next++;
  kept.counters.write_back_failures = next++;
  kept.counters.write_backs_dropped = next++;
  kept.counters.id_range_failures = next++;
  BOOST_TEST(internal::EncodeCounters(kept).size() == empty);
  BOOST_TEST((internal::DecodeCounters(internal::EncodeCounters(kept)) == kept));
  kept.opening = OpeningSummary{
      {1'800'000'000, 999'999'999}, 1, 2, 3, 4, 5, 6, true, false, true, false, true, true};
  const auto payload = internal::EncodeCounters(kept);
  BOOST_TEST((internal::DecodeCounters(payload) == kept));
  for (std::size_t bytes = 0; bytes < payload.size(); ++bytes) {
    const auto cut = internal::DecodeCounters({payload.data(), bytes});
    BOOST_TEST(!(cut && *cut == kept), bytes);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
