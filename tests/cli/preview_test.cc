// `waybill preview`: its answers are those that the pods get when they start; it changes nothing,
// and keeps nothing of a Secret.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/words.h"
#include "tests/support/cli_store.h"
#include "tests/support/draw.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "waybill/waybill.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(preview)

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using Strings = std::vector<std::string>;

std::string Base64(const std::string& bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    unsigned group = 0;
    for (std::size_t j = 0; j < 3; ++j) {
      group = group << 8U;
      if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
    }
    for (std::size_t j = 0; j < 4; ++j) {
      out += i + j <= bytes.size() ? kDigits[(group >> (18 - 6 * j)) & 63U] : '=';
    }
  }
  return out;
}

Json SecretJson(const std::string& namespace_name, const std::string& name, const Json& auths) {
  return {
      {"kind", "Secret"},
      {"metadata",
       {{"namespace", namespace_name}, {"name", name}, {"uid", "uid-" + namespace_name + name}}},
      {"type", "kubernetes.io/dockerconfigjson"},
      {"data", {{".dockerconfigjson", Base64(Json{{"auths", auths}}.dump())}}}};
}

Json ListOf(const std::vector<Json>& items) { return {{"kind", "List"}, {"items", items}}; }

// --- A random node, of which the test knows what a kubelet would hand to the store ---------------

const Strings kRepositories = {"registry.example.com/team/app", "registry.example.com/other/app",
                               "docker.io/library/nginx", "quay.io/org/tool"};
// How pods may spell them.
const std::map<std::string, std::string> kShort = {{"docker.io/library/nginx", "nginx"}};
const Strings kNamespaces = {"a", "b"};

// For which index.docker.io counts, if no other registry does.
const std::string kHubRepository = "docker.io/library/nginx";
const std::string kHub = "https://index.docker.io/v1/";

// Registries of docker configs, and to which repositories each applies.
struct Registry {
  std::string text;
  Strings repositories;
  std::string key = text;  // by which the kubelet sorts them
};
const std::vector<Registry> kRegistries = {
    {"registry.example.com", {"registry.example.com/team/app", "registry.example.com/other/app"}},
    {"https://registry.example.com/v1/",
     {"registry.example.com/team/app", "registry.example.com/other/app"},
     "registry.example.com"},
    {"registry.example.com/team", {"registry.example.com/team/app"}},
    {"*.example.com", {"registry.example.com/team/app", "registry.example.com/other/app"}},
    {"docker.io", {"docker.io/library/nginx"}},
    {kHub, {}},
    {"quay.io/org", {"quay.io/org/tool"}},
    {"quay.io/orgs", {}},
    {"example.com", {}},
};

struct DrawnSecret {
  ImagePullSecret coordinates;
  std::map<std::string, std::string> hashes;  // by repository
  std::map<std::string, std::string> keys;    // likewise, the registry that it is from
  std::string hub_hash;                       // of index.docker.io; empty: it has none
  bool unreadable = false;
};

struct DrawnContainer {
  std::string image;
  std::string repository;  // empty: the image is not valid
  std::string image_ref;   // empty: absent
  PullPolicy pull_policy;
};

struct DrawnPod {
  std::string namespace_name;
  std::vector<const DrawnSecret*> secrets;
  std::vector<DrawnContainer> containers;

  bool unreadable() const {
    return std::any_of(secrets.begin(), secrets.end(), [](const auto* s) { return s->unreadable; });
  }
  std::vector<ImagePullSecret> CredentialsFor(const DrawnContainer& container) const {
    std::vector<const DrawnSecret*> sorted;
    for (const DrawnSecret* secret : secrets) {
      if (secret->hashes.count(container.repository) != 0) sorted.push_back(secret);
    }
    // The most specific first.
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* one, const auto* other) {
      return one->keys.at(container.repository) > other->keys.at(container.repository);
    });
    std::vector<ImagePullSecret> matching;
    for (const DrawnSecret* secret : sorted) {
      matching.push_back(secret->coordinates);
      matching.back().credential_hash = secret->hashes.at(container.repository);
    }
    if (!matching.empty() || container.repository != kHubRepository) return matching;
    for (const DrawnSecret* secret : secrets) {
      if (secret->hub_hash.empty()) continue;
      matching.push_back(secret->coordinates);
      matching.back().credential_hash = secret->hub_hash;
    }
    return matching;
  }
};

