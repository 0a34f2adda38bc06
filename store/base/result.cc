#include "waybill/result.h"

namespace waybill {

std::string_view ErrorCodeName(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
      return "invalidArgument";
    case ErrorCode::kLimitExceeded:
      return "limitExceeded";
    case ErrorCode::kNotFound:
      return "notFound";
    case ErrorCode::kDamaged:
      return "damaged";
    case ErrorCode::kOwned:
      return "owned";
    case ErrorCode::kNewerSchema:
      return "newerSchema";
    case ErrorCode::kOlderSchema:
      return "olderSchema";
    case ErrorCode::kUnsafePath:
      return "unsafePath";
    case ErrorCode::kStoreFull:
      return "storeFull";
    case ErrorCode::kDiskFull:
      return "diskFull";
    case ErrorCode::kIo:
      return "io";
    case ErrorCode::kConflict:
      return "conflict";
    case ErrorCode::kNotOwner:
      return "notOwner";
    case ErrorCode::kInterrupted:
      return "interrupted";
    case ErrorCode::kOutcomeUnknown:
      return "outcomeUnknown";
    case ErrorCode::kCredentialsUnavailable:
      return "credentialsUnavailable";
    case ErrorCode::kOutOfMemory:
      return "outOfMemory";
    case ErrorCode::kInternal:
      return "internal";
  }
  return "unknown";
}

std::string Error::ToString() const { return hint.empty() ? message : message + "; " + hint; }

}  // namespace waybill
