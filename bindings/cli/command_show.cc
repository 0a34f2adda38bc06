// waybill show: one record, or one intent.

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

std::string Coordinates(std::string_view namespace_name, std::string_view name,
                        std::string_view uid) {
  return fmt::format("{}/{}/{}", namespace_name, name, uid);
}

class ShowCommand final : public Command {
 public:
  std::string name() const override { return "show"; }
  std::string summary() const override { return "show one record, or whether a pull began"; }
  std::string notes() const override {
    return R"(With --image-ref: the record of that image; six digits of its ID are enough. With IMAGE: whether a pull of that image
string is open. --runtime says for which runtime handler. 1 if there is none.
`waybill preload` shows which images are preloaded, `waybill pulls` all open pulls.
Credential hashes are not shown; `waybill dump --with-hashes` shows them.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Value("--image-ref", &image_ref_, "REF",
                "what the runtime calls the image, or the first digits of its ID");
    flags.Positional("IMAGE", &image_, "an image string, as a pod wrote it");
    runtime_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    if (image_ref_.has_value() == image_.has_value()) {
      return BadFlag("show", "exactly one of --image-ref and IMAGE is needed");
    }
    auto checked = image_ref_ ? CheckLength("--image-ref", *image_ref_, kMaxImageRefBytes)
                              : CheckLength("IMAGE", *image_, kMaxImageBytes);
    if (!checked) return checked.error();
    if (auto parsed = runtime_.Parse(); !parsed) return parsed.error();
    auto found = WithStore(ObserveStore(store_), [&](const NodeStore& store) -> Result<bool> {
      auto names = HandlerNames::Of(store);
      if (!names) return names.error();
      return image_ref_ ? ShowRecord(store, *names, out) : ShowIntent(store, *names, out);
    });
    if (!found) return found.error();
    return *found ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  // A handler that vanished still has records to show. Without a record, it must be known.
  Result<bool> ShowRecord(const NodeStore& store, const HandlerNames& names, Output& out) const {
    const std::string& handler = runtime_.handler;
    auto record = store.GetRecord({.image_ref = *image_ref_, .runtime_handler = handler});
    if (!record && record.error().code == ErrorCode::kNotFound && IsShortId(*image_ref_)) {
      auto refs = StoredRefs(store, false);
      if (!refs) return refs.error();
      auto ref = FindRef("--image-ref", *image_ref_, *refs);
      if (!ref) return ref.error();
      if (*ref) record = store.GetRecord({.image_ref = **ref, .runtime_handler = handler});
    }
    if (!record) {
      if (record.error().code != ErrorCode::kNotFound) return record.error();
      if (auto known = names.Check(handler); !known) return known.error();
      if (out.json()) {
        Json answer = {{"imageRef", *image_ref_}, {"found", false}};
        if (!handler.empty()) answer["runtimeHandler"] = handler;
        out.WriteJson(answer);
      } else {
        out.Line("no record of {}{}", *image_ref_, ForHandler(handler));
      }
      return false;
    }
    if (out.json()) {
      out.WriteJson(JsonOf(*record, Hashes::kRedacted));
    } else {
      WriteRecord(*record, names, out);
    }
    return true;
  }

  static void WriteRecord(const ImagePulledRecord& record, const HandlerNames& names, Output& out) {
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
    const std::string& handler = runtime_.handler;
    auto there = store.HasIntent({.image = *image_, .runtime_handler = handler});
    if (!there) return there.error();
    if (!*there) {
      if (auto known = names.Check(handler); !known) return known.error();
    }
    if (out.json()) {
      Json answer = JsonOf(ImagePullIntent{*image_, handler});
      answer["intent"] = *there;
      out.WriteJson(answer);
    } else {
      out.Line("{} of {}{} is open", *there ? "a pull" : "no pull", *image_, ForHandler(handler));
    }
    return *there;
  }

  StoreFlags store_;
  RuntimeFlag runtime_;
  std::optional<std::string> image_ref_;
  std::optional<std::string> image_;
};

}  // namespace

std::unique_ptr<Command> MakeShowCommand() { return std::make_unique<ShowCommand>(); }

}  // namespace waybill::cli
