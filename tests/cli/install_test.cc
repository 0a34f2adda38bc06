// `waybill install` on the node of --root. The seed of what is drawn is printed, and WAYBILL_SEED
// plays it again.

#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bindings/cli/node_files.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/run_command.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(install)

namespace {

namespace fs = std::filesystem;

constexpr const char* kConfig = "/etc/waybill/config.toml";
constexpr const char* kAside = "/etc/waybill/config.toml.before-waybill-install";
constexpr const char* kGuardUnit = "/etc/systemd/system/waybill-guard.service";

// Each file and link of a node, by its path.
std::map<std::string, std::string> FilesOf(const fs::path& root) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    const std::string path = "/" + entry.path().lexically_relative(root).string();
    if (entry.is_symlink()) {
      files[path] = "-> " + fs::read_symlink(entry.path()).string();
    } else if (entry.is_regular_file()) {
      // Of the command its beginning and its size.
      constexpr std::uintmax_t kLarge = std::uintmax_t{1} << 20;
      std::ifstream file(entry.path(), std::ios::binary);
      if (entry.file_size() > kLarge) {
        std::string begins(4, '\0');
        file.read(begins.data(), 4);
        files[path] = begins + std::to_string(entry.file_size());
      } else {
        files[path] = {std::istreambuf_iterator<char>(file), {}};
      }
    }
  }
  return files;
}

class Node {
 public:
  Node() { fs::create_directories(root() / "usr/local/bin"); }

  fs::path root() const { return dir_.path() / "node"; }
  fs::path On(const std::string& path) const { return root() / path.substr(1); }
  void Write(const std::string& path, const std::string& text) const {
    fs::create_directories(On(path).parent_path());
    fs::remove(On(path));
    std::ofstream(On(path)) << text;
  }
  std::map<std::string, std::string> files() const { return FilesOf(root()); }
  CommandResult Install(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"install", "--root", root().string()});
    return RunWaybill(more);
  }

 private:
  MemoryDir dir_;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_it_writes_it_takes_away, Node) {
  const auto before = files();
  BOOST_TEST(Install().exit_code == 0);
  auto now = files();
  BOOST_TEST(now["/usr/local/bin/waybill"] == "-> /opt/waybill/bin/waybill");
  BOOST_TEST(
      now["/opt/waybill/bin/waybill"].starts_with("\x7f"
                                                  "ELF"));
  BOOST_TEST(now[kGuardUnit].find("ExecStart=/opt/waybill/bin/waybill guard\n") !=
             std::string::npos);
  for (const auto& [path, text] : now) {
    BOOST_TEST(
        (path == "/opt/waybill/bin/waybill" || text.find("/usr/bin/waybill") == std::string::npos));
  }
  const auto mode = [&](const std::string& path) { return fs::status(On(path)).permissions(); };
  BOOST_TEST((mode("/opt/waybill/bin/waybill") == fs::perms(0755)));
  BOOST_TEST((mode(kGuardUnit) == fs::perms(0644)));

  BOOST_TEST(Install({"--dry-run", "--remove"}).exit_code == 0);
  BOOST_TEST((files() == now));
  const CommandResult again = Install({"-o", "json"});
  BOOST_TEST(again.out.find("\"written\":[]") != std::string::npos);
  BOOST_TEST((files() == now));

  BOOST_TEST(Install({"--remove"}).exit_code == 0);
  BOOST_TEST((files() == before));
  BOOST_TEST(Install({"--remove"}).out.find("nothing that `waybill install` wrote") !=
             std::string::npos);
}

