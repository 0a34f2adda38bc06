// Options of an opening as JSON, for bindings that have no structs.

#ifndef WAYBILL_STORE_OPEN_OPTIONS_H_
#define WAYBILL_STORE_OPEN_OPTIONS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

#include "waybill/result.h"
#include "waybill/store.h"

namespace waybill::internal {

// The clocks of a store that a test opened with {"manualClock": true}. Must outlive the store.
class ManualClock {
 public:
  // Begins with these times; 0: of now.
  waybill::Clocks Use(std::int64_t unix_ns, std::int64_t boot_ns);
  bool used() const { return used_; }
  void Set(std::int64_t unix_ns, std::int64_t boot_ns);

 private:
  bool used_ = false;
  std::array<std::uint8_t, 16> boot_id_{};
  std::atomic<std::int64_t> unix_ns_{0};
  std::atomic<std::int64_t> boot_ns_{0};
};

// An empty text is {}. What is wrong is kInvalidArgument, and named.
Result<OpenOptions> OpenOptionsOf(std::string_view directory, std::string_view loss_marker,
                                  std::string_view json, ManualClock& clock);
Result<StreamOptions> StreamOptionsOf(std::string_view directory, std::string_view loss_marker,
                                      std::string_view json, ManualClock& clock);
Result<PullDetails> PullDetailsOf(std::string_view json);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_OPEN_OPTIONS_H_
