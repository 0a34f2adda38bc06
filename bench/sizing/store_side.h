// The side of waybill: a store driven by its public API, whose clocks are those of the trace.

#ifndef WAYBILL_BENCH_SIZING_STORE_SIDE_H_
#define WAYBILL_BENCH_SIZING_STORE_SIDE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "bench/sizing/side.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

class StoreSide final : public Side {
 public:
  // A first start on that node. `trace`: where the owner writes one; empty: it writes none.
  StoreSide(std::filesystem::path directory, Mode rules, const NodeState& node,
            std::filesystem::path trace = {});

  Answer Decide(const ImageCopy& copy, const ImagePullSecret& secret) override;
  void Flush() override;
  void BeginPull(ImageId image) override;
  void EndPull(ImageId image, const ImagePullCredentials& credentials) override;
  void FailPull(ImageId image) override;
  // Closed rules judge it (ObserveImages), which also forgets what is gone; kubelet rules have
  // Prune.
  void List(bool collected) override;
  // With the list of images.
  double Restart() override;
  // Pages of its map that are in memory.
  std::uint64_t ResidentBytes() override;
  std::vector<std::string> Records() override;

  NodeStore& store() { return *store_; }
  // Of data.mdb without the room ahead.
  std::uint64_t UsedBytes() const;
  // Begins two pulls, and returns the seconds that opening would take if the owner had been killed
  // while the second was flushed: measured on a copy of that moment.
  double Recover();

 private:
  std::unique_ptr<NodeStore> Open(const std::filesystem::path& directory) const;

  std::filesystem::path directory_;
  Mode rules_;
  std::filesystem::path trace_;
  std::uint32_t cut_pulls_ = 0;  // of Recover
  std::unique_ptr<NodeStore> store_;
  std::uint64_t pull_ = 0;  // the last one to begin
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_STORE_SIDE_H_
