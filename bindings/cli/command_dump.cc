// waybill dump: everything that the store holds. One JSON object a line:
//
//   {"type":"trust","at":…,"kind":…,"action":…,"distrustful":…,"reason":…}   oldest first
//   {"type":"runtimeHandler","name":…,"default":…,"userNamespaces":…,"guestPlatform":{…}}
//   {"type":"quarantine","kind":…,"sha256":…,"source":…,…}
//   {"type":"preloaded","imageRef":…,"lastUpdatedTime":…,"observedImages":[…]}
//   {"type":"intent","image":…,"runtimeHandler":…}
//   {"type":"record","imageRef":…,"lastUpdatedTime":…,"credentialMapping":{…},"stamp":…,
//    "runtimeHandler":…,"manifestDigest":…,"platform":{…},"guestPlatform":{…}}
//   {"type":"idMapping","podUid":…,"hostId":…,"length":…,"created":…}
//   {"type":"heldPod","podUid":…,"ranges":[{"first":…,"length":…}],"source":…,"reason":…,"since":…,
//    "kind":…}
//
// A missing "runtimeHandler" is the default handler. The last three fields of a record are present
// if they are known.

#include "bindings/cli/command.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/userns_json.h"

namespace waybill::cli {
namespace {

void WriteTyped(std::string_view type, const Json& value, Output& out) {
  Json line = {{"type", type}};
  line.update(value);
  out.WriteJson(line);
}

template <typename T>
void WriteAll(std::string_view type, const std::vector<T>& values, Output& out) {
  for (const T& value : values) WriteTyped(type, JsonOf(value), out);
}

class DumpCommand final : public Command {
 public:
  std::string name() const override { return "dump"; }
  std::string summary() const override { return "write everything in the store as JSON lines"; }
  std::string notes() const override {
    return R"(Each line has a "type": trust, runtimeHandler, quarantine, preloaded, intent, record,
idMapping or heldPod. Credential hashes read "redacted" unless --with-hashes is given:
a hash of a weak password can be guessed. Each type is a snapshot of its own. If a
type can't be read, the dump ends with an error after the types before it.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Switch("--with-hashes", &with_hashes_, "write credential hashes as they are");
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    auto store = ObserveStore(store_);
    if (!store) return store.error();
    auto trust = (*store)->GetTrust();
    if (!trust) return trust.error();
    WriteAll("trust", trust->journal, out);
    auto handlers = (*store)->ListRuntimeHandlers();
    if (!handlers) return handlers.error();
    WriteAll("runtimeHandler", *handlers, out);
    auto quarantine = (*store)->ListQuarantine();
    if (!quarantine) return quarantine.error();
    WriteAll("quarantine", *quarantine, out);
    auto preloaded = (*store)->ListPreloaded();
    if (!preloaded) return preloaded.error();
    WriteAll("preloaded", *preloaded, out);
    auto intents = (*store)->ListIntents();
    if (!intents) return intents.error();
    WriteAll("intent", *intents, out);
    auto records = (*store)->ListRecords();
    if (!records) return records.error();
    SortForReading(*records);
    const Hashes hashes = with_hashes_ ? Hashes::kShown : Hashes::kRedacted;
    for (const ImagePulledRecord& record : *records) {
      WriteTyped("record", JsonOf(record, hashes), out);
    }
    auto mappings = (*store)->ListUserNamespaces();
    if (!mappings) return mappings.error();
    WriteAll("idMapping", *mappings, out);
    auto held = (*store)->ListHeldPods();
    if (!held) return held.error();
    WriteAll("heldPod", *held, out);
    if (auto closed = (*store)->Close(); !closed) return closed.error();
    return ExitCode::kYes;
  }

 private:
  StoreFlags store_;
  bool with_hashes_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeDumpCommand() { return std::make_unique<DumpCommand>(); }

}  // namespace waybill::cli
