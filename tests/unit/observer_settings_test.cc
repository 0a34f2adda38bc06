// An observer decides by the mode, the policy and the ages that the store has of its owner.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/door/settings.h"
#include "store/door/values.h"
#include "store/maintenance.h"
#include "tests/support/child_process.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/rows.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(observer_settings)

namespace {

struct Asked {
  const char* image;
  char digit;
};
constexpr Asked kProven{"r.example/proven:v1", '1'};  // by the registry, for kSecretA
constexpr Asked kPreloaded{"r.example/preloaded:v1", '2'};
constexpr Asked kClosed{"r.example/closed:v1", '3'};  // nobody knows by which credentials it came
constexpr Asked kMirrored{"r.example/mirrored:v1", '4'};  // by a mirror, for kSecretA
constexpr Asked kUnseen{"r.example/unseen:v1", '9'};

// A store of which another process is the owner, if any is.
class Node {
 public:
  Node() {
    const auto store = Must(Store::Open(Options({})));
    Pull(*store, kProven, WithSecret(kSecretA));
    Pull(*store, kMirrored, WithSecret(kSecretA), VerifiedBy::kMirror);
    Pull(*store, kClosed, {});
    Must(store->Call(
        AllowImage{.image = {.id = Digest(kPreloaded.digit), .repo_tags = {kPreloaded.image}},
                   .reason = "why"}));
    Must(store->Close());
    owner_ = std::make_unique<ChildProcess>([this] {
      return [this, store = std::shared_ptr<Store>(),
              command = std::shared_ptr<NodeStore>()](const std::string& line) mutable {
        store.reset();
        command.reset();
        const std::string what = line.substr(0, line.find(' '));
        if (what == "moment") {
          command = Must(NodeStore::Open({.directory = directory(),
                                          .witness = Witness::Remembered(),
                                          .continues_pulls = true,
                                          .chooses = false}));
        } else if (what != "close") {
          Settings settings;
          const std::string json = line.substr(what.size() + 1);
          BOOST_TEST_REQUIRE(
              internal::FromJson(json, settings, internal::Strangers::kRefuse).empty());
          OpenOptions options = Options(settings);
          options.continues_pulls = what == "continue";
          store = Must(Store::Open(std::move(options)));
        }
        return what;
      };
    });
  }

  std::filesystem::path directory() const { return scratch_ / "store"; }
  void Own(const Settings& settings, const std::string& how = "own") {
    BOOST_TEST_REQUIRE(owner_->Ask(how + " " + internal::ToJson(settings)) == how);
  }
  void Disown() { BOOST_TEST_REQUIRE(owner_->Ask("close") == "close"); }

  FakeClock& clock() { return clock_; }

  std::unique_ptr<Store> Observe() const { return Must(Store::Observe(directory(), Clocks())); }
  // Whether a new observer opens it.
  bool Opens(const Asked& asked) const { return Opens(*Observe(), asked); }
  static bool Opens(Store& observer, const Asked& asked) {
    const std::string ref = Digest(asked.digit);
    Pod pod(kSecretA);
    return !observer.MustPull({.image = asked.image, .image_ref = ref}, pod).pull;
  }

 private:
  waybill::Clocks Clocks() const { return {clock_.AsClock(), clock_.AsBootClock()}; }
  OpenOptions Options(const Settings& settings) const {
    OpenOptions options{.directory = directory(), .loss_marker = scratch_ / "marker"};
    options.settings = settings;
    options.settings.map_bytes = std::uint64_t{64} << 20U;
    options.clocks = Clocks();
    return options;
  }
  static void Pull(Store& store, const Asked& asked,
                   const std::optional<ImagePullCredentials>& credentials,
                   VerifiedBy verified_by = VerifiedBy::kRegistry) {
    const std::string ref = Digest(asked.digit);
    const ImageCopy copy{.image = asked.image, .image_ref = ref};
    const PullId pull = Must(store.BeginPull(copy));
    Must(
        store.EndPull(copy, pull, PullOutcome::kPulled, credentials, {.verified_by = verified_by}));
  }

  MemoryDir scratch_;
  FakeClock clock_;
  std::unique_ptr<ChildProcess> owner_;
};

Settings Of(Policy policy, Mode mode = Mode::kStrict) {
  return {.mode = mode, .policy = std::move(policy)};
}
Settings Allowing(std::vector<std::string> allowlist, bool preloaded_only = false) {
  return Of({.verification = Verification::kNeverVerifyAllowlistedImages,
             .allowlist = std::move(allowlist),
             .allowlist_preloaded_only = preloaded_only});
}
Settings ByRegistry(std::vector<std::string> registry_only) {
  return Of({.registry_only = std::move(registry_only)});
}
Settings Until(std::uint64_t seconds) { return {.max_age_seconds = seconds}; }

const Settings kNever = Of({.verification = Verification::kNeverVerify});
const Settings kDefault;
const Settings kAlways = Of({.verification = Verification::kAlwaysVerify});
const Settings kAsKubelet = Of({}, Mode::kKubelet);

}  // namespace

