// Tells the service manager how a service is (sd_notify(3), by its documented protocol).

#ifndef WAYBILL_GUARD_NOTIFY_H_
#define WAYBILL_GUARD_NOTIFY_H_

#include <chrono>
#include <optional>
#include <string_view>

namespace waybill::guard {

// "READY=1" and the like, one assignment a line. Does nothing without NOTIFY_SOCKET; nobody needs
// to know if it fails.
void Notify(std::string_view state);
// How often the manager wants to hear WATCHDOG=1 from this process; nullopt: it does not.
std::optional<std::chrono::microseconds> WatchdogInterval();

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_NOTIFY_H_