BOOST_FIXTURE_TEST_CASE(a_configuration_goes_aside_and_comes_back, Node) {
  Write(kConfig, "store = \"/var/lib/mine\"\n");
  const auto before = files();
  const TempDir elsewhere;
  WriteFile(elsewhere / "new.toml", "first-start = \"close\"\n");
  const auto install_it = [&] {
    return Install({"--with-config", (elsewhere / "new.toml").string()});
  };
  BOOST_TEST(install_it().exit_code == 0);
  BOOST_TEST(files()[kConfig] == "first-start = \"close\"\n");
  // The place aside is taken.
  Write(kConfig, "store = \"/var/lib/another\"\n");
  BOOST_TEST(install_it().exit_code == 3);
  BOOST_TEST(files()[kConfig] == "store = \"/var/lib/another\"\n");
  Write(kConfig, "first-start = \"close\"\n");
  BOOST_TEST(Install({"--remove"}).exit_code == 0);
  BOOST_TEST((files() == before));
}

BOOST_FIXTURE_TEST_CASE(a_configuration_that_a_guard_refuses_changes_nothing, Node) {
  BOOST_TEST(Install().exit_code == 0);
  const auto before = files();
  const TempDir elsewhere;
  for (const char* const text : {"stor = \"/x\"\n", "cri = \"auto\"\n", "["}) {
    WriteFile(elsewhere / "new.toml", text);
    const CommandResult refused = Install({"--with-config", (elsewhere / "new.toml").string()});
    BOOST_TEST(refused.exit_code == 2, text);
    BOOST_TEST(refused.err.find("nothing was changed") != std::string::npos, refused.err);
    BOOST_TEST((files() == before));
  }
}

BOOST_FIXTURE_TEST_CASE(what_stands_in_its_place_stops_it_before_anything_is_written, Node) {
  fs::create_directories(On(kGuardUnit).parent_path());
  fs::create_symlink("/dev/null", On(kGuardUnit));  // masked
  const auto before = files();
  const CommandResult refused = Install();
  BOOST_TEST(refused.exit_code == 3);
  BOOST_TEST(refused.err.find(kGuardUnit) != std::string::npos);
  BOOST_TEST((files() == before));
}

BOOST_FIXTURE_TEST_CASE(a_list_that_names_other_files_removes_none, Node) {
  BOOST_TEST(Install().exit_code == 0);
  Write("/etc/shadow", "secret");
  for (const char* const path : {"/etc/shadow", "/etc/systemd/system/waybill-/../../../shadow"}) {
    Write("/opt/waybill/installed",
          "waybill 0.1.0\n2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b  " +
              std::string(path) + "\n");
    const auto before = files();
    BOOST_TEST(Install({"--remove"}).exit_code == 2);
    BOOST_TEST((files() == before));
  }
}

BOOST_FIXTURE_TEST_CASE(whatever_the_umask_nobody_else_may_write, Node) {
  const mode_t was = ::umask(0);
  const int code = Install().exit_code;
  ::umask(was);
  BOOST_TEST(code == 0);
  for (const auto& entry : fs::recursive_directory_iterator(On("/opt"))) {
    BOOST_TEST(((entry.status().permissions() & fs::perms(022)) == fs::perms::none),
               entry.path().string());
  }
}

BOOST_FIXTURE_TEST_CASE(no_link_of_the_root_leads_out_of_it, Node) {
  const TempDir machine;
  fs::create_directories(On("/opt"));
  fs::create_directory_symlink(machine.path(), On("/opt/waybill"));
  const CommandResult refused = Install();
  BOOST_TEST(refused.exit_code == 3);
  BOOST_TEST(refused.err.find("leads out of") != std::string::npos);
  BOOST_TEST(fs::is_empty(machine.path()));
}

BOOST_FIXTURE_TEST_CASE(what_a_killed_call_left_half_written_goes_too, Node) {
  const auto before = files();
  Write("/etc/waybill/config.toml.new", "the operator's");
  BOOST_TEST(Install().exit_code == 0);
  Write("/opt/waybill/bin/waybill.waybill-install", "half");
  Write(std::string(kGuardUnit) + ".waybill-install.tmp", "half");
  fs::remove(On(kGuardUnit));
  BOOST_TEST(Install({"--remove"}).exit_code == 0);
  auto now = files();
  BOOST_TEST(now["/etc/waybill/config.toml.new"] == "the operator's");
  now.erase("/etc/waybill/config.toml.new");
  BOOST_TEST((now == before));
}

