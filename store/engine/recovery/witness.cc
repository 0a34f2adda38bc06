#include "store/engine/recovery/witness.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "store/base/caught.h"
#include "store/base/try.h"
#include "store/engine/database/checked_line.h"
#include "store/engine/database/commit_mark.h"
#include "store/engine/database/uuid.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kName = "waybill-witness ";
constexpr std::string_view kMagic = "waybill-witness 1 ";
constexpr std::size_t kMaxReadBytes = 4096;
constexpr std::size_t kUuidAt = kMagic.size();
constexpr std::size_t kSequenceAt = kUuidAt + 37;
constexpr std::size_t kChecksumAt = kSequenceAt + 21;
constexpr std::size_t kLineBytes = kChecksumAt + 17;

std::string Format(const Testimony& testimony) {
  std::string line(kMagic);
  line += EncodeUuid(testimony.uuid) + " " + In20Digits(testimony.commit_sequence) + " ";
  return line + SumOf(line) + "\n";
}

constexpr std::string_view kOwnerName = "waybill-witness-of ";
constexpr std::string_view kOwnerMagic = "waybill-witness-of 1 ";
constexpr std::size_t kOwnerDeviceAt = kOwnerMagic.size() + 37;
constexpr std::size_t kOwnerInodeAt = kOwnerDeviceAt + 21;
constexpr std::size_t kOwnerSumAt = kOwnerInodeAt + 21;
constexpr std::size_t kOwnerPathAt = kOwnerSumAt + 17;
constexpr std::size_t kMaxOwnerBytes = 16384;

struct Owner {
  std::array<std::uint8_t, 16> uuid{};
  FileId id;
  std::filesystem::path directory;
};

std::filesystem::path OwnerPathOf(std::filesystem::path witness) { return witness += ".store"; }

std::string FormatOwner(const Owner& owner) {
  const std::string head = std::string(kOwnerMagic) + EncodeUuid(owner.uuid) + " " +
                           In20Digits(owner.id.device) + " " + In20Digits(owner.id.inode) + " ";
  const std::string tail = " " + owner.directory.string() + "\n";
  return head + SumOf(head + tail) + tail;
}

std::optional<Owner> ParseOwner(const std::string& line) {
  if (line.size() < kOwnerPathAt + 2 || !line.starts_with(kOwnerMagic)) return std::nullopt;
  if (SumOf(line.substr(0, kOwnerSumAt) + line.substr(kOwnerSumAt + 16)) !=
      line.substr(kOwnerSumAt, 16)) {
    return std::nullopt;
  }
  Owner owner;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  const bool is_sound = DecodeUuid(line.substr(kOwnerMagic.size(), 36), owner.uuid) &&
                        ReadDigits({line.data() + kOwnerDeviceAt, 20}, device) &&
                        ReadDigits({line.data() + kOwnerInodeAt, 20}, inode);
  if (!is_sound) return std::nullopt;
  owner.id = {static_cast<dev_t>(device), static_cast<ino_t>(inode)};
  owner.directory = line.substr(kOwnerPathAt, line.size() - kOwnerPathAt - 1);
  return owner;
}

// What a power cut leaves of a line that was being written: some of its begin, zeros, or nothing.
bool IsUnfinished(std::string_view content, std::string_view name) {
  const std::size_t last = content.find_last_not_of('\0');
  content = content.substr(0, last == std::string_view::npos ? 0 : last + 1);
  return name.starts_with(content) || content.starts_with(name);
}

std::optional<Testimony> Parse(const std::string& line) {
  if (line.size() != kLineBytes || !line.starts_with(kMagic)) return std::nullopt;
  if (line.substr(kChecksumAt) != SumOf(line.substr(0, kChecksumAt)) + "\n") {
    return std::nullopt;
  }
  Testimony testimony;
  if (!DecodeUuid(line.substr(kUuidAt, 36), testimony.uuid)) return std::nullopt;
  if (!ReadDigits({line.data() + kSequenceAt, 20}, testimony.commit_sequence)) return std::nullopt;
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
    reading.is_unfinished = IsUnfinished(*content, kName);
    reading.testimony = Parse(*content);
  } else if (content.error().code == ErrorCode::kNotFound) {
    reading.exists = false;
  } else if (content.error().code != ErrorCode::kLimitExceeded) {
    reading.error = content.error();
  }
  return reading;
}

std::filesystem::path OtherOwnerOf(const std::filesystem::path& witness,
                                   const std::array<std::uint8_t, 16>& uuid,
                                   const std::filesystem::path& directory) {
  const auto noted = ReadWholeFile(OwnerPathOf(witness), kMaxOwnerBytes);
  const auto owner = noted ? ParseOwner(*noted) : std::nullopt;
  if (!owner || owner->uuid != uuid) return {};
  const auto own = FileIdOf(WithoutTrailingSlashes(directory));
  if (own && *own == owner->id) return {};
  const auto there = FileIdOf(owner->directory);
  if (own && there && *there == *own) return {};
  return owner->directory;
}

std::filesystem::path OriginalOf(const std::filesystem::path& witness,
                                 const std::array<std::uint8_t, 16>& uuid,
                                 const std::filesystem::path& directory) {
  std::filesystem::path other = OtherOwnerOf(witness, uuid, directory);
  if (other.empty()) return {};
  // What can't be looked at may be there.
  const auto data = FileIdOf(other / "data.mdb");
  if (!data && data.error().code == ErrorCode::kNotFound) return {};
  const auto mark = ReadCommitMark(other);
  if (mark && mark->commits && mark->commits->uuid != uuid) return {};
  return other;
}

Result<void> NoteOwner(const std::filesystem::path& witness,
                       const std::array<std::uint8_t, 16>& uuid,
                       const std::filesystem::path& directory) {
  const std::filesystem::path path = OwnerPathOf(witness);
  const std::filesystem::path place = WithoutTrailingSlashes(std::filesystem::absolute(directory));
  auto id = TRY(FileIdOf(place));
  const std::string line = FormatOwner({uuid, id, place});
  auto noted = ReadWholeFile(path, kMaxOwnerBytes);
  if (!noted && noted.error().code != ErrorCode::kNotFound) return {};
  if (noted && (*noted == line || !IsUnfinished(*noted, kOwnerName))) return {};
  return WriteFileDurably(path, line);
}

Result<WitnessFile> WitnessFile::Open(const std::filesystem::path& path, const Testimony& first) {
  TRY(MakePrivateDirectory(path.parent_path().empty() ? "." : path.parent_path()));
  TRY(WriteFileDurably(path, Format(first)));
  auto file = TRY(OpenFile(path, O_RDWR));
  auto id = TRY(FileIdOf(file, path));
  return WitnessFile(std::move(file), id, path, first);
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
