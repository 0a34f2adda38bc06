// waybill export: writes the kubelet's own files, for a kubelet without waybill.

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class ExportCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Value("--kubelet-dir", &options_.kubelet_directory, "DIR",
                "a kubelet directory, the one with, or for, image_manager/ in it",
                ParseKubeletDirectory, kRequired);
    images_.Declare(flags, ": all images").TakesSetting();
    flags.Switch("--allow-empty", &options_.allow_empty, "accept an empty list of images");
    flags.Choice(
        "--api-version", &options_.api_version,
        {{"v1beta1", KubeletApiVersion::kV1Beta1}, {"v1alpha1", KubeletApiVersion::kV1Alpha1}},
        "v1beta1 (default; kubelets since v1.35) or v1alpha1 (to v1.34)");
    flags.Needs("--allow-empty", {"--images", "--cri"});
  }

  Result<ExitCode> Run(Output& out) override {
    std::optional<ListToken> token;
    if (images_.cri().given() && IsStrict()) token = DrawToken();
    options_.images = TRY(images_.ReadIfGiven());
    if (token) Judge(*token, *options_.images);
    auto report =
        WithStore(ObserveStore(store_), [&](NodeStore& store) { return store.Call(options_); });
    if (!report) return images_.cri().About(report.error());
    out.WriteFields({{"records", "records written", report->records},
                     {"withoutCredentials", "of other handlers only", report->without_credentials},
                     {"aliases", "under other spellings", report->spellings},
                     {"made", "made, to close images", report->made},
                     {"intents", "intents written", report->intents},
                     {"preloaded", "preloaded records written", report->preloaded},
                     {"closed", "closed: unreadable", report->closed},
                     {"idMappings", "ID mappings written", report->id_mappings},
                     {"replaced", "replaced files", ReplacedText(*report, out.json())},
                     {"removedPaths", "removed earlier ones", RemovedOf(*report, out.json())}});
    return ExitCode::kYes;
  }

 private:
  // Without a store the export says why.
  bool IsStrict() const {
    const auto mode = WithStore(ObserveStore(store_), [](const NodeStore& store) -> Result<Mode> {
      return store.settings().mode;
    });
    return mode && *mode == Mode::kStrict;
  }
  // Only a warning: without judging nothing enters the ledger, but the way back must not fail for
  // that.
  static void NotJudged(const Error& error) {
    Warn("images that nobody asked for yet are not judged, and closed: " + error.message,
         error.hint);
  }

  std::optional<ListToken> DrawToken() const {
    auto token = DrawListToken(store_);
    if (token) return *token;
    NotJudged(token.error());
    return std::nullopt;
  }

  // As an incomplete list, so that it removes nothing: it may be another runtime's.
  void Judge(const ListToken& token, const std::vector<ListedImage>& images) const {
    auto judged = WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return writer.Call(
          ClassifyImages{.list = {.images = images, .token = token, .complete = false}});
    });
    if (!judged) NotJudged(judged.error());
  }

  static std::string ReplacedText(const ExportReport& report, bool json) {
    return report.replaced_path.empty() && !json ? "none" : report.replaced_path;
  }

  static Json RemovedOf(const ExportReport& report, bool json) {
    if (json) return report.removed_paths;
    return report.removed_paths.empty() ? "none" : InWords(report.removed_paths, "");
  }

  ImagesFlags images_;
  ExportKubeletFiles options_;
};

}  // namespace

Command ExportCommand() {
  return {
      .name = "export",
      .task = kTaskTakeOver,
      .summary = "write a kubelet's own files, to go back to it",
      .notes =
          R"(Keeps existing folders aside. The kubelet must not be running. A kubelet opens what has
no record, so a list is needed, unless the store is in mode kubelet and not
distrustful: each image that has neither a record nor an entry in the ledger gets a
record without credentials. With --cri such images are judged first, as by `waybill
observe`. A closed image becomes a file that the kubelet can't read. ID mappings go to
pods/<uid>/userns.)",
      .examples = R"(waybill export --kubelet-dir /var/lib/kubelet --cri auto)",
      .call = New<ExportCall>};
}

}  // namespace waybill::cli
