// A witness belongs to the directory of its store: who works on a copy does nothing to the
// original.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "store/maintenance.h"
#include "store/opening/witness.h"
#include "tests/corruption/scene.h"
#include "tests/support/inspect_path.h"
#include "tests/support/tree.h"

namespace {

namespace fs = std::filesystem;
using namespace waybill;
using namespace waybill::testing;
using waybill::testing::NodeStore;

struct CopyScene : Scene {
  CopyScene() { store.Stop(); }

  static void Copy(const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  }
  fs::path Copied() const {
    Copy(store.directory(), copy);
    return copy;
  }
  NodeStoreOptions OptionsOf(const fs::path& directory, const Witness& witness) const {
    NodeStoreOptions options = store.Options({});
    options.directory = directory;
    options.witness = witness;
    options.continues_pulls = true;
    return options;
  }
  // Opens it and changes it, as a command does, or the node's kubelet.
  enum class By { kCommand, kNode };
  OpeningReport Change(const fs::path& directory, const Witness& witness = Witness::Remembered(),
                       By by = By::kCommand) const {
    NodeStoreOptions options = OptionsOf(directory, witness);
    if (by == By::kNode) options.kubelet_directory = store.kubelet_directory();
    const auto opened = Must(NodeStore::Open(options));
    const OpeningReport report = opened->recovery_report();
    static_cast<void>(opened->DeleteRecord({.image_ref = kRef2}).has_value());
    Must(opened->RecordImagePulled({.image = kImage, .image_ref = kRef2}, NodeWide()));
    Must(opened->Close());
    return report;
  }
  // What lies beside the stores: the witness, and whose it is.
  Tree Outside() const {
    Tree tree = TreeOf(store.scratch());
    std::erase_if(tree, [](const auto& entry) { return !entry.first.starts_with("witness"); });
    return tree;
  }
  std::uint64_t Witnessed() const {
    return Must(internal::ReadMark(store.witness())).line.value().acknowledged;
  }
  void CheckIsWitnessOf(const fs::path& directory) const {
    BOOST_TEST(Must(internal::ReadMark(store.witness())).line.value().directory ==
               directory.string());
  }
  // The store goes on there, and keeps its witness.
  void CheckOwns(const fs::path& directory) const {
    for (int i = 0; i < 2; ++i) {
      const std::uint64_t before = Witnessed();
      const OpeningReport report = Change(directory, Witness::Remembered(), By::kNode);
      BOOST_TEST(report.copy_of.empty(), report.copy_of);
      BOOST_TEST(!report.distrustful, report.distrust_reason);
      BOOST_TEST(Witnessed() > before);
    }
  }
  void CheckOriginalIsUntouched(const Tree& outside) {
    BOOST_TEST((Outside() == outside));
    BOOST_TEST(Must(NodeStore::Observe({.directory = store.directory()}))
                   ->recovery_report()
                   .copy_of.empty());
    store.Start();
    BOOST_TEST(!store->recovery_report().distrustful, store->recovery_report().distrust_reason);
    BOOST_TEST(store->recovery_report().findings.empty());
    BOOST_TEST(!Pulls(kSecretA));
    // It goes on, by a commit.
    Must(store->RecordPullIntent({.image = kImage}));
    Must(store->RecordImagePullFailed({.image = kImage}, PullOutcome::kNothing));
    store.Stop();
  }

