#include "bindings/cli/runtime_lists.h"

#include <utility>

#include "bindings/cli/input.h"
#include "store/base/try.h"

namespace waybill::cli {

void CriFlag::Declare(Flags& flags) {
  flags.Value("--cri", &endpoint_, "ENDPOINT|auto",
              "ask the container runtime: unix:///PATH of its socket; auto: the\n"
              "one that crictl finds by itself");
}

Result<void> CriFlag::Check(std::string_view other, bool other_given) const {
  if (!given()) return {};
  if (other_given) return BadFlag("--cri", fmt::format("it excludes {}", other));
  if (endpoint_->empty()) {
    return BadFlag("--cri", "the value is empty", "write `--cri auto` for the usual endpoints");
  }
  return {};
}

Result<std::unique_ptr<cri::Client>> CriFlag::Connect() const {
  return cri::Client::Connect({.endpoint = endpoint_ == "auto" ? "" : *endpoint_});
}

Result<std::vector<ImageOnNode>> CriFlag::ListImages() const {
  auto client = TRY(Connect());
  return client->ListImages();
}

Result<std::vector<RuntimeHandler>> CriFlag::ListHandlers(const std::optional<std::string>& config,
                                                          bool needed) const {
  auto client = TRY(Connect());
  auto handlers = client->RuntimeHandlers();
  if (!handlers) return handlers;
  if (needed && handlers->empty()) {
    return Error{
        ErrorCode::kInvalidArgument,
        fmt::format("{} at {} names no runtime handlers", client->runtime(), client->endpoint()),
        "containerd names them from version 2.0 on"};
  }
  if (!config) return handlers;
  TRY(MergeConfigFile(*config, *handlers));
  return handlers;
}

Error CriFlag::About(Error error) const {
  if (!given() || error.hint_code != Hint::kAllowEmpty) return error;
  error.message = fmt::format("the container runtime of --cri {} answered with none: {}",
                              *endpoint_, error.message);
  error.hint_code = Hint::kNone;
  error.hint =
      "a runtime that starts up, or another one than the kubelet's, has none: see what `crictl "
      "images` and `crictl info` say; if it truly has none, add `--allow-empty`";
  return error;
}

void ImagesFlags::Declare(Flags& flags, const std::string& what) {
  flags.Value(std::string(name_), &path_, "FILE|-", "what crictl images -o json prints" + what);
  cri_.Declare(flags);
}

Result<std::optional<std::vector<ImageOnNode>>> ImagesFlags::ReadIfGiven() const {
  if (!given()) return std::optional<std::vector<ImageOnNode>>();
  auto images = TRY(Read());
  return std::optional(std::move(images));
}

Result<std::vector<ImageOnNode>> ImagesFlags::Read() const {
  return cri_.given() ? cri_.ListImages() : ReadImageList(*path_);
}

}  // namespace waybill::cli
