// Which of a pod's secrets may match which stored ones, so that not each is compared with each.

#ifndef WAYBILL_STORE_IMAGES_LIKELY_MATCHES_H_
#define WAYBILL_STORE_IMAGES_LIKELY_MATCHES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "store/images/image_row.h"
#include "waybill/values.h"

namespace waybill::internal {

// Looks for the tags of kAtATime secrets of the pod together among those of the stored secrets,
// which are read once for that. Lies on the stack, and allocates nothing.
class LikelyMatches {
 public:
  // `key` makes the tags. Without `by_coordinates` only hashes need to match.
  LikelyMatches(const EntryView& entry, std::span<const ImagePullSecretView> secrets,
                bool by_coordinates, std::uint64_t key)
      : entry_(entry),
        secrets_(secrets),
        stored_(entry.secret_count()),
        by_coordinates_(by_coordinates),
        key_(key) {}

  // The first stored secret from `from` on that the pod's `secret` may match; how many are stored
  // if there is none. Call with a `secret` that does not go back.
  std::size_t Next(std::size_t secret, std::size_t from);

 private:
  static constexpr std::size_t kAtATime = 128;
  static constexpr unsigned kSlotBits = 9;
  static_assert((std::size_t{1} << kSlotBits) == 4 * kAtATime,
                "at most half of the slots are used");

  void LookFor(std::size_t first);
  void Add(SecretTag tag, std::size_t secret);
  void Mark(SecretTag tag, std::uint64_t block);

  const EntryView& entry_;
  std::span<const ImagePullSecretView> secrets_;
  std::size_t stored_;
  bool by_coordinates_;
  std::uint64_t key_;
  // Of the secrets from `first_` to `end_`: in which of up to 64 blocks of stored ones, of
  // 1 << block_bits_ each, there is a tag of theirs.
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  unsigned block_bits_ = 0;
  std::array<std::uint64_t, kAtATime> blocks_;
  // Their tags by the tag's highest bits, or in the next slot that is free.
  std::array<SecretTag, std::size_t{1} << kSlotBits> tags_;
  std::array<std::uint8_t, std::size_t{1} << kSlotBits> whose_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_LIKELY_MATCHES_H_
