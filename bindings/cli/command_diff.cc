// waybill diff: what became open and what became closed between two stores or backups. Changes
// neither.

#include "bindings/cli/command.h"
#include "bindings/cli/store_content.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class DiffCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    flags.Positional("OLD", &old_, "a store's directory, or a backup", Length(), kRequired);
    flags.Positional("NEW", &new_, "another one", Length(), kRequired);
    store_.DeclareUntestedLmdb(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    const auto before = TRY(ReadStoreContent(old_));
    const auto after = TRY(ReadStoreContent(new_));
    const std::vector<ContentChange> changes = Compare(before, after);
    Json list = Json::array();
    for (const ContentChange& change : changes) list.push_back(JsonOf(change));
    out.WriteJson({{"old", old_}, {"new", new_}, {"changes", list}});
    for (const ContentChange& change : changes) out.WriteLine(TextOf(change));
    return changes.empty() ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  std::string old_;
  std::string new_;
};

}  // namespace

Command DiffCommand() {
  return {
      .name = "diff",
      .task = kTaskLook,
      .summary = "say what two stores or backups open differently",
      .notes =
          R"(OLD and NEW are stores' directories, or backups' files, in any mix: what NEW opens that
OLD did not, what it closes, and why. Credentials that were forgotten or are too old
do not count; ages are those of now, by the limits that each has. Credentials are named
by their coordinates, never by their hashes. 0: no difference; 1: there is one.)",
      .examples = R"(waybill diff /var/backups/waybill.mdb /var/lib/waybill)",
      .call = New<DiffCall>};
}

}  // namespace waybill::cli
