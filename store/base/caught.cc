#include "store/base/caught.h"

#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace waybill::internal {

namespace {

// The message is so short that std::string does not allocate for it.
Error OutOfMemory() noexcept { return {ErrorCode::kOutOfMemory, "out of memory", {}}; }

Error Described(ErrorCode code, const char* what) noexcept {
  try {
    return {code, std::string("cannot go on: ") + what, {}};
  } catch (...) {
    return OutOfMemory();
  }
}

}  // namespace

Error Caught() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  } catch (const std::system_error& e) {
    return Described(
        e.code() == std::errc::not_enough_memory ? ErrorCode::kOutOfMemory : ErrorCode::kIo,
        e.what());
  } catch (const std::exception& e) {
    return Described(ErrorCode::kInternal, e.what());
  } catch (...) {
    return Described(ErrorCode::kInternal, "an exception of unknown type");
  }
}

}  // namespace waybill::internal
