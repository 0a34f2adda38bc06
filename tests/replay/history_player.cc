// histories/*.jsonl: what happens to a node, and what the store answers, under both sets of rules.
//
//   let     let: names for values; where a value is to stand, "$name" may stand
//   case    case, why, rules (absent: both): from here on another node, with an empty store
//   open    policy, allow, preloadedOnly, pool, userNamespaces (they last), onNode (null: unknown),
//           gap ("yes", "no"; absent: detect): a start. What ran before ends. Answer: the report.
//           A case that begins without one is opened with the defaults.
//   check, ensure   image, imageRef, handler, secrets, serviceAccount, credentialsUnavailable
//   intent, pulled, failed, putRecord, …   the calls of NodeStore
//   pull    an intent and a `pulled`
//   commits how many there were since the last such line
//   file    folder, key, content: what a kubelet left, for the next open to import
//   podFile pod, and block, blocks or content: likewise, a pod's userns file
//   write   path, content (null: removed): a file, or with a slash at its end a directory
//   close, advance (seconds: the clock)
//   userns, adopt, cleanUp, …   userns_calls.h
//
// What an empty list would delete is deleted, unless allowEmpty is false. dryRun: nothing is.
//
// Each has an `answer`: as_json.h says how it is written. Where the closed rules answer
// differently, theirs is `closed`. Without an answer a call must succeed. Of errors the code is
// compared, and that the message contains what is given.

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/replay/fields.h"
#include "tests/replay/player.h"
#include "tests/replay/userns_calls.h"
#include "tests/support/as_json.h"
#include "tests/support/fake_clock.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/pod.h"
#include "waybill/kubelet_format.h"
#include "waybill/maintenance.h"
#include "waybill/node_store.h"

namespace waybill::replay {

namespace {

using nlohmann::json;
using testing::AsJson;

std::string StringOf(const json& line, const char* field) {
  return line.contains(field) ? RequireString(line, field) : "";
}

template <typename T>
T Valid(Result<T> result) {
  if (!result) throw MalformedLine(result.error().ToString());
  return std::move(*result);
}

std::optional<Platform> PlatformOf(const json& object, const char* field) {
  if (!object.contains(field)) return std::nullopt;
  const json& value = object[field];
  RequireOnly(value, {"architecture", "os", "osVersion"});
  return Platform{.architecture = StringOf(value, "architecture"),
                  .os = StringOf(value, "os"),
                  .os_version = StringOf(value, "osVersion")};
}

// One node under one set of rules.
class Node {
 public:
  explicit Node(Rules rules) : rules_(rules) {}

  // Scratch directories are "DIR" in the answer.
  json Do(const std::string& op, const json& line) {
    json answer = Answer(op, line);
    const std::string directory = scratch_.path().string();
    std::string text = Text(answer);
    if (text.find(directory) == std::string::npos) return answer;
    for (std::size_t at; (at = text.find(directory)) != std::string::npos;) {
      text.replace(at, directory.size(), "DIR");
    }
    return json::parse(text);
  }

