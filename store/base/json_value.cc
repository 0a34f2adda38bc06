#include "store/base/json_value.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace waybill::internal {

using Parsed = nlohmann::ordered_json;

struct Json::Codec {
  static constexpr int kMaxLevels = 64;

  // Returns whether it has no more levels than that.
  static bool Take(const Parsed& from, Json& to, int levels = kMaxLevels) {
    if (levels == 0) return false;
    if (from.is_boolean()) {
      to = from.get<bool>();
    } else if (from.is_number_unsigned()) {
      to = from.get<std::uint64_t>();
    } else if (from.is_number_integer()) {
      to = from.get<std::int64_t>();
    } else if (from.is_number()) {
      to = from.get<double>();
    } else if (from.is_string()) {
      to = from.get_ref<const std::string&>();
    } else if (from.is_array()) {
      to = array();
      for (const Parsed& element : from) {
        if (!Take(element, to.push_back(nullptr), levels - 1)) return false;
      }
    } else if (from.is_object()) {
      to = object();
      for (const auto& [key, field] : from.items()) {
        if (!Take(field, to.fields_.emplace_back(key, nullptr).second, levels - 1)) return false;
      }
    }
    return !from.is_discarded();
  }

  std::string& out;
  bool ascii;
  bool indented;

  void String(const std::string& text) const {
    out += nlohmann::json(text).dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
  }

  // Of an array or object, each of which Write writes.
  template <typename All, typename Write>
  void List(const All& all, std::size_t indent, char first, char last, const Write& write) const {
    out += first;
    bool is_first = true;
    for (const auto& one : all) {
      if (!is_first) out += ',';
      is_first = false;
      if (indented) out.append("\n").append(indent + 2, ' ');
      write(one);
    }
    if (indented && !all.empty()) out.append("\n").append(indent, ' ');
    out += last;
  }

  void Value(const Json& value, std::size_t indent) const {
    switch (value.kind_) {
      case Kind::kNull:
        out += "null";
        break;
      case Kind::kBoolean:
        out += value.is_true() ? "true" : "false";
        break;
      case Kind::kNumber:
        out += std::to_string(value.number_);
        break;
      case Kind::kNegative:
        out += std::to_string(static_cast<std::int64_t>(value.number_));
        break;
      case Kind::kReal:
        out += nlohmann::json(value.real_).dump();
        break;
      case Kind::kString:
        String(value.text_);
        break;
      case Kind::kArray:
        List(value.elements_, indent, '[', ']',
             [&](const Json& element) { Value(element, indent + 2); });
        break;
      case Kind::kObject:
        List(value.fields_, indent, '{', '}', [&](const Field& field) {
          String(field.first);
          out += indented ? ": " : ":";
          Value(field.second, indent + 2);
        });
        break;
    }
  }
};

Json::Json(double value) : kind_(Kind::kReal), real_(value) {}

Json::Json(std::string value) : kind_(Kind::kString), text_(std::move(value)) {}

Json::Json(std::initializer_list<Item> items) {
  const bool fields = std::all_of(items.begin(), items.end(), [](const Item& item) {
    const Json& pair = item.value();
    return pair.is_array() && pair.size() == 2 && pair.elements_.front().is_string();
  });
  kind_ = fields ? Kind::kObject : Kind::kArray;
  for (const Item& item : items) {
    Json value = item.Take();
    if (fields) {
      (*this)[value.elements_.front().text_] = std::move(value.elements_.back());
    } else {
      elements_.push_back(std::move(value));
    }
  }
}

Json::Json(const Json& other) = default;
Json::Json(Json&& other) noexcept = default;
Json& Json::operator=(const Json& other) = default;
Json& Json::operator=(Json&& other) noexcept = default;
Json::~Json() = default;

Json Json::array() { return Json(Kind::kArray); }
Json Json::object() { return Json(Kind::kObject); }

Json Json::Parse(std::string_view text) {
  Json value;
  const Parsed parsed = Parsed::parse(text.begin(), text.end(), nullptr, false);
  return Codec::Take(parsed, value) ? value : Json();
}

Json Json::ParseFlat(std::string_view text) {
  bool flat = true;
  std::size_t keys = 0;
  const auto look = [&](int depth, Parsed::parse_event_t event, const Parsed&) {
    if (event == Parsed::parse_event_t::key) ++keys;
    const bool opens =
        event == Parsed::parse_event_t::object_start || event == Parsed::parse_event_t::array_start;
    if (opens && depth > 0) flat = false;
    return flat;
  };
  // Without exceptions, which quote the text.
  const Parsed parsed = Parsed::parse(text.begin(), text.end(), look, false);
  Json value;
  const bool taken = flat && parsed.is_object() && parsed.size() == keys;
  return taken && Codec::Take(parsed, value) ? value : Json();
}

Json& Json::push_back(Json value) {
  if (is_null()) kind_ = Kind::kArray;
  return elements_.emplace_back(std::move(value));
}

const Json* Json::Find(std::string_view key) const {
  const auto found = std::find_if(fields_.begin(), fields_.end(),
                                  [&](const Field& field) { return field.first == key; });
  return found == fields_.end() ? nullptr : &found->second;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) kind_ = Kind::kObject;
  if (const Json* found = Find(key)) return const_cast<Json&>(*found);
  return fields_.emplace_back(std::string(key), nullptr).second;
}

std::string Json::TextAt(std::string_view key) const {
  const Json* const found = Find(key);
  return found != nullptr ? found->text_ : std::string();
}

std::uint64_t Json::NumberAt(std::string_view key) const {
  const Json* const found = Find(key);
  return found != nullptr && found->kind_ == Kind::kNumber ? found->number_ : 0;
}

void Json::Erase(std::string_view key) {
  std::erase_if(fields_, [&](const Field& field) { return field.first == key; });
}

void Json::Update(const Json& other) {
  for (const auto& [key, value] : other.fields_) (*this)[key] = value;
}

// Clang 14 fails on a default one.
bool Json::operator==(const Json& other) const {
  return kind_ == other.kind_ && number_ == other.number_ && real_ == other.real_ &&
         text_ == other.text_ && elements_ == other.elements_ && fields_ == other.fields_;
}

std::string Json::Text(Letters letters, Lines lines) const {
  std::string out;
  Codec{.out = out, .ascii = letters == Letters::kAscii, .indented = lines == Lines::kIndented}
      .Value(*this, 0);
  return out;
}

}  // namespace waybill::internal
