// waybill list: what the store holds, as tables.

#include <algorithm>
#include <chrono>

#include "bindings/cli/command.h"
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

class ListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Switch("--intents", &intents_, "image strings of open pulls (see also waybill pulls)");
    flags.Switch("--quarantine", &quarantine_, "images closed because their file was unreadable");
    flags.Switch("--preloaded", &preloaded_, "images that a kubelet saw before it pulled any");
    runtime_.Declare(flags);
    flags.Value("--namespace", &namespace_, "NS", "only what credentials of this namespace open",
                ParseNamespace);
    flags.Value("--older-than", &older_than_, "TIME", "only what is older: 90s, 2h, 30d",
                ParseDuration);
    flags.Excludes("--intents", {"--quarantine", "--preloaded"});
    flags.Excludes("--quarantine", {"--preloaded"});
    flags.Excludes("--runtime", {"--quarantine", "--preloaded"}, "these have no runtime handlers");
    flags.Excludes("--namespace", {"--intents", "--quarantine", "--preloaded"},
                   "only records have credentials");
    flags.Excludes("--older-than", {"--intents"}, "`waybill pulls` says when each pull began");
  }

  Result<ExitCode> Run(Output& out) override {
    if (older_than_) {
      before_ = SystemClock();
      before_->seconds -= older_than_->count();
    }
    return WithStore(ObserveStore(store_, {.shows_any_age = true}),
                     [&](NodeStore& store) -> Result<ExitCode> {
                       auto names = TRY(HandlerNames::Of(store));
                       TRY(intents_      ? Intents(store, names, out)
                           : quarantine_ ? Quarantine(store, out)
                           : preloaded_  ? Preloaded(store, out)
                                         : Records(store, names, out));
                       return ExitCode::kYes;
                     });
  }

 private:
  // An entry without a time counts as old.
  bool IsOldEnough(const std::optional<Timestamp>& time) const {
    return !before_ || !time || *time < *before_;
  }

  // Keeps the entries of the handler of --runtime. A handler that vanished still has records; an
  // unknown one is an error.
  template <typename T>
  Result<void> LeaveHandler(const HandlerNames& names, std::vector<T>& all) const {
    if (!runtime_.given()) return {};
    const std::string handler = names.StoredNameOf(runtime_.handler());
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
    Rows rows;
    for (const ImagePulledRecord& record : records) {
      const std::string runtime = names.TextOf(record.runtime_handler);
      const std::string updated = out.TimeText(record.last_updated);
      if (record.credential_mapping.empty()) {
        rows.push_back({record.image_ref, runtime, "-", AccessText({}), updated});
      }
      for (const auto& [image_name, credentials] : record.credential_mapping) {
        rows.push_back({record.image_ref, runtime, image_name, AccessText(credentials), updated});
      }
    }
    Write("records", JsonOf(records), {"IMAGE REF", "RUNTIME", "IMAGE NAME", "OPEN TO", "UPDATED"},
          rows, out);
    return {};
  }

  Result<void> Intents(const NodeStore& store, const HandlerNames& names, Output& out) const {
    auto intents = TRY(store.ListIntents());
    TRY(LeaveHandler(names, intents));
    Rows rows;
    for (const ImagePullIntent& intent : intents) {
      rows.push_back({intent.image, names.TextOf(intent.runtime_handler)});
    }
    Write("intents", JsonOf(intents), {"IMAGE", "RUNTIME"}, rows, out);
    return {};
  }

  Result<void> Quarantine(const NodeStore& store, Output& out) const {
    auto entries = TRY(store.ListQuarantine());
    std::erase_if(entries, [&](const QuarantinedFile& entry) { return !IsOldEnough(entry.since); });
    Rows rows;
    for (const QuarantinedFile& entry : entries) {
      rows.push_back({std::string(WordOf(entry.kind)), entry.sha256, out.TimeText(entry.since),
                      entry.source, entry.reason});
    }
    Write("quarantined", JsonOf(entries), {"KIND", "SHA256", "SINCE", "SOURCE", "REASON"}, rows,
          out);
    return {};
  }

  Result<void> Preloaded(const NodeStore& store, Output& out) const {
    auto records = TRY(store.ListPreloaded());
    std::erase_if(records, [&](const ImagePreloadedRecord& record) {
      return !IsOldEnough(record.last_updated);
    });
    Rows rows;
    for (const ImagePreloadedRecord& record : records) {
      for (const std::string& image_name : record.observed_images) {
        rows.push_back({record.image_ref, image_name, out.TimeText(record.last_updated)});
      }
      if (record.observed_images.empty()) {
        rows.push_back({record.image_ref, "-", out.TimeText(record.last_updated)});
      }
    }
    Write("observedPreloaded", JsonOf(records), {"IMAGE REF", "IMAGE NAME", "UPDATED"}, rows, out);
    return {};
  }

  static void Write(const std::string& key, const Json& list, const std::vector<std::string>& head,
                    const Rows& rows, Output& out) {
    out.WriteJson({{key, list}});
    out.WriteTable(head, rows);
  }

  bool intents_ = false;
  bool quarantine_ = false;
  bool preloaded_ = false;
  RuntimeFlag runtime_;
  std::optional<std::string> namespace_;
  std::optional<std::chrono::seconds> older_than_;
  std::optional<Timestamp> before_;  // what is older
};

}  // namespace

Command ListCommand() {
  return {
      .name = "list",
      .task = kTaskLook,
      .summary = "list records, intents or quarantined images",
      .notes =
          R"(Several filters all apply. --namespace: records that a Secret or a service account of it
opens now. --older-than: by UPDATED, of --quarantine by SINCE; what has no time counts
as old.)",
      .examples = R"(waybill list
waybill list --namespace tenant-a --older-than 30d)",
      .call = New<ListCall>};
}

}  // namespace waybill::cli
