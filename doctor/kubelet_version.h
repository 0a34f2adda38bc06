// Which release a kubelet is, without running it.

#ifndef WAYBILL_DOCTOR_KUBELET_VERSION_H_
#define WAYBILL_DOCTOR_KUBELET_VERSION_H_

#include <optional>
#include <string>
#include <string_view>

#include "waybill/result.h"

namespace waybill::doctor {

class Node;

// What is known here: 1.33 to 1.37.
inline constexpr int kOldestMinor = 33;
inline constexpr int kNewestMinor = 37;

struct KubeletVersion {
  std::string text = {};  // v1.36.3
  int minor = 0;
};

// "v1.36.3", "v1.36.3+k3s1".
std::optional<KubeletVersion> ParseKubeletVersion(std::string_view text);

// Of the node's API answer; or else in the program that runs, or that is where kubelets are: the
// release that its makers linked in, or what Go says of it. An error: neither says it, or they
// contradict each other.
Result<KubeletVersion> FindKubeletVersion(const Node& node);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_KUBELET_VERSION_H_
