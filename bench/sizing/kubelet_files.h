// The peer: records in files as the kubelet v1.36.3 writes them, and in front of them an LRU of
// n decoded records, as it has it. Unlike the kubelet it makes each write durable: temporary file,
// fsync, rename, fsync of the directory. It is faster than the kubelet where that is not the
// question: it is C++, parses image strings without regular expressions, and does not list the
// directory again at each write.
//
//   DIR/pulling/sha256-<hex of the image>     an intent
//   DIR/pulled/sha256-<hex of the image ref>  a record

#ifndef WAYBILL_BENCH_SIZING_KUBELET_FILES_H_
#define WAYBILL_BENCH_SIZING_KUBELET_FILES_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "bench/kubelet_folder.h"
#include "bench/sizing/side.h"

namespace waybill::bench {

using RecordPtr = std::shared_ptr<const ImagePulledRecord>;

// The n records that were used last.
class RecordCache {
 public:
  explicit RecordCache(std::size_t capacity) : capacity_(capacity) {}

  // nullptr: not here.
  RecordPtr Get(std::string_view image_ref);
  // Nothing was evicted: what is not here does not exist. Afterwards a miss must ask the files
  // (kubelet behaviour).
  bool holds_all() const { return !evicted_; }
  void Put(const RecordPtr& record);
  void Remove(std::string_view image_ref);
  void Clear();

 private:
  std::size_t capacity_;
  bool evicted_ = false;
  std::list<RecordPtr> used_;  // the last used first
  std::unordered_map<std::string_view, std::list<RecordPtr>::iterator> index_;
};

class KubeletFiles final : public Side {
 public:
  // In an empty directory, which is made.
  KubeletFiles(const std::filesystem::path& directory, std::size_t capacity, const NodeState& node);

  // The kubelet's decision, policy NeverVerifyPreloadedImages. Writes back before it answers.
  Answer Decide(const ImageCopy& copy, const ImagePullSecret& secret) override;
  void BeginPull(ImageId image) override;
  void EndPull(ImageId image, const ImagePullCredentials& credentials) override;
  void FailPull(ImageId image) override;
  // Deletes the records of images that are not listed, last updated before now.
  void List(bool collected) override;
  // Reads and decodes every record twice, as the kubelet does, and fills the cache with what fits.
  double Restart() override;

  // Of the heap: the cache's entries, and the decoded records in it.
  std::uint64_t ResidentBytes() override;
  double HitRate() const override;
  std::vector<std::string> Records() override;

 private:
  RecordPtr Find(std::string_view image_ref);
  RecordPtr Read(std::string_view image_ref);
  // Merges what was proven into the record.
  void Update(const ImageCopy& copy, const ImagePullCredentials& credentials);

  KubeletFolder pulled_;
  KubeletFolder pulling_;
  RecordCache cache_;
  std::uint64_t lookups_ = 0;
  std::uint64_t hits_ = 0;
  std::set<std::string, std::less<>> intents_;  // few: its LRU never evicts here
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_KUBELET_FILES_H_
