// What a described struct can do: be written as JSON, be read from it, and tell its members.
//
//   // `image_ref` must be there, and is always written; `dry_run`, in JSON "dryRun", may be left
//   // out, and is if it has its default.
//   WAYBILL_DESCRIBE(DeleteImage, (image_ref), (dry_run));
//
// Where names differ, or more is to be said:
//
//   void Describe(auto& v, const PruneReport& x) {
//     WAYBILL_NEEDS(x.pool, first_id);   // as in the first brackets
//     WAYBILL_MAY_HAVE(x, dry_run);      // as in the second ones
//     v("deleted", x.removed);
//     v.Optional("why", x.reason);
//     v.Flat(x.counts);                  // the members of x.counts, as if they were its own
//     v.Optional("ref", x.ref, {.bytes = 4096});  // of a text that has more, nothing is taken
//     v.Also("image", x.ref);            // another name of a member, which is never written
//     v.Within("spec", [&](auto& v) { v("size", x.size); });  // an object whose members are x's
//   }
//   constexpr auto NamesOf(Mode) { return internal::OwnNames<Mode>(); }  // "strict", "kubelet"
//   std::string ToText(const Timestamp&);  // a value whose JSON is a string
//   bool FromText(std::string_view, Timestamp&);
//   constexpr std::string_view FormOf(const Timestamp*) { return "a time"; }  // may be left out
//   constexpr std::string_view TypeNameOf(const ImagePullSecret*) { return "Secret"; }
//
// They stand in the namespace of the type; Describe may be a function of it, Describe(auto& v)
// const. A std::optional is always optional. A type is described once, by its default value, so
// Describe must not ask for values; it can't hold itself.
//
// From that a table is made for each type, when it is first needed. Reading and writing go by the
// tables (described.cc), so that another struct costs neither much code nor time to compile.
//
// Requests are read strictly: an unknown member is refused, since it may say that less is to be
// changed, and so is a missing one. Answers are read so that old and new versions understand each
// other: unknown members are skipped, and what is missing or has an unknown word keeps its default.
//
// What Kubernetes, runtimes and registries write is read as their own Go does, but where that is
// lenient it is refused: ReadForeign.

#ifndef WAYBILL_STORE_BASE_DESCRIBED_H_
#define WAYBILL_STORE_BASE_DESCRIBED_H_

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/base/function_ref.h"
#include "store/base/names.h"
#include "waybill/result.h"

namespace waybill::internal {

// The JSON of a value, whatever that is; it lies in the text that was read. Empty: there was none.
struct JsonText {
  std::string_view text = {};
};

// What a text may have of a member.
struct Bounds {
  std::size_t bytes = SIZE_MAX;  // of a string, and of each string or key within
  std::size_t count = SIZE_MAX;  // of the elements of a list or map
  // Of a member that must be there, and of the elements of a list: null is as good as no members.
  bool may_be_null = false;
};

template <typename T>
concept Textual = requires(T& value) {
  FromText(std::string_view(), value);
};

// The table of a type. Its functions take the address of a value.
struct Type {
  enum class Kind : std::uint8_t {
    kBool,
    kWhole,
    kReal,
    kEnum,
    kString,
    kText,
    kJson,
    kOptional,
    kList,
    kMap,
    kStruct
  };
  struct Member;

