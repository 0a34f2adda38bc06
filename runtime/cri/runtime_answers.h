// What a runtime says of how it is configured to pull.

#ifndef WAYBILL_RUNTIME_CRI_RUNTIME_ANSWERS_H_
#define WAYBILL_RUNTIME_CRI_RUNTIME_ANSWERS_H_

#include "runtime/cri/runtime_client.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cri {

// For ReadRuntimePulls: its version, its status, and the configuration file that containerd's
// command line names, if that can be seen from here.
Result<RuntimeAnswers> AnswersOf(Client& runtime);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_RUNTIME_ANSWERS_H_
