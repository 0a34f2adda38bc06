// waybill pulled: records that a pull succeeded.

#include <algorithm>

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "runtime/files/pull_sources.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/platform.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

class PulledCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags_.Declare(flags);
    flags.Switch("--credentials-unknown", &credentials_unknown_,
                 "the credentials of the pull are unknown");
    flags.Value("--manifest", &manifest_, "DIGEST", "which manifest of an index was pulled",
                ParseDigest);
    flags.Value("--platform", &platform_, "OS/ARCH[/VARIANT]", "the platform of that manifest",
                PlatformOf);
    flags.Value("--os-version", &os_version_, "V", "its OS version, for Windows",
                Length{kMaxPlatformFieldBytes});
    flags
        .Value("--checker", &checker_, "CHECKER",
               "who checked the credentials: registry, mirror, guest or unknown; by\n"
               "default what the runtime of --cri is configured for",
               Word<VerifiedBy>("checker of a proof"))
        .choices = {"registry", "mirror", "guest", "unknown"};
    flags.Value("--good-until", &good_until_, "TIME",
                "when the credentials end by themselves, in RFC 3339", ParseTime);
    flags.Value("--pull", &pull_, "PULL", "which pull: the number of waybill intent", ParsePullId);
    listed_.Declare(flags,
                    " after the pull: the ID and the\n"
                    "digests by which the image will be asked for");
    flags.Excludes("--credentials-unknown", {"--secret", "--secrets", "--service-account"});
    flags.Needs("--os-version", {"--platform"});
    flags.Needs("--manifest", {"--platform"});
    flags.Needs("--platform", {"--manifest"});
  }

  Result<ExitCode> Run(Output& out) override {
    if (!flags_.image_ref || flags_.image_ref->empty()) {
      return BadFlag("--image-ref", "it is empty", "give what the runtime calls the image");
    }
    const bool given = !flags_.secrets.empty() || flags_.service_account.has_value();
    // Without credentials the image would be open to all pods.
    if (flags_.has_secrets_file() && !given) {
      return BadFlag("--secrets", "it holds no Secret",
                     "leave --secrets out if the image was pulled without credentials");
    }
    const std::optional<ImagePullCredentials> credentials = Credentials(given);
    const PullDetails details = TRY(WhatRuntimeSays());
    const std::string handler = flags_.runtime.handler();
    // A digest is kept as it is written: the store knows whose it is.
    const std::string image_ref =
        details.listed && !IsSpelling(*flags_.image_ref) ? details.listed->id : *flags_.image_ref;
    const ImageCopy copy = {
        .image = flags_.image, .image_ref = image_ref, .runtime_handler = handler};
    // The access that this pull gave. Earlier pulls may have given more.
    ImagePullCredentials gave = credentials.value_or(ImagePullCredentials{});
    auto dangling = TRY(WithWriter(Writer::Open(flags_.store), [&](Writer& writer) -> Result<bool> {
      TRY(CheckIsWhole(writer.store()));
      TRY(writer.Ask(EndPull{.image = flags_.image,
                             .image_ref = image_ref,
                             .runtime_handler = handler,
                             .pull = pull_.value,
                             .outcome = PullOutcome::kPulled,
                             .credentials = credentials,
                             .details = details}));
      auto record = TRY(writer.store().GetRecord(copy));
      LeaveWhatIsIn(record, gave);
      return writer.store().HasIntent(copy);
    }));
    const std::string access = AccessText(gave);
    Json answer = JsonOf(ImagePullIntent{flags_.image, handler});
    answer["imageRef"] = image_ref;
    answer["access"] = access;
    answer["nodePodsAccessible"] = credentials && credentials->node_pods_accessible;
    answer["intent"] = dangling;
    out.WriteJson(answer);
    out.Line("pulled: {}{} is {}", flags_.image, ForHandler(handler), image_ref);
    out.Line("this pull opens it to: {}", access);
    if (dangling) out.Line("another pull of this image stays open");
    return ExitCode::kYes;
  }

 private:
  // The store may know another image that begins with the short ref, which would open to this
  // pull's credentials. Only the runtime can say what the ref is short for.
  Result<void> CheckIsWhole(const NodeStore& store) const {
    if (listed_.given() || !IsShortRef(*flags_.image_ref)) return {};
    auto meant = TRY(ResolveRef("--image-ref", *flags_.image_ref, store));
    if (meant == *flags_.image_ref) return {};
    return BadFlag("--image-ref",
                   fmt::format("{} is the beginning of {}, or of the ID of another image that was "
                               "pulled now",
                               *flags_.image_ref, meant),
                   "give the whole ID, or add --listed FILE, with what `crictl images -o json` "
                   "prints, or --cri");
  }

  // Credentials that were forgotten since the pull began are not in the record.
  void LeaveWhatIsIn(const ImagePulledRecord& record, ImagePullCredentials& gave) const {
    const auto name = ImageName(flags_.image);
    const auto entry = record.credential_mapping.find(std::string(name.value_or("")));
    if (entry == record.credential_mapping.end()) {
      gave = {};
      return;
    }
    const ImagePullCredentials& stored = entry->second;
    if (stored.node_pods_accessible) return;
    gave.node_pods_accessible = false;
    const auto is_gone = [](const auto& all, const auto& one) {
      return std::none_of(all.begin(), all.end(), [&](const auto& other) {
        return other.uid == one.uid && other.namespace_name == one.namespace_name &&
               other.name == one.name;
      });
    };
    std::erase_if(gave.kubernetes_secrets, [&](const ImagePullSecret& one) {
      return is_gone(stored.kubernetes_secrets, one);
    });
    std::erase_if(gave.kubernetes_service_accounts, [&](const ImagePullServiceAccount& one) {
      return is_gone(stored.kubernetes_service_accounts, one);
    });
  }

  Result<PullDetails> WhatRuntimeSays() const {
    PullDetails details;
    details.verified_by = Checker();
    details.valid_until = good_until_;
    if (manifest_) details.manifest_digest = *manifest_;
    details.platform = platform_;
    if (os_version_) details.platform->os_version = *os_version_;
    if (listed_.given()) {
      auto list = TRY(listed_.Read());
      auto entries = TRY(FindListed(*flags_.image_ref, list, listed_.name()));
      const auto same_handler =
          std::find_if(entries.begin(), entries.end(), [&](const ListedImage& image) {
            return image.runtime_handler == flags_.runtime.handler();
          });
      details.listed = same_handler == entries.end() ? entries.front() : *same_handler;
    }
    return details;
  }

  // A runtime that can't say how it pulls must not keep a pull from being recorded.
  VerifiedBy Checker() const {
    if (checker_ || !listed_.cri().given()) return checker_.value_or(VerifiedBy::kUnknown);
    const auto pulls = listed_.cri().Pulls();
    if (!pulls) return VerifiedBy::kUnknown;
    const auto sources = PullSourcesOf(*pulls, flags_.image, flags_.runtime.handler());
    return sources ? sources->sources.checker : VerifiedBy::kUnknown;
  }

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
  std::optional<std::string> manifest_;
  std::optional<Platform> platform_;
  std::optional<std::string> os_version_;
  PullId pull_;
  std::optional<VerifiedBy> checker_;
  std::optional<Timestamp> good_until_;
  ImagesFlags listed_ = ImagesFlags("--listed");
};

}  // namespace

Command PulledCommand() {
  return {
      .name = "pulled",
      .task = kTaskRecord,
      .summary = "record that a pull succeeded, and with what",
      .notes =
          R"(Give the Secrets or the service account that the pull used. With neither, the image is
open to all pods of the node, as in the kubelet; with --credentials-unknown to no pod
until it is pulled again. Another --manifest of the same ref is another image. Without
--pull it is the newest pull of the image that runs. Only that one ends.)",
      .examples =
          R"(waybill pulled --image registry.example/app:v1 --image-ref sha256:2c26b46b68ff --secrets secrets.jsonl --pull 7)",
      .call = New<PulledCall>};
}

}  // namespace waybill::cli
