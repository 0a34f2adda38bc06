// fixtures/wrong_calls.txt: calls that are wrong, by a flag, a file, a stream or the store. Each
// has its exit code and the first line that it writes to standard error, and changes nothing: every
// file is compared before and after, with its mode and owner. How the file is written stands at its
// head. WAYBILL_REWRITE=1 writes what this build says over it: read the difference before you
// commit it.

#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(wrong_calls)

namespace {

// What may change: whoever reads a store takes a slot in LMDB's table of readers, and who writes
// locks a file. Neither is part of what is stored.
bool IsLock(const std::filesystem::path& path) {
  return path.filename() == "lock.mdb" || path.filename() == "owner.lock";
}

// By path: type, mode, owner, and the content of files or the target of links.
std::map<std::string, std::string> Everything(const std::filesystem::path& root) {
  std::map<std::string, std::string> all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(root)) {
    if (IsLock(entry.path())) continue;
    struct stat stat {};
    if (::lstat(entry.path().c_str(), &stat) != 0) throw std::runtime_error("lstat failed");
    std::string& one = all[entry.path().lexically_relative(root).string()];
    one = std::to_string(stat.st_mode) + " " + std::to_string(stat.st_uid) + " ";
    if (S_ISLNK(stat.st_mode)) {
      one += std::filesystem::read_symlink(entry.path()).string();
    } else if (S_ISREG(stat.st_mode)) {
      // At once: character by character the largest takes longest of all.
      std::string content(static_cast<std::size_t>(stat.st_size), '\0');
      std::ifstream in(entry.path(), std::ios::binary);
      if (!in.read(content.data(), stat.st_size)) throw std::runtime_error("read failed");
      one += content;
    }
  }
  return all;
}

std::string FirstChange(const std::map<std::string, std::string>& before,
                        const std::map<std::string, std::string>& after) {
  for (const auto& [path, content] : before) {
    const auto there = after.find(path);
    if (there == after.end()) return path + " is gone";
    if (there->second != content) return path + " has changed";
  }
  for (const auto& [path, content] : after) {
    if (!before.contains(path)) return path + " is new";
  }
  return {};
}

// "2 error: …", of the call in `shell`.
std::string Outcome(const std::string& prelude, const std::string& call,
                    const std::filesystem::path& directory) {
  const CommandResult result = RunCommand({"/bin/bash", "-c", prelude + call});
  const std::string line = result.err.substr(0, result.err.find('\n'));
  return std::to_string(result.exit_code) + " " + Replaced(line, directory.string(), "DIR");
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_is_refused_and_changes_nothing) {
  const bool is_root = ::geteuid() == 0;
  const TempDir scratch;
  const std::string prelude = "cd '" + scratch.path().string() + "' && export WAYBILL_CLI='" +
                              WAYBILL_CLI + "' FIXTURES='" + WAYBILL_FIXTURES "'\n" +
                              ReadFile(WAYBILL_FIXTURES "/wrong_calls.bash");
  const CommandResult made = RunCommand({"/bin/bash", "-c", prelude + "make_world"});
  BOOST_TEST_REQUIRE(made.exit_code == 0, made.err);
  const auto before = Everything(scratch.path());

  const std::string table = ReadFile(WAYBILL_FIXTURES "/wrong_calls.txt");
  std::istringstream in(table);
  std::string rewritten;
  std::string call;
  bool as_root = false;
  std::size_t calls = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("$ ") || line.starts_with("root$ ")) {
      as_root = line.starts_with("root");
      call = line.substr(line.find("$ ") + 2);
    } else if (!call.empty()) {
      if (is_root || !as_root) {
        const std::string outcome = Outcome(prelude, call, scratch.path());
        const std::string change = FirstChange(before, Everything(scratch.path()));
        BOOST_TEST_REQUIRE(change.empty(), call << ": " << change << " (" << outcome << ")");
        BOOST_TEST(!outcome.starts_with("0"), call << ": " << outcome);
        if (std::getenv("WAYBILL_REWRITE") != nullptr) {
          line = outcome;
        } else {
          BOOST_TEST(outcome == line, call << ":\n  " << outcome << "\ninstead of\n  " << line);
        }
      }
      ++calls;
      call.clear();
    }
    rewritten += line + "\n";
  }
  BOOST_TEST(call.empty());
  BOOST_TEST(calls >= 100U);
  if (std::getenv("WAYBILL_REWRITE") != nullptr) {
    WriteFile(WAYBILL_FIXTURES "/wrong_calls.txt", rewritten);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
