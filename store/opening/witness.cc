#include "store/opening/witness.h"

#include "store/base/caught.h"
#include "store/base/try.h"

namespace waybill::internal {

namespace {

// Commits between two looks whether the file is still under its name: one look a pull of one
// caller, which is two commits.
constexpr std::uint64_t kLookInterval = 2;

}  // namespace

Result<WitnessFile> WitnessFile::Open(const std::filesystem::path& path, const MarkLine& first) {
  auto file = TRY(MarkFile::Replace(path, first));
  auto id = TRY(FileIdOf(file.file(), path));
  return WitnessFile(std::move(file), id, first);
}

void WitnessFile::Retire(const std::filesystem::path& path, const MarkLine& last) {
  const auto reading = ReadMark(path);
  if (!reading || !reading->line || reading->line->uuid != last.uuid) return;
  static_cast<void>(MarkFile::WriteOver(path, last, Lines::kOne).has_value());
}

void WitnessFile::Advance(std::uint64_t commit_sequence) noexcept {
  last_.begun = last_.acknowledged = commit_sequence;
  if (lost_) return;
  try {
    auto written = file_.Write(last_);
    if (written_ || written) written_ = std::move(written);
    if (commit_sequence % kLookInterval != 0) return;
    // If the path can't be checked now, Sync checks again.
    const auto id = FileIdOf(file_.path());
    if (id ? *id != id_ : id.error().code == ErrorCode::kNotFound) Lose();
  } catch (...) {
    // Sync writes it again.
    written_ = Caught();
  }
}

Result<void> WitnessFile::Sync() {
  const std::filesystem::path& path = file_.path();
  if (!lost_) {
    // A failed write may have left a garbled line.
    if (!written_) written_ = file_.Write(last_);
    if (!written_) return written_;
    TRY(file_.Sync());
    const auto id = FileIdOf(path);
    if (!id && id.error().code == ErrorCode::kIo) return id.error();
    const auto reading = ReadMark(path);
    if (!reading && reading.error().code == ErrorCode::kIo) return reading.error();
    if (!id || *id != id_ || !reading || reading->line != last_) Lose();
  }
  if (!lost_) return {};
  return Error{
      ErrorCode::kDamaged,
      "the witness " + path.string() + " was removed, replaced or changed while the store was open",
      "the next opening distrusts the store; find out who did that"};
}

void WitnessFile::Lose() {
  lost_ = true;
  // An older copy in its place would agree with an older copy of the store.
  const auto reading = ReadMark(file_.path());
  const bool is_older_copy = reading && reading->line && reading->line->uuid == last_.uuid &&
                             reading->line->acknowledged < last_.acknowledged;
  if (is_older_copy) static_cast<void>(RemoveFile(file_.path()));
}

}  // namespace waybill::internal
