#include "bindings/cli/published_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "store/base/try.h"
#include "store/for_the_command.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kMagic = "waybill-existing";
constexpr std::size_t kDigestAt = 40;
constexpr std::size_t kUidsAt = 72;
constexpr std::uint32_t kFormatVersion = 1;
// The end of 9999, which is the last that can be written as text.
constexpr std::uint64_t kLatest = 253'402'300'799;

std::uint64_t NumberAt(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t number = 0;
  for (const char byte : bytes.substr(at, width)) {
    number = (number << 8U) | static_cast<std::uint8_t>(byte);
  }
  return number;
}

Error Damaged(std::string what) { return {ErrorCode::kInvalidArgument, std::move(what), {}}; }

// `bytes` are whole UIDs.
Result<std::vector<Uid>> UidsIn(std::string_view bytes, std::string_view whose) {
  std::vector<Uid> uids(bytes.size() / sizeof(Uid));
  if (!uids.empty()) std::memcpy(uids.data(), bytes.data(), bytes.size());
  const auto falls = [](const Uid& one, const Uid& next) { return one >= next; };
  if (std::adjacent_find(uids.begin(), uids.end(), falls) != uids.end()) {
    return Damaged(fmt::format("the UIDs of its {} do not rise", whose));
  }
  return uids;
}

}  // namespace

bool PublishedList::Has(RevocationKind kind, std::string_view uid) const {
  Uid raw{};
  if (!internal::DecodeUuid(uid, raw)) return false;
  const auto& all = kind == RevocationKind::kSecret ? secrets : service_accounts;
  return std::binary_search(all.begin(), all.end(), raw);
}

Result<PublishedList> DecodePublishedList(std::string_view bytes) {
  if (bytes.size() > kMaxPublishedBytes) return Damaged("it is larger than a ConfigMap can be");
  if (bytes.size() < kUidsAt) return Damaged("it breaks off in its head");
  if (!bytes.starts_with(kMagic)) return Damaged("it is no list of what exists");
  if (const auto version = NumberAt(bytes, 16, 4); version != kFormatVersion) {
    Error error = Damaged(
        fmt::format("it is of version {}, and this waybill reads {}", version, kFormatVersion));
    error.hint = "install the same version of waybill and waybill-existing";
    return error;
  }
  const auto secrets = NumberAt(bytes, 20, 4);
  const auto accounts = NumberAt(bytes, 24, 4);
  const auto as_of = NumberAt(bytes, 32, 8);
  // Neither sum can overflow: each count has 32 bits.
  if (kUidsAt + sizeof(Uid) * (secrets + accounts) != bytes.size()) {
    return Damaged(fmt::format("its head says {} UIDs, and it has {} bytes", secrets + accounts,
                               bytes.size()));
  }
  std::string signed_bytes(bytes.substr(0, kDigestAt));
  signed_bytes += bytes.substr(kUidsAt);
  const auto digest = TRY(internal::Sha256(signed_bytes));
  if (std::memcmp(digest.data(), bytes.data() + kDigestAt, digest.size()) != 0) {
    return Damaged("its SHA-256 is not that of what it holds");
  }
  if (NumberAt(bytes, 28, 4) != 0 || as_of > kLatest)
    return Damaged("its head is not as it must be");
  if (accounts == 0) {
    return Damaged("it has no service account, and every namespace of a cluster has one");
  }
  PublishedList list;
  list.as_of.seconds = static_cast<std::int64_t>(as_of);
  list.digest = bytes.substr(kDigestAt, digest.size());
  const std::string_view uids = bytes.substr(kUidsAt);
  list.secrets = TRY(UidsIn(uids.substr(0, sizeof(Uid) * secrets), "Secrets"));
  list.service_accounts = TRY(UidsIn(uids.substr(sizeof(Uid) * secrets), "service accounts"));
  return list;
}

}  // namespace waybill::cli
