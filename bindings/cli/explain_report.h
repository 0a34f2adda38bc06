// The report of `waybill explain`: everything that bears on the answer about one image.

#ifndef WAYBILL_BINDINGS_CLI_EXPLAIN_REPORT_H_
#define WAYBILL_BINDINGS_CLI_EXPLAIN_REPORT_H_

#include <optional>
#include <string>

#include "bindings/cli/handler_names.h"
#include "bindings/cli/output.h"
#include "waybill/node_store.h"

namespace waybill::cli {

struct ExplainedImage {
  std::string image = {};
  std::string image_ref = {};  // empty: not known to be on the node
  std::string runtime_handler = {};
  Decision decision = {};
  std::optional<Explanation> explanation = {};  // nullopt: there is no ref to explain
};

Json JsonOf(const ExplainedImage& image);
void WriteExplained(const ExplainedImage& image, const HandlerNames& names, Output& out);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_EXPLAIN_REPORT_H_
