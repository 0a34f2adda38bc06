#include "bindings/cli/streaming_input.h"

#include <algorithm>
#include <utility>

#include "bindings/cli/yaml_document.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

using internal::QuoteForMessage;

constexpr std::string_view kConfigurationGroup = "kubelet.config.k8s.io/";
constexpr std::string_view kForms =
    "give /proc/PID/cmdline of the running process, a file with one flag a line, a "
    "KubeletConfiguration or a pod manifest";

Error NotUnderstood(std::string message, std::string_view hint) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::string(hint)};
}

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

bool IsProgram(std::string_view path, StreamingComponent component) {
  // npos + 1 is 0.
  return path.substr(path.find_last_of('/') + 1) == StreamingComponentName(component);
}

Result<StreamingInput> ReadProcess(std::string_view content, StreamingComponent component) {
  if (content.back() == '\0') content.remove_suffix(1);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= content.size();) {
    const std::size_t end = std::min(content.find('\0', begin), content.size());
    words.emplace_back(content.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!IsProgram(words.front(), component)) {
    return NotUnderstood("it is the command line of " + QuoteForMessage(words.front()) +
                             ", not of " + std::string(StreamingComponentName(component)),
                         "give /proc/PID/cmdline of the right process, or a file with one flag a "
                         "line");
  }
  words.erase(words.begin());
  return StreamingInput{.form = StreamingInputForm::kProcess, .arguments = std::move(words)};
}

// Each line is one argument, as the component gets it. What a shell or systemd would make several
// of, or replace, is refused: it could hide a flag.
Result<StreamingInput> ReadFlags(std::string_view content) {
  StreamingInput input = {.form = StreamingInputForm::kFlags};
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    while (!line.empty() && IsSpace(line.front())) line.remove_prefix(1);
    while (!line.empty() && IsSpace(line.back())) line.remove_suffix(1);
    if (line.empty()) continue;
    // The line is not shown: the value may be a secret.
    if (line.front() != '-' || line.find_first_of(" \t\v\f\r\"'`\\${") != std::string_view::npos) {
      return NotUnderstood(
          "line " + std::to_string(number) + " is not one flag as the component gets it",
          "write one flag a line, its value behind = and without quotes; or give "
          "/proc/PID/cmdline of the running process, a KubeletConfiguration or a pod manifest");
    }
    input.arguments.emplace_back(line);
  }
  return input;
}

Result<StreamingInput> TakeConfiguration(const YamlNode& root, StreamingComponent component) {
  if (component != StreamingComponent::kKubelet) {
    return NotUnderstood("it is a KubeletConfiguration", "give it with --kubelet-config");
  }
  const YamlNode* version = root.Find("apiVersion");
  if (version == nullptr || !version->IsScalar() ||
      !std::string_view(version->text).starts_with(kConfigurationGroup)) {
    return NotUnderstood("its apiVersion is not that of a KubeletConfiguration",
                         "write apiVersion: kubelet.config.k8s.io/v1beta1");
  }
  StreamingInput input;
  input.form = StreamingInputForm::kConfiguration;
  auto& values = input.configuration.emplace();
  for (std::size_t i = 0; i < root.keys.size(); ++i) {
    const YamlNode& item = root.items[i];
    if (root.keys[i] == "featureGates") {
      if (item.IsScalar() && JsonOfScalar(item) == "null") continue;
      if (!item.IsMap()) return NotUnderstood("its featureGates are no map", "write GATE: true");
      for (std::size_t gate = 0; gate < item.keys.size(); ++gate) {
        const YamlNode& value = item.items[gate];
        if (!value.IsScalar()) {
          return NotUnderstood(
              "the feature gate " + QuoteForMessage(item.keys[gate]) + " is no boolean",
              "write true or false");
        }
        values.push_back({"featureGates." + item.keys[gate], JsonOfScalar(value)});
      }
    } else if (item.IsScalar()) {
      values.push_back({root.keys[i], JsonOfScalar(item)});
    }
  }
  return input;
}

// The words of a list of strings; nullopt: something in it is no string.
std::optional<std::vector<std::string>> StringsOf(const YamlNode* list) {
  std::vector<std::string> words;
  if (list == nullptr) return words;
  if (list->IsScalar() && JsonOfScalar(*list) == "null") return words;
  if (!list->IsList()) return std::nullopt;
  for (const YamlNode& item : list->items) {
    if (!item.IsScalar()) return std::nullopt;
    words.push_back(item.text);
  }
  return words;
}

