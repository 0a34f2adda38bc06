// waybill man: its manual pages.

#include <fstream>

#include "bindings/cli/command.h"
#include "bindings/cli/manual.h"

namespace waybill::cli {
namespace {

class ManCommand final : public Command {
 public:
  explicit ManCommand(const Registry& registry) : registry_(registry) {}

  std::string name() const override { return "man"; }
  std::string summary() const override { return "print a manual page, or write all"; }
  std::string notes() const override {
    return R"(Without the packages:
  waybill man check | man -l -
  waybill man config | man -l -
PAGE is a command, config, glossary, or waybill (default).)";
  }

  void Declare(Flags& flags) override {
    flags.Positional("PAGE", &page_, "which one");
    flags.Value("--all", &directory_, "DIR", "write every page into this directory");
  }

  Result<ExitCode> Run(Output& out) override {
    if (directory_ && page_) return BadFlag("--all", "it excludes a page");
    if (directory_ && directory_->empty()) return BadFlag("--all", "the value is empty");
    const std::string wanted = page_.value_or("waybill");
    for (const ManualPage& page : ManualOf(registry_)) {
      if (directory_) {
        if (auto written = Write(page); !written) return written.error();
      } else if (page.name == wanted || page.name == "waybill-" + wanted) {
        out.WriteRaw(page.text);
        return ExitCode::kYes;
      }
    }
    if (directory_) return ExitCode::kYes;
    return BadFlag(
        "PAGE", fmt::format("there is no page '{}'", wanted.substr(0, 200)),
        "waybill --help lists the commands; config is the page on the configuration file");
  }

 private:
  Result<void> Write(const ManualPage& page) const {
    const std::string path = *directory_ + "/" + page.file();
    std::ofstream file(path, std::ios::binary | std::ios::trunc);
    file << page.text;
    file.close();
    if (file) return {};
    return Error{ErrorCode::kIo, fmt::format("{} could not be written", path),
                 "the directory must be there"};
  }

  const Registry& registry_;
  std::optional<std::string> page_;
  std::optional<std::string> directory_;
};

}  // namespace

std::unique_ptr<Command> MakeManCommand(const Registry& registry) {
  return std::make_unique<ManCommand>(registry);
}

}  // namespace waybill::cli