  Kind kind = Kind::kStruct;
  bool is_signed = false;                         // kWhole
  std::size_t size = 0;                           // of a value, in bytes
  std::string_view name;                          // kEnum, kStruct; kText: FormOf
  std::span<const EnumName> names;                // kEnum
  std::vector<Member> members;                    // kStruct
  const Type* inner = nullptr;                    // kOptional, kList, kMap
  std::string (*to_text)(const void*) = nullptr;  // kText; null: it is only read
  bool (*from_text)(std::string_view, void*) = nullptr;
  void (*clear)(void*) = nullptr;  // kOptional, kList, kMap
  // A new element; null: the map has the key already.
  void* (*add)(void*, const std::string& key) = nullptr;
  std::size_t (*count)(const void*) = nullptr;              // kOptional, kList
  const void* (*item)(const void*, std::size_t) = nullptr;  // kOptional, kList
  void (*each)(const void*, FunctionRef<void(const std::string&, const void*)>) = nullptr;  // kMap
};
struct Type::Member {
  std::string name;
  std::size_t offset;
  const Type* type;
  bool required;
  Bounds bounds;
  std::size_t number;  // in `members`: of the first with the same value, which is written
  std::string default_json;
};

template <typename T>
const Type& TypeOf();

// The name of a type without its namespace, or what TypeNameOf says.
template <typename T>
constexpr std::string_view TypeName() {
  if constexpr (requires(const T* type) { TypeNameOf(type); }) {
    return TypeNameOf(static_cast<const T*>(nullptr));
  } else {
    std::string_view name = __PRETTY_FUNCTION__;
    name = name.substr(name.find("T = ") + 4);
    name = name.substr(0, name.find_first_of(";]"));
    return name.substr(name.rfind(':') + 1);
  }
}

// "firstId" of "first_id".
std::string CamelCaseOf(std::string_view snake_case);

// Notes where the members of a default value are.
class MemberNoter {
 public:
  MemberNoter(Type& type, const void* value) : type_(type), value_(value) {}

  template <typename T>
  void operator()(std::string_view name, const T& member, const Bounds& bounds = {}) {
    Note(name, &member, TypeOf<T>(), true, bounds);
  }
  template <typename T>
  void Optional(std::string_view name, const T& member, const Bounds& bounds = {}) {
    Note(name, &member, TypeOf<T>(), false, bounds);
  }
  // By its own name, as snake_case.
  template <typename T>
  void Own(std::string_view name, const T& member, bool required) {
    Note(CamelCaseOf(name), &member, TypeOf<T>(), required, {});
  }
  template <typename T>
  void Also(std::string_view name, const T& member) {
    NoteAlso(name, &member, TypeOf<T>());
  }
  template <typename F>
  void Within(std::string_view name, const F& describe) {
    NoteWithin(name, describe, true);
  }
  template <typename F>
  void OptionalWithin(std::string_view name, const F& describe) {
    NoteWithin(name, describe, false);
  }
  template <typename T>
  void Flat(const T& members) {
    Describe(*this, members);
  }

 private:
  void Note(std::string_view name, const void* member, const Type& type, bool required,
            const Bounds& bounds);
  void NoteAlso(std::string_view name, const void* member, const Type& type);
  template <typename F>
  void NoteWithin(std::string_view name, const F& describe, bool required) {
    Type& inner = *new Type;  // never destroyed, as TypeOf's
    inner.size = type_.size;
    MemberNoter noter(inner, value_);
    describe(noter);
    Note(name, value_, inner, required, {});
  }

