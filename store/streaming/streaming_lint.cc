// Reads a component's flags as the component does: by the rules of pflag (v1.0.5 flag.go), and its
// feature gates by those of component-base.

#include <algorithm>

#include "store/base/ascii.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/streaming/streaming_facts.h"
#include "store/streaming/streaming_plan.h"
#include "waybill/values.h"

namespace waybill {
namespace {

using internal::FlagFact, internal::FlagState, internal::FlagType, internal::IsDigit,
    internal::QuoteForMessage, internal::ShownSetting, internal::ToLower;

constexpr std::string_view kGatesFlag = "feature-gates";

// Underscores stand for dashes (component-base cli/flag/flags.go).
std::string InDashes(std::string_view name) {
  std::string dashes(name);
  std::replace(dashes.begin(), dashes.end(), '_', '-');
  return dashes;
}

// What Go's strconv.ParseBool accepts.
std::optional<bool> ParseGoBool(std::string_view text) {
  for (const std::string_view yes : {"1", "t", "T", "true", "TRUE", "True"}) {
    if (text == yes) return true;
  }
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"}) {
    if (text == no) return false;
  }
  return std::nullopt;
}

// What Go's time.ParseDuration accepts, apart from numbers that are too large.
bool IsGoDuration(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return true;
  if (text.empty()) return false;
  while (!text.empty()) {
    std::size_t digits = 0;
    std::size_t used = 0;
    while (used < text.size() && IsDigit(text[used])) ++used, ++digits;
    if (used < text.size() && text[used] == '.') {
      ++used;
      while (used < text.size() && IsDigit(text[used])) ++used, ++digits;
    }
    if (digits == 0) return false;
    text.remove_prefix(used);
    std::string_view unit;
    for (const std::string_view known : {"ns", "us", "µs", "μs", "ms", "s", "m", "h"}) {
      if (text.starts_with(known) && known.size() > unit.size()) unit = known;
    }
    if (unit.empty()) return false;
    text.remove_prefix(unit.size());
  }
  return true;
}

// What Go's strconv.ParseInt accepts in base 0, apart from numbers that are too large.
bool IsGoInteger(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const auto all = [&](std::string_view digits) {
    return text.size() > 2 &&
           text.find_first_not_of(std::string(digits) + "_", 2) == std::string_view::npos;
  };
  const std::string prefix = ToLower(text.substr(0, 2));
  if (prefix == "0x") return all("0123456789abcdefABCDEF");
  if (prefix == "0b") return all("01");
  if (prefix == "0o") return all("01234567");
  return !text.empty() && IsDigit(text[0]) &&
         text.find_first_not_of("0123456789_") == std::string_view::npos;
}

bool IsValue(FlagType type, std::string_view value) {
  switch (type) {
    case FlagType::kBool:
      return ParseGoBool(value).has_value();
    case FlagType::kDuration:
      return IsGoDuration(value);
    case FlagType::kInteger:
      return IsGoInteger(value);
  }
  return false;
}

// A name that some component's table has, in dashes.
bool IsKnownFlag(std::string_view dashes) {
  return dashes == kGatesFlag ||
         std::any_of(std::begin(internal::kFlagFacts), std::end(internal::kFlagFacts),
                     [&](const FlagFact& fact) { return fact.flag == dashes; });
}

std::string_view Trimmed(std::string_view text) {
  const auto space = [](char c) { return c == ' ' || (c >= '\t' && c <= '\r'); };
  while (!text.empty() && space(text.front())) text.remove_prefix(1);
  while (!text.empty() && space(text.back())) text.remove_suffix(1);
  return text;
}

class Linter {
 public:
  Linter(const StreamingLintRequest& request, StreamingLint& lint)
      : request_(request), lint_(lint) {}

  void Run() {
    ReadArguments();
    for (const TakenGate& taken : gates_) lint_.settings.gates.push_back(taken.setting);
    JudgeGates();
  }

 private:
  // A gate as its last setting leaves it.
  struct TakenGate {
    StreamingGateSetting setting;
    std::string text;
  };

