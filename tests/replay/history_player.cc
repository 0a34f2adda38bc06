// histories/*.jsonl: what happens to a node, and what the store answers, under both sets of rules.
//
//   let     let: names for values; where a value is to stand, "$name" may stand
//   case    case, why, rules (absent: both): from here on another node, with an empty store; rows:
//           a node for each, with the names that it gives values, beside those of `let`; limit:
//           the first words of the line of docs/limits.md that it plays
//   open    a start; what ran before ends. Answer: the report. Fields that last: policy, allow,
//           preloadedOnly, registryProves (patterns of names of which only a registry's proof
//           counts); pool, userNamespaces; shortNames, grace, window, remember (seconds; absent:
//           0); rules, in cases of one set of rules. And: onNode (null: unknown), preloaded,
//           continuesPulls, gap ("yes", "no"; absent: detect), firstStart ("close"), maxAge
//           (seconds), mapBytes. A case that begins without
//           one is opened with the defaults and an empty onNode.
//   check, ensure   image, imageRef, handler, secrets, serviceAccount, credentialsUnavailable;
//           of a check, imageRefs in place of imageRef: one answer for all, or a list
//   look    image, imageRef: a decision that has no credentials yet; the next check with `late`
//           goes on with it
//   intent  image, handler, as: a name for the pull's ID
//   pulled, failed   pull: such a name, or a number; entry: what the runtime lists for the image;
//           goodFor: in how many seconds what it proves ends; checker: who checked it;
//           nodeHadNone: the node had no credential for that registry; how: "failed" (absent),
//           "unknown", "nothingTransferred"
//   pull    an intent and a `pulled`
//   cancel  image, handler: an intent, and a pull of which nobody knows how it ended
//   manyPulls       count, how: pulls of as many images that end so
//   putRecord, deleteIntent, …      the calls of NodeStore
//   beginList       as: a name for the token; ahead: by how many commits it is made too new
//   observe images, many (as many further ones), complete (absent: true), source; token: the name
//           of one, null for none; absent: drawn now; quietAgo: no pull ran so many seconds ago,
//           and namesToCome are still to be listed
//   prune   inUse, until; or token, absent: the one drawn last
//   addToLedger     entry, source, reason
//   removeFromLedger  imageRef, handler, reason
//   forget  namespace, name or serviceAccount, uid; hash; or imageRef, handler
//   reconcile       secrets and serviceAccounts that exist, each with uid, namespace, name; token,
//                   absent: drawn now
//   revocations     how many there are
//   noteGap reason
//   kubeletBegan    ago: seconds; absent: 0
//   mostRemembered  count: how many gone images are remembered, in this case
//   settle  imageRef, handler, reason, how: "preloaded" or "closed"
//   openPulls, ledger, dropPull (pull, reason), explain (image, imageRef, handler, names)
//   clearDistrust   reason, onNode, adopt
//   commits how many there were since the last such line
//   file    folder, key, content: what a kubelet left, for the next open to import
//   podFile pod, and block, blocks or content: likewise, a pod's userns file
//   write   path, content (null: removed): a file, or with a slash at its end a directory
//   close; advance (seconds pass); jump (seconds: the wall clock alone is moved); reboot (bootId:
//           false if it can't be read from then on)
//   backup  makes one
//   migrate (to), restore (schema: of the backup, the newest): no process runs; losses are accepted
//   userns, adopt, cleanUp, …   userns_calls.h
//
// What an empty list would delete is deleted, unless allowEmpty is false. dryRun: nothing is.
//
// Each has an `answer`: as_json.h says how it is written. Where the closed rules answer
// differently, theirs is `strict`. Without an answer a call must succeed. Of errors the code is
// compared, and that the message contains what is given; so are sentences elsewhere (kSentences),
// where the answer has them. "" means that there is none. A line may be a name alone, whose value
// is the line, or a list of lines.

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/words.h"
#include "store/images/retire.h"
#include "store/maintenance.h"
#include "tests/replay/fields.h"
#include "tests/replay/player.h"
#include "tests/replay/userns_calls.h"
#include "tests/support/as_json.h"
#include "tests/support/fake_clock.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::replay {

