#include "store/streams/streaming_plan.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "store/base/ascii.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/streams/streaming_facts.h"

namespace waybill {
namespace {

using internal::QuoteForMessage, internal::ToLower;
using streaming::Fact, streaming::Reader, streaming::State;
using Severity = StreamingSeverity;

constexpr std::size_t kMaxVersionBytes = 128;
// A kubelet may be this much older than its API server; from 1.25 on, more (Kubernetes' version
// skew policy; kubeadm constants.go of v1.29.0).
constexpr std::uint32_t kSupportedSkew = 2;
constexpr std::uint32_t kLaterSupportedSkew = 3;
constexpr std::uint32_t kLaterSkewFrom = 25;

constexpr std::string_view kPflag = "pflag v1.0.5 flag.go";
constexpr std::string_view kGateSource = "component-base v0.18.0 featuregate/feature_gate.go";
constexpr std::string_view kNewGateSource = "component-base v0.36.3 featuregate/feature_gate.go";

// --- Reading -------------------------------------------------------------------------------------

// What Go's strconv.ParseBool accepts.
std::optional<bool> ParseGoBool(std::string_view text) {
  constexpr std::string_view kNo[] = {"0", "f", "F", "false", "FALSE", "False"};
  constexpr std::string_view kYes[] = {"1", "t", "T", "true", "TRUE", "True"};
  if (std::ranges::find(kYes, text) != std::end(kYes)) return true;
  if (std::ranges::find(kNo, text) != std::end(kNo)) return false;
  return std::nullopt;
}

std::string_view Trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kSpace), text.size()));
  return text.substr(0, text.find_last_not_of(kSpace) + 1);
}

// The name of a setting that differs from `written` in upper and lower case at most; empty: none.
std::string_view KnownName(std::string_view written) {
  const auto is_it = [written](std::string_view name) {
    return std::equal(name.begin(), name.end(), written.begin(), written.end(),
                      [](char a, char b) { return ToLower(a) == ToLower(b); });
  };
  for (const Fact& fact : streaming::kFacts) {
    if (is_it(fact.name)) return fact.name;
  }
  return is_it(streaming::kGatesFlag) ? streaming::kGatesFlag : std::string_view();
}

// Flags are written with dashes, gates are not.
bool IsFlag(std::string_view name) { return name.find('-') != std::string_view::npos; }

// A setting as it was written, for StreamFinding::setting.
std::string Shown(std::string_view text) {
  const bool harmless = !text.empty() && text.size() <= internal::kMaxQuotedBytes &&
                        internal::IsMadeOf(text, "-_=.,:/+");
  return harmless ? std::string(text) : QuoteForMessage(text);
}

std::string NotABool(std::string_view value) {
  return "strconv.ParseBool: parsing " + QuoteForMessage(value) + ": invalid syntax";
}

// --- Judging -------------------------------------------------------------------------------------

bool IsOnByDefault(const Fact& gate) {
  return gate.state == State::kBeta || gate.state == State::kGa || gate.state == State::kDeprecated;
}

bool IsGateOn(const std::map<std::string_view, bool>& gates, std::string_view gate,
              std::uint32_t release) {
  const Fact* const fact = streaming::Find(gate, release);
  if (fact == nullptr || fact->state == State::kGone) return false;
  if (fact->state == State::kGa) return true;
  auto set = gates.find(gate);
  if (set == gates.end() && fact->state == State::kAlpha) {
    set = gates.find(streaming::kAllAlpha);
  }
  if (set == gates.end() && fact->state == State::kBeta &&
      streaming::Find(streaming::kAllBeta, release) != nullptr) {
    set = gates.find(streaming::kAllBeta);
  }
  return set == gates.end() ? IsOnByDefault(*fact) : set->second;
}

class Linter {
 public:
  explicit Linter(const StreamingSetup& setup) : setup_(setup) {}

  StreamingLint Run() {
    if (release_ > kNewestStreamingRelease) {
      Note(program_ + " " + ReleaseName(release_) + " is newer than what is known: taken for " +
           ReleaseName(kNewestStreamingRelease));
    }
    for (std::size_t at = 0; at < setup_.arguments.size(); ++at) ReadArgument(at);
    for (const auto& [gate, setting] : gate_settings_) JudgeGate(gate, setting);
    JudgeDependency();
    return std::move(lint_);
  }

