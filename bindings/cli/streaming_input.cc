#include "bindings/cli/streaming_input.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "bindings/cli/shell_words.h"
#include "bindings/cli/yaml_document.h"
#include "store/base/quote.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kConfigurationGroup = "kubelet.config.k8s.io/";

std::string Quoted(std::string_view text) { return internal::QuoteForMessage(text); }

Error NotUnderstood(std::string message, std::string_view hint) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::string(hint)};
}

Error NoProgram(StreamingComponent component) {
  const std::string name(StreamingComponentName(component));
  return NotUnderstood(
      "it is no command line of " + name + ", no configuration and no pod manifest",
      "give /proc/PID/cmdline of the running process, or the command itself");
}

constexpr std::string_view kVariableHint =
    "give /proc/PID/cmdline of the running process: it has what the variable stands for";

bool IsSpace(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

std::string_view Basename(std::string_view path) {
  return path.substr(path.find_last_of('/') + 1);  // npos + 1 is 0
}

// Whether a program of this name is the component: kubelet, my-kubelet, kubelet-v1.22.
bool IsProgram(std::string_view word, StreamingComponent component) {
  const std::string_view base = Basename(word);
  const std::string_view name = StreamingComponentName(component);
  if (base == name) return true;
  if (base.starts_with(name)) {
    return std::string_view("-._").find(base[name.size()]) != std::string_view::npos;
  }
  return base.size() > name.size() && base.ends_with(name) &&
         base[base.size() - name.size() - 1] == '-';
}

// How many words stand in front of the flags: the program, and for hyperkube its command. 0: these
// words start another program.
std::size_t WordsOfProgram(const std::vector<std::string>& words, std::size_t at,
                           StreamingComponent component) {
  if (at >= words.size()) return 0;
  if (IsProgram(words[at], component)) return 1;
  if (Basename(words[at]) == "hyperkube" && at + 1 < words.size() &&
      (IsProgram(words[at + 1], component) ||
       (component == StreamingComponent::kApiServer && words[at + 1] == "apiserver"))) {
    return 2;
  }
  return 0;
}

bool IsAssignment(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos || equals == 0) return false;
  const auto name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  return std::all_of(word.begin(), word.begin() + static_cast<std::ptrdiff_t>(equals), name) &&
         !(word[0] >= '0' && word[0] <= '9');
}

std::vector<std::string> TextsOf(const ShellCommand& command) {
  std::vector<std::string> texts;
  texts.reserve(command.size());
  for (const CommandWord& word : command) texts.push_back(word.text);
  return texts;
}

// Whether a program, or an option of one, stands in front of the program that it starts.
class StarterWords {
 public:
  bool Skips(std::string_view word) {
    constexpr std::string_view kStarters[] = {"exec", "setsid",  "nohup", "env",  "sudo",
                                              "nice", "command", "time",  "chrt", "ionice"};
    if (std::find(std::begin(kStarters), std::end(kStarters), Basename(word)) !=
        std::end(kStarters)) {
      starter_ = true;
      return true;
    }
    return IsAssignment(word) ||
           (starter_ && (word.starts_with('-') ||
                         word.find_first_not_of("0123456789") == std::string_view::npos));
  }

 private:
  bool starter_ = false;
};

// Where the program stands in a shell's command, behind assignments and what starts programs.
std::optional<std::size_t> FindProgram(const std::vector<std::string>& words,
                                       StreamingComponent component) {
  StarterWords starters;
  for (std::size_t at = 0; at < words.size(); ++at) {
    // NAME=/usr/bin/kubelet starts nothing.
    if (!IsAssignment(words[at]) && WordsOfProgram(words, at, component) > 0) return at;
    if (!starters.Skips(words[at])) return std::nullopt;
  }
  return std::nullopt;
}

// The word that a shell runs, behind assignments and what starts programs; nullptr: none.
const CommandWord* WordThatRuns(const ShellCommand& command) {
  // The words of a shell's own that a command can follow.
  constexpr std::string_view kKeywords[] = {"if", "then", "else", "elif", "while",  "until",
                                            "do", "{",    "!",    "eval", "timeout"};
  StarterWords starters;
  for (const CommandWord& word : command) {
    if (!starters.Skips(word.text) &&
        std::find(std::begin(kKeywords), std::end(kKeywords), word.text) == std::end(kKeywords)) {
      return &word;
    }
  }
  return nullptr;
}

