#include "store/streaming/streaming_facts.h"

#include <algorithm>

#include "store/base/quote.h"

namespace waybill::internal {
namespace {

constexpr std::string_view kGateSourceOfWarning =
    "component-base v0.18.0 featuregate/feature_gate.go";
constexpr std::string_view kNewGateSourceOfWarning =
    "component-base v0.36.3 featuregate/feature_gate.go";

// The table's rows of one thing stand together and rise; sources and places are never empty.
template <typename Fact, typename Same>
constexpr bool RowsRise(const Fact* begin, const Fact* end, Same same) {
  for (const Fact* row = begin; row != end; ++row) {
    if (row->source.empty()) return false;
    for (const Fact* later = row + 1; later != end; ++later) {
      if (same(*row, *later) && (later->from <= row->from || !same(*row, *(later - 1)))) {
        return false;
      }
    }
  }
  return true;
}
static_assert(RowsRise(std::begin(kGateFacts), std::end(kGateFacts),
                       [](const GateFact& a, const GateFact& b) { return a.gate == b.gate; }));
static_assert(RowsRise(std::begin(kFlagFacts), std::end(kFlagFacts),
                       [](const FlagFact& a, const FlagFact& b) {
                         return a.component == b.component && a.flag == b.flag;
                       }));

bool IsGroup(StreamingGate gate) {
  return gate == StreamingGate::kAllAlpha || gate == StreamingGate::kAllBeta;
}

// Whether the component reads the gate. Each knows the gates of both, and accepts them.
bool Reads(StreamingComponent component, StreamingGate gate) {
  return component == StreamingComponent::kApiServer || IsGroup(gate) ||
         gate == StreamingGate::kExtendWebSocketsToKubelet ||
         gate == StreamingGate::kNodeDeclaredFeatures;
}

// What the last setting of the gate says.
std::optional<bool> LastOf(const std::vector<StreamingGateSetting>& settings, StreamingGate gate) {
  const auto last = std::find_if(settings.rbegin(), settings.rend(),
                                 [&](const auto& setting) { return setting.gate == gate; });
  return last == settings.rend() ? std::nullopt : std::optional(last->enabled);
}

std::string_view BoolName(bool value) { return value ? "true" : "false"; }

std::string GateWarning(std::string_view kind, StreamingGateSetting setting,
                        KubernetesVersion version) {
  std::string words;
  if (version.minor >= kNewGateWarningFrom) {
    words.append("Warning: setting ").append(kind);
    words.append(" feature gate. It will be removed in a future release. featureGate=\"");
    words.append(StreamingGateName(setting.gate)).append("\" value=");
    words.append(BoolName(setting.enabled));
  } else {
    words.append("Setting ").append(kind).append(" feature gate ");
    words.append(StreamingGateName(setting.gate)).append("=").append(BoolName(setting.enabled));
    words.append(". It will be removed in a future release.");
  }
  return words;
}

StreamFinding GateFinding(StreamingComponent component, StreamingGateSetting setting) {
  StreamFinding finding;
  finding.component = component;
  finding.subject = StreamingGateName(setting.gate);
  finding.setting = "--feature-gates=" + finding.subject + "=";
  finding.setting += BoolName(setting.enabled);
  return finding;
}

// The gate's first row, for one that a release does not know yet.
const GateFact& FirstFact(StreamingGate gate) {
  return *std::find_if(std::begin(kGateFacts), std::end(kGateFacts),
                       [&](const GateFact& fact) { return fact.gate == gate; });
}

// The last row that holds in the version, of those that `is_of` accepts.
template <typename Fact, std::size_t kCount, typename IsOf>
const Fact* LastRow(const Fact (&facts)[kCount], KubernetesVersion version, const IsOf& is_of) {
  const Fact* found = nullptr;
  for (const Fact& fact : facts) {
    if (fact.from <= version.minor && is_of(fact)) found = &fact;
  }
  return found;
}

// Gone or not.
const GateFact* NewestFact(StreamingGate gate, KubernetesVersion version) {
  return LastRow(kGateFacts, version, [&](const GateFact& fact) { return fact.gate == gate; });
}

void JudgeUnknownGate(StreamingGate gate, const GateFact* gone, StreamFinding& finding) {
  finding.severity = StreamingSeverity::kFatal;
  finding.words = "unrecognized feature gate: " + finding.subject;
  if (gone != nullptr) {
    finding.advice =
        "take it out: the gate is gone since 1." + std::to_string(gone->from) +
        (gate == StreamingGate::kStreamingProxyRedirects ? "; redirects are never followed" : "");
    finding.source = gone->source;
  } else {
    const GateFact& first = FirstFact(gate);
    finding.advice = "take it out: the gate came with 1." + std::to_string(first.from);
    finding.source = first.source;
  }
}

}  // namespace

const GateFact* FindGateFact(StreamingGate gate, KubernetesVersion version) {
  const GateFact* found = NewestFact(gate, version);
  return found == nullptr || found->stage == GateStage::kGone ? nullptr : found;
}

bool IsGateOn(const std::vector<StreamingGateSetting>& settings, StreamingGate gate,
              KubernetesVersion version) {
  const GateFact* fact = FindGateFact(gate, version);
  if (fact == nullptr) return false;
  if (fact->locked) return fact->on_by_default;
  if (const auto own = LastOf(settings, gate)) return *own;
  std::optional<bool> group;
  if (fact->stage == GateStage::kAlpha) group = LastOf(settings, StreamingGate::kAllAlpha);
  if (fact->stage == GateStage::kBeta && version.minor >= kAllBetaFrom) {
    group = LastOf(settings, StreamingGate::kAllBeta);
  }
  return group.value_or(fact->on_by_default);
}

const FlagFact* FindFlagFact(StreamingComponent component, std::string_view flag,
                             KubernetesVersion version) {
  return LastRow(kFlagFacts, version, [&](const FlagFact& fact) {
    return fact.component == component && fact.flag == flag;
  });
}

Result<void> CheckVersion(std::string_view what, KubernetesVersion version) {
  if (version.major == kOldestStreamingVersion.major && version >= kOldestStreamingVersion) {
    return {};
  }
  return Error{ErrorCode::kInvalidArgument,
               std::string(what) + version.ToString() + ": releases from " +
                   kOldestStreamingVersion.ToString() + " on are known, up to any 1.x",
               "name the version that the component itself prints with --version"};
}

std::string ShownSetting(std::string_view text) {
  const auto harmless = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_=.,:/+").find(c) != std::string_view::npos;
  };
  return !text.empty() && text.size() <= kMaxQuotedBytes &&
                 std::all_of(text.begin(), text.end(), harmless)
             ? std::string(text)
             : QuoteForMessage(text);
}

