#include "migrations/kubelet_files/kubelet_file.h"

#include <new>
#include <utility>

#include "migrations/kubelet_files/kubelet_places.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/files.h"
#include "store/base/hex.h"
#include "store/base/options.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "store/images/image_row.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kNamePrefix = "sha256-";
constexpr std::size_t kHexDigits = 64;
// Remembered in place of the content.
constexpr std::string_view kSkipped = "skipped";
// kOwnMark, behind a line end and, of an export, behind an empty line.
constexpr std::string_view kExportedEnd = "\n\n \t\t \t  \t";
constexpr std::string_view kOwnEnd = kExportedEnd.substr(1);
static_assert(kOwnEnd.substr(1) == kOwnMark);

// The kubelet writes whole seconds. The record counts as written at the end of its second, so that
// garbage collection never takes it for older than it is.
void EndOfSecond(std::optional<Timestamp>& time) {
  if (time && time->nanoseconds == 0) time->nanoseconds = 999'999'999;
}

void Refuse(KubeletFile& file, const std::string& hash_in_name, std::string problem) {
  file.content = std::monostate();
  file.problem = std::move(problem);
  if (file.folder == KubeletFolder::kPreloaded) return;  // could only open, so it closes nothing
  const QuarantineKind kind =
      file.folder == KubeletFolder::kPulled ? QuarantineKind::kImageRef : QuarantineKind::kImage;
  file.quarantine.push_back({kind, hash_in_name, file.path, file.problem, {}});
}

// Whether the file is about the image that its name says.
void CheckIdentity(KubeletFile& file, const std::string& hash_in_name, std::string_view identity) {
  const bool is_image = file.folder == KubeletFolder::kPulling;
  const std::string what = is_image ? "image" : "image ref";
  const std::size_t limit = is_image ? kMaxImageBytes : kMaxImageRefBytes;
  if (identity.size() > limit) {
    Refuse(file, hash_in_name, what + " is longer than " + std::to_string(limit) + " bytes");
    return;
  }
  const auto sha256 = Sha256(identity);
  if (sha256 && HexEncode(*sha256) == hash_in_name) return;
  Refuse(file, hash_in_name, "it is about another " + what + " than its name says");
  if (file.folder != KubeletFolder::kPreloaded) file.misfiled = identity;
}

// Decodes `json` into the file's content. Returns the image ref or image that it is about.
Result<std::string> Decode(KubeletFile& file, const std::string& json) {
  // A record that is too large to store must not stop the import of all other files.
  const Error too_large{ErrorCode::kLimitExceeded, "it is larger than a stored value may be", ""};
  switch (file.folder) {
    case KubeletFolder::kPulled: {
      auto record = TRY(DecodePulledRecord(json));
      EndOfSecond(record.last_updated);
      const ImageRow row{.subject = record.image_ref,
                         .pulled = PulledPart{.entries = record.credential_mapping}};
      if (!EncodeImage(row)) return too_large;
      file.content = record;
      return std::move(record.image_ref);
    }
    case KubeletFolder::kPulling: {
      auto intent = TRY(DecodePullIntent(json));
      file.content = intent;
      return std::move(intent.image);
    }
    case KubeletFolder::kPreloaded: {
      auto record = TRY(DecodePreloadedRecord(json));
      if (EncodePreloadedValue(record).size() > kMaxValueBytes) return too_large;
      EndOfSecond(record.last_updated);
      file.content = record;
      return std::move(record.image_ref);
    }
  }
  return std::string();
}

}  // namespace

Result<QuarantinedFile> QuarantineOfMisfiled(const KubeletFile& file) {
  const auto sha256 = TRY(Sha256(file.misfiled));
  QuarantinedFile other = file.quarantine.front();
  other.sha256 = HexEncode(sha256);
  return other;
}

std::string OwnForm(std::string kubelets_form) {
  if (kubelets_form.ends_with(kOwnEnd)) return kubelets_form;
  while (kubelets_form.ends_with('\n')) kubelets_form.pop_back();
  kubelets_form += kOwnEnd;
  return kubelets_form;
}

std::string ExportedForm(std::string kubelets_form) {
  std::string form = OwnForm(std::move(kubelets_form));
  return form.insert(form.size() - kOwnEnd.size(), 1, '\n');
}

std::string ClosingForm(std::string kubelets_form) {
  return std::string(kClosingLine) + OwnForm(std::move(kubelets_form));
}

