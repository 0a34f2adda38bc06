#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

Result<std::unique_ptr<NodeStore>> WithHint(Result<std::unique_ptr<NodeStore>> store) {
  if (!store) return WithStartHint(std::move(store.error()));
  return store;
}

}  // namespace

Result<std::unique_ptr<NodeStore>> OwnStore(const StoreFlags& flags, const Opening& how) {
  auto store = WithHint(NodeStore::Open({.directory = flags.store,
                                         .create_if_missing = false,
                                         .witness = Witness::Remembered(),
                                         .rules = flags.rules,
                                         .policy = how.policy,
                                         .evidence = how.evidence,
                                         .continues_pulls = true,
                                         .user_namespaces = how.user_namespaces,
                                         .migrate = false}));
  if (!store) return store;
  const RecoveryReport& report = (*store)->recovery_report();
  for (const std::string& mended : report.mended) {
    Warn(mended, "find out who else could read or change it");
  }
  if (report.set_aside) {
    Warn(
        "the store was damaged; what was sound in it was carried over, and the damaged one is at " +
            report.set_aside_path + "; " + std::string(kDistrustMeans),
        "see waybill trust --store " + ShellWord(flags.store));
  } else if (!report.findings.empty()) {
    Warn(report.findings.front() + "; " + std::string(kDistrustMeans),
         "see waybill trust --store " + ShellWord(flags.store));
  }
  return store;
}

Result<std::unique_ptr<NodeStore>> ObserveStore(const StoreFlags& flags, const Opening& how) {
  return WithHint(NodeStore::Observe({.directory = flags.store,
                                      .rules = flags.rules,
                                      .policy = how.policy,
                                      .user_namespaces = how.user_namespaces,
                                      .short_names = how.evidence.short_names}));
}

Error WithStartHint(Error error) {
  if (error.code == ErrorCode::kNotFound && !error.has_hint()) {
    error.hint_code = Hint::kCreate;
  }
  return error;
}

std::string ClearDistrustHint(const std::string& store) {
  return "to clear that: waybill trust --store " + ShellWord(store) +
         " --clear --reason '…' --images FILE, with what `crictl images -o json` prints; its "
         "images without a record are closed then, or with --adopt, which states that no pod's "
         "credentials brought them, known as preloaded";
}

}  // namespace waybill::cli