// Whether a word names the component anywhere: as a path, or within text that may be a command.
bool NamesProgram(std::string_view text, StreamingComponent component) {
  constexpr std::string_view kEnds = " \t\r\n;&|(){}<>'\"`$=,:@!";
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kEnds, begin), text.size());
    const std::string_view piece = text.substr(begin, end - begin);
    if (IsProgram(piece, component) || Basename(piece) == "hyperkube") return true;
    begin = end + 1;
  }
  return false;
}

bool IsStreamingFlagWord(std::string_view word) {
  if (!word.starts_with('-')) return false;
  const std::string_view flag = word.substr(0, word.find('='));
  return IsStreamingFlag(flag.substr(std::min(flag.find_first_not_of('-'), flag.size())));
}

// A script's other commands must not start the component as well, in a way that is not read.
Result<void> CheckOtherCommand(const ShellCommand& command, StreamingComponent component) {
  const std::string name(StreamingComponentName(component));
  constexpr std::string_view kHint =
      "give the one command, or /proc/PID/cmdline of the running process";
  for (const CommandWord& word : command) {
    if (NamesProgram(word.text, component)) {
      return NotUnderstood(
          "another of its commands names " + name + ", and may start it in a way that is not read",
          kHint);
    }
    if (IsStreamingFlagWord(word.text)) {
      return NotUnderstood("another of its commands has " +
                               Quoted(std::string_view(word.text).substr(0, word.text.find('='))) +
                               ", and may start " + name + " in a way that is not read",
                           kHint);
    }
  }
  const CommandWord* runs = WordThatRuns(command);
  if (runs != nullptr && runs->has_variable &&
      Basename(runs->text).find_first_of("$`)}") != std::string_view::npos) {
    return NotUnderstood(
        "another of its commands runs " + Quoted(runs->text) + ", which may stand for " + name,
        kHint);
  }
  return {};
}

// A variable may be left as it is only within a value of a flag that does not matter here. At the
// begin of a word it may stand for a flag, as the flag before may take no value. Notes name the
// flag alone: its value may be a secret.
Result<void> CheckVariables(const ShellCommand& words, std::vector<std::string>& notes) {
  std::string_view open_flag;  // the word before, if it is a flag without "=" that does not matter
  bool noted = false;
  for (const CommandWord& word : words) {
    const std::string_view text = word.text;
    const bool is_flag = text.starts_with('-');
    const std::size_t equals = text.find('=');
    const std::string_view flag = text.substr(0, equals);
    const bool matters = IsStreamingFlagWord(text);
    if (word.has_variable) {
      const bool in_value =
          is_flag && !matters && equals != std::string_view::npos && word.variable_at > equals;
      const bool is_value = !is_flag && !open_flag.empty() && !word.begins_with_variable;
      if (word.has_list || (!in_value && !is_value)) {
        return NotUnderstood("it has " + Quoted(is_flag ? text : text.substr(word.variable_at)) +
                                 ", which may stand for any setting",
                             kVariableHint);
      }
      if (!std::exchange(noted, true)) {
        notes.push_back("variables were not replaced, such as that of " +
                        Quoted(in_value ? flag : open_flag));
      }
    }
    open_flag = is_flag && equals == std::string_view::npos && !matters ? text : "";
  }
  return {};
}

// Takes the words of a command that starts the component, from `at` on.
Result<StreamingInput> TakeCommand(ShellCommand command, std::size_t at,
                                   StreamingComponent component, StreamingInputForm form) {
  const auto words = TextsOf(command);
  StreamingInput input;
  input.form = form;
  const std::size_t program = WordsOfProgram(words, at, component);
  command.erase(command.begin(), command.begin() + static_cast<std::ptrdiff_t>(at + program));
  if (auto ok = CheckVariables(command, input.notes); !ok) return ok.error();
  input.arguments = TextsOf(command);
  return input;
}

