// What a container runtime has and serves: asked by --cri, or in files that crictl's output went
// to.

#ifndef WAYBILL_BINDINGS_CLI_RUNTIME_LISTS_H_
#define WAYBILL_BINDINGS_CLI_RUNTIME_LISTS_H_

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/parse.h"
#include "runtime/cri/runtime_client.h"
#include "runtime/files/pull_sources.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// What completion offers for --cri.
Flag::Values EndpointChoices();

// --cri.
class CriFlag {
 public:
  Flag& Declare(Flags& flags);
  bool given() const { return endpoint_.has_value(); }

  Result<std::vector<ListedImage>> ListImages() const;
  // Merged with `config`, a configuration file of containerd. Empty: the runtime names none, which
  // is kInvalidArgument where some are `needed`.
  Result<std::vector<RuntimeHandler>> ListHandlers(const std::optional<std::string>& config,
                                                   bool needed) const;

  // How it is configured to pull.
  Result<RuntimePulls> Pulls() const;

  // An error about an empty list is about the runtime.
  Error About(Error error) const;

 private:
  Result<std::unique_ptr<cri::Client>> Connect() const;

  std::optional<std::string> endpoint_;
};

// A list of images: in a file, or of the runtime itself.
class ImagesFlags {
 public:
  // `name`: of the flag with the file.
  explicit ImagesFlags(std::string_view name = "--images") : name_(name) {}

  // `what`: what the list is, or is for. Returns --cri.
  Flag& Declare(Flags& flags, const std::string& what);

  bool given() const { return path_ || cri_.given(); }
  // The flag that gives the list.
  std::string_view name() const { return cri_.given() ? "--cri" : name_; }
  const CriFlag& cri() const { return cri_; }

  // nullopt: neither flag is given.
  Result<std::optional<std::vector<ListedImage>>> ReadIfGiven() const;
  Result<std::vector<ListedImage>> Read() const;

 private:
  std::string_view name_;
  std::optional<std::string> path_;
  CriFlag cri_;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_RUNTIME_LISTS_H_
