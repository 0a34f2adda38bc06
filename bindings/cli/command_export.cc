// waybill export: writes the kubelet's own files, for a kubelet without waybill.

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class ExportCommand final : public Command {
 public:
  std::string name() const override { return "export"; }
  std::string summary() const override { return "write a kubelet's own files, to go back to it"; }
  std::string notes() const override {
    return R"(Writes image_manager/pulled, pulling and observed-preloaded of the kubelet directory,
and keeps the existing folders aside. The kubelet must not be running. A closed image
becomes a file that the kubelet can't read. ID mappings go to pods/<uid>/userns. A
kubelet opens what has no record. So a list is needed, unless with --rules kubelet
the store is not distrustful: each image that has neither a record nor an entry in the
ledger gets a record without credentials. With --cri such images are judged first, as
by `waybill observe`: one that nobody asked for yet may have come without the kubelet.
An image is written under each of its spellings.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Required("--kubelet-dir", &kubelet_directory_, "DIR",
                   "a kubelet directory, the one with, or for, image_manager/ in it");
    images_.Declare(flags, ": all images");
    flags.TakesSetting("--cri", {.unless = {"--images"}});
    flags.Switch("--allow-empty", &allow_empty_,
                 "accept an empty list of images; otherwise it is refused (2)\n"
                 "where the list is needed");
    flags.Value("--api-version", &api_version_, "V",
                "v1beta1 (default; kubelets since v1.35) or v1alpha1 (to v1.34)");
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    TRY(CheckKubeletDirectory(kubelet_directory_));
    ExportOptions options{.kubelet_directory = kubelet_directory_};
    if (api_version_ == "v1alpha1") {
      options.api_version = KubeletApiVersion::kV1Alpha1;
    } else if (api_version_.value_or("v1beta1") != "v1beta1") {
      return BadFlag("--api-version", fmt::format("there is no '{}'", *api_version_),
                     "use v1alpha1 or v1beta1");
    }
    TRY(images_.Check());
    if (allow_empty_ && !images_.given()) {
      return BadFlag("--allow-empty", "it needs --images or --cri");
    }
    std::optional<ListToken> token;
    if (images_.cri().given() && store_.rules == Rules::kClosed) token = DrawToken();
    auto images = TRY(images_.ReadIfGiven());
    options.images_on_node = std::move(images);
    if (token) Judge(*token, *options.images_on_node);
    options.allow_empty = allow_empty_;
    auto report = WithStore(ObserveStore(store_),
                            [&](const NodeStore& store) { return store.Export(options); });
    if (!report) return images_.cri().About(report.error());
    out.WriteFields({{"records", "records written", report->records},
                     {"withoutCredentials", "of other handlers only", report->without_credentials},
                     {"spellings", "under other spellings", report->spellings},
                     {"made", "made, to close images", report->made},
                     {"intents", "intents written", report->intents},
                     {"preloaded", "preloaded records written", report->preloaded},
                     {"closed", "closed: unreadable", report->closed},
                     {"idMappings", "ID mappings written", report->id_mappings},
                     {"replacedPath", "replaced files", ReplacedText(*report, out.json())},
                     {"removedPaths", "removed earlier ones", RemovedOf(*report, out.json())}});
    return ExitCode::kYes;
  }

 private:
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
  void Judge(const ListToken& token, const std::vector<ImageOnNode>& images) const {
    auto judged = WithWriter(Writer::Open(store_), [&](Writer& writer) {
      return writer.owner().ObserveImages({.images = images, .token = token, .complete = false},
                                          {});
    });
    if (!judged) NotJudged(judged.error());
  }

  static std::string ReplacedText(const ExportReport& report, bool json) {
    return report.replaced_path.empty() && !json ? "none" : report.replaced_path;
  }

  static Json RemovedOf(const ExportReport& report, bool json) {
    if (json) return report.removed_paths;
    if (report.removed_paths.empty()) return "none";
    std::string text;
    for (const std::string& path : report.removed_paths) text += (text.empty() ? "" : ", ") + path;
    return text;
  }

  StoreFlags store_;
  std::string kubelet_directory_;
  ImagesFlags images_;
  bool allow_empty_ = false;
  std::optional<std::string> api_version_;
};

}  // namespace

std::unique_ptr<Command> MakeExportCommand() { return std::make_unique<ExportCommand>(); }

}  // namespace waybill::cli
