// waybill backup: copies the store, also beside the process that owns it.

#include "bindings/cli/command.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

class BackupCommand final : public Command {
 public:
  std::string name() const override { return "backup"; }
  std::string summary() const override { return "make a backup beside the store"; }
  std::string notes() const override {
    return R"(A compact copy, checked, in DIR/backup. The last three backups are kept, those that a
migration made included, and of one state the last. `waybill restore` lists them, and
puts one back. Copy it elsewhere to keep it for longer.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    auto made = WithWriter(Writer::Open(store_),
                           [](Writer& writer) { return writer.owner().MakeBackup(); });
    if (!made) return made.error();
    if (out.json()) {
      out.WriteJson({{"name", made->path.filename().string()},
                     {"path", made->path.string()},
                     {"schemaVersion", made->schema_version},
                     {"commitSequence", made->commit_sequence},
                     {"bytes", made->bytes}});
    } else {
      out.Line("backup: {}, of commit {}, {} bytes", made->path.string(), made->commit_sequence,
               made->bytes);
    }
    return ExitCode::kYes;
  }

 private:
  StoreFlags store_;
};

}  // namespace

std::unique_ptr<Command> MakeBackupCommand() { return std::make_unique<BackupCommand>(); }

}  // namespace waybill::cli
