// The side of waybill: a store that lives through a trace, driven by its public API, whose clocks
// are those of the trace.

#ifndef WAYBILL_BENCH_SIZING_STORE_SIDE_H_
#define WAYBILL_BENCH_SIZING_STORE_SIDE_H_

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/sizing/trace.h"
#include "store/node/facade/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

// The machine's clocks, and what its runtime lists.
class NodeState {
 public:
  explicit NodeState(const std::vector<ImageId>& preloaded);

  void SetTime(std::int64_t second);
  void Reboot();
  Timestamp now() const;
  Clock AsClock() const;
  BootClock AsBootClock() const;

  void Add(ImageId image);
  void Remove(const std::vector<ImageId>& images);
  std::vector<ListedImage> images() const;

 private:
  struct Time;
  std::shared_ptr<Time> time_;
  std::map<std::uint32_t, ListedImage> images_;  // by ref
};

class StoreSide {
 public:
  // A first start on that node. `node` must outlive this. `trace`: where the owner writes one;
  // empty: it writes none.
  StoreSide(std::filesystem::path directory, Rules rules, const NodeState& node,
            std::filesystem::path trace = {});

  NodeStore& store() { return *store_; }
  void Pull(ImageId image, const ImagePullCredentials& credentials);
  void FailPull(ImageId image);
  void CutPull(ImageId image);
  // Lists what is on the node. Closed rules judge it (ObserveImages), which also forgets what is
  // gone; kubelet rules have Prune, if images were `collected`.
  void List(bool collected);
  // Closes, and opens with the list of images. Returns the seconds that opening took.
  double Restart();
  // Begins two pulls, and returns the seconds that opening would take if the owner had been killed
  // while the second was flushed: measured on a copy of that moment.
  double Recover();

  // Of data.mdb without the room ahead; pages of its map that are in memory.
  std::uint64_t UsedBytes() const;
  std::uint64_t ResidentBytes() const;

 private:
  // With the list of images.
  std::unique_ptr<NodeStore> Open(const std::filesystem::path& directory) const;

  std::filesystem::path directory_;
  Rules rules_;
  const NodeState& node_;
  std::filesystem::path trace_;
  std::uint32_t cut_pulls_ = 0;  // of Recover
  ImageList list_;
  std::unique_ptr<NodeStore> store_;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_STORE_SIDE_H_
