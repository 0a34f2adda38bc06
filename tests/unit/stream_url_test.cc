// Addresses and rates of streams.

#include "store/streams/stream_url.h"

#include <pthread.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/support/draw.h"
#include "waybill/limits.h"
#include "waybill/store.h"
#include "waybill/values.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(stream_url)

namespace {

constexpr std::string_view kToken = "t0kenT0KEN";

// Also checks what holds for every answer.
CheckStreamUrl::Answer Judged(const CheckStreamUrl& call) {
  const auto answer = JudgeStreamUrl(call);
  BOOST_TEST(answer.refusal.empty() == answer.message.empty());
  BOOST_TEST(answer.message.find(kToken) == std::string::npos, answer.message);
  for (const char c : answer.message) {
    BOOST_TEST((static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
  }
  if (!answer.refusal.empty()) {
    BOOST_TEST((answer.scheme + answer.host + answer.path).empty());
    BOOST_TEST(answer.port == 0);
  }
  return answer;
}

std::string Why(std::string_view url, const StreamUrlPolicy& policy = {}) {
  return Judged({.url = std::string(url), .policy = policy}).refusal;
}

std::string Message(std::string_view url, const StreamUrlPolicy& policy = {}) {
  return Judged({.url = std::string(url), .policy = policy}).message;
}

bool Says(const std::string& message, std::string_view part) {
  return message.find(part) != std::string::npos;
}

std::string Shown(const CheckStreamUrl& call) {
  const auto answer = Judged(call);
  if (!answer.refusal.empty()) return answer.refusal;
  return answer.scheme + " " + answer.host + " " + std::to_string(answer.port) + " " + answer.path;
}
std::string Shown(std::string_view url, const StreamUrlPolicy& policy = {}) {
  return Shown(CheckStreamUrl{.url = std::string(url), .policy = policy});
}

}  // namespace

BOOST_AUTO_TEST_CASE(refusals) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> refused = {
      {"character",
       {"http://127.0.0.1/t0kenT0KEN\n", "http:\\\\127.0.0.1/", "http://127.0.0.1\\@evil.example/",
        " http://127.0.0.1/", "http://127.0.0.1/a b", "http://127.0.0.1/\x7f",
        "http://127.0.0.1/\xc3\xbc", "http://127.0.0.1\t/", std::string("http://127.0.0.1/\0", 18),
        "http://\xef\xbc\x91\x32\x37.0.0.1/"}},
      {"scheme",
       {"ftp://127.0.0.1/", "localhost:1234/exec/t0kenT0KEN", "unix:///run/x.sock",
        "httpx://127.0.0.1/", "ws://127.0.0.1/t0kenT0KEN", "http+unix://127.0.0.1/",
        "javascript:alert(1)", "file:///etc/passwd"}},
      {"noHost",
       {"http:", "http:/", "http://", "http:///exec/t0kenT0KEN", "http:exec/t0kenT0KEN",
        "http:127.0.0.1:80/x", "http:/127.0.0.1/", "http://:80/", "http://?x", "http:80/x",
        "http://#"}},
      {"userInfo",
       {"http://user@127.0.0.1/", "http://u:t0kenT0KEN@127.0.0.1/", "http://@127.0.0.1/",
        "http://127.0.0.1@evil.example/", "http://127.0.0.1:80@evil.example:80/",
        "http://127.0.0.1%40evil.example@127.0.0.1/"}},
      {"zone", {"http://[fe80::1%25eth0]/", "http://[::1%lo]/", "http://[::1%25lo]:8/"}},
      {"encodedHost",
       {"http://127.0.0.%31/", "http://%31%32%37.0.0.1/", "http://localhost%00/",
        "http://127.0.0.1%2f/", "http://127.0.0.1%zz/"}},
      {"port",
       {"http://127.0.0.1:/", "http://127.0.0.1:0/", "http://127.0.0.1:+80/",
        "http://127.0.0.1:-1/", "http://127.0.0.1:65536/", "http://127.0.0.1:080/",
        "http://127.0.0.1:4294967376/", "http://127.0.0.1:99999999999999999999/",
        "http://127.0.0.1:0x50/", "http://127.0.0.1:80:80/", "http://[::1]:/", "http://fe80::1/"}},
      {"syntax",
       {"http://[::1/", "http://[::1]x/", "http://[::1]80/", "http://[/", "http://[]/",
        "http://[127.0.0.1]/", "http://[::1]]/", "http://[:::1]/", "http://[::12345]/",
        "http://127.0.0.1/%", "http://127.0.0.1/%zzt0kenT0KEN", "http://127.0.0.1/<t0kenT0KEN>",
        "http://127.0.0.1/[", "http://127.0.0.1^/", "http://127.0.0.1|x/",
        "http://[1:2:3:4:5:6:7:8:9]/"}},
      {"fragment", {"http://127.0.0.1/#", "http://127.0.0.1/x#t0kenT0KEN"}},
      {"addressForm",
       {"http://127.1/", "http://0177.0.0.1/", "http://2130706433/", "http://0x7f.1/",
        "http://0x7f000001/", "http://127.0.0.01/", "http://127.0.0.1./", "http://127.0.0.256/",
        "http://127.0.0.1.1/", "http://1.2.3/", "http://127.0.0.0x1/", "http://[v1.x]/",
        "http://[v7.::1]/", "http://0x/"}},
      {"hostName",
       {"http://localhost:80/t0kenT0KEN", "http://localhost./", "http://evil.example/",
        "http://127.0.0.1.nip.example/", "http://127.0.0.1,evil/", "http://~/", "http://./",
        "http://1e7/"}},
      {"unspecified",
       {"http://0.0.0.0/", "http://[::]:35557/", "http://[0::0]/", "http://[::ffff:0.0.0.0]/"}},
      {"notAllowed",
       {"http://10.0.0.1/", "http://128.0.0.1/", "http://126.255.255.255/", "http://0.0.0.1/",
        "http://169.254.169.254/latest", "http://[::127.0.0.1]/", "http://[::2]/",
        "http://[fe80::1]/", "http://[::ffff:10.0.0.1]/", "http://[64:ff9b::7f00:1]/",
        "http://[::ffff:0:127.0.0.1]/", "http://[100::1]/"}},
  };
  for (const auto& [refusal, urls] : refused) {
    for (const std::string& url : urls) {
      BOOST_TEST_CONTEXT(url) { BOOST_TEST(Why(url) == refusal); }
    }
  }
}

BOOST_AUTO_TEST_CASE(policies) {
  const StreamUrlPolicy listed = {
      .hosts = {"10.0.0.7", "FD00::7", "crio.Local", "0.0.0.0", "::ffff:10.0.0.8"},
      .ports = {80, 10010}};
  BOOST_TEST(Shown("http://10.0.0.7/", listed) == "http 10.0.0.7 80 /");
  BOOST_TEST(Shown("http://[::ffff:10.0.0.7]/", listed) == "http 10.0.0.7 80 /");
  BOOST_TEST(Shown("http://10.0.0.8/", listed) == "http 10.0.0.8 80 /");
  BOOST_TEST(Shown("http://[fd00:0::07]:10010/", listed) == "http fd00::7 10010 /");
  BOOST_TEST(Shown("http://CRIO.local/", listed) == "http crio.local 80 /");
  BOOST_TEST(Shown("http://0.0.0.0/", listed) == "http 0.0.0.0 80 /");
  BOOST_TEST(Shown("http://127.0.0.1/", listed) == "http 127.0.0.1 80 /");
  BOOST_TEST(Why("http://[::]/", listed) == "unspecified");
  BOOST_TEST(Why("http://10.0.0.9/", listed) == "notAllowed");
  BOOST_TEST(Why("http://crio.local./", listed) == "hostName");
  BOOST_TEST(Why("http://a.crio.local/", listed) == "hostName");
  BOOST_TEST(Why("http://127.0.0.1:81/", listed) == "portNotAllowed");
  BOOST_TEST(Why("https://127.0.0.1/", listed) == "portNotAllowed");

  const StreamUrlPolicy tls = {.require_https = true};
  BOOST_TEST(Why("http://127.0.0.1/", tls) == "notHttps");
  BOOST_TEST(Why("//127.0.0.1/", tls) == "noScheme");
  BOOST_TEST(Why("https://127.0.0.1/", tls) == "");

  using Hosts = std::vector<std::string>;
  for (const std::string& wrong :
       Hosts{"", "127.1", "0177.0.0.1", "10.0.0.0/8", "[::1]", "fe80::1%eth0", "*.local", "a b",
             "a..b", ".a", std::string("127.0.0.1\0x", 11), std::string("a\nb"),
             std::string(254, 'a'), "http://x", "1.2.3.4.", "\xc3\xbc.example"}) {
    BOOST_TEST_CONTEXT(wrong) {
      BOOST_TEST(Why("http://127.0.0.1/", {.hosts = {wrong}}) == "policy");
    }
  }
  BOOST_TEST(Why("http://127.0.0.1/", {.ports = {0}}) == "policy");
  BOOST_TEST(Why("http://127.0.0.1/", {.hosts = Hosts(kMaxStreamHosts, "a")}) == "");
  BOOST_TEST((Why("http://127.0.0.1/", {.hosts = Hosts(kMaxStreamHosts + 1, "a")}) == "policy"));
  using Ports = std::vector<std::uint16_t>;
  BOOST_TEST((Why("http://127.0.0.1/", {.ports = Ports(kMaxStreamPorts + 1, 80)}) == "policy"));
}

BOOST_AUTO_TEST_CASE(the_longest) {
  std::vector<std::string> urls;
  for (const std::string part : {"a", ",", "/", ":", "@", ".", ";", "?", "%41"}) {
    std::string url = "http://127.0.0.1/";
    while (url.size() + part.size() <= kMaxStreamUrlBytes) url += part;
    url.resize(kMaxStreamUrlBytes, 'a');
    BOOST_TEST_CONTEXT(part) {
      BOOST_TEST(Why(url) == "");
      BOOST_TEST(Why(url + 'a') == "tooLong");
    }
    urls.push_back(url);
  }
  for (const std::string bad : {"http://127.0.0.1/%zz", "http://127.0.0.1/a|b", "http://[::g]/"}) {
    BOOST_TEST_CONTEXT(bad) {
      BOOST_TEST(Why(bad) == "syntax");
      BOOST_TEST(Says(Message(bad), "where it may not, in its host, path or query"));
    }
  }
  const std::string long_host(kMaxStreamUrlBytes - 7, '1');
  BOOST_TEST(Why("http://" + long_host) == "addressForm");
  BOOST_TEST(Message("http://" + long_host).size() < 600U);
  urls.push_back("http://" + long_host);

  // The longest URL must fit a small stack.
  pthread_attr_t small;
  BOOST_REQUIRE(pthread_attr_init(&small) == 0);
  BOOST_REQUIRE(pthread_attr_setstacksize(&small, std::size_t{512} << 10) == 0);
  pthread_t thread;
  const auto check_all = [](void* list) -> void* {
    const StreamUrlPolicy follow = {.same_host_redirects = true};
    for (const std::string& url : *static_cast<const std::vector<std::string>*>(list)) {
      static_cast<void>(JudgeStreamUrl({.url = url, .redirect_from = url, .policy = follow}));
    }
    return nullptr;
  };
  BOOST_REQUIRE(pthread_create(&thread, &small, check_all, &urls) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&small);
}

BOOST_AUTO_TEST_CASE(redirects) {
  const std::string_view from = "http://127.0.0.1:41231/cri/exec/t0ken?a=b";
  const StreamUrlPolicy follow = {.hosts = {"10.0.0.7"}, .same_host_redirects = true};
  const auto shown = [&](std::string_view location, std::string_view original,
                         const StreamUrlPolicy& policy) {
    return Shown(CheckStreamUrl{
        .url = std::string(location), .redirect_from = std::string(original), .policy = policy});
  };
  BOOST_TEST(shown("/x", from, StreamUrlPolicy{}) == "redirect");
  BOOST_TEST(shown("", from, follow) == "redirectHost");
  BOOST_TEST(shown("/x", from, follow) == "http 127.0.0.1 41231 /x");
  BOOST_TEST(shown("x/y", from, follow) == "http 127.0.0.1 41231 /cri/exec/x/y");
  BOOST_TEST(shown("x", "http://127.0.0.1", follow) == "http 127.0.0.1 80 /x");
  BOOST_TEST(shown("x/./y/../z", from, follow) == "redirectHost");
  BOOST_TEST(shown("../../../x", from, follow) == "redirectHost");
  BOOST_TEST(shown("..", from, follow) == "redirectHost");
  BOOST_TEST(shown("?c", from, follow) == "http 127.0.0.1 41231 /cri/exec/t0ken?c");
  BOOST_TEST(shown("http://127.0.0.1:9/y", from, follow) == "http 127.0.0.1 9 /y");
  BOOST_TEST(shown("//127.0.0.1/y", from, follow) == "http 127.0.0.1 80 /y");
  BOOST_TEST(shown("https://[::ffff:7f00:1]/y", from, follow) == "https 127.0.0.1 443 /y");
  // Allowed by itself, but another host.
  BOOST_TEST(shown("http://127.0.0.2/", from, follow) == "redirectHost");
  BOOST_TEST(shown("http://[::1]/", from, follow) == "redirectHost");
  BOOST_TEST(shown("//10.0.0.7/t0kenT0KEN", from, follow) == "redirectHost");
  // Not allowed by itself.
  BOOST_TEST(shown("http://evil.example/t0kenT0KEN", from, follow) == "hostName");
  BOOST_TEST(shown("//u@127.0.0.1/", from, follow) == "userInfo");
  BOOST_TEST(shown("/\\evil.example", from, follow) == "character");
  BOOST_TEST(shown("\t//evil.example", from, follow) == "character");
  BOOST_TEST(shown("javascript:1", from, follow) == "scheme");
  BOOST_TEST(shown("ftp:x", from, follow) == "scheme");
  BOOST_TEST(shown("http:x", from, follow) == "noHost");
  BOOST_TEST(shown("http:///x", from, follow) == "noHost");
  BOOST_TEST(shown("///x", from, follow) == "noHost");
  // Not http://127.0.0.1/x: a path without its dots is still no host.
  BOOST_TEST(shown("http:/.//127.0.0.1/x", from, follow) == "noHost");
  BOOST_TEST(shown("http:/a/..//127.0.0.1/x", from, follow) == "noHost");
  BOOST_TEST(shown("#x", from, follow) == "fragment");
  BOOST_TEST(shown("127.0.0.1:80/t0kenT0KEN", from, follow) == "syntax");
  // By RFC 3986 a path; for others a host.
  BOOST_TEST(shown("/.//evil.example/x", from, follow) == "redirectHost");
  BOOST_TEST(shown("http://127.0.0.1//evil.example/x", from, follow) == "redirectHost");
  BOOST_TEST(shown("?b", "http://127.0.0.1/a/../b", follow) == "redirectHost");
  BOOST_TEST(shown("?b", "http://127.0.0.1/a/.", follow) == "redirectHost");
  BOOST_TEST(shown("c/", "http://127.0.0.1/a/./b?/../", follow) == "redirectHost");
  BOOST_TEST(shown("c/", "http://127.0.0.1/a/b?/../", follow) == "http 127.0.0.1 80 /a/c/");
  BOOST_TEST(shown("/x", "https://127.0.0.1/", follow) == "https 127.0.0.1 443 /x");
  BOOST_TEST(shown("http://127.0.0.1/", "https://127.0.0.1/", follow) == "redirectDowngrade");
  BOOST_TEST(shown("/x", "http://10.0.0.8/", follow) == "notAllowed");
  BOOST_TEST(shown("/x", "//127.0.0.1/", follow) == "noScheme");
  const std::string far(kMaxStreamUrlBytes - 2, 'a');
  BOOST_TEST(shown("/a" + far, from, follow) == "tooLong");
  BOOST_TEST(shown("/aa" + far, from, follow) == "tooLong");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(rate_limit)

namespace {

__extension__ using Wide = unsigned __int128;

constexpr auto kMaxBytes = std::numeric_limits<std::uint64_t>::max();
constexpr auto kEarliest = std::numeric_limits<std::int64_t>::min();
constexpr auto kLatest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kSecond = 1'000'000'000;

}  // namespace

BOOST_AUTO_TEST_CASE(no_limit) {
  RateLimit limit({}, 0);
  BOOST_TEST(limit.Take(kMaxBytes, 0) == kMaxBytes);
  BOOST_TEST(limit.Take(kMaxBytes, kEarliest) == kMaxBytes);
  BOOST_TEST(limit.Wait(kMaxBytes, kLatest) == 0);
  limit.GiveBack(kMaxBytes);
  RateLimit with_burst({.burst_bytes = 5}, 0);
  BOOST_TEST(with_burst.Take(100, 0) == 100U);
  BOOST_TEST(with_burst.burst_bytes() == 0U);
}

BOOST_AUTO_TEST_CASE(giving_back) {
  RateLimit limit({.bytes_per_second = 1000, .burst_bytes = 100}, 0);
  BOOST_TEST(limit.Take(80, 0) == 80U);
  limit.GiveBack(50);
  BOOST_TEST(limit.Take(100, 0) == 70U);
  limit.GiveBack(kMaxBytes);
  BOOST_TEST(limit.Take(kMaxBytes, 0) == 100U);
}

BOOST_AUTO_TEST_CASE(a_clock_that_goes_back) {
  RateLimit limit({.bytes_per_second = 1000, .burst_bytes = 100}, 50 * kSecond);
  BOOST_TEST(limit.Take(100, 50 * kSecond) == 100U);
  BOOST_TEST(limit.Take(100, kEarliest) == 0U);
  BOOST_TEST(limit.Wait(10, kEarliest) == kSecond / 100);
  BOOST_TEST(limit.Take(10, kEarliest + kSecond / 100) == 10U);
}

// Any schedule: never more than burst + rate * elapsed. A greedy caller: all of it, within a byte.
BOOST_AUTO_TEST_CASE(what_passes) {
  testing::Draw draw(testing::SeedOfThisRun());
  for (int round = 0; round < 300; ++round) {
    const auto number = [&](int bits) {
      return draw.Below(std::size_t{1} << (1 + draw.Below(static_cast<std::size_t>(bits))));
    };
    const std::uint64_t rate = 1 + number(40);
    const std::uint64_t burst = 1 + number(30);
    const bool greedy = draw.OneIn(2);
    std::int64_t now = static_cast<std::int64_t>(number(60));
    RateLimit limit({.bytes_per_second = rate, .burst_bytes = burst}, now);
    Wide elapsed = 0;
    Wide passed = 0;
    bool full = false;  // was it full for a while, so that some of the rate is lost?
    if (greedy) passed += limit.Take(kMaxBytes, now);
    for (int step = 0; step < 300; ++step) {
      if (!greedy && draw.OneIn(8)) {
        now -= static_cast<std::int64_t>(number(40));
      } else {
        // Greedy callers come before the bucket is full.
        const std::uint64_t most =
            greedy ? std::max<std::uint64_t>(static_cast<std::uint64_t>(std::min<Wide>(
                                                 Wide{burst} * kSecond / rate, kSecond * 1000)),
                                             1)
                   : std::uint64_t{1} << 40;
        const auto forward = static_cast<std::int64_t>(draw.Below(most));
        if (Wide{static_cast<std::uint64_t>(forward)} * rate > (Wide{burst} - 1) * kSecond) {
          full = true;
        }
        now += forward;
        elapsed += static_cast<std::uint64_t>(forward);
      }
      const std::uint64_t wanted = greedy || draw.OneIn(4) ? kMaxBytes : number(32);
      const std::uint64_t took = limit.Take(wanted, now);
      passed += took;
      if (!greedy && took > 0 && draw.OneIn(4)) {
        const std::uint64_t back = draw.Below(took) + 1;
        limit.GiveBack(back);
        passed -= back;
      }
      if (!greedy && draw.OneIn(4)) {
        // Waiting as long as it says is enough, and a nanosecond less is not.
        const std::uint64_t ask = 1 + number(30);
        const std::int64_t wait = limit.Wait(ask, now);
        BOOST_REQUIRE(wait >= 0);
        if (wait > 0 && wait < kSecond * 1'000'000) {
          RateLimit early = limit;
          BOOST_REQUIRE(early.Take(ask, now + wait - 1) < std::min(ask, burst));
          now += wait;
          elapsed += static_cast<std::uint64_t>(wait);
          const std::uint64_t after = limit.Take(ask, now);
          BOOST_REQUIRE(after == std::min(ask, burst));
          passed += after;
        }
      }
      BOOST_REQUIRE(passed <= burst + elapsed * rate / kSecond);
      if (greedy && !full) BOOST_REQUIRE(passed == burst + elapsed * rate / kSecond);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
