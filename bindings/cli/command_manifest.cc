// waybill manifest: which manifest of an image index a runtime handler pulls.

#include <sys/utsname.h>

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/input.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "runtime/files/documents.h"
#include "store/base/platform.h"
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

class ManifestCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    flags.Value("--index", &index_, "FILE|-", "an OCI image index or Docker manifest list",
                kRequired);
    flags.Value("--platform", &platform_, "OS/ARCH[/VARIANT]",
                "what the node runs; default: what this machine is", PlatformOf);
    flags.Value("--os-version", &os_version_, "V", "the node's OS version, as 10.0.20348.1970",
                Length{kMaxPlatformFieldBytes});
    store_.DeclareOptional(flags).TakesSetting({.only_with = {"--runtime"}});
    runtime_.Declare(flags);
    flags.Needs("--os-version", {"--platform"}, "write --platform windows/amd64");
  }

  Result<ExitCode> Run(Output& out) override {
    if (!runtime_.handler().empty() && store_.store.empty()) {
      return BadFlag("--runtime", "--store is missing, which knows the runtime handlers");
    }
    Platform host = platform_ ? *platform_ : PlatformOfThisMachine();
    if (os_version_) host.os_version = *os_version_;
    auto manifests = TRY(ReadDecoded(index_, kMaxImageIndexBytes, DecodeImageIndex));
    auto guest = TRY(Guest());
    if (guest && platform_) {
      return BadFlag(
          "--platform",
          fmt::format("{} runs {}, whatever the node's platform is",
                      runtime_.handler().empty() ? "the default runtime handler"
                                                 : "the runtime handler " + runtime_.handler(),
                      FormatPlatform(*guest)),
          "leave out --platform, or --store and --runtime");
    }
    auto chosen = ManifestFor(manifests, host, guest);
    if (chosen) {
      Write(*chosen, out);
      return ExitCode::kYes;
    }
    if (chosen.error().code != ErrorCode::kNotFound) return chosen.error();
    ReportError(chosen.error(), out);
    return ExitCode::kNo;
  }

 private:
  // The handler's guest platform in the store's registry; nullopt: it runs what the host runs.
  Result<std::optional<Platform>> Guest() const {
    if (store_.store.empty()) return std::nullopt;
    auto names = TRY(WithStore(ObserveStore(store_), HandlerNames::Of));
    TRY(names.Check(runtime_.handler()));
    for (const RuntimeHandler& handler : names.handlers()) {
      const bool meant =
          runtime_.handler().empty() ? handler.is_default : handler.name == runtime_.handler();
      if (meant) return handler.guest_platform;
    }
    return std::nullopt;
  }

  static void Write(const ManifestDescriptor& chosen, Output& out) {
    out.WriteName(chosen.digest);
    out.Line(
        "{}  {}", chosen.digest,
        chosen.platform ? FormatPlatform(*chosen.platform) : "its configuration says for what");
    out.WriteJson(JsonOf(chosen));
  }

  std::string index_;
  std::optional<Platform> platform_;
  std::optional<std::string> os_version_;
  RuntimeFlag runtime_;
};

}  // namespace

Command ManifestCommand() {
  return {
      .name = "manifest",
      .task = kTaskPlan,
      .summary = "choose the manifest of an image index",
      .notes =
          R"(Prints the digest that a runtime pulls, and its platform; 1 if no manifest matches. With
--store and --runtime the platform is that handler's guest platform, if it has one.)",
      .examples = R"(waybill manifest --index index.json --platform linux/amd64)",
      .call = New<ManifestCall>};
}

}  // namespace waybill::cli