struct DrawnImage {
  std::string repository;
  std::string tag;
  std::string id;
  std::string digest;
};

class DrawnNode {
 public:
  explicit DrawnNode(Draw& draw) : draw_(draw) {
    DrawImages();
    DrawSecrets();
    for (int i = 0; i < 8; ++i) DrawPod(i);
    lists_images_ = draw_.OneIn(2);
  }

  bool lists_images() const { return lists_images_; }
  const std::vector<DrawnPod>& pods() const { return pods_; }
  const std::vector<DrawnImage>& images() const { return images_; }
  const std::vector<DrawnSecret>& secrets() const { return secrets_; }
  Json secrets_json() const { return ListOf(secrets_json_); }

  Json PodsJson() const {
    std::vector<Json> items;
    for (std::size_t i = 0; i < pods_.size(); ++i) items.push_back(PodJson(i));
    // Each of these is counted and left out.
    for (const char* left_out : {"elsewhere", "finished", "unbound"}) {
      Json pod = PodJson(0);
      pod["metadata"]["name"] = left_out;
      if (left_out == std::string("elsewhere")) pod["spec"]["nodeName"] = "another";
      if (left_out == std::string("finished")) pod["status"]["phase"] = "Failed";
      if (left_out == std::string("unbound")) pod["spec"].erase("nodeName");
      items.push_back(pod);
    }
    return ListOf(items);
  }
  Json ImagesJson() const {
    Json images = Json::array();
    for (const ListedImage& image : OnNode()) {
      images.push_back(
          {{"id", image.id}, {"repoTags", image.repo_tags}, {"repoDigests", image.repo_digests}});
    }
    return {{"images", images}};
  }
  std::vector<ListedImage> OnNode() const {
    std::vector<ListedImage> list;
    for (const DrawnImage& image : images_) {
      list.push_back({.id = image.id,
                      .repo_tags = {image.repository + ":" + image.tag},
                      .repo_digests = {image.repository + "@" + image.digest}});
    }
    return list;
  }

 private:
  static std::string Hex(std::size_t number) {
    std::ostringstream text;
    text << std::hex << number;
    return std::string(64 - text.str().size(), '0') + text.str();
  }

  void DrawImages() {
    for (std::size_t i = 0; i < 7; ++i) {
      images_.push_back({draw_.From(kRepositories), "v" + std::to_string(i), "sha256:" + Hex(i + 1),
                         "sha256:" + Hex(i + 1000)});
    }
  }

  void DrawSecrets() {
    for (int i = 0; i < 8; ++i) {
      DrawnSecret& secret = secrets_.emplace_back();
      secret.coordinates = {.namespace_name = kNamespaces[static_cast<std::size_t>(i) % 2],
                            .name = "s" + std::to_string(i / 2)};
      Json auths = Json::object();
      for (std::size_t j = 1 + draw_.Below(3); j > 0; --j) {
        const Registry& registry = draw_.From(kRegistries);
        const bool twice = std::any_of(
            registry.repositories.begin(), registry.repositories.end(),
            [&](const std::string& repository) { return secret.hashes.count(repository) != 0; });
        if (twice || auths.contains(registry.text)) continue;
        const std::string password = "password-" + std::to_string(draw_.Below(4));
        auths[registry.text] = {{"username", "u"}, {"password", password}};
        const std::string hash = Must(HashCredentials({.username = "u", .password = password}));
        if (registry.text == kHub) secret.hub_hash = hash;
        for (const std::string& repository : registry.repositories) {
          secret.hashes[repository] = hash;
          secret.keys[repository] = registry.key;
        }
      }
      Json json = SecretJson(secret.coordinates.namespace_name, secret.coordinates.name, auths);
      secret.coordinates.uid = json["metadata"]["uid"];
      if (draw_.OneIn(8)) {
        secret.unreadable = true;
        secret.hashes.clear();
        secret.hub_hash.clear();
        json["data"][".dockerconfigjson"] = Base64("{\"auths\":7}");
      } else if (draw_.OneIn(8)) {
        secret.hashes.clear();
        secret.hub_hash.clear();
        json["type"] = "Opaque";
      }
      secrets_json_.push_back(json);
    }
  }