BOOST_AUTO_TEST_CASE(it_goes_by_what_the_owner_chose_beside_it_and_after_it) {
  struct Row {
    const char* what;
    Settings owner;
    Asked asked;
    bool opens;
  };
  const std::string all = "r.example/*";
  const std::vector<Row> rows = {
      {"proven", kDefault, kProven, true},
      {"preloaded", kDefault, kPreloaded, true},
      {"closed", kDefault, kClosed, false},
      {"nobody ever saw it", kDefault, kUnseen, false},
      {"proven by a mirror", kDefault, kMirrored, true},
      {"Never", kNever, kClosed, true},
      {"Always", kAlways, kPreloaded, false},
      {"Always, proven", kAlways, kProven, true},
      {"Allowlisted", Allowing({all}), kClosed, true},
      {"of another list", Allowing({"other.example/*"}), kClosed, false},
      {"preloaded only", Allowing({all}, true), kClosed, false},
      {"preloaded only, preloaded", Allowing({all}, true), kPreloaded, true},
      {"by the registry", ByRegistry({"*"}), kMirrored, false},
      {"by the registry, proven", ByRegistry({"*"}), kProven, true},
      {"the last one, which opens it", kAsKubelet, kUnseen, true},
  };
  Node node;
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.what) {
      node.Own(row.owner);
      BOOST_TEST(node.Opens(row.asked) == row.opens);
      node.Disown();
      BOOST_TEST(node.Opens(row.asked) == row.opens);
      // A command leaves the settings alone.
      node.Own(kDefault, "moment");
      BOOST_TEST(node.Opens(row.asked) == row.opens);
      node.Disown();
      BOOST_TEST(node.Opens(row.asked) == row.opens);
      BOOST_TEST((Must(node.Observe()->Call(GetStatus())).settings.mode == row.owner.mode));
    }
  }
}

BOOST_AUTO_TEST_CASE(proofs_count_no_longer_than_to_the_owner) {
  Node node;
  node.clock().AdvanceSeconds(3600);
  for (const auto& [seconds, opens] : {std::pair(0U, true), {7200U, true}, {60U, false}}) {
    node.Own(Until(seconds));
    BOOST_TEST(node.Opens(kProven) == opens, seconds);
    node.Disown();
    BOOST_TEST(node.Opens(kProven) == opens, seconds);
  }
}

BOOST_AUTO_TEST_CASE(one_observer_follows_each_owner) {
  Node node;
  const auto observer = node.Observe();
  for (int i = 0; i < 3; ++i) {
    for (const auto& [owner, closed, preloaded] :
         {std::tuple(kAlways, false, false), {kDefault, false, true}, {kNever, true, true}}) {
      node.Own(owner, i == 1 ? "continue" : "own");
      BOOST_TEST(Node::Opens(*observer, kClosed) == closed);
      BOOST_TEST(Node::Opens(*observer, kPreloaded) == preloaded);
      node.Own(kAlways, "moment");
      BOOST_TEST(Node::Opens(*observer, kClosed) == closed);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_cant_be_read_is_the_strictest_policy) {
  for (const char* text : {"{", "[]", "{} {}", R"({"later":true})", R"({"mode":"other"})",
                           R"({"policy":{"allowlist":["a"]}})"}) {
    const VerificationPolicy policy = internal::Chosen::Of(text).policy;
    BOOST_TEST((policy.mode() == Verification::kAlwaysVerify), text);
    BOOST_TEST(policy.CountsOnlyRegistry("r.example/any"), text);
  }
  BOOST_TEST(!internal::Chosen::Of("").policy.chooses_proofs());
}

// The owner that chose last may have been stricter.
BOOST_AUTO_TEST_CASE(older_settings_that_come_back_open_nothing) {
  for (const std::string how : {"put back", "put back where nothing is", "copied"}) {
    BOOST_TEST_CONTEXT(how) {
      Node node;
      const std::filesystem::path data = node.directory() / "data.mdb";
      const std::filesystem::path old = node.directory().parent_path() / "old.mdb";
      node.Own(kNever);
      node.Disown();
      std::filesystem::copy_file(data, old);
      node.Own(kAlways);
      node.Disown();
      if (how == "copied") {
        std::filesystem::copy_file(old, data, std::filesystem::copy_options::overwrite_existing);
        node.Own(kDefault, "moment");
        node.Disown();
      } else {
        if (how != "put back") {
          std::filesystem::remove_all(node.directory());
          std::filesystem::create_directory(node.directory());
          std::filesystem::permissions(node.directory(), std::filesystem::perms::owner_all);
        }
        Must(RestoreStore({.directory = node.directory(), .backup = old}));
      }
      BOOST_TEST(!node.Opens(kClosed));
      node.Own(kNever);
      BOOST_TEST(node.Opens(kClosed));
    }
  }
}

// With the new mode, and the former policy, it would.
BOOST_AUTO_TEST_CASE(an_opening_that_fails_opens_nothing) {
  Node node;
  NodeStoreOptions options{.directory = node.directory(), .witness = Witness::Remembered()};
  Must(Must(NodeStore::Open(options))->ReplaceRuntimeHandlers({{"runc", true, true}}));
  options.rules = Mode::kKubelet;
  options.policy = Must(VerificationPolicy::Make(Verification::kAlwaysVerify, {}));
  options.runtime_handlers.emplace();
  ExpectError(NodeStore::Open(options), ErrorCode::kInvalidArgument);
  BOOST_TEST(!node.Opens(kUnseen));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
