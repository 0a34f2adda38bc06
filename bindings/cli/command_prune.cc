// waybill prune: forgets the records of images that are gone.

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class PruneCommand final : public Command {
 public:
  std::string name() const override { return "prune"; }
  std::string summary() const override { return "forget the records of images that are gone"; }
  std::string notes() const override {
    return R"(In this order:
  token=$(waybill prune --store DIR --begin)
  crictl images -o json > images.json
  waybill prune --store DIR --images images.json --token "$token"
The list must be complete: an image that it lacks is gone. Its record, and its entry in
the ledger, are remembered for 30 days, for when it comes back; of a full store they are
deleted. An empty list is refused, since a runtime that is starting up lists nothing,
too. Images that were pulled after the token was drawn keep their records. --until
compares clocks instead; prefer a token. If the list names runtime handlers, records
under other handlers are deleted, except the last one of an image, which loses its
credentials instead. With --cri all of it is one step, which draws the token itself.
`waybill observe` does the same, and judges what is there.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
    flags.Switch("--begin", &begin_, "print a token; do this before the list is made");
    images_.Declare(flags, ": all images");
    flags.TakesSetting("--cri", {.unless = {"--images", "--begin", "--token", "--until"}});
    flags.Value("--token", &token_, "TOKEN", "the token");
    flags.Value("--until", &until_, "RFC3339", "forget what was last updated before this time");
    change_.DeclareAllowEmpty(flags, "list of images");
    change_.DeclareDryRun(flags);
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    if (begin_) {
      if (images_.given() || token_ || until_ || change_.options.allow_empty ||
          change_.options.dry_run) {
        return BadFlag("--begin", "it excludes all flags but --store and --rules");
      }
      return PrintListToken(store_, out);
    }
    TRY(CheckFlags());
    return Prune(out);
  }

 private:
  Result<void> CheckFlags() const {
    TRY(images_.Check());
    if (images_.cri().given()) {
      if (token_ || until_) {
        return BadFlag("--cri", "it excludes --token and --until: it draws a token itself");
      }
      return {};
    }
    if (!images_.given()) {
      return BadFlag("--images", "it is missing", "or draw a token with --begin, or give --cri");
    }
    if (token_.has_value() != until_.has_value()) return {};
    return BadFlag("--token", "exactly one of --token and --until is needed",
                   "draw a token with --begin, before the list is made");
  }

  Result<ExitCode> Prune(Output& out) const {
    ListToken token;
    Timestamp until;
    if (!until_) {
      token = TRY(images_.cri().given() ? DrawListToken(store_) : ParseListToken(*token_));
    } else {
      auto time = ParseTimestamp(*until_);
      if (!time) {
        return BadFlag("--until", time.error().message,
                       "the form is 2026-01-02T03:04:05Z, or with an offset such as +02:00");
      }
      until = *time;
    }
    auto images = TRY(images_.Read());
    auto report = WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return until_ ? writer.owner().PruneBefore(images, until, change_.options)
                    : writer.owner().Prune(images, token, change_.options);
    });
    if (!report) return images_.cri().About(report.error());
    WriteChange(FieldsOf(*report, {{"examined", "records examined"},
                                   {"removed", "gone"},
                                   {"keptInList", "kept: on the node"},
                                   {"keptNewer", "kept: newer"},
                                   {"keptWithoutCredentials", "kept: without credentials"},
                                   {"preloadedRemoved", "ledger entries gone"}}),
                change_.options.dry_run, out);
    return ExitCode::kYes;
  }

  StoreFlags store_;
  ChangeFlags change_;
  bool begin_ = false;
  ImagesFlags images_;
  std::optional<std::string> token_;
  std::optional<std::string> until_;
};

}  // namespace

std::unique_ptr<Command> MakePruneCommand() { return std::make_unique<PruneCommand>(); }

}  // namespace waybill::cli
