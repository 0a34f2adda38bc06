// Host ID ranges for pods in user namespaces (KEP-127). A pod with hostUsers: false gets a range of
// host IDs, the same for UIDs and GIDs, that no other pod of the node shares while it lives.
//
// IDs are handed out in blocks of 65,536. Two blocks are reserved: block 0 belongs to the host, and
// the last one contains 2^32−1, which the kernel never maps (kubernetes#139916).

#ifndef WAYBILL_USER_NAMESPACE_H_
#define WAYBILL_USER_NAMESPACE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/types.h"

namespace [[gnu::visibility("default")]] waybill {

inline constexpr std::uint64_t kIdsPerBlock = 65536;
inline constexpr std::uint64_t kHostIds = std::uint64_t{1} << 32;

// --- What a sandbox and its mounts are given
// --------------------------------------------------------

// CRI's IDMapping.
struct IdMapping {
  std::uint32_t host_id = 0;
  std::uint32_t container_id = 0;
  std::uint32_t length = 0;

  friend bool operator==(const IdMapping&, const IdMapping&) = default;
};

// At most one mapping, as the kubelet uses them.
class IdMappings {
 public:
  IdMappings() = default;
  explicit IdMappings(const IdMapping& only) : only_{only}, size_(1) {}

  const IdMapping* begin() const { return only_.data(); }
  const IdMapping* end() const { return only_.data() + size_; }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const IdMapping& front() const { return only_[0]; }  // not empty

  friend bool operator==(const IdMappings&, const IdMappings&) = default;

 private:
  std::array<IdMapping, 1> only_{};
  std::size_t size_ = 0;
};

// A mode of user namespaces, with CRI's numbers.
enum class NamespaceMode : std::uint8_t { kPod = 0, kNode = 2 };

// CRI's UserNamespace. With kPod, `uids` and `gids` hold the same mapping, from container ID 0; the
// pod's mounts use it, too (uid_mappings, gid_mappings). With kNode both are empty.
struct UserNamespace {
  NamespaceMode mode = NamespaceMode::kNode;
  IdMappings uids = {};
  IdMappings gids = {};

  friend bool operator==(const UserNamespace&, const UserNamespace&) = default;
};

struct UserNamespaceRequest {
  // 1 to kMaxPodUidBytes bytes above 0x20, neither "." nor "..", without '/': the name of the pod's
  // directory.
  std::string_view pod_uid = {};
  // pod.spec.hostUsers. nullopt: not set.
  std::optional<bool> host_users = {};
  // The handler of the pod's RuntimeClass; empty: the default handler.
  std::string_view runtime_handler = {};
  // The length that the caller requires; nullopt: any.
  std::optional<std::uint32_t> length = std::nullopt;
};

// --- The pool ------------------------------------------------------------------------------------

// Where new ranges are taken from. The types are wider than IDs, so that an out-of-bounds pool can
// be reported.
struct IdPool {
  // A multiple of ids_per_pod, and at least that.
  std::uint64_t first_id = kIdsPerBlock;
  // A multiple of ids_per_pod; first_id + id_count <= 2^32.
  std::uint64_t id_count = kHostIds - kIdsPerBlock;
  // Length of each new range: a multiple of 65,536 below 2^32 (the kubelet's
  // userNamespaces.idsPerPod).
  std::uint64_t ids_per_pod = kIdsPerBlock;
  // Pods that the pool must have room for (the kubelet's maxPods).
  std::uint64_t max_pods = 110;

  // What a kubelet without configuration uses: ids_per_pod to 2^32, cut to whole ranges.
  static IdPool Default(std::uint64_t ids_per_pod = kIdsPerBlock, std::uint64_t max_pods = 110);

