// An owner that serves, its clients, and decisions beside them: made for ThreadSanitizer, and true
// without it.

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/in_threads.h"
#include "tests/support/memory_dir.h"
#include "tests/support/owner_socket.h"
#include "tests/support/store_fixture.h"
#include "waybill/owner.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(serving)

namespace {

std::string Id(std::size_t i) {
  const std::string digits = std::to_string(i);
  return "sha256:" + std::string(64 - digits.size(), '0') + digits;
}

bool IsExpected(const Error& error) {
  switch (error.code) {
    case ErrorCode::kNotFound:        // nobody serves at this moment
    case ErrorCode::kUnavailable:     // busy, or it closes
    case ErrorCode::kOutcomeUnknown:  // it closed
      return true;
    default:
      return false;
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(clients_decisions_and_closing) {
  const MemoryDir scratch;
  const auto secret = MakeSecret("ns", "pull", "uid", "hash");
  const std::string own_ref = Id(999);
  constexpr std::size_t kRounds = 6;
  for (std::size_t round = 0; round < kRounds; ++round) {
    const auto store = Must(NodeStore::Open(OptionsIn(scratch.path())));
    Must(store->RecordPullIntent({.image = "r.example/own:v1"}));
    Must(store->RecordImagePulled({.image = "r.example/own:v1", .image_ref = own_ref},
                                  WithSecret(secret)));
    std::atomic<bool> closed{false};
    std::atomic<std::size_t> deciding{2};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> done{0};
    const auto note = [&](const auto& result) {
      if (result) {
        ++done;
      } else if (!IsExpected(result.error())) {
        std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
        ++wrong;
      }
    };
    const std::filesystem::path directory = scratch / "store";
    const std::size_t failed = InThreads(8, [&](std::size_t which) {
      switch (which) {
        case 0:
          Must(store->Serve({.patience = std::chrono::milliseconds(20), .connections = 64}));
          while (done < 40) std::this_thread::yield();
          // Those that decide must be done before the store closes; clients need not.
          --deciding;
          while (deciding > 0) std::this_thread::yield();
          Must(store->Close());
          closed = true;
          return;
        case 1: {
          while (deciding > 1) {
            const ImageCopy copy{.image = "r.example/own:v1", .image_ref = own_ref};
            if (DecisionOf(*store, copy, Pod(secret)).pull) ++wrong;
            if (!DecisionOf(*store, copy, Pod(MakeSecret("evil", "pull", "uid-2", "guess"))).pull)
              ++wrong;
          }
          --deciding;
          return;
        }
        case 2: {
          // Hangs, cuts off, and floods.
          const internal::Bytes header = internal::Framed(internal::FrameKind::kRequest, {});
          for (std::size_t i = 0; !closed; ++i) {
            RawClient client(directory);
            client.Send(std::span(header).first(i % (header.size() + 1)));
            if (i % 7 == 0) client.Frame();
          }
          return;
        }
        default:
          for (std::size_t i = 0; !closed; ++i) {
            const auto client = OwnerClient::Connect({.directory = directory});
            if (!client) {
              note(client);
              continue;
            }
            const ListedImage image{.id = Id(which * 1000 + i % 10)};
            note((*client)->AddToLedger(image, "test", "why", {.dry_run = i % 3 == 0}));
            note((*client)->RemoveFromLedger({.image_ref = image.id}, "why", {}));
            const auto token = (*client)->BeginList();
            note(token);
            if (token) {
              note((*client)->Prune({image, {.id = own_ref}}, *token, {.dry_run = true}));
            }
            if (which == 3) note((*client)->MakeBackup());
          }
      }
    });
    BOOST_TEST(failed == 0U);
    BOOST_TEST(wrong == 0U);
    BOOST_TEST(!std::filesystem::exists(directory / "owner.sock"));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