 private:
  json Answer(const std::string& op, const json& line) {
    if (op == "file") {
      testing::WriteRecordFile(scratch_ / "kubelet", RequireString(line, "folder"),
                               RequireString(line, "key"), RequireString(line, "content"));
      return "done";
    }
    if (op == "podFile") {
      const std::filesystem::path pod = scratch_ / "kubelet/pods" / RequireString(line, "pod");
      std::filesystem::create_directories(pod);
      testing::WriteFile(pod / "userns",
                         line.contains("content")
                             ? RequireString(line, "content")
                             : UsernsFileOf(line.at("block"), line.value("blocks", 1)));
      return "done";
    }
    if (op == "write") {
      const std::filesystem::path path = scratch_ / RequireString(line, "path");
      std::filesystem::remove_all(path);
      std::filesystem::create_directories(path.parent_path());
      const auto content = RequireStringOrNull(line, "content");
      if (content && path.has_filename()) testing::WriteFile(path, *content);
      return "done";
    }
    if (op == "close") {
      Close();
      return "done";
    }
    if (op == "advance") {
      clock_.AdvanceSeconds(line.at("seconds").get<std::int64_t>());
      return "done";
    }
    if (op == "open") return Open(line);
    if (!store_) {
      const json answer = Open({{"onNode", json::array()}});
      if (!store_) throw std::runtime_error("the store does not open: " + answer.dump());
    }
    options_ = {.allow_empty = !line.contains("allowEmpty") || FlagOf(line, "allowEmpty"),
                .dry_run = FlagOf(line, "dryRun")};
    if (auto answer = CallUserNamespaces(*store_, op, line, token_, options_)) return *answer;
    const std::string image = StringOf(line, "image");
    const std::string ref = StringOf(line, "imageRef");
    const std::string handler = StringOf(line, "handler");
    if (op == "check" || op == "ensure") return Ask(op, line, image, ref, handler);
    if (op == "intent") {
      return AsJson(store_->RecordPullIntent({.image = image, .runtime_handler = handler}));
    }
    if (op == "pulled" || op == "pull") return Pulled(op, line, image, ref, handler);
    if (op == "failed") {
      const auto how = FlagOf(line, "unknown") ? PullFailure::kUnknown : PullFailure::kFailed;
      return AsJson(
          store_->RecordImagePullFailed({.image = image, .runtime_handler = handler}, how));
    }
    if (op == "record") {
      return AsJson(store_->GetRecord({.image_ref = ref, .runtime_handler = handler}));
    }
    if (op == "records") return AsJson(store_->ListRecords());
    if (op == "putRecord") return AsJson(store_->PutRecord(RecordOf(line, ref, handler)));
    if (op == "deleteRecord") {
      return AsJson(store_->DeleteRecord({.image_ref = ref, .runtime_handler = handler}));
    }
    if (op == "hasIntent") {
      return AsJson(store_->HasIntent({.image = image, .runtime_handler = handler}));
    }
    if (op == "intents") return AsJson(store_->ListIntents());
    if (op == "putIntent") {
      return AsJson(store_->PutIntent({.image = image, .runtime_handler = handler}));
    }
    if (op == "deleteIntent") {
      return AsJson(store_->DeleteIntent({.image = image, .runtime_handler = handler}));
    }
    if (op == "beginPrune") {
      token_ = Valid(store_->BeginPrune());
      return "done";
    }
    if (op == "prune") return Prune(line);
    if (op == "handlers") return AsJson(store_->ListRuntimeHandlers());
    if (op == "replaceHandlers")
      return AsJson(store_->ReplaceRuntimeHandlers(HandlersOf(line), options_));
    if (op == "collapse") return AsJson(store_->CollapseRuntimeHandlers(options_));
    if (op == "trust") return AsJson(store_->GetTrust());
    if (op == "clearDistrust") return AsJson(store_->ClearDistrust(RequireString(line, "reason")));
    if (op == "export") return Export(line);
    if (op == "metrics") return AsJson(store_->GetMetrics());
    if (op == "statistics") return AsJson(store_->GetStatistics());
    if (op == "commits") {
      const std::uint64_t before = std::exchange(commits_, Commits());
      return commits_ - before;
    }
    if (op == "quarantine") return AsJson(store_->ListQuarantine());
    if (op == "verify") return Valid(store_->Verify()).sound;
    throw MalformedLine("op \"" + op + "\" is not known");
  }

  void Close() {
    if (store_) Valid<bool>(Closed(store_->Close()));
    store_.reset();
  }
  json Open(const json& line) {
    Close();
    OpenOptions options{.directory = scratch_ / "store",
                        .witness = Witness::At(scratch_ / "witness")};
    options.rules = rules_;
    if (line.contains("policy")) {
      const auto scope = FlagOf(line, "preloadedOnly") ? AllowlistScope::kPreloadedOnly
                                                       : AllowlistScope::kAnyImage;
      policy_ = Valid(
          VerificationPolicy::Make(Valid(ParseVerificationMode(RequireString(line, "policy"))),
                                   StringsOf(line, "allow"), scope));
    }
    options.policy = policy_;
    if (!line.contains("onNode") || !line["onNode"].is_null()) {
      options.images_on_node = ImagesOf(line, "onNode");
    }
    if (std::filesystem::exists(scratch_ / "kubelet")) {
      options.kubelet_directory = scratch_ / "kubelet";
    }
    if (line.contains("pool")) user_namespaces_.pool = PoolOf(line["pool"]);
    if (line.contains("userNamespaces")) {
      user_namespaces_.enabled = FlagOf(line, "userNamespaces");
    }
    options.user_namespaces = user_namespaces_;
    const std::string gap = StringOf(line, "gap");
    options.gap = gap == "yes" ? Gap::kYes : gap == "no" ? Gap::kNo : Gap::kDetect;
    options.allow_empty = !line.contains("allowEmpty") || FlagOf(line, "allowEmpty");
    options.clock = clock_.AsClock();
    options.map_bytes = std::uint64_t{64} << 20U;
    Result<std::unique_ptr<NodeStore>> opened = NodeStore::Open(std::move(options));
    if (!opened) return AsJson(opened.error());
    store_ = std::move(*opened);
    return AsJson(store_->recovery_report());
  }
  std::uint64_t Commits() const { return Valid(store_->GetStatistics()).commit_sequence; }
  static Result<bool> Closed(const Result<void>& closed) {
    if (!closed) return closed.error();
    return true;
  }

