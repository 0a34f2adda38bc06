#include "store/base/described.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "store/base/json.h"

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

std::string_view WordOf(const Type& type, std::uint8_t number) {
  for (const auto& [value, name] : type.names) {
    if (value == number) return name;
  }
  return "unknown";
}

// Whether a message may repeat the name of an unknown member.
bool MayBeNamed(std::string_view key) {
  return !key.empty() && key.size() <= 32 &&
         key.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") ==
             std::string_view::npos;
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
      return to.String(type.to_text(at));
    case Kind::kEnum:
      return to.String(WordOf(type, *static_cast<const std::uint8_t*>(at)));
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
        const auto before = to.Here();
        to.Key(member.name);
        const auto value = to.Here();
        Write(to, *member.type, At(at, member));
        if (!member.required && to.Since(value) == member.default_json) to.TakeBack(before);
      }
      return to.End('}');
  }
}

bool Read(JsonReader& from, const Type& type, void* at, Strangers strangers);

bool ReadStruct(JsonReader& from, const Type& type, void* at, Strangers strangers) {
  if (!from.Open('{')) return false;
  std::string key;
  std::uint64_t seen = 0;
  for (bool first = true; from.More('{', first);) {
    if (!from.Key(key)) return false;
    const auto member = std::find_if(type.members.begin(), type.members.end(),
                                     [&](const auto& one) { return one.name == key; });
    if (member == type.members.end()) {
      std::string_view skipped;
      if (strangers == Strangers::kRefuse) from.FailAtToken("this version does not know it");
      if (from.Skip(skipped)) continue;
      from.Within(MayBeNamed(key) ? key : "(a member)");
      return false;
    }
    const auto bit = std::uint64_t{1} << static_cast<unsigned>(member - type.members.begin());
    if ((seen & bit) != 0) from.FailAtToken("it is there twice");
    seen |= bit;
    // A null is as good as none, where there may be none; to std::optional it is a value.
    const bool may_be_null = !member->required && member->type->kind != Kind::kOptional;
    if (may_be_null && from.Null()) continue;
    if (Read(from, *member->type, static_cast<char*>(at) + member->offset, strangers)) continue;
    from.Within(member->name);
    return false;
  }
  for (const Type::Member& member : type.members) {
    const bool is_there = (seen & 1U) != 0;
    seen >>= 1U;
    if (is_there || !member.required || strangers == Strangers::kSkip || !from.ok()) continue;
    from.Fail("it is missing");
    from.Within(member.name);
  }
  return from.ok();
}

bool ReadElements(JsonReader& from, const Type& type, void* at, Strangers strangers) {
  const bool is_map = type.kind == Kind::kMap;
  const char bracket = is_map ? '{' : '[';
  const std::size_t bytes =
      type.inner->size + (is_map ? sizeof(std::string) + 4 * sizeof(void*) : 0);
  if (!from.Open(bracket)) return false;
  type.clear(at);
  std::string key;
  std::size_t index = 0;
  for (bool first = true; from.More(bracket, first); ++index) {
    if (!from.Afford(bytes) || (is_map && !from.Key(key))) return false;
    void* const item = type.add(at, key);
    if (item == nullptr) return from.FailAtToken("a key is there twice");
    if (Read(from, *type.inner, item, strangers)) continue;
    from.Within(index);
    return false;
  }
  return from.ok();
}

bool Read(JsonReader& from, const Type& type, void* at, Strangers strangers) {
  std::string text;
  switch (type.kind) {
    case Kind::kBool:
      return from.Bool(*static_cast<bool*>(at));
    case Kind::kReal:
      return from.Number(*static_cast<double*>(at));
    case Kind::kString:
      return from.String(*static_cast<std::string*>(at));
    case Kind::kText:
      return from.String(text) &&
             (type.from_text(text, at) || from.FailAtToken("it has another form"));
    case Kind::kEnum:
      if (!from.String(text)) return false;
      for (const auto& [value, name] : type.names) {
        if (name != text) continue;
        *static_cast<std::uint8_t*>(at) = value;
        return true;
      }
      return strangers == Strangers::kSkip || from.FailAtToken("it has no such value");
    case Kind::kWhole:
      return WithNumber(type, [&](auto number) {
        if (!from.Number(number)) return false;
        std::memcpy(at, &number, sizeof(number));
        return true;
      });
    case Kind::kOptional:
      if (!from.Null()) return from.ok() && Read(from, *type.inner, type.add(at, text), strangers);
      type.clear(at);
      return true;
    case Kind::kList:
    case Kind::kMap:
      return ReadElements(from, type, at, strangers);
    case Kind::kStruct:
      return ReadStruct(from, type, at, strangers);
  }
  return false;
}

std::string Spelled(const Type& type, std::map<std::string, std::string>& types) {
  switch (type.kind) {
    case Kind::kBool:
      return "bool";
    case Kind::kWhole:
      return "int";
    case Kind::kReal:
      return "float";
    case Kind::kString:
    case Kind::kText:
      return "string";
    case Kind::kOptional:
      return "?" + Spelled(*type.inner, types);
    case Kind::kList:
      return "[]" + Spelled(*type.inner, types);
    case Kind::kMap:
      return "[string]" + Spelled(*type.inner, types);
    case Kind::kEnum:
    case Kind::kStruct:
      break;
  }
  std::string name(type.name);
  const std::string text = Described(type, types);
  const auto& known = types.try_emplace(name, text).first->second;
  return known == text ? name : name + " (another type has this name)";
}

}  // namespace

void MemberNoter::Note(std::string_view name, const void* member, const Type& type, bool required) {
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
  type_.members.push_back({name, offset, &type, must_be_there, std::move(default_json)});
}

void AppendJson(std::string& to, const Type& type, const void* value) {
  JsonWriter writer(to);
  Write(writer, type, value);
}

std::string ReadJson(std::string_view text, const Type& type, void* value, Strangers strangers) {
  JsonReader reader(text);
  if (Read(reader, type, value, strangers)) reader.End();
  return reader.Problem();
}

std::string Described(const Type& type, std::map<std::string, std::string>& types) {
  std::string text;
  for (const auto& [value, name] : type.names) (text += text.empty() ? "" : ", ") += name;
  if (type.kind == Kind::kEnum) return "(" + text + ")";
  for (const Type::Member& member : type.members) {
    const std::string inner = Spelled(*member.type, types);
    ((text += text.empty() ? "\n  " : ",\n  ") += member.name) += ": ";
    text += member.required || inner[0] == '?' ? inner : "?" + inner;
  }
  return "(" + text + (text.empty() ? ")" : "\n)");
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
