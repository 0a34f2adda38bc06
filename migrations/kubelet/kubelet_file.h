// One file of a kubelet directory, read and judged, before anything is written.

#ifndef WAYBILL_MIGRATIONS_KUBELET_KUBELET_FILE_H_
#define WAYBILL_MIGRATIONS_KUBELET_KUBELET_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "store/base/files.h"
#include "store/database/small_records.h"
#include "waybill/result.h"
#include "waybill/types.h"

namespace waybill::internal {

// The three folders of image_manager/.
enum class KubeletFolder : std::uint8_t { kPulled, kPulling, kPreloaded };
std::string_view FolderName(KubeletFolder folder);  // "pulled"

// Whether a file of that name is a record of the kubelet's: "sha256-<64 lower-case hex digits>".
bool IsRecordName(std::string_view name);

struct KubeletFile {
  KubeletFolder folder = KubeletFolder::kPulled;
  std::string path;  // below image_manager/
  std::size_t bytes = 0;
  // What to remember it by; nullopt where its bytes could not be had. Of a record the content
  // alone. Of an intent, and of what can't be read, the time of change too: each pull of an image
  // writes the same intent again, and taking one twice can only close.
  std::optional<ImportedFile> identity;
  bool identity_has_time = false;
  // What it holds; monostate where it can't be read.
  std::variant<std::monostate, ImagePulledRecord, ImagePullIntent, ImagePreloadedRecord> content;
  // Why it can't be read, and whose images that closes.
  std::string problem;
  std::vector<QuarantineEntry> quarantine;  // `since` is left to the writer
  // The disk refused to read it.
  bool skipped = false;
};

// `identity` is that of the content; nullopt where the file is gone. kIo: its time can't be had.
Result<std::optional<ImportedFile>> WithTimeOfChange(const std::filesystem::path& image_manager,
                                                     ImportedFile identity);

// Whether what is remembered of a file is that the disk refused to read it.
bool WasSkipped(const ImportedFile& remembered);

// Reads image_manager/<folder>/<name>. What is wrong is in the result. kIo, unless that is damage:
// the disk refuses to read it.
Result<KubeletFile> ReadKubeletFile(const std::filesystem::path& image_manager,
                                    KubeletFolder folder, const std::string& name,
                                    OnReadError on_error);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_KUBELET_FILE_H_
