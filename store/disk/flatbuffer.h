// What the codecs of every record share.

#ifndef WAYBILL_STORE_DISK_FLATBUFFER_H_
#define WAYBILL_STORE_DISK_FLATBUFFER_H_

#include <flatbuffers/flatbuffers.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "schema/v1/common_generated.h"
#include "store/disk/uuid.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

inline schema::v1::Time ToTime(Timestamp t) { return {t.seconds, t.nanoseconds}; }
inline Timestamp FromTime(const schema::v1::Time& t) { return {t.seconds(), t.nanoseconds()}; }

inline std::string_view Text(const flatbuffers::String* string) {
  return string == nullptr ? std::string_view() : std::string_view(string->c_str(), string->size());
}

// A missing string has 0 bytes.
inline bool Fits(const flatbuffers::String* string, std::size_t limit) {
  return string == nullptr || string->size() <= limit;
}

// The bytes of a Uuid or a Sha256.
template <std::size_t N>
flatbuffers::span<const std::uint8_t, N> Raw(const std::array<std::uint8_t, N>& bytes) {
  return flatbuffers::span<const std::uint8_t, N>(bytes);
}

// An empty string is not stored.
inline flatbuffers::Offset<flatbuffers::String> StringUnlessEmpty(
    flatbuffers::FlatBufferBuilder& builder, std::string_view text) {
  if (text.empty()) return 0;
  return builder.CreateString(text.data(), text.size());
}

template <typename T>
std::vector<std::uint8_t> Finish(flatbuffers::FlatBufferBuilder& builder,
                                 flatbuffers::Offset<T> root) {
  builder.Finish(root);
  const auto span = builder.GetBufferSpan();
  return {span.begin(), span.end()};
}

// nullptr: not a FlatBuffer of that table, or above kMaxValueBytes.
template <typename T>
const T* Root(std::span<const std::uint8_t> payload) {
  if (payload.size() > kMaxValueBytes) return nullptr;
  constexpr flatbuffers::uoffset_t kMaxDepth = 64;
  constexpr flatbuffers::uoffset_t kMaxTables = 1'000'000;
  flatbuffers::Verifier verifier(payload.data(), payload.size(), kMaxDepth, kMaxTables);
  if (!verifier.VerifyBuffer<T>(nullptr)) return nullptr;
  return flatbuffers::GetRoot<T>(payload.data());
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_DISK_FLATBUFFER_H_
