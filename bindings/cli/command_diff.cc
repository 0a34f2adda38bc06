// waybill diff: what became open and what became closed between two stores or backups. Changes
// neither.

#include "bindings/cli/command.h"
#include "bindings/cli/store_content.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class DiffCommand final : public Command {
 public:
  std::string name() const override { return "diff"; }
  std::string summary() const override { return "say what two stores or backups open differently"; }
  std::string notes() const override {
    return R"(OLD and NEW are stores' directories, or backups' files, in any mix: what NEW opens that
OLD did not, what it closes, and why. Credentials that were forgotten or are too old
do not count; ages are those of now, by the limits that each has. Credentials are named
by their coordinates, never by their hashes. 0: no difference; 1: there is one.)";
  }

  void Declare(Flags& flags) override {
    flags.Positionals("PATHS", &paths_, "OLD and NEW");
    store_.DeclareWithoutStore(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    if (paths_.size() != 2 || paths_[0].empty() || paths_[1].empty()) {
      return BadFlag("diff", "exactly two paths are needed: OLD and NEW");
    }
    const auto before = TRY(ReadStoreContent(paths_[0]));
    const auto after = TRY(ReadStoreContent(paths_[1]));
    const std::vector<ContentChange> changes = Compare(before, after);
    if (out.json()) {
      Json list = Json::array();
      for (const ContentChange& change : changes) list.push_back(JsonOf(change));
      out.WriteJson({{"old", paths_[0]}, {"new", paths_[1]}, {"changes", list}});
    } else {
      for (const ContentChange& change : changes) out.WriteLine(TextOf(change));
    }
    return changes.empty() ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  StoreFlags store_;
  std::vector<std::string> paths_;
};

}  // namespace

std::unique_ptr<Command> MakeDiffCommand() { return std::make_unique<DiffCommand>(); }

}  // namespace waybill::cli
