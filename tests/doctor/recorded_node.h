// A node in a folder, in which nothing is wrong. A row changes it, and says which check has to name
// that.

#ifndef WAYBILL_TESTS_DOCTOR_RECORDED_NODE_H_
#define WAYBILL_TESTS_DOCTOR_RECORDED_NODE_H_

#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "doctor/checks.h"
#include "doctor/node.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

// One change of a node:
//
//   "/path"        the file is written      "cri/NAME"     an answer of the runtime
//   "+/path"       ... appended to          "process PID"  a process of root's, by its command line
//   "-/path"       ... or folder, removed   "kubelet"      its release, and further flags
//   "=/path"       a symlink to `what`      "ids PID"      what its uid_map and gid_map say
//   "free PATH", "newer PATH"               its MiB; a file's date, in days from now
//   "store FIELD", "gave POD"               what the store says; a pod's host IDs, "FIRST LENGTH"
//   "options FIELD"                         of NodeOptions
//   "unlock PATH", "lock PATH", "used"      files that a process holds; the kubelet directory's
//   mark
struct Change {
  std::string where;
  std::string what = {};
};

class RecordedNode {
 public:
  RecordedNode();
  explicit RecordedNode(const std::vector<Change>& changes) : RecordedNode() { Make(changes); }

  void Make(const std::vector<Change>& changes);
  std::filesystem::path At(const std::string& path) const;
  doctor::Findings Examine() const;

  doctor::NodeOptions options;
  doctor::Kernel kernel;

 private:
  void Write(const std::string& path, const std::string& content);
  void RunsKubelet(const std::string& version_and_flags);

  TempDir dir_;
  std::set<std::string> locked_ = {};
  std::set<std::string> full_ = {};
  std::int64_t free_mib_ = 40'000;
  bool used_ = false;
  Result<doctor::StoreFacts> facts_;
};

// A line for each finding that is not ok: "fail kubelet-gate: what was seen".
std::string Wrong(const doctor::Findings& findings);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_DOCTOR_RECORDED_NODE_H_
