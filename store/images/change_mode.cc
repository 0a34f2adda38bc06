#include "store/images/change_mode.h"

#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/images/learn.h"
#include "store/images/proofs.h"
#include "store/images/revoked.h"

namespace waybill::internal {

namespace {

// Under each text of the image.
Result<void> Spread(Images& images) {
  const auto rows = TRY(images.All([](const ImageRow& row) { return row.pulled.has_value(); }));
  for (const ImageRow& row : rows) {
    std::vector<std::string> texts = TextsOf(row);
    const ImageRow of_default = TRY(images.FindOrMake(row.subject));
    for (const std::string& text : TextsOf(of_default)) texts.push_back(text);
    for (const std::string& text : texts) {
      if (text == row.subject) continue;
      const auto there = TRY(images.FindOrMake(text, row.runtime_handler));
      if (there.pulled) continue;
      ImageRow copy{.subject = text, .runtime_handler = row.runtime_handler, .stamp = row.stamp};
      copy.absent = row.absent;
      copy.pulled = row.pulled;
      // It keeps the image closed.
      TRY(images.Put(std::move(copy), Images::Confirms::kNo, Images::Room::kReserve));
    }
    ImageRow own = row;
    own.ref.clear();
    TRY(images.Put(std::move(own), Images::Confirms::kNo));
  }
  return {};
}

Result<void> Gather(Images& images) {
  const auto rows = TRY(images.All([](const ImageRow&) { return true; }));
  for (const ImageRow& row : rows) {
    if (!row.pulled && !row.preloaded && !row.listed) continue;
    const auto home = TRY(images.Home(row.subject));
    if (home == row.subject) continue;
    ImageRow moved = row;
    moved.ref = row.Ref();
    moved.subject = home;
    moved.alias.reset();
    ImageRow emptied{
        .subject = row.subject, .runtime_handler = row.runtime_handler, .alias = row.alias};
    TRY(images.Put(std::move(emptied), Images::Confirms::kNo));
    ImageRow there = TRY(images.FindOrMake(home, row.runtime_handler));
    TRY(LeaveOutRevoked(images, moved));
    ImageRow one = Unite(std::move(there), std::move(moved), AgingIn(images.txn()));
    TRY(PutUnited(images, std::move(one), Images::Confirms::kNo));
  }
  return {};
}

}  // namespace

Result<void> ChangeMode(Images& images) {
  return images.learns_aliases() ? Gather(images) : Spread(images);
}

}  // namespace waybill::internal
