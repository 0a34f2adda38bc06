// Import of a kubelet directory, beside reading its files.

#include <fmt/format.h>

#include "bench/kubelet_folder.h"
#include "bench/micro/rows.h"
#include "migrations/kubelet/kubelet_records.h"
#include "store/base/options.h"
#include "store/node/facade/node_store.h"

namespace waybill::bench {

void MeasureImport(const Micro& micro) {
  const std::size_t files = micro.quick ? 50 : 10'000;
  const std::filesystem::path kubelet = micro.scratch.path() / "kubelet";
  KubeletFolder pulled(kubelet / "image_manager" / "pulled");
  const KubeletFolder pulling(kubelet / "image_manager" / "pulling");
  for (std::size_t i = 0; i < files; ++i) {
    pulled.Write(ImageRefOf(i), EncodePulledRecord(RecordOf(i)), false);
  }
  const auto read = [&] {
    std::size_t bytes = 0;
    pulled.ForEach([&](std::string_view content) { bytes += content.size(); });
    if (bytes == 0) Unexpected("the export");
  };
  std::size_t stores = 0;
  const auto import = [&] {
    ScratchStore store(micro.scratch.path() / fmt::format("import-{}", stores++));
    NodeStoreOptions options = store.Options();
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
