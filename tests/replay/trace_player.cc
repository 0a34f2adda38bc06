// traces/*.jsonl: one call a line, each at its time `at`.
//
//   open    policy, allow, onNode: a start of the process. What ran before ends here.
//   check   image, imageRef, secrets, serviceAccount, credentialsUnavailable; answer: pull,
//           credentialsRead, result, error (the pod's credentials were asked for and not to be had)
//   intent  image            pulled  image, imageRef, credentials (absent: unknown)
//   failed  image            prune   inUse, until
//   state   pulled, pulling: what is stored
//
// An absent list is an empty one.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/words.h"
#include "tests/replay/fields.h"
#include "tests/replay/player.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "waybill/values.h"

namespace waybill::replay {

namespace {

using nlohmann::json;
using testing::NodeStore;

class TracePlayer final : public Player {
 public:
  void Play(const json& line, Log& log) override {
    const std::string op = RequireString(line, "op");
    clock_.Set(RequireTime(line, "at"));
    if (op == "open") return Open(line, log);
    if (!store_) throw MalformedLine("\"" + op + "\" before the first \"open\" that succeeded");
    if (op == "check") return Check(line, log);
    if (op == "intent") return Intent(line, log);
    if (op == "pulled") return Pulled(line, log);
    if (op == "failed") return Failed(line, log);
    if (op == "prune") return Prune(line, log);
    if (op == "state") return State(line, log);
    throw MalformedLine("op \"" + op + "\" is not known");
  }

 private:
  void Open(const json& line, Log& log) {
    RequireOnly(line, {"op", "at", "policy", "allow", "onNode"});
    const Result<Verification> mode =
        FromWord<Verification>(RequireString(line, "policy"), "credential verification policy");
    if (!mode) throw MalformedLine(mode.error().ToString());
    const Result<VerificationPolicy> policy =
        VerificationPolicy::Make(*mode, StringsOf(line, "allow"));
    if (!policy) throw MalformedLine(policy.error().ToString());
    std::vector<ListedImage> images = ImagesOf(line, "onNode");

    if (store_) Expect(store_->Close(), "close", log);
    store_.reset();
    NodeStoreOptions options{.directory = scratch_ / "store",
                             .witness = Witness::At(scratch_ / "witness")};
    options.rules = Mode::kKubelet;
    options.policy = *policy;
    options.images_on_node = std::move(images);
    options.allow_empty = true;  // as the kubelet
    options.clock = clock_.AsClock();
    Result<std::unique_ptr<NodeStore>> opened = NodeStore::Open(std::move(options));
    Expect(opened, "open", log);
    if (!opened) return;
    store_ = std::move(*opened);
    if (store_->recovery_report().distrustful) {
      log.Different("open\n  expected  a trustful store\n  got       " +
                    store_->recovery_report().distrust_reason);
    }
  }

  void Check(const json& line, Log& log) {
    RequireOnly(line, {"op", "at", "image", "imageRef", "secrets", "serviceAccount",
                       "credentialsUnavailable", "answer"});
    const std::string image = RequireString(line, "image");
    const std::string ref = RequireString(line, "imageRef");
    std::optional<ImagePullServiceAccount> account;
    if (line.contains("serviceAccount")) account = ServiceAccountOf(line["serviceAccount"]);
    testing::Pod pod(SecretsOf(line, "secrets"), std::move(account));
    if (FlagOf(line, "credentialsUnavailable")) pod.MakeUnavailable();
    if (!line.contains("answer")) throw MalformedLine("field \"answer\" is missing");
    const json& answer = line["answer"];
    RequireOnly(answer, {"pull", "credentialsRead", "result", "error"});

    const Decision decision = store_->MustAttemptPull({.image = image, .image_ref = ref}, pod);
    // The kubelet writes back before it answers.
    Expect(store_->Flush(), "write-back", log);
    log.Compare("check " + Text(image) + " " + Text(ref),
                Answer(RequireBool(answer, "pull"), RequireBool(answer, "credentialsRead"),
                       RequireString(answer, "result"), FlagOf(answer, "error")),
                Answer(decision.pull, decision.credentials_read,
                       std::string(CheckResultName(decision.result)), pod.failed()));
    if (decision.credentials_read != (pod.asked() == 1)) {
      log.Different(
          "check " + Text(image) + "\n  expected  the pod's credentials asked for once, " +
          "or said not to be\n  got       asked " + std::to_string(pod.asked()) + " times");
    }
  }

