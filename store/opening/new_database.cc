#include "store/opening/new_database.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "store/base/random.h"
#include "store/base/try.h"
#include "store/disk/commit_mark.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/page_walk/page_check.h"
#include "store/disk/trust.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

std::filesystem::path PreparationIn(const std::filesystem::path& directory) {
  return directory / "new.tmp";
}

Result<void> WriteAll(const std::filesystem::path& directory, const NewDatabase& made) {
  auto env = TRY(lmdb::Env::Open({directory, false, made.map_bytes}));
  lmdb::Txn txn;
  int rc = txn.BeginWrite(*env);
  TableHandles handles;
  if (rc == MDB_SUCCESS) rc = OpenTables(txn.get(), made.identity.schema_version, true, handles);
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "making a database", directory);

  State state;
  state.commit_sequence = made.sequence;
  state.settings_hash = HashOfSettings(made.identity.settings);
  StoreTxn::Context context;
  context.txn = txn.get();
  context.handles = &handles;
  context.identity = &made.identity;
  context.directory = &directory;
  context.now = made.now;
  context.boot = made.boot;
  StoreTxn store_txn(context, state);
  TRY(store_txn.PutHeaderRecord(kIdentityKey, RecordKind::kIdentity,
                                EncodeIdentity(made.identity)));
  TRY(store_txn.PutHeaderRecord(kTrustKey, RecordKind::kTrustJournal, EncodeJournal(made.journal)));
  if (!made.distrust.empty()) TRY(SetDistrust(store_txn, made.distrust));
  if (made.fill) TRY(made.fill(store_txn));
  TRY(store_txn.WriteState());
  rc = txn.Commit();
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "making a database", directory);
  return {};
}

}  // namespace

Result<Identity> NewIdentity(Timestamp now) {
  Identity identity;
  identity.created = now;
  if (!Randomise(identity.uuid.data(), identity.uuid.size()) ||
      !Randomise(&identity.hash_seed, sizeof(identity.hash_seed))) {
    return Error{ErrorCode::kIo, "the system gave no random numbers; nothing was changed"};
  }
  identity.uuid[6] = static_cast<std::uint8_t>((identity.uuid[6] & 0x0F) | 0x40);  // RFC 9562, v4
  identity.uuid[8] = static_cast<std::uint8_t>((identity.uuid[8] & 0x3F) | 0x80);
  return identity;
}

Result<void> ClearPreparation(const std::filesystem::path& directory) {
  const std::filesystem::path preparation = PreparationIn(directory);
  if (!TRY(Exists(preparation))) return {};
  if (auto r = CheckPrivateDirectory(preparation); !r) return r;
  auto folder = TRY(OpenDirectory(preparation));
  for (const char* name : {"data.mdb", "lock.mdb"}) {
    if (unlinkat(folder.get(), name, 0) != 0 && errno != ENOENT) {
      return SystemError(errno, "remove", preparation / name);
    }
  }
  if (rmdir(preparation.c_str()) != 0) return SystemError(errno, "remove directory", preparation);
  return {};
}

namespace {

Result<void> PrepareOnce(const std::filesystem::path& directory, const NewDatabase& made) {
  if (auto r = ClearPreparation(directory); !r) return r;
  const std::filesystem::path preparation = PreparationIn(directory);
  if (auto r = MakePrivateDirectory(preparation); !r) return r;
  if (auto r = WriteAll(preparation, made); !r) {
    // Best effort: the next opening clears it, too.
    static_cast<void>(ClearPreparation(directory));
    return r;
  }
  const std::filesystem::path database = preparation / "data.mdb";
  auto file = TRY(OpenFile(database, O_RDWR));
  if (auto r = SyncFile(file, database); !r) return r;
  return SyncDirectory(preparation);
}

}  // namespace

Result<void> PrepareDatabase(const std::filesystem::path& directory, const NewDatabase& made) {
  auto prepared = PrepareOnce(directory, made);
  // The same records may need more pages than in the store that they come from.
  for (NewDatabase larger = made; made.map_may_grow && !prepared &&
                                  prepared.error().code == ErrorCode::kStoreFull &&
                                  larger.map_bytes <= kMaxMapBytes / 2;) {
    larger.map_bytes *= 2;
    prepared = PrepareOnce(directory, larger);
  }
  return prepared;
}

Result<void> InstallDatabase(const std::filesystem::path& directory, const NewDatabase& made) {
  // commit.mark and lock.mdb follow. Alone in the directory each proves that data.mdb was lost, and
  // the database that is replaced may need its mark. After a crash in between they belong to
  // another file: opening detects that of lock.mdb by the transaction ID. A mark from before says
  // of no commit of the new database that it may be taken back, and acknowledges no later one:
  // `made.sequence` is past it.
  TRY(RenameDurably(PreparationIn(directory) / "data.mdb", directory / "data.mdb"));
  if (!WriteCommitMark(directory, ShutAt(made.identity.uuid, made.sequence + 1))) {
    if (auto r = RemoveFile(CommitMarkIn(directory)); !r) return r;
  }
  if (auto r = RemoveFile(directory / "lock.mdb"); !r) return r;
  // Best effort: the database is in place, and the next opening clears the rest.
  static_cast<void>(ClearPreparation(directory));
  return {};
}

namespace {

bool IsMapSize(std::uint64_t bytes) { return bytes >= kMinMapBytes && bytes <= kMaxMapBytes; }

}  // namespace

Result<void> CheckMapBytes(std::uint64_t given) {
  if (given == 0 || IsMapSize(given)) return {};
  return Error{ErrorCode::kInvalidArgument,
               "a map of " + std::to_string(given) + " bytes is out of range",
               "use " + std::to_string(kMinMapBytes) + " to " + std::to_string(kMaxMapBytes)};
}

std::uint64_t RememberedMapBytes(const Inspection& inspection) {
  const auto said = [&](int which) -> std::uint64_t {
    if (which < 0) return 0;
    const MetaSummary& meta = inspection.meta[static_cast<std::size_t>(which)];
    const bool is_legible = meta.valid || meta.past_end;
    return is_legible && IsMapSize(meta.map_bytes) ? meta.map_bytes : 0;
  };
  for (const int which : {inspection.newer_meta, 0, 1}) {
    if (const std::uint64_t bytes = said(which); bytes != 0) return bytes;
  }
  return 0;
}

std::uint64_t ChooseMapBytes(std::uint64_t given, std::uint64_t remembered) {
  std::uint64_t bytes = given != 0 ? given : remembered;
  if (bytes == 0) bytes = kDefaultMapBytes;
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return (bytes + page - 1) / page * page;
}

Result<void> RememberMapBytes(const Fd& file, const std::filesystem::path& path,
                              const Inspection& inspection, std::uint64_t bytes) {
  const int newest = inspection.newer_meta;
  if (inspection.meta[static_cast<std::size_t>(newest)].map_bytes == bytes) return {};
  // Nothing tears: eight aligned bytes change. LMDB copies them into its next meta page.
  const std::string_view value(reinterpret_cast<const char*>(&bytes), sizeof(bytes));
  const auto at = static_cast<off_t>(MapBytesOffset(newest, inspection.page_bytes));
  if (auto r = PWriteAll(file, value, at, path); !r) return r;
  return SyncFile(file, path);
}

}  // namespace waybill::internal
