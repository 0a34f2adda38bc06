// Writes record files as a kubelet lays them out.

#ifndef WAYBILL_TESTS_SUPPORT_KUBELET_DIR_H_
#define WAYBILL_TESTS_SUPPORT_KUBELET_DIR_H_

#include <openssl/evp.h>

#include <array>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/support/temp_dir.h"

namespace waybill::testing {

inline std::string Sha256Hex(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("SHA-256 failed");
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) {
    hex += kHex[digest.at(i) >> 4U];
    hex += kHex[digest.at(i) & 15U];
  }
  return hex;
}

// Where the kubelet keeps the record of `key` (an image ref, or in pulling/ an image string),
// below its directory.
inline std::filesystem::path RecordFile(std::string_view folder, std::string_view key) {
  return std::filesystem::path("image_manager") / folder / ("sha256-" + Sha256Hex(key));
}

inline void WriteRecordFile(const std::filesystem::path& kubelet_directory, std::string_view folder,
                            std::string_view key, const std::string& content) {
  const std::filesystem::path path = kubelet_directory / RecordFile(folder, key);
  std::filesystem::create_directories(path.parent_path());
  WriteFile(path, content);
  // As a kubelet makes them, whatever this process' umask.
  using std::filesystem::perms;
  std::filesystem::permissions(path, perms::owner_read | perms::owner_write);
  for (const auto& made : {path.parent_path(), path.parent_path().parent_path()}) {
    std::filesystem::permissions(made, perms::owner_all);
  }
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_KUBELET_DIR_H_
