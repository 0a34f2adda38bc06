// Every cell of KEP-1558's table, every step of its rollout plan and every breakage that it names,
// as the released sources have them; and how settings are read.

#include "store/streaming/streaming_plan.h"

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/words.h"
#include "store/streaming/streaming_facts.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "waybill/values.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(streaming_plan)

namespace {

using Component = StreamingComponent;
using Gate = StreamingGate;
using Severity = StreamingSeverity;
using Outcome = StreamingOutcome;
using Follower = RedirectFollower;
using Check = RedirectCheck;
using Translator = WebSocketTranslator;
using Gates = std::vector<StreamingGateSetting>;
using Arguments = std::vector<std::string>;

constexpr Component kBoth[] = {Component::kKubelet, Component::kApiServer};
constexpr std::uint32_t kOldest = kOldestStreamingVersion.minor;
constexpr std::uint32_t kNewest = kNewestStreamingVersion.minor;

struct Pair {
  std::uint32_t api_server;
  std::uint32_t kubelet;
  std::optional<bool> redirect = std::nullopt;
  Gates api_gates = {};
  Gates kubelet_gates = {};
};

StreamPlan Plan(const Pair& pair) {
  StreamingPlanRequest request = {.api_server = {1, pair.api_server}, .kubelet = {1, pair.kubelet}};
  request.kubelet_settings = {pair.redirect, pair.kubelet_gates};
  request.api_server_settings.gates = pair.api_gates;
  return StreamingPlan(request).value();
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
  return LintStreaming({component, {1, minor}, std::move(arguments)}).value();
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
  const Gates on = {{Gate::kStreamingProxyRedirects, true}};
  const Gates off = {{Gate::kStreamingProxyRedirects, false}};
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
  const Gates off = {{Gate::kValidateProxyRedirects, false}};
  const Gates on = {{Gate::kValidateProxyRedirects, true}};
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
// releases differ from it (store/streaming/streaming_facts.h).
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
           {std::pair(Gate::kStreamingProxyRedirects, step.streaming),
            std::pair(Gate::kValidateProxyRedirects, step.validating)}) {
        const auto plan = Plan({step.minor, step.minor, {}, {{gate, true}}});
        BOOST_TEST(severity(plan.findings) == expected);
        BOOST_TEST((plan.outcome == Outcome::kDoesNotStart) == (expected == "fatal"));
      }
      BOOST_TEST(internal::IsGateOn({}, Gate::kStreamingProxyRedirects, {1, step.minor}) ==
                 step.follows);
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
  BOOST_TEST(gate(36, "NodeDeclaredFeatures=false") ==
             "ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: "
             "[NodeDeclaredFeatures]\n");
  BOOST_TEST(gate(36, "NodeDeclaredFeatures=false,ExtendWebSocketsToKubelet=false").empty());
}

