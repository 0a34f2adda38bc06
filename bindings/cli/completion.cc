#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>
#include <vector>

#include "bindings/cli/output.h"
#include "bindings/cli/registry.h"
#include "bindings/cli/settings.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kMostWords = 5000;

bool IsSafe(std::string_view word) {
  constexpr std::string_view kHarmless =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:@%+=,-";
  return !word.empty() && word.size() <= kMaxImageBytes &&
         word.find_first_not_of(kHarmless) == std::string_view::npos;
}

// The words before the cursor, and the one that it is in.
struct Typed {
  std::vector<std::string> before;
  std::string current;
};

Typed WordsOf(std::string_view line) {
  Typed typed;
  std::istringstream in{std::string(line)};
  for (std::string word; in >> word;) typed.before.push_back(word);
  const bool ends = line.empty() || line.back() == ' ' || line.back() == '\t';
  if (!ends && !typed.before.empty()) {
    typed.current = typed.before.back();
    typed.before.pop_back();
  }
  // The name of the program.
  if (!typed.before.empty()) typed.before.erase(typed.before.begin());
  return typed;
}

struct Word {
  std::string text;
  std::string description = {};  // one line, or nothing
};

class Completer {
 public:
  Completer(const Registry& registry, Typed typed)
      : registry_(registry), typed_(std::move(typed)) {}

  std::string Answer() {
    const Flag* awaiting = ReadBefore();
    const std::string& current = typed_.current;
    if (awaiting != nullptr) {
      AddValues(*awaiting, "");
    } else if (const std::size_t equals = current.find('=');
               current.starts_with("--") && equals != std::string::npos) {
      const std::string name = current.substr(0, equals);
      if (const Flag* flag = FindFlag(name)) AddValues(*flag, name + "=");
    } else if (current.starts_with("-")) {
      AddFlags();
    } else if (command_ == nullptr) {
      for (const auto& entry : registry_.entries()) {
        if (entry->group == nullptr) Add(entry->command.name, entry->command.summary);
      }
      Add("help", "what a command does");
    } else if (!command_->actions.empty()) {
      for (const auto* action : command_->actions) {
        Add(action->command.name, action->command.summary);
      }
    } else {
      AddPositional();
    }
    std::erase_if(words_, [&](const Word& word) {
      return !word.text.starts_with(current) || !IsSafe(word.text);
    });
    std::string text = fmt::format("{}\n", kind_);
    for (const Word& word : words_) {
      text += word.text;
      if (!word.description.empty()) text += "\t" + Printable(word.description);
      text += "\n";
    }
    return text;
  }

 private:
  // Finds the command and the store. The flag whose value the cursor is in, or nullptr.
  const Flag* ReadBefore() {
    const Flag* awaiting = nullptr;
    for (const std::string& word : typed_.before) {
      if (awaiting != nullptr) {
        if (awaiting->name == "--store") store_ = word;
        awaiting = nullptr;
      } else if (word.starts_with("-")) {
        intents_ = intents_ || word == "--intent";
        const Flag* flag = FindFlag(word.substr(0, word.find('=')));
        if (flag == nullptr || !flag->takes_value()) continue;
        const std::size_t equals = word.find('=');
        if (equals == std::string::npos) awaiting = flag;
        if (equals != std::string::npos && flag->name == "--store") {
          store_ = word.substr(equals + 1);
        }
      } else if (command_ == nullptr) {
        if (word != "help") command_ = registry_.Find(word);
      } else if (!command_->actions.empty()) {
        if (const auto* action = command_->FindAction(word)) command_ = action;
      } else {
        positionals_.push_back(word);
      }
    }
    return awaiting;
  }

  const Flag* FindFlag(std::string_view name) const {
    if (command_ != nullptr) return command_->FindFlag(name);
    for (const auto& entry : registry_.entries()) {
      if (const Flag* flag = entry->flags.Find(name)) return flag;
    }
    return nullptr;
  }

  void Add(std::string text, std::string_view description = {}) {
    if (words_.size() >= kMostWords) return;
    words_.push_back({std::move(text), std::string(description.substr(0, description.find('\n')))});
  }

  void AddFlags() {
    if (command_ == nullptr) {
      Add("--help");
      Add("--version");
    }
    const Registry::Entry* its = command_ != nullptr ? command_ : registry_.entries().front().get();
    if (its->default_action() != nullptr) its = its->default_action();
    for (const Flag& flag : its->flags.all()) {
      if (flag.is_positional() || (command_ == nullptr && !flag.common)) continue;
      Add(flag.name, flag.help);
    }
    if (command_ != nullptr) Add("--help", "what the command does");
  }