Result<StreamingInput> ReadShell(std::string_view content, StreamingComponent component);

// sh -c "exec kube-apiserver …"; nullopt: it is no such command.
std::optional<Result<StreamingInput>> ReadInnerShell(const std::vector<std::string>& words,
                                                     StreamingComponent component) {
  if (words.size() != 3) return std::nullopt;
  const std::string_view shell = Basename(words[0]);
  if (shell != "sh" && shell != "bash" && shell != "dash" && shell != "ash") return std::nullopt;
  if (!words[1].starts_with('-') || !words[1].ends_with('c')) return std::nullopt;
  return ReadShell(words[2], component);
}

Result<StreamingInput> ReadShell(std::string_view content, StreamingComponent component) {
  auto commands = ReadShellCommands(content, ShellRules::kShell);
  if (!commands) return commands.error();
  const ShellCommand* found = nullptr;
  std::size_t at = 0;
  for (const ShellCommand& command : *commands) {
    const auto program = FindProgram(TextsOf(command), component);
    if (!program) continue;
    if (found != nullptr) {
      return NotUnderstood(
          "it starts " + std::string(StreamingComponentName(component)) + " more than once",
          "give one of the commands");
    }
    found = &command;
    at = *program;
  }
  if (found != nullptr) {
    for (const ShellCommand& command : *commands) {
      if (&command == found) continue;
      if (auto ok = CheckOtherCommand(command, component); !ok) return ok.error();
    }
    return TakeCommand(*found, at, component, StreamingInputForm::kShell);
  }
  if (commands->size() != 1) return NoProgram(component);
  // Flags alone, as a drop-in or a form of a cloud provider has them. No shell need read them, so
  // that nothing may be a comment or a redirection.
  if (!commands->front().front().text.starts_with('-')) return NoProgram(component);
  commands = ReadShellCommands(content, ShellRules::kAssignments);
  if (!commands) return commands.error();
  if (commands->size() != 1) return NoProgram(component);
  StreamingInput input;
  if (auto ok = CheckVariables(commands->front(), input.notes); !ok) return ok.error();
  input.arguments = TextsOf(commands->front());
  return input;
}

// The words of a variable's value, as systemd or a shell splits them where the variable stands.
ShellCommand SplitValue(std::string_view value) {
  ShellCommand words;
  for (std::size_t begin = 0; begin < value.size();) {
    std::size_t end = begin;
    while (end < value.size() && !IsSpace(value[end])) ++end;
    if (end > begin) {
      CommandWord word = {.text = std::string(value.substr(begin, end - begin))};
      const std::size_t variable = word.text.find_first_of("$`");
      word.has_variable = variable != std::string::npos;
      word.begins_with_variable = variable == 0;
      word.variable_at = word.has_variable ? variable : 0;
      word.has_list = word.text.find("$@") != std::string::npos;
      words.push_back(std::move(word));
    }
    begin = end + 1;
  }
  return words;
}

// Whether a word of the value is a flag, or may become one.
bool HoldsFlags(const ShellCommand& words) {
  return std::any_of(words.begin(), words.end(), [](const CommandWord& word) {
    const std::size_t first = word.text.find_first_not_of("\"'\\");
    return word.begins_with_variable || (first != std::string::npos && word.text[first] == '-');
  });
}

