#include "store/base/repository.h"

#include <algorithm>
#include <cstddef>

#include "store/base/hex.h"
#include "waybill/image_name.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kMaxPathBytes = 255;
constexpr std::size_t kIdentifierDigits = 64;

// Iterates over the concatenation of three strings.
class Joined {
 public:
  explicit Joined(const RepositoryParts& parts) : parts_(parts) { Settle(); }
  bool done() const { return part_ == parts_.size(); }
  char Next() {
    const char c = parts_[part_][at_++];
    Settle();
    return c;
  }

 private:
  void Settle() {
    while (part_ < parts_.size() && at_ == parts_[part_].size()) {
      ++part_;
      at_ = 0;
    }
  }
  const RepositoryParts& parts_;
  std::size_t part_ = 0;
  std::size_t at_ = 0;
};

bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }

}  // namespace

RepositoryParts RepositoryPartsOf(std::string_view image) {
  const auto name = ImageName(image);
  if (!name) return {image, "", ""};
  if (image.size() == kIdentifierDigits && IsLowerHex(image.data(), image.size())) {
    return {*name, "", ""};
  }
  std::string_view rest = *name;
  const std::size_t slash = name->find('/');
  if (slash != std::string_view::npos) {
    const std::string_view first = name->substr(0, slash);
    const bool is_domain = first == "localhost" ||
                           first.find_first_of(".:") != std::string_view::npos ||
                           std::any_of(first.begin(), first.end(), IsUpper);
    const bool is_hub = first == "docker.io" || first == "index.docker.io";
    if (is_domain && !is_hub) return {*name, "", ""};
    if (is_hub) rest = name->substr(slash + 1);
  }
  const std::string_view library = rest.find('/') == std::string_view::npos ? "library/" : "";
  // A host in brackets without a colon can't stand in a path.
  if (library.size() + rest.size() > kMaxPathBytes || rest.starts_with('[')) {
    return {*name, "", ""};
  }
  return {"docker.io/", library, rest};
}

bool SameRepository(std::string_view a, std::string_view b) {
  const RepositoryParts parts_a = RepositoryPartsOf(a);
  const RepositoryParts parts_b = RepositoryPartsOf(b);
  Joined left(parts_a);
  Joined right(parts_b);
  while (!left.done() && !right.done()) {
    if (left.Next() != right.Next()) return false;
  }
  return left.done() && right.done();
}

}  // namespace waybill::internal
