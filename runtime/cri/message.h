// Reads protobuf's wire format, of which no byte is trusted: answers have a dozen fields that
// count, and protobuf would be a fifth of the command.

#ifndef WAYBILL_RUNTIME_CRI_MESSAGE_H_
#define WAYBILL_RUNTIME_CRI_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::cri {

// What all messages of an answer share.
struct Reading {
  std::size_t fields;    // that may still come: of two bytes each can become an object of a hundred
  bool is_sound = true;  // false: some bytes were no message, or a text that counts is not UTF-8
  bool is_too_much = false;  // more fields came
};

// The fields of a message, by their numbers. What is asked for as another kind than it was sent
// counts as missing, and what is missing is empty.
class Message {
 public:
  // `bytes` and `reading` outlive it.
  Message(std::string_view bytes, Reading& reading) : reading_(&reading) { Add(bytes); }

  // Of several the last.
  std::uint64_t Number(int field) const;
  std::string Text(int field) const;
  std::vector<std::string> Texts(int field) const;
  // A map from texts to texts.
  std::map<std::string, std::string> Map(int field) const;
  // One message, of which several are parts.
  Message Within(int field) const;
  template <typename Read>
  void Each(int field, const Read& read) const {
    for (const Part& part : parts_) {
      if (part.field == field && part.is_bytes) read(Message(part.bytes, *reading_));
    }
  }

 private:
  struct Part {
    int field = 0;
    bool is_bytes = false;
    std::uint64_t number = 0;
    std::string_view bytes = {};
  };

  void Add(std::string_view bytes);
  std::string Checked(std::string_view text) const;

  Reading* reading_;
  std::vector<Part> parts_;
};

// A field with these bytes, to be sent.
std::string Field(int field, std::string_view bytes);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_MESSAGE_H_
