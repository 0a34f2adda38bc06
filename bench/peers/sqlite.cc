// SQLite in WAL mode with synchronous=FULL, which its documentation names as durable; keys in
// tables WITHOUT ROWID, as it recommends for keys that are no integers; statements prepared once.

#include <sqlite3.h>

#include <array>
#include <mutex>
#include <utility>

#include "bench/peers/peer.h"

namespace waybill::bench {

namespace {

class SqlitePeer final : public TablePeer {
 public:
  explicit SqlitePeer(const std::filesystem::path& directory) : TablePeer("SQLite", directory) {}
  ~SqlitePeer() override { CloseAll(); }

  void Open() override {
    const std::string file = (directory() / "records.db").string();
    Check(
        sqlite3_open_v2(file.c_str(), &db_,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr),
        "open");
    for (const char* sql :
         {"PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL", "PRAGMA mmap_size=268435456",
          "CREATE TABLE IF NOT EXISTS records(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT "
          "ROWID",
          "CREATE TABLE IF NOT EXISTS intents(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT "
          "ROWID"}) {
      Check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr), sql);
    }
    for (std::size_t i = 0; i < kStatements.size(); ++i) {
      Check(sqlite3_prepare_v3(db_, kStatements[i], -1, SQLITE_PREPARE_PERSISTENT, &statements_[i],
                               nullptr),
            kStatements[i]);
    }
  }

  void Close() override {
    if (!CloseAll()) throw std::runtime_error("SQLite: cannot close");
  }

  bool Read(const Question& question) override {
    sqlite3_stmt* const select = statements_[kSelect];
    const XXH128_canonical_t key = BareKey(question.image_ref);
    BindKey(select, key);
    const bool found = sqlite3_step(select) == SQLITE_ROW &&
                       Touch({static_cast<const char*>(sqlite3_column_blob(select, 0)),
                              static_cast<std::size_t>(sqlite3_column_bytes(select, 0))});
    sqlite3_reset(select);
    return found;
  }

 private:
  enum Statement : std::uint8_t { kBegin, kCommit, kSelect, kPutRecord, kPutIntent, kDeleteIntent };
  static constexpr std::array kStatements = {"BEGIN IMMEDIATE",
                                             "COMMIT",
                                             "SELECT value FROM records WHERE key = ?1",
                                             "INSERT OR REPLACE INTO records VALUES (?1, ?2)",
                                             "INSERT OR REPLACE INTO intents VALUES (?1, ?2)",
                                             "DELETE FROM intents WHERE key = ?1"};

  // One statement is a transaction of its own.
  void Write(const std::vector<Change>& changes) override {
    const std::lock_guard lock(mutex_);
    if (changes.size() > 1) Run(kBegin);
    for (const Change& change : changes) {
      const Statement statement = change.table == Table::kRecords ? kPutRecord
                                  : change.value.empty()          ? kDeleteIntent
                                                                  : kPutIntent;
      const XXH128_canonical_t key = BareKey(change.identity);
      BindKey(statements_[statement], key);
      if (!change.value.empty()) Bind(statements_[statement], 2, change.value);
      Run(statement);
      if (sqlite3_changes(db_) != 1) throw std::runtime_error("SQLite: an intent is missing");
    }
    if (changes.size() > 1) Run(kCommit);
  }

  void Check(int rc, const std::string& doing) const {
    if (rc != SQLITE_OK && rc != SQLITE_DONE) {
      throw std::runtime_error("SQLite: " + doing + ": " + sqlite3_errmsg(db_));
    }
  }
  void Run(Statement statement) {
    const int rc = sqlite3_step(statements_[statement]);
    sqlite3_reset(statements_[statement]);
    Check(rc, kStatements[statement]);
  }
  static void Bind(sqlite3_stmt* statement, int place, std::string_view bytes) {
    sqlite3_bind_blob(statement, place, bytes.data(), static_cast<int>(bytes.size()),
                      SQLITE_STATIC);
  }
  static void BindKey(sqlite3_stmt* statement, const XXH128_canonical_t& key) {
    Bind(statement, 1, {reinterpret_cast<const char*>(key.digest), sizeof key.digest});
  }
  bool CloseAll() {
    for (sqlite3_stmt*& statement : statements_)
      sqlite3_finalize(std::exchange(statement, nullptr));
    return sqlite3_close(std::exchange(db_, nullptr)) == SQLITE_OK;
  }

  std::mutex mutex_;
  sqlite3* db_ = nullptr;
  std::array<sqlite3_stmt*, kStatements.size()> statements_{};
};

}  // namespace

std::unique_ptr<Peer> MakeSqlite(const std::filesystem::path& directory) {
  return std::make_unique<SqlitePeer>(directory);
}

std::string SqliteVersion() { return sqlite3_libversion(); }

}  // namespace waybill::bench
