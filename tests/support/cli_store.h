// A store in a temporary directory, and `waybill` commands on it.

#ifndef WAYBILL_TESTS_SUPPORT_CLI_STORE_H_
#define WAYBILL_TESTS_SUPPORT_CLI_STORE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/node_store.h"
#include "tests/support/run_command.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "tests/support/versions.h"

namespace waybill::testing {

class CliStore {
 public:
  std::filesystem::path operator/(const std::string& name) const { return dir_ / name; }
  std::string store() const { return (dir_ / "store").string(); }

  // `waybill COMMAND --store STORE MORE…`
  CommandResult Run(const std::string& command, const std::vector<std::string>& more = {},
                    const std::string& input = {}) const {
    std::vector<std::string> arguments = {command, "--store", store()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunWaybill(arguments, input);
  }
  // The same with -o json, and what it wrote, read.
  nlohmann::json Json(const std::string& command, std::vector<std::string> more = {},
                      const std::string& input = {}) const {
    more.insert(more.end(), {"-o", "json"});
    return nlohmann::json::parse(Run(command, more, input).out);
  }
  // A fresh store with a witness beside it.
  CommandResult Start(std::vector<std::string> more = {}, const std::string& input = {}) const {
    more.insert(more.end(), {"--witness", (dir_ / "witness").string()});
    return Run("start", more, input);
  }

 private:
  TempDir dir_;
};

// One that this process owns.
struct OwnedCliStore {
  OwnedCliStore() {
    if (store.Start().exit_code != 0) throw std::runtime_error("waybill start failed");
    owner = Must(NodeStore::Open({.directory = store.store(), .witness = Witness::Remembered()}));
  }
  CliStore store;
  std::unique_ptr<NodeStore> owner;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_CLI_STORE_H_
