// Two processes with one process ID, each in a PID namespace of its own.

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>

#include "tests/support/forked_child.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(pid_namespaces)

namespace {

constexpr int kNoNamespace = 77;

// Runs `work` as the first process of a new PID namespace, and returns what it returns.
int AsFirstProcess(const std::function<int()>& work) {
  if (unshare(CLONE_NEWPID) != 0) return kNoNamespace;
  Child first([&] { return getpid() == 1 ? work() : kNoNamespace; });
  return first.Wait();
}

// 0: it was refused, and the error says why, and what to do.
int IsRefused(const Result<std::unique_ptr<NodeStore>>& opened) {
  if (opened) return 1;
  const std::string text = opened.error().ToString();
  const bool says = text.find("another process with the process ID 1, in another PID namespace") !=
                        std::string::npos &&
                    text.find("hostPID: true") != std::string::npos;
  return says && opened.error().code == ErrorCode::kOwned ? 0 : 2;
}

}  // namespace

// A limit: "One process owns a store"
BOOST_FIXTURE_TEST_CASE(the_later_one_of_the_same_id_is_refused_and_told_why, ClosedStore) {
  store.Stop();
  int ready[2];
  int done[2];
  BOOST_TEST_REQUIRE(pipe(ready) == 0);
  BOOST_TEST_REQUIRE(pipe(done) == 0);
  Child first([&] {
    close(done[1]);
    return AsFirstProcess([&] {
      const auto observer = NodeStore::Observe({.directory = store.directory()});
      char byte = observer ? 'y' : 'n';
      if (write(ready[1], &byte, 1) != 1) return 3;
      return read(done[0], &byte, 1) == 0 ? 0 : 4;
    });
  });
  close(ready[1]);
  char byte = 0;
  const bool is_there = read(ready[0], &byte, 1) == 1;
  if (is_there) {
    BOOST_TEST(byte == 'y');
    Child observer([&] {
      return AsFirstProcess(
          [&] { return IsRefused(NodeStore::Observe({.directory = store.directory()})); });
    });
    BOOST_TEST(observer.Wait() == 0);
    Child owner([&] {
      return AsFirstProcess([&] { return IsRefused(NodeStore::Open(store.Options({}))); });
    });
    BOOST_TEST(owner.Wait() == 0);
    // Any other ID is no trouble.
    Must(NodeStore::Observe({.directory = store.directory()}));
  }
  close(done[1]);
  const int code = first.Wait();
  BOOST_TEST(code == (is_there ? 0 : kNoNamespace));
  close(ready[0]);
  close(done[0]);
  if (!is_there) BOOST_TEST_MESSAGE("skipped: only root can make a PID namespace");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
