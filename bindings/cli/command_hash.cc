// waybill hash: hashes the credentials of a docker config or a Secret as a store remembers them.

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "runtime/files/documents.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

struct Hashed {
  std::string registry;
  std::string hash;
};

class HashCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Value("--registry", &registry_, "R", "this registry only, as the document spells it");
  }

  Result<ExitCode> Run(Output& out) override {
    // A Secret holds at most 1 MiB, in base64.
    auto auths = TRY(ReadDecoded("-", kMaxRecordFileBytes, DecodeAuthDocument));
    std::vector<Hashed> hashed;
    for (const RegistryAuth& entry : auths) {
      if (registry_ && entry.registry != *registry_) continue;
      auto hash = TRY(HashCredentials(entry.auth));
      hashed.push_back({entry.registry, std::move(hash)});
    }
    Write(hashed, out);
    if (!hashed.empty()) return ExitCode::kYes;
    Warn(registry_ ? "the document has no credentials for " + *registry_
                   : "the document has no credentials",
         "what docker leaves beside a credsStore is none: log in without it");
    return ExitCode::kNo;
  }

 private:
  static void Write(const std::vector<Hashed>& hashed, Output& out) {
    Json list = Json::array();
    for (const Hashed& entry : hashed) {
      out.WriteName(entry.hash);
      out.Line("{}  {}", entry.registry, entry.hash);
      list.push_back({{"registry", entry.registry}, {"hash", entry.hash}});
    }
    out.WriteJson({{"credentials", list}});
  }

  std::optional<std::string> registry_;
};

}  // namespace

Command HashCommand() {
  return {
      .name = "hash",
      .task = kTaskPlan,
      .summary = "hash pull credentials as the kubelet does",
      .notes =
          R"(Reads a docker config (config.json or .dockercfg) or the JSON of a pull Secret. Prints
registries and hashes, never what was hashed.)",
      .examples = R"(kubectl get secret NAME -o json | waybill hash --registry registry.example)",
      .call = New<HashCall>};
}

}  // namespace waybill::cli
