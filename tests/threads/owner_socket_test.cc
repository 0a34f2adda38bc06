// An owner's socket with all kinds of clients, opened and closed under them: made for
// ThreadSanitizer, and true without it.

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "store/owner_socket/client.h"
#include "tests/support/in_threads.h"
#include "tests/support/memory_dir.h"
#include "tests/support/varlink_client.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(owner_socket)

namespace {

bool IsExpected(const Error& error) {
  switch (error.code) {
    case ErrorCode::kNotFound:        // nobody serves at this moment
    case ErrorCode::kUnavailable:     // busy, or it closes
    case ErrorCode::kOutcomeUnknown:  // it was cut
      return true;
    default:
      return false;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(clients_and_closing) {
  const MemoryDir scratch;
  const std::filesystem::path& directory = scratch.path();
  FakeDoor door;
  door.large = "{" + std::string(20'000'000, ' ') + "}";  // too large
  std::atomic<bool> is_over{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> done{0};
  const std::string large = "{\"a\":\"" + std::string(300'000, 'x') + "\"}";
  const std::string request = Framed(R"({"method":"dev.waybill.Echo","parameters":)" + large + "}");
  const std::size_t failed = InThreads(8, [&](std::size_t which) {
    switch (which) {
      case 0:
        for (std::uint64_t round = 1; round <= 10; ++round) {
          // With few connections the clients make room for each other.
          const auto server =
              internal::OwnerServer::Start(directory,
                                           {.patience = std::chrono::milliseconds(20),
                                            .connections = round % 2 == 0 ? 64U : 16U},
                                           door, std::chrono::milliseconds(20));
          if (!server) throw std::runtime_error(server.error().ToString());
          while (done < round * 20) std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        is_over = true;
        return;
      case 1:
        // Hangs, and cuts off.
        for (std::size_t i = 0; !is_over; ++i) {
          VarlinkClient client(directory);
          client.Send(std::string_view(request).substr(0, i * 1009 % request.size()));
          if (i % 7 == 0) client.AtEnd();
        }
        return;
      case 2:
        // Takes no answer.
        while (!is_over) {
          VarlinkClient client(directory);
          for (int i = 0; i < 4; ++i) client.Send(request);
        }
        return;
      case 3:
        // Asks and asks.
        while (!is_over) {
          VarlinkClient client(directory);
          while (!client.Ask(R"({"method":"dev.waybill.Echo"})").empty()) {
          }
        }
        return;
      default:
        for (std::size_t i = which; !is_over; ++i) {
          const bool is_large = i % 16 == 0;
          const bool is_too_large = i % 64 == 1;
          const auto answer =
              internal::AskOwner(directory, is_too_large ? "Large" : "Echo",
                                 is_large ? large : "{}", i % 2 == 0, std::chrono::seconds(60));
          if (answer) {
            ++done;
            if (*answer != (is_large ? large : "{}")) ++wrong;
          } else if (!IsExpected(answer.error()) &&
                     !(is_too_large && answer.error().code == ErrorCode::kLimitExceeded)) {
            std::fprintf(stderr, "%s\n", answer.error().ToString().c_str());
            ++wrong;
          }
        }
    }
  });
  BOOST_TEST(failed == 0U);
  BOOST_TEST(wrong == 0U);
  BOOST_TEST(!std::filesystem::exists(directory / "owner.sock"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
