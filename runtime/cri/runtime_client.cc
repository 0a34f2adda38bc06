#include "runtime/cri/runtime_client.h"

#include <charconv>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "runtime/cri/answers.h"
#include "runtime/cri/call.h"
#include "runtime/cri/containerd.h"
#include "runtime/cri/endpoint.h"
#include "runtime/cri/message.h"
#include "store/base/caught.h"
#include "store/base/try.h"

namespace waybill::cri {
namespace {

constexpr const char* kRuntimeService = "runtime.v1.RuntimeService";
constexpr const char* kImageService = "runtime.v1.ImageService";

// The runtime has to keep to CRI and to the bounds of limits.h.
template <typename T>
Result<T> FromRuntime(const std::string& path, const char* method, Result<T> decoded) {
  if (decoded || decoded.error().code == ErrorCode::kOutOfMemory) return decoded;
  Error error = decoded.error();
  error.message = "the container runtime at " + path + ", " + method + ": " + error.message;
  if (!error.has_hint())
    error.hint = "compare with what crictl prints, and look at the runtime's log";
  return error;
}

Result<std::string> AskVersion(const std::string& path, const ClientOptions& options) {
  auto answer = TRY(Call(path, kRuntimeService, "Version", std::string(), kMaxAnswerBytes,
                         options.timeout, options.cancelled));
  return FromRuntime(path, "Version", DecodeVersion(answer));
}

// "containerd v2.4.2", "containerd 1.6.20~ds1": what Containerd::Imported was tried with, or newer.
bool TellsOrigins(const std::string& runtime) {
  constexpr std::string_view kName = "containerd ";
  if (!runtime.starts_with(kName)) return false;
  std::string_view version = std::string_view(runtime).substr(kName.size());
  if (version.starts_with('v')) version.remove_prefix(1);
  int major = 0;
  int minor = 0;
  const char* const end = version.data() + version.size();
  const auto dot = std::from_chars(version.data(), end, major);
  if (dot.ec != std::errc() || dot.ptr == end || *dot.ptr != '.') return false;
  if (std::from_chars(dot.ptr + 1, end, minor).ec != std::errc()) return false;
  return major > 1 || (major == 1 && minor >= 6);
}

}  // namespace

Client::Client(std::string path, const ClientOptions& options, std::string runtime)
    : path_(std::move(path)),
      timeout_(options.timeout),
      cancelled_(options.cancelled),
      endpoint_("unix://" + path_),
      runtime_(std::move(runtime)) {}

Result<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<Client>> {
    const auto client = [&](std::string path, std::string version) {
      return std::unique_ptr<Client>(new Client(std::move(path), options, std::move(version)));
    };
    if (!options.endpoint.empty()) {
      auto path = TRY(SocketPath(options.endpoint));
      auto version = TRY(AskVersion(path, options));
      return client(std::move(path), std::move(version));
    }
    std::unique_ptr<Client> found;
    std::string tried;
    for (const char* path : kUsualSockets) {
      auto version = AskVersion(path, options);
      if (!version) {
        if (version.error().code == ErrorCode::kInterrupted) return version.error();
        tried += (tried.empty() ? "" : "; ") + version.error().message;
        continue;
      }
      // Another runtime's list would delete this runtime's records.
      if (found) {
        return Error{ErrorCode::kInvalidArgument,
                     "several container runtimes answer, at " + found->path_ + " and at " + path,
                     "name the one that the kubelet uses (containerRuntimeEndpoint of its "
                     "configuration)"};
      }
      found = client(path, *std::move(version));
    }
    if (found) return found;
    return Error{ErrorCode::kUnavailable, "no container runtime answers: " + tried,
                 "check that the runtime runs; if it listens elsewhere, name its endpoint"};
  });
}

Result<std::vector<ListedImage>> Client::ListImages() {
  auto answer = TRY(
      Call(path_, kImageService, "ListImages", std::string(), kMaxListBytes, timeout_, cancelled_));
  auto images = FromRuntime(path_, "ListImages", DecodeImages(answer));
  if (!images || images->empty() || !TellsOrigins(runtime_)) return images;
  // Asked after the list: an image that was imported since may be open as well.
  auto containerd = Containerd::At({endpoint_, timeout_, cancelled_});
  if (!containerd) return images;
  const auto imported = containerd->Imported();
  if (!imported) return images;
  std::unordered_set<std::string> ids;
  for (const ImportedImage& image : *imported) ids.insert(image.ids.begin(), image.ids.end());
  for (ListedImage& image : *images) image.imported = ids.contains(image.id);
  return images;
}

Result<std::string> Client::AskStatus() const {
  // StatusRequest: verbose, for its configuration.
  const std::string request("\x08\x01", 2);
  return Call(path_, kRuntimeService, "Status", request, kMaxAnswerBytes, timeout_, cancelled_);
}

Result<std::vector<RuntimeHandler>> Client::RuntimeHandlers() {
  const auto answer = TRY(AskStatus());
  return FromRuntime(path_, "Status", DecodeHandlers(answer));
}

Result<std::string> Client::Status() {
  const auto answer = TRY(AskStatus());
  return FromRuntime(path_, "Status", DecodeStatus(answer));
}

Result<std::optional<ListedImage>> Client::ImageStatus(const std::string& image) {
  return internal::Guarded([&]() -> Result<std::optional<ListedImage>> {
    // ImageStatusRequest: an ImageSpec with the image.
    const std::string request = Field(1, Field(1, image));
    auto answer = TRY(
        Call(path_, kImageService, "ImageStatus", request, kMaxAnswerBytes, timeout_, cancelled_));
    return FromRuntime(path_, "ImageStatus", DecodeImageStatus(answer));
  });
}

}  // namespace waybill::cri
