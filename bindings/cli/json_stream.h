// The objects of a file of JSON, one after the other: of an array, of lines, or one behind another
// as `kubectl get -w` prints them. Memory for one object, however long the file is.

#ifndef WAYBILL_BINDINGS_CLI_JSON_STREAM_H_
#define WAYBILL_BINDINGS_CLI_JSON_STREAM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "store/base/files.h"
#include "waybill/result.h"

namespace waybill::cli {

class JsonStream {
 public:
  // "-" is standard input. `most`: bytes of one object.
  static Result<JsonStream> Open(const std::string& path, std::size_t most);

  // The text of the next object, until the next call; what is in it is not looked at. nullopt: that
  // was all. kInvalidArgument: something else than objects, or the file breaks off; kLimitExceeded.
  // Errors name the file.
  Result<std::optional<std::string_view>> Next();
  // "events.json: byte 123": where the object began.
  std::string where() const;

 private:
  JsonStream(std::string path, internal::Fd fd, std::size_t most)
      : path_(std::move(path)), fd_(std::move(fd)), most_(most) {}
  Result<bool> Fill();
  Error At(std::uint64_t offset, std::string_view what, ErrorCode code) const;

  std::string path_;
  internal::Fd fd_;
  std::size_t most_;
  std::string buffer_;
  std::size_t at_ = 0;        // in buffer_: what is not looked at yet
  std::uint64_t before_ = 0;  // bytes of the file before buffer_
  std::uint64_t began_ = 0;
  bool in_array_ = false;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_JSON_STREAM_H_
