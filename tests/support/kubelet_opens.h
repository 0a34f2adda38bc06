// The ways in which a kubelet v1.36.3 opens a private image to every pod of its node, each played
// through waybill. The tests and the demonstration share them.

#ifndef WAYBILL_TESTS_SUPPORT_KUBELET_OPENS_H_
#define WAYBILL_TESTS_SUPPORT_KUBELET_OPENS_H_

#include <span>
#include <string_view>

#include "waybill/values.h"

namespace waybill::testing {

struct Way {
  std::string_view name;   // also the name of its test
  std::string_view story;  // one line
  // What the kubelet itself answers a pod without credentials afterwards.
  bool opens_in_the_kubelet;
  // The same under Mode::kKubelet. These are fewer: under all rules, waybill notices when it loses
  // a record. Under Mode::kStrict the answer is always "pull".
  bool opens_under_kubelet_rules;
  // Plays it, and asks whether a pod without credentials must pull. Throws std::runtime_error if a
  // step fails that must not.
  Decision (*play)(Mode rules);
};

std::span<const Way> WaysTheKubeletOpens();

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_KUBELET_OPENS_H_
