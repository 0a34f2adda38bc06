// The guard beside a kubelet that a test plays by hand: what it writes, what it forgets.

#include "guard/guard.h"

#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_file.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/userns_file.h"
#include "store/base/hex.h"
#include "store/base/options.h"
#include "store/base/sha256.h"
#include "store/base/trace.h"
#include "store/base/words.h"
#include "tests/support/allocations.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"
#include "waybill/values.h"

BOOST_AUTO_TEST_SUITE(guard)

namespace {

using namespace waybill;           // NOLINT(google-build-using-namespace)
using namespace waybill::testing;  // NOLINT(google-build-using-namespace)
using waybill::guard::Guard;
using waybill::guard::GuardOptions;
using waybill::guard::HoleKind;
using waybill::testing::NodeStore;

using Strings = std::vector<std::string>;
using CredentialsByName = std::map<std::string, ImagePullCredentials>;

constexpr const char* kAppV1 = "r.example/a/app:v1";
constexpr const char* kApp = "r.example/a/app";

std::string Ref(char digit) { return "sha256:" + std::string(64, digit); }

std::string FileName(const std::string& text) {
  return "sha256-" + internal::HexEncode(Must(internal::Sha256(text)));
}

ListedImage Listed(char digit, const std::string& tag) {
  ListedImage image{.id = Ref(digit)};
  if (!tag.empty()) image.repo_tags = {tag};
  return image;
}

ImagePullCredentials SecretOf(const std::string& tenant) {
  return {.kubernetes_secrets = {{.uid = "u-" + tenant,
                                  .namespace_name = tenant,
                                  .name = "pull",
                                  .credential_hash = "hash-" + tenant}}};
}

CredentialsByName SecretsOf(const Strings& tenants) {
  CredentialsByName all;
  for (const std::string& tenant : tenants) {
    all[kApp].kubernetes_secrets.push_back(SecretOf(tenant).kubernetes_secrets[0]);
  }
  return all;
}

// Plays the kubelet in its own directory, by its own rules.
class Node {
 public:
  Node() {
    std::filesystem::create_directories(kubelet());
    std::filesystem::permissions(kubelet(), std::filesystem::perms::owner_all);
  }

  std::filesystem::path kubelet() const { return scratch_ / "kubelet"; }
  std::filesystem::path store() const { return scratch_ / "store"; }
  std::filesystem::path Pulled(const std::string& ref) const {
    return kubelet() / "image_manager/pulled" / FileName(ref);
  }
  std::filesystem::path Pulling(const std::string& image) const {
    return kubelet() / "image_manager/pulling" / FileName(image);
  }
  FakeClock& clock() { return clock_; }

  // As a kubelet writes.
  void WriteFile(const std::filesystem::path& path, const std::string& content) const {
    std::filesystem::create_directories(path.parent_path());
    for (auto folder : {path.parent_path(), path.parent_path().parent_path()}) {
      std::filesystem::permissions(folder, std::filesystem::perms::owner_all);
    }
    std::ofstream(path.string() + ".tmp", std::ios::binary) << content;
    Chmod(path.string() + ".tmp", 0600);
    std::filesystem::rename(path.string() + ".tmp", path);
  }
  static void Chmod(const std::filesystem::path& path, mode_t mode) {
    BOOST_REQUIRE(::chmod(path.c_str(), mode) == 0);
  }
  void WriteRecord(ImagePulledRecord record) const {
    record.last_updated = clock_.Now();
    WriteFile(Pulled(record.image_ref), EncodePulledRecord(record));
  }
  void WriteCredentials(char digit, const CredentialsByName& credentials) const {
    WriteRecord({.image_ref = Ref(digit), .credential_mapping = credentials});
  }
  void WriteRecord(char digit, const Strings& tenants) const {
    WriteCredentials(digit, SecretsOf(tenants));
  }
  // As somebody puts a copy back: in place, so that no folder tells.
  void PutBack(char digit, const std::string& tenant) const {
    std::ofstream(Pulled(Ref(digit)), std::ios::binary)
        << EncodePulledRecord({.image_ref = Ref(digit),
                               .last_updated = Timestamp{kFakeEpoch + 100, 0},
                               .credential_mapping = SecretsOf({tenant})});
  }
  void WriteIntent(const std::string& image) const {
    WriteFile(Pulling(image), EncodePullIntent({.image = image}));
  }

  GuardOptions Options() {
    GuardOptions options;
    options.kubelet_directory = kubelet();
    options.store.directory = store();
    options.store.clock = clock_.AsClock();
    options.store.boot_clock = clock_.AsBootClock();
    options.store.map_bytes = std::uint64_t{64} << 20U;
    options.store.trace = trace;
    options.store.max_age = max_age;
    options.store.evidence.short_names = ShortNames::kDockerHub;
    options.list_images = [this]() -> Result<std::vector<ListedImage>> { return images; };
    options.who_checks = [this](const std::string& name) {
      return name == kApp ? checker : VerifiedBy::kUnknown;
    };
    options.kubelet = [this]() -> std::optional<waybill::guard::RunningKubelet> {
      if (meanwhile) meanwhile();
      if (!kubelet_runs && !is_started_) return std::nullopt;
      return waybill::guard::RunningKubelet{.life = std::to_string(lives)};
    };
    options.verifies_recorded = verifies_recorded;
    options.log = [this](waybill::guard::LogLevel, const std::string& text) {
      log.push_back(text);
    };
    options.on_hole = [this](const waybill::guard::Hole& hole) { holes.push_back(hole.kind); };
    return options;
  }
  // A kubelet starts when the guard is ready, but for one that ran already.
  void Start() {
    is_started_ = false;
    guard_ = Must(Guard::Start(Options()));
    is_started_ = true;
    if (!kubelet_runs) ++lives;
  }
  void StartWith(std::vector<ListedImage> on_node) {
    images = std::move(on_node);
    Start();
  }
  // On a node with one image, which the tenant a pulled.
  void HasOne() {
    images = {Listed('1', kAppV1)};
    WriteRecord('1', {"a"});
  }
  // With some images, from '1' on.
  void HasSome(char last) {
    for (char digit = '1'; digit <= last; ++digit) {
      WriteRecord(digit, {"a"});
      images.push_back(Listed(digit, std::string(kApp) + ":v" + digit));
    }
  }
  void StartWithOne() {
    HasOne();
    Start();
  }
  // Of what the kubelet gave up before, nothing can come any more.
  void StartLongAgo() {
    Start();
    ListAfter(8000);
  }
  void StartLongAgo(std::vector<ListedImage> on_node) {
    images = std::move(on_node);
    StartLongAgo();
  }
  // In order, and again.
  void Restart() {
    Must(guard_->Stop());
    Start();
  }
  // Without its knowing.
  void Kill() { guard_.reset(); }
  void Stop() {
    Must(guard_->Stop());
    guard_.reset();
  }
  Guard& guard() { return *guard_; }
  waybill::NodeStore& its_store() { return guard_->store(); }
  std::ptrdiff_t RecordsOnNode() {
    const auto records = Must(its_store().ListRecords());
    return std::count_if(records.begin(), records.end(),
                         [](const auto& one) { return !one.absent_since; });
  }

