#include "guard/hole_command.h"

#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <utility>

namespace waybill::guard {
namespace {

constexpr std::size_t kMaxCommands = 4;
constexpr std::size_t kMaxWaitingHoles = 10'000;

}  // namespace

void HoleCommand::Run(const Hole& hole) {
  if (command_.empty()) return;
  if (waiting_.size() >= kMaxWaitingHoles) {
    say_("the command for holes is still busy; it does not hear of this one");
    return;
  }
  waiting_.push_back(hole);
  Continue();
}

void HoleCommand::Continue() {
  for (auto at = running_.begin(); at != running_.end();) {
    at = ::waitpid(*at, nullptr, WNOHANG) == 0 ? std::next(at) : running_.erase(at);
  }
  while (running_.size() < kMaxCommands && !waiting_.empty()) {
    const Hole hole = std::move(waiting_.front());
    waiting_.pop_front();
    Spawn(hole);
  }
}

void HoleCommand::Spawn(const Hole& hole) {
  std::array<std::string, 6> words = {"env",
                                      "WAYBILL_HOLE=" + std::string(HoleName(hole.kind)),
                                      "WAYBILL_IMAGE=" + hole.image,
                                      "/bin/sh",
                                      "-c",
                                      command_};
  std::array<char*, words.size() + 1> arguments = {};
  for (std::size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  pid_t pid = 0;
  const int error =
      ::posix_spawn(&pid, "/usr/bin/env", nullptr, &attributes, arguments.data(), environ);
  ::posix_spawnattr_destroy(&attributes);
  if (error != 0) {
    say_(std::string("the command for holes can't be run: ") + std::strerror(error));
    return;
  }
  running_.insert(pid);
}

}  // namespace waybill::guard
