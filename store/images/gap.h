// Images that were pulled to the node unrecorded (KEP-2535, "What happens if we reenable the
// feature"; NodeStoreOptions::gap), and imports that are not finished.

#ifndef WAYBILL_STORE_IMAGES_GAP_H_
#define WAYBILL_STORE_IMAGES_GAP_H_

#include <filesystem>
#include <string>

#include "store/base/options.h"
#include "store/disk/trust.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// The place of the witness in a kubelet directory. A store that has it there took the directory
// over.
std::filesystem::path WitnessIn(const std::filesystem::path& kubelet_directory);

// Whether a kubelet ever used the directory: it has folders for records, or pods. kIo: unknown.
Result<bool> KubeletHasRun(const std::filesystem::path& kubelet_directory);

// Whether to look in the kubelet directory, if any, for signs of unrecorded pulls.
inline bool DetectsGap(const NodeStoreOptions& options) {
  return options.gap == Gap::kDetect && options.rules == Mode::kStrict;
}

// For a first take-over of the kubelet directory: whether the kubelet may have begun pulls that it
// cut short, of which it has deleted the intents. What they bring later must not pass for
// preloaded, so an open pull of anything stands for them.
Result<bool> TakesOverUsedDirectory(const NodeStoreOptions& options);

// Until an import has finished, an image whose record is not imported yet must not pass for
// preloaded.
Distrust ImportUnfinished(const std::filesystem::path& kubelet_directory);
// The import finished: takes that reason back, whatever the spelling of the path. `uncut`: this
// opening noted the reason, too, so there is nothing to tell of: its entry goes, if it is the last.
Result<void> EndImport(StoreTxn& txn, const std::filesystem::path& kubelet_directory,
                       bool uncut = false);

// Why the store is distrustful while a gap is open. The reason is stored, so that a crash does not
// lose it.

// `why`: what says so; `written`: a file of a kubelet directory that was taken over before.
Distrust GapBecause(const std::string& why);
inline Distrust GapOfFile(const std::string& written) {
  return GapBecause("a kubelet wrote " + written + " since its records were taken over");
}

// The open gap that makes the store distrustful; empty: no gap is open.
Result<Distrust> GapInForce(const StoreTxn& txn);
// Adds the gap to the reasons of distrust, unless a gap is open already: clearing the other reasons
// must not clear this one unseen.
Result<void> NoteGap(StoreTxn& txn, const Distrust& gap);

// The reason without the advice that it ends with.
std::string WithoutAdvice(const std::string& gap_reason);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_GAP_H_
