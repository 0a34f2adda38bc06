// waybill pulled: a pull succeeded.

#include "bindings/cli/command.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

class PulledCommand final : public Command {
 public:
  std::string name() const override { return "pulled"; }
  std::string summary() const override { return "record that a pull succeeded, and with what"; }
  std::string notes() const override {
    return "Give what opened the registry: the Secrets or the service account. With neither the "
           "image\n"
           "was pulled without credentials or with the node's own, and is open to all pods of the\n"
           "node, as it is for the kubelet. With --credentials-unknown it is open to nobody until "
           "it\n"
           "is pulled again.";
  }

  void Declare(Flags& flags) override {
    flags_.Declare(flags);
    flags.Switch("--credentials-unknown", &credentials_unknown_,
                 "it is not known what the image was pulled with");
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = flags_.Parse(); !parsed) return parsed.error();
    if (!flags_.image_ref || flags_.image_ref->empty()) {
      return BadFlag("--image-ref", "an image that was pulled has one",
                     "give what the runtime calls the image");
    }
    const bool given = !flags_.secrets.empty() || flags_.service_account.has_value();
    if (credentials_unknown_ && given) {
      return BadFlag("--credentials-unknown", "it excludes --secret and --service-account");
    }
    const std::optional<ImagePullCredentials> credentials = Credentials(given);
    auto store = OwnStore(flags_.store, flags_.policy.policy);
    if (!store) return store.error();
    auto done = (*store)->RecordImagePulled(flags_.image, *flags_.image_ref, credentials);
    if (!done) return done.error();
    auto dangling = (*store)->HasIntent(flags_.image);
    if (!dangling) return dangling.error();
    if (auto closed = (*store)->Close(); !closed) return closed.error();
    // What was given, not what the record says now: that may be open to more by earlier pulls.
    const std::string access = AccessText(credentials ? *credentials : ImagePullCredentials{});
    if (out.json()) {
      out.WriteJson({{"image", flags_.image},
                     {"imageRef", *flags_.image_ref},
                     {"access", access},
                     {"nodePodsAccessible", credentials && credentials->node_pods_accessible},
                     {"intent", *dangling}});
    } else {
      out.Line("pulled: {} is {}", flags_.image, *flags_.image_ref);
      out.Line("this pull opens it to: {}", access);
      if (*dangling) out.Line("its intent stays: another pull of it is in flight");
    }
    return ExitCode::kYes;
  }

 private:
  std::optional<ImagePullCredentials> Credentials(bool given) const {
    if (credentials_unknown_) return std::nullopt;
    ImagePullCredentials credentials;
    credentials.node_pods_accessible = !given;
    credentials.kubernetes_secrets = flags_.secrets;
    if (flags_.service_account) {
      credentials.kubernetes_service_accounts.push_back(*flags_.service_account);
    }
    return credentials;
  }

  PullFlags flags_;
  bool credentials_unknown_ = false;
};

}  // namespace

std::unique_ptr<Command> MakePulledCommand() { return std::make_unique<PulledCommand>(); }

}  // namespace waybill::cli