  DrawnContainer DrawContainer() {
    const PullPolicy policy = draw_.Weighted<PullPolicy>(
        {{4, PullPolicy::kIfNotPresent}, {1, PullPolicy::kAlways}, {1, PullPolicy::kNever}});
    if (draw_.OneIn(12)) return {"Not/Valid:", "", "", policy};
    if (draw_.OneIn(8)) return {"registry.example.com/team/app:gone", kRepositories[0], "", policy};
    const DrawnImage& image = draw_.From(images_);
    std::string name = image.repository;
    if (kShort.count(name) != 0 && draw_.OneIn(2)) name = kShort.at(name);
    name += draw_.OneIn(3) ? "@" + image.digest : ":" + image.tag;
    return {name, image.repository, image.id, policy};
  }

  void DrawPod(int) {
    DrawnPod pod;
    pod.namespace_name = draw_.From(kNamespaces);
    for (const DrawnSecret& secret : secrets_) {
      if (secret.coordinates.namespace_name == pod.namespace_name && draw_.OneIn(2)) {
        pod.secrets.push_back(&secret);
      }
    }
    for (std::size_t i = 1 + draw_.Below(3); i > 0; --i) pod.containers.push_back(DrawContainer());
    pods_.push_back(std::move(pod));
  }

  // The containers in the order of their kinds; each kind has its place in a pod.
  Json PodJson(std::size_t at) const {
    const DrawnPod& pod = pods_[at];
    Json containers = Json::array();
    Json statuses = Json::array();
    for (std::size_t i = 0; i < pod.containers.size(); ++i) {
      const DrawnContainer& container = pod.containers[i];
      const std::string name = "c" + std::to_string(i);
      containers.push_back({{"name", name},
                            {"image", container.image},
                            {"imagePullPolicy", WordOf(container.pull_policy)}});
      if (!lists_images_ && !container.image_ref.empty()) {
        statuses.push_back({{"name", name}, {"imageID", container.image_ref}});
      }
    }
    Json names = Json::array();
    for (const DrawnSecret* secret : pod.secrets) {
      names.push_back({{"name", secret->coordinates.name}});
    }
    names.push_back({{"name", "gone"}});
    return {{"kind", "Pod"},
            {"metadata",
             {{"namespace", pod.namespace_name}, {"name", "p" + std::to_string(at)}, {"uid", "u"}}},
            {"spec",
             {{"nodeName", "node"}, {"imagePullSecrets", names}, {"initContainers", containers}}},
            {"status", {{"phase", "Running"}, {"initContainerStatuses", statuses}}}};
  }

  Draw& draw_;
  bool lists_images_ = false;
  std::vector<DrawnImage> images_;
  std::vector<DrawnSecret> secrets_;
  std::vector<Json> secrets_json_;
  std::vector<DrawnPod> pods_;
};

