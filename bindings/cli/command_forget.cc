// waybill forget: credentials stop opening images.

#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/forgetting.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/input.h"
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
  }

  Result<ExitCode> Run(Output& out) override {
    Revocation what = what_;
    what.kind = kKind;
    what.runtime_handler = runtime_.handler();
    std::optional<Explanation> why;
    auto report = TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<RevokeReport> {
      what.image_ref = TRY(ResolveRef("REF", what.image_ref, writer.store()));
      if (kKind == RevocationKind::kImage) why = Explained(writer.store(), what);
      return writer.Call(Revoke{.what = what, .dry_run = change_.dry_run});
    }));
    auto fields = CountsOf(report);
    if (what.image_ref != what_.image_ref) {
      fields.insert(fields.begin(), {"imageRef", "image ref", what.image_ref});
    }
    WriteChange(std::move(fields), change_.dry_run, out);
    if (kKind != RevocationKind::kImage) return ExitCode::kYes;
    (void)out.Flush();
    if (why && (why->ledger_entry || why->gone_entry)) {
      Warn(what.image_ref + ForHandler(what.runtime_handler) +
               (why->ledger_entry ? " is in the ledger of preloaded images, and stays open to all"
                                  : " is gone, and is remembered as preloaded"),
           "if that is wrong: waybill preload remove, with a --reason");
    }
    if (report.records > 0) return ExitCode::kYes;
    Warn("no record opened " + what.image_ref + ForHandler(what.runtime_handler),
         "if one should have: `waybill list` shows records, `waybill runtimes` runtime handlers");
    return ExitCode::kNo;
  }

 private:
  static std::optional<Explanation> Explained(const NodeStore& store, const Revocation& what) {
    auto why = store.Explain({.image = what.image_ref,
                              .image_ref = what.image_ref,
                              .runtime_handler = what.runtime_handler});
    return why ? std::optional(*std::move(why)) : std::nullopt;
  }

  RuntimeFlag runtime_;
  ChangeFlags change_;
  Revocation what_;
};

class ForgetListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override { store_.DeclareToWrite(flags); }

  Result<ExitCode> Run(Output& out) override {
    return WithStore(ObserveStore(store_, {.shows_any_age = true}),
                     [&](NodeStore& store) -> Result<ExitCode> {
                       const auto all = TRY(store.Call(ListRevocations()));
                       auto names = TRY(HandlerNames::Of(store));
                       Write(all, names, out);
                       return ExitCode::kYes;
                     });
  }

 private:
  static void Write(const ListRevocations::Answer& all, const HandlerNames& names, Output& out) {
    std::vector<std::vector<std::string>> rows;
    for (const Revocation& one : all.revocations) {
      rows.push_back({std::string(WordOf(one.kind)), TextOf(one, names), out.TimeText(one.since),
                      one.unfinished ? "not taken out yet" : ""});
    }
    out.WriteJson(JsonOf(all));
    out.WriteTable({"KIND", "WHAT", "SINCE", ""}, rows, Output::Names::kNone);
  }
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
come back by a pull that began before, a restored backup or an import, before the node
has run for 30 days. Equal credentials under other names still open what they opened. A
kubelet without waybill keeps what it has in memory until it restarts.)",
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

}  // namespace waybill::cli
