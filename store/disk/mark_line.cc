#include "store/disk/mark_line.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <string_view>

#include "store/base/try.h"
#include "store/disk/uuid.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kName = "waybill-mark ";
constexpr std::string_view kMagic = "waybill-mark 1 ";
constexpr std::size_t kDigits = 20;
constexpr std::size_t kMaxBytes = 16384;

std::string In20Digits(std::uint64_t number) {
  std::string digits(kDigits, '0');
  for (auto at = digits.rbegin(); number != 0; number /= 10) {
    *at++ = static_cast<char>('0' + number % 10);
  }
  return digits;
}

std::string Format(const MarkLine& line) {
  std::string text(kMagic);
  text +=
      EncodeUuid(line.uuid) + " " + EncodeUuid(line.boot_id) + (line.open ? " open " : " shut ");
  for (const std::uint64_t number :
       {line.begun, line.acknowledged, static_cast<std::uint64_t>(line.written),
        static_cast<std::uint64_t>(line.directory_id.device),
        static_cast<std::uint64_t>(line.directory_id.inode)}) {
    text += In20Digits(number) + " ";
  }
  const std::string path = " " + line.directory + "\n";
  const std::string summed = text + path;
  char sum[17];
  std::snprintf(sum, sizeof(sum), "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(summed.data(), summed.size())));
  return text + sum + path;
}

// Checks nothing but that it is the line of what was read from it, with its hash.
std::optional<MarkLine> Parse(std::string_view text) {
  MarkLine line;
  char uuid[37] = "";
  char boot_id[37] = "";
  char word[5] = "";
  std::uint64_t written = 0;
  int read = 0;  // up to the path
  std::sscanf(std::string(text).c_str(),
              "waybill-mark 1 %36s %36s %4s %20" SCNu64 " %20" SCNu64 " %20" SCNu64 " %20" SCNu64
              " %20" SCNu64 " %*16s%n",
              uuid, boot_id, word, &line.begun, &line.acknowledged, &written,
              &line.directory_id.device, &line.directory_id.inode, &read);
  const auto path_at = static_cast<std::size_t>(read) + 1;
  if (read == 0 || path_at >= text.size()) return std::nullopt;
  line.written = static_cast<std::int64_t>(written);
  line.open = std::string_view(word) == "open";
  line.directory = text.substr(path_at, text.size() - path_at - 1);
  const bool are_ids = DecodeUuid(uuid, line.uuid) && DecodeUuid(boot_id, line.boot_id);
  return are_ids && Format(line) == text ? std::optional(line) : std::nullopt;
}

// Of two the first that is valid: only the second can be older.
std::optional<MarkLine> ParseFile(std::string_view content, Lines lines) {
  if (lines == Lines::kOne) return Parse(content);
  const std::size_t half = content.size() / 2;
  auto line = Parse(content.substr(0, half));
  return line ? line : Parse(content.substr(half));
}

// What a power cut leaves of a line that was being written: some of its begin, zeros, or nothing.
bool IsUnfinished(std::string_view content) {
  const std::size_t last = content.find_last_not_of('\0');
  content = content.substr(0, last == std::string_view::npos ? 0 : last + 1);
  return kName.starts_with(content) || content.starts_with(kName);
}

}  // namespace

MarkLine ShutAt(const std::array<std::uint8_t, 16>& uuid, std::uint64_t sequence, MarkLine named) {
  named.uuid = uuid;
  named.open = false;
  named.begun = named.acknowledged = sequence;
  return named;
}

Result<MarkReading> ReadMark(const std::filesystem::path& path, Lines lines) {
  MarkReading reading;
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) {
    // Without its directory it is gone, too.
    if (errno == ENOENT || errno == ENOTDIR) return reading;
    return SystemError(errno, "look at", path);
  }
  reading.exists = true;
  if (!S_ISREG(st.st_mode)) return reading;
  const auto content = ReadWholeFile(path, kMaxBytes);
  if (content) {
    reading.is_unfinished = IsUnfinished(*content);
    reading.line = ParseFile(*content, lines);
  } else if (content.error().code == ErrorCode::kNotFound) {
    reading.exists = false;
  } else if (content.error().code != ErrorCode::kLimitExceeded) {
    return content.error();
  }
  return reading;
}

Result<MarkFile> MarkFile::Replace(const std::filesystem::path& path, const MarkLine& line) {
  TRY(MakePrivateDirectory(path.has_parent_path() ? path.parent_path() : "."));
  TRY(WriteFileDurably(path, Format(line)));
  auto file = TRY(OpenFile(path, O_RDWR));
  return MarkFile(path, std::move(file), Lines::kOne);
}

Result<MarkFile> MarkFile::WriteOver(const std::filesystem::path& path, const MarkLine& line,
                                     Lines lines) {
  auto file = TRY(OpenFile(path, O_RDWR | O_CREAT));
  MarkFile mark(path, std::move(file), lines);
  const std::string content = mark.ContentOf(line);
  if (ftruncate(mark.file_.get(), static_cast<off_t>(content.size())) != 0) {
    return SystemError(errno, "write", path);
  }
  TRY(PWriteAll(mark.file_, content, 0, path));
  TRY(mark.Sync());
  TRY(SyncDirectory(path.parent_path()));
  return mark;
}

Result<void> MarkFile::Write(const MarkLine& line) const {
  return PWriteAll(file_, ContentOf(line), 0, path_);
}

std::string MarkFile::ContentOf(const MarkLine& line) const {
  const std::string text = Format(line);
  return lines_ == Lines::kTwo ? text + text : text;
}

}  // namespace waybill::internal