namespace {

using nlohmann::json;
using testing::AsJson;
using testing::PullResult;
using testing::Settled;

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

PullOutcome FailureOf(const json& line) {
  const std::string how = StringOf(line, "how");
  if (how.empty() || how == "failed") return PullOutcome::kFailed;
  if (how == "unknown") return PullOutcome::kUnknown;
  if (how == "nothingTransferred") return PullOutcome::kNothing;
  throw MalformedLine("\"" + how + "\" is no way in which a pull ends");
}

VerifiedBy CheckerOf(const json& line) {
  const std::string checker = StringOf(line, "checker");
  return checker.empty() ? VerifiedBy::kUnknown
                         : Valid(FromWord<VerifiedBy>(checker, "checker of a proof"));
}

ProofTerms TermsOf(const json& line) {
  return {.checker = CheckerOf(line), .node_had_no_credentials = line.value("nodeHadNone", false)};
}

// One node under one set of rules.
class Node {
 public:
  explicit Node(Mode rules) : rules_(rules) { internal::SetMostRememberedForTests(kMaxRemembered); }

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
    if (op == "advance" || op == "jump") {
      const auto seconds = line.at("seconds").get<std::int64_t>();
      op == "jump" ? clock_.JumpSeconds(seconds) : clock_.AdvanceSeconds(seconds);
      return "done";
    }
    if (op == "reboot") {
      Close();
      clock_.Reboot();
      if (line.contains("bootId") && !FlagOf(line, "bootId")) clock_.ForgetBootId();
      return "done";
    }
    if (op == "migrate") return MigrateTo(line);
    if (op == "restore") return PutBack(line);
    if (op == "open") return Open(line);
    if (!store_) {
      const json answer = Open({{"onNode", json::array()}});
      if (!store_) throw std::runtime_error("the store does not open: " + answer.dump());
    }
    options_ = {.allow_empty = !line.contains("allowEmpty") || FlagOf(line, "allowEmpty"),
                .dry_run = FlagOf(line, "dryRun")};
    const ListToken last = tokens_[""];
    if (auto answer = CallUserNamespaces(*store_, op, line, last, options_)) return *answer;
    const std::string image = StringOf(line, "image");
    const std::string ref = StringOf(line, "imageRef");
    const std::string handler = StringOf(line, "handler");
    if (op == "check" && line.contains("imageRefs")) return AskAll(line, image, handler);
    if (op == "check" || op == "ensure") return Ask(op, line, image, ref, handler);
    if (op == "look") {
      look_ = std::make_unique<DeferredCredentials>();
      return testing::Words(
          store_->MustAttemptPull({.image = image, .image_ref = ref, .runtime_handler = handler},
                                  *look_),
          0);
    }
    if (op == "intent") {
      const auto begun = store_->RecordPullIntent({.image = image, .runtime_handler = handler});
      if (!begun) return AsJson(begun.error());
      if (line.contains("as")) pulls_[RequireString(line, "as")] = *begun;
      return "done";
    }
    if (op == "pulled" || op == "pull") return Pulled(op, line, image, ref, handler);
    if (op == "failed") {
      return AsJson(store_->RecordImagePullFailed({.image = image, .runtime_handler = handler},
                                                  FailureOf(line), PullOf(line)));
    }
    if (op == "cancel") {
      const ImageCopy copy{.image = image, .runtime_handler = handler};
      const auto begun = store_->RecordPullIntent(copy);
      if (!begun) return AsJson(begun.error());
      return AsJson(store_->RecordImagePullFailed(copy, PullOutcome::kUnknown, *begun));
    }
    if (op == "manyPulls") return ManyPulls(line);
    if (op == "record") {
      return AsJson(store_->GetRecord({.image_ref = ref, .runtime_handler = handler}));
    }
    if (op == "records") {
      json records = AsJson(store_->ListRecords());
      if (!records.is_array()) return records;
      std::sort(records.begin(), records.end(), [](const json& a, const json& b) {
        return std::pair(a["imageRef"], a.value("handler", "")) <
               std::pair(b["imageRef"], b.value("handler", ""));
      });
      return records;
    }
    if (op == "putRecord") {
      return AsJson(store_->PutRecord(RecordOf(line, ref, handler), TermsOf(line)));
    }
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
    if (op == "beginList") {
      ListToken token = Valid(store_->BeginList());
      if (line.contains("ahead")) token.commit += line["ahead"].get<std::uint64_t>();
      tokens_[""] = tokens_[StringOf(line, "as")] = token;
      return "done";
    }
    if (op == "observe") return Observe(line);
    if (op == "prune") return Prune(line);
    if (op == "openPulls") return OpenPulls();
    if (op == "dropPull") {
      return AsJson(store_->DropOpenPull(PullOf(line), StringOf(line, "reason"), options_));
    }
    if (op == "ledger") return AsJson(store_->ListLedger());
    if (op == "addToLedger") {
      return AsJson(store_->AddToLedger(ImageOf(line.at("entry")), StringOf(line, "source"),
                                        StringOf(line, "reason"), options_));
    }
    if (op == "removeFromLedger") {
      return AsJson(store_->RemoveFromLedger({.image_ref = ref, .runtime_handler = handler},
                                             StringOf(line, "reason"), options_));
    }
    if (op == "forget") return Forget(line, ref, handler);
    if (op == "reconcile") {
      const auto done = store_->Reconcile(
          {.secrets = NamesOf(line, "secrets"),
           .service_accounts = NamesOf(line, "serviceAccounts")},
          line.contains("token") ? TokenOf(line) : Valid(store_->BeginList()), options_);
      if (!done) return AsJson(done.error());
      json answer = AsJson(done->forgotten);
      answer["known"] = done->known;
      answer["gone"] = done->gone;
      return answer;
    }
    if (op == "revocations") return Valid(store_->ListRevocations()).size();
    if (op == "noteGap") return AsJson(store_->NoteGap(StringOf(line, "reason")));
    if (op == "kubeletBegan") {
      BootTime began = clock_.Boot();
      began.nanoseconds -= line.value("ago", std::int64_t{0}) * 1'000'000'000;
      return AsJson(store_->NoteKubeletBegan(began));
    }
    if (op == "mostRemembered") {
      internal::SetMostRememberedForTests(line.at("count").get<std::size_t>());
      return "done";
    }
    if (op == "backup") {
      Valid(store_->MakeBackup());
      return "done";
    }
    if (op == "settle") {
      const bool closes = RequireString(line, "how") == "closed";
      return AsJson(store_->SettlePresumed({.image_ref = ref, .runtime_handler = handler},
                                           closes ? Settled::kClosed : Settled::kPreloaded,
                                           StringOf(line, "reason"), options_));
    }
    if (op == "explain") {
      return AsJson(store_->Explain({.image = image, .image_ref = ref, .runtime_handler = handler},
                                    StringsOf(line, "names")));
    }
    if (op == "handlers") return AsJson(store_->ListRuntimeHandlers());
    if (op == "replaceHandlers")
      return AsJson(store_->ReplaceRuntimeHandlers(HandlersOf(line), options_));
    if (op == "collapse") return AsJson(store_->CollapseRuntimeHandlers(options_));
    if (op == "trust") return AsJson(store_->GetTrust());
    if (op == "clearDistrust") {
      AcceptLoss clear{.allow_all = FlagOf(line, "adopt"),
                       .allow_empty = options_.allow_empty,
                       .dry_run = options_.dry_run};
      if (line.contains("onNode")) clear.images = ImagesOf(line, "onNode");
      return AsJson(store_->ClearDistrust(RequireString(line, "reason"), clear));
    }
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
    NodeStoreOptions options{.directory = scratch_ / "store",
                             .witness = Witness::At(scratch_ / "witness")};
    if (line.contains("rules"))
      rules_ = Valid(FromWord<Mode>(RequireString(line, "rules"), "mode"));
    options.rules = rules_;
    if (line.contains("policy")) {
      const auto scope = FlagOf(line, "preloadedOnly") ? AllowlistScope::kPreloadedOnly
                                                       : AllowlistScope::kAnyImage;
      policy_ = Valid(
          VerificationPolicy::Make(Valid(FromWord<Verification>(RequireString(line, "policy"),
                                                                "credential verification policy")),
                                   StringsOf(line, "allow"), scope));
    }
    if (line.contains("registryProves")) {
      std::vector<ProofRule> rules;
      for (const std::string& pattern : StringsOf(line, "registryProves")) {
        rules.push_back({pattern, Proofs::kRegistry});
      }
      policy_ = Valid(policy_.WithProofs(rules));
    }
    options.policy = policy_;
    if (!line.contains("onNode") || !line["onNode"].is_null()) {
      options.images_on_node = ImagesOf(line, "onNode");
    }
    if (line.contains("preloaded")) options.preloaded = ImagesOf(line, "preloaded");
    if (line.contains("shortNames")) {
      evidence_.short_names =
          Valid(FromWord<ShortNames>(RequireString(line, "shortNames"), "meaning of short names"));
    }
    if (line.contains("grace")) {
      evidence_.grace = std::chrono::seconds(line["grace"].get<std::int64_t>());
    }
    if (line.contains("window")) {
      evidence_.window = std::chrono::seconds(line["window"].get<std::int64_t>());
    }
    if (line.contains("remember")) {
      evidence_.remember = std::chrono::seconds(line["remember"].get<std::int64_t>());
    }
    options.evidence = evidence_;
    options.continues_pulls = FlagOf(line, "continuesPulls");
    if (std::filesystem::exists(scratch_ / "kubelet")) {
      options.kubelet_directory = scratch_ / "kubelet";
    }
    if (line.contains("pool")) user_namespaces_.pool = PoolOf(line["pool"]);
    if (line.contains("userNamespaces")) {
      user_namespaces_.enabled = FlagOf(line, "userNamespaces");
    }
    options.user_namespaces = user_namespaces_;
    if (line.contains("maxAge")) {
      options.max_age = std::chrono::seconds(line["maxAge"].get<std::int64_t>());
    }
    if (StringOf(line, "firstStart") == "close") options.first_start = FirstStart::kClose;
    const std::string gap = StringOf(line, "gap");
    options.gap = gap == "yes" ? Gap::kYes : gap == "no" ? Gap::kNo : Gap::kDetect;
    options.allow_empty = !line.contains("allowEmpty") || FlagOf(line, "allowEmpty");
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    options.map_bytes = line.value("mapBytes", kMapBytes);
    Result<std::unique_ptr<NodeStore>> opened = NodeStore::Open(std::move(options));
    if (!opened) return AsJson(opened.error());
    store_ = std::move(*opened);
    return AsJson(store_->recovery_report());
  }

