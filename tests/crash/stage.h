// What is opened while something goes wrong: a store, its witness and a kubelet's directory, and a
// copy of them to go back to. And what a store then says of itself.

#ifndef WAYBILL_TESTS_CRASH_STAGE_H_
#define WAYBILL_TESTS_CRASH_STAGE_H_

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "store/base/options.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "waybill/values.h"

namespace waybill::testing {

class Stage {
 public:
  Stage() { std::filesystem::create_directory(now()); }
  std::filesystem::path now() const { return scratch_ / "now"; }  // all of it
  std::filesystem::path store() const { return now() / "store"; }
  std::filesystem::path database() const { return store() / "data.mdb"; }
  std::filesystem::path kubelet() const { return now() / "kubelet"; }
  void Keep() const;
  void PutBack() const;

  // With the kubelet's directory if there is one.
  NodeStoreOptions Options(Mode rules = Mode::kStrict) const;

 private:
  MemoryDir scratch_;
};
// A fixture.
struct OnStage {
  const Stage stage;
};

std::string Ref(std::size_t i);
std::string Image(std::size_t i);

// What a kubelet left: records, intents, records that can't be read, and two pods with ID mappings.
void WriteKubeletFiles(const std::filesystem::path& directory, std::size_t records,
                       std::size_t intents, std::size_t broken);
// Records of Ref(0), Ref(1) …, then intents for the images after theirs; a cancelled pull, and what
// a list of a preloaded and of a late image leaves.
void Fill(const NodeStoreOptions& options, std::size_t records, std::size_t intents);
void DamageRecord(const std::filesystem::path& database, const std::string& ref);

// Opens, does `then`, and closes. All that the store holds, whether it trusts that, and how many
// databases were set aside.
std::string OpenAndTell(const NodeStoreOptions& options,
                        const std::function<void(NodeStore&)>& then = nullptr);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CRASH_STAGE_H_
