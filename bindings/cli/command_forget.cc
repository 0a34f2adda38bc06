// waybill forget: credentials stop opening images. waybill reconcile: so do all that do not exist.

#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/cluster_input.h"
#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// NAMESPACE/NAME or NAMESPACE/NAME/UID.
Result<CredentialName> ParseCredentialName(const std::string& text) {
  const auto first = text.find('/');
  const auto second = first == std::string::npos ? first : text.find('/', first + 1);
  CredentialName who;
  who.namespace_name = text.substr(0, first);
  if (first != std::string::npos) who.name = text.substr(first + 1, second - first - 1);
  if (second != std::string::npos) who.uid = text.substr(second + 1);
  const bool ends_early = second != std::string::npos && who.uid.empty();
  if (who.namespace_name.empty() || who.name.empty() || ends_early ||
      who.uid.find('/') != std::string::npos) {
    return BadFlag("NAME", "it is not NAMESPACE/NAME or NAMESPACE/NAME/UID",
                   "without a UID, whatever the UID");
  }
  return who;
}

// What was forgotten, as a person says it. Credential hashes are never shown.
std::string TextOf(const Revocation& what, const HandlerNames& names) {
  const CredentialName& who = what.who;
  switch (what.kind) {
    case RevocationKind::kNamespace:
      return who.namespace_name;
    case RevocationKind::kImage:
      return what.image_ref +
             (what.runtime_handler.empty() ? "" : " (" + names.TextOf(what.runtime_handler) + ")");
    case RevocationKind::kCredential:
      return "(a hash)";
    case RevocationKind::kSecret:
    case RevocationKind::kServiceAccount:
      break;
  }
  return who.namespace_name + "/" + who.name + (who.uid.empty() ? "" : "/" + who.uid);
}

std::vector<Field> CountsOf(const ForgetReport& report) {
  return FieldsOf(report, {{"secrets", "secrets forgotten"},
                           {"serviceAccounts", "service accounts forgotten"},
                           {"nodePods", "image names closed that were open to all"},
                           {"equalHashes", "equal credentials that stay elsewhere"},
                           {"stored", ""},
                           {"untidied", ""}});
}

// If very many records still have forgotten credentials, takes them out before the command ends.
template <typename Call>
auto Forgetting(const StoreFlags& flags, const Call& call) {
  return WithWriter(Writer::Open(flags), [&](Writer& writer) -> decltype(call(writer)) {
    auto report = call(writer);
    if (!report) return report;
    TRY(writer.TidyUp());
    return report;
  });
}

