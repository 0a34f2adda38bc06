#include "bench/data_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "store/base/image_name.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

// Where the numbers of a record begin.
std::uint64_t At(std::uint64_t index, std::uint64_t part) { return kSeed + index * 16 + part; }

std::string TeamOf(std::uint64_t index) { return fmt::format("team-{:03}", index % 500); }

}  // namespace

std::uint64_t Mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::string Hex64(std::uint64_t number) {
  return fmt::format("{:016x}{:016x}{:016x}{:016x}", Mix(number), Mix(number + 1), Mix(number + 2),
                     Mix(number + 3));
}

std::string ImageOf(std::uint64_t index) {
  return fmt::format("registry.example.com/{}/service-{:06}:v1.{}.{}", TeamOf(index), index,
                     index % 40, index % 7);
}

std::string ImageRefOf(std::uint64_t index) { return "sha256:" + Hex64(At(index, 0)); }

std::string RepoDigestOf(std::uint64_t index) {
  return fmt::format("registry.example.com/{}/service-{:06}@sha256:{}", TeamOf(index), index,
                     Hex64(At(index, 12)));
}

ImagePullCredentials CredentialsOf(std::uint64_t index) {
  const std::uint64_t a = Mix(At(index, 8));
  const std::uint64_t b = Mix(At(index, 9));
  ImagePullSecret secret;
  secret.uid = fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff,
                           a & 0xffff, b >> 48, b & 0xffff'ffff'ffff);
  secret.namespace_name = TeamOf(index);
  secret.name = "registry-pull-secret";
  secret.credential_hash = Hex64(At(index, 4));
  ImagePullCredentials credentials;
  credentials.kubernetes_secrets.push_back(std::move(secret));
  return credentials;
}

ImagePulledRecord RecordOf(std::uint64_t index) {
  const std::string image = ImageOf(index);
  ImagePulledRecord record;
  record.image_ref = ImageRefOf(index);
  record.last_updated = Timestamp{1'770'000'000 + static_cast<std::int64_t>(index), 0};
  record.credential_mapping[std::string(*ImageName(image))] = CredentialsOf(index);
  return record;
}

std::vector<ListedImage> ListOfImages(std::uint64_t first, std::size_t count) {
  std::vector<ListedImage> list;
  list.reserve(count);
  for (std::uint64_t i = first; i < first + count; ++i) {
    list.push_back(
        {.id = ImageRefOf(i), .repo_tags = {ImageOf(i)}, .repo_digests = {RepoDigestOf(i)}});
  }
  return list;
}

Questions::Questions(std::size_t records, std::uint64_t first, RefOf ref_of) {
  std::vector<std::uint64_t> order(records);
  std::iota(order.begin(), order.end(), first);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(kSeed));
  constexpr std::size_t kTextBytes = 512;  // more than one question needs: text_ must not move
  text_.reserve(records * kTextBytes);
  questions_.reserve(records);
  const auto keep = [this](std::string_view part) {
    const std::size_t at = text_.size();
    text_ += part;
    return std::string_view(text_.data() + at, part.size());
  };
  for (const std::uint64_t index : order) {
    const ImagePullCredentials credentials = CredentialsOf(index);
    const ImagePullSecret& secret = credentials.kubernetes_secrets.front();
    Question question;
    question.image = keep(ImageOf(index));
    question.image_ref = keep(ref_of(index));
    question.secret = {keep(secret.uid), keep(secret.namespace_name), keep(secret.name),
                       keep(secret.credential_hash)};
    questions_.push_back(question);
  }
}

}  // namespace waybill::bench
