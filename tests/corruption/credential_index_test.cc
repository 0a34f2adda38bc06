// The index of credentials says where to look when something is forgotten. One that lacks rows,
// though every page and digest is sound, must not let a credential stay.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "store/engine/database/header.h"
#include "store/engine/database/key.h"
#include "store/engine/database/tables.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/rows.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(credential_index)

namespace {

using internal::Table;

std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Commits, with a header that agrees with the transaction and with this digest of the index.
void CommitWith(RawTxn& txn, const internal::TableDigest& digest) {
  const MDB_dbi main = txn.Table("");
  const std::string_view name = AsText(internal::kStateKey.span());
  const std::string value = txn.Get(main, name);
  const auto opened =
      internal::OpenEnvelope(internal::kStateKey, std::as_bytes(std::span(value)),
                             internal::RecordKind::kState, internal::kNewest.header);
  internal::State state = internal::DecodeState(opened.payload).value();
  state.lmdb_txn_id = mdb_txn_id(txn.get());
  ++state.commit_sequence;
  state.digest(Table::kCredentialIndex) = digest;
  const auto sealed =
      internal::Seal(internal::kStateKey, internal::RecordKind::kState, internal::kNewest.header,
                     internal::EncodeState(state, kNewestSchema));
  txn.Put(main, name, AsText(sealed));
  txn.Commit();
}

// Deletes rows of the index, and makes the header agree with what is left.
void LoseRows(const std::filesystem::path& directory, std::size_t most) {
  const RawStore raw(directory, 0, kMaxReaders);
  RawTxn txn(raw);
  const internal::TableSpec& spec = internal::SpecOf(Table::kCredentialIndex);
  const MDB_dbi rows = txn.Table(spec.name);
  std::vector<std::string> keys;
  txn.ForEach(rows, [&](MDB_val key, MDB_val) {
    keys.emplace_back(static_cast<const char*>(key.mv_data), key.mv_size);
  });
  BOOST_TEST_REQUIRE(keys.size() > most);
  keys.resize(most);
  for (const std::string& key : keys) txn.Delete(rows, key);
  internal::TableDigest left;
  txn.ForEach(rows, [&](MDB_val, MDB_val value) {
    const auto* bytes = static_cast<const std::byte*>(value.mv_data);
    left.Add(internal::StoredChecksum({bytes, value.mv_size}));
  });
  CommitWith(txn, left);
}

// Damages the bytes of a row.
void DamageRow(const std::filesystem::path& directory) {
  const RawStore raw(directory, 0, kMaxReaders);
  RawTxn txn(raw);
  const MDB_dbi rows = txn.Table(internal::SpecOf(Table::kCredentialIndex).name);
  std::string at;
  std::string value;
  txn.ForEach(rows, [&](MDB_val key, MDB_val stored) {
    at.assign(static_cast<const char*>(key.mv_data), key.mv_size);
    value.assign(static_cast<const char*>(stored.mv_data), stored.mv_size);
  });
  value[value.size() - 9] = static_cast<char>(value[value.size() - 9] ^ 0x40);
  internal::TableDigest digest;
  txn.ForEach(rows, [&](MDB_val, MDB_val stored) {
    const auto* bytes = static_cast<const std::byte*>(stored.mv_data);
    digest.Add(internal::StoredChecksum({bytes, stored.mv_size}));
  });
  txn.Put(rows, at, value);
  CommitWith(txn, digest);
}

void Fill(ScratchStore& store) {
  for (int i = 0; i < 8; ++i) {
    store.Pull(kImage, "ref-" + std::to_string(i), WithSecret(kSecretA));
    store.Pull(kImage, "ref-" + std::to_string(i), WithSecret(kSecretB));
  }
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(rows_that_are_missing_are_made_anew_at_opening, ClosedStore) {
  Fill(store);
  store.Stop();
  LoseRows(store.directory(), 20);
  auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  BOOST_TEST(!Must(observer->Verify()).sound);
  observer.reset();
  store.Start();
  BOOST_TEST(store->recovery_report().warnings.size() == 1U);
  BOOST_TEST(!store->recovery_report().distrustful);
  BOOST_TEST(Must(store->ForgetNamespace("team-a")).secrets == 8U);
  for (int i = 0; i < 8; ++i) {
    BOOST_TEST(store.Check(kImage, "ref-" + std::to_string(i), Pod(kSecretA)).pull);
    BOOST_TEST(!store.Check(kImage, "ref-" + std::to_string(i), Pod(kSecretB)).pull);
  }
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_FIXTURE_TEST_CASE(a_damaged_row_costs_no_credential_and_keeps_none, ClosedStore) {
  Fill(store);
  store.Stop();
  DamageRow(store.directory());
  store.Start();
  BOOST_TEST(store->recovery_report().set_aside);
  BOOST_TEST(!store.Check(kImage, "ref-3", Pod(kSecretA)).pull);
  BOOST_TEST(Must(store->ForgetNamespace("team-a")).secrets == 8U);
  for (int i = 0; i < 8; ++i) {
    BOOST_TEST(store.Check(kImage, "ref-" + std::to_string(i), Pod(kSecretA)).pull);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
