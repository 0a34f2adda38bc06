// waybill reconcile: forgets all credentials that do not exist any more.

#include <time.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/cluster_input.h"
#include "bindings/cli/command.h"
#include "bindings/cli/forgetting.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/published_list.h"
#include "store/base/options.h"
#include "store/base/timestamp.h"
#include "store/calls/node_store.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

constexpr std::int64_t kNanosPerSecond = 1'000'000'000;
// How far the clocks of node and cluster may differ, in seconds.
constexpr std::int64_t kClockMargin = 300;
// A published list that is older, in seconds, is warned of.
constexpr std::int64_t kStaleAfter = std::int64_t{3} * 24 * 3600;

std::vector<CredentialName> NamesOf(const auto& listed) {
  std::vector<CredentialName> names;
  names.reserve(listed.size());
  for (const auto& one : listed) names.push_back({one.namespace_name, one.name, one.uid});
  return names;
}

// `as_of`: of a published list, or empty.
Json JsonOfReport(const RevokeMissingReport& report, const std::string& as_of) {
  Json answer = Json::object();
  if (!as_of.empty()) answer["asOf"] = as_of;
  answer.update(JsonOf(report));
  return answer;
}

void WriteReport(const RevokeMissingReport& report, const std::string& as_of, bool dry_run,
                 Output& out) {
  WriteChange(JsonOfReport(report, as_of), dry_run, out);
  if (out.json()) return;
  std::vector<Field> fields;
  if (!as_of.empty()) fields.push_back({"", "the list is of", as_of});
  fields.push_back({"", "of those in records, exist", report.known});
  fields.push_back({"", "do not exist", report.gone});
  fields.push_back({"", "do not exist, but are newer than the token", report.newer});
  out.WriteFields(CountsOf(report.forgotten, std::move(fields)));
}

// `path`: the file, or the volume's directory. Errors name the file.
Result<PublishedList> ReadPublishedList(const std::string& path) {
  std::string file = path;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    file = (std::filesystem::path(path) / kPublishedKey).string();
  }
  auto bytes = ReadOwnFile(file, kMaxPublishedBytes);
  if (!bytes) {
    Error error = bytes.error();
    if (error.code == ErrorCode::kNotFound) {
      error = BadFlag("--published", fmt::format("{}: nothing was published yet", file),
                      "look at the job of waybill-existing in the cluster");
    }
    error.message += "; nothing was forgotten";
    return error;
  }
  auto list = DecodePublishedList(*bytes);
  if (!list) {
    Error error = AboutInput(file, list.error(), "publish it again: run waybill-existing");
    error.message += "; nothing was forgotten";
    return error;
  }
  return list;
}

// The seconds since 1970 in which the token was drawn. kInvalidArgument: that can't be known.
Result<std::int64_t> WhenDrawn(const ListToken& token, std::int64_t now) {
  const BootTime boot = SystemBootClock();
  if (token.drawn.boot_id != boot.boot_id || token.drawn.boot_id == BootTime().boot_id ||
      token.drawn.nanoseconds > boot.nanoseconds) {
    return BadFlag("--token",
                   "when it was drawn is not known: the machine booted since; nothing was "
                   "forgotten",
                   "draw another with --begin, and use it with a list of later");
  }
  return now - (boot.nanoseconds - token.drawn.nanoseconds) / kNanosPerSecond;
}

// In as many parts as messages need.
template <typename Caller>
Result<RevokeMissingReport> RevokeInParts(Caller& caller, const ExistingCredentials& truth,
                                          const ListToken& token, const ChangeOptions& change) {
  constexpr std::size_t kNamesInPart = 20'000;  // of at most some 600 bytes each
  RevokeMissing part{.token = token, .allow_empty = change.allow_empty, .dry_run = change.dry_run};
  const std::size_t all = truth.secrets.size() + truth.service_accounts.size();
  for (std::size_t at = 0;; at += kNamesInPart, ++part.parts_before) {
    const auto some = [&](const std::vector<CredentialName>& names, std::size_t before) {
      const std::size_t begin = std::clamp(at, before, before + names.size()) - before;
      const std::size_t end = std::clamp(at + kNamesInPart, before, before + names.size()) - before;
      return std::vector(names.begin() + static_cast<std::ptrdiff_t>(begin),
                         names.begin() + static_cast<std::ptrdiff_t>(end));
    };
    part.existing.secrets = some(truth.secrets, 0);
    part.existing.service_accounts = some(truth.service_accounts, truth.secrets.size());
    part.more = at + kNamesInPart < all;
    auto report = caller.Call(part);
    if (!report || !part.more) return report;
  }
}