  friend bool operator==(const IdPool&, const IdPool&) = default;
};

// kInvalidArgument, in the kubelet's words: the pool breaks one of the rules above. Reserved ranges
// do not count for max_pods. Pure, thread-safe.
Result<void> CheckIdPool(const IdPool& pool);

// What the system says about the user `kubelet`.
struct SubordinateIds {
  bool user_exists = false;
  bool tool_exists = false;  // getsubids is installed
  std::string uids = {};     // what `getsubids kubelet` printed, as it is
  std::string gids = {};     // what `getsubids -g kubelet` printed
};

// The pool that a node is configured for (KEP-127, "Configuration of ranges"). If the user or the
// tool is missing, that is the default pool. (v1.36.3 fails to start if only the tool is missing,
// against the KEP.) Otherwise both outputs must be the same single line, "0: kubelet FIRST COUNT".
// kInvalidArgument, in the kubelet's words: they are not, or the pool is invalid. Pure,
// thread-safe.
Result<IdPool> PoolOfSubordinateIds(const SubordinateIds& found,
                                    std::uint64_t ids_per_pod = kIdsPerBlock,
                                    std::uint64_t max_pods = 110);

struct UserNamespaceOptions {
  // The feature UserNamespacesSupport. If off, no new mappings are handed out and `pool` is
  // ignored; releasing, listing and cleaning up still work.
  bool enabled = true;
  IdPool pool = {};
};

// --- What is stored ------------------------------------------------------------------------------

// How a pod's range relates to the current pool.
enum class PoolRelation : std::uint8_t {
  kInPool,
  kOutsidePool,  // partly or wholly (kubernetes#141941)
  kOtherLength,  // differs from the pool's ids_per_pod (kubernetes#137912)
};

// A pod's ID mapping. Whatever the pool is now, the mapping stays valid for its pod and blocks the
// ranges that it overlaps until it is released.
struct PodMapping {
  std::string pod_uid = {};
  std::uint32_t host_id = 0;
  std::uint32_t length = 0;
  Timestamp created = {};
  PoolRelation relation = PoolRelation::kInPool;

  friend bool operator==(const PodMapping&, const PodMapping&) = default;
};

// A range of host IDs.
struct HostIdRange {
  std::uint64_t first = 0;
  std::uint64_t length = 0;

  friend bool operator==(const HostIdRange&, const HostIdRange&) = default;
};

// Why a pod is held. The numbers are stored, and never 0. A number that this version does not know
// holds as much as any other.
enum class PodQuarantineKind : std::uint8_t {
  kOther = 1,
  kFileConflict = 2,      // its file contradicts another one, or the store
  kTablesContradict = 3,  // the store's own tables contradict each other
  kUnreadableFile = 4,    // its file can't be read, or no kubelet would accept it
  kFromBackup = 5,        // its range comes from a backup, and may be another pod's by now
  kLostRanges = 6,        // without a UID: ranges were lost
  kUntilImport = 7,       // without a UID: until the files of the kubelet's pods are taken over
};

// Spellings for output: "fileConflict", …. "unknown": a number of a later version.
std::string_view PodQuarantineKindName(PodQuarantineKind kind);

// A pod that may live with unverified host IDs: its file was broken, or its range overlaps another
// one or was lost. It gets no mapping, and its ranges are not handed out.
struct QuarantinedPod {
  std::string pod_uid = {};  // empty: ranges of unknown pods were lost
  // Empty: the range is unknown, so no new range can be handed out to any pod.
  std::vector<HostIdRange> ranges = {};
  std::string source = {};  // the file, below the kubelet directory; or empty
  std::string reason = {};
  Timestamp since = {};
  PodQuarantineKind kind = PodQuarantineKind::kOther;

  friend bool operator==(const QuarantinedPod&, const QuarantinedPod&) = default;
};

// In ranges of the pool's ids_per_pod.
struct PoolUse {
  bool enabled = true;
  IdPool pool = {};
  std::uint64_t ranges = 0;            // all but the reserved ones
  std::uint64_t used = 0;              // of those: taken, or overlapped by another range
  std::uint64_t free = 0;              // ranges - used
  std::uint64_t largest_free_run = 0;  // ranges side by side
  std::uint64_t allocations = 0;
  std::uint64_t outside_pool = 0;  // of those; see PoolRelation
  std::uint64_t other_length = 0;  // likewise
  std::uint64_t held_pods = 0;
  // Why no range can be handed out now: the range of a held pod is unknown. Empty: ranges can.
  std::string refused_because = {};
};

// What a cleanup of mappings did.
struct CleanUpReport {
  std::uint64_t examined = 0;  // pods
  std::uint64_t released = 0;
  std::uint64_t kept_in_lists = 0;
  std::uint64_t kept_newer = 0;                 // written after the token was drawn
  std::vector<std::string> released_pods = {};  // their UIDs, the first 1000
};

// What opening found and did about ranges.
struct IdMappingReport {
  std::uint64_t files_seen = 0;
  std::uint64_t unchanged = 0;        // files whose mappings the store already has
  std::uint64_t imported = 0;         // mappings taken
  std::uint64_t held = 0;             // pods held by this import, or still held for the same reason
  std::uint64_t repaired_blocks = 0;  // block table entries that contradicted allocations
  std::vector<std::string> problems = {};  // one line a pod; the first 100
  std::uint64_t allocations = 0;           // after opening
  std::uint64_t held_pods = 0;
  std::uint64_t outside_pool = 0;
  std::uint64_t other_length = 0;
  std::vector<std::string> off_pool = {};  // UIDs of the pods of both; the first 100
  // As in PoolUse.
  std::string refused_because = {};
};

}  // namespace waybill

#endif  // WAYBILL_USER_NAMESPACE_H_
