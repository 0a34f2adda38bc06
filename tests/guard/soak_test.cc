// Hours of a node in seconds: the guard's memory, its descriptors and its commits stay where they
// are. WAYBILL_SOAK_HOURS: more of them (24 take a minute); WAYBILL_SEED: the same ones again.

#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <thread>

#include "guard/guard.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "tests/support/draw.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

BOOST_AUTO_TEST_SUITE(soak)

namespace {

using namespace waybill;           // NOLINT(google-build-using-namespace)
using namespace waybill::testing;  // NOLINT(google-build-using-namespace)
using waybill::guard::Guard;
using waybill::guard::HoleKind;

constexpr int kPeriodsOfHour = 12;  // of five minutes
constexpr int kListsOfPeriod = 60;
constexpr int kImages = 110;

std::string Ref(int number) { return "sha256:" + Sha256Hex("image " + std::to_string(number)); }
std::string RepositoryAt(int number) {
  return "r.example/team-" + std::to_string(number % 7) + "/app";
}
std::string Tag(int number) { return RepositoryAt(number) + ":v" + std::to_string(number); }

struct Held {
  std::size_t heap = 0;  // 0: a sanitiser took malloc's place
  std::size_t private_pages = 0;
  std::size_t descriptors = 0;
};
Held HeldNow() {
  Held held;
  ::malloc_trim(0);
  held.heap = ::mallinfo2().uordblks;
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  std::size_t shared = 0;
  statm >> size >> resident >> shared;
  held.private_pages = resident - shared;
  held.descriptors = static_cast<std::size_t>(std::distance(
      std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()));
  return held;
}

// A kubelet and a runtime beside a guard, in time that a test moves.
class Day {
 public:
  explicit Day(std::uint64_t seed) : random_(seed) {
    for (const char* folder :
         {"", "image_manager", "image_manager/pulled", "image_manager/pulling", "pods"}) {
      std::filesystem::create_directory(kubelet() / folder);
      std::filesystem::permissions(kubelet() / folder, std::filesystem::perms::owner_all);
    }
    for (next_ = 0; next_ < kImages; ++next_) {
      present_.insert(next_);
      WriteRecord(next_);
    }
    waybill::guard::GuardOptions options;
    options.kubelet_directory = kubelet();
    options.store.directory = scratch_ / "store";
    options.store.clock = clock_.AsClock();
    options.store.boot_clock = clock_.AsBootClock();
    options.list_images = [this] { return Result<std::vector<ListedImage>>(Listed()); };
    options.on_hole = [this](const waybill::guard::Hole&) { ++holes_; };
    options.synced = [this](const std::filesystem::path&) { ++synced_; };
    guard_ = Must(Guard::Start(std::move(options)));
  }

  void List() {
    const auto token = Must(guard_->BeginList());
    Must(guard_->TakeList(token, Listed()));
  }
  void Follow() {
    Must(guard_->Again());
    if (guard_->wants_list()) List();
  }
  // Five seconds, in which nothing happens.
  void Wait() {
    clock_.AdvanceSeconds(5);
    Follow();
    List();
  }
  void Compare() {
    Must(guard_->Compare());
    Follow();
  }

  // A pull from its intent to its record.
  void Pull() {
    const int number = next_++;
    WriteFile(kubelet() / RecordFile("pulling", Tag(number)),
              EncodePullIntent({.image = Tag(number)}));
    Must(guard_->Again());
    clock_.AdvanceSeconds(3);
    present_.insert(number);
    if (!random_.OneIn(10)) WriteRecord(number);
    std::filesystem::remove(kubelet() / RecordFile("pulling", Tag(number)));
    Follow();
  }
  void Collect() {
    while (present_.size() > kImages) {
      const auto at = AnyPresent();
      const int number = *at;
      present_.erase(at);
      std::filesystem::remove(kubelet() / RecordFile("pulled", Ref(number)));
    }
    Follow();
  }
  // Its collector was handed a part of the images.
  void LoseRecord() {
    const int number = *AnyPresent();
    std::filesystem::remove(kubelet() / RecordFile("pulled", Ref(number)));
    Follow();
  }
  void LetAPodLive() {
    const std::string uid = "pod-" + std::to_string(++pods_);
    std::filesystem::create_directory(kubelet() / "pods" / uid);
    WriteFile(kubelet() / "pods" / uid / "etc", "");
    Must(guard_->Again());
    std::filesystem::remove_all(kubelet() / "pods" / uid);
    Must(guard_->Again());
  }
  void Period() {
    const auto pulls = static_cast<int>(random_.Below(8));
    for (int i = 0; i < pulls; ++i) Pull();
    for (std::size_t i = random_.Below(4); i > 0; --i) LetAPodLive();
    Collect();
    if (random_.OneIn(3)) LoseRecord();
    clock_.AdvanceSeconds(300 - 3 * pulls);
    List();
    Compare();
  }

