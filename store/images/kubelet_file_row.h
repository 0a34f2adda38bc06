// What the store has of a kubelet's files (table "kubelet-files--1", schema/v1/kubelet_file.fbs):
// what an import took, and what a guard has to know of each file when it looks again.

#ifndef WAYBILL_STORE_IMAGES_KUBELET_FILE_ROW_H_
#define WAYBILL_STORE_IMAGES_KUBELET_FILE_ROW_H_

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/base/sha256.h"
#include "store/disk/store_txn.h"
#include "waybill/result.h"

namespace waybill::internal {

// A credential under an image name, as hashes that the seed of the store makes. Two that collide
// are taken for one that is known already, and so are not believed.
struct KubeletItem {
  std::uint64_t image_name = 0;
  std::uint64_t name_space = 0;
  std::uint64_t coordinates =
      0;  // kind, namespace, name; kAnyPod: the node's pods, whoever they are
  std::uint64_t uid = 0;
  std::uint64_t hash = 0;  // 0: none

  static constexpr std::uint64_t kAnyPod = ~std::uint64_t{0};
  bool is_any_pod() const { return coordinates == kAnyPod; }
  friend auto operator<=>(const KubeletItem&, const KubeletItem&) = default;
};

// The row of the node.
struct KubeletNode {
  std::string folders = {};
  std::string life = {};
  std::string last_life = {};
  bool read_unknown = false;
  bool began_seen = false;
  bool beta = false;
  bool took_over = false;

  friend bool operator==(const KubeletNode&, const KubeletNode&) = default;
};

// Each field, and its unit, as in the schema (schema/v1/kubelet_file.fbs).
struct KubeletFileRow {
  std::string path = {};
  std::optional<Sha256Digest> content = {};
  bool gone = false;
  std::int64_t time = 0;
  std::optional<Sha256Digest> refused = {};
  bool refused_planted = false;
  bool changing = false;
  std::vector<KubeletItem> may_have = {};
  std::uint64_t inode = 0;
  std::int64_t changed = 0;
  std::string image = {};
  std::int64_t since = 0;
  bool several = false;
  std::string proven_ref = {};
  std::int64_t ended = 0;
  std::optional<KubeletNode> node = {};

  friend bool operator==(const KubeletFileRow&, const KubeletFileRow&) = default;
};

std::vector<std::uint8_t> EncodeKubeletFile(const KubeletFileRow& row);
// nullopt: not a FlatBuffer of that table, a field is above limits.h, or the items are out of
// order.
std::optional<KubeletFileRow> DecodeKubeletFile(Payload payload);

// Whether it is the row of the node.
bool IsOfNode(Payload payload);

// nullopt: none, or it can't be read.
Result<std::optional<KubeletFileRow>> FindKubeletFile(const StoreTxn& txn, const std::string& path);
// Errors: those of StoreTxn::Put and Delete; erasing what is not there is none.
Result<void> PutKubeletFile(StoreTxn& txn, const KubeletFileRow& row);
Result<void> EraseKubeletFile(StoreTxn& txn, const std::string& path);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_IMAGES_KUBELET_FILE_ROW_H_
