#include "store/images/preloaded.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kOperatorSource = "operator";
// How closed_because begins of what an operator closed.
constexpr std::string_view kTakenOut = "an operator took it out of the ledger: ";

// Operators' closings have no end, so their number has one.
Result<void> CheckClosings(const Images& images) {
  const StoreTxn& txn = images.txn();
  if (txn.state().digest(Table::kImages).count < kMaxClosings) return {};
  std::size_t closings = 0;
  TRY(txn.ForEach(Table::kImages, [&](const Key16&, Payload payload) -> Result<bool> {
    if (!payload.empty() && ImageView(payload).is_closed_by_operator()) ++closings;
    return closings < kMaxClosings;
  }));
  if (closings < kMaxClosings) return {};
  return Error{ErrorCode::kLimitExceeded,
               "operators closed " + std::to_string(kMaxClosings) +
                   " images, and no more are allowed; nothing was changed",
               "remove the records of images that come no more"};
}

// Whoever pulled it with credentials of their own may not want every pod to have it; nor may it be
// theirs if nobody knows with what it was pulled.
Result<void> CheckNotPulled(const Images& images, const std::string& home,
                            const std::string& runtime_handler, const std::string& image_ref) {
  auto found = images.Find(home, runtime_handler);
  if (!found && found.error().code == ErrorCode::kDamaged) {
    return Error{ErrorCode::kDamaged,
                 "a record of " + QuoteForMessage(image_ref) +
                     " can't be read, so it is not known who pulled it; nothing was changed",
                 "pull the image again, which replaces the record"};
  }
  if (!found) return found.error();
  const auto& row = *found;
  if (!row || !row->pulled || (row->preloaded && row->absent == 0) ||
      !row->pulled->closed_because.empty()) {
    return {};
  }
  const auto is_every_pods = [](const auto& of_name) {
    return of_name.second.node_pods_accessible;
  };
  const Credentials& entries = row->pulled->entries;
  if (!entries.empty() && std::ranges::all_of(entries, is_every_pods)) return {};
  return Error{
      ErrorCode::kConflict,
      QuoteForMessage(image_ref) + " was pulled, and not for every pod; nothing was changed",
      "set pulledToo if every pod may use it all the same"};
}

}  // namespace

Result<void> AllowImage(Images& images, const ListedImage& image,
                        const std::string& runtime_handler, std::string_view source,
                        std::string_view reason, bool pulled_too) {
  TRY(images.CheckOfOneImage(image.id));
  const auto home = TRY(images.Home(image.id));
  if (!pulled_too) TRY(CheckNotPulled(images, home, runtime_handler, image.id));
  std::vector<std::string> names = image.repo_tags;
  names.insert(names.end(), image.repo_digests.begin(), image.repo_digests.end());
  std::erase_if(names, [](const std::string& name) {
    return name.size() > kMaxImageBytes || !ReadName(name).parses;
  });
  ImageRow row = TRY(images.FindOrMake(home, runtime_handler));
  if (row.pulled && row.pulled->closed_by == ClosedBy::kOperator) {
    row.pulled->closed_by = ClosedBy::kNobody;
    if (!row.pulled->closed_because.empty()) {
      row.pulled->closed_by = ClosedBy::kOther;
      row.pulled->closed_because = "an operator closed it, and took that back";
    }
  }
  row.preloaded = PreloadedNow(images.txn(), std::move(names), source, reason);
  row.absent = 0;
  const auto confirms = row.pulled ? Images::Confirms::kNo : Images::Confirms::kYes;
  return images.Put(std::move(row), confirms);
}

Result<bool> TakeOut(Images& images, std::string_view image_ref, const std::string& runtime_handler,
                     std::string_view reason, Which which) {
  const auto home = TRY(images.Home(image_ref));
  const auto found = TRY(images.Find(home, runtime_handler));
  if (!found || !found->preloaded) return false;
  ImageRow row = *found;
  if (which == Which::kPresumed && row.preloaded->source != kPresumedSource) return false;
  const std::string because =
      (std::string(kTakenOut) + std::string(reason)).substr(0, kMaxReasonBytes);
  NoteEvidenceRemoved(images.txn());
  // What a list guessed, under any handler, becomes the operator's word.
  auto rows = TRY(images.RowsOf(home));
  for (ImageRow& other : rows) {
    if (other.runtime_handler == runtime_handler || !other.pulled ||
        other.pulled->closed_by != ClosedBy::kList) {
      continue;
    }
    other.pulled->closed_by = ClosedBy::kOperator;
    other.pulled->closed_because = because;
    TRY(images.Put(std::move(other), Images::Confirms::kYes));
  }
  row.preloaded.reset();
  if (row.pulled) {
    const bool is_guess = row.pulled->closed_by == ClosedBy::kList;
    row.pulled->closed_by = ClosedBy::kOperator;
    if (is_guess) row.pulled->closed_because = because;
    // What its pulls proved stays, and is no newer than it was.
    TRY(images.Put(std::move(row), is_guess ? Images::Confirms::kYes : Images::Confirms::kNo));
    return true;
  }
  TRY(CheckClosings(images));
  // The closing of an image that is away waits for it.
  row.pulled = PulledPart{.last_updated = images.txn().now(),
                          .closed_because = because,
                          .closed_by = ClosedBy::kOperator};
  TRY(images.Put(std::move(row), Images::Confirms::kYes, Images::Room::kReserve));
  return true;
}

Result<bool> Confirm(Images& images, std::string_view image_ref, const std::string& runtime_handler,
                     std::string_view reason) {
  const auto home = TRY(images.Home(image_ref));
  const auto found = TRY(images.Find(home, runtime_handler));
  if (!found) return false;
  ImageRow row = *found;
  // What comes back need not be what is confirmed here.
  if (!row.preloaded || row.absent != 0 || row.preloaded->source != kPresumedSource) return false;
  row.preloaded =
      PreloadedNow(images.txn(), std::move(row.preloaded->names), kOperatorSource, reason);
  const auto confirms = row.pulled ? Images::Confirms::kNo : Images::Confirms::kYes;
  TRY(images.Put(std::move(row), confirms));
  return true;
}

}  // namespace waybill::internal