// NAME="--flag …": the flags of each variable, out of a file of assignments.
std::optional<Result<StreamingInput>> ReadEnvironment(std::string_view content) {
  const auto commands = ReadShellCommands(content, ShellRules::kAssignments);
  if (!commands) return std::nullopt;
  constexpr std::string_view kHint = "give /proc/PID/cmdline of the running process";
  StreamingInput input;
  input.form = StreamingInputForm::kEnvironment;
  std::vector<std::string> names;
  std::vector<std::string> streaming_flags;  // of the variables before
  for (const ShellCommand& command : *commands) {
    for (const CommandWord& word : command) {
      if (!IsAssignment(word.text)) return std::nullopt;
    }
  }
  for (const ShellCommand& command : *commands) {
    for (const CommandWord& word : command) {
      const std::size_t equals = word.text.find('=');
      const std::string_view value = std::string_view(word.text).substr(equals + 1);
      const ShellCommand words = SplitValue(value);
      if (!HoldsFlags(words)) continue;
      const std::string name = Quoted(std::string_view(word.text).substr(0, equals));
      if (value.find_first_of("\"'\\") != std::string_view::npos) {
        return Result<StreamingInput>(NotUnderstood(
            "the value of " + name +
                " has a quote or backslash in it, which systemd and a shell read differently",
            kHint));
      }
      if (std::find(names.begin(), names.end(), name) != names.end()) {
        return Result<StreamingInput>(NotUnderstood("it sets " + name + " more than once", kHint));
      }
      names.push_back(name);
      if (auto ok = CheckVariables(words, input.notes); !ok) {
        return Result<StreamingInput>(ok.error());
      }
      // Which of two variables comes last on the command line, and counts, is not known.
      std::vector<std::string> own;
      for (const CommandWord& flag : words) {
        if (!IsStreamingFlagWord(flag.text)) continue;
        std::string bare = flag.text.substr(0, flag.text.find('='));
        bare.erase(0, bare.find_first_not_of('-'));
        std::replace(bare.begin(), bare.end(), '_', '-');
        if (std::find(streaming_flags.begin(), streaming_flags.end(), bare) !=
            streaming_flags.end()) {
          return Result<StreamingInput>(
              NotUnderstood("several of its variables hold --" + bare, kHint));
        }
        own.push_back(std::move(bare));
      }
      std::move(own.begin(), own.end(), std::back_inserter(streaming_flags));
      for (const CommandWord& flag : words) input.arguments.push_back(flag.text);
    }
  }
  if (names.empty()) return std::nullopt;
  std::string all = names.front();
  for (std::size_t i = 1; i < names.size(); ++i) all += ", " + names[i];
  input.notes.push_back("only the flags of " + all +
                        " were judged, not the rest of the command line");
  return Result<StreamingInput>(std::move(input));
}