// A store with a history of pulls of that node's images.
void Live(NodeStore& store, const DrawnNode& node, Draw& draw) {
  for (int i = 0; i < 30; ++i) {
    const DrawnImage& image = draw.From(node.images());
    std::string name = image.repository;
    if (kShort.count(name) != 0 && draw.OneIn(2)) name = kShort.at(name);
    name += ":" + image.tag;
    const ImageCopy copy = {.image = name, .image_ref = image.id};
    if (draw.OneIn(4)) {
      (void)Must(store.RecordPullIntent(copy));
      if (draw.OneIn(2)) Must(store.RecordImagePullFailed(copy));
      continue;
    }
    std::optional<ImagePullCredentials> credentials;
    if (draw.OneIn(25)) {
      credentials = NodeWide();
    } else if (!draw.OneIn(8)) {
      // Rather one that has credentials for it.
      const DrawnSecret* secret = nullptr;
      for (int tries = 0; tries < 6; ++tries) {
        secret = &draw.From(node.secrets());
        if (secret->hashes.count(image.repository) != 0) break;
      }
      ImagePullSecret used = secret->coordinates;
      const auto hash = secret->hashes.find(image.repository);
      used.credential_hash =
          hash == secret->hashes.end() || draw.OneIn(3) ? "an older hash" : hash->second;
      if (draw.OneIn(4)) used.uid = "another";
      credentials = WithSecret(used);
    }
    (void)Must(store.RecordPullIntent(copy));
    Must(store.RecordImagePulled(copy, credentials));
  }
  if (node.lists_images() && draw.OneIn(2)) {
    Must(store.ObserveImages(
        {.images = node.OnNode(), .token = Must(store.BeginList()), .complete = true}));
  }
}

struct Policy {
  std::string name;
  VerificationPolicy policy;
  bool always_pulls;
};
std::vector<Policy> EveryPolicy() {
  return {{"NeverVerify", MakePolicy(Verification::kNeverVerify), false},
          {"NeverVerifyPreloadedImages", {}, false},
          {"NeverVerifyAllowlistedImages",
           MakePolicy(Verification::kNeverVerifyAllowlistedImages,
                      {"registry.example.com/team/*", "nginx"}),
           false},
          {"AlwaysVerify", MakePolicy(Verification::kAlwaysVerify), false},
          {"AlwaysPullImages", {}, true}};
}

// A store that each pod starts on anew: what one start writes back is gone for the next.
class StoreToStartOn {
 public:
  StoreToStartOn(const fs::path& made, Mode rules, VerificationPolicy policy)
      : made_(made), options_{.directory = scratch_ / "store", .witness = Witness::None()} {
    options_.rules = rules;
    options_.policy = std::move(policy);
    options_.continues_pulls = true;
    options_.map_bytes = std::uint64_t{16} << 20U;
    Reset();
  }

  EnsureOutcome Start(const DrawnPod& pod, const DrawnContainer& container, PullPolicy policy) {
    Pod credentials(pod.CredentialsFor(container));
    if (pod.unreadable()) credentials.MakeUnavailable();
    const ImageCopy copy = {.image = container.image, .image_ref = container.image_ref};
    EnsureOutcome outcome = store_->EnsureImage(copy, policy, credentials);
    Must(store_->Flush());
    // A pull with what the pod has, as the preview says it would: afterwards the pod may use it.
    const bool pulls =
        outcome.action == EnsureAction::kPull && !pod.unreadable() && !container.image_ref.empty();
    if (pulls && !store_->GetRecord(copy)) {
      const auto secrets = pod.CredentialsFor(container);
      const PullId pull = Must(store_->RecordPullIntent(copy));
      Must(store_->RecordImagePulled(copy, secrets.empty() ? NodeWide() : WithSecret(secrets[0]),
                                     {.pull = pull}));
      BOOST_TEST((store_->EnsureImage(copy, PullPolicy::kIfNotPresent, credentials).action ==
                  EnsureAction::kUsePresent));
    }
    if (Must(store_->GetStatistics()).commit_sequence != sequence_) Reset();
    return outcome;
  }

 private:
  void Reset() {
    store_.reset();
    fs::remove_all(options_.directory);
    fs::create_directory(options_.directory);
    fs::permissions(options_.directory, fs::perms::owner_all);
    for (const char* name : {"data.mdb", "commit.mark"}) {
      if (fs::exists(made_ / name)) fs::copy_file(made_ / name, options_.directory / name);
    }
    store_ = Must(NodeStore::Open(options_));
    sequence_ = Must(store_->GetStatistics()).commit_sequence;
  }

