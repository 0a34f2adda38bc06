// A node, and who keeps its records through a trace: waybill (store_side.h), or files behind an LRU
// (kubelet_files.h).

#ifndef WAYBILL_BENCH_SIZING_SIDE_H_
#define WAYBILL_BENCH_SIZING_SIDE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "bench/sizing/trace.h"
#include "waybill/values.h"

namespace waybill::bench {

// The machine's clocks, and what its runtime lists.
class NodeState {
 public:
  explicit NodeState(const std::vector<ImageId>& preloaded);

  void SetTime(std::int64_t second);
  void Reboot();
  Timestamp now() const { return AsClock()(); }
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

struct Answer {
  bool pull = false;
  Reason reason = Reason::kImageAbsent;
};

class Side {
 public:
  // The node must outlive this.
  explicit Side(const NodeState& node) : node_(node) {}
  virtual ~Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  virtual Answer Decide(const ImageCopy& copy, const ImagePullSecret& secret) = 0;
  // Ends what a decision left to be written.
  virtual void Flush() {}
  // A pull begins; the last one to begin brought its image, or failed.
  virtual void BeginPull(ImageId image) = 0;
  virtual void EndPull(ImageId image, const ImagePullCredentials& credentials) = 0;
  virtual void FailPull(ImageId image) = 0;
  // What is on the node, after images were `collected`, or not.
  virtual void List(bool collected) = 0;
  // A new process. Returns the seconds until it answers.
  virtual double Restart() = 0;

  // What it keeps in memory to answer. Asked before a restart: a cache is empty then.
  virtual std::uint64_t ResidentBytes() = 0;
  // Of its lookups, those that no file was read for.
  virtual double HitRate() const { return 1; }
  // As the kubelet writes them, in no order.
  virtual std::vector<std::string> Records() = 0;

 protected:
  const NodeState& node() const { return node_; }

 private:
  const NodeState& node_;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_SIDE_H_