  Type& type_;
  const void* value_;
};

template <typename T>
Type MakeType() {
  using Kind = Type::Kind;
  Type type;
  type.size = sizeof(T);
  if constexpr (std::is_same_v<T, bool>) {
    type.kind = Kind::kBool;
  } else if constexpr (std::is_floating_point_v<T>) {
    static_assert(std::is_same_v<T, double>);
    type.kind = Kind::kReal;
  } else if constexpr (std::is_integral_v<T>) {
    type.kind = Kind::kWhole;
    type.is_signed = std::is_signed_v<T>;
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(sizeof(T) == 1);
    type.kind = Kind::kEnum;
    type.name = TypeName<T>();
    type.names = kWords<T>;
  } else if constexpr (std::is_same_v<T, std::string>) {
    type.kind = Kind::kString;
  } else if constexpr (std::is_same_v<T, std::filesystem::path>) {
    type.kind = Kind::kText;
    type.to_text = [](const void* at) { return static_cast<const T*>(at)->string(); };
    type.from_text = [](std::string_view text, void* at) {
      static_cast<T*>(at)->assign(text);
      return text.find('\0') == std::string_view::npos;  // the system would read half of it
    };
  } else if constexpr (std::is_same_v<T, JsonText>) {
    type.kind = Kind::kJson;
  } else if constexpr (Textual<T>) {
    type.kind = Kind::kText;
    if constexpr (requires(const T* at) { FormOf(at); }) {
      type.name = FormOf(static_cast<const T*>(nullptr));
    }
    if constexpr (requires(const T& value) { ToText(value); }) {
      type.to_text = [](const void* at) { return std::string(ToText(*static_cast<const T*>(at))); };
    }
    type.from_text = [](std::string_view text, void* at) {
      return FromText(text, *static_cast<T*>(at));
    };
  } else if constexpr (requires(T & value) { value.has_value(); }) {
    type.kind = Kind::kOptional;
    type.inner = &TypeOf<typename T::value_type>();
    type.clear = [](void* at) { static_cast<T*>(at)->reset(); };
    type.add = [](void* at, const std::string&) -> void* {
      return &static_cast<T*>(at)->emplace();
    };
    type.count = [](const void* at) -> std::size_t { return *static_cast<const T*>(at) ? 1 : 0; };
    type.item = [](const void* at, std::size_t) -> const void* {
      return &**static_cast<const T*>(at);
    };
  } else if constexpr (requires { typename T::mapped_type; }) {
    type.kind = Kind::kMap;
    type.inner = &TypeOf<typename T::mapped_type>();
    type.clear = [](void* at) { static_cast<T*>(at)->clear(); };
    type.add = [](void* at, const std::string& key) -> void* {
      const auto [item, is_new] = static_cast<T*>(at)->try_emplace(key);
      return is_new ? &item->second : nullptr;
    };
    type.each = [](const void* at, FunctionRef<void(const std::string&, const void*)> take) {
      for (const auto& [key, item] : *static_cast<const T*>(at)) take(key, &item);
    };
  } else if constexpr (requires(T & value) { value.emplace_back(); }) {
    static_assert(!std::is_same_v<typename T::value_type, bool>, "its elements have no address");
    type.kind = Kind::kList;
    type.inner = &TypeOf<typename T::value_type>();
    type.clear = [](void* at) { static_cast<T*>(at)->clear(); };
    type.add = [](void* at, const std::string&) -> void* {
      return &static_cast<T*>(at)->emplace_back();
    };
    type.count = [](const void* at) { return static_cast<const T*>(at)->size(); };
    type.item = [](const void* at, std::size_t i) -> const void* {
      return &(*static_cast<const T*>(at))[i];
    };
  } else {
    type.name = TypeName<T>();
    const T value{};
    MemberNoter noter(type, &value);
    if constexpr (requires { value.Describe(noter); }) {
      value.Describe(noter);
    } else {
      Describe(noter, value);
    }
  }
  return type;
}

template <typename T>
const Type& TypeOf() {
  // Never destroyed: a thread may read while the process ends.
  static const Type& type = *new Type(MakeType<T>());
  return type;
}

// --- Members by their own names ------------------------------------------------------------------

// clang-format off
#define WAYBILL_DESCRIBE(Struct, needs, may_have)                             \
  void Describe([[maybe_unused]] auto& v, [[maybe_unused]] const Struct& x) { \
    WAYBILL_NEEDS(x, WAYBILL_UNBRACKETED needs);                              \
    WAYBILL_MAY_HAVE(x, WAYBILL_UNBRACKETED may_have);                        \
  }                                                                           \
  static_assert(true)
#define WAYBILL_NEEDS(x, ...) WAYBILL_EACH(WAYBILL_NEEDS_ONE, x, __VA_ARGS__) static_assert(true)
#define WAYBILL_MAY_HAVE(x, ...) \
  WAYBILL_EACH(WAYBILL_MAY_HAVE_ONE, x, __VA_ARGS__) static_assert(true)

#define WAYBILL_NEEDS_ONE(x, member) v.Own(#member, (x).member, true);
#define WAYBILL_MAY_HAVE_ONE(x, member) v.Own(#member, (x).member, false);
#define WAYBILL_UNBRACKETED(...) __VA_ARGS__
// The preprocessor has no loop: it looks 64 times at what is left.
#define WAYBILL_EACH(do_it, x, ...) __VA_OPT__(WAYBILL_64(WAYBILL_FIRST(do_it, x, __VA_ARGS__)))
#define WAYBILL_FIRST(do_it, x, member, ...) \
  do_it(x, member) __VA_OPT__(WAYBILL_AGAIN WAYBILL_NOTHING (do_it, x, __VA_ARGS__))
#define WAYBILL_AGAIN() WAYBILL_FIRST
#define WAYBILL_NOTHING ()
#define WAYBILL_64(...) WAYBILL_16(WAYBILL_16(WAYBILL_16(WAYBILL_16(__VA_ARGS__))))
#define WAYBILL_16(...) WAYBILL_4(WAYBILL_4(WAYBILL_4(WAYBILL_4(__VA_ARGS__))))
#define WAYBILL_4(...) WAYBILL_1(WAYBILL_1(WAYBILL_1(WAYBILL_1(__VA_ARGS__))))
#define WAYBILL_1(...) __VA_ARGS__
// clang-format on

// --- Whole texts (described.cc) ------------------------------------------------------------------

// Members that a text has and the type has not. The last three are ReadForeign's.
enum class Strangers : std::uint8_t { kRefuse, kSkip, kGo, kGoStrict, kGoAnyCase };

void AppendJson(std::string& to, const Type& type, const void* value);
// Empty: it was read. Otherwise what is wrong; then only a part was read. Members that the text
// leaves out keep what `value` has.
std::string ReadJson(std::string_view text, const Type& type, void* value, Strangers strangers);
// The members of a struct and their JSON, in order. Without `all`, those that are written.
void EachField(const Type& type, const void* value, bool all,
               FunctionRef<void(std::string_view name, std::string_view json)> take);

// Reads what others wrote, as Go's encoding/json would:
//
//   a null leaves the value as it is
//   unknown members are skipped, or refused (kGoStrict)
//   a name may be in any case (kGoAnyCase)
//
// and refuses where that could mean two things, or nothing: a member that is there twice, or else
// in another case; a null in a list; a member that must be there (not Optional) and is missing,
// null or an empty string. Messages have no name from the text but those of the type's members.
// kInvalidArgument; kLimitExceeded: more bytes than `most`, more levels than kMaxJsonDepth, or more
// than Bounds.
Result<void> ReadForeign(std::string_view text, std::size_t most, const Type& type, void* value,
                         Strangers strangers, const Bounds& bounds);
template <typename T>
Result<void> ReadForeign(std::string_view text, std::size_t most, T& value,
                         Strangers strangers = Strangers::kGo, const Bounds& bounds = {}) {
  return ReadForeign(text, most, TypeOf<T>(), &value, strangers, bounds);
}
// What a reader finds wrong: kInvalidArgument, "metadata.name: it is empty".
Error WrongAt(std::string_view path, std::string_view what);
// The same error, of a value that stands there.
Error Inside(std::string_view path, Error error);
// "images[3].id"
std::string PathIn(std::string_view list, std::size_t index, std::string_view member = {});

template <typename T>
std::string ToJson(const T& value) {
  std::string text;
  AppendJson(text, TypeOf<T>(), &value);
  return text;
}
template <typename T>
void AppendJson(std::string& to, const T& value) {
  AppendJson(to, TypeOf<T>(), &value);
}
template <typename T>
std::string FromJson(std::string_view text, T& value, Strangers strangers = Strangers::kRefuse) {
  return ReadJson(text, TypeOf<T>(), &value, strangers);
}

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_DESCRIBED_H_
