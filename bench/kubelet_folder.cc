#include "bench/kubelet_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace waybill::bench {

namespace {

// More than a record of thousands of Secrets takes.
constexpr std::size_t kMostBytes = std::size_t{1} << 20;

[[noreturn]] void Fail(const char* what, const std::filesystem::path& path) {
  throw std::runtime_error(
      fmt::format("files: cannot {} {}: {}", what, path.string(), std::strerror(errno)));
}

}  // namespace

std::filesystem::path KubeletFolder::PathOf(std::string_view identity) const {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(identity.data()), identity.size(), digest.data());
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string name = "sha256-";
  for (const unsigned char byte : digest) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 0xf];
  }
  return path_ / name;
}

KubeletFolder::KubeletFolder(std::filesystem::path path)
    : path_(std::move(path)), buffer_(kMostBytes) {
  std::filesystem::create_directories(path_);
  fd_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) Fail("open", path_);
}

KubeletFolder::~KubeletFolder() { close(fd_); }

void KubeletFolder::Write(std::string_view identity, const std::string& content,
                          bool durable) const {
  const std::filesystem::path path = PathOf(identity);
  const std::filesystem::path temporary = path.string() + ".tmp";
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) Fail("make", temporary);
  const bool written =
      write(fd, content.data(), content.size()) == static_cast<ssize_t>(content.size()) &&
      (!durable || fsync(fd) == 0);
  if (close(fd) != 0 || !written) Fail("write", temporary);
  if (rename(temporary.c_str(), path.c_str()) != 0) Fail("rename", temporary);
  if (durable) Sync();
}

std::optional<std::string_view> KubeletFolder::ReadFile(const std::filesystem::path& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return std::nullopt;
    Fail("open", path);
  }
  const ssize_t got = read(fd, buffer_.data(), buffer_.size());
  close(fd);
  if (got <= 0 || static_cast<std::size_t>(got) == buffer_.size()) Fail("read", path);
  return std::string_view(buffer_.data(), static_cast<std::size_t>(got));
}

void KubeletFolder::Remove(std::string_view identity) const {
  const std::filesystem::path path = PathOf(identity);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) Fail("remove", path);
}

void KubeletFolder::Sync() const {
  if (fsync(fd_) != 0) Fail("flush", path_);
}

}  // namespace waybill::bench
