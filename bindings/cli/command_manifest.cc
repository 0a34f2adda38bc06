// waybill manifest: which manifest of an image index a runtime handler pulls.

#include <sys/utsname.h>

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/hints.h"
#include "bindings/cli/input.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// Translates the kernel's names of machines that NormalisePlatform does not know.
Platform PlatformOfMachine(std::string_view system, std::string_view machine) {
  Platform platform = {.architecture = std::string(machine), .os = std::string(system)};
  const bool arm = machine.starts_with("armv") && machine.size() > 4;
  if (arm) {
    platform.architecture = "arm";
    platform.variant = machine.substr(3, 2);  // of "armv7l", "armv5tel", "armv8l"
  } else if (machine.size() == 4 && machine[0] == 'i' && machine.ends_with("86")) {
    platform.architecture = "386";
  } else if (machine == "loongarch64") {
    platform.architecture = "loong64";
  }
  return NormalisePlatform(std::move(platform));
}

Platform PlatformOfThisMachine() {
  utsname name = {};
  if (::uname(&name) != 0) return {};
  return PlatformOfMachine(name.sysname, name.machine);
}

class ManifestCommand final : public Command {
 public:
  std::string name() const override { return "manifest"; }
  std::string summary() const override { return "choose the manifest of an image index"; }
  std::string notes() const override {
    return R"(Prints the digest that a runtime pulls, and its platform; 1 if no manifest matches.
The platform is that of this machine, or --platform, or, with --store and --runtime,
the guest platform of that runtime handler if it has one; then --platform is refused.)";
  }

  void Declare(Flags& flags) override {
    flags.Required("--index", &index_, "FILE",
                   "an OCI image index or Docker manifest list; -: stdin");
    flags.Value("--platform", &platform_, "OS/ARCH[/VARIANT]",
                "what the node runs; default: what this machine is");
    flags.Value("--os-version", &os_version_, "V", "the node's OS version, as 10.0.20348.1970");
    flags.Value("--store", &store_, "DIR", "the store that knows the runtime handlers");
    flags.TakesSetting("--store", {.only_with = {"--runtime"}});
    runtime_.Declare(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(runtime_.Parse());
    if (!runtime_.handler.empty() && !store_) {
      return BadFlag("--runtime", "--store is missing, which knows the runtime handlers");
    }
    if (os_version_ && !platform_) {
      return BadFlag("--os-version", "it needs --platform", "write --platform windows/amd64");
    }
    auto host = TRY(Host());
    auto manifests = TRY(ReadDecoded(index_, kMaxImageIndexBytes, DecodeImageIndex));
    auto guest = TRY(Guest());
    if (guest && platform_) {
      return BadFlag(
          "--platform",
          fmt::format("{} runs {}, whatever the node's platform is",
                      runtime_.handler.empty() ? "the default runtime handler"
                                               : "the runtime handler " + runtime_.handler,
                      FormatPlatform(*guest)),
          "leave out --platform, or --store and --runtime");
    }
    auto chosen = ChooseManifest(manifests, host, guest);
    if (chosen) {
      Write(*chosen, out);
      return ExitCode::kYes;
    }
    if (chosen.error().code != ErrorCode::kNotFound) return chosen.error();
    ReportError(chosen.error(), out);
    return ExitCode::kNo;
  }

 private:
  Result<Platform> Host() const {
    Platform host;
    if (platform_) {
      auto parsed = ParsePlatform(*platform_);
      if (!parsed) {
        return BadFlag("--platform", parsed.error().message, HintOf(parsed.error()));
      }
      host = *std::move(parsed);
    } else {
      host = PlatformOfThisMachine();
    }
    if (!os_version_) return host;
    TRY(CheckLength("--os-version", *os_version_, kMaxPlatformFieldBytes));
    host.os_version = *os_version_;
    return host;
  }

  // The handler's guest platform in the store's registry; nullopt: it runs what the host runs.
  Result<std::optional<Platform>> Guest() const {
    if (!store_) return std::nullopt;
    StoreFlags flags;
    flags.store = *store_;
    TRY(flags.Parse());
    auto names = TRY(WithStore(ObserveStore(flags), HandlerNames::Of));
    TRY(names.Check(runtime_.handler));
    for (const RuntimeHandler& handler : names.handlers()) {
      const bool meant =
          runtime_.handler.empty() ? handler.is_default : handler.name == runtime_.handler;
      if (meant) return handler.guest_platform;
    }
    return std::nullopt;
  }

  static void Write(const ManifestDescriptor& chosen, Output& out) {
    if (out.names()) return out.WriteName(chosen.digest);
    if (!out.json()) return out.Line("{}  {}", chosen.digest, FormatPlatform(*chosen.platform));
    out.WriteJson({{"digest", chosen.digest},
                   {"mediaType", chosen.media_type},
                   {"size", chosen.size},
                   {"platform", JsonOf(*chosen.platform)}});
  }

  std::string index_;
  std::optional<std::string> platform_;
  std::optional<std::string> os_version_;
  std::optional<std::string> store_;
  RuntimeFlag runtime_;
};

}  // namespace

std::unique_ptr<Command> MakeManifestCommand() { return std::make_unique<ManifestCommand>(); }

}  // namespace waybill::cli