  json Ask(const std::string& op, const json& line, const std::string& image,
           const std::string& ref, const std::string& handler) {
    std::optional<ImagePullServiceAccount> account;
    if (line.contains("serviceAccount")) account = ServiceAccountOf(line["serviceAccount"]);
    testing::Pod pod(SecretsOf(line, "secrets"), std::move(account));
    if (FlagOf(line, "credentialsUnavailable")) pod.MakeUnavailable();
    json answer;
    if (op == "check") {
      const Decision decision = store_->MustAttemptPull(
          {.image = image, .image_ref = ref, .runtime_handler = handler}, pod);
      answer = testing::Words(decision, pod.asked());
    } else {
      const PullPolicy policy = Valid(ParsePullPolicy(RequireString(line, "policy")));
      const EnsureOutcome outcome = store_->EnsureImage(
          {.image = image, .image_ref = ref, .runtime_handler = handler}, policy, pod);
      answer = {{"action", EnsureActionName(outcome.action)}, {"message", outcome.message}};
      answer["decision"] =
          outcome.decision ? testing::Words(*outcome.decision, pod.asked()) : "none";
    }
    Valid<bool>(Closed(store_->Flush()));
    return answer;
  }

  json Pulled(const std::string& op, const json& line, const std::string& image,
              const std::string& ref, const std::string& handler) {
    if (op == "pull") {
      const Result<void> begun =
          store_->RecordPullIntent({.image = image, .runtime_handler = handler});
      if (!begun) return AsJson(begun);
    }
    std::optional<ImagePullCredentials> credentials;
    if (line.contains("credentials")) credentials = CredentialsOf(line["credentials"]);
    std::optional<PulledManifest> manifest;
    if (line.contains("manifest")) {
      manifest = PulledManifest{RequireString(line, "manifest"),
                                PlatformOf(line, "platform").value_or(Platform{})};
    }
    return AsJson(store_->RecordImagePulled(
        {.image = image, .image_ref = ref, .runtime_handler = handler}, credentials, manifest));
  }

  static ImagePulledRecord RecordOf(const json& line, const std::string& ref,
                                    const std::string& handler) {
    ImagePulledRecord record;
    record.image_ref = ref;
    record.runtime_handler = handler;
    if (line.contains("lastUpdated")) record.last_updated = RequireTime(line, "lastUpdated");
    if (line.contains("credentialMapping")) {
      for (const auto& [name, entry] : line["credentialMapping"].items()) {
        record.credential_mapping[name] = CredentialsOf(entry);
      }
    }
    return record;
  }

  json Prune(const json& line) {
    std::vector<ListedImage> images;
    for (const json& listed : ArrayOf(line, "inUse")) {
      if (listed.is_string()) {
        images.emplace_back(listed.get<std::string>());
      } else {
        images.emplace_back(RequireString(listed, "imageRef"), RequireString(listed, "handler"));
      }
    }
    if (line.contains("until")) {
      return AsJson(store_->PruneBefore(images, RequireTime(line, "until"), options_));
    }
    return AsJson(store_->Prune(images, token_, options_));
  }

  json Export(const json& line) {
    ExportOptions options{.kubelet_directory = scratch_ / "kubelet"};
    if (StringOf(line, "apiVersion") == "v1alpha1") {
      options.api_version = KubeletApiVersion::kV1Alpha1;
    }
    options.allow_empty = options_.allow_empty;
    if (line.contains("onNode")) options.images_on_node = ImagesOf(line, "onNode");
    std::filesystem::create_directories(options.kubelet_directory);
    const auto exported = store_->Export(options);
    if (!exported) return AsJson(exported.error());
    return {{"records", exported->records},
            {"intents", exported->intents},
            {"made", exported->made},
            {"closed", exported->closed}};
  }