  std::uint64_t Commits() const { return Must(guard_->store().GetStatistics()).commit_sequence; }
  // Of images on the node.
  std::size_t Records() const {
    const auto records = Must(guard_->store().ListRecords());
    return static_cast<std::size_t>(std::count_if(
        records.begin(), records.end(), [](const auto& one) { return !one.absent_since; }));
  }
  std::size_t OpenPulls() const { return Must(guard_->store().GetStatistics()).intents; }
  const waybill::guard::GuardStatus& status() const { return guard_->status(); }
  std::size_t holes() const { return holes_; }
  std::size_t synced() const { return synced_; }
  std::uint64_t pulls() const { return static_cast<std::uint64_t>(next_); }
  void Stop() { Must(guard_->Stop()); }

 private:
  std::filesystem::path kubelet() const { return scratch_ / "kubelet"; }
  std::set<int>::const_iterator AnyPresent() {
    return std::next(present_.begin(), static_cast<std::ptrdiff_t>(random_.Below(present_.size())));
  }
  static void WriteFile(const std::filesystem::path& path, const std::string& content) {
    waybill::testing::WriteFile(path.string() + ".tmp", content);
    std::filesystem::rename(path.string() + ".tmp", path);
  }
  void WriteRecord(int number) const {
    const ImagePullSecret secret = {.uid = "u",
                                    .namespace_name = "team",
                                    .name = "pull",
                                    .credential_hash = "hash-" + std::to_string(number % 7)};
    WriteFile(kubelet() / RecordFile("pulled", Ref(number)),
              EncodePulledRecord({.image_ref = Ref(number),
                                  .last_updated = clock_.Now(),
                                  .credential_mapping = {
                                      {RepositoryAt(number), {.kubernetes_secrets = {secret}}}}}));
  }
  std::vector<ListedImage> Listed() const {
    std::vector<ListedImage> images;
    for (const int number : present_) {
      ListedImage image{.id = Ref(number)};
      image.repo_tags = {Tag(number)};
      images.push_back(std::move(image));
    }
    return images;
  }

  MemoryDir scratch_;
  FakeClock clock_;
  testing::Draw random_;
  std::set<int> present_;
  int next_ = 0;
  int pods_ = 0;
  std::size_t holes_ = 0;
  std::size_t synced_ = 0;  // files and folders of the kubelet
  std::unique_ptr<Guard> guard_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(a_day_leaves_nothing_behind) {
  Day day(SeedOfThisRun());
  for (int i = 0; i < 2 * kPeriodsOfHour; ++i) day.Period();
  const Held before = HeldNow();
  const std::size_t pulls_before = day.OpenPulls();
  const auto commits_before = day.Commits();
  const auto pulls_begun = day.pulls();
  const auto periods = NumberFromEnv("WAYBILL_SOAK_HOURS", 4) * kPeriodsOfHour;
  for (std::uint64_t i = 0; i < periods; ++i) day.Period();
  const Held after = HeldNow();
  BOOST_TEST_MESSAGE("heap " << before.heap << " to " << after.heap << " bytes, private pages "
                             << before.private_pages << " to " << after.private_pages
                             << ", descriptors " << before.descriptors << " to "
                             << after.descriptors << ", open pulls " << pulls_before << " to "
                             << day.OpenPulls() << ", records " << day.Records() << ", commits "
                             << day.Commits() << ", events " << day.status().events << ", holes "
                             << day.holes());
  BOOST_TEST(day.holes() > 0U);
  BOOST_TEST(day.Records() <= 2U * kImages);
  BOOST_TEST(after.descriptors == before.descriptors);
  if (before.heap != 0) {
    BOOST_TEST(after.heap < before.heap + (std::size_t{1} << 20));
    // 4 MiB of pages: what malloc keeps for itself goes up and down.
    BOOST_TEST(after.private_pages < before.private_pages + 1024);
  }
  // What happened is committed, not how long it took: four for a pull, a few for the rest.
  BOOST_TEST(day.Commits() - commits_before <= 8 * (day.pulls() - pulls_begun) + 12 * periods);
  day.Stop();
}

BOOST_AUTO_TEST_CASE(an_idle_hour_writes_nothing) {
  Day day(1);
  day.Period();
  day.List();
  // What changed in this second could change again without a trace, so it is synced once more.
  for (std::size_t tries = 0, before = day.synced() + 1; day.synced() != before && tries < 100;
       ++tries) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    before = day.synced();
    day.Compare();
  }
  const auto commits = day.Commits();
  const auto written = day.status().files_written;
  const auto synced = day.synced();
  for (int i = 0; i < kPeriodsOfHour; ++i) {
    for (int list = 0; list < kListsOfPeriod; ++list) day.Wait();
    day.Compare();
  }
  BOOST_TEST(day.Commits() == commits);
  BOOST_TEST(day.status().files_written == written);
  BOOST_TEST(day.synced() == synced);
}

BOOST_AUTO_TEST_SUITE_END()
