// The command itself, on a recorded node.

#include <boost/test/unit_test.hpp>
#include <nlohmann/json.hpp>

#include "tests/doctor/recorded_node.h"
#include "tests/support/run_command.h"
#include "tests/support/tree.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(command)

namespace {

using testing::RecordedNode;

testing::CommandResult Doctor(const RecordedNode& node, std::vector<std::string> more = {}) {
  std::vector<std::string> arguments = {"doctor", "--root", node.options.root.string(), "--cri",
                                        node.options.cri};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return testing::RunWaybill(arguments);
}

}  // namespace

BOOST_AUTO_TEST_CASE(it_says_it_and_changes_nothing) {
  const RecordedNode node({{"kubelet", "v1.34.2"}, {"-/var/lib/waybill"}});
  const auto before = testing::TreeOf(node.options.root);
  const auto text = Doctor(node);
  BOOST_TEST(text.exit_code == 1);
  BOOST_TEST(text.err == "");
  BOOST_TEST(text.out.starts_with(
      "This node DOES NOT keep one tenant's images from another.\n16 checks: "));
  BOOST_TEST(text.out.find("\n  fail     kubelet-gate") != std::string::npos);
  // A screen.
  BOOST_TEST(std::count(text.out.begin(), text.out.end(), '\n') <= 50);
  const auto json = nlohmann::json::parse(Doctor(node, {"-o", "json"}).out);
  BOOST_TEST(json["protects"] == false);
  BOOST_TEST(json["findings"].size() >= 16U);
  BOOST_TEST(Doctor(node, {"-q"}).out == "kubelet-gate\n");
  BOOST_TEST((testing::TreeOf(node.options.root) == before));
}

BOOST_AUTO_TEST_CASE(what_the_first_line_says_is_the_exit_code) {
  const RecordedNode stock(
      {{"-/var/lib/waybill"}, {"-/var/lib/kubelet/image_manager/waybill-guard"}});
  const auto until = Doctor(stock);
  BOOST_TEST(until.exit_code == 1);
  BOOST_TEST(
      until.out.starts_with("This node keeps one tenant's images from another only until the "
                            "kubelet loses a record.\n16 checks: 2 warn, 14 ok\n"));
  const auto none = Doctor(RecordedNode({{"-/proc/4242"}, {"-/var/lib/waybill"}}));
  BOOST_TEST(none.exit_code == 4);
  BOOST_TEST(none.out.starts_with("It is NOT KNOWN whether this node keeps one tenant's images"));
}

BOOST_AUTO_TEST_CASE(each_check_has_its_heading) {
  const std::string page = testing::ReadFile(WAYBILL_FIXTURES "/../../docs/doctor.md");
  std::size_t headings = 0;
  for (auto at = page.find("\n### "); at != std::string::npos; at = page.find("\n### ", at + 1)) {
    ++headings;
  }
  BOOST_TEST(headings == doctor::Checks().size());
  for (const doctor::Check& check : doctor::Checks()) {
    const auto at = page.find("\n### `" + std::string(check.name) + "`\n");
    BOOST_TEST(at != std::string::npos, check.name);
    // Which of the two it is.
    const std::string about = page.substr(at, page.find("\n### ", at + 1) - at);
    BOOST_TEST((about.find("Concerns access.") != std::string::npos) == check.concerns_access,
               check.name);
  }
}

BOOST_AUTO_TEST_CASE(what_is_named_must_be_there) {
  const RecordedNode node;
  for (const char* flag : {"--kubelet-dir", "--store", "--kubelet-config"}) {
    const auto result = Doctor(node, {flag, "/nowhere"});
    BOOST_TEST(result.exit_code == 2);
    BOOST_TEST(result.err.find(std::string(flag) + ": /nowhere is not there") != std::string::npos);
  }
}

// Not a recorded one: whatever it is, each check says something, and the probes of files end.
BOOST_AUTO_TEST_CASE(this_machine) {
  doctor::Kernel kernel = doctor::ThisKernel();
  kernel.read_store = [](const std::filesystem::path&) {
    return Error{ErrorCode::kOwned, "not read", "nothing"};
  };
  const auto node = doctor::Node::Find({.cri = "unix:///nowhere"}, std::move(kernel));
  BOOST_REQUIRE(node);
  std::set<std::string> said;
  for (const doctor::Finding& finding : doctor::Examine(**node)) said.insert(finding.check);
  BOOST_TEST(said.size() == doctor::Checks().size());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
