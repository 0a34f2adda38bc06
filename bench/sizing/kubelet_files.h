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
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "bench/kubelet_folder.h"
#include "waybill/values.h"

namespace waybill::bench {

using RecordPtr = std::shared_ptr<const ImagePulledRecord>;

// The n records that were used last. While nothing was evicted, what is not here does not exist;
// afterwards a miss must ask the files (kubelet behaviour).
class RecordCache {
 public:
  explicit RecordCache(std::size_t capacity) : capacity_(capacity) {}

  // False: not here. *known_absent: surely not on disk, either.
  bool Get(std::string_view image_ref, RecordPtr& record, bool* known_absent);
  void Put(std::string_view image_ref, const RecordPtr& record);
  void Remove(std::string_view image_ref);
  // A new process.
  void Clear();

  // Of the heap; for that it is copied.
  std::int64_t HeapBytes() const;

 private:
  struct Entry {
    std::string image_ref;
    RecordPtr record;
  };
  std::size_t capacity_;
  bool evicted_ = false;
  std::mutex mutex_;       // all callers share it, as in the kubelet
  std::list<Entry> used_;  // the last used first
  std::unordered_map<std::string_view, std::list<Entry>::iterator> index_;
};

class KubeletFiles {
 public:
  // In an empty directory, which is made.
  KubeletFiles(const std::filesystem::path& directory, std::size_t capacity);

  // Of the lookups so far, those that were answered without the files, also that there is no
  // record.
  double HitRate() const;

  // The kubelet's decision, policy NeverVerifyPreloadedImages. Does not write back: `write_back`
  // says whether the secret is to be (WriteBack).
  Decision MustAttemptPull(const ImageCopy& copy, const ImagePullSecretView& secret,
                           bool* write_back);
  void WriteBack(const ImageCopy& copy, const ImagePullSecret& secret, Timestamp now);
  void RecordPullIntent(std::string_view image);
  void RecordImagePulled(const ImageCopy& copy, const ImagePullCredentials& credentials,
                         Timestamp now);
  void RecordImagePullFailed(std::string_view image);
  // Deletes the records of images that are not listed, last updated before `until`.
  void Prune(const std::vector<ListedImage>& images, Timestamp until);
  // A new process: reads and decodes every record twice, as the kubelet does, and fills the cache
  // with what fits. Returns the number of records.
  std::size_t Start();

  // What the cache takes of the heap: its entries, and the decoded records in it.
  std::int64_t HeapBytes() const { return cache_.HeapBytes(); }

  // The content of each record's file.
  std::vector<std::string> ReadAll();

 private:
  RecordPtr ReadRecord(std::string_view image_ref);
  void WriteRecord(const ImagePulledRecord& record);
  bool HasIntent(std::string_view image);

  KubeletFolder pulled_;
  KubeletFolder pulling_;
  RecordCache cache_;
  std::uint64_t lookups_ = 0;
  std::uint64_t hits_ = 0;
  std::unordered_set<std::string> intents_;  // few: its LRU never evicts here
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_KUBELET_FILES_H_
