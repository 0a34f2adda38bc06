// An owner that serves and closes under its clients, and decisions beside them: made for
// ThreadSanitizer, and true without it.

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>

#include "tests/support/in_threads.h"
#include "tests/support/memory_dir.h"
#include "tests/support/rows.h"
#include "tests/support/varlink_client.h"
#include "waybill/store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(serving)

namespace {

bool IsExpected(ErrorCode code) {
  return code == ErrorCode::kNotFound ||      // nobody serves at this moment
         code == ErrorCode::kUnavailable ||   // busy, or it closes
         code == ErrorCode::kOutcomeUnknown;  // it closed
}

std::string Id(std::size_t i) {
  const std::string digits = std::to_string(i);
  return "sha256:" + std::string(64 - digits.size(), '0') + digits;
}

}  // namespace

BOOST_AUTO_TEST_CASE(clients_decisions_and_closing) {
  const MemoryDir scratch;
  const std::string ref = Id(999);
  const ImageCopy copy{.image = "r.example/own:v1", .image_ref = ref};
  for (int round = 0; round < 4; ++round) {
    OpenOptions options{.directory = scratch / "store", .loss_marker = scratch / "marker"};
    options.settings.map_bytes = std::uint64_t{64} << 20U;
    const auto store = Must(Store::Open(std::move(options)));
    Must(store->EndPull(copy, Must(store->BeginPull(copy)), PullOutcome::kPulled,
                        WithSecret(kSecretA)));
    const Owner owner(scratch / "store");
    std::atomic<bool> is_closed{false};
    std::atomic<std::uint64_t> wrong{0};
    std::atomic<std::uint64_t> done{0};
    const auto note = [&](const auto& result) {
      if (result) {
        ++done;
      } else if (!IsExpected(result.error().code)) {
        std::fprintf(stderr, "%s\n", result.error().ToString().c_str());
        ++wrong;
      }
    };
    const std::size_t failed = InThreads(8, [&](std::size_t which) {
      switch (which) {
        case 0:
          // With few connections the clients make room for each other.
          Must(store->Serve({.patience = std::chrono::milliseconds(20),
                             .connections = round % 2 == 0 ? 64U : 16U}));
          while (done < 60) std::this_thread::yield();
          // In this moment others decide, and ask.
          Must(store->Close());
          is_closed = true;
          return;
        case 1:
          while (!is_closed) {
            Pod right(kSecretA);
            const Decision decision = store->MustPull(copy, right);
            if (decision.pull && decision.reason != Reason::kStoreUnavailable) ++wrong;
            Pod other(MakeSecret("evil", "pull", "uid-2", "guess"));
            if (!store->MustPull(copy, other).pull) ++wrong;
          }
          return;
        case 2: {
          // Hangs, cuts off, floods, asks for much, and takes no answer.
          const std::string request = Framed(R"({"method":"dev.waybill.GetStatus"})");
          const std::string large = Framed(R"({"method":"dev.waybill.ListPulls","parameters":{)" +
                                           std::string(300'000, ' ') + "}}");
          for (std::size_t i = 0; !is_closed; ++i) {
            VarlinkClient client(scratch / "store");
            client.Send(std::string_view(request).substr(0, i % (request.size() + 1)));
            if (i % 7 == 0) client.Next();
            for (int more = 0; i % 5 == 0 && more < 4; ++more) client.Send(large);
          }
          return;
        }
        case 3:
          // In the process of the store.
          while (!is_closed) {
            const auto pull = store->BeginPull({.image = "r.example/x:1"});
            if (!pull) continue;  // it closes
            note(owner.Call(ListPulls{.image = "r.example/x:1"}));
            static_cast<void>(
                store->EndPull({.image = "r.example/x:1"}, *pull, PullOutcome::kNothing));
          }
          return;
        default:
          for (std::size_t i = 0; !is_closed; ++i) {
            const std::string mine = Id(which * 1000 + i % 10);
            note(owner.Call(
                AllowImage{.image = {.id = mine}, .reason = "why", .dry_run = i % 3 == 0}));
            note(owner.Call(MustPull{.image = "r.example/own:v1", .image_ref = mine}));
            note(owner.Call(DenyImage{.image_ref = mine, .reason = "why"}));
            const auto begun = owner.Call(BeginPull{.image = "r.example/" + mine.substr(7)});
            note(begun);
            if (begun) {
              note(owner.Call(EndPull{.image = "r.example/" + mine.substr(7),
                                      .pull = begun->pull,
                                      .outcome = PullOutcome::kNothing}));
            }
            const auto token = owner.Call(BeginList());
            note(token);
            if (token) {
              note(owner.Call(
                  PruneBefore{.images = {{.id = ref}}, .token = token->token, .dry_run = true}));
              note(owner.Call(RevokeMissing{.token = token->token, .more = true}));
            }
            if (which == 4) note(owner.Call(GetStatus()));
            if (which == 5) note(owner.Call(MakeBackup()));
          }
      }
    });
    BOOST_TEST(failed == 0U);
    BOOST_TEST(wrong == 0U);
    BOOST_TEST(!std::filesystem::exists(scratch / "store/owner.sock"));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
