// What an error number of the system means for a path that a flag gave.

#ifndef WAYBILL_BINDINGS_CLI_FAILED_PATH_H_
#define WAYBILL_BINDINGS_CLI_FAILED_PATH_H_

#include <cerrno>
#include <string>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::cli {

// kInvalidArgument, without a hint: the path leads to nothing that can be read, so the flag is
// wrong. kIo, with a hint: the disk refuses it, or the system lacks something, whatever the flag
// says. The message is for the caller to replace.
inline Error FailedPath(const std::string& path, int error_number) {
  switch (error_number) {
    case EINTR:
    case EAGAIN:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case EIO:
    case EUCLEAN:
    case EBADMSG:
    case EREMOTEIO:
    case ENODATA:
    case ETIMEDOUT:
      return internal::SystemError(error_number, "read", path);
    default:
      return {ErrorCode::kInvalidArgument, {}, {}};
  }
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_FAILED_PATH_H_
