#include <unistd.h>

#include <cerrno>

#include "store/base/try.h"
#include "store/disk/lmdb/env.h"
#include "store/opening/open_store.h"

namespace waybill::internal {

namespace {

Error Damaged(const std::filesystem::path& directory, const std::string& what) {
  return {ErrorCode::kDamaged,
          what + " in " + directory.string() + "; nothing was changed",
          {},
          Hint::kRecover};
}

// LMDB's table of readers knows processes by their IDs, and locks the byte of each.
Error SameProcessId(const std::filesystem::path& directory) {
  return {ErrorCode::kOwned,
          directory.string() + " is in use by another process with the process ID " +
              std::to_string(getpid()) +
              ", in another PID namespace, and LMDB can't tell the two apart; nothing was changed",
          "run both in one PID namespace (of a pod: hostPID: true), or stop the other one"};
}

// Reads the identity and opens the handles in one read transaction.
Result<void> LoadHeader(OpenedDatabase& database) {
  const auto& directory = database.env->directory();
  lmdb::Txn txn;
  int rc = txn.BeginRead(*database.env);
  if (rc == EAGAIN) return SameProcessId(directory);
  if (rc == MDB_SUCCESS) rc = mdb_dbi_open(txn.get(), nullptr, 0, &database.handles.main);
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "opening the tables", directory);
  database.txn_id = txn.id();
  MDB_val k = lmdb::ToVal(kIdentityKey.span());
  MDB_val v{};
  rc = mdb_get(txn.get(), database.handles.main, &k, &v);
  if (rc != MDB_SUCCESS) return Damaged(directory, "the identity record is missing");
  const Opened opened =
      OpenEnvelope(kIdentityKey, lmdb::FromVal(v), RecordKind::kIdentity, Newest().header);
  if (opened.state == EnvelopeState::kNewer) return NewerSchema(directory);
  auto identity = opened.state == EnvelopeState::kSound ? DecodeIdentity(opened.payload)
                                                        : std::optional<Identity>();
  if (!identity) return Damaged(directory, "the identity record does not verify");
  if (identity->schema_version > newest_schema) return NewerSchema(directory);
  database.identity = *identity;
  rc = OpenTables(txn.get(), identity->schema_version, false, database.handles);
  if (rc == MDB_NOTFOUND) return Damaged(directory, "a table is missing");
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "opening the tables", directory);
  rc = txn.Commit();  // keeps the handles
  if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "opening the tables", directory);
  return {};
}

Result<void> NoteFiles(const lmdb::EnvOptions& options, const OwnerLock* owner,
                       OpenedDatabase& database) {
  const std::filesystem::path& directory = options.directory;
  auto data = TRY(database.env->DataFileId());
  std::optional<FileId> lock;
  if (options.locks) lock = TRY(FileIdOf(directory / "lock.mdb"));
  database.database_id = data;
  std::optional<FileId> owner_id;
  if (owner != nullptr) {
    owner_id = TRY(owner->Id());
    auto locked = TRY(FileIdOf(owner->database(), directory / "data.mdb"));
    if (locked != data) {
      return Error{ErrorCode::kOwned,
                   "data.mdb in " + directory.string() + " was replaced while it was being opened",
                   "stop whoever replaces it, then try again"};
    }
  }
  database.files = std::make_unique<StoreFiles>(directory, data, lock, owner_id);
  static_cast<void>(database.files->LookAgain());  // notes their sizes
  return {};
}

Result<OpenedDatabase> OpenOnce(const lmdb::EnvOptions& options, const OwnerLock* owner) {
  OpenedDatabase database;
  auto env = TRY(lmdb::Env::Open(options));
  database.env = std::move(env);
  if (!options.read_only) {
    // A killed owner may have left an old ID in lock.mdb: this makes LMDB read the meta pages
    // again.
    lmdb::Txn txn;
    const int rc = txn.BeginWrite(*database.env);
    if (rc != MDB_SUCCESS) return lmdb::MakeError(rc, "opening the database", options.directory);
  }
  TRY(LoadHeader(database));
  TRY(NoteFiles(options, owner, database));
  return database;
}

}  // namespace

