// The progress of verifying. What verifying finds: tests/corruption.

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/store_fixture.h"
#include "tests/support/streaming_scene.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(verify)

namespace {

using Calls = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

Progress Into(Calls& calls) {
  return [&calls](std::uint64_t done, std::uint64_t total) {
    calls.emplace_back(done, total);
    return true;
  };
}

void CheckSame(const VerifyReport& one, const VerifyReport& other) {
  BOOST_TEST(one.sound == other.sound);
  BOOST_TEST(one.pages == other.pages);
  BOOST_TEST(one.values == other.values);
  BOOST_TEST((one.findings == other.findings));
}

// Of several calls: forward, and up to the file's size.
void CheckForward(const Calls& calls, std::uint64_t file_bytes) {
  BOOST_TEST_REQUIRE(!calls.empty());
  std::uint64_t before = 0;
  for (const auto& [done, total] : calls) {
    BOOST_TEST(done >= before);
    BOOST_TEST(total == file_bytes);
    before = done;
  }
  BOOST_TEST(before == file_bytes);
}

// A store of some MiB.
void Fill(ScratchStore& store) {
  for (int i = 0; i < 120; ++i) {
    ImagePulledRecord record{.image_ref = "ref-" + std::to_string(i)};
    auto& secrets = record.credential_mapping["registry.example/app"].kubernetes_secrets;
    for (int j = 0; j < 200; ++j) {
      const std::string number = std::to_string(200 * i + j);
      secrets.push_back(MakeSecret("ns", "pull-" + number, "uid-" + number, "hash-" + number));
    }
    Must(store->PutRecord(record));
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_ends_at_the_total_and_changes_no_answer) {
  ScratchStore store(Rules::kClosed);
  Fill(store);
  const auto file_bytes = std::filesystem::file_size(store.directory() / "data.mdb");
  const VerifyReport plain = Must(store->Verify());
  BOOST_TEST(plain.sound);
  const auto check = [&](const NodeStore& one) {
    Calls calls;
    CheckSame(Must(one.Verify(Into(calls))), plain);
    BOOST_TEST(calls.size() > 1U);
    CheckForward(calls, file_bytes);
  };
  check(*store);
  store.Stop();
  check(*Must(NodeStore::Observe({.directory = store.directory()})));
}

BOOST_AUTO_TEST_CASE(stopped_at_any_call_it_gives_no_answer_and_the_store_goes_on) {
  ScratchStore store(Rules::kClosed);
  Fill(store);
  Calls all;
  Must(store->Verify(Into(all)));
  for (std::size_t last = 1; last <= all.size(); ++last) {
    std::size_t calls = 0;
    const auto report = store->Verify([&](std::uint64_t, std::uint64_t) { return ++calls < last; });
    BOOST_TEST_REQUIRE(!report.has_value());
    BOOST_TEST((report.error().code == ErrorCode::kInterrupted));
    BOOST_TEST(calls == last);
  }
  store.Pull("registry.example/more:v1", "ref-more", std::nullopt);
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_AUTO_TEST_CASE(of_a_streaming_store_too) {
  StreamingScene scene;
  scene.Start();
  Calls calls;
  CheckSame(Must(scene->Verify(Into(calls))), Must(scene->Verify()));
  CheckForward(calls, std::filesystem::file_size(scene.directory() / "data.mdb"));
  const auto stopped = scene->Verify([](std::uint64_t, std::uint64_t) { return false; });
  BOOST_TEST_REQUIRE(!stopped.has_value());
  BOOST_TEST((stopped.error().code == ErrorCode::kInterrupted));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
