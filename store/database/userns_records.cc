#include "store/database/userns_records.h"

#include <flatbuffers/flatbuffers.h>

#include <array>
#include <cstring>

#include "schema/v3/user_namespace_generated.h"
#include "schema/v4/user_namespace_generated.h"
#include "store/database/flatbuffer.h"
#include "store/database/uuid.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v3 = schema::v3;
namespace v4 = schema::v4;

namespace {

// A UID in whichever of its two forms.
struct StoredUid {
  StoredUid(flatbuffers::FlatBufferBuilder& builder, std::string_view uid)
      : is_raw(DecodeUuid(uid, bytes)),
        uuid(flatbuffers::span<const std::uint8_t, 16>(bytes)),
        text(is_raw ? flatbuffers::Offset<flatbuffers::String>()
                    : builder.CreateString(uid.data(), uid.size())) {}

  const v1::Uuid* raw() const { return is_raw ? &uuid : nullptr; }

  std::array<std::uint8_t, 16> bytes{};
  bool is_raw;
  v1::Uuid uuid;
  flatbuffers::Offset<flatbuffers::String> text;
};

// The root of a FlatBuffer that verifies and has one UID, which is as long as a directory's name
// may be; else null.
template <typename T>
const T* RootWithUid(std::span<const std::uint8_t> payload) {
  const auto* root = Root<T>(payload);
  if (root == nullptr || (root->uid_raw() == nullptr) == (root->uid_text() == nullptr) ||
      !Fits(root->uid_text(), kMaxFileNameBytes)) {
    return nullptr;
  }
  return root;
}

template <typename T>
std::string Uid(const T& root) {
  if (root.uid_raw() == nullptr) return root.uid_text()->str();
  return EncodeUuid(std::span<const std::uint8_t, 16>(root.uid_raw()->bytes()->data(), 16));
}

bool MayBeHandedOut(std::uint64_t host_id, std::uint64_t length) {
  return host_id % kIdsPerBlock == 0 && length % kIdsPerBlock == 0 && host_id >= kIdsPerBlock &&
         length > 0 && host_id + length < kHostIds;
}

constexpr std::uint16_t kFirstWithKinds = 4;

// What version 3 says in sentences. It compares the first one.
constexpr std::string_view kUntilImport =
    "the ID mappings of the kubelet's pods are not taken over: ";

HeldKind KindInWords(const HeldPod& pod) {
  const std::string_view reason = pod.reason;
  if (pod.pod_uid.empty()) {
    return reason.starts_with(kUntilImport) ? HeldKind::kUntilImport : HeldKind::kLostRanges;
  }
  if (reason.starts_with("its range overlaps that of pod ") ||
      reason.starts_with("its range is taken by pod ") || reason.starts_with("its file says ")) {
    return HeldKind::kFileConflict;
  }
  if (reason == "the stored ID mappings contradicted each other") {
    return HeldKind::kTablesContradict;
  }
  if (reason.starts_with("its range is that of a backup")) return HeldKind::kFromBackup;
  return pod.source.empty() ? HeldKind::kOther : HeldKind::kUnreadableFile;
}

std::string InOldWords(const HeldPod& pod) {
  if (!pod.pod_uid.empty()) return pod.reason;
  const bool begins = pod.reason.starts_with(kUntilImport);
  if (pod.kind == HeldKind::kUntilImport && !begins) {
    return std::string(kUntilImport) + pod.reason;
  }
  // Only that kind may be taken for it.
  return pod.kind != HeldKind::kUntilImport && begins ? "lost: " + pod.reason : pod.reason;
}

}  // namespace

std::vector<std::uint8_t> EncodeUsernsMapping(const UsernsMapping& mapping) {
  flatbuffers::FlatBufferBuilder builder(256);
  const StoredUid uid(builder, mapping.pod_uid);
  const v1::Time created = ToTime(mapping.created);
  return Finish(builder, v3::CreateUsernsMapping(builder, uid.raw(), uid.text, mapping.host_id,
                                                 mapping.length, &created, mapping.stamp));
}

