// Loose files as the kubelet writes them: image_manager/{pulled,pulling}/sha256-<hash>, each
// written under another name and renamed. The kubelet flushes nothing. With `synced`, what makes
// that durable is added: flush the file before the rename, and the directory after it and after a
// removal.

#include <fcntl.h>
#include <openssl/sha.h>
#include <unistd.h>

#include <array>

#include "bench/peers/peer.h"
#include "waybill/kubelet_format.h"

namespace waybill::bench {

namespace {

[[noreturn]] void FileFails(const std::string& doing) {
  throw std::runtime_error("files: cannot " + doing);
}

std::string NameOf(std::string_view identity) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(identity.data()), identity.size(), digest.data());
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string name = "/sha256-";
  for (const unsigned char byte : digest) {
    name += kHex[byte >> 4];
    name += kHex[byte & 15];
  }
  return name;
}

class FilesPeer final : public Peer {
 public:
  FilesPeer(const std::filesystem::path& directory, bool synced)
      : Peer(directory),
        synced_(synced),
        pulled_((directory / "image_manager/pulled").string()),
        pulling_((directory / "image_manager/pulling").string()) {}
  ~FilesPeer() override { Close(); }

  std::string name() const override { return synced_ ? "files, fsync" : "files, no fsync"; }
  bool durable() const override { return synced_; }
  std::string how_it_writes() const override {
    return synced_ ? "temporary file, fsync, rename, fsync of the directory; remove, fsync of the "
                     "directory. Record and intent are two steps"
                   : "temporary file, rename; remove: as the kubelet does it. NOT durable";
  }
  std::string how_it_reads() const override {
    return "SHA-256 of the image ref, open, read, close; no JSON parsed";
  }
  std::string how_callers_write() const override { return "each on its own"; }
  std::string how_it_checks() const override { return "read and parse every file of pulled/"; }

  void Fill(std::size_t records, const StoredBytes& /*bytes*/) override {
    std::filesystem::create_directories(pulled_);
    std::filesystem::create_directories(pulling_);
    Open();
    for (std::size_t i = 0; i < records; ++i) {
      Write(pulled_, pulled_fd_, ImageRefOf(i), EncodePulledRecord(RecordOf(i)), false);
    }
    if (syncfs(pulled_fd_) != 0) FileFails("flush " + pulled_);
    Close();
  }
  void Open() override {
    pulled_fd_ = open(pulled_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    pulling_fd_ = open(pulling_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (pulled_fd_ < 0 || pulling_fd_ < 0) FileFails("open " + pulled_);
  }
  void Close() override {
    for (int* fd : {&pulled_fd_, &pulling_fd_}) {
      if (*fd >= 0) close(*fd);
      *fd = -1;
    }
  }
  void OpenAndCheck(std::size_t records) override {
    Open();
    std::size_t good = 0;
    for (const auto& entry : std::filesystem::directory_iterator(pulled_)) {
      if (DecodePulledRecord(std::string_view(buffer_.data(), ReadFile(entry.path().string())))) {
        ++good;
      }
    }
    if (good < records) FileFails("read every record in " + pulled_);
  }

  bool Read(const Question& question) override {
    return ReadFile(pulled_ + NameOf(question.image_ref)) > 0;
  }

  void PutIntent(Pull& pull) override {
    Write(pulling_, pulling_fd_, pull.image, pull.intent_file, synced_);
  }
  void DropIntent(Pull& pull) override {
    const std::string path = pulling_ + NameOf(pull.image);
    if (unlink(path.c_str()) != 0) FileFails("remove " + path);
    if (synced_ && fsync(pulling_fd_) != 0) FileFails("flush " + pulling_);
  }
  void PutRecord(Pull& pull) override {
    Write(pulled_, pulled_fd_, pull.image_ref, pull.record_file, synced_);
    DropIntent(pull);
  }

 private:
  static void Write(const std::string& directory, int directory_fd, std::string_view identity,
                    const std::string& content, bool synced) {
    const std::string path = directory + NameOf(identity);
    const std::string temporary = path + ".tmp";
    const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) FileFails("make " + temporary);
    const auto size = static_cast<ssize_t>(content.size());
    const bool written =
        write(fd, content.data(), content.size()) == size && (!synced || fsync(fd) == 0);
    if (close(fd) != 0 || !written) FileFails("write " + temporary);
    if (rename(temporary.c_str(), path.c_str()) != 0) FileFails("rename " + temporary);
    if (synced && fsync(directory_fd) != 0) FileFails("flush " + directory);
  }

  // Into buffer_. Returns its bytes; 0: there is no such file.
  std::size_t ReadFile(const std::string& path) {
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    const ssize_t got = read(fd, buffer_.data(), buffer_.size());
    close(fd);
    return got > 0 ? static_cast<std::size_t>(got) : 0;
  }

  bool synced_;
  std::string pulled_;
  std::string pulling_;
  int pulled_fd_ = -1;
  int pulling_fd_ = -1;
  std::array<char, 65536> buffer_{};
};

}  // namespace

std::unique_ptr<Peer> MakeFiles(const std::filesystem::path& directory, bool synced) {
  return std::make_unique<FilesPeer>(directory, synced);
}

}  // namespace waybill::bench