 private:
  bool Reads(const Fact& fact) const {
    return fact.reader == Reader::kBoth ||
           fact.reader == (is_kubelet_ ? Reader::kKubelet : Reader::kApiServer);
  }

  // A setting that is repeated is one finding: its last one.
  void Report(Severity severity, std::string_view subject, std::string_view setting,
              std::string_view words, std::string_view advice, std::string_view source) {
    StreamFinding finding;
    finding.component = setup_.component;
    finding.severity = severity;
    finding.subject = subject;
    finding.setting = Shown(setting);
    finding.words = words;
    finding.advice = advice;
    finding.source = source;
    for (StreamFinding& other : lint_.findings) {
      if (other.subject == subject && other.severity == severity && other.source == source) {
        other = std::move(finding);
        return;
      }
    }
    lint_.findings.push_back(std::move(finding));
  }

  void Note(std::string note) {
    if (std::ranges::find(lint_.notes, note) == lint_.notes.end()) {
      lint_.notes.push_back(std::move(note));
    }
  }

  // Reads the flag at `at`, and moves `at` to its value if that is an argument of its own.
  void ReadArgument(std::size_t& at) {
    const std::string_view argument = setup_.arguments[at];
    const std::size_t dashes = std::min(argument.find_first_not_of('-'), argument.size());
    if (dashes == 0) return;
    const std::size_t equals = argument.find('=');
    const std::string_view written = argument.substr(0, equals);
    // Underscores stand for dashes (component-base cli/flag/flags.go).
    std::string in_dashes(written);
    std::replace(in_dashes.begin(), in_dashes.end(), '_', '-');
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = argument.substr(equals + 1);
    const std::string_view name = KnownName(std::string_view(in_dashes).substr(dashes));
    if (!IsFlag(name)) {
      NoteOtherFlag(in_dashes);
    } else if (in_dashes != "--" + std::string(name)) {
      // pflag knows each name in one case, and reads what follows one dash as letters.
      Report(Severity::kFatal, "--" + std::string(name), argument,
             dashes == 1 ? "unknown shorthand flag: '" + std::string(1, argument[1]) + "' in " +
                               Shown(argument)
             : dashes > 2 ? "bad flag syntax: " + Shown(argument)
                          : "unknown flag: " + Shown(written),
             "take it out, or write it as the component spells it", kPflag);
    } else if (name != streaming::kGatesFlag) {
      ReadFlag(argument, written, name, value);
    } else {
      if (!value && at + 1 < setup_.arguments.size()) value = setup_.arguments[++at];
      ReadGates(value.value_or(""));
    }
  }

  void NoteOtherFlag(std::string_view flag) {
    if (is_kubelet_ && (flag == "--config" || flag == "--config-dir")) {
      Note("the kubelet also reads what " + std::string(flag) + " names, which is not judged");
    } else if (!is_kubelet_ && flag == "--emulated-version") {
      Note("--emulated-version changes what feature gates do; they are judged without it");
    }
  }

  void ReadFlag(std::string_view argument, std::string_view written, std::string_view name,
                std::optional<std::string_view> value) {
    const Fact& fact = *streaming::Find(name, release_);
    const std::string subject = "--" + std::string(name);
    if (!Reads(fact)) {
      Report(Severity::kFatal, subject, argument, "unknown flag: " + Shown(written),
             "take it out: the " + program_ + " has no such flag",
             "kubernetes v1.11.0 to v1.37.2 cmd/" + program_ + ": no such flag");
      return;
    }
    if (fact.state == State::kGone) {
      Report(Severity::kFatal, subject, argument, "unknown flag: " + Shown(written), fact.advice,
             fact.source);
      return;
    }
    if (name == streaming::kRedirectFlag) {
      const auto redirects = ParseGoBool(value.value_or("true"));
      if (!redirects) {
        Report(Severity::kFatal, subject, argument,
               "invalid argument " + QuoteForMessage(*value) + " for \"" + subject +
                   "\" flag: " + NotABool(*value),
               "correct the value, or take it out", kPflag);
        return;
      }
      lint_.redirects = redirects;
    }
    if (fact.state == State::kWorks) return;
    Report(fact.state == State::kRemoved ? Severity::kRemoved : Severity::kDeprecated, subject,
           argument, "Flag " + subject + " has been deprecated, " + std::string(fact.words),
           fact.advice, fact.source);
  }