  static std::vector<RuntimeHandler> HandlersOf(const json& line) {
    std::vector<RuntimeHandler> handlers;
    for (const json& value : ArrayOf(line, "handlers")) {
      RequireOnly(value, {"name", "default", "userNamespaces", "guestPlatform"});
      handlers.push_back({StringOf(value, "name"), FlagOf(value, "default"),
                          FlagOf(value, "userNamespaces"), PlatformOf(value, "guestPlatform")});
    }
    return handlers;
  }

  testing::MemoryDir scratch_;
  testing::FakeClock clock_;
  Rules rules_;
  VerificationPolicy policy_;
  UserNamespaceOptions user_namespaces_;
  ChangeOptions options_;
  PruneToken token_;
  std::uint64_t commits_ = 0;
  std::unique_ptr<NodeStore> store_;
};

bool IsError(const json& answer) {
  return answer.is_object() && answer.contains("message") && answer.contains("error");
}

// An error's message need only contain what is expected of it.
bool Matches(json expected, const json& got) {
  if (!IsError(got) || !expected.is_object()) return expected == got;
  return expected["error"] == got["error"] &&
         got["message"].get<std::string>().find(StringOf(expected, "message")) != std::string::npos;
}

class HistoryPlayer final : public Player {
 public:
  void Play(const json& written, Log& log) override {
    if (written.contains("let")) {
      for (const auto& [name, value] : written["let"].items()) let_["$" + name] = Meant(value);
      return;
    }
    const json line = Meant(written);
    const std::string op = RequireString(line, "op");
    if (op == "case") return Begin(line);
    if (nodes_.empty()) throw MalformedLine("\"" + op + "\" before the first \"case\"");
    RequireOnly(line, {"op",          "answer",         "closed",
                       "policy",      "allow",          "preloadedOnly",
                       "onNode",      "image",          "imageRef",
                       "handler",     "secrets",        "serviceAccount",
                       "credentials", "manifest",       "credentialsUnavailable",
                       "platform",    "unknown",        "lastUpdated",
                       "inUse",       "until",          "credentialMapping",
                       "handlers",    "folder",         "key",
                       "content",     "seconds",        "gap",
                       "pool",        "userNamespaces", "allowEmpty",
                       "dryRun",      "path",           "pod",
                       "block",       "blocks",         "hostId",
                       "length",      "hostUsers",      "existing",
                       "running",     "apiVersion",     "reason"});
    for (auto& [rules, node] : nodes_) {
      const json got = node->Do(op, line);
      const bool differs = rules == Rules::kClosed && line.contains("closed");
      const char* field = differs ? "closed" : "answer";
      if (line.contains(field) ? Matches(line[field], got) : !IsError(got)) {
        log.Same();
      } else {
        log.Different(case_ + ", " + std::string(RulesName(rules)) + " rules: " + op +
                      "\n  expected  " + (line.contains(field) ? Text(line[field]) : "success") +
                      "\n  got       " + Text(got));
      }
    }
  }

 private:
  void Begin(const json& line) {
    RequireOnly(line, {"op", "case", "rules", "why"});
    case_ = RequireString(line, "case");
    nodes_.clear();
    const std::string rules = StringOf(line, "rules");
    for (const Rules each : {Rules::kKubelet, Rules::kClosed}) {
      if (!rules.empty() && rules != RulesName(each)) continue;
      nodes_.emplace_back(each, std::make_unique<Node>(each));
    }
    if (nodes_.empty()) throw MalformedLine("rules \"" + rules + "\" are not known");
  }

  // With the values that the names stand for.
  json Meant(const json& value) const {
    if (value.is_string()) {
      const auto let = let_.find(value.get<std::string>());
      return let == let_.end() ? value : let->second;
    }
    json meant = value;
    if (value.is_structured()) {
      for (json& part : meant) part = Meant(part);
    }
    return meant;
  }

  std::map<std::string, json> let_;
  std::string case_;
  std::vector<std::pair<Rules, std::unique_ptr<Node>>> nodes_;
};

}  // namespace

std::unique_ptr<Player> MakeHistoryPlayer() { return std::make_unique<HistoryPlayer>(); }

}  // namespace waybill::replay
