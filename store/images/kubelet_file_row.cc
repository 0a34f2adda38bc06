#include "store/images/kubelet_file_row.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>

#include "schema/v1/kubelet_file_generated.h"
#include "store/base/try.h"
#include "store/disk/flatbuffer.h"
#include "store/disk/key.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;

namespace {

v1::Sha256 ToFlat(const std::optional<Sha256Digest>& digest) {
  return v1::Sha256(Raw(digest.value_or(Sha256Digest())));
}

std::optional<Sha256Digest> FromFlat(const v1::Sha256* flat) {
  if (flat == nullptr) return std::nullopt;
  Sha256Digest digest;
  std::memcpy(digest.data(), flat->bytes()->data(), digest.size());
  return digest;
}

flatbuffers::Offset<v1::KubeletNode> NodeIn(flatbuffers::FlatBufferBuilder& builder,
                                            const std::optional<KubeletNode>& node) {
  if (!node) return 0;
  const auto folders = StringUnlessEmpty(builder, node->folders);
  const auto life = StringUnlessEmpty(builder, node->life);
  const auto last_life = StringUnlessEmpty(builder, node->last_life);
  return v1::CreateKubeletNode(builder, folders, life, last_life, node->read_unknown,
                               node->began_seen, node->beta, node->took_over);
}

}  // namespace

std::vector<std::uint8_t> EncodeKubeletFile(const KubeletFileRow& row) {
  flatbuffers::FlatBufferBuilder builder(512);
  const auto path = builder.CreateString(row.path);
  flatbuffers::Offset<flatbuffers::Vector<const v1::KubeletItem*>> items;
  if (!row.may_have.empty()) {
    items = builder.CreateVectorOfStructs<v1::KubeletItem>(
        row.may_have.size(), [&](std::size_t i, v1::KubeletItem* flat) {
          const KubeletItem& one = row.may_have[i];
          *flat = {one.image_name, one.name_space, one.coordinates, one.uid, one.hash};
        });
  }
  const auto image = StringUnlessEmpty(builder, row.image);
  const auto proven_ref = StringUnlessEmpty(builder, row.proven_ref);
  const auto node = NodeIn(builder, row.node);
  const v1::Sha256 content = ToFlat(row.content);
  const v1::Sha256 refused = ToFlat(row.refused);
  return Finish(builder, v1::CreateKubeletFile(builder, path, row.content ? &content : nullptr,
                                               row.gone, row.time, row.refused ? &refused : nullptr,
                                               row.refused_planted, row.changing, items, row.inode,
                                               row.changed, image, row.since, row.several,
                                               proven_ref, row.ended, node));
}

std::optional<KubeletFileRow> DecodeKubeletFile(Payload payload) {
  const auto* root = Root<v1::KubeletFile>(payload);
  if (root == nullptr || root->path() == nullptr || !Fits(root->path(), kMaxPathBytes) ||
      !Fits(root->image(), kMaxImageBytes) || !Fits(root->proven_ref(), kMaxImageRefBytes)) {
    return std::nullopt;
  }
  KubeletFileRow row{.path = root->path()->str(),
                     .content = FromFlat(root->content()),
                     .gone = root->gone(),
                     .time = root->time(),
                     .refused = FromFlat(root->refused()),
                     .refused_planted = root->refused_planted(),
                     .changing = root->changing(),
                     .inode = root->inode(),
                     .changed = root->changed(),
                     .image = std::string(Text(root->image())),
                     .since = root->since(),
                     .several = root->several(),
                     .proven_ref = std::string(Text(root->proven_ref())),
                     .ended = root->ended()};
  if (root->may_have() != nullptr) {
    for (const auto* one : *root->may_have()) {
      row.may_have.push_back(
          {one->image_name(), one->namespace_(), one->coordinates(), one->uid(), one->hash()});
    }
  }
  if (!std::ranges::is_sorted(row.may_have, std::ranges::less_equal())) return std::nullopt;
  if (const auto* node = root->node(); node != nullptr) {
    row.node = {.folders = std::string(Text(node->folders())),
                .life = std::string(Text(node->life())),
                .last_life = std::string(Text(node->last_life())),
                .read_unknown = node->read_unknown(),
                .began_seen = node->began_seen(),
                .beta = node->beta(),
                .took_over = node->took_over()};
  }
  return row;
}

bool IsOfNode(Payload payload) {
  const auto row = DecodeKubeletFile(payload);
  return row && row->node;
}

std::optional<Key16> KeyOfKubeletFile(Payload payload, std::uint64_t seed) {
  const auto row = DecodeKubeletFile(payload);
  return row ? std::optional(HashKey(row->path, seed)) : std::nullopt;
}

Result<std::optional<KubeletFileRow>> FindKubeletFile(const StoreTxn& txn,
                                                      const std::string& path) {
  auto payload = TRY(txn.Get(Table::kKubeletFiles, HashKey(path, txn.seed())));
  if (!payload) return std::optional<KubeletFileRow>();
  auto row = DecodeKubeletFile(*payload);
  return row && row->path == path ? std::move(row) : std::nullopt;
}

Result<void> PutKubeletFile(StoreTxn& txn, const KubeletFileRow& row) {
  return txn.Put(Table::kKubeletFiles, HashKey(row.path, txn.seed()), EncodeKubeletFile(row));
}

Result<void> EraseKubeletFile(StoreTxn& txn, const std::string& path) {
  auto erased = txn.Delete(Table::kKubeletFiles, HashKey(path, txn.seed()));
  return erased ? Result<void>() : erased.error();
}

}  // namespace waybill::internal
