// A store that serves and its clients: each call through the socket is what it is in the process,
// except that a client ends no pull of the owner's; who serves, and who does not.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "store/door.h"
#include "store/owner_socket/request.h"
#include "tests/support/child_process.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/mutation.h"
#include "tests/support/rows.h"
#include "tests/support/varlink_client.h"
#include "waybill/limits.h"
#include "waybill/store.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(serve)

namespace {

namespace fs = std::filesystem;
using internal::FromJson;
using internal::ToJson;

// A store that may be closed and opened again.
struct Place {
  fs::path directory() const { return scratch / "store"; }
  OpenOptions Options() const {
    OpenOptions options{.directory = directory(), .loss_marker = scratch / "marker"};
    options.runtimes = {
        {{.name = "runc", .is_default = true, .user_namespaces = true}, {.name = "gvisor"}}};
    options.settings.map_bytes = std::uint64_t{64} << 20U;
    options.clocks = {clock.AsClock(), clock.AsBootClock()};
    return options;
  }
  void Open() { store = Must(Store::Open(Options())); }
  void Serve() { Must(store->Serve({.connections = 64})); }

  MemoryDir scratch;
  FakeClock clock;
  std::unique_ptr<Store> store;
  const Owner owner{directory()};
};

struct Opened : Place {
  Opened() { Open(); }
};
struct Served : Opened {
  Served() { Serve(); }
};

const std::string kA = "r.example/a:1";
const std::string kRefA = Digest('a');
const ImageCopy kCopy{.image = kA, .image_ref = kRefA};

EndPull Ended(std::uint64_t pull, PullOutcome outcome,
              const std::optional<ImagePullCredentials>& credentials = {}) {
  return {kA, kRefA, "", pull, outcome, credentials};
}

// --- A session with every call, and errors of each

// What differs between two stores with the same history is the same in both.
std::string Masked(const std::string& text) {
  static const std::regex own(R"x(/[\w/]*waybill-test-\w{6}|"storeUuid":"[^"]*")x");
  static const std::regex token(R"x(("token":"\d+\.\d+\.)\d+\.)x");
  return std::regex_replace(std::regex_replace(text, own, "OWN"), token, "$1STORE.");
}

template <typename T>
Result<std::string> Text(const Result<T>& answer) {
  if (!answer) return answer.error();
  return ToJson(*answer);
}

struct Session {
  Place& place;
  int way;  // 0 and 1 in the process, 2 and 3 through the socket; 1 and 3 by name and as JSON
  std::vector<std::string> said = {};
  std::set<std::string> called = {};

