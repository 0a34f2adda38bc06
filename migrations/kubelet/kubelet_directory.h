// Takes over what a kubelet keeps under <kubelet-dir>/image_manager/ (schema/README.md, "Taking
// over").

#ifndef WAYBILL_MIGRATIONS_KUBELET_KUBELET_DIRECTORY_H_
#define WAYBILL_MIGRATIONS_KUBELET_KUBELET_DIRECTORY_H_

#include <filesystem>

#include "store/database/committer.h"
#include "waybill/node_store.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::internal {

// Imports pulled/, pulling/ and observed-preloaded/, some hundred files a transaction. Safe to run
// again, also after a crash or an interruption: each file is remembered by name and content with
// the transaction that took it.
//
//   sound file, ref not known      taken
//   sound file, ref known          remembered only: a later import adds no credentials. A ref in
//                                  quarantine is known.
//   file that can't be understood  quarantine entry for the hash in its name
//   file that the disk refuses     kIo; with OnReadError::kSkip a quarantine entry as above
//   file of another ref or image   quarantine entries for both
//   any other name                 passed over
//
// A distrustful store takes records without their credentials: the files may be older than what was
// lost. Until the last file is taken the store is distrustful itself: the images of the others must
// not pass for preloaded. Errors: kNotFound, kUnsafePath, kIo where the directory can't be
// listed; kInterrupted where `progress` said so; those of a commit.
//
// `taken_over_before`: a file that was not there then, or has changed, tells of a kubelet that ran
// without waybill. With it the store turns distrustful for that reason (store/trust/gap.h), in
// the transaction that takes the first such file.
Result<void> ImportKubeletDirectory(Committer& committer, const std::filesystem::path& directory,
                                    bool taken_over_before, OnReadError on_error,
                                    const Progress& progress, ImportReport& report);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_KUBELET_DIRECTORY_H_
