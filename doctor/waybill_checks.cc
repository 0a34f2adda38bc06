// The checks of waybill itself.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "doctor/checks.h"
#include "doctor/text.h"
#include "store/base/files.h"
#include "store/base/json_value.h"
#include "store/maintenance.h"

namespace waybill::doctor {
namespace {

using internal::Json;

// After that a backup is worth nothing: it distrusts itself, and knows none of the images since.
constexpr std::int64_t kBackupIsOld = std::int64_t{30} * 24 * 3600;
constexpr const char* kLibraryFolders[] = {"/usr/lib", "/usr/lib/x86_64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu", "/usr/local/lib"};

std::string GuardFolder(const Node& node) {
  return node.kubelet_directory() + "/image_manager/waybill-guard";
}

bool IsLocked(const Node& node, const std::string& path) {
  const auto real = node.Resolve(path);
  return real && node.kernel().is_locked(*real).value_or(false);
}

// The folder of the guard that runs, or ran: one that stands aside has its own (guard/aside.h).
std::string FolderInUse(const Node& node) {
  const std::string aside = node.kubelet_directory() + "/waybill-guard";
  return IsLocked(node, aside + "/lock") ? aside : GuardFolder(node);
}

// What the guard said last. Null: there never was one.
Json GuardStatus(const Node& node) {
  const auto text = node.Read(FolderInUse(node) + "/status.json");
  return text ? Json::Parse(*text) : Json();
}

bool GuardRuns(const Node& node) { return IsLocked(node, FolderInUse(node) + "/lock"); }

}  // namespace

Findings WaybillStoreCheck(const Node& node) {
  if (node.store().empty()) {
    return {Warn("there is none: the kubelet alone forgets proofs, and opens what it forgot",
                 "install waybill, and enable waybill-guard (docs/operations.md, Install)")};
  }
  const auto facts = node.ReadStore();
  if (facts) return {Ok(node.store() + ", schema " + std::to_string(facts->schema_version))};
  const Error& error = facts.error();
  switch (error.code) {
    case ErrorCode::kDamaged:
    case ErrorCode::kNewerSchema:
    case ErrorCode::kUnsafePath:
    case ErrorCode::kNotFound:
      return {Fail(error.message, error.hint.empty() ? "see waybill verify" : error.hint)};
    default:
      return {Unknown(error.message, error.hint.empty() ? "run it as root" : error.hint)};
  }
}

Findings WaybillTrustCheck(const Node& node) {
  const auto facts = node.ReadStore();
  if (!facts) return {};  // waybill-store says why
  if (facts->distrusted_because.empty()) return {Ok("trusts itself")};
  return {Warn("the store distrusts itself: " + facts->distrusted_because,
               "see waybill trust; until it is cleared, preloaded images wait")};
}

// What a store that is gone left in the kubelet's directory; empty: nothing.
std::string LeftOfFormerStore(const Node& node) {
  for (const std::string& witness :
       {GuardFolder(node) + "/witness", node.kubelet_directory() + "/image_manager/waybill"}) {
    if (node.Has(witness)) return witness;
  }
  return {};
}

Findings FormerStoreCheck(const Node& node) {
  const std::string guards = GuardStatus(node).TextAt("store");
  if (!guards.empty() && node.Has(guards + "/data.mdb")) return {};  // waybill-owner says where
  const std::string witness = LeftOfFormerStore(node);
  const std::string& kubelet = node.kubelet_directory();
  const std::string then = " (docs/operations.md, A lost node)";
  if (!witness.empty()) {
    return {Warn("a former store left its witness " + witness +
                     ", and is gone, as after a loss: the next one will distrust itself",
                 "if it was lost: mkdir -m 0700 STORE && waybill restore --store STORE BACKUP; if "
                 "it was removed on purpose: rm -f " +
                     witness + " && setfattr -x user.waybill " + kubelet + then)};
  }
  const auto real = node.Resolve(kubelet);
  if (!real || !node.kernel().was_used(*real)) return {};
  return {
      Warn("waybill was used on " + kubelet +
               " (its attribute user.waybill), and neither its store nor a witness is left: the "
               "next guard closes what nobody knows",
           "if that was on purpose: setfattr -x user.waybill " + kubelet + then)};
}

Findings WaybillWitnessCheck(const Node& node) {
  if (node.store().empty()) return FormerStoreCheck(node);
  const auto facts = node.ReadStore();
  if (!facts) return {};
  if (facts->witness_in_store) {
    return {Warn("it lies in the store's directory, and is lost with it",
                 "put it elsewhere: waybill start --witness FILE")};
  }
  if (!facts->copy_of.empty()) {
    return {Warn("it is that of " + facts->copy_of + ", from which this store was copied",
                 "give this store its own: waybill start --witness FILE")};
  }
  return {Ok("is there")};
}

Findings WaybillBackupCheck(const Node& node) {
  if (node.store().empty()) return {};
  const auto directory = node.Resolve(node.store());
  if (!directory) return {Unknown(directory.error())};
  const auto backups = BackupsOf(*directory);
  if (!backups) return {Unknown(backups.error())};
  if (backups->empty()) return {Ok("none in the store's directory")};
  const auto made = ChangedAt(backups->front().path);
  if (!made) return {Unknown(made.error())};
  if (made->seconds + kBackupIsOld < node.kernel().now().seconds) {
    return {Warn("the newest is of " + Day(*made) + ", and knows no image since",
                 "make one before the next upgrade: waybill backup FILE")};
  }
  return {Ok("the newest is of " + Day(*made))};
}

Findings WaybillGuardCheck(const Node& node) {
  if (node.IsInside()) return {Ok("none is needed: waybill is inside the kubelet")};
  const Json status = GuardStatus(node);
  if (!GuardRuns(node)) {
    if (node.store().empty() && status.is_null()) return {};  // waybill-store says so
    return {Fail("it does not run: what the kubelet forgets stays forgotten",
                 "systemctl enable --now waybill-guard && systemctl restart kubelet")};
  }
  if (const std::string why = status.TextAt("notProtected"); !why.empty()) {
    return {Fail("it protects nothing: " + why,
                 "let root own the kubelet's folders and links, and nobody else write there; then "
                 "restart the kubelet")};
  }
  if (status.Find("kubeletRanBefore") != nullptr && status.Find("kubeletRanBefore")->is_true()) {
    return {Warn("it came after the kubelet, which goes by what it had in memory",
                 "restart the kubelet once")};
  }
  if (const std::string problem = status.TextAt("runtimeError"); !problem.empty()) {
    return {Warn("it can't ask the runtime: " + problem, "see that the runtime answers")};
  }
  std::uint64_t holes = 0;
  if (const Json* const kinds = status.Find("holes")) {
    for (const auto& [kind, count] : kinds->items()) holes += kinds->NumberAt(kind);
  }
  return {Ok("runs since " + status.TextAt("since").substr(0, 10) + ", closed " +
             Count(holes, "hole"))};
}

Findings WaybillOwnerCheck(const Node& node) {
  if (node.IsInside() && GuardRuns(node)) {
    return {Fail("a guard runs beside a kubelet that has waybill inside",
                 "systemctl disable --now waybill-guard")};
  }
  // Each kubelet's guard says which store it has.
  std::vector<std::string> owners;
  std::set<std::string> seen;
  for (const KubeletProcess& kubelet : node.kubelets()) {
    const std::string directory = kubelet.RootDirectory();
    if (!seen.insert(directory).second) continue;
    const auto text = node.Read(directory + "/image_manager/waybill-guard/status.json");
    if (!text) continue;
    const auto its = node.Resolve(Json::Parse(*text).TextAt("store"));
    const auto ours = node.Resolve(node.store());
    if (its && ours && internal::IsSameFile(*its, *ours)) owners.push_back(directory);
  }
  if (owners.size() > 1) {
    return {Fail("the kubelets of " + owners[0] + " and " + owners[1] + " share one store",
                 "give each its own: a record of one must not open an image for the other")};
  }
  const std::string named = GuardStatus(node).TextAt("store");
  if (GuardRuns(node) && !node.store().empty() && !named.empty()) {
    const auto its = node.Resolve(named);
    const auto ours = node.Resolve(node.store());
    if (its && ours && !internal::IsSameFile(*its, *ours)) {
      return {Fail("the guard that runs has its store in " + named + ", not in " + node.store(),
                   "name the same store in /etc/waybill/config.toml")};
    }
  }
  if (node.store().empty()) return {};
  return {Ok(node.IsInside() ? "the kubelet" : GuardRuns(node) ? "the guard" : "nobody now")};
}

Findings WaybillVersionsCheck(const Node& node) {
  const std::string& own = node.waybill_version();
  const std::string guards = GuardRuns(node) ? GuardStatus(node).TextAt("version") : "";
  if (!guards.empty() && guards != own) {
    return {Warn("the guard that runs is " + guards + ", this command " + own,
                 "systemctl restart waybill-guard")};
  }
  for (const char* folder : kLibraryFolders) {
    const auto names = node.List(folder);
    if (!names) continue;
    constexpr std::string_view kLibrary = "libwaybill.so.";
    // Those of other series may be installed beside it.
    if (std::binary_search(names->begin(), names->end(), std::string(kLibrary) + own)) continue;
    for (const std::string& name : *names) {
      if (!name.starts_with(kLibrary)) continue;
      const std::string version = name.substr(kLibrary.size());
      if (std::count(version.begin(), version.end(), '.') != 2 || version == own) continue;
      return {
          Warn("the library in " + std::string(folder) + " is " + version + ", this command " + own,
               "install the packages of one release")};
    }
  }
  return {Ok(own)};
}

}  // namespace waybill::doctor