  fs::path made_;
  TempDir scratch_;
  NodeStoreOptions options_;
  std::unique_ptr<NodeStore> store_;
  std::uint64_t sequence_ = 0;
};

std::string ExpectedAnswer(const EnsureOutcome& outcome, const DrawnPod& pod, bool registry_down) {
  if (outcome.action == EnsureAction::kUsePresent) return "runs";
  const bool can_pull =
      outcome.action == EnsureAction::kPull && !pod.unreadable() && !registry_down;
  return can_pull ? "mustPull" : "cannotStart";
}

// A store with one pod that may use its image, and the files that a preview of it needs.
struct Scene {
  Scene() {
    BOOST_TEST(store.Start().exit_code == 0);
    const Json auths = {{"registry.example.com", {{"username", "u"}, {"password", kPassword}}}};
    WriteFile(store / "secrets.json", ListOf({SecretJson("x", "pull-secret-name", auths)}).dump());
    WriteFile(store / "pods.json", pods().dump());
    WriteFile(store / "images.json",
              R"({"images":[{"id":"ref","repoTags":["registry.example.com/app:v1"]}]})");
    const std::string hash = Must(HashCredentials({.username = "u", .password = kPassword}));
    const CommandResult pulled =
        store.Run("pulled", {"--image", "registry.example.com/app:v1", "--image-ref", "ref",
                             "--secret", "x/other/uid/" + hash});
    BOOST_TEST(pulled.exit_code == 0, pulled.err);
  }
  static Json pods() {
    return ListOf(
        {{{"kind", "Pod"},
          {"metadata", {{"namespace", "x"}, {"name", "p"}, {"uid", "u"}}},
          {"spec",
           {{"nodeName", "node"},
            {"imagePullSecrets", {{{"name", "pull-secret-name"}}}},
            {"containers", {{{"name", "app"}, {"image", "registry.example.com/app:v1"}}}}}}}});
  }
  Strings Flags() const {
    return {"--pods",   store / "pods.json",   "--secrets", store / "secrets.json",
            "--images", store / "images.json", "--policy",  "AlwaysVerify"};
  }
  void Preview(int exit_code = 0) const {
    const CommandResult result = store.Run("preview", Flags());
    BOOST_TEST(result.exit_code == exit_code, result.out << result.err);
    BOOST_TEST(result.out.find("runs") != std::string::npos, result.out);
  }

  static constexpr const char* kPassword = "correct-horse-battery-staple";
  CliStore store;
};

}  // namespace

