#include "runtime/cri/runtime_client.h"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "runtime/cri/answers.h"
#include "runtime/cri/call.h"
#include "runtime/cri/containerd.h"
#include "runtime/cri/endpoint.h"
#include "runtime/files/pull_sources.h"
#include "store/base/caught.h"
#include "store/base/command_line.h"
#include "store/base/files.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::cri {
namespace {

const std::string kRuntimeService = "runtime.v1.RuntimeService/";
// StatusRequest: verbose, for its configuration.
const std::string kVerbose("\x08\x01", 2);

// "containerd v2.4.2", "containerd 1.6.20~ds1": what Containerd::Imported was tried with, or newer.
bool TellsOrigins(const std::string& runtime) {
  return runtime.starts_with("containerd ") &&
         VersionOf(runtime).value_or(std::pair(0U, 0U)) >= std::pair(1U, 6U);
}

}  // namespace

// The runtime has to keep to CRI and to the bounds of limits.h.
template <typename T>
Result<T> Client::Ask(const std::string& method, const std::string& request, std::size_t most,
                      Result<T> (*decode)(const std::string& answer)) const {
  const auto answer = TRY(Call(options_, method, request, most));
  auto decoded = decode(answer);
  if (decoded || decoded.error().code == ErrorCode::kOutOfMemory) return decoded;
  Error& error = decoded.error();
  error.message = "the container runtime at " + options_.endpoint + ", " +
                  method.substr(method.find('/') + 1) + ": " + error.message;
  if (!error.has_hint()) {
    error.hint = "compare with what crictl prints, and look at the runtime's log";
  }
  return decoded;
}

Result<void> Client::AskVersion() {
  runtime_ = TRY(Ask(kRuntimeService + "Version", "", kMaxAnswerBytes, DecodeVersion));
  return {};
}

Result<std::unique_ptr<Client>> Client::Connect(const ClientOptions& options) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<Client>> {
    const auto at = [&](std::string path) {
      return std::unique_ptr<Client>(
          new Client({std::move(path), options.timeout, options.cancelled}));
    };
    if (!options.endpoint.empty()) {
      auto path = TRY(SocketPath(options.endpoint));
      auto client = at(std::move(path));
      TRY(client->AskVersion());
      return client;
    }
    std::unique_ptr<Client> found;
    std::string tried;
    for (const char* path : kUsualSockets) {
      auto client = at(path);
      if (const auto asked = client->AskVersion(); !asked) {
        if (asked.error().code == ErrorCode::kInterrupted) return asked.error();
        tried += (tried.empty() ? "" : "; ") + asked.error().message;
        continue;
      }
      // Another runtime's list would delete this runtime's records.
      if (found) {
        return Error{
            ErrorCode::kInvalidArgument,
            "several container runtimes answer, at " + found->options_.endpoint + " and at " + path,
            "name the one that the kubelet uses (containerRuntimeEndpoint of its configuration)"};
      }
      found = std::move(client);
    }
    if (found) return found;
    return Error{ErrorCode::kUnavailable, "no container runtime answers: " + tried,
                 "check that the runtime runs; if it listens elsewhere, name its endpoint"};
  });
}

Result<std::vector<ListedImage>> Client::ListImages() {
  auto images = Ask("runtime.v1.ImageService/ListImages", "", kMaxListBytes, DecodeImages);
  if (!images || images->empty() || !TellsOrigins(runtime_)) return images;
  // Asked after the list: an image that was imported since may be open as well.
  const auto imported = Containerd(options_).Imported();
  if (!imported) return images;
  const std::unordered_set<std::string> ids(imported->begin(), imported->end());
  for (ListedImage& image : *images) image.imported = ids.contains(image.id);
  return images;
}

Result<std::string> Client::Status() {
  return Ask(kRuntimeService + "Status", kVerbose, kMaxAnswerBytes, DecodeStatus);
}

Result<RuntimeAnswers> Client::Answers() {
  RuntimeAnswers answers;
  answers.version = runtime_;
  answers.status = TRY(Status());
  if (!runtime_.starts_with("containerd ")) return answers;
  if (const auto process = Containerd(options_).Process()) {
    const auto words = internal::ReadWholeFile("/proc/" + std::to_string(process->pid) + "/cmdline",
                                               kMaxPullConfigBytes);
    answers.config = internal::CommandLine::Of(words.value_or("")).Config();
  }
  return answers;
}

}  // namespace waybill::cri