  const fs::path copy = store.scratch() / "try";
};

BOOST_FIXTURE_TEST_SUITE(copied_store, CopyScene)

// A limit: "A copy of a store"
BOOST_AUTO_TEST_CASE(what_is_done_to_a_copy_leaves_the_witness_alone) {
  const fs::path original = store.directory();
  for (const Witness& witness :
       {Witness::Remembered(), Witness::At(store.witness()), Witness::Anew(store.witness()),
        Witness::None(), Witness::At(store.scratch() / "own")}) {
    const bool is_read =
        witness.kind() == Witness::Kind::kRemembered || witness.path() == store.witness();
    for (int times = 0; times < 3; ++times) {
      if (times == 0) Copied();
      const Tree outside = Outside();
      const OpeningReport report = Change(copy, witness);
      BOOST_TEST(report.copy_of == (is_read ? original.string() : ""));
      BOOST_TEST(report.warnings.empty() != is_read);
      // The original goes on between two of them, and so does the copy.
      BOOST_TEST(report.distrustful == (is_read && times > 0), report.distrust_reason);
      const auto observer = Must(NodeStore::Observe({.directory = copy}));
      BOOST_TEST(observer->recovery_report().copy_of == report.copy_of);
      CheckOriginalIsUntouched(outside);
    }
    fs::remove(store.scratch() / "own");
  }
}

BOOST_AUTO_TEST_CASE(so_does_whatever_else_opens_one) {
  const std::vector<std::pair<const char*, std::function<void()>>> ways = {
      {"data.mdb alone",
       [&] {
         fs::create_directory(copy);
         fs::permissions(copy, fs::perms::owner_all);
         fs::copy(database(), copy / "data.mdb");
         BOOST_TEST(Change(copy).copy_of == store.directory().string());
       }},
      {"a copy of a copy",
       [&] {
         Change(Copied());
         Copy(copy, store.scratch() / "again");
         BOOST_TEST(Change(store.scratch() / "again").copy_of == store.directory().string());
       }},
      {"down and up",
       [&] {
         Must(MigrateStore({.directory = Copied(), .to = 1, .accept_loss = true}));
         Must(MigrateStore({.directory = copy, .to = kNewestSchema}));
         Change(copy);
       }},
      {"a rebuilt one",
       [&] {
         Copied();
         WriteFile(
             copy / "data.mdb",
             FlipUntil(copy / "data.mdb", "a value of table images---------1 does not verify"));
         const OpeningReport report = Change(copy);
         BOOST_TEST(report.set_aside);
         BOOST_TEST(report.copy_of == store.directory().string());
       }},
      {"restored",
       [&] {
         fs::copy(database(), store.scratch() / "backup");
         fs::create_directory(copy);
         fs::permissions(copy, fs::perms::owner_all);
         Must(RestoreStore({.directory = copy, .backup = store.scratch() / "backup"}));
         BOOST_TEST(Change(copy).copy_of == store.directory().string());
       }},
  };
  for (const auto& [name, way] : ways) {
    BOOST_TEST_CONTEXT(name) {
      const Tree outside = Outside();
      way();
      CheckOriginalIsUntouched(outside);
      fs::remove_all(copy);
    }
  }
}

// Both went on from one commit: how far each is tells nothing of what was forgotten in the other.
BOOST_AUTO_TEST_CASE(a_copy_beside_which_the_original_goes_on_is_an_older_one) {
  enum class With { kRemembered, kNone, kOwn };
  for (const With with : {With::kRemembered, With::kNone, With::kOwn}) {
    for (const bool first : {true, false}) {
      CopyScene scene;
      const Witness witness = with == With::kRemembered ? Witness::Remembered()
                              : with == With::kNone     ? Witness::None()
                                                    : Witness::At(scene.store.scratch() / "own");
      const auto go_on = [&] {
        scene.store.Start();
        scene.Rotate();
        scene.store.Stop();
      };
      scene.Copied();
      scene.Change(scene.copy, witness);
      if (first) go_on();
      for (int times = 0; times < 3; ++times) scene.Change(scene.copy, witness);
      if (!first) go_on();
      if (with == With::kRemembered && !first) {
        ExpectError(NodeStore::Observe({.directory = scene.copy}), ErrorCode::kDamaged);
      }
      fs::rename(scene.store.directory(), scene.store.scratch() / "aside");
      fs::rename(scene.copy, scene.store.directory());
      scene.store.Start();
      BOOST_TEST_CONTEXT(static_cast<int>(with) << first) {
        BOOST_TEST(scene.store->recovery_report().distrustful);
        BOOST_TEST(scene.Pulls(kThief));
        BOOST_TEST(scene.Pulls(kSecretA));
        Must(scene.store->ClearDistrust("seen"));
        scene.store.Restart();
        BOOST_TEST(!scene.store->recovery_report().distrustful,
                   scene.store->recovery_report().distrust_reason);
        BOOST_TEST(scene.Pulls(kThief));
      }
    }
  }
}

// An owner that is a restart, and names the witness.
BOOST_AUTO_TEST_CASE(a_moved_store_that_is_opened_without_a_kubelet_keeps_its_witness) {
  Copied();
  fs::remove_all(store.directory());
  for (int i = 0; i < 2; ++i) {
    const std::uint64_t before = Witnessed();
    NodeStoreOptions options = OptionsOf(copy, Witness::At(store.witness()));
    options.continues_pulls = false;
    const auto opened = Must(NodeStore::Open(options));
    BOOST_TEST(opened->recovery_report().copy_of.empty());
    BOOST_TEST(!opened->recovery_report().distrustful);
    Must(opened->RecordImagePulled({.image = kImage, .image_ref = kRef2}, NodeWide()));
    Must(opened->Close());
    BOOST_TEST(Witnessed() > before);
  }
}

// Otherwise the original could run the node again, and not know what was forgotten meanwhile.
BOOST_AUTO_TEST_CASE(a_copy_that_runs_the_node_takes_the_witness_over) {
  Copied();
  CheckOwns(copy);
  const OpeningReport report = Change(store.directory(), Witness::Remembered(), By::kNode);
  BOOST_TEST(report.distrustful);
  BOOST_TEST(report.records_without_credentials > 0U);
}

BOOST_AUTO_TEST_CASE(but_not_from_a_live_original) {
  Copied();
  store.Start();
  const Tree outside = Outside();
  const OpeningReport report = Change(copy, Witness::Remembered(), By::kNode);
  BOOST_TEST(report.copy_of == store.directory().string());
  BOOST_TEST((Outside() == outside));
  store.Stop();
}

// The original may come back.
BOOST_AUTO_TEST_CASE(a_command_takes_no_witness_over) {
  Copied();
  fs::rename(store.directory(), store.scratch() / "aside");
  const Tree outside = Outside();
  BOOST_TEST(Change(copy).copy_of == store.directory().string());
  BOOST_TEST((Outside() == outside));
  CheckOwns(copy);
}

BOOST_AUTO_TEST_CASE(a_directory_under_another_name_keeps_its_witness) {
  const fs::path renamed = store.scratch() / "renamed";
  fs::rename(store.directory(), renamed);
  CheckOwns(renamed);
  fs::rename(renamed, store.directory());
  CheckOwns(store.directory());
  // As a bind mount.
  fs::create_directory_symlink(store.scratch(), store.scratch() / "link");
  CheckOwns(store.scratch() / "link" / "store");
  CheckOwns(store.directory());
}

BOOST_AUTO_TEST_CASE(a_directory_that_was_moved_or_put_back_keeps_its_witness) {
  const fs::path moved = store.scratch() / "moved";
  Copy(store.directory(), moved);
  fs::remove_all(store.directory());
  CheckOwns(moved);
  // With another inode.
  Copy(moved, copy);
  fs::remove_all(moved);
  fs::create_directory(store.scratch() / "takes the inode");
  Copy(copy, moved);
  CheckOwns(moved);
  Change(copy);
  CheckOwns(moved);
}

BOOST_AUTO_TEST_CASE(a_copy_takes_over_once_the_original_is_gone) {
  Change(Copied());
  fs::rename(store.directory(), store.scratch() / "aside");
  CheckOwns(copy);
  // Now it is the other that is the copy, and older.
  fs::rename(store.scratch() / "aside", store.directory());
  const Tree outside = Outside();
  const OpeningReport report = Change(store.directory());
  BOOST_TEST(report.copy_of == copy.string());
  BOOST_TEST(report.distrustful);
  BOOST_TEST((Outside() == outside));
}

BOOST_AUTO_TEST_CASE(another_store_in_the_originals_place_is_none) {
  Copied();
  fs::remove_all(store.directory());
  Change(store.directory(), Witness::None());
  CheckOwns(copy);
}

// docs/limits.md: a copy has no witness. Its commit.mark still tells.
BOOST_AUTO_TEST_CASE(an_older_copy_in_a_copys_place_is_caught_by_the_mark_alone) {
  const fs::path older = store.scratch() / "older";
  Copy(Copied(), older);
  Change(copy);
  fs::copy(older / "data.mdb", copy / "data.mdb", fs::copy_options::overwrite_existing);
  BOOST_TEST(Change(copy).distrustful);
  Copy(older, copy);
  BOOST_TEST(!Change(copy).distrustful);
}

// The line inside the copy still names the original, which has to miss its witness.
BOOST_AUTO_TEST_CASE(a_command_on_a_copy_makes_no_witness_that_the_original_lost) {
  for (const std::string& left : {std::string(), std::string("garbage")}) {
    Copied();
    fs::remove(store.witness());
    if (!left.empty()) WriteFile(store.witness(), left);
    const Tree outside = Outside();
    for (int i = 0; i < 3; ++i) {
      const OpeningReport report = Change(copy);
      BOOST_TEST(report.copy_of == store.directory().string());
      BOOST_TEST(report.distrustful);
      BOOST_TEST((Outside() == outside));
    }
    store.Start();
    BOOST_TEST(store->recovery_report().distrustful);
    BOOST_TEST(!store->recovery_report().findings.empty());
    BOOST_TEST(store->recovery_report().copy_of.empty());
    store.Stop();
    CheckIsWitnessOf(store.directory());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
