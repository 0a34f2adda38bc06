// Imports a kubelet's files under <kubelet-dir>/image_manager/ (migrations/README.md, "Taking over
// a kubelet directory", says what becomes of each).

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_DIRECTORY_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_DIRECTORY_H_

#include <filesystem>
#include <vector>

#include "store/base/files.h"
#include "store/disk/committer.h"
#include "store/images/aliases.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// Imports some hundred files a transaction, and remembers each with the transaction that takes it.
// So the import can be repeated, also after a crash or an interruption. The store is distrustful
// until the last file is taken: the images of the other files must not pass for preloaded.
//
// Errors: kNotFound, kUnsafePath, kIo: the directory can't be listed; kIo: the disk refuses a file,
// and `on_error` does not skip it; kInterrupted: `progress` returned false; the errors of a commit.
//
// `taken_over_before`: a new or changed file shows that a kubelet ran without waybill. In the
// transaction that takes the first such file the store turns distrustful for that reason
// (store/images/gap.h).
//
// A file that was taken before, and whose image is on the node but has neither record nor ledger
// entry any more: its record went with the image, and the image came back, by a kubelet that ran
// without waybill. It gets a record without credentials.
//
// Intents become open pulls of unknown end, which ended `now`. Closed rules: so does one of
// anything for each intent that can't be read.
struct ImportOptions {
  Mode rules = Mode::kStrict;
  bool taken_over_before = false;
  // This opening made the store, and noted in it that the import is not finished.
  bool created = false;
  // Closed rules: the first import of a store that was there before. The kubelet may have cut pulls
  // short whose intents are gone: if there are files, one open pull of anything stands for those
  // pulls.
  bool first = false;
  OnReadError on_error = OnReadError::kFail;
  BootTime now;
  // The runtime's complete list; null: not known.
  const std::vector<ListedImage>* images_on_node = nullptr;
};
Result<void> ImportKubeletDirectory(Committer& committer, Aliases& aliases,
                                    const std::filesystem::path& directory,
                                    const ImportOptions& options, const Progress& progress,
                                    ImportReport& report);

// The records in pulled/, after a sync of both folders: no power cut brings another file back.
// kNotFound: pulled/ is away; kDamaged: a record can't be read; kIo; kUnsafePath: others may have
// written there.
Result<std::vector<ImagePulledRecord>> SyncAndReadRecords(const std::filesystem::path& directory);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_DIRECTORY_H_
