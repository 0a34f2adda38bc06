#include "runtime/cri/message.h"

#include "store/base/go_json.h"

namespace waybill::cri {
namespace {

constexpr unsigned kKindBits = 3;
constexpr unsigned kVarint = 0;
constexpr unsigned kFixed64 = 1;
constexpr unsigned kBytes = 2;
constexpr unsigned kFixed32 = 5;
constexpr std::uint64_t kMaxField = (1U << 29U) - 1;

bool TakeVarint(std::string_view& left, std::uint64_t& number) {
  number = 0;
  for (unsigned shift = 0; shift < 64 && !left.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(left.front());
    left.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return true;
  }
  return false;
}

// How many bytes a value of that kind has, behind its length if it says one.
bool TakeSize(unsigned kind, std::string_view& left, std::uint64_t& size) {
  if (kind == kBytes) return TakeVarint(left, size) && size <= left.size();
  size = kind == kFixed64 ? 8 : 4;
  return (kind == kFixed64 || kind == kFixed32) && size <= left.size();
}

}  // namespace

void Message::Add(std::string_view bytes) {
  while (reading_->is_sound && !bytes.empty()) {
    reading_->is_too_much = reading_->is_too_much || reading_->fields == 0;
    if (reading_->is_too_much) return;
    --reading_->fields;
    std::uint64_t tag = 0;
    reading_->is_sound =
        TakeVarint(bytes, tag) && tag >> kKindBits >= 1 && tag >> kKindBits <= kMaxField;
    const auto kind = static_cast<unsigned>(tag & 7U);
    Part part{.field = static_cast<int>(tag >> kKindBits & kMaxField), .is_bytes = kind == kBytes};
    std::uint64_t size = 0;
    if (kind == kVarint) {
      reading_->is_sound = reading_->is_sound && TakeVarint(bytes, part.number);
    } else if (reading_->is_sound && TakeSize(kind, bytes, size)) {
      part.bytes = bytes.substr(0, size);
      bytes.remove_prefix(size);
    } else {
      reading_->is_sound = false;
    }
    if (kind == kVarint || kind == kBytes) parts_.push_back(part);
  }
}

std::uint64_t Message::Number(int field) const {
  std::uint64_t number = 0;
  for (const Part& part : parts_) {
    if (part.field == field && !part.is_bytes) number = part.number;
  }
  return number;
}

std::string Message::Checked(std::string_view text) const {
  if (ValidUtf8Prefix(text) != text.size()) reading_->is_sound = false;
  return std::string(text);
}

std::string Message::Text(int field) const {
  std::string_view text;
  for (const Part& part : parts_) {
    if (part.field == field && part.is_bytes) text = part.bytes;
  }
  return Checked(text);
}

std::vector<std::string> Message::Texts(int field) const {
  std::vector<std::string> texts;
  for (const Part& part : parts_) {
    if (part.field == field && part.is_bytes) texts.push_back(Checked(part.bytes));
  }
  return texts;
}

std::map<std::string, std::string> Message::Map(int field) const {
  std::map<std::string, std::string> map;
  Each(field, [&](const Message& entry) { map[entry.Text(1)] = entry.Text(2); });
  return map;
}

Message Message::Within(int field) const {
  Message whole({}, *reading_);
  for (const Part& part : parts_) {
    if (part.field == field && part.is_bytes) whole.Add(part.bytes);
  }
  return whole;
}

std::string Field(int field, std::string_view bytes) {
  std::string made(1, static_cast<char>(static_cast<unsigned>(field) << kKindBits | kBytes));
  std::size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7U) made.push_back(static_cast<char>(size | 0x80U));
  made.push_back(static_cast<char>(size));
  return made.append(bytes);
}

}  // namespace waybill::cri
