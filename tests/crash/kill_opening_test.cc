// Opening is killed before each call that changes or syncs a file: creating, importing, replaying,
// rebuilding, closing. The next opening ends as one that nobody disturbed.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "tests/crash/recorder.h"
#include "tests/support/forked_child.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/model.h"
#include "tests/support/store_fixture.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

namespace {

constexpr Timestamp kNow{kFakeEpoch, 0};

struct Place {
  explicit Place(const MemoryDir& scratch) : now(scratch / "now"), before(scratch / "before") {}
  std::filesystem::path now;     // where it happens
  std::filesystem::path before;  // a copy from before it happened

  void Keep() const { Copy(now, before); }
  void PutBack() const { Copy(before, now); }
  OpenOptions Options(Rules rules) const {
    OpenOptions options{.directory = now / "store", .witness = Witness::At(now / "witness")};
    options.rules = rules;
    options.clock = [] { return kNow; };
    options.map_bytes = std::uint64_t{64} << 20U;
    if (std::filesystem::exists(now / "kubelet")) options.kubelet_directory = now / "kubelet";
    return options;
  }

 private:
  static void Copy(const std::filesystem::path& from, const std::filesystem::path& to) {
    std::filesystem::remove_all(to);
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  }
};

// All that a store holds, and what became of its directory.
std::string Everything(const NodeStore& store, const std::filesystem::path& directory) {
  std::set<std::string> lines;
  for (const auto& record : Must(store.ListRecords())) lines.insert(DescribeRecord(record));
  for (const auto& intent : Must(store.ListIntents())) lines.insert("intent " + intent.image);
  for (const auto& entry : Must(store.ListQuarantine())) {
    lines.insert("quarantine " + entry.sha256 + " " + entry.source);
  }
  const TrustState trust = Must(store.GetTrust());
  std::string text = trust.distrustful ? "distrustful " : "trustful ";
  text += std::to_string(trust.journal.size()) + "\n";
  for (const auto& line : lines) text += line + "\n";
  if (std::filesystem::exists(directory / "quarantine")) {
    const std::filesystem::directory_iterator aside(directory / "quarantine");
    text += std::to_string(std::distance(begin(aside), end(aside))) + " databases set aside\n";
  }
  return text;
}

using Options = std::function<OpenOptions()>;
using Then = std::function<void(NodeStore&)>;

std::string OpenAndTell(const OpenOptions& options, const Then& then) {
  auto store = Must(NodeStore::Open(options));
  if (then) then(*store);
  BOOST_TEST(Must(store->Verify()).sound);
  std::string text = Everything(*store, options.directory);
  Must(store->Close());
  return text;
}

int OpenInChild(const OpenOptions& options, const Then& then) {
  auto store = NodeStore::Open(options);
  if (!store) return 3;
  if (then) then(**store);
  return (*store)->Close() ? 0 : 4;
}

// What is at `place` is opened, and killed before call 1, 2, 3 … until nothing is left to kill. The
// number of calls.
std::uint64_t KillBeforeEachCall(const Place& place, const Options& options,
                                 const Then& then = nullptr) {
  place.Keep();
  const std::string expected = OpenAndTell(options(), then);
  for (std::uint64_t call = 1;; ++call) {
    place.PutBack();
    Child child([&] {
      KillBeforeCall(call);
      return OpenInChild(options(), then);
    });
    const int code = child.Wait();
    BOOST_TEST_CONTEXT("killed before call " << call) {
      BOOST_REQUIRE((code == 0 || code == -SIGKILL));
      BOOST_REQUIRE(OpenAndTell(options(), then) == expected);
    }
    if (code == 0) return call;
  }
}

std::string Ref(std::size_t i) { return "sha256:" + Sha256Hex("ref " + std::to_string(i)); }
std::string Image(std::size_t i) { return "registry.example/app" + std::to_string(i) + ":v1"; }

void WriteKubeletFiles(const std::filesystem::path& directory, std::size_t records,
                       std::size_t intents, std::size_t broken) {
  for (std::size_t i = 0; i < records; ++i) {
    ImagePulledRecord record{Ref(i), kNow, {}, 0};
    record.credential_mapping["registry.example/app" + std::to_string(i)] =
        WithSecret(MakeSecret("ns", "pull", "uid", std::to_string(i)));
    WriteRecordFile(directory, "pulled", record.image_ref, EncodePulledRecord(record));
  }
  for (std::size_t i = 0; i < intents; ++i) {
    WriteRecordFile(directory, "pulling", Image(i), EncodePullIntent({Image(i)}));
  }
  for (std::size_t i = 0; i < broken; ++i) {
    WriteRecordFile(directory, "pulled", "broken " + std::to_string(i), "{");
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kill_opening)

BOOST_AUTO_TEST_CASE(while_a_store_is_made) {
  const MemoryDir scratch;
  const Place place(scratch);
  std::filesystem::create_directory(place.now);
  BOOST_TEST(KillBeforeEachCall(place, [&] { return place.Options(Rules::kClosed); }) > 20U);
}

BOOST_AUTO_TEST_CASE(while_closing) {
  const MemoryDir scratch;
  const Place place(scratch);
  std::filesystem::create_directory(place.now);
  const auto options = [&] { return place.Options(Rules::kKubelet); };
  static_cast<void>(OpenAndTell(options(), nullptr));
  const Then then = [](NodeStore& store) {
    Must(store.RecordPullIntent({.image = Image(0)}));
    Must(store.RecordImagePulled({.image = Image(1), .image_ref = Ref(1)}, NodeWide()));
  };
  BOOST_TEST(KillBeforeEachCall(place, options, then) > 10U);
}

BOOST_AUTO_TEST_CASE(while_intents_are_replayed) {
  for (const Rules rules : kBothRules) {
    const MemoryDir scratch;
    const Place place(scratch);
    std::filesystem::create_directory(place.now);
    const Then put = [](NodeStore& store) {
      for (std::size_t i = 0; i < 60; ++i) Must(store.PutIntent({.image = Image(i)}));
    };
    static_cast<void>(OpenAndTell(place.Options(rules), put));
    const auto options = [&] {
      OpenOptions o = place.Options(rules);
      o.images_on_node.emplace();
      for (std::size_t i = 0; i < 40; ++i) o.images_on_node->push_back({Ref(i), {Image(i)}, {}});
      return o;
    };
    BOOST_TEST(KillBeforeEachCall(place, options) > 10U);
  }
}

BOOST_AUTO_TEST_CASE(while_a_kubelet_directory_is_imported) {
  const MemoryDir scratch;
  const Place place(scratch);
  std::filesystem::create_directory(place.now);
  WriteKubeletFiles(place.now / "kubelet", 60, 20, 3);
  BOOST_TEST(KillBeforeEachCall(place, [&] { return place.Options(Rules::kClosed); }) > 20U);
}

BOOST_AUTO_TEST_CASE(while_a_damaged_database_is_rebuilt) {
  const MemoryDir scratch;
  const Place place(scratch);
  std::filesystem::create_directory(place.now);
  const auto options = [&] { return place.Options(Rules::kClosed); };
  const Then put = [](NodeStore& store) {
    for (std::size_t i = 0; i < 60; ++i) {
      Must(store.RecordImagePulled(
          {.image = Image(i), .image_ref = "ref number " + std::to_string(i)},
          WithSecret(MakeSecret("ns", "pull", "uid", "hash"))));
    }
    for (std::size_t i = 0; i < 10; ++i) Must(store.PutIntent({.image = Image(i)}));
  };
  static_cast<void>(OpenAndTell(options(), put));
  const auto database = place.now / "store" / "data.mdb";
  std::string bytes = ReadFile(database);
  const std::string damaged = "ref number 17";
  for (std::size_t at = bytes.find(damaged); at != std::string::npos;
       at = bytes.find(damaged, at + 1)) {
    bytes[at] = 'R';
  }
  WriteFile(database, bytes);
  BOOST_TEST(KillBeforeEachCall(place, options) > 20U);
  auto store = Must(NodeStore::Open(options()));
  BOOST_TEST(store->recovery_report().distrustful);
  BOOST_TEST(Must(store->ListIntents()).size() == 10U);
  BOOST_TEST(Must(store->ListRecords()).size() == 59U);
}

// Again and again, each time a little further, until it is done.
BOOST_AUTO_TEST_CASE(while_three_thousand_files_are_imported) {
  const std::uint64_t seed = SeedOfThisRun();
  BOOST_TEST_MESSAGE("seed " << seed);
  Draw draw(seed);
  const MemoryDir scratch;
  const Place place(scratch);
  std::filesystem::create_directory(place.now);
  WriteKubeletFiles(place.now / "kubelet", 2700, 290, 10);
  place.Keep();
  const auto options = [&] { return place.Options(Rules::kClosed); };
  const std::string expected = OpenAndTell(options(), nullptr);
  place.PutBack();
  std::uint64_t kills = 0;
  while (true) {
    const std::uint64_t calls = 5 + draw.Below(50);
    Child child([&] {
      KillBeforeCall(calls);
      return OpenInChild(options(), nullptr);
    });
    const int code = child.Wait();
    BOOST_REQUIRE((code == 0 || code == -SIGKILL));
    if (code == 0) break;
    ++kills;
  }
  BOOST_TEST_MESSAGE(kills << " kills");
  BOOST_TEST(OpenAndTell(options(), nullptr) == expected);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
