// What a page walk showed, as the text that raw_lmdb.h makes of a store.

#ifndef WAYBILL_TESTS_SUPPORT_WALK_RECORDER_H_
#define WAYBILL_TESTS_SUPPORT_WALK_RECORDER_H_

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "store/disk/page_walk/page_check.h"
#include "tests/support/raw_lmdb.h"

namespace waybill::testing {

class WalkRecorder : public internal::PageVisitor {
 public:
  void OnTable(std::string_view name, std::uint64_t) override {
    AppendTable(text, name);
    tables.emplace_back(name);
  }
  void OnValue(std::string_view, internal::PageKey key, std::span<const std::byte> value) override {
    ++values;
    aligned = aligned && reinterpret_cast<std::uintptr_t>(value.data()) % 8 == 0;
    AppendValue(text, {reinterpret_cast<const char*>(key.data()), key.size()},
                {reinterpret_cast<const char*>(value.data()), value.size()});
  }

  std::string text;
  std::vector<std::string> tables;  // "" first
  std::uint64_t values = 0;
  bool aligned = true;
};

class OpenedFile {
 public:
  explicit OpenedFile(const std::filesystem::path& path, int flags = O_RDONLY)
      : fd_(open(path.c_str(), flags | O_CLOEXEC)) {
    if (fd_ < 0) throw std::runtime_error("cannot open " + path.string());
  }
  ~OpenedFile() { close(fd_); }
  OpenedFile(const OpenedFile&) = delete;
  OpenedFile& operator=(const OpenedFile&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

struct Walked {
  internal::WalkResult result;
  WalkRecorder shown;
};

inline Walked WalkPath(const std::filesystem::path& path) {
  const OpenedFile file(path);
  Walked walked;
  auto result = internal::WalkFile(file.fd(), walked.shown);
  if (!result) throw std::runtime_error(result.error().ToString());
  walked.result = std::move(*result);
  return walked;
}

inline std::string FirstFinding(const internal::WalkResult& result) {
  return result.findings.empty() ? "" : result.findings.front();
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_WALK_RECORDER_H_
