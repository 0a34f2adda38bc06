// What a walk found wrong, in words: the first ones in full, all of them counted.

#ifndef WAYBILL_STORE_LMDB_CHECK_FINDINGS_H_
#define WAYBILL_STORE_LMDB_CHECK_FINDINGS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace waybill::internal {

class Findings {
 public:
  static constexpr std::size_t kMaxTexts = 50;

  void Add(std::string text) {
    ++count_;
    if (texts_.size() < kMaxTexts) texts_.push_back(std::move(text));
  }
  std::uint64_t count() const { return count_; }
  std::vector<std::string> TakeTexts() { return std::move(texts_); }

 private:
  std::uint64_t count_ = 0;
  std::vector<std::string> texts_;
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_LMDB_CHECK_FINDINGS_H_
