// Who checks the credentials of pulls, by the configuration of the runtime beside the guard.

#ifndef WAYBILL_GUARD_WHO_CHECKS_H_
#define WAYBILL_GUARD_WHO_CHECKS_H_

#include <chrono>
#include <memory>
#include <mutex>
#include <string>

#include "runtime/cri/runtime_client.h"
#include "runtime/files/pull_sources.h"
#include "waybill/values.h"

namespace waybill::guard {

// Thread-safe.
class WhoChecks {
 public:
  // Asks the runtime how it is configured, once a minute at most.
  void Learn(cri::Client& runtime);
  // Of a pull of an image of that name, by tag or by digest: a record tells neither, nor for which
  // handler it was.
  VerifiedBy Of(const std::string& image_name) const;

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const RuntimePulls> pulls_;  // null: not known
  std::chrono::steady_clock::time_point learnt_ = {};
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_WHO_CHECKS_H_
