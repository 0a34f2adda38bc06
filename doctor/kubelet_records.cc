#include "doctor/kubelet_records.h"

#include "migrations/kubelet/kubelet_records.h"
#include "waybill/limits.h"

namespace waybill::doctor {
namespace {

// Calls `each` with the text of each file.
template <typename Each>
void ForEachFile(const Node& node, const char* folder, const Each& each) {
  const std::string path = node.kubelet_directory() + "/image_manager/" + folder;
  const auto names = node.List(path);
  if (!names) return;
  for (const std::string& name : *names) {
    if (const auto text = node.Read(path + "/" + name, kMaxRecordFileBytes)) each(*text);
  }
}

}  // namespace

KubeletRecords ReadKubeletRecords(const Node& node) {
  KubeletRecords records;
  ForEachFile(node, "pulled", [&](const std::string& text) {
    const auto record = DecodePulledRecord(text);
    if (!record) return;
    records.refs.insert(record->image_ref);
    for (const auto& [image, credentials] : record->credential_mapping) {
      records.images.insert(image);
    }
  });
  ForEachFile(node, "pulling", [&](const std::string& text) {
    if (const auto intent = DecodePullIntent(text)) records.images.insert(intent->image);
  });
  return records;
}

}  // namespace waybill::doctor
