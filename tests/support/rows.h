// Shared by the tests of the kubelet's rows: a few names, and a loop over both sets of rules.

#ifndef WAYBILL_TESTS_SUPPORT_ROWS_H_
#define WAYBILL_TESTS_SUPPORT_ROWS_H_

#include <boost/test/unit_test.hpp>
#include <ostream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/base/words.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill {

// How Boost.Test prints what it compares.
inline std::ostream& operator<<(std::ostream& out, CheckResult result) {
  return out << (result == CheckResult::kNotCounted ? "not counted" : CheckResultName(result));
}
inline std::ostream& operator<<(std::ostream& out, Reason reason) {
  return out << ReasonName(reason);
}
inline std::ostream& operator<<(std::ostream& out, EnsureAction action) {
  return out << WordOf(action);
}

}  // namespace waybill

namespace waybill::testing {

inline constexpr std::string_view kImage = "registry.example.com/team/app:v1";
inline constexpr std::string_view kName = "registry.example.com/team/app";
inline constexpr std::string_view kRef =
    "sha256:1111111111111111111111111111111111111111111111111111111111111111";
inline constexpr std::string_view kRef2 =
    "sha256:2222222222222222222222222222222222222222222222222222222222222222";

inline const ImagePullSecret kSecretA = MakeSecret("team-a", "pull", "uid-a", "hash-a");
inline const ImagePullSecret kSecretB = MakeSecret("team-b", "pull", "uid-b", "hash-b");

inline std::string Digest(char digit) { return "sha256:" + std::string(64, digit); }

// What the runtime's complete list makes of a store, or a part of it.
inline ClassifyReport Observe(NodeStore& store, std::vector<ListedImage> images,
                              bool complete = true) {
  ImageList list{.images = std::move(images), .complete = complete};
  list.token = Must(store.BeginList());
  return Must(store.ObserveImages(list));
}
inline ClassifyReport ObservePart(NodeStore& store, std::vector<ListedImage> images) {
  return Observe(store, std::move(images), false);
}

// A pull of which nobody knows how it ended.
inline PullId Cancel(NodeStore& store, std::string_view image) {
  const PullId pull = Must(store.RecordPullIntent({.image = image}));
  Must(store.RecordImagePullFailed({.image = image}, PullOutcome::kUnknown, pull));
  return pull;
}

// A row that both sets of rules share: of a store, or of the rules.
template <typename Row>
void UnderBothRules(Row row) {
  for (const Mode rules : kBothRules) {
    BOOST_TEST_CONTEXT("rules: " << WordOf(rules)) {
      if constexpr (std::is_invocable_v<Row, Mode>) {
        row(rules);
      } else {
        ScratchStore store(rules);
        row(store);
      }
    }
  }
}

// The whole answer, at once.
inline void Expect(const Decision& decision, bool pull, CheckResult result, Reason reason) {
  BOOST_TEST(decision.pull == pull);
  BOOST_TEST(decision.result == result);
  BOOST_TEST(decision.reason == reason);
}

inline ImagePullCredentials EntryOf(ScratchStore& store, std::string_view ref = kRef,
                                    std::string_view name = kName) {
  return Must(store->GetRecord({.image_ref = ref})).credential_mapping.at(std::string(name));
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_ROWS_H_
