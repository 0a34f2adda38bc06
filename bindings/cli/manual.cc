#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <sstream>

#include "bindings/cli/output.h"
#include "bindings/cli/registry.h"
#include "bindings/cli/settings.h"
#include "store/base/go_json.h"

namespace waybill::cli {
namespace {

// As it is: no character means anything to roff.
std::string Roff(std::string_view text) {
  constexpr std::string_view kSpecial = "\\-'`^~\"";
  constexpr std::string_view kEscapes[] = {"e", "-", "(aq", "(ga", "(ha", "(ti", "(dq"};
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (const std::size_t at = kSpecial.find(c); at != std::string_view::npos) {
      out.append("\\").append(kEscapes[at]);
    } else if ((static_cast<unsigned char>(c) & 0x80U) != 0) {
      const std::size_t length = Utf8SequenceLength(text.substr(i));
      out += fmt::format("\\[u{:04X}]", CodePointOf(text.substr(i, length)));
      i += length - 1;
    } else {
      out += c;
    }
  }
  return out;
}

// A line of text: it does not begin like a request.
std::string RoffLine(std::string_view line) {
  const std::string text = Roff(line);
  return (text.starts_with(".") ? "\\&" : "") + text + "\n";
}

std::string RoffLines(const std::string& text) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    // In filled text an empty line is a paragraph, and a sentence begins on a line of its own.
    for (std::size_t end = line.find(". "); end != std::string::npos; end = line.find(". ")) {
      out += RoffLine(line.substr(0, end + 1));
      line.erase(0, end + 2);
    }
    out += line.empty() ? ".Pp\n" : RoffLine(line);
  }
  return out;
}

// As it stands, each line by itself.
std::string RoffBlock(const std::string& text) {
  std::string out = ".Bd -literal\n";
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) out += line.empty() ? "\n" : RoffLine(line);
  return out + ".Ed\n";
}

std::string Head(const std::string& name, const std::string& section, std::string_view summary) {
  std::string title;
  for (const char c : name) title += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return fmt::format(".Dd {}\n.Dt {} {}\n.Os waybill {}\n.Sh NAME\n.Nm {}\n.Nd {}\n",
                     WAYBILL_RELEASE_DATE, title, section, WAYBILL_VERSION, name, Roff(summary));
}

std::string FlagItem(const Flag& flag) {
  std::string names = flag.short_name.empty() ? "" : Roff(flag.short_name) + ", ";
  names += Roff(flag.name);
  std::string item = ".It Sy " + names;
  if (!flag.placeholder.empty()) item += " Ar " + Roff(flag.placeholder);
  if (flag.required && !flag.settings) item += " No (needed)";
  return item + "\n" + RoffLines(flag.help);
}

std::string FlagList(const Flags& flags, bool common, bool seldom = false) {
  std::string items;
  for (const Flag& flag : flags.all()) {
    if (!flag.is_positional() && flag.common == common && flag.seldom == seldom) {
      items += FlagItem(flag);
    }
  }
  return items.empty() ? "" : ".Bl -tag -width Ds\n" + items + ".El\n";
}

std::string ExitStatus() { return ".Sh EXIT STATUS\n" + RoffBlock(kExitCodes); }

// "waybill-userns-get".
std::string PageName(const Registry::Entry& entry) {
  std::string name = "waybill-" + entry.name();
  std::replace(name.begin(), name.end(), ' ', '-');
  return name;
}

std::string PageItem(const Registry::Entry& entry) {
  return ".It Xr " + PageName(entry) + " 1\n" + RoffLine(entry.command.summary);
}

ManualPage CommandPage(const Registry::Entry& entry) {
  const Command& command = entry.command;
  const Registry::Entry* const default_action = entry.default_action();
  const Flags& flags = default_action == nullptr ? entry.flags : default_action->flags;
  ManualPage page = {.name = PageName(entry), .section = "1", .text = {}};
  std::string& text = page.text;
  text = Head(page.name, page.section, command.summary);
  text += ".Sh SYNOPSIS\n.Nm waybill Cm " + Roff(entry.name()) + "\n.Op Ar options\n";
  if (!entry.actions.empty())
    text += default_action == nullptr ? ".Ar action\n" : ".Op Ar action\n";
  std::string arguments;
  for (const Flag& flag : entry.flags.all()) {
    if (!flag.is_positional()) continue;
    text += fmt::format(".{} {}{}\n", flag.required ? "Ar" : "Op Ar", flag.name,
                        flag.kind == Flag::Kind::kPositionals ? " ..." : "");
    arguments += ".It Ar " + Roff(flag.name) + "\n" + RoffLines(flag.help);
  }
  text += ".Sh DESCRIPTION\n";
  text += RoffBlock(command.notes.empty() ? command.summary + "." : command.notes);
  if (!arguments.empty()) text += ".Ss Arguments\n.Bl -tag -width Ds\n" + arguments + ".El\n";
  if (!entry.actions.empty()) text += ".Ss Actions\n.Bl -tag -width Ds\n";
  for (const Registry::Entry* action : entry.actions) text += PageItem(*action);
  if (!entry.actions.empty()) text += ".El\n";
  const std::string options = FlagList(flags, false);
  text += ".Ss Options\n" + options;
  const std::string seldom = FlagList(flags, false, true);
  if (!seldom.empty()) text += ".Ss Seldom needed\n" + seldom;
  if (!(options + seldom).empty()) text += ".Pp\n";
  if (default_action != nullptr)
    text += "They are those of the default action, " + default_action->command.name + ".\n";
  text += "The options of every command are in\n.Xr waybill 1 .\n";
  text += ExitStatus();
  if (!command.examples.empty()) text += ".Sh EXAMPLES\n" + RoffBlock(command.examples);
  return page;
}

