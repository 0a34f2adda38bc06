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
Result<CredentialName> ParseCredentialName(std::string_view flag, const std::string& text) {
  const auto first = text.find('/');
  const auto second = first == std::string::npos ? first : text.find('/', first + 1);
  CredentialName who;
  who.namespace_name = text.substr(0, first);
  if (first != std::string::npos) who.name = text.substr(first + 1, second - first - 1);
  if (second != std::string::npos) who.uid = text.substr(second + 1);
  const bool ends_early = second != std::string::npos && who.uid.empty();
  if (who.namespace_name.empty() || who.name.empty() || ends_early ||
      who.uid.find('/') != std::string::npos) {
    return BadFlag(flag, "it is not NAMESPACE/NAME or NAMESPACE/NAME/UID",
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

// The hash, or @FILE: a file with it.
Result<std::string> ParseHash(std::string_view flag, const std::string& text) {
  if (!text.starts_with('@')) return Length()(flag, text);
  auto content = TRY(ReadInput(text.substr(1), kMaxCoordinateBytes + 1));
  if (content.ends_with('\n')) content.pop_back();
  if (content.empty() || content.find('\n') != std::string::npos) {
    return BadFlag(flag, "the file must have one line, the hash", "`waybill hash` prints it");
  }
  return content;
}

template <RevocationKind kKind>
class ForgetCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    const std::string help = "which one";
    if constexpr (kKind == RevocationKind::kNamespace) {
      flags.Positional("NAMESPACE", &what_.who.namespace_name, help, ParseNamespace, kRequired);
    } else if constexpr (kKind == RevocationKind::kImage) {
      flags.Positional("REF", &what_.image_ref, help + ", by any spelling of it, or short for one",
                       Length(), kRequired);
      runtime_.Declare(flags);
    } else if constexpr (kKind == RevocationKind::kCredential) {
      flags
          .Positional("HASH", &what_.credential_hash, help + "; @FILE: a file with the hash",
                      ParseHash)
          .Required("`waybill hash` prints it");
    } else {
      flags
          .Positional("NAME", &what_.who, "NAMESPACE/NAME[/UID]; without UID, whatever the UID",
                      ParseCredentialName)
          .Required("write NAMESPACE/NAME or NAMESPACE/NAME/UID");
    }
    change_.DeclareDryRun(flags);
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    Revocation what = what_;
    what.kind = kKind;
    what.runtime_handler = runtime_.handler();
    auto report = TRY(Forgetting(store_, [&](Writer& writer) -> Result<ForgetReport> {
      what.image_ref = TRY(ResolveRef("REF", what.image_ref, writer.store()));
      return writer.owner().Forget(what, change_);
    }));
    auto fields = CountsOf(report);
    if (what.image_ref != what_.image_ref) {
      fields.insert(fields.begin(), {"imageRef", "image ref", what.image_ref});
    }
    WriteChange(std::move(fields), change_.dry_run, out);
    // As `rm`: an image without a record is open by none.
    return kKind == RevocationKind::kImage && report.records == 0 ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  RuntimeFlag runtime_;
  ChangeFlags change_;
  Revocation what_;
};

class ForgetListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    return WithStore(ObserveStore(store_, {.shows_any_age = true}),
                     [&](const NodeStore& store) -> Result<ExitCode> {
                       auto all = TRY(store.ListRevocations());
                       auto names = TRY(HandlerNames::Of(store));
                       SortForReading(all);
                       Write(all, names, out);
                       return ExitCode::kYes;
                     });
  }

 private:
  static void Write(const std::vector<Revocation>& all, const HandlerNames& names, Output& out) {
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const Revocation& one : all) {
      list.push_back(JsonOf(one, Hashes::kRedacted));
      rows.push_back({std::string(RevocationKindName(one.kind)), TextOf(one, names),
                      out.TimeText(one.since), one.untidied ? "not taken out yet" : ""});
    }
    out.WriteJson({{"revocations", list}});
    out.WriteTable({"KIND", "WHAT", "SINCE", ""}, rows, Output::Names::kNone);
  }
};

