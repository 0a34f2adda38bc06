// A witness that is gone, replaced, in the wrong place, or another program's file.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "store/maintenance.h"
#include "store/opening/witness.h"
#include "tests/corruption/scene.h"
#include "tests/support/damage.h"
#include "tests/support/expect_error.h"
#include "tests/support/inspect_path.h"
#include "tests/support/tree.h"

namespace {

namespace fs = std::filesystem;
using namespace waybill;
using namespace waybill::testing;
using waybill::testing::NodeStore;

struct WitnessScene : Scene {
  // The data.mdb of each state that a history leaves, in which kSecretA is revoked in the end.
  std::vector<std::string> History() {
    std::vector<std::string> files;
    for (int i = 0; i < 3; ++i) {
      store.Pull("registry.example.com/team/other:v" + std::to_string(i), kRef2, NodeWide());
      store.Stop();
      files.push_back(ReadFile(database()));
      store.Start();
    }
    Must(store->DeleteRecord({.image_ref = kRef}));
    Rotate();
    store.Stop();
    return files;
  }
  void PutBack(const std::string& file) const {
    WriteFile(database(), file);
    fs::remove(store.directory() / "lock.mdb");
  }
  Result<std::unique_ptr<NodeStore>> Open(const Witness& witness) const {
    NodeStoreOptions options = store.Options({});
    options.witness = witness;
    return NodeStore::Open(options);
  }
  OpeningReport OpenAndClose(const Witness& witness) const {
    auto opened = Must(Open(witness));
    const OpeningReport report = opened->recovery_report();
    Must(opened->Close());
    return report;
  }
  std::string Remembered() const { return InspectPath(database()).identity->witness_path; }
  void CheckStale(const OpeningReport& report) const {
    BOOST_TEST(report.distrustful);
    BOOST_TEST(report.records_without_credentials > 0U);
    BOOST_REQUIRE(!report.findings.empty());
    BOOST_TEST(report.findings.front().find("witness") != std::string::npos);
  }
  void CheckRefused(const fs::path& witness) const {
    const Tree before = TreeOf(store.scratch());
    ExpectError(Open(Witness::At(witness)), ErrorCode::kInvalidArgument);
    Tree after = TreeOf(store.scratch());
    if (before.contains("store/owner.lock")) {
      after["store/owner.lock"] = before.at("store/owner.lock");
    }
    for (const auto& [path, content] : after) {
      BOOST_TEST((before.contains(path) && before.at(path) == content), witness << ": " << path);
    }
    BOOST_TEST(after.size() == before.size());
  }
};

BOOST_FIXTURE_TEST_SUITE(missing_witness, WitnessScene)

BOOST_AUTO_TEST_CASE(every_older_file_without_a_witness_that_can_be_read_opens_nothing_revoked) {
  const fs::path another = store.scratch() / "new";
  struct Way {
    const char* left;  // under the witness's name; null: it is removed
    Witness witness;
  };
  const Way kWays[] = {{nullptr, Witness::At(store.witness())},
                       {nullptr, Witness::Remembered()},
                       {nullptr, Witness::At(another)},
                       {"garbage", Witness::At(store.witness())}};
  for (const std::string& file : History()) {
    for (const auto& [left, witness] : kWays) {
      PutBack(file);
      fs::remove(another);
      fs::remove(store.witness());
      if (left != nullptr) WriteFile(store.witness(), left);
      ExpectError(NodeStore::Observe({.directory = store.directory()}), ErrorCode::kDamaged);
      const OpeningReport report = OpenAndClose(witness);
      CheckStale(report);
      BOOST_TEST(report.witness_made == (left == nullptr));
      if (witness.path() == another) continue;
      store.Start();
      BOOST_TEST(store->recovery_report().findings.empty());
      BOOST_TEST(store->recovery_report().distrustful);
      BOOST_TEST(Pulls(kThief));
      BOOST_TEST(Pulls(kSecretA));
      BOOST_TEST(store.Check(kImage, "sha256:none").pull);
      store.Stop();
    }
  }
}

BOOST_AUTO_TEST_CASE(removed_or_replaced_under_an_owner_that_is_idle_or_writes) {
  const std::string older = ReadFile(store.witness());
  const std::function<void()> kWays[] = {
      [&] { fs::remove(store.witness()); }, [&] { WriteFile(store.witness(), older); },
      [&] { WriteFile(store.witness(), "garbage"); }, [&] { WriteFile(store.witness(), ""); },
      [&] {
        WriteFile(store.scratch() / "copy", older);
        fs::rename(store.scratch() / "copy", store.witness());
      }};
  for (const auto& change : kWays) {
    for (const bool writes : {false, true}) {
      const auto way = &change - kWays;
      // What was written over in place it writes again.
      if (writes && way >= 1 && way <= 3) continue;
      BOOST_TEST_CONTEXT(way << (writes ? " writes" : " idle")) {
        store.Pull(kImage, kRef, WithSecret(kSecretA));
        change();
        if (writes) {
          // It looks at every other commit, and leaves no older copy.
          Must(store->PutIntent({.image = "registry.example.com/more:v1"}));
          Must(store->DeleteIntent({.image = "registry.example.com/more:v1"}));
          BOOST_TEST(!fs::exists(store.witness()));
        }
        const auto closed = store->Close();
        ExpectError(closed, ErrorCode::kDamaged);
        BOOST_TEST(closed.error().message.find(store.witness().string()) != std::string::npos);
        store.Start();
        CheckStale(store->recovery_report());
        BOOST_TEST(Pulls(kSecretA));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(a_new_path_and_the_word_forget_one_that_is_gone) {
  store.Stop();
  fs::remove(store.witness());
  const fs::path moved = store.scratch() / "moved";
  const OpeningReport report = OpenAndClose(Witness::Anew(moved));
  BOOST_TEST(report.findings.empty());
  BOOST_TEST(!report.distrustful);
  BOOST_TEST(Remembered() == moved.string());
  // The word is not for the next time.
  fs::remove(moved);
  CheckStale(OpenAndClose(Witness::Anew(moved)));
}

BOOST_AUTO_TEST_CASE(none_forgets_the_one_that_is_remembered) {
  store.Stop();
  fs::remove(store.witness());
  BOOST_TEST(!OpenAndClose(Witness::None()).distrustful);
  BOOST_TEST(Remembered().empty());
  BOOST_TEST(!OpenAndClose(Witness::Remembered()).distrustful);
  BOOST_TEST(Must(NodeStore::Observe({.directory = store.directory()})) != nullptr);
  store.Start();
  BOOST_TEST(store->recovery_report().witness_made);
  BOOST_TEST(!store->recovery_report().distrustful);
  BOOST_TEST(!Pulls(kSecretA));
}

BOOST_AUTO_TEST_CASE(one_that_was_moved_by_hand_goes_on_testifying) {
  store.Stop();
  const fs::path moved = store.scratch() / "moved";
  fs::rename(store.witness(), moved);
  BOOST_TEST(!OpenAndClose(Witness::At(moved)).distrustful);
  BOOST_TEST(Remembered() == moved.string());
}

// What stayed behind of a move tells that copies from before it are old.
BOOST_AUTO_TEST_CASE(a_file_from_before_the_witness_moved_is_stale) {
  store.Stop();
  const std::string before = ReadFile(database());
  const fs::path moved = store.scratch() / "moved";
  BOOST_TEST(!OpenAndClose(Witness::At(moved)).distrustful);
  PutBack(before);
  CheckStale(OpenAndClose(Witness::Remembered()));
}

BOOST_AUTO_TEST_CASE(migrating_believes_no_store_without_its_witness) {
  store.Stop();
  fs::remove(store.witness());
  ExpectError(MigrateStore({.directory = store.directory(), .to = 1, .clock = SystemClock}),
              ErrorCode::kDamaged);
}

// --- Where it may be

BOOST_AUTO_TEST_CASE(what_is_no_witness_is_never_overwritten) {
  store.Stop();
  const fs::path other = store.scratch() / "other";
  for (const bool is_new : {false, true}) {
    if (is_new) fs::remove_all(store.directory());
    for (const std::string& content :
         {std::string("root:x:0:0\n"), std::string("\n"), std::string("waybill\0x", 9)}) {
      WriteFile(other, content);
      CheckRefused(other);
    }
    fs::remove(other);
    fs::create_directory(other);
    CheckRefused(other);
    CheckRefused(other / "");
    fs::remove(other);
    fs::create_symlink(store.witness(), other);
    CheckRefused(other);
    fs::remove(other);
    WriteFile(store.scratch() / "other.tmp", "somebody's");
    CheckRefused(other);
    fs::remove(store.scratch() / "other.tmp");
    BOOST_TEST(fs::exists(store.directory()) == !is_new);
  }
}

// What a power cut may leave of a first witness, which a disk may fill with zeros.
std::vector<std::string> Unfinished(const std::string& whole) {
  return {std::string(),
          std::string(whole.size(), '\0'),
          std::string(512, '\0'),
          whole.substr(0, 9),
          whole.substr(0, 40) + std::string(53, '\0'),
          whole.substr(0, whole.size() - 1)};
}

// What no owner left: another text, more than one line, and each byte changed.
std::vector<std::string> NoLines(const std::string& whole) {
  std::vector<std::string> contents = {"garbage\n", whole + whole, std::string(1 << 20, 'x')};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    contents.push_back(whole);
    FlipBit(contents.back(), at * 8);
  }
  return contents;
}

BOOST_AUTO_TEST_CASE(one_that_was_never_completed_is_made_anew) {
  store.Stop();
  const std::string whole = ReadFile(store.witness());
  const fs::path other = store.scratch() / "other";
  const fs::path temporary = store.scratch() / "other.tmp";
  for (const bool is_new : {false, true}) {
    std::vector<std::string> contents = Unfinished(whole);
    contents.push_back(whole);
    for (const std::string& content : contents) {
      OpenAndClose(Witness::None());
      fs::remove(other);
      if (is_new) fs::remove_all(store.directory());
      WriteFile(temporary, content);
      const OpeningReport report = OpenAndClose(Witness::At(other));
      BOOST_TEST(!report.distrustful, report.distrust_reason);
      BOOST_TEST(report.witness_made != is_new);
      BOOST_TEST(!fs::exists(temporary));
      BOOST_TEST(Must(internal::ReadMark(other)).line.has_value());
    }
  }
}

// It may have been a whole one.
BOOST_AUTO_TEST_CASE(one_that_can_not_be_read_is_distrusted_and_made_anew) {
  store.Stop();
  const std::string whole = ReadFile(store.witness());
  for (const bool is_new : {false, true}) {
    for (const bool remembered : {false, true}) {
      std::vector<std::string> contents = Unfinished(whole);
      if (remembered && !is_new) {
        for (const std::string& other : NoLines(whole)) contents.push_back(other);
      }
      for (const std::string& content : contents) {
        if (!remembered) OpenAndClose(Witness::None());
        if (is_new) fs::remove_all(store.directory());
        WriteFile(store.witness(), content);
        BOOST_TEST(OpenAndClose(Witness::At(store.witness())).distrustful);
        BOOST_TEST(Must(internal::ReadMark(store.witness())).line.has_value());
        const OpeningReport next = OpenAndClose(Witness::At(store.witness()));
        BOOST_TEST(next.findings.empty());
        BOOST_TEST(next.distrustful);
      }
    }
  }
}

// No state of a disk that a kubelet starts with keeps a node from starting.
BOOST_AUTO_TEST_CASE(somebody_elses_file_below_the_kubelet_directory_is_distrust) {
  store.Stop();
  const fs::path folder = store.kubelet_directory() / "image_manager";
  const fs::path witness = folder / "waybill";
  fs::create_directory(folder);
  const std::vector<std::pair<fs::path, std::string>> files = {{witness, "somebody's"},
                                                               {folder / "waybill.tmp", "theirs"}};
  for (const bool is_new : {false, true}) {
    for (const auto& [path, content] : files) {
      OpenAndClose(Witness::None());
      if (is_new) fs::remove_all(store.directory());
      WriteFile(path, content);
      for (int times = 0; times < 2; ++times) {
        const OpeningReport report = OpenAndClose(Witness::At(witness));
        BOOST_TEST(report.distrustful);
        BOOST_TEST(report.distrust_reason.find(witness.string()) != std::string::npos,
                   report.distrust_reason);
        BOOST_TEST(ReadFile(path) == content);
        BOOST_TEST(Remembered().empty());
      }
      fs::remove(path);
      BOOST_TEST(OpenAndClose(Witness::At(witness)).distrustful);
      BOOST_TEST(Remembered() == witness.string());
      fs::remove(witness);
    }
  }
}

BOOST_AUTO_TEST_CASE(with_somebody_elses_file_in_its_place_the_remembered_one_goes_on) {
  const fs::path folder = store.kubelet_directory() / "image_manager";
  const fs::path witness = folder / "waybill";
  fs::create_directory(folder);
  store.Stop();
  const std::string older = ReadFile(database());
  WriteFile(witness, "somebody's");
  for (int times = 0; times < 2; ++times) {
    const OpeningReport report = OpenAndClose(Witness::At(witness));
    BOOST_TEST(!report.distrustful, report.distrust_reason);
    BOOST_TEST(!report.warnings.empty());
    BOOST_TEST(report.records_without_credentials == 0U);
    BOOST_TEST(Remembered() == store.witness().string());
  }
  store.Start();
  BOOST_TEST(!Pulls(kSecretA));
  Rotate();
  store.Stop();
  PutBack(older);
  fs::remove(store.directory() / "commit.mark");
  CheckStale(OpenAndClose(Witness::At(witness)));
  BOOST_TEST(ReadFile(witness) == "somebody's");
}

// A store that was wiped by hand leaves what a file system or an operator keeps there.
BOOST_AUTO_TEST_CASE(a_wiped_store_starts_beside_other_files) {
  store.Stop();
  fs::remove_all(store.directory());
  fs::create_directory(store.directory());
  fs::permissions(store.directory(), fs::perms::owner_all);
  WriteFile(store.directory() / ".nfs0001", "");
  WriteFile(store.directory() / "note", "");
  BOOST_TEST(OpenAndClose(Witness::At(store.witness())).distrustful);
  fs::remove_all(store.directory());
  fs::create_directory(store.directory());
  fs::permissions(store.directory(), fs::perms::owner_all);
  WriteFile(store.directory() / "note", "");
  ExpectError(Open(Witness::None()), ErrorCode::kUnsafePath);
  fs::rename(store.directory() / "note", store.directory() / ".nfs0002");
  BOOST_TEST(!OpenAndClose(Witness::None()).distrustful);
}

BOOST_AUTO_TEST_CASE(a_path_that_can_not_be_written_is_not_remembered) {
  store.Stop();
  const std::string before = Remembered();
  WriteFile(store.scratch() / "file", "x");
  BOOST_TEST(!Open(Witness::At(store.scratch() / "file" / "witness")).has_value());
  BOOST_TEST(!Open(Witness::At(store.scratch() / "no" / "such" / "witness")).has_value());
  BOOST_TEST(Remembered() == before);
  BOOST_TEST(!OpenAndClose(Witness::Remembered()).distrustful);

  // A directory in the place of the remembered one.
  fs::remove(store.witness());
  fs::create_directory(store.witness());
  BOOST_TEST(!Open(Witness::At(store.witness())).has_value());
  fs::path temporary = store.witness();
  temporary += ".tmp";
  BOOST_TEST(!fs::exists(temporary));
}

BOOST_AUTO_TEST_CASE(one_that_is_gone_with_all_around_it_is_named_and_nothing_is_changed) {
  const fs::path kubelet = store.scratch() / "another-kubelet";
  fs::create_directory(kubelet);
  const fs::path witness = kubelet / "image_manager" / "waybill";
  store.Stop();
  OpenAndClose(Witness::Anew(witness));
  BOOST_TEST_REQUIRE(Remembered() == witness.string());
  fs::remove_all(kubelet);
  const std::string before = ReadFile(database());
  ExpectError(Open(Witness::Remembered()), ErrorCode::kInvalidArgument, witness.string());
  BOOST_TEST((ReadFile(database()) == before));
  fs::create_directory(kubelet);
  CheckStale(OpenAndClose(Witness::Remembered()));
}

BOOST_AUTO_TEST_CASE(anywhere_below_the_store_is_refused) {
  store.Stop();
  fs::create_directory(store.directory() / "sub");
  fs::create_symlink(store.directory(), store.scratch() / "link");
  const fs::path here = fs::current_path();
  for (const bool is_new : {false, true}) {
    if (is_new) fs::remove_all(store.directory());
    CheckRefused(store.directory() / "witness");
    CheckRefused(store.directory() / "sub" / "witness");
    CheckRefused(store.directory() / "sub" / "deeper" / ".." / "witness");
    CheckRefused(store.scratch() / "link" / "witness");
    CheckRefused(store.scratch() / "link" / "sub" / "witness");
    fs::current_path(store.scratch());
    CheckRefused(fs::path("store") / "sub" / "witness");
    CheckRefused(fs::path("nowhere") / ".." / "store" / "witness");
    fs::current_path(here);
  }
}

BOOST_AUTO_TEST_CASE(a_store_that_has_one_below_it_opens_warns_and_can_move_it) {
  store.Stop();
  // As an older waybill let it be.
  const fs::path inside = store.directory() / "sub" / "witness";
  const fs::path outside = store.scratch() / "outside";
  BOOST_TEST(!OpenAndClose(Witness::At(outside)).witness_in_store);
  fs::create_directory(store.directory() / "sub");
  fs::permissions(store.directory() / "sub", fs::perms::owner_all);
  fs::create_directory(store.scratch() / "real");
  const fs::path by_link = store.scratch() / "link" / "witness";
  fs::create_directory_symlink(store.scratch() / "real", store.scratch() / "link");
  fs::rename(outside, by_link);
  BOOST_TEST(!OpenAndClose(Witness::At(by_link)).witness_in_store);
  fs::rename(by_link, inside);
  fs::remove(store.scratch() / "link");
  fs::create_directory_symlink(store.directory() / "sub", store.scratch() / "link");
  for (const Witness& witness : {Witness::Remembered(), Witness::At(by_link)}) {
    const OpeningReport report = OpenAndClose(witness);
    BOOST_TEST(report.witness_in_store);
    BOOST_TEST(!report.distrustful);
  }
  const OpeningReport moved = OpenAndClose(Witness::At(outside));
  BOOST_TEST(!moved.witness_in_store);
  BOOST_TEST(!moved.distrustful);
  BOOST_TEST(Remembered() == outside.string());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
