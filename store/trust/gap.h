// Images that came to the node while nobody recorded it (KEP-2535, "What happens if we reenable the
// feature"; OpenOptions::gap).

#ifndef WAYBILL_STORE_TRUST_GAP_H_
#define WAYBILL_STORE_TRUST_GAP_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "store/database/store_txn.h"
#include "waybill/node_store.h"
#include "waybill/report.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

// Where the witness in a kubelet directory lies: the store that has it there took the directory
// over.
std::filesystem::path WitnessIn(const std::filesystem::path& kubelet_directory);

// Why the store is distrustful from the moment that a gap is found to the one that it is closed, so
// that a crash in between forgets nothing.

// At the first take-over of a kubelet directory: pods, but no folder for records, so the kubelet
// ran without the feature. Empty: no gap, or not to be looked for. kIo: nobody can tell.
Result<std::string> FirstGap(const OpenOptions& options);
// At a later one: `written` names a file that a kubelet wrote since.
std::string GapOf(const std::string& written);
// As an operator says.
std::string GapByWord();

bool IsGap(std::string_view reason);

// The gap that is a reason why the store is distrustful; empty: none.
Result<std::string> GapInForce(const StoreTxn& txn);
// Makes it one, beside others, unless there is one in force: whoever lets go of those must not let
// go of this unseen.
Result<void> NoteGap(StoreTxn& txn, const std::string& gap);

// Gives each image without a record, of any handler, one without credentials, and takes back the
// distrust of a gap; other reasons stay.
Result<void> CloseGap(StoreTxn& txn, const std::vector<ImageOnNode>& images,
                      RecoveryReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_TRUST_GAP_H_
