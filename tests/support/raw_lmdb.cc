#include "tests/support/raw_lmdb.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <utility>

namespace waybill::testing {
namespace {

MDB_val ToVal(std::string_view text) { return {text.size(), const_cast<char*>(text.data())}; }

void ReadTable(const RawTxn& txn, const std::string& name, const std::vector<std::string>& tables,
               std::string& text) {
  const MDB_dbi dbi = txn.Table(name);
  AppendTable(text, name);
  std::size_t entries = 0;
  std::string previous;
  txn.ForEach(dbi, [&](MDB_val key, MDB_val value) {
    const std::string key_text(ToText(key));
    if (++entries > 1 && key_text <= previous) throw std::runtime_error("iteration out of order");
    previous = key_text;
    if (name.empty() && std::count(tables.begin(), tables.end(), key_text) > 0) return;
    MDB_val found{};
    CheckLmdb(mdb_get(txn.get(), dbi, &key, &found), "mdb_get of a key that was iterated");
    if (found.mv_data != value.mv_data || found.mv_size != value.mv_size) {
      throw std::runtime_error("a lookup and the iteration disagree");
    }
    AppendValue(text, key_text, ToText(value));
  });
  MDB_stat stat{};
  CheckLmdb(mdb_stat(txn.get(), dbi, &stat), "mdb_stat");
  if (stat.ms_entries != entries) throw std::runtime_error("mdb_stat and the iteration disagree");
}

}  // namespace

void AppendTable(std::string& text, std::string_view name) {
  text += "\ntable ";
  text += name;
}

void AppendValue(std::string& text, std::string_view key, std::string_view value) {
  text += "\nkey ";
  text += key;
  text += std::to_string(value.size());
  text += ':';
  text += value;
}

std::string ModelText(const RawModel& model) {
  std::string text;
  if (!model.contains("")) AppendTable(text, "");
  for (const auto& [name, values] : model) {
    AppendTable(text, name);
    for (const auto& [key, value] : values) AppendValue(text, key, value);
  }
  return text;
}

void CheckLmdb(int code, const char* what) {
  if (code != 0) throw std::runtime_error(std::string(what) + ": " + mdb_strerror(code));
}

RawStore::RawStore(const std::filesystem::path& directory, unsigned flags, unsigned readers) {
  CheckLmdb(mdb_env_create(&env_), "mdb_env_create");
  CheckLmdb(mdb_env_set_maxdbs(env_, 32), "mdb_env_set_maxdbs");
  CheckLmdb(mdb_env_set_maxreaders(env_, readers), "mdb_env_set_maxreaders");
  CheckLmdb(mdb_env_set_mapsize(env_, std::size_t{256} << 20), "mdb_env_set_mapsize");
  const int code = mdb_env_open(env_, directory.c_str(), flags | MDB_NOTLS, 0600);
  if (code != 0) {
    mdb_env_close(env_);
    CheckLmdb(code, "mdb_env_open");
  }
}

RawStore::~RawStore() { mdb_env_close(env_); }

RawTxn::RawTxn(const RawStore& store, unsigned flags, MDB_txn* parent) {
  CheckLmdb(mdb_txn_begin(store.env(), parent, flags, &txn_), "mdb_txn_begin");
}

RawTxn::~RawTxn() {
  if (txn_ != nullptr) mdb_txn_abort(txn_);
}

MDB_dbi RawTxn::Table(const std::string& name, unsigned flags) const {
  MDB_dbi dbi = 0;
  CheckLmdb(mdb_dbi_open(txn_, name.empty() ? nullptr : name.c_str(), flags, &dbi), "mdb_dbi_open");
  return dbi;
}

std::string RawTxn::Get(MDB_dbi dbi, std::string_view key) const {
  MDB_val key_val = ToVal(key);
  MDB_val value{};
  CheckLmdb(mdb_get(txn_, dbi, &key_val, &value), "mdb_get");
  return std::string(ToText(value));
}

void RawTxn::Put(MDB_dbi dbi, std::string_view key, std::string_view value) const {
  MDB_val key_val = ToVal(key);
  MDB_val value_val = ToVal(value);
  CheckLmdb(mdb_put(txn_, dbi, &key_val, &value_val, 0), "mdb_put");
}

void RawTxn::Delete(MDB_dbi dbi, std::string_view key) const {
  MDB_val key_val = ToVal(key);
  CheckLmdb(mdb_del(txn_, dbi, &key_val, nullptr), "mdb_del");
}

void RawTxn::ForEach(MDB_dbi dbi, const std::function<void(MDB_val, MDB_val)>& see) const {
  MDB_cursor* opened = nullptr;
  CheckLmdb(mdb_cursor_open(txn_, dbi, &opened), "mdb_cursor_open");
  const std::unique_ptr<MDB_cursor, decltype(&mdb_cursor_close)> cursor(opened, mdb_cursor_close);
  MDB_val key{};
  MDB_val value{};
  int code = 0;
  while ((code = mdb_cursor_get(opened, &key, &value, MDB_NEXT)) == 0) see(key, value);
  if (code != MDB_NOTFOUND) CheckLmdb(code, "mdb_cursor_get");
}

void RawTxn::Commit() { CheckLmdb(mdb_txn_commit(std::exchange(txn_, nullptr)), "mdb_txn_commit"); }

std::string_view ToText(const MDB_val& value) {
  return {static_cast<const char*>(value.mv_data), value.mv_size};
}

std::string ReadByLmdb(const std::filesystem::path& directory,
                       const std::vector<std::string>& tables) {
  const RawStore store(directory, MDB_RDONLY | MDB_NOLOCK);
  const RawTxn txn(store, MDB_RDONLY);
  std::string text;
  ReadTable(txn, "", tables, text);
  for (const std::string& name : tables) {
    if (!name.empty()) ReadTable(txn, name, tables, text);
  }
  return text;
}

std::string RawChanger::Key() {
  std::string key(16, '\0');
  for (char& c : key) c = static_cast<char>(Below(256));
  // Names of tables begin with 't': keys of values never do.
  if (key[0] == 't') key[0] = 'u';
  return key;
}

std::string RawChanger::Value() {
  const bool large = Below(100) < static_cast<unsigned>(options_.large_percent);
  const unsigned size = large ? 2000 + Below(options_.max_large_bytes - 2000) : 16 + Below(500);
  std::string value(size / 8 * 8, '\0');
  for (std::size_t i = 0; i + 4 <= value.size(); i += 4) {
    const auto word = static_cast<std::uint32_t>(random_());
    std::memcpy(value.data() + i, &word, sizeof(word));
  }
  return value;
}

void RawChanger::Change(const RawTxn& txn, RawModel& model) {
  const std::string& name = tables_[Below(static_cast<unsigned>(tables_.size()))];
  const MDB_dbi dbi = txn.Table(name, MDB_CREATE);
  auto& values = model[name];
  std::string key = Key();
  const auto near = values.lower_bound(key);
  const bool full = values.size() >= static_cast<std::size_t>(options_.max_keys);
  if (near != values.end() &&
      (full || Below(100) < static_cast<unsigned>(options_.delete_percent))) {
    key = near->first;
    if (full || Below(3) > 0) {
      txn.Delete(dbi, key);
      values.erase(key);
      return;
    }
  }
  const std::string value = Value();
  txn.Put(dbi, key, value);
  values[key] = value;
}

void RawChanger::Commit(RawStore& store, RawModel& model) {
  RawTxn txn(store);
  const unsigned changes = 1 + Below(static_cast<unsigned>(options_.max_changes));
  for (unsigned i = 0; i < changes; ++i) {
    if (Below(4) > 0) {
      Change(txn, model);
      continue;
    }
    RawTxn nested(store, 0, txn.get());
    RawModel after = model;
    Change(nested, after);
    if (Below(3) == 0) continue;
    nested.Commit();
    model = std::move(after);
  }
  txn.Commit();
}

void RawChanger::Abort(RawStore& store, const RawModel& model) {
  const RawTxn txn(store);
  RawModel ignored = model;
  for (int i = 0; i < options_.max_changes; ++i) Change(txn, ignored);
}

}  // namespace waybill::testing