// Reads what the records hold, hands on what of it is listed, and so forgets the rest. Nothing is
// asked of the owner if nothing is gone: then nothing is written.
template <typename Caller>
Result<RevokeMissingReport> ReconcileWith(const PublishedList& list, const ListToken& token,
                                          const NodeStore& store, Caller& owner,
                                          ChangeOptions change) {
  using Kind = RevocationKind;
  std::set<std::pair<Kind, CredentialName>> known;
  std::set<std::pair<Kind, CredentialName>> gone;
  std::set<std::pair<Kind, CredentialName>> newer;
  const auto sort_out = [&](Kind kind, const auto& all) {
    for (const auto& one : all) {
      const bool exists = list.Has(kind, one.uid);
      auto& which = exists ? known : one.proof.pull_began > token.commit ? newer : gone;
      which.insert({kind, {one.namespace_name, one.name, one.uid}});
    }
  };
  const auto records = TRY(store.ListRecords());
  for (const ImagePulledRecord& record : records) {
    for (const auto& [image, entry] : record.credential_mapping) {
      sort_out(Kind::kSecret, entry.kubernetes_secrets);
      sort_out(Kind::kServiceAccount, entry.kubernetes_service_accounts);
    }
  }
  if (gone.empty()) return RevokeMissingReport{.known = known.size(), .newer = newer.size()};
  ExistingCredentials truth;
  for (const auto& [kind, who] : known) {
    (kind == Kind::kSecret ? truth.secrets : truth.service_accounts).push_back(who);
  }
  // It may be empty, if nothing on this node exists any more: the list itself is not.
  change.allow_empty = true;
  return RevokeInParts(owner, truth, token, change);
}

class ReconcileCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    list_.Declare(flags);
    flags.Value("--existing", &existing_, "FILE|-",
                "what kubectl get secrets,serviceaccounts -A -o json prints");
    flags.Value("--published", &published_, "FILE|DIR",
                "what waybill-existing published: the file, or its volume");
    flags.Value("--every", &every_, "TIME", "go on: look at it this often, and apply each new list",
                ParseDuration);
    change_.DeclareAllowEmpty(flags, "list");
    change_.DeclareDryRun(flags);
    flags.Excludes("--begin", {"--existing", "--published", "--every", "--token", "--allow-empty",
                               "--dry-run"});
    flags.Excludes("--published", {"--existing", "--allow-empty"});
    flags.Excludes("--every", {"--token", "--dry-run"}, "it draws its tokens itself");
    flags.Needs("--every", {"--published"});
    flags.Needed({"--existing", "--published", "--begin"}, "or draw a token with --begin");
    flags.Needed({"--token", "--every", "--begin"},
                 "draw a token with --begin, before the list is made");
    flags.Check([this]() -> Result<void> {
      if (!every_ || every_->count() > 0) return {};
      return BadFlag("--every", "0 is no time to wait", "write 10m");
    });
  }

  Result<ExitCode> Run(Output& out) override {
    if (list_.begin) return PrintListToken(store_, out);
    if (every_) return GoOn(out);
    if (!published_.empty()) return RunPublished(out);
    auto objects = TRY(ReadExistingCredentials(existing_));
    const ExistingCredentials truth = {.secrets = NamesOf(objects.secrets),
                                       .service_accounts = NamesOf(objects.service_accounts)};
    if (!change_.allow_empty && (truth.secrets.empty() || truth.service_accounts.empty())) {
      return BadFlag(
          "--existing",
          truth.secrets.empty() ? "there is no Secret in it" : "there is no service account in it",
          "list both, with the rights to see all; --allow-empty confirms that none is "
          "left");
    }
    auto report = TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return RevokeInParts(writer, truth, *list_.token, change_);
    }));
    WriteReport(report, {}, change_.dry_run, out);
    return ExitCode::kYes;
  }

 private:
  static std::string Text(std::int64_t seconds) { return FormatTimestamp({.seconds = seconds}); }

  // Nothing: the list was made after the token was drawn, by whatever clock. Otherwise what it
  // would lose.
  static Result<std::string> TooEarly(const PublishedList& list, const ListToken& token) {
    const auto now = static_cast<std::int64_t>(::time(nullptr));
    const std::int64_t as_of = list.as_of.seconds;
    if (as_of > now + kClockMargin) {
      return BadFlag(
          "--published",
          fmt::format("the list is of {}, which is yet to come here; nothing was forgotten",
                      Text(as_of)),
          "set the clocks of this node and of the cluster");
    }
    const auto drawn = TRY(WhenDrawn(token, now));
    if (as_of > drawn + kClockMargin) return std::string();
    return fmt::format(
        "the list is of {}, and the token of {}: it may lack what was proven before "
        "the token",
        Text(as_of), Text(drawn));
  }

  static std::string StaleText(const PublishedList& list) {
    const auto now = static_cast<std::int64_t>(::time(nullptr));
    if (now - list.as_of.seconds <= kStaleAfter) return {};
    return fmt::format(
        "the published list is of {}: Secrets that were deleted since still open images",
        Text(list.as_of.seconds));
  }
  static constexpr std::string_view kStaleHint =
      "look at the job of waybill-existing in the cluster";

  Result<ExitCode> RunPublished(Output& out) {
    const auto list = TRY(ReadPublishedList(published_));
    if (const auto early = TRY(TooEarly(list, *list_.token)); !early.empty()) {
      return BadFlag("--published", early + "; nothing was forgotten",
                     "wait for a list that is 5 minutes younger than the token");
    }
    if (const std::string stale = StaleText(list); !stale.empty()) Warn(stale, kStaleHint);
    const auto report = TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return ReconcileWith(list, *list_.token, writer.store(), writer, change_);
    }));
    WriteReport(report, Text(list.as_of.seconds), change_.dry_run, out);
    return ExitCode::kYes;
  }

  // Once: what was applied, if there was news. A token is drawn at first, and as soon as the one
  // before was used: so each list forgets what was proven before the list before it came.
  Result<std::optional<RevokeMissingReport>> Look(PublishedList& list) {
    Owner owner(store_.store);
    if (!list_.token) {
      list_.token = TRY(WhileBusy(store_.wait, [&] { return owner.Call(BeginList()); })).token;
    }
    list = TRY(ReadPublishedList(published_));
    if (list.digest == applied_) return std::optional<RevokeMissingReport>();
    if (const auto early = TRY(TooEarly(list, *list_.token)); !early.empty()) {
      if (list.digest != waits_with_) Note(early + "; the next list will tell");
      waits_with_ = list.digest;
      return std::optional<RevokeMissingReport>();
    }
    auto report = WithStore(ObserveStore(store_), [&](const NodeStore& store) {
      return WhileBusy(store_.wait,
                       [&] { return ReconcileWith(list, *list_.token, store, owner, change_); });
    });
    // The store may be another one, or somebody applied a later truth.
    if (!report && report.error().code == ErrorCode::kInvalidArgument) list_.token.reset();
    if (!report) return report.error();
    applied_ = list.digest;
    list_.token.reset();
    if (auto next = owner.Call(BeginList()); next)
      list_.token = next->token;  // otherwise the next time
    return std::optional(*report);
  }

  // Says the same once.
  void Complain(std::string_view message, std::string_view hint) {
    if (message == complaint_) return;
    complaint_ = message;
    if (!message.empty()) Warn(message, hint);
  }

  Result<ExitCode> GoOn(Output& out) {
    CatchStopSignals();
    while (!StopRequested()) {
      PublishedList list;
      if (const auto report = Look(list); !report) {
        Complain(report.error().message, report.error().hint);
      } else {
        Complain(StaleText(list), kStaleHint);
        if (*report) {
          const RevokeMissingReport& done = **report;
          out.WriteJson(JsonOfReport(done, Text(list.as_of.seconds)));
          out.Line("list of {}: {} exist, {} gone, {} newer; {} changed", Text(list.as_of.seconds),
                   done.known, done.gone, done.newer, HowMany(done.forgotten.records, "record"));
          TRY(out.Flush());
        }
      }
      // In short naps: a signal may come before one begins.
      for (auto left = *every_; left.count() > 0 && !StopRequested(); --left) {
        const struct timespec second = {.tv_sec = 1, .tv_nsec = 0};
        static_cast<void>(::nanosleep(&second, nullptr));
      }
    }
    return ExitCode::kYes;
  }

  ChangeFlags change_;
  ListTokenFlags list_;
  std::string existing_;
  std::string published_;
  std::optional<std::chrono::seconds> every_;
  std::string applied_;     // the digest of the last list
  std::string waits_with_;  // that of one that is too early
  std::string complaint_;   // the last
};

}  // namespace

Command ReconcileCommand() {
  return {
      .name = "reconcile",
      .task = kTaskOpenClose,
      .summary = "forget every Secret and service account that does not exist",
      .notes =
          R"(What the list lacks is forgotten, if it was proven by a pull that began before the token
was drawn. So the list must be made after that, with the rights to see every Secret and
every service account of the cluster. Nothing that Secrets hold is kept or printed.
A published list has UIDs alone, and counts only if it is younger than the token by 5
minutes at least. With --every the command goes on until SIGTERM, asks the owner of the
store alone, and draws its tokens itself: a Secret that was deleted opens nothing here
after the second list from then at the latest.)",
      .examples = R"(token=$(waybill reconcile --begin)
kubectl get secrets,serviceaccounts -A -o json | waybill reconcile --existing - --token "$token"
waybill reconcile --published /run/waybill-existing --every 10m)",
      .call = New<ReconcileCall>};
}

}  // namespace waybill::cli
