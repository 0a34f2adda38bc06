// Functions without a store, beside a bare lookup to give a measure.

#include <fmt/format.h>

#include "bench/micro/rows.h"
#include "migrations/kubelet/kubelet_records.h"
#include "migrations/runtime/documents.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/platform.h"
#include "store/base/policy.h"
#include "store/base/timestamp.h"
#include "store/node/userns/pool.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

constexpr const char* kIndex = R"({"schemaVersion":2,
"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[
{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,
 "digest":"sha256:0000000000000000000000000000000000000000000000000000000000000001",
 "platform":{"architecture":"amd64","os":"linux"}},
{"mediaType":"application/vnd.oci.image.manifest.v1+json","size":1,
 "digest":"sha256:0000000000000000000000000000000000000000000000000000000000000002",
 "platform":{"architecture":"arm64","os":"linux","variant":"v8"}}]})";

}  // namespace

void MeasurePureFunctions(const Micro& micro, Bare& bare) {
  const auto row = [&](const std::string& what, const auto& ours) {
    BesideLookup(micro, bare, what, [&](std::size_t) { benchmark::DoNotOptimize(ours()); });
  };
  const std::string image = ImageOf(1);
  row("ParseImage", [&] { return PartsOfImage(image).value(); });
  row("ImageName", [&] { return ImageName(image).value(); });
  row("NormaliseImage", [&] { return NormaliseImage(image).value(); });
  row("RepositoryOf", [&] { return RepositoryOf(image); });
  const AuthConfig auth{.username = "user", .password = "password", .email = "u@example.com"};
  row("HashCredentials", [&] { return Must(HashCredentials(auth)); });

  const ImagePulledRecord record = RecordOf(1);
  const std::string record_json = EncodePulledRecord(record);
  row("EncodePulledRecord", [&] { return EncodePulledRecord(record); });
  row("DecodePulledRecord", [&] { return Must(DecodePulledRecord(record_json)); });
  const ImagePullIntent intent{.image = image};
  const std::string intent_json = EncodePullIntent(intent);
  row("EncodePullIntent", [&] { return EncodePullIntent(intent); });
  row("DecodePullIntent", [&] { return Must(DecodePullIntent(intent_json)); });
  const ImagePreloadedRecord preloaded{.image_ref = record.image_ref,
                                       .last_updated = record.last_updated,
                                       .observed_images = {std::string(*ImageName(image))}};
  const std::string preloaded_json = EncodePreloadedRecord(preloaded);
  row("EncodePreloadedRecord", [&] { return EncodePreloadedRecord(preloaded); });
  row("DecodePreloadedRecord", [&] { return Must(DecodePreloadedRecord(preloaded_json)); });
  const std::string images_json =
      fmt::format(R"({{"images":[{{"id":"{}","repoTags":["{}"],"repoDigests":["{}"]}}]}})",
                  ImageRefOf(1), image, RepoDigestOf(1));
  row("DecodeImageList", [&] { return Must(DecodeImageList(images_json)); });
  row("DecodePreloadedList", [&] { return Must(DecodePreloadedList(images_json)); });
  row("DecodePodList", [&] {
    return Must(DecodePodList(
        R"({"items":[{"metadata":{"uid":"00000001-2222-4222-8333-444444444444"}}]})"));
  });
  row("DecodeAuthDocument", [&] {
    return Must(
        DecodeAuthDocument(R"({"auths":{"registry.example.com":{"auth":"dXNlcjpwYXNz"}}})"));
  });
  const Timestamp time{1'770'000'000, 0};
  const std::string time_text = FormatTimestamp(time);
  row("FormatTimestamp", [&] { return FormatTimestamp(time); });
  row("ParseTimestamp", [&] { return Must(ParseTimestamp(time_text)); });

  row("DecodeImageIndex", [&] { return Must(DecodeImageIndex(kIndex)); });
  const auto index = Must(DecodeImageIndex(kIndex));
  const Platform platform{.architecture = "arm64", .os = "linux", .variant = "v8"};
  row("ChooseManifest", [&] { return Must(ManifestFor(index, platform)); });
  row("NormalisePlatform", [&] { return NormalisePlatform(platform); });
  row("FormatPlatform", [&] { return FormatPlatform(platform); });
  row("ParsePlatform", [&] { return Must(ParsePlatform("linux/arm64/v8")); });
  row("DecodeRuntimeStatus", [&] {
    return Must(DecodeRuntimeStatus(
        R"({"runtimeHandlers":[{"name":""},{"name":"kata","features":{"user_namespaces":true}}]})"));
  });
  row("CheckIdPool", [&] { return CheckIdPool({}).has_value(); });
  const SubordinateIds ids{.user_exists = true,
                           .tool_exists = true,
                           .uids = "0: kubelet 65536 7208960\n",
                           .gids = "0: kubelet 65536 7208960\n"};
  row("PoolOfSubordinateIds", [&] { return Must(PoolOfSubordinateIds(ids)); });

  for (const std::size_t patterns : {1, 10, 100, 1000}) {
    std::vector<std::string> list;
    for (std::size_t i = 0; i < patterns; ++i) {
      list.push_back(fmt::format("registry.example.com/team-{:04}/*", i));
    }
    constexpr auto kMode = Verification::kNeverVerifyAllowlistedImages;
    row(fmt::format("VerificationPolicy::Make: allowlist of {}", patterns),
        [&] { return Must(VerificationPolicy::Make(kMode, list)); });
    const VerificationPolicy policy = Must(VerificationPolicy::Make(kMode, list));
    row(fmt::format("RequiresVerification: allowlist of {}", patterns), [&] {
      return policy.RequiresVerification("registry.example.com/team-0000/service",
                                         ImageOrigin::kKubeletPulled);
    });
  }
}

}  // namespace waybill::bench
