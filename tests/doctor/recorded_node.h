// A node in a folder, in which nothing is wrong. A test changes one thing, and says which check has
// to name it.

#ifndef WAYBILL_TESTS_DOCTOR_RECORDED_NODE_H_
#define WAYBILL_TESTS_DOCTOR_RECORDED_NODE_H_

#include <filesystem>
#include <set>
#include <string>

#include "doctor/checks.h"
#include "doctor/node.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

class RecordedNode {
 public:
  RecordedNode();

  // Files of the node; paths begin with "/". Missing folders are made.
  void Write(const std::string& path, const std::string& content);
  void Append(const std::string& path, const std::string& content);
  // `from` must be there.
  void Replace(const std::string& path, const std::string& from, const std::string& to);
  void Remove(const std::string& path);
  void Link(const std::string& path, const std::string& to);
  // One of its runtime's answers: "images.json".
  void Answer(const std::string& name, const std::string& content);
  std::string AnswerOf(const std::string& name) const;

  // A process with these IDs, as its uid_map and gid_map say.
  void Maps(const std::string& pid, const std::string& ids);

  // The kubelet's release, as its makers link it in, and its further flags.
  void RunsKubelet(const std::string& version, const std::string& flags = {});

  std::filesystem::path At(const std::string& path) const;
  doctor::Findings Examine() const;

  doctor::NodeOptions options;
  doctor::Kernel kernel;
  std::set<std::string> locked = {};  // files that a process holds, without the first slash

 private:
  TempDir dir_;
};

// A line for each finding that is not ok: "fail kubelet-gate: what was seen".
std::string Wrong(const doctor::Findings& findings);

// That check, and no other, says `verdict`, and its line has `words`. What to do next is said.
void ExpectOnly(const RecordedNode& node, const std::string& check, const std::string& verdict,
                const std::string& words);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_DOCTOR_RECORDED_NODE_H_
