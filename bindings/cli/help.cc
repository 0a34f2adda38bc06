#include <fmt/core.h>

#include <sstream>

#include "bindings/cli/registry.h"

namespace waybill::cli {
namespace {

// A name, and what there is to say of it, in a column of its own.
std::string Item(const std::string& name, const std::string& help) {
  constexpr std::size_t kColumn = 30;
  std::string text = "  " + name;
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    if (text.size() >= kColumn || text.find('\n') != std::string::npos) text += '\n';
    const std::size_t in_line = text.size() - (text.rfind('\n') + 1);
    text.append(kColumn - in_line, ' ').append(line);
  }
  return text + "\n";
}

std::string NamesOf(const Flag& flag) {
  std::string names = flag.short_name.empty() ? "" : flag.short_name + ",";
  names += flag.name;
  return flag.placeholder.empty() ? names : names + " " + flag.placeholder;
}

// The flags of one kind under their heading, or nothing.
template <typename Fits>
std::string Section(const std::string& heading, const Flags& flags, const Fits& fits,
                    const std::string& first = {}) {
  std::string items = first;
  for (const Flag& flag : flags.all()) {
    if (fits(flag)) items += Item(NamesOf(flag), flag.help);
  }
  return items.empty() ? "" : "\n" + heading + ":\n" + items;
}

// Each line two columns in.
std::string Indented(const std::string& text) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += "  " + line + "\n";
  return out;
}

constexpr const char* kHelpFlag = "Print this help message and exit";

}  // namespace

std::string HelpOf(const Registry& registry) {
  std::string text =
      "waybill keeps which image was pulled to this node with whose credentials.\n"
      "Usage: waybill [OPTIONS] COMMAND\n\nOptions:\n" +
      Item("-h,--help", kHelpFlag) +
      Item("--version", "Display program version information and exit");
  std::string task;
  for (const auto& entry : registry.entries()) {
    if (entry->group != nullptr) continue;
    if (task != entry->command.task) text += fmt::format("\n{}:\n", entry->command.task);
    task = entry->command.task;
    text += Item(entry->command.name, entry->command.summary);
  }
  return text + "\nwaybill help COMMAND says more.\n\nExit codes:\n" + kExitCodes;
}

std::string HelpOf(const Registry::Entry& entry) {
  const Command& command = entry.command;
  const Registry::Entry* const with_flags =
      entry.default_action() != nullptr ? entry.default_action() : &entry;
  const Flags& flags = with_flags->flags;
  std::string text = fmt::format("{}\nUsage: waybill {} [OPTIONS]", command.summary, entry.name());
  if (!entry.actions.empty()) {
    text += command.default_action.empty() ? " ACTION" : " [ACTION]";
  }
  std::string positionals;
  for (const Flag& flag : entry.flags.all()) {
    if (!flag.is_positional()) continue;
    const bool several = flag.kind == Flag::Kind::kPositionals;
    text +=
        flag.required ? " " + flag.name : fmt::format(" [{}{}]", flag.name, several ? "..." : "");
    positionals += Item(flag.name, flag.help);
  }
  text += "\n";
  if (!positionals.empty()) text += "\nPositionals:\n" + positionals;
  if (!entry.actions.empty()) text += "\nActions:\n";
  for (const Registry::Entry* action : entry.actions) {
    text += Item(action->command.name,
                 action->command.summary + (action == entry.default_action() ? " (default)" : ""));
  }
  text += Section(
      "Options", flags,
      [](const Flag& flag) { return !flag.is_positional() && !flag.common && !flag.seldom; },
      Item("-h,--help", kHelpFlag));
  text +=
      Section("Seldom needed", flags, [](const Flag& flag) { return flag.seldom && !flag.common; });
  text += Section("Options of every command", flags, [](const Flag& flag) { return flag.common; });
  if (!command.notes.empty()) text += "\n" + command.notes + "\n";
  if (!entry.actions.empty()) {
    text += fmt::format("\nwaybill help {} ACTION says more.\n", command.name);
  }
  if (!command.examples.empty()) text += "\nExamples:\n" + Indented(command.examples);
  return text + "\nExit codes:\n" + kExitCodes;
}

}  // namespace waybill::cli
