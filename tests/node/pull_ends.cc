// pull_ends SOCKET: reads "ID BEGAN ENDED REPOSITORY" of pulls that ended (CLOCK_BOOTTIME in
// nanoseconds; BEGAN may be -), and writes, when all that each can bring is known, "ID NAME…": what
// CRI lists of that repository. pull_ends.py compares that with what comes later.

#include "runtime/cri/pull_ends.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <iostream>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "runtime/cri/containerd.h"
#include "runtime/cri/runtime_client.h"

namespace {

using waybill::cri::Client;
using waybill::cri::ClientOptions;
using waybill::cri::Containerd;
using waybill::cri::NotShown;
using waybill::cri::PullEnds;

struct Pull {
  std::int64_t ended = 0;
  std::string repository = {};

  bool Gave(const std::string& name) const {
    return name.starts_with(repository + ":") || name.starts_with(repository + "@");
  }
};
using Pulls = std::map<std::string, Pull>;

// For half a second. False: no more will come.
bool Read(Pulls& pulls) {
  using Clock = std::chrono::steady_clock;
  static std::string unread;
  const auto until = Clock::now() + std::chrono::milliseconds(500);
  while (Clock::now() < until) {
    pollfd readable = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, 50) != 1) continue;
    std::array<char, 4096> bytes;
    const ssize_t count = ::read(STDIN_FILENO, bytes.data(), bytes.size());
    if (count <= 0) return false;
    unread.append(bytes.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = unread.find('\n')) != unread.npos; unread.erase(0, end + 1)) {
      std::istringstream line(unread.substr(0, end));
      std::string id;
      std::string began;  // is not needed
      Pull pull;
      line >> id >> began >> pull.ended >> pull.repository;
      pulls[id] = pull;
    }
  }
  return true;
}

// Of the pulls that are quiet, those whose images CRI shows: written, and forgotten. False:
// somebody did not answer.
bool Judge(const ClientOptions& options, const Containerd& containerd, const PullEnds& ends,
           Pulls& pulls) {
  std::set<std::string> quiet;
  for (const auto& [id, pull] : pulls) {
    if (ends.Quiet(pull.ended)) quiet.insert(id);
  }
  if (quiet.empty()) return true;
  const auto records = containerd.Images();
  const auto client = Client::Connect(options);
  if (!records || !client) return false;
  const auto list = (*client)->ListImages();
  if (!list) return false;
  const auto missing = NotShown(*records, *list);
  for (const std::string& id : quiet) {
    const Pull pull = pulls[id];
    std::set<std::string> targets;
    for (const auto& record : *records) {
      if (pull.Gave(record.name)) targets.insert(record.target);
    }
    const bool complete = std::none_of(records->begin(), records->end(), [&](const auto& record) {
      return targets.contains(record.target) &&
             std::find(missing.begin(), missing.end(), record.name) != missing.end();
    });
    if (!complete) continue;
    std::cout << id;
    for (const auto& image : *list) {
      for (const auto* names : {&image.repo_tags, &image.repo_digests}) {
        for (const std::string& name : *names) {
          if (pull.Gave(name)) std::cout << " " << name << "=" << image.id;
        }
      }
    }
    std::cout << std::endl;
    pulls.erase(id);
  }
  return true;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const ClientOptions options{.endpoint = arguments[1]};
  const Containerd containerd(options);
  PullEnds ends;
  Pulls pulls;
  while (Read(pulls)) {
    auto look = containerd.LookAtPulls();
    if (look) ends.Saw(*std::move(look));
    if (!look || !Judge(options, containerd, ends, pulls)) ends.Failed();
  }
}
