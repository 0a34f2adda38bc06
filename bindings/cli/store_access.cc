#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

Result<std::unique_ptr<NodeStore>> WithHint(Result<std::unique_ptr<NodeStore>> store) {
  if (!store) return WithStartHint(std::move(store.error()));
  return store;
}

}  // namespace

Result<std::unique_ptr<NodeStore>> OwnStore(const StoreFlags& flags,
                                            const VerificationPolicy& policy,
                                            const UserNamespaceOptions& user_namespaces) {
  auto store = WithHint(NodeStore::Open({.directory = flags.store,
                                         .create_if_missing = false,
                                         .witness = Witness::Remembered(),
                                         .rules = flags.rules,
                                         .policy = policy,
                                         .user_namespaces = user_namespaces,
                                         .migrate = false}));
  if (!store) return store;
  const RecoveryReport& report = (*store)->recovery_report();
  for (const std::string& mended : report.mended) {
    Warn(mended, "find out who else could read or change it");
  }
  if (report.set_aside) {
    Warn(
        "the store was damaged; what was sound in it was carried over, and the damaged one is at " +
            report.set_aside_path +
            "; images without a record must now be pulled before a pod may use them",
        "see waybill trust --store " + ShellWord(flags.store));
  } else if (!report.findings.empty()) {
    Warn(report.findings.front() +
             "; images without a record must now be pulled before a pod may use them",
         "see waybill trust --store " + ShellWord(flags.store));
  }
  return store;
}

Result<std::unique_ptr<NodeStore>> ObserveStore(const StoreFlags& flags,
                                                const VerificationPolicy& policy,
                                                const UserNamespaceOptions& user_namespaces) {
  return WithHint(NodeStore::Observe({.directory = flags.store,
                                      .rules = flags.rules,
                                      .policy = policy,
                                      .user_namespaces = user_namespaces}));
}

Result<ExitCode> PrintPruneToken(const StoreFlags& flags, Output& out) {
  auto token = WithStore(OwnStore(flags), &NodeStore::BeginPrune);
  if (!token) return token.error();
  if (out.json()) {
    out.WriteJson({{"token", token->value}});
  } else {
    out.Line("{}", token->value);
  }
  return ExitCode::kYes;
}

Error WithStartHint(Error error) {
  if (error.code == ErrorCode::kNotFound && !error.has_hint()) {
    error.hint_code = Hint::kCreate;
  }
  return error;
}

std::string ClearDistrustCommand(const std::string& store) {
  return "waybill trust --store " + ShellWord(store) + " --clear --reason '…'";
}

}  // namespace waybill::cli
