// SQLite in WAL mode with synchronous=FULL, which its documentation names as durable; keys in
// tables WITHOUT ROWID, as it recommends for keys that are no integers; statements prepared once.

#include <sqlite3.h>

#include <climits>
#include <mutex>
#include <utility>

#include "bench/peers/peer.h"

namespace waybill::bench {

namespace {

class SqlitePeer final : public Peer {
 public:
  using Peer::Peer;
  ~SqlitePeer() override { CloseAll(); }

  std::string name() const override { return "SQLite"; }

  void Fill(std::size_t records, const StoredBytes& bytes) override {
    std::filesystem::create_directory(directory());
    bytes_ = &bytes;
    Open();
    constexpr std::size_t kTogether = 1000;
    for (std::size_t i = 0; i < records; ++i) {
      if (i % kTogether == 0) Run(begin_);
      Put(put_record_, BareKey(ImageRefOf(i)), bytes.Record(i));
      if (i % kTogether == kTogether - 1 || i + 1 == records) Run(commit_);
    }
    Close();
  }

  void Open() override {
    const std::string file = (directory() / "records.db").string();
    Check(
        sqlite3_open_v2(file.c_str(), &db_,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, nullptr),
        "open");
    Execute("PRAGMA journal_mode=WAL");
    Execute("PRAGMA synchronous=FULL");
    Execute("PRAGMA mmap_size=268435456");
    for (const char* table : {"records", "intents"}) {
      Execute(std::string("CREATE TABLE IF NOT EXISTS ") + table +
              "(key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID");
    }
    begin_ = Prepare("BEGIN IMMEDIATE");
    commit_ = Prepare("COMMIT");
    select_ = Prepare("SELECT value FROM records WHERE key = ?1");
    put_record_ = Prepare("INSERT OR REPLACE INTO records VALUES (?1, ?2)");
    put_intent_ = Prepare("INSERT OR REPLACE INTO intents VALUES (?1, ?2)");
    delete_intent_ = Prepare("DELETE FROM intents WHERE key = ?1");
  }

  void Close() override {
    if (!CloseAll()) throw std::runtime_error("SQLite: cannot close");
  }

  bool Read(const Question& question) override {
    const BareKey key(question.image_ref);
    BindKey(select_, key);
    const bool found =
        sqlite3_step(select_) == SQLITE_ROW &&
        *static_cast<volatile const char*>(sqlite3_column_blob(select_, 0)) >= CHAR_MIN;
    sqlite3_reset(select_);
    return found;
  }

  void Put(const Pull& pull) override {
    {
      const std::lock_guard lock(mutex_);
      Put(put_intent_, BareKey(pull.image), bytes_->intent);
    }
    const std::lock_guard lock(mutex_);
    Run(begin_);
    Put(put_record_, BareKey(pull.image_ref), bytes_->Record(pull.index));
    const BareKey intent(pull.image);
    BindKey(delete_intent_, intent);
    Run(delete_intent_);
    if (sqlite3_changes(db_) != 1) throw std::runtime_error("SQLite: an intent is missing");
    Run(commit_);
  }

 private:
  void Check(int rc, const std::string& doing) const {
    if (rc != SQLITE_OK) {
      throw std::runtime_error("SQLite: " + doing + ": " + sqlite3_errmsg(db_));
    }
  }
  void Execute(const std::string& sql) {
    Check(sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr), sql);
  }
  sqlite3_stmt* Prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    Check(sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr), sql);
    return statement;
  }
  void Run(sqlite3_stmt* statement) {
    const int rc = sqlite3_step(statement);
    sqlite3_reset(statement);
    if (rc != SQLITE_DONE) {
      throw std::runtime_error(std::string("SQLite: ") + sqlite3_sql(statement) + ": " +
                               sqlite3_errmsg(db_));
    }
  }
  static void BindKey(sqlite3_stmt* statement, const BareKey& key) {
    const auto bytes = key.span();
    sqlite3_bind_blob(statement, 1, bytes.data(), static_cast<int>(bytes.size()), SQLITE_STATIC);
  }
  void Put(sqlite3_stmt* statement, const BareKey& key, const std::string& value) {
    BindKey(statement, key);
    sqlite3_bind_blob(statement, 2, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
    Run(statement);
  }
  bool CloseAll() {
    for (sqlite3_stmt** statement :
         {&begin_, &commit_, &select_, &put_record_, &put_intent_, &delete_intent_}) {
      sqlite3_finalize(std::exchange(*statement, nullptr));
    }
    return sqlite3_close(std::exchange(db_, nullptr)) == SQLITE_OK;
  }

  const StoredBytes* bytes_ = nullptr;
  std::mutex mutex_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt* begin_ = nullptr;
  sqlite3_stmt* commit_ = nullptr;
  sqlite3_stmt* select_ = nullptr;
  sqlite3_stmt* put_record_ = nullptr;
  sqlite3_stmt* put_intent_ = nullptr;
  sqlite3_stmt* delete_intent_ = nullptr;
};

}  // namespace

std::unique_ptr<Peer> MakeSqlite(const std::filesystem::path& directory) {
  return std::make_unique<SqlitePeer>(directory);
}

std::string SqliteVersion() { return sqlite3_libversion(); }

}  // namespace waybill::bench