  // --- Reporting ---

  // A flag that is repeated is one finding: its last one.
  void Report(StreamFinding finding) {
    finding.component = request_.component;
    const auto same =
        std::find_if(lint_.findings.begin(), lint_.findings.end(), [&](const StreamFinding& other) {
          return other.subject == finding.subject && other.severity == finding.severity &&
                 other.source == finding.source;
        });
    if (same != lint_.findings.end()) {
      *same = std::move(finding);
    } else if (lint_.findings.size() < kMaxStreamingFindings) {
      lint_.findings.push_back(std::move(finding));
    } else {
      Note("there are more findings than " + std::to_string(kMaxStreamingFindings) +
           ": correct these first");
    }
  }

  void Fatal(std::string subject, std::string_view setting, std::string words,
             std::string_view advice, std::string_view source) {
    StreamFinding finding;
    finding.severity = StreamingSeverity::kFatal;
    finding.subject = std::move(subject);
    finding.setting = ShownSetting(setting);
    finding.words = std::move(words);
    finding.advice = advice;
    finding.source = source;
    Report(std::move(finding));
  }

  void Note(std::string note) {
    if (lint_.notes.size() >= kMaxStreamingFindings) return;
    if (std::find(lint_.notes.begin(), lint_.notes.end(), note) == lint_.notes.end()) {
      lint_.notes.push_back(std::move(note));
    }
  }

  bool IsKubelet() const { return request_.component == StreamingComponent::kKubelet; }

  // --- The command line ---

  // What stood before the argument that is read.
  enum class Before {
    kNothingOpen,  // nothing that could take the argument as its value
    kOpenFlag,     // a flag without "=", which may or may not take a value
  };

  void ReadArguments() {
    Before before = Before::kNothingOpen;
    std::string_view open_flag;
    const auto& all = request_.arguments;
    for (std::size_t at = 0; at < all.size(); ++at) {
      const std::string_view argument = all[at];
      if (argument == "--") {
        if (before == Before::kNothingOpen) {
          for (std::size_t rest = at + 1; rest < all.size(); ++rest) ReadLoneArgument(all[rest]);
          return;
        }
        Note("-- follows " + ShownSetting(open_flag) +
             " and may be its value: what comes after it was read as flags");
        before = Before::kNothingOpen;
      } else if (argument.starts_with("--")) {
        before = ReadLongFlag(at);
        open_flag = argument;
      } else if (argument.size() > 1 && argument[0] == '-') {
        before = ReadShortFlags(argument);
        open_flag = argument;
      } else {
        if (before == Before::kNothingOpen) ReadLoneArgument(argument);
        before = Before::kNothingOpen;
      }
    }
  }

  // Reads the flag at `at`, and moves `at` to its value if that is an argument of its own.
  Before ReadLongFlag(std::size_t& at) {
    const std::string_view argument = request_.arguments[at];
    const std::string_view body = argument.substr(2);
    const std::size_t equals = body.find('=');
    const std::string_view name = body.substr(0, equals);
    if (name.empty() || name[0] == '-') {
      Fatal(ShownSetting(argument), argument, "bad flag syntax: " + ShownSetting(argument),
            "correct it", "pflag v1.0.5 flag.go");
      return Before::kNothingOpen;
    }
    std::optional<std::string_view> value;
    if (equals != std::string_view::npos) value = body.substr(equals + 1);
    const std::string dashes = InDashes(name);
    if (dashes == kGatesFlag) {
      if (!TakeValue(at, argument, value)) return Before::kNothingOpen;
      if (IsKubelet()) {
        ReadKubeletGates(argument, *value);
      } else {
        ReadApiServerGates(argument, *value);
      }
      return Before::kNothingOpen;
    }
    if (const FlagFact* fact =
            internal::FindFlagFact(request_.component, dashes, request_.version)) {
      return ReadKnownFlag(*fact, at, argument, name, value);
    }
    if (IsKnownFlag(ToLower(dashes))) {
      Fatal("--" + ToLower(dashes), argument, "unknown flag: --" + ShownSetting(name),
            "take it out, or write it as the component spells it", "pflag v1.0.5 flag.go");
      return value ? Before::kNothingOpen : Before::kOpenFlag;
    }
    NoteOtherFlag(dashes);
    return value ? Before::kNothingOpen : Before::kOpenFlag;
  }

