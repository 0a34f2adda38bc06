// waybill runtimes: the node's runtime handlers (KEP-4216). Shows those that the store knows, loads
// those that the runtime serves, and turns them off.

#include <algorithm>
#include <map>
#include <utility>

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/input.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/platform.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// A row of the table.
struct Shown {
  RuntimeHandler handler;
  bool known = true;  // in the registry; otherwise only its name and its records are known
  std::uint64_t records = 0;

  // There is always a default handler.
  bool served() const { return known || handler.is_default; }
};

class RuntimesShowCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override { store_.DeclareToWrite(flags); }

  Result<ExitCode> Run(Output& out) override {
    const auto all = TRY(WithStore(ObserveStore(store_, {.shows_any_age = true}), Count));
    Json list = Json::array();
    for (const Shown& shown : all) {
      Json entry = JsonOf(shown.handler);
      if (!shown.known) entry["userNamespaces"] = nullptr;
      entry["served"] = shown.served();
      entry["records"] = shown.records;
      list.push_back(std::move(entry));
    }
    out.WriteJson({{"handlers", list}});
    std::vector<std::vector<std::string>> rows;
    for (const Shown& shown : all) rows.push_back(RowOf(shown));
    out.WriteTable({"NAME", "USER NAMESPACES", "GUEST PLATFORM", "RECORDS"}, rows);
    return ExitCode::kYes;
  }

 private:
  // Always has the default handler.
  static Result<std::vector<Shown>> Count(const NodeStore& store) {
    auto names = TRY(HandlerNames::Of(store));
    auto records = TRY(store.ListRecords());
    std::map<std::string, std::uint64_t> counts;  // by the stored handler
    counts[""] = 0;
    for (const ImagePulledRecord& record : records) ++counts[record.runtime_handler];
    std::vector<Shown> all;
    for (const RuntimeHandler& handler : names.handlers()) {
      const auto counted = counts.find(handler.is_default ? "" : handler.name);
      all.push_back({handler, true, counted == counts.end() ? 0 : counted->second});
      if (counted != counts.end()) counts.erase(counted);
    }
    for (const auto& [name, count] : counts) {
      RuntimeHandler handler;
      handler.name = name;
      handler.is_default = name.empty();
      all.push_back({handler, false, count});
    }
    std::sort(all.begin(), all.end(),
              [](const Shown& a, const Shown& b) { return a.handler.name < b.handler.name; });
    return all;
  }

  static std::vector<std::string> RowOf(const Shown& shown) {
    const RuntimeHandler& handler = shown.handler;
    std::string name = handler.name;
    if (handler.is_default) name += name.empty() ? "(default)" : " (default)";
    if (!shown.served()) name += " (not served)";
    return {name,
            !shown.known              ? "-"
            : handler.user_namespaces ? "yes"
                                      : "no",
            handler.guest_platform ? FormatPlatform(*handler.guest_platform) : "-",
            std::to_string(shown.records)};
  }
};

class RuntimesLoadCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Value("--status", &status_, "FILE|-", "what crictl info prints");
    cri_.Declare(flags).TakesSetting();
    flags.Value("--runtime-config", &config_, "FILE|-",
                "containerd's configuration, for what crictl info leaves out", kSeldom);
    flags.Switch("--allow-empty", &change_.allow_empty, "accept an empty list of handlers");
    change_.DeclareDryRun(flags);
    flags.Excludes("--cri", {"--status"});
    flags.Needed({"--status", "--cri"}, "give what `crictl info` prints, or --cri");
  }

  Result<ExitCode> Run(Output& out) override {
    auto handlers = TRY(status_ ? ReadRuntimeHandlers(*status_, config_)
                                : cri_.ListHandlers(config_, !change_.allow_empty));
    auto report = WithStore(OwnStore(store_), [&](NodeStore& store) {
      return store.Call(SetRuntimes{
          .handlers = handlers, .allow_empty = change_.allow_empty, .dry_run = change_.dry_run});
    });
    if (!report) return cri_.About(report.error());
    Json answer = JsonOf(*report);
    answer["handlers"] = handlers.size();
    WriteChange(std::move(answer), change_.dry_run, out);
    WriteRuntimes(*report, out);
    out.Line("serves      {}", HowMany(handlers.size(), "handler"));
    return ExitCode::kYes;
  }

 private:
  std::optional<std::string> status_;
  CriFlag cri_;
  std::optional<std::string> config_;
  ChangeFlags change_;
};

class RuntimesCollapseCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    change_.DeclareDryRun(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    const auto report = TRY(WithStore(OwnStore(store_), [&](NodeStore& store) {
      return store.Call(SetRuntimes{.off = true, .dry_run = change_.dry_run});
    }));
    WriteChange(JsonOf(report), change_.dry_run, out);
    WriteCollapse(report, out);
    return ExitCode::kYes;
  }

 private:
  ChangeFlags change_;
};

}  // namespace

Command RuntimesCommand() {
  return {
      .name = "runtimes",
      .task = kTaskTakeOver,
      .summary = "show, load or turn off runtime handlers",
      .actions =
          {{.name = "show",
            .summary = "the handlers that the store knows, and how many records each has",
            .examples = "waybill runtimes show",
            .call = New<RuntimesShowCall>},
           {.name = "load",
            .summary = "replace them by what the runtime serves",
            .notes =
                R"(Records of removed handlers stay until they are pruned. If a guest platform or the
default handler changed, images must be verified again.)",
            .examples = "crictl info | waybill runtimes load --status -",
            .call = New<RuntimesLoadCall>},
           {.name = "collapse",
            .summary = "turn runtime classes off",
            .notes =
                R"(Records and intents of other handlers move to the default one, without credentials.)",
            .examples = "waybill runtimes collapse --dry-run",
            .call = New<RuntimesCollapseCall>}},
      .default_action = "show"};
}

}  // namespace waybill::cli
