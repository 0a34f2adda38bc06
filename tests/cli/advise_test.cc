// waybill advise --trace, asked about nodes of which all is known: their traces are made by the
// simulator of ../../bench/sizing.

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/sizing/trace.h"
#include "tests/support/run_command.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(advise)

namespace {

using nlohmann::json;

class Node {
 public:
  Node(const cli::NodeShape& shape, double days) : path_((directory_ / "node.trace").string()) {
    WriteFile(path_, bench::TraceText(shape, 1, days));
  }

  std::string operator/(const std::string& name) const { return (directory_ / name).string(); }

  json Ask(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), {"advise", "-o", "json", "--trace", path_});
    const CommandResult result = RunWaybill(more);
    BOOST_TEST(result.exit_code == 0, result.err);
    return json::parse(result.out);
  }

 private:
  TempDir directory_;
  std::string path_;
};

cli::NodeShape Default() { return *cli::FindPreset("default"); }

void CheckNear(double found, double truth, double part, const std::string& what) {
  BOOST_TEST(std::abs(found - truth) <= part * truth,
             what << ": " << found << ", and it was " << truth);
}

}  // namespace

// The same node with twice as many tenants, foretold, and as it is then.
BOOST_AUTO_TEST_CASE(twice_as_many_tenants_are_foretold) {
  const Node before(Default(), 7);
  const json foretold = before.Ask({"--tenants", "50"});
  cli::NodeShape shape = Default();
  shape.tenants *= 2;
  shape.secrets_per_image *= 2;
  const Node after(shape, 7);
  const json truth = after.Ask();
  BOOST_TEST(before.Ask()["pullsPerDay"].get<double>() < 0.7 * truth["pullsPerDay"].get<double>());
  for (const char* const key : {"pullsPerDay", "bytesPerRecord", "records", "flushesPerDay",
                                "writtenBytesPerDay", "decisionsPerDay"}) {
    CheckNear(foretold[key], truth[key], 0.2, key);
  }
}

BOOST_AUTO_TEST_CASE(curves_are_written_as_picture_table_and_json) {
  const Node node(*cli::FindPreset("edge"), 7);
  const json answer = node.Ask({"--curves", node / "c"});
  const json curves = json::parse(ReadFile(node / "c.json"));
  const json& records = curves["records"];
  BOOST_TEST(records["points"].size() > 10U);
  // Room for all: first uses alone.
  CheckNear(records["points"].back()["requests"], records["firstRequests"], 1e-9, "records");
  const std::size_t points = records["points"].size() + curves["imageDisk"]["points"].size();
  const std::string table = ReadFile(node / "c.csv");
  BOOST_TEST(static_cast<std::size_t>(std::count(table.begin(), table.end(), '\n')) == points + 1);

  // More disk, less that is pulled again; what the answer says is on the curve.
  const json& disk = curves["imageDisk"]["points"];
  BOOST_TEST(disk.front()["diskBytes"] == answer["imageDisk"]["leastBytes"]);
  BOOST_TEST(disk.front()["again"].get<int>() > disk.back()["again"].get<int>());
  BOOST_TEST(disk.back()["again"] == 0);
  for (const json& point : disk) {
    const auto size = point["diskBytes"].get<std::uint64_t>();
    const auto again = point["againBytes"].get<double>();
    const auto first = point["pulledBytes"].get<double>() - again;
    if (size >= answer["imageDisk"]["tenthAgainBytes"]) BOOST_TEST(again <= first / 10);
    if (size >= answer["imageDisk"]["nothingAgainBytes"]) BOOST_TEST(again == 0);
  }
  BOOST_TEST(disk.front()["withoutRoom"] == 0);

  const std::string picture = ReadFile(node / "c.svg");
  BOOST_TEST(picture.starts_with("<svg "));
  BOOST_TEST(picture.ends_with("</svg>\n"));
  for (const char* const word : {"nan", "inf"}) {
    BOOST_TEST(picture.find(word) == std::string::npos, word);
  }
  for (const char* const word :
       {">LRU<", ">first uses<", "GiB a day", "pulls a day", "records that it holds",
        ">node.trace: 7.0 days<", ": what runs at once<", ": nothing again<", ": a kubelet's<",
        "sizes as unpacked on containerd, estimated"}) {
    BOOST_TEST(picture.find(word) != std::string::npos, word);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
