// `waybill forget image`, `preload remove` and `pulls drop` at random places of a node's life:
// nothing opens that was not proven. The judge knows which pull brought which content with whose
// Secret, and when what was closed; it knows nothing of how the store works. The seed is printed,
// and WAYBILL_SEED plays it again; WAYBILL_CLOSING_STEPS: steps of each life.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "store/api/maintenance.h"
#include "tests/support/draw.h"
#include "tests/support/memory_dir.h"
#include "tests/support/run_command.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(closing)

namespace {

using Strings = std::vector<std::string>;

const Strings kHandlers = {"", "kata"};
constexpr std::size_t kSecrets = 3;

ImagePullSecret SecretOf(std::size_t who) {
  const std::string number = std::to_string(who);
  return MakeSecret("tenant-" + number, "pull", "uid-" + number, "hash-" + number);
}

// What an image really is.
struct Content {
  std::string id;
  std::string tag;
  std::string digest;
  bool is_public = false;  // it came without the kubelet, and nobody took that back
  // Under each handler: which Secrets a pull proved that counts, by when the pull began.
  std::map<std::string, std::map<std::size_t, std::uint64_t>> proven = {};
  std::set<std::string> on_node = {};  // for these handlers
  // Whether the store knows that its two spellings are of one image: an older schema does not.
  bool united = true;

  Strings refs() const { return {id, digest}; }
};

struct RunningPull {
  std::size_t content = 0;
  std::string handler;
  std::size_t secret = 0;
  PullId id;
  std::uint64_t began = 0;
};

class Life {
 public:
  Life(std::uint64_t seed, Mode rules) : draw_(seed), rules_(rules) {
    for (std::size_t i = 0; i < 7; ++i) {
      // The first digits of two IDs are the same.
      const std::string hash = std::string(6, i == 6 ? '0' : static_cast<char>('0' + i)) +
                               std::string(58, static_cast<char>('a' + (i < 6 ? i : 1)));
      const std::string name =
          (i < 2 ? "registry.k8s.io/tool-" : "r.example/tenant-") + std::to_string(i) + "/app";
      contents_.push_back(
          {.id = "sha256:" + hash,
           .tag = name + ":v1",
           .digest = name + "@sha256:" + std::string(64, static_cast<char>('0' + i)),
           .is_public = i < 2});
      if (i < 2) contents_.back().on_node = {kHandlers.begin(), kHandlers.end()};
    }
    Open();
    LoadHandlers();
    Observe();
  }

  void Play(std::uint64_t steps) {
    using Step = void (Life::*)();
    const std::vector<std::pair<std::size_t, Step>> all = {
        {8, &Life::Begin},       {10, &Life::End},       {5, &Life::Observe},
        {12, &Life::CloseImage}, {3, &Life::TakeEntry},  {3, &Life::DropPulls},
        {2, &Life::Prune},       {2, &Life::Partial},    {3, &Life::Restart},
        {2, &Life::Leave},       {1, &Life::Handlers},   {1, &Life::PutBack},
        {1, &Life::DownAndUp},   {2, &Life::MakeBackup}, {3, &Life::PassTime},
    };
    // A life in which little is removed or open goes on until enough was.
    const auto enough = [&] { return removed_ > steps / 50 && opened_ > steps; };
    for (std::uint64_t i = 0; i < steps || (!enough() && i < 50 * steps); ++i) {
      (this->*draw_.Weighted(all))();
      Judge();
    }
    BOOST_TEST(enough(), "only " << removed_ << " removals did something, and " << opened_
                                 << " answers were \"no pull\"");
  }

 private:
  bool closed() const { return rules_ == Mode::kStrict; }
  void Note(std::string what) {
    last_.push_back(std::move(what));
    if (last_.size() > 30) last_.erase(last_.begin());
  }
  void Fail(const std::string& what) const {
    std::string text = what + "; before, the oldest first:";
    for (const std::string& one : last_) text += "\n  " + one;
    throw std::runtime_error(text);
  }
  std::uint64_t Tick() { return ++ticks_; }
  Content& AnyContent() { return contents_[draw_.Below(contents_.size())]; }

