// waybill dump: everything that the store holds, one JSON object a line (README.md).

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

void WriteTyped(std::string_view type, const Json& value, Output& out) {
  Json line = {{"type", type}};
  line.Update(value);
  out.WriteData(line);
}

template <typename T>
Result<void> WriteAll(std::string_view type, const Result<std::vector<T>>& values, Output& out) {
  if (!values) return values.error();
  for (const T& value : *values) WriteTyped(type, JsonOf(value), out);
  return {};
}

class DumpCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Switch("--with-hashes", &with_hashes_, "write credential hashes as they are");
  }

  Result<ExitCode> Run(Output& out) override {
    // Including credentials that are past their age.
    return WithStore(ObserveStore(store_, {.ages = AgeLimits{}, .shows_any_age = true}),
                     [&](const NodeStore& store) { return Dump(store, out); });
  }

 private:
  Result<ExitCode> Dump(const NodeStore& store, Output& out) const {
    auto trust = TRY(store.GetTrust());
    for (const DegradedEvent& event : trust.journal) WriteTyped("trust", JsonOf(event), out);
    TRY(WriteAll("runtimeHandler", store.ListRuntimeHandlers(), out));
    TRY(WriteAll("quarantine", store.ListQuarantine(), out));
    TRY(WriteAll("preloaded", store.ListPreloaded(), out));
    TRY(WriteAll("ledger", store.ListLedger(), out));
    TRY(WriteAll("intent", store.ListIntents(), out));
    TRY(WriteAll("pull", store.ListOpenPulls(), out));
    auto records = TRY(store.ListRecords());
    SortForReading(records);
    const Hashes hashes = with_hashes_ ? Hashes::kShown : Hashes::kRedacted;
    for (const ImagePulledRecord& record : records) {
      WriteTyped("record", JsonOf(record, hashes), out);
    }
    auto revocations = TRY(store.ListRevocations());
    SortForReading(revocations);
    for (const Revocation& one : revocations) WriteTyped("revocation", JsonOf(one, hashes), out);
    TRY(WriteAll("idMapping", store.ListUserNamespaces(), out));
    TRY(WriteAll("heldPod", store.ListHeldPods(), out));
    return ExitCode::kYes;
  }

  bool with_hashes_ = false;
};

}  // namespace

Command DumpCommand() {
  return {
      .name = "dump",
      .task = kTaskLook,
      .summary = "write everything in the store as JSON lines",
      .notes =
          R"(Each line has a "type": trust, runtimeHandler, quarantine, preloaded, ledger, intent,
pull, record, revocation, idMapping or heldPod. A hash of a weak password can be
guessed, so hashes read "redacted" without --with-hashes. If a type can't be read, the
dump ends with an error after the types before it.)",
      .examples = R"(waybill dump > store.jsonl)",
      .call = New<DumpCall>};
}

}  // namespace waybill::cli
