// What the command asks of the node: is there a user, is there the tool, what does it print.
// Another user stands in for `kubelet`, and scripts for the tool.

#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "bindings/cli/user_namespace_flags.h"
#include "tests/support/temp_dir.h"

namespace waybill::cli {

BOOST_AUTO_TEST_SUITE(getsubids)

namespace {

constexpr const char* kSomebody = "root";

// A directory that is all of PATH.
class ToolDirectory {
 public:
  ToolDirectory() { SetPath(dir_.path().string()); }
  ~ToolDirectory() { ::setenv("PATH", before_.c_str(), 1); }

  void SetPath(const std::string& path) { ::setenv("PATH", path.c_str(), 1); }
  std::string path() const { return dir_.path().string(); }
  const testing::TempDir& dir() const { return dir_; }
  void Install(const std::string& script) const {
    testing::WriteFile(dir_ / "getsubids", "#!/bin/sh\n" + script);
    std::filesystem::permissions(dir_ / "getsubids", std::filesystem::perms::owner_all);
  }

 private:
  testing::TempDir dir_;
  std::string before_ = std::getenv("PATH");
};

Error ErrorOf(const std::string& user = kSomebody) {
  const auto found = FindSubordinateIds(user);
  BOOST_TEST_REQUIRE(!found.has_value());
  BOOST_TEST((found.error().code == ErrorCode::kIo));
  return found.error();
}

}  // namespace

// A user who is not in /etc/passwd, such as one of a directory service.
BOOST_FIXTURE_TEST_CASE(getent_says_who_exists, ToolDirectory) {
  constexpr const char* kElsewhere = "waybill-from-elsewhere";
  BOOST_TEST(!testing::Must(FindSubordinateIds(kElsewhere)).user_exists);
  const auto getent = [&](const std::string& script) {
    testing::WriteFile(dir() / "getent", "#!/bin/sh\n" + script);
    std::filesystem::permissions(dir() / "getent", std::filesystem::perms::owner_all);
  };
  getent("[ \"$*\" = \"passwd waybill-from-elsewhere\" ]");
  BOOST_TEST(testing::Must(FindSubordinateIds(kElsewhere)).user_exists);
  getent("exit 2");
  BOOST_TEST(!testing::Must(FindSubordinateIds(kElsewhere)).user_exists);
  getent("exit 3");
  BOOST_TEST(ErrorOf(kElsewhere).message.find("exit status 3") != std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(what_it_prints_is_taken_as_it_is, ToolDirectory) {
  Install("echo \"$# $*\"; printf 'x\\n\\n'");
  const auto found = FindSubordinateIds(kSomebody);
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->user_exists);
  BOOST_TEST(found->tool_exists);
  BOOST_TEST(found->uids == "1 root\nx\n\n");
  BOOST_TEST(found->gids == "2 -g root\nx\n\n");
}

BOOST_FIXTURE_TEST_CASE(it_has_nothing_to_read, ToolDirectory) {
  Install("read line && exit 1; exit 0");
  BOOST_TEST(FindSubordinateIds(kSomebody).has_value());
}

// The command ignores the signal; a child that inherits this could write for ever.
BOOST_FIXTURE_TEST_CASE(a_broken_pipe_ends_it, ToolDirectory) {
  const auto before = std::signal(SIGPIPE, SIG_IGN);
  Install("kill -s PIPE $$; exit 0");
  const Error error = ErrorOf();
  std::signal(SIGPIPE, before);
  BOOST_TEST(error.message == "error retrieving additional uids for user \"root\": signal 13");
}

BOOST_FIXTURE_TEST_CASE(without_the_user_it_is_not_run, ToolDirectory) {
  Install("exit 1");
  const auto found = FindSubordinateIds("nobody-has-this-name");
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(!found->user_exists);
}

BOOST_FIXTURE_TEST_CASE(where_it_is_not_installed, ToolDirectory) {
  const auto missing = [] {
    const auto found = FindSubordinateIds(kSomebody);
    return found.has_value() && found->user_exists && !found->tool_exists;
  };
  BOOST_TEST(missing());
  SetPath("");
  BOOST_TEST(missing());
  SetPath("::/nonexistent:" + path() + "/nonexistent:");
  BOOST_TEST(missing());
  // Relative entries depend on the caller's directory; the node's tools are not there.
  Install("exit 1");
  SetPath(std::filesystem::relative(path()).string() + "::.");
  BOOST_TEST(missing());
  std::filesystem::remove(path() + "/getsubids");
  std::filesystem::create_directory(path() + "/getsubids");
  SetPath(path());
  BOOST_TEST(missing());
}

BOOST_FIXTURE_TEST_CASE(the_first_in_path_is_the_one, ToolDirectory) {
  Install("echo first");
  const testing::TempDir other;
  testing::WriteFile(other / "getsubids", "not executable");
  SetPath("/nonexistent:" + other.path().string() + ":" + path() + ":/usr/bin");
  const auto found = FindSubordinateIds(kSomebody);
  BOOST_TEST_REQUIRE(found.has_value());
  BOOST_TEST(found->uids == "first\n");
}

BOOST_FIXTURE_TEST_CASE(a_tool_that_fails_is_an_error, ToolDirectory) {
  Install("echo '0: root 65536 65536'; exit 3");
  BOOST_TEST(ErrorOf().message ==
             "error retrieving additional uids for user \"root\": exit status 3");
  Install("echo '0: root 65536 65536'; test \"$1\" != -g");
  const Error gids = ErrorOf();
  BOOST_TEST(gids.message == "error retrieving additional gids for user \"root\": exit status 1");
  BOOST_TEST(gids.hint.find("`getsubids -g root`") != std::string::npos, gids.hint);
  testing::WriteFile(path() + "/getsubids", "#!/nonexistent/interpreter\n");
  BOOST_TEST(ErrorOf().message ==
             "error retrieving additional uids for user \"root\": No such file or directory");
}

BOOST_FIXTURE_TEST_CASE(what_never_ends_is_cut, ToolDirectory) {
  Install("while :; do echo flood; done");
  BOOST_TEST(ErrorOf().message ==
             "error retrieving additional uids for user \"root\": it printed more than 4096 bytes");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::cli
