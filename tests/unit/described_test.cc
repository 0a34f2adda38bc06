// What a described struct is as JSON, and what is taken for it.

#include "store/base/described.h"

#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/json.h"
#include "tests/support/draw.h"
#include "tests/support/mutation.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(described)

namespace {

using namespace std::string_literals;  // NOLINT(google-build-using-namespace)
using internal::FromJson;
using internal::Strangers;
using internal::ToJson;

// The names do not follow the numbers, and one number has none.
enum class Colour : std::uint8_t { kRed = 3, kGreen = 1, kBlue = 7, kNameless = 0 };
constexpr auto NamesOf(Colour) {
  return internal::Names<Colour>(
      {{Colour::kRed, "red"}, {Colour::kGreen, "green"}, {Colour::kBlue, "blue"}});
}
enum class Side : signed char { kLeft = -1, kRight = 1 };
constexpr auto NamesOf(Side) {
  return internal::Names<Side>({{Side::kLeft, "left"}, {Side::kRight, "right"}});
}

struct Token {
  int number = 0;
  bool operator==(const Token&) const = default;
};
std::string ToText(const Token& token) { return "t" + std::to_string(token.number); }
bool FromText(std::string_view text, Token& token) {
  if (text.size() != 2 || text[0] != 't' || text[1] < '0' || text[1] > '9') return false;
  token.number = text[1] - '0';
  return true;
}

struct Point {
  std::int32_t x = 0;
  std::int32_t y = 5;
  bool operator==(const Point&) const = default;
};
void Describe(auto& v, const Point& p) {
  v("x", p.x);
  v.Optional("y", p.y);
}
constexpr std::string_view TypeNameOf(const Point*) { return "Place"; }

struct All {
  bool flag = false;
  std::int8_t i8 = 0;
  std::uint8_t u8 = 0;
  std::int16_t i16 = 0;
  std::uint16_t u16 = 0;
  std::int32_t i32 = 0;
  std::uint32_t u32 = 0;
  std::int64_t i64 = 0;
  std::uint64_t u64 = 0;
  double real = 0;
  Colour colour = Colour::kRed;
  Side side = Side::kLeft;
  std::string text;
  Token token;
  std::filesystem::path path;
  std::optional<std::string> maybe;
  std::optional<Point> maybe_point;
  std::optional<std::vector<std::uint32_t>> maybe_list;
  std::vector<std::string> texts;
  std::vector<Point> points;
  std::vector<Colour> colours;
  std::vector<std::vector<std::uint8_t>> lists;
  std::map<std::string, std::string> names;
  std::map<std::string, std::vector<Point>> places;
  Point point;
  Point flat;  // its members are members of this one
  bool operator==(const All&) const = default;
};
// Each member twice: as one that must be there, and as one that may.
template <typename V, typename M>
void DescribeMembers(V&, const All& a, const M& member) {
  member("flag", a.flag);
  member("i8", a.i8);
  member("u8", a.u8);
  member("i16", a.i16);
  member("u16", a.u16);
  member("i32", a.i32);
  member("u32", a.u32);
  member("i64", a.i64);
  member("u64", a.u64);
  member("real", a.real);
  member("colour", a.colour);
  member("side", a.side);
  member("text", a.text);
  member("token", a.token);
  member("path", a.path);
  member("maybe", a.maybe);
  member("maybePoint", a.maybe_point);
  member("maybeList", a.maybe_list);
  member("texts", a.texts);
  member("points", a.points);
  member("colours", a.colours);
  member("lists", a.lists);
  member("names", a.names);
  member("places", a.places);
  member("point", a.point);
}
void Describe(auto& v, const All& a) {
  DescribeMembers(v, a, [&v](auto name, const auto& member) { v(name, member); });
  v.Flat(a.flat);
}

struct AllOptional {
  All all;
  bool operator==(const AllOptional&) const = default;
};
void Describe(auto& v, const AllOptional& a) {
  DescribeMembers(v, a.all, [&v](auto name, const auto& member) { v.Optional(name, member); });
}

// No member has its default.
All Full() {
  All all;
  all.flag = true;
  all.i8 = -128;
  all.u8 = 255;
  all.i16 = -32768;
  all.u16 = 65535;
  all.i32 = std::numeric_limits<std::int32_t>::min();
  all.u32 = std::numeric_limits<std::uint32_t>::max();
  all.i64 = std::numeric_limits<std::int64_t>::min();
  all.u64 = std::numeric_limits<std::uint64_t>::max();
  all.real = -0.1;
  all.colour = Colour::kBlue;
  all.side = Side::kRight;
  all.text = "a\"\\\n\xC3\xA9";
  all.token = {7};
  all.path = "/var/lib/x y";
  all.maybe = "";
  all.maybe_point = {1, 2};
  all.maybe_list.emplace();
  all.texts = {"", "b"};
  all.points = {{1, 5}, {2, 3}};
  all.colours = {Colour::kGreen, Colour::kRed};
  all.lists = {{}, {1, 2}};
  all.names = {{"", "x"}, {"k.e/y", ""}};
  all.places = {{"a", {}}, {"b", {{9, 9}}}};
  all.point = {3, 4};
  all.flat = {-1, -2};
  return all;
}

// Defaults that are not the ones of their types.
struct Odd {
  bool flag = true;
  std::string text = "given";
  std::vector<std::uint32_t> list = {1, 2};
  std::optional<std::uint32_t> maybe = 4;
  std::uint32_t must = 6;
  bool operator==(const Odd&) const = default;
};
void Describe(auto& v, const Odd& o) {
  v.Optional("flag", o.flag);
  v.Optional("text", o.text);
  v.Optional("list", o.list);
  v.Optional("maybe", o.maybe);
  v("must", o.must);
}

struct Explain {
  std::string image;
  struct Answer {
    std::vector<Odd> odd;
    Colour colour = Colour::kRed;
    std::optional<Point> at;
    std::map<std::string, std::uint8_t> counts;
  };
};
void Describe(auto& v, const Explain& e) { v("image", e.image); }
void Describe(auto& v, const Explain::Answer& a) {
  v("odd", a.odd);
  v("colour", a.colour);
  v("at", a.at);
  v.Optional("counts", a.counts);
}

template <typename T>
std::string Refusal(std::string_view text, T value = {}) {
  return FromJson(text, value, Strangers::kRefuse);
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_kind_survives_the_round_trip) {
  const All full = Full();
  for (const auto strangers : {Strangers::kRefuse, Strangers::kSkip}) {
    All all;
    BOOST_TEST(FromJson(ToJson(full), all, strangers) == "");
    BOOST_TEST((all == full));
    AllOptional optional;
    BOOST_TEST(FromJson(ToJson(AllOptional{full}), optional, strangers) == "");
    All expected = full;
    expected.flat = {};
    BOOST_TEST((optional.all == expected));
  }
  // What was in the value before does not stay.
  All used = Full();
  BOOST_TEST(FromJson(ToJson(All()), used) == "");
  All expected;
  expected.maybe = full.maybe;  // left out
  expected.maybe_point = full.maybe_point;
  expected.maybe_list = full.maybe_list;
  expected.point.y = full.point.y;
  expected.flat.y = full.flat.y;
  BOOST_TEST((used == expected));
  const auto json = nlohmann::json::parse(ToJson(full));
  BOOST_TEST(json["side"] == "right");
  BOOST_TEST(json["x"] == -1);
  BOOST_TEST(json["path"] == "/var/lib/x y");
  BOOST_TEST(json["u64"] == full.u64);
  BOOST_TEST(json.size() == 27U);
}

BOOST_AUTO_TEST_CASE(leaves_out_what_has_its_default) {
  BOOST_TEST(ToJson(AllOptional()) == "{}");
  BOOST_TEST(ToJson(Point()) == R"({"x":0})");
  BOOST_TEST(ToJson(Point{0, 0}) == R"({"x":0,"y":0})");
  BOOST_TEST(ToJson(Odd()) == R"({"must":6})");
  Odd odd{.flag = false, .text = "", .list = {}, .maybe = {}, .must = 0};
  BOOST_TEST(ToJson(odd) == R"({"flag":false,"text":"","list":[],"maybe":null,"must":0})");
  Odd read;
  BOOST_TEST(FromJson(ToJson(odd), read) == "");
  BOOST_TEST((read == odd));
  BOOST_TEST(FromJson(R"({"must":6})", read = {}) == "");
  BOOST_TEST((read == Odd()));
  // A null is as good as none, but a std::optional can be it.
  BOOST_TEST(FromJson(R"({"must":6,"flag":null,"text":null,"list":null,"maybe":null})", read) ==
             "");
  BOOST_TEST((read.flag && read.text == "given" && read.list.size() == 2 && !read.maybe));
}

BOOST_AUTO_TEST_CASE(a_request_is_read_strictly) {
  BOOST_TEST(Refusal<Point>(R"({"x":1,"dryRunn":true})") ==
             "dryRunn: this version does not know it, at byte 7");
  BOOST_TEST(Refusal<Point>(R"({"the secret":1})") ==
             "(a member): this version does not know it, at byte 1");
  BOOST_TEST(Refusal<Point>(R"({"y":1})") == "x: it is missing, at byte 7");
  BOOST_TEST(Refusal<Point>(R"({"x":1,"x":2})") == "x: it is there twice, at byte 7");
  BOOST_TEST(Refusal<Point>(R"({"x":1,"\u0078":2})") == "x: it is there twice, at byte 7");
  BOOST_TEST(Refusal<Point>(R"({"x":null})") == "x: expected a number, at byte 5");
  BOOST_TEST(Refusal<Point>(R"({"x":4294967296})") == "x: the number is out of range, at byte 5");
  BOOST_TEST(Refusal<Point>(R"({"x":1.0})") == "x: expected a whole number, at byte 5");
  BOOST_TEST(Refusal<Point>(R"({"x":"1"})") == "x: expected a number, at byte 5");
  BOOST_TEST(Refusal<Point>("[]") == "expected an object, at byte 0");
  BOOST_TEST(Refusal<Point>("") == "expected an object, at byte 0");
  BOOST_TEST(Refusal<Point>(R"({"x":1} {})") == "text after the end, at byte 8");
  BOOST_TEST(Refusal<Point>("{\"x\":1}\0"s) == "text after the end, at byte 7");
  BOOST_TEST(Refusal<Odd>(R"({"must":1,"list":[1, 2, -3]})") ==
             "list[2]: the number is out of range, at byte 24");
  BOOST_TEST(Refusal<Explain::Answer>(R"({"odd":[{"must":1},{"must":1,"text":7}]})") ==
             "odd[1].text: expected a string, at byte 36");
  BOOST_TEST(Refusal<Explain::Answer>(R"({"odd":[],"colour":"mauve"})") ==
             "colour: it has no such value, at byte 19");
  BOOST_TEST(Refusal<Explain::Answer>(R"({"counts":{"a":1,"key":"secret"}})") ==
             "counts[1]: expected a number, at byte 23");
  BOOST_TEST(Refusal<Explain::Answer>(R"({"counts":{"a":1,"a":1}})") ==
             "counts: a key is there twice, at byte 17");
  BOOST_TEST(Refusal<AllOptional>(R"({"token":"secret"})") ==
             "token: it has another form, at byte 9");
  BOOST_TEST(Refusal<AllOptional>(R"({"path":"/a\u0000b"})") ==
             "path: it has another form, at byte 8");
  BOOST_TEST(Refusal<AllOptional>(R"({"maybePoint":{"x":1,"z":1}})") ==
             "maybePoint.z: this version does not know it, at byte 21");
  // Each member that must be there is missed.
  const auto full = nlohmann::json::parse(ToJson(Full()));
  for (const auto& [name, value] : full.items()) {
    auto without = full;
    without.erase(name);
    const bool may_miss = name.rfind("maybe", 0) == 0 || name == "y";
    BOOST_TEST((Refusal<All>(without.dump()) == "") == may_miss);
  }
}

BOOST_AUTO_TEST_CASE(an_answer_is_read_leniently) {
  Explain::Answer answer;
  answer.colour = Colour::kGreen;
  BOOST_TEST(FromJson(R"({"new":[{"a":{}}],"colour":"mauve","at":{"x":1,"z":[]},"new":7})", answer,
                      Strangers::kSkip) == "");
  BOOST_TEST((answer.colour == Colour::kGreen));
  BOOST_TEST((answer.at.value() == Point{1, 5}));
  BOOST_TEST(answer.odd.empty());
  // What it knows it still checks, and all of it is JSON.
  for (const char* const text :
       {R"({"colour":1})", R"({"at":{"x":1,"x":2}})", R"({"counts":{"a":1,"a":1}})", R"({"new":x})",
        R"({"new":[1,]})", R"({"counts":{"a":256}})", "{}x", "null"}) {
    BOOST_TEST_INFO_SCOPE(text);
    BOOST_TEST(FromJson(text, answer, Strangers::kSkip) != "");
  }
  BOOST_TEST(FromJson(R"({"new":x})", answer, Strangers::kSkip) ==
             "new: expected a value, at byte 7");
}

BOOST_AUTO_TEST_CASE(a_short_text_makes_no_large_value) {
  std::string text = "[{}";
  for (int i = 0; i < 4000; ++i) text += ",{}";
  std::vector<AllOptional> many;
  BOOST_TEST(FromJson(text + "]", many).find("too many elements for so short a text, at byte ") ==
             0U);
  BOOST_TEST(many.size() * sizeof(many[0]) <=
             internal::kMemoryOfAnyText + internal::kMemoryPerByte * (text.size() + 1));
  BOOST_TEST(many.size() > 100U);
  // But what is written fits.
  All full = Full();
  full.texts.assign(20'000, "ab");
  full.points.assign(20'000, {});
  for (int i = 0; i < 20'000; ++i) full.names[std::to_string(i)];
  All read;
  BOOST_TEST(FromJson(ToJson(full), read) == "");
  BOOST_TEST((read == full));
}

BOOST_AUTO_TEST_CASE(gives_each_field) {
  const auto fields = [](const auto& value, bool all) {
    std::string text;
    internal::EachField(internal::TypeOf<std::remove_cvref_t<decltype(value)>>(), &value, all,
                        [&](std::string_view name, std::string_view json) {
                          ((text += name) += '=') += json;
                          text += ';';
                        });
    return text;
  };
  BOOST_TEST(fields(Odd(), false) == "must=6;");
  BOOST_TEST(fields(Odd(), true) == R"(flag=true;text="given";list=[1,2];maybe=4;must=6;)");
  BOOST_TEST(fields(Explain::Answer(), false) == R"(odd=[];colour="red";)");
  BOOST_TEST(fields(Explain::Answer(), true) == R"(odd=[];colour="red";at=null;counts={};)");
  std::string json = "x";
  internal::AppendJson(json, Explain{"i"});
  BOOST_TEST(json == R"(x{"image":"i"})");
}

BOOST_AUTO_TEST_CASE(takes_no_damage_and_gives_back_what_it_took) {
  const std::regex kLargeExponent(R"([eE]\+?\d{3})");
  std::mt19937_64 random(SeedOfThisRun());
  const std::string seeds[] = {ToJson(Full()), ToJson(All()), ToJson(AllOptional{Full()})};
  std::size_t taken = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = Mutate(seeds[random() % 3], random);
    BOOST_TEST_INFO_SCOPE(text);
    for (const auto strangers : {Strangers::kRefuse, Strangers::kSkip}) {
      All all;
      if (!FromJson(text, all, strangers).empty()) continue;
      ++taken;
      // What is skipped may be a number that no double holds, which nlohmann refuses.
      BOOST_TEST((nlohmann::json::accept(text) || std::regex_search(text, kLargeExponent)));
      All again;
      BOOST_TEST(FromJson(ToJson(all), again, strangers) == "");
      BOOST_TEST((again == all || all.real != all.real));
    }
  }
  BOOST_TEST(taken > 100U);
}

namespace {

struct Scratch {
  std::string text = {};
};
bool FromText(std::string_view text, Scratch& scratch) {
  scratch.text = text;
  return text != "wrong";
}
constexpr std::string_view FormOf(const Scratch*) { return "another word"; }

// As others write: {"name":…,"spec":{"size":…}}.
struct Foreign {
  std::string name = {};
  std::vector<std::string> tags = {};
  std::map<std::string, Point> points = {};
  std::optional<std::string> maybe = {};
  std::optional<Scratch> scratch = {};
  internal::JsonText any = {};
  std::vector<int> items = {};
  std::uint64_t size = 7;
  Colour colour = Colour::kBlue;

  void Describe(auto& v) const {
    v("name", name);
    v.Optional("tags", tags, {.bytes = 3, .count = 2});
    v.Also("a.tags", tags);
    v.Optional("points", points, {.bytes = 4});
    v.Optional("maybe", maybe, {.bytes = 3});
    v.Optional("scratch", scratch, {.bytes = 9});
    v.Optional("any", any);
    v("items", items, {.may_be_null = true});
    v.OptionalWithin("spec", [&](auto& spec) {
      spec("size", size);
      spec.Optional("colour", colour);
    });
  }
};

std::string ForeignIs(const std::string& members, Strangers strangers = Strangers::kGo) {
  const std::string text = R"({"items":[],"name":"n")" + members + "}";  // which `any` borrows
  Foreign value;
  const auto read = internal::ReadForeign(text, 1'000'000, value, strangers);
  if (read) return ToJson(value);
  const bool is_limit = read.error().code == ErrorCode::kLimitExceeded;
  return (is_limit ? "limit: " : "") + read.error().message;
}

}  // namespace

BOOST_AUTO_TEST_CASE(what_others_write_is_read_as_go_reads_it_or_refused) {
  struct Row {
    std::string members;
    std::string is;  // what is written of it, or the problem
  };
  const std::string deep(31, '[');
  const Row rows[] = {
      {"", R"({"name":"n","items":[]})"},
      {R"(,"x":{"x":1,"x":[]},"y":null)", R"({"name":"n","items":[]})"},
      {R"(,"tags":null,"points":null,"maybe":null,"scratch":null,"spec":null)",
       R"({"name":"n","items":[]})"},
      {R"(,"tags":["a","abc"],"any":[1, 2],"spec":{"size":1,"colour":"red"})",
       R"({"name":"n","tags":["a","abc"],"any":[1, 2],"items":[],"spec":{"size":1,"colour":"red"}})"},
      {R"(,"any":null)", R"({"name":"n","any":null,"items":[]})"},
      {R"(,"a.tags":["a"])", R"({"name":"n","tags":["a"],"items":[]})"},
      {R"(,"points":{"a":{"y":1}})", "points[0].x: it is missing or null, at byte 44"},
      {R"(,"points":{"a":null})", "points[0]: expected an object, at byte 37"},
      // What must be there.
      {R"(,"spec":{})", "spec.size: it is missing or null, at byte 32"},
      {R"(,"spec":{"size":null})", "spec.size: it is missing or null, at byte 43"},
      // What would mean two things.
      {R"(,"name":"m")", "name: it is there twice, at byte 23"},
      {R"(,"tags":[],"a.tags":null)", "[\"a.tags\"]: it is there twice, at byte 33"},
      {R"(,"points":{"a":{"x":1},"a":{"x":1}})", "points: a key is there twice, at byte 45"},
      {R"(,"Tags":[])", "(a member): it must be spelled \"tags\", at byte 23"},
      {",\"tag\u017f\":[]", "(a member): it must be spelled \"tags\", at byte 23"},
      {",\"\u212a\":[]", R"({"name":"n","items":[]})"},
      {R"(,"spec":{"SIZE":1})", "spec.(a member): it must be spelled \"size\", at byte 31"},
      {R"(,"tags":["a",null])", "tags[1]: expected an element, not null, at byte 39"},
      // Bounds.
      {R"(,"tags":["abcd"])", "limit: tags[0]: it has more than 3 bytes, at byte 31"},
      {R"(,"tags":["a","a","a"])", "limit: tags: it has more than 2 elements, at byte 39"},
      {R"(,"maybe":"abcd")", "limit: maybe: it has more than 3 bytes, at byte 31"},
      {R"(,"scratch":"0123456789")", "limit: scratch: it has more than 9 bytes, at byte 33"},
      {R"(,"points":{"abcde":{}})", "limit: points: it has more than 4 bytes, at byte 33"},
      {R"(,"x":)" + deep + "[", "limit: (a member): too deep, at byte 59"},
      // Another kind.
      {R"(,"scratch":"wrong")", "scratch: expected another word, at byte 33"},
      {R"(,"spec":{"size":1,"colour":"mauve"})",
       "spec.colour: expected one of red, green, blue, at byte 49"},
      {R"(,"spec":[])", "spec: expected an object, at byte 30"},
      {R"(,"spec":{"size":-1})", "spec.size: the number is out of range, at byte 38"},
      {R"(,"tags":7)", "tags: expected a list, at byte 30"},
      {R"(,"maybe":7)", "maybe: expected a string, at byte 31"}};
  for (const Row& row : rows) {
    BOOST_TEST_INFO_SCOPE(row.members);
    BOOST_TEST(ForeignIs(row.members) == row.is);
  }
  BOOST_TEST(ForeignIs(R"(,"secret":7)", Strangers::kGoStrict) ==
             "(a member): unknown field, at byte 23");
  BOOST_TEST(ForeignIs(R"(,"TAGS":["a"])", Strangers::kGoAnyCase) ==
             R"({"name":"n","tags":["a"],"items":[]})");
  BOOST_TEST(ForeignIs(R"(,"TAGS":[],"tags":[])", Strangers::kGoAnyCase) ==
             "tags: it is there twice, at byte 33");
  Foreign value;
  const auto says = [&](std::string_view text) {
    const auto read = internal::ReadForeign(text, 40, value);
    return read ? "" : read.error().message;
  };
  BOOST_TEST(says(R"({"items":null,"name":"n"})") == "");
  BOOST_TEST(says(R"({"items":null,"name":""})") == "name: it is empty, at byte 21");
  BOOST_TEST(says(R"({"items":null,"name":null})") == "name: it is missing or null, at byte 26");
  BOOST_TEST(says(R"({"name":"n"})") == "items: it is missing or null, at byte 12");
  BOOST_TEST(says(std::string(41, ' ')) == "the document has 41 bytes, above the 40 allowed");
  // Levels that are one too many only for it.
  BOOST_TEST(ForeignIs(",\"x\":" + deep + std::string(31, ']')) == R"({"name":"n","items":[]})");
}

BOOST_AUTO_TEST_CASE(a_member_is_found_without_its_type) {
  constexpr std::string_view kObject = R"({"a":[1, 2],"b":{"c":"d"},"a":"x"})";
  BOOST_TEST(internal::MemberOf(kObject, "a") == R"("x")");
  BOOST_TEST(internal::MemberOf(internal::MemberOf(kObject, "b"), "c") == R"("d")");
  for (const char* text : {"", "[]", "7", R"({"a":1)", R"({"b":1})"}) {
    BOOST_TEST(internal::MemberOf(text, "a") == "", text);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
