// Reads files of others below a folder that stands for "/", which no symlink and no ".." leaves.

#ifndef WAYBILL_RUNTIME_FILES_ROOTED_FILES_H_
#define WAYBILL_RUNTIME_FILES_ROOTED_FILES_H_

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::internal {

class RootedFiles {
 public:
  // `root` empty: "/". What can't be read is one of `problems`, which outlive it.
  RootedFiles(std::filesystem::path root, std::vector<std::string>& problems)
      : root_(std::move(root)), problems_(problems) {}

  // Paths are absolute below the root. nullopt: nothing has that name, or it can't be read: it is
  // no file, leads to nothing, or is above kMaxPullConfigBytes. Symlinks are followed, as the
  // runtimes do.
  std::optional<std::string> Read(const std::string& path) const;
  bool IsThere(const std::string& path) const;
  // The names in a folder, sorted; at most kMaxPullConfigFiles.
  std::vector<std::string> List(const std::string& path) const;

  void Problem(std::string text) const { problems_.push_back(std::move(text)); }
  void Problem(const std::string& what, const Error& error) const {
    Problem(what + ": " + error.message);
  }

 private:
  // What was read; an error is a problem, and says nothing.
  template <typename T>
  T OrProblem(const std::string& path, Result<T> read) const {
    if (read) return *std::move(read);
    Problem(path, read.error());
    return T();
  }
  // -1: errno says why.
  int Try(const std::string& path, int flags) const;
  // Not valid: nothing has that name.
  Result<Fd> Open(const std::string& path, int flags) const;
  Result<std::optional<std::string>> ReadFile(const std::string& path) const;
  Result<std::vector<std::string>> ListFolder(const std::string& path) const;

  std::filesystem::path root_;
  std::vector<std::string>& problems_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_ROOTED_FILES_H_
