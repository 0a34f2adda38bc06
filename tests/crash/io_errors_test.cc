// Each call that opening makes on a file fails with EIO, once or from then on. Such an error says
// nothing about what is stored: the message names the call and the path, and nothing is set aside;
// the next opening ends as one that nobody disturbed, as trusting as it, with all that was
// acknowledged.

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "migrations/kubelet/kubelet_export.h"
#include "migrations/kubelet/userns_file.h"
#include "tests/crash/recorder.h"
#include "tests/support/forked_child.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/model.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "tests/support/versions.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

namespace {

namespace fs = std::filesystem;

constexpr Timestamp kNow{kFakeEpoch, 0};

class Place {
 public:
  Place() { fs::create_directory(now()); }

  fs::path now() const { return scratch_ / "now"; }
  fs::path store() const { return now() / "store"; }
  fs::path kubelet() const { return now() / "kubelet"; }

  void Keep() const { Copy(now(), scratch_ / "before"); }
  void PutBack() const { Copy(scratch_ / "before", now()); }

  OpenOptions Options() const {
    OpenOptions options{.directory = store(), .witness = Witness::At(now() / "witness")};
    options.clock = [] { return kNow; };
    options.map_bytes = std::uint64_t{64} << 20U;
    if (fs::exists(kubelet())) options.kubelet_directory = kubelet();
    return options;
  }

 private:
  static void Copy(const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
    // An import tells by them what was written since.
    for (const auto& entry : fs::recursive_directory_iterator(from)) {
      fs::last_write_time(to / entry.path().lexically_relative(from), entry.last_write_time());
    }
  }