  json MigrateTo(const json& line) {
    Close();
    const auto migrated = MigrateStore({.directory = scratch_ / "store",
                                        .to = line.at("to").get<std::uint32_t>(),
                                        .accept_loss = true,
                                        .clock = clock_.AsClock(),
                                        .boot_clock = clock_.AsBootClock(),
                                        .map_bytes = kMapBytes});
    if (!migrated) return AsJson(migrated.error());
    json answer{{"to", migrated->to}};
    for (const std::string& loss : migrated->losses) {
      answer["losses"] = StringOf(answer, "losses") + loss + '\n';
    }
    return answer;
  }
  json PutBack(const json& line) {
    Close();
    const auto schema = line.value("schema", kNewestSchema);
    const auto backups = Valid(BackupsOf(scratch_ / "store"));
    const auto newest = std::find_if(backups.begin(), backups.end(), [&](const Backup& backup) {
      return backup.schema_version == schema;
    });
    if (newest == backups.end()) throw MalformedLine("there is no backup of that schema");
    const auto restored = RestoreStore({.directory = scratch_ / "store",
                                        .backup = newest->path,
                                        .clock = clock_.AsClock(),
                                        .boot_clock = clock_.AsBootClock(),
                                        .map_bytes = kMapBytes});
    if (!restored) return AsJson(restored.error());
    return {{"records", restored->records},
            {"withoutCredentials", restored->records_without_credentials}};
  }

