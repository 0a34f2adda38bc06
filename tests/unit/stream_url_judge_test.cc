// Addresses of streaming servers beside uriparser, a reader of RFC 3986 by others: what is accepted
// it reads as the same scheme, host, port and path, and resolves to the same place; what is refused
// as no URL is none for it, either. WAYBILL_URLS: how many. WAYBILL_SEED: play one run again.

#include <arpa/inet.h>
#include <uriparser/Uri.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "store/streams/stream_url.h"
#include "tests/support/draw.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(stream_url_judge)

namespace {

using Answer = CheckStreamUrl::Answer;

constexpr std::uint64_t kDefaultUrls = 30'000;

class Uri {
 public:
  Uri() = default;
  ~Uri() { uriFreeUriMembersA(&uri_); }
  Uri(const Uri&) = delete;
  Uri& operator=(const Uri&) = delete;

  // False: not a URI reference.
  bool Parse(std::string_view text) {
    return uriParseSingleUriExA(&uri_, text.data(), text.data() + text.size(), nullptr) ==
           URI_SUCCESS;
  }
  bool Resolve(const Uri& reference, const Uri& base) {
    return uriAddBaseUriA(&uri_, &reference.uri_, &base.uri_) == URI_SUCCESS;
  }

  // What an answer would say.
  Answer Address() const {
    Answer address;
    const std::string scheme = Lower(View(uri_.scheme));
    if (scheme != "http" && scheme != "https") return {};
    address.scheme = scheme;
    address.host = Host();
    address.port = scheme == "https" ? 443 : 80;
    if (uri_.portText.first != nullptr) {
      address.port = static_cast<std::uint16_t>(std::stoul(std::string(View(uri_.portText))));
    }
    for (const UriPathSegmentA* segment = uri_.pathHead; segment != nullptr;
         segment = segment->next) {
      address.path += "/" + std::string(View(segment->text));
    }
    if (address.path.empty()) address.path = "/";
    if (uri_.query.first != nullptr) address.path += "?" + std::string(View(uri_.query));
    return address;
  }
  bool HasUserOrFragment() const {
    return uri_.userInfo.first != nullptr || uri_.fragment.first != nullptr;
  }

 private:
  static std::string_view View(const UriTextRangeA& range) {
    if (range.first == nullptr) return {};
    return {range.first, static_cast<std::size_t>(range.afterLast - range.first)};
  }
  static std::string Lower(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) {
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
  }
  std::string Host() const {
    constexpr std::array<unsigned char, 12> kMapped = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    std::array<char, INET6_ADDRSTRLEN> text{};
    if (const UriIp4* const ip4 = uri_.hostData.ip4) {
      inet_ntop(AF_INET, ip4->data, text.data(), text.size());
      return text.data();
    }
    if (const UriIp6* const ip6 = uri_.hostData.ip6) {
      const bool mapped = std::memcmp(ip6->data, kMapped.data(), kMapped.size()) == 0;
      inet_ntop(mapped ? AF_INET : AF_INET6, ip6->data + (mapped ? kMapped.size() : 0), text.data(),
                text.size());
      return text.data();
    }
    return Lower(View(uri_.hostText));
  }

  UriUriA uri_{};
};

class DrawUrl : public Draw {
 public:
  using Draw::Draw;

  std::string Url() {
    std::string url = Mostly({"http", "https", "http", "HTTPS", "hTTp"},
                             {"", "ftp", "x", "1http", "ht%74p", "http:http", "a+b-c.d", "/"});
    url += Mostly({"://"}, {":", "//", ":/", ":///", "", ":////", "://://"});
    url += Authority();
    return Damaged(url + Path() + Rest());
  }
  std::string Location() {
    if (OneIn(4)) return Url();
    std::string location = From<std::string>({"",
                                              "",
                                              "",
                                              "/",
                                              "/",
                                              "//",
                                              "//" + Authority(),
                                              "//" + Authority(),
                                              "x",
                                              "..",
                                              ".",
                                              "x:y",
                                              "1:2",
                                              ":",
                                              "a%3Ab",
                                              "b/c:d",
                                              "./e:f",
                                              "http:",
                                              "https:x",
                                              "//127.0.0.1",
                                              "///"});
    return Damaged(location + Path() + Rest());
  }

