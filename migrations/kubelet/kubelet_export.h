// Goes back to a kubelet without waybill: writes its own files (migrations/README.md, "Going
// back").

#ifndef WAYBILL_MIGRATIONS_KUBELET_KUBELET_EXPORT_H_
#define WAYBILL_MIGRATIONS_KUBELET_KUBELET_EXPORT_H_

#include <string>
#include <vector>

#include "store/database/small_records.h"
#include "waybill/maintenance.h"
#include "waybill/result.h"
#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace waybill::internal {

// What a store holds, of one moment.
struct ExportContent {
  std::vector<ImagePulledRecord> records;
  std::vector<ImagePullIntent> intents;
  std::vector<QuarantineEntry> quarantine;
  std::vector<ImagePreloadedRecord> preloaded;
  // The files that imports took: what became of them since is in the store.
  std::vector<ImportedFile> imported;
  std::vector<UserNamespaceAllocation> allocations;
  std::vector<HeldPod> held;
  bool distrustful = false;
  std::string distrust_reason;
  Timestamp now;  // of the records that are made, and in the name of what is kept aside
};

// Writes pods/<uid>/userns for each allocation (userns_export.h), then
// image_manager/{pulling,pulled,observed-preloaded}:
//
//   quarantine entry              a file that no kubelet can read, under its name, whatever else
//                                 there is of that ref or image
//   records of one ref            one, with the default handler's credentials if it has a record;
//                                 the latest of their times
//   intents of one image          one
//   what JSON can't hold          as if in quarantine
//   preloaded records             as they are; none of a distrustful store
//   image without a record        of a distrustful store: one without credentials
//   file of pulling/ or pulled/   that no import took, and whose name is not among these: the same
//                                 intent; the same record, without credentials
//
// Errors as of NodeStore::Export, and kOwned: another export into that directory is running. Where
// one is returned, the folders are the old or the new ones, whole; the old ones, while ID mappings
// are missing.
Result<ExportReport> ExportKubeletDirectory(const ExportContent& content,
                                            const ExportOptions& options);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_KUBELET_EXPORT_H_
