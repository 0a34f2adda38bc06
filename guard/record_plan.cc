#include <algorithm>
#include <utility>

#include "guard/records.h"
#include "migrations/kubelet/kubelet_records.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"

namespace waybill::guard {

Result<void> RecordPlan::Make() {
  std::map<std::string, ImagePulledRecord> records;
  std::set<std::string> preloaded;
  std::set<std::string> listed;  // by spelling
  for (const ListedImage& image : listed_.images()) {
    if (image.id.empty()) continue;
    auto record = TRY(RecordFor(image));
    AddSpellings(image, listed);
    const std::string name = RecordNameOf(image.id);
    if (record) {
      records[name] = *std::move(record);
    } else {
      preloaded.insert(name);
    }
  }
  // For images that are newer than the list, or if there is no list.
  auto ledger = TRY(life_.store->ListLedger());
  std::erase_if(ledger, [](const PreloadedImage& entry) { return entry.absent_since.has_value(); });
  for (const PreloadedImage& entry : ledger) listed.insert(internal::SpellingOf(entry.image_ref));
  life_.status.presumed = static_cast<std::uint64_t>(std::ranges::count_if(ledger, IsPresumed));
  auto all = TRY(life_.store->ListRecords());
  for (ImagePulledRecord& record : all) {
    // No file is made for an image that is gone; a file that the kubelet has is seen to
    // (RecordsPutRight).
    if (!record.runtime_handler.empty() || record.absent_since) continue;
    if (listed.contains(internal::SpellingOf(record.image_ref))) continue;
    const std::string name = RecordNameOf(record.image_ref);
    records.emplace(name, std::move(record));
  }
  records_ = std::move(records);
  preloaded_ = std::move(preloaded);
  return {};
}

// What the file of a listed image must say; nullopt: there must be none.
Result<std::optional<ImagePulledRecord>> RecordPlan::RecordFor(const ListedImage& image) const {
  const std::string& shown = image.repo_tags.empty() ? image.id : image.repo_tags.front();
  const ImageCopy copy = {.image = shown, .image_ref = image.id};
  auto why = TRY(life_.store->Explain(copy));
  const bool is_preloaded = why.ledger_entry && !why.in_quarantine;
  if (is_preloaded && life_.options.preloaded_is_open) return std::optional<ImagePulledRecord>();
  ImagePulledRecord wanted;
  auto record = life_.store->GetRecord(copy);
  // A kubelet that verifies preloaded images does so without a record, too.
  if (is_preloaded && !record) return std::optional<ImagePulledRecord>();
  if (record) {
    wanted = *std::move(record);
  } else if (record.error().code != ErrorCode::kNotFound &&
             record.error().code != ErrorCode::kDamaged) {
    return record.error();
  }
  wanted.image_ref = image.id;
  // An image in quarantine is closed, whatever its record says.
  if (why.in_quarantine) wanted.credential_mapping.clear();
  return std::optional(std::move(wanted));
}

const ImagePulledRecord* RecordPlan::Find(const std::string& name) const {
  const auto at = records_.find(name);
  return at == records_.end() ? nullptr : &at->second;
}

void RecordPlan::Set(const std::string& name, ImagePulledRecord record) {
  if (!preloaded_.contains(name)) records_[name] = std::move(record);
}

std::string RecordPlan::FileOf(ImagePulledRecord record) const {
  // An entry without credentials says nothing.
  std::erase_if(record.credential_mapping, [](const auto& entry) { return entry.second.empty(); });
  std::string json = EncodePulledRecord(record, life_.api_version);
  const bool closes = record.credential_mapping.empty();
  return closes && life_.options.live && life_.options.verifies_recorded
             ? internal::ClosingForm(std::move(json))
             : OwnForm(std::move(json));
}

}  // namespace waybill::guard