ManualPage OverviewPage(const Registry& registry) {
  ManualPage page = {.name = "waybill", .section = "1", .text = {}};
  std::string& text = page.text;
  text =
      Head(page.name, page.section, "which image was pulled to this node with whose credentials");
  text += ".Sh SYNOPSIS\n.Nm\n.Ar command\n.Op Ar options\n.Nm\n.Cm help\n.Op Ar command\n";
  text +=
      ".Sh DESCRIPTION\n"
      "The store of a Kubernetes node's image pull records, pull intents, runtime handlers and\n"
      "host ID ranges.\n"
      "Each command has a page of its own.\n";
  std::string task;
  for (const auto& entry : registry.entries()) {
    if (entry->group != nullptr) continue;
    if (task != entry->command.task) {
      text += fmt::format("{}.Ss {}\n.Bl -tag -width Ds\n", task.empty() ? "" : ".El\n",
                          Roff(entry->command.task));
    }
    task = entry->command.task;
    text += PageItem(*entry);
  }
  text += ".El\n.Ss Options of every command\n" + FlagList(registry.entries().front()->flags, true);
  text += fmt::format(
      ".Sh ENVIRONMENT\n.Bl -tag -width Ds\n"
      ".It Ev {}\nThe store, where no\n.Sy \\-\\-store\nis given.\n"
      ".It Ev {}\nThe configuration file, where no\n.Sy \\-\\-config\nis given; none: no file.\n"
      ".It Ev NO_COLOR\nIf it is not empty, nothing is coloured.\n.El\n"
      ".Sh FILES\n.Bl -tag -width Ds\n.It Pa {}\nSee\n.Xr waybill-config 5 .\n.El\n",
      kStoreVariable, kConfigVariable, kConfigPath);
  text += ExitStatus();
  text += ".Pp\n.Nm\nthat writes to a pipe without a reader ends by SIGPIPE.\n";
  return page;
}

ManualPage ConfigPage(const Registry& registry) {
  // A flag that several commands have is described by the first of them.
  std::map<std::string, std::pair<const Flag*, std::vector<std::string>>> settings;
  for (const auto& entry : registry.entries()) {
    for (const Flag& flag : entry->flags.all()) {
      if (!flag.settings) continue;
      auto& [first, commands] = settings[flag.name];
      if (first == nullptr) first = &flag;
      const Command& command = (entry->group == nullptr ? entry.get() : entry->group)->command;
      if (commands.empty() || commands.back() != command.name) commands.push_back(command.name);
    }
  }
  ManualPage page = {.name = "waybill-config", .section = "5", .text = {}};
  std::string& text = page.text;
  text = Head(page.name, page.section, "the configuration file of waybill");
  text += fmt::format(".Sh SYNOPSIS\n.Pa {}\n", kConfigPath);
  text +=
      ".Sh DESCRIPTION\n" +
      RoffLines(
          "TOML. A key is the name of a flag without its dashes; it counts where that flag "
          "is not given. A key that is not known, a file that others than root or the user "
          "can write, and more than 64 KiB are refused.\n"
          "\n"
          "store, kubelet-dir, witness and cri are of one node: a command that names another "
          "store or kubelet directory takes none of them. A flag wins over the file, and over the "
          "settings that it excludes; --verbose says what came from where.\n");
  text += ".Ss Settings\n.Bl -tag -width Ds\n";
  for (const auto& [name, setting] : settings) {
    const auto& [flag, commands] = setting;
    text += fmt::format(".It Sy {} No ({})\n", Roff(name.substr(2)), SettingType(flag->kind));
    text += RoffLines(flag->help) + ".br\n" + RoffLine("Of: " + InWords(commands, "") + ".");
  }
  text += ".El\n.Sh EXAMPLES\n" +
          RoffBlock(
              "store = \"/var/lib/waybill\"\n"
              "kubelet-dir = \"/var/lib/kubelet\"\n"
              "cri = \"auto\"\n"
              "kubelet-config = [\"/var/lib/kubelet/config.yaml\"]\n"
              "short-names = \"docker.io\"     # what containerd completes names with\n") +
          ".Sh SEE ALSO\n.Xr waybill 1 ,\n.Xr waybill-guard 1\n";
  return page;
}

ManualPage GlossaryPage() {
  ManualPage page = {.name = "waybill-glossary", .section = "7", .text = {}};
  page.text = Head(page.name, page.section, "the words that waybill uses") +
              ".Sh DESCRIPTION\n.Bl -tag -width Ds\n";
  for (const Term& term : Glossary()) {
    page.text += ".It Sy " + Roff(term.words) + "\n" + RoffLines(term.meaning);
  }
  page.text += ".El\n.Sh SEE ALSO\n.Xr waybill 1\n";
  return page;
}

}  // namespace

std::vector<ManualPage> ManualOf(const Registry& registry) {
  std::vector<ManualPage> pages = {OverviewPage(registry), ConfigPage(registry), GlossaryPage()};
  for (const auto& entry : registry.entries()) pages.push_back(CommandPage(*entry));
  return pages;
}

}  // namespace waybill::cli
