// A TempDir in memory if the system has such a file system: a sync costs nothing there. No test
// that uses it is about power cuts of the real machine.

#ifndef WAYBILL_TESTS_SUPPORT_MEMORY_DIR_H_
#define WAYBILL_TESTS_SUPPORT_MEMORY_DIR_H_

#include <unistd.h>

#include <filesystem>

#include "tests/support/temp_dir.h"

namespace waybill::testing {

class MemoryDir : public TempDir {
 public:
  MemoryDir()
      : TempDir(access("/dev/shm", W_OK) == 0 ? "/dev/shm"
                                              : std::filesystem::temp_directory_path()) {}
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MEMORY_DIR_H_
