// Opening with recovery, beside bare LMDB that opens the same pages and reads each entry; size on
// disk; import of a kubelet directory.

#include <fmt/format.h>
#include <openssl/sha.h>

#include <array>
#include <fstream>
#include <stdexcept>

#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/peer_lmdb.h"
#include "bench/rows.h"
#include "waybill/kubelet_format.h"

namespace waybill::bench {

namespace {

// The time of kubelet v1.36.3 for each record file when it starts, recorded on another machine; see
// README.md.
constexpr double kKubeletStartNs = 76'000;

std::string FileName(const std::string& key) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(key.data()), key.size(), digest.data());
  std::string name = "sha256-";
  for (const unsigned char byte : digest) name += fmt::format("{:02x}", byte);
  return name;
}

void WriteKubeletDirectory(const std::filesystem::path& directory, std::size_t files) {
  const std::filesystem::path pulled = directory / "image_manager" / "pulled";
  std::filesystem::create_directories(pulled);
  std::filesystem::create_directories(directory / "image_manager" / "pulling");
  for (std::size_t i = 0; i < files; ++i) {
    std::ofstream out(pulled / FileName(ImageRefOf(i)));
    out << EncodePulledRecord(RecordOf(i));
    out.close();
    if (!out) throw std::runtime_error("cannot write below " + pulled.string());
  }
}

}  // namespace

void MeasureOpening(const Bench& bench, ScratchStore& store, std::size_t records) {
  store.Close();
  BareLmdb peer(store.directory(), bench.scratch.path() / fmt::format("opening-{}", records));
  Turns turns;
  for (std::size_t i = 0; i < bench.effort.openings; ++i) {
    const double mine = NanosecondsOf([&] { store.Open(); });
    const RecoveryReport& report = store->recovery_report();
    if (report.records < records || report.distrustful || !report.findings.empty()) {
      throw std::runtime_error("the store did not open clean; the figures are void");
    }
    store.Close();
    const double bare = NanosecondsOf([&] {
      if (peer.ReopenAndScan() < records) throw std::runtime_error("bare LMDB lost records");
    });
    turns.Add(mine, bare);
  }
  const Comparison result = turns.Result();
  const double each = result.ours / static_cast<double>(records);
  bench.report.Add({fmt::format("open and recover, warm, {} records", Grouped(records)),
                    Duration(result.ours), "bare open and scan " + Duration(result.theirs),
                    result.ratio, "x"});
  // The target is for 100,000 records.
  const Reach reach = records == 100'000 ? AtMost(150) : Reach{};
  bench.report.Add({fmt::format("  in all, {} records", Grouped(records)), Duration(result.ours),
                    "", result.ours / 1e6, "ms", reach});
  bench.report.Add({fmt::format("  a record, {} records", Grouped(records)), Duration(each), "",
                    each / 1e3, "us"});
  bench.report.Add({fmt::format("  times faster than the kubelet, {} records", Grouped(records)),
                    Duration(each), "a file, recorded: " + Duration(kKubeletStartNs),
                    kKubeletStartNs / each, "x", AtLeast(40)});
  store.Open();
}

void MeasureSize(const Bench& bench, ScratchStore& store, std::size_t records) {
  store.Close();
  BareLmdb peer(store.directory(), bench.scratch.path() / fmt::format("size-{}", records));
  store.Open();
  const BareLmdb::Size size = peer.RecordSize();
  const auto each = [&size](std::size_t bytes) {
    return static_cast<double>(bytes) / static_cast<double>(size.records);
  };
  bench.report.Add({fmt::format("disk for a record, {} random inserts", Grouped(records)),
                    fmt::format("{:.1f} MiB", static_cast<double>(size.table_bytes) / 1048576),
                    "pages of its table", each(size.table_bytes), "bytes", AtMost(512)});
  bench.report.Add({"  with other tables and free pages",
                    fmt::format("{:.1f} MiB", static_cast<double>(size.file_bytes) / 1048576),
                    "data.mdb", each(size.file_bytes), "bytes"});
}

void MeasureImport(const Bench& bench) {
  const std::size_t files = bench.effort.import_files;
  const std::filesystem::path kubelet = bench.scratch.path() / "kubelet";
  WriteKubeletDirectory(kubelet, files);
  std::vector<double> times;
  for (std::size_t i = 0; i < (bench.effort.quick ? 1U : 3U); ++i) {
    ScratchStore store(bench.scratch.path() / fmt::format("import-{}", i));
    OpenOptions options = store.Options();
    options.kubelet_directory = kubelet;
    times.push_back(NanosecondsOf([&] {
      const auto opened = Must(NodeStore::Open(options));
      if (opened->recovery_report().import.records != files) {
        throw std::runtime_error("the import left files; the figures are void");
      }
    }));
  }
  const double each = Median(times) / static_cast<double>(files);
  bench.report.Add({fmt::format("import of a kubelet directory, {} files", Grouped(files)),
                    Duration(Median(times)), "", each / 1e3, "us/file"});
}

}  // namespace waybill::bench
