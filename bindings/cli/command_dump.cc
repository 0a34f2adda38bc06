// waybill dump: everything that the store holds, one JSON object a line (README.md).

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

template <typename T>
Result<void> WriteAll(std::string_view type, const Result<std::vector<T>>& values, Output& out,
                      Hashes hashes = Hashes::kLeftOut) {
  if (!values) return values.error();
  for (const T& value : *values) {
    Json line = {{"type", type}};
    line.update(JsonOf(value, hashes));
    out.WriteData(line);
  }
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
    return WithStore(ObserveStore(store_, {.shows_any_age = true}),
                     [&](NodeStore& store) { return Dump(store, out); });
  }

 private:
  Result<ExitCode> Dump(NodeStore& store, Output& out) const {
    const auto trust = TRY(store.GetTrust());
    TRY(WriteAll<DegradedEvent>("history", trust.journal, out));
    TRY(WriteAll("handler", store.ListRuntimeHandlers(), out));
    TRY(WriteAll("quarantinedFile", store.ListQuarantine(), out));
    TRY(WriteAll("observedPreloaded", store.ListPreloaded(), out));
    TRY(WriteAll("preloaded", store.ListLedger(), out));
    TRY(WriteAll("intent", store.ListIntents(), out));
    TRY(WriteAll("pull", store.ListOpenPulls(), out));
    auto records = TRY(store.ListRecords());
    SortForReading(records);
    const Hashes hashes = with_hashes_ ? Hashes::kShown : Hashes::kLeftOut;
    TRY(WriteAll<ImagePulledRecord>("record", records, out, hashes));
    const auto revoked = TRY(store.Call(ListRevocations{.hashes = true}));
    TRY(WriteAll<Revocation>("revocation", revoked.revocations, out, hashes));
    TRY(WriteAll("idMapping", store.ListUserNamespaces(), out));
    TRY(WriteAll("quarantinedPod", store.ListHeldPods(), out));
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
          R"(Each line has a "type": history, handler, quarantinedFile, observedPreloaded, preloaded,
intent, pull, record, revocation, idMapping or quarantinedPod. A hash of a weak password
can be guessed, so hashes are left out without --with-hashes. If a type can't be read,
the dump ends with an error after the types before it.)",
      .examples = R"(waybill dump > store.jsonl)",
      .call = New<DumpCall>};
}

}  // namespace waybill::cli
