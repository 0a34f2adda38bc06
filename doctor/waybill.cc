// The checks of waybill itself.

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>

#include "doctor/checks.h"
#include "store/base/files.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "store/maintenance.h"

namespace waybill::doctor {
namespace {

// After that a backup is worth nothing: it distrusts itself, and knows none of the images since.
constexpr std::int64_t kBackupIsOld = std::int64_t{30} * 24 * 3600;
constexpr const char* kLibraryFolders[] = {"/usr/lib", "/usr/lib/x86_64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu", "/usr/local/lib"};
constexpr std::string_view kLibrary = "libwaybill.so.";

// What a store that is gone left in the kubelet's directory.
void LookForFormerStore(const Node& node, Report& report) {
  const std::string& kubelet = node.kubelet_directory;
  const std::string manager = kubelet + "/image_manager";
  const std::string then = " (docs/operations.md, A lost node)";
  for (const std::string& witness : {manager + "/waybill-guard/witness", manager + "/waybill"}) {
    if (!node.MayHave(witness)) continue;
    report.Warn("a former store left its witness " + witness +
                    ", and is gone, as after a loss: the next one will distrust itself",
                "if it was lost: mkdir -m 0700 STORE && waybill restore --store STORE BACKUP; if "
                "it was removed on purpose: rm -f " +
                    witness + " && setfattr -x user.waybill " + kubelet + then);
    return;
  }
  const auto real = node.files.Resolve(kubelet);
  if (!real || !node.kernel.was_used(*real)) return;
  report.Warn("waybill was used on " + kubelet +
                  " (its attribute user.waybill), and neither its store nor a witness is left: the "
                  "next guard closes what nobody knows",
              "if that was on purpose: setfattr -x user.waybill " + kubelet + then);
}

Result<void> LookAtBackups(const Node& node, Report& report) {
  const auto backups = TRY(BackupsOf(TRY(node.files.Resolve(node.store))));
  struct stat status = {};
  if (backups.empty() || ::stat(backups.front().path.c_str(), &status) != 0) return {};
  const std::int64_t made = status.st_mtim.tv_sec;
  if (made + kBackupIsOld >= node.kernel.now().seconds) return {};
  return report.Warn("the newest backup is of " +
                         FormatTimestamp(Timestamp{.seconds = made}).substr(0, 10) +
                         ", and knows no image since",
                     "make one before the next upgrade: waybill backup FILE");
}

// The command, the guard and the library are of one release.
void LookAtVersions(const Node& node, Report& report) {
  const std::string& own = node.options.waybill_version;
  if (node.guard && node.guard_runs.value_or(false) && node.guard->version != own) {
    report.Warn("the guard that runs is " + node.guard->version + ", this command " + own,
                "systemctl restart waybill-guard");
  }
  for (const std::string folder : kLibraryFolders) {
    const auto names = node.NamesIn(folder);
    // Those of other series may be installed beside it.
    if (std::ranges::count(names, std::string(kLibrary) + own) != 0) continue;
    for (const std::string& name : names) {
      if (!name.starts_with(kLibrary) || std::ranges::count(name, '.') != 4) continue;
      report.Warn("the library in " + folder + " is " + name.substr(kLibrary.size()) +
                      ", this command " + own,
                  "install the packages of one release");
    }
  }
}

// Each kubelet's guard says which store it has.
std::set<std::string> OwnersOf(const Node& node, const std::string& store) {
  std::set<std::string> owners;
  for (const Process& kubelet : node.kubelets) {
    const std::string directory = kubelet.RootDirectory();
    const auto its = node.StatusOfGuard(directory + "/image_manager/waybill-guard");
    if (its && node.IsSame(its->store, store)) owners.insert(directory);
  }
  return owners;
}

}  // namespace

Result<void> WaybillStoreCheck(const Node& node, Report& report) {
  if (node.store.empty()) {
    report.UntilLoss("no store: what the kubelet forgets becomes usable by every pod",
                     "waybill install --restart-kubelet (docs/operations.md, Install)");
    LookForFormerStore(node, report);
    return {};
  }
  const auto& facts = node.facts;
  if (!facts) {
    const Error& error = facts.error();
    const bool is_lost = error.code == ErrorCode::kDamaged ||
                         error.code == ErrorCode::kNewerSchema ||
                         error.code == ErrorCode::kUnsafePath || error.code == ErrorCode::kNotFound;
    if (!is_lost) return error;
    return report.Fail(error.message, error.hint.empty() ? "see waybill verify" : error.hint);
  }
  if (!facts->distrusted_because.empty()) {
    report.Warn("the store distrusts itself: " + facts->distrusted_because,
                "see waybill trust; until it is cleared, preloaded images wait");
  }
  if (facts->witness_in_store) {
    report.Warn("its witness lies in the store's directory, and is lost with it",
                "put it elsewhere: waybill start --witness FILE");
  } else if (!facts->copy_of.empty()) {
    report.Warn("its witness is that of " + facts->copy_of + ", from which this store was copied",
                "give this store its own: waybill start --witness FILE");
  }
  TRY(LookAtBackups(node, report));
  return report.Ok(node.store + ", schema " + std::to_string(facts->schema_version));
}

Result<void> WaybillGuardCheck(const Node& node, Report& report) {
  LookAtVersions(node, report);
  const bool inside = TRY(node.is_inside);
  const bool runs = TRY(node.guard_runs);
  if (inside && runs) {
    return report.Fail("a guard runs beside a kubelet that has waybill inside",
                       "systemctl disable --now waybill-guard");
  }
  const auto owners = OwnersOf(node, node.store);
  if (owners.size() > 1) {
    return report.Fail(
        "the kubelets of " + *owners.begin() + " and " + *owners.rbegin() + " share one store",
        "give each its own: a record of one must not open an image for the other");
  }
  if (inside) return report.Ok("none is needed: waybill is inside the kubelet");
  const auto& guard = node.guard;
  if (!runs) {
    const bool never = !guard && guard.error().code == ErrorCode::kNotFound;
    return report.UntilLoss(
        "no guard runs: what the kubelet forgets stays forgotten",
        never && node.store.empty()
            ? "waybill install --restart-kubelet"
            : "systemctl enable --now waybill-guard && systemctl restart kubelet");
  }
  if (!guard) {
    return report.Unknown("a guard runs, and its status can't be read: " + guard.error().message);
  }
  if (!node.store.empty() && node.MayHave(guard->store) && !node.IsSame(guard->store, node.store)) {
    return report.Fail(
        "the guard that runs has its store in " + guard->store + ", not in " + node.store,
        "name the same store in /etc/waybill/config.toml");
  }
  if (!guard->not_protected.empty()) {
    return report.Fail("it protects nothing: " + guard->not_protected,
                       "let root own the kubelet's folders and links, and nobody else write there; "
                       "then restart the kubelet");
  }
  if (!guard->kubelet_ran_before || guard->since.empty()) {
    return report.Unknown("a guard runs, and does not say whether it came after the kubelet");
  }
  if (*guard->kubelet_ran_before) {
    return report.UntilLoss("it came after the kubelet, which goes by what it had in memory",
                            "restart the kubelet once: systemctl restart kubelet");
  }
  if (!guard->runtime_error.empty()) {
    return report.Warn("it can't ask the runtime: " + guard->runtime_error,
                       "see that the runtime answers");
  }
  return report.Ok("runs since " + guard->since.substr(0, 10));
}

}  // namespace waybill::doctor
