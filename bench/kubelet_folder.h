// A folder of the files that a kubelet writes, image_manager/{pulled,pulling}/sha256-<hash>: each
// is written under another name and renamed. Here that is durable, which a kubelet leaves out: the
// file is flushed before the rename, and the folder after it. The functions throw.

#ifndef WAYBILL_BENCH_KUBELET_FOLDER_H_
#define WAYBILL_BENCH_KUBELET_FOLDER_H_

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::bench {

class KubeletFolder {
 public:
  // Makes it.
  explicit KubeletFolder(std::filesystem::path path);
  ~KubeletFolder();
  KubeletFolder(const KubeletFolder&) = delete;
  KubeletFolder& operator=(const KubeletFolder&) = delete;

  void Write(std::string_view identity, const std::string& content, bool durable = true) const;
  // nullopt: there is no such file. Good until the next one is read.
  std::optional<std::string_view> Read(std::string_view identity) {
    return ReadFile(PathOf(identity));
  }
  // Not durable without Sync. There may be none.
  void Remove(std::string_view identity) const;
  void Sync() const;

  template <typename Take>
  void ForEach(const Take& take) {
    for (const auto& file : std::filesystem::directory_iterator(path_)) {
      if (const auto content = ReadFile(file.path())) take(*content);
    }
  }

 private:
  // "…/sha256-<hex of the identity>"
  std::filesystem::path PathOf(std::string_view identity) const;
  std::optional<std::string_view> ReadFile(const std::filesystem::path& path);

  std::filesystem::path path_;
  int fd_ = -1;
  std::vector<char> buffer_;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_KUBELET_FOLDER_H_
