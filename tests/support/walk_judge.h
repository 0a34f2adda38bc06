// Judges the page walk on damaged files. If the walk calls a file sound, liblmdb must read exactly
// what the walk showed. Both happen in a child process, so that a crash is a count.

#ifndef WAYBILL_TESTS_SUPPORT_WALK_JUDGE_H_
#define WAYBILL_TESTS_SUPPORT_WALK_JUDGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/memory_dir.h"

namespace waybill::testing {

struct WalkVerdicts {
  std::uint64_t judged = 0;
  std::uint64_t flagged = 0;
  std::uint64_t sound_same = 0;  // sound, and shows what the original held
  // Sound, and shows other values: for checksums and digests to find.
  std::uint64_t sound_other = 0;
  std::uint64_t lies = 0;  // sound, but liblmdb reads something else, fails or crashes
  std::uint64_t walk_crashes = 0;
  std::array<char, 300> first_lie{};
};

class WalkJudge {
 public:
  // `seed`: chooses the files if not all are judged.
  WalkJudge(std::string original, std::uint64_t seed);

  // Gets 0 … count − 1 and the original bytes.
  using Damage = std::function<void(std::size_t, std::string&)>;
  // Of `sound_other` files, one in `lmdb_stride` is read by liblmdb; of all others called sound,
  // each. WAYBILL_WALKS_ONE_IN=N: of 200 files and more, one in N.
  WalkVerdicts Run(std::size_t count, const Damage& damage, std::size_t lmdb_stride = 1);

 private:
  struct Progress;
  void RunChild(std::size_t count, const Damage& damage, std::size_t one_in,
                std::size_t lmdb_stride, Progress& shared);
  void CompareWithLmdb(std::size_t index, const std::string& bytes, const std::string& shown,
                       const std::vector<std::string>& tables, Progress& shared);

  MemoryDir dir_;
  std::string original_;
  const std::uint64_t seed_;
  std::string original_text_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_WALK_JUDGE_H_
