// The owner's socket: each call through it does what the store does; clients and owners that
// misbehave; what lies in the socket's place; closing and opening again.

#include <fcntl.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/control/messages.h"
#include "store/control/wire.h"
#include "tests/support/child_process.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/owner_socket.h"
#include "tests/support/rows.h"
#include "tests/support/userns_store.h"
#include "waybill/owner.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(serve)

namespace {

namespace fs = std::filesystem;
using internal::Bytes;
using internal::FrameKind;
using std::chrono::milliseconds;

constexpr milliseconds kLong{600'000};
constexpr milliseconds kShort{50};

ListedImage Listed(char digit, const std::string& tag) {
  return {
      .id = Digest(digit), .repo_tags = {tag}, .runtime_handler = "runc", .pinned = digit == 'a'};
}

// A store that is served, and may be closed and opened again.
struct Served {
  explicit Served(const ServeOptions& options = {.patience = kLong, .connections = 64}) {
    Must(store->Serve(options));
  }
  fs::path directory() const { return store.directory(); }
  std::unique_ptr<OwnerClient> Connect() const {
    return Must(OwnerClient::Connect({.directory = store.directory()}));
  }

  struct Opened : UsernsStore {
    Opened() { Open(); }
  } store;
};

// --- Results in words

std::string Words(const ListToken& token) {
  return std::to_string(token.commit) + "@" + std::to_string(token.drawn.nanoseconds) + "/" +
         std::to_string(token.drawn.boot_id[0]);
}
std::string Words(const PullId& pull) { return "pull " + std::to_string(pull.value); }
std::string Words(bool yes) { return yes ? "yes" : "no"; }
std::string Words(const Backup& backup) {
  return backup.path.string() + " " + std::to_string(backup.schema_version) + " " +
         std::to_string(backup.commit_sequence) + " " + std::to_string(backup.bytes);
}
std::string Words(const PruneReport& r) {
  std::string words;
  for (const std::uint64_t n : {r.examined, r.removed, r.kept_in_list, r.kept_newer,
                                r.kept_without_credentials, r.preloaded_removed}) {
    words += std::to_string(n) + " ";
  }
  return words;
}
std::string Words(const CleanUpReport& r) {
  std::string words;
  for (const std::uint64_t n : {r.examined, r.released, r.kept_in_lists, r.kept_newer}) {
    words += std::to_string(n) + " ";
  }
  for (const std::string& pod : r.released_pods) words += pod + " ";
  return words;
}
std::string Words(const ClassifyReport& r) {
  std::string words;
  for (const std::uint64_t n :
       {r.listed, r.repeated, r.not_names, r.known, r.preloaded, r.closed, r.left, r.united,
        r.pulls_settled, r.records_removed, r.preloaded_removed}) {
    words += std::to_string(n) + " ";
  }
  for (const ClassifiedImage& image : r.judged) {
    words += "[" + image.image_ref + "," + image.runtime_handler + "," + image.name + "," +
             Words(image.preloaded) + "," + image.because + "]";
  }
  for (const std::string& digest : r.shared_digests) words += digest + " ";
  return words + r.not_judged_because;
}
std::string Words(const Error& error) {
  return std::string(ErrorCodeName(error.code)) + ": " + error.message + " | " + error.hint +
         " | " + std::to_string(static_cast<int>(error.hint_code));
}
std::string Words(const Result<void>& result) {
  return result ? std::string("done") : Words(result.error());
}
template <typename T>
std::string Words(const Result<T>& result) {
  return result ? Words(*result) : Words(result.error());
}

// --- A session with every call, and errors of each

std::vector<std::string> Session(UsernsStore& store, OwnerCalls& owner) {
  std::vector<std::string> said;
  const auto note = [&](const auto& result) {
    std::string words = Words(result);
    const std::string own = store.directory().string();
    for (std::size_t at = words.find(own); at != std::string::npos; at = words.find(own)) {
      words.replace(at, own.size(), "DIR");
    }
    said.push_back(std::move(words));
  };
  const ChangeOptions dry{.dry_run = true};
  const ChangeOptions empty{.allow_empty = true};
  const auto token = owner.BeginList();
  note(token);
  const std::vector<ListedImage> images = {
      Listed('a', "r.example/a:1"),
      Listed('b', "r.example/b:1"),
      {.id = Digest('c'),
       .repo_tags = {"r.example/c:1", "not a name"},
       .repo_digests = {"r.example/c@" + Digest('d')}},
      {.id = Digest('e'), .repo_digests = {"r.example/e@" + Digest('d')}}};
  Must(store->RecordPullIntent({.image = "r.example/b:1"}));
  Must(store->RecordImagePullFailed({.image = "r.example/b:1"}, PullFailure::kUnknown));
  const ListToken fresh = Must(owner.BeginList());
  note(owner.ObserveImages({.images = images, .token = fresh, .complete = true}, dry));
  note(owner.ObserveImages({.images = images, .token = fresh, .complete = true}, {}));
  note(owner.ObserveImages({.images = images, .token = *token, .complete = true}, {}));
  note(owner.ObserveImages({.images = images, .complete = false, .source = "loader"}, {}));
  note(owner.ObserveImages({.images = images, .complete = true, .source = "loader"}, {}));
  note(owner.ObserveImages({.token = fresh, .complete = true}, {}));
  note(owner.ObserveImages({.token = ListToken{.commit = 1, .store = 1}, .complete = true}, {}));
  note(owner.AddToLedger(Listed('f', "r.example/f:1"), "installer", "why", dry));
  note(owner.AddToLedger(Listed('f', "r.example/f:1"), "installer", "why", {}));
  note(owner.AddToLedger({}, "installer", "why", {}));
  note(owner.AddToLedger({.id = std::string(kMaxImageRefBytes + 1, 'x')}, "s", "why", {}));
  note(owner.AddToLedger({.id = Digest('d')}, "installer", "why", {}));
  note(owner.AddToLedger({.id = Digest('f'), .runtime_handler = "odd"}, "installer", "why", {}));
  note(owner.AddToLedger({.id = Digest('f')}, "", std::string(kMaxReasonBytes + 1, 'x'), {}));
  note(owner.AddToLedger({.id = Digest('9')}, std::string(kPresumedSource), "why", {}));
  note(owner.SettlePresumed({.image_ref = Digest('9')}, Settled::kClosed, "why", dry));
  note(owner.SettlePresumed({.image_ref = Digest('9')}, Settled::kPreloaded, "why", {}));
  note(owner.SettlePresumed({.image_ref = Digest('9')}, Settled::kClosed, "why", {}));
  note(owner.AddToLedger({.id = Digest('8')}, std::string(kPresumedSource), "why", {}));
  note(owner.SettlePresumed({.image_ref = Digest('8')}, Settled::kClosed, "why", {}));
  note(owner.SettlePresumed({.image_ref = Digest('8'), .runtime_handler = "odd"}, Settled::kClosed,
                            "why", {}));
  note(owner.RemoveFromLedger({.image_ref = Digest('f')}, "why", dry));
  note(owner.RemoveFromLedger({.image_ref = Digest('f')}, "why", {}));
  note(owner.RemoveFromLedger({.image_ref = Digest('f')}, "why", {}));
  note(owner.RemoveFromLedger({.image_ref = Digest('f'), .runtime_handler = "odd"}, "why", {}));
  const PullId pull = Must(store->RecordPullIntent({.image = "r.example/p:1"}));
  note(owner.DropOpenPull(pull, "why", {}));
  Must(store->RecordImagePullFailed({.image = "r.example/p:1"}, PullFailure::kFailed, pull));
  note(owner.DropOpenPull(pull, "", {}));
  note(owner.DropOpenPull(pull, "why", dry));
  note(owner.DropOpenPull(pull, "why", {}));
  note(owner.DropOpenPull({7}, "why", {}));
  note(owner.Prune({{.id = Digest('a')}}, Must(owner.BeginList()), dry));
  note(owner.Prune({{.id = Digest('a')}}, Must(owner.BeginList()), {}));
  note(owner.Prune({}, Must(owner.BeginList()), {}));
  note(owner.Prune({{.id = Digest('a')}}, {.commit = 1'000'000}, {}));
  note(owner.PruneBefore({{.id = Digest('a')}}, {kFakeEpoch + 10, 5}, dry));
  note(owner.PruneBefore({{.id = Digest('a')}}, {kFakeEpoch + 10, 5}, {}));
  note(owner.PruneBefore({}, {kFakeEpoch, 0}, empty));
  note(owner.ClearDistrust("", {}));
  note(owner.ClearDistrust("why", {.images_on_node = images, .adopt = true, .dry_run = true}));
  note(owner.ClearDistrust("why", {.images_on_node = images, .adopt = true}));
  note(owner.ClearDistrust("why", {.adopt = true}));
  note(owner.ClearDistrust("why", {.images_on_node = std::vector<ListedImage>()}));
  note(owner.AdoptUserNamespace("pod-1", 7 * kIdsPerBlock, kIdsPerBlock));
  note(owner.AdoptUserNamespace("pod-2", 7 * kIdsPerBlock, kIdsPerBlock));
  note(owner.AdoptUserNamespace("..", 7 * kIdsPerBlock, kIdsPerBlock));
  note(owner.AdoptUserNamespace("pod-2", 7, 1));
  note(owner.ReleaseUserNamespace("pod-1", dry));
  note(owner.ReleaseUserNamespace("pod-1", {}));
  note(owner.ReleaseUserNamespace("pod-1", {}));
  note(owner.ReleaseUserNamespace(std::string("a\0b", 3), {}));
  note(owner.ReleaseLostUserNamespaces(dry));
  note(owner.ReleaseLostUserNamespaces({}));
  store.Get("pod-3");
  store.Get("pod-4");
  const ListToken pods = Must(owner.BeginList());
  note(owner.CleanUpUserNamespaces({}, {}, pods, {}));
  note(owner.CleanUpUserNamespaces({"pod-3"}, {"pod-5"}, pods, dry));
  note(owner.CleanUpUserNamespaces({"pod-3"}, {"pod-5"}, pods, {}));
  note(owner.CleanUpUserNamespaces({}, {}, pods, empty));
  const std::string nine = Digest('9');
  const std::string seven = Digest('7');
  const ImageCopy mine = {.image = "r.example/m:1", .image_ref = nine};
  const auto begun = owner.RecordPullIntent(mine);
  note(begun);
  note(owner.RecordPullIntent({.image = mine.image, .runtime_handler = "odd"}));
  note(owner.RecordPullIntent({.image = std::string(kMaxImageBytes + 1, 'x')}));
  note(owner.RecordImagePullFailed(mine, PullFailure::kUnknown, {}));
  note(owner.RecordImagePulled(
      mine,
      ImagePullCredentials{
          .kubernetes_secrets = {MakeSecret("ns", "pull", "uid", "hash"),
                                 MakeSecret("n", "p", "u", "")},
          .kubernetes_service_accounts = {{.uid = "u", .namespace_name = "ns", .name = "sa"}}},
      {.pull = *begun,
       .manifest = PulledManifest{Digest('8'),
                                  {.architecture = "amd64",
                                   .os = "windows",
                                   .os_version = "10.0.1",
                                   .os_features = {"win32k"}}},
       .image = ListedImage{.id = Digest('9'), .repo_tags = {"r.example/m:1"}}}));
  note(owner.RecordPullIntent(mine));
  note(owner.RecordImagePulled(mine, std::nullopt, {}));
  note(owner.RecordImagePulled({.image = "r.example/n:1", .image_ref = seven},
                               ImagePullCredentials{.node_pods_accessible = true}, {}));
  note(owner.RecordImagePulled({.image = "not a name", .image_ref = seven}, std::nullopt, {}));
  note(owner.RecordImagePulled({.image = "r.example/n:1"}, std::nullopt, {}));
  note(owner.RecordImagePullFailed({.image = "r.example/o:1"}, PullFailure::kFailed, {77}));
  std::vector<std::string> records;
  for (const ImagePulledRecord& record : Must(store->ListRecords())) {
    std::string words =
        record.image_ref + record.manifest_digest + record.platform.value_or(Platform()).os_version;
    for (const auto& [name, of] : record.credential_mapping) {
      words += name + (of.node_pods_accessible ? "+" : "-");
      for (const auto& one : of.kubernetes_secrets) words += one.uid + one.credential_hash + ",";
      for (const auto& one : of.kubernetes_service_accounts) words += one.name + ",";
    }
    records.push_back(words);
  }
  // Their order is the store's own.
  std::sort(records.begin(), records.end());
  said.insert(said.end(), records.begin(), records.end());
  note(owner.MakeBackup());
  note(owner.MakeBackup());
  const StoreCounts statistics = Must(store->GetStatistics());
  said.push_back(std::to_string(statistics.commit_sequence) + " " +
                 std::to_string(statistics.records) + " " +
                 std::to_string(statistics.ledger_entries));
  return said;
}

template <typename T>
void ExpectRefused(const Result<T>& result, ErrorCode code) {
  ExpectError(result, code, "othing was changed");
}

// The error in an answer.
Error ErrorIn(const Bytes& message) { return internal::DecodeRefusal(message); }

Bytes RequestFor(const std::function<void(OwnerCalls&)>& call) {
  class Recorder final : public internal::AskingCalls {
   public:
    Bytes request;
    const OwnerDescription& owner() const override { return nobody_; }

   protected:
    Result<Bytes> Ask(const Bytes& made, bool) override {
      request = made;
      return Error{ErrorCode::kInterrupted, "recorded"};
    }
    fs::path directory() const override { return {}; }

   private:
    OwnerDescription nobody_;
  } recorder;
  call(recorder);
  return recorder.request;
}

Bytes BeginsList() {
  return RequestFor([](OwnerCalls& owner) { static_cast<void>(owner.BeginList()); });
}

// What `served` answers to a client that sends only this.
Bytes AnswerTo(Served& served, const Bytes& request, FrameKind* kind = nullptr) {
  RawClient client(served.directory());
  client.Frame();
  client.SendRequest(request);
  return client.Frame(kind);
}

// Nothing that a client of `served` did matters to others.
void ExpectWorks(Served& served) {
  BOOST_TEST(served.Connect()->BeginList().has_value());
  BOOST_TEST(
      (DecisionOf(*served.store, {.image = "r.example/x:1", .image_ref = Digest('1')}).pull));
}

struct Serving {
  Served served;
};

}  // namespace

BOOST_AUTO_TEST_CASE(each_call_does_what_the_store_does) {
  Served direct;
  const auto calls = CallsOf(*direct.store);
  const auto expected = Session(direct.store, *calls);
  Served served;
  const auto client = served.Connect();
  const auto got = Session(served.store, *client);
  BOOST_TEST(expected.size() == got.size());
  for (std::size_t i = 0; i < expected.size() && i < got.size(); ++i) {
    BOOST_TEST(expected[i] == got[i], i);
  }
  // Each kind of error and of report was among them.
  for (const char* part : {"invalidArgument", "conflict", "notFound", "done", "yes", "no",
                           "r.example/c:1", "limitExceeded", "backup/v",
                           "r.example/m-uidhash,u,sa,", "10.0.1", "r.example/n+", "pull "}) {
    const bool found = std::any_of(got.begin(), got.end(), [&](const std::string& words) {
      return words.find(part) != std::string::npos;
    });
    BOOST_TEST(found, part);
  }
}

BOOST_FIXTURE_TEST_CASE(a_client_does_not_end_the_pulls_of_the_owner, Serving) {
  const auto client = served.Connect();
  const std::string ref = Digest('a');
  const ImageCopy copy = {.image = "r.example/a:1", .image_ref = ref};
  const PullId own = Must(served.store->RecordPullIntent(copy));
  for (const PullId named : {PullId{}, own}) {
    ExpectError(client->RecordImagePullFailed(copy, PullFailure::kNothingTransferred, named),
                ErrorCode::kConflict);
    ExpectError(client->RecordImagePulled(copy, std::nullopt, {.pull = named}),
                ErrorCode::kConflict);
  }
  BOOST_TEST_REQUIRE(Must(served.store->ListOpenPulls()).size() == 1U);
  // Its own it does, named or not, though the owner's is newer.
  const PullId second = Must(client->RecordPullIntent(copy));
  const PullId newest = Must(served.store->RecordPullIntent(copy));
  Must(client->RecordImagePullFailed(copy, PullFailure::kNothingTransferred, {}));
  const PullId first = Must(client->RecordPullIntent(copy));
  const auto left = [&] {
    std::vector<std::uint64_t> ids;
    for (const UnresolvedPull& pull : Must(served.store->ListOpenPulls()))
      ids.push_back(pull.id.value);
    std::sort(ids.begin(), ids.end());
    return ids;
  };
  BOOST_TEST((left() == std::vector{own.value, newest.value, first.value}), second.value);
  Must(client->RecordImagePulled(copy, std::nullopt, {.pull = first}));
  BOOST_TEST((left() == std::vector{own.value, newest.value}));
  ExpectError(client->RecordImagePulled(copy, std::nullopt, {}), ErrorCode::kConflict);
  // Of unknown end, nobody runs it any more.
  Must(served.store->RecordImagePullFailed(copy, PullFailure::kUnknown, own));
  Must(client->RecordImagePulled(copy, std::nullopt, {.pull = own}));
  BOOST_TEST((left() == std::vector{newest.value}));
  // But who does not name it knows nothing of it.
  Must(served.store->RecordImagePullFailed(copy, PullFailure::kUnknown, newest));
  Must(client->RecordImagePullFailed(copy, PullFailure::kNothingTransferred, {}));
  BOOST_TEST((left() == std::vector{newest.value}));
}

// Of several that it does not name, a client may have ended the one that began first.
BOOST_AUTO_TEST_CASE(clients_that_name_no_pull_bring_nothing_back) {
  const ImagePullSecret secret = MakeSecret("n", "s", "u", "h");
  const std::string ref = Digest('a');
  const ImageCopy copy = {.image = "r.example/a:1", .image_ref = ref};
  for (const bool owner_pulls : {false, true}) {
    for (const bool forgotten : {false, true}) {
      Served served;
      const auto client = served.Connect();
      if (owner_pulls) Must(served.store->RecordPullIntent(copy));
      Must(client->RecordPullIntent(copy));
      if (forgotten) Must(served.store->ForgetCredential("h"));
      Must(client->RecordPullIntent(copy));
      Must(client->RecordImagePulled(copy, WithSecret(secret), {}));
      const auto must_pull = [&] { return DecisionOf(*served.store, copy, Pod(secret)).pull; };
      // Beside a pull of the owner's, what several of a client's proved is not told apart.
      BOOST_TEST(must_pull() == (forgotten || owner_pulls));
      Must(client->RecordImagePullFailed(copy, PullFailure::kNothingTransferred, {}));
      Must(client->RecordPullIntent(copy));
      Must(client->RecordImagePulled(copy, WithSecret(secret), {}));
      BOOST_TEST(!must_pull());
    }
  }
}

BOOST_FIXTURE_TEST_CASE(the_owner_says_by_what_it_goes, WithUserns) {
  NodeStoreOptions options = store.Options();
  options.rules = Rules::kKubelet;
  options.evidence = {.grace = std::chrono::seconds(7),
                      .window = std::chrono::seconds(8),
                      .short_names = ShortNames::kDockerHub};
  const auto owner = Must(NodeStore::Open(options));
  Must(owner->Serve());
  const auto client = Must(OwnerClient::Connect({.directory = store.directory()}));
  BOOST_TEST((client->owner() == OwnerDescription{.process_id = getpid(),
                                                  .rules = Rules::kKubelet,
                                                  .evidence = options.evidence}));
  ExpectRefused(client->AddToLedger({.id = Digest('a')}, "source", "reason", {}),
                ErrorCode::kInvalidArgument);
}

// --- Serving and not

BOOST_FIXTURE_TEST_CASE(only_an_owner_serves_and_once, WithUserns) {
  store.Open();
  ExpectRefused(store->Serve({.patience = milliseconds(0)}), ErrorCode::kInvalidArgument);
  ExpectRefused(store->Serve({.connections = 0}), ErrorCode::kInvalidArgument);
  ExpectRefused(store->Serve({.connections = 1025}), ErrorCode::kInvalidArgument);
  const auto client = OwnerClient::Connect({.directory = store.directory()});
  ExpectRefused(client, ErrorCode::kNotFound);
  Must(store->Serve());
  ExpectRefused(store->Serve(), ErrorCode::kConflict);
  struct stat st {};
  BOOST_TEST_REQUIRE(lstat((store.directory() / "owner.sock").c_str(), &st) == 0);
  BOOST_TEST(S_ISSOCK(st.st_mode));
  BOOST_TEST((st.st_mode & 07777U) == 0600U);
  Must(store->Close());
  BOOST_TEST(!fs::exists(store.directory() / "owner.sock"));
  ExpectRefused(store->Serve(), ErrorCode::kClosed);
  ExpectRefused(store->MakeBackup(), ErrorCode::kClosed);
  store.Open();
  Must(store->Serve());
  BOOST_TEST(OwnerClient::Connect({.directory = store.directory()}).has_value());
}

BOOST_FIXTURE_TEST_CASE(an_observer_neither_serves_nor_makes_backups, Serving) {
  served.store.Close();
  ChildProcess observing([&] {
    return [&](const std::string&) {
      const auto observer = Must(NodeStore::Observe({.directory = served.directory()}));
      return std::string(ErrorCodeName(observer->Serve().error().code)) + " " +
             std::string(ErrorCodeName(observer->MakeBackup().error().code));
    };
  });
  served.store.Open();
  Must(served.store->Serve());
  BOOST_TEST(observing.Ask("?") == "notOwner notOwner");
  BOOST_TEST(served.Connect()->BeginList().has_value());
}

BOOST_FIXTURE_TEST_CASE(one_that_lost_its_store_does_not_serve, WithUserns) {
  store.Open();
  fs::remove(store.directory() / "owner.lock");
  ExpectRefused(store->RecordPullIntent({.image = "x:1"}), ErrorCode::kOwned);
  ExpectError(store->Serve(), ErrorCode::kOwned);
  ExpectError(store->MakeBackup(), ErrorCode::kOwned);
  BOOST_TEST(!fs::exists(store.directory() / "owner.sock"));
  BOOST_TEST(!fs::exists(store.directory() / "backup"));
}

BOOST_FIXTURE_TEST_CASE(a_client_outlives_owners, Serving) {
  const auto client = served.Connect();
  BOOST_TEST(client->BeginList().has_value());
  served.store.Close();
  ExpectRefused(client->BeginList(), ErrorCode::kNotFound);
  served.store.Open();
  ExpectRefused(client->BeginList(), ErrorCode::kNotFound);
  Must(served.store->Serve());
  BOOST_TEST(client->BeginList().has_value());
  served.store.Close();
  // Another owner, by what it goes.
  NodeStoreOptions options = served.store.Options();
  options.evidence.grace = std::chrono::seconds(3);
  const auto other = Must(NodeStore::Open(options));
  Must(other->Serve());
  ExpectRefused(client->BeginList(), ErrorCode::kConflict);
}

BOOST_FIXTURE_TEST_CASE(a_killed_owners_socket_is_replaced, WithUserns) {
  ChildProcess owner([&] {
    store.Open();
    Must(store->Serve());
    return [](const std::string&) { return std::string("serves"); };
  });
  BOOST_TEST(owner.Ask("?") == "serves");
  BOOST_TEST(OwnerClient::Connect({.directory = store.directory()}).has_value());
  owner.Kill();
  BOOST_TEST(fs::exists(fs::symlink_status(store.directory() / "owner.sock")));
  ExpectRefused(OwnerClient::Connect({.directory = store.directory()}), ErrorCode::kNotFound);
  store.Open();
  ExpectRefused(OwnerClient::Connect({.directory = store.directory()}), ErrorCode::kNotFound);
  Must(store->Serve());
  BOOST_TEST(OwnerClient::Connect({.directory = store.directory()}).has_value());
}

BOOST_AUTO_TEST_CASE(what_lies_in_the_way_is_left_alone) {
  const std::vector<std::pair<const char*, std::function<void(const fs::path&)>>> kinds = {
      {"file", [](const fs::path& place) { WriteFile(place, "precious"); }},
      {"directory", [](const fs::path& place) { fs::create_directory(place); }},
      {"symlink", [](const fs::path& place) { fs::create_symlink("data.mdb", place); }},
      {"dangling", [](const fs::path& place) { fs::create_symlink("nowhere", place); }},
      {"fifo", [](const fs::path& place) { BOOST_TEST(mkfifo(place.c_str(), 0600) == 0); }}};
  for (const auto& [name, put] : kinds) {
    BOOST_TEST_CONTEXT(name) {
      UsernsStore store;
      store.Open();
      const fs::path place = store.directory() / "owner.sock";
      put(place);
      const auto type = fs::symlink_status(place).type();
      ExpectError(store->Serve(), ErrorCode::kUnsafePath);
      BOOST_TEST((fs::symlink_status(place).type() == type));
      ExpectError(OwnerClient::Connect({.directory = store.directory()}), ErrorCode::kUnsafePath);
      store.Close();
      ExpectError(NodeStore::Open(store.Options()), ErrorCode::kUnsafePath);
      BOOST_TEST((fs::symlink_status(place).type() == type));
      fs::remove(place);
      store.Open();
      Must(store->Serve());
    }
  }
}

// Somebody moved the socket away, and put a file there: closing removes only what was bound.
BOOST_FIXTURE_TEST_CASE(closing_removes_its_own_socket_only, Serving) {
  fs::rename(served.directory() / "owner.sock", served.directory() / "moved");
  WriteFile(served.directory() / "owner.sock", "precious");
  served.store.Close();
  BOOST_TEST(ReadFile(served.directory() / "owner.sock") == "precious");
}

BOOST_AUTO_TEST_CASE(deep_directories_work) {
  const MemoryDir scratch;
  fs::path deep = scratch.path();
  while (deep.string().size() < 300) deep /= "a-directory-with-a-long-name";
  fs::create_directories(deep);
  // Up to and beyond the 108 bytes of sun_path.
  for (std::size_t bytes = 90; bytes < 112; ++bytes) {
    const fs::path place = scratch / std::string(bytes - scratch.path().string().size() - 1, 'd');
    NodeStoreOptions options = OptionsIn(scratch.path());
    options.directory = place;
    const auto owner = Must(NodeStore::Open(options));
    Must(owner->Serve());
    const auto client = OwnerClient::Connect({.directory = place});
    BOOST_TEST(client.has_value(), bytes);
  }
  NodeStoreOptions options = OptionsIn(scratch.path());
  options.directory = deep / "store";
  const auto owner = Must(NodeStore::Open(options));
  Must(owner->Serve());
  BOOST_TEST(fs::is_socket(deep / "store/owner.sock"));
  const auto client = Must(OwnerClient::Connect({.directory = deep / "store"}));
  BOOST_TEST(client->BeginList().has_value());
  Must(owner->Close());
  BOOST_TEST(!fs::exists(deep / "store/owner.sock"));
}

// --- Who may talk

// A limit: "An owner answers other processes only where it serves"
BOOST_AUTO_TEST_CASE(other_users_are_refused) {
  if (geteuid() != 0) {
    BOOST_TEST_MESSAGE("left out: only root can become somebody else");
    return;
  }
  constexpr uid_t kNobody = 65534;
  const TempDir scratch;
  NodeStoreOptions options = OptionsIn(scratch.path());
  const auto owner = Must(NodeStore::Open(options));
  Must(owner->Serve());
  // The modes that keep others away from the socket are gone: its peers are looked at as well.
  const fs::path directory = options.directory;
  BOOST_TEST_REQUIRE(chmod(scratch.path().c_str(), 0755) == 0);
  BOOST_TEST_REQUIRE(chmod(directory.c_str(), 0755) == 0);
  BOOST_TEST_REQUIRE(chmod((directory / "owner.sock").c_str(), 0666) == 0);
  const std::string said = InChild([&]() -> std::string {
    if (setresuid(kNobody, kNobody, kNobody) != 0) return "setresuid failed";
    const auto client = OwnerClient::Connect({.directory = directory});
    if (client || client.error().code != ErrorCode::kUnsafePath) return "connected";
    RawClient raw(directory);
    if (!raw.connected()) return "the modes still keep it away";
    const Bytes first = raw.Frame();
    if (!raw.AtEnd()) return "it may go on";
    return std::string(ErrorCodeName(ErrorIn(first).code)) + " " + ErrorIn(first).message;
  });
  BOOST_TEST(said == "unsafePath only root and user 0 may ask this owner; nothing was changed");
  Must(owner->Close());

  // Another user listens on a socket that root made.
  ChildProcess impostor([&] {
    auto fd = std::make_shared<internal::Fd>(RawSocket());
    const sockaddr_un name = SocketAddress(directory);
    if (bind(fd->get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 ||
        setresuid(kNobody, kNobody, kNobody) != 0 || listen(fd->get(), 8) != 0) {
      throw std::runtime_error("cannot listen");
    }
    return [fd](const std::string&) { return std::string("listens"); };
  });
  BOOST_TEST_REQUIRE(impostor.Ask("?") == "listens");
  ExpectError(OwnerClient::Connect({.directory = directory}), ErrorCode::kUnsafePath, "65534");

  // Another user's socket is not replaced.
  BOOST_TEST_REQUIRE(lchown((directory / "owner.sock").c_str(), kNobody, kNobody) == 0);
  impostor.Kill();
  ExpectError(NodeStore::Open(options), ErrorCode::kUnsafePath);
  BOOST_TEST(fs::is_socket(directory / "owner.sock"));
}

// --- Clients that misbehave

BOOST_FIXTURE_TEST_CASE(bytes_that_are_no_request, Serving) {
  const Bytes good = BeginsList();
  const auto refusal = [&](const Bytes& bytes) -> std::string {
    RawClient client(served.directory());
    FrameKind kind{};
    client.Frame(&kind);
    BOOST_TEST((kind == FrameKind::kGreeting));
    client.Send(bytes);
    const Bytes answer = client.Frame(&kind);
    if (answer.empty()) return "closed";
    BOOST_TEST((kind == FrameKind::kAnswer));
    BOOST_TEST(client.AtEnd());
    return std::string(ErrorCodeName(ErrorIn(answer).code));
  };
  const auto framed = [](const Bytes& message) {
    return internal::Framed(FrameKind::kRequest, message);
  };
  BOOST_TEST(refusal(framed({})) == "invalidArgument");
  BOOST_TEST(refusal(framed({0, 0, 1})) == "invalidArgument");
  BOOST_TEST(refusal(framed(Bytes(1000, 0xff))) == "invalidArgument");
  BOOST_TEST(refusal(Bytes(16, 'x')) == "invalidArgument");
  BOOST_TEST(refusal(internal::Framed(FrameKind::kGreeting, good)) == "invalidArgument");
  BOOST_TEST(refusal(internal::Framed(FrameKind::kAnswer, good)) == "invalidArgument");
  Bytes version = framed(good);
  version[8] = 3;
  BOOST_TEST(refusal(version) == "owned");
  Bytes length = framed(good);
  length[15] = 0x08;  // more than kMaxOwnerMessageBytes
  length[12] = 0x01;
  BOOST_TEST(refusal(length) == "invalidArgument");
  // A call that a later version has.
  BOOST_TEST(refusal(framed({200})) == "invalidArgument");
  ExpectWorks(served);
}

// Each beginning of a request, and then nothing more.
BOOST_FIXTURE_TEST_CASE(requests_that_are_cut_off, Serving) {
  const std::uint64_t before = Must(served.store->GetStatistics()).commit_sequence;
  const Bytes whole = internal::Framed(
      FrameKind::kRequest, RequestFor([](OwnerCalls& owner) {
        static_cast<void>(owner.AddToLedger({.id = Digest('a')}, "source", "reason", {}));
      }));
  for (std::size_t bytes = 0; bytes < whole.size(); ++bytes) {
    RawClient client(served.directory());
    client.Frame();
    client.Send(std::span(whole).first(bytes));
    client.End();
  }
  ExpectWorks(served);
  BOOST_TEST(Must(served.store->GetStatistics()).commit_sequence == before);
}

// Requests with bytes changed: answered, and never acted on in a way that the store refuses.
BOOST_FIXTURE_TEST_CASE(requests_that_were_changed, Serving) {
  Draw draw(SeedOfThisRun());
  const std::vector<Bytes> requests = {
      RequestFor([](OwnerCalls& owner) {
        static_cast<void>(owner.ObserveImages(
            {.images = {Listed('a', "r.example/a:1"), Listed('b', "r.example/b:1")},
             .token = ListToken{},
             .complete = true},
            {}));
      }),
      RequestFor([](OwnerCalls& owner) {
        static_cast<void>(owner.CleanUpUserNamespaces({"pod-1", "pod-2"}, {"pod-3"}, {}, {}));
      }),
      RequestFor([](OwnerCalls& owner) {
        static_cast<void>(
            owner.ClearDistrust("reason", {.images_on_node = {{Listed('a', "x:1")}}}));
      })};
  for (int i = 0; i < 2000; ++i) {
    Bytes request = requests[draw.Below(requests.size())];
    for (std::size_t n = 1 + draw.Below(4); n > 0; --n) {
      request[draw.Below(request.size())] = static_cast<std::uint8_t>(draw.Below(256));
    }
    FrameKind kind{};
    BOOST_TEST_REQUIRE(!AnswerTo(served, request, &kind).empty());
    BOOST_TEST_REQUIRE((kind == FrameKind::kAnswer));
  }
  ExpectWorks(served);
  BOOST_TEST(Must(served.store->Verify()).sound);
}

// A list of elements that are hardly there: what is made of a message is in proportion to its size.
BOOST_FIXTURE_TEST_CASE(messages_of_empty_elements_take_no_more_memory, Serving) {
  Bytes request = RequestFor([](OwnerCalls& calls) { (void)calls.Prune({}, {}, {}); });
  request.resize(1);  // the number of the call
  request.insert(request.end(), 4, 0xff);
  request.resize(std::size_t{8} << 20);  // images of which nothing is said: 4 bytes each
  BOOST_TEST((ErrorIn(AnswerTo(served, request)).code == ErrorCode::kInvalidArgument));
  ExpectWorks(served);
}

// A later version's owner sends more of a value, an earlier one's less.
BOOST_AUTO_TEST_CASE(values_of_other_versions_are_understood) {
  internal::Bytes bytes;
  internal::Put put(bytes);
  const PruneReport report{.examined = 7, .removed = 5};
  put(report);
  const std::uint32_t length = bytes[0];
  BOOST_TEST_REQUIRE(bytes.size() == length + 4U);
  Bytes longer = bytes;
  longer.insert(longer.end(), {1, 2, 3});
  longer[0] = static_cast<std::uint8_t>(length + 3);
  Bytes shorter(bytes.begin(), bytes.begin() + 4 + 8);
  shorter[0] = 8;
  for (const auto& [message, removed] : {std::pair(bytes, 5U), {longer, 5U}, {shorter, 0U}}) {
    internal::Take take(message);
    PruneReport taken;
    take(taken);
    BOOST_TEST(take.ok());
    BOOST_TEST(taken.examined == 7U);
    BOOST_TEST(taken.removed == removed);
  }
  // What an owner does not know of a request may say that less is to be changed.
  for (const std::uint8_t unknown : {std::uint8_t{0}, std::uint8_t{1}}) {
    Bytes more = longer;
    std::fill(more.end() - 3, more.end(), std::uint8_t{0});
    more.back() = unknown;
    internal::Take take(more, internal::Take::Unknown::kRefuse);
    PruneReport taken;
    take(taken);
    BOOST_TEST(take.ok() == (unknown == 0));
  }
  // And what is missing of one may have said so, too.
  internal::Take take(shorter, internal::Take::Unknown::kRefuse);
  PruneReport taken;
  take(taken);
  BOOST_TEST(!take.ok());
}

// Without its last member, whether it is a dry run, it would be done.
BOOST_AUTO_TEST_CASE(a_request_whose_options_end_early_is_refused) {
  Served served;
  Bytes request = RequestFor([](OwnerCalls& calls) {
    (void)calls.AddToLedger({.id = Digest('a')}, "source", "reason", {.dry_run = true});
  });
  // ChangeOptions are the last: their length, allow_empty, dry_run.
  BOOST_TEST_REQUIRE(request[request.size() - 6] == 2U);
  request.pop_back();
  request[request.size() - 5] = 1;
  const std::uint64_t commit = Must(served.store->GetStatistics()).commit_sequence;
  BOOST_TEST((ErrorIn(AnswerTo(served, request)).code == ErrorCode::kInvalidArgument));
  BOOST_TEST(Must(served.store->GetStatistics()).commit_sequence == commit);
  ExpectWorks(served);
}

BOOST_FIXTURE_TEST_CASE(large_lists_pass_and_too_large_ones_are_refused, Serving) {
  const auto client = served.Connect();
  std::vector<ListedImage> images;
  for (std::size_t i = 0; i < kMaxListedImages; ++i) {
    images.push_back({.id = "sha256:" + std::to_string(i), .repo_tags = {"r.example/x:1"}});
  }
  const ListToken token = Must(client->BeginList());
  const PruneReport report = Must(client->Prune(images, token, {.dry_run = true}));
  BOOST_TEST(report.examined == 0U);
  const auto observed = client->ObserveImages(
      {.images = {{.id = "a", .repo_tags = {std::string(kMaxOwnerMessageBytes, 'x')}}}}, {});
  ExpectRefused(observed, ErrorCode::kLimitExceeded);
  ExpectWorks(served);
}

// What is kept of requests that are not whole is bounded over all clients.
BOOST_FIXTURE_TEST_CASE(large_requests_that_are_never_finished, Serving) {
  Bytes header = internal::Framed(FrameKind::kRequest, {});
  header[15] = 0x08;  // kMaxOwnerMessageBytes
  const Bytes part(std::size_t{1} << 20);
  const auto send = [&](RawClient& client) {
    BOOST_TEST(!client.Frame().empty());
    client.Send(header);
    // More than half, so that there is room for all.
    for (int i = 0; i < 70; ++i) {
      if (!client.Send(part)) return;
    }
  };
  RawClient first(served.directory());
  send(first);
  RawClient second(served.directory());
  send(second);
  BOOST_TEST((ErrorIn(second.Frame()).code == ErrorCode::kUnavailable));
  ExpectWorks(served);
  first.Close();
  const auto client = served.Connect();
  const std::vector<ListedImage> images(
      1, {.id = Digest('a'), .repo_tags = {std::string(std::size_t{100} << 20, 'x')}});
  BOOST_TEST(client->ObserveImages({.images = images}, {.dry_run = true}).has_value());
}

// --- Clients that hang, and floods

BOOST_AUTO_TEST_CASE(silent_clients_stop_nobody) {
  Served served({.patience = kLong, .connections = 8});
  // A process gets two of them. What it has more of is refused.
  std::vector<std::unique_ptr<RawClient>> silent;
  for (int i = 0; i < 2; ++i) {
    silent.push_back(std::make_unique<RawClient>(served.directory()));
    BOOST_TEST(!silent.back()->Frame().empty());
  }
  ExpectRefused(OwnerClient::Connect({.directory = served.directory()}), ErrorCode::kUnavailable);
  // Others take the rest, and more: those that are silent for longest go.
  std::vector<std::unique_ptr<ChildProcess>> hanging;
  for (int i = 0; i < 5; ++i) {
    hanging.push_back(std::make_unique<ChildProcess>([&] {
      auto clients = std::make_shared<std::vector<std::unique_ptr<RawClient>>>();
      return [clients, &served](const std::string&) {
        for (int j = 0; j < 2; ++j) {
          clients->push_back(std::make_unique<RawClient>(served.directory()));
          clients->back()->Frame();
          const Bytes some(7);
          clients->back()->Send(some);
        }
        return std::string("hangs");
      };
    }));
    BOOST_TEST(hanging.back()->Ask("hang") == "hangs");
  }
  const std::string said = InChild([&] {
    return Words(Must(OwnerClient::Connect({.directory = served.directory()}))->MakeBackup());
  });
  BOOST_TEST(said.find("/backup/v") != std::string::npos, said);
  // Those of this process were the first.
  BOOST_TEST(ErrorIn(silent[0]->Frame()).message.find("busy") != std::string::npos);
  ExpectWorks(served);
}

BOOST_AUTO_TEST_CASE(slow_clients_are_cut_off) {
  Served served({.patience = kShort, .connections = 8});
  RawClient slow(served.directory());
  BOOST_TEST(!slow.Frame().empty());
  BOOST_TEST(slow.AtEnd());
  // One that takes no answer: its connection ends, too, or closing would wait for it.
  RawClient deaf(served.directory());
  deaf.SendRequest(BeginsList());
  served.store.Close();
}

BOOST_AUTO_TEST_CASE(closing_waits_for_no_client) {
  for (const bool explicitly : {true, false}) {
    Served served;
    std::vector<std::unique_ptr<RawClient>> clients;
    const Bytes request = internal::Framed(FrameKind::kRequest, BeginsList());
    for (std::size_t i = 0; i < 16; ++i) {
      clients.push_back(std::make_unique<RawClient>(served.directory()));
      clients.back()->Send(std::span(request).first(std::min(request.size(), i * 3)));
    }
    if (explicitly) {
      served.store.Close();
    } else {
      // Without Close, by the destructor.
      NodeStoreOptions options = served.store.Options();
      served.store.Close();
      auto owner = Must(NodeStore::Open(options));
      Must(owner->Serve({.patience = kLong}));
      RawClient hanging(served.directory());
      BOOST_TEST(!hanging.Frame().empty());
      owner.reset();
      BOOST_TEST(ErrorIn(hanging.Frame()).message.find("closes") != std::string::npos);
    }
    BOOST_TEST(!fs::exists(served.directory() / "owner.sock"));
  }
}

BOOST_AUTO_TEST_CASE(a_flood_of_requests_stops_nobody) {
  Served served({.patience = kLong, .connections = 16});
  const Bytes request = BeginsList();
  std::vector<std::unique_ptr<ChildProcess>> flood;
  for (int i = 0; i < 3; ++i) {
    flood.push_back(std::make_unique<ChildProcess>([&] {
      return [&](const std::string&) {
        for (int j = 0; j < 500; ++j) {
          RawClient client(served.directory());
          if (j % 2 == 0) client.SendRequest(request);
        }
        return std::string("flooded");
      };
    }));
  }
  std::thread asking([&] {
    for (auto& one : flood) one->Ask("flood");
  });
  int answered = 0;
  for (int i = 0; i < 50; ++i) {
    const auto client = OwnerClient::Connect({.directory = served.directory()});
    if (client && (*client)->BeginList()) ++answered;
    BOOST_TEST(DecisionOf(*served.store, {.image = "x:1", .image_ref = Digest('1')}).pull);
  }
  asking.join();
  BOOST_TEST(answered > 0);
  ExpectWorks(served);
}

// --- Owners that misbehave

BOOST_FIXTURE_TEST_CASE(owners_that_lose_the_connection, Serving) {
  Bytes greeting;
  {
    RawClient client(served.directory());
    greeting = internal::Framed(FrameKind::kGreeting, client.Frame());
  }
  served.store.Close();
  const fs::path directory = served.directory();
  const auto connect = [&](milliseconds patience = kLong) {
    return OwnerClient::Connect(
        {.directory = directory, .patience = patience, .answer_patience = patience});
  };
  // An owner's greeting and then, once it has heard a request, what `answer` says.
  const auto answers = [&](const Bytes& answer) {
    return [&greeting, answer](int client) {
      RawOwner::Say(client, greeting);
      RawOwner::Hear(client);
      if (!answer.empty()) RawOwner::Say(client, answer);
    };
  };
  const ChangeOptions dry{.dry_run = true};
  {
    const RawOwner silent(directory, [](int client) { RawOwner::WaitForEnd(client); });
    ExpectRefused(connect(kShort), ErrorCode::kUnavailable);
  }
  {
    // One that serves, and takes nobody: there is room for one to wait.
    const internal::Fd full = RawSocket();
    const internal::Fd waiting = RawSocket();
    const sockaddr_un name = SocketAddress(directory);
    const auto* address = reinterpret_cast<const sockaddr*>(&name);
    unlink(name.sun_path);
    BOOST_REQUIRE(bind(full.get(), address, sizeof(name)) == 0);
    BOOST_REQUIRE(listen(full.get(), 0) == 0);
    BOOST_REQUIRE(::connect(waiting.get(), address, sizeof(name)) == 0);
    ExpectError(connect(kShort), ErrorCode::kUnavailable, "too many clients waiting");
  }
  {
    const RawOwner closing(directory, [](int) {});
    ExpectRefused(connect(), ErrorCode::kUnavailable);
  }
  {
    const RawOwner odd(directory, [](int client) { RawOwner::Say(client, Bytes(16, 'x')); });
    ExpectRefused(connect(), ErrorCode::kIo);
  }
  {
    const RawOwner newer(directory, [&](int client) {
      Bytes other = greeting;
      other[8] = 3;
      RawOwner::Say(client, other);
    });
    ExpectRefused(connect(), ErrorCode::kOwned);
  }
  {
    const RawOwner broken(directory, [&](int client) {
      RawOwner::Say(client, internal::Framed(FrameKind::kGreeting, Bytes(8, 0xff)));
    });
    ExpectRefused(connect(), ErrorCode::kIo);
  }
  {
    // It takes the request, and goes.
    const RawOwner leaving(directory, answers({}));
    const auto client = Must(connect());
    ExpectError(client->AddToLedger({.id = Digest('a')}, "source", "reason", {}),
                ErrorCode::kOutcomeUnknown);
    ExpectError(client->MakeBackup(), ErrorCode::kOutcomeUnknown);
    ExpectRefused(client->AddToLedger({.id = Digest('a')}, "source", "reason", dry),
                  ErrorCode::kUnavailable);
    ExpectRefused(client->BeginList(), ErrorCode::kUnavailable);
  }
  {
    // It never answers.
    const RawOwner slow(directory, [&](int client) {
      RawOwner::Say(client, greeting);
      RawOwner::WaitForEnd(client);
    });
    const auto client = Must(connect(kShort));
    const auto lost = client->AddToLedger({.id = Digest('a')}, "source", "reason", {});
    BOOST_TEST((lost.error().code == ErrorCode::kOutcomeUnknown), lost.error().ToString());
    ExpectRefused(client->BeginList(), ErrorCode::kUnavailable);
  }
  // Answers that are none, and answers to another question.
  for (const Bytes& answer :
       {Bytes(), Bytes(100, 0xff), Bytes(4), internal::Framed(FrameKind::kAnswer, Bytes(64))}) {
    const RawOwner lying(directory, answers(internal::Framed(FrameKind::kAnswer, answer)));
    const auto client = Must(connect());
    ExpectError(client->RemoveFromLedger({.image_ref = Digest('a')}, "reason", {}),
                ErrorCode::kOutcomeUnknown);
  }
  // What a later version may say.
  {
    const Bytes odd =
        internal::AnswerOf({static_cast<ErrorCode>(200), "odd", "", static_cast<Hint>(200)});
    const RawOwner later(directory, answers(internal::Framed(FrameKind::kAnswer, odd)));
    const auto client = Must(connect());
    const Error got = ExpectError(client->BeginList(), ErrorCode::kInternal);
    BOOST_TEST((got.hint_code == Hint::kNone));
    BOOST_TEST(got.message == "odd");
  }
  // A name of a backup that leads elsewhere.
  Bytes backup;
  internal::Put put(backup);
  put(true);
  put(Backup{.path = "../../etc/passwd", .schema_version = 5, .commit_sequence = 1, .bytes = 1});
  const RawOwner lying(directory, answers(internal::Framed(FrameKind::kAnswer, backup)));
  ExpectError(Must(connect())->MakeBackup(), ErrorCode::kOutcomeUnknown);
}

BOOST_FIXTURE_TEST_CASE(a_client_that_is_set_wrongly, Serving) {
  const fs::path directory = served.directory();
  ExpectRefused(OwnerClient::Connect({.directory = directory, .patience = milliseconds(0)}),
                ErrorCode::kInvalidArgument);
  ExpectRefused(OwnerClient::Connect({.directory = directory, .answer_patience = milliseconds(-1)}),
                ErrorCode::kInvalidArgument);
  ExpectError(OwnerClient::Connect({.directory = directory / "none"}), ErrorCode::kNotFound);
  fs::create_directory_symlink(directory, directory.parent_path() / "link");
  ExpectError(OwnerClient::Connect({.directory = directory.parent_path() / "link"}),
              ErrorCode::kUnsafePath);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
