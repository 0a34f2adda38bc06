// Histories in which a kubelet v1.36.3 opens a private image to every pod of its node, or shuts one
// that came with the node, each played through waybill. The demonstration shows them, and judges
// each answer (demo.story).

#ifndef WAYBILL_TESTS_SUPPORT_WAYS_H_
#define WAYBILL_TESTS_SUPPORT_WAYS_H_

#include <span>
#include <string_view>

#include "waybill/values.h"

namespace waybill::testing {

struct Way {
  std::string_view story;  // one line
  // Whether a pod without credentials may use the image afterwards: in the kubelet itself, under
  // Mode::kKubelet and under Mode::kStrict. Under all rules waybill notices when it loses a record,
  // so the second is less than the first.
  bool open_in_the_kubelet;
  bool open_under_kubelet_rules;
  bool open_under_closed_rules;
  // Plays it, and asks whether a pod without credentials must pull. Throws std::runtime_error if a
  // step fails that must not.
  Decision (*play)(Mode rules);
};

std::span<const Way> WaysTheKubeletOpens();
// A private image arrives, or is asked for, in a way that leaves no record under the name asked.
std::span<const Way> WaysToAPrivateImage();
// A pod of another tenant does something, and then a pod asks for an image that came with the node.
std::span<const Way> WaysToAPreloadedImage();

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_WAYS_H_
