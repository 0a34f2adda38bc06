#include "store/recovery/replay.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/image_spellings.h"
#include "store/database/typed_tables.h"
#include "waybill/image_name.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxNamed = 100;

std::string Comparable(std::string_view image, Rules rules) {
  if (rules == Rules::kClosed) {
    if (auto full = NormaliseImage(image)) return std::move(*full);
  }
  return std::string(image);
}

// Whether `listed`, or under kClosed an equivalent string, is in quarantine.
Result<bool> NamesQuarantined(const StoreTxn& txn, Rules rules, const std::string& listed) {
  if (rules == Rules::kKubelet) return IsQuarantined(txn, QuarantineKind::kImage, listed);
  for (const std::string& image : EquivalentImages(listed)) {
    auto there = IsQuarantined(txn, QuarantineKind::kImage, image);
    if (!there || *there) return there;
  }
  return false;
}

}  // namespace

Result<void> ReplayIntents(StoreTxn& txn, Rules rules, const std::vector<ImageOnNode>& images,
                           const std::string& default_name, RecoveryReport& report) {
  std::multimap<std::string, ImagePullIntent> intents;  // by the comparable form
  auto walked = txn.ForEach(Table::kIntents, [&](const Key16&, Payload payload) -> Result<bool> {
    ++report.intents_found;
    if (const auto intent = DecodeIntentValue(payload)) {
      intents.emplace(Comparable(intent->image, rules), *intent);
    }
    return true;
  });
  if (!walked) return walked;
  const bool quarantine = txn.state().digest(Table::kQuarantine).count != 0;

  std::set<ImagePullIntent> replayed;
  for (const ImageOnNode& image : images) {
    for (const auto* strings : {&image.repo_digests, &image.repo_tags}) {
      for (const std::string& listed : *strings) {
        const auto [first, last] = intents.equal_range(Comparable(listed, rules));
        for (auto at = first; at != last; ++at) {
          const ImagePullIntent& intent = at->second;
          // An image listed for another handler is not what this pull fetched. An intent of the
          // default handler matches any: it may predate handlers.
          if (!image.runtime_handler.empty() && !intent.runtime_handler.empty() &&
              image.runtime_handler != intent.runtime_handler) {
            continue;
          }
          // The kubelet writes no record for a string without an image name, and keeps its intent.
          if (rules == Rules::kKubelet && !ImageName(intent.image)) continue;
          if (auto r = CloseCopy(txn, image.id, intent.runtime_handler); !r) return r.error();
          replayed.insert(intent);
        }
        if (!quarantine) continue;
        auto closed = NamesQuarantined(txn, rules, listed);
        if (!closed) return closed.error();
        if (*closed) {
          const bool of_default = image.runtime_handler == default_name;
          const std::string stored = of_default ? "" : image.runtime_handler;
          if (auto r = CloseCopy(txn, image.id, stored); !r) return r.error();
        }
      }
    }
  }
  for (const ImagePullIntent& intent : replayed) {
    if (report.replayed.size() < kMaxNamed) report.replayed.push_back(intent.image);
    if (rules == Rules::kClosed) continue;
    if (auto erased = EraseIntent(txn, intent.image, intent.runtime_handler); !erased) {
      return erased.error();
    }
  }
  report.intents_replayed = replayed.size();
  return {};
}

}  // namespace waybill::internal
