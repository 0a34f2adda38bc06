// Every cell of KEP-1558's table, every step of its rollout plan and every breakage that it names,
// as the released sources have them; and how settings are read.

#include "store/streams/streaming_plan.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/words.h"
#include "store/streams/streaming_facts.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "waybill/values.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(streaming_plan)

namespace {

using Component = StreamingComponent;
using Severity = StreamingSeverity;
using streaming::kDeclaredGate, streaming::kExecGate, streaming::kExtendGate,
    streaming::kFollowGate, streaming::kForwardGate, streaming::kValidateGate;
using Outcome = StreamingOutcome;
using Follower = RedirectFollower;
using Check = RedirectCheck;
using Translator = WebSocketTranslator;
using Gates = std::vector<std::pair<std::string_view, bool>>;
using Arguments = std::vector<std::string>;

constexpr Component kBoth[] = {Component::kKubelet, Component::kApiServer};
constexpr std::uint32_t kOldest = kOldestStreamingRelease;
constexpr std::uint32_t kNewest = kNewestStreamingRelease;

struct Pair {
  std::uint32_t api_server;
  std::uint32_t kubelet;
  std::optional<bool> redirect = std::nullopt;
  Gates api_gates = {};
  Gates kubelet_gates = {};
};

Arguments Flags(std::optional<bool> redirect, const Gates& gates) {
  Arguments flags;
  if (redirect)
    flags.emplace_back(*redirect ? "--redirect-container-streaming=true"
                                 : "--redirect-container-streaming=false");
  for (const auto& [gate, enabled] : gates) {
    flags.push_back("--feature-gates=" + std::string(gate) + (enabled ? "=true" : "=false"));
  }
  return flags;
}

StreamPlan Plan(const Pair& pair) {
  return StreamingPlan(
             {Component::kApiServer, pair.api_server, Flags(std::nullopt, pair.api_gates)},
             {Component::kKubelet, pair.kubelet, Flags(pair.redirect, pair.kubelet_gates)})
      .value();
}

// "kubelet -> notNeeded (notNeeded): works; supported"
std::string Summary(const StreamPlan& answer) {
  std::string summary(WordOf(answer.proxy));
  summary.append(" -> ").append(WordOf(answer.follower)).append(" (");
  summary.append(WordOf(answer.check)).append("): ");
  summary.append(WordOf(answer.outcome)).append("; ");
  return summary.append(WordOf(answer.skew));
}

StreamingLint Lint(Component component, std::uint32_t minor, Arguments arguments) {
  return LintStreaming({component, minor, std::move(arguments)}).value();
}

// "fatal --x; ignored Y"
std::string Brief(const std::vector<StreamFinding>& findings) {
  std::string brief;
  for (const StreamFinding& finding : findings) {
    if (!brief.empty()) brief += "; ";
    brief.append(WordOf(finding.severity)).append(" ").append(finding.subject);
  }
  return brief;
}

std::string Words(const StreamingLint& lint) {
  std::string words;
  for (const StreamFinding& finding : lint.findings) words += finding.words + "\n";
  return words;
}

bool Contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

// KEP-1558, "Background": the table of the flag and the gate.
BOOST_AUTO_TEST_CASE(cells_of_the_table) {
  const Gates on = {{kFollowGate, true}};
  const Gates off = {{kFollowGate, false}};
  for (std::uint32_t minor = 14; minor <= 19; ++minor) {
    BOOST_TEST_CONTEXT("1." << minor) {
      const std::string proxied = "kubelet -> notNeeded (notNeeded): works; supported";
      BOOST_TEST(Summary(Plan({minor, minor, false, on})) == proxied);
      BOOST_TEST(Summary(Plan({minor, minor, false, off})) == proxied);
      BOOST_TEST(Summary(Plan({minor, minor, true, on})) ==
                 "redirect -> apiServer (sameHost): worksOnSameHost; supported");
      BOOST_TEST(Summary(Plan({minor, minor, true, off})) ==
                 "redirect -> nobody (notNeeded): fails; supported");
      // The default of both is the first cell.
      BOOST_TEST(Summary(Plan({minor, minor})) == proxied);
      BOOST_TEST(Summary(Plan({minor, minor, true})) == Summary(Plan({minor, minor, true, on})));
    }
  }
}

// "To mitigate SSRF attacks … the ValidateProxyRedirects feature was added".
BOOST_AUTO_TEST_CASE(redirects_are_validated) {
  const Gates off = {{kValidateGate, false}};
  const Gates on = {{kValidateGate, true}};
  for (std::uint32_t minor = kOldest; minor <= 19; ++minor) {
    BOOST_TEST_CONTEXT("1." << minor) {
      BOOST_TEST(
          (Plan({minor, minor, true}).check == (minor < 14 ? Check::kNone : Check::kSameHost)));
      if (minor >= 12) {
        BOOST_TEST((Plan({minor, minor, true, off}).check == Check::kNone));
        BOOST_TEST((Plan({minor, minor, true, off}).outcome == Outcome::kWorks));
        BOOST_TEST((Plan({minor, minor, true, on}).check ==
                    (minor < 13 ? Check::kNone : Check::kSameHost)));
      }
    }
  }
  const auto notes = Plan({18, 18, true, off}).notes;
  BOOST_TEST_REQUIRE(notes.size() == 1U);
  BOOST_TEST(Contains(notes[0], "SSRF"));
}

// KEP-1558, "Rollout Plan", of a node and a control plane of the same release, and where the
// releases differ from it (store/streams/streaming_facts.h).
BOOST_AUTO_TEST_CASE(steps_of_the_rollout) {
  struct Step {
    std::uint32_t minor;
    std::string_view flag;        // --redirect-container-streaming=true
    std::string_view with_flag;   // what comes of it
    std::string_view streaming;   // StreamingProxyRedirects=true at the API server
    std::string_view validating;  // ValidateProxyRedirects=true
    bool follows;                 // by default
  };
  const Step steps[] = {
      {17, "", "redirect worksOnSameHost", "", "", true},
      // 1.1 and 1.2: both deprecated, with a warning.
      {18, "deprecated", "redirect worksOnSameHost", "deprecated", "", true},
      {19, "deprecated", "redirect worksOnSameHost", "deprecated", "", true},
      // 3.1: the flag can't be enabled any more.
      {20, "removed", "kubelet works", "deprecated", "", true},
      {21, "removed", "kubelet works", "deprecated", "", true},
      // 4.1: the gate is off by default. The flag is gone two releases before the KEP's 5.1.
      {22, "fatal", "kubelet doesNotStart", "deprecated", "deprecated", false},
      {23, "fatal", "kubelet doesNotStart", "deprecated", "deprecated", false},
      // 5.2: the gates are gone.
      {24, "fatal", "kubelet doesNotStart", "fatal", "fatal", false},
      {25, "fatal", "kubelet doesNotStart", "fatal", "fatal", false},
      {kNewest, "fatal", "kubelet doesNotStart", "fatal", "fatal", false},
      {kNewest + 1, "fatal", "kubelet doesNotStart", "fatal", "fatal", false},
  };
  const auto severity = [](const std::vector<StreamFinding>& findings) {
    return findings.empty() ? "" : WordOf(findings[0].severity);
  };
  for (const Step& step : steps) {
    BOOST_TEST_CONTEXT("1." << step.minor) {
      const auto flag = Plan({step.minor, step.minor, true});
      BOOST_TEST(severity(flag.findings) == step.flag);
      BOOST_TEST(std::string(WordOf(flag.proxy)).append(" ").append(WordOf(flag.outcome)) ==
                 step.with_flag);
      // pflag warns of =false as well, and a flag that is gone is gone.
      BOOST_TEST(severity(Plan({step.minor, step.minor, false}).findings) == step.flag);
      for (const auto& [gate, expected] :
           {std::pair(kFollowGate, step.streaming), std::pair(kValidateGate, step.validating)}) {
        const auto plan = Plan({step.minor, step.minor, {}, {{gate, true}}});
        BOOST_TEST(severity(plan.findings) == expected);
        BOOST_TEST((plan.outcome == Outcome::kDoesNotStart) == (expected == "fatal"));
      }
      BOOST_TEST((Plan({step.minor, 19, true}).follower == Follower::kApiServer) == step.follows);
      BOOST_TEST(Summary(Plan({step.minor, step.minor})) ==
                 "kubelet -> notNeeded (notNeeded): works; supported");
    }
  }
}

// Those of older releases: transcripts/streaming-lint.txt.
BOOST_AUTO_TEST_CASE(gates_of_newer_releases_have_their_words) {
  const auto gate = [](std::uint32_t minor, const std::string& pair) {
    return Words(Lint(Component::kApiServer, minor, {"--feature-gates=" + pair}));
  };
  BOOST_TEST(gate(37, "NodeDeclaredFeatures=true") ==
             "Warning: setting GA feature gate. It will be removed in a future release. "
             "featureGate=\"NodeDeclaredFeatures\" value=true\n");
  BOOST_TEST(gate(37, "NodeDeclaredFeatures=false") ==
             "cannot set feature gate NodeDeclaredFeatures to false, feature is locked to true\n");
  for (const std::string name : {"ExtendWebSocketsToKubelet", "PortForwardWebsockets",
                                 "TranslateStreamCloseWebsocketRequests"}) {
    BOOST_TEST(gate(37, name + "=false").empty());
    BOOST_TEST(gate(38, name + "=false") ==
               "cannot set feature gate " + name + " to false, feature is locked to true\n");
  }
  BOOST_TEST(gate(36, "NodeDeclaredFeatures=false") ==
             "ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: "
             "[NodeDeclaredFeatures]\n");
  BOOST_TEST(gate(36, "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false").empty());
}

// KEP-1558, "Rollout breakage": no configuration is updated, and a control plane goes ahead.
BOOST_AUTO_TEST_CASE(breakages_of_the_rollout) {
  const Gates on = {{kFollowGate, true}};
  // 1: the flag can't be set: from 1.20 on the kubelet proxies whatever it says.
  for (const std::uint32_t kubelet : {20U, 21U}) {
    for (std::uint32_t api_server = kubelet; api_server <= 24; ++api_server) {
      const auto plan = Plan({api_server, kubelet, true});
      BOOST_TEST((plan.proxy == StreamingProxy::kKubelet));
      BOOST_TEST((plan.outcome == Outcome::kWorks));
    }
  }
  // 2: StreamingProxyRedirects off or gone, and old nodes that still redirect.
  for (std::uint32_t kubelet = kOldest; kubelet <= 19; ++kubelet) {
    for (std::uint32_t api_server = std::max(kubelet, 14U); api_server <= kNewest; ++api_server) {
      BOOST_TEST_CONTEXT("kubelet 1." << kubelet << ", API server 1." << api_server) {
        const auto plan = Plan({api_server, kubelet, true});
        BOOST_TEST((plan.outcome == Outcome::kFails) == (api_server >= 22));
        // So it takes a skew that was never supported; the KEP says >= 2.
        if (plan.outcome == Outcome::kFails) {
          BOOST_TEST((plan.skew == VersionSkew::kKubeletTooOld));
          BOOST_TEST(plan.notes.size() >= 3U);
        }
        // "In this case, the StreamingProxyRedirects can still be manually enabled": not from 1.24.
        const auto enabled = Plan({api_server, kubelet, true, on});
        BOOST_TEST((enabled.outcome ==
                    (api_server < 24 ? Outcome::kWorksOnSameHost : Outcome::kDoesNotStart)));
        BOOST_TEST((Plan({api_server, kubelet, false}).outcome == Outcome::kWorks));
      }
    }
  }
  // 3: flags and gates that are gone stop what still has them, whatever the other side is.
  BOOST_TEST((Plan({24, 22, true}).outcome == Outcome::kDoesNotStart));
  BOOST_TEST((Plan({24, 23, {}, on}).outcome == Outcome::kDoesNotStart));
  BOOST_TEST((Plan({23, 23, {}, {}, on}).outcome == Outcome::kWorks));
  BOOST_TEST((Plan({24, 24, {}, {}, on}).outcome == Outcome::kDoesNotStart));
  // What would hold without the fatal setting.
  BOOST_TEST((Plan({24, 22, true}).proxy == StreamingProxy::kKubelet));
}

BOOST_AUTO_TEST_CASE(version_skew) {
  const auto skew = [](std::uint32_t api_server, std::uint32_t kubelet) {
    return WordOf(Plan({api_server, kubelet}).skew);
  };
  BOOST_TEST(skew(20, 18) == "supported");
  BOOST_TEST(skew(21, 18) == "kubeletTooOld");
  BOOST_TEST(skew(18, 19) == "kubeletNewer");
  BOOST_TEST(skew(27, 25) == "supported");
  BOOST_TEST(skew(27, 24) == "kubeletTooOld");
  BOOST_TEST(skew(28, 25) == "supported");
  BOOST_TEST(skew(29, 25) == "kubeletTooOld");
  BOOST_TEST(skew(39, 36) == "supported");
  BOOST_TEST(Plan({39, 36}).notes.size() == 1U);
  BOOST_TEST(Plan({21, 18}).notes.size() == 1U);
  BOOST_TEST(Plan({20, 18}).notes.empty());
}

// KEP-4006, "Version Skew Strategy": three API servers, two kubelets.
BOOST_AUTO_TEST_CASE(who_translates_websockets) {
  const std::string_view exec = kExecGate;
  const std::string_view forward = kForwardGate;
  const std::string_view extend = kExtendGate;
  const auto both = [](const Pair& pair) {
    const auto plan = Plan(pair);
    return std::string(WordOf(plan.exec_websockets)) + " " +
           std::string(WordOf(plan.port_forward_websockets));
  };
  BOOST_TEST(both({28, 28}) == "nobody nobody");
  BOOST_TEST(both({29, 29}) == "nobody nobody");
  BOOST_TEST(both({29, 29, {}, {{exec, true}}}) == "apiServer nobody");
  BOOST_TEST(both({29, 29, {}, {{streaming::kAllAlpha, true}}}) == "apiServer nobody");
  BOOST_TEST(both({30, 30}) == "apiServer nobody");
  BOOST_TEST(both({30, 30, {}, {{streaming::kAllAlpha, true}}}) == "apiServer apiServer");
  BOOST_TEST(both({31, 31}) == "apiServer apiServer");
  BOOST_TEST(both({31, 31, {}, {{exec, false}, {forward, false}}}) == "nobody nobody");
  BOOST_TEST(both({35, 35}) == "apiServer apiServer");
  BOOST_TEST(both({35, 35, {}, {{streaming::kAllBeta, false}}}) == "nobody nobody");
  BOOST_TEST(both({35, 35, {}, {{streaming::kAllBeta, false}, {exec, true}}}) ==
             "apiServer nobody");
  for (const std::uint32_t api_server : {36U, 37U}) {
    BOOST_TEST(both({api_server, 36}) == "kubelet kubelet");
    BOOST_TEST(both({api_server, 35}) == "apiServer apiServer");
    BOOST_TEST(both({api_server, 36, {}, {}, {{extend, false}}}) == "apiServer apiServer");
    BOOST_TEST(both({api_server, 36, {}, {{extend, false}}}) == "apiServer apiServer");
    // The plain proxy of the API server passes WebSockets on to a kubelet that translates them.
    BOOST_TEST(both({api_server, 36, {}, {{exec, false}}}) == "kubelet kubelet");
    BOOST_TEST(both({api_server, 35, {}, {{exec, false}}}) == "nobody apiServer");
  }
  BOOST_TEST(both({35, 36}) == "apiServer apiServer");
}

BOOST_AUTO_TEST_CASE(versions_are_parsed) {
  const auto minor = [](std::string_view text) {
    const auto release = ParseKubernetesRelease(text);
    return release ? static_cast<int>(*release) : -1;
  };
  for (const std::string_view text :
       {"v1.22.3", "1.22", "v1.22", "1.22.3", "v1.22.0-rc.1+k3s1", "1.22+", "Kubernetes v1.22.17",
        "v1.22.3-gke.100", "v1.22.14-eks-6d3986b", "1.22.0-alpha.1.23+abcdef-dirty"}) {
    BOOST_TEST(minor(text) == 22, text);
  }
  BOOST_TEST(minor("v1.11.0") == 11);
  BOOST_TEST(minor("v1.9999") == 9999);
  for (const std::string_view text :
       {"",       "v",      "1",     "1.",    "1.22.",         "v.22",     "1.22.3.4",
        "1,22",   "1.22 ",  " 1.22", "1.-22", "1.+22",         "1.22-a_b", "vv1.22",
        "1.22\n", "1.10.9", "0.22",  "2.0",   "1.99999999999", "v1.22.x",  "kubernetes v1.22"}) {
    const auto version = ParseKubernetesRelease(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST_REQUIRE(!version.has_value());
      BOOST_TEST((version.error().code == ErrorCode::kInvalidArgument));
      BOOST_TEST(!version.error().hint.empty());
      BOOST_TEST(!Contains(version.error().message, "\n"));
    }
  }
  BOOST_TEST(!ParseKubernetesRelease("1.22-" + std::string(1000, 'a')).has_value());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_request) {
  const Error plan =
      testing::ExpectError(StreamingPlan({Component::kApiServer, 10}, {Component::kKubelet, 18}),
                           ErrorCode::kInvalidArgument);
  BOOST_TEST(Contains(plan.message, "1.10"));
  const Arguments many(kMaxStreamingArguments + 1, "-v");
  testing::ExpectError(LintStreaming({Component::kKubelet, 30, many}), ErrorCode::kLimitExceeded);
  const Arguments large = {std::string(kMaxStreamingSettingsBytes + 1, 'x')};
  testing::ExpectError(LintStreaming({Component::kKubelet, 30, large}), ErrorCode::kLimitExceeded);
}

BOOST_AUTO_TEST_CASE(flags_are_read_as_pflag_reads_them) {
  const auto redirect = [](Arguments arguments) {
    return Lint(Component::kKubelet, 18, std::move(arguments)).redirects;
  };
  for (const std::string value : {"", "=1", "=t", "=T", "=true", "=TRUE", "=True"}) {
    BOOST_TEST((redirect({"--redirect-container-streaming" + value}) == true), value);
    BOOST_TEST((redirect({"--redirect_container-streaming" + value}) == true), value);
  }
  for (const std::string value : {"=0", "=f", "=F", "=false", "=FALSE", "=False"}) {
    BOOST_TEST((redirect({"--redirect-container-streaming" + value}) == false), value);
  }
  // The last one wins; one of each kind is reported.
  const auto twice = Lint(Component::kKubelet, 18,
                          {"--redirect-container-streaming", "--redirect_container_streaming=F"});
  BOOST_TEST((twice.redirects == false));
  BOOST_TEST_REQUIRE(twice.findings.size() == 1U);
  BOOST_TEST(twice.findings[0].setting == "--redirect_container_streaming=F");
  for (const std::string bad : {"yes", "tRUE", "", "2", "\x1b[31m"}) {
    const auto lint = Lint(Component::kKubelet, 18, {"--redirect-container-streaming=" + bad});
    BOOST_TEST(Brief(lint.findings) == "fatal --redirect-container-streaming", bad);
    BOOST_TEST(Contains(Words(lint), "strconv.ParseBool"));
    BOOST_TEST(!Contains(Words(lint) + lint.findings[0].setting, "\x1b"));
    BOOST_TEST(!lint.redirects.has_value());
  }
  // One dash: letters, of which the first is no flag.
  BOOST_TEST(Words(Lint(Component::kKubelet, 18, {"-redirect-container-streaming=true"})) ==
             "unknown shorthand flag: 'r' in -redirect-container-streaming=true\n");
  BOOST_TEST(Words(Lint(Component::kKubelet, 18, {"--Redirect-Container-Streaming"})) ==
             "unknown flag: --Redirect-Container-Streaming\n");
  BOOST_TEST(Words(Lint(Component::kKubelet, 18, {"---redirect-container-streaming"})) ==
             "bad flag syntax: ---redirect-container-streaming\n");
  // It may be the value of another flag, and behind "--" no kubelet starts with it: it is read.
  BOOST_TEST((redirect({"--v", "--", "--redirect-container-streaming"}) == true));
  BOOST_TEST(Brief(Lint(Component::kKubelet, 30, {"--v", "2", "-v=4", "x", ""}).findings).empty());
}

BOOST_AUTO_TEST_CASE(gates_are_read_as_the_component_reads_them) {
  using Read = std::map<std::string_view, bool>;
  const auto gates = [](Component component, std::uint32_t minor, Arguments arguments) {
    return Lint(component, minor, std::move(arguments)).gates;
  };
  const Read both = {{kFollowGate, true}, {kValidateGate, false}};
  for (const Component component : kBoth) {
    BOOST_TEST(
        (gates(component, 18,
               {"--feature-gates=StreamingProxyRedirects=true,ValidateProxyRedirects=F"}) == both));
    // Two arguments; merged; the last of one gate counts; spaces and empty parts do no harm.
    BOOST_TEST((gates(component, 18,
                      {"--feature_gates", "ValidateProxyRedirects=true", "--feature-gates",
                       ",StreamingProxyRedirects = t,,Other=true", "--feature-gates",
                       "ValidateProxyRedirects=0"}) == both));
  }
  const auto words = [](Component component, std::uint32_t minor, const std::string& pairs) {
    return Words(Lint(component, minor, {"--feature-gates=" + pairs}));
  };
  for (const std::string value : {"", "=", "=maybe"}) {
    BOOST_TEST(Contains(words(Component::kKubelet, 18, "ValidateProxyRedirects" + value),
                        "invalid value of ValidateProxyRedirects: strconv.ParseBool"));
  }
  BOOST_TEST(words(Component::kKubelet, 18, "A=true").empty());
  BOOST_TEST(Contains(words(Component::kKubelet, 18, "streamingproxyredirects=true"),
                      "unrecognized feature gate: streamingproxyredirects"));
  BOOST_TEST(Lint(Component::kKubelet, 18, {"--feature-gates"}).findings.empty());
  // The last setting decides: what is locked may be set to what it is.
  BOOST_TEST(Brief(Lint(Component::kKubelet, 37,
                        {"--feature-gates=NodeDeclaredFeatures=false,NodeDeclaredFeatures=true"})
                       .findings) == "deprecated NodeDeclaredFeatures");
  // What the API server reads the kubelet only accepts.
  BOOST_TEST(Brief(Lint(Component::kKubelet, 31, {"--feature-gates=PortForwardWebsockets=true"})
                       .findings) == "ignored PortForwardWebsockets");
  BOOST_TEST(Lint(Component::kApiServer, 31, {"--feature-gates=PortForwardWebsockets=true"})
                 .findings.empty());
  // Nothing in 1.12 reads it.
  BOOST_TEST(Brief(Lint(Component::kApiServer, 12, {"--feature-gates=ValidateProxyRedirects=1"})
                       .findings) == "ignored ValidateProxyRedirects");
  // "kube:" in front, from 1.31 on and for the API server alone.
  const std::string prefixed = "kube:ExtendWebSocketsToKubelet=false";
  BOOST_TEST((gates(Component::kApiServer, 36, {"--feature-gates", prefixed}) ==
              Read{{kExtendGate, false}}));
  BOOST_TEST(Contains(words(Component::kApiServer, 30, prefixed),
                      "unrecognized feature gate: kube:ExtendWebSocketsToKubelet"));
  BOOST_TEST(
      Contains(words(Component::kKubelet, 36, prefixed), "unrecognized feature gate: kube:"));
  BOOST_TEST(Lint(Component::kApiServer, 36, {"--feature-gates=wardle:A=true"}).notes.size() == 1U);
}

BOOST_AUTO_TEST_CASE(files_that_a_flag_names_are_not_judged) {
  BOOST_TEST(Lint(Component::kKubelet, 36, {"--config", "/x", "--config-dir=/y"}).notes.size() ==
             2U);
  BOOST_TEST(Lint(Component::kApiServer, 36, {"--config", "/x"}).notes.empty());
}

// Whatever the table has as fatal in a release is never passed over, however it is spelt.
BOOST_AUTO_TEST_CASE(nothing_fatal_is_passed_over) {
  using streaming::Reader, streaming::State;
  const std::uint64_t seed = testing::SeedOfThisRun();
  std::mt19937_64 random(seed);
  const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
  const std::vector<std::string> yes = {"=true", "=T", "=1"};
  const std::vector<std::string> no = {"=false", "=F", "=0"};
  const auto has_fatal = [](const StreamingLint& lint) {
    return std::any_of(lint.findings.begin(), lint.findings.end(), [](const auto& finding) {
      return finding.severity == Severity::kFatal && !finding.setting.empty() &&
             !finding.words.empty() && !finding.advice.empty() && !finding.source.empty();
    });
  };
  // Other arguments around it.
  const auto surround = [&](Arguments core) {
    const std::string others[] = {"--v=2", "--kubeconfig=/x", "--node-ip=::1", "--a=b", "--", "x"};
    Arguments all;
    for (std::size_t i = random() % 3; i > 0; --i) all.push_back(pick(others));
    if (random() % 4 == 0) all.insert(all.end(), {"--root-dir", "/var"});
    all.insert(all.end(), core.begin(), core.end());
    for (std::size_t i = random() % 3; i > 0; --i) all.push_back(pick(others));
    return all;
  };
  for (std::uint32_t minor = kOldest; minor <= kNewest + 2; ++minor) {
    for (const Component component : kBoth) {
      const auto own = component == Component::kKubelet ? Reader::kKubelet : Reader::kApiServer;
      for (const streaming::Fact& row : streaming::kFacts) {
        const auto* fact = streaming::Find(row.name, minor);
        const bool is_gone = fact == nullptr || fact->state == State::kGone;
        const bool is_flag = row.name.find('-') != std::string_view::npos;
        const bool enabled = random() % 2 == 0;
        const std::string value = pick(enabled ? yes : no);
        Arguments arguments;
        if (is_flag) {
          if (!is_gone && fact->reader == own) continue;
          std::string name(row.name);
          for (char& c : name) {
            if (c == '-' && random() % 3 == 0) c = '_';
          }
          arguments = {(random() % 8 == 0 ? "-" : "--") + name +
                       (random() % 3 == 0 ? std::string() : value)};
        } else {
          if (!is_gone && (fact->state != State::kGa || enabled)) continue;
          const std::string pair = std::string(row.name) + value;
          const std::string list = random() % 2 == 0 ? pair : "Other=true, " + pair + ",";
          arguments = {"--feature-gates=" + list};
          if (random() % 2 == 0) arguments = {"--feature_gates", list};
        }
        arguments = surround(arguments);
        BOOST_TEST_CONTEXT("1." << minor << " " << ProgramOf(component) << " " << row.name
                                << " seed " << seed) {
          BOOST_TEST(has_fatal(Lint(component, minor, arguments)));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
