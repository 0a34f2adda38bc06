// A credential that a decision met is on disk after the next Flush, even if other threads decide
// and flush meanwhile.

#include <boost/test/unit_test.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(write_back)

namespace {

std::string RefOf(std::size_t thread) {
  return "sha256:" + std::string(63, 'a') + std::to_string(thread);
}

// How often a rotated hash was not stored after a Flush.
int Rotate(ScratchStore& store, std::size_t thread, int times) {
  int lost = 0;
  for (int i = 0; i < times; ++i) {
    const std::string hash = "hash-" + std::to_string(i);
    const Decision decision = DecisionOf(*store, {.image = kImage, .image_ref = RefOf(thread)},
                                         Pod(MakeSecret("team-a", "pull", "uid-a", hash)));
    const auto flushed = store->Flush();
    const auto record = store->GetRecord({.image_ref = RefOf(thread)});
    const bool stored = !decision.pull && flushed && record &&
                        record->credential_mapping.at(std::string(kName))
                                .kubernetes_secrets.at(0)
                                .credential_hash == hash;
    lost += stored ? 0 : 1;
  }
  return lost;
}

}  // namespace

BOOST_AUTO_TEST_CASE(none_is_lost_before_a_flush) {
  constexpr std::size_t kThreads = 3;
  ScratchStore store(Mode::kStrict);
  for (std::size_t thread = 0; thread < kThreads; ++thread) {
    BOOST_REQUIRE(store->RecordPullIntent({.image = kImage}));
    BOOST_REQUIRE(store->RecordImagePulled({.image = kImage, .image_ref = RefOf(thread)},
                                           WithSecret(kSecretA)));
  }
  std::vector<int> lost(kThreads);
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < kThreads; ++thread) {
      threads.emplace_back([&, thread] { lost[thread] = Rotate(store, thread, 300); });
    }
  }
  for (const int of_thread : lost) BOOST_TEST(of_thread == 0);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