  // "A=true,B=false", as component-base reads it. Of one gate the last setting counts.
  void ReadGates(std::string_view pairs) {
    while (!pairs.empty()) {
      const std::string_view pair = pairs.substr(0, pairs.find(','));
      pairs.remove_prefix(std::min(pair.size() + 1, pairs.size()));
      const std::size_t equals = std::min(pair.find('='), pair.size());
      const std::string_view written = Trimmed(pair.substr(0, equals));
      const std::size_t colon = written.find(':');
      const bool has_prefix = colon != std::string_view::npos;
      // An API server may have its component in front.
      const bool may_have = !is_kubelet_ && release_ >= streaming::kGatePrefixFrom;
      if (has_prefix && may_have && Trimmed(written.substr(0, colon)) != "kube") {
        Note("gates of other components were not judged");
        continue;
      }
      const std::string_view gate = has_prefix ? Trimmed(written.substr(colon + 1)) : written;
      const std::string_view name = KnownName(gate);
      if (name.empty() || IsFlag(name)) continue;
      const std::string setting = "--feature-gates=" + std::string(pair);
      if (gate != name || (has_prefix && !may_have)) {
        Report(Severity::kFatal, name, setting, "unrecognized feature gate: " + Shown(written),
               "take it out, or write it as the release spells it", kGateSource);
        continue;
      }
      const std::string_view value = Trimmed(pair.substr(std::min(equals + 1, pair.size())));
      const auto enabled = ParseGoBool(value);
      if (enabled) {
        lint_.gates[name] = *enabled;
        gate_settings_[name] = setting;
        continue;
      }
      Report(Severity::kFatal, name, setting,
             "invalid value of " + std::string(name) + ": " + NotABool(value), "correct the value",
             kGateSource);
    }
  }

  void JudgeGate(std::string_view gate, std::string_view setting) {
    const Fact* const fact = streaming::Find(gate, release_);
    const Fact& row =
        fact != nullptr ? *fact : *std::ranges::find(streaming::kFacts, gate, &Fact::name);
    const std::string name(gate);
    const std::string source = std::string(streaming::kGatesFile) + std::string(row.source);
    if (fact == nullptr || fact->state == State::kGone) {
      Report(Severity::kFatal, gate, setting, "unrecognized feature gate: " + name,
             (fact != nullptr ? "take it out: the gate is gone since "
                              : "take it out: the gate came with ") +
                 ReleaseName(row.from),
             source);
    } else if (fact->state == State::kGa && !lint_.gates.at(gate)) {
      Report(Severity::kFatal, gate, setting,
             "cannot set feature gate " + name + " to false, feature is locked to true",
             "take it out: the gate can't be changed any more", source);
    } else if (fact->state == State::kGa || fact->state == State::kDeprecated ||
               fact->state == State::kDeprecatedOff) {
      const bool is_ga = fact->state == State::kGa;
      const bool is_new = release_ >= streaming::kNewGateWarningFrom;
      const std::string kind = is_ga ? "GA" : "deprecated";
      const std::string value = lint_.gates.at(gate) ? "true" : "false";
      Report(Severity::kDeprecated, gate, setting,
             is_new ? "Warning: setting " + kind +
                          " feature gate. It will be removed in a future release. featureGate=\"" +
                          name + "\" value=" + value
                    : "Setting " + kind + " feature gate " + name + "=" + value +
                          ". It will be removed in a future release.",
             is_ga          ? "take it out: it says what holds anyway"
             : Reads(*fact) ? "take it out before 1.24, which does not start with it"
                            : "take it out: only the API server reads it, and 1.24 does not start "
                              "with it",
             source + "; " + std::string(is_new ? kNewGateSource : kGateSource));
    } else if (!Reads(*fact)) {
      Report(Severity::kIgnored, gate, setting, "",
             fact->reader == Reader::kNobody
                 ? "take it out: this release does not read it"
                 : "set it at the API server: the kubelet does not read it",
             source);
    }
  }