std::vector<CredentialName> NamesOf(const auto& listed) {
  std::vector<CredentialName> names;
  names.reserve(listed.size());
  for (const auto& one : listed) names.push_back({one.namespace_name, one.name, one.uid});
  return names;
}

class ReconcileCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    list_.Declare(flags);
    flags.Value("--existing", &existing_, "FILE|-",
                "what kubectl get secrets,serviceaccounts -A -o json prints");
    change_.DeclareAllowEmpty(flags, "list");
    change_.DeclareDryRun(flags);
    store_.DeclareRules(flags);
    flags.Excludes("--begin", {"--existing", "--token", "--allow-empty", "--dry-run"});
    flags.Needed({"--existing", "--begin"}, "or draw a token with --begin");
    flags.Needed({"--token", "--begin"}, "draw a token with --begin, before the list is made");
  }

  Result<ExitCode> Run(Output& out) override {
    if (list_.begin) return PrintListToken(store_, out);
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
    auto report = TRY(Forgetting(store_, [&](Writer& writer) {
      return writer.owner().Reconcile(truth, *list_.token, change_);
    }));
    std::vector<Field> counts = {
        {"known", "of those in records, exist", report.known},
        {"gone", "do not exist", report.gone},
        {"newer", "do not exist, but are newer than the token", report.newer}};
    for (Field& count : CountsOf(report.forgotten)) counts.push_back(std::move(count));
    WriteChange(counts, change_.dry_run, out);
    return ExitCode::kYes;
  }

 private:
  ChangeFlags change_;
  ListTokenFlags list_;
  std::string existing_;
};

}  // namespace

Command ForgetCommand() {
  using Kind = RevocationKind;
  return {
      .name = "forget",
      .task = kTaskOpenClose,
      .summary = "credentials stop opening images",
      .notes =
          R"(The images stay, and are verified again: the next pod pulls. What was forgotten does not
come back by a pull that began before, a restored backup or an import, for 30 days or
--keep-revocations of `waybill start`. Equal credentials under other names still open
what they opened. A kubelet that runs without waybill keeps what it has in memory until
it restarts.)",
      .actions = {{.name = "secret",
                   .summary = "a Secret, whatever its credentials",
                   .examples = "waybill forget secret tenant-a/pull",
                   .call = New<ForgetCall<Kind::kSecret>>},
                  {.name = "serviceaccount",
                   .summary = "a service account",
                   .examples = "waybill forget serviceaccount tenant-a/builder",
                   .call = New<ForgetCall<Kind::kServiceAccount>>},
                  {.name = "namespace",
                   .summary = "every Secret and service account of a namespace",
                   .examples = "waybill forget namespace tenant-a --dry-run",
                   .call = New<ForgetCall<Kind::kNamespace>>},
                  {.name = "image",
                   .summary = "every credential of an image, and that all pods may use it",
                   .examples = "waybill forget image 2c26b46b68ff",
                   .call = New<ForgetCall<Kind::kImage>>},
                  {.name = "credential",
                   .summary = "every Secret with the credentials of a hash",
                   .examples = "waybill forget credential @hash",
                   .call = New<ForgetCall<Kind::kCredential>>},
                  {.name = "list",
                   .summary = "what was forgotten, and is kept from coming back",
                   .examples = "waybill forget list",
                   .call = New<ForgetListCall>}}};
}

Command ReconcileCommand() {
  return {.name = "reconcile",
          .task = kTaskOpenClose,
          .summary = "forget every Secret and service account that does not exist",
          .notes = R"(    token=$(waybill reconcile --store DIR --begin)
    kubectl get secrets,serviceaccounts -A -o json |
      waybill reconcile --store DIR --existing - --token "$token"

The list must have every Secret and every service account of the cluster: what it lacks
is forgotten, if it was proven by a pull that began before the token was drawn. So it
must be made after that, with the rights to see all. One that has no Secret or no service
account at all is refused without --allow-empty. Nothing that Secrets hold is kept,
printed or compared.)",
          .examples = R"(token=$(waybill reconcile --begin)
kubectl get secrets,serviceaccounts -A -o json | waybill reconcile --existing - --token "$token")",
          .call = New<ReconcileCall>};
}

}  // namespace waybill::cli
