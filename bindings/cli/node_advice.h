// `waybill advise` about one node: what the node's own history or store says, which takes the place
// of a preset's values, and the answer.

#ifndef WAYBILL_BINDINGS_CLI_NODE_ADVICE_H_
#define WAYBILL_BINDINGS_CLI_NODE_ADVICE_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bindings/cli/node_shape.h"
#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/sizing_model.h"
#include "sizing/curves.h"
#include "sizing/node_history.h"
#include "sizing/shape_fit.h"

namespace waybill::cli {

// A number that a source knows.
struct Known {
  double value = 0;
  std::string from = {};
};

// A row of the answer: a value, and what it was computed from.
struct AdviceRow {
  std::string key;  // in JSON
  std::string label;
  Json value;
  std::string text;
  std::string from;
};

struct NodeSource {
  std::string name = {};  // the file or directory
  std::vector<sizing::Fitted> shape = {};
  std::optional<Known> records = {};
  std::vector<double> secrets = {};  // of each record that is known
  std::string secrets_from = {};
  std::optional<Known> decisions_per_day = {};
  std::map<std::string, std::uint64_t> reasons = {};  // of decisions
  std::optional<Known> pulls_per_day = {};
  // Of these, the part that pulled an image that was on the node, for a pod to prove itself.
  double proving_part = 0;
  std::optional<Known> failed_pulls_per_day = {};
  std::optional<Known> write_backs_per_day = {};
  std::optional<Known> collections_per_day = {};
  std::vector<AdviceRow> facts = {};  // what is there now
};

NodeSource SourceOf(const sizing::NodeHistory& history, const std::string& path,
                    double containers_per_pod);
// Observes the store. Errors: ObserveStore.
Result<NodeSource> SourceOfStore(const StoreFlags& flags);

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
