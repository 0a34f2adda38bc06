// The list of files that an export wrote: image_manager/waybill-exported, which kubelets ignore. A
// file that matches its line is unchanged.
//
//   waybill-export 1
//   pulled/sha256-… <SHA-256 of content and time of change>     a line for each file
//   <SHA-256 of what precedes>

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_EXPORT_MANIFEST_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_EXPORT_MANIFEST_H_

#include <filesystem>
#include <set>
#include <string>
#include <string_view>

#include "migrations/kubelet_files/kubelet_file.h"
#include "waybill/result.h"

namespace waybill::internal {

inline constexpr std::string_view kExportManifest = "waybill-exported";

class ExportManifest {
 public:
  // Reads the manifest in `directory`, an image_manager/ or an earlier one. Empty if it is missing
  // or does not verify.
  static ExportManifest Read(const std::filesystem::path& directory);

  // Adds a file that was just written below `directory`. `path`: "pulled/sha256-…".
  Result<void> Add(const std::filesystem::path& directory, const std::string& path,
                   std::string_view content);
  // Whether `file`, read from `directory`, is as the export wrote it.
  bool Has(const std::filesystem::path& directory, const KubeletFile& file) const;

  Result<std::string> Encode() const;

 private:
  std::set<std::string> lines_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_EXPORT_MANIFEST_H_
