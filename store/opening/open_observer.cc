// An observer: it writes nothing, and takes a store that no live owner has verified only if it
// passes its check.

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <utility>

#include "store/base/try.h"
#include "store/disk/commit_mark.h"
#include "store/disk/lmdb/version.h"
#include "store/opening/open_store.h"
#include "store/opening/stale.h"

namespace waybill::internal {

namespace {

// Why an observer refuses a file that no live owner has verified; nullopt: it does not. `mark` was
// read before the file: an owner that comes meanwhile writes it last.
std::optional<Error> Refusal(const std::filesystem::path& directory, const Inspection& inspection,
                             bool asks_witness, const MarkReading& mark) {
  if (inspection.newer_schema) return NewerSchema(directory);
  if (!inspection.sound) {
    return inspection.moved ? Moving(directory) : Unsound(directory, inspection);
  }
  if (!asks_witness) return std::nullopt;
  // An owner would have asked the witness.
  auto signs = TRY(ReadSigns(mark, *inspection.identity, *inspection.state, BootTime()));
  if (signs.VerdictFor(Tree::kWhole) == Verdict::kGoesOn) return std::nullopt;
  return MayBeStale(signs.stale());
}

// Walks the file, and returns the newest transaction ID in it.
Result<std::uint64_t> InspectUnowned(const std::filesystem::path& directory, const Fd& file,
                                     bool asks_witness, std::optional<Inspection>& seen) {
  const auto mark = TRY(ReadCommitMark(directory));
  const auto now = TRY(LookAtFile(file));
  const bool is_past = now.IsPast();
  if (seen && seen->file == now) {
    if (auto refusal = Refusal(directory, *seen, asks_witness, mark)) return *refusal;
  }
  auto inspection = TRY(InspectFile(file));
  auto refusal = Refusal(directory, inspection, asks_witness, mark);
  if (!refusal) return inspection.txn_id;
  if (is_past && inspection.file == now && !inspection.moved) seen = std::move(inspection);
  return *refusal;
}

bool CanTakeSlot(const std::filesystem::path& directory) {
  const std::filesystem::path lock = directory / "lock.mdb";
  return faccessat(AT_FDCWD, lock.c_str(), R_OK | W_OK, AT_EACCESS) == 0;
}

// An owner can make lock.mdb, where it is not there.
bool OnlyLacksSlots(const std::filesystem::path& directory) {
  const std::filesystem::path lock = directory / "lock.mdb";
  return faccessat(AT_FDCWD, lock.c_str(), F_OK, AT_EACCESS) != 0 && errno == ENOENT &&
         faccessat(AT_FDCWD, directory.c_str(), W_OK, AT_EACCESS) == 0;
}

Result<void> KeepOwnersOut(const Fd& file, const std::filesystem::path& path) {
  auto kept_out = LockOutOwners(file, path);
  if (!kept_out && kept_out.error().code == ErrorCode::kOwned) {
    kept_out.error().hint =
        "who reads beside it needs a lock.mdb that can be written: run this where it can be";
  }
  return kept_out;
}

Result<OpenedDatabase> ObserveOnce(const std::filesystem::path& directory, const Product& product,
                                   bool asks_witness, bool takes_slot,
                                   std::optional<Inspection>& seen) {
  TRY(CheckPrivateDirectory(directory));
  TRY(CheckStoreFiles(directory));
  const std::filesystem::path path = directory / "data.mdb";
  auto file = OpenFile(path, O_RDONLY);
  if (!file) {
    return file.error().code == ErrorCode::kNotFound ? NoStore(directory) : file.error();
  }
  if (!takes_slot) TRY(KeepOwnersOut(*file, path));
  auto id = TRY(FileIdOf(*file, path));
  OwnerSight owner;
  if (takes_slot) owner = TRY(LookAtOwner(directory));
  std::uint64_t txn_id = 0;
  if (!owner.VouchesFor(id)) txn_id = TRY(InspectUnowned(directory, *file, asks_witness, seen));
  auto database = OpenDatabaseAsObserver(directory, txn_id, takes_slot);
  if (database && !takes_slot) {
    // Of a writer that no lock shows: on another machine, or beyond an overlay.
    if (database->txn_id != txn_id) return Moving(directory);
    database->without_slot = *std::move(file);
  }
  if (database && database->identity.schema_version < newest_schema) {
    return OlderSchema(directory, database->identity.schema_version);
  }
  if (database) {
    TRY(OwnProduct(directory, database->identity, {&product}));
  }
  if (database && database->database_id != id) {
    return Error{ErrorCode::kDamaged,
                 "data.mdb in " + directory.string() + " was replaced while it was being opened",
                 "try again"};
  }
  return database;
}

// How often an observer looks at a store that moves, and how long it waits in between: a command
// that opens it, writes and goes takes some milliseconds.
constexpr int kMostLooks = 12;
constexpr long kFirstPauseNanoseconds = 250'000;

void Pause(int looks) {
  const struct timespec pause { 0, kFirstPauseNanoseconds << looks };
  nanosleep(&pause, nullptr);
}

// What writers change, at one moment. Commands open a store one after the other, write and go: what
// a reader takes from two files, or from one at two moments, may then contradict itself. Whatever
// can't be read is empty.
struct StoreSight {
  std::string owner;        // the line of owner.lock
  bool is_opening = false;  // an owner is there, and says nothing of data.mdb yet
  FileSight data;
  FileId lock;
  std::string mark;  // commit.mark

  friend bool operator==(const StoreSight&, const StoreSight&) = default;
};

StoreSight LookAtStore(const std::filesystem::path& directory) {
  constexpr std::size_t kMaxMarkBytes = 16384;
  StoreSight sight;
  // First of all: an owner that comes after this, and is gone before the second look, has left its
  // own line.
  if (auto owner = LookAtOwner(directory)) {
    sight.is_opening = owner->is_opening();
    sight.owner = std::move(owner->line);
  }
  if (const auto file = OpenFile(directory / "data.mdb", O_RDONLY)) {
    sight.data = LookAtFile(*file).value_or(FileSight());
  }
  sight.lock = FileIdOf(directory / "lock.mdb").value_or(FileId());
  sight.mark = ReadWholeFile(CommitMarkIn(directory), kMaxMarkBytes).value_or(std::string());
  return sight;
}

// Whether the store moved between the two, or may have.
bool HasMoved(const StoreSight& before, const StoreSight& after) {
  return before.is_opening || after.is_opening || before != after;
}

}  // namespace

Result<OpenedDatabase> OpenAsObserver(const std::filesystem::path& directory,
                                      const Product& product, const ObserverDemands& how,
                                      std::optional<Inspection>& seen) {
  TRY(lmdb::CheckVersion());
  for (int looks = 1;; ++looks) {
    const StoreSight before = LookAtStore(directory);
    const bool takes_slot = how.needs_slot || CanTakeSlot(directory);
    auto opened = ObserveOnce(directory, product, how.asks_witness, takes_slot, seen);
    if (!opened && !takes_slot) {
      // Opening a copy would move the witness of the original.
      Error& error = opened.error();
      if (error.hint_code == Hint::kRecover || error.hint_code == Hint::kMigrate) {
        error.hint_code = Hint::kNone;
        error.hint =
            std::string("nothing decides by it; if it is the node's own store, its owner ") +
            "recovers or migrates it" +
            (OnlyLacksSlots(directory) ? "" : " where it can be written");
      }
    }
    // What is wrong with a store that stands still is wrong.
    if (opened || looks == kMostLooks || !HasMoved(before, LookAtStore(directory))) return opened;
    Pause(looks);
  }
}

}  // namespace waybill::internal