  std::uint64_t Commits() const { return Valid(store_->GetStatistics()).commit_sequence; }
  static Result<bool> Closed(const Result<void>& closed) {
    if (!closed) return closed.error();
    return true;
  }

  json AskAll(const json& line, const std::string& image, const std::string& handler) {
    json answers = json::array();
    for (const std::string& ref : StringsOf(line, "imageRefs")) {
      answers.push_back(Ask("check", line, image, ref, handler));
    }
    const bool same = std::equal(answers.begin() + 1, answers.end(), answers.begin());
    return same ? answers[0] : answers;
  }
  json Ask(const std::string& op, const json& line, const std::string& image,
           const std::string& ref, const std::string& handler) {
    std::optional<ImagePullServiceAccount> account;
    if (line.contains("serviceAccount")) account = ServiceAccountOf(line["serviceAccount"]);
    testing::Pod pod(SecretsOf(line, "secrets"), std::move(account));
    if (FlagOf(line, "credentialsUnavailable")) pod.MakeUnavailable();
    json answer;
    if (op == "check") {
      CredentialSource* source = &pod;
      if (FlagOf(line, "late")) {
        look_->Provide(pod.Fetch());
        source = look_.get();
      }
      const Decision decision = store_->MustAttemptPull(
          {.image = image, .image_ref = ref, .runtime_handler = handler}, *source);
      answer = testing::Words(decision, source == &pod ? pod.asked() : decision.credentials_read);
    } else {
      const PullPolicy policy =
          Valid(FromWord<PullPolicy>(RequireString(line, "policy"), "pull policy"));
      const EnsureOutcome outcome = store_->EnsureImage(
          {.image = image, .image_ref = ref, .runtime_handler = handler}, policy, pod);
      answer = {{"action", WordOf(outcome.action)}, {"message", outcome.message}};
      answer["decision"] =
          outcome.decision ? testing::Words(*outcome.decision, pod.asked()) : "none";
    }
    Valid<bool>(Closed(store_->Flush()));
    return answer;
  }

