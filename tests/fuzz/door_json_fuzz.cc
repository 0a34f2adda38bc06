// Requests and answers of any bytes: JSON is taken exactly if nlohmann takes it, and a struct that
// was read survives a round trip.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/described.h"
#include "store/base/json.h"

namespace waybill {

namespace {

enum class Word : std::uint8_t { kA = 1, kB = 0 };
constexpr auto NamesOf(Word) { return internal::Names<Word>({{Word::kA, "a"}, {Word::kB, "b"}}); }

struct Inner {
  std::uint32_t n = 1;
  Word w = Word::kA;
};
void Describe(auto& v, const Inner& x) {
  v("n", x.n);
  v.Optional("w", x.w);
}

struct Outer {
  std::string s;
  bool b = true;
  std::int8_t i = 0;
  double d = 0;
  std::vector<Inner> l;
  std::map<std::string, std::vector<std::string>> m;
  std::optional<Inner> o;
  Inner flat;
};
void Describe(auto& v, const Outer& x) {
  v.Optional("s", x.s);
  v.Optional("b", x.b);
  v.Optional("i", x.i);
  v.Optional("d", x.d);
  v.Optional("l", x.l);
  v.Optional("m", x.m);
  v("o", x.o);
  v.Flat(x.flat);
}

void Require(bool holds) {
  if (!holds) std::abort();
}

void CompareVerdicts(const std::string& text) {
  int depth = 0;
  int deepest = 0;
  const auto count = [&](int, nlohmann::json::parse_event_t event, const nlohmann::json&) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      deepest = std::max(deepest, ++depth);
    } else if (event == Event::object_end || event == Event::array_end) {
      --depth;
    }
    return true;
  };
  bool theirs = false;
  try {
    // It skips a byte order mark, and takes a zero byte for the end.
    theirs = !nlohmann::json::parse(text, count).is_discarded() &&
             text.rfind("\xEF\xBB\xBF", 0) != 0 && text.find('\0') == std::string::npos &&
             deepest <= internal::kMaxJsonDepth;
  } catch (const nlohmann::json::out_of_range&) {
    return;  // a number beyond a double, which JSON's grammar has
  } catch (const nlohmann::json::exception&) {
  }
  internal::JsonReader from(text);
  std::string_view whole;
  Require((from.Skip(whole) && from.End()) == theirs);
}

void ReadAndWrite(const std::string& text, internal::Strangers strangers) {
  Outer value;
  if (!internal::FromJson(text, value, strangers).empty()) return;
  const std::string written = internal::ToJson(value);
  Require(nlohmann::json::accept(written));
  Outer again;
  Require(internal::FromJson(written, again, strangers).empty());
  Require(internal::ToJson(again) == written);
}

}  // namespace

}  // namespace waybill

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  waybill::CompareVerdicts(text);
  waybill::ReadAndWrite(text, waybill::internal::Strangers::kRefuse);
  waybill::ReadAndWrite(text, waybill::internal::Strangers::kSkip);
  return 0;
}