  bool IsStored(char digit) { return its_store().GetRecord({.image_ref = Ref(digit)}).has_value(); }
  CredentialsByName Stored(char digit) {
    return Must(its_store().GetRecord({.image_ref = Ref(digit)})).credential_mapping;
  }
  bool HasPull(const std::string& image) { return Must(its_store().HasIntent({.image = image})); }
  void Forgets(RevocationKind kind, const CredentialName& who) {
    Must(its_store().Call(Revoke{.what = {.kind = kind, .who = who}}));
  }
  void ForgetA() { Forgets(RevocationKind::kSecret, {.namespace_name = "a", .name = "pull"}); }
  std::vector<UnresolvedPull> OpenPulls() { return Must(its_store().ListOpenPulls()); }

  // A pull, as the guard sees it: its intent comes, and goes.
  void Begins(const std::string& image) {
    WriteIntent(image);
    Must(guard_->Again());
  }
  void Ends(const std::string& image) {
    std::filesystem::remove(Pulling(image));
    Follow();
  }
  void List() {
    auto token = Must(guard_->BeginList());
    Must(guard_->TakeList(token, images));
  }
  void List(std::vector<ListedImage> now) {
    images = std::move(now);
    List();
  }
  void ListAfter(std::int64_t seconds) {
    clock_.AdvanceSeconds(seconds);
    List();
  }
  void ListAfter(std::int64_t seconds, std::vector<ListedImage> now) {
    clock_.AdvanceSeconds(seconds);
    List(std::move(now));
  }
  void Comes(char digit, const std::string& tag) {
    images.push_back(Listed(digit, tag));
    List();
  }
  void Follow() {
    Must(guard_->Again());
    List();
  }

