// Whether a feature gate of the kubelet is on: by its release, its configuration and its command
// line, which wins.

#ifndef WAYBILL_DOCTOR_GATES_H_
#define WAYBILL_DOCTOR_GATES_H_

#include <string>

#include "doctor/node.h"
#include "waybill/result.h"

namespace waybill::doctor {

// As the releases that are known here have it (pkg/features/kube_features.go).
struct Gate {
  const char* name;
  int beta_since;  // the minor release; 0: it is alpha in all of them
  int on_since;    // by default; 0: in none
};
// The kubelet verifies who may use an image that is there (KEP-2535).
inline constexpr Gate kVerifies = {"KubeletEnsureSecretPulledImages", 35, 35};
// It tells the runtime which runtime class an image is for (KEP-4216).
inline constexpr Gate kRuntimeClasses = {"RuntimeClassInImageCriApi", 0, 0};
inline constexpr Gate kUserNamespaceGate = {"UserNamespacesSupport", 30, 33};

struct GateState {
  bool on = false;
  std::string by = {};  // "by its command line", "by default in v1.34.2"
};

// An error: nobody says it, and the release is not known.
Result<GateState> StateOf(const Gate& gate, const Node& node);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_GATES_H_
