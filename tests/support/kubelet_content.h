// What an import takes from a kubelet directory, in the form that an export takes: without a store.

#ifndef WAYBILL_TESTS_SUPPORT_KUBELET_CONTENT_H_
#define WAYBILL_TESTS_SUPPORT_KUBELET_CONTENT_H_

#include <algorithm>
#include <filesystem>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "migrations/kubelet_files/kubelet_export.h"
#include "migrations/kubelet_files/kubelet_file.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"

namespace waybill::testing {

// An export's content with records in the place of rows.
struct KubeletContent : internal::ExportContent {
  std::vector<ImagePulledRecord> records = {};
  std::vector<ImagePullIntent> intents = {};
  std::vector<QuarantinedFile> quarantine = {};

  internal::ExportContent Whole() const {
    internal::ExportContent whole = *this;
    whole.store.quarantine = quarantine;
    for (const ImagePullIntent& intent : intents) {
      whole.store.pulls.push_back(
          {.image = intent.image, .runtime_handler = intent.runtime_handler});
    }
    for (const ImagePulledRecord& record : records) {
      internal::ImageRow row{.subject = record.image_ref,
                             .runtime_handler = record.runtime_handler};
      row.pulled = internal::PulledPart{.last_updated = record.last_updated,
                                        .entries = record.credential_mapping};
      whole.store.images.push_back({std::move(row), record.credential_mapping});
    }
    return whole;
  }
};
inline Result<ExportReport> ExportKubeletDirectory(const KubeletContent& content,
                                                   const ExportKubeletFiles& options) {
  return internal::ExportKubeletDirectory(content.Whole(), options);
}

inline void Take(const internal::KubeletFile& file, KubeletContent& content) {
  if (const auto* record = std::get_if<ImagePulledRecord>(&file.content)) {
    content.records.push_back(*record);
  } else if (const auto* intent = std::get_if<ImagePullIntent>(&file.content)) {
    content.intents.push_back(*intent);
  } else if (const auto* preloaded = std::get_if<ImagePreloadedRecord>(&file.content)) {
    content.preloaded.push_back(*preloaded);
  }
  content.quarantine.insert(content.quarantine.end(), file.quarantine.begin(),
                            file.quarantine.end());
  // No test here has another file about the same.
  if (file.misfiled.empty()) return;
  if (file.folder == internal::KubeletFolder::kPulling) {
    content.intents.push_back({.image = file.misfiled});
  } else {
    content.quarantine.push_back(Must(internal::QuarantineOfMisfiled(file)));
  }
}

// The files that an export left in image_manager/ as a kubelet writes them: each has waybill's mark
// behind an empty line, which is taken off.
inline Tree WithoutMark(Tree tree) {
  const std::string mark = "\n" + std::string(internal::kOwnMark);
  for (auto& [path, content] : tree) {
    if (content == "directory") continue;
    BOOST_TEST(content.ends_with(mark), path);
    content.resize(content.size() - mark.size());
  }
  return tree;
}

// Sorted, so that two can be compared.
inline KubeletContent ContentOf(const std::filesystem::path& kubelet_directory) {
  using internal::KubeletFolder;
  KubeletContent content;
  const auto image_manager = kubelet_directory / "image_manager";
  for (const KubeletFolder folder :
       {KubeletFolder::kPulled, KubeletFolder::kPulling, KubeletFolder::kPreloaded}) {
    const auto path = image_manager / internal::FolderName(folder);
    if (!std::filesystem::exists(path)) continue;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string name = entry.path().filename().string();
      if (!internal::IsRecordName(name)) continue;
      Take(Must(internal::ReadKubeletFile(image_manager, folder, name,
                                          internal::OnReadError::kFail)),
           content);
    }
  }
  const auto by_ref = [](const auto& a, const auto& b) { return a.image_ref < b.image_ref; };
  std::sort(content.records.begin(), content.records.end(), by_ref);
  std::sort(content.preloaded.begin(), content.preloaded.end(), by_ref);
  std::sort(content.intents.begin(), content.intents.end());
  std::sort(content.quarantine.begin(), content.quarantine.end(),
            [](const QuarantinedFile& a, const QuarantinedFile& b) {
              return std::tie(a.kind, a.sha256) < std::tie(b.kind, b.sha256);
            });
  return content;
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_KUBELET_CONTENT_H_
