// Runs the operator's command for each hole that the guard closed, a few at a time.

#ifndef WAYBILL_GUARD_HOLE_COMMAND_H_
#define WAYBILL_GUARD_HOLE_COMMAND_H_

#include <sys/types.h>

#include <deque>
#include <functional>
#include <set>
#include <string>

#include "guard/life.h"

namespace waybill::guard {

// Not thread-safe.
class HoleCommand {
 public:
  explicit HoleCommand(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

  // For /bin/sh, with WAYBILL_HOLE and WAYBILL_IMAGE. Empty: none.
  void set_command(std::string command) { command_ = std::move(command); }
  void Run(const Hole& hole);
  // After a command may have ended (SIGCHLD).
  void Continue();

 private:
  void Spawn(const Hole& hole);

  std::string command_;
  std::function<void(const std::string&)> say_;
  std::set<pid_t> running_;
  std::deque<Hole> waiting_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_HOLE_COMMAND_H_
