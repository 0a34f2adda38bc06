#include "store/images/gap.h"

#include <algorithm>
#include <system_error>

#include "store/base/files.h"
#include "store/base/try.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kGap = "images may have been pulled that nobody recorded: ";
constexpr std::string_view kWhatToDo =
    "; run `waybill start --after-gap --images` with the runtime's list";

}  // namespace

std::filesystem::path WitnessIn(const std::filesystem::path& kubelet_directory) {
  std::error_code ignored;
  return std::filesystem::absolute(kubelet_directory, ignored) / "image_manager" / "waybill";
}

Result<bool> KubeletHasRun(const std::filesystem::path& kubelet_directory) {
  const std::filesystem::path image_manager = kubelet_directory / "image_manager";
  for (const char* folder : {"pulled", "pulling"}) {
    if (TRY(Exists(image_manager / folder))) return true;
  }
  const std::filesystem::path pods = kubelet_directory / "pods";
  auto there = TRY(Exists(pods));
  if (!there) return false;
  const auto names = ListDirectory(pods);
  if (!names && names.error().code == ErrorCode::kIo) return names.error();
  // If the directory can't be listed, there may be pods.
  return !names || !names->empty();
}

Result<bool> TakesOverUsedDirectory(const NodeStoreOptions& options) {
  if (!DetectsGap(options) || options.kubelet_directory.empty()) return false;
  return KubeletHasRun(options.kubelet_directory);
}

Distrust ImportUnfinished(const std::filesystem::path& kubelet_directory) {
  std::error_code error;
  const auto path = std::filesystem::canonical(kubelet_directory, error);
  return {DegradedKind::kImportUnfinished,
          "the import of " + (error ? kubelet_directory : path).string() +
              " is not finished; run `waybill start --kubelet-dir` on it again"};
}

Result<void> EndImport(StoreTxn& txn, const std::filesystem::path& kubelet_directory, bool uncut) {
  const Distrust unfinished = ImportUnfinished(kubelet_directory);
  if (TRY(uncut ? DropLastDistrust(txn, unfinished) : Result<bool>(false))) return {};
  return TakeBackDistrust(txn, unfinished);
}

Distrust GapBecause(const std::string& why) {
  return {DegradedKind::kGap, std::string(kGap) + why + std::string(kWhatToDo)};
}

Result<Distrust> GapInForce(const StoreTxn& txn) {
  auto reasons = TRY(ReasonsOfDistrust(txn));
  const auto gap = std::find_if(reasons.begin(), reasons.end(),
                                [](const Distrust& why) { return why.kind == DegradedKind::kGap; });
  return gap == reasons.end() ? Distrust() : *gap;
}

Result<void> NoteGap(StoreTxn& txn, const Distrust& gap) {
  auto in_force = TRY(GapInForce(txn));
  return in_force.empty() ? SetDistrust(txn, gap) : Result<void>();
}

std::string WithoutAdvice(const std::string& gap_reason) {
  if (!gap_reason.ends_with(kWhatToDo)) return gap_reason;
  return gap_reason.substr(0, gap_reason.size() - kWhatToDo.size());
}

}  // namespace waybill::internal
