// The four kinds of fixture files, each played line by line through the public API.

#ifndef WAYBILL_TESTS_REPLAY_PLAYER_H_
#define WAYBILL_TESTS_REPLAY_PLAYER_H_

#include <memory>
#include <nlohmann/json.hpp>

#include "tests/replay/log.h"

namespace waybill::replay {

class Player {
 public:
  virtual ~Player() = default;
  // Throws MalformedLine.
  virtual void Play(const nlohmann::json& line, Log& log) = 0;
};

// {"op":…}: a history of one node, with the kubelet's answers and states.
std::unique_ptr<Player> MakeTracePlayer();
// {"let":…}: histories of many nodes, with the answers of both sets of rules.
std::unique_ptr<Player> MakeHistoryPlayer();
// {"kind":…,"case":…}: one record file a line, with the kubelet's verdict.
std::unique_ptr<Player> MakeRecordPlayer();
// {"image":…,"normalised":…}: one image string a line.
std::unique_ptr<Player> MakeNamePlayer();

// The player for files that begin with `first_line`.
std::unique_ptr<Player> MakePlayerFor(const nlohmann::json& first_line);

}  // namespace waybill::replay

#endif  // WAYBILL_TESTS_REPLAY_PLAYER_H_
