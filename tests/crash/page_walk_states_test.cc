// The states a crash or a failed write leaves behind: each is sound, and shows the last commit.

#include <boost/test/unit_test.hpp>
#include <cstring>

#include "store/disk/page_walk/page_check.h"
#include "store/disk/page_walk/page_format.h"
#include "tests/support/damage.h"
#include "tests/support/memory_dir.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/temp_dir.h"
#include "tests/support/walk_recorder.h"

namespace {

BOOST_AUTO_TEST_SUITE(page_walk_states)

using namespace waybill;
using namespace waybill::testing;

const std::string kHeaderKey = "0header-----id-0";

// Commits with a header record that holds the transaction's ID, as a waybill store has one.
class HeaderStore {
 public:
  HeaderStore() : store_(dir_.path()) {}

  // Returns the ID. The header's value has an overflow page now and then.
  std::uint64_t Commit(RawChanger& changer) {
    RawTxn txn(store_);
    const std::uint64_t id = mdb_txn_id(txn.get());
    std::vector<std::uint64_t> header(id % 7 == 0 ? 500 : 3, id);
    Put(txn, "", kHeaderKey,
        {reinterpret_cast<const char*>(header.data()), header.size() * sizeof(header[0])});
    for (unsigned i = changer.Below(6); i > 0; --i) {
      const std::string table = changer.Below(4) == 0 ? "" : "table-of-images1";
      auto& values = model[table];
      const std::string key = changer.Key();
      const auto near = values.lower_bound(key);
      const bool remove = near != values.end() && near->first != kHeaderKey &&
                          (values.size() > 200 || changer.Below(3) == 0);
      if (remove) {
        txn.Delete(txn.Table(table, MDB_CREATE), near->first);
        values.erase(near);
      } else {
        Put(txn, table, key, changer.Value());
      }
    }
    txn.Commit();
    return id;
  }

  std::string Bytes() const { return ReadFile(dir_ / "data.mdb"); }

  RawModel model;

 private:
  void Put(const RawTxn& txn, const std::string& table, const std::string& key,
           const std::string& value) {
    txn.Put(txn.Table(table, MDB_CREATE), key, value);
    model[table][key] = value;
  }

  MemoryDir dir_;
  RawStore store_;
};

class StateFile {
 public:
  void Set(const std::string& bytes) { WriteFile(dir_ / "data.mdb", bytes); }
  Walked Walk() const { return WalkPath(dir_ / "data.mdb"); }
  void RequireShows(const std::string& text) const {
    const Walked walked = Walk();
    BOOST_REQUIRE_MESSAGE(walked.result.sound, FirstFinding(walked.result));
    BOOST_REQUIRE(walked.shown.text == text);
  }
  // The ID in the header of that meta page's tree; 0: there is none.
  std::uint64_t HeaderId(int which) const {
    const OpenedFile file(dir_ / "data.mdb");
    const auto value = internal::FindInMain(
        file.fd(), which,
        internal::PageKey(reinterpret_cast<const std::byte*>(kHeaderKey.data()), 16));
    return value ? internal::Load<std::uint64_t>(value->data()) : 0;
  }
  const MemoryDir& dir() const { return dir_; }

 private:
  MemoryDir dir_;
};

std::size_t FieldOf(std::uint64_t meta, std::size_t field) {
  return meta * kPage + internal::kPageHeaderBytes + field;
}

// LMDB then writes the old ID and last page back beside the new roots. The newer tree is sound;
// only the header in the older one shows it.
BOOST_AUTO_TEST_CASE(a_failed_meta_write_is_sound_but_its_header_is_ahead) {
  RawChanger changer(11, {""}, {});
  HeaderStore store;
  StateFile state;
  for (int i = 0; i < 10; ++i) store.Commit(changer);
  for (int i = 0; i < 40; ++i) {
    const std::string before = store.Bytes();
    const std::string text = ModelText(store.model);
    const std::uint64_t id = store.Commit(changer);
    std::string bytes = store.Bytes();
    const std::size_t old_fields = FieldOf(id % 2, offsetof(internal::MetaRecord, last_page));
    bytes.replace(old_fields, 16, before, old_fields, 16);
    state.Set(bytes);
    state.RequireShows(text);
    const auto result = state.Walk().result;
    BOOST_TEST(result.meta[id % 2].txn_id == id - 2);
    BOOST_TEST(state.HeaderId(static_cast<int>(id % 2)) == id);
    BOOST_TEST(state.HeaderId(static_cast<int>((id + 1) % 2)) == id - 1);
  }
}

BOOST_AUTO_TEST_CASE(a_tree_that_has_another_depth_than_its_record_is_damage) {
  RawChanger changer(14, {""}, {});
  HeaderStore store;
  StateFile state;
  std::uint64_t id = 0;
  for (int i = 0; i < 20; ++i) id = store.Commit(changer);
  std::string bytes = store.Bytes();
  ++bytes[FieldOf(
      id % 2, offsetof(internal::MetaRecord, main_tree) + offsetof(internal::TreeRecord, depth))];
  state.Set(bytes);
  BOOST_TEST(!state.Walk().result.sound);
}

// Numbers that a hostile file may claim must cost neither memory nor time.
BOOST_AUTO_TEST_CASE(a_hostile_last_page_or_count_is_refused_cheaply) {
  RawChanger changer(15, {""}, {});
  HeaderStore store;
  StateFile state;
  std::uint64_t id = 0;
  for (int i = 0; i < 20; ++i) id = store.Commit(changer);
  for (const std::uint64_t claim :
       {std::uint64_t{1} << 20, std::uint64_t{1} << 40, (std::uint64_t{1} << 52) - 1,
        ~std::uint64_t{0} - 1, ~std::uint64_t{0}}) {
    for (std::size_t field = offsetof(internal::MetaRecord, map_bytes);
         field < sizeof(internal::MetaRecord); field += sizeof(claim)) {
      std::string bytes = store.Bytes();
      std::memcpy(bytes.data() + FieldOf(id % 2, field), &claim, sizeof(claim));
      state.Set(bytes);
      const auto result = state.Walk().result;
      if (field > offsetof(internal::MetaRecord, map_bytes)) BOOST_TEST(!result.sound);
    }
  }
  // A sparse file, longer than any map, has room for all the pages that it claims.
  const std::uint64_t claim = std::uint64_t{1} << 33;
  std::string bytes = store.Bytes();
  std::memcpy(bytes.data() + FieldOf(id % 2, offsetof(internal::MetaRecord, last_page)), &claim,
              sizeof(claim));
  state.Set(bytes);
  std::error_code too_long;
  std::filesystem::resize_file(state.dir() / "data.mdb", (claim + 1) * kPage, too_long);
  if (too_long) return;  // ext4
  const auto findings = state.Walk().result.findings;
  BOOST_TEST_REQUIRE(!findings.empty());
  BOOST_TEST(findings.front().find("its last page is not possible") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
