#include "bindings/cli/runtime_lists.h"

#include <fmt/core.h>

#include <utility>

#include "bindings/cli/input.h"
#include "store/base/try.h"

namespace waybill::cli {

Flag::Values EndpointChoices() {
  Flag::Values choices = {"auto"};
  for (const char* socket : cri::kUsualSockets) choices.push_back(std::string("unix://") + socket);
  return choices;
}

Flag& CriFlag::Declare(Flags& flags) {
  Flag& flag = flags.Value("--cri", &endpoint_, "ENDPOINT|auto",
                           "ask the container runtime: its socket, or auto, where crictl looks",
                           Length{.hint = "write `--cri auto` for the usual endpoints"});
  flag.choices = EndpointChoices();
  return flag;
}

Result<std::unique_ptr<cri::Client>> CriFlag::Connect() const {
  return cri::Client::Connect({.endpoint = endpoint_ == "auto" ? "" : *endpoint_});
}

Result<std::vector<ListedImage>> CriFlag::ListImages() const {
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

Result<RuntimePulls> CriFlag::Pulls() const {
  const auto client = TRY(Connect());
  const auto answers = TRY(client->Answers());
  return ReadRuntimePulls(answers);
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

Flag& ImagesFlags::Declare(Flags& flags, const std::string& what) {
  flags.Value(std::string(name_), &path_, "FILE|-", "what crictl images -o json prints" + what);
  Flag& cri = cri_.Declare(flags);
  flags.Excludes("--cri", {std::string(name_)});
  return cri;
}

Result<std::optional<std::vector<ListedImage>>> ImagesFlags::ReadIfGiven() const {
  if (!given()) return std::optional<std::vector<ListedImage>>();
  auto images = TRY(Read());
  return std::optional(std::move(images));
}

Result<std::vector<ListedImage>> ImagesFlags::Read() const {
  return cri_.given() ? cri_.ListImages() : ReadImageList(*path_);
}

}  // namespace waybill::cli
