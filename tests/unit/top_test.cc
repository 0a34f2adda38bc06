// Which images and namespaces had to be verified again most often.

#include <boost/test/unit_test.hpp>
#include <map>
#include <string>

#include "store/node/facade/frequent.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"
#include "waybill/owner.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(top)

BOOST_AUTO_TEST_CASE(decisions_that_are_pull_are_counted_by_image_and_namespace) {
  ScratchStore store(Rules::kClosed);
  store.Pull("r.example/a:1", "ref-a",
             ImagePullCredentials{.kubernetes_secrets = {MakeSecret("x", "s", "1", "h")}});
  store.Pull("r.example/b:1", "ref-b",
             ImagePullCredentials{.kubernetes_secrets = {MakeSecret("x", "s", "1", "h")}});
  const auto decide = [&](const char* image, const char* ref, Pod pod) {
    return store->MustAttemptPull({.image = image, .image_ref = ref}, pod).pull;
  };
  const Pod stranger(MakeSecret("y", "s", "2", "other"));
  BOOST_TEST(decide("r.example/a:1", "ref-a", stranger));
  BOOST_TEST(decide("r.example/a:1", "ref-a", stranger));
  BOOST_TEST(decide("r.example/b:1", "ref-b", Pod(ImagePullServiceAccount{"3", "z", "builder"})));
  BOOST_TEST(decide("r.example/b:1", "ref-b", Pod()));
  BOOST_TEST(!decide("r.example/a:1", "ref-a", Pod(MakeSecret("x", "s", "1", "h"))));
  BOOST_TEST(decide("r.example/a:1", "", stranger));  // absent: not counted
  const ReverificationReport report = Must(store->TopReverifications());
  const std::vector<Reverified> images = {{"r.example/a:1", 2, 0}, {"r.example/b:1", 2, 0}};
  const std::vector<Reverified> namespaces = {{"y", 2, 0}, {"", 1, 0}, {"z", 1, 0}};
  BOOST_TEST(report.counted == 4U);
  BOOST_TEST(report.missed == 0U);
  BOOST_TEST((report.images == images));
  BOOST_TEST((report.namespaces == namespaces));
  BOOST_TEST(report.since.seconds != 0);
  // Through the socket it is the same; an observer has none.
  Must(store->Serve());
  auto client = Must(OwnerClient::Connect({.directory = store.directory()}));
  const ReverificationReport told = Must(client->TopReverifications());
  BOOST_TEST((told.images == images && told.namespaces == namespaces && told.counted == 4U));
}

BOOST_AUTO_TEST_CASE(the_sketch_never_counts_too_few_and_has_every_frequent_name) {
  Draw draw(SeedOfThisRun());
  for (int run = 0; run < 50; ++run) {
    internal::Frequent<16> sketch;
    std::map<std::string, std::uint64_t> real;
    const std::uint64_t all = 2000;
    for (std::uint64_t i = 0; i < all; ++i) {
      // Half of them among few names. Long names differ behind the cut.
      const std::size_t name = draw.OneIn(2) ? draw.Below(5) : draw.Below(500);
      const std::string text = std::string(name % 3 == 0 ? 20 : 1, 'n') + std::to_string(name);
      sketch.Count(text);
      ++real[text];
    }
    std::uint64_t sum = 0;
    std::multimap<std::string, Reverified> found;
    for (const Reverified& one : sketch.Most()) {
      sum += one.count;
      found.emplace(one.name, one);
    }
    BOOST_TEST(sum == all);
    for (const auto& [name, count] : real) {
      if (name.size() > 16) continue;  // several may have the same beginning
      const auto at = found.find(name);
      BOOST_TEST((at != found.end() || count <= all / kMaxReverified), name << " is missing");
      if (at == found.end()) continue;
      BOOST_TEST(at->second.count >= count, name);
      BOOST_TEST(at->second.count - at->second.over <= count, name);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
