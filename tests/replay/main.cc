// waybill_replay FILE...: plays files of traces, records or names, as the real kubelet wrote and
// answered them, against a scratch store under the kubelet's rules; and histories of our own, under
// both sets of rules.
//
// Exit code 0: no difference. 1: some, the first of them printed. 2: bad usage, a file that can't
// be read, a line that is malformed, or a file in which there was nothing to compare.

#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tests/replay/log.h"
#include "tests/replay/player.h"

namespace waybill::replay {

std::unique_ptr<Player> MakePlayerFor(const nlohmann::json& first_line) {
  if (first_line.is_object()) {
    if (first_line.contains("let")) return MakeHistoryPlayer();
    if (first_line.contains("op")) return MakeTracePlayer();
    if (first_line.contains("kind") && first_line.contains("case")) return MakeRecordPlayer();
    if (first_line.contains("image") && first_line.contains("normalised")) return MakeNamePlayer();
  }
  throw MalformedLine(
      "neither a history (\"let\"), nor a trace (\"op\"), nor a record (\"kind\", \"case\"), nor "
      "a name (\"image\", \"normalised\")");
}

namespace {

constexpr std::size_t kMaxLineBytes = std::size_t{64} << 20U;

// False at the end of the file.
bool ReadLine(std::istream& in, std::string& line) {
  line.clear();
  int c = in.get();
  if (c == std::istream::traits_type::eof()) return false;
  for (; c != std::istream::traits_type::eof() && c != '\n'; c = in.get()) {
    if (line.size() == kMaxLineBytes) throw MalformedLine("the line is longer than 64 MiB");
    line += static_cast<char>(c);
  }
  return true;
}

// False, and the reason printed, where the file is not fit to be compared.
bool PlayFile(const std::string& file, Log& log) {
  log.EnterFile(file);
  std::ifstream in(file, std::ios::binary);
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(file, ignored)) {
    fmt::print(stderr, "error: {} can't be read\n", file);
    return false;
  }
  std::unique_ptr<Player> player;
  std::string text;
  std::uint64_t number = 0;
  try {
    while (true) {
      log.EnterLine(++number);
      if (!ReadLine(in, text)) break;
      if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
      const nlohmann::json line = nlohmann::json::parse(text);
      if (!player) player = MakePlayerFor(line);
      player->Play(line, log);
    }
  } catch (const nlohmann::json::exception& e) {
    fmt::print(stderr, "error: {}: malformed line: {}\n", log.Where(), e.what());
    return false;
  } catch (const MalformedLine& e) {
    fmt::print(stderr, "error: {}: malformed line: {}\n", log.Where(), e.what());
    return false;
  } catch (const std::exception& e) {
    fmt::print(stderr, "error: {}: {}\n", log.Where(), e.what());
    return false;
  }
  if (in.bad()) {
    fmt::print(stderr, "error: {} can't be read past line {}\n", file, number - 1);
    return false;
  }
  if (log.nothing_in_this_file()) {
    fmt::print(stderr, "error: {} holds nothing to compare\n", file);
    return false;
  }
  return true;
}

int Main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (argc < 2 || first == "--help" || first == "-h") {
    fmt::print(argc < 2 ? stderr : stdout,
               "usage: waybill_replay FILE...\n\n"
               "Plays JSON lines of traces, records or names that a real kubelet wrote and\n"
               "answered, and prints where waybill, under the kubelet's rules, differs;\n"
               "histories under both sets of rules.\n\n"
               "exit code: 0 no difference, 1 differences, 2 a file is not fit to be compared\n");
    return argc < 2 ? 2 : 0;
  }
  Log log;
  bool sound = true;
  for (int i = 1; i < argc; ++i) {
    sound = PlayFile(argv[i], log) && sound;
    std::fflush(stdout);
  }
  fmt::print("{} compared, {} different\n", log.compared(), log.different());
  if (!sound) return 2;
  return log.different() == 0 ? 0 : 1;
}

}  // namespace

}  // namespace waybill::replay

int main(int argc, char** argv) { return waybill::replay::Main(argc, argv); }
