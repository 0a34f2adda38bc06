// What decisions go by: a policy, and places that are remembered.

#include "store/disk/places.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "store/base/policy.h"
#include "store/base/words.h"
#include "tests/support/allocations.h"
#include "tests/support/child_process.h"
#include "tests/support/damage.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(policy)

namespace {

using Mode = Verification;
using Origin = ImageOrigin;
using Patterns = std::vector<std::string>;

VerificationPolicy Allowlist(Patterns patterns) {
  return VerificationPolicy::Make(Mode::kNeverVerifyAllowlistedImages, std::move(patterns)).value();
}

bool Allows(const VerificationPolicy& policy, std::string_view name) {
  return !policy.RequiresVerification(name, Origin::kKubeletPulled);
}

void CheckRefused(Mode mode, Patterns patterns, std::string_view quoted, std::string_view reason) {
  BOOST_TEST_CONTEXT("pattern " << quoted) {
    const Error policy = testing::ExpectError(VerificationPolicy::Make(mode, std::move(patterns)),
                                              ErrorCode::kInvalidArgument, quoted);
    BOOST_TEST(policy.message.find(reason) != std::string::npos, policy.message);
    BOOST_TEST(!policy.hint.empty());
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(modes_have_the_names_of_the_configuration) {
  const std::vector<std::pair<Mode, std::string_view>> modes = {
      {Mode::kNeverVerify, "NeverVerify"},
      {Mode::kNeverVerifyPreloadedImages, "NeverVerifyPreloadedImages"},
      {Mode::kNeverVerifyAllowlistedImages, "NeverVerifyAllowlistedImages"},
      {Mode::kAlwaysVerify, "AlwaysVerify"}};
  for (const auto& [mode, name] : modes) {
    BOOST_TEST(WordOf(mode) == name);
    BOOST_TEST((FromWord<Verification>(name, "credential verification policy").value() == mode));
  }
  for (const std::string_view bad : {"", "neververify", "NeverVerify ", "Always"}) {
    const Error mode = testing::ExpectError(
        FromWord<Verification>(bad, "credential verification policy"), ErrorCode::kInvalidArgument);
    for (const auto& known : modes) {
      BOOST_TEST(mode.ToString().find(known.second) != std::string::npos);
    }
  }
}

// What each mode asks for: replay/, the kubelet's own answers; model/.
BOOST_AUTO_TEST_CASE(a_mode_of_a_later_version_always_verifies) {
  const auto policy = VerificationPolicy::Make(static_cast<Mode>(200), {}).value();
  BOOST_TEST(policy.RequiresVerification("a", Origin::kPreloaded));
}

// Other refusals: texts/allowlist-patterns.jsonl.
BOOST_AUTO_TEST_CASE(refusals_name_the_pattern_and_the_reason) {
  CheckRefused(Mode::kNeverVerifyAllowlistedImages, {"sound", std::string(100000, 'a')}, "aaa\"…",
               "does not parse");
  for (const Mode mode :
       {Mode::kNeverVerify, Mode::kNeverVerifyPreloadedImages, Mode::kAlwaysVerify}) {
    CheckRefused(mode, {"a"}, "\"a\"", WordOf(mode));
  }
}

BOOST_AUTO_TEST_CASE(what_stands_before_the_star_is_not_parsed) {
  for (const char* odd : {"//*", "A b/*", "a:b/*", "\xff/*", "-/*"}) {
    const auto policy = Allowlist({odd});
    BOOST_TEST(Allows(policy, std::string_view(odd).substr(0, std::string_view(odd).size() - 1)));
  }
}

BOOST_AUTO_TEST_CASE(the_number_of_patterns_is_bounded) {
  Patterns patterns;
  for (std::size_t i = 0; i < kMaxAllowlistPatterns; ++i)
    patterns.push_back("a" + std::to_string(i));
  const auto policy = Allowlist(patterns);
  for (const std::string& name : patterns) BOOST_REQUIRE(Allows(policy, name));
  BOOST_TEST(!Allows(policy, "a"));
  patterns.push_back("one-more");
  testing::ExpectError(VerificationPolicy::Make(Mode::kNeverVerifyAllowlistedImages, patterns),
                       ErrorCode::kLimitExceeded);
}

BOOST_AUTO_TEST_CASE(asking_allocates_nothing) {
  const std::string prefix(200, 'p');
  const auto policy = Allowlist({prefix + "/*", prefix + "x"});
  const std::string below = prefix + "/y";
  const std::size_t before = testing::AllocationsOfThread();
  const bool allowed = Allows(policy, below);
  const std::size_t after = testing::AllocationsOfThread();
  BOOST_TEST(allowed);
  BOOST_TEST(after == before);
}

BOOST_AUTO_TEST_CASE(equals_a_plain_search) {
  const unsigned seed = static_cast<unsigned>(testing::SeedOfThisRun());
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  const auto name = [&] {
    std::string text(1, static_cast<char>('a' + random() % 2));
    for (auto n = random() % 5; n != 0; --n) {
      text += std::string_view("/.-")[random() % 3];
      text += static_cast<char>('a' + random() % 2);
    }
    return text;
  };
  BOOST_TEST_CONTEXT("seed " << seed) {
    for (int round = 0; round < 500; ++round) {
      Patterns patterns;
      for (auto n = random() % 12; n != 0; --n) {
        patterns.push_back(name() + (random() % 2 == 0 ? "/*" : ""));
      }
      const auto policy = Allowlist(patterns);
      for (int i = 0; i < 100; ++i) {
        const std::string image = name();
        const bool expected =
            std::any_of(patterns.begin(), patterns.end(), [&](std::string pattern) {
              if (!pattern.ends_with('*')) return image == pattern;
              pattern.pop_back();
              return image.starts_with(pattern);
            });
        BOOST_REQUIRE_MESSAGE(Allows(policy, image) == expected, image);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

// A decision never uses a place that a reader slot remembered of another snapshot, key or store
// (store/disk/places.h).
BOOST_AUTO_TEST_SUITE(places)

namespace {

using internal::Key16;
using internal::Place;
using internal::Places;
using internal::PlacesMemory;
using internal::Search;
using internal::Table;

ImagePulledRecord RecordWith(const ImagePullSecret& secret, std::string_view ref = kRef) {
  ImagePulledRecord record;
  record.image_ref = ref;
  record.last_updated = Timestamp{1'770'000'000, 0};
  record.credential_mapping[std::string(kName)] = WithSecret(secret);
  return record;
}

Reason Ask(NodeStore& store, Pod pod = Pod(), std::string_view ref = kRef) {
  return store.MustAttemptPull({.image = kImage, .image_ref = ref}, pod).reason;
}

// Each question twice: the second answer comes from what was remembered.
void ExpectTwice(NodeStore& store, const Pod& pod, Reason reason, std::string_view ref = kRef) {
  BOOST_TEST(Ask(store, pod, ref) == reason);
  BOOST_TEST(Ask(store, pod, ref) == reason);
}

// Another process, which observes the store. Make it while this process has no store open.
class Observer {
 public:
  explicit Observer(std::filesystem::path directory)
      : child_([directory = std::move(directory)]() -> ChildProcess::Serve {
          auto store = std::make_shared<std::unique_ptr<NodeStore>>();
          return [=](const std::string& namespace_name) {
            if (!*store) *store = Must(NodeStore::Observe({.directory = directory}));
            const Pod pod(namespace_name == kSecretA.namespace_name ? kSecretA : kSecretB);
            return std::string(ReasonName(Ask(**store, pod)));
          };
        }) {}

  void ExpectTwice(const ImagePullSecret& secret, Reason reason) {
    for (int i = 0; i < 2; ++i) {
      BOOST_TEST(child_.Ask(secret.namespace_name) == ReasonName(reason));
    }
  }

 private:
  ChildProcess child_;
};

// Writes `to` over each `from` in the database, which stays open. As many bytes.
std::size_t Overwrite(const std::filesystem::path& data, std::string_view from,
                      std::string_view to) {
  std::ifstream in(data, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const auto places = PlacesOf(bytes, from);
  const int fd = open(data.c_str(), O_WRONLY | O_CLOEXEC);
  for (const std::size_t at : places) {
    BOOST_REQUIRE(pwrite(fd, to.data(), to.size(), static_cast<off_t>(at)) ==
                  static_cast<ssize_t>(to.size()));
  }
  close(fd);
  return places.size();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_value_is_verified_though_its_place_is_remembered) {
  UnderBothRules([](ScratchStore& store) {
    Must(store->PutRecord(RecordWith(kSecretA)));
    ExpectTwice(*store, Pod(kSecretA), Reason::kSecretHashMatches);
    const Pod forged(MakeSecret("team-c", "pull", "uid-c", "hash-c"));
    ExpectTwice(*store, forged, Reason::kNoCredentialMatches);
    BOOST_TEST(Overwrite(store.directory() / "data.mdb", "hash-a", "hash-c") > 0U);
    ExpectTwice(*store, forged, Reason::kRecordDamaged);
    ExpectTwice(*store, Pod(kSecretA), Reason::kRecordDamaged);
  });
}

// Both have the same seed, so the same keys, and the same transaction IDs.
BOOST_AUTO_TEST_CASE(two_stores_in_one_process_are_not_confused) {
  UnderBothRules([](Mode rules) {
    ScratchStore one(rules, {}, {}, false);
    ScratchStore other(rules, {}, {}, false);
    one.Stop();
    other.Stop();
    std::filesystem::remove_all(other.directory());
    std::filesystem::copy(one.directory(), other.directory());
    one.Start();
    other.Start();
    for (int i = 0; i < 10; ++i) {
      Must(one->PutRecord(RecordWith(kSecretA)));
      Must(other->PutRecord(RecordWith(kSecretB)));
      ExpectTwice(*one, Pod(kSecretA), Reason::kSecretHashMatches);
      ExpectTwice(*other, Pod(kSecretA), Reason::kNoCredentialMatches);
      ExpectTwice(*other, Pod(kSecretB), Reason::kSecretHashMatches);
      ExpectTwice(*one, Pod(kSecretB), Reason::kNoCredentialMatches);
    }
  });
}

BOOST_AUTO_TEST_CASE(an_observer_sees_each_commit_of_its_owner) {
  UnderBothRules([](Mode rules) {
    ScratchStore store(rules);
    Must(store->PutRecord(RecordWith(kSecretA)));
    store.Stop();
    Observer observer(store.directory());
    store.Start();
    for (int i = 0; i < 20; ++i) {
      Must(store->PutRecord(RecordWith(kSecretA)));
      observer.ExpectTwice(kSecretA, Reason::kSecretHashMatches);
      observer.ExpectTwice(kSecretB, Reason::kNoCredentialMatches);
      Must(store->PutRecord(RecordWith(kSecretB)));
      observer.ExpectTwice(kSecretA, Reason::kNoCredentialMatches);
      observer.ExpectTwice(kSecretB, Reason::kSecretHashMatches);
      Must(store->DeleteRecord({.image_ref = kRef}));
      observer.ExpectTwice(kSecretB, rules == Mode::kStrict ? Reason::kNoEvidence
                                                            : Reason::kPolicyPresumedPreloaded);
    }
  });
}

BOOST_AUTO_TEST_CASE(a_quarantine_entry_that_appears_is_seen) {
  UnderBothRules([](Mode rules) {
    ScratchStore store(rules);
    Must(store->PutRecord(RecordWith(kSecretA)));
    // Not the only one: then the table's count alone would tell.
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef2, "broken");
    store.Restart();
    BOOST_TEST(Must(store->ListQuarantine()).size() == 1U);
    store.Stop();
    Observer observer(store.directory());
    store.Start();
    observer.ExpectTwice(kSecretA, Reason::kSecretHashMatches);
    store.Stop();
    WriteRecordFile(store.kubelet_directory(), "pulled", kRef, "broken");
    store.Start();
    observer.ExpectTwice(kSecretA, Reason::kQuarantined);
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA)));
    observer.ExpectTwice(kSecretA, Reason::kSecretHashMatches);
  });
}

// By a store with the same keys and the same transaction IDs.
BOOST_AUTO_TEST_CASE(an_observer_whose_store_is_replaced_reads_the_new_one) {
  UnderBothRules([](Mode rules) {
    ScratchStore store(rules, {}, {}, false);
    Must(store->PutRecord(RecordWith(kSecretA, kRef2)));
    store.Stop();
    const auto aside = store.scratch() / "aside";
    std::filesystem::copy(store.directory(), aside);
    Observer observer(store.directory());
    store.Start();
    Must(store->PutRecord(RecordWith(kSecretB, "another ref")));
    observer.ExpectTwice(
        kSecretA, rules == Mode::kStrict ? Reason::kNoEvidence : Reason::kPolicyPresumedPreloaded);
    const auto sequence = Must(store->GetStatistics()).commit_sequence;
    store.Stop();
    std::filesystem::rename(store.directory(), store.scratch() / "replaced");
    std::filesystem::rename(aside, store.directory());
    store.Start();
    Must(store->PutRecord(RecordWith(kSecretA)));
    BOOST_TEST(Must(store->GetStatistics()).commit_sequence == sequence);
    observer.ExpectTwice(kSecretA, Reason::kSecretHashMatches);
    observer.ExpectTwice(kSecretB, Reason::kNoCredentialMatches);
  });
}

BOOST_AUTO_TEST_CASE(what_is_remembered_is_what_was_found_under_the_same_question) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  const PlacesMemory memory(2, draw.OneIn(2) ? 100'000 : 0);
  Places places;
  memory.Give(1, places);
  // Keys that differ in one byte, many of which share a set.
  std::vector<Key16> keys(1);
  for (std::size_t at = 0; at < 16; ++at) {
    for (const int bit : {1, 16, 128}) {
      keys.emplace_back().bytes.at(at) = static_cast<std::byte>(bit);
    }
  }
  for (int i = 0; i < 300; ++i) {
    for (std::byte& byte : keys.emplace_back().bytes)
      byte = static_cast<std::byte>(draw.Below(256));
  }
  const std::vector<Search> searches = {Search::kKey, Search::kPrefix};
  const std::vector<Table> tables = {Table::kImages, Table::kIntents, Table::kQuarantine,
                                     Table::kKubeletFiles, Table::kRevocations};
  const std::vector<std::byte> map(1 << 16);
  using Question = std::tuple<Search, Table, Key16>;
  using Answer = std::pair<const std::byte*, std::uint32_t>;
  std::map<Question, Answer> told;
  std::size_t found = 0;
  for (int i = 0; i < 200'000; ++i) {
    if (draw.OneIn(2000)) {
      places.Clear();
      told.clear();
    }
    const Question question{draw.From(searches), draw.From(tables), draw.From(keys)};
    const auto& [search, table, key] = question;
    if (draw.OneIn(2)) {
      if (draw.OneIn(2)) {
        const std::size_t at = draw.Below(1 << 15);
        const std::size_t size = draw.Below(1 << 15);
        places.Remember(search, table, key, {map.data() + at, size});
        told[question] = {map.data() + at, static_cast<std::uint32_t>(size)};
      } else {
        const std::size_t number = draw.Below(3);
        places.RememberMissing(search, table, key, number);
        told[question] = {nullptr, static_cast<std::uint32_t>(number)};
      }
    } else if (const Place* const place = places.Find(search, table, key)) {
      ++found;
      const auto expected = told.find(question);
      BOOST_REQUIRE(expected != told.end());
      BOOST_REQUIRE((Answer{place->value, place->number()} == expected->second));
    }
  }
  BOOST_TEST(found > 1000U);
  // Another slot's table has nothing of it.
  Places none;
  memory.Give(0, none);
  for (const Key16& key : keys) BOOST_TEST(none.Find(Search::kKey, Table::kImages, key) == nullptr);
}

BOOST_AUTO_TEST_CASE(without_memory_nothing_is_remembered) {
  Places places;
  places.RememberMissing(Search::kKey, Table::kImages, Key16{}, 0);
  BOOST_TEST(places.Find(Search::kKey, Table::kImages, Key16{}) == nullptr);
  places.Clear();
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