BOOST_AUTO_TEST_CASE(every_pod_does_what_was_previewed) {
  Draw draw(SeedOfThisRun());
  const Strings needed = {"runs",
                          "mustPull",
                          "cannotStart",
                          "imageAbsent",
                          "secretHashMatches",
                          "noCredentialMatches",
                          "credentialsUnavailable"};
  std::set<std::string> seen;
  const auto seen_all = [&] {
    return std::ranges::all_of(needed, [&](const auto& one) { return seen.contains(one); });
  };
  // More nodes are drawn until each answer was given.
  for (int round = 0; round < 10 || (!seen_all() && round < 500); ++round) {
    const TempDir dir;
    const DrawnNode node(draw);
    const Mode rules = draw.OneIn(3) ? Mode::kKubelet : Mode::kStrict;
    NodeStoreOptions options{.directory = dir / "store", .witness = Witness::At(dir / "witness")};
    options.rules = rules;
    options.map_bytes = std::uint64_t{16} << 20U;
    if (draw.OneIn(2)) options.images_on_node = node.OnNode();
    auto store = Must(NodeStore::Open(options));
    Live(*store, node, draw);
    Must(store->Close());
    store.reset();

    WriteFile(dir / "pods.json", node.PodsJson().dump());
    WriteFile(dir / "secrets.json", node.secrets_json().dump());
    WriteFile(dir / "images.json", node.ImagesJson().dump());
    const bool registry_down = draw.OneIn(3);
    Strings command = {"preview",
                       "-o",
                       "json",
                       "--store",
                       dir / "store",
                       "--pods",
                       dir / "pods.json",
                       "--secrets",
                       dir / "secrets.json",
                       "--node",
                       "node",
                       "--allow",
                       "registry.example.com/team/*",
                       "--allow",
                       "nginx",
                       "--rules",
                       std::string(WordOf(rules))};
    const std::vector<Policy> policies = EveryPolicy();
    for (const Policy& policy : policies) command.insert(command.end(), {"--policy", policy.name});
    if (registry_down) command.emplace_back("--registry-down");
    if (node.lists_images()) command.insert(command.end(), {"--images", dir / "images.json"});
    const CommandResult said = RunWaybill(command);
    const Json answer = Json::parse(said.out);
    BOOST_TEST_REQUIRE(answer.contains("pods"), said.out);
    BOOST_TEST_REQUIRE(answer["pods"].size() == node.pods().size());
    BOOST_TEST(answer["leftOut"].dump() == R"({"finished":1,"otherNodes":1,"unbound":1})");

    bool some_cannot_start = false;
    for (std::size_t at = 0; at < policies.size(); ++at) {
      const Policy& policy = policies[at];
      StoreToStartOn real(dir / "store", rules, policy.policy);
      for (std::size_t i = 0; i < node.pods().size(); ++i) {
        const DrawnPod& pod = node.pods()[i];
        for (std::size_t j = 0; j < pod.containers.size(); ++j) {
          const DrawnContainer& container = pod.containers[j];
          const EnsureOutcome outcome = real.Start(
              pod, container, policy.always_pulls ? PullPolicy::kAlways : container.pull_policy);
          const Json& previewed = answer["pods"][i]["containers"][j];
          const Json& forecast = previewed["forecasts"][at];
          const std::string expected = ExpectedAnswer(outcome, pod, registry_down);
          seen.insert(expected);
          some_cannot_start = some_cannot_start || expected == "cannotStart";
          BOOST_TEST_CONTEXT("round " << round << ", " << policy.name << ", pod " << i << ": "
                                      << previewed.dump()) {
            BOOST_TEST(forecast["answer"] == expected);
            BOOST_TEST(forecast["action"] == WordOf(outcome.action));
            if (outcome.decision) {
              BOOST_TEST(forecast["reason"] == ReasonName(outcome.decision->reason));
              seen.emplace(ReasonName(outcome.decision->reason));
            }
            BOOST_TEST(previewed["pullSecrets"].size() == pod.CredentialsFor(container).size());
          }
        }
      }
    }
    BOOST_TEST(said.exit_code == (some_cannot_start ? 1 : 0));
  }
  for (const std::string& one : needed) BOOST_TEST(seen.contains(one), "never: " << one);
}

// But for the slot of a reader, where there is a lock.mdb.
BOOST_FIXTURE_TEST_CASE(nothing_is_changed, Scene) {
  const fs::path lock = store / "store/lock.mdb";
  const auto expect_unchanged = [&] {
    auto before = EverythingIn(store / "store");
    const auto witness = ReadFile(store / "witness");
    Preview();
    auto after = EverythingIn(store / "store");
    BOOST_TEST(before.erase("lock.mdb") == after.erase("lock.mdb"));
    BOOST_TEST((after == before));
    BOOST_TEST(ReadFile(store / "witness") == witness);
  };
  const auto open = [&] {
    return Must(NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()}));
  };
  const auto owner = open();
  expect_unchanged();
  Must(owner->Close());
  expect_unchanged();
  fs::remove(lock);
  expect_unchanged();
  // An owner is not kept out afterwards.
  Must(open()->Close());
}

