#include "waybill/policy.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/allocations.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "waybill/limits.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(policy)

namespace {

using Mode = VerificationMode;
using Origin = ImageOrigin;
using Patterns = std::vector<std::string>;

VerificationPolicy Allowlist(Patterns patterns, AllowlistScope scope = AllowlistScope::kAnyImage) {
  return VerificationPolicy::Make(Mode::kNeverVerifyAllowlistedImages, std::move(patterns), scope)
      .value();
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
    BOOST_TEST(VerificationModeName(mode) == name);
    BOOST_TEST((ParseVerificationMode(name).value() == mode));
  }
  for (const std::string_view bad : {"", "neververify", "NeverVerify ", "Always"}) {
    const Error mode =
        testing::ExpectError(ParseVerificationMode(bad), ErrorCode::kInvalidArgument);
    for (const auto& known : modes) {
      BOOST_TEST(mode.ToString().find(known.second) != std::string::npos);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_mode_asks_for_what_it_says) {
  struct Row {
    Mode mode;
    bool pulled, preloaded, unknown;  // verification required
  };
  for (const Row& row : {Row{Mode::kNeverVerify, false, false, false},
                         Row{Mode::kNeverVerifyPreloadedImages, true, false, true},
                         Row{Mode::kNeverVerifyAllowlistedImages, true, true, true},
                         Row{Mode::kAlwaysVerify, true, true, true}}) {
    const auto policy = VerificationPolicy::Make(row.mode, {}).value();
    BOOST_TEST_CONTEXT(VerificationModeName(row.mode)) {
      BOOST_TEST(policy.RequiresVerification("a", Origin::kKubeletPulled) == row.pulled);
      BOOST_TEST(policy.RequiresVerification("a", Origin::kPreloaded) == row.preloaded);
      BOOST_TEST(policy.RequiresVerification("a", Origin::kUnknown) == row.unknown);
    }
  }
  BOOST_TEST((VerificationPolicy().mode() == Mode::kNeverVerifyPreloadedImages));
  const auto from_the_future = static_cast<Mode>(200);
  BOOST_TEST(VerificationPolicy::Make(from_the_future, {})
                 .value()
                 .RequiresVerification("a", Origin::kPreloaded));
}

BOOST_AUTO_TEST_CASE(names_match_as_they_are) {
  const auto policy = Allowlist({"nginx", "registry.example.com/team/app", "nginx"});
  BOOST_TEST(Allows(policy, "nginx"));
  BOOST_TEST(Allows(policy, "registry.example.com/team/app"));
  for (const std::string_view other :
       {"", "ngin", "nginx2", "nginx/x", "docker.io/library/nginx", "registry.example.com/team",
        "registry.example.com/team/app/x", "Nginx", "nginx:1"}) {
    BOOST_TEST_CONTEXT(other) { BOOST_TEST(!Allows(policy, other)); }
  }
}

BOOST_AUTO_TEST_CASE(prefixes_open_everything_below) {
  const auto policy = Allowlist({"registry.host/*", "a/b/*", "a/b-c/*", "a/b/c/*", "a/bb"});
  for (const std::string_view below :
       {"registry.host/x", "registry.host/x/y/z", "registry.host/", "registry.host/~", "a/b/c",
        "a/b/c/d", "a/b/0", "a/b/zz", "a/b-c/d", "a/bb", "registry.host/ not an image"}) {
    BOOST_TEST_CONTEXT(below) { BOOST_TEST(Allows(policy, below)); }
  }
  for (const std::string_view other :
       {"registry.host", "registry.hosts/x", "registry.host:443/x", "a/b", "a/c", "a/b.c/d",
        "a/bb/c", "x/registry.host/x", "a/", "registry.hos"}) {
    BOOST_TEST_CONTEXT(other) { BOOST_TEST(!Allows(policy, other)); }
  }
}

BOOST_AUTO_TEST_CASE(a_prefix_of_a_prefix_hides_nothing) {
  for (const Patterns& patterns : {Patterns{"a/*", "a/b/*"}, Patterns{"a/b/*", "a/*"},
                                   Patterns{"a/*", "a/b/*", "a/b/c/*", "a/*"}}) {
    const auto policy = Allowlist(patterns);
    for (const std::string_view below : {"a/a", "a/b", "a/b/c", "a/b/c/d", "a/bz", "a/z"}) {
      BOOST_TEST(Allows(policy, below));
    }
    BOOST_TEST(!Allows(policy, "a"));
    BOOST_TEST(!Allows(policy, "aa/b"));
  }
}

BOOST_AUTO_TEST_CASE(preloaded_only_asks_for_the_origin_too) {
  const auto policy = Allowlist({"a", "b/*"}, AllowlistScope::kPreloadedOnly);
  BOOST_TEST((policy.scope() == AllowlistScope::kPreloadedOnly));
  for (const std::string_view name : {"a", "b/c"}) {
    BOOST_TEST(!policy.RequiresVerification(name, Origin::kPreloaded));
    BOOST_TEST(policy.RequiresVerification(name, Origin::kKubeletPulled));
    BOOST_TEST(policy.RequiresVerification(name, Origin::kUnknown));
  }
  BOOST_TEST(policy.RequiresVerification("c", Origin::kPreloaded));
}

// Other refusals: texts/allowlist-patterns.jsonl.
BOOST_AUTO_TEST_CASE(refusals_name_the_pattern_and_the_reason) {
  CheckRefused(Mode::kNeverVerifyAllowlistedImages, {"sound", std::string(100000, 'a')}, "aaa\"…",
               "does not parse");
  for (const Mode mode :
       {Mode::kNeverVerify, Mode::kNeverVerifyPreloadedImages, Mode::kAlwaysVerify}) {
    CheckRefused(mode, {"a"}, "\"a\"", VerificationModeName(mode));
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

}  // namespace waybill