std::optional<StreamFinding> JudgeGate(StreamingComponent component, KubernetesVersion version,
                                       StreamingGateSetting setting) {
  if (IsGroup(setting.gate)) return std::nullopt;
  StreamFinding finding = GateFinding(component, setting);
  const GateFact* fact = FindGateFact(setting.gate, version);
  if (fact == nullptr) {
    JudgeUnknownGate(setting.gate, NewestFact(setting.gate, version), finding);
    return finding;
  }
  finding.source = fact->source;
  if (fact->locked && setting.enabled != fact->on_by_default) {
    finding.severity = StreamingSeverity::kFatal;
    finding.words = "cannot set feature gate " + finding.subject + " to " +
                    std::string(BoolName(setting.enabled)) + ", feature is locked to " +
                    std::string(BoolName(fact->on_by_default));
    finding.advice = "take it out: the gate can't be changed any more";
    return finding;
  }
  if (fact->stage == GateStage::kDeprecated || fact->stage == GateStage::kGa) {
    finding.severity = StreamingSeverity::kDeprecated;
    finding.words =
        GateWarning(fact->stage == GateStage::kGa ? "GA" : "deprecated", setting, version);
    finding.advice =
        fact->stage == GateStage::kGa ? "take it out: it says what holds anyway"
        : Reads(component, setting.gate)
            ? "take it out before 1.24, which does not start with it"
            : "take it out: only the API server reads it, and 1.24 does not start with it";
    finding.source.append("; ").append(
        version.minor >= kNewGateWarningFrom ? kNewGateSourceOfWarning : kGateSourceOfWarning);
    return finding;
  }
  if (Reads(component, setting.gate)) return std::nullopt;
  finding.severity = StreamingSeverity::kIgnored;
  finding.advice = "set it at the API server: the kubelet does not read it";
  return finding;
}

