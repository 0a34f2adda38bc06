#include "bench/peers/resident.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace waybill::bench {

namespace {

// "RssAnon:      1234 kB" in /proc/self/status.
std::size_t PrivateBytes() {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("RssAnon:")) return std::stoul(line.substr(8)) * 1024;
  }
  throw std::runtime_error("/proc/self/status has no RssAnon");
}

// The Rss of each mapping of a file below `directory`, in /proc/self/smaps.
std::size_t MappedBytes(const std::string& directory) {
  std::ifstream in("/proc/self/smaps");
  std::size_t bytes = 0;
  bool ours = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("Rss:")) {
      if (ours) bytes += std::stoul(line.substr(4)) * 1024;
    } else if (line.find(": ") == std::string::npos) {  // the head of a mapping
      ours = line.find(" " + directory + "/") != std::string::npos;
    }
  }
  return bytes;
}

}  // namespace

int RunResident(Peer& peer, std::size_t records) {
  const Questions questions(records);
  const std::size_t before = PrivateBytes();
  peer.Open();
  for (std::size_t i = 0; i < records; ++i) {
    if (!peer.Read(questions[i])) throw std::runtime_error("a record was not found");
  }
  const std::size_t after = PrivateBytes();
  fmt::print("{} {}\n", after > before ? after - before : 0,
             MappedBytes(peer.directory().string()));
  peer.Close();
  return 0;
}

Resident ResidentAfterReads(const Peer& peer, std::size_t records) {
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string command =
      fmt::format("'{}' --resident '{}' --store '{}' --records {}", program, peer.name(),
                  peer.directory().parent_path().string(), records);
  FILE* const pipe = popen(command.c_str(), "r");
  std::array<char, 128> line{};
  const bool printed = pipe != nullptr && std::fgets(line.data(), line.size(), pipe) != nullptr;
  if (pipe == nullptr || pclose(pipe) != 0 || !printed) {
    throw std::runtime_error("this failed: " + command);
  }
  Resident resident;
  std::istringstream(line.data()) >> resident.private_bytes >> resident.mapped_bytes;
  return resident;
}

}  // namespace waybill::bench
