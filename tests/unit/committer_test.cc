// The queue of writers, when something goes wrong around it.

#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "tests/support/expect_error.h"
#include "tests/support/forked_child.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(committer)

namespace {

// Another process, begun before this one opens a store.
class Process {
 public:
  // Whether the child could open the store as owner and store an intent.
  bool Intends(const std::string& image, const std::filesystem::path& directory) {
    image.copy(order_->image.data(), order_->image.size() - 1);
    directory.string().copy(order_->directory.data(), order_->directory.size() - 1);
    if (write(go_[1], "!", 1) != 1) return false;
    return child_.Wait() == 0;
  }

 private:
  struct Order {
    std::array<char, 256> image;
    std::array<char, 4096> directory;
  };
  int Obey() {
    char ignored = 0;
    if (read(go_[0], &ignored, 1) != 1) return 1;
    const auto store =
        NodeStore::Open({.directory = order_->directory.data(), .witness = Witness::Remembered()});
    return store && (*store)->PutIntent({.image = order_->image.data()}) && (*store)->Close() ? 0
                                                                                              : 1;
  }

  Shared<Order> order_;
  std::array<int, 2> go_ = [] {
    std::array<int, 2> ends{};
    if (pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
    return ends;
  }();
  Child child_{[this] { return Obey(); }};
};

}  // namespace

// Memory runs out between the begin of a transaction and its commit. The clock, which is read
// there, throws in its place.
BOOST_FIXTURE_TEST_CASE(an_exception_fails_the_write_and_holds_up_nobody, ClosedStore) {
  Must(store->PutIntent({.image = "registry.example/before"}));
  OpenOptions options = store.Options({});
  store.Stop();
  const auto throws = std::make_shared<bool>(false);
  options.clock = [throws, clock = std::move(options.clock)] {
    if (*throws) throw std::bad_alloc();
    return clock();
  };
  const auto opened = Must(NodeStore::Open(options));
  *throws = true;
  ExpectError(opened->PutIntent({.image = "registry.example/during"}), ErrorCode::kOutOfMemory);
  BOOST_TEST(!Must(opened->HasIntent({.image = "registry.example/during"})));
  // Nothing had been written yet, so the store goes on.
  *throws = false;
  Must(opened->PutIntent({.image = "registry.example/after"}));
  Must(opened->Close());
  store.Start();
  BOOST_TEST(Must(store->HasIntent({.image = "registry.example/before"})));
  Must(store->PutIntent({.image = "registry.example/after"}));
}

// If owner.lock is removed under a live owner, a second owner is refused, and the first stops
// writing.
BOOST_AUTO_TEST_CASE(a_second_writer_is_refused_where_owner_lock_was_removed) {
  Process second;
  Process successor;
  ScratchStore store(Rules::kClosed);
  std::filesystem::remove(store.directory() / "owner.lock");
  BOOST_TEST(!second.Intends("registry.example/other:1", store.directory()));
  ExpectError(store->PutIntent({.image = "registry.example/mine:1"}), ErrorCode::kOwned);
  store.Stop();
  BOOST_TEST(successor.Intends("registry.example/other:1", store.directory()));
  store.Start();
  BOOST_TEST(!store->recovery_report().distrustful);
  BOOST_TEST(Must(store->HasIntent({.image = "registry.example/other:1"})));
  BOOST_TEST(!Must(store->HasIntent({.image = "registry.example/mine:1"})));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