  static std::string Answer(bool pull, bool credentials_read, const std::string& result,
                            bool error) {
    return std::string(pull ? "pull" : "no pull") +
           (credentials_read ? ", credentials read" : ", credentials not read") +
           (result.empty() ? ", not counted" : ", " + result) + (error ? ", with an error" : "");
  }

  void Intent(const json& line, Log& log) {
    RequireOnly(line, {"op", "at", "image"});
    Expect(store_->RecordPullIntent({.image = RequireString(line, "image")}), "intent", log);
  }

  void Pulled(const json& line, Log& log) {
    RequireOnly(line, {"op", "at", "image", "imageRef", "credentials"});
    const std::string image = RequireString(line, "image");
    std::optional<ImagePullCredentials> credentials;
    if (line.contains("credentials")) credentials = CredentialsOf(line["credentials"]);
    const Result<void> result = store_->RecordImagePulled(
        {.image = image, .image_ref = RequireString(line, "imageRef")}, credentials);
    // The kubelet logs that and keeps the intent; here it is an error as well.
    const bool must_fail = !ImageName(image);
    if (must_fail && !result && result.error().code == ErrorCode::kInvalidArgument) return;
    if (must_fail && result) {
      log.Different("pulled\n  expected  an error: " + Text(image) + " does not parse\n" +
                    "  got       success");
      return;
    }
    Expect(result, "pulled", log);
  }

  void Failed(const json& line, Log& log) {
    RequireOnly(line, {"op", "at", "image"});
    Expect(store_->RecordImagePullFailed({.image = RequireString(line, "image")}), "failed", log);
  }

  void Prune(const json& line, Log& log) {
    RequireOnly(line, {"op", "at", "inUse", "until"});
    Expect(store_->PruneBefore(ImagesOf(line, "inUse"), RequireTime(line, "until"),
                               {.allow_empty = true}),
           "prune", log);
  }

  void State(const json& line, Log& log) {
    RequireOnly(line, {"op", "at", "pulled", "pulling"});
    std::vector<std::string> intents = StringsOf(line, "pulling");
    std::map<std::string, std::string> records;
    for (const json& record : ArrayOf(line, "pulled")) {
      records[RequireString(record, "imageRef")] = Text(record);
    }

    const Result<std::vector<ImagePulledRecord>> stored_records = store_->ListRecords();
    const Result<std::vector<ImagePullIntent>> stored_intents = store_->ListIntents();
    Expect(stored_records, "list records", log);
    Expect(stored_intents, "list intents", log);
    if (!stored_records || !stored_intents) return;

    std::map<std::string, std::string> got;
    for (const ImagePulledRecord& record : *stored_records) {
      got[record.image_ref] = Text(json::parse(EncodePulledRecord(record)));
    }
    CompareRecords(records, got, log);

    std::sort(intents.begin(), intents.end());
    std::vector<std::string> got_intents;
    for (const ImagePullIntent& intent : *stored_intents) got_intents.push_back(intent.image);
    log.Compare("stored intents", Text(json(intents)), Text(json(got_intents)));
  }

  static void CompareRecords(const std::map<std::string, std::string>& expected,
                             const std::map<std::string, std::string>& got, Log& log) {
    const std::string none = "no record";
    for (const auto& [ref, text] : expected) {
      const auto it = got.find(ref);
      log.Compare("stored record " + Text(ref), text, it == got.end() ? none : it->second);
    }
    for (const auto& [ref, text] : got) {
      if (!expected.contains(ref)) log.Compare("stored record " + Text(ref), none, text);
    }
  }

  // A call that the kubelet does without failing.
  template <typename T>
  static void Expect(const Result<T>& result, const char* what, Log& log) {
    if (!result) {
      log.Different(std::string(what) + "\n  expected  success\n  got       " +
                    result.error().ToString());
    }
  }

  testing::MemoryDir scratch_;
  testing::FakeClock clock_;
  std::unique_ptr<NodeStore> store_;
};

}  // namespace

std::unique_ptr<Player> MakeTracePlayer() { return std::make_unique<TracePlayer>(); }

}  // namespace waybill::replay
