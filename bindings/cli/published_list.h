// The list that `waybill-existing` publishes in a ConfigMap (../go/cmd/waybill-existing): the UIDs
// of all pull Secrets and service accounts of a cluster, and no name of any. Numbers are
// big-endian:
//
//        0  16  "waybill-existing"
//       16   4  version: 1
//       20   4  how many Secrets, of the types kubernetes.io/dockerconfigjson and .../dockercfg
//       24   4  how many service accounts
//       28   4  0
//       32   8  asOf: seconds since 1970, of a moment before the cluster was asked
//       40  32  SHA-256 of all other bytes, those before it and those behind it
//       72      UIDs of 16 bytes each: the Secrets', then the service accounts', each rising

#ifndef WAYBILL_BINDINGS_CLI_PUBLISHED_LIST_H_
#define WAYBILL_BINDINGS_CLI_PUBLISHED_LIST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// What a ConfigMap can hold.
inline constexpr std::size_t kMaxPublishedBytes = std::size_t{1} << 20;
// The key in the ConfigMap, and so the file in its volume.
inline constexpr const char* kPublishedKey = "existing";

using Uid = std::array<std::uint8_t, 16>;

struct PublishedList {
  Timestamp as_of = {};
  std::string digest = {};  // its SHA-256: which list it is
  std::vector<Uid> secrets = {};
  std::vector<Uid> service_accounts = {};

  // Whether it has this UID, as a kubelet writes it. A text that is no UUID it never has.
  bool Has(RevocationKind kind, std::string_view uid) const;
};

// kInvalidArgument: not such a list, not whole, of another version, or without a service account,
// which no cluster is.
Result<PublishedList> DecodePublishedList(std::string_view bytes);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PUBLISHED_LIST_H_
