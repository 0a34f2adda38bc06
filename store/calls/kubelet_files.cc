// What a guard beside a kubelet asks of the store: everything that a kubelet's files must say, and
// what is known of these files, in the commits of the evidence that they are.

#include <algorithm>
#include <utility>

#include "store/base/try.h"
#include "store/calls/impl.h"
#include "store/calls/node_store.h"
#include "store/disk/trust.h"
#include "store/images/forget.h"
#include "store/images/kubelet_file_row.h"
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"

namespace waybill {

using internal::ReaderPool, internal::StoreContent, internal::StoreTxn, internal::Table;

Result<StoreContent> NodeStore::Impl::ContentIn(const ReaderPool::Lease& snapshot,
                                                bool leaves_unreadable) const {
  if (!snapshot) return NoSnapshot(snapshot, "the images");
  StoreContent content{.sequence = snapshot.state().commit_sequence,
                       .has_evidence = internal::ModeIn(snapshot) == Mode::kStrict,
                       .awaits_first_list = snapshot.state().awaits_first_list,
                       .distrustful = snapshot.state().distrustful};
  const internal::Aging aging = AgingIn(snapshot);
  const auto by = PolicyIn(snapshot);
  content.has_ages = aging.max_age.count() != 0;
  content.kubelet_ran = static_cast<std::uint64_t>(aging.now.kubelet_ran.count());
  std::vector<internal::ImageRow> rows;
  const bool are_all = ReadTable(snapshot, Table::kImages, internal::DecodeImage, rows);
  if (!leaves_unreadable && !are_all) return Unreadable("the records");
  for (internal::ImageRow& row : rows) {
    StoreContent::Image image{.row = std::move(row)};
    if (image.row.pulled) {
      internal::PulledPart counting = *image.row.pulled;
      internal::LeaveWhatCounts(snapshot, *by, aging, counting);
      image.counting = std::move(counting.entries);
      internal::NoteNextEnd(aging, image.counting, content.next_end);
    }
    content.images.push_back(std::move(image));
  }
  content.pulls = TRY(
      ListIn(*this, snapshot, Table::kIntents, "the open pulls", internal::DecodeUnresolvedPull));
  content.quarantine = TRY(ListIn(*this, snapshot, Table::kQuarantine, "the quarantine entries",
                                  internal::DecodeQuarantineValue));
  content.revocations = TRY(
      ListIn(*this, snapshot, Table::kRevocations, "the revocations", internal::DecodeRevocation));
  return content;
}

Result<StoreContent> NodeStore::GetContent() const {
  return Guarded([&] { return impl_->ContentIn(impl_->Read(), true); });
}

Result<KubeletFilesRead> NodeStore::GetKubeletFiles() const {
  return Guarded([&]() -> Result<KubeletFilesRead> {
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "what is known of the kubelet's files");
    KubeletFilesRead read{.seed = snapshot.seed()};
    read.is_whole =
        ReadTable(snapshot, Table::kKubeletFiles, internal::DecodeKubeletFile, read.rows);
    return read;
  });
}

Result<void> NodeStore::PutKubeletFile(const internal::KubeletFileRow& row) {
  return impl_->Write([&](StoreTxn& txn) { return internal::PutKubeletFile(txn, row); });
}

Result<void> NodeStore::EraseKubeletFile(const std::string& path) {
  return impl_->Write([&](StoreTxn& txn) { return internal::EraseKubeletFile(txn, path); });
}

std::uint64_t NodeStore::CommitSequence() const {
  return impl_->committer->state().commit_sequence;
}

Result<void> NodeStore::NoteLoss(const std::string& reason) {
  return impl_->Write([&](StoreTxn& txn) {
    return internal::SetDistrust(txn, {DegradedKind::kStoreLost, reason});
  });
}

Result<void> NodeStore::NotePullOfAnything() {
  return impl_->Write(
      [&](StoreTxn& txn) { return internal::OpenPullOfAnything(txn, impl_->boot_clock()); });
}

Result<void> NodeStore::InOneCommit(internal::FunctionRef<Result<void>()> calls) {
  return impl_->Write([&](StoreTxn& txn) -> Result<void> {
    const Impl::Joined joined(*impl_, txn);
    return calls();
  });
}

}  // namespace waybill
