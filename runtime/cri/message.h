// Reads protobuf's wire format, of which no byte is trusted: answers have a dozen fields that
// count, and protobuf would be a fifth of the command.

#ifndef WAYBILL_RUNTIME_CRI_MESSAGE_H_
#define WAYBILL_RUNTIME_CRI_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace waybill::cri {

// The fields of a message, one after the other. What is asked for as another kind than it was sent
// counts as unknown, and is passed over.
class Message {
 public:
  // `bytes` outlives it.
  explicit Message(std::string_view bytes) : left_(bytes) {}

  // Goes on to the next field. False: there is none, or these bytes are no message.
  bool Next();
  int field() const { return field_; }
  bool is_sound() const { return is_sound_; }

  // nullopt: the field is a number.
  std::optional<std::string_view> bytes() const { return bytes_; }
  // A number is the last one sent; so is a text, which must be UTF-8.
  void Read(std::string& text);
  void Read(std::int64_t& number) const;
  void Read(bool& flag) const;
  void Add(std::vector<std::string>& texts);
  // `read` takes the bytes of a message, and says whether they are sound.
  template <typename Reader>
  void Within(const Reader& read) {
    if (bytes_ && !read(*bytes_)) is_sound_ = false;
  }

 private:
  bool ReadVarint(std::uint64_t& number);
  bool ReadValue(unsigned kind);

  std::string_view left_;
  int field_ = 0;
  std::optional<std::string_view> bytes_;
  std::optional<std::uint64_t> number_;
  bool is_sound_ = true;
};

// A field with these bytes, to be sent.
std::string Field(int field, std::string_view bytes);

// An entry of a map from texts to texts.
std::optional<std::pair<std::string, std::string>> ReadEntry(std::string_view bytes);

// The fields of `answer`, with those of the messages in its field path[0], of the messages in their
// field path[1], and so on; it stops above `most`. nullopt: these are no messages. Two bytes of an
// answer may become an object of a hundred.
std::optional<std::size_t> CountFields(std::string_view answer, const std::vector<int>& path,
                                       std::size_t most);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_MESSAGE_H_
