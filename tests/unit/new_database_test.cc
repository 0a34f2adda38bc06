// How a new database is put in place.

#include "store/engine/recovery/new_database.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "tests/support/fake_clock.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(new_database)

namespace {

// Holds the lock that LMDB takes in each process with an open store. In another process, since
// closing the file here would release it.
class SharedLock {
 public:
  explicit SharedLock(const std::filesystem::path& path) {
    int ready[2];
    BOOST_REQUIRE(pipe(ready) == 0);
    child_ = fork();
    BOOST_REQUIRE(child_ >= 0);
    if (child_ == 0) {
      struct flock lock {};
      lock.l_type = F_RDLCK;
      lock.l_len = 1;
      const bool held = fcntl(open(path.c_str(), O_RDWR), F_SETLK, &lock) == 0;
      if (write(ready[1], held ? "y" : "n", 1) == 1) pause();
      _exit(0);
    }
    char held = 'n';
    BOOST_REQUIRE(read(ready[0], &held, 1) == 1);
    BOOST_REQUIRE(held == 'y');
    close(ready[0]);
    close(ready[1]);
  }
  ~SharedLock() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  SharedLock(const SharedLock&) = delete;
  SharedLock& operator=(const SharedLock&) = delete;

 private:
  pid_t child_ = -1;
};

}  // namespace

// A lone lock.mdb shows that data.mdb was lost. If it were removed before the new database is in
// place, a crash in between would let the next store be trusted.
BOOST_AUTO_TEST_CASE(what_tells_of_a_loss_stays_until_the_new_database_is_in_place) {
  const TempDir scratch;
  const std::filesystem::path directory = scratch / "store";
  std::filesystem::create_directory(directory);
  WriteFile(directory / "lock.mdb", "");
  internal::NewDatabase made;
  made.map_bytes = kDefaultMapBytes;
  made.identity = Must(internal::NewIdentity(FakeClock().Now()));
  Must(internal::PrepareDatabase(directory, made));
  std::filesystem::remove(directory / "new.tmp" / "data.mdb");
  BOOST_TEST(!internal::InstallDatabase(directory, made));
  BOOST_TEST(std::filesystem::exists(directory / "lock.mdb"));

  Must(internal::PrepareDatabase(directory, made));
  Must(internal::InstallDatabase(directory, made));
  BOOST_TEST(std::filesystem::exists(directory / "data.mdb"));
  BOOST_TEST(!std::filesystem::exists(directory / "lock.mdb"));
}

// A crash right after the new database is in place, while an observer of the old one lives: LMDB
// then trusts lock.mdb.
BOOST_FIXTURE_TEST_CASE(a_lock_file_of_another_database_is_replaced, ClosedStore) {
  for (int i = 0; i < 5; ++i) {
    Must(store->PutIntent({.image = "registry.example/" + std::to_string(i)}));
  }
  ScratchStore other(Rules::kClosed);
  Must(other->PutIntent({.image = "registry.example/other"}));
  other.Stop();
  // By another process, and with its mutexes as an observer has them: LMDB may destroy them at
  // closing (0.9.31 does).
  const std::string copy = "cp " + (store.directory() / "lock.mdb").string() + " " +
                           (other.directory() / "lock.mdb").string();
  BOOST_REQUIRE(std::system(copy.c_str()) == 0);  // NOLINT(concurrency-mt-unsafe)
  store.Stop();
  const SharedLock observer(other.directory() / "lock.mdb");
  other.Start();
  BOOST_TEST(Must(other->HasIntent({.image = "registry.example/other"})));
  BOOST_TEST(!other->recovery_report().distrustful);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
