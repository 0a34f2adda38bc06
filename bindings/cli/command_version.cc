// waybill version: which waybill this is, and what it reads and writes.

#include <lmdb.h>

#include <string>
#include <string_view>

#include "bindings/cli/command.h"

namespace waybill::cli {
namespace {

// Empty: not known.
constexpr std::string_view kCommit =
#include "commit.inc"
#include "waybill/limits.h"
    ;

std::string LmdbVersion() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  mdb_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

class VersionCall final : public Call {
 public:
  void Declare(Flags&) override {}

  Result<ExitCode> Run(Output& out) override {
    out.WriteName(WAYBILL_VERSION);
    const std::string lmdb = LmdbVersion();
    out.WriteJson({{"version", WAYBILL_VERSION},
                   {"commit", kCommit.empty() ? Json() : Json(kCommit)},
                   {"schema", {{"newest", kNewestSchema}, {"oldest", kOldestSchema}}},
                   {"lmdb", lmdb},
                   {"portable", WAYBILL_PORTABLE != 0}});
    out.Line("waybill {}", WAYBILL_VERSION);
    out.Line("commit    {}", kCommit.empty() ? "unknown" : kCommit);
    out.Line("schema    writes {}; opens {} to {}", kNewestSchema, kOldestSchema, kNewestSchema);
    out.Line("LMDB      {}", lmdb);
    out.Line("portable  {}",
             WAYBILL_PORTABLE != 0 ? "yes: it needs no library of the system" : "no");
    return ExitCode::kYes;
  }
};

}  // namespace

Command VersionCommand() {
  return {.name = "version",
          .task = kTaskHelp,
          .summary = "say which waybill this is, and which stores it opens",
          .notes = R"(commit: what it was built from; unknown, if files differed from it.
schema: stores of an older one are taken up by start, guard or migrate, after a backup.)",
          .examples = R"(waybill version
waybill version -o json)",
          .call = New<VersionCall>};
}

}  // namespace waybill::cli
