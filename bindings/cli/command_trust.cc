// waybill trust: shows whether the store may have lost something, since when and why, and records
// an operator's confirmation that it is whole again.

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class TrustCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Switch("--clear", &clear_, "trust the store again");
    flags.Value("--reason", &reason_, "TEXT", "why that is safe; needed with --clear");
    images_
        .Declare(flags,
                 ": all images;\n"
                 "with --clear")
        .TakesSetting();
    flags.Switch("--adopt", &options_.allow_all,
                 "with --images: its images without a record are preloaded");
    flags.Switch("--allow-empty", &options_.allow_empty, "accept an empty list of images");
    flags.Switch("--dry-run", &options_.dry_run,
                 "with --clear: say what would be done, and change nothing");
    const std::string why = "state why the store is whole again";
    flags.Needs("--clear", {"--reason"}, why);
    flags.Needs("--reason", {"--clear"}, why);
    flags.Needs("--images", {"--clear"});
    flags.Needs("--cri", {"--clear"});
    // Without a list, --adopt would vouch for whatever comes next.
    flags.Needs("--adopt", {"--images", "--cri"});
    flags.Needs("--allow-empty", {"--images", "--cri"});
    flags.Needs("--dry-run", {"--clear"});
  }

  Result<ExitCode> Run(Output& out) override {
    options_.images = TRY(images_.ReadIfGiven());
    if (!clear_) {
      Mode mode = Mode::kStrict;
      auto trust = TRY(WithStore(ObserveStore(store_), [&](const NodeStore& store) {
        mode = store.settings().mode;
        return store.GetTrust();
      }));
      Write(trust, {}, mode, out);
      return trust.distrustful ? ExitCode::kNo : ExitCode::kYes;
    }
    std::optional<ClassifyReport> observed;
    Mode rules = Mode::kStrict;
    auto trust = WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<TrustState> {
      options_.reason = *reason_;
      observed = TRY(writer.Call(options_));
      rules = writer.rules();
      return writer.store().GetTrust();
    });
    if (!trust) return images_.cri().About(trust.error());
    Write(*trust, observed, rules, out);
    return trust->distrustful && !options_.dry_run ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  void Write(const TrustState& trust, const std::optional<ClassifyReport>& observed, Mode rules,
             Output& out) const {
    Json answer = {{"degraded", trust.distrustful}, {"history", JsonOf(trust.journal)}};
    if (observed) {
      answer["classified"] = JsonOf(*observed);
      answer["dryRun"] = options_.dry_run;
    }
    out.WriteJson(answer);
    WriteDryRun(options_.dry_run, out);
    if (observed && options_.images) WriteObserved(*observed, out);
    if (options_.dry_run) return;
    if (trust.distrustful) {
      out.Line("distrustful: {}", kDistrustMeans);
      out.Line("{}", ClearDistrustHint(store_.store));
    } else if (rules == Mode::kKubelet) {
      out.Line("trusted: images without a record are presumed preloaded");
    } else {
      out.Line("trusted: an image is open by a credential, or by the ledger of preloaded ones");
    }
    if (trust.journal.empty()) return;
    std::vector<std::vector<std::string>> rows;
    for (const DegradedEvent& event : trust.journal) {
      rows.push_back({out.TimeText(event.at), std::string(WordOf(event.action)),
                      std::string(WordOf(event.kind)),
                      event.distrustful ? "distrustful" : "trusted", event.reason});
    }
    out.WriteTable({"AT", "ACTION", "KIND", "STATE", "REASON"}, rows, Output::Names::kNone);
  }

  bool clear_ = false;
  AcceptLoss options_;
  std::optional<std::string> reason_;
  ImagesFlags images_;
};

}  // namespace

Command TrustCommand() {
  return {
      .name = "trust",
      .task = kTaskRepair,
      .summary = "show distrust and its reasons, or clear it",
      .notes =
          R"(A store that lost records is distrustful: images that have neither record nor ledger
entry must be pulled before a pod may use them, and no list of images is judged. By
clearing that you state that the store is whole from now on. Of --images, what has
neither is closed until a pod proves credentials; what the runtime pins enters the
ledger, and with --adopt, by which you state that no pod's credentials brought them, so
do all others. Without --images the next list closes them. 1 if the store is
distrustful.)",
      .examples = R"(waybill trust
waybill trust --clear --reason 'the disk is whole again' --cri auto)",
      .call = New<TrustCall>};
}

}  // namespace waybill::cli