// Whether the memory of a process holds `needle`. False, too, if it can't be read.
bool InMemory(pid_t pid, const std::string& needle) {
  std::ifstream maps("/proc/" + std::to_string(pid) + "/maps");
  const int memory = open(("/proc/" + std::to_string(pid) + "/mem").c_str(), O_RDONLY);
  bool found = false;
  for (std::string line; std::getline(maps, line) && !found;) {
    unsigned long first = 0;
    unsigned long last = 0;
    char writable = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx r%c", &first, &last, &writable) != 3) continue;
    if (writable != 'w') continue;
    std::string bytes(last - first, '\0');
    const ssize_t got = pread(memory, bytes.data(), bytes.size(), static_cast<off_t>(first));
    if (got > 0)
      found = bytes.substr(0, static_cast<std::size_t>(got)).find(needle) != std::string::npos;
  }
  close(memory);
  return found;
}

BOOST_FIXTURE_TEST_CASE(nothing_of_a_secret_stays_in_memory, Scene) {
  const fs::path fifo = store / "fifo";
  BOOST_TEST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  // Many Secrets, so that buffers grow while they are read.
  std::vector<Json> secrets;
  for (int i = 0; i < 300; ++i) {
    const Json auths = {{"registry.example.com",
                         {{"username", "u"},
                          {"password", kPassword},
                          {"auth", Base64("user:5taple-battery-horse")}}},
                        {"other.example.com", {{"username", "u"}, {"password", kPassword}}}};
    secrets.push_back(SecretJson("x", "pull-secret-name" + std::to_string(i), auths));
  }
  WriteFile(store / "secrets.json", ListOf(secrets).dump(4));
  Strings command = {WAYBILL_CLI, "preview",     "--store",   store.store(),
                     "--pods",    fifo.string(), "--secrets", (store / "secrets.json").string()};
  RunningCommand running(command);
  // Returns once the other side reads pods: it has read the Secrets then.
  const int pods = open(fifo.c_str(), O_WRONLY);
  const std::string payload = secrets[0]["data"][".dockerconfigjson"];
  // What stays is found, so that the search works.
  BOOST_TEST_REQUIRE(InMemory(running.pid(), "pull-secret-name299"));
  for (const std::string& piece :
       {std::string(kPassword), payload.substr(40, 24), Base64("user:5taple-battery-horse"),
        std::string("5taple-battery-horse")}) {
    BOOST_TEST(!InMemory(running.pid(), piece), piece);
  }
  const std::string none = R"({"items":[]})";
  BOOST_TEST(write(pods, none.data(), none.size()) == static_cast<ssize_t>(none.size()));
  close(pods);
  BOOST_TEST(running.Wait().exit_code == 0);
}

// With 1 GiB of address space: a list that is too long is refused before it is read whole.
BOOST_FIXTURE_TEST_CASE(long_lists_take_bounded_memory, Scene) {
  const std::string list = store / "long.json";
  const auto run = [&](const std::string& flag) {
    const std::string other = flag == "--pods" ? "--secrets" : "--pods";
    const std::string file = (store / (other == "--pods" ? "pods.json" : "secrets.json")).string();
    return RunCommand({"/bin/bash", "-c",
                       R"(ulimit -v 1048576; exec "$0" preview --store "$1" "$2" "$3" "$4" "$5")",
                       WAYBILL_CLI, store.store(), flag, list, other, file});
  };
  WriteFile(list, R"({"items":[)");
  fs::resize_file(list, std::uintmax_t{200} << 20U);
  for (const char* flag : {"--pods", "--secrets"}) {
    const CommandResult result = run(flag);
    BOOST_TEST(result.exit_code == 2, result.exit_code);
    BOOST_TEST(result.err.find("has more than 67108864 bytes") != std::string::npos, result.err);
    BOOST_TEST(result.err.find("--field-selector") != std::string::npos, result.err);
  }
  // As long as may be, of values as short as may be.
  std::string values = R"({"items":[0)";
  while (values.size() < (std::size_t{60} << 20U)) values += ",0";
  WriteFile(list, values);
  const CommandResult result = run("--pods");
  BOOST_TEST(result.exit_code == 2, result.exit_code << result.err);
  BOOST_TEST(result.err.find("has more than") != std::string::npos, result.err);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
