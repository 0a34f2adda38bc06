// Where nothing happens, nothing is written: every call that changes a file or syncs one is
// counted. What a list that was in no commit means to later ones: histories/evidence.jsonl.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "store/door/calls.h"
#include "tests/crash/recorder.h"
#include "tests/support/expect_error.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/metrics.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(idle)

namespace {

constexpr int kImages = 110;

std::string RefOf(int number) {
  return "sha256:" + std::string(60, '0') + std::to_string(1000 + number);
}

std::vector<ListedImage> Images() {
  std::vector<ListedImage> images;
  for (int i = 0; i < kImages; ++i) {
    const std::string name = "registry.example/app-" + std::to_string(i);
    images.push_back(
        {.id = RefOf(i),
         .repo_tags = {name + ":v1"},
         .repo_digests = {name + "@sha256:" + std::string(60, 'f') + std::to_string(1000 + i)}});
  }
  return images;
}

const std::string kRef = RefOf(0);
const std::string kNowhere = "sha256:" + std::string(64, 'e');
constexpr const char* kImage = "registry.example/app-0:v1";
constexpr const char* kNever = "registry.example/never:v1";
constexpr const char* kPod = "0b9a4c0e-5f0a-4a3b-9a57-1d4c7a8b9c0d";
const ImageCopy kPulled = {.image = kImage, .image_ref = kRef};
const ImageCopy kUnknown = {.image = kNever, .image_ref = kNowhere};

// A node with images that were pulled, and some that came without the kubelet.
class Node {
 public:
  Node() {
    Open();
    for (int i = 0; i < kImages; i += 2) {
      ImagePullCredentials credentials;
      credentials.kubernetes_secrets.push_back({"uid", "ns", "secret", std::to_string(i)});
      const std::string image = "registry.example/app-" + std::to_string(i) + ":v1";
      Must(store_->RecordPullIntent({.image = image}));
      Must(store_->RecordImagePulled({.image = image, .image_ref = RefOf(i)}, credentials));
    }
    Must(Observe());
    Open();  // the mark's own flush comes late
  }

  void Open(std::optional<std::chrono::seconds> max_age = std::nullopt) {
    store_.reset();
    NodeStoreOptions options = OptionsIn(root_.path());
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    options.continues_pulls = true;
    options.max_age = max_age;
    store_ = Must(NodeStore::Open(std::move(options)));
  }
  NodeStore& operator*() { return *store_; }
  NodeStore* operator->() { return store_.get(); }
  FakeClock& clock() { return clock_; }

  Result<ClassifyReport> Observe(const ChangeOptions& options = {}) {
    return Observe(Must(store_->BeginList()), options);
  }
  Result<ClassifyReport> Observe(const ListToken& token, const ChangeOptions& options = {}) {
    return store_->ObserveImages({.images = Images(), .token = token, .complete = true}, options);
  }
  std::filesystem::path store() const { return root_ / "store"; }
  std::uint64_t commits() { return Must(store_->GetStatistics()).commit_sequence; }

  // What `call` does to the files.
  template <typename Call>
  std::size_t Events(const Call& call) {
    Recorder recorder(root_.path(), FilesAfter(LogOf(root_.path())));
    call();
    const auto log = recorder.Take();
    for (const DiskEvent& event : log) {
      BOOST_TEST_MESSAGE("event " << static_cast<int>(event.kind) << " of " << event.file << " "
                                  << event.path << " at " << event.offset);
    }
    return log.size();
  }

