// A directory on a disk for the stores of a run, deleted with the object.

#ifndef WAYBILL_BENCH_SCRATCH_H_
#define WAYBILL_BENCH_SCRATCH_H_

#include <filesystem>
#include <memory>
#include <string>

#include "bench/data_set.h"
#include "store/base/options.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

// The value, or an exception with the error's text.
template <typename T>
T Must(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().ToString());
  if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Below TMPDIR, or below /var/tmp. /tmp is not a default, since it may be in memory; nor is the
// current directory, since stores must not get into a source tree.
class Scratch {
 public:
  Scratch();
  ~Scratch();
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

// A store with a witness beside it, as on a node.
class ScratchStore {
 public:
  explicit ScratchStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  NodeStoreOptions Options() const;
  // Throws if it does not open clean.
  void Open();
  void Close();
  // Writes records 0 to `records` - 1 of the data set by durable commits; their keys come in random
  // order. Leaves the store open.
  void Fill(std::size_t records);

  const std::filesystem::path& directory() const { return directory_; }
  NodeStore* operator->() { return store_.get(); }
  NodeStore& operator*() { return *store_; }

 private:
  std::filesystem::path directory_;
  std::unique_ptr<NodeStore> store_;
};

// By the question's one Secret.
inline Decision Decide(NodeStore& store, const Question& question) {
  FixedCredentials credentials({.secrets = {&question.secret, 1}, .service_account = {}});
  return store.MustAttemptPull({.image = question.image, .image_ref = question.image_ref},
                               credentials);
}

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SCRATCH_H_
