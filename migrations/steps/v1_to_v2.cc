// Version 2 names each image by (image ref, runtime handler), and has a table of the handlers
// (KEP-4216).
//
// Up: nothing is rewritten. A value of version 1 is a value of version 2 for the default handler,
// under the same key; its envelope has its version. The new table is empty.
//
// Down: what there is of other handlers becomes the default's, as when runtime handlers are
// collapsed; their records lose their credentials. So does a record of the default handler with a
// manifest or a guest platform, which version 1 can't hold. What version 2 has another form of is
// sealed again as version 1.

#include <map>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "store/base/empty_list.h"
#include "store/base/try.h"
#include "store/images/images.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
#include "store/runtimes/runtime_handlers.h"

namespace waybill::internal {

namespace v1_to_v2 {
namespace {

Result<void> Up(StepRun&) { return {}; }

bool SaysMoreThanV1(const ImageRow& row) {
  return row.pulled && (!row.pulled->manifest_digest.empty() || row.pulled->platform ||
                        row.pulled->guest_platform);
}

// Leaves of a value what version 1 can hold.
Result<void> LeaveToV1(Table table, std::vector<std::uint8_t>& payload) {
  if (table != Table::kImages) return {};
  auto row = DecodeImage(payload);
  if (!row) return Error{ErrorCode::kDamaged, "a record can't be read", {}, Hint::kRecover};
  if (!SaysMoreThanV1(*row)) return {};
  const PulledPart was = *row->pulled;
  row->pulled->entries.clear();
  KeepPrivateNames(was, *row->pulled);
  row->pulled->manifest_digest.clear();
  row->pulled->platform.reset();
  row->pulled->guest_platform.reset();
  payload = TRY(EncodeImage(*row));
  return {};
}

Result<void> Down(StepRun& run) {
  Aliases aliases;
  Images images(run.txn, aliases);
  TRY(CollapseHandlers(images));
  const Schema v1 = SchemaOf(1);
  const auto rewrites = [&](const TableSpec& spec) { return v1.has(spec) && spec.form == 2; };
  for (const TableSpec& spec : kTables) {
    if (rewrites(spec)) run.total += run.txn.state().digest(spec.table).count;
  }
  for (const TableSpec& spec : kTables) {
    if (!rewrites(spec)) continue;
    TRY(Rewrite(run, spec.table, 1, [&](std::vector<std::uint8_t>& payload) {
      return LeaveToV1(spec.table, payload);
    }));
  }
  return {};
}

// What a table has of other handlers than the default.
struct OfOthers {
  Table table;
  const char* what;
  const char* becomes;
  // Of a value that verifies; "": the default.
  std::string (*handler)(Payload payload);
};

template <auto kDecode>
std::string HandlerOf(Payload payload) {
  const auto value = kDecode(payload);
  return value ? value->runtime_handler : std::string();
}

std::string HandlerOfPulled(Payload payload) {
  const ImageView view(payload);
  return view.is_recorded() ? std::string(view.runtime_handler()) : std::string();
}

std::string HandlerOfPreloaded(Payload payload) {
  const ImageView view(payload);
  return view.has_preloaded() ? std::string(view.runtime_handler()) : std::string();
}

constexpr OfOthers kOfOthers[] = {
    {Table::kImages, "image", "to be verified again", HandlerOfPulled},
    {Table::kIntents, "pull intent", "kept for the default one", HandlerOf<DecodeUnresolvedPull>},
    {Table::kImages, "preloaded image", "to be judged anew", HandlerOfPreloaded},
    {Table::kRevocations, "revocation", "kept for the default one", HandlerOf<DecodeRevocation>},
};

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  std::vector<std::string> losses;
  for (const OfOthers& one : kOfOthers) {
    std::map<std::string, std::uint64_t> counts;
    TRY(txn.ForEach(one.table, [&](const Key16&, Payload payload) -> Result<bool> {
      const std::string handler = payload.empty() ? std::string() : one.handler(payload);
      if (!handler.empty()) ++counts[handler];
      return true;
    }));
    for (const auto& [handler, count] : counts) {
      losses.push_back(HowMany(count, one.what) + " of runtime handler " + handler + ": " +
                       one.becomes);
    }
  }
  std::uint64_t manifests = 0;
  TRY(txn.ForEach(Table::kImages, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto row = DecodeImage(payload);
    if (row && row->runtime_handler.empty() && SaysMoreThanV1(*row)) ++manifests;
    return true;
  }));
  if (manifests > 0) {
    losses.push_back("the manifest or guest platform of " + HowMany(manifests, "image") +
                     " of the default handler: to be verified again");
  }
  auto handlers = TRY(ReadRuntimeHandlers(txn));
  for (const RuntimeHandler& handler : handlers) {
    if (handler.is_default && !handler.guest_platform) continue;
    losses.push_back("the runtime handler " + (handler.name.empty() ? "(default)" : handler.name) +
                     " in the registry");
  }
  return losses;
}

}  // namespace
}  // namespace v1_to_v2

const Step kStepV1ToV2 = {1, 2, "runtime-handlers", v1_to_v2::Up, v1_to_v2::Down, v1_to_v2::Losses};

}  // namespace waybill::internal
