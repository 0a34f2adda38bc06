#include "store/recovery/witness.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <utility>

#include "store/base/caught.h"
#include "store/database/uuid.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kName = "waybill-witness ";
constexpr std::string_view kMagic = "waybill-witness 1 ";
constexpr std::size_t kMaxReadBytes = 4096;
constexpr std::size_t kUuidAt = kMagic.size();
constexpr std::size_t kSequenceAt = kUuidAt + 37;
constexpr std::size_t kChecksumAt = kSequenceAt + 21;
constexpr std::size_t kLineBytes = kChecksumAt + 17;

std::string ChecksumOf(std::string_view text) {
  char hex[17];
  std::snprintf(hex, sizeof(hex), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(text.data(), text.size())));
  return hex;
}

std::string Format(const Testimony& testimony) {
  char sequence[21];
  std::snprintf(sequence, sizeof(sequence), "%020llu",
                static_cast<unsigned long long>(testimony.commit_sequence));
  std::string line(kMagic);
  line += EncodeUuid(testimony.uuid) + " " + sequence + " ";
  return line + ChecksumOf(line) + "\n";
}

std::optional<Testimony> Parse(const std::string& line) {
  if (line.size() != kLineBytes || !line.starts_with(kMagic)) return std::nullopt;
  if (line.substr(kChecksumAt) != ChecksumOf(line.substr(0, kChecksumAt)) + "\n") {
    return std::nullopt;
  }
  Testimony testimony;
  if (!DecodeUuid(line.substr(kUuidAt, 36), testimony.uuid)) return std::nullopt;
  const char* const first = line.data() + kSequenceAt;
  const auto parsed = std::from_chars(first, first + 20, testimony.commit_sequence);
  if (parsed.ec != std::errc() || parsed.ptr != first + 20) return std::nullopt;
  return testimony;
}

}  // namespace

WitnessReading ReadWitness(const std::filesystem::path& path) {
  WitnessReading reading;
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) {
    // Without its directory it is gone, too.
    if (errno == ENOENT || errno == ENOTDIR) return reading;
    reading.exists = true;
    reading.error = SystemError(errno, "look at the witness", path);
    return reading;
  }
  reading.exists = true;
  if (!S_ISREG(st.st_mode)) return reading;
  const auto content = ReadWholeFile(path, kMaxReadBytes);
  if (content) {
    reading.claims_to_be_one = content->starts_with(kName);
    reading.testimony = Parse(*content);
  } else if (content.error().code == ErrorCode::kNotFound) {
    reading.exists = false;
  } else if (content.error().code != ErrorCode::kLimitExceeded) {
    reading.error = content.error();
  }
  return reading;
}

Result<WitnessFile> WitnessFile::Open(const std::filesystem::path& path, const Testimony& first) {
  if (auto r = MakePrivateDirectory(path.parent_path().empty() ? "." : path.parent_path()); !r) {
    return r.error();
  }
  if (auto r = WriteFileDurably(path, Format(first)); !r) return r.error();
  auto file = OpenFile(path, O_RDWR);
  if (!file) return file.error();
  auto id = FileIdOf(*file, path);
  if (!id) return id.error();
  return WitnessFile(std::move(*file), *id, path, first);
}

void WitnessFile::Retire(const std::filesystem::path& path, const Testimony& last) {
  const WitnessReading reading = ReadWitness(path);
  if (!reading.testimony || reading.testimony->uuid != last.uuid) return;
  auto file = OpenFile(path, O_RDWR);
  if (!file || !PWriteAll(*file, Format(last), 0, path)) return;
  static_cast<void>(SyncFile(*file, path));
}

void WitnessFile::Advance(std::uint64_t commit_sequence) noexcept {
  last_.commit_sequence = commit_sequence;
  if (lost_) return;
  try {
    auto written = PWriteAll(file_, Format(last_), 0, path_);
    if (written_ || written) written_ = std::move(written);
    // If the path can't be checked now, Sync checks again.
    const auto id = FileIdOf(path_);
    if (id ? *id != id_ : id.error().code == ErrorCode::kNotFound) Lose();
  } catch (...) {
    // Sync writes it again.
    written_ = Caught();
  }
}

Result<void> WitnessFile::Sync() {
  if (!lost_) {
    // A failed write may have left a garbled line.
    if (!written_) written_ = PWriteAll(file_, Format(last_), 0, path_);
    if (!written_) return written_;
    if (auto r = SyncFile(file_, path_); !r) return r;
    const auto id = FileIdOf(path_);
    if (!id && id.error().code == ErrorCode::kIo) return id.error();
    const auto content = ReadWholeFile(path_, kMaxReadBytes);
    if (!content && content.error().code == ErrorCode::kIo) return content.error();
    if (!id || *id != id_ || !content || *content != Format(last_)) Lose();
  }
  if (!lost_) return {};
  return Error{ErrorCode::kDamaged,
               "the witness " + path_.string() +
                   " was removed, replaced or changed while the store was open",
               "the next opening distrusts the store; find out who did that"};
}

void WitnessFile::Lose() {
  lost_ = true;
  // An older copy in its place would agree with an older copy of the store.
  const WitnessReading reading = ReadWitness(path_);
  const bool is_older_copy = reading.testimony && reading.testimony->uuid == last_.uuid &&
                             reading.testimony->commit_sequence < last_.commit_sequence;
  if (is_older_copy) static_cast<void>(RemoveFile(path_));
}

}  // namespace waybill::internal