  // What the file says. A kubelet can't read one that only closes.
  std::optional<ImagePulledRecord> Record(const std::string& ref) const {
    const auto file = Must(internal::ReadKubeletFile(kubelet() / "image_manager",
                                                     internal::KubeletFolder::kPulled,
                                                     FileName(ref), internal::OnReadError::kFail));
    const auto* record = std::get_if<ImagePulledRecord>(&file.content);
    return record != nullptr ? std::optional(*record) : std::nullopt;
  }
  // To whom it opens the image, and to nobody else.
  bool FileOpensTo(char digit, const Strings& tenants) const {
    return FileSays(digit, SecretsOf(tenants));
  }
  bool FileSays(char digit, const CredentialsByName& credentials) const {
    const auto record = Record(Ref(digit));
    return record && record->credential_mapping == credentials;
  }
  bool KubeletReads(char digit) const {
    return DecodePulledRecord(Read(Pulled(Ref(digit)))).has_value();
  }
  bool HasIntent(const std::string& image) const { return std::filesystem::exists(Pulling(image)); }
  bool IsClosedToAll(char digit) const {
    const auto record = Record(Ref(digit));
    return record && record->credential_mapping.empty();
  }
  static std::string Read(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  std::filesystem::path Kept(const std::string& ref, const std::string& folder = "kept") const {
    return kubelet() / "image_manager/waybill-guard" / folder / ("pulled-" + FileName(ref));
  }
  bool SaysOnce(const std::string& part) const {
    return std::count_if(log.begin(), log.end(), [&](const std::string& line) {
             return line.find(part) != std::string::npos;
           }) == 1;
  }
  bool Found(HoleKind kind) const {
    return std::find(holes.begin(), holes.end(), kind) != holes.end();
  }

  TraceOptions trace;
  std::optional<std::chrono::seconds> max_age;
  std::vector<ListedImage> images;
  bool kubelet_runs = false;
  int lives = 1;
  std::function<void()> meanwhile;  // in each round, between the look and what follows
  VerifiedBy checker = VerifiedBy::kRegistry;
  bool verifies_recorded = true;
  std::vector<std::string> log;
  std::vector<HoleKind> holes;

 private:
  TempDir scratch_;
  FakeClock clock_;
  std::unique_ptr<Guard> guard_;
  bool is_started_ = false;
};

}  // namespace

// A kubelet's decisions are its own: what the guard sees of uses is who got into a record.
BOOST_AUTO_TEST_CASE(a_trace_of_what_it_saw) {
  Node node;
  node.trace.path = node.kubelet().parent_path() / "trace";
  node.Start();
  node.Begins(kAppV1);
  node.images = {Listed('1', kAppV1)};
  node.images[0].bytes = 129338587;
  node.WriteRecord('1', {"a"});
  node.Ends(kAppV1);
  // Lists that change nothing.
  node.List();
  node.List();
  node.images.clear();
  node.List();
  node.Stop();
  auto reader = Must(TraceReader::Open(node.trace.path));
  Strings told;
  while (const auto event = Must(reader.Next())) {
    told.push_back(std::string(TraceKindName(event->kind)) + " " + event->image + " " +
                   std::to_string(event->bytes.value_or(0)) + " " + event->pod_namespace + " " +
                   std::to_string(event->credentials.size()));
  }
  const std::string app = kApp;
  const Strings expected = {"start  0  0",
                            "list  0  0",
                            "pullBegun " + app + ":v1 0  0",
                            "use " + app + " 0 a 1",
                            "pulled " + app + ":v1 129338587  0",
                            "image " + app + ":v1 129338587  0",
                            "list  0  0",
                            "removed " + app + ":v1 129338587  0",
                            "list  0  0"};
  BOOST_TEST(told == expected, boost::test_tools::per_element());
}

// By the runtime's configuration as it is when the kubelet records the pull; what it was before a
// start is not known.
BOOST_AUTO_TEST_CASE(a_proof_says_who_checked_it) {
  Node node;
  node.images = {Listed('1', kAppV1)};
  const auto pulls = [&](const Strings& tenants) {
    node.Begins(kAppV1);
    node.WriteRecord('1', tenants);
    node.Ends(kAppV1);
  };
  const auto checkers = [&] {
    Strings all;
    for (const ImagePullSecret& secret : node.Stored('1').at(kApp).kubernetes_secrets) {
      all.push_back(secret.namespace_name + " " + std::string(WordOf(secret.proof.checker)));
    }
    std::sort(all.begin(), all.end());
    return all;
  };
  node.Start();
  node.checker = VerifiedBy::kMirror;
  pulls({"a"});
  BOOST_TEST((checkers() == Strings{"a mirror"}));
  node.checker = VerifiedBy::kRegistry;
  pulls({"a", "b"});
  BOOST_TEST((checkers() == Strings{"a mirror", "b registry"}));
  node.Kill();
  node.WriteRecord('1', {"a", "b", "c"});
  node.Start();
  BOOST_TEST((checkers() == Strings{"a mirror", "b registry", "c unknown"}));
}

BOOST_AUTO_TEST_CASE(a_pull_that_left_no_record_may_still_bring_something) {
  Node node;
  node.Start();
  node.Begins(kAppV1);
  node.Ends(kAppV1);
  const auto pulls = node.OpenPulls();
  BOOST_REQUIRE(pulls.size() == 1);
  BOOST_TEST((pulls[0].state == PullState::kUnknown));
  BOOST_TEST(node.HasIntent(kAppV1));
  // It arrives late.
  node.List({Listed('1', kAppV1)});
  BOOST_TEST(node.IsClosedToAll('1'));
  BOOST_TEST(node.Found(HoleKind::kUnrecordedImage));
}

// A tag that moves leaves an image without a name. That one is known, so the list is whole: it
// shows which other one is gone.
BOOST_AUTO_TEST_CASE(a_known_image_that_lost_its_name_leaves_the_list_whole) {
  Node node;
  const std::string other = "r.example/other/app:1";
  node.StartLongAgo({Listed('1', kAppV1), Listed('2', other)});
  node.List({Listed('1', ""), Listed('3', "r.example/pre/loaded:1")});
  BOOST_TEST(IsGone(node.its_store(), Ref('2')));
}

// The same hash under other coordinates: so writes a decision. Or the secret was rotated before,
// and two decisions are read as one.
BOOST_AUTO_TEST_CASE(decisions_that_add_a_secret_prove_no_pull) {
  for (const std::string hash : {"hash-a", "rotated"}) {
    Node node;
    node.HasOne();
    node.StartLongAgo();
    node.Begins(kAppV1);
    auto more = SecretsOf({"a", "a"});
    auto& secrets = more[kApp].kubernetes_secrets;
    secrets[0].credential_hash = secrets[1].credential_hash = hash;
    secrets[1].name = "other";
    node.WriteCredentials('1', more);
    node.Ends(kAppV1);
    BOOST_TEST(node.OpenPulls().size() == 1, hash);
  }
}

BOOST_AUTO_TEST_CASE(a_kubelet_that_starts_anew_has_no_pulls_and_no_memory) {
  Node node;
  node.HasOne();
  node.StartLongAgo();
  node.Begins("r.example/a/big:1");
  node.ForgetA();
  node.ListAfter(1);
  node.clock().AdvanceSeconds(600);
  ++node.lives;
  Must(node.guard().Again());
  const auto pulls = node.OpenPulls();
  BOOST_REQUIRE(pulls.size() == 1U);
  BOOST_TEST((pulls[0].state == PullState::kUnknown));
  Must(node.guard().Compare());
  BOOST_TEST(node.OpenPulls().size() == 1U);
  // The secret proves itself again.
  node.Begins(kAppV1);
  node.WriteRecord('1', {"a"});
  node.Ends(kAppV1);
  BOOST_TEST(node.FileOpensTo('1', {"a"}));
}

BOOST_AUTO_TEST_CASE(a_record_that_is_seen_late_is_as_old_as_it_says) {
  Node node;
  node.max_age = std::chrono::hours(2);
  node.Start();
  node.Begins(kAppV1);
  node.Kill();
  node.WriteRecord('1', {"a"});
  node.clock().AdvanceSeconds(3600);
  node.kubelet_runs = true;
  node.StartWith({Listed('1', kAppV1)});
  BOOST_TEST(node.FileOpensTo('1', {"a"}));
  node.clock().AdvanceSeconds(3610);
  Must(node.guard().Again());
  BOOST_TEST(node.IsClosedToAll('1'));
}

BOOST_AUTO_TEST_CASE(the_order_of_credentials_means_nothing) {
  Node node;
  node.StartWithOne();
  node.WriteIntent(kAppV1);
  Must(node.guard().Again());
  node.WriteRecord('1', {"a", "b"});
  node.Ends(kAppV1);
  BOOST_TEST(node.holes.empty());
  BOOST_TEST(node.guard().status().files_written == 0U);
}

BOOST_AUTO_TEST_CASE(a_directory_is_no_record) {
  Node node;
  node.StartWithOne();
  std::filesystem::remove(node.Pulled(Ref('1')));
  std::filesystem::create_directories(node.Pulled(Ref('1')) / "inside");
  std::filesystem::create_directory(node.Pulled(Ref('2')));
  Must(node.guard().Again());
  Must(node.guard().Compare());
  node.Comes('3', "r.example/by/hand:1");
  BOOST_TEST(node.guard().status().images == 2U);
  node.Restart();
}

BOOST_AUTO_TEST_CASE(a_kubelet_with_waybill_inside_may_come_later) {
  Node node;
  node.Start();
  const auto inside = Must(NodeStore::Open(OptionsIn(node.kubelet())));
  std::filesystem::rename(node.kubelet() / "store", node.kubelet() / "waybill");
  const auto token = Must(node.guard().BeginList());
  const auto taken = node.guard().TakeList(token, node.images);
  BOOST_REQUIRE(!taken);
  BOOST_TEST((taken.error().code == ErrorCode::kOwned));
}

// containerd makes an image's entry before its name.
BOOST_AUTO_TEST_CASE(an_image_whose_name_comes_a_moment_later_is_not_closed_for_good) {
  Node node;
  node.Start();
  node.List({Listed('1', "")});
  BOOST_TEST(node.IsClosedToAll('1'));
  // Nor does it stay in a kubelet's memory.
  BOOST_TEST(!node.KubeletReads('1'));
  node.kubelet_runs = true;
  node.List({Listed('1', "r.example/by/hand:1")});
  BOOST_TEST(!node.Record(Ref('1')));
  BOOST_TEST(node.guard().status().waiting.empty());
  // One that never gets a name.
  node.Comes('2', "");
  node.ListAfter(10);
  BOOST_TEST(node.IsStored('2'));
  BOOST_TEST(node.IsClosedToAll('2'));
}

// The kubelet's own collector can't remove such a file while the guard runs, and does afterwards.
BOOST_AUTO_TEST_CASE(a_file_that_only_closes_goes_with_its_image) {
  Node node;
  node.Start();
  const auto closed = [&] {
    node.List({Listed('1', "r.example/by/hand:1"), Listed('2', "")});
    node.ListAfter(10);
    return node.IsClosedToAll('2');
  };
  BOOST_REQUIRE(closed());
  BOOST_TEST(!node.KubeletReads('2'));
  node.Stop();
  BOOST_TEST(node.IsClosedToAll('2'));
  BOOST_TEST(node.KubeletReads('2'));
  node.Start();
  BOOST_TEST(!node.KubeletReads('2'));
  node.images.pop_back();
  node.List();
  // Remembered, so it may come back.
  BOOST_TEST(node.IsClosedToAll('2'));
  BOOST_TEST(!node.KubeletReads('2'));
  node.ListAfter(31 * 24 * 3600);
  BOOST_TEST(node.KubeletReads('2'));
  BOOST_TEST(node.IsClosedToAll('2'));
}

// Such a kubelet opens what has a record to some: one that it can't read it would close to all.
BOOST_AUTO_TEST_CASE(a_policy_that_opens_what_has_a_record_reads_what_only_closes) {
  Node node;
  node.verifies_recorded = false;
  node.Start();
  node.List({Listed('1', "")});
  BOOST_TEST(node.IsClosedToAll('1'));
  BOOST_TEST(node.KubeletReads('1'));
}

// A kubelet that verifies preloaded images proves one, at any moment of a list.
BOOST_AUTO_TEST_CASE(a_record_of_a_preloaded_image_is_taken_over_before_it_goes) {
  for (int moment = 0; moment < 8; ++moment) {
    Node node;
    node.StartWith({Listed('1', kAppV1)});
    int asked = 0;
    node.meanwhile = [&] {
      if (asked++ == moment) node.WriteRecord('1', {"a"});
    };
    node.Comes('2', "r.example/other:1");
    node.Follow();
    node.meanwhile = {};
    node.Follow();
    BOOST_TEST_CONTEXT("moment " << moment << " of " << asked) {
      const auto known = node.its_store().GetRecord({.image_ref = Ref('1')});
      BOOST_TEST((asked <= moment || (known && known->credential_mapping.contains(kApp))));
    }
  }
}

// Nobody else wrote it, so what it says of credentials is no kubelet's word.
BOOST_AUTO_TEST_CASE(a_file_that_only_closes_has_no_credentials) {
  Node node;
  node.HasOne();
  const std::string content = internal::ClosingForm(Node::Read(node.Pulled(Ref('1'))));
  std::ofstream(node.Pulled(Ref('1')), std::ios::binary) << content;
  node.Start();
  BOOST_TEST(node.IsClosedToAll('1'));
}

BOOST_AUTO_TEST_CASE(a_record_that_only_the_kubelet_still_has_outlives_a_stop) {
  Node node;
  node.images = {Listed('1', kAppV1), Listed('2', "r.example/other:1")};
  node.WriteRecord('1', {"a"});
  node.Start();
  // The image goes; the kubelet's collector comes later.
  const auto all = node.images;
  node.ListAfter(60, {Listed('2', "r.example/other:1")});
  BOOST_TEST(Must(node.its_store().GetRecord({.image_ref = Ref('1')})).absent_since.has_value());
  // It is pulled again, which proves nothing new: so the kubelet writes nothing.
  node.images = all;
  node.Restart();
  BOOST_TEST(node.FileOpensTo('1', {"a"}));
}

BOOST_AUTO_TEST_CASE(what_a_stop_itself_puts_right_is_no_gap) {
  Node node;
  node.StartWithOne();
  // Nobody saw yet that the collector took it.
  std::filesystem::remove(node.Pulled(Ref('1')));
  node.Restart();
  BOOST_TEST(!node.guard().status().gap);
  BOOST_TEST(node.Record(Ref('1')).has_value());
}

BOOST_AUTO_TEST_CASE(a_start_opens_what_the_ledger_opens_though_it_was_pulled_since) {
  Node node;
  node.StartWith({Listed('1', kAppV1)});  // a first start: preloaded
  node.WriteRecord('1', {"a"});
  node.Follow();
  // What a running kubelet wrote stays.
  BOOST_TEST(node.Record(Ref('1')).has_value());
  node.Restart();
  BOOST_TEST(!node.Record(Ref('1')));
  BOOST_TEST(node.Stored('1').contains(kApp));
}

BOOST_AUTO_TEST_CASE(the_file_of_an_image_that_is_gone_leaves_nothing_unjudged) {
  Node node;
  node.images = {Listed('1', kAppV1), Listed('2', "r.example/other:1")};
  node.WriteRecord({.image_ref = Ref('1')});
  node.StartLongAgo();
  node.ListAfter(60, {Listed('2', "r.example/other:1")});
  BOOST_REQUIRE(node.IsClosedToAll('1'));
  Must(node.guard().Stop());
  node.images.push_back(Listed('3', "r.example/by/hand:1"));
  node.Start();
  BOOST_TEST(!node.guard().status().gap);
  BOOST_TEST(!node.Record(Ref('3')));
}

// The list of another runtime, say, or of a wrong endpoint.
BOOST_AUTO_TEST_CASE(a_list_of_another_runtime_takes_no_record_away) {
  for (const bool killed : {false, true}) {
    Node node;
    node.HasSome('6');
    const std::vector<ListedImage> all = node.images;
    const auto is_whole = [&] {
      for (char digit = '1'; digit <= '6'; ++digit) BOOST_TEST(node.FileOpensTo(digit, {"a"}));
    };
    node.StartWith({all[0]});
    is_whole();
    // Each is named, once.
    const auto status = nlohmann::json::parse(Must(node.guard().StatusJson()));
    BOOST_TEST(status.value("recordsUnlisted", 0) == 5);
    for (std::size_t i = 1; i < all.size(); ++i) {
      BOOST_TEST(node.SaysOnce("not list \"" + all[i].id));
      BOOST_TEST(status.value("unlisted", Strings()).at(i - 1).size() == all[i].id.size());
    }
    BOOST_TEST(status.at("filesRemoved") == 0);
    BOOST_TEST(node.SaysOnce("is this the runtime that the kubelet uses?"));
    BOOST_TEST(node.holes.empty());
    // The kubelet's own runtime.
    node.images = all;
    if (killed) node.Kill();
    if (killed) node.Start();
    if (!killed) node.Restart();
    is_whole();
    for (char digit = '1'; digit <= '6'; ++digit) BOOST_TEST(node.Stored(digit).contains(kApp));
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_is_no_witness_keeps_no_guard_from_starting) {
  for (const char* name : {"witness", "witness.tmp"}) {
    for (const bool was_one : {false, true}) {
      Node node;
      node.images = {Listed('1', kAppV1)};
      const auto path = node.kubelet() / "image_manager/waybill-guard" / name;
      if (was_one) {
        node.Start();
        node.Stop();
        std::filesystem::remove_all(node.store());
      }
      node.WriteFile(path, "somebody's");
      for (int times = 0; times < 3; ++times) {
        node.Start();
        if (times == 0) BOOST_TEST(Must(node.its_store().GetTrust()).distrustful);
        node.Stop();
        BOOST_TEST(Node::Read(path) == "somebody's");
      }
    }
  }
}

// Without a restart: what the wrong list lacked is not judged anew as if nobody had pulled it.
// A list of nothing that is known may be of a disk that is not mounted. What it closed is known.
BOOST_AUTO_TEST_CASE(a_list_that_made_an_image_known_tells_more_when_it_comes_again) {
  Node node;
  node.StartWith({Listed('1', kAppV1), Listed('2', "r.example/hand/loaded:v1")});
  node.Begins(kAppV1);
  node.WriteIntent("r.example/b/app:v1");
  std::filesystem::remove(node.Pulling("r.example/b/app:v1"));  // unread: an unrecorded period
  const std::vector<ListedImage> other = {Listed('3', "r.example/b/app:v1")};
  node.List(other);
  BOOST_TEST(node.IsClosedToAll('3'));
  node.List(other);  // so the others are gone
  node.List({Listed('1', kAppV1), other[0]});
  BOOST_TEST(node.IsClosedToAll('1'));
}

BOOST_AUTO_TEST_CASE(nor_does_a_wrong_list_while_it_runs) {
  for (const bool starts_wrongly : {false, true}) {
    for (const bool forgets : {false, true}) {
      Node node;
      node.HasSome('3');
      const std::vector<ListedImage> all = node.images;
      if (starts_wrongly) node.images = {all[0]};
      node.Start();
      node.List({all[0]});
      BOOST_TEST(node.RecordsOnNode() == 1);
      if (forgets) node.Forgets(RevocationKind::kNamespace, {.namespace_name = "a"});
      node.List(all);
      BOOST_TEST(Must(node.its_store().ListLedger()).empty());
      for (const bool killed : {false, true}) {
        for (const char digit : {'1', '2', '3'}) {
          BOOST_TEST(node.Stored(digit).contains(kApp) == !forgets);
          BOOST_TEST(node.Record(Ref(digit)).has_value());
        }
        if (killed) node.Kill();
        if (killed) node.Start();
        if (!killed) node.Restart();
      }
    }
  }
}

// What is too large to be kept says all the same that its image was pulled.
BOOST_AUTO_TEST_CASE(a_record_beyond_the_limits_closes_its_image) {
  for (const bool comes_back : {false, true}) {
    Node node;
    CredentialsByName many;
    for (std::size_t i = 0; i <= kMaxImageNamesPerRecord; ++i) {
      many["r.example/app" + std::to_string(i)] = SecretOf("a");
    }
    const std::vector<ListedImage> all = {Listed('1', kAppV1), Listed('2', "r.example/other:1")};
    node.WriteRecord('2', {"a"});
    if (!comes_back) node.WriteCredentials('1', many);
    node.images = comes_back ? std::vector{all[1]} : all;
    node.Start();
    if (comes_back) node.WriteCredentials('1', many);
    for (int lists = 0; lists < 2; ++lists) {
      node.List(all);
      BOOST_TEST(Must(node.its_store().ListLedger()).empty());
      BOOST_TEST(Must(node.its_store().ListRecords()).size() == 2U);
    }
    node.Restart();
    BOOST_TEST(Must(node.its_store().ListLedger()).empty());
  }
}

// It would count for the kubelet if the image came back.
BOOST_AUTO_TEST_CASE(the_record_of_an_image_that_is_gone_loses_what_was_forgotten) {
  Node node;
  node.images = {Listed('1', kAppV1), Listed('2', "r.example/other:1")};
  node.WriteRecord('1', {"a", "b"});
  node.WriteRecord('2', {"a"});
  node.Start();
  node.ListAfter(60, {Listed('2', "r.example/other:1")});
  node.ForgetA();
  const std::string before = node.Read(node.Pulled(Ref('1')));
  node.Restart();
  BOOST_REQUIRE(node.Record(Ref('1')));
  BOOST_TEST(node.FileOpensTo('1', {"b"}));
  BOOST_TEST(node.Found(HoleKind::kRecordStale));
  BOOST_TEST(node.Read(node.Kept(Ref('1'))) == before);
}

BOOST_AUTO_TEST_CASE(what_is_taken_away_is_kept_until_the_next_start_but_one) {
  Node node;
  node.StartWith({Listed('1', kAppV1)});  // a first start: preloaded
  node.WriteRecord('1', {"a"});
  node.Follow();
  node.WriteFile(node.Pulled(Ref('7')), "{broken");
  const std::string record = node.Read(node.Pulled(Ref('1')));
  node.Restart();
  BOOST_TEST(!node.Record(Ref('1')));
  BOOST_TEST(!std::filesystem::exists(node.Pulled(Ref('7'))));
  for (const auto& [ref, content] : {std::pair(Ref('1'), record), {Ref('7'), "{broken"}}) {
    BOOST_TEST(node.Read(node.Kept(ref)) == content);
    BOOST_TEST((std::filesystem::status(node.Kept(ref)).permissions() ==
                (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write)));
    BOOST_TEST(node.SaysOnce("is kept as " + node.Kept(ref).string()));
  }
  BOOST_TEST(nlohmann::json::parse(Must(node.guard().StatusJson())).value("filesKept", 0) == 2);
  node.Restart();
  BOOST_TEST(!std::filesystem::exists(node.Kept(Ref('7'))));
  BOOST_TEST(node.Read(node.Kept(Ref('7'), "kept-before")) == "{broken");
  node.Restart();
  BOOST_TEST(!std::filesystem::exists(node.Kept(Ref('7'), "kept-before")));
}

BOOST_AUTO_TEST_CASE(what_can_not_be_kept_stays) {
  Node node;
  node.StartWith({Listed('1', kAppV1)});
  node.WriteRecord('1', {"a"});
  node.Follow();
  node.Stop();
  // No room: nothing can be made there.
  node.WriteFile(node.kubelet() / "image_manager/waybill-guard/kept", "in the way");
  node.Start();
  BOOST_TEST(node.Record(Ref('1')).has_value());
  BOOST_TEST(node.SaysOnce("can't keep a copy of " + node.Pulled(Ref('1')).string()));
}

// A list that waits for a name does not say that the image is back.
BOOST_AUTO_TEST_CASE(without_a_list_an_image_that_was_gone_may_be_back) {
  Node node;
  node.HasOne();
  node.images.push_back(Listed('2', "r.example/other:1"));
  node.StartLongAgo();
  const auto all = node.images;
  node.ListAfter(60, {Listed('2', "r.example/other:1")});
  node.List({all[0], all[1], Listed('3', "")});
  node.Kill();
  std::filesystem::remove(node.Pulled(Ref('1')));
  auto options = node.Options();
  options.needs_runtime = false;
  options.list_images = nullptr;
  const auto guard = Must(Guard::Start(options));
  BOOST_TEST(node.FileOpensTo('1', {"a"}));
}

// It was closed since a pull may have brought it. When it comes back, only the runtime can tell
// that it is not what that pull brought.
BOOST_AUTO_TEST_CASE(what_a_list_closed_comes_back_closed_unless_it_was_imported) {
  for (const bool imported : {false, true}) {
    Node node;
    node.StartWith({Listed('2', "r.example/other:1")});
    node.Begins(kAppV1);
    node.Comes('1', kAppV1);
    BOOST_REQUIRE(node.IsClosedToAll('1'));
    node.images.pop_back();
    node.ListAfter(60);
    Must(node.guard().Stop());
    node.images.push_back(Listed('1', "r.example/by/hand:1"));
    node.images.back().imported = imported;
    node.Start();
    BOOST_TEST(node.Record(Ref('1')).has_value() == !imported);
  }
}

BOOST_AUTO_TEST_CASE(a_lost_store_leaves_no_credentials) {
  Node node;
  node.images = {Listed('1', kAppV1), Listed('2', "r.example/pre/loaded:1")};
  node.WriteRecord('1', {"a"});
  node.Start();
  BOOST_TEST(!node.SaysOnce("a store was here before"));
  node.Stop();
  std::filesystem::remove_all(node.store());
  node.Start();
  BOOST_TEST(node.SaysOnce("a store was here before"));
  BOOST_TEST(node.SaysOnce("if it was lost, put a backup back"));
  BOOST_TEST(node.SaysOnce("if it was removed on purpose, begin anew"));
  BOOST_TEST(node.IsClosedToAll('1'));
  BOOST_TEST(node.IsClosedToAll('2'));
  // An operator settles it; the placeholder of the preloaded image goes with the next list.
  Must(node.its_store().Call(
      AcceptLoss{.reason = "looked", .images = node.images, .allow_all = true}));
  node.List();
  BOOST_TEST(!node.Record(Ref('2')));
  BOOST_TEST(node.IsClosedToAll('1'));
}

// A first start would presume what a tenant pulled.
BOOST_AUTO_TEST_CASE(what_is_left_when_all_is_lost_is_no_first_start) {
  Node node;
  std::filesystem::create_directories(node.kubelet());
  if (::setxattr(node.kubelet().c_str(), "user.try", "", 0, 0) != 0) return;
  node.images = {Listed('1', kAppV1), Listed('2', "r.example/pre/loaded:1"),
                 Listed('3', "r.example/by/hand:1")};
  node.images[2].imported = true;
  for (const bool lost : {false, true}) {
    node.Start();
    BOOST_TEST(node.IsClosedToAll('1') == lost);
    BOOST_TEST(node.IsClosedToAll('2') == lost);
    BOOST_TEST(!node.Record(Ref('3')));
    node.Stop();
    std::filesystem::remove_all(node.store());
    std::filesystem::remove_all(node.kubelet() / "image_manager");
    // As a guard leaves it that runs meanwhile.
    node.WriteFile(node.kubelet() / "image_manager/waybill-guard/lock", "");
  }
  BOOST_TEST(node.SaysOnce("neither its store nor its witness is left"));
}

BOOST_AUTO_TEST_CASE(an_intent_by_tag_and_digest_closes_no_image_of_the_ledger) {
  Node node;
  node.images = {Listed('1', kAppV1)};
  node.images[0].repo_digests = {kApp + ("@" + Ref('d'))};
  node.Start();  // a first start: preloaded
  const std::string pulled = std::string(kApp) + ":v2@" + Ref('d');
  node.Begins(pulled);
  node.Restart();
  BOOST_TEST(node.HasPull(pulled));
  BOOST_TEST(!node.HasIntent(pulled));
}

// Wherever the store's witness lies.
BOOST_AUTO_TEST_CASE(what_is_forgotten_stays_so_while_the_files_say_it) {
  Node node;
  node.HasOne();
  const auto options = [&] {
    GuardOptions with_witness = node.Options();
    with_witness.store.witness = Witness::At(node.store().string() + ".witness");
    return with_witness;
  };
  Must(Must(Guard::Start(options()))->Stop());
  Must(Must(NodeStore::Open(options().store))->ForgetNamespace("a"));
  node.WriteRecord('1', {"a"});
  node.clock().Reboot();
  node.clock().AdvanceSeconds(31 * 86400);
  const auto guard = Must(Guard::Start(options()));
  BOOST_TEST(Must(guard->store().Call(ListRevocations())).revocations.size() == 1U);
  BOOST_TEST(node.Record(Ref('1'))->credential_mapping[kApp].empty());
}

// A kubelet keeps records in memory, and writes them again with what it adds.
BOOST_AUTO_TEST_CASE(what_is_forgotten_does_not_come_back_with_another_tenants_pull) {
  for (const bool restarted : {false, true}) {
    Node node;
    node.StartWithOne();
    node.ForgetA();
    node.List();
    if (restarted) {
      // A kubelet began that nobody saw.
      node.Kill();
      ++node.lives;
      node.kubelet_runs = true;
      node.Start();
    }
    node.Begins(kAppV1);
    node.WriteRecord('1', {"a", "b"});
    node.Ends(kAppV1);
    for (auto all : {node.Record(Ref('1'))->credential_mapping, node.Stored('1')}) {
      for (const ImagePullSecret& secret : all[kApp].kubernetes_secrets) {
        BOOST_TEST(secret.namespace_name == "b");
      }
    }
    BOOST_TEST(node.Stored('1').contains(kApp) == !restarted);
  }
}

BOOST_AUTO_TEST_CASE(what_is_no_file_is_no_record) {
  Node node;
  node.images = {Listed('1', kAppV1), Listed('2', "r.example/a/app:v2")};
  node.WriteRecord('1', {"a"});
  node.WriteRecord('2', {"a"});
  node.Start();
  node.Stop();
  std::filesystem::remove(node.Pulled(Ref('1')));
  std::filesystem::create_symlink("/etc/passwd", node.Pulled(Ref('1')));
  std::filesystem::remove(node.Pulled(Ref('2')));
  BOOST_REQUIRE(::mkfifo(node.Pulled(Ref('2')).c_str(), 0600) == 0);
  node.Start();
  for (const char digit : {'1', '2'}) {
    BOOST_TEST(
        std::filesystem::is_regular_file(std::filesystem::symlink_status(node.Pulled(Ref(digit)))));
    BOOST_TEST(node.FileOpensTo(digit, {"a"}));
  }
}

namespace {

// Ways in which somebody else may have written a record.
using Planting = std::function<void(const std::filesystem::path& file)>;
std::map<std::string, Planting> Plantings() {
  using Path = std::filesystem::path;
  std::map<std::string, Planting> all = {
      {"a mode", [](const Path& file) { Node::Chmod(file, 0666); }},
      {"a link",
       [](const Path& file) { std::filesystem::create_hard_link(file, file.string() + ".x"); }},
      {"a wide folder", [](const Path& file) { Node::Chmod(file.parent_path(), 0777); }},
      {"a wide image_manager",
       [](const Path& file) { Node::Chmod(file.parent_path().parent_path(), 0770); }},
  };
  if (::geteuid() == 0) {
    all["an owner"] = [](const Path& file) {
      BOOST_REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
    };
  }
  return all;
}

void CheckIsOurs(const Node& node, const std::filesystem::path& file) {
  struct stat st {};
  BOOST_REQUIRE(::lstat(file.c_str(), &st) == 0);
  BOOST_TEST(S_ISREG(st.st_mode));
  BOOST_TEST(st.st_uid == ::geteuid());
  BOOST_TEST((st.st_mode & 022U) == 0U);
  BOOST_TEST(st.st_nlink == 1U);
  for (const char* folder : {"image_manager", "image_manager/pulled", "image_manager/pulling"}) {
    BOOST_REQUIRE(::stat((node.kubelet() / folder).c_str(), &st) == 0);
    BOOST_TEST((st.st_mode & 022U) == 0U, folder);
  }
}

}  // namespace

// At a first start, after a time without a guard, and under its eyes.
BOOST_AUTO_TEST_CASE(a_record_that_somebody_else_may_have_written_opens_nothing) {
  for (const auto& [what, plant] : Plantings()) {
    for (const std::string when : {"first", "later", "now"}) {
      for (const bool is_known : {false, true}) {
        if (is_known && when == "first") continue;
        Node node;
        node.images = {Listed('2', "r.example/other:1")};
        if (is_known) node.images.push_back(Listed('1', kAppV1));
        if (is_known) node.WriteRecord('1', {"a"});
        if (when != "first") node.Start();
        if (when == "later") node.Kill();
        if (is_known) node.WriteRecord('1', {"b"});
        if (!is_known) node.images.push_back(Listed('1', kAppV1));
        if (!is_known) node.WriteRecord('1', {"b"});
        plant(node.Pulled(Ref('1')));
        if (when == "now") {
          node.kubelet_runs = true;
          node.Follow();
          Must(node.guard().Compare());
          node.List();
        } else {
          node.Start();
        }
        BOOST_TEST_CONTEXT(what << " " << when << ", known " << is_known) {
          const auto wanted = is_known ? SecretsOf({"a"}) : CredentialsByName();
          BOOST_TEST(node.FileSays('1', wanted));
          BOOST_TEST((node.Stored('1') == wanted));
          CheckIsOurs(node, node.Pulled(Ref('1')));
          BOOST_TEST(node.guard().status().not_protected == "");
          // What the store says is told no second time, and not believed the next time.
          node.Restart();
          BOOST_TEST(node.FileSays('1', wanted));
          // A kubelet that read it may write it again.
          node.WriteRecord('1', {"c"});
          node.Follow();
          BOOST_TEST(node.Stored('1').contains(kApp));
        }
      }
    }
  }
}

// A kubelet that runs read it, and writes what it read with the next pull.
BOOST_AUTO_TEST_CASE(what_a_kubelet_read_in_a_planted_record_is_no_proof) {
  Node node;
  node.HasOne();
  node.StartLongAgo();
  node.WriteRecord('1', {"planted"});
  Node::Chmod(node.Pulled(Ref('1')), 0666);
  node.Follow();
  node.WriteRecord('1', {"planted", "c"});
  node.Follow();
  for (const ImagePullSecret& secret : node.Stored('1').at(kApp).kubernetes_secrets) {
    BOOST_TEST(secret.namespace_name != "planted");
  }
}

// Nothing tells whether it is about an image that comes back.
BOOST_AUTO_TEST_CASE(a_planted_record_of_an_image_that_is_away_keeps_it_closed) {
  for (const auto& [what, plant] : Plantings()) {
    for (const bool has_runtime : {true, false}) {
      Node node;
      node.images = {Listed('2', "r.example/other:1")};
      node.WriteRecord('1', {"b"});
      plant(node.Pulled(Ref('1')));
      auto options = node.Options();
      options.needs_runtime = false;
      if (!has_runtime) options.list_images = nullptr;
      const auto guard = Must(Guard::Start(options));
      BOOST_TEST_CONTEXT(what << ", a runtime: " << has_runtime) {
        BOOST_TEST((!node.Record(Ref('1')) || node.IsClosedToAll('1')));
        BOOST_TEST(std::filesystem::exists(node.Pulled(Ref('1'))));
        CheckIsOurs(node, node.Pulled(Ref('1')));
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(what_is_planted_in_pulling_hangs_nobody) {
  Node node;
  node.StartWith({Listed('1', "r.example/pre/loaded:1")});
  for (const bool running : {false, true}) {
    if (!running) node.Kill();
    std::filesystem::remove(node.Pulling(kAppV1));
    BOOST_REQUIRE(::mkfifo(node.Pulling(kAppV1).c_str(), 0600) == 0);
    if (!running) node.Start();
    if (running) node.Follow();
    Must(node.guard().Compare());
    node.List();
    BOOST_TEST(!std::filesystem::exists(std::filesystem::symlink_status(node.Pulling(kAppV1))));
    // A pull of anything may have been planned by it.
    node.Comes(running ? '4' : '3', "r.example/new:1");
    BOOST_TEST(node.IsClosedToAll(running ? '4' : '3'));
  }
}

// Anybody may leave that out; only waybill writes its mark.
BOOST_AUTO_TEST_CASE(an_intent_without_a_line_end_counts) {
  for (const bool running : {false, true}) {
    Node node;
    if (running) node.Start();
    std::string intent = EncodePullIntent({.image = kAppV1});
    intent.pop_back();
    node.WriteFile(node.Pulling(kAppV1), intent);
    if (!running) node.Start();
    node.Follow();
    BOOST_TEST_CONTEXT("running " << running) {
      BOOST_TEST(node.HasPull(kAppV1));
      node.Ends(kAppV1);
      node.List({Listed('1', kAppV1)});
      BOOST_TEST(node.IsClosedToAll('1'));
    }
  }
}

// What was left of one is as good as what a kubelet wrote.
BOOST_AUTO_TEST_CASE(a_crash_while_a_file_is_made_plants_nothing) {
  Node node;
  node.StartWithOne();
  node.Kill();
  std::filesystem::create_hard_link(
      node.Pulled(Ref('1')),
      node.kubelet() / "image_manager/waybill-guard" / ("pulled-" + FileName(Ref('1'))));
  // A copy with links of all that is there touches nothing else.
  const auto witness = node.kubelet() / "image_manager/waybill-guard/witness";
  std::filesystem::create_hard_link(witness, witness.string() + ".copy");
  node.Start();
  BOOST_TEST(node.FileOpensTo('1', {"a"}));
  BOOST_TEST(!node.Found(HoleKind::kRecordDamaged));
  BOOST_TEST(std::filesystem::exists(witness));
}

namespace {

// Puts a folder of image_manager ("": itself) elsewhere, behind a symlink.
std::filesystem::path PutElsewhere(const Node& node, const std::string& name,
                                   const std::string& elsewhere = "way/elsewhere") {
  const std::filesystem::path image_manager = node.kubelet() / "image_manager";
  const std::filesystem::path place = name.empty() ? image_manager : image_manager / name;
  const std::filesystem::path target = node.kubelet().parent_path() / elsewhere;
  std::filesystem::create_directories(target.parent_path());
  Node::Chmod(target.parent_path(), 0755);
  std::filesystem::rename(place, target);
  std::filesystem::create_directory_symlink(target, place);
  return target;
}

}  // namespace

BOOST_AUTO_TEST_CASE(folders_behind_symlinks_are_kept_right) {
  for (const std::string name : {"", "pulled", "pulling"}) {
    BOOST_TEST_CONTEXT("'" << name << "'") {
      Node node;
      node.HasOne();
      node.WriteIntent("r.example/open/pull:1");
      PutElsewhere(node, name);
      node.Start();
      BOOST_TEST(node.guard().status().not_protected == "");
      BOOST_TEST(node.HasPull("r.example/open/pull:1"));
      std::filesystem::remove(node.Pulled(Ref('1')));
      node.Follow();
      BOOST_TEST(node.FileOpensTo('1', {"a"}));
      node.Ends("r.example/open/pull:1");
      BOOST_TEST(node.HasIntent("r.example/open/pull:1"));
      node.WriteIntent("r.example/a/app:v2");
      node.images.push_back(Listed('2', "r.example/a/app:v2"));
      node.WriteRecord('2', {"b"});
      node.Follow();
      BOOST_TEST(node.IsStored('2'));
      Must(node.guard().Compare());
      node.List();
      BOOST_TEST(!node.guard().status().gap);
      node.Restart();
      BOOST_TEST(!node.guard().status().gap);
      // Another target is as much as other folders, also under its eyes.
      node.Stop();
      const auto link = node.kubelet() / "image_manager" / name;
      const std::filesystem::path at = name.empty() ? node.kubelet() / "image_manager" : link;
      const auto target = std::filesystem::read_symlink(at);
      std::filesystem::remove(at);
      std::filesystem::create_directory_symlink(target, at);
      node.Start();
      BOOST_TEST(node.guard().status().gap);
      std::filesystem::remove(at);
      std::filesystem::copy(target, target.string() + ".other",
                            std::filesystem::copy_options::recursive);
      std::filesystem::create_directory_symlink(target.string() + ".other", at);
      Must(node.guard().Compare());
      node.Comes('3', "r.example/by/hand:1");
      BOOST_TEST(node.IsClosedToAll('3'));
      node.WriteRecord('4', {"b"});
      node.images.push_back(Listed('4', "r.example/a/app:v4"));
      node.Follow();
      BOOST_TEST(node.IsStored('4'));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_later_format_is_left_alone) {
  Node node;
  node.images = {Listed('1', kAppV1), Listed('2', "r.example/a/app:v2")};
  const std::string later =
      R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1","imageRef":")" +
      Ref('1') + "\",\"colour\":\"blue\"}\n";
  node.WriteFile(node.Pulled(Ref('1')), later);
  node.WriteRecord('2', {"a"});
  node.Start();
  BOOST_TEST(Node::Read(node.Pulled(Ref('1'))) == later);
  BOOST_TEST(node.guard().status().left_alone == 1);
  std::filesystem::remove(node.Pulled(Ref('2')));
  node.Follow();
  BOOST_TEST(node.Record(Ref('2')).has_value());
}

BOOST_AUTO_TEST_CASE(a_start_in_a_hurry_leaves_what_was_left) {
  Node node;
  node.HasSome('2');
  node.StartLongAgo();
  node.WriteRecord('1', {"a", "b"});
  Must(node.guard().Stop());
  for (const int patience : {0, 1}) {
    auto options = node.Options();
    options.hurry = [left = patience]() mutable { return left-- <= 0; };
    const auto refused = Guard::Start(std::move(options));
    BOOST_TEST_REQUIRE(!refused.has_value());
    BOOST_TEST((refused.error().code == ErrorCode::kInterrupted));
  }
  node.Start();
  BOOST_TEST(!node.guard().status().gap);
  BOOST_TEST(node.FileOpensTo('1', {"a", "b"}));
  BOOST_TEST(node.FileOpensTo('2', {"a"}));
}

BOOST_AUTO_TEST_CASE(a_wrong_endpoint_is_asked_once) {
  Node node;
  auto options = node.Options();
  options.needs_runtime = false;
  options.list_images = []() -> Result<std::vector<ListedImage>> {
    return Error{ErrorCode::kInvalidArgument, "that is no socket", ""};
  };
  options.try_again = [](const Error&) -> bool { throw std::logic_error("it was asked again"); };
  auto refused = Guard::Start(options);
  BOOST_REQUIRE(!refused);
  BOOST_TEST((refused.error().code == ErrorCode::kInvalidArgument));
}

// A pull whose end nobody saw may have brought what is on the disk that is not there yet.
BOOST_AUTO_TEST_CASE(an_empty_list_settles_no_pull) {
  Node node;
  node.StartWith({Listed('2', "r.example/other:1")});
  node.Begins(kAppV1);
  node.Kill();
  node.images.clear();
  node.clock().AdvanceSeconds(3 * 3600);
  node.Start();
  node.ListAfter(3 * 3600);
  node.List({Listed('2', "r.example/other:1"), Listed('1', kAppV1)});
  BOOST_TEST(node.IsClosedToAll('1'));
}

// What a parser makes of 4 MiB of brackets.
BOOST_AUTO_TEST_CASE(a_deeply_nested_file_costs_no_more_than_another) {
  TempDir scratch;
  const std::filesystem::path pulled = scratch.path() / "pulled";
  const std::string name = FileName(Ref('1'));
  std::filesystem::create_directories(pulled);
  for (const std::string& opening : {std::string("["), std::string("{\"a\":")}) {
    std::string content =
        R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v9","x":)";
    while (content.size() < kMaxRecordFileBytes - opening.size()) content += opening;
    std::ofstream(pulled / name, std::ios::binary) << content;
    waybill::guard::Looker looker(1);
    const std::size_t before = AllocationsOfThread();
    const auto* const look = Must(looker.LookAt({scratch.path(), pulled, scratch.path() / "no"}));
    BOOST_TEST(AllocationsOfThread() - before < 1000U);
    BOOST_REQUIRE(look->pulled.contains(name));
    BOOST_TEST((look->pulled.at(name).what == waybill::guard::SeenFile::What::kUnreadable));
  }
}

BOOST_AUTO_TEST_CASE(host_ids_of_pods_are_kept) {
  Node node;
  node.Start();
  // A kubelet makes pods/ when it starts.
  const auto file = [&](const std::string& pod) {
    return node.kubelet() / "pods" / pod / "userns";
  };
  const auto write = [&](const std::string& pod, std::uint32_t first) {
    std::filesystem::create_directories(file(pod).parent_path());
    std::ofstream(file(pod)) << internal::EncodeUsernsFile(first, 65536);
  };
  const auto is_kept = [&](const std::string& pod, std::uint32_t first) {
    Must(node.guard().Again());
    BOOST_TEST(Must(node.its_store().GetUserNamespace(pod)).host_id == first);
  };
  write("pod-a", 65536);
  is_kept("pod-a", 65536);
  write("pod-b", 131072);
  is_kept("pod-b", 131072);
  node.Stop();
  std::filesystem::remove(file("pod-a"));
  write("pod-b", 196608);
  node.Start();
  const auto read = [&](const std::string& pod) {
    return internal::DecodeUsernsFile(pod, "", Node::Read(file(pod))).mapping.value().first;
  };
  BOOST_TEST(read("pod-a") == 65536U);
  BOOST_TEST(read("pod-b") == 131072U);
  // A pod ends, and later another gets its range.
  std::filesystem::remove_all(file("pod-a").parent_path());
  Must(node.guard().Again());
  BOOST_TEST(!node.its_store().GetUserNamespace("pod-a").has_value());
  write("pod-c", 65536);
  is_kept("pod-c", 65536);
}

BOOST_AUTO_TEST_SUITE_END()
