// waybill show: one record, or one intent.

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/platform.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

std::string Coordinates(std::string_view namespace_name, std::string_view name,
                        std::string_view uid) {
  return fmt::format("{}/{}/{}", namespace_name, name, uid);
}

class ShowCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Value("--image-ref", &image_ref_, "REF",
                "what the runtime calls the image, or short for it", Length{kMaxImageRefBytes});
    flags.Positional("REF", &image_, "the same, or an image string, as a pod wrote it",
                     Length{kMaxImageBytes});
    flags.Switch("--intent", &intent_, "REF is an image string; show no record");
    runtime_.Declare(flags);
    flags.OneOf({"--image-ref", "REF"});
    flags.Excludes("--intent", {"--image-ref"});
  }

  Result<ExitCode> Run(Output& out) override {
    const bool found =
        TRY(WithStore(ObserveStore(store_), [&](const NodeStore& store) -> Result<bool> {
          auto names = TRY(HandlerNames::Of(store));
          if (image_ref_) return ShowRecord(store, *image_ref_, names, out);
          return intent_ ? ShowIntent(store, names, out) : ShowEither(store, names, out);
        }));
    return found ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  // nullopt: there is none.
  Result<std::optional<ImagePulledRecord>> Find(std::string_view flag, const NodeStore& store,
                                                const std::string& image_ref) const {
    auto ref = TRY(ResolveRef(flag, image_ref, store));
    auto record = store.GetRecord({.image_ref = ref, .runtime_handler = runtime_.handler()});
    if (record) return std::optional(*std::move(record));
    if (record.error().code != ErrorCode::kNotFound) return record.error();
    return std::optional<ImagePulledRecord>();
  }

  // The record first.
  Result<bool> ShowEither(const NodeStore& store, const HandlerNames& names, Output& out) const {
    auto record = TRY(Find("REF", store, *image_));
    if (!record) return ShowIntent(store, names, out);
    WriteRecord(*record, names, out);
    (void)out.Flush();
    const auto pull = store.HasIntent({.image = *image_, .runtime_handler = runtime_.handler()});
    if (pull && *pull) Note("a pull of that image string is open, too: --intent shows it");
    return true;
  }

  // A handler that vanished still has records to show. Without a record, it must be known.
  Result<bool> ShowRecord(const NodeStore& store, const std::string& image_ref,
                          const HandlerNames& names, Output& out) const {
    const std::string handler = runtime_.handler();
    auto record = TRY(Find("--image-ref", store, image_ref));
    if (!record) {
      TRY(names.Check(handler));
      Json answer = {{"imageRef", image_ref}, {"found", false}};
      if (!handler.empty()) answer["runtimeHandler"] = handler;
      out.WriteJson(answer);
      out.Line("no record of {}{}", image_ref, ForHandler(handler));
      return false;
    }
    WriteRecord(*record, names, out);
    return true;
  }

  static void WriteRecord(const ImagePulledRecord& record, const HandlerNames& names, Output& out) {
    out.WriteJson(JsonOf(record));
    out.Line("image ref  {}", record.image_ref);
    out.Line("runtime    {}", names.TextOf(record.runtime_handler));
    if (!record.manifest_digest.empty()) out.Line("manifest   {}", record.manifest_digest);
    if (record.platform) out.Line("platform   {}", FormatPlatform(*record.platform));
    if (record.guest_platform) {
      out.Line("guest      {}", FormatPlatform(*record.guest_platform));
    }
    out.Line("updated    {}", out.TimeText(record.last_updated));
    out.Line("stamp      {}", record.stamp);
    if (!record.closed_because.empty()) out.Line("closed     {}", record.closed_because);
    if (record.closed_by_operator) out.Line("operator   closed it: no list opens it");
    if (record.absent_since) {
      out.Line("gone       not on the node since {}; remembered",
               FormatTimestamp(*record.absent_since));
    }
    if (record.credential_mapping.empty()) out.Line("open to {}", AccessText({}));
    for (const auto& [image_name, credentials] : record.credential_mapping) {
      out.Line("as {}: open to {}", image_name, AccessText(credentials));
      for (const ImagePullSecret& secret : credentials.kubernetes_secrets) {
        out.Line("  secret {}{}", Coordinates(secret.namespace_name, secret.name, secret.uid),
                 secret.credential_hash.empty() ? " (no hash)" : "");
      }
      for (const ImagePullServiceAccount& account : credentials.kubernetes_service_accounts) {
        out.Line("  service account {}",
                 Coordinates(account.namespace_name, account.name, account.uid));
      }
    }
  }

  Result<bool> ShowIntent(const NodeStore& store, const HandlerNames& names, Output& out) const {
    const std::string handler = runtime_.handler();
    auto there = TRY(store.HasIntent({.image = *image_, .runtime_handler = handler}));
    if (!there) {
      TRY(names.Check(handler));
    }
    Json answer = JsonOf(ImagePullIntent{*image_, handler});
    answer["intent"] = there;
    out.WriteJson(answer);
    out.Line("{}{} of {}{} is open", there || intent_ ? "" : "no record, and ",
             there ? "a pull" : "no pull", *image_, ForHandler(handler));
    return there;
  }

  RuntimeFlag runtime_;
  std::optional<std::string> image_ref_;
  std::optional<std::string> image_;
  bool intent_ = false;
};

}  // namespace

Command ShowCommand() {
  return {
      .name = "show",
      .task = kTaskLook,
      .summary = "show one record, or whether a pull began",
      .notes =
          R"(REF: the record of that image; if there is none, whether a pull of that image string is
open. 1 if there is none. `waybill dump --with-hashes`
shows credential hashes.)",
      .examples = R"(waybill show 2c26b46b68ff)",
      .call = New<ShowCall>};
}

}  // namespace waybill::cli
