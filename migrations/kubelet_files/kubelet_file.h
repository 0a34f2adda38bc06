// Reads and judges one file of a kubelet directory. Writes nothing.

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_FILE_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_FILE_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "store/base/files.h"
#include "store/base/options.h"
#include "store/base/sha256.h"
#include "store/images/other_rows.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::internal {

// The three folders of image_manager/.
enum class KubeletFolder : std::uint8_t { kPulled, kPulling, kPreloaded };
inline constexpr KubeletFolder kKubeletFolders[] = {KubeletFolder::kPulled, KubeletFolder::kPulling,
                                                    KubeletFolder::kPreloaded};
std::string_view FolderName(KubeletFolder folder);  // "pulled"

// Whether this is the name of a kubelet's record: "sha256-<64 lower-case hex digits>".
bool IsRecordName(std::string_view name);

// What waybill writes among a kubelet's files, by an export, a guard or a kubelet with waybill
// inside, has this behind the final line end. By that waybill recognises it: nobody writes it by
// chance, each kubelet reads JSON with blanks behind it, and writes none itself.
inline constexpr std::string_view kOwnMark = " \t\t \t  \t";
std::string OwnForm(std::string kubelets_form);
// The same, with an empty line before the mark: an export has what was on record. What others write
// without credentials only closes.
std::string ExportedForm(std::string kubelets_form);

// A record without credentials, as the guard keeps it while a kubelet runs: this line, and then
// OwnForm. A kubelet can't read it, so it verifies the image, and keeps nothing in memory that
// would outlive the file.
inline constexpr std::string_view kClosingLine =
    "waybill guard closes this image. No kubelet can read this, so none remembers it.\n";
std::string ClosingForm(std::string kubelets_form);

// Paths below image_manager/ with the KubeletFile::identity of what imports took there.
using ImportedFiles = std::set<std::pair<std::string, Sha256Digest>>;

struct KubeletFile {
  KubeletFolder folder = KubeletFolder::kPulled;
  std::string path;  // below image_manager/
  std::size_t bytes = 0;
  // The SHA-256 of its content; nullopt if its bytes can't be read. Of an intent or an unreadable
  // file also of the time of change: each pull of an image writes the same intent again, and taking
  // one twice can only close.
  std::optional<Sha256Digest> identity;
  // monostate if the file is unreadable.
  std::variant<std::monostate, ImagePulledRecord, ImagePullIntent, ImagePreloadedRecord> content;
  // If unreadable: why, and the image that this closes, by the hash in its name.
  std::string problem;
  std::vector<QuarantinedFile> quarantine;  // `since` is left to the writer
  // For a sound file under another's name: the ref or image that it is about. Such a record shows
  // only that this was pulled, such an intent only that it is being pulled.
  std::string misfiled;
  // Why somebody else may have written it; such a file counts as unreadable. Empty: nobody can
  // have.
  std::string planted;
  // Whether the disk refused to read it.
  bool skipped = false;
  bool is_own = false;       // any of waybill's forms
  bool is_exported = false;  // ExportedForm
  bool is_closing = false;   // ClosingForm
};

// Whether it is waybill's own, and can only close: a record without credentials, or an intent.
bool IsOwnClosing(const KubeletFile& file);
// Whether no kubelet's work shows in it: such a file, or one of an export. What a guard wrote with
// credentials says what a kubelet did.
bool ShowsNoKubelet(const KubeletFile& file);

// The quarantine entry of what a misfiled record is about.
Result<QuarantinedFile> QuarantineOfMisfiled(const KubeletFile& file);

// Whether the disk refused to read the file of which this identity was remembered.
bool WasSkipped(const Sha256Digest& remembered);

// Judges the content of the file <folder>/<name>. `identity` is that of the content alone.
KubeletFile JudgeKubeletFile(KubeletFolder folder, const std::string& name,
                             const std::string& json);

// Lets nothing count of what the file says, since somebody else may have written it.
void CountAsPlanted(KubeletFile& file, const std::string& why);

// Reads image_manager/<folder>/<name>; the result says what is wrong with it. kIo: the disk refuses
// to read it, unless that counts as damage.
Result<KubeletFile> ReadKubeletFile(const std::filesystem::path& image_manager,
                                    KubeletFolder folder, const std::string& name,
                                    OnReadError on_error);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_FILE_H_
