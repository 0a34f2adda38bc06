#include "tests/replay/log.h"

#include <fmt/core.h>

namespace waybill::replay {

void Log::Compare(const std::string& what, const std::string& expected, const std::string& got) {
  if (expected == got) {
    Same();
  } else {
    Different(fmt::format("{}\n  expected  {}\n  got       {}", what, expected, got));
  }
}

void Log::Different(const std::string& text) {
  ++compared_;
  if (++different_ <= kPrintedMax) {
    fmt::print("{}: {}\n", Where(), text);
  } else if (different_ == kPrintedMax + 1) {
    fmt::print("(further differences are only counted)\n");
  }
}

}  // namespace waybill::replay