  json Pulled(const std::string& op, const json& line, const std::string& image,
              const std::string& ref, const std::string& handler) {
    PullResult result{.pull = PullOf(line)};
    if (op == "pull") {
      const auto begun = store_->RecordPullIntent({.image = image, .runtime_handler = handler});
      if (!begun) return AsJson(begun.error());
      result.pull = *begun;
    }
    std::optional<ImagePullCredentials> credentials;
    if (line.contains("credentials")) credentials = CredentialsOf(line["credentials"]);
    if (line.contains("manifest")) {
      result.manifest = PulledManifest{RequireString(line, "manifest"),
                                       PlatformOf(line, "platform").value_or(Platform{})};
    }
    if (line.contains("entry")) result.image = ImageOf(line["entry"]);
    result.terms = TermsOf(line);
    if (line.contains("goodFor")) {
      result.terms.good_until =
          Timestamp{clock_.Now().seconds + line["goodFor"].get<std::int64_t>(), 0};
    }
    return AsJson(store_->RecordImagePulled(
        {.image = image, .image_ref = ref, .runtime_handler = handler}, credentials, result));
  }

  json ManyPulls(const json& line) {
    for (int i = 0; i < line.at("count").get<int>(); ++i) {
      const std::string image = "registry.example.com/many/" + std::to_string(i) + ":v1";
      const auto pull = store_->RecordPullIntent({.image = image});
      if (!pull) return AsJson(pull.error());
      const auto ended = store_->RecordImagePullFailed({.image = image}, FailureOf(line), *pull);
      if (!ended) return AsJson(ended);
    }
    return "done";
  }

  static std::vector<CredentialName> NamesOf(const json& line, const char* field) {
    std::vector<CredentialName> names;
    for (const json& value : ArrayOf(line, field)) {
      names.push_back(
          {StringOf(value, "namespace"), StringOf(value, "name"), StringOf(value, "uid")});
    }
    return names;
  }
  json Forget(const json& line, const std::string& ref, const std::string& handler) {
    const std::string name = StringOf(line, "name");
    const std::string space = StringOf(line, "namespace");
    const auto forgotten =
        line.contains("hash") ? store_->ForgetCredential(StringOf(line, "hash"), options_)
        : !ref.empty()
            ? store_->ForgetImage({.image_ref = ref, .runtime_handler = handler}, options_)
        : line.contains("serviceAccount")
            ? store_->ForgetServiceAccount(
                  {space, RequireString(line, "serviceAccount"), StringOf(line, "uid")}, options_)
        : name.empty() ? store_->ForgetNamespace(space, options_)
                       : store_->ForgetSecret({space, name, StringOf(line, "uid")}, options_);
    return AsJson(forgotten);
  }

  // With the names that lines gave them.
  json OpenPulls() const {
    const auto pulls = store_->ListOpenPulls();
    json list = AsJson(pulls);
    for (std::size_t i = 0; pulls && i < pulls->size(); ++i) {
      for (const auto& [name, id] : pulls_) {
        if (id == (*pulls)[i].id) list[i]["as"] = name;
      }
    }
    return list;
  }
  // As a line names it; without a name, none.
  PullId PullOf(const json& line) const {
    if (!line.contains("pull")) return {};
    if (line["pull"].is_number()) return {line["pull"].get<std::uint64_t>()};
    const auto named = pulls_.find(RequireString(line, "pull"));
    if (named == pulls_.end()) throw MalformedLine("no pull has that name");
    return named->second;
  }
  ListToken TokenOf(const json& line) const {
    const auto named = tokens_.find(StringOf(line, "token"));
    if (named != tokens_.end()) return named->second;
    if (line.contains("token")) throw MalformedLine("no token has that name");
    return {};
  }

