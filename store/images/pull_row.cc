#include "store/images/pull_row.h"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>

#include "schema/v2/pull_intent_generated.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/disk/flatbuffer.h"
#include "store/disk/key.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v2 = schema::v2;

namespace {

// Of the commit sequence in an ID. More pulls than fit begin in one commit only if IDs run ahead.
constexpr int kIdsPerCommitBits = 16;
static_assert(kNoPull.value + 1 == std::uint64_t{2} << kIdsPerCommitBits);

}  // namespace

std::vector<std::uint8_t> EncodeUnresolvedPull(const UnresolvedPull& pull) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto image = builder.CreateString(pull.image);
  const auto handler = StringUnlessEmpty(builder, pull.runtime_handler);
  const v1::Time began = ToTime(pull.began);
  const v1::Time ended = ToTime(pull.ended.value_or(Timestamp{}));
  const v1::Uuid boot(Raw(pull.ended_at.boot_id));
  return Finish(builder,
                v2::CreatePullIntent(builder, image, &began, pull.id.value,
                                     static_cast<std::uint8_t>(pull.state), pull.stamp,
                                     pull.ended ? &ended : nullptr, pull.ended ? &boot : nullptr,
                                     pull.ended_at.nanoseconds, pull.anything, pull.several,
                                     pull.nothing_at, pull.dropped_ran, handler));
}

std::optional<UnresolvedPull> DecodeUnresolvedPull(Payload payload) {
  const auto* root = Root<v2::PullIntent>(payload);
  if (root == nullptr || root->image() == nullptr || root->recorded() == nullptr ||
      root->pull_id() == 0 || !Fits(root->image(), kMaxImageBytes) ||
      !Fits(root->runtime_handler(), kMaxRuntimeHandlerBytes)) {
    return std::nullopt;
  }
  UnresolvedPull pull;
  pull.image = root->image()->str();
  pull.runtime_handler = Text(root->runtime_handler());
  pull.began = FromTime(*root->recorded());
  pull.id.value = root->pull_id();
  pull.state = static_cast<PullState>(root->state());
  const bool runs = pull.state == PullState::kRunning;
  if (!HasWord(pull.state) || runs != (root->ended() == nullptr) ||
      (root->ended() == nullptr) != (root->ended_boot() == nullptr) ||
      (pull.state == PullState::kDropped && !root->anything())) {
    return std::nullopt;
  }
  pull.stamp = root->stamp();
  pull.anything = root->anything();
  pull.several = root->several();
  pull.nothing_at = root->nothing_at();
  pull.dropped_ran = root->dropped_ran();
  if (runs) return pull;
  pull.ended = FromTime(*root->ended());
  std::memcpy(pull.ended_at.boot_id.data(), root->ended_boot()->bytes()->data(),
              pull.ended_at.boot_id.size());
  pull.ended_at.nanoseconds = root->ended_boottime();
  if (pull.ended_at.nanoseconds < 0) return std::nullopt;
  return pull;
}

IntentView ViewIntent(Payload payload) {
  const auto* root = flatbuffers::GetRoot<v2::PullIntent>(payload.data());
  return {Text(root->image()), Text(root->runtime_handler()),
          root->anything() || root->nothing_at() != 0};
}

std::optional<Key16> KeyOfIntent(Payload payload, std::uint64_t seed) {
  const auto pull = DecodeUnresolvedPull(payload);
  return pull ? std::optional(IntentKey(pull->image, pull->id, seed)) : std::nullopt;
}

Result<std::vector<UnresolvedPull>> FindOpenPulls(const StoreTxn& txn, std::string_view image,
                                                  std::string_view runtime_handler,
                                                  Brought brought) {
  std::vector<UnresolvedPull> pulls;
  if (txn.state().digest(Table::kIntents).count == 0) return pulls;
  const Key16 of_image = IntentKey(image, PullId{}, txn.seed());
  TRY(txn.ForEachPull(of_image, [&](const Key16&, Payload payload) -> Result<bool> {
    auto pull = DecodeUnresolvedPull(payload);
    if (pull && !pull->anything && pull->image == image &&
        pull->runtime_handler == runtime_handler &&
        (pull->nothing_at != 0) == (brought == Brought::kNothing)) {
      pulls.push_back(std::move(*pull));
    }
    return true;
  }));
  std::ranges::reverse(pulls);
  return pulls;
}

Result<std::vector<UnresolvedPull>> AllOpenPulls(const StoreTxn& txn) {
  std::vector<UnresolvedPull> pulls;
  TRY(txn.ForEach(Table::kIntents, [&](const Key16&, Payload payload) -> Result<bool> {
    if (auto pull = DecodeUnresolvedPull(payload)) pulls.push_back(std::move(*pull));
    return true;
  }));
  std::ranges::reverse(pulls);
  return pulls;
}

Result<std::uint64_t> CountOpenPulls(const StoreTxn& txn) {
  if (txn.state().digest(Table::kIntents).count == 0) return std::uint64_t{0};
  std::uint64_t count = 0;
  TRY(txn.ForEach(Table::kIntents, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto pull = DecodeUnresolvedPull(payload);
    count += pull && pull->nothing_at != 0 ? 0U : 1U;
    return true;
  }));
  return count;
}

PullId NextPullId(StoreTxn& txn) {
  std::uint64_t& last = txn.state().last_pull_id;
  last = std::max(last + 1, txn.sequence() << kIdsPerCommitBits);
  return {last};
}

bool WasGiven(const StoreTxn& txn, PullId id) {
  return id == kNoPull ||
         (id.value >> kIdsPerCommitBits != 0 && id.value <= txn.state().last_pull_id);
}

void CountAllAsGiven(StoreTxn& txn) {
  std::uint64_t& last = txn.state().last_pull_id;
  last = std::max(last, (txn.sequence() << kIdsPerCommitBits) - 1);
}

Result<void> PutOpenPull(StoreTxn& txn, const UnresolvedPull& pull) {
  const Key16 key = IntentKey(pull.image, pull.id, txn.seed());
  // How a pull ended must be recorded on a full store, too.
  return pull.ended ? txn.PutFromReserve(Table::kIntents, key, EncodeUnresolvedPull(pull))
                    : txn.Put(Table::kIntents, key, EncodeUnresolvedPull(pull));
}

Result<void> EraseOpenPull(StoreTxn& txn, const UnresolvedPull& pull) {
  auto erased = txn.Delete(Table::kIntents, IntentKey(pull.image, pull.id, txn.seed()));
  return erased ? Result<void>() : erased.error();
}

}  // namespace waybill::internal
