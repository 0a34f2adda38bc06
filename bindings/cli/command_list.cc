// waybill list: what the store holds, as tables.

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

class ListCommand final : public Command {
 public:
  std::string name() const override { return "list"; }
  std::string summary() const override { return "list records, intents or quarantined images"; }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Switch("--intents", &intents_, "image strings of open pulls (see also waybill pulls)");
    flags.Switch("--quarantine", &quarantine_, "images closed because their file was unreadable");
    flags.Switch("--preloaded", &preloaded_,
                 "images that a kubelet saw before it pulled any (what is known to be\n"
                 "preloaded: waybill preload)");
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    if (int{intents_} + int{quarantine_} + int{preloaded_} > 1) {
      return BadFlag("list", "one of --intents, --quarantine and --preloaded at a time");
    }
    const auto list = intents_      ? Intents
                      : quarantine_ ? Quarantine
                      : preloaded_  ? Preloaded
                                    : Records;
    auto listed =
        WithStore(ObserveStore(store_), [&](NodeStore& store) { return list(store, out); });
    if (!listed) return listed.error();
    return ExitCode::kYes;
  }

 private:
  static Result<void> Records(const NodeStore& store, Output& out) {
    auto records = store.ListRecords();
    if (!records) return records.error();
    SortForReading(*records);
    auto names = HandlerNames::Of(store);
    if (!names) return names.error();
    Json list = Json::array();
    Rows rows;
    for (const ImagePulledRecord& record : *records) {
      if (out.json()) {
        list.push_back(JsonOf(record, Hashes::kRedacted));
        continue;
      }
      const std::string runtime = names->TextOf(record.runtime_handler);
      const std::string updated = out.TimeText(record.last_updated);
      if (record.credential_mapping.empty()) {
        rows.push_back({record.image_ref, runtime, "-", AccessText({}), updated});
      }
      for (const auto& [image_name, credentials] : record.credential_mapping) {
        rows.push_back({record.image_ref, runtime, image_name, AccessText(credentials), updated});
      }
    }
    Write("records", list, {"IMAGE REF", "RUNTIME", "IMAGE NAME", "OPEN TO", "UPDATED"}, rows, out);
    return {};
  }

  static Result<void> Intents(const NodeStore& store, Output& out) {
    auto intents = store.ListIntents();
    if (!intents) return intents.error();
    auto names = HandlerNames::Of(store);
    if (!names) return names.error();
    Json list = Json::array();
    Rows rows;
    for (const ImagePullIntent& intent : *intents) {
      list.push_back(JsonOf(intent));
      rows.push_back({intent.image, names->TextOf(intent.runtime_handler)});
    }
    Write("intents", list, {"IMAGE", "RUNTIME"}, rows, out);
    return {};
  }

  static Result<void> Quarantine(const NodeStore& store, Output& out) {
    auto entries = store.ListQuarantine();
    if (!entries) return entries.error();
    Json list = Json::array();
    Rows rows;
    for (const QuarantineEntry& entry : *entries) {
      list.push_back(JsonOf(entry));
      rows.push_back({std::string(QuarantineKindName(entry.kind)), entry.sha256,
                      out.TimeText(entry.since), entry.source, entry.reason});
    }
    Write("quarantine", list, {"KIND", "SHA256", "SINCE", "SOURCE", "REASON"}, rows, out);
    return {};
  }

  static Result<void> Preloaded(const NodeStore& store, Output& out) {
    auto records = store.ListPreloaded();
    if (!records) return records.error();
    Json list = Json::array();
    Rows rows;
    for (const ImagePreloadedRecord& record : *records) {
      list.push_back(JsonOf(record));
      for (const std::string& image_name : record.observed_images) {
        rows.push_back({record.image_ref, image_name, out.TimeText(record.last_updated)});
      }
      if (record.observed_images.empty()) {
        rows.push_back({record.image_ref, "-", out.TimeText(record.last_updated)});
      }
    }
    Write("preloaded", list, {"IMAGE REF", "IMAGE NAME", "UPDATED"}, rows, out);
    return {};
  }

  static void Write(const std::string& key, const Json& list, const std::vector<std::string>& head,
                    const Rows& rows, Output& out) {
    if (out.json()) return out.WriteJson({{key, list}});
    out.WriteTable(head, rows);
  }

  StoreFlags store_;
  bool intents_ = false;
  bool quarantine_ = false;
  bool preloaded_ = false;
};

}  // namespace

std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }

}  // namespace waybill::cli