  const MemoryDir scratch_;
};

// An error is injected as long as this lives.
class FailingCall {
 public:
  FailingCall(const fs::path& below, std::uint64_t call, bool lasting) {
    InjectFault({.kind = Fault::Kind::kFail,
                 .call = call,
                 .error_number = EIO,
                 .lasting = lasting,
                 .below = below.string()});
  }
  ~FailingCall() { StopFaults(); }
  FailingCall(const FailingCall&) = delete;
  FailingCall& operator=(const FailingCall&) = delete;
};

std::string Ref(std::size_t i) { return "ref number " + std::to_string(100 + i); }
std::string Image(std::size_t i) { return "registry.example/app" + std::to_string(i) + ":v1"; }

// All that a store holds, whether it trusts that, and what was set aside.
std::string Everything(const NodeStore& store, const fs::path& directory) {
  std::set<std::string> lines;
  for (const auto& record : Must(store.ListRecords())) lines.insert(DescribeRecord(record));
  for (const auto& intent : Must(store.ListIntents())) lines.insert("intent " + intent.image);
  for (const auto& entry : Must(store.ListQuarantine())) {
    lines.insert("quarantine " + entry.sha256 + " " + entry.source);
  }
  for (const auto& pod : Must(store.ListUserNamespaces())) {
    lines.insert("pod " + pod.pod_uid + " " + std::to_string(pod.host_id));
  }
  for (const auto& pod : Must(store.ListHeldPods())) lines.insert("held " + pod.pod_uid);
  std::string text = Must(store.GetTrust()).distrustful ? "distrustful\n" : "trusting\n";
  for (const auto& line : lines) text += line + "\n";
  if (fs::exists(directory / "quarantine")) {
    const fs::directory_iterator aside(directory / "quarantine");
    text += std::to_string(std::distance(begin(aside), end(aside))) + " set aside\n";
  }
  return text;
}

using MakeOptions = std::function<OpenOptions()>;
using Work = std::function<Result<void>(NodeStore&)>;

std::string OpenAndTell(const OpenOptions& options) {
  auto store = Must(NodeStore::Open(options));
  BOOST_TEST(Must(store->Verify()).sound);
  std::string text = Everything(*store, options.directory);
  Must(store->Close());
  return text;
}

// kIo, or that nobody knows how a write ended. Names the path, and says nothing of a loss.
void CheckMessage(const Error& error, const fs::path& below) {
  const std::string text = error.ToString();
  BOOST_TEST_CONTEXT(text) {
    BOOST_TEST((error.code == ErrorCode::kIo || error.code == ErrorCode::kOutcomeUnknown));
    BOOST_TEST(text.find(below.string()) != std::string::npos);
    if (error.code == ErrorCode::kIo) {
      BOOST_TEST(text.find("Input/output error") != std::string::npos);
      BOOST_TEST(text.find("try again") != std::string::npos);
    }
    for (const char* word : {"gone", "lost", "damage", "fails its check", "does not verify"}) {
      BOOST_TEST(text.find(word) == std::string::npos);
    }
  }
}

// Fails each call of opening what is at `place` and of `work`. The number of calls.
std::uint64_t FailEachCall(const Place& place, const MakeOptions& options,
                           const Work& work = nullptr) {
  place.Keep();
  const std::string expected = OpenAndTell(options());
  std::string expected_after = expected;
  if (work) {
    place.PutBack();
    auto store = Must(NodeStore::Open(options()));
    Must(work(*store));
    Must(store->Close());
    expected_after = OpenAndTell(options());
  }
  std::uint64_t calls = 0;
  for (const bool lasting : {false, true}) {
    for (std::uint64_t call = 1;; ++call) {
      place.PutBack();
      bool happened = false;
      std::string where;
      std::optional<Error> error;
      {
        const OpenOptions with = options();
        const FailingCall failing(place.now(), call, lasting);
        auto store = NodeStore::Open(with);
        if (!store) {
          error = store.error();
        } else {
          if (work) {
            if (auto r = work(**store); !r) error = r.error();
          }
          if (auto r = (*store)->Close(); !r && !error) error = r.error();
        }
        happened = FaultHappened();
        where = FaultedCall();
      }
      if (!happened) break;
      ++calls;
      BOOST_TEST_CONTEXT((lasting ? "from call " : "call ") << call << " on, " << where) {
        if (error) CheckMessage(*error, place.now());
        const std::string after = OpenAndTell(options());
        // What was not acknowledged may be there.
        if (!error || after != expected) BOOST_TEST(after == expected_after);
      }
    }
  }
  BOOST_TEST_MESSAGE(calls << " calls failed");
  return calls;
}

void WriteKubeletFiles(const fs::path& directory) {
  for (std::size_t i = 0; i < 6; ++i) {
    ImagePulledRecord record{Ref(i), kNow, {}, 0};
    record.credential_mapping["registry.example/app" + std::to_string(i)] =
        WithSecret(MakeSecret("ns", "pull", "uid", std::to_string(i)));
    WriteRecordFile(directory, "pulled", record.image_ref, EncodePulledRecord(record));
  }
  for (std::size_t i = 10; i < 12; ++i) {
    WriteRecordFile(directory, "pulling", Image(i), EncodePullIntent({Image(i)}));
  }
  WriteRecordFile(directory, "pulled", "broken", "{");
  for (const std::uint32_t i : {1U, 2U}) {
    const fs::path pod = directory / "pods" / ("pod-" + std::to_string(i));
    fs::create_directories(pod);
    WriteFile(pod / "userns", internal::EncodeUsernsFile(i << 20U, 65536));
  }
  fs::create_directories(directory / "pods" / "without");
}

void Fill(const OpenOptions& options) {
  auto store = Must(NodeStore::Open(options));
  for (std::size_t i = 0; i < 20; ++i) {
    Must(store->RecordImagePulled({.image = Image(i), .image_ref = Ref(i)},
                                  WithSecret(MakeSecret("ns", "pull", "uid", "hash"))));
  }
  for (std::size_t i = 20; i < 23; ++i) Must(store->PutIntent({.image = Image(i)}));
  Must(store->Close());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(io_errors)

BOOST_AUTO_TEST_CASE(at_first_creation) {
  const Place place;
  BOOST_TEST(FailEachCall(place, [&] { return place.Options(); }) > 100U);
}

BOOST_AUTO_TEST_CASE(at_first_creation_beside_a_kubelet) {
  const Place place;
  fs::create_directories(place.kubelet() / "pods");
  const auto options = [&] {
    OpenOptions o = place.Options();
    o.witness = Witness::At(place.kubelet() / "image_manager" / "waybill");
    return o;
  };
  BOOST_TEST(FailEachCall(place, options) > 100U);
}

BOOST_AUTO_TEST_CASE(at_an_ordinary_opening) {
  const Place place;
  Fill(place.Options());
  BOOST_TEST(FailEachCall(place, [&] { return place.Options(); }) > 100U);
}

BOOST_AUTO_TEST_CASE(where_the_witness_is_remembered) {
  const Place place;
  Fill(place.Options());
  const auto options = [&] {
    OpenOptions o = place.Options();
    o.witness = Witness::Remembered();
    return o;
  };
  BOOST_TEST(FailEachCall(place, options) > 100U);
}

BOOST_AUTO_TEST_CASE(where_the_witness_is_moved) {
  const Place place;
  Fill(place.Options());
  const auto options = [&] {
    OpenOptions o = place.Options();
    o.witness = Witness::At(place.now() / "another");
    return o;
  };
  BOOST_TEST(FailEachCall(place, options) > 100U);
}

BOOST_AUTO_TEST_CASE(after_a_crash) {
  const Place place;
  Fill(place.Options());
  {
    // As a killed owner leaves it: its lock file says that it was open.
    auto store = Must(NodeStore::Open(place.Options()));
    fs::copy(place.store(), place.now() / "killed", fs::copy_options::recursive);
    Must(store->Close());
  }
  fs::remove_all(place.store());
  fs::rename(place.now() / "killed", place.store());
  fs::create_directory(place.store() / "new.tmp");
  WriteFile(place.store() / "new.tmp" / "data.mdb", "half a database");
  const auto options = [&] {
    OpenOptions o = place.Options();
    o.images_on_node.emplace();
    o.images_on_node->push_back({Ref(20), {Image(20)}, {}});
    return o;
  };
  BOOST_TEST(FailEachCall(place, options) > 100U);
}

BOOST_AUTO_TEST_CASE(while_a_kubelet_directory_is_imported) {
  const Place place;
  WriteKubeletFiles(place.kubelet());
  BOOST_TEST(FailEachCall(place, [&] { return place.Options(); }) > 200U);
}

// A look that fails must not make a file look as if it were written since.
BOOST_AUTO_TEST_CASE(while_a_kubelet_directory_is_imported_again) {
  const Place place;
  WriteKubeletFiles(place.kubelet());
  const auto options = [&] {
    OpenOptions o = place.Options();
    o.witness = Witness::At(place.kubelet() / "image_manager" / "waybill");
    return o;
  };
  static_cast<void>(OpenAndTell(options()));
  BOOST_TEST(FailEachCall(place, options) > 200U);
}

// Whatever can be named is closed, and nothing else; each opening ends the same.
BOOST_AUTO_TEST_CASE(what_cannot_be_read_is_skipped_where_that_is_said) {
  const Place place;
  WriteKubeletFiles(place.kubelet());
  const fs::path bad = place.kubelet() / RecordFile("pulled", Ref(3));
  const fs::path pod = place.kubelet() / "pods" / "pod-1" / "userns";
  for (int i = 0; i < 3; ++i) {
    OpenOptions options = place.Options();
    options.witness = Witness::At(place.kubelet() / "image_manager" / "waybill");
    for (const fs::path& path : {bad, pod}) {
      const FailingCall failing(path, 1, true);
      const auto refused = NodeStore::Open(options);
      BOOST_TEST_REQUIRE(!refused.has_value());
      BOOST_TEST((refused.error().code == ErrorCode::kIo));
      BOOST_TEST(refused.error().message.find(path.string()) != std::string::npos);
      BOOST_TEST((refused.error().hint_code == Hint::kSkipUnreadable));
    }
    options.skip_unreadable = true;
    const FailingCall failing(bad, 1, true);
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(!Must(store->GetTrust()).distrustful);
    BOOST_TEST(Must(store->ListRecords()).size() == 5U);
    const auto closed = Must(store->ListQuarantine());
    BOOST_TEST(std::count_if(closed.begin(), closed.end(), [](const QuarantineEntry& entry) {
                 return entry.sha256 == Sha256Hex(Ref(3));
               }) == 1);
    BOOST_TEST(Must(store->ListUserNamespaces()).size() == 2U);
    Must(store->Close());
  }
  // What was taken when it could be read is known, and tells of no gap when it can't.
  const fs::path known = place.kubelet() / RecordFile("pulled", Ref(4));
  OpenOptions options = place.Options();
  options.witness = Witness::At(place.kubelet() / "image_manager" / "waybill");
  options.skip_unreadable = true;
  const FailingCall failing(known, 1, true);
  auto store = Must(NodeStore::Open(options));
  BOOST_TEST(!Must(store->GetTrust()).distrustful);
  BOOST_TEST(!store->recovery_report().after_gap);
}

// As long as nobody says so a bad sector is no damage: the store stays as it is.
BOOST_AUTO_TEST_CASE(a_bad_sector_is_damage_where_that_is_said) {
  const Place place;
  Fill(place.Options());
  const fs::path database = place.store() / "data.mdb";
  const std::string before = ReadFile(database);
  std::vector<off_t> bad;
  for (std::size_t at = before.find(Ref(7)); at != std::string::npos;
       at = before.find(Ref(7), at + 1)) {
    bad.push_back(static_cast<off_t>(at));
  }
  BOOST_TEST_REQUIRE(!bad.empty());
  struct stat st {};
  BOOST_TEST_REQUIRE(stat(database.c_str(), &st) == 0);
  OpenOptions options = place.Options();
  for (int i = 0; i < 2; ++i) {
    SpoilSectors(st.st_ino, bad);
    const auto refused = NodeStore::Open(options);
    SpoilSectors(0, {});
    BOOST_TEST_REQUIRE(!refused.has_value());
    CheckMessage(refused.error(), database);
    BOOST_TEST((refused.error().hint_code == Hint::kSkipUnreadable));
    BOOST_TEST(!fs::exists(place.store() / "quarantine"));
    BOOST_TEST((ReadFile(database) == before));
  }
  options.skip_unreadable = true;
  SpoilSectors(st.st_ino, bad);
  {
    auto store = Must(NodeStore::Open(options));
    BOOST_TEST(store->recovery_report().set_aside);
    BOOST_TEST(Must(store->GetTrust()).distrustful);
    // A page may hold what is left of the record beside another table's values: those went, too.
    BOOST_TEST(Must(store->ListIntents()).size() <= 3U);
    BOOST_TEST(Must(store->ListRecords()).size() < 20U);
  }
  SpoilSectors(0, {});
}

BOOST_AUTO_TEST_CASE(while_an_older_store_is_migrated) {
  for (const std::uint32_t version : {1U, 2U}) {
    const Place place;
    PlaceGolden(place.store(), version);
    const auto options = [&] {
      OpenOptions o = place.Options();
      o.witness = Witness::None();
      return o;
    };
    BOOST_TEST(FailEachCall(place, options) > 100U);
  }
}

// The damage is real: what can be proven is carried over, at whichever attempt.
BOOST_AUTO_TEST_CASE(while_a_damaged_store_is_rebuilt) {
  const Place place;
  Fill(place.Options());
  const fs::path database = place.store() / "data.mdb";
  std::string bytes = ReadFile(database);
  const std::string damaged = Ref(7);
  for (std::size_t at = bytes.find(damaged); at != std::string::npos;
       at = bytes.find(damaged, at + 1)) {
    bytes[at] = 'R';
  }
  WriteFile(database, bytes);
  BOOST_TEST(FailEachCall(place, [&] { return place.Options(); }) > 200U);
  auto store = Must(NodeStore::Open(place.Options()));
  BOOST_TEST(Must(store->GetTrust()).distrustful);
  BOOST_TEST(Must(store->ListRecords()).size() == 19U);
}

// The meta page of each commit among them: LMDB leaves the roots of a commit that failed there.
BOOST_AUTO_TEST_CASE(while_a_pull_is_recorded) {
  const Place place;
  Fill(place.Options());
  const Work work = [](NodeStore& store) -> Result<void> {
    if (auto r = store.RecordPullIntent({.image = "registry.example/new:v1"}); !r) return r;
    return {};
  };
  BOOST_TEST(FailEachCall(
                 place, [&] { return place.Options(); }, work) > 100U);
}

BOOST_AUTO_TEST_CASE(while_a_store_is_observed) {
  for (const bool has_owner : {false, true}) {
    const Place place;
    Fill(place.Options());
    Shared<std::atomic<bool>> is_open;
    std::optional<Child> owner;
    if (has_owner) {
      owner.emplace([&] {
        auto store = Must(NodeStore::Open(place.Options()));
        is_open->store(true);
        while (true) pause();
        return 0;
      });
      while (!is_open->load()) std::this_thread::yield();
    }
    const auto observe = [&] { return NodeStore::Observe({.directory = place.store()}); };
    for (const bool lasting : {false, true}) {
      for (std::uint64_t call = 1;; ++call) {
        std::optional<Error> error;
        {
          const FailingCall failing(place.now(), call, lasting);
          if (auto store = observe(); !store) error = store.error();
          if (!FaultHappened()) break;
        }
        BOOST_TEST_CONTEXT((lasting ? "from call " : "call ") << call << " on, " << FaultedCall()) {
          if (error) CheckMessage(*error, place.now());
          auto store = Must(observe());
          BOOST_TEST(!Must(store->GetTrust()).distrustful);
          BOOST_TEST(Must(store->ListRecords()).size() == 20U);
        }
      }
    }
  }
}

// A look that fails is neither yes nor no: nothing asks for the next free name for ever.
BOOST_AUTO_TEST_CASE(an_export_ends_where_every_look_fails) {
  const Place place;
  WriteKubeletFiles(place.kubelet());
  place.Keep();
  const Tree before = TreeOf(place.kubelet());
  internal::ExportContent content;
  content.now = kNow;
  content.records.push_back({Ref(1), kNow, {}, 0});
  content.allocations.push_back({"pod-1", 7U << 20U, 65536, {}, PoolRelation::kInPool});
  for (const bool lasting : {false, true}) {
    for (std::uint64_t call = 1;; ++call) {
      place.PutBack();
      bool happened = false;
      std::string where;
      {
        const FailingCall failing(place.now(), call, lasting);
        auto done =
            internal::ExportKubeletDirectory(content, {.kubelet_directory = place.kubelet()});
        happened = FaultHappened();
        where = FaultedCall();
        if (!done) CheckMessage(done.error(), place.now());
      }
      if (!happened) break;
      BOOST_TEST_CONTEXT((lasting ? "from call " : "call ") << call << " on, " << where) {
        const Tree after = TreeOf(place.kubelet());
        for (const auto& [path, was] : before) {
          const auto same = [&was = was](const auto& other) { return other.second == was; };
          BOOST_TEST(std::any_of(after.begin(), after.end(), same), path << " is lost");
        }
        Must(internal::ExportKubeletDirectory(content, {.kubelet_directory = place.kubelet()}));
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