 private:
  std::string Mostly(const std::vector<std::string>& right, const std::vector<std::string>& wrong) {
    return From(OneIn(12) ? wrong : right);
  }
  std::string Number() {
    return From<std::string>({"0", "1", "7", "9", "10", "127", "199", "249", "255", "256", "00",
                              "01", "999", "0x7f", "1e1"});
  }
  std::string Group() {
    return From<std::string>(
        {"0", "1", "ffff", "FFFF", "fe80", "7f00", "00ff", "00000", "10000", "g", "db8", "127"});
  }
  std::string Dotted() {
    std::string text = Number();
    const std::size_t more = OneIn(8) ? Below(6) : 3;
    for (std::size_t i = 0; i < more; ++i) text += "." + Number();
    return text;
  }
  std::string Host() {
    switch (Below(16)) {
      case 0:
        return Dotted();
      case 1:
      case 2: {
        std::string text;
        const std::size_t groups = Below(10);
        const std::size_t gap = Below(groups + 1);
        for (std::size_t i = 0; i < groups; ++i) {
          if (i > 0) text += ":";
          if (i == gap) text += OneIn(8) ? ":::" : ":";
          text += i + 1 == groups && OneIn(3) ? Dotted() : Group();
        }
        if (groups == gap) text += "::";
        return "[" + text + "]";
      }
      case 3:
        return From<std::string>({"localhost", "crio.local", "CRIO.Local", "crio.local.", "a..b",
                                  "~", "a,b", "a!$&'()*+;=b", "evil.example", "1.2.3.4.x", "x.1",
                                  "a_b", "-", ".", "%31", "a%2f"});
      case 4:
        return From<std::string>({"[v1.x]", "[V1.x]", "[v1F.a:b]", "[v.x]", "[v1.]", "[vg.x]",
                                  "[v1]", "[]", "[", "]", "[::1", "::1]", "[127.0.0.1]",
                                  "[::1%25lo]", "[::1]x", "[[::1]]", "[::1%lo]"});
      default:
        return From<std::string>({"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.255.0.9", "[::1]",
                                  "[0:0::0001]", "[::ffff:127.0.0.1]", "[::FFFF:7f01:203]",
                                  "10.0.0.7", "[fd00::7]", "crio.local", "0.0.0.0", "[::]"});
    }
  }
  std::string Authority() {
    std::string text = Mostly({""}, {"@", "u@", "u:p@", "127.0.0.1@", "a%40b@", "@@", "u:%zz@"});
    text += Host();
    return text + Mostly({"", "", ":80", ":41231", ":10010", ":65535"},
                         {":", ":0", ":080", ":65536", ":+80", ":80:80", ":x", ":%38"});
  }
  std::string Path() {
    std::string path;
    for (std::size_t more = Below(7); more > 0; --more) {
      path += From<std::string>({"/",       "//",   "/.",   "/..",   "/./",    "/../",
                                 "/...",    "/..a", "/.a",  "/exec", "/t0ken", "/a;b=c",
                                 "/%2e%2e", "/%2E", "/%2F", "/@x",   "/:80",   "/a%00",
                                 "!$'()*+", "~",    ":",    "a:b",   "/x:y"});
    }
    return path;
  }
  std::string Rest() {
    return Mostly({"", "", "", "?", "?x=y", "?//u@h/", "?/../", "??", "?a:b"},
                  {"?%zz", "#", "#x", "#?", "##", "?x#y", "?[", "/|", "%", "%4", "%4g"});
  }
  std::string Damaged(std::string text) {
    if (!OneIn(4)) return text;
    constexpr std::string_view kOdd = "\t\n \x1f\x7f\\/@:?#%[].01axfFvV\"<>^`{|}~!$&'()*+,;=-_";
    do {
      const std::size_t at = Below(text.size() + 1);
      switch (Below(4)) {
        case 0:
          text.insert(at, 1, kOdd[Below(kOdd.size())]);
          break;
        case 1:
          text.erase(at, 1 + Below(3));
          break;
        case 2:
          text.insert(at, text.substr(Below(text.size() + 1), Below(6)));
          break;
        default:
          if (at < text.size()) text[at] = static_cast<char>(Below(256));
      }
    } while (OneIn(2));
    return text;
  }
};

// What is wrong with an answer to `url`; empty: nothing.
std::string Wrong(const Answer& check, bool is_url, const Uri& uri) {
  if (check.refusal.empty()) {
    if (!is_url) return "accepted, but no URL";
    if (uri.HasUserOrFragment()) return "accepted with user information or a fragment";
    const auto shown = [](const Answer& answer) {
      return answer.scheme + " " + answer.host + " " + std::to_string(answer.port) + " " +
             answer.path;
    };
    if (shown(uri.Address()) != shown(check)) {
      return "accepted as " + shown(check) + ", but it is " + shown(uri.Address());
    }
  }
  if (check.refusal == "syntax" && is_url) return "refused as no URL, but one";
  return {};
}

}  // namespace

BOOST_AUTO_TEST_CASE(reads_as_uriparser) {
  DrawUrl draw(SeedOfThisRun());
  const std::vector<std::string> hosts = {"10.0.0.7", "fd00::7", "crio.local", "0.0.0.0"};
  const std::vector<StreamUrlPolicy> policies = {
      {.same_host_redirects = true},
      {.hosts = hosts, .same_host_redirects = true},
      {.hosts = hosts, .ports = {80, 443, 10010}, .same_host_redirects = true},
      {.hosts = hosts, .require_https = true, .same_host_redirects = true}};
  const std::uint64_t urls = NumberFromEnv("WAYBILL_URLS", kDefaultUrls);
  std::uint64_t accepted = 0;
  std::uint64_t followed = 0;
  std::uint64_t no_url = 0;
  for (std::uint64_t i = 0; i < urls; ++i) {
    const StreamUrlPolicy& policy = draw.From(policies);
    const std::string url = draw.Url();
    const Answer check = JudgeStreamUrl({.url = url, .policy = policy});
    Uri base;
    const bool is_url = base.Parse(url);
    const std::string wrong = Wrong(check, is_url, base);
    BOOST_REQUIRE_MESSAGE(wrong.empty(), url << ": " << wrong);
    if (check.refusal == "syntax") ++no_url;
    if (!check.refusal.empty()) continue;
    ++accepted;
    for (int j = 0; j < 4; ++j) {
      const std::string location = draw.Location();
      const Answer to = JudgeStreamUrl({.url = location, .redirect_from = url, .policy = policy});
      Uri reference;
      Uri resolved;
      const bool is_reference = reference.Parse(location) && resolved.Resolve(reference, base);
      const std::string astray = Wrong(to, is_reference, resolved);
      BOOST_REQUIRE_MESSAGE(astray.empty(), location << " from " << url << ": " << astray);
      if (!to.refusal.empty()) continue;
      ++followed;
      BOOST_REQUIRE_MESSAGE(to.host == check.host, location << " from " << url);
    }
  }
  BOOST_TEST_MESSAGE(accepted << " accepted, " << followed << " followed, " << no_url << " no URL");
  BOOST_TEST(accepted > urls / 20);
  BOOST_TEST(followed > urls / 20);
  BOOST_TEST(no_url > urls / 50);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