  template <typename C>
  typename C::Answer Say(const C& call) {
    const std::string name(internal::TypeName<C>());
    const Result<std::string> told = way == 0   ? Text(place.store->Call(call))
                                     : way == 1 ? place.store->CallJson(name, ToJson(call))
                                     : way == 2 ? Text(place.owner.Call(call))
                                                : place.owner.CallJson(name, ToJson(call));
    called.insert(name);
    const std::string words =
        told ? *told
             : std::string(ErrorCodeName(told.error().code)) + ": " + told.error().ToString();
    said.push_back(name + " " + Masked(words));
    typename C::Answer answer{};
    if (!told) return answer;
    BOOST_TEST(FromJson(*told, answer, internal::Strangers::kRefuse) == "");
    BOOST_TEST(ToJson(answer) == *told);
    return answer;
  }
  void Play();
};

void Session::Play() {
  const std::vector<ListedImage> images = {{.id = Digest('b'), .repo_tags = {"r.example/b:1"}},
                                           {.id = Digest('e'), .pinned = true}};
  const std::uint64_t other = Say(BeginPull{.image = "r.example/b:1"}).pull;
  Say(EndPull{.image = "r.example/b:1", .pull = other, .outcome = PullOutcome::kUnknown});
  const ListToken token = Say(BeginList()).token;
  Say(ClassifyImages{.list = {.images = images, .token = token, .complete = true}});
  const std::uint64_t pull = Say(BeginPull{.image = kA}).pull;
  Say(BeginPull{.image = std::string(kMaxImageBytes + 1, 'x')});
  EndPull end = Ended(pull, PullOutcome::kPulled, WithSecret(kSecretA));
  end.credentials->kubernetes_service_accounts = {{"u", "n", "account"}};
  end.details.verified_by = VerifiedBy::kRegistry;
  end.details.valid_until = Timestamp{kFakeEpoch + 1000, 0};
  end.details.manifest_digest = Digest('8');
  end.details.platform = Platform{.architecture = "amd64", .os = "linux"};
  end.details.listed = ListedImage{.id = kRefA, .repo_tags = {kA}};
  Say(end);
  for (const ImagePullSecret& secret : {kSecretA, kSecretB}) {
    const MustPull question{.image = kA, .image_ref = kRefA, .secrets = {secret}};
    Say(question);
    Say(EnsureImage{.pull_policy = PullPolicy::kNever, .question = question});
    Say(Explain{.image = kA, .image_ref = kRefA, .secrets = {{secret}}});
  }
  Say(Flush());
  Say(ListPulls());
  Say(DropPulls{.pull = 7, .reason = "why"});
  Say(DropPulls{.image = "r.example/b:1", .reason = "why"});
  const ListedImage f{.id = Digest('f'), .repo_tags = {"r.example/f:1"}};
  Say(AllowImage{.image = f, .reason = "why"});
  Say(AllowImage{.image = {.id = kRefA}, .reason = "why"});
  Say(DenyImage{.image_ref = f.id, .reason = "why", .dry_run = true});
  ImagePulledRecord record{.image_ref = Digest('9')};
  record.credential_mapping["r.example/p"] = NodeWide();
  Say(PutImage{.record = record});
  Say(ListImages{.hashes = true});
  Say(DeleteImage{.image_ref = Digest('9')});
  const ListToken later = Say(BeginList()).token;
  Say(PruneBefore{.images = {{.id = kRefA}}});
  Say(PruneBefore{.images = {{.id = kRefA}}, .token = later});
  Say(Revoke{.what = {.who = {.namespace_name = "team-b", .name = "pull"}}});
  Say(RevokeMissing{.existing = {.secrets = {{"team-a", "pull"}}}, .token = later, .more = true});
  Say(RevokeMissing{.token = later, .parts_before = 7});
  Say(RevokeMissing{.token = later, .parts_before = 1});
  Say(ListRevocations{.hashes = true});
  Say(ListRuntimes());
  Say(ClaimUserNamespace{.pod_uid = "pod-1", .host_users = false});
  Say(ClaimUserNamespace{.pod_uid = "pod-2", .host_users = false, .runtime_handler = "gvisor"});
  Say(AssignUserNamespace{"pod-3", 7 * kIdsPerBlock, kIdsPerBlock});
  Say(ListUserNamespaces());
  Say(ReleaseUserNamespace{.pod_uid = "pod-3"});
  Say(CleanUpUserNamespaces{.running = {"pod-9"}, .token = Say(BeginList()).token});
  Say(SetRuntimes{.status = "{"});
  Say(SetRuntimes{.off = true});
  Say(NoteUnrecordedPeriod{"why"});
  Say(AcceptLoss{.reason = "why", .images = images, .allow_all = true});
  Say(GetStatus());
  Say(GetMetrics());
  Say(Verify());
  Say(MakeBackup());
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_call_is_the_same_in_each_way) {
  std::vector<std::string> expected;
  for (int way = 0; way < 4; ++way) {
    BOOST_TEST_CONTEXT("way " << way) {
      Served served;
      Session session{served, way};
      session.Play();
      if (way == 0) expected = session.said;
      BOOST_TEST_REQUIRE(session.said.size() == expected.size());
      for (std::size_t i = 0; i < expected.size(); ++i) BOOST_TEST(session.said[i] == expected[i]);
      std::set<std::string> all;
#define WAYBILL_NAME(C) all.insert(#C);
      WAYBILL_READING_CALLS(WAYBILL_NAME)
      WAYBILL_CHANGING_CALLS(WAYBILL_NAME)
#undef WAYBILL_NAME
      BOOST_TEST(session.called == all, boost::test_tools::per_element());
    }
  }
  for (const char* part :
       {"BeginPull limitExceeded: ", "AllowImage conflict: ", "DropPulls notFound: ",
        "PruneBefore invalidArgument: ", "MustPull {\"pull\":true", "MustPull {\"pull\":false"}) {
    BOOST_TEST(std::any_of(expected.begin(), expected.end(),
                           [&](const std::string& one) { return one.starts_with(part); }),
               part);
  }
}

BOOST_FIXTURE_TEST_CASE(what_is_not_served_is_no_call, Served) {
  for (const char* name : {"ExportKubeletFiles", "ListKubeletFiles", "Migrate", "Restore",
                           "ParseImage", "PrepareStream", "Nonsense", ""}) {
    ExpectError(owner.CallJson(name, "{}"), ErrorCode::kInvalidArgument, "nothing was changed");
    VarlinkClient client(directory());
    const std::string reply = client.Ask("{\"method\":\"dev.waybill." + std::string(name) + "\"}");
    BOOST_TEST(reply.find("org.varlink.service.") != std::string::npos, reply);
  }
  // Who has only the socket must not write wherever the owner may.
  for (const fs::path& file : {fs::path("copy"), scratch / "copy"}) {
    ExpectError(owner.Call(MakeBackup{file}), ErrorCode::kInvalidArgument, "no backup was made");
    BOOST_TEST(!fs::exists(scratch / "copy"));
  }
  const std::string wrong = R"({"imagee":"a"})";
  BOOST_TEST(owner.CallJson("ListPulls", wrong).error().ToString() ==
             store->CallJson("ListPulls", wrong).error().ToString());
}

// --- Pulls of the owner's and of clients

BOOST_FIXTURE_TEST_CASE(a_client_does_not_end_the_pulls_of_the_owner, Served) {
  using Pulls = std::vector<std::uint64_t>;
  const auto left = [&] {
    Pulls ids;
    for (const auto& pull : Must(owner.Call(ListPulls())).pulls) ids.push_back(pull.id.value);
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  const BeginPull begin{.image = kA};
  const PullId own = Must(store->BeginPull(kCopy));
  for (const PullOutcome outcome : {PullOutcome::kNothing, PullOutcome::kPulled}) {
    ExpectError(owner.Call(Ended(own.value, outcome)), ErrorCode::kConflict);
    ExpectError(owner.Call(Ended(0, outcome)), ErrorCode::kInvalidArgument);
  }
  ExpectError(owner.Call(DropPulls{.pull = own.value, .reason = "why"}), ErrorCode::kConflict);
  ExpectError(owner.Call(DropPulls{.image = kA, .reason = "why"}), ErrorCode::kConflict);
  BOOST_TEST_REQUIRE(left() == Pulls{own.value});
  // Its own it does, though the owner's is newer; once.
  const std::uint64_t first = Must(owner.Call(begin)).pull;
  const PullId newest = Must(store->BeginPull(kCopy));
  const std::uint64_t second = Must(owner.Call(begin)).pull;
  Must(owner.Call(Ended(first, PullOutcome::kNothing)));
  BOOST_TEST(left() == (Pulls{own.value, newest.value, second}));
  Must(owner.Call(Ended(second, PullOutcome::kPulled)));
  BOOST_TEST(left() == (Pulls{own.value, newest.value}));
  ExpectError(owner.Call(Ended(newest.value, PullOutcome::kPulled)), ErrorCode::kConflict);
  // Of unknown end, nobody runs it any more.
  Must(store->EndPull(kCopy, own, PullOutcome::kUnknown));
  Must(owner.Call(Ended(own.value, PullOutcome::kPulled)));
  BOOST_TEST(left() == Pulls{newest.value});
}

// --- Serving and not

BOOST_FIXTURE_TEST_CASE(an_owner_serves_once_and_its_clients_outlive_it, Opened) {
  ExpectError(owner.Call(BeginList()), ErrorCode::kNotFound, "othing was changed");
  for (const bool explicitly : {true, false}) {
    Serve();
    ExpectError(store->Serve(), ErrorCode::kConflict, "nothing was changed");
    BOOST_TEST(owner.Call(BeginList()).has_value());
    if (explicitly) {
      Must(store->Close());
      ExpectError(store->Serve(), ErrorCode::kClosed);
    }
    store.reset();
    BOOST_TEST(!fs::exists(directory() / "owner.sock"));
    ExpectError(owner.Call(BeginList()), ErrorCode::kNotFound);
    Open();
    ExpectError(owner.Call(BeginList()), ErrorCode::kNotFound);
  }
}

BOOST_FIXTURE_TEST_CASE(an_observer_reads_and_nothing_else, Place) {
  Open();
  store.reset();
  ChildProcess observing([&] {
    return [&](const std::string&) {
      const auto observer = Must(Store::Observe(directory(), Options().clocks));
      std::string said(ErrorCodeName(observer->Serve().error().code));
#define WAYBILL_DONE(C) \
  if (observer->Call(waybill::C())) said += " " #C;
      WAYBILL_CHANGING_CALLS(WAYBILL_DONE)
#undef WAYBILL_DONE
      const auto status = Must(observer->Call(GetStatus()));
      return said + " " + std::to_string(status.owner_pid) + (status.opening ? " opened" : "") +
             (observer->Call(MakeBackup{scratch / "copy"}) ? " copied" : "");
    };
  });
  Open();
  Serve();
  // There is nothing to flush, and a pod with host users needs no mapping.
  BOOST_TEST(observing.Ask("?") == "notOwner ClaimUserNamespace Flush 0 copied");
  BOOST_TEST(owner.Call(BeginList()).has_value());
}

BOOST_AUTO_TEST_CASE(one_that_lost_its_store_does_not_serve) {
  for (const char* file : {"owner.lock", "data.mdb"}) {
    BOOST_TEST_CONTEXT(file) {
      Opened opened;
      fs::remove(opened.directory() / file);
      ExpectError(opened.store->Serve(), ErrorCode::kOwned);
      ExpectError(opened.store->Call(MakeBackup()), ErrorCode::kOwned);
      BOOST_TEST(!fs::exists(opened.directory() / "owner.sock"));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(the_owner_says_by_what_it_goes, Place) {
  OpenOptions options = Options();
  options.settings.mode = Mode::kKubelet;
  options.settings.policy = {.verification = Verification::kNeverVerifyAllowlistedImages,
                             .allowlist = {"z.example/x", "r.example/*"},
                             .registry_only = {"*", "r.example/y"},
                             .any_proof = {"r.example/*"}};
  options.settings.max_age_seconds = 3600;
  options.settings.pool.ids.max_pods = 7;
  options.settings.trace_file = scratch / "trace";
  options.settings.flushes_twice = true;
  store = Must(Store::Open(options));
  Serve();
  const GetStatus::Answer status = Must(owner.Call(GetStatus()));
  BOOST_TEST(status.owner_pid == getpid());
  BOOST_TEST(ToJson(status.settings) == ToJson(options.settings));
}

// --- Large and changed requests

// Of whole IDs without names the longest list just fits.
BOOST_FIXTURE_TEST_CASE(long_lists_pass_and_longer_ones_are_refused, Served) {
  ClassifyImages call{.dry_run = true};
  call.list.images.assign(kMaxListedImages, {.id = kRefA});
  BOOST_TEST(Must(owner.Call(call)).listed == kMaxListedImages);
  for (ListedImage& image : call.list.images) image.repo_tags = {kA};
  ExpectError(owner.Call(call), ErrorCode::kLimitExceeded, "a part at a time");
  BOOST_TEST(owner.Call(BeginList()).has_value());
}

namespace {

// Whether the store may change by it. Elsewhere than among the parameters, the member is refused.
bool MayChange(const internal::Request& request) {
  return !door::OnlyReads(request.method.substr(request.method.rfind('.') + 1)) &&
         request.parameters.text.find(R"("dryRun":true)") == std::string_view::npos;
}

template <typename C>
std::string RequestOf(const C& call) {
  return Must(internal::RequestFor(internal::TypeName<C>(), ToJson(call)));
}

// How many of the requests, changed, were answered. `may_change`: also those that do something.
std::size_t SendChanged(const fs::path& directory, const std::vector<std::string>& requests,
                        bool may_change) {
  std::mt19937_64 random(SeedOfThisRun());
  VarlinkClient client(directory);
  std::size_t answered = 0;
  for (std::uint64_t i = NumberFromEnv("WAYBILL_MUTATIONS", 3000); i > 0; --i) {
    std::string request = Mutate(requests[random() % requests.size()], random);
    std::replace(request.begin(), request.end(), '\0', ' ');
    const auto read = internal::ReadRequest(request);
    if (read && (read->oneway || (!may_change && MayChange(*read)))) continue;
    BOOST_TEST_REQUIRE(internal::ReadReply(client.Ask(request)).has_value(), request);
    ++answered;
  }
  return answered;
}

}  // namespace

// WAYBILL_MUTATIONS: how many.
BOOST_FIXTURE_TEST_CASE(requests_that_were_changed_open_nothing, Served) {
  const ListedImage closed{.id = Digest('b'), .repo_tags = {"r.example/b:1"}};
  Must(store->Call(
      Ended(Must(store->BeginPull(kCopy)).value, PullOutcome::kPulled, WithSecret(kSecretA))));
  Must(store->Call(AllowImage{.image = {.id = Digest('c')}, .reason = "why"}));
  Must(store->Call(DenyImage{.image_ref = closed.id, .reason = "why"}));
  const ListToken token = Must(store->Call(BeginList())).token;
  const auto opened = [&] {
    std::string all;
    for (const char digit : {'a', 'b', 'c', 'd'}) {
      all += ToJson(Must(store->Call(
          MustPull{.image = kA, .image_ref = Digest(digit), .secrets = {kSecretA, kSecretB}})));
    }
    return all;
  };
  const std::string before = opened();
  const std::uint64_t commit = Must(store->Call(GetStatus())).commit;
  const MustPull question{.image = kA, .image_ref = kRefA, .secrets = {kSecretB}};
  const std::vector<std::string> requests = {
      R"({"method":"org.varlink.service.GetInfo","parameters":{},"more":true})",
      R"({"method":"org.varlink.service.GetInterfaceDescription","parameters":{"interface":"a"}})",
      RequestOf(EnsureImage{.question = question}),
      RequestOf(Explain{.image_ref = kRefA, .secrets = {{kSecretB}}}),
      RequestOf(ListImages{.image_ref = kRefA, .hashes = true}),
      RequestOf(AllowImage{.image = closed, .reason = "why", .dry_run = true}),
      RequestOf(AcceptLoss{.reason = "why", .allow_all = true, .dry_run = true}),
      RequestOf(RevokeMissing{.token = token, .allow_empty = true, .dry_run = true}),
      RequestOf(SetRuntimes{.off = true, .dry_run = true}),
      RequestOf(BeginPull{.image = kA}),
      RequestOf(Ended(0, PullOutcome::kPulled, WithSecret(kSecretB))),
      RequestOf(PutImage{.record = {.image_ref = closed.id}}),
      RequestOf(ClassifyImages{.list = {.images = {closed}, .token = token}}),
      RequestOf(PruneBefore{.images = {closed}, .token = token}),
      RequestOf(AssignUserNamespace{"pod-2", 7 * kIdsPerBlock, kIdsPerBlock})};
  BOOST_TEST(SendChanged(directory(), requests, false) > 0U);
  BOOST_TEST(opened() == before);
  BOOST_TEST(Must(store->Call(GetStatus())).commit == commit);
  BOOST_TEST(Must(owner.Call(Verify())).sound);
  // What the others change is theirs, but the store stays sound.
  BOOST_TEST(SendChanged(directory(), requests, true) > 0U);
  BOOST_TEST(Must(owner.Call(Verify())).sound);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
