// In place of the client, in a build that asks none.

#include "runtime/cri/containerd.h"
#include "runtime/cri/runtime_client.h"

namespace waybill::cri {
namespace {

Error Without() {
  return {ErrorCode::kInvalidArgument, "this build of waybill can't ask a container runtime",
          "build it with WAYBILL_BUILD_CRI, or give what crictl prints"};
}

}  // namespace

Result<std::unique_ptr<Client>> Client::Connect(const ClientOptions&) { return Without(); }
Result<std::vector<ListedImage>> Client::ListImages() { return Without(); }
Result<std::vector<RuntimeHandler>> Client::RuntimeHandlers() { return Without(); }
Result<std::string> Client::Status() { return Without(); }
Result<std::optional<ListedImage>> Client::ImageStatus(const std::string&) { return Without(); }

class ImageEvents::Stream {};

ImageEvents::ImageEvents(std::unique_ptr<Stream> stream) : stream_(std::move(stream)) {}
ImageEvents::~ImageEvents() = default;
std::unique_ptr<ImageEvents> ImageEvents::Watch(const ClientOptions&) {
  return std::unique_ptr<ImageEvents>(new ImageEvents(nullptr));
}
int ImageEvents::fd() const { return -1; }
void ImageEvents::Drain() {}
bool ImageEvents::available() const { return false; }

Result<Containerd> Containerd::At(const ClientOptions&) { return Without(); }
Result<ServerProcess> Containerd::Process() const { return Without(); }
Result<std::vector<Lease>> Containerd::Leases() const { return Without(); }
Result<PullLook> Containerd::LookAtPulls() const { return Without(); }
Result<std::vector<ContainerdImage>> Containerd::Images() const { return Without(); }
Result<std::vector<ImportedImage>> Containerd::Imported() const { return Without(); }

}  // namespace waybill::cri
