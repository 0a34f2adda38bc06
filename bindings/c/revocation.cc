// Forgetting credentials, and when each was proven.

#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

namespace {

static_assert(WAYBILL_REVOKED_SECRET == static_cast<int>(waybill::RevocationKind::kSecret));
static_assert(WAYBILL_REVOKED_CREDENTIAL == static_cast<int>(waybill::RevocationKind::kCredential));

// Calls `forget` with what `convert(Arguments&)` returns.
template <typename Convert, typename Forget>
waybill_code ForgetIn(waybill_store* store, const waybill_change_options* options,
                      waybill_forget_report** report, waybill_error** error, const Convert& convert,
                      const Forget& forget) noexcept {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto what = convert(arguments);
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give((node_store.*forget)(what, how), report);
  });
}

std::vector<waybill::CredentialName> ToNames(const waybill_credential_name* names,
                                             std::size_t count, const char* what,
                                             Arguments& arguments) {
  std::vector<waybill::CredentialName> to;
  for (const auto& name : arguments.Array(names, count, what)) {
    to.push_back(ToCredentialName(name, arguments));
  }
  return to;
}

}  // namespace

waybill_code waybill_forget_secret(waybill_store* store, waybill_credential_name who,
                                   const waybill_change_options* options,
                                   waybill_forget_report** report, waybill_error** error) {
  return ForgetIn(
      store, options, report, error,
      [&](Arguments& arguments) { return ToCredentialName(who, arguments); },
      &NodeStore::ForgetSecret);
}

waybill_code waybill_forget_service_account(waybill_store* store, waybill_credential_name who,
                                            const waybill_change_options* options,
                                            waybill_forget_report** report, waybill_error** error) {
  return ForgetIn(
      store, options, report, error,
      [&](Arguments& arguments) { return ToCredentialName(who, arguments); },
      &NodeStore::ForgetServiceAccount);
}

waybill_code waybill_forget_namespace(waybill_store* store, waybill_string namespace_name,
                                      const waybill_change_options* options,
                                      waybill_forget_report** report, waybill_error** error) {
  return ForgetIn(
      store, options, report, error,
      [&](Arguments& arguments) { return arguments.Text(namespace_name, "namespace_name"); },
      &NodeStore::ForgetNamespace);
}

waybill_code waybill_forget_image(waybill_store* store, waybill_image_copy copy,
                                  const waybill_change_options* options,
                                  waybill_forget_report** report, waybill_error** error) {
  return ForgetIn(
      store, options, report, error,
      [&](Arguments& arguments) { return ToImageCopy(copy, arguments); }, &NodeStore::ForgetImage);
}

waybill_code waybill_forget_credential(waybill_store* store, waybill_string credential_hash,
                                       const waybill_change_options* options,
                                       waybill_forget_report** report, waybill_error** error) {
  return ForgetIn(
      store, options, report, error,
      [&](Arguments& arguments) { return arguments.Text(credential_hash, "credential_hash"); },
      &NodeStore::ForgetCredential);
}

waybill_code waybill_reconcile(waybill_store* store, const waybill_existing_credentials* truth,
                               waybill_list_token token, const waybill_change_options* options,
                               waybill_reconcile_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto t = arguments.Options(truth, "truth");
    const waybill::ExistingCredentials exists{
        .secrets = ToNames(t.secrets, t.secret_count, "secrets", arguments),
        .service_accounts =
            ToNames(t.service_accounts, t.service_account_count, "service_accounts", arguments)};
    const auto how = ToChangeOptions(options, arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Reconcile(exists, ToToken(token), how), report);
  });
}

waybill_code waybill_tidy_up(waybill_store* store, waybill_error** error) {
  return OnStore(store, error, [](NodeStore& node_store, Arguments&) -> Result<void> {
    return node_store.TidyUp();
  });
}

waybill_string waybill_revocation_kind_name(int32_t kind) {
  if (kind < WAYBILL_REVOKED_SECRET || kind > WAYBILL_REVOKED_CREDENTIAL) return Borrow("");
  return Borrow(waybill::RevocationKindName(static_cast<waybill::RevocationKind>(kind)));
}

waybill_code waybill_list_revocations(waybill_store* store, waybill_revocations** revocations,
                                      waybill_error** error) {
  return Query(store, revocations, "revocations", error, &NodeStore::ListRevocations);
}

waybill_code waybill_get_proven_record(waybill_store* store, waybill_image_copy copy,
                                       waybill_proven_record** record, waybill_error** error) {
  if (record != nullptr) *record = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto image_copy = ToImageCopy(copy, arguments);
    arguments.Given(record, "record");
    if (!arguments.ok()) return arguments.error();
    const auto got = node_store.GetRecord(image_copy);
    if (!got) return got.error();
    *record = NewResult<waybill_proven_record>(
        [&](waybill_proven_record& to, Memory& memory) { to = ToProvenC(*got, memory); });
    return {};
  });
}

waybill_code waybill_list_proven_records(waybill_store* store, waybill_proven_records** records,
                                         waybill_error** error) {
  if (records != nullptr) *records = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    if (!arguments.Given(records, "records")) return arguments.error();
    const auto got = node_store.ListRecords();
    if (!got) return got.error();
    *records = NewResult<waybill_proven_records>([&](waybill_proven_records& to, Memory& memory) {
      to = {CopyEach<waybill_proven_record>(*got, memory, ToProvenC), got->size()};
    });
    return {};
  });
}