  // --- The store

  NodeStoreOptions Options() const {
    NodeStoreOptions options = OptionsIn(scratch_.path(), rules_);
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    options.allow_empty = true;
    return options;
  }
  void Open(std::optional<std::vector<ListedImage>> images = {}, Gap gap = Gap::kDetect) {
    NodeStoreOptions options = Options();
    options.images_on_node = std::move(images);
    options.gap = gap;
    store_ = Must(NodeStore::Open(options));
    Must(store_->Serve());
  }
  void Close() {
    Must(store_->Close());
    store_.reset();
    running_.clear();  // their ends are never recorded
  }

  std::vector<ListedImage> Listed() {
    std::vector<ListedImage> images;
    for (const Content& content : contents_) {
      if (content.on_node.empty()) continue;
      ListedImage image{.id = content.id, .repo_tags = {content.tag}};
      image.repo_digests = {content.digest};
      if (!names_handlers_) {
        images.push_back(image);
        continue;
      }
      for (const std::string& handler : content.on_node) {
        image.runtime_handler = handler;
        images.push_back(image);
      }
    }
    return images;
  }

  // --- What happens

  void Begin() {
    if (running_.size() > 4) return End();
    const std::size_t which = draw_.Below(contents_.size());
    const std::string& handler = has_handlers_ ? draw_.From(kHandlers) : kHandlers[0];
    const std::string& image = contents_[which].tag;
    Note("a pull of " + image + " for '" + handler + "' begins");
    const PullId id = Must(store_->RecordPullIntent({.image = image, .runtime_handler = handler}));
    running_.push_back({which, handler, draw_.Below(kSecrets), id, Tick()});
  }

  void End() {
    if (running_.empty()) return Begin();
    const std::size_t at = draw_.Below(running_.size());
    const RunningPull pull = running_[at];
    running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(at));
    Content& content = contents_[pull.content];
    ImageCopy copy{.image = content.tag, .runtime_handler = pull.handler};
    const std::size_t how = draw_.Below(6);
    if (how < 4) {
      const Strings refs = content.refs();
      copy.image_ref = draw_.From(refs);
      Note("the pull of " + content.tag + " for '" + pull.handler + "' succeeds with secret " +
           std::to_string(pull.secret) + ", as " + std::string(copy.image_ref));
      ImagePullCredentials credentials;
      credentials.kubernetes_secrets = {SecretOf(pull.secret)};
      // With both of its spellings: by one alone the store can't know of the other.
      PullResult result{.pull = pull.id};
      result.image = ListedImage{.id = content.id, .repo_digests = {content.digest}};
      Must(store_->RecordImagePulled(copy, credentials, result));
      content.on_node.insert(pull.handler);
      if (pull.began > removed_at_[{content.id, pull.handler}]) {
        auto& began = content.proven[pull.handler][pull.secret];
        began = std::max(began, pull.began);
      }
    } else {
      const bool brings = how == 4;
      Note("the pull of " + content.tag + " for '" + pull.handler + "' fails, and brings " +
           (brings ? "it" : "nothing"));
      const PullFailure failure =
          draw_.OneIn(2) || !brings ? PullFailure::kUnknown : PullFailure::kFailed;
      Must(store_->RecordImagePullFailed(copy, failure, pull.id));
      if (brings) {
        content.on_node.insert(pull.handler);
        brought_.insert(content.tag);
      }
    }
  }

