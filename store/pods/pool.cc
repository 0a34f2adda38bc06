#include "store/pods/pool.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "store/base/caught.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using internal::QuoteForMessage;
using internal::Slots;
using std::to_string;

constexpr std::uint64_t kLastId = kHostIds - 1;

Error Invalid(std::string message, std::string_view hint) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::string(hint)};
}

Result<void> CheckIdsPerPod(std::uint64_t ids) {
  const std::string hint = "IDs per pod are a multiple of " + to_string(kIdsPerBlock) +
                           ", at most " + to_string(kHostIds - kIdsPerBlock);
  if (ids == 0) {
    return Invalid("invalid configuration: userNamespaces.idsPerPod must not be less than " +
                       to_string(kIdsPerBlock),
                   hint);
  }
  if (ids > kLastId) {
    return Invalid("invalid configuration: userNamespaces.idsPerPod must not be more than " +
                       to_string(kLastId),
                   hint);
  }
  if (ids % kIdsPerBlock != 0) {
    return Invalid("kubelet user namespace length " + to_string(ids) + " is not a multiple of " +
                       to_string(kIdsPerBlock),
                   hint);
  }
  return {};
}

// --- What getsubids printed: "0: kubelet FIRST COUNT" --------------------------------------------

constexpr std::size_t kGetsubidsFields = 4;
constexpr std::string_view kGetsubidsForm =
    "getsubids kubelet must print one line, \"0: kubelet FIRST COUNT\"";

std::string_view WithoutNewlines(std::string_view text) {
  const std::size_t first = text.find_first_not_of('\n');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of('\n') + 1 - first);
}

// Stops one field after those that a line may have.
std::vector<std::string_view> FieldsOf(std::string_view line) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string_view> fields;
  while (fields.size() <= kGetsubidsFields) {
    const std::size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kSpace), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return fields;
}

Result<std::uint32_t> ParseId(std::string_view output, std::string_view field) {
  std::uint32_t id = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, id);
  if (error == std::errc() && stop == end) return id;
  const std::string_view why =
      error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax";
  return Invalid("error parsing line " + QuoteForMessage(output) + ": " + QuoteForMessage(field) +
                     ": " + std::string(why),
                 kGetsubidsForm);
}

Result<HostIdRange> ParseGetsubids(std::string_view output) {
  const std::string_view line = WithoutNewlines(output);
  if (line.find('\n') != std::string_view::npos) {
    return Invalid(
        "error parsing line " + QuoteForMessage(output) + ": it must contain only one line",
        "give the user kubelet one range in /etc/subuid, and the same one in /etc/subgid");
  }
  const std::vector<std::string_view> fields = FieldsOf(line);
  // A kubelet reads only the numbers, but another user's line is not the node's pool.
  if (fields.size() != kGetsubidsFields || fields[0] != "0:" || fields[1] != "kubelet") {
    return Invalid("invalid line " + QuoteForMessage(output), kGetsubidsForm);
  }
  auto first = TRY(ParseId(output, fields[2]));
  auto count = TRY(ParseId(output, fields[3]));
  return HostIdRange{first, count};
}

}  // namespace

IdPool IdPool::Default(std::uint64_t ids_per_pod, std::uint64_t max_pods) {
  IdPool pool{ids_per_pod, 0, ids_per_pod, max_pods};
  if (ids_per_pod == 0 || ids_per_pod >= kHostIds) return pool;
  // 2^32 need not be a multiple. Then the IDs after the last whole range are left out.
  pool.id_count = kHostIds - ids_per_pod;
  pool.id_count -= pool.id_count % ids_per_pod;
  return pool;
}

Result<void> CheckIdPool(const IdPool& pool, const PoolRules& rules) try {
  const std::uint64_t ids = pool.ids_per_pod;
  TRY(CheckIdsPerPod(ids));
  if (pool.first_id % ids != 0) {
    return Invalid("kubelet user assigned ID " + to_string(pool.first_id) +
                       " is not a multiple of " + to_string(ids),
                   "let the pool begin at a multiple of the IDs per pod");
  }
  if (pool.first_id < ids) {
    return Invalid("kubelet user assigned ID " + to_string(pool.first_id) +
                       " must be greater or equal to " + to_string(ids),
                   "let the pool begin at " + to_string(ids) + ": IDs below are the host's");
  }
  if (pool.id_count % ids != 0) {
    return Invalid("kubelet user assigned IDs length " + to_string(pool.id_count) +
                       " is not a multiple of " + to_string(ids),
                   "let the pool have " + to_string(pool.id_count - pool.id_count % ids) + " IDs");
  }
  if (pool.first_id > kHostIds || pool.id_count > kHostIds - pool.first_id) {
    return Invalid("kubelet user assigned IDs, " + to_string(pool.id_count) + " from " +
                       to_string(pool.first_id) + " on, reach past " + to_string(kLastId),
                   "host IDs have 32 bits: let the pool be smaller, or begin lower");
  }
  if (rules.ends_before_last_id && pool.first_id + pool.id_count > kLastId) {
    return Invalid("kubelet user assigned ID " + to_string(pool.first_id) +
                       " with assigned IDs length " + to_string(pool.id_count) +
                       " ends past the last mappable ID " + to_string(kLastId - 1),
                   "let the pool have " + to_string(pool.id_count - ids) + " IDs");
  }
  const Slots slots = internal::SlotsOf(pool);
  if (slots.count < pool.max_pods) {
    std::string hint = "it has " + to_string(slots.count) + " ranges of " + to_string(ids);
    if (slots.count < pool.id_count / ids) {
      hint += ", not counting that with " + to_string(kLastId) + ", which the kernel never maps";
    }
    return Invalid(
        "kubelet user assigned IDs are not enough to support " + to_string(pool.max_pods) + " pods",
        hint + "; give the pool more IDs, or lower maxPods or the IDs per pod");
  }
  return {};
} catch (...) {
  return internal::Caught();
}