// Until Settle it is not known that the guard runs with what is written.
BOOST_FIXTURE_TEST_CASE(a_call_that_ended_early_is_known_to_the_next, Node) {
  const cli::NodeFiles install(root(), "0.0");
  BOOST_TEST(!Must(install.Install("one", {}, false)).was_interrupted);
  Must(install.Settle());
  BOOST_TEST(!Must(install.Install("two", {}, false)).was_interrupted);
  const auto again = Must(install.Install("two", {}, false));
  BOOST_TEST(again.written.empty());
  BOOST_TEST(again.was_interrupted);
  Must(install.Settle());
  BOOST_TEST(!Must(install.Install("two", {}, false)).was_interrupted);
}

BOOST_FIXTURE_TEST_CASE(the_configuration_stays_with_a_package, Node) {
  BOOST_TEST(Install().exit_code == 0);
  Write("/usr/lib/systemd/system/waybill-guard.service", "the package's");
  BOOST_TEST(Install({"--remove"}).exit_code == 0);
  BOOST_TEST(files().contains(kConfig));
  BOOST_TEST(!files().contains(kGuardUnit));
}

// Installs, upgrades, failures half way, removals, and an operator who writes files of his own. No
// text of his is ever lost, and what ends with a removal leaves nothing else.
BOOST_AUTO_TEST_CASE(whatever_comes_nothing_of_the_operators_is_lost) {
  const std::uint64_t seed = SeedOfThisRun();
  Draw draw(seed);
  constexpr int kLives = 15;
  constexpr int kSteps = 12;
  for (int life = 0; life < kLives; ++life) {
    const Node node;
    const cli::NodeFiles install(node.root(), "0.0");
    std::set<std::string> own;  // the operator's texts
    bool has_unit = false;      // of his own
    const auto is_there = [&](const std::string& text) {
      const auto all = node.files();
      return std::any_of(all.begin(), all.end(), [&](const auto& f) { return f.second == text; });
    };
    for (int step = 0; step < kSteps; ++step) {
      switch (draw.Below(5)) {
        case 0: {
          const std::string path = draw.Below(2) == 0 ? kConfig : kGuardUnit;
          own.erase(node.files()[path]);
          const std::string text = "# of step " + std::to_string(step);
          node.Write(path, text);
          own.insert(text);
          has_unit = has_unit || path == kGuardUnit;
          break;
        }
        case 1:  // he takes his unit away again
          if (!has_unit) break;
          own.erase(node.files()[kGuardUnit]);
          fs::remove(node.On(kGuardUnit));
          has_unit = false;
          break;
        case 2:
          (void)install.Remove(draw.Below(4) == 0);
          break;
        default: {
          const bool fails = draw.Below(3) == 0;
          const fs::path in_the_way = node.On("/etc/tmpfiles.d");
          if (fails) {
            fs::remove_all(in_the_way);
            node.Write("/etc/tmpfiles.d", "");
          }
          const std::string command = "command " + std::to_string(draw.Below(2));
          std::optional<std::string> config;
          if (draw.Below(2) == 0) config = "config " + std::to_string(draw.Below(2));
          const auto done = install.Install(command, config, false);
          if (fails) {
            BOOST_TEST(!done.has_value());
            fs::remove(in_the_way);
          } else if (done) {
            BOOST_TEST(!has_unit);
            BOOST_TEST(node.files()["/opt/waybill/bin/waybill"] == command);
            if (config) BOOST_TEST(node.files()[kConfig] == *config);
          } else {
            BOOST_TEST((has_unit || node.files().contains(kAside)));
          }
        }
      }
      for (const std::string& text : own) {
        BOOST_TEST_REQUIRE(is_there(text), "seed " << seed << ", life " << life << ", step " << step
                                                   << ": lost " << text);
      }
    }
    Must(install.Remove(false));
    for (const auto& [path, text] : node.files()) {
      BOOST_TEST((own.contains(text) || path == "/etc/tmpfiles.d"),
                 "seed " << seed << ", life " << life << ": " << path << " is left: " << text);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
