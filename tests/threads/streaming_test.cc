// Many consumers race for each token while others prepare, list and count: one wins.

#include <array>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "store/calls/streaming_store.h"
#include "tests/support/in_threads.h"
#include "tests/support/streaming_scene.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(streaming)

BOOST_AUTO_TEST_CASE(one_of_several_consumers_wins) {
  constexpr std::size_t kThreads = 6;
  constexpr std::size_t kTokens = 150;
  StreamingScene scene;
  StreamingOptions options = scene.Options();
  options.max_open = kTokens + 20;
  scene.Start(options);
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < kTokens; ++i) tokens.push_back(scene.Prepare(i));
  std::array<std::atomic<int>, kTokens> opened{};
  std::atomic<int> wrong{0};
  const std::size_t failed = InThreads(kThreads, [&](std::size_t thread) {
    for (std::size_t i = 0; i < kTokens; ++i) {
      const std::size_t at = thread % 2 == 0 ? i : kTokens - 1 - i;
      const StreamKind other = thread == 5 ? StreamKind::kAttach : StreamKind::kExec;
      const auto request = scene->Consume(tokens[at], other);
      if (request) {
        ++opened[at];
        wrong += *request == NumberedExec(at) && thread != 5 ? 0 : 1;
      } else if (request.error().code != ErrorCode::kNotFound) {
        ++wrong;
      }
      if (i % 16 == thread) {
        const auto fresh = scene->Prepare(SomePortForward());
        if (!fresh) {
          ++wrong;
        } else if (!scene->Consume(*fresh, StreamKind::kPortForward)) {
          ++wrong;
        }
        if (!scene->List()) ++wrong;
        static_cast<void>(scene->GetCounters());
      }
    }
  });
  BOOST_TEST(failed == 0U);
  BOOST_TEST(wrong == 0);
  for (const auto& times : opened) BOOST_TEST(times == 1);
  BOOST_TEST(scene->GetCounters().open == 0U);
  BOOST_TEST(Must(scene->Verify()).sound);
}

// Never more than may be, however many ask at once.
BOOST_AUTO_TEST_CASE(a_race_does_not_overfill) {
  constexpr std::size_t kThreads = 6;
  constexpr std::size_t kMost = 40;
  StreamingScene scene;
  StreamingOptions options = scene.Options();
  options.max_open = kMost;
  scene.Start(options);
  std::atomic<std::size_t> prepared{0};
  std::atomic<std::size_t> full{0};
  InThreads(kThreads, [&](std::size_t thread) {
    for (std::size_t i = 0; i < kMost / 2; ++i) {
      const auto token = scene->Prepare(NumberedExec(thread));
      if (token) {
        ++prepared;
      } else if (token.error().retry_after.count() > 0) {
        ++full;
      }
    }
  });
  BOOST_TEST(prepared == kMost);
  BOOST_TEST(full == kThreads * (kMost / 2) - kMost);
  scene.clock().AdvanceSeconds(61);
  prepared = 0;
  InThreads(kThreads, [&](std::size_t thread) {
    for (std::size_t i = 0; i < kMost; ++i) {
      if (scene->Prepare(NumberedExec(thread))) ++prepared;
    }
  });
  BOOST_TEST(prepared == kMost);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
