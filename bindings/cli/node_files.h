// What `waybill install` has on a node: the command, its units, its configuration. The list of
// them, /opt/waybill/installed, has the SHA-256 of each file as it was written (of a link: its
// target), so that only what nobody changed is replaced or taken away:
//
//   waybill 0.1.0
//   5feceb66ffc86f38d952786c6d696c79c2dbc239dd4e91b46729d73a27fb57e9  /etc/waybill/config.toml
//   -> /opt/waybill/bin/waybill  /usr/local/bin/waybill

#ifndef WAYBILL_BINDINGS_CLI_NODE_FILES_H_
#define WAYBILL_BINDINGS_CLI_NODE_FILES_H_

#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace waybill::cli {

inline constexpr const char* kInstallDirectory = "/opt/waybill";

// Paths as the node has them.
struct NodeFileChanges {
  std::string was = {};  // the version that was installed; empty: none
  std::vector<std::string> written = {};
  std::vector<std::string> unchanged = {};
  std::vector<std::string> removed = {};
  std::vector<std::string> kept = {};  // somebody else's, or changed by somebody
  // A call before wrote some of this, and did not say Settle.
  bool was_interrupted = false;
  // Where the configuration is that a given one replaced, or from where Remove puts it back.
  std::optional<std::string> set_aside = {};
};

class NodeFiles {
 public:
  // Of the node whose root directory is there; `version`: of what Install writes.
  NodeFiles(std::filesystem::path root, std::string version)
      : root_(std::move(root)), version_(std::move(version)) {}

  // Whether a package of the distribution has its units there.
  Result<bool> HasPackage() const;

  // `config`: /etc/waybill/config.toml; without it the one that is there stays, or a usual one is
  // written. Each file is replaced in one step, after the list names it, so that a call that was
  // interrupted can be repeated, or taken back.
  Result<NodeFileChanges> Install(std::string_view command,
                                  const std::optional<std::string>& config, bool dry_run) const;
  // What Install wrote is in use: of what was there before nothing is known any more.
  Result<void> Settle() const;
  // Takes away what Install wrote. Stores, witnesses and backups are none of it.
  Result<NodeFileChanges> Remove(bool dry_run) const;

 private:
  struct File;
  // Path to hash, or to "-> TARGET": of what is there, and of what is being written.
  using Listed = std::map<std::string, std::set<std::string>>;
  struct List {
    std::string version;
    Listed files;
  };

  // That no link of another root leads to this machine's files.
  Result<void> CheckInside() const;
  std::filesystem::path On(const std::string& path) const;
  std::vector<File> Wanted(std::string_view command,
                           const std::optional<std::string>& config) const;
  Result<List> ReadList() const;
  Result<void> WriteList(const List& list) const;
  // As in the list; empty: there is nothing.
  Result<std::string> StateOf(const std::string& path) const;
  Result<void> Write(const File& file) const;
  Result<void> TakeAway(const std::string& path) const;

  std::filesystem::path root_;
  std::string version_;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_NODE_FILES_H_
