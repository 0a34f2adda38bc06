// For the guard (../../guard/) alone. The public API takes over a kubelet's directory, and goes
// back to it, as a whole and while no kubelet runs. The guard follows single files that a kubelet
// is changing:
//
//   what a record or an intent says, and the forms of those that waybill writes   kubelet_file.h
//   whether somebody else may have written them                                   kubelet_places.h
//   what a pod's ID mappings say                                                  userns_file.h
//   where a kubelet with waybill inside has its witness (WitnessIn)               gap.h
//   what its files must say                                                  what_it_must_find.h
//   what is known of them                                                     kubelet_file_row.h
//   which credentials the node has beside those of pods                       node_credentials.h

#ifndef WAYBILL_STORE_FOR_THE_GUARD_H_
#define WAYBILL_STORE_FOR_THE_GUARD_H_

#include "migrations/kubelet_files/kubelet_file.h"
#include "migrations/kubelet_files/kubelet_places.h"
#include "migrations/kubelet_files/userns_file.h"
#include "migrations/kubelet_files/what_it_must_find.h"
#include "runtime/files/node_credentials.h"
#include "store/images/gap.h"
#include "store/images/kubelet_file_row.h"

#endif  // WAYBILL_STORE_FOR_THE_GUARD_H_