// The lines of a unit as systemd joins them: a comment is none, wherever it stands, and a backslash
// at its end is part of it.
std::vector<std::string> LogicalLines(std::string_view content) {
  std::vector<std::string> lines;
  std::string joined;
  for (std::size_t begin = 0; begin <= content.size();) {
    const std::size_t end = std::min(content.find('\n', begin), content.size());
    std::string_view line = content.substr(begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    while (!line.empty() && IsSpace(line.front())) line.remove_prefix(1);
    if (line.starts_with('#') || line.starts_with(';')) continue;
    joined += line;
    // Two backslashes are one that goes nowhere.
    const std::size_t last = line.find_last_not_of('\\');
    const std::size_t slashes = line.size() - (last == std::string_view::npos ? 0 : last + 1);
    if (slashes % 2 == 1) {
      joined.back() = ' ';
      continue;
    }
    lines.push_back(std::move(joined));
    joined.clear();
  }
  if (!joined.empty()) lines.push_back(std::move(joined));
  return lines;
}

// The unit's ExecStart=; nullopt: it has none.
std::optional<Result<StreamingInput>> ReadUnit(std::string_view content,
                                               StreamingComponent component) {
  constexpr std::string_view kKey = "ExecStart";
  const std::vector<std::string> lines = LogicalLines(content);
  std::vector<std::string_view> starts;
  bool any = false;
  for (std::string_view line : lines) {
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (!line.starts_with('=')) continue;
    line.remove_prefix(1);
    while (!line.empty() && IsSpace(line.front())) line.remove_prefix(1);
    any = true;
    // An empty one takes back those before it.
    if (line.empty()) starts.clear();
    if (!line.empty()) starts.push_back(line);
  }
  if (!any) return std::nullopt;
  if (starts.size() != 1) {
    return Result<StreamingInput>(NotUnderstood(
        "it has " + std::to_string(starts.size()) + " commands in ExecStart=", "give one of them"));
  }
  std::string_view start = starts.front();
  while (!start.empty() && std::string_view("-:+!").find(start.front()) != std::string_view::npos) {
    start.remove_prefix(1);
  }
  auto commands = ReadShellCommands(start, ShellRules::kSystemd);
  if (!commands) return Result<StreamingInput>(commands.error());
  if (commands->size() != 1) return Result<StreamingInput>(NoProgram(component));
  const auto words = TextsOf(commands->front());
  if (auto inner = ReadInnerShell(words, component)) return inner;
  const auto at = FindProgram(words, component);
  if (!at) return Result<StreamingInput>(NoProgram(component));
  return TakeCommand(commands->front(), *at, component, StreamingInputForm::kUnit);
}

Result<StreamingInput> ReadProcess(std::string_view content, StreamingComponent component) {
  if (content.back() == '\0') content.remove_suffix(1);
  std::vector<std::string> words;
  for (std::size_t begin = 0; begin <= content.size();) {
    const std::size_t end = std::min(content.find('\0', begin), content.size());
    words.emplace_back(content.substr(begin, end - begin));
    begin = end + 1;
    if (words.size() > kMaxShellWords) {
      return Error{ErrorCode::kLimitExceeded,
                   "it has more than " + std::to_string(kMaxShellWords) + " arguments",
                   {}};
    }
  }
  const std::size_t program = WordsOfProgram(words, 0, component);
  if (program == 0) {
    return NotUnderstood("it is the command line of " + Quoted(words.front()) + ", not of " +
                             std::string(StreamingComponentName(component)),
                         "give /proc/PID/cmdline of the right process");
  }
  StreamingInput input;
  input.form = StreamingInputForm::kProcess;
  input.arguments.assign(words.begin() + static_cast<std::ptrdiff_t>(program), words.end());
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
          return NotUnderstood("the feature gate " + Quoted(item.keys[gate]) + " is no boolean",
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

// What the kubelet would replace in a container's command is left as it is: $(NAME).
ShellCommand AsWords(const std::vector<std::string>& texts) {
  ShellCommand words;
  for (const std::string& text : texts) {
    CommandWord word = {.text = text};
    for (std::size_t at = text.find('$'); at != std::string::npos && !word.has_variable;
         at = text.find('$', at)) {
      const char next = at + 1 < text.size() ? text[at + 1] : '\0';
      word.has_variable = next == '(' && text.find(')', at) != std::string::npos;
      word.variable_at = at;
      at += next == '$' ? 2 : 1;
    }
    word.begins_with_variable = word.has_variable && word.variable_at == 0;
    words.push_back(std::move(word));
  }
  return words;
}

// nullopt: the container runs something else.
std::optional<Result<StreamingInput>> TakeContainer(const YamlNode& container,
                                                    StreamingComponent component) {
  auto command = StringsOf(container.Find("command"));
  const auto arguments = StringsOf(container.Find("args"));
  if (!command || !arguments) {
    return Result<StreamingInput>(
        NotUnderstood("the command of a container is no list of strings", {}));
  }
  const YamlNode* name = container.Find("name");
  // Without a command the image has it: then the container's name tells.
  const bool by_name =
      command->empty() && name != nullptr && name->text == StreamingComponentName(component);
  if (by_name) command->emplace_back(StreamingComponentName(component));
  command->insert(command->end(), arguments->begin(), arguments->end());
  if (auto inner = ReadInnerShell(*command, component)) {
    if (*inner) {
      (*inner)->form = StreamingInputForm::kPod;
      return inner;
    }
    // A shell that starts something else is another container.
    return name != nullptr && name->text == StreamingComponentName(component)
               ? inner
               : std::optional<Result<StreamingInput>>();
  }
  if (WordsOfProgram(*command, 0, component) == 0) return std::nullopt;
  return TakeCommand(AsWords(*command), 0, component, StreamingInputForm::kPod);
}

Result<StreamingInput> TakePod(const YamlNode& root, StreamingComponent component) {
  const YamlNode* spec = root.Find("spec");
  const YamlNode* containers = spec == nullptr ? nullptr : spec->Find("containers");
  if (containers == nullptr || !containers->IsList()) {
    return NotUnderstood("the pod has no list of containers", "give the manifest of the pod");
  }
  std::optional<Result<StreamingInput>> found;
  for (const YamlNode& container : containers->items) {
    auto taken = TakeContainer(container, component);
    if (!taken) continue;
    if (found) {
      return NotUnderstood(
          "several of the pod's containers run " + std::string(StreamingComponentName(component)),
          "give a manifest with one of them");
    }
    found = std::move(taken);
  }
  if (found) return *std::move(found);
  return NotUnderstood(
      "no container of the pod runs " + std::string(StreamingComponentName(component)),
      "give the manifest of its own pod");
}

Result<StreamingInput> ReadDocument(std::string_view content, StreamingComponent component) {
  auto root = ReadYaml(content);
  if (!root) {
    Error error = root.error();
    error.message = "taken for YAML or JSON: " + error.message;
    if (!error.has_hint()) {
      error.hint = "give one command, one KubeletConfiguration or one pod manifest, as it is";
    }
    return error;
  }
  const YamlNode* kind = root->IsMap() ? root->Find("kind") : nullptr;
  if (kind == nullptr || !kind->IsScalar()) {
    return NotUnderstood("the document has no kind", "give a KubeletConfiguration or a Pod");
  }
  if (kind->text == "KubeletConfiguration") return TakeConfiguration(*root, component);
  if (kind->text == "Pod") return TakePod(*root, component);
  return NotUnderstood("the document is of kind " + Quoted(kind->text),
                       "give a KubeletConfiguration or a Pod");
}

// Whether the text is YAML or JSON rather than a command: it opens a brace, or a line begins with a
// key that both kinds of documents have.
bool IsDocument(std::string_view content) {
  const std::size_t first = content.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && content[first] == '{') return true;
  for (std::size_t at = 0; at < content.size();) {
    const std::string_view line = content.substr(at);
    for (const std::string_view key : {"apiVersion", "kind", "\"apiVersion\"", "\"kind\""}) {
      if (!line.starts_with(key)) continue;
      std::string_view rest = line.substr(key.size());
      while (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) rest.remove_prefix(1);
      if (rest.starts_with(':')) return true;
    }
    const std::size_t end = line.find('\n');
    if (end == std::string_view::npos) break;
    at += end + 1;
  }
  return false;
}

}  // namespace

std::string_view StreamingInputFormText(StreamingInputForm form) {
  switch (form) {
    case StreamingInputForm::kProcess:
      return "the command line of a process";
    case StreamingInputForm::kShell:
      return "a shell command";
    case StreamingInputForm::kUnit:
      return "ExecStart= of a systemd unit";
    case StreamingInputForm::kEnvironment:
      return "flags in a variable";
    case StreamingInputForm::kConfiguration:
      return "a KubeletConfiguration";
    case StreamingInputForm::kPod:
      return "a pod manifest";
  }
  return {};
}

std::string_view StreamingInputFormName(StreamingInputForm form) {
  switch (form) {
    case StreamingInputForm::kProcess:
      return "process";
    case StreamingInputForm::kShell:
      return "shell";
    case StreamingInputForm::kUnit:
      return "unit";
    case StreamingInputForm::kEnvironment:
      return "environment";
    case StreamingInputForm::kConfiguration:
      return "configuration";
    case StreamingInputForm::kPod:
      return "pod";
  }
  return {};
}

Result<StreamingInput> ReadStreamingInput(std::string_view content, StreamingComponent component) {
  if (content.size() > kMaxStreamingInputBytes) {
    return Error{ErrorCode::kLimitExceeded,
                 "it has more than " + std::to_string(kMaxStreamingInputBytes) + " bytes",
                 {}};
  }
  if (std::all_of(content.begin(), content.end(), [](char c) { return c == '\0' || IsSpace(c); })) {
    return NotUnderstood("it is empty",
                         "give a command line, a configuration or a pod manifest; "
                         "/proc/PID/cmdline is empty for a process that ended");
  }
  if (content.find('\0') != std::string_view::npos) return ReadProcess(content, component);
  if (IsDocument(content)) return ReadDocument(content, component);
  if (auto unit = ReadUnit(content, component)) return *std::move(unit);
  if (auto environment = ReadEnvironment(content)) return *std::move(environment);
  return ReadShell(content, component);
}

}  // namespace waybill::cli
