// An observer opens nothing that its store's live owner, by its own settings, might not.

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/api/opening.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/door/values.h"
#include "store/engine/recovery/owner_lock.h"
#include "tests/support/child_process.h"
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
                                          .decides = false}));
        } else if (what != "close") {
          OpenOptions options = Options(Must(internal::SettingsOf(line.substr(what.size() + 1))));
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

  std::unique_ptr<Store> Observe(const Settings& settings) const {
    return Must(Store::Observe(directory(), settings, Clocks()));
  }
  // Whether an observer with these settings, a new one, opens it.
  bool Opens(const Settings& settings, const Asked& asked) const {
    return Opens(*Observe(settings), asked);
  }
  static bool Opens(Store& observer, const Asked& asked) {
    const std::string ref = Digest(asked.digit);
    Pod pod(kSecretA);
    return !observer.MustPull({.image = asked.image, .image_ref = ref}, pod).pull;
  }
  // An observer looks at the owner once in a tick of the machine's coarse clock.
  static bool Becomes(Store& observer, const Asked& asked, bool open) {
    for (int i = 0; i < 500 && Opens(observer, asked) != open; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return Opens(observer, asked) == open;
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

BOOST_AUTO_TEST_CASE(a_laxer_one_opens_nothing) {
  struct Row {
    const char* what;
    Settings owner;
    Settings observer;
    Asked asked;
    bool opens;
  };
  const std::string all = "r.example/*";
  const std::vector<Row> rows = {
      {"the same", kDefault, kDefault, kProven, true},
      {"the same, preloaded", kDefault, kDefault, kPreloaded, true},
      {"kubelet under strict", kDefault, kAsKubelet, kUnseen, false},
      {"kubelet under strict, although both open it", kDefault, kAsKubelet, kProven, false},
      {"kubelet under kubelet", kAsKubelet, kAsKubelet, kUnseen, true},
      {"strict under kubelet", kAsKubelet, kDefault, kProven, true},
      {"kubelet and Always under strict", kDefault,
       Of({.verification = Verification::kAlwaysVerify}, Mode::kKubelet), kProven, false},
      {"Never under Preloaded", kDefault, kNever, kClosed, false},
      {"Never under Always", kAlways, kNever, kClosed, false},
      {"Never under Allowlisted", Allowing({all}), kNever, kClosed, false},
      {"Never under Never", kNever, kNever, kClosed, true},
      {"Preloaded under Never", kNever, kDefault, kPreloaded, true},
      {"Preloaded under Always", kAlways, kDefault, kPreloaded, false},
      {"Preloaded under Allowlisted", Allowing({all}), kDefault, kPreloaded, false},
      {"Allowlisted under Preloaded", kDefault, Allowing({all}), kClosed, false},
      {"Allowlisted under Never", kNever, Allowing({all}), kClosed, true},
      {"Always under Preloaded", kDefault, kAlways, kProven, true},
      {"Always under Allowlisted", Allowing({all}), kAlways, kProven, true},
      {"the same allowlist", Allowing({all}), Allowing({all}), kClosed, true},
      {"a longer allowlist", Allowing({"other.example/*"}), Allowing({all, "other.example/*"}),
       kClosed, false},
      {"a shorter allowlist", Allowing({all, "other.example/*"}), Allowing({all}), kClosed, true},
      {"a wider pattern", Allowing({"r.example/closed"}), Allowing({all}), kClosed, false},
      {"any of the list under preloaded only", Allowing({all}, true), Allowing({all}), kClosed,
       false},
      {"preloaded only under preloaded only", Allowing({all}, true), Allowing({all}, true),
       kPreloaded, true},
      {"preloaded only under any of the list", Allowing({all}), Allowing({all}, true), kPreloaded,
       true},
      {"any proof under the registry's", ByRegistry({all}), kDefault, kMirrored, false},
      {"any proof under any", kDefault, kDefault, kMirrored, true},
      {"another registry's", ByRegistry({all}), ByRegistry({"other.example/*"}), kProven, false},
      {"some under all", ByRegistry({"*"}), ByRegistry({all}), kProven, false},
      {"all under some", ByRegistry({all}), ByRegistry({"*"}), kProven, true},
      {"more under some", ByRegistry({all}), ByRegistry({all, "other.example/x"}), kProven, true},
      {"the registry's under any", kDefault, ByRegistry({all}), kProven, true},
      {"any proof beside Always", ByRegistry({all}), kAlways, kProven, false},
      {"other settings decide nothing",
       {.pool = {.enabled = false}, .short_names_anywhere = false, .flushes_twice = true},
       kDefault,
       kProven,
       true}};
  Node node;
  for (const Row& row : rows) {
    BOOST_TEST_CONTEXT(row.what) {
      BOOST_TEST(node.Opens(row.observer, row.asked));  // without an owner it decides
      node.Own(row.owner);
      BOOST_TEST(node.Opens(row.observer, row.asked) == row.opens);
      node.Disown();
    }
  }
}

BOOST_AUTO_TEST_CASE(proofs_count_no_longer_than_to_the_owner) {
  Node node;
  node.Own(kDefault);  // for ever
  BOOST_TEST(node.Opens(Until(7200), kProven));
  for (const auto& [owner, observer, opens] : {std::tuple(3600U, 7200U, false),
                                               {3600U, 3600U, true},
                                               {3600U, 60U, true},
                                               {3600U, 0U, true},
                                               {0U, 7200U, false},
                                               {0U, 3600U, true},
                                               {0U, 0U, true},
                                               {86400U, 7200U, true}}) {
    BOOST_TEST_CONTEXT(owner << " s, and " << observer << " s to the observer") {
      node.Own(Until(owner));  // 0: as the store remembers
      BOOST_TEST(node.Opens(Until(observer), kProven) == opens);
      node.Disown();
      BOOST_TEST(node.Opens(Until(observer), kProven));
    }
  }
}

BOOST_AUTO_TEST_CASE(one_observer_follows_each_owner) {
  Node node;
  for (const auto& [settings, asked, under_default, under_never] :
       {std::tuple(kDefault, kPreloaded, true, true),
        {Allowing({"r.example/*"}), kClosed, false, true}}) {
    const auto observer = node.Observe(settings);
    for (int i = 0; i < 3; ++i) {
      BOOST_TEST(Node::Becomes(*observer, asked, true));
      node.Own(kAlways);
      BOOST_TEST(Node::Becomes(*observer, asked, false));
      BOOST_TEST(Node::Becomes(*observer, kProven, false));
      node.Own(kDefault);
      BOOST_TEST(Node::Becomes(*observer, asked, under_default));
      node.Own(kNever);
      BOOST_TEST(Node::Becomes(*observer, asked, under_never));
      node.Own(kAlways, "moment");
      BOOST_TEST(Node::Becomes(*observer, asked, true));
      node.Disown();
    }
  }
}

// An owner that goes on with the pulls of the one before decides as any other.
BOOST_AUTO_TEST_CASE(an_owner_that_continues_pulls_says_its_settings) {
  Node node;
  node.Own(kAlways, "continue");
  BOOST_TEST(!node.Opens(kNever, kClosed));
  BOOST_TEST(!node.Opens(kDefault, kPreloaded));
}

// A command decides nothing.
BOOST_AUTO_TEST_CASE(the_owner_of_a_moment_turns_no_observer_off) {
  Node node;
  node.Own(kAlways, "moment");
  BOOST_TEST(node.Opens(kDefault, kPreloaded));
  BOOST_TEST(node.Opens(kNever, kClosed));
  BOOST_TEST(node.Opens(kAsKubelet, kUnseen));
}

// While the next owner opens, who decided last counts, whatever command came in between.
BOOST_AUTO_TEST_CASE(the_owner_of_a_moment_hides_no_settings) {
  Node node;
  node.Own(kAlways);
  node.Own(kAlways, "moment");
  BOOST_TEST(node.Opens(kNever, kClosed));
  node.Disown();
  BOOST_TEST(!Must(internal::LookAtOwner(node.directory())).is_owned);
  const auto opening = Must(internal::OwnerLock::Take(node.directory()));
  const auto owner = Must(internal::LookAtOwner(node.directory()));
  BOOST_TEST(owner.is_owned);
  BOOST_TEST(owner.settings.find("AlwaysVerify") != std::string::npos);
  BOOST_TEST(!node.Opens(kNever, kClosed));
}

BOOST_AUTO_TEST_CASE(what_an_owner_says_must_be_understood) {
  Node node;
  node.Own(kDefault);
  // No owner can be stricter.
  const auto observer =
      node.Observe(Of({.verification = Verification::kAlwaysVerify, .registry_only = {"*"}}));
  const std::filesystem::path path = node.directory() / "owner.lock";
  const std::string sound = ReadFile(path);
  const std::size_t second = sound.find('\n') + 1;
  const std::string first = sound.substr(0, second);
  for (const std::string& said :
       {std::string(), first, sound.substr(0, sound.size() - 1), first + "\n", first + "--\n",
        first + "{\"mode\":\"stri\n", first + "{\"mode\":\"other\"}\n",
        first + "{\"later\":true}\n", first + "{} {}\n", first + "[]\n",
        first + std::string(9, '\0') + "\n"}) {
    BOOST_TEST_CONTEXT(said) {
      WriteFile(path, said);
      BOOST_TEST(Node::Becomes(*observer, kProven, false));
      WriteFile(path, sound);
      BOOST_TEST(Node::Becomes(*observer, kProven, true));
    }
  }
  // All that is left out has its default.
  WriteFile(path, first + "{}\n");
  BOOST_TEST(Node::Becomes(*observer, kProven, true));
}

// Settings have none, but a command's policy may.
BOOST_AUTO_TEST_CASE(an_exception_for_any_proof_is_laxer) {
  Node node;
  const ObserveOptions options{
      .directory = node.directory(),
      .policy = Must(VerificationPolicy().WithProofs(
          {{"", Proofs::kRegistry}, {"r.example/mirrored", Proofs::kAny}}))};
  const std::string ref = Digest(kMirrored.digit);
  const ImageCopy copy{.image = kMirrored.image, .image_ref = ref};
  BOOST_TEST(!DecisionOf(*Must(NodeStore::Observe(options)), copy, Pod(kSecretA)).pull);
  node.Own(ByRegistry({"*"}));
  BOOST_TEST(!node.Opens(ByRegistry({"*"}), kMirrored));
  BOOST_TEST(DecisionOf(*Must(NodeStore::Observe(options)), copy, Pod(kSecretA)).pull);
}

// For showing what other settings would give.
BOOST_AUTO_TEST_CASE(previews_ask_no_owner) {
  Node node;
  node.Own(kAlways);
  ObserveOptions options{.directory = node.directory()};
  const std::string ref = Digest(kPreloaded.digit);
  const ImageCopy copy{.image = kPreloaded.image, .image_ref = ref};
  BOOST_TEST(DecisionOf(*Must(NodeStore::Observe(options)), copy).pull);
  options.asks_owner = false;
  BOOST_TEST(!DecisionOf(*Must(NodeStore::Observe(options)), copy).pull);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