  void JudgeDependency() {
    if (release_ < streaming::kGateDependenciesFrom ||
        !IsGateOn(lint_.gates, streaming::kExtendGate, release_) ||
        IsGateOn(lint_.gates, streaming::kDeclaredGate, release_)) {
      return;
    }
    // Off by itself, or by AllBeta: then the other was turned on by itself.
    const std::string_view gate = lint_.gates.contains(streaming::kDeclaredGate)
                                      ? streaming::kDeclaredGate
                                      : streaming::kExtendGate;
    Report(Severity::kFatal, gate, gate_settings_[gate],
           "ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: "
           "[NodeDeclaredFeatures]",
           "turn both on, or both off",
           std::string(kNewGateSource) + "; kubernetes v1.36.0 pkg/features/kube_features.go");
  }

  const StreamingSetup& setup_;
  const bool is_kubelet_ = setup_.component == StreamingComponent::kKubelet;
  const std::string program_{ProgramOf(setup_.component)};
  const std::uint32_t release_ = setup_.release;
  StreamingLint lint_;
  std::map<std::string_view, std::string> gate_settings_;  // as they were written
};

// --- Planning ------------------------------------------------------------------------------------

Error NotKnown(const std::string& version) {
  return {ErrorCode::kInvalidArgument,
          "version " + version + ": releases from " + ReleaseName(kOldestStreamingRelease) +
              " on are known, up to any 1.x",
          "name the version that the component itself prints with --version"};
}

VersionSkew SkewOf(std::uint32_t api_server, std::uint32_t kubelet) {
  if (kubelet > api_server) return VersionSkew::kKubeletNewer;
  const std::uint32_t most = kubelet >= kLaterSkewFrom ? kLaterSupportedSkew : kSupportedSkew;
  return api_server - kubelet > most ? VersionSkew::kKubeletTooOld : VersionSkew::kSupported;
}

void NoteRedirects(std::uint32_t api_server, StreamPlan& plan) {
  if (plan.follower == RedirectFollower::kNobody) {
    plan.notes.emplace_back(
        "the client gets the redirect, or from API server 1.18.6 on the error \"invalid upgrade "
        "response: status code 302\"");
    plan.notes.emplace_back(
        streaming::Find(streaming::kFollowGate, api_server)->state != State::kGone
            ? "take --redirect-container-streaming out of the kubelet's flags; until then "
              "StreamingProxyRedirects=true at the API server helps"
            : "take --redirect-container-streaming out of the kubelet's flags: this API server "
              "can't follow redirects");
  } else if (plan.follower == RedirectFollower::kApiServer) {
    plan.notes.emplace_back(
        plan.check == RedirectCheck::kSameHost
            ? "a redirect to another host than the kubelet's is the error \"hostname mismatch\""
            : "the API server follows a redirect to any host: a kubelet in the wrong hands sends "
              "it anywhere (SSRF)");
  }
}

}  // namespace

std::string ReleaseName(std::uint32_t release) { return "1." + std::to_string(release); }

Result<std::uint32_t> ParseKubernetesRelease(std::string_view text) {
  const Error no_version{ErrorCode::kInvalidArgument,
                         QuoteForMessage(text) + " is no version of Kubernetes",
                         "write it like v1.22.3 or 1.22"};
  std::string_view rest = text.size() <= kMaxVersionBytes ? text : std::string_view();
  for (const std::string_view prefix : {"Kubernetes ", "v"}) {
    if (rest.starts_with(prefix)) rest.remove_prefix(prefix.size());
  }
  std::vector<std::uint32_t> numbers;
  while (numbers.empty() || (numbers.size() < 3 && rest.starts_with('.'))) {
    if (!numbers.empty()) rest.remove_prefix(1);
    std::uint32_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc()) return no_version;
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    numbers.push_back(number);
  }
  // What builds append: "-rc.1", "+k3s1", and the bare "+" of a minor version.
  const bool ends =
      rest.empty() || ((rest[0] == '-' || rest[0] == '+') && internal::IsMadeOf(rest, "-+."));
  if (numbers.size() < 2 || !ends) return no_version;
  if (numbers[0] == 1 && numbers[1] >= kOldestStreamingRelease) return numbers[1];
  return NotKnown(std::to_string(numbers[0]) + "." + std::to_string(numbers[1]));
}

