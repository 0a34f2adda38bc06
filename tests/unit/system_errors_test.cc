// What the system lacks is not told as a failing disk, and is no reason to go on without a part.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <stdexcept>
#include <string>

#include "migrations/kubelet/kubelet_file.h"
#include "store/base/files.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(system_errors)

namespace {

// While it lives, this process can open no file.
class NoMoreFiles {
 public:
  NoMoreFiles() {
    const int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (next < 0 || getrlimit(RLIMIT_NOFILE, &before_) != 0) throw std::runtime_error("no limit");
    close(next);
    struct rlimit none = before_;
    none.rlim_cur = static_cast<rlim_t>(next);
    if (setrlimit(RLIMIT_NOFILE, &none) != 0) throw std::runtime_error("setrlimit failed");
  }
  ~NoMoreFiles() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoMoreFiles(const NoMoreFiles&) = delete;
  NoMoreFiles& operator=(const NoMoreFiles&) = delete;

 private:
  struct rlimit before_ {};
};

}  // namespace

BOOST_AUTO_TEST_CASE(only_what_a_disk_does_sends_to_the_disk) {
  using internal::CanBeSkipped;
  using internal::SystemError;
  const struct {
    int number;
    bool is_disk;
    const char* hint;
  } all[] = {{EIO, true, "disk errors"},      {EBADMSG, true, "disk errors"},
             {EUCLEAN, true, "disk errors"},  {EINTR, false, "signal"},
             {EAGAIN, false, "try again"},    {EMFILE, false, "LimitNOFILE="},
             {ENFILE, false, "fs.file-max"},  {ENOMEM, false, "memory"},
             {EINVAL, false, "kernel's log"}, {EMLINK, false, "kernel's log"}};
  for (const auto& one : all) {
    BOOST_TEST_CONTEXT(one.hint) {
      const Error error = SystemError(one.number, "read", "/some/file");
      BOOST_TEST((error.code == ErrorCode::kIo));
      BOOST_TEST(error.hint.find(one.hint) != std::string::npos, error.hint);
      BOOST_TEST((error.hint.find("disk") != std::string::npos) == one.is_disk, error.hint);
      const bool skips = CanBeSkipped(error).hint_code == Hint::kSkipUnreadable;
      BOOST_TEST(skips == one.is_disk);
      BOOST_TEST(CanBeSkipped(error).has_hint());
    }
  }
}

BOOST_AUTO_TEST_CASE(a_file_that_can_not_be_opened_now_is_not_skipped) {
  const MemoryDir image_manager;
  std::filesystem::create_directory(image_manager / "pulled");
  const std::string name = "sha256-" + std::string(64, 'a');
  WriteFile(image_manager / "pulled" / name, "{}");
  const NoMoreFiles none;
  for (const auto on_error : {internal::OnReadError::kFail, internal::OnReadError::kSkip}) {
    const Error file =
        ExpectError(internal::ReadKubeletFile(image_manager.path(),
                                              internal::KubeletFolder::kPulled, name, on_error),
                    ErrorCode::kIo);
    BOOST_TEST((file.hint_code == Hint::kNone));
    BOOST_TEST(file.hint.find("LimitNOFILE=") != std::string::npos, file.hint);
  }
}

BOOST_AUTO_TEST_CASE(nobody_is_told_to_take_what_is_anothers) {
  const MemoryDir scratch;
  if (geteuid() != 0) return;  // only root can give a directory away
  std::filesystem::create_directory(scratch / "store");
  if (chown((scratch / "store").c_str(), 65534, 65534) != 0) {
    throw std::runtime_error("chown failed");
  }
  const auto opened = NodeStore::Open(OptionsIn(scratch.path()));
  BOOST_REQUIRE(!opened);
  BOOST_TEST(opened.error().hint.starts_with("run as user 65534"), opened.error().hint);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