  void AddValues(const Flag& flag, const std::string& prefix) {
    const std::string& placeholder = flag.placeholder;
    if (placeholder.starts_with("FILE") || placeholder == "BACKUP") {
      kind_ = "files";
    } else if (placeholder == "DIR") {
      kind_ = "directories";
    } else if (!flag.choices.empty()) {
      for (const std::string& choice : flag.choices) Add(prefix + choice);
    } else {
      AddStored(placeholder, prefix);
    }
  }

  void AddPositional() {
    std::size_t left = positionals_.size();
    for (const Flag& flag : command_->flags.all()) {
      if (!flag.is_positional()) continue;
      if (left > 0 && flag.kind == Flag::Kind::kPositional) {
        --left;
        continue;
      }
      if (!flag.choices.empty()) {
        for (const std::string& choice : flag.choices) Add(choice);
      } else if (flag.name == "OLD" || flag.name == "NEW" || flag.name == "BACKUP" ||
                 flag.name == "FILE") {
        kind_ = "files";
      } else if (flag.name == "PAGE") {
        AddPages();
      } else {
        AddStored(flag.name == "REF" && intents_ ? "INTENT"
                  : flag.name == "PATTERN"       ? "IMAGE"
                                                 : flag.name,
                  "");
      }
      return;
    }
  }

  void AddPages() {
    constexpr std::string_view kOfCommand = "waybill-";
    for (const ManualPage& page : ManualOf(registry_)) {
      Add(page.name.substr(page.name.starts_with(kOfCommand) ? kOfCommand.size() : 0));
    }
  }

  // What the store holds of the kind that a placeholder or a positional names.
  void AddStored(const std::string& kind, const std::string& prefix) {
    const bool images = kind == "IMAGE" || kind == "IMAGE_REF" || kind == "REF";
    const bool pulls = kind == "PULL" || kind == "INTENT";
    if (!images && !pulls && kind != "HANDLER" && kind != "POD") return;
    const std::string directory = StoreDirectory();
    if (directory.empty()) return;
    StoreFlags flags;
    flags.store = directory;
    auto store = ObserveStore(flags);
    if (!store) return;
    const auto add_all = [&](const auto& list, const auto& text) {
      if (!list) return;
      for (const auto& item : *list) Add(prefix + text(item));
    };
    if (images) AddImages(**store, kind == "REF" || kind == "IMAGE_REF", prefix);
    if (kind == "HANDLER") {
      add_all((*store)->ListRuntimeHandlers(), [](const auto& handler) { return handler.name; });
    }
    if (kind == "POD") {
      add_all((*store)->ListUserNamespaces(), [](const auto& pod) { return pod.pod_uid; });
    }
    if (pulls) {
      add_all((*store)->ListOpenPulls(), [&](const auto& pull) {
        return kind == "PULL" ? std::to_string(pull.id.value) : pull.image;
      });
    }
    // The store's order is that of its keys, which says nothing to people.
    auto& words = words_;
    std::sort(words.begin(), words.end(),
              [](const auto& a, const auto& b) { return a.text < b.text; });
    const auto again = std::unique(words.begin(), words.end(),
                                   [](const auto& a, const auto& b) { return a.text == b.text; });
    words.erase(again, words.end());
  }

  void AddImages(const NodeStore& store, bool refs, const std::string& prefix) {
    const auto records = store.ListRecords();
    if (!records) return;
    for (const ImagePulledRecord& record : *records) {
      if (refs) {
        Add(prefix + record.image_ref);
        continue;
      }
      for (const auto& [image, credentials] : record.credential_mapping) Add(prefix + image);
    }
    const auto ledger = store.ListLedger();
    if (!ledger) return;
    for (const PreloadedImage& entry : *ledger) {
      if (refs) Add(prefix + entry.image_ref);
      if (refs) continue;
      for (const std::string& name : entry.names) Add(prefix + name);
    }
  }

  std::string StoreDirectory() const {
    if (store_) return *store_;
    const Flag* flag = FindFlag("--store");
    if (flag == nullptr || !flag->settings) return {};
    Settings settings(registry_.FlagsWithSettings(), std::nullopt, false);
    auto values = settings.Ask(*flag);
    return values && !values->empty() ? values->front() : std::string();
  }

  const Registry& registry_;
  Typed typed_;
  const Registry::Entry* command_ = nullptr;  // or the action that was named
  std::optional<std::string> store_;
  bool intents_ = false;  // `show --intent`: its arguments are image strings of open pulls
  std::vector<std::string> positionals_;
  std::string_view kind_ = "words";
  std::vector<Word> words_;
};

}  // namespace

std::string Completed(const Registry& registry, std::string_view line) {
  return Completer(registry, WordsOf(line)).Answer();
}

}  // namespace waybill::cli