  Before ReadKnownFlag(const FlagFact& fact, std::size_t& at, std::string_view argument,
                       std::string_view name, std::optional<std::string_view> value) {
    const std::string written = "--" + std::string(name);
    if (fact.state == FlagState::kUnknown) {
      if (auto finding = internal::JudgeFlag(fact, written)) {
        finding->setting = ShownSetting(argument);
        Report(std::move(*finding));
      }
      return value ? Before::kNothingOpen : Before::kOpenFlag;
    }
    const bool inline_value = value.has_value();
    if (fact.type == FlagType::kBool) {
      if (!value) value = "true";  // pflag's NoOptDefVal: the next argument is not its value
    } else if (!TakeValue(at, argument, value)) {
      return Before::kNothingOpen;
    }
    std::string setting(argument);
    if (!inline_value && fact.type != FlagType::kBool) setting.append(" ").append(*value);
    if (!IsValue(fact.type, *value)) {
      std::string words = "invalid argument " + QuoteForMessage(*value) + " for \"--" +
                          std::string(fact.flag) + "\" flag:";
      if (fact.type == FlagType::kBool) {
        words += " strconv.ParseBool: parsing " + QuoteForMessage(*value) + ": invalid syntax";
      }
      Fatal("--" + std::string(fact.flag), setting, std::move(words),
            fact.state == FlagState::kWorks ? "correct the value" : fact.advice,
            "pflag v1.0.5 flag.go");
      return Before::kNothingOpen;
    }
    if (fact.flag == internal::kRedirectFlag) {
      lint_.settings.redirect_container_streaming = ParseGoBool(*value);
    }
    if (auto finding = internal::JudgeFlag(fact, written)) {
      finding->setting = ShownSetting(setting);
      Report(std::move(*finding));
    }
    return Before::kNothingOpen;
  }

  // The value of a flag that needs one: behind "=", or the next argument whatever it looks like.
  bool TakeValue(std::size_t& at, std::string_view argument,
                 std::optional<std::string_view>& value) {
    if (value) return true;
    if (at + 1 < request_.arguments.size()) {
      value = request_.arguments[++at];
      return true;
    }
    Fatal("--" + InDashes(argument.substr(2)), argument,
          "flag needs an argument: " + ShownSetting(argument), "give it a value, or take it out",
          "pflag v1.0.5 flag.go");
    return false;
  }

  // "-v=2", "-v 2". A name of the table behind one dash is read as letters, of which the first is
  // no flag.
  Before ReadShortFlags(std::string_view argument) {
    const std::string_view body = argument.substr(1);
    const std::string dashes = ToLower(InDashes(body.substr(0, body.find('='))));
    if (!IsKnownFlag(dashes)) return Before::kOpenFlag;
    Fatal("--" + dashes, argument,
          std::string("unknown shorthand flag: '") + body[0] + "' in " + ShownSetting(argument),
          "take it out, or write it with two dashes if this release has it",
          "pflag v1.0.5 flag.go");
    return Before::kOpenFlag;
  }

