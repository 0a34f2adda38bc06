// What operators have of a node's history, made into the events of a trace (store/base/trace.h).

#ifndef WAYBILL_BINDINGS_CLI_TRACE_SOURCES_H_
#define WAYBILL_BINDINGS_CLI_TRACE_SOURCES_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "waybill/result.h"

namespace waybill::cli {

struct TraceSources {
  std::vector<std::string> traces = {};
  std::vector<std::string> events = {};      // kubectl get events -A -o json, also with -w
  std::vector<std::string> pods = {};        // kubectl get pods -A -o json
  std::vector<std::string> images = {};      // crictl images -o json; FILE@TIME
  std::vector<std::string> containers = {};  // crictl ps -a -o json
  std::string node = {};                     // of whose history; empty: of all
};

struct TraceImport {
  std::string sources = {};          // "events+crictl", for the first line
  std::uint64_t other_nodes = 0;     // what was left out: of other nodes
  std::set<std::string> nodes = {};  // of the events that were taken
  // By their times in milliseconds, those of one time as they were read.
  std::multimap<std::int64_t, std::string> lines = {};
};

// Errors name the file, and where in it. kLimitExceeded: more than 512 MiB of lines.
Result<TraceImport> ImportTrace(const TraceSources& sources);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_TRACE_SOURCES_H_
