// The input of a command: a file or standard input, up to a bound; and which of its names may be
// quoted.

#ifndef WAYBILL_BINDINGS_CLI_INPUT_H_
#define WAYBILL_BINDINGS_CLI_INPUT_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/try.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// The content of the file at `path`; "-": of standard input. kInvalidArgument: it can't be read.
// kLimitExceeded: it has more than `most` bytes. Both name the file.
Result<std::string> ReadInput(const std::string& path, std::size_t most);

// The content of a file that says what a command does: a regular file that only root or the user of
// this process can write. kNotFound: there is none. kInvalidArgument, kLimitExceeded: as ReadInput.
Result<std::string> ReadOwnFile(const std::string& path, std::size_t most);

// What an error number of the system means for a path that a flag gave.
// kInvalidArgument, without a hint: the path leads to nothing that can be read, so the flag is
// wrong. kIo, with a hint: the disk refuses it, or the system lacks something, whatever the flag
// says. The message is for the caller to replace.
Error FailedPath(const std::string& path, int error_number);

// `path`, or "standard input" for "-".
std::string InputName(const std::string& path);

// `error` with the name of the input in front. `hint`: for an error without one.
Error AboutInput(const std::string& path, Error error, std::string_view hint);

// The content of `path`, decoded. Errors name the file.
template <typename T>
Result<T> ReadDecoded(const std::string& path, std::size_t most,
                      Result<T> (*decode)(std::string_view), std::string_view hint = {}) {
  auto content = TRY(ReadInput(path, most));
  auto decoded = decode(content);
  if (!decoded) return AboutInput(path, decoded.error(), hint);
  return decoded;
}

// The images in `path`: the output of `crictl images -o json`. Errors name the file.
Result<std::vector<ListedImage>> ReadImageList(const std::string& path);
// The same, of what `path` holds.
Result<std::vector<ListedImage>> ParseImageList(const std::string& path, std::string_view content);

// The same for images that somebody knows to be preloaded: one with a name may lack its ID.
Result<std::vector<ListedImage>> ReadPreloadedList(const std::string& path);

// The runtime handlers in `status`, the output of `crictl info`, merged with `config`, a
// configuration file of containerd. Errors name the file.
Result<std::vector<RuntimeHandler>> ReadRuntimeHandlers(const std::string& status,
                                                        const std::optional<std::string>& config);

// Merges `config`, a configuration file of containerd, into `handlers`. Errors name the file.
Result<void> MergeConfigFile(const std::string& config, std::vector<RuntimeHandler>& handlers);

// The pod UIDs in `path`: the output of `kubectl get pods -o json`, of the kubelet's /pods or of
// `crictl pods -o json`. Errors name the file.
Result<std::vector<std::string>> ReadPodList(const std::string& path);

// The parsers of directories that exist: a mistyped --kubelet-dir would look like a node that never
// pulled anything, a mistyped --pods-dir like one without pods in user namespaces.
Result<std::string> ParseKubeletDirectory(std::string_view flag, const std::string& directory);
Result<std::string> ParsePodsDirectory(std::string_view flag, const std::string& directory);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_INPUT_H_