std::optional<UsernsMapping> DecodeUsernsMapping(std::span<const std::uint8_t> payload) {
  const auto* root = RootWithUid<v3::UsernsMapping>(payload);
  if (root == nullptr || root->created() == nullptr ||
      !MayBeHandedOut(root->host_id(), root->length())) {
    return std::nullopt;
  }
  return UsernsMapping{Uid(*root), root->host_id(), root->length(), FromTime(*root->created()),
                       root->stamp()};
}

std::vector<std::uint8_t> EncodeUsernsBlock(const UsernsBlock& block) {
  flatbuffers::FlatBufferBuilder builder(128);
  const StoredUid uid(builder, block.pod_uid);
  return Finish(builder, v3::CreateUsernsBlock(builder, uid.raw(), uid.text,
                                               static_cast<std::uint16_t>(block.block)));
}

std::optional<UsernsBlock> DecodeUsernsBlock(std::span<const std::uint8_t> payload) {
  const auto* root = RootWithUid<v3::UsernsBlock>(payload);
  if (root == nullptr || !MayBeHandedOut(root->block() * kIdsPerBlock, kIdsPerBlock)) {
    return std::nullopt;
  }
  return UsernsBlock{Uid(*root), root->block()};
}

std::vector<std::uint8_t> EncodeUsernsHeld(const UsernsHeld& held, std::uint16_t version) {
  const bool has_kind = version >= kFirstWithKinds;
  flatbuffers::FlatBufferBuilder builder(256);
  const StoredUid uid(builder, held.pod.pod_uid);
  std::vector<v3::IdRange> ranges;
  ranges.reserve(held.pod.ranges.size());
  for (const HostIdRange& range : held.pod.ranges) ranges.emplace_back(range.first, range.length);
  const auto ranges_at = builder.CreateVectorOfStructs(ranges);
  const auto source = builder.CreateString(held.pod.source);
  const auto reason = builder.CreateString(has_kind ? held.pod.reason : InOldWords(held.pod));
  const v1::Time since = ToTime(held.pod.since);
  return Finish(builder,
                v4::CreateUsernsHeld(
                    builder, uid.raw(), uid.text, ranges_at, source, reason, &since, held.stamp,
                    has_kind ? static_cast<std::uint8_t>(held.pod.kind) : std::uint8_t{0}));
}

std::optional<UsernsHeld> DecodeUsernsHeld(std::span<const std::uint8_t> payload) {
  const auto* root = RootWithUid<v4::UsernsHeld>(payload);
  if (root == nullptr || root->ranges() == nullptr || root->source() == nullptr ||
      root->reason() == nullptr || root->since() == nullptr) {
    return std::nullopt;
  }
  UsernsHeld held{{Uid(*root),
                   {},
                   root->source()->str(),
                   root->reason()->str(),
                   FromTime(*root->since()),
                   static_cast<HeldKind>(root->kind())},
                  root->stamp()};
  for (const v3::IdRange* range : *root->ranges()) {
    held.pod.ranges.push_back({range->first(), range->length()});
  }
  if (root->kind() == 0) held.pod.kind = KindInWords(held.pod);
  return held;
}

std::optional<IdMapping> MappingOf(std::span<const std::uint8_t> payload,
                                   std::string_view pod_uid) {
  const auto* root = flatbuffers::GetRoot<v3::UsernsMapping>(payload.data());
  if (root->uid_raw() != nullptr) {
    std::array<std::uint8_t, 16> raw{};
    if (!DecodeUuid(pod_uid, raw) ||
        std::memcmp(root->uid_raw()->bytes()->data(), raw.data(), raw.size()) != 0) {
      return std::nullopt;
    }
  } else if (Text(root->uid_text()) != pod_uid) {
    return std::nullopt;
  }
  return IdMapping{root->host_id(), 0, root->length()};
}

std::uint64_t StampOf(std::span<const std::uint8_t> payload) {
  return flatbuffers::GetRoot<v3::UsernsMapping>(payload.data())->stamp();
}

}  // namespace waybill::internal
