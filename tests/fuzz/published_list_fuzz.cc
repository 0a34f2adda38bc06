// What a cluster published, of any bytes, as they are and with the right digest: no crash, and what
// is accepted is what the header of published_list.h says.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "bindings/cli/published_list.h"
#include "store/base/sha256.h"
#include "store/disk/uuid.h"

namespace {

constexpr std::size_t kDigestAt = 40;
constexpr std::size_t kUidsAt = 72;

void Require(bool holds) {
  if (!holds) std::abort();
}

void Decode(std::string_view bytes) {
  using Kind = waybill::RevocationKind;
  const auto list = waybill::cli::DecodePublishedList(bytes);
  if (!list) {
    Require(list.error().message.size() < 1024);
    return;
  }
  Require(!list->service_accounts.empty());
  Require(kUidsAt + 16 * (list->secrets.size() + list->service_accounts.size()) == bytes.size());
  Require(std::is_sorted(list->secrets.begin(), list->secrets.end()));
  for (const auto& uid : list->secrets) {
    Require(list->Has(Kind::kSecret, waybill::internal::EncodeUuid(uid)));
  }
  for (const auto& uid : list->service_accounts) {
    Require(list->Has(Kind::kServiceAccount, waybill::internal::EncodeUuid(uid)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  Decode(bytes);
  if (size < kUidsAt) return 0;
  const auto digest = waybill::internal::Sha256(bytes.substr(0, kDigestAt) + bytes.substr(kUidsAt));
  Require(digest.has_value());
  std::copy(digest->begin(), digest->end(), bytes.begin() + kDigestAt);
  Decode(bytes);
  return 0;
}
