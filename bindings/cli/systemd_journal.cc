#include "bindings/cli/systemd_journal.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cstdlib>

namespace waybill::cli {

bool JournalReads(int fd) {
  const char* const stream = std::getenv("JOURNAL_STREAM");
  struct stat status {};
  if (stream == nullptr || ::fstat(fd, &status) != 0) return false;
  return stream == fmt::format("{}:{}", status.st_dev, status.st_ino);
}

}  // namespace waybill::cli