// KEP-1558, "Rollout breakage": no configuration is updated, and a control plane goes ahead.
BOOST_AUTO_TEST_CASE(breakages_of_the_rollout) {
  const Gates on = {{Gate::kStreamingProxyRedirects, true}};
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
  const Gate exec = Gate::kTranslateStreamCloseWebsocketRequests;
  const Gate forward = Gate::kPortForwardWebsockets;
  const Gate extend = Gate::kExtendWebSocketsToKubelet;
  const auto both = [](const Pair& pair) {
    const auto plan = Plan(pair);
    return std::string(WordOf(plan.exec_websockets)) + " " +
           std::string(WordOf(plan.port_forward_websockets));
  };
  BOOST_TEST(both({28, 28}) == "nobody nobody");
  BOOST_TEST(both({29, 29}) == "nobody nobody");
  BOOST_TEST(both({29, 29, {}, {{exec, true}}}) == "apiServer nobody");
  BOOST_TEST(both({29, 29, {}, {{Gate::kAllAlpha, true}}}) == "apiServer nobody");
  BOOST_TEST(both({30, 30}) == "apiServer nobody");
  BOOST_TEST(both({30, 30, {}, {{Gate::kAllAlpha, true}}}) == "apiServer apiServer");
  BOOST_TEST(both({31, 31}) == "apiServer apiServer");
  BOOST_TEST(both({31, 31, {}, {{exec, false}, {forward, false}}}) == "nobody nobody");
  BOOST_TEST(both({35, 35}) == "apiServer apiServer");
  BOOST_TEST(both({35, 35, {}, {{Gate::kAllBeta, false}}}) == "nobody nobody");
  BOOST_TEST(both({35, 35, {}, {{Gate::kAllBeta, false}, {exec, true}}}) == "apiServer nobody");
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
    const auto version = ParseKubernetesVersion(text);
    return version ? static_cast<int>(version->minor) : -1;
  };
  for (const std::string_view text :
       {"v1.22.3", "1.22", "v1.22", "1.22.3", "v1.22.0-rc.1+k3s1", "1.22+", "Kubernetes v1.22.17",
        "v1.22.3-gke.100", "v1.22.14-eks-6d3986b", "1.22.0-alpha.1.23+abcdef-dirty"}) {
    BOOST_TEST(minor(text) == 22, text);
  }
  BOOST_TEST(minor("v1.11.0") == 11);
  BOOST_TEST(minor("v1.9999") == 9999);
  for (const std::string_view text : {"",         "v",       "1",
                                      "1.",       "1.22.",   "v.22",
                                      "1.22.3.4", "1.022",   "01.22",
                                      "1,22",     "1.22 ",   " 1.22",
                                      "1.-22",    "1.22-",   "1.22-rc..1",
                                      "1.22+a+b", "vv1.22",  "1.22\n",
                                      "1.10.9",   "0.22",    "2.0",
                                      "1.99999",  "v1.22.x", "1.22++",
                                      "1.22-rc.", "1.22+.a", "kubernetes v1.22"}) {
    const auto version = ParseKubernetesVersion(text);
    BOOST_TEST_CONTEXT(text) {
      BOOST_TEST_REQUIRE(!version.has_value());
      BOOST_TEST((version.error().code == ErrorCode::kInvalidArgument));
      BOOST_TEST(!version.error().hint.empty());
      BOOST_TEST(!Contains(version.error().message, "\n"));
    }
  }
  BOOST_TEST(!ParseKubernetesVersion("1.22-" + std::string(1000, 'a')).has_value());
}

BOOST_AUTO_TEST_CASE(what_is_wrong_with_a_request) {
  const Error plan = testing::ExpectError(
      StreamingPlan({.api_server = {1, 10}, .kubelet = {1, 18}}), ErrorCode::kInvalidArgument);
  BOOST_TEST(Contains(plan.message, "kube-apiserver 1.10"));
  BOOST_TEST(!StreamingPlan({.api_server = {1, 18}, .kubelet = {2, 18}}).has_value());
  BOOST_TEST(!LintStreaming({Component::kKubelet, {0, 0}, {}}).has_value());
  const Arguments many(kMaxStreamingArguments + 1, "-v");
  testing::ExpectError(LintStreaming({Component::kKubelet, {1, 30}, many}),
                       ErrorCode::kLimitExceeded);
  const Arguments large = {std::string(kMaxStreamingSettingsBytes + 1, 'x')};
  testing::ExpectError(LintStreaming({Component::kKubelet, {1, 30}, large}),
                       ErrorCode::kLimitExceeded);
  StreamingPlanRequest gates = {.api_server = {1, 30}, .kubelet = {1, 30}};
  gates.api_server_settings.gates.resize(kMaxStreamingArguments + 1);
  testing::ExpectError(StreamingPlan(gates), ErrorCode::kLimitExceeded);
}

