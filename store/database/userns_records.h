// The records of user namespaces (schema/v3/user_namespace.fbs) as plain structs.

#ifndef WAYBILL_STORE_DATABASE_USERNS_RECORDS_H_
#define WAYBILL_STORE_DATABASE_USERNS_RECORDS_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/types.h"
#include "waybill/user_namespace.h"

namespace waybill::internal {

struct UsernsMapping {
  std::string pod_uid;
  std::uint32_t host_id = 0;
  std::uint32_t length = 0;
  Timestamp created;
  std::uint64_t stamp = 0;
};

struct UsernsBlock {
  std::string pod_uid;
  std::uint32_t block = 0;
};

struct UsernsHeld {
  HeldPod pod;
  std::uint64_t stamp = 0;
};

std::vector<std::uint8_t> EncodeUsernsMapping(const UsernsMapping& mapping);
std::vector<std::uint8_t> EncodeUsernsBlock(const UsernsBlock& block);
// As a version of the record has it: 3 knows no kind, and looks for the one that matters to it in
// the reason's words.
std::vector<std::uint8_t> EncodeUsernsHeld(const UsernsHeld& held, std::uint16_t version);

// nullopt: not a FlatBuffer of that table, a field is missing or above limits.h, or the range is
// none that may be handed out (of blocks other than the first and the last).
std::optional<UsernsMapping> DecodeUsernsMapping(std::span<const std::uint8_t> payload);
std::optional<UsernsBlock> DecodeUsernsBlock(std::span<const std::uint8_t> payload);
std::optional<UsernsHeld> DecodeUsernsHeld(std::span<const std::uint8_t> payload);

// In place; nothing is checked but the envelope. nullopt: it is another pod's.
std::optional<IdMapping> MappingOf(std::span<const std::uint8_t> payload, std::string_view pod_uid);
// Of what MappingOf takes.
std::uint64_t StampOf(std::span<const std::uint8_t> payload);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DATABASE_USERNS_RECORDS_H_
