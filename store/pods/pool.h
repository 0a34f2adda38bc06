// Blocks of 65,536 host IDs, and slots of as many blocks as the pool gives to a pod. Pure.

#ifndef WAYBILL_STORE_PODS_POOL_H_
#define WAYBILL_STORE_PODS_POOL_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// What a kubelet makes of the node's subordinate IDs. The defaults take what any release takes.
struct PoolRules {
  // A pool that reaches 2^32-1 is refused, and the default one is a range shorter.
  bool ends_before_last_id = false;
  // With a user `kubelet`, but without getsubids, the kubelet does not start.
  bool needs_tool = false;
  // Whether the user exists, getent alone tells: without it there is none.
  bool asks_getent = false;
};
// Of the kubelets 1.`minor`: v1.36.3, v1.37.2 and v1.38.0-beta.0, pkg/kubelet/kubelet_pods.go and
// userns/userns_manager.go.
constexpr PoolRules PoolRulesOf(int minor) {
  return {.ends_before_last_id = minor >= 38, .needs_tool = minor < 38, .asks_getent = minor >= 38};
}

// kInvalidArgument, in the kubelet's words: the pool breaks a rule of IdPool. Reserved ranges do
// not count for max_pods.
Result<void> CheckIdPool(const IdPool& pool, const PoolRules& rules = {});

// What the system says about the user `kubelet`.
struct SubordinateIds {
  bool user_exists = false;
  bool tool_exists = false;  // getsubids is installed
  std::string uids = {};     // what `getsubids kubelet` printed, as it is
  std::string gids = {};     // what `getsubids -g kubelet` printed
};

// The pool that a node is configured for (KEP-127, "Configuration of ranges"). If the user or the
// tool is missing, that is the default pool, unless the rules need the tool. Otherwise both outputs
// must be the same single line, "0: kubelet FIRST COUNT". kInvalidArgument, in the kubelet's words:
// they are not, or the pool is invalid.
Result<IdPool> PoolOfSubordinateIds(const SubordinateIds& found,
                                    std::uint64_t ids_per_pod = kIdsPerBlock,
                                    std::uint64_t max_pods = 110, const PoolRules& rules = {});

}  // namespace waybill

namespace waybill::internal {

inline constexpr std::uint32_t kBlocks = 65536;
inline constexpr std::uint32_t kHostBlock = 0;
inline constexpr std::uint32_t kLastBlock = kBlocks - 1;  // contains 2^32−1

struct BlockRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  std::uint32_t end() const { return first + count; }
  bool Overlaps(const BlockRange& other) const {
    return first < other.end() && other.first < end();
  }
  friend bool operator==(const BlockRange&, const BlockRange&) = default;
};

// "host IDs 65536 to 131071".
std::string ShownRange(HostIdRange range);

// The blocks that the range touches. A range may reach past 2^32.
BlockRange BlocksOf(std::uint64_t first_id, std::uint64_t length);

// A set of blocks. Ignores what lies past the last block.
class BlockSet {
 public:
  void Add(BlockRange blocks);
  // Whether the set has any of them.
  bool HasAnyOf(BlockRange blocks) const;

 private:
  std::vector<bool> has_;  // empty: none
};

// The slots that can be handed out: those without kHostBlock and kLastBlock.
struct Slots {
  std::uint32_t first_block = 0;
  std::uint32_t blocks_per_slot = 1;
  std::uint32_t count = 0;

  BlockRange At(std::uint32_t slot) const {
    return {first_block + slot * blocks_per_slot, blocks_per_slot};
  }
};
// `pool` is valid.
Slots SlotsOf(const IdPool& pool);
PoolRelation RelationTo(const IdPool& pool, std::uint64_t host_id, std::uint64_t length);

// Checks the form of UserNamespaceRequest::pod_uid.
Result<void> CheckPodUid(std::string_view pod_uid);
// The rules for a mapping in any pool: NodeStore::AdoptUserNamespace.
Result<void> CheckMapping(std::uint64_t host_id, std::uint64_t length);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_PODS_POOL_H_
