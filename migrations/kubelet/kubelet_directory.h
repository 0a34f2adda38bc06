// Takes over a kubelet's files under <kubelet-dir>/image_manager/ (schema/README.md, "Taking
// over").

#ifndef WAYBILL_MIGRATIONS_KUBELET_KUBELET_DIRECTORY_H_
#define WAYBILL_MIGRATIONS_KUBELET_KUBELET_DIRECTORY_H_

#include <filesystem>

#include "store/database/committer.h"
#include "waybill/maintenance.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

// Imports pulled/, pulling/ and observed-preloaded/, some hundred files a transaction. Safe to run
// again, also after a crash or an interruption: each file is remembered by name and content with
// the transaction that took it.
//
//   valid file, ref unknown        taken
//   valid file, ref known          remembered only: a later import adds no credentials. A ref in
//                                  quarantine is known.
//   malformed file                 quarantine entry for the hash in its name
//   file that the disk refuses     kIo; with OnReadError::kSkip a quarantine entry as above
//   file of another ref or image   quarantine entries for both
//   any other name                 ignored
//
// A distrustful store takes records without their credentials, since the files may be older than
// the lost records. The store is also distrustful until the last file is taken: the images of the
// other files must not pass for preloaded. Errors: kNotFound, kUnsafePath, kIo: the directory can't
// be listed; kInterrupted: `progress` returned false; the errors of a commit.
//
// `taken_over_before`: a new or changed file shows that a kubelet ran without waybill. In the
// transaction that takes the first such file the store turns distrustful for that reason
// (store/trust/gap.h).
Result<void> ImportKubeletDirectory(Committer& committer, const std::filesystem::path& directory,
                                    bool taken_over_before, OnReadError on_error,
                                    const Progress& progress, ImportReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_KUBELET_DIRECTORY_H_