  json Observe(const json& line) {
    ImageList list{.images = ImagesOf(line, "images"),
                   .complete = !line.contains("complete") || FlagOf(line, "complete"),
                   .source = StringOf(line, "source")};
    for (int i = 0; line.contains("many") && i < line["many"].get<int>(); ++i) {
      const std::string number = std::to_string(i);
      list.images.push_back({.id = "sha256:" + std::string(64 - number.size(), '0') + number,
                             .repo_tags = {"registry.example.com/many/" + number + ":v1"}});
    }
    if (line.contains("quietAgo")) {
      list.quiet_until = clock_.Boot();
      list.quiet_until->nanoseconds -= line["quietAgo"].get<std::int64_t>() * 1'000'000'000;
    }
    list.names_to_come = StringsOf(line, "namesToCome");
    if (!line.contains("token")) {
      list.token = Valid(store_->BeginList());
    } else if (!line["token"].is_null()) {
      list.token = TokenOf(line);
    }
    return AsJson(store_->ObserveImages(list, options_));
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
    const std::vector<ListedImage> images = ImagesOf(line, "inUse");
    if (line.contains("until")) {
      return AsJson(store_->PruneBefore(images, RequireTime(line, "until"), options_));
    }
    return AsJson(store_->Prune(images, TokenOf(line), options_));
  }

  json Export(const json& line) {
    ExportKubeletFiles options{.kubelet_directory = scratch_ / "kubelet"};
    if (StringOf(line, "apiVersion") == "v1alpha1") {
      options.api_version = KubeletApiVersion::kV1Alpha1;
    }
    options.allow_empty = options_.allow_empty;
    if (line.contains("onNode")) options.images = ImagesOf(line, "onNode");
    std::filesystem::create_directories(options.kubelet_directory);
    const auto exported = store_->Export(options);
    if (!exported) return AsJson(exported.error());
    json answer = {{"records", exported->records},
                   {"intents", exported->intents},
                   {"made", exported->made},
                   {"closed", exported->closed}};
    if (exported->spellings != 0) answer["spellings"] = exported->spellings;
    return answer;
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

  static constexpr std::uint64_t kMapBytes = std::uint64_t{64} << 20U;

  testing::MemoryDir scratch_;
  testing::FakeClock clock_;
  Mode rules_;
  VerificationPolicy policy_;
  UserNamespaceOptions user_namespaces_;
  ChangeOptions options_;
  // Their answers tell what a list deletes.
  EvidenceOptions evidence_{.remember = std::chrono::seconds(0)};
  std::map<std::string, ListToken> tokens_;  // "": the last one
  std::map<std::string, PullId> pulls_;
  std::uint64_t commits_ = 0;
  std::unique_ptr<DeferredCredentials> look_;
  std::unique_ptr<NodeStore> store_;
};

bool IsError(const json& answer) {
  return answer.is_object() && answer.contains("message") && answer.contains("error");
}

bool Contains(const json& text, const json& part) {
  return text.get<std::string>().find(part.get<std::string>()) != std::string::npos;
}

// Fields whose words are for people.
constexpr std::array<std::string_view, 5> kSentences = {"closedBecause", "notJudgedBecause", "text",
                                                        "hint", "losses"};

bool Matches(const json& expected, const json& got) {
  if (expected.type() != got.type()) return expected == got;
  if (expected.is_array()) {
    return std::equal(expected.begin(), expected.end(), got.begin(), got.end(), Matches);
  }
  if (!expected.is_object()) return expected == got;
  if (IsError(got)) {
    return json(expected.value("error", "")) == got["error"] &&
           Contains(got["message"], expected.value("message", ""));
  }
  for (const std::string_view sentence : kSentences) {
    if (!expected.contains(sentence)) continue;
    const bool none = expected[sentence] == "";
    if (none ? got.contains(sentence)
             : !got.contains(sentence) || !Contains(got[sentence], expected[sentence])) {
      return false;
    }
  }
  const auto without_sentences = [](json object) {
    for (const std::string_view sentence : kSentences) object.erase(std::string(sentence));
    return object;
  };
  const json left = without_sentences(expected);
  const json right = without_sentences(got);
  if (left.size() != right.size()) return false;
  for (const auto& [name, value] : left.items()) {
    if (!right.contains(name) || !Matches(value, right[name])) return false;
  }
  return true;
}

class HistoryPlayer final : public Player {
 public:
  void Play(const json& written, Log& log) override {
    if (written.contains("let")) return Name(written["let"], let_, {});
    if (written.contains("case")) return Begin(written);
    if (nodes_.empty()) throw MalformedLine("a step before the first \"case\"");
    for (Played& played : nodes_) PlayOn(played, Meant(written, played.names), log);
  }