  // An argument that no flag takes.
  void ReadLoneArgument(std::string_view argument) {
    const std::uint32_t minor = request_.version.minor;
    if (IsKubelet()) {
      const std::string shown = ShownSetting(argument);
      Fatal(shown, argument,
            minor <= 20   ? "unknown command: " + shown
            : minor <= 23 ? "\"Unknown command\" command=" + QuoteForMessage(argument)
                          : "unknown command " + shown,
            "take it out: the kubelet takes flags only; a value of a boolean flag stands behind =",
            minor <= 20   ? "kubernetes v1.11.0 to v1.20.0 cmd/kubelet/app/server.go"
            : minor <= 23 ? "kubernetes v1.22.0 cmd/kubelet/app/server.go"
                          : "kubernetes v1.24.0 cmd/kubelet/app/server.go");
      return;
    }
    if (argument.empty()) return;
    if (minor < internal::kApiServerRefusesArgumentsFrom) {
      Note("the API server ignores " + ShownSetting(argument) + ", which is no flag");
      return;
    }
    Fatal(ShownSetting(argument), argument,
          "\"kube-apiserver\" does not take any arguments, got [" + QuoteForMessage(argument) + "]",
          "take it out: the API server takes flags only; a value of a boolean flag stands behind =",
          "kubernetes v1.19.0 cmd/kube-apiserver/app/server.go");
  }

  void NoteOtherFlag(std::string_view dashes) {
    if (IsKubelet() && dashes == "config") {
      Note("the kubelet also reads the file of --config, which is not judged");
    } else if (IsKubelet() && dashes == "config-dir") {
      Note("the kubelet also reads the files of --config-dir, which are not judged");
    } else if (!IsKubelet() && dashes == "emulated-version") {
      Note("--emulated-version changes what feature gates do; they are judged without it");
    }
  }

  // --- Feature gates ---

  // "A=true,B=false", as of the kubelet (component-base cli/flag/map_string_bool.go).
  void ReadKubeletGates(std::string_view argument, std::string_view pairs) {
    ForEachPair(pairs, [&](std::string_view pair) {
      const std::size_t equals = pair.find('=');
      if (equals == std::string_view::npos) {
        FatalPair(argument, pair, "malformed pair, expect string=bool");
        return;
      }
      ReadGate(pair, Trimmed(pair.substr(0, equals)), Trimmed(pair.substr(equals + 1)),
               [](const std::string& name, const std::string& value) {
                 return "invalid value of " + name + ": " + value + ", err: ";
               });
    });
  }

  // The same of an API server (component-base featuregate/feature_gate.go), where a gate may have
  // its component in front.
  void ReadApiServerGates(std::string_view argument, std::string_view pairs) {
    ForEachPair(pairs, [&](std::string_view pair) {
      std::string_view gate = pair;
      const std::size_t colon = pair.find(':');
      if (request_.version.minor >= internal::kGatePrefixFrom) {
        const bool prefixed = colon != std::string_view::npos;
        if (prefixed && Trimmed(pair.substr(0, colon)) != "kube") {
          Note("gates of another component were not judged: " + ShownSetting(pair));
          return;
        }
        if (prefixed) gate = pair.substr(colon + 1);
        if (gate_prefixed_ && *gate_prefixed_ != prefixed) {
          FatalPair(argument, pair,
                    "set kube feature gates with default empty prefix or kube: prefix "
                    "consistently, do not mix use");
        }
        gate_prefixed_ = prefixed;
      }
      const std::size_t equals = gate.find('=');
      const std::string_view name = Trimmed(gate.substr(0, equals));
      if (equals == std::string_view::npos) {
        FatalPair(argument, pair, "missing bool value for " + ShownSetting(name));
        return;
      }
      ReadGate(pair, name, Trimmed(gate.substr(equals + 1)),
               [](const std::string& gate_name, const std::string& value) {
                 return "invalid value of " + gate_name + "=" + value + ", err: ";
               });
    });
  }

  template <typename Each>
  static void ForEachPair(std::string_view pairs, const Each& each) {
    for (;;) {
      const std::size_t comma = pairs.find(',');
      if (const auto pair = pairs.substr(0, comma); !pair.empty()) each(pair);
      if (comma == std::string_view::npos) return;
      pairs.remove_prefix(comma + 1);
    }
  }

  void FatalPair(std::string_view argument, std::string_view pair, std::string words) {
    std::string setting(argument.substr(0, argument.find('=')));
    setting.append("=").append(pair);
    Fatal(ShownSetting(pair), setting, std::move(words), "correct it",
          "component-base v0.18.0 featuregate/feature_gate.go, cli/flag/map_string_bool.go");
  }

