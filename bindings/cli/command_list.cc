// waybill list: what the store holds, as tables.

#include <algorithm>
#include <chrono>

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Whether a Secret or a service account of the namespace opens the image, under some name.
bool IsOpenedBy(const ImagePulledRecord& record, std::string_view namespace_name) {
  const auto of_namespace = [&](const auto& one) { return one.namespace_name == namespace_name; };
  return std::any_of(record.credential_mapping.begin(), record.credential_mapping.end(),
                     [&](const auto& mapped) {
                       const ImagePullCredentials& credentials = mapped.second;
                       const auto& secrets = credentials.kubernetes_secrets;
                       const auto& accounts = credentials.kubernetes_service_accounts;
                       return std::any_of(secrets.begin(), secrets.end(), of_namespace) ||
                              std::any_of(accounts.begin(), accounts.end(), of_namespace);
                     });
}

class ListCommand final : public Command {
 public:
  std::string name() const override { return "list"; }
  std::string summary() const override { return "list records, intents or quarantined images"; }
  std::string notes() const override {
    return R"(Filters narrow the list, and several all apply. --runtime is for records and --intents.
--namespace is for records: those that a Secret or a service account of that namespace
opens now, with all their image names. --older-than is for what has a time: records and
--preloaded by UPDATED, --quarantine by SINCE; what has no time counts as old. If
nothing fits, the list is empty, and the exit code is 0.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Switch("--intents", &intents_, "image strings of open pulls (see also waybill pulls)");
    flags.Switch("--quarantine", &quarantine_, "images closed because their file was unreadable");
    flags.Switch("--preloaded", &preloaded_,
                 "images that a kubelet saw before it pulled any (what is known to be\n"
                 "preloaded: waybill preload)");
    runtime_.Declare(flags);
    flags.Value("--namespace", &namespace_, "NS", "only what credentials of this namespace open");
    flags.Value("--older-than", &older_than_, "TIME", "only what is older: 90s, 2h, 30d");
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(Parse());
    auto listed = WithStore(ObserveStore(store_, {.shows_any_age = true}),
                            [&](NodeStore& store) -> Result<void> {
                              auto names = TRY(HandlerNames::Of(store));
                              if (intents_) return Intents(store, names, out);
                              if (quarantine_) return Quarantine(store, out);
                              if (preloaded_) return Preloaded(store, out);
                              return Records(store, names, out);
                            });
    if (!listed) return listed.error();
    return ExitCode::kYes;
  }

 private:
  Result<void> Parse() {
    TRY(store_.Parse());
    TRY(runtime_.Parse());
    if (int{intents_} + int{quarantine_} + int{preloaded_} > 1) {
      return BadFlag("list", "one of --intents, --quarantine and --preloaded at a time");
    }
    const std::string_view table = intents_      ? "--intents"
                                   : quarantine_ ? "--quarantine"
                                   : preloaded_  ? "--preloaded"
                                                 : "";
    if (runtime_.given() && (quarantine_ || preloaded_)) {
      return BadFlag("--runtime", fmt::format("{} has no runtime handlers", table),
                     "leave one of the two out");
    }
    if (namespace_ && !table.empty()) {
      return BadFlag("--namespace", fmt::format("{} has no credentials", table),
                     "leave one of the two out");
    }
    if (older_than_ && intents_) {
      return BadFlag("--older-than", "--intents has no times",
                     "`waybill pulls` says when each pull began");
    }
    if (namespace_) {
      TRY(CheckLength("--namespace", *namespace_, kMaxCoordinateBytes));
      if (namespace_->find('/') != std::string::npos) {
        return BadFlag("--namespace", "a namespace has no '/' in it");
      }
    }
    if (!older_than_) return {};
    auto age = TRY(ParseDuration("--older-than", *older_than_));
    before_ = SystemClock();
    before_->seconds -= age.count();
    return {};
  }

  // An entry without a time counts as old.
  bool IsOldEnough(const std::optional<Timestamp>& time) const {
    return !before_ || !time || *time < *before_;
  }

  // Keeps the entries of the handler of --runtime. A handler that vanished still has records; an
  // unknown one is an error.
  template <typename T>
  Result<void> LeaveHandler(const HandlerNames& names, std::vector<T>& all) const {
    if (!runtime_.given()) return {};
    const std::string handler = names.StoredNameOf(runtime_.handler);
    const auto is_other = [&](const T& one) { return one.runtime_handler != handler; };
    if (std::all_of(all.begin(), all.end(), is_other)) {
      TRY(names.Check(handler));
    }
    std::erase_if(all, is_other);
    return {};
  }

  Result<void> Records(const NodeStore& store, const HandlerNames& names, Output& out) const {
    auto records = TRY(store.ListRecords());
    TRY(LeaveHandler(names, records));
    std::erase_if(records, [&](const ImagePulledRecord& record) {
      return !IsOldEnough(record.last_updated) || (namespace_ && !IsOpenedBy(record, *namespace_));
    });
    SortForReading(records);
    Json list = Json::array();
    Rows rows;
    for (const ImagePulledRecord& record : records) {
      if (out.json()) {
        list.push_back(JsonOf(record, Hashes::kRedacted));
        continue;
      }
      const std::string runtime = names.TextOf(record.runtime_handler);
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

  Result<void> Intents(const NodeStore& store, const HandlerNames& names, Output& out) const {
    auto intents = TRY(store.ListIntents());
    TRY(LeaveHandler(names, intents));
    Json list = Json::array();
    Rows rows;
    for (const ImagePullIntent& intent : intents) {
      list.push_back(JsonOf(intent));
      rows.push_back({intent.image, names.TextOf(intent.runtime_handler)});
    }
    Write("intents", list, {"IMAGE", "RUNTIME"}, rows, out);
    return {};
  }

  Result<void> Quarantine(const NodeStore& store, Output& out) const {
    auto entries = TRY(store.ListQuarantine());
    std::erase_if(entries, [&](const QuarantineEntry& entry) { return !IsOldEnough(entry.since); });
    Json list = Json::array();
    Rows rows;
    for (const QuarantineEntry& entry : entries) {
      list.push_back(JsonOf(entry));
      rows.push_back({std::string(QuarantineKindName(entry.kind)), entry.sha256,
                      out.TimeText(entry.since), entry.source, entry.reason});
    }
    Write("quarantine", list, {"KIND", "SHA256", "SINCE", "SOURCE", "REASON"}, rows, out);
    return {};
  }

  Result<void> Preloaded(const NodeStore& store, Output& out) const {
    auto records = TRY(store.ListPreloaded());
    std::erase_if(records, [&](const ImagePreloadedRecord& record) {
      return !IsOldEnough(record.last_updated);
    });
    Json list = Json::array();
    Rows rows;
    for (const ImagePreloadedRecord& record : records) {
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
  RuntimeFlag runtime_;
  std::optional<std::string> namespace_;
  std::optional<std::string> older_than_;
  std::optional<Timestamp> before_;  // what is older
};

}  // namespace

std::unique_ptr<Command> MakeListCommand() { return std::make_unique<ListCommand>(); }

}  // namespace waybill::cli