bool ShowsNoKubelet(const KubeletFile& file) {
  return IsOwnClosing(file) || (file.is_exported && file.planted.empty());
}

bool IsOwnClosing(const KubeletFile& file) {
  if (!file.is_own) return false;
  const auto* record = std::get_if<ImagePulledRecord>(&file.content);
  if (record != nullptr) return record->credential_mapping.empty();
  return std::holds_alternative<ImagePullIntent>(file.content);
}

std::string_view FolderName(KubeletFolder folder) {
  constexpr std::string_view kNames[] = {"pulled", "pulling", "observed-preloaded"};
  return kNames[static_cast<std::size_t>(folder)];
}

bool IsRecordName(std::string_view name) {
  return name.size() == kNamePrefix.size() + kHexDigits && name.starts_with(kNamePrefix) &&
         IsLowerHex(name.data() + kNamePrefix.size(), kHexDigits);
}

bool WasSkipped(const Sha256Digest& remembered) {
  const auto nothing_read = Sha256(kSkipped);
  return nothing_read && remembered == *nothing_read;
}

KubeletFile JudgeKubeletFile(KubeletFolder folder, const std::string& name,
                             const std::string& json) {
  KubeletFile file;
  file.folder = folder;
  file.path = std::string(FolderName(folder)) + "/" + name;
  file.is_closing = folder == KubeletFolder::kPulled && json.starts_with(kClosingLine);
  file.is_own = file.is_closing || json.ends_with(kOwnEnd);
  file.is_exported = json.ends_with(kExportedEnd);
  const std::string hash_in_name = name.substr(kNamePrefix.size());
  const auto content_hash = Sha256(json);
  if (!content_hash) {
    Refuse(file, hash_in_name, content_hash.error().message);
    return file;
  }
  file.bytes = json.size();
  file.identity = *content_hash;
  const auto identity = Decode(file, file.is_closing ? json.substr(kClosingLine.size()) : json);
  if (identity) {
    CheckIdentity(file, hash_in_name, *identity);
    if (file.is_closing && !std::holds_alternative<std::monostate>(file.content) &&
        !IsOwnClosing(file)) {
      Refuse(file, hash_in_name, "it is to close the image, and has credentials");
    }
  } else if (identity.error().code == ErrorCode::kOutOfMemory) {
    throw std::bad_alloc();  // says nothing about the file: the import stops
  } else {
    Refuse(file, hash_in_name, identity.error().message);
  }
  return file;
}

void CountAsPlanted(KubeletFile& file, const std::string& why) {
  file.planted = why;
  if (std::holds_alternative<std::monostate>(file.content)) return;
  const std::string name = std::filesystem::path(file.path).filename();
  Refuse(file, name.substr(kNamePrefix.size()), "somebody else may have written it: " + why);
}

Result<KubeletFile> ReadKubeletFile(const std::filesystem::path& image_manager,
                                    KubeletFolder folder, const std::string& name,
                                    OnReadError on_error) {
  KubeletFile file;
  file.folder = folder;
  file.path = std::string(FolderName(folder)) + "/" + name;
  const auto bytes = ReadKubeletBytes(image_manager / file.path, kMaxRecordFileBytes);
  if (!bytes) {
    file.skipped = bytes.error().code == ErrorCode::kIo;
    Error error = CanBeSkipped(bytes.error());
    const bool by_disk = error.hint_code == Hint::kSkipUnreadable;
    if (file.skipped && (on_error == OnReadError::kFail || !by_disk)) return error;
    Refuse(file, name.substr(kNamePrefix.size()), bytes.error().message);
    // A kubelet would follow a link, or wait for a pipe.
    if (bytes.error().code == ErrorCode::kUnsafePath) file.planted = bytes.error().message;
    if (!file.skipped) return file;
    // Remembered as skipped, or each import would take it for new.
    const auto nothing_read = Sha256(kSkipped);
    if (nothing_read) file.identity = *nothing_read;
    return file;
  }
  file = JudgeKubeletFile(folder, name, bytes->content);
  if (file.identity && (folder == KubeletFolder::kPulling || !file.quarantine.empty())) {
    const auto with_time =
        Sha256(HexEncode(*file.identity) + " " + std::to_string(bytes->changed.tv_sec) + " " +
               std::to_string(bytes->changed.tv_nsec));
    file.identity.reset();
    if (with_time) file.identity = *with_time;
  }
  if (!bytes->planted.empty()) CountAsPlanted(file, bytes->planted);
  return file;
}

}  // namespace waybill::internal