  template <typename Words>
  void ReadGate(std::string_view pair, std::string_view name, std::string_view value,
                const Words& words) {
    const auto enabled = ParseGoBool(value);
    const std::string setting = "--feature-gates=" + std::string(pair);
    if (!enabled) {
      Fatal(ShownSetting(name), setting,
            words(ShownSetting(name), ShownSetting(value)) + "strconv.ParseBool: parsing " +
                QuoteForMessage(value) + ": invalid syntax",
            "correct the value",
            "component-base v0.18.0 featuregate/feature_gate.go, cli/flag/map_string_bool.go");
      return;
    }
    TakeGate(name, *enabled, setting);
  }

  // The gate is judged when all are known: of one gate the last setting counts.
  void TakeGate(std::string_view name, bool enabled, std::string_view text) {
    if (const auto gate = FindStreamingGate(name)) {
      std::erase_if(gates_, [&](const TakenGate& taken) { return taken.setting.gate == *gate; });
      gates_.push_back({{*gate, enabled}, std::string(text)});
      return;
    }
    if (!LooksLikeGate(name)) return;
    Fatal(ShownSetting(name), text, "unrecognized feature gate: " + ShownSetting(name),
          "take it out, or write it as the release spells it",
          "component-base v0.18.0 featuregate/feature_gate.go");
  }

  // A gate's name in other letters, or with a prefix that this component does not take.
  static bool LooksLikeGate(std::string_view name) {
    if (const std::size_t colon = name.rfind(':'); colon != std::string_view::npos) {
      name = Trimmed(name.substr(colon + 1));
    }
    for (int gate = 0; gate <= static_cast<int>(StreamingGate::kAllBeta); ++gate) {
      const std::string_view known = StreamingGateName(static_cast<StreamingGate>(gate));
      if (name.size() == known.size() && ToLower(name) == ToLower(known)) return true;
    }
    return false;
  }

  void JudgeGates() {
    for (const TakenGate& taken : gates_) {
      auto finding = internal::JudgeGate(request_.component, request_.version, taken.setting);
      if (!finding) continue;
      finding->setting = ShownSetting(taken.text);
      Report(std::move(*finding));
    }
    for (auto& finding :
         internal::JudgeGatesTogether(request_.component, request_.version, lint_.settings.gates)) {
      for (const TakenGate& taken : gates_) {
        if (StreamingGateName(taken.setting.gate) != finding.subject) continue;
        finding.setting = ShownSetting(taken.text);
      }
      Report(std::move(finding));
    }
  }

  const StreamingLintRequest& request_;
  StreamingLint& lint_;
  std::vector<TakenGate> gates_;
  std::optional<bool> gate_prefixed_;
};

Result<void> CheckSize(const std::vector<std::string>& arguments) {
  const auto too_much = [](std::size_t most, std::string_view of) {
    return Error{ErrorCode::kLimitExceeded,
                 "the command line has more than " + std::to_string(most) + " " + std::string(of),
                 {}};
  };
  std::size_t bytes = 0;
  for (const std::string& argument : arguments) bytes += argument.size();
  if (arguments.size() > kMaxStreamingArguments) {
    return too_much(kMaxStreamingArguments, "arguments");
  }
  if (bytes > kMaxStreamingSettingsBytes) return too_much(kMaxStreamingSettingsBytes, "bytes");
  return {};
}

}  // namespace

Result<StreamingLint> LintStreaming(const StreamingLintRequest& request) {
  const std::string name = std::string(ProgramOf(request.component)) + " ";
  if (auto checked = internal::CheckVersion(name, request.version); !checked) {
    return checked.error();
  }
  TRY(CheckSize(request.arguments));
  StreamingLint lint;
  if (request.version > kNewestStreamingVersion) {
    lint.notes.push_back(name + request.version.ToString() +
                         " is newer than what is known: taken for " +
                         kNewestStreamingVersion.ToString());
  }
  Linter(request, lint).Run();
  return lint;
}

}  // namespace waybill
