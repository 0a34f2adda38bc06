// Import of a kubelet directory, beside reading its files.

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <fstream>
#include <iterator>

#include "bench/micro/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::bench {

namespace {

std::string FileName(const std::string& key) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  return fmt::format("sha256-{:02x}", fmt::join(digest, ""));
}

}  // namespace

void MeasureImport(const Micro& micro) {
  const std::size_t files = micro.quick ? 50 : 10'000;
  const std::filesystem::path kubelet = micro.scratch.path() / "kubelet";
  const std::filesystem::path pulled = kubelet / "image_manager" / "pulled";
  std::filesystem::create_directories(pulled);
  std::filesystem::create_directories(kubelet / "image_manager" / "pulling");
  for (std::size_t i = 0; i < files; ++i) {
    std::ofstream(pulled / FileName(ImageRefOf(i))) << EncodePulledRecord(RecordOf(i));
  }
  const auto read = [&] {
    std::size_t bytes = 0;
    for (const auto& entry : std::filesystem::directory_iterator(pulled)) {
      std::ifstream in(entry.path());
      bytes += std::string(std::istreambuf_iterator<char>(in), {}).size();
    }
    if (bytes == 0) Unexpected("the export");
  };
  std::size_t stores = 0;
  const auto import = [&] {
    ScratchStore store(micro.scratch.path() / fmt::format("import-{}", stores++));
    OpenOptions options = store.Options();
    options.kubelet_directory = kubelet;
    if (Must(NodeStore::Open(options))->recovery_report().import.records != files) {
      Unexpected("the import");
    }
  };
  micro.Row(
      fmt::format("import of {} files", Grouped(files)),
      [&](State& state) { Beside(state, read, kNothing, import); }, kLong);
}

}  // namespace waybill::bench