bool OpenedDatabase::IsCurrent() const {
  return files->LookAgain().state == StoreFiles::State::kSame &&
         (!without_slot.valid() || env->GetInfo().last_txn_id == txn_id);
}

Result<void> OpenedDatabase::CheckUnchanged() const {
  if (!without_slot.valid() || IsCurrent()) return {};
  return Error{ErrorCode::kOwned,
               (env->directory() / "data.mdb").string() +
                   " changed while it was read: a process writes to it; nothing was changed",
               "try again"};
}

Error NoStore(const std::filesystem::path& directory) {
  return {ErrorCode::kNotFound, "there is no store in " + directory.string(), {}, Hint::kCreate};
}

Error Unsound(const std::filesystem::path& directory, const Inspection& inspection) {
  return {ErrorCode::kDamaged,
          "the store in " + directory.string() + " fails its check" + inspection.Why() +
              "; nothing was changed",
          {},
          Hint::kRecover};
}

Error MayBeStale(const std::string& contradiction) {
  return {ErrorCode::kDamaged, contradiction + "; nothing was changed", {}, Hint::kRecover};
}

Error Moving(const std::filesystem::path& directory) {
  return {ErrorCode::kOwned,
          "data.mdb in " + directory.string() +
              " changes while it is being checked: another process writes to it; nothing was "
              "changed",
          "stop that process, then try again (fuser " + (directory / "data.mdb").string() +
              " names it)"};
}

// Whose store it is, of `products`.
Result<const Product*> OwnProduct(const std::filesystem::path& directory, const Identity& identity,
                                  const Products& products) {
  for (const Product* product : products) {
    if (identity.purpose == product->purpose()) return product;
  }
  const ProductWords& words = products.front()->words();
  return Error{ErrorCode::kInvalidArgument,
               directory.string() + " has " + words.is_anothers + "; nothing was changed",
               words.another_hint};
}

Error NewerSchema(const std::filesystem::path& directory) {
  return {ErrorCode::kNewerSchema,
          directory.string() + " was written by a newer schema than version " +
              std::to_string(newest_schema) + "; nothing was changed",
          "use the newer waybill, or migrate down with it"};
}

Error OlderSchema(const std::filesystem::path& directory, std::uint32_t version) {
  return {ErrorCode::kOlderSchema,
          directory.string() + " has schema version " + std::to_string(version) +
              ", and this is version " + std::to_string(newest_schema) + "; nothing was changed",
          {},
          Hint::kMigrate};
}

Result<OpenedDatabase> OpenDatabaseAsOwner(const std::filesystem::path& directory,
                                           std::uint64_t map_bytes, std::uint64_t txn_id,
                                           const OwnerLock& lock) {
  const lmdb::EnvOptions options{directory, false, map_bytes};
  for (int attempt = 0; attempt < 2; ++attempt) {
    auto database = OpenOnce(options, &lock);
    if (database && database->txn_id == txn_id) return database;
    if (!database && database.error().code != ErrorCode::kDamaged) return database;
    if (database) database->env.reset();
    TRY(RemoveFile(directory / "lock.mdb"));
  }
  return Error{ErrorCode::kIo,
               "LMDB does not see the last commit of " + directory.string() +
                   " that is in the file; nothing was changed",
               "stop everything that has the store open, then try again"};
}

Result<OpenedDatabase> OpenDatabaseAsObserver(const std::filesystem::path& directory,
                                              std::uint64_t txn_id, bool takes_slot) {
  // Without its reader table an observer's snapshot could be overwritten while it reads.
  const std::filesystem::path lock = directory / "lock.mdb";
  auto lock_is_there = TRY(Exists(lock));
  const std::filesystem::path& needed = lock_is_there ? lock : directory;
  if (takes_slot && access(needed.c_str(), W_OK) != 0) {
    return SystemError(errno, "write to", needed);
  }
  auto database =
      OpenOnce({.directory = directory, .read_only = true, .locks = takes_slot}, nullptr);
  if (database && txn_id != 0 && database->txn_id < txn_id) {
    return Damaged(directory, "lock.mdb belongs to another data.mdb");
  }
  return database;
}

}  // namespace waybill::internal
