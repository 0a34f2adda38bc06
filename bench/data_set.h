// The records that a run measures: the same for waybill and for its peers, and the same in every
// run. Each image has one name and one secret, with hashes and UIDs that can be stored as bytes, as
// on a node.

#ifndef WAYBILL_BENCH_DATA_SET_H_
#define WAYBILL_BENCH_DATA_SET_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/values.h"

namespace waybill::bench {

inline constexpr std::uint64_t kSeed = 20261121;

// The same 64 bits for the same number everywhere: splitmix64's finaliser.
std::uint64_t Mix(std::uint64_t z);
// 64 digits of four such numbers, from this one on.
std::string Hex64(std::uint64_t number);

std::string ImageOf(std::uint64_t index);       // with tag
std::string ImageRefOf(std::uint64_t index);    // "sha256:…"
std::string RepoDigestOf(std::uint64_t index);  // "registry…@sha256:…"
ImagePullCredentials CredentialsOf(std::uint64_t index);
ImagePulledRecord RecordOf(std::uint64_t index);
// An entry for each of the images from `first` on, with a tag and a digest.
std::vector<ListedImage> ListOfImages(std::uint64_t first, std::size_t count);

// The arguments of one decision.
struct Question {
  std::string_view image;
  std::string_view image_ref;
  ImagePullSecretView secret;
};

// A question for each of `records` records, in random order. Their texts lie in memory in that
// order, so that reading them costs almost nothing.
class Questions {
 public:
  using RefOf = std::string (*)(std::uint64_t index);
  // Of the images from `first` on, each asked by the ref that `ref_of` makes.
  explicit Questions(std::size_t records, std::uint64_t first = 0, RefOf ref_of = ImageRefOf);

  std::size_t size() const { return questions_.size(); }
  const Question& operator[](std::size_t i) const { return questions_[i]; }

 private:
  std::string text_;
  std::vector<Question> questions_;
};

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_DATA_SET_H_
