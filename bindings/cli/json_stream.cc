#include "bindings/cli/json_stream.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "store/base/try.h"

namespace waybill::cli {
namespace {

std::string NameOf(const std::string& path) { return path == "-" ? "standard input" : path; }

}  // namespace

Result<JsonStream> JsonStream::Open(const std::string& path, std::size_t most) {
  internal::Fd fd(path == "-" ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                              : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd.valid()) {
    Error error = internal::SystemError(errno, "read", NameOf(path));
    error.code = ErrorCode::kInvalidArgument;
    return error;
  }
  return JsonStream(path, std::move(fd), most);
}

Error JsonStream::At(std::uint64_t offset, std::string_view what, ErrorCode code) const {
  return {code, fmt::format("{}: byte {}: {}", NameOf(path_), offset, what), {}};
}

std::string JsonStream::where() const { return fmt::format("{}: byte {}", NameOf(path_), began_); }

// More, behind what is left. False: there is no more.
Result<bool> JsonStream::Fill() {
  constexpr std::size_t kStep = std::size_t{64} << 10;
  const std::size_t before = buffer_.size();
  // In steps that grow: a long object is not to be copied for each.
  const std::size_t want = std::max(kStep, before);
  buffer_.resize(before + want);
  ssize_t got = -1;
  do {
    got = ::read(fd_.get(), buffer_.data() + before, want);
  } while (got < 0 && errno == EINTR);
  const int error_number = errno;
  buffer_.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got >= 0) return got > 0;
  Error error = internal::SystemError(error_number, "read", NameOf(path_));
  error.code = ErrorCode::kInvalidArgument;
  return error;
}

Result<std::optional<std::string_view>> JsonStream::Next() {
  before_ += at_;
  buffer_.erase(0, at_);
  at_ = 0;
  // Between objects.
  for (;; ++at_) {
    if (at_ == buffer_.size()) {
      before_ += at_;
      buffer_.clear();
      at_ = 0;
      if (TRY(Fill())) {
        --at_;
        continue;
      }
      if (!in_array_) return std::optional<std::string_view>();
      return At(before_, "the array breaks off", ErrorCode::kInvalidArgument);
    }
    const char c = buffer_[at_];
    if (c == '{') break;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') continue;
    if (c == ',' && in_array_) continue;
    if (c == '[' && !in_array_) {
      in_array_ = true;
      continue;
    }
    if (c == ']' && in_array_) {
      in_array_ = false;
      continue;
    }
    return At(before_ + at_, "expected an object of JSON, or an array of them",
              ErrorCode::kInvalidArgument);
  }
  const std::size_t first = at_;
  began_ = before_ + first;
  std::size_t depth = 0;
  bool in_string = false;
  bool escaped = false;
  for (;; ++at_) {
    if (at_ - first > most_) {
      return At(began_, fmt::format("an object has more than {} bytes", most_),
                ErrorCode::kLimitExceeded);
    }
    if (at_ == buffer_.size() && !TRY(Fill())) {
      return At(before_ + at_, "JSON breaks off", ErrorCode::kInvalidArgument);
    }
    const char c = buffer_[at_];
    if (in_string) {
      in_string = escaped || c != '"';
      escaped = !escaped && c == '\\';
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) break;
  }
  ++at_;
  return std::optional<std::string_view>(std::string_view(buffer_).substr(first, at_ - first));
}

}  // namespace waybill::cli
