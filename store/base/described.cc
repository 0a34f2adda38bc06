#include "store/base/described.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "store/base/ascii.h"
#include "store/base/base64.h"
#include "store/base/json.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

using Kind = Type::Kind;

// do_it(a number of the type).
template <typename F>
auto WithNumber(const Type& type, const F& do_it) {
  switch (type.size) {
    case 1:
      return type.is_signed ? do_it(std::int8_t{}) : do_it(std::uint8_t{});
    case 2:
      return type.is_signed ? do_it(std::int16_t{}) : do_it(std::uint16_t{});
    case 4:
      return type.is_signed ? do_it(std::int32_t{}) : do_it(std::uint32_t{});
    default:
      return type.is_signed ? do_it(std::int64_t{}) : do_it(std::uint64_t{});
  }
}

// Whether a message may repeat the name of an unknown member.
bool MayBeNamed(std::string_view key) {
  return !key.empty() && key.size() <= 32 && IsMadeOf(key, "_");
}

bool IsGo(Strangers strangers) { return strangers >= Strangers::kGo; }

// Whether Go takes the key for the member, though it has another case. Go folds two letters beyond
// ASCII to such of ours: the long s, and the sign for kelvin.
bool IsInOtherCase(std::string_view key, std::string_view name) {
  constexpr std::string_view kLongS = "\u017f";
  constexpr std::string_view kKelvin = "\u212a";
  while (!key.empty() && !name.empty()) {
    const bool is_s = key.starts_with(kLongS);
    const bool is_k = key.starts_with(kKelvin);
    const char letter = is_s ? 's' : is_k ? 'k' : ToLower(key[0]);
    if (letter != ToLower(name[0])) return false;
    key.remove_prefix(is_s ? kLongS.size() : is_k ? kKelvin.size() : 1);
    name.remove_prefix(1);
  }
  return key.empty() && name.empty();
}

const void* At(const void* value, const Type::Member& member) {
  return static_cast<const char*>(value) + member.offset;
}

void Write(JsonWriter& to, const Type& type, const void* at) {
  switch (type.kind) {
    case Kind::kBool:
      return to.Bool(*static_cast<const bool*>(at));
    case Kind::kReal:
      return to.Number(*static_cast<const double*>(at));
    case Kind::kString:
      return to.String(*static_cast<const std::string*>(at));
    case Kind::kText:
      return type.to_text == nullptr ? to.Raw("null") : to.String(type.to_text(at));
    case Kind::kJson:
      return to.Raw(static_cast<const JsonText*>(at)->text);
    case Kind::kEnum:
      return to.String(WordOf(*static_cast<const std::uint8_t*>(at), type.names));
    case Kind::kWhole:
      return WithNumber(type, [&](auto number) {
        std::memcpy(&number, at, sizeof(number));
        to.Number(number);
      });
    case Kind::kOptional:
      return type.count(at) == 0 ? to.Raw("null") : Write(to, *type.inner, type.item(at, 0));
    case Kind::kList:
      to.Begin('[');
      for (std::size_t i = 0; i < type.count(at); ++i) Write(to, *type.inner, type.item(at, i));
      return to.End(']');
    case Kind::kMap:
      to.Begin('{');
      type.each(at, [&](const std::string& key, const void* item) {
        to.Key(key);
        Write(to, *type.inner, item);
      });
      return to.End('}');
    case Kind::kStruct:
      to.Begin('{');
      for (const Type::Member& member : type.members) {
        if (&member != &type.members[member.number]) continue;
        const auto before = to.Here();
        to.Key(member.name);
        const auto value = to.Here();
        Write(to, *member.type, At(at, member));
        if (!member.required && to.Since(value) == member.default_json) to.TakeBack(before);
      }
      return to.End('}');
  }
}

bool Read(JsonReader& from, const Type& type, void* at, Strangers strangers, const Bounds& bounds);

bool FailAboveBytes(JsonReader& from, const Bounds& bounds) {
  return from.FailAtToken("it has more than " + std::to_string(bounds.bytes) + " bytes",
                          ErrorCode::kLimitExceeded);
}

bool ReadStranger(JsonReader& from, const Type& type, std::string_view key, Strangers strangers) {
  for (const Type::Member& member : type.members) {
    if (!IsGo(strangers) || !IsInOtherCase(key, member.name)) continue;
    from.FailAtToken("it must be spelled \"" + member.name + "\"");
  }
  if (strangers == Strangers::kRefuse) from.FailAtToken("this version does not know it");
  if (strangers == Strangers::kGoStrict) from.FailAtToken("unknown field");
  std::string_view skipped;
  if (from.Skip(skipped)) return true;
  from.Within(!IsGo(strangers) && MayBeNamed(key) ? key : "(a member)");
  return false;
}

