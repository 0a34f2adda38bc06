#include "migrations/kubelet_files/export_manifest.h"

#include "store/base/files.h"
#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kHead = "waybill-export 1";

std::string LineOf(const ImportedFile& identity) {
  return identity.path + " " + HexEncode(identity.content);
}

}  // namespace

ExportManifest ExportManifest::Read(const std::filesystem::path& directory) {
  ExportManifest manifest;
  const auto text = ReadWholeFile(directory / kExportManifest, kMaxDocumentBytes);
  if (!text || !text->ends_with('\n')) return manifest;
  const std::size_t last = text->rfind('\n', text->size() - 2);
  if (last == std::string::npos) return manifest;
  const std::string_view lines = std::string_view(*text).substr(0, last + 1);
  const auto sum = Sha256(lines);
  if (!sum || std::string_view(*text).substr(last + 1) != HexEncode(*sum) + "\n") return manifest;
  std::size_t at = lines.find('\n') + 1;
  if (lines.substr(0, at - 1) != kHead) return manifest;
  while (at < lines.size()) {
    const std::size_t end = lines.find('\n', at);
    manifest.lines_.emplace(lines.substr(at, end - at));
    at = end + 1;
  }
  return manifest;
}

Result<void> ExportManifest::Add(const std::filesystem::path& directory, const std::string& path,
                                 std::string_view content) {
  const auto sum = TRY(Sha256(content));
  // A file whose time can't be read is left out, and later counts as not written by an export.
  const auto identity = WithTimeOfChange(directory, {path, sum});
  if (identity && *identity) lines_.insert(LineOf(**identity));
  return {};
}

bool ExportManifest::Has(const std::filesystem::path& directory, const KubeletFile& file) const {
  if (lines_.empty() || !file.identity) return false;
  if (file.identity_has_time) return lines_.contains(LineOf(*file.identity));
  const auto identity = WithTimeOfChange(directory, *file.identity);
  return identity && *identity && lines_.contains(LineOf(**identity));
}

Result<std::string> ExportManifest::Encode() const {
  std::string text(kHead);
  text += '\n';
  for (const std::string& line : lines_) text += line + "\n";
  const auto sum = TRY(Sha256(text));
  return text + HexEncode(sum) + "\n";
}

}  // namespace waybill::internal
