// Histories in which the lack of a record says nothing of where an image came from: each played
// under both sets of rules. The tests and the demonstration share them.

#ifndef WAYBILL_TESTS_SUPPORT_EVIDENCE_WAYS_H_
#define WAYBILL_TESTS_SUPPORT_EVIDENCE_WAYS_H_

#include <span>
#include <string_view>

#include "waybill/values.h"

namespace waybill::testing {

struct EvidenceWay {
  std::string_view name;   // also the name of its test
  std::string_view story;  // one line
  bool open_in_the_kubelet;
  bool open_under_kubelet_rules;
  bool open_under_closed_rules;
  // Plays it, and asks whether a pod without credentials must pull. Throws std::runtime_error if a
  // step fails that must not.
  Decision (*play)(Mode rules);
};

// A private image arrives, or is asked for, in a way that leaves no record under the name asked.
std::span<const EvidenceWay> WaysToAPrivateImage();
// A pod of another tenant does something, and then a pod asks for an image that came with the node.
std::span<const EvidenceWay> WaysToAPreloadedImage();

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_EVIDENCE_WAYS_H_