std::vector<StreamFinding> JudgeGatesTogether(StreamingComponent component,
                                              KubernetesVersion version,
                                              const std::vector<StreamingGateSetting>& gates) {
  std::vector<StreamFinding> findings;
  // Whether redirects are validated makes no difference where none is followed. Where the gate is
  // deprecated, that is reported already.
  const auto validate = LastOf(gates, StreamingGate::kValidateProxyRedirects);
  const GateFact* fact = FindGateFact(StreamingGate::kValidateProxyRedirects, version);
  if (component == StreamingComponent::kApiServer && validate && fact != nullptr &&
      fact->stage != GateStage::kDeprecated &&
      (version.minor < kRedirectsValidatedFrom ||
       !IsGateOn(gates, StreamingGate::kStreamingProxyRedirects, version))) {
    StreamFinding finding =
        GateFinding(component, {StreamingGate::kValidateProxyRedirects, *validate});
    finding.advice = version.minor < kRedirectsValidatedFrom
                         ? "take it out: this release does not read it"
                         : "take it out: without StreamingProxyRedirects no redirect is followed";
    finding.source =
        "apiserver v0.17.0 pkg/features/kube_features.go: \"only used if StreamingProxyRedirects\"";
    findings.push_back(std::move(finding));
  }
  if (version.minor >= kGateDependenciesFrom &&
      IsGateOn(gates, StreamingGate::kExtendWebSocketsToKubelet, version) &&
      !IsGateOn(gates, StreamingGate::kNodeDeclaredFeatures, version)) {
    const auto off = LastOf(gates, StreamingGate::kNodeDeclaredFeatures);
    StreamFinding finding = GateFinding(
        component, off ? StreamingGateSetting{StreamingGate::kNodeDeclaredFeatures, *off}
                       : StreamingGateSetting{StreamingGate::kExtendWebSocketsToKubelet, true});
    finding.severity = StreamingSeverity::kFatal;
    finding.words =
        "ExtendWebSocketsToKubelet is enabled, but depends on features that are disabled: "
        "[NodeDeclaredFeatures]";
    finding.advice = "turn both on, or both off";
    finding.source =
        "component-base v0.36.3 featuregate/feature_gate.go; kubernetes v1.36.0 "
        "pkg/features/kube_features.go";
    findings.push_back(std::move(finding));
  }
  return findings;
}

std::optional<StreamFinding> JudgeFlag(const FlagFact& fact, std::string_view name) {
  if (fact.state == FlagState::kWorks) return std::nullopt;
  StreamFinding finding;
  finding.component = fact.component;
  finding.subject = "--" + std::string(fact.flag);
  finding.setting = ShownSetting(name);
  finding.advice = fact.advice;
  finding.source = fact.source;
  if (fact.state == FlagState::kUnknown) {
    finding.severity = StreamingSeverity::kFatal;
    finding.words = "unknown flag: " + ShownSetting(name);
    return finding;
  }
  finding.severity = fact.state == FlagState::kRemoved ? StreamingSeverity::kRemoved
                                                       : StreamingSeverity::kDeprecated;
  finding.words = "Flag " + finding.subject + " has been deprecated, " + std::string(fact.words);
  return finding;
}

}  // namespace waybill::internal
