// waybill backup: copies the store, also beside the process that owns it.

#include "bindings/cli/command.h"
#include "bindings/cli/progress.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

class BackupCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Positional("FILE", &file_, "a new file outside the store", Length());
  }

  Result<ExitCode> Run(Output& out) override {
    auto made = TRY(file_ ? Write() : WithWriter(Writer::Open(store_), [](Writer& writer) {
      return writer.Call(MakeBackup());
    }));
    out.WriteJson(JsonOf(made));
    out.WriteName(made.path.string());
    out.Line("backup: {}, of commit {}, {} bytes", made.path.string(), made.commit_sequence,
             made.bytes);
    return ExitCode::kYes;
  }

 private:
  // As an observer: the owner need not even answer.
  Result<Backup> Write() const {
    if (*file_ == "-") {
      return BadFlag("FILE",
                     "a backup is checked once it is written, which a stream does not allow",
                     "name a file, and copy it from there");
    }
    ProgressLine line("backing up", "bytes");
    const Progress progress = line.UntilStopped();
    return WithStore(ObserveStore(store_),
                     [&](NodeStore& store) { return store.WriteBackup(*file_, progress); });
  }

  std::optional<std::string> file_;
};

}  // namespace

Command BackupCommand() {
  return {
      .name = "backup",
      .task = kTaskRepair,
      .summary = "make a backup, beside the store or in a file",
      .notes =
          R"(A compact copy, checked. Without FILE: in DIR/backup; the last three backups are kept
there. With FILE: there, for as long as you keep it, while any process owns the store.
It replaces no file. `waybill restore` puts either back.)",
      .examples = R"(waybill backup
waybill backup /var/backups/waybill.mdb)",
      .call = New<BackupCall>};
}

}  // namespace waybill::cli
