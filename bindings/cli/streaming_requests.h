// `waybill streaming prepare`, `consume` and `list`: what a runtime's streaming server does, by
// hand. command_streaming.cc has the group.

#ifndef WAYBILL_BINDINGS_CLI_STREAMING_REQUESTS_H_
#define WAYBILL_BINDINGS_CLI_STREAMING_REQUESTS_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "waybill/result.h"

namespace waybill::cli {

class StreamingRequestFlags {
 public:
  // All but --store, which is declared with the group.
  void Declare(Flags& flags);
  // Whether `action` exists.
  static bool Has(std::string_view action);
  // The first flag that was given, for an action that takes none of them; empty: none was.
  std::string Given() const;
  // `rest`: what follows the action.
  Result<ExitCode> Run(std::string_view action, const StoreFlags& store,
                       const std::vector<std::string>& rest, Output& out) const;

 private:
  Result<void> CheckBelonging(std::string_view action) const;
  Result<ExitCode> Prepare(const StoreFlags& store, const std::vector<std::string>& rest,
                           Output& out) const;
  Result<ExitCode> Consume(const StoreFlags& store, const std::vector<std::string>& rest,
                           Output& out) const;
  Result<ExitCode> List(const StoreFlags& store, Output& out) const;

  std::optional<std::string> container_;
  std::optional<std::string> sandbox_;
  bool std_in_ = false;
  bool std_out_ = false;
  bool std_err_ = false;
  bool tty_ = false;
  std::vector<std::string> ports_;
  std::optional<std::string> time_to_live_;
  std::optional<std::string> max_open_;
  std::optional<std::string> witness_;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STREAMING_REQUESTS_H_