bool ReadMember(JsonReader& from, const Type::Member& member, void* at, Strangers strangers,
                bool& is_given) {
  const Kind kind = member.type->kind;
  // A null is as good as none, where there may be none; to std::optional it is a value.
  const bool may_be_null =
      IsGo(strangers) ? kind != Kind::kJson : !member.required && kind != Kind::kOptional;
  is_given = !may_be_null || !from.Null();
  if (!is_given) {
    is_given = member.bounds.may_be_null;
    return true;
  }
  if (!Read(from, *member.type, at, strangers, member.bounds)) return false;
  const bool is_empty = kind == Kind::kString && static_cast<const std::string*>(at)->empty();
  return !is_empty || !member.required || !IsGo(strangers) || from.FailAtToken("it is empty");
}

bool ReadStruct(JsonReader& from, const Type& type, void* at, Strangers strangers) {
  if (!from.Open('{')) return false;
  std::string key;
  std::uint64_t seen = 0;
  std::uint64_t given = 0;
  for (bool first = true; from.More('{', first);) {
    if (!from.Key(key)) return false;
    auto member = std::ranges::find(type.members, key, &Type::Member::name);
    if (member == type.members.end() && strangers == Strangers::kGoAnyCase) {
      member = std::ranges::find_if(type.members,
                                    [&](const auto& one) { return IsInOtherCase(key, one.name); });
    }
    if (member == type.members.end()) {
      if (!ReadStranger(from, type, key, strangers)) return false;
      continue;
    }
    const auto bit = std::uint64_t{1} << member->number;
    if ((seen & bit) != 0) from.FailAtToken("it is there twice");
    seen |= bit;
    bool is_given = false;
    if (!ReadMember(from, *member, static_cast<char*>(at) + member->offset, strangers, is_given)) {
      from.Within(member->name);
      return false;
    }
    if (is_given) given |= bit;
  }
  for (const Type::Member& member : type.members) {
    const bool is_there = (given >> member.number & 1U) != 0;
    if (is_there || !member.required || strangers == Strangers::kSkip || !from.ok()) continue;
    from.Fail(IsGo(strangers) ? "it is missing or null" : "it is missing");
    from.Within(member.name);
  }
  return from.ok();
}

bool ReadElements(JsonReader& from, const Type& type, void* at, Strangers strangers,
                  const Bounds& bounds) {
  const bool is_map = type.kind == Kind::kMap;
  const char bracket = is_map ? '{' : '[';
  const std::size_t bytes =
      type.inner->size + (is_map ? sizeof(std::string) + 4 * sizeof(void*) : 0);
  const bool may_be_null =
      IsGo(strangers) && (is_map || bounds.may_be_null) && type.inner->kind != Kind::kJson &&
      std::ranges::none_of(type.inner->members, [](const auto& one) { return one.required; });
  if (!from.Open(bracket)) return false;
  type.clear(at);
  std::string key;
  std::size_t index = 0;
  for (bool first = true; from.More(bracket, first); ++index) {
    if (index == bounds.count) {
      return from.Fail("it has more than " + std::to_string(index) + " elements",
                       ErrorCode::kLimitExceeded);
    }
    if (bounds.count == SIZE_MAX && !from.Afford(bytes)) return false;
    if (is_map && !from.Key(key)) return false;
    if (is_map && key.size() > bounds.bytes) return FailAboveBytes(from, bounds);
    void* const item = type.add(at, key);
    if (item == nullptr) return from.FailAtToken("a key is there twice");
    if (may_be_null && from.Null()) continue;
    if (IsGo(strangers) && !is_map && from.Null()) from.Fail("expected an element, not null");
    if (Read(from, *type.inner, item, strangers, {.bytes = bounds.bytes})) continue;
    from.Within(index);
    return false;
  }
  return from.ok();
}

bool ReadText(JsonReader& from, const Type& type, void* at, const Bounds& bounds) {
  std::string text;
  const bool is_read = from.String(text);
  const bool fits = text.size() <= bounds.bytes;
  const bool is_taken = is_read && fits && type.from_text(text, at);
  Wipe(text);
  if (is_taken || !is_read) return is_taken;
  if (!fits) return FailAboveBytes(from, bounds);
  return from.FailAtToken(type.name.empty() ? "it has another form"
                                            : "expected " + std::string(type.name));
}

