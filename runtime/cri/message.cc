#include "runtime/cri/message.h"

#include <span>

#include "store/base/go_json.h"

namespace waybill::cri {
namespace {

constexpr unsigned kKindBits = 3;
constexpr unsigned kVarint = 0;
constexpr unsigned kFixed64 = 1;
constexpr unsigned kBytes = 2;
constexpr unsigned kFixed32 = 5;
constexpr std::uint64_t kMaxField = (1U << 29U) - 1;

bool Count(Message message, std::span<const int> path, std::size_t most, std::size_t& fields) {
  while (message.Next()) {
    if (++fields > most) return true;
    if (path.empty() || message.field() != path[0] || !message.bytes()) continue;
    if (!Count(Message(*message.bytes()), path.subspan(1), most, fields)) return false;
    if (fields > most) return true;
  }
  return message.is_sound();
}

}  // namespace

bool Message::ReadVarint(std::uint64_t& number) {
  number = 0;
  for (unsigned shift = 0; shift < 64 && !left_.empty(); shift += 7) {
    const auto byte = static_cast<std::uint8_t>(left_.front());
    left_.remove_prefix(1);
    number |= std::uint64_t{byte & 0x7FU} << shift;
    if ((byte & 0x80U) == 0) return true;
  }
  return false;
}

bool Message::ReadValue(unsigned kind) {
  std::uint64_t size = 0;
  switch (kind) {
    case kVarint:
      if (!ReadVarint(size)) return false;
      number_ = size;
      return true;
    case kFixed64:
      size = 8;
      break;
    case kFixed32:
      size = 4;
      break;
    case kBytes:
      if (!ReadVarint(size)) return false;
      break;
    default:
      return false;
  }
  if (size > left_.size()) return false;
  if (kind == kBytes) bytes_ = left_.substr(0, size);
  left_.remove_prefix(size);
  return true;
}

bool Message::Next() {
  bytes_.reset();
  number_.reset();
  if (!is_sound_ || left_.empty()) return false;
  std::uint64_t tag = 0;
  is_sound_ = ReadVarint(tag) && tag >> kKindBits >= 1 && tag >> kKindBits <= kMaxField;
  field_ = static_cast<int>(tag >> kKindBits & kMaxField);
  is_sound_ = is_sound_ && ReadValue(static_cast<unsigned>(tag & 7U));
  return is_sound_;
}

void Message::Read(std::string& text) {
  if (!bytes_) return;
  is_sound_ = ValidUtf8Prefix(*bytes_) == bytes_->size();
  text = *bytes_;
}

void Message::Read(std::int64_t& number) const {
  if (number_) number = static_cast<std::int64_t>(*number_);
}

void Message::Read(bool& flag) const {
  if (number_) flag = *number_ != 0;
}

void Message::Add(std::vector<std::string>& texts) {
  if (bytes_) Read(texts.emplace_back());
}

std::string Field(int field, std::string_view bytes) {
  std::string made(1, static_cast<char>(static_cast<unsigned>(field) << kKindBits | kBytes));
  std::size_t size = bytes.size();
  for (; size >= 0x80; size >>= 7U) made.push_back(static_cast<char>(size | 0x80U));
  made.push_back(static_cast<char>(size));
  return made.append(bytes);
}

std::optional<std::pair<std::string, std::string>> ReadEntry(std::string_view bytes) {
  std::pair<std::string, std::string> entry;
  Message message(bytes);
  while (message.Next()) {
    if (message.field() == 1) message.Read(entry.first);
    if (message.field() == 2) message.Read(entry.second);
  }
  return message.is_sound() ? std::optional(std::move(entry)) : std::nullopt;
}

std::optional<std::size_t> CountFields(std::string_view answer, const std::vector<int>& path,
                                       std::size_t most) {
  std::size_t fields = 0;
  if (!Count(Message(answer), path, most, fields)) return std::nullopt;
  return fields;
}

}  // namespace waybill::cri