BOOST_AUTO_TEST_CASE(flags_are_read_as_pflag_reads_them) {
  const auto redirect = [](Arguments arguments) {
    return Lint(Component::kKubelet, 18, std::move(arguments))
        .settings.redirect_container_streaming;
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
  BOOST_TEST((twice.settings.redirect_container_streaming == false));
  BOOST_TEST_REQUIRE(twice.findings.size() == 1U);
  BOOST_TEST(twice.findings[0].setting == "--redirect_container_streaming=F");
  // A boolean flag takes no argument of its own: what follows is a command, which is fatal.
  const auto apart = Lint(Component::kKubelet, 18, {"--redirect-container-streaming", "false"});
  BOOST_TEST((apart.settings.redirect_container_streaming == true));
  BOOST_TEST(Brief(apart.findings) == "deprecated --redirect-container-streaming; fatal false");
  for (const std::string bad : {"yes", "tRUE", "", "2", "\x1b[31m"}) {
    const auto lint = Lint(Component::kKubelet, 18, {"--redirect-container-streaming=" + bad});
    BOOST_TEST(Brief(lint.findings) == "fatal --redirect-container-streaming", bad);
    BOOST_TEST(Contains(Words(lint), "strconv.ParseBool"));
    BOOST_TEST(!Contains(Words(lint) + lint.findings[0].setting, "\x1b"));
    BOOST_TEST(!lint.settings.redirect_container_streaming.has_value());
  }
  // One dash: letters, of which the first is no flag.
  BOOST_TEST(Words(Lint(Component::kKubelet, 18, {"-redirect-container-streaming=true"})) ==
             "unknown shorthand flag: 'r' in -redirect-container-streaming=true\n");
  BOOST_TEST(Words(Lint(Component::kKubelet, 18, {"--Redirect-Container-Streaming"})) ==
             "unknown flag: --Redirect-Container-Streaming\n");
  BOOST_TEST(Words(Lint(Component::kKubelet, 18, {"---redirect-container-streaming"})) ==
             "bad flag syntax: ---redirect-container-streaming\n");
  // Flags end at "--"; what follows is no flag, and the kubelet takes nothing else.
  const auto ended =
      Lint(Component::kKubelet, 18, {"--v=2", "--", "--redirect-container-streaming"});
  BOOST_TEST(!ended.settings.redirect_container_streaming.has_value());
  BOOST_TEST(Words(ended) == "unknown command: --redirect-container-streaming\n");
  // It may be the value of a flag: then what follows counts.
  const auto value = Lint(Component::kKubelet, 18, {"--v", "--", "--redirect-container-streaming"});
  BOOST_TEST((value.settings.redirect_container_streaming == true));
  BOOST_TEST(value.notes.size() == 1U);
  BOOST_TEST(
      Brief(Lint(Component::kKubelet, 30, {"--v", "2", "-v", "3", "-v=4"}).findings).empty());
  BOOST_TEST(Brief(Lint(Component::kKubelet, 30, {"--v", "2", "3"}).findings) == "fatal 3");
  BOOST_TEST(Brief(Lint(Component::kKubelet, 30, {"kubelet"}).findings) == "fatal kubelet");
  // An API server before 1.19 does not mind.
  BOOST_TEST(Lint(Component::kApiServer, 18, {"x"}).findings.empty());
  BOOST_TEST(Lint(Component::kApiServer, 18, {"x"}).notes.size() == 1U);
  BOOST_TEST(Brief(Lint(Component::kApiServer, 19, {"x"}).findings) == "fatal x");
}

BOOST_AUTO_TEST_CASE(gates_are_read_as_the_component_reads_them) {
  const auto gates = [](Component component, std::uint32_t minor, Arguments arguments) {
    return Lint(component, minor, std::move(arguments)).settings.gates;
  };
  const Gates both = {{Gate::kStreamingProxyRedirects, true},
                      {Gate::kValidateProxyRedirects, false}};
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
  BOOST_TEST(Contains(words(Component::kKubelet, 18, "A"), "malformed pair, expect string=bool"));
  BOOST_TEST(Contains(words(Component::kApiServer, 18, "A"), "missing bool value for A"));
  BOOST_TEST(
      Contains(words(Component::kKubelet, 18, "A=maybe"), "invalid value of A: maybe, err:"));
  BOOST_TEST(
      Contains(words(Component::kApiServer, 18, "A=maybe"), "invalid value of A=maybe, err:"));
  BOOST_TEST(words(Component::kKubelet, 18, "A=true").empty());
  BOOST_TEST(Contains(words(Component::kKubelet, 18, "streamingproxyredirects=true"),
                      "unrecognized feature gate: streamingproxyredirects"));
  BOOST_TEST(Brief(Lint(Component::kKubelet, 18, {"--feature-gates"}).findings) ==
             "fatal --feature-gates");
  // The last setting decides: what is locked may be set to what it is.
  BOOST_TEST(Brief(Lint(Component::kKubelet, 37,
                        {"--feature-gates=NodeDeclaredFeatures=false,NodeDeclaredFeatures=true"})
                       .findings) == "deprecated NodeDeclaredFeatures");
  // What the API server reads the kubelet only accepts.
  BOOST_TEST(Brief(Lint(Component::kKubelet, 31, {"--feature-gates=PortForwardWebsockets=true"})
                       .findings) == "ignored PortForwardWebsockets");
  BOOST_TEST(Lint(Component::kApiServer, 31, {"--feature-gates=PortForwardWebsockets=true"})
                 .findings.empty());
  BOOST_TEST(Brief(Lint(Component::kApiServer, 17,
                        {"--feature-gates=StreamingProxyRedirects=0,ValidateProxyRedirects=1"})
                       .findings) == "ignored ValidateProxyRedirects");
  // "kube:" in front, from 1.31 on and for the API server alone.
  const std::string prefixed = "kube:ExtendWebSocketsToKubelet=false";
  BOOST_TEST((gates(Component::kApiServer, 36, {"--feature-gates", prefixed}) ==
              Gates{{Gate::kExtendWebSocketsToKubelet, false}}));
  BOOST_TEST(Contains(words(Component::kApiServer, 30, prefixed),
                      "unrecognized feature gate: kube:ExtendWebSocketsToKubelet"));
  BOOST_TEST(
      Contains(words(Component::kKubelet, 36, prefixed), "unrecognized feature gate: kube:"));
  BOOST_TEST(Contains(words(Component::kApiServer, 36, prefixed + ",PortForwardWebsockets=true"),
                      "do not mix use"));
  BOOST_TEST(Lint(Component::kApiServer, 36, {"--feature-gates=wardle:A=true"}).notes.size() == 1U);
}

BOOST_AUTO_TEST_CASE(other_flags_of_streaming) {
  const auto brief = [](Component component, std::uint32_t minor, Arguments arguments) {
    return Brief(Lint(component, minor, std::move(arguments)).findings);
  };
  const std::string timeout = "--streaming-connection-idle-timeout";
  BOOST_TEST(brief(Component::kKubelet, 23, {timeout + "=4h"}) == "deprecated " + timeout);
  BOOST_TEST(brief(Component::kKubelet, 24, {timeout, "1h30m"}) == "removed " + timeout);
  BOOST_TEST(brief(Component::kKubelet, 24, {timeout, "soon"}) == "fatal " + timeout);
  BOOST_TEST(brief(Component::kKubelet, 24, {timeout}) == "fatal " + timeout);
  BOOST_TEST(brief(Component::kApiServer, 24, {timeout, "1h"}) == "fatal " + timeout);
  const std::string limit = "--max-connection-bytes-per-sec";
  BOOST_TEST(brief(Component::kKubelet, 36, {limit + "=1"}) == "fatal " + limit);
  BOOST_TEST(brief(Component::kApiServer, 36, {limit, "1000"}).empty());
  BOOST_TEST(brief(Component::kApiServer, 36, {limit, "1M"}) == "fatal " + limit);
  const std::string https = "--kubelet-https";
  BOOST_TEST(brief(Component::kApiServer, 18, {https + "=false"}).empty());
  BOOST_TEST(brief(Component::kApiServer, 19, {https}) == "removed " + https);
  BOOST_TEST(brief(Component::kApiServer, 22, {https}) == "fatal " + https);
  BOOST_TEST(brief(Component::kKubelet, 22, {https}) == "fatal " + https);
  const std::string redirect = "--redirect-container-streaming";
  BOOST_TEST(brief(Component::kApiServer, 18, {redirect}) == "fatal " + redirect);
}

BOOST_AUTO_TEST_CASE(files_that_a_flag_names_are_not_judged) {
  BOOST_TEST(Lint(Component::kKubelet, 36, {"--config", "/x", "--config-dir=/y"}).notes.size() ==
             2U);
  BOOST_TEST(Lint(Component::kApiServer, 36, {"--config", "/x"}).notes.empty());
}

// Whatever the table has as fatal in a release is never passed over, however it is spelt.
BOOST_AUTO_TEST_CASE(nothing_fatal_is_passed_over) {
  const std::uint64_t seed = testing::SeedOfThisRun();
  std::mt19937_64 random(seed);
  const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
  const std::string bools[] = {"", "=true", "=false", "=T", "=0", "=TRUE"};
  const auto has_fatal = [](const StreamingLint& lint) {
    return std::any_of(lint.findings.begin(), lint.findings.end(), [](const auto& finding) {
      return finding.severity == Severity::kFatal && !finding.setting.empty() &&
             !finding.words.empty() && !finding.advice.empty() && !finding.source.empty();
    });
  };
  // Other arguments around it, none of which ends the flags.
  const auto surround = [&](Arguments core) {
    const std::string others[] = {"--v=2", "--kubeconfig=/x", "--node-ip=::1", "--a=b"};
    Arguments all;
    for (std::size_t i = random() % 3; i > 0; --i) all.push_back(pick(others));
    if (random() % 4 == 0) all.insert(all.end(), {"--root-dir", "/var"});
    all.insert(all.end(), core.begin(), core.end());
    for (std::size_t i = random() % 3; i > 0; --i) all.push_back(pick(others));
    return all;
  };
  for (std::uint32_t minor = kOldest; minor <= kNewest + 2; ++minor) {
    for (const Component component : kBoth) {
      for (const internal::FlagFact& row : internal::kFlagFacts) {
        const auto* fact = internal::FindFlagFact(component, row.flag, {1, minor});
        if (fact == nullptr || fact->state != internal::FlagState::kUnknown) continue;
        for (int spelling = 0; spelling < 6; ++spelling) {
          std::string name(row.flag);
          for (char& c : name) {
            if (c == '-' && random() % 3 == 0) c = '_';
          }
          const auto arguments =
              surround({std::string(random() % 8 == 0 ? "-" : "--") + name + pick(bools)});
          BOOST_TEST_CONTEXT("1." << minor << " " << ProgramOf(component) << " " << name << " seed "
                                  << seed) {
            BOOST_TEST(has_fatal(Lint(component, minor, arguments)));
          }
        }
      }
      for (int gate = 0; gate <= static_cast<int>(Gate::kNodeDeclaredFeatures); ++gate) {
        for (const bool enabled : {false, true}) {
          const StreamingGateSetting setting = {static_cast<Gate>(gate), enabled};
          const auto judged = internal::JudgeGate(component, {1, minor}, setting);
          if (!judged || judged->severity != Severity::kFatal) continue;
          const std::string pair = std::string(StreamingGateName(setting.gate)) +
                                   (enabled ? pick(std::vector<std::string>{"=true", "=T", "=1"})
                                            : pick(std::vector<std::string>{"=false", "=F", "=0"}));
          const std::string list = random() % 2 == 0 ? pair : "Other=true, " + pair + ",";
          const auto arguments = random() % 2 == 0 ? surround({"--feature-gates=" + list})
                                                   : surround({"--feature_gates", list});
          BOOST_TEST_CONTEXT("1." << minor << " " << list << " seed " << seed) {
            BOOST_TEST(has_fatal(Lint(component, minor, arguments)));
          }
        }
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(hostile_settings_are_bounded) {
  std::string pairs;
  while (pairs.size() < 200'000) pairs += std::to_string(pairs.size()) + ",";
  const auto lint = Lint(Component::kKubelet, 30, {"--feature-gates=" + pairs});
  BOOST_TEST(lint.findings.size() == kMaxStreamingFindings);
  BOOST_TEST(lint.notes.size() == 1U);
  const auto shown = Lint(Component::kKubelet, 30, {"--=" + std::string(5000, '\x9b')});
  BOOST_TEST_REQUIRE(shown.findings.size() == 1U);
  BOOST_TEST(shown.findings[0].setting.size() < 2000U);
  BOOST_TEST(!Contains(shown.findings[0].setting, "\x9b"));
}

BOOST_AUTO_TEST_CASE(names) {
  for (int gate = 0; gate <= static_cast<int>(Gate::kAllBeta); ++gate) {
    const auto name = StreamingGateName(static_cast<Gate>(gate));
    BOOST_TEST(!name.empty());
    BOOST_TEST((FindStreamingGate(name) == static_cast<Gate>(gate)));
  }
  BOOST_TEST(!FindStreamingGate("").has_value());
  BOOST_TEST(StreamingGateName(static_cast<Gate>(200)).empty());
  BOOST_TEST(ProgramOf(Component::kApiServer) == "kube-apiserver");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
