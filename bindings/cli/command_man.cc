// waybill man: its manual pages.

#include <fstream>

#include "bindings/cli/command.h"
#include "bindings/cli/registry.h"

namespace waybill::cli {
namespace {

class ManCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Positionals("PAGE", &page_, "which one: a command, or a command and its action");
    flags.Value("--all", &directory_, "DIR", "write every page into this directory", Length());
    flags.Excludes("--all", {"PAGE"});
  }

  Result<ExitCode> Run(Output& out) override {
    std::string wanted;
    for (const std::string& word : page_) wanted += (wanted.empty() ? "" : "-") + word;
    if (wanted.empty()) wanted = "waybill";
    for (const ManualPage& page : ManualOf(Registry())) {
      if (!directory_.empty()) {
        TRY(Write(page));
      } else if (page.name == wanted || page.name == "waybill-" + wanted) {
        out.WriteRaw(page.text);
        return ExitCode::kYes;
      }
    }
    if (!directory_.empty()) return ExitCode::kYes;
    return BadFlag(
        "PAGE", fmt::format("there is no page '{}'", wanted.substr(0, 200)),
        "waybill --help lists the commands; config is the page on the configuration file");
  }

 private:
  Result<void> Write(const ManualPage& page) const {
    const std::string path = directory_ + "/" + page.file();
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << page.text;
    file.close();
    if (file) return {};
    return Error{ErrorCode::kIo, fmt::format("{} could not be written", path),
                 "the directory must be there"};
  }

  std::vector<std::string> page_;
  std::string directory_;
};

}  // namespace

Command ManCommand() {
  return {.name = "man",
          .task = kTaskHelp,
          .summary = "print a manual page, or write all",
          .notes = R"(PAGE is a command, config, glossary, or waybill (default).)",
          .examples = R"(waybill man guard | man -l -)",
          .call = New<ManCall>};
}

}  // namespace waybill::cli
