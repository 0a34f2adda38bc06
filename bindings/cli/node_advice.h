// The answer of `waybill advise` about one node: each value, and what it was computed from.

#ifndef WAYBILL_BINDINGS_CLI_NODE_ADVICE_H_
#define WAYBILL_BINDINGS_CLI_NODE_ADVICE_H_

#include <string>
#include <vector>

#include "bindings/cli/node_shape.h"
#include "bindings/cli/node_sources.h"
#include "bindings/cli/output.h"
#include "bindings/cli/sizing_model.h"
#include "sizing/curves.h"

namespace waybill::cli {

std::vector<AdviceRow> RowsOf(const NodeSource& source, const SizingQuestion& question,
                              const PresetFigures& figures, const SizingAdvice& advice);
void AddImageDisk(const sizing::NodeHistory& history, const sizing::NodeCurves& curves,
                  std::vector<AdviceRow>& rows);

// `fitted`: the shape that the source has; `shape`: what the flags made of it.
void WriteNodeAdvice(const NodeSource& source, const NodeShape& fitted, const NodeShape& shape,
                     const std::vector<AdviceRow>& rows, Output& out);

// PREFIX.svg, PREFIX.csv and PREFIX.json. Errors are about --curves.
Result<void> WriteCurves(const sizing::NodeCurves& curves, const std::string& prefix);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_NODE_ADVICE_H_
