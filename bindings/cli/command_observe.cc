// waybill observe: judges the images that the runtime lists, each once.

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class ObserveCommand final : public Command {
 public:
  std::string name() const override { return "observe"; }
  std::string summary() const override { return "judge the images that the runtime lists"; }
  std::string notes() const override {
    return R"(In this order:
  token=$(waybill observe --store DIR --begin)
  crictl images -o json > images.json
  waybill observe --store DIR --images images.json --token "$token"
Each image that has neither a record nor an entry in the ledger is judged, once. If it
has a name that no open pull could have given it, it came without the kubelet: it
enters the ledger, and is open to all pods. Otherwise it is closed until a pod proves
credentials. Open pulls that can bring nothing any more are dropped. Records and ledger
entries of images that are gone are remembered (--remember), unless they are newer than
the token. The list must be complete; one that is not needs --partial, and then only
judges. A list
whose token is older than that of a list before is refused (2). With --cri all of it is
one step, which draws the token itself.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
    flags.Switch("--begin", &begin_, "print a token; do this before the list is made");
    images_.Declare(flags, ": all images");
    flags.TakesSetting("--cri", {.unless = {"--images", "--begin", "--token"}});
    flags.Value("--token", &token_, "TOKEN", "the token");
    flags.Switch("--partial", &partial_, "the list may lack images; each one has all its names");
    change_.DeclareAllowEmpty(flags, "list of images");
    change_.DeclareDryRun(flags);
    evidence_.Declare(flags);
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    TRY(evidence_.Parse());
    if (begin_) {
      if (images_.given() || token_ || partial_ || change_.options.allow_empty ||
          change_.options.dry_run) {
        return BadFlag("--begin",
                       "it excludes --images, --cri, --token, --partial, --allow-empty and "
                       "--dry-run");
      }
      return PrintListToken(store_, out);
    }
    TRY(CheckFlags());
    auto token = TRY(images_.cri().given() ? DrawListToken(store_) : ParseListToken(*token_));
    auto images = TRY(images_.Read());
    const ImageList list{.images = std::move(images), .token = token, .complete = !partial_};
    auto report = WithWriter(
        Writer::Open(store_, {.evidence = evidence_.options, .evidence_flags = &evidence_}),
        [&](Writer& writer) { return writer.owner().ObserveImages(list, change_.options); });
    if (!report) return images_.cri().About(report.error());
    WriteDryRun(change_.options.dry_run, out);
    if (out.json()) {
      Json answer = JsonOf(*report);
      answer["dryRun"] = change_.options.dry_run;
      out.WriteJson(answer);
    } else {
      WriteObserved(*report, {}, out);
    }
    return ExitCode::kYes;
  }

 private:
  Result<void> CheckFlags() const {
    TRY(images_.Check());
    if (images_.cri().given()) {
      if (token_) return BadFlag("--cri", "it excludes --token: it draws one itself");
      if (partial_) return BadFlag("--cri", "it excludes --partial: it lists all images");
      return {};
    }
    if (!images_.given()) {
      return BadFlag("--images", "it is missing", "or draw a token with --begin, or give --cri");
    }
    if (token_) return {};
    return BadFlag("--token", "it is missing",
                   "draw a token with --begin, before the list is made");
  }

  StoreFlags store_;
  ChangeFlags change_;
  EvidenceFlags evidence_;
  bool begin_ = false;
  bool partial_ = false;
  ImagesFlags images_;
  std::optional<std::string> token_;
};

}  // namespace

std::unique_ptr<Command> MakeObserveCommand() { return std::make_unique<ObserveCommand>(); }

}  // namespace waybill::cli
