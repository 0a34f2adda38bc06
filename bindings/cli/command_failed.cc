// waybill failed: records that a pull did not succeed.

#include <algorithm>

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class FailedCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags_.Declare(flags);
    flags.Switch("--unknown", &unknown_, "the outcome is unknown: the image may still arrive");
    flags.Switch("--nothing-transferred", &nothing_transferred_,
                 "the runtime was asked after an error: the image is not there");
    flags.Choice("--class", &error_class_, "auth|notFound|unavailable|other",
                 "the class of the error, for metrics", Word<PullErrorClass>("class of errors"));
    flags.Value("--error", &error_, "TEXT",
                "makes --class of what the runtime said; the text is not kept");
    flags.Excludes("--class", {"--error"});
    flags.Value("--pull", &pull_, "PULL", "which pull: the number of waybill intent", ParsePullId);
    flags.Excludes("--nothing-transferred", {"--unknown"});
    flags.Needs("--nothing-transferred", {"--pull"},
                "of which pull do you know that? Give the number that `waybill intent` printed");
  }

  Result<ExitCode> Run(Output& out) override {
    const PullOutcome how = unknown_               ? PullOutcome::kUnknown
                            : nothing_transferred_ ? PullOutcome::kNothing
                                                   : PullOutcome::kFailed;
    const std::string handler = flags_.runtime.handler();
    const ImageCopy copy = {.image = flags_.image, .runtime_handler = handler};
    auto dangling = TRY(WithWriter(Writer::Open(flags_.store), [&](Writer& writer) -> Result<bool> {
      TRY(CheckIsOpen(writer.store(), copy));
      TRY(Record(writer, copy, how));
      return writer.store().HasIntent(copy);
    }));
    Json answer = JsonOf(ImagePullIntent{flags_.image, handler});
    answer["intent"] = dangling;
    out.WriteJson(answer);
    if (dangling) {
      out.Line("failed: {}{}; a pull of it stays open, since it may have brought the image",
               flags_.image, ForHandler(handler));
    } else {
      out.Line("failed: {}{}; no pull of it is open", flags_.image, ForHandler(handler));
    }
    return ExitCode::kYes;
  }

 private:
  // A kubelet's call for a pull that is not open does nothing. Whoever types it is mistaken.
  Result<void> CheckIsOpen(const NodeStore& store, const ImageCopy& copy) const {
    bool is_open = TRY(store.HasIntent(copy));
    if (is_open && pull_.value != 0) {
      auto pulls = TRY(store.ListOpenPulls());
      is_open = std::any_of(pulls.begin(), pulls.end(), [&](const UnresolvedPull& one) {
        // One that stands for several has the number of the last.
        return one.image == copy.image &&
               (one.id == pull_ || (one.several && one.id.value > pull_.value));
      });
    }
    if (is_open) return {};
    // Of a handler that nobody knows the call says so.
    const auto known = TRY(store.ListRuntimeHandlers());
    const bool is_known = copy.runtime_handler.empty() ||
                          std::any_of(known.begin(), known.end(), [&](const RuntimeHandler& one) {
                            return one.name == copy.runtime_handler;
                          });
    if (!is_known) return {};
    const std::string which = pull_.value == 0 ? "pull" : "pull " + std::to_string(pull_.value);
    return Error{ErrorCode::kNotFound,
                 fmt::format("there is no open {} of {}{}; nothing was changed", which,
                             internal::QuoteForMessage(copy.image),
                             ForHandler(std::string(copy.runtime_handler))),
                 "list them with `waybill pulls`: it may have ended since"};
  }

  Result<Nothing> Record(Writer& writer, const ImageCopy& copy, PullOutcome how) const {
    EndPull end{.image = std::string(copy.image),
                .runtime_handler = std::string(copy.runtime_handler),
                .pull = pull_.value,
                .outcome = how};
    if (error_) end.details.error = *error_;
    if (error_class_) end.details.error = WordOf(*error_class_);
    return writer.Ask(end);
  }

  PullFlags flags_;
  std::optional<PullErrorClass> error_class_;
  std::optional<std::string> error_;
  bool unknown_ = false;
  bool nothing_transferred_ = false;
  PullId pull_;
};

}  // namespace

Command FailedCommand() {
  return {
      .name = "failed",
      .task = kTaskRecord,
      .summary = "record that a pull did not succeed",
      .notes =
          R"(Under the closed rules the pull stays open, since it may still have brought its image,
which `waybill observe` finds out; with --nothing-transferred it is dropped. Without
--pull it is the newest of the image that runs. If none is open the command is refused.
It uses --store, --image, --runtime and its own flags; the others are only checked.)",
      .examples = R"(waybill failed --image registry.example/app:v1 --pull 7
waybill failed --image registry.example/app:v1 --error "401 Unauthorized")",
      .call = New<FailedCall>};
}

}  // namespace waybill::cli
