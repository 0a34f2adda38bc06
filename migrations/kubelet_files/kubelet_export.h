// Goes back to a kubelet without waybill: writes its own files (migrations/README.md, "Going
// back", says what becomes of each thing in a store).

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_EXPORT_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_EXPORT_H_

#include <string>
#include <string_view>
#include <vector>

#include "migrations/kubelet_files/kubelet_file.h"
#include "migrations/kubelet_files/what_it_must_find.h"
#include "waybill/calls.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// The content of a store at one moment.
struct ExportContent {
  StoreContent store;
  std::vector<ImagePreloadedRecord> preloaded;
  // The files that imports took. The store has the later state of their records.
  ImportedFiles imported;
  std::vector<PodMapping> allocations;
  std::vector<QuarantinedPod> held;
  bool distrustful = false;
  std::string distrust_reason;
  Timestamp now;  // for new records, and in the names of files kept aside
};

// Whether all text in a file that was encoded for a kubelet was UTF-8, which JSON alone can hold.
bool IsUtf8(std::string_view file);

// Writes pods/<uid>/userns for each allocation (UsernsExport), then
// image_manager/{pulling,pulled,observed-preloaded}.
//
// Errors as of ExportKubeletFiles, and kOwned: another export into that directory is running. On an
// error the folders are complete, old or new; they are the old ones while ID mappings are missing.
Result<ExportReport> ExportKubeletDirectory(const ExportContent& content,
                                            const ExportKubeletFiles& options);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_EXPORT_H_