std::string_view ProgramOf(StreamingComponent component) {
  return component == StreamingComponent::kKubelet ? "kubelet" : "kube-apiserver";
}

Result<StreamingLint> LintStreaming(const StreamingSetup& setup) {
  if (setup.release < kOldestStreamingRelease) return NotKnown(ReleaseName(setup.release));
  const auto too_much = [](std::size_t most, const char* of) {
    return Error{ErrorCode::kLimitExceeded,
                 "the command line has more than " + std::to_string(most) + of};
  };
  std::size_t bytes = 0;
  for (const std::string& argument : setup.arguments) bytes += argument.size();
  if (setup.arguments.size() > kMaxStreamingArguments) {
    return too_much(kMaxStreamingArguments, " arguments");
  }
  if (bytes > kMaxStreamingSettingsBytes) return too_much(kMaxStreamingSettingsBytes, " bytes");
  return Linter(setup).Run();
}

Result<StreamPlan> StreamingPlan(const StreamingSetup& api_server, const StreamingSetup& kubelet) {
  const StreamingLint of_server = TRY(LintStreaming(api_server));
  const StreamingLint of_kubelet = TRY(LintStreaming(kubelet));
  const auto server_has = [&](std::string_view gate) {
    return IsGateOn(of_server.gates, gate, api_server.release);
  };
  const auto kubelet_has = [&](std::string_view gate) {
    return IsGateOn(of_kubelet.gates, gate, kubelet.release);
  };
  StreamPlan plan;
  plan.skew = SkewOf(api_server.release, kubelet.release);
  if (of_kubelet.redirects.value_or(false) &&
      kubelet.release <= streaming::kLastRedirectingKubelet) {
    plan.proxy = StreamingProxy::kRedirect;
    plan.follower = RedirectFollower::kNobody;
    plan.outcome = StreamingOutcome::kFails;
    if (server_has(streaming::kFollowGate)) {
      const Fact* const fact = streaming::Find(streaming::kValidateGate, api_server.release);
      const bool checked = fact != nullptr && fact->reader == Reader::kApiServer &&
                           server_has(streaming::kValidateGate);
      plan.follower = RedirectFollower::kApiServer;
      plan.check = checked ? RedirectCheck::kSameHost : RedirectCheck::kNone;
      plan.outcome = checked ? StreamingOutcome::kWorksOnSameHost : StreamingOutcome::kWorks;
    }
  }
  // The kubelet translates what it declares that it does; a gate of the API server that is off
  // makes no difference then, since its plain proxy passes WebSockets on (v1.36.0
  // pkg/registry/core/pod/rest/subresources.go, pkg/kubelet/server/server.go).
  const bool kubelet_can = kubelet_has(streaming::kExtendGate);
  const bool kubelet_is_asked = kubelet_can && kubelet_has(streaming::kDeclaredGate) &&
                                server_has(streaming::kDeclaredGate) &&
                                server_has(streaming::kExtendGate);
  const auto translator = [&](std::string_view gate) {
    if (server_has(gate) && !kubelet_is_asked) return WebSocketTranslator::kApiServer;
    return kubelet_can ? WebSocketTranslator::kKubelet : WebSocketTranslator::kNobody;
  };
  plan.exec_websockets = translator(streaming::kExecGate);
  plan.port_forward_websockets = translator(streaming::kForwardGate);

  plan.findings = of_kubelet.findings;
  plan.findings.insert(plan.findings.end(), of_server.findings.begin(), of_server.findings.end());
  if (std::ranges::any_of(plan.findings, [](const auto& finding) {
        return finding.severity == Severity::kFatal;
      })) {
    plan.outcome = StreamingOutcome::kDoesNotStart;
  }
  NoteRedirects(api_server.release, plan);
  if (plan.skew != VersionSkew::kSupported) {
    plan.notes.push_back("version skew is not supported: kubelet " + ReleaseName(kubelet.release) +
                         (plan.skew == VersionSkew::kKubeletNewer ? " is newer than API server "
                                                                  : " is too old for API server ") +
                         ReleaseName(api_server.release));
  }
  for (const auto* notes : {&of_kubelet.notes, &of_server.notes}) {
    plan.notes.insert(plan.notes.end(), notes->begin(), notes->end());
  }
  return plan;
}

}  // namespace waybill
