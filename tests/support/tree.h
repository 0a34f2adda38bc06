// Everything below a directory, to compare as a whole.

#ifndef WAYBILL_TESTS_SUPPORT_TREE_H_
#define WAYBILL_TESTS_SUPPORT_TREE_H_

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>

#include "tests/support/temp_dir.h"

namespace waybill::testing {

// By path below `root`: the content of files, "directory", "socket", or "symlink to …".
using Tree = std::map<std::string, std::string>;

inline Tree TreeOf(const std::filesystem::path& root) {
  Tree tree;
  if (!std::filesystem::is_directory(root)) return tree;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    std::string& content = tree[entry.path().lexically_relative(root).string()];
    if (entry.is_symlink()) {
      content = "symlink to " + std::filesystem::read_symlink(entry.path()).string();
    } else {
      content = entry.is_directory() ? "directory"
                : entry.is_socket()  ? "socket"
                                     : ReadFile(entry.path());
    }
  }
  return tree;
}

// Everything about a directory and what is below it that a reader could change.
inline Tree EverythingIn(const std::filesystem::path& root) {
  Tree all = TreeOf(root);
  all["."] = {};
  for (auto& [path, content] : all) {
    struct stat st {};
    if (lstat((root / path).c_str(), &st) != 0) content = "gone";
    const auto add = [&content = content](auto number) { content += ' ' + std::to_string(number); };
    add(st.st_ino);
    add(st.st_mode);
    add(st.st_size);
    for (const timespec& time : {st.st_mtim, st.st_ctim}) {
      add(time.tv_sec);
      add(time.tv_nsec);
    }
  }
  return all;
}

// The path of a file whose content is nowhere in `after`; "": there is none.
inline std::string FirstLost(const Tree& before, const Tree& after) {
  for (const auto& [path, content] : before) {
    const auto same = [&content = content](const auto& other) { return other.second == content; };
    if (std::none_of(after.begin(), after.end(), same)) return path;
  }
  return {};
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_TREE_H_
