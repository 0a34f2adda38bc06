#include "store/trust/gap.h"

#include <algorithm>

#include "store/base/files.h"
#include "store/database/typed_tables.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxNamed = 1000;
constexpr std::string_view kGap = "images may have been pulled that nobody recorded: ";
constexpr std::string_view kWhatToDo =
    "; run `waybill start --after-gap --images` with the runtime's list";

// Schema version 3 knows a gap by its first words.
Distrust Gap(const std::string& why) {
  return {TrustKind::kGap, std::string(kGap) + why + std::string(kWhatToDo)};
}

}  // namespace

std::filesystem::path WitnessIn(const std::filesystem::path& kubelet_directory) {
  std::error_code ignored;
  return std::filesystem::absolute(kubelet_directory, ignored) / "image_manager" / "waybill";
}

Result<Distrust> FirstGap(const std::filesystem::path& kubelet_directory) {
  const std::filesystem::path image_manager = kubelet_directory / "image_manager";
  for (const char* folder : {"pulled", "pulling"}) {
    auto there = Exists(image_manager / folder);
    if (!there.has_value()) return there.error();
    if (*there) return Distrust();
  }
  const std::filesystem::path pods = kubelet_directory / "pods";
  auto there = Exists(pods);
  if (!there.has_value()) return there.error();
  if (!*there) return Distrust();
  const auto names = ListDirectory(pods);
  if (!names && names.error().code == ErrorCode::kIo) return names.error();
  // If the directory can't be listed, there may be pods.
  if (names && names->empty()) return Distrust();
  return Gap(kubelet_directory.string() + " has pods, and no records of pulls");
}

Distrust GapOf(const std::string& written) {
  return Gap("a kubelet wrote " + written + " since its records were taken over");
}

Distrust RequestedGap() { return Gap("requested with --after-gap"); }

Result<Distrust> GapInForce(const StoreTxn& txn) {
  auto reasons = ReasonsOfDistrust(txn);
  if (!reasons) return reasons.error();
  const auto gap = std::find_if(reasons->begin(), reasons->end(),
                                [](const Distrust& why) { return why.kind == TrustKind::kGap; });
  return gap == reasons->end() ? Distrust() : *gap;
}

Result<void> NoteGap(StoreTxn& txn, const Distrust& gap) {
  auto in_force = GapInForce(txn);
  if (!in_force) return in_force.error();
  return in_force->empty() ? SetDistrust(txn, gap) : Result<void>();
}

Result<void> CloseGap(StoreTxn& txn, const std::vector<ImageOnNode>& images,
                      RecoveryReport& report) {
  for (const ImageOnNode& image : images) {
    auto known = AnyRecordOf(txn, image.id);
    if (!known) return known.error();
    if (*known) continue;
    auto closed = CloseCopy(txn, image.id, image.runtime_handler);
    if (!closed) return closed.error();
    if (!*closed) continue;
    ++report.gap_closed;
    if (report.gap_images.size() == kMaxNamed) continue;
    report.gap_images.push_back(!image.repo_tags.empty()      ? image.repo_tags.front()
                                : !image.repo_digests.empty() ? image.repo_digests.front()
                                                              : image.id);
  }
  // The advice has been followed: the report keeps the reason alone.
  if (report.gap_reason.ends_with(kWhatToDo)) {
    report.gap_reason.resize(report.gap_reason.size() - kWhatToDo.size());
  }
  // Other reasons stay: an unfinished import, or a loss.
  auto in_force = GapInForce(txn);
  if (!in_force) return in_force.error();
  return in_force->empty() ? Result<void>() : TakeBackDistrust(txn, *in_force);
}

}  // namespace waybill::internal
