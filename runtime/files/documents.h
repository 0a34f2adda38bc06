// What a runtime, kubectl and registries print: lists of images and pods, runtime handlers, image
// indexes, docker logins. Fields that are not asked for are ignored. Pure, thread-safe.

#ifndef WAYBILL_RUNTIME_FILES_DOCUMENTS_H_
#define WAYBILL_RUNTIME_FILES_DOCUMENTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill {

// Reads `crictl images -o json`: {"images":[{"id":…,"repoTags":[…],"repoDigests":[…],
// "pinned":…,"spec":{"runtimeHandler":…},…}]}. Other fields are ignored. kInvalidArgument: "images"
// or the id of an image is missing. kLimitExceeded: more than kMaxListedImages.
Result<std::vector<ListedImage>> DecodeImageList(std::string_view json);

// The same, but an image with a name may lack its id (NodeStoreOptions::preloaded).
Result<std::vector<ListedImage>> DecodePreloadedList(std::string_view json);

// The UIDs of the pods in a list that `kubectl get pods -o json`, the kubelet's /pods or `crictl
// pods -o json` prints: {"items":[{"metadata":{"uid":…},…},…]}. For a static pod, the UID under
// which its node knows it is included (annotations kubernetes.io/config.hash and .mirror). A UID
// may occur more than once. kInvalidArgument: "items" or the UID of a pod is missing, or the list
// is only one page of several.
Result<std::vector<std::string>> DecodePodList(std::string_view json);

// Reads `crictl info` (CRI's StatusResponse). The handlers and their features (in either spelling)
// come from "runtimeHandlers"; the default's name and the guest platforms from containerd's
// configuration under "config", if present. CRI's nameless handler is merged with the named
// default. kInvalidArgument: not JSON, no "runtimeHandlers", a field of the wrong type, or a name
// that is malformed or occurs twice. kLimitExceeded: above kMaxDocumentBytes, kMaxJsonDepth or
// kMaxRuntimeHandlers.
Result<std::vector<RuntimeHandler>> DecodeRuntimeStatus(std::string_view json);

// Adds to `handlers`, which are sorted by name and stay so, what containerd's configuration file
// says of them: the name of the default one, and guest platforms (KEP-4216). Other handlers in it
// are ignored: the runtime knows what it serves. So are files that it imports. kInvalidArgument:
// not TOML (with the line), a value of the wrong type, an invalid platform, or a default handler or
// guest platform that contradicts `handlers`. kLimitExceeded: above kMaxPullConfigBytes or a bound
// of limits.h. After an error `handlers` are as before.
Result<void> MergeRuntimeConfig(std::string_view toml, std::vector<RuntimeHandler>& handlers);

// Reads an OCI image index or a Docker manifest list. Other fields are ignored. kInvalidArgument:
// not JSON, neither of the two formats, no manifests, or a manifest with a malformed digest. An
// entry of another media type is kept, and never chosen. kLimitExceeded: above kMaxImageIndexBytes,
// kMaxJsonDepth or kMaxManifestsPerIndex.
Result<std::vector<ManifestDescriptor>> DecodeImageIndex(std::string_view json);

// The manifest of `index` that a runtime on `host` pulls. If the handler has a guest platform,
// `guest` alone is matched, not `host`.
//
//   Linux and others   The OS, architecture and variant of the platform come first, then, in this
//                      order, what it can also run: arm/v7 runs v6 and v5, arm64 runs arm, amd64
//                      runs 386 and its own lower levels (containerd, platforms.Only).
//   Windows            OS, architecture and OS version must match. A platform below build 20348
//                      takes its own build; a later one takes 20348 up to its own build, the newest
//                      first (Microsoft, "Windows container version compatibility").
//
// A platform without an OS version can't choose among Windows manifests that have one. A Windows
// manifest without one fits any host (host-process images are built so) and is chosen last.
// One that says no platform is chosen last, and one that demands features of a Linux that names
// none after those that do not (nydus). Unknown platforms, attestations, nested indexes and other
// media types are never chosen. kNotFound: none matches; the error lists what the index offers.
// kInvalidArgument: the platform lacks OS or architecture, or its Windows version is malformed.
Result<ManifestDescriptor> ManifestFor(const std::vector<ManifestDescriptor>& index,
                                       const Platform& host,
                                       const std::optional<Platform>& guest = std::nullopt);

// One registry's credentials out of a docker config (config.json or .dockercfg form) or of a Secret
// of type kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg.
struct RegistryAuth {
  std::string registry = {};
  AuthConfig auth = {};
};

// Reads a docker config, or a Secret that holds one, sorted by registry. Other fields are ignored,
// as by the kubelet, and so is an entry with neither user nor password, which docker leaves beside
// a credsStore. kInvalidArgument: an `auth` is not base64 of "user:password"; the error says which.
Result<std::vector<RegistryAuth>> DecodeAuthDocument(std::string_view json);

}  // namespace waybill

#endif  // WAYBILL_RUNTIME_FILES_DOCUMENTS_H_
