#include "bindings/cli/trace_sorter.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>

#include "store/base/try.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kBytesOfALine = 64;  // beside its text, about

std::string TemporaryDirectory() {
  const char* const named = ::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

Result<internal::Fd> TemporaryFile() {
  std::string name = TemporaryDirectory() + "/waybill-trace-XXXXXX";
  internal::Fd fd(::mkostemp(name.data(), O_CLOEXEC));
  if (!fd.valid()) return internal::SystemError(errno, "make a file in", TemporaryDirectory());
  ::unlink(name.c_str());
  return fd;
}

// One run, read from its begin: of each line its time, its length and its text.
class Run {
 public:
  explicit Run(int fd) : file_(::fdopen(::dup(fd), "rb")) {
    if (file_) ::rewind(file_.get());
  }
  // False: there are no more lines.
  Result<bool> Next() {
    std::uint32_t size = 0;
    if (!file_) return Unreadable();
    if (::fread(&time_ms, sizeof(time_ms), 1, file_.get()) != 1) {
      return ::ferror(file_.get()) != 0 ? Result<bool>(Unreadable()) : Result<bool>(false);
    }
    if (::fread(&size, sizeof(size), 1, file_.get()) != 1) return Unreadable();
    text.resize(size);
    if (::fread(text.data(), 1, size, file_.get()) != size) return Unreadable();
    return true;
  }

  std::int64_t time_ms = 0;
  std::string text;

 private:
  static Error Unreadable() {
    return internal::SystemError(errno != 0 ? errno : EIO, "read a file in", TemporaryDirectory());
  }
  struct Close {
    void operator()(FILE* file) const { ::fclose(file); }
  };
  std::unique_ptr<FILE, Close> file_;
};

}  // namespace

Result<void> TraceSorter::Add(const TraceEvent& event) {
  lines_.push_back({event.time_ms, TraceLine(event)});
  bytes_ += lines_.back().text.size() + kBytesOfALine;
  ++events_;
  return bytes_ < most_ ? Result<void>() : Spill();
}

void TraceSorter::Sort() { std::ranges::stable_sort(lines_, {}, &Line::time_ms); }

Result<void> TraceSorter::Spill() {
  Sort();
  auto fd = TRY(TemporaryFile());
  std::string bytes;
  off_t at = 0;
  const auto write = [&]() -> Result<void> {
    TRY(internal::PWriteAll(fd, bytes, at, TemporaryDirectory()));
    at += static_cast<off_t>(bytes.size());
    bytes.clear();
    return {};
  };
  for (const Line& line : lines_) {
    const auto size = static_cast<std::uint32_t>(line.text.size());
    bytes.append(reinterpret_cast<const char*>(&line.time_ms), sizeof(line.time_ms));
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += line.text;
    if (bytes.size() >= std::size_t{1} << 20) TRY(write());
  }
  TRY(write());
  runs_.push_back(std::move(fd));
  lines_.clear();
  bytes_ = 0;
  return {};
}

Result<void> TraceSorter::Finish(const Take& take) {
  if (runs_.empty()) {
    Sort();
    for (const Line& line : lines_) take(line.time_ms, line.text);
    return {};
  }
  if (!lines_.empty()) TRY(Spill());
  std::vector<std::unique_ptr<Run>> runs;
  for (const internal::Fd& fd : runs_) {
    auto run = std::make_unique<Run>(fd.get());
    if (TRY(run->Next())) runs.push_back(std::move(run));
  }
  while (!runs.empty()) {
    // The first of equals is the one that was added first.
    const auto first =
        std::ranges::min_element(runs, {}, [](const auto& run) { return run->time_ms; });
    take((*first)->time_ms, (*first)->text);
    if (!TRY((*first)->Next())) runs.erase(first);
  }
  return {};
}

}  // namespace waybill::cli
