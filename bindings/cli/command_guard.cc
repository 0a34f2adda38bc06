// waybill guard: keeps the files of an unmodified kubelet right.

#include <unistd.h>

#include <map>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/kubelet_config.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/user_namespace_flags.h"
#include "doctor/checks.h"
#include "guard/kubelet_process.h"
#include "guard/service.h"
#include "store/base/policy.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

void LogOfGuard(guard::LogLevel level, const std::string& text) {
  static const bool journal = JournalReads(STDERR_FILENO);
  const std::string line =
      (journal ? fmt::format("<{}>", static_cast<int>(level)) : "waybill guard: ") +
      Printable(text) + "\n";
  // One call a line. There is nobody to tell if it fails.
  if (::write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

class GuardCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Value("--store", &store_, "DIR", "the guard's own store", Length(), kTakesSetting);
    flags.Value("--kubelet-dir", &kubelet_directory_, "DIR",
                "the kubelet's directory, the one with image_manager/ in it", ParseKubeletDirectory,
                kRequired | kTakesSetting);
    flags
        .Value("--cri", &endpoint_, "ENDPOINT|auto",
               "the runtime's socket; auto (default): of the one that answers", Length(),
               kTakesSetting)
        .choices = EndpointChoices();
    flags.Switch("--once", &once_, "put the kubelet's directory right, and end");
    flags.Value("--wait-runtime", &wait_, "SECONDS",
                "how long to wait for a runtime that does not answer yet; 30", Number{0, 3600},
                kTakesSetting);
    flags.Switch("--allow-no-runtime", &allow_no_runtime_,
                 "then go on with what is recorded, instead of failing");
    flags.Value("--on-hole", &on_hole_, "COMMAND",
                "run this for each hole that was closed, with WAYBILL_HOLE and\n"
                "WAYBILL_IMAGE",
                Length(), kTakesSetting);
    flags.Value("--metrics-file", &metrics_file_, "FILE",
                "keep metrics there, for Prometheus' textfile collector", Length(), kTakesSetting);
    flags.Value("--trace", &trace_, "FILE",
                "write a trace for `waybill advise` there, 64 MiB at most", Length(),
                kTakesSetting);
    flags.Switch("--status", &status_, "print what the guard that runs says of itself");
    flags.Value("--witness", &witness_, "FILE|none",
                "the witness; else image_manager/waybill-guard/witness there", Length(),
                kTakesSetting);
    flags
        .Value("--policy", &policy_, "POLICY", "the kubelet's; NeverVerifyPreloadedImages",
               Word<Verification>("credential verification policy"), kTakesSetting)
        .choices = PolicyNames();
    proofs_.Declare(flags);
    Flag& kubelet_config = DeclareKubeletConfig(flags);
    kubelet_config_ = &kubelet_config;
    DeclareFirstStart(flags, &first_start_);
    flags.Value("--preloaded", &preloaded_, "FILE|-",
                "an installer's list of the images that it loaded, for a new store");
    short_names_.Declare(flags);
    DeclareMaxAge(flags, &max_age_);
    user_namespaces_.Declare(flags);
    kubelet_config.TakesSetting({.unless = {"--status"}, .beside_excluded = true});
    flags.Excludes("--status", {"--once", "--wait-runtime", "--allow-no-runtime", "--on-hole",
                                "--metrics-file", "--trace"});
    flags.Needed({"--store", "--status"},
                 "give the guard's own store, as /var/lib/waybill, or write it into the "
                 "configuration file");
    flags.Excludes("--once", {"--on-hole", "--metrics-file"});
    flags.Excludes("--kubelet-config", {"--policy"});
    flags.Check([this]() -> Result<void> {
      kubelet_directory_ = std::filesystem::absolute(kubelet_directory_).string();
      return {};
    });
  }

  void set_again(const Again& again) override { again_ = again; }

  Result<ExitCode> Run(Output& out) override {
    if (status_) return PrintStatus(out);
    guard::ServiceOptions service;
    TRY(Parse(service));
    service.again = [this] { return OptionsOfNow(); };
    service.ready = [&](const guard::Guard& started) {
      const guard::GuardStatus& status = started.status();
      for (const std::string& why : {status.NotProtected(), status.VerifiesNothing()}) {
        if (!why.empty()) out.Line("no protection: {}", why);
      }
      if (!once_) out.Line("ready");
      if (status.kubelet_ran_before) {
        Warn("a kubelet runs already: what it has in memory stays as it is until its next start",
             "restart the kubelet once: it then starts with records that are right, and sees what "
             "the guard puts back");
      }
      static_cast<void>(out.Flush());
    };
    service.aside = [&](const std::string& why) {
      out.Line("no protection: {}", why);
      out.Line("ready");
      static_cast<void>(out.Flush());
    };
    auto status = guard::RunService(service);
    if (!status && status.error().code == ErrorCode::kOwned &&
        guard::IsKubeletWithStore(kubelet_directory_, store_)) {
      ReportError(status.error(), out);
      return ExitCode::kInside;
    }
    if (!status) return status.error();
    if (once_) WriteStart(*status, out);
    return ExitCode::kYes;
  }

 private:
  Result<void> Parse(guard::ServiceOptions& service) {
    const bool is_named = endpoint_ && *endpoint_ != "auto";
    service.runtime = cri::ClientOptions{.endpoint = is_named ? *endpoint_ : ""};
    service.wait_runtime = std::chrono::seconds(wait_);
    service.once = once_;
    if (on_hole_) service.on_hole = *on_hole_;
    if (metrics_file_) service.metrics_file = *metrics_file_;
    service.guard = TRY(OptionsOfGuard());
    service.examine = [looks = LooksAt(),
                       policy = policy_](const std::function<bool()>& cancelled) {
      return Examine(looks, policy, cancelled);
    };
    return {};
  }

  doctor::NodeOptions LooksAt() const {
    return {.kubelet_directory = kubelet_directory_,
            .kubelet_config = kubelet_config_->values,
            .store = std::filesystem::absolute(store_).string(),
            .cri = endpoint_.value_or(""),
            .waybill_version = WAYBILL_VERSION};
  }

  // What concerns the guard. `policy`: the kubelet's, as the guard was told.
  static guard::Examined Examine(doctor::NodeOptions looks, Verification policy,
                                 const std::function<bool()>& cancelled) {
    looks.cancelled = cancelled;
    doctor::Kernel kernel = doctor::ThisKernel();
    // Its own store is no news to it.
    kernel.read_store = [](const std::filesystem::path&) {
      return Error{ErrorCode::kOwned, "the guard owns the store", ""};
    };
    auto node = doctor::Node::Find(std::move(looks), std::move(kernel));
    guard::Examined examined;
    if (!node) {
      examined.credentials.problems.push_back(node.error().message);
      return examined;
    }
    examined.credentials = (*node)->credentials;
    std::vector<guard::CheckResult>& results = examined.checks;
    for (const doctor::Finding& finding : doctor::Examine(**node, true)) {
      results.push_back({.check = finding.check,
                         .verdict = std::string(doctor::VerdictName(finding.verdict)),
                         .seen = finding.seen,
                         .next = finding.next,
                         .failed = finding.verdict == doctor::Verdict::kFail,
                         .verifies_nothing = finding.verifies_nothing});
    }
    if (policy == Verification::kNeverVerify) {
      results.push_back({.check = "kubelet-policy",
                         .verdict = "fail",
                         .seen = "NeverVerify: the kubelet verifies nothing",
                         .next = "take NeverVerify out of the kubelet's configuration, and say so "
                                 "to the guard",
                         .failed = true,
                         .verifies_nothing = true});
    }
    return examined;
  }

  // After SIGHUP: what the same command line means now.
  Result<guard::ServiceOptions> OptionsOfNow() {
    if (!again_) return Error{ErrorCode::kInternal, "the command line is gone", {}};
    auto call = TRY(again_());
    auto now = std::dynamic_pointer_cast<GuardCall>(call);
    guard::ServiceOptions service;
    TRY(now->Parse(service));
    const auto differs = [](std::string_view flag) {
      return BadFlag(flag, "a guard that runs stays with what it began with",
                     "restart the guard to change it");
    };
    if (now->kubelet_directory_ != kubelet_directory_) return differs("--kubelet-dir");
    if (now->store_ != store_) return differs("--store");
    if (now->witness_ != witness_) return differs("--witness");
    service.again = [this] { return OptionsOfNow(); };
    return service;
  }

  Result<guard::GuardOptions> OptionsOfGuard() {
    guard::GuardOptions options;
    options.kubelet_directory = kubelet_directory_;
    options.store.directory = store_;
    options.store.policy = TRY(proofs_.In(VerificationPolicy()));
    // As everywhere. A file of that name: ./none.
    if (witness_ == "none") {
      options.store.witness = Witness::None();
    } else if (witness_) {
      options.store.witness = Witness::At(std::filesystem::absolute(*witness_));
    }
    options.store.first_start = first_start_;
    if (preloaded_) {
      options.store.preloaded = TRY(ReadPreloadedList(*preloaded_));
    }
    options.store.evidence = short_names_.options();
    options.store.max_age = max_age_;
    if (trace_) options.store.trace.path = std::filesystem::absolute(*trace_);
    options.store.user_namespaces = TRY(user_namespaces_.Read());
    options.needs_runtime = !allow_no_runtime_;
    options.preloaded_is_open = policy_ == Verification::kNeverVerifyPreloadedImages;
    options.verifies_recorded = options.preloaded_is_open || policy_ == Verification::kAlwaysVerify;
    options.live = !once_;
    options.version = WAYBILL_VERSION;
    options.kubelet = guard::KubeletFinder(kubelet_directory_);
    options.log = LogOfGuard;
    return options;
  }

  Result<ExitCode> PrintStatus(Output& out) const {
    auto seen = guard::SeeGuard(kubelet_directory_);
    if (!seen) {
      if (seen.error().code == ErrorCode::kNotFound) {
        out.WriteJson({{"runs", false}});
        out.WriteLine(seen.error().message);
        return ExitCode::kNo;
      }
      return seen.error();
    }
    Json status = ParseJson(seen->json);
    if (!status.is_object()) {
      return Error{ErrorCode::kDamaged, "the guard's status can't be read",
                   "a guard that runs writes it again when something changes, at the latest "
                   "after an hour; one that is started anew does so at once"};
    }
    Json holes = status.contains("holes") ? status["holes"] : Json::object();
    const std::string not_protected =
        seen->not_protected.empty() ? TextAt(status, "notProtected") : seen->not_protected;
    const ExitCode protects = seen->runs && not_protected.empty() ? ExitCode::kYes : ExitCode::kNo;
    if (out.json()) {
      Json answer = {{"runs", seen->runs}};
      answer.update(status);
      answer["notProtected"] = not_protected;
      out.WriteJson(answer);
      return protects;
    }
    std::vector<Field> fields;
    if (!not_protected.empty()) {
      fields.push_back({"notProtected", "protection", "none: " + not_protected});
    }
    if (const std::string why = TextAt(status, "verifiesNothing"); !why.empty()) {
      fields.push_back({"verifiesNothing", "protection", "none: " + why});
    }
    fields.push_back({"runs", "guard", seen->runs ? "runs" : "does not run"});
    constexpr std::string_view kShown[] = {
        "kubeletDirectory", "store",        "since",        "kubeletRanBefore", "afterGap",
        "distrustful",      "images",       "records",      "ledgerEntries",    "presumed",
        "openPulls",        "lastList",     "runtimeError", "lastComparison",   "comparisons",
        "events",           "filesWritten", "filesRemoved", "filesLeftAlone",   "filesKept",
        "recordsUnlisted"};
    const std::map<std::string_view, std::string> other_labels = {
        {"kubeletDirectory", "watches"},
        {"afterGap", "after a gap"},
        {"presumed", "presumed preloaded"},
        {"runtimeError", "runtime"},
        {"filesKept", "files kept aside"}};
    for (const std::string_view key : kShown) {
      if (!status.contains(key) || status[key] == "") continue;
      const auto other = other_labels.find(key);
      fields.push_back({std::string(key),
                        other == other_labels.end() ? LabelOf(key) : other->second, status[key]});
    }
    if (status.contains("unlisted") && !status["unlisted"].empty()) {
      fields.push_back({"unlisted", "not listed", status["unlisted"]});
    }
    if (status.contains("waiting") && !status["waiting"].empty()) {
      fields.push_back({"waiting", "from the kubelet's next start", status["waiting"]});
    }
    std::vector<std::string> failed;
    if (const Json* const checks = FieldAt(status, "checks")) {
      for (const Json& check : *checks) {
        if (TextAt(check, "verdict") != "fail") continue;
        failed.push_back(TextAt(check, "check") + ": " + TextAt(check, "seen"));
      }
    }
    if (!failed.empty()) fields.push_back({"failed", "waybill doctor", Json(failed)});
    for (const auto& [kind, count] : holes.items()) {
      if (count != 0) fields.push_back({kind, "holes: " + kind, count});
    }
    out.WriteFields(fields);
    return protects;
  }

  static void WriteStart(const guard::GuardStatus& status, Output& out) {
    std::vector<Field> fields = {{"images", "images", status.images},
                                 {"presumed", "presumed preloaded", status.presumed},
                                 {"filesWritten", "files written", status.files_written},
                                 {"filesRemoved", "files removed", status.files_removed},
                                 {"filesLeftAlone", "files left alone", status.left_alone},
                                 {"filesKept", "files kept aside", status.files_kept},
                                 {"recordsUnlisted", "records unlisted", status.records_unlisted},
                                 {"afterGap", "after a gap", status.gap},
                                 {"kubeletRan", "a kubelet runs", status.kubelet_ran_before}};
    if (!status.not_protected.empty()) {
      fields.insert(fields.begin(),
                    {"notProtected", "protection", "none: " + status.not_protected});
    }
    if (!status.unlisted.empty()) {
      fields.push_back({"unlisted", "not listed", Json(status.unlisted)});
    }
    if (!status.runtime_error.empty()) {
      fields.push_back({"runtimeError", "no list of images", status.runtime_error});
    }
    for (std::size_t i = 0; i < guard::kHoleKinds; ++i) {
      if (status.holes[i] == 0) continue;
      const std::string name(guard::HoleName(static_cast<guard::HoleKind>(i)));
      fields.push_back({name, "closed: " + name, status.holes[i]});
    }
    out.WriteFields(fields);
  }

  std::string store_;
  std::string kubelet_directory_;
  std::optional<std::string> endpoint_;
  bool once_ = false;
  std::uint64_t wait_ = 30;
  bool allow_no_runtime_ = false;
  std::optional<std::string> on_hole_;
  std::optional<std::string> metrics_file_;
  std::optional<std::string> trace_;
  bool status_ = false;
  Verification policy_ = Verification::kNeverVerifyPreloadedImages;
  ProofsFlag proofs_;
  std::optional<std::string> witness_;
  const Flag* kubelet_config_ = nullptr;
  Again again_;
  FirstStart first_start_ = FirstStart::kPresume;
  std::optional<std::string> preloaded_;
  ShortNamesFlag short_names_;
  std::optional<std::chrono::seconds> max_age_;
  UserNamespaceFlags user_namespaces_;
};

}  // namespace

Command GuardCommand() {
  return {
      .name = "guard",
      .task = kTaskTakeOver,
      .summary = "keep the records of a kubelet that nobody rebuilt right",
      .notes =
          R"(Beside an unmodified kubelet, 1.33 to 1.37. Start it before the kubelet: it takes over
what the kubelet wrote, judges it by its own store and by what the runtime lists, and
writes the kubelet's files anew where they are lost, damaged or older. Then it prints
"ready", and follows the kubelet: what that writes is recorded at once, what it forgets
is put back, and an image that appears without a record is closed.
--once does the first part only. What the kubelet does until the next --once is a gap.
Since 1.34 a kubelet that has all records in memory never looks at its files again,
unless one is there that it can't parse: the guard keeps such a file there, and the
kubelet logs one error a listing.
A kubelet with waybill inside needs no guard: beside one it ends, with 8. SIGTERM ends
it; SIGHUP starts it anew in place, with the configuration file read again. --status: 1
if no guard runs, or if it protects nothing, since others may write the kubelet's files.)",
      .examples = R"(waybill guard --kubelet-dir /var/lib/kubelet --cri auto
waybill guard --status --kubelet-dir /var/lib/kubelet)",
      .call = New<GuardCall>};
}

}  // namespace waybill::cli
