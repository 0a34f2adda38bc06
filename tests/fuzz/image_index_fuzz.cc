// Image indexes and runtime statuses of any bytes: no crash, and what is accepted keeps the
// promises of the headers.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "runtime/files/documents.h"
#include "store/base/platform.h"
#include "store/runtimes/runtime_handlers.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace {

void Require(bool holds) {
  if (!holds) std::abort();
}

void Choose(const std::vector<waybill::ManifestDescriptor>& index, const waybill::Platform& host) {
  const auto chosen = waybill::ManifestFor(index, host);
  if (!chosen) {
    Require(chosen.error().message.size() < 65536);
    return;
  }
  Require(chosen->platform && !chosen->is_attestation);
  Require(waybill::NormalisePlatform(*chosen->platform).os == waybill::NormalisePlatform(host).os);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view json(reinterpret_cast<const char*>(data), size);
  if (const auto index = waybill::DecodeImageIndex(json)) {
    Require(!index->empty() && index->size() <= waybill::kMaxManifestsPerIndex);
    Choose(*index, {.architecture = "amd64", .os = "linux"});
    Choose(*index, {.architecture = "arm64", .os = "linux", .variant = "v9.2"});
    Choose(*index, {.architecture = "amd64", .os = "windows", .os_version = "10.0.26100"});
    // Each manifest's platform is a possible host: then the hostile part is the host.
    for (std::size_t i = 0; i < index->size() && i < 16; ++i) {
      const auto& platform = (*index)[i].platform;
      if (!platform) continue;
      Choose(*index, *platform);
      const auto once = waybill::NormalisePlatform(*platform);
      Require(waybill::NormalisePlatform(once) == once);
    }
  }
  if (const auto handlers = waybill::DecodeRuntimeStatus(json)) {
    Require(waybill::internal::CheckRuntimeHandlers(*handlers).has_value());
  }
  if (const auto platform = waybill::ParsePlatform(json)) {
    Require(waybill::ParsePlatform(waybill::FormatPlatform(*platform)) == *platform);
  }
  return 0;
}
