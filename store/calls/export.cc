// Going back to a kubelet without waybill.

#include <utility>

#include "migrations/kubelet_files/kubelet_export.h"
#include "store/base/try.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/disk/trust_journal.h"
#include "store/images/kubelet_file_row.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"

namespace waybill {

using internal::ReaderPool;
using internal::Table;

namespace {

// Everything of one snapshot.
Result<internal::ExportContent> Collect(const NodeStore::Impl& impl,
                                        const ReaderPool::Lease& snapshot) {
  internal::ExportContent content;
  content.store = TRY(impl.ContentIn(snapshot, false));
  // A kubelet's files have no ends.
  for (internal::StoreContent::Image& image : content.store.images) {
    internal::LeaveIf(internal::HasNoEnd(), image.counting);
  }
  content.preloaded = TRY(ListIn(impl, snapshot, Table::kPreloaded, "the preloaded records",
                                 internal::DecodePreloadedValue));
  auto files = TRY(ListIn(impl, snapshot, Table::kKubeletFiles, "the imported files",
                          internal::DecodeKubeletFile));
  for (internal::KubeletFileRow& file : files) {
    if (file.content) content.imported.emplace(std::move(file.path), *file.content);
  }
  auto rows = TRY(impl.HostIdsIn(snapshot));
  for (internal::HostIds& row : rows) {
    if (row.has_range()) {
      const IdMapping mapping = row.mapping();
      content.allocations.push_back({.pod_uid = row.pod_uid,
                                     .host_id = mapping.host_id,
                                     .length = mapping.length,
                                     .created = row.created});
    }
    if (row.held) content.held.push_back(*std::move(row.held));
  }
  content.distrustful = snapshot.state().distrustful;
  return content;
}

}  // namespace

namespace door {

// Each folder of image_manager/ is replaced in one step, and the old one is kept aside. Images in
// quarantine become files that the kubelet can't read either. A ref under several handlers gets the
// default's credentials. Mode::kStrict: a record is written under every alias, and each listed
// image that is neither recorded nor preloaded gets a record without credentials. ID mappings go to
// pods/<uid>/userns; a file with other content is kept beside it. kConflict, and nothing is
// written: a pod is held, or the file of a pod that the store does not know overlaps a range.
// kInvalidArgument: the store is distrustful and has no list of images. kOwned: another export into
// that directory is running. After an error the folders are complete, old or new; call it again.
Result<ExportKubeletFiles::Answer> Do(NodeStore& store, const ExportKubeletFiles& call,
                                      const Progress&) {
  NodeStore::Impl& impl = store.impl();
  auto content = TRY(Collect(impl, impl.Read()));
  if (content.distrustful) {
    auto trust = TRY(store.GetTrust());
    content.distrust_reason = internal::LastReasonOf(trust.journal);
  }
  content.now = impl.clock();
  return internal::ExportKubeletDirectory(content, call);
}

}  // namespace door

}  // namespace waybill
