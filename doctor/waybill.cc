// The checks of waybill itself.

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "doctor/checks.h"
#include "store/base/files.h"
#include "store/base/json_value.h"
#include "store/base/timestamp.h"
#include "store/maintenance.h"

namespace waybill::doctor {
namespace {

using internal::FieldAt, internal::Json, internal::ParseJson, internal::TextAt;

// After that a backup is worth nothing: it distrusts itself, and knows none of the images since.
constexpr std::int64_t kBackupIsOld = std::int64_t{30} * 24 * 3600;
constexpr const char* kLibraryFolders[] = {"/usr/lib", "/usr/lib/x86_64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu", "/usr/local/lib"};

std::string GuardFolder(const Node& node) {
  return node.kubelet_directory + "/image_manager/waybill-guard";
}

// What a guard says, and whether it runs.
struct Guard {
  Json status = {};  // null: there never was one
  Result<bool> runs = false;
};
Guard GuardOf(const Node& node) {
  // One that stands aside has its own folder (guard/aside.h).
  std::string folder = node.kubelet_directory + "/waybill-guard";
  if (!node.IsLocked(folder + "/lock").value_or(false)) folder = GuardFolder(node);
  const auto text = node.Read(folder + "/status.json");
  return {text ? ParseJson(*text) : Json(), node.IsLocked(folder + "/lock")};
}

bool IsSame(const Node& node, const std::string& a, const std::string& b) {
  const auto one = node.files.Resolve(a);
  const auto other = node.files.Resolve(b);
  return one && other && internal::IsSameFile(*one, *other);
}

// What a store that is gone left in the kubelet's directory.
void LookForFormerStore(const Node& node, Findings& findings) {
  const std::string& kubelet = node.kubelet_directory;
  const std::string then = " (docs/operations.md, A lost node)";
  for (const std::string& witness :
       {GuardFolder(node) + "/witness", kubelet + "/image_manager/waybill"}) {
    if (!node.Has(witness)) continue;
    findings.push_back(
        Warn("a former store left its witness " + witness +
                 ", and is gone, as after a loss: the next one will distrust itself",
             "if it was lost: mkdir -m 0700 STORE && waybill restore --store STORE BACKUP; if it "
             "was removed on purpose: rm -f " +
                 witness + " && setfattr -x user.waybill " + kubelet + then));
    return;
  }
  const auto real = node.files.Resolve(kubelet);
  if (!real || !node.kernel.was_used(*real)) return;
  findings.push_back(
      Warn("waybill was used on " + kubelet +
               " (its attribute user.waybill), and neither its store nor a witness is left: the "
               "next guard closes what nobody knows",
           "if that was on purpose: setfattr -x user.waybill " + kubelet + then));
}

void LookAtBackups(const Node& node, Findings& findings) {
  const auto directory = node.files.Resolve(node.store);
  const auto backups = directory ? BackupsOf(*directory) : directory.error();
  if (!backups) findings.push_back(Unknown(backups.error()));
  struct stat status = {};
  if (!backups || backups->empty() || ::stat(backups->front().path.c_str(), &status) != 0) return;
  const std::int64_t made = status.st_mtim.tv_sec;
  if (made + kBackupIsOld >= node.kernel.now().seconds) return;
  findings.push_back(Warn("the newest backup is of " +
                              FormatTimestamp(Timestamp{.seconds = made}).substr(0, 10) +
                              ", and knows no image since",
                          "make one before the next upgrade: waybill backup FILE"));
}

// The command, the guard and the library are of one release.
void LookAtVersions(const Node& node, const Guard& guard, Findings& findings) {
  const std::string& own = node.options.waybill_version;
  const std::string guards = guard.runs.value_or(false) ? TextAt(guard.status, "version") : "";
  if (!guards.empty() && guards != own) {
    findings.push_back(Warn("the guard that runs is " + guards + ", this command " + own,
                            "systemctl restart waybill-guard"));
  }
  for (const std::string folder : kLibraryFolders) {
    constexpr std::string_view kLibrary = "libwaybill.so.";
    const auto names = node.files.List(folder);
    // Those of other series may be installed beside it.
    if (!names || std::ranges::count(*names, std::string(kLibrary) + own) != 0) continue;
    for (const std::string& name : *names) {
      const std::string version = name.starts_with(kLibrary) ? name.substr(kLibrary.size()) : "";
      if (std::ranges::count(version, '.') != 2) continue;
      findings.push_back(
          Warn("the library in " + folder + " is " + version + ", this command " + own,
               "install the packages of one release"));
    }
  }
}

}  // namespace

Findings WaybillStoreCheck(const Node& node) {
  Findings findings;
  if (node.store.empty()) {
    // One in another place is waybill-guard's to name.
    const Guard guard = GuardOf(node);
    if (node.Has(TextAt(guard.status, "store") + "/data.mdb")) return {Ok("the guard's")};
    findings.push_back(
        UntilLoss("no store: what the kubelet forgets becomes usable by every pod",
                  "waybill install --restart-kubelet (docs/operations.md, Install)"));
    LookForFormerStore(node, findings);
    return findings;
  }
  const auto& facts = node.facts;
  if (!facts) {
    const Error& error = facts.error();
    const bool is_lost = error.code == ErrorCode::kDamaged ||
                         error.code == ErrorCode::kNewerSchema ||
                         error.code == ErrorCode::kUnsafePath || error.code == ErrorCode::kNotFound;
    if (!is_lost) return {Unknown(error)};
    return {Fail(error.message, error.hint.empty() ? "see waybill verify" : error.hint)};
  }
  if (!facts->distrusted_because.empty()) {
    findings.push_back(Warn("the store distrusts itself: " + facts->distrusted_because,
                            "see waybill trust; until it is cleared, preloaded images wait"));
  }
  if (facts->witness_in_store) {
    findings.push_back(Warn("its witness lies in the store's directory, and is lost with it",
                            "put it elsewhere: waybill start --witness FILE"));
  } else if (!facts->copy_of.empty()) {
    findings.push_back(
        Warn("its witness is that of " + facts->copy_of + ", from which this store was copied",
             "give this store its own: waybill start --witness FILE"));
  }
  LookAtBackups(node, findings);
  if (!findings.empty()) return findings;
  return {Ok(node.store + ", schema " + std::to_string(facts->schema_version))};
}

Findings WaybillGuardCheck(const Node& node) {
  const Guard guard = GuardOf(node);
  Findings findings;
  const auto say = [&](Finding finding) {
    findings.insert(findings.begin(), std::move(finding));
    return findings;
  };
  LookAtVersions(node, guard, findings);
  const auto& inside = node.is_inside;
  if (!inside || !guard.runs) return say(Unknown(inside ? guard.runs.error() : inside.error()));
  if (*inside && *guard.runs) {
    return say(Fail("a guard runs beside a kubelet that has waybill inside",
                    "systemctl disable --now waybill-guard"));
  }
  // Each kubelet's guard says which store it has.
  std::set<std::string> owners;
  for (const Process& kubelet : node.kubelets) {
    const std::string directory = kubelet.RootDirectory();
    const auto text = node.Read(directory + "/image_manager/waybill-guard/status.json");
    const std::string store = text ? TextAt(ParseJson(*text), "store") : "";
    if (!store.empty() && IsSame(node, store, node.store)) owners.insert(directory);
  }
  if (owners.size() > 1) {
    return say(
        Fail("the kubelets of " + *owners.begin() + " and " + *owners.rbegin() + " share one store",
             "give each its own: a record of one must not open an image for the other"));
  }
  if (*inside) {
    return findings.empty() ? say(Ok("none is needed: waybill is inside the kubelet")) : findings;
  }
  const std::string store = TextAt(guard.status, "store");
  if (!*guard.runs) {
    return say(
        UntilLoss("no guard runs: what the kubelet forgets stays forgotten",
                  guard.status.is_null() && node.store.empty()
                      ? "waybill install --restart-kubelet"
                      : "systemctl enable --now waybill-guard && systemctl restart kubelet"));
  }
  if (guard.status.is_null()) return say(Unknown("a guard runs, and its status can't be read"));
  if (!node.store.empty() && !store.empty() && node.Has(store) &&
      !IsSame(node, store, node.store)) {
    return say(Fail("the guard that runs has its store in " + store + ", not in " + node.store,
                    "name the same store in /etc/waybill/config.toml"));
  }
  if (const std::string why = TextAt(guard.status, "notProtected"); !why.empty()) {
    return say(Fail("it protects nothing: " + why,
                    "let root own the kubelet's folders and links, and nobody else write there; "
                    "then restart the kubelet"));
  }
  const Json* const before = FieldAt(guard.status, "kubeletRanBefore");
  if (before != nullptr && *before == true) {
    return say(UntilLoss("it came after the kubelet, which goes by what it had in memory",
                         "restart the kubelet once: systemctl restart kubelet"));
  }
  if (const std::string problem = TextAt(guard.status, "runtimeError"); !problem.empty()) {
    return say(Warn("it can't ask the runtime: " + problem, "see that the runtime answers"));
  }
  if (!findings.empty()) return findings;
  return {Ok("runs since " + TextAt(guard.status, "since").substr(0, 10))};
}

}  // namespace waybill::doctor