bool Read(JsonReader& from, const Type& type, void* at, Strangers strangers, const Bounds& bounds) {
  std::string text;
  switch (type.kind) {
    case Kind::kBool:
      return from.Bool(*static_cast<bool*>(at));
    case Kind::kReal:
      return from.Number(*static_cast<double*>(at));
    case Kind::kString: {
      auto& string = *static_cast<std::string*>(at);
      return from.String(string) && (string.size() <= bounds.bytes || FailAboveBytes(from, bounds));
    }
    case Kind::kText:
      return ReadText(from, type, at, bounds);
    case Kind::kJson:
      return from.Skip(static_cast<JsonText*>(at)->text);
    case Kind::kEnum:
      if (!from.String(text)) return false;
      if (const auto known = std::ranges::find(type.names, text, &EnumName::name);
          known != type.names.end()) {
        *static_cast<std::uint8_t*>(at) = known->value;
        return true;
      }
      if (strangers == Strangers::kSkip) return true;
      if (!IsGo(strangers)) return from.FailAtToken("it has no such value");
      return from.FailAtToken("expected one of " + WordsOf(type.names));
    case Kind::kWhole:
      return WithNumber(type, [&](auto number) {
        if (!from.Number(number)) return false;
        std::memcpy(at, &number, sizeof(number));
        return true;
      });
    case Kind::kOptional:
      if (!from.Null()) {
        return from.ok() && Read(from, *type.inner, type.add(at, text), strangers, bounds);
      }
      type.clear(at);
      return true;
    case Kind::kList:
    case Kind::kMap:
      return ReadElements(from, type, at, strangers, bounds);
    case Kind::kStruct:
      return ReadStruct(from, type, at, strangers);
  }
  return false;
}

}  // namespace

std::string CamelCaseOf(std::string_view snake_case) {
  std::string name;
  bool upper = false;
  for (const char c : snake_case) {
    if (c != '_') name += upper ? static_cast<char>(c - 'a' + 'A') : c;
    upper = c == '_';
  }
  return name;
}

void MemberNoter::Note(std::string_view name, const void* member, const Type& type, bool required,
                       const Bounds& bounds) {
  const auto offset =
      static_cast<std::size_t>(static_cast<const char*>(member) - static_cast<const char*>(value_));
  const bool is_inside = offset <= type_.size && type.size <= type_.size - offset;
  const bool is_new = std::none_of(type_.members.begin(), type_.members.end(),
                                   [&](const auto& one) { return one.name == name; });
  // Only a wrong Describe: ReadStruct has a bit for each member.
  if (!is_inside || !is_new || type_.members.size() == 64) std::abort();
  const bool must_be_there = required && type.kind != Kind::kOptional;
  std::string default_json;
  if (!must_be_there) AppendJson(default_json, type, member);
  type_.members.push_back({std::string(name), offset, &type, must_be_there, bounds,
                           type_.members.size(), std::move(default_json)});
}

void MemberNoter::NoteAlso(std::string_view name, const void* member, const Type& type) {
  for (const Type::Member& known : type_.members) {
    if (At(value_, known) != member || known.type != &type) continue;
    Type::Member also = known;
    also.name = name;
    type_.members.push_back(std::move(also));
    return;
  }
  std::abort();  // only a wrong Describe
}

void AppendJson(std::string& to, const Type& type, const void* value) {
  JsonWriter writer(to);
  Write(writer, type, value);
}

std::string ReadJson(std::string_view text, const Type& type, void* value, Strangers strangers) {
  JsonReader reader(text);
  if (Read(reader, type, value, strangers, {})) reader.End();
  return reader.Problem();
}

Result<void> ReadForeign(std::string_view text, std::size_t most, const Type& type, void* value,
                         Strangers strangers, const Bounds& bounds) {
  if (text.size() > most) {
    return Error{ErrorCode::kLimitExceeded,
                 "the document has " + std::to_string(text.size()) + " bytes, above the " +
                     std::to_string(most) + " allowed",
                 ""};
  }
  JsonReader reader(text, waybill::kMaxJsonDepth);
  if (Read(reader, type, value, strangers, bounds)) reader.End();
  if (reader.ok()) return {};
  return Error{reader.code(), reader.Problem(), ""};
}

Error WrongAt(std::string_view path, std::string_view what) {
  return {ErrorCode::kInvalidArgument, std::string(path).append(": ").append(what), ""};
}

Error Inside(std::string_view path, Error error) {
  error.message.insert(0, std::string(path) + ": ");
  return error;
}

std::string PathIn(std::string_view list, std::size_t index, std::string_view member) {
  std::string path = std::string(list) + "[" + std::to_string(index) + "]";
  return member.empty() ? path : path.append(".").append(member);
}

void EachField(const Type& type, const void* value, bool all,
               FunctionRef<void(std::string_view name, std::string_view json)> take) {
  std::string json;
  for (const Type::Member& member : type.members) {
    json.clear();
    AppendJson(json, *member.type, At(value, member));
    if (all || member.required || json != member.default_json) take(member.name, json);
  }
}

}  // namespace waybill::internal
