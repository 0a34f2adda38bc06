// The process of the container runtime.

#ifndef WAYBILL_DOCTOR_RUNTIME_PROCESS_H_
#define WAYBILL_DOCTOR_RUNTIME_PROCESS_H_

#include <optional>
#include <string>
#include <vector>

#include "doctor/node.h"

namespace waybill::doctor {

struct RuntimeProcess {
  std::string pid = {};
  std::string config = {};                  // the file that its command line names
  std::vector<std::string> elsewhere = {};  // what else of it takes registries from elsewhere
  std::string proxy = {};                   // of its environment, without a password
};

// nullopt: none runs. Only what the machine's first process started: a pod can have any name.
std::optional<RuntimeProcess> FindRuntimeProcess(const Node& node);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_RUNTIME_PROCESS_H_