class ForgetCommand final : public Command {
 public:
  std::string name() const override { return "forget"; }
  std::string summary() const override { return "credentials stop opening images"; }
  std::string notes() const override {
    return R"(secret NAMESPACE/NAME[/UID]          a Secret; without UID, whatever the UID
serviceaccount NAMESPACE/NAME[/UID]  a service account, likewise
namespace NAMESPACE                  every Secret and service account of it
image REF                            every credential of the image, by any spelling of it,
                                     and that all pods may use it; REF may be short for one
credential HASH|@FILE                every Secret with these credentials, by the hash that
                                     `waybill hash` prints; @FILE: a file with the hash
list                                 what was forgotten, and is kept from coming back

The images stay, and are verified again: the next pod pulls. What was forgotten does not
come back by a pull that began before, a restored backup or an import, for 30 days or
--keep-revocations of `waybill start`. Equal credentials under other names still open
what they opened. A kubelet that runs without waybill keeps what it has in memory until
it restarts.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
    flags.Positional("WHAT", &what_, "secret, serviceaccount, namespace, image, credential, list");
    flags.Positional("NAME", &name_, "which one");
    runtime_.Declare(flags);
    change_.DeclareDryRun(flags);
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    TRY(runtime_.Parse());
    const std::string what = what_.value_or("");
    if (runtime_.given() && what != "image") return BadFlag("--runtime", "it belongs to image");
    if (what == "list") {
      if (name_) return BadFlag("NAME", "it does not belong to list");
      if (change_.options.dry_run) return BadFlag("--dry-run", "it does not belong to list");
      return List(out);
    }
    auto revocation = TRY(Parse(what));
    auto report = Forgetting(store_, [&](Writer& writer) -> Result<ForgetReport> {
      revocation.image_ref = TRY(ResolveRef("NAME", revocation.image_ref, writer.store()));
      return writer.owner().Forget(revocation, change_.options);
    });
    if (!report) return report.error();
    auto fields = CountsOf(*report);
    if (what == "image" && revocation.image_ref != *name_) {
      fields.insert(fields.begin(), {"imageRef", "image ref", revocation.image_ref});
    }
    WriteChange(std::move(fields), change_.options.dry_run, out);
    // As `rm`: an image without a record is open by none.
    return what == "image" && report->records == 0 ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  Result<Revocation> Parse(const std::string& what) const {
    if (what.empty()) return BadFlag("WHAT", "it is missing", "see waybill forget --help");
    Revocation revocation;
    const bool has_name = name_ && !name_->empty();
    if (what == "secret" || what == "serviceaccount") {
      revocation.kind =
          what == "secret" ? RevocationKind::kSecret : RevocationKind::kServiceAccount;
      auto who = TRY(ParseCredentialName(name_.value_or("")));
      revocation.who = std::move(who);
      return revocation;
    }
    if (what != "namespace" && what != "image" && what != "credential") {
      return BadFlag("WHAT", fmt::format("there is no '{}'", what.substr(0, 200)),
                     "use secret, serviceaccount, namespace, image, credential or list");
    }
    if (!has_name) return BadFlag("NAME", "it is missing", "see waybill forget --help");
    if (what == "namespace") {
      revocation.kind = RevocationKind::kNamespace;
      revocation.who.namespace_name = *name_;
      if (name_->find('/') != std::string::npos) {
        return BadFlag("NAME", "a namespace has no '/' in it");
      }
    } else if (what == "image") {
      revocation.kind = RevocationKind::kImage;
      revocation.image_ref = *name_;
      revocation.runtime_handler = runtime_.handler;
    } else {
      revocation.kind = RevocationKind::kCredential;
      revocation.credential_hash = TRY(ReadHash());
    }
    return revocation;
  }

  Result<std::string> ReadHash() const {
    if (!name_->starts_with('@')) return *name_;
    auto content = ReadInput(name_->substr(1), kMaxCoordinateBytes + 1);
    if (!content) return content.error();
    if (content->ends_with('\n')) content->pop_back();
    if (content->empty() || content->find('\n') != std::string::npos) {
      return BadFlag("NAME", "the file must have one line, the hash", "`waybill hash` prints it");
    }
    return content;
  }

  Result<ExitCode> List(Output& out) const {
    auto listed = WithStore(
        ObserveStore(store_, {.shows_any_age = true}), [&](const NodeStore& store) -> Result<void> {
          auto all = TRY(store.ListRevocations());
          auto names = TRY(HandlerNames::Of(store));
          SortForReading(all);
          Json list = Json::array();
          std::vector<std::vector<std::string>> rows;
          for (const Revocation& one : all) {
            list.push_back(JsonOf(one, Hashes::kRedacted));
            rows.push_back({std::string(RevocationKindName(one.kind)), TextOf(one, names),
                            out.TimeText(one.since), one.untidied ? "not taken out yet" : ""});
          }
          if (out.json()) {
            out.WriteJson({{"revocations", list}});
          } else {
            out.WriteTable({"KIND", "WHAT", "SINCE", ""}, rows, Output::Names::kNone);
          }
          return {};
        });
    if (!listed) return listed.error();
    return ExitCode::kYes;
  }

  StoreFlags store_;
  RuntimeFlag runtime_;
  ChangeFlags change_;
  std::optional<std::string> what_;
  std::optional<std::string> name_;
};

std::vector<CredentialName> NamesOf(const auto& listed) {
  std::vector<CredentialName> names;
  names.reserve(listed.size());
  for (const auto& one : listed) names.push_back({one.namespace_name, one.name, one.uid});
  return names;
}

class ReconcileCommand final : public Command {
 public:
  std::string name() const override { return "reconcile"; }
  std::string summary() const override {
    return "forget every Secret and service account that does not exist";
  }
  std::string notes() const override {
    return R"(    token=$(waybill reconcile --store DIR --begin)
    kubectl get secrets,serviceaccounts -A -o json |
      waybill reconcile --store DIR --existing - --token "$token"

The list must have every Secret and every service account of the cluster: what it lacks
is forgotten, if it was proven by a pull that began before the token was drawn. So it
must be made after that, with the rights to see all. One that has no Secret or no service
account at all is refused without --allow-empty. Nothing that Secrets hold is kept,
printed or compared.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
    flags.Switch("--begin", &begin_, "print a token; do this before the list is made");
    flags.Value("--existing", &existing_, "FILE|-",
                "what kubectl get secrets,serviceaccounts -A -o json prints");
    flags.Value("--token", &token_, "TOKEN", "the token");
    change_.DeclareAllowEmpty(flags, "list");
    change_.DeclareDryRun(flags);
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    if (begin_) {
      if (existing_ || token_ || change_.options.allow_empty || change_.options.dry_run) {
        return BadFlag("--begin", "it excludes all flags but --store and --rules");
      }
      return PrintListToken(store_, out);
    }
    if (!existing_) return BadFlag("--existing", "it is missing", "or draw a token with --begin");
    if (!token_) {
      return BadFlag("--token", "it is missing",
                     "draw a token with --begin, before the list is made");
    }
    auto token = TRY(ParseListToken(*token_));
    auto objects = TRY(ReadExistingCredentials(*existing_));
    const ExistingCredentials truth = {.secrets = NamesOf(objects.secrets),
                                       .service_accounts = NamesOf(objects.service_accounts)};
    if (!change_.options.allow_empty && (truth.secrets.empty() || truth.service_accounts.empty())) {
      return BadFlag(
          "--existing",
          truth.secrets.empty() ? "there is no Secret in it" : "there is no service account in it",
          "list both, with the rights to see all; --allow-empty confirms that none is "
          "left");
    }
    auto report = Forgetting(store_, [&](Writer& writer) {
      return writer.owner().Reconcile(truth, token, change_.options);
    });
    if (!report) return report.error();
    std::vector<Field> counts = {
        {"known", "of those in records, exist", report->known},
        {"gone", "do not exist", report->gone},
        {"newer", "do not exist, but are newer than the token", report->newer}};
    for (Field& count : CountsOf(report->forgotten)) counts.push_back(std::move(count));
    WriteChange(counts, change_.options.dry_run, out);
    return ExitCode::kYes;
  }

 private:
  StoreFlags store_;
  ChangeFlags change_;
  bool begin_ = false;
  std::optional<std::string> existing_;
  std::optional<std::string> token_;
};

}  // namespace

std::unique_ptr<Command> MakeForgetCommand() { return std::make_unique<ForgetCommand>(); }
std::unique_ptr<Command> MakeReconcileCommand() { return std::make_unique<ReconcileCommand>(); }

}  // namespace waybill::cli
