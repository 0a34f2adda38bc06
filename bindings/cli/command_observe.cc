// waybill observe: judges the images that the runtime lists, each once.

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class ObserveCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    images_.Declare(flags, ": all images").TakesSetting();
    list_.Declare(flags);
    flags.Switch("--partial", &partial_, "the list may lack images; each one has all its names");
    change_.DeclareAllowEmpty(flags, "list of images");
    change_.DeclareDryRun(flags);
    short_names_.Declare(flags);
    flags.Excludes("--begin",
                   {"--images", "--cri", "--token", "--partial", "--allow-empty", "--dry-run"});
    flags.Excludes("--cri", {"--token"}, "it draws one itself");
    flags.Excludes("--cri", {"--partial"}, "it lists all images");
    flags.Needed({"--images", "--cri", "--begin"}, "or draw a token with --begin, or give --cri");
    flags.Needed({"--token", "--cri", "--begin"},
                 "draw a token with --begin, before the list is made");
  }

  Result<ExitCode> Run(Output& out) override {
    if (list_.begin) return PrintListToken(store_, out);
    if (images_.cri().given()) list_.token = TRY(DrawListToken(store_));
    auto images = TRY(images_.Read());
    const ImageList list{.images = std::move(images), .token = *list_.token, .complete = !partial_};
    const auto report = WithWriter(
        Writer::Open(store_, {.evidence = short_names_.options(), .short_names = &short_names_}),
        [&](Writer& writer) {
          return writer.Call(ClassifyImages{
              .list = list, .allow_empty = change_.allow_empty, .dry_run = change_.dry_run});
        });
    if (!report) return images_.cri().About(report.error());
    WriteChange(JsonOf(*report), change_.dry_run, out);
    WriteObserved(*report, out);
    return ExitCode::kYes;
  }

 private:
  ChangeFlags change_;
  ShortNamesFlag short_names_;
  bool partial_ = false;
  ImagesFlags images_;
  ListTokenFlags list_;
};

}  // namespace

Command ObserveCommand() {
  return {
      .name = "observe",
      .task = kTaskTakeOver,
      .summary = "judge the images that the runtime lists",
      .notes =
          R"(Each image that has neither a record nor an entry in the ledger is judged, once. If it
has a name that no open pull could have given it, it came without the kubelet: it enters
the ledger, and is open to all pods. Otherwise it is closed until a pod proves
credentials. Open pulls that can bring nothing any more are dropped. Images that are
gone are remembered for 30 days, unless they are newer than the token. A list whose
token is older than that of a list before is refused (2). With --cri it is one step,
which draws the token itself.)",
      .examples =
          R"(waybill observe --cri auto
token=$(waybill observe --begin)
crictl images -o json > images.json
waybill observe --images images.json --token "$token")",
      .call = New<ObserveCall>};
}

}  // namespace waybill::cli
