#include "guard/opening.h"

#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>
#include <vector>

#include "guard/aside.h"
#include "store/base/files.h"
#include "store/base/try.h"
#include "store/for_the_guard.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kWitness = "witness";  // in kOwnFolder

// Marks a kubelet directory that waybill was used on: it outlives store, witness and image_manager,
// but not the directory. Its value is "lost" from the moment that nothing else was found until a
// store knows that. Best effort: not every file system has such attributes. A kubelet with waybill
// inside reads and sets it, too (bindings/go/kubelet/open.go).
constexpr const char* kWasHere = "user.waybill";
constexpr std::string_view kLost = "lost";

void SetWasHere(const std::filesystem::path& kubelet_directory, std::string_view value) {
  static_cast<void>(::setxattr(kubelet_directory.c_str(), kWasHere, value.data(), value.size(), 0));
}

// Whether nothing but that attribute is left.
Result<bool> OnlyWasHere(const std::filesystem::path& kubelet_directory) {
  char value[kLost.size()] = {};
  const auto length = ::getxattr(kubelet_directory.c_str(), kWasHere, value, sizeof(value));
  if (length < 0) return errno == ERANGE;  // a later version's
  if (std::string_view(value, static_cast<std::size_t>(length)) == kLost) return true;
  for (const std::filesystem::path& witness :
       {kubelet_directory / "image_manager" / kOwnFolder / kWitness,
        internal::WitnessIn(kubelet_directory)}) {
    auto there = TRY(internal::Exists(witness));
    if (there) return false;
  }
  return true;
}

// `there`: the store was made before.
NodeStoreOptions OptionsOf(const Life& life, bool there, bool lost_all) {
  NodeStoreOptions options = life.options.store;
  options.rules = Mode::kStrict;
  options.images_on_node.reset();
  options.kubelet_directory.clear();
  options.kubelet_files = life.options.kubelet_directory;
  // The guard looks itself for what was missed, and knows which pulls its kubelet goes on with. A
  // first start presumes; one after everything was lost knows that there were records.
  options.gap = lost_all ? Gap::kYes : Gap::kNo;
  options.ends_running_pulls = false;
  const std::filesystem::path pods = life.options.kubelet_directory / "pods";
  auto place = internal::FindPlace(pods);
  // Only at a first start: later a file may have been put back, and the store knows better.
  if (!there && place && !place->path.empty()) options.pods_directory = pods;
  return options;
}

Result<std::unique_ptr<NodeStore>> Open(const Life& life, NodeStoreOptions options, bool there) {
  const bool is_own_place = options.witness.kind() == Witness::Kind::kRemembered;
  if (is_own_place) {
    // Not at the place where `waybill start` puts the witness of its own store.
    options.witness = Witness::At(life.own() / kWitness);
  }
  auto store = NodeStore::Open(options);
  // Nobody chose that place, and no state of the disk may keep a kubelet from starting.
  if (!store && is_own_place && store.error().hint_code == Hint::kReplaceWitness) {
    life.Log(LogLevel::kWarning, "the store goes on with the witness that it had, if any: " +
                                     store.error().message + "; move that file away, then restart");
    options.witness = Witness::Remembered();
    store = NodeStore::Open(options);
    // Nothing says whether a store was here before.
    if (store && !there) {
      TRY((*store)->NoteLoss("its witness is not waybill's, so a store may have been here before"));
    }
  }
  if (store || store.error().code != ErrorCode::kOwned) return store;
  Error error = store.error();
  error.hint =
      "if another waybill command has it for a moment, try again; a kubelet with waybill inside "
      "needs no guard";
  return error;
}

// The store was lost, or somebody removed it.
void TellOfFormerStore(const Life& life, const std::filesystem::path& witness) {
  const std::string store = life.options.store.directory.string();
  const std::string stop =
      "systemctl stop kubelet waybill-guard && rm -rf " + store + " " + witness.string() + " && ";
  const std::string start = " && systemctl start waybill-guard kubelet";
  life.Log(LogLevel::kWarning,
           "a store was here before: its witness " + witness.string() +
               " is left, and the store is gone, as after a loss; this new one opens only what it "
               "knows");
  life.Log(LogLevel::kWarning, "if it was lost, put a backup back: " + stop + "mkdir -m 0700 " +
                                   store + " && waybill restore --store " + store + " BACKUP" +
                                   start);
  life.Log(LogLevel::kWarning,
           "if it was removed on purpose, begin anew: " + stop + "setfattr -x " + kWasHere + " " +
               life.options.kubelet_directory.string() + start +
               "; an image without a record is presumed preloaded then, but for first-start = "
               "\"close\"");
}

void TellOpened(const Life& life, bool lost_all) {
  const OpeningReport& report = life.store->recovery_report();
  for (const auto* lines : {&report.findings, &report.warnings, &report.import.problems}) {
    for (const std::string& line : *lines) life.Log(LogLevel::kWarning, line);
  }
  if (lost_all) {
    life.Log(LogLevel::kWarning,
             "waybill was used on " + life.options.kubelet_directory.string() +
                 " before, and neither its store nor its witness is left: images that nobody knows "
                 "are closed, and no first start presumes them; if it was emptied on purpose, open "
                 "them by `waybill allow IMAGE`");
  }
}

}  // namespace

bool WasUsed(const std::filesystem::path& kubelet_directory) {
  return ::getxattr(kubelet_directory.c_str(), kWasHere, nullptr, 0) >= 0;
}

Result<bool> LostAll(const std::filesystem::path& kubelet_directory) {
  auto lost = TRY(OnlyWasHere(kubelet_directory));
  if (lost) SetWasHere(kubelet_directory, kLost);
  return lost;
}

bool LostSomething(const NodeStore& store) {
  auto trust = store.GetTrust();
  if (!trust) return true;
  std::vector<std::pair<DegradedKind, std::string>> reasons;
  for (const DegradedEvent& event : trust->journal) {
    if (event.action == DegradedAction::kTrust) reasons.clear();
    if (event.action == DegradedAction::kDistrust) reasons.emplace_back(event.kind, event.reason);
    if (event.action == DegradedAction::kTakenBack) {
      std::erase(reasons, std::pair(event.kind, event.reason));
    }
  }
  return std::ranges::any_of(reasons, [](const auto& reason) {
    return reason.first != DegradedKind::kGap && reason.first != DegradedKind::kImportUnfinished;
  });
}

Result<Opened> OpenStore(Life& life, bool lost_all) {
  const std::filesystem::path& directory = life.options.store.directory;
  auto there = TRY(internal::Exists(directory / "data.mdb"));
  const Witness& named = life.options.store.witness;
  const std::filesystem::path witness = named.path().empty() ? life.own() / kWitness : named.path();
  const bool lost = internal::Exists(witness).value_or(false);
  Opened opened{.lost_all = lost_all && !there,
                .was_aside = Aside::MayHaveBeenHere(life.options.kubelet_directory)};
  life.store = TRY(Open(life, OptionsOf(life, there, opened.lost_all), there));
  SetWasHere(life.options.kubelet_directory, "");
  TellOpened(life, opened.lost_all);
  if (!there && lost && life.store->recovery_report().distrustful) {
    TellOfFormerStore(life, witness);
  }
  return opened;
}

}  // namespace waybill::guard
