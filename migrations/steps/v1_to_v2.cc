// Version 2 names each image by (image ref, runtime handler), and has a registry of the handlers
// (KEP-4216).
//
// Up: nothing is rewritten. A value of version 1 is a value of version 2 for the default handler,
// under the same key; its envelope has its version. The new table is empty.
//
// Down: records and intents of other handlers become the default's; the records lose their
// credentials. So does a record of the default handler with a manifest or a guest platform, which
// version 1 can't hold. All values are sealed again as version 1.

#include <map>
#include <string>
#include <vector>

#include "migrations/steps/steps.h"
#include "schema/v8/pulled_record_generated.h"
#include "store/base/empty_list.h"
#include "store/base/try.h"
#include "store/node/handlers/runtime_handlers.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"

namespace waybill::internal {

namespace v1_to_v2 {
namespace {

constexpr std::size_t kValuesAtOnce = 1024;

Result<void> Up(StepRun&) { return {}; }

bool SaysMoreThanV1(const PulledRecordView& record) {
  return record.root().manifest_digest() != nullptr || record.root().platform() != nullptr ||
         record.root().guest_platform() != nullptr;
}

// Writes every value of a table as version 1. Reads and writes take turns, since a table must not
// change while it is read.
Result<void> SealAsV1(StepRun& run, Table table, std::uint64_t& done, std::uint64_t total) {
  struct Value {
    Key16 key;
    std::vector<std::uint8_t> payload;
  };
  const Schema v1 = SchemaOf(1);
  Key16 next;
  while (true) {
    std::vector<Value> values;
    TRY(run.txn.ForEachFrom(table, next, [&](const Key16& key, Payload payload) -> Result<bool> {
      if (payload.empty()) {
        return Error{ErrorCode::kDamaged,
                     std::string("a value of table ") + SpecOf(table).name +
                         " does not verify; nothing was changed",
                     {},
                     Hint::kRecover};
      }
      values.push_back({key, {payload.begin(), payload.end()}});
      return values.size() < kValuesAtOnce;
    }));
    for (Value& value : values) {
      if (table == Table::kPulled && SaysMoreThanV1(PulledRecordView(value.payload))) {
        if (auto record = DecodePulledRecordValue(value.payload)) {
          record->credential_mapping.clear();
          record->manifest_digest.clear();
          record->platform.reset();
          record->guest_platform.reset();
          value.payload = TRY(EncodePulledRecordValue(*record));
        }
      }
      if (auto r = run.txn.PutAs(v1, table, value.key, value.payload); !r) return r;
      ++run.values_written;
    }
    done += values.size();
    if (run.progress && !run.progress(done, total)) {
      return Error{ErrorCode::kInterrupted,
                   "the migration was stopped; the store is as it was before the step",
                   "run it again"};
    }
    if (values.size() < kValuesAtOnce) return {};
    next = values.back().key.Next();
  }
}

Result<void> Down(StepRun& run) {
  TRY(CollapseHandlers(run.txn));
  const std::uint64_t total =
      run.txn.state().digest(Table::kPulled).count + run.txn.state().digest(Table::kIntents).count;
  std::uint64_t done = 0;
  for (const Table table : {Table::kPulled, Table::kIntents}) {
    if (auto r = SealAsV1(run, table, done, total); !r) return r;
  }
  return {};
}

Result<std::vector<std::string>> Losses(const StoreTxn& txn) {
  std::map<std::string, std::uint64_t> records;
  std::map<std::string, std::uint64_t> intents;
  std::uint64_t manifests = 0;
  TRY(txn.ForEach(Table::kPulled, [&](const Key16&, Payload payload) -> Result<bool> {
    if (payload.empty()) return true;
    const PulledRecordView record(payload);
    if (!record.runtime_handler().empty()) {
      ++records[std::string(record.runtime_handler())];
    } else if (SaysMoreThanV1(record)) {
      ++manifests;
    }
    return true;
  }));
  TRY(txn.ForEach(Table::kIntents, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto intent = DecodeUnresolvedPull(payload);
    if (intent && !intent->runtime_handler.empty()) ++intents[intent->runtime_handler];
    return true;
  }));
  auto handlers = TRY(ReadRuntimeHandlers(txn));

  std::vector<std::string> losses;
  losses.reserve(records.size() + intents.size() + 1);
  for (const auto& [handler, count] : records) {
    losses.push_back(HowMany(count, "image") + " of runtime handler " + handler +
                     ": to be verified again");
  }
  for (const auto& [handler, count] : intents) {
    losses.push_back(HowMany(count, "pull intent") + " of runtime handler " + handler +
                     ": kept for the default one");
  }
  if (manifests > 0) {
    losses.push_back("the manifest or guest platform of " + HowMany(manifests, "image") +
                     " of the default handler: to be verified again");
  }
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