 private:
  using Names = std::map<std::string, json>;
  // One node under one set of rules.
  struct Played {
    std::string what;
    Mode rules;
    Names names;
    std::unique_ptr<Node> node;
  };

  void PlayOn(Played& played, const json& line, Log& log) {
    if (line.is_array()) {
      for (const json& each : line) PlayOn(played, each, log);
      return;
    }
    RequireOnly(
        line, {"op", "answer", "closed",
               // open
               "policy", "allow", "preloadedOnly", "registryProves", "checker", "pool",
               "userNamespaces", "shortNames", "grace", "window", "remember", "rules", "onNode",
               "preloaded", "continuesPulls", "gap",
               // check, pull
               "image", "imageRef", "handler", "secrets", "serviceAccount", "credentials",
               "imageRefs", "late", "credentialsUnavailable", "manifest", "platform", "as", "pull",
               "entry", "how", "count",
               // lists, ledger
               "ahead", "token", "images", "many", "quietAgo", "namesToCome", "complete", "source",
               "reason", "names", "adopt", "inUse", "until", "allowEmpty", "dryRun",
               // whole records, handlers, files
               "lastUpdated", "credentialMapping", "handlers", "folder", "key", "content", "path",
               "apiVersion",
               // time, whole stores
               "mapBytes", "seconds", "bootId", "to", "schema", "maxAge", "nodeHadNone", "goodFor",
               "firstStart", "ago",
               // what is forgotten
               "namespace", "name", "uid", "hash", "serviceAccounts",
               // pods
               "pod", "block", "blocks", "hostId", "length", "hostUsers", "existing", "running"});
    const std::string op = RequireString(line, "op");
    const json got = played.node->Do(op, line);
    const bool differs = played.rules == Mode::kStrict && line.contains("closed");
    const char* field = differs ? "closed" : "answer";
    if (line.contains(field) ? Matches(line[field], got) : !IsError(got)) {
      log.Same();
    } else {
      log.Different(played.what + ", " + std::string(WordOf(played.rules)) + " rules: " + op +
                    "\n  expected  " + (line.contains(field) ? Text(line[field]) : "success") +
                    "\n  got       " + Text(got));
    }
  }

  void Begin(const json& line) {
    RequireOnly(line, {"op", "case", "rules", "why", "rows", "limit"});
    nodes_.clear();
    const std::string rules = StringOf(line, "rules");
    const json rows = Meant(line.value("rows", json::array({json::object()})), {});
    for (std::size_t row = 0; row < rows.size(); ++row) {
      std::string what = RequireString(line, "case");
      if (rows.size() > 1) what += ", row " + std::to_string(row + 1);
      Names names;
      Name(rows[row], names, {});
      for (const Mode each : {Mode::kKubelet, Mode::kStrict}) {
        if (!rules.empty() && rules != WordOf(each)) continue;
        nodes_.push_back({what, each, names, std::make_unique<Node>(each)});
      }
    }
    if (nodes_.empty()) throw MalformedLine("rules \"" + rules + "\" are not known");
  }

  void Name(const json& values, Names& into, const Names& of_row) const {
    for (const auto& [name, value] : values.items()) into["$" + name] = Meant(value, of_row);
  }
  // With the values that the names stand for, those of a row first.
  json Meant(const json& value, const Names& of_row) const {
    if (value.is_string()) {
      for (const Names* const names : {&of_row, &let_}) {
        const auto named = names->find(value.get<std::string>());
        if (named != names->end()) return named->second;
      }
      return value;
    }
    json meant = value;
    if (value.is_structured()) {
      for (json& part : meant) part = Meant(part, of_row);
    }
    return meant;
  }

  Names let_;
  std::vector<Played> nodes_;
};

}  // namespace

std::unique_ptr<Player> MakeHistoryPlayer() { return std::make_unique<HistoryPlayer>(); }

}  // namespace waybill::replay
