// waybill pulls: the pulls that may still bring an image, or may have brought one unrecorded.

#include <algorithm>

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "store/images/judge.h"

namespace waybill::cli {
namespace {

class PullsListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    short_names_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(WithStore(ObserveStore(store_, {.shows_any_age = true}),
                  [&](const NodeStore& store) { return Write(store, out); }));
    return ExitCode::kYes;
  }

 private:
  Result<void> Write(const NodeStore& store, Output& out) const {
    auto pulls = TRY(store.ListOpenPulls());
    auto names = TRY(HandlerNames::Of(store));
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const UnresolvedPull& pull : pulls) {
      const std::vector<std::string> gives = NamesGivenBy(pull, short_names_.options().short_names);
      Json object = JsonOf(pull);
      object["couldGive"] = gives;
      list.push_back(std::move(object));
      std::string state(WordOf(pull.state));
      if (pull.several) state += ", several";
      rows.push_back({std::to_string(pull.id.value), ImageText(pull),
                      names.TextOf(pull.runtime_handler), std::move(state),
                      out.TimeText(pull.began), pull.ended ? out.TimeText(pull.ended) : "-",
                      InWords(gives, "")});
    }
    out.WriteJson({{"pulls", list}});
    out.WriteTable({"PULL", "IMAGE", "RUNTIME", "STATE", "BEGAN", "ENDED", "COULD GIVE"}, rows);
    return {};
  }

  ShortNamesFlag short_names_;
};

class PullsDropCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Positional("PULL", &pull_, "the pull's number in the list", ParsePullId)
        .Required("waybill pulls lists them");
    flags
        .Value("--reason", &reason_, "TEXT",
               "why that is known; it is stored in the journal that `waybill trust` shows",
               Length{kMaxReasonBytes})
        .Required("state why the pull brought nothing");
    change_.DeclareDryRun(flags);
    short_names_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    auto dropped =
        TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<UnresolvedPull> {
          auto pulls = TRY(writer.store().ListOpenPulls());
          const auto found =
              std::find_if(pulls.begin(), pulls.end(),
                           [&](const UnresolvedPull& pull) { return pull.id == pull_; });
          TRY(writer.Call(
              DropPulls{.pull = pull_.value, .reason = reason_, .dry_run = change_.dry_run}));
          return found == pulls.end() ? UnresolvedPull{.id = pull_} : *found;
        }));
    WriteDryRun(change_.dry_run, out);
    out.WriteJson({{"dropped", JsonOf(dropped)}, {"dryRun", change_.dry_run}});
    out.Line("dropped: pull {} of {}{}", dropped.id.value, ImageText(dropped),
             ForHandler(dropped.runtime_handler));
    return ExitCode::kYes;
  }

 private:
  ChangeFlags change_;
  ShortNamesFlag short_names_;
  PullId pull_;
  std::string reason_;
};

}  // namespace

Command PullsCommand() {
  return {
      .name = "pulls",
      .task = kTaskRecord,
      .summary = "list pulls that may still bring an image",
      .actions =
          {{.name = "list",
            .summary = "open pulls, the oldest first",
            .notes =
                R"(An image that one of them could have given its name is not taken for preloaded. A pull
leaves the list when its success is recorded, when the runtime says that nothing was
transferred, or when `waybill observe` shows that it can bring nothing any more.)",
            .examples = "waybill pulls list",
            .call = New<PullsListCall>},
           {.name = "drop",
            .summary = "state that a pull brought nothing, and will bring nothing",
            .examples = "waybill pulls drop 7 --reason 'the node was off the network'",
            .call = New<PullsDropCall>}},
      .default_action = "list"};
}

}  // namespace waybill::cli
