// The ways in which a kubelet v1.36.3 opens a private image to every pod of its node, each played
// through waybill. The tests and the demonstration share them.

#ifndef WAYBILL_TESTS_SUPPORT_KUBELET_OPENS_H_
#define WAYBILL_TESTS_SUPPORT_KUBELET_OPENS_H_

#include <span>
#include <string_view>

#include "waybill/decision.h"
#include "waybill/node_store.h"

namespace waybill::testing {

struct Way {
  std::string_view name;   // also the name of its test
  std::string_view story;  // one line
  // What the kubelet itself then answers to a pod without credentials.
  bool opens_in_the_kubelet;
  // The same under Rules::kKubelet. Less than the kubelet opens: whatever the rules, waybill loses
  // no record without noticing. Under Rules::kClosed the answer is always "pull".
  bool opens_under_kubelet_rules;
  // Plays it, and asks for a pod that has no credentials whether it must pull. Throws
  // std::runtime_error where a step fails that should not.
  Decision (*play)(Rules rules);
};

std::span<const Way> WaysTheKubeletOpens();

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_KUBELET_OPENS_H_
