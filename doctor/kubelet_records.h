// What the kubelet's own files say of images: those of records and of intents.

#ifndef WAYBILL_DOCTOR_KUBELET_RECORDS_H_
#define WAYBILL_DOCTOR_KUBELET_RECORDS_H_

#include <set>
#include <string>

#include "doctor/node.h"

namespace waybill::doctor {

struct KubeletRecords {
  std::set<std::string> refs = {};    // of images that have a record
  std::set<std::string> images = {};  // image names of records, image strings of intents
};

// Files that can't be read, or are none of the kubelet's, are passed over: the import judges them.
KubeletRecords ReadKubeletRecords(const Node& node);

}  // namespace waybill::doctor

#endif  // WAYBILL_DOCTOR_KUBELET_RECORDS_H_
