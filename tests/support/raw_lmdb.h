// Stores made and read by liblmdb itself, in the layout of a waybill store (16-byte keys, values in
// multiples of 8, tables with 16-byte names), to judge the page walk by.

#ifndef WAYBILL_TESTS_SUPPORT_RAW_LMDB_H_
#define WAYBILL_TESTS_SUPPORT_RAW_LMDB_H_

#include <lmdb.h>

#include <filesystem>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace waybill::testing {

// table ("" is main) → key → value
using RawModel = std::map<std::string, std::map<std::string, std::string>>;

// One text for a whole store, in the order of the walk: equal texts are equal stores.
void AppendTable(std::string& text, std::string_view name);
void AppendValue(std::string& text, std::string_view key, std::string_view value);
std::string ModelText(const RawModel& model);

// Throws std::runtime_error with what failed.
void CheckLmdb(int code, const char* what);

class RawStore {
 public:
  // `flags` as of mdb_env_open. The file is `directory`/data.mdb.
  explicit RawStore(const std::filesystem::path& directory, unsigned flags = MDB_NOSYNC,
                    unsigned readers = 16);
  ~RawStore();
  RawStore(const RawStore&) = delete;
  RawStore& operator=(const RawStore&) = delete;

  MDB_env* env() const { return env_; }

 private:
  MDB_env* env_ = nullptr;
};

// A transaction, aborted unless it was committed. What fails throws.
class RawTxn {
 public:
  explicit RawTxn(const RawStore& store, unsigned flags = 0, MDB_txn* parent = nullptr);
  ~RawTxn();
  RawTxn(const RawTxn&) = delete;
  RawTxn& operator=(const RawTxn&) = delete;

  MDB_txn* get() const { return txn_; }
  MDB_dbi Table(const std::string& name, unsigned flags = 0) const;  // "": main
  std::string Get(MDB_dbi dbi, std::string_view key) const;
  void Put(MDB_dbi dbi, std::string_view key, std::string_view value) const;
  void Delete(MDB_dbi dbi, std::string_view key) const;
  // In the order of the keys. Both point into the map.
  void ForEach(MDB_dbi dbi, const std::function<void(MDB_val key, MDB_val value)>& see) const;
  void Commit();

 private:
  MDB_txn* txn_ = nullptr;
};
std::string_view ToText(const MDB_val& value);

// Everything as liblmdb reads it: by iteration, with a lookup of each key; `tables` names the
// tables. Throws if any answer disagrees with another.
std::string ReadByLmdb(const std::filesystem::path& directory,
                       const std::vector<std::string>& tables);

struct RawChangeOptions {
  int max_changes = 8;
  int max_keys = 400;     // a table
  int large_percent = 3;  // values with overflow pages
  int delete_percent = 40;
  unsigned max_large_bytes = 20000;
};

// Random changes to a store and to its model, one transaction a call.
class RawChanger {
 public:
  RawChanger(unsigned seed, std::vector<std::string> tables, RawChangeOptions options)
      : random_(seed), tables_(std::move(tables)), options_(options) {}

  // One committed transaction. Some changes are made in nested transactions, some of these aborted.
  void Commit(RawStore& store, RawModel& model);
  // A transaction that is aborted after as many changes.
  void Abort(RawStore& store, const RawModel& model);

  unsigned Below(unsigned bound) {
    return std::uniform_int_distribution<unsigned>(0, bound - 1)(random_);
  }
  std::string Key();
  std::string Value();

 private:
  void Change(const RawTxn& txn, RawModel& model);

  std::mt19937 random_;
  std::vector<std::string> tables_;
  RawChangeOptions options_;
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_RAW_LMDB_H_
