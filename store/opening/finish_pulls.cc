#include "store/opening/finish_pulls.h"

#include <map>
#include <set>

#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/images/other_rows.h"
#include "store/images/pull_row.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxNamed = 100;
constexpr std::string_view kBecause = "its pull was in flight when an earlier process ended";

}  // namespace

Result<void> ReplayIntents(Images& images, const std::vector<ListedImage>& listed,
                           const std::string& default_name, OpeningReport& report) {
  StoreTxn& txn = images.txn();
  auto pulls = TRY(AllOpenPulls(txn));
  std::multimap<std::string, ImagePullIntent> intents;
  std::set<ImagePullIntent> found;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.anything || pull.nothing_at != 0) continue;
    if (!found.insert({pull.image, pull.runtime_handler}).second) continue;
    intents.emplace(pull.image, ImagePullIntent{pull.image, pull.runtime_handler});
  }
  report.intents_found = found.size();
  const bool quarantine = txn.state().digest(Table::kQuarantine).count != 0;

  std::set<ImagePullIntent> replayed;
  for (const ListedImage& image : listed) {
    for (const auto* strings : {&image.repo_digests, &image.repo_tags}) {
      for (const std::string& name : *strings) {
        const auto [first, last] = intents.equal_range(name);
        for (auto at = first; at != last; ++at) {
          const ImagePullIntent& intent = at->second;
          // An image listed for another handler is not what this pull fetched. An intent of the
          // default handler matches any: it may predate handlers.
          if (!image.runtime_handler.empty() && !intent.runtime_handler.empty() &&
              image.runtime_handler != intent.runtime_handler) {
            continue;
          }
          // The kubelet writes no record for a string without an image name, and keeps its intent.
          if (!ImageName(intent.image)) continue;
          TRY(images.Close(image.id, intent.runtime_handler, kBecause, ClosedBy::kOther));
          replayed.insert(intent);
        }
        if (!quarantine) continue;
        if (TRY(IsQuarantined(txn, QuarantineKind::kImage, name))) {
          const bool of_default = image.runtime_handler == default_name;
          const std::string stored = of_default ? "" : image.runtime_handler;
          TRY(images.Close(image.id, stored, kBecause, ClosedBy::kOther));
        }
      }
    }
  }
  for (const ImagePullIntent& intent : replayed) {
    if (report.replayed.size() < kMaxNamed) report.replayed.push_back(intent.image);
    auto open = TRY(FindOpenPulls(txn, intent.image, intent.runtime_handler));
    for (const UnresolvedPull& pull : open) TRY(EraseOpenPull(txn, pull));
  }
  report.intents_replayed = replayed.size();
  return {};
}

}  // namespace waybill::internal