Result<IdPool> PoolOfSubordinateIds(const SubordinateIds& found, std::uint64_t ids_per_pod,
                                    std::uint64_t max_pods, const PoolRules& rules) try {
  IdPool pool = IdPool::Default(ids_per_pod, max_pods);
  const bool reaches_end = pool.first_id + pool.id_count > kLastId;
  if (rules.ends_before_last_id && reaches_end) pool.id_count -= ids_per_pod;
  if (rules.needs_tool && found.user_exists && !found.tool_exists) {
    return Invalid("exec: \"getsubids\": executable file not found in $PATH",
                   "install getsubids, or remove the user kubelet");
  }
  if (found.user_exists && found.tool_exists) {
    if (found.uids != found.gids) {
      return Invalid("mismatched subuids and subgids for user \"kubelet\"",
                     "give it the same one range in /etc/subuid and /etc/subgid");
    }
    auto range = TRY(ParseGetsubids(found.uids));
    pool.first_id = range.first;
    pool.id_count = range.length;
  }
  TRY(CheckIdPool(pool, rules));
  return pool;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill

namespace waybill::internal {

std::string ShownRange(HostIdRange range) {
  return "host IDs " + to_string(range.first) + " to " + to_string(range.first + range.length - 1);
}

BlockRange BlocksOf(std::uint64_t first_id, std::uint64_t length) {
  if (length == 0 || first_id > kLastId) return {};
  const std::uint64_t last_id = first_id + std::min(length - 1, kLastId - first_id);
  const auto first = static_cast<std::uint32_t>(first_id / kIdsPerBlock);
  return {first, static_cast<std::uint32_t>(last_id / kIdsPerBlock) - first + 1};
}

void BlockSet::Add(BlockRange blocks) {
  if (has_.empty()) has_.resize(kBlocks);
  for (std::uint32_t i = blocks.first; i < kBlocks && i - blocks.first < blocks.count; ++i) {
    has_[i] = true;
  }
}

bool BlockSet::HasAnyOf(BlockRange blocks) const {
  for (std::uint32_t i = blocks.first; i < has_.size() && i - blocks.first < blocks.count; ++i) {
    if (has_[i]) return true;
  }
  return false;
}

Slots SlotsOf(const IdPool& pool) {
  if (pool.ids_per_pod < kIdsPerBlock || pool.ids_per_pod > kLastId) return {};
  if (pool.first_id > kHostIds || pool.id_count > kHostIds - pool.first_id) return {};
  Slots slots{static_cast<std::uint32_t>(pool.first_id / kIdsPerBlock),
              static_cast<std::uint32_t>(pool.ids_per_pod / kIdsPerBlock),
              static_cast<std::uint32_t>(pool.id_count / pool.ids_per_pod)};
  if (slots.count > 0 && slots.first_block == kHostBlock) {
    slots.first_block += slots.blocks_per_slot;
    --slots.count;
  }
  if (slots.count > 0 && slots.At(slots.count - 1).end() > kLastBlock) --slots.count;
  return slots;
}

PoolRelation RelationTo(const IdPool& pool, std::uint64_t host_id, std::uint64_t length) {
  if (length != pool.ids_per_pod) return PoolRelation::kOtherLength;
  const bool inside = host_id >= pool.first_id && length <= pool.id_count &&
                      host_id - pool.first_id <= pool.id_count - length;
  return inside ? PoolRelation::kInPool : PoolRelation::kOutsidePool;
}

Result<void> CheckPodUid(std::string_view pod_uid) {
  const auto refuse = [&](std::string_view why) {
    return Invalid("invalid pod UID " + QuoteForMessage(pod_uid) + ": " + std::string(why),
                   "give metadata.uid of the pod, the name of its directory");
  };
  if (pod_uid.empty()) return refuse("it is empty");
  if (pod_uid.size() > kMaxPodUidBytes) {
    return refuse("it has more than " + to_string(kMaxPodUidBytes) + " bytes");
  }
  if (pod_uid == "." || pod_uid == "..") return refuse("it names another directory");
  for (const char c : pod_uid) {
    if (c == '/') return refuse("there is a slash in it");
    if (static_cast<unsigned char>(c) <= 0x20) {
      return refuse("there is a space or a control character in it");
    }
  }
  return {};
}

Result<void> CheckMapping(std::uint64_t host_id, std::uint64_t length) {
  if (length == 0 || length % kIdsPerBlock != 0) {
    return Invalid("wrong user namespace length " + to_string(length),
                   "it is a multiple of " + to_string(kIdsPerBlock));
  }
  if (host_id % length != 0) {
    return Invalid("wrong user namespace offset specified " + to_string(host_id),
                   "it is a multiple of the length, " + to_string(length));
  }
  if (host_id < kIdsPerBlock) {
    return Invalid("id " + to_string(host_id) + " is out of range",
                   "the first " + to_string(kIdsPerBlock) + " IDs are the host's own");
  }
  if (host_id > kLastId || length > kLastId - host_id) {
    return Invalid("id " + to_string(host_id) + " is out of range",
                   "with length " + to_string(length) + " it reaches " + to_string(kLastId) +
                       ", which the kernel never maps");
  }
  return {};
}

}  // namespace waybill::internal
