// A store whose default handler supports user namespaces, and a directory of pods beside it.

#ifndef WAYBILL_TESTS_SUPPORT_USERNS_STORE_H_
#define WAYBILL_TESTS_SUPPORT_USERNS_STORE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/options.h"
#include "store/maintenance.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "waybill/values.h"

namespace waybill::testing {

// `count` ranges of 65,536 IDs from block `first` on.
inline IdPool SmallPool(std::uint64_t first, std::uint64_t count,
                        std::uint64_t blocks_per_pod = 1) {
  return {first * kIdsPerBlock, count * kIdsPerBlock, blocks_per_pod * kIdsPerBlock, 1};
}

class UsernsStore {
 public:
  explicit UsernsStore(IdPool pool = IdPool::Default()) {
    options_.pool = pool;
    std::filesystem::create_directory(kubelet());
  }

  std::filesystem::path directory() const { return scratch_ / "store"; }
  std::filesystem::path database() const { return directory() / "data.mdb"; }
  std::filesystem::path witness() const { return scratch_ / "witness"; }
  std::filesystem::path kubelet() const { return scratch_ / "kubelet"; }
  std::filesystem::path pods() const { return kubelet() / "pods"; }

  void SetPool(IdPool pool) { options_.pool = pool; }
  void SwitchOff() { options_.enabled = false; }

  NodeStoreOptions Options() const {
    NodeStoreOptions options = OptionsIn(scratch_.path());
    options.clock = clock_.AsClock();
    options.user_namespaces = options_;
    options.runtime_handlers = {
        {{.name = "runc", .is_default = true, .user_namespaces = true}, {.name = "gvisor"}}};
    if (std::filesystem::exists(pods())) options.pods_directory = pods();
    return options;
  }
  void Open() { store_ = Must(NodeStore::Open(Options())); }
  void Close() {
    if (store_) Must(store_->Close());
    store_.reset();
  }
  // Of the closed store; likewise the next.
  MigrationReport Migrate(std::uint32_t version) {
    Close();
    return Must(waybill::MigrateStore(To(version)));
  }
  MigrateOptions To(std::uint32_t version, bool accept_loss = true) const {
    MigrateOptions options{.directory = directory(), .to = version};
    options.accept_loss = accept_loss;
    options.clock = clock_.AsClock();
    options.map_bytes = Options().map_bytes;
    return options;
  }
  RestoreReport Restore(const std::filesystem::path& backup) {
    Close();
    RestoreOptions options{.directory = directory(), .backup = backup};
    options.map_bytes = Options().map_bytes;
    return Must(waybill::RestoreStore(options));
  }
  // Another database takes the place of this one.
  void PutBack(const std::string& bytes) {
    Close();
    WriteFile(database(), bytes);
    std::filesystem::remove(directory() / "lock.mdb");
  }
  const IdMappingReport& Reopen() {
    Close();
    Open();
    return report();
  }
  const IdMappingReport& report() const { return store_->recovery_report().user_namespaces; }
  NodeStore* operator->() {
    if (!store_) Open();
    return store_.get();
  }
  NodeStore& operator*() { return *operator->(); }

  Result<UserNamespace> Try(const std::string& pod_uid,
                            std::optional<std::uint32_t> length = std::nullopt) {
    return (*this)->GetOrCreateUserNamespace(
        {.pod_uid = pod_uid, .host_users = false, .length = length});
  }
  // The first host ID in blocks; the mapping is whole.
  std::uint32_t Get(const std::string& pod_uid) {
    const UserNamespace got = Must(Try(pod_uid));
    if (got.mode != NamespaceMode::kPod || got.uids.size() != 1 || got.uids != got.gids ||
        got.uids.front().container_id != 0 || got.uids.front().host_id % kIdsPerBlock != 0) {
      throw std::runtime_error("not a mapping of a pod");
    }
    return static_cast<std::uint32_t>(got.uids.front().host_id / kIdsPerBlock);
  }

  void WriteFileOf(const std::string& pod_uid, const std::string& content) const {
    std::filesystem::create_directories(pods() / pod_uid);
    WriteFile(pods() / pod_uid / "userns", content);
  }
  static std::string FileOf(std::uint64_t host_id, std::uint64_t length) {
    const std::string mapping = "[{\"hostId\":" + std::to_string(host_id) +
                                ",\"containerId\":0,\"length\":" + std::to_string(length) + "}]";
    return "{\"uidMappings\":" + mapping + ",\"gidMappings\":" + mapping + "}";
  }
  void WriteMapping(const std::string& pod_uid, std::uint64_t first_block,
                    std::uint64_t blocks = 1) const {
    WriteFileOf(pod_uid, FileOf(first_block * kIdsPerBlock, blocks * kIdsPerBlock));
  }

 private:
  MemoryDir scratch_;
  FakeClock clock_;
  UserNamespaceOptions options_;
  std::unique_ptr<NodeStore> store_;
};

// Fixtures.
struct WithUserns {
  UsernsStore store;
};
struct WithFourRanges {
  UsernsStore store{SmallPool(4, 4)};
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_USERNS_STORE_H_
