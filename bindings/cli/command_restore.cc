// waybill restore: lists the backups of a store, or puts one back.

#include "bindings/cli/command.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/maintenance.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

class RestoreCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Positional("BACKUP", &backup_,
                     "a name out of the list, or the path of a file that waybill backup\n"
                     "wrote, of a data.mdb, or of a directory with one",
                     Length());
    flags.Switch("--dry-run", &dry_run_, "say what would be done, and change nothing");
    flags.Value("--map-size", &map_bytes_, "BYTES", "as of waybill start; otherwise as it was",
                ParseMapSize, kSeldom);
    const std::string list = "waybill restore lists the backups";
    flags.Needs("--dry-run", {"BACKUP"}, list);
    flags.Needs("--map-size", {"BACKUP"}, list);
  }

  Result<ExitCode> Run(Output& out) override {
    if (!backup_) return List(out);
    const RestoreOptions options{.directory = store_.store,
                                 .backup = PathOf(*backup_),
                                 .dry_run = dry_run_,
                                 .map_bytes = map_bytes_};
    auto report = WhileOwned(store_, [&] { return RestoreStore(options); });
    if (!report) {
      Error error = report.error();
      if (error.code == ErrorCode::kNotFound && !error.has_hint()) error.hint = ListHint();
      return error;
    }
    Write(*report, options.backup.string(), out);
    return ExitCode::kYes;
  }

 private:
  std::string ListHint() const {
    return "waybill restore --store " + ShellWord(store_.store) + " lists the backups";
  }

  std::filesystem::path PathOf(const std::string& backup) const {
    const std::filesystem::path listed = std::filesystem::path(store_.store) / "backup" / backup;
    std::error_code ignored;
    const bool is_listed =
        backup.find('/') == std::string::npos && !std::filesystem::is_directory(listed, ignored) &&
        (std::filesystem::exists(listed, ignored) || !std::filesystem::exists(backup, ignored));
    return is_listed ? listed : std::filesystem::path(backup);
  }

  Result<ExitCode> List(Output& out) const {
    auto backups = BackupsOf(store_.store);
    if (!backups) return WithStartHint(backups.error());
    std::vector<std::vector<std::string>> rows;
    for (const Backup& backup : *backups) {
      rows.push_back({backup.path.filename().string(), std::to_string(backup.schema_version),
                      std::to_string(backup.commit_sequence), std::to_string(backup.bytes)});
    }
    out.WriteJson({{"backups", JsonOf(*backups)}});
    out.WriteTable({"BACKUP", "VERSION", "COMMIT", "SIZE"}, rows);
    return ExitCode::kYes;
  }

  void Write(const RestoreReport& report, const std::string& backup, Output& out) const {
    WriteDryRun(dry_run_, out);
    Json answer = {{"store", store_.store}, {"backup", backup}};
    answer.update(JsonOf(report));
    answer["dryRun"] = dry_run_;
    out.WriteJson(answer);
    out.Line("restored    {}: {} at commit {}, schema version {}", backup,
             HowMany(report.records, "record"), report.backup_commit_sequence,
             report.schema_version);
    if (report.records_without_credentials > 0) {
      out.Line("to verify   {}: the replaced store had other content for them",
               HowMany(report.records_without_credentials, "record"));
    }
    if (report.id_mappings > 0) {
      out.Line("host IDs    {}", HowMany(report.id_mappings, "mapping"));
    }
    if (report.id_mappings_kept + report.id_mappings_held + report.id_mappings_dropped > 0) {
      out.Line("host IDs    of the backup's: {} kept, {} held, {} dropped", report.id_mappings_kept,
               report.id_mappings_held, report.id_mappings_dropped);
    }
    if (report.id_ranges_lost) {
      out.Line("host IDs    some may be lost: no new ones until waybill userns list has all");
    }
    if (!report.replaced_path.empty()) out.Line("replaced    kept at {}", report.replaced_path);
    for (const std::string& path : report.removed_paths) out.Line("removed     {}", path);
    if (report.streaming) {
      out.Line("streams     every token is void");
    } else {
      out.Line("trust       DISTRUSTFUL: {}", report.distrust_reason);
    }
    if (dry_run_ || report.streaming) return;
    // The warning comes last. main reports a failed write.
    (void)out.Flush();
    Warn("the store is DISTRUSTFUL: " + std::string(kDistrustMeans),
         ClearDistrustHint(store_.store));
  }

  std::optional<std::string> backup_;
  bool dry_run_ = false;
  std::uint64_t map_bytes_ = 0;  // RestoreOptions
};

}  // namespace

Command RestoreCommand() {
  return {
      .name = "restore",
      .task = kTaskRepair,
      .summary = "list backups, or put one back",
      .notes =
          R"(Without BACKUP: lists the backups in DIR/backup, newest first. With one: replaces the
store, and keeps the replaced one. A data.mdb must have been copied while no process
owned its store. The store is distrustful then: images that were pulled after the backup
have no record.)",
      .examples = R"(waybill restore
waybill restore /var/backups/waybill.mdb --dry-run)",
      .call = New<RestoreCall>};
}

}  // namespace waybill::cli
