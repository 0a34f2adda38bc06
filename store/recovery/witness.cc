#include "store/recovery/witness.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <charconv>
#include <cstdio>
#include <utility>

#include "store/record/uuid.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kMagic = "waybill-witness 1 ";
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
  const auto content = ReadWholeFile(path, 4096);
  reading.exists = content.has_value() || content.error().code != ErrorCode::kNotFound;
  if (content) reading.testimony = Parse(*content);
  return reading;
}

Result<WitnessFile> WitnessFile::Open(const std::filesystem::path& path, const Testimony& first) {
  if (auto r = MakePrivateDirectory(path.parent_path().empty() ? "." : path.parent_path()); !r) {
    return r.error();
  }
  if (auto r = WriteFileDurably(path, Format(first)); !r) return r.error();
  auto file = OpenFile(path, O_RDWR);
  if (!file) return file.error();
  return WitnessFile(std::move(*file), path, first.uuid);
}

void WitnessFile::Advance(std::uint64_t commit_sequence) {
  auto written = PWriteAll(file_, Format({uuid_, commit_sequence}), 0, path_);
  if (written_ || written) written_ = std::move(written);
}

Result<void> WitnessFile::Sync() {
  if (!written_) return written_;
  return SyncFile(file_, path_);
}

}  // namespace waybill::internal