  void Observe() {
    Note("a list");
    const ListToken token = Must(store_->BeginList());
    Must(store_->ObserveImages({.images = Listed(), .token = token, .complete = true},
                               {.allow_empty = true}));
    for (Content& content : contents_) content.united = content.united || !content.on_node.empty();
  }
  void Partial() {
    auto images = Listed();
    if (images.empty()) return;
    images.resize(draw_.Below(images.size()) + 1);
    Note("a partial list");
    Must(store_->ObserveImages({.images = images, .token = Must(store_->BeginList())}));
  }
  void Prune() {
    Note("prune");
    const ListToken token = Must(store_->BeginList());
    Must(store_->Prune(Listed(), token, {.allow_empty = true}));
  }
  void Restart() {
    const std::size_t how = draw_.Below(4);
    Note("a start" + std::string(how == 0   ? ""
                                 : how == 1 ? " with a list"
                                 : how == 2 ? " after a boot"
                                            : " after a gap"));
    Close();
    if (how == 2) clock_.Reboot();
    Open(how % 2 == 1 ? std::optional(Listed()) : std::nullopt,
         how == 3 ? Gap::kYes : Gap::kDetect);
  }
  // The runtime's garbage collection. What is public does not come back unknown to the kubelet.
  void Leave() {
    Content& content = AnyContent();
    if (content.is_public || content.on_node.empty()) return;
    Note(content.id.substr(0, 13) + " leaves the node");
    content.on_node.clear();
  }
  void LoadHandlers() {
    if (!running_.empty()) return;
    Note("handlers are loaded");
    Must(store_->ReplaceRuntimeHandlers({{.name = "kata"}, {.name = "runc", .is_default = true}}));
    has_handlers_ = true;
  }
  void Handlers() {
    names_handlers_ = has_handlers_ && draw_.OneIn(2);
    if (!running_.empty()) return;
    if (!has_handlers_) return LoadHandlers();
    Note("handlers collapse");
    Must(store_->CollapseRuntimeHandlers());
    has_handlers_ = false;
    names_handlers_ = false;
    for (Content& content : contents_) {
      content.proven.erase("kata");
      if (content.on_node.erase("kata") > 0) content.on_node.insert("");
    }
  }
  void MakeBackup() {
    Note("a backup");
    backup_ = Must(store_->MakeBackup()).path;
  }
  void PutBack() {
    if (backup_.empty() || !std::filesystem::exists(backup_)) return;
    Note("the backup is put back");
    Close();
    Must(waybill::RestoreStore({.directory = scratch_ / "store",
                                .backup = backup_,
                                .clock = clock_.AsClock(),
                                .boot_clock = clock_.AsBootClock()}));
    Open();
    has_handlers_ = Must(store_->ListRuntimeHandlers()).size() > 1;
    names_handlers_ = false;
    for (Content& content : contents_) content.united = false;
    if (draw_.OneIn(2)) ClearDistrust();
  }
  void ClearDistrust() {
    Note("distrust is cleared");
    AcceptLoss options;
    options.images = Listed();
    options.allow_empty = true;
    Must(store_->ClearDistrust("it is whole", options));
  }
  // What an older version can't hold is lost, with what keeps credentials from coming back.
  void DownAndUp() {
    if (!closed()) return;
    Note("down to an older schema, and up");
    Must(store_->ReleaseLostUserNamespaces());
    Close();
    Must(MigrateStore({.directory = scratch_ / "store",
                       .to = static_cast<std::uint32_t>(1 + draw_.Below(kNewestSchema)),
                       .accept_loss = true,
                       .clock = clock_.AsClock(),
                       .boot_clock = clock_.AsBootClock()}));
    std::filesystem::remove_all(scratch_ / "store/backup");
    Open();
    has_handlers_ = Must(store_->ListRuntimeHandlers()).size() > 1;
    names_handlers_ = false;
    for (Content& content : contents_) content.united = false;
  }
  void PassTime() { clock_.AdvanceSeconds(static_cast<std::int64_t>(draw_.Below(10'000))); }

  // --- What closes

  // The exit code; said_ is what it printed. Nothing opens by it.
  int Run(Strings arguments) {
    std::string said;
    for (const std::string& argument : arguments) said += argument + " ";
    Note(said);
    arguments.insert(arguments.end(), {"--store", (scratch_ / "store").string()});
    if (!closed()) arguments.insert(arguments.end(), {"--rules", "kubelet"});
    const auto before = OpenNow();
    const CommandResult result = RunWaybill(arguments);
    for (const OpenTo& open : OpenNow()) {
      if (!before.contains(open)) Fail(said + "opened " + Describe(open));
    }
    if (result.exit_code > 1 && result.err.find("begins so") == std::string::npos &&
        result.err.find("runs in this process") == std::string::npos) {
      Fail(said + "ended with " + std::to_string(result.exit_code) + ": " + result.err);
    }
    if (result.exit_code == 0) ++removed_;
    said_ = result.out;
    return result.exit_code;
  }
  // As a person may call it: whole, as a digest, or short.
  std::string Called(const Content& content) {
    switch (draw_.Below(4)) {
      case 0:
        return content.digest;
      case 1:
        return content.id.substr(7, 6 + draw_.Below(12));
      case 2:
        return content.id.substr(0, 20);
      default:
        return content.id;
    }
  }

  void CloseImage() {
    const std::string handler = has_handlers_ ? draw_.From(kHandlers) : "";
    Content& content = AnyContent();
    const std::string called = Called(content);
    Strings arguments = {"forget", "image", called};
    if (!handler.empty() || draw_.OneIn(2))
      arguments.insert(arguments.end(), {"--runtime", handler});
    if (draw_.OneIn(8)) {
      arguments.emplace_back("--dry-run");
      Run(std::move(arguments));
      return;
    }
    // Under the kubelet's rules each spelling is a record of its own.
    if (Run(std::move(arguments)) != 0 || !closed()) return;
    // An image that is stored by its digest is not found by the first digits of its ID, but
    // another one may be. The command says which, if it was called by something else.
    const std::string said = said_ + called;
    const Strings refs = content.refs();
    const auto named = [&](const std::string& ref) { return said.find(ref) != std::string::npos; };
    if (std::ranges::none_of(refs, named)) return;
    if (!content.united) {
      for (const std::string& ref : refs) Run({"forget", "image", ref, "--runtime", handler});
    }
    content.proven[handler].clear();
    removed_at_[{content.id, handler}] = Tick();
  }
  void TakeEntry() {
    if (!closed()) return;  // the kubelet's rules have no ledger
    Content& content = AnyContent();
    const std::string handler = has_handlers_ ? draw_.From(kHandlers) : "";
    const int code =
        Run({"preload", "remove", Called(content), "--runtime", handler, "--reason", "not ours"});
    if (code != 0) return;
    // The other handler's copy may be in the ledger still.
    if (!has_handlers_) content.is_public = false;
  }
  // An operator says the truth.
  void DropPulls() {
    const Content& content = AnyContent();
    if (brought_.contains(content.tag) || !closed()) return;
    for (const RunningPull& pull : running_) {
      if (pull.content == static_cast<std::size_t>(&content - contents_.data())) return;
    }
    const std::string handler = has_handlers_ ? draw_.From(kHandlers) : "";
    // A pull that a restart cut off brought nothing here, either.
    for (const UnresolvedPull& pull : Must(store_->ListOpenPulls())) {
      if (pull.anything || pull.image != content.tag || pull.runtime_handler != handler) continue;
      Run({"pulls", "drop", std::to_string(pull.id.value), "--reason", "no such tag"});
    }
  }

  // --- The judge

  struct OpenTo {
    std::size_t content;
    std::string ref;
    std::string image;
    std::string handler;
    std::size_t secret;
    auto operator<=>(const OpenTo&) const = default;
  };
  std::string Describe(const OpenTo& open) const {
    return open.ref + " as " + open.image + " for '" + open.handler + "' to secret " +
           std::to_string(open.secret);
  }

  std::set<OpenTo> OpenNow() {
    std::set<OpenTo> all;
    for (std::size_t i = 0; i < contents_.size(); ++i) {
      for (const std::string& ref : contents_[i].refs()) {
        for (const std::string& image : {contents_[i].tag, std::string("r.example/thief/x:1")}) {
          for (const std::string& handler : kHandlers) {
            for (std::size_t secret = 0; secret < kSecrets; ++secret) {
              Pod pod(SecretOf(secret));
              const Decision decision = store_->MustAttemptPull(
                  {.image = image, .image_ref = ref, .runtime_handler = handler}, pod);
              if (!decision.pull) all.insert({i, ref, image, handler, secret});
            }
          }
        }
      }
    }
    return all;
  }

  void Judge() {
    const auto now = OpenNow();
    opened_ += now.size();
    if (!closed()) return;  // the kubelet's own mistakes open images
    for (const OpenTo& open : now) {
      Content& content = contents_[open.content];
      const auto& proven = content.proven[open.handler];
      if (content.is_public || (open.image == content.tag && proven.contains(open.secret)))
        continue;
      Fail("nobody proved it, but it is open: " + Describe(open));
    }
    if (draw_.OneIn(20)) JudgeExport();
  }

  // A kubelet that goes on with the exported files.
  void JudgeExport() {
    const std::filesystem::path kubelet = scratch_ / "kubelet";
    std::filesystem::remove_all(kubelet);
    std::filesystem::create_directory(kubelet);
    const auto done =
        store_->Export({.kubelet_directory = kubelet, .images = Listed(), .allow_empty = true});
    if (!done) return;
    std::filesystem::remove_all(scratch_ / "stock");
    std::filesystem::create_directory(scratch_ / "stock");
    NodeStoreOptions options = OptionsIn(scratch_ / "stock", Mode::kKubelet);
    options.kubelet_directory = kubelet;
    const auto stock = Must(NodeStore::Open(options));
    for (Content& content : contents_) {
      if (content.on_node.empty() || content.is_public) continue;
      for (std::size_t secret = 0; secret < kSecrets; ++secret) {
        Pod pod(SecretOf(secret));
        const bool open =
            !stock->MustAttemptPull({.image = content.tag, .image_ref = content.id}, pod).pull;
        if (open && !content.proven[""].contains(secret)) {
          Fail("a kubelet with the exported files opens " + content.id + " to secret " +
               std::to_string(secret));
        }
      }
    }
  }

  Draw draw_;
  const Mode rules_;
  MemoryDir scratch_;
  FakeClock clock_;
  std::unique_ptr<NodeStore> store_;
  std::vector<Content> contents_;
  std::vector<RunningPull> running_;
  std::set<std::string> brought_;  // by these names something came without a record
  std::map<std::pair<std::string, std::string>, std::uint64_t> removed_at_;
  std::filesystem::path backup_;
  bool has_handlers_ = false;
  bool names_handlers_ = false;
  std::uint64_t ticks_ = 0;
  std::uint64_t removed_ = 0;
  std::uint64_t opened_ = 0;
  Strings last_;
  std::string said_;
};

void PlayLives(Mode rules, std::uint64_t lives) {
  const std::uint64_t seed = SeedOfThisRun();
  const std::uint64_t steps = NumberFromEnv("WAYBILL_CLOSING_STEPS", 400);
  for (std::uint64_t i = 0; i < lives; ++i) {
    try {
      Life(seed + i, rules).Play(steps);
    } catch (const std::exception& wrong) {
      BOOST_FAIL("WAYBILL_SEED=" << seed << ", life " << i << ": " << wrong.what());
    }
  }
}

}  // namespace

BOOST_AUTO_TEST_CASE(nothing_opens_that_was_not_proven) { PlayLives(Mode::kStrict, 4); }

BOOST_AUTO_TEST_CASE(under_the_kubelets_rules_it_opens_nothing) { PlayLives(Mode::kKubelet, 2); }

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