 private:
  const MemoryDir root_;
  FakeClock clock_;
  std::unique_ptr<NodeStore> store_;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(lists_of_an_hour_write_nothing, Node) {
  const std::uint64_t before = commits();
  const std::size_t events = Events([&] {
    for (int second = 0; second < 3600; second += 5) {
      clock().AdvanceSeconds(5);
      const ClassifyReport report = Must(Observe());
      BOOST_TEST_REQUIRE(report.known == kImages);
      if (second % 300 == 0) Must((*this)->Prune(Images(), Must((*this)->BeginList())));
    }
  });
  BOOST_TEST(events == 0U);
  BOOST_TEST(commits() == before);
}

// By ages the newest commit's time counts, where a clock goes back.
BOOST_FIXTURE_TEST_CASE(where_proofs_grow_old_an_hour_is_kept, Node) {
  Open(std::chrono::hours(24));
  const std::uint64_t before = commits();
  for (int minute = 0; minute < 25 * 60; ++minute) {
    clock().AdvanceSeconds(60);
    Must(Observe());
  }
  BOOST_TEST(commits() > before);
  BOOST_TEST(commits() <= before + 25);
  const auto asks = [&] {
    return ReasonName(
        DecisionOf(**this, kPulled, Pod(MakeSecret("ns", "secret", "uid", "0"))).reason);
  };
  BOOST_TEST(asks() == ReasonName(Reason::kProofTooOld));
  clock().JumpSeconds(-20 * 3600);
  BOOST_TEST(asks() == ReasonName(Reason::kProofTooOld));
}

BOOST_FIXTURE_TEST_CASE(one_that_changes_something_is_durable, Node) {
  std::vector<ListedImage> images = Images();
  images.pop_back();
  const std::size_t events = Events([&] {
    Must((*this)->ObserveImages(
        {.images = images, .token = Must((*this)->BeginList()), .complete = true}));
  });
  BOOST_TEST(events > 0U);
}

namespace {

struct Row {
  std::string what;
  std::function<bool(Node&)> call;  // whether it did what its row says
};

// A list that it needs began just before.
template <typename C>
bool Succeeds(Node& node, C call) {
  if constexpr (requires { call.list.token; }) call.list.token = Must(node->BeginList());
  if constexpr (requires { call.token.commit; }) call.token = Must(node->BeginList());
  if constexpr (requires { call.token->commit; }) call.token = Must(node->BeginList());
  const auto result = node->Call(call);
  if (!result) BOOST_TEST_MESSAGE(result.error().ToString());
  return result.has_value();
}
template <typename C>
Row Does(const C& call) {
  return {std::string(internal::TypeName<C>()) + " " + internal::ToJson(call),
          [call](Node& node) { return Succeeds(node, call); }};
}
template <typename C>
Row Refuses(const C& call) {
  return {"no " + std::string(internal::TypeName<C>()) + " " + internal::ToJson(call),
          [call](Node& node) { return !Succeeds(node, call); }};
}

const std::vector<RuntimeHandler> kHandlers = {
    {.name = "runc", .is_default = true, .user_namespaces = true}};

UserNamespaceRequest OfPod(const char* pod_uid) {
  return {.pod_uid = pod_uid, .host_users = false};
}

// What a call does the second time, where the first may have changed something.
std::vector<Row> Rows() {
  const ImageList listed{.images = Images(), .complete = true};
  const ImageList unknown{.images = {{.id = kNowhere, .repo_tags = {kNever}}}, .complete = true};
  const Revocation of_secret{.kind = RevocationKind::kSecret,
                             .who = {.namespace_name = "ns", .name = "secret"}};
  return {
      Does(MustPull{.image = kImage, .image_ref = kRef}),
      Does(EnsureImage{.pull_policy = PullPolicy::kNever,
                       .question = {.image = kNever, .image_ref = kNowhere}}),
      Does(Explain{.image = kImage, .image_ref = kRef}),
      Does(Flush()),
      Refuses(BeginPull{.image = kImage, .runtime_handler = "none"}),
      Refuses(BeginPull{.image = kImage, .runtime_handler = "none", .unless_running = true}),
      Refuses(EndPull{.image = kImage, .outcome = PullOutcome::kPulled}),
      Does(EndPull{.image = kNever, .image_ref = kNowhere, .outcome = PullOutcome::kFailed}),
      Does(ListPulls()),
      Refuses(DropPulls{.pull = 99, .reason = "a test"}),
      Refuses(DropPulls{.image = kImage, .reason = "a test"}),
      Does(ClassifyImages{.list = listed}),
      Does(ClassifyImages{.list = unknown, .dry_run = true}),
      {"a list from the future",
       [](Node& node) {
         ListToken token = Must(node->BeginList());
         ++token.commit;
         return !node.Observe(token).has_value();
       }},
      Does(ListImages()),
      Does(ListImages{.image_ref = kRef}),
      Does(AllowImage{.image = {.id = kNowhere}, .reason = "a test", .dry_run = true}),
      Refuses(AllowImage{.reason = "a test"}),
      Does(DenyImage{.image_ref = kNowhere, .reason = "a test"}),
      Does(DenyImage{.image_ref = RefOf(1), .reason = "a test", .dry_run = true}),
      Does(DenyImage{.image_ref = kRef, .reason = "a test", .only_unconfirmed = true}),
      Refuses(PutImage{.record = {.runtime_handler = "none"}}),
      Does(DeleteImage{.image_ref = kNowhere}),
      Does(PruneBefore{.images = Images(), .token = ListToken()}),
      Does(PruneBefore{.token = ListToken(), .allow_empty = true, .dry_run = true}),
      Refuses(PruneBefore{.token = ListToken()}),
      Refuses(PruneBefore{.images = Images(), .before = Timestamp{1}}),
      Does(Revoke{.what = of_secret, .dry_run = true}),
      Refuses(Revoke{.what = {.kind = RevocationKind::kNamespace}}),
      Does(RevokeMissing{.allow_empty = true, .dry_run = true}),
      Refuses(RevokeMissing()),
      Does(ListRevocations()),
      Does(ListRuntimes()),
      Does(SetRuntimes{.handlers = kHandlers}),
      Does(SetRuntimes{.handlers = {{.name = "kata"}}, .dry_run = true}),
      Refuses(SetRuntimes()),
      Does(SetRuntimes{.off = true, .dry_run = true}),
      Does(ClaimUserNamespace{.pod_uid = kPod, .host_users = false}),
      Refuses(ClaimUserNamespace{.pod_uid = "a/b", .host_users = false}),
      Does(ReleaseUserNamespace{.pod_uid = "no-pod"}),
      Does(ReleaseUserNamespace{.pod_uid = kPod, .dry_run = true}),
      Does(ReleaseUserNamespace{.lost = true}),
      Does(CleanUpUserNamespaces{.existing = {kPod}}),
      Does(CleanUpUserNamespaces{.existing = {"other"}, .dry_run = true}),
      Refuses(AssignUserNamespace{.pod_uid = kPod, .host_id = 1, .length = 1}),
      {"AssignUserNamespace of its own",
       [](Node& node) {
         const auto own = Must(node->GetUserNamespace(kPod));
         return node->AdoptUserNamespace(kPod, own.host_id, own.length).has_value();
       }},
      Does(ListUserNamespaces()),
      Does(GetStatus()),
      Does(GetMetrics()),
      Does(Verify()),
      Does(AcceptLoss{.reason = "a test", .dry_run = true}),
      Refuses(AcceptLoss()),
      {"what no call reads",
       [](Node& node) {
         return node->HasIntent(kPulled) && node->ListIntents() && node->ListPreloaded();
       }},
  };
}

}  // namespace

// By a process for each, as commands are.
BOOST_FIXTURE_TEST_CASE(what_is_only_counted_is_not_committed_at_the_end, Node) {
  const std::uint64_t before = commits();
  ExpectError((*this)->GetOrCreateUserNamespace(OfPod("a/b")), ErrorCode::kInvalidArgument);
  static_cast<void>(DecisionOf(**this, kPulled));
  BOOST_TEST(ValueOf((*this)->GetMetrics(), "waybill_id_range_failures_total") == 1);
  Open();
  BOOST_TEST(commits() == before);
}

BOOST_FIXTURE_TEST_CASE(calls_that_change_nothing_write_nothing, Node) {
  Must((*this)->ReplaceRuntimeHandlers(kHandlers));
  Must((*this)->GetOrCreateUserNamespace(OfPod(kPod)));
  Open();
  for (const Row& row : Rows()) {
    BOOST_TEST_CONTEXT(row.what) {
      BOOST_TEST(row.call(*this));
      const std::uint64_t before = commits();
      const std::size_t events = Events([&] { BOOST_TEST(row.call(*this)); });
      BOOST_TEST(events == 0U);
      BOOST_TEST(commits() == before);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