// The kubelet replaces $(NAME) before the program sees it. A variable is accepted only within the
// value of a flag that does not matter here. The note names the flag alone: its value may be a
// secret.
Result<void> CheckVariables(StreamingInput& input) {
  for (const std::string_view argument : input.arguments) {
    const std::size_t variable = argument.find("$(");
    if (variable == std::string_view::npos) continue;
    const std::size_t equals = argument.find('=');
    const std::string_view flag = argument.substr(0, equals);
    const std::size_t name = flag.find_first_not_of('-');
    if (!flag.starts_with('-') || name == std::string_view::npos || variable < equals ||
        IsStreamingFlag(flag.substr(name))) {
      return NotUnderstood(
          "it has " + QuoteForMessage(argument) + ", which may stand for any setting",
          "give /proc/PID/cmdline of the running process: it has what the variable stands for");
    }
    if (input.notes.empty()) {
      input.notes.push_back("variables were not replaced, such as that of " +
                            QuoteForMessage(flag));
    }
  }
  return {};
}

// nullopt: the container runs something else.
Result<std::optional<StreamingInput>> TakeContainer(const YamlNode& container,
                                                    StreamingComponent component) {
  const auto command = StringsOf(container.Find("command"));
  auto words = StringsOf(container.Find("args"));
  if (!command || !words) {
    return NotUnderstood("the command of a container is no list of strings", {});
  }
  // Without a command the image has it: then the container's name tells.
  const YamlNode* name = container.Find("name");
  if (command->empty() ? name == nullptr || name->text != StreamingComponentName(component)
                       : !IsProgram(command->front(), component)) {
    return std::optional<StreamingInput>();
  }
  if (!command->empty()) words->insert(words->begin(), command->begin() + 1, command->end());
  StreamingInput input = {.form = StreamingInputForm::kPod, .arguments = *std::move(words)};
  TRY(CheckVariables(input));
  return std::optional(std::move(input));
}

Result<StreamingInput> TakePod(const YamlNode& root, StreamingComponent component) {
  const YamlNode* spec = root.Find("spec");
  const YamlNode* containers = spec == nullptr ? nullptr : spec->Find("containers");
  if (containers == nullptr || !containers->IsList()) {
    return NotUnderstood("the pod has no list of containers", "give the manifest of the pod");
  }
  const std::string program(StreamingComponentName(component));
  std::optional<StreamingInput> found;
  for (const YamlNode& container : containers->items) {
    auto taken = TRY(TakeContainer(container, component));
    if (!taken) continue;
    if (found) {
      return NotUnderstood("several of the pod's containers run " + program,
                           "give a manifest with one of them");
    }
    found = std::move(taken);
  }
  if (found) return *std::move(found);
  return NotUnderstood("no container of the pod has " + program + " itself as its command",
                       "give the manifest of its own pod; or, if a shell or another program starts "
                       "it, /proc/PID/cmdline of the running process");
}

Result<StreamingInput> ReadDocument(std::string_view content, StreamingComponent component) {
  auto root = ReadYaml(content);
  if (!root) {
    Error error = root.error();
    error.message = "it is no list of flags, and can't be read as YAML or JSON: " + error.message;
    if (!error.has_hint()) error.hint = kForms;
    return error;
  }
  const YamlNode* kind = root->IsMap() ? root->Find("kind") : nullptr;
  if (kind == nullptr || !kind->IsScalar()) {
    return NotUnderstood("it is no list of flags, and no document with a kind", kForms);
  }
  if (kind->text == "KubeletConfiguration") return TakeConfiguration(*root, component);
  if (kind->text == "Pod") return TakePod(*root, component);
  return NotUnderstood("the document is of kind " + QuoteForMessage(kind->text),
                       "give a KubeletConfiguration or a Pod");
}

}  // namespace

std::string_view StreamingInputFormText(StreamingInputForm form) {
  constexpr std::string_view kTexts[] = {"the command line of a process", "flags, one a line",
                                         "a KubeletConfiguration", "a pod manifest"};
  return kTexts[static_cast<std::size_t>(form)];
}

std::string_view StreamingInputFormName(StreamingInputForm form) {
  constexpr std::string_view kNames[] = {"process", "flags", "configuration", "pod"};
  return kNames[static_cast<std::size_t>(form)];
}

Result<StreamingInput> ReadStreamingInput(std::string_view content, StreamingComponent component) {
  if (content.size() > kMaxStreamingInputBytes) {
    return Error{ErrorCode::kLimitExceeded,
                 "it has more than " + std::to_string(kMaxStreamingInputBytes) + " bytes",
                 {}};
  }
  const auto* const first = std::find_if_not(content.begin(), content.end(),
                                             [](char c) { return c == '\0' || IsSpace(c); });
  if (first == content.end()) {
    return NotUnderstood(
        "it is empty",
        std::string(kForms) + "; /proc/PID/cmdline is empty for a process that ended");
  }
  if (content.find('\0') != std::string_view::npos) return ReadProcess(content, component);
  // "---" begins a document of YAML.
  if (*first == '-' && !std::string_view(first, content.end()).starts_with("---")) {
    return ReadFlags(content);
  }
  return ReadDocument(content, component);
}

}  // namespace waybill::cli
