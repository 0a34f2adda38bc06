// waybill prune: forgets the records of images that are gone.

#include "bindings/cli/command.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class PruneCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    images_.Declare(flags, ": all images").TakesSetting();
    list_.Declare(flags);
    flags.Value("--until", &until_, "RFC3339",
                "in mode kubelet: forget what was last updated\nbefore this time", ParseTime);
    change_.DeclareAllowEmpty(flags, "list of images");
    change_.DeclareDryRun(flags);
    flags.Excludes("--begin",
                   {"--images", "--cri", "--token", "--until", "--allow-empty", "--dry-run"});
    flags.Excludes("--cri", {"--token", "--until"}, "it draws a token itself");
    flags.Excludes("--until", {"--token"}, "--token is the safer one");
    flags.Needed({"--images", "--cri", "--begin"}, "or draw a token with --begin, or give --cri");
    flags.Needed({"--token", "--until", "--cri", "--begin"},
                 "draw a token with --begin, before the list is made");
  }

  Result<ExitCode> Run(Output& out) override {
    if (list_.begin) return PrintListToken(store_, out);
    if (images_.cri().given()) list_.token = TRY(DrawListToken(store_));
    const auto images = TRY(images_.Read());
    const auto report = WithWriter(Writer::Open(store_), [&](Writer& writer) {
      PruneBefore prune{
          .images = images, .allow_empty = change_.allow_empty, .dry_run = change_.dry_run};
      (until_ ? prune.before.emplace(*until_), prune : (prune.token = list_.token, prune));
      return writer.Call(prune);
    });
    if (!report) return images_.cri().About(report.error());
    WriteChange(FieldsOf(*report, {{"examined", "records examined"},
                                   {"deleted", "gone"},
                                   {"keptInList", "kept: on the node"},
                                   {"keptNewer", "kept: newer"},
                                   {"keptWithoutCredentials", "kept: without credentials"},
                                   {"preloadedDeleted", "ledger entries gone"}}),
                change_.dry_run, out);
    return ExitCode::kYes;
  }

 private:
  ChangeFlags change_;
  ImagesFlags images_;
  ListTokenFlags list_;
  std::optional<Timestamp> until_;
};

}  // namespace

Command PruneCommand() {
  return {
      .name = "prune",
      .task = kTaskOpenClose,
      .summary = "forget the records of images that are gone",
      .notes =
          R"(The list must be complete: an image that it lacks is gone. Its record, and its entry in
the ledger, are remembered for 30 days, for when it comes back; of a full store they are
deleted. Images that were pulled after the token was drawn keep their records. In mode
kubelet --until compares clocks instead. If the list names runtime handlers, records
under other handlers are deleted, except the last one of an image, which loses its
credentials instead. With --cri it is one step, which draws the token itself. `waybill
observe` does the same, and judges what is there.)",
      .examples =
          R"(waybill prune --cri auto
token=$(waybill prune --begin)
crictl images -o json > images.json
waybill prune --images images.json --token "$token")",
      .call = New<PruneCall>};
}

}  // namespace waybill::cli
