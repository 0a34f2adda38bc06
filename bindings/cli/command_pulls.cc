// waybill pulls: the pulls that may still bring an image, or may have brought one unrecorded.

#include <algorithm>

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class PullsCommand final : public Command {
 public:
  std::string name() const override { return "pulls"; }
  std::string summary() const override { return "list pulls that may still bring an image"; }
  std::string notes() const override {
    return R"(list (default)  open pulls, the oldest first. An image that one of them could have given
                its name is not taken for preloaded. A pull leaves the list when its
                success is recorded, when the runtime says that nothing was transferred,
                or when a complete list shows that it can bring nothing any more
                (`waybill observe`)
drop PULL       you state that this pull brought nothing, and will bring nothing; the
                reason is stored in the journal that `waybill trust` shows)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
    flags.Positional("ACTION", &action_, "list or drop");
    flags.Positional("PULL", &pull_, "drop: the pull's number in the list");
    flags.Value("--reason", &reason_, "TEXT", "drop: why that is known");
    change_.DeclareDryRun(flags);
    evidence_.DeclareShortNames(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    TRY(evidence_.Parse());
    const std::string action = action_.value_or("list");
    if (action == "list") {
      if (pull_) return BadFlag("PULL", "it belongs to drop");
      if (reason_) return BadFlag("--reason", "it belongs to drop");
      if (change_.options.dry_run) return BadFlag("--dry-run", "it belongs to drop");
      return List(out);
    }
    if (action == "drop") return Drop(out);
    return BadFlag("ACTION", fmt::format("there is no '{}'", action.substr(0, 200)),
                   "the actions are list and drop");
  }

 private:
  Result<ExitCode> List(Output& out) const {
    TRY(WithStore(ObserveStore(store_, {.shows_any_age = true}),
                  [&](const NodeStore& store) { return Write(store, out); }));
    return ExitCode::kYes;
  }

  Result<void> Write(const NodeStore& store, Output& out) const {
    auto pulls = TRY(store.ListOpenPulls());
    auto names = TRY(HandlerNames::Of(store));
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const OpenPull& pull : pulls) {
      const std::vector<std::string> gives = NamesGivenBy(pull, evidence_.options.short_names);
      Json object = JsonOf(pull);
      object["couldGive"] = gives;
      list.push_back(std::move(object));
      std::string state(PullStateName(pull.state));
      if (pull.several) state += ", several";
      rows.push_back({std::to_string(pull.id.value), ImageText(pull),
                      names.TextOf(pull.runtime_handler), std::move(state),
                      out.TimeText(pull.began), pull.ended ? out.TimeText(pull.ended) : "-",
                      Joined(gives)});
    }
    if (out.json()) {
      out.WriteJson({{"pulls", list}});
    } else {
      out.WriteTable({"PULL", "IMAGE", "RUNTIME", "STATE", "BEGAN", "ENDED", "COULD GIVE"}, rows);
    }
    return {};
  }

  Result<ExitCode> Drop(Output& out) const {
    if (!pull_) {
      return BadFlag("PULL", "it is missing",
                     "waybill pulls --store " + ShellWord(store_.store) + " lists them");
    }
    auto id = TRY(ParsePullId("PULL", *pull_));
    if (!reason_) return BadFlag("--reason", "it is missing", "state why the pull brought nothing");
    TRY(CheckLength("--reason", *reason_, kMaxReasonBytes));
    auto dropped = WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<OpenPull> {
      auto pulls = TRY(writer.store().ListOpenPulls());
      const auto found = std::find_if(pulls.begin(), pulls.end(),
                                      [&](const OpenPull& pull) { return pull.id == id; });
      TRY(writer.owner().DropOpenPull(id, *reason_, change_.options));
      return found == pulls.end() ? OpenPull{.id = id} : *found;
    });
    if (!dropped) return dropped.error();
    WriteDryRun(change_.options.dry_run, out);
    if (out.json()) {
      out.WriteJson({{"dropped", JsonOf(*dropped)}, {"dryRun", change_.options.dry_run}});
    } else {
      out.Line("dropped: pull {} of {}{}", dropped->id.value, ImageText(*dropped),
               ForHandler(dropped->runtime_handler));
    }
    return ExitCode::kYes;
  }

  static std::string Joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
  }

  StoreFlags store_;
  ChangeFlags change_;
  EvidenceFlags evidence_;
  std::optional<std::string> action_;
  std::optional<std::string> pull_;
  std::optional<std::string> reason_;
};

}  // namespace

std::unique_ptr<Command> MakePullsCommand() { return std::make_unique<PullsCommand>(); }

}  // namespace waybill::cli
