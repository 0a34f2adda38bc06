// A TempDir in memory where the system has such a place: a sync costs nothing there, and no test
// that uses it is about power cuts of the real machine.

#ifndef WAYBILL_TESTS_SUPPORT_MEMORY_DIR_H_
#define WAYBILL_TESTS_SUPPORT_MEMORY_DIR_H_

#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>

namespace waybill::testing {

class MemoryDir {
 public:
  MemoryDir() {
    const std::filesystem::path memory = "/dev/shm";
    const bool usable = access(memory.c_str(), W_OK) == 0;
    const auto parent = usable ? memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "waybill-test-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    path_ = name;
  }
  ~MemoryDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryDir(const MemoryDir&) = delete;
  MemoryDir& operator=(const MemoryDir&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MEMORY_DIR_H_
