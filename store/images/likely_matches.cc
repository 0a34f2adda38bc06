#include "store/images/likely_matches.h"

#include <algorithm>
#include <bit>

namespace waybill::internal {

std::size_t LikelyMatches::Next(std::size_t secret, std::size_t from) {
  if (from >= stored_) return stored_;
  if (secret >= end_) LookFor(secret);
  const std::size_t block = from >> block_bits_;
  const std::uint64_t left = blocks_[secret - first_] >> block;
  if ((left & 1) != 0) return from;
  if (left == 0) return stored_;
  return (block + static_cast<std::size_t>(std::countr_zero(left))) << block_bits_;
}

void LikelyMatches::LookFor(std::size_t first) {
  first_ = first;
  end_ = std::min(secrets_.size(), first + kAtATime);
  block_bits_ = static_cast<unsigned>(std::bit_width((stored_ - 1) / 64));
  blocks_.fill(0);
  tags_.fill(kNoTag);
  for (std::size_t i = first_; i < end_; ++i) {
    const ProbeSecret probe(secrets_[i]);
    Add(probe.HashTag(key_), i - first_);
    if (by_coordinates_) Add(probe.CoordinatesTag(key_), i - first_);
  }
  for (std::size_t i = 0; i < stored_; ++i) {
    const std::uint64_t block = std::uint64_t{1} << (i >> block_bits_);
    Mark(entry_.HashTag(i, key_), block);
    if (by_coordinates_) Mark(entry_.CoordinatesTag(i, key_), block);
  }
}

void LikelyMatches::Add(SecretTag tag, std::size_t secret) {
  if (tag == kNoTag) return;
  std::size_t slot = tag >> (32 - kSlotBits);
  while (tags_[slot] != kNoTag) slot = (slot + 1) % tags_.size();
  tags_[slot] = tag;
  whose_[slot] = static_cast<std::uint8_t>(secret);
}

void LikelyMatches::Mark(SecretTag tag, std::uint64_t block) {
  if (tag == kNoTag) return;
  std::size_t slot = tag >> (32 - kSlotBits);
  for (; tags_[slot] != kNoTag; slot = (slot + 1) % tags_.size()) {
    if (tags_[slot] == tag) blocks_[whose_[slot]] |= block;
  }
}

}  // namespace waybill::internal
