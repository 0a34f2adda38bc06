// A store is made in a directory of its own: neither a kubelet's, nor one with other files in it.

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "waybill/maintenance.h"
#include "waybill/streaming.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(own_directory)

namespace {

namespace fs = std::filesystem;

struct Scene {
  Scene() { fs::create_directory(store); }

  OpenOptions Options() const { return OptionsIn(scratch.path()); }

  const MemoryDir scratch;
  const fs::path store = scratch / "store";
};

template <typename T>
void RequireRefused(const Result<T>& result) {
  ExpectError(result, ErrorCode::kUnsafePath, "nothing was changed");
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_directory_with_other_files_takes_no_store) {
  for (const char* name : {"image_manager/", "pods/", "notes.txt", ".bashrc", "data.mdb.old"}) {
    BOOST_TEST_CONTEXT(name) {
      const Scene scene;
      const fs::path foreign = scene.store / name;
      if (foreign.has_filename()) {
        WriteFile(foreign, "something");
      } else {
        fs::create_directory(foreign.parent_path());
      }
      const auto before = TreeOf(scene.scratch.path());
      RequireRefused(NodeStore::Open(scene.Options()));
      RequireRefused(StreamingStore::Open({.directory = scene.store, .witness = Witness::None()}));
      RequireRefused(
          StreamingStore::Continue({.directory = scene.store, .witness = Witness::None()}));
      BOOST_TEST((TreeOf(scene.scratch.path()) == before));
    }
  }
}

BOOST_AUTO_TEST_CASE(nor_does_the_kubelets_own_even_while_it_is_empty) {
  const Scene scene;
  OpenOptions options = scene.Options();
  options.kubelet_directory = scene.store / ".";
  const auto before = TreeOf(scene.scratch.path());
  RequireRefused(NodeStore::Open(options));
  BOOST_TEST((TreeOf(scene.scratch.path()) == before));
  options.kubelet_directory = scene.scratch.path();
  for (const char* folder : {"pods", "pods/uid", "image_manager", "image_manager/pulled"}) {
    options.directory = scene.scratch / folder;
    fs::create_directories(options.directory);
    fs::permissions(options.directory, fs::perms::owner_all);
    RequireRefused(NodeStore::Open(options));
  }
  // One in it is a directory of its own.
  options.directory = scene.store;
  Must(Must(NodeStore::Open(options))->Close());
}

BOOST_FIXTURE_TEST_CASE(a_backup_is_not_put_back_there, ClosedStore) {
  const fs::path backup = store.scratch() / "backup.mdb";
  Must(store->WriteBackup(backup));
  store.Stop();
  const Scene scene;
  RestoreOptions options{.directory = scene.store, .backup = backup};
  WriteFile(scene.store / "notes.txt", "something");
  const auto before = TreeOf(scene.scratch.path());
  RequireRefused(Restore(options));
  BOOST_TEST((TreeOf(scene.scratch.path()) == before));
  fs::remove(scene.store / "notes.txt");
  Must(Restore(options));
}

BOOST_AUTO_TEST_CASE(what_is_left_of_a_store_and_an_empty_file_system_take_one) {
  for (const std::vector<std::string>& names : {std::vector<std::string>{},
                                                {"lost+found/"},
                                                {"quarantine/", "notes.txt"},
                                                {"lock.mdb", "notes.txt"},
                                                {"commit.mark", "image_manager/"}}) {
    const Scene scene;
    for (const std::string& name : names) {
      const fs::path path = scene.store / name;
      if (path.has_filename()) {
        WriteFile(path, "");
        fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
      } else {
        fs::create_directory(path.parent_path());
      }
    }
    const auto opened = NodeStore::Open(scene.Options());
    BOOST_TEST(opened.has_value(), (opened ? "" : opened.error().ToString()));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
