// What a replay counts and prints.

#ifndef WAYBILL_TESTS_REPLAY_LOG_H_
#define WAYBILL_TESTS_REPLAY_LOG_H_

#include <cstdint>
#include <stdexcept>
#include <string>

namespace waybill::replay {

// A line that is not one of the three kinds, or lacks what its kind needs.
class MalformedLine : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class Log {
 public:
  static constexpr std::uint64_t kPrintedMax = 20;

  void EnterFile(std::string file) {
    file_ = std::move(file);
    compared_before_ = compared_;
  }
  void EnterLine(std::uint64_t line) { line_ = line; }
  // "file:line".
  std::string Where() const { return file_ + ":" + std::to_string(line_); }

  // Counts one comparison, and prints it where the two differ. `what` names what was compared.
  void Compare(const std::string& what, const std::string& expected, const std::string& got);
  void Same() { ++compared_; }
  // A difference that has more to tell than two values.
  void Different(const std::string& text);

  std::uint64_t compared() const { return compared_; }
  std::uint64_t different() const { return different_; }
  bool nothing_in_this_file() const { return compared_ == compared_before_; }

 private:
  std::string file_;
  std::uint64_t line_ = 0;
  std::uint64_t compared_ = 0;
  std::uint64_t compared_before_ = 0;
  std::uint64_t different_ = 0;
};

}  // namespace waybill::replay

#endif  // WAYBILL_TESTS_REPLAY_LOG_H_
