// Rules that follow from how LMDB handles files, readers and pages: one case each.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <random>

#include "store/disk/key.h"
#include "store/disk/mark_line.h"
#include "store/disk/page_walk/page_format.h"
#include "store/disk/store_txn.h"
#include "store/disk/tables.h"
#include "tests/corruption/scene.h"
#include "tests/support/damage.h"
#include "tests/support/draw.h"
#include "tests/support/good_in_child.h"
#include "tests/support/inspect_path.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/raw_lmdb.h"

namespace {

namespace fs = std::filesystem;
using namespace waybill;
using namespace waybill::testing;
using internal::Table;
using waybill::testing::NodeStore;

ino_t InodeOf(const fs::path& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) throw std::runtime_error("cannot stat " + path.string());
  return st.st_ino;
}

BOOST_FIXTURE_TEST_SUITE(lmdb_rules, Scene)

// --- Rule 1

BOOST_AUTO_TEST_CASE(rule_1_a_rebuild_removes_lock_mdb) {
  store.Stop();
  // A living observer keeps the old lock file's transaction ID.
  ChildProcess observer([&] { return ServeAsObserver(store.directory()); });
  BOOST_TEST(observer.Ask("hash-a") == "no pull");
  const ino_t before = InodeOf(lock());
  WriteFile(store.scratch() / "damaged",
            FlipUntil(database(), "the trust journal is missing or damaged"));
  fs::rename(store.scratch() / "damaged", database());
  store.Start();
  BOOST_TEST(store->recovery_report().set_aside);
  BOOST_TEST(InodeOf(lock()) != before);
  BOOST_TEST(Must(store->ListRecords()).size() == 1U);
  // It compares the inodes of both files and reopens.
  BOOST_TEST(observer.Ask("unknown") == "pull");
  store.Pull(kImage, kRef2, NodeWide());
  BOOST_TEST(observer.Ask("unknown") == "no pull");
}

BOOST_AUTO_TEST_CASE(rule_1_a_stale_lock_mdb_does_not_pick_the_meta_page) {
  // Whatever the old and the new file's transaction IDs are.
  for (int commits = 1; commits <= 4; ++commits) {
    store.Stop();
    ChildProcess observer([&] { return ServeAsObserver(store.directory()); });
    BOOST_TEST(observer.Ask("hash-a") == "no pull");
    ScratchStore other(Mode::kStrict);
    for (int i = 0; i < commits; ++i) {
      Must(other->PutIntent({.image = "registry.example.com/i" + std::to_string(i)}));
    }
    other.Stop();
    fs::copy_file(other.directory() / "data.mdb", store.scratch() / "copy",
                  fs::copy_options::overwrite_existing);
    fs::rename(store.scratch() / "copy", database());
    fs::remove(store.witness());
    store.Start();
    BOOST_TEST_CONTEXT(commits << " commits") {
      BOOST_TEST(!store->recovery_report().set_aside);
      BOOST_TEST(Must(store->ListIntents()).size() == static_cast<std::size_t>(commits));
      store.Pull(kImage, kRef, WithSecret(kSecretA));
      BOOST_TEST(Must(store->ListIntents()).size() == static_cast<std::size_t>(commits));
      BOOST_TEST(observer.Ask("hash-a") == "no pull");
      BOOST_TEST(observer.Ask("nobody") == "pull");
    }
  }
}

// --- Rule 2

BOOST_AUTO_TEST_CASE(rule_2_an_empty_file_is_a_loss) {
  store.Stop();
  WriteFile(database(), "");
  fs::remove(lock());
  fs::remove(store.witness());
  ExpectError(NodeStore::Observe({.directory = store.directory()}), ErrorCode::kDamaged);
  store.Start();
  BOOST_TEST(store->recovery_report().set_aside);
  BOOST_TEST(store->recovery_report().distrustful);
  BOOST_TEST(store.Check(kImage, kRef2).pull);
}

BOOST_AUTO_TEST_CASE(rule_2_every_descriptor_closes_on_exec) {
  int of_the_store = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string target = fs::read_symlink(entry.path(), error).string();
    if (!target.starts_with(store.scratch().string())) continue;
    ++of_the_store;
    const int fd = std::atoi(entry.path().filename().c_str());
    BOOST_TEST((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0, target);
  }
  // data.mdb, perhaps twice, lock.mdb, owner.lock, the witness.
  BOOST_TEST(of_the_store >= 4);
}

BOOST_AUTO_TEST_CASE(rule_2_files_are_private) {
  const mode_t before = umask(0);
  ScratchStore open_umask(Mode::kStrict);
  open_umask.Pull(kImage, kRef, NodeWide());
  open_umask.Stop();
  WriteFile(open_umask.directory() / "data.mdb", "x");
  open_umask.Start();
  umask(before);
  BOOST_TEST(open_umask->recovery_report().set_aside);
  for (const auto& entry : fs::recursive_directory_iterator(open_umask.directory())) {
    const auto mode = static_cast<unsigned>(entry.status().permissions());
    if (entry.path().parent_path().parent_path().filename() == "quarantine") continue;
    BOOST_TEST(mode == (entry.is_directory() ? 0700U : 0600U), entry.path().string());
  }
  BOOST_TEST(static_cast<unsigned>(fs::status(open_umask.directory()).permissions()) == 0700U);
  BOOST_TEST(static_cast<unsigned>(fs::status(open_umask.witness()).permissions()) == 0600U);
}

// --- Rules 4 and 5

BOOST_AUTO_TEST_CASE(rule_4_a_meta_page_whose_id_lost_two_does_not_undo_a_commit) {
  for (int commits = 0; commits < 8; ++commits) {
    Must(store->PutIntent({.image = "registry.example.com/i" + std::to_string(commits)}));
    store.Stop();
    std::string bytes = ReadFile(database());
    const std::size_t at = (InspectPath(database()).txn_id & 1) * kPage +
                           internal::kPageHeaderBytes + offsetof(internal::MetaRecord, txn_id);
    const bool makes_two_less = (bytes[at] & 2) != 0;
    FlipBit(bytes, at * 8 + 1);
    fs::create_directory(store.scratch() / "flipped");
    WriteFile(store.scratch() / "flipped" / "data.mdb", bytes);
    const auto inspection = InspectPath(store.scratch() / "flipped" / "data.mdb");
    BOOST_TEST(!inspection.sound);
    if (makes_two_less) {
      // LMDB accepts this. The walk does, too, unless pages of the older tree were used again: the
      // header shows it in any case.
      BOOST_TEST(std::any_of(
          inspection.findings.begin(), inspection.findings.end(), [](const std::string& finding) {
            return finding.find("does not agree with the header") != std::string::npos;
          }));
    }
    store.Start();
  }
}

BOOST_AUTO_TEST_CASE(rule_4_a_compact_copy_is_not_a_store) {
  store.Stop();
  const fs::path copy = store.scratch() / "compact";
  fs::create_directory(copy);
  {
    const RawStore raw(store.directory());
    CheckLmdb(mdb_env_copy2(raw.env(), copy.c_str(), MDB_CP_COMPACT), "copy");
  }
  BOOST_TEST(!InspectPath(copy / "data.mdb").sound);
}

BOOST_AUTO_TEST_CASE(rule_5_the_witness_follows_every_commit) {
  const auto witnessed = [&] {
    const auto reading = internal::ReadMark(store.witness());
    return reading && reading->line ? reading->line->acknowledged : 0;
  };
  for (int i = 0; i < 5; ++i) {
    Must(store->PutIntent({.image = "registry.example.com/i" + std::to_string(i)}));
    const auto sequence = Must(store->GetStatistics()).commit_sequence;
    BOOST_TEST(witnessed() == sequence);
  }
  const std::string before = ReadFile(store.witness());
  Must(store->DeleteIntent({.image = "registry.example.com/none"}));  // no change, no commit
  BOOST_TEST(ReadFile(store.witness()) == before);
}

// --- Rules 8 and 9

BOOST_AUTO_TEST_CASE(rule_8_a_store_is_open_once_a_process) {
  const fs::path by_another_name = store.scratch() / ".." / store.scratch().filename() / "store";
  for (const fs::path& directory : {store.directory(), by_another_name}) {
    NodeStoreOptions options = store.Options({});
    options.directory = directory;
    ExpectError(NodeStore::Open(options), ErrorCode::kOwned);
    ExpectError(NodeStore::Observe({.directory = directory}), ErrorCode::kOwned);
  }
  // The refused calls released no lock of the first: others still see its readers and ownership.
  BOOST_TEST(!store.Check(kImage, kRef, Pod(kSecretA)).pull);
  store.Stop();
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  ExpectError(NodeStore::Observe({.directory = store.directory()}), ErrorCode::kOwned);
}

BOOST_AUTO_TEST_CASE(rule_8_an_observer_that_cannot_write_lock_mdb_is_refused) {
  store.Stop();
  ExpectGoodInChild([&]() -> std::string {
    if (!MountReadOnly(store.directory())) return kMayNotMount;
    const auto observed = NodeStore::Observe({.directory = store.directory()});
    if (observed) return "observes";
    return observed.error().code == ErrorCode::kUnsafePath ? "good" : observed.error().ToString();
  });
}

BOOST_AUTO_TEST_CASE(rule_9_a_killed_readers_slot_is_freed_at_opening) {
  store.Stop();
  ChildProcess living([&] { return ServeAsObserver(store.directory()); });
  BOOST_TEST(living.Ask("hash-a") == "no pull");
  ChildProcess killed([&] { return ServeAsObserver(store.directory()); });
  BOOST_TEST(killed.Ask("hash-a") == "no pull");
  // Four slots each, from the beginning.
  BOOST_TEST(killed.Ask("stats") == "8 of " + std::to_string(kMaxReaders));
  killed.Kill();
  store.Start();
  BOOST_TEST(store->recovery_report().readers_cleared == 4U);
  // Whoever opens first sets the number of slots: an observer asks for as many as an owner.
  BOOST_TEST(Must(store->GetStatistics()).max_readers == kMaxReaders);
  BOOST_TEST(living.Ask("hash-a") == "no pull");
}

// --- Rule 10

// Changes a store while others have it open, and sets the header's transaction ID to that of the
// change, so that only the counts show it.
void Tamper(const fs::path& directory, const std::function<void(const RawTxn&)>& change) {
  const std::string done = InChild([&] {
    const RawStore raw(directory, 0, kMaxReaders);
    RawTxn txn(raw);
    const MDB_dbi main = txn.Table("");
    change(txn);
    const std::span<const std::byte> key = internal::kStateKey.span();
    const std::string_view name(reinterpret_cast<const char*>(key.data()), key.size());
    const std::string value = txn.Get(main, name);
    const auto opened =
        internal::OpenEnvelope(internal::kStateKey, std::as_bytes(std::span(value)),
                               internal::RecordKind::kState, internal::Newest().header);
    internal::State state = internal::DecodeState(opened.payload).value();
    state.lmdb_txn_id = mdb_txn_id(txn.get());
    const auto sealed =
        internal::Seal(internal::kStateKey, internal::RecordKind::kState, internal::Newest().header,
                       internal::EncodeState(state, internal::Newest()));
    txn.Put(main, name, {reinterpret_cast<const char*>(sealed.data()), sealed.size()});
    txn.Commit();
    return std::string("done");
  });
  BOOST_TEST(done == "done");
}

void DeleteAll(const RawTxn& txn, Table table) {
  if (!internal::LiesInMain(table)) {
    CheckLmdb(mdb_drop(txn.get(), txn.Table(internal::SpecOf(table).name), 0), "empty a table");
    return;
  }
  std::vector<std::string> keys;
  txn.ForEach(txn.Table(""), [&](MDB_val key, MDB_val) { keys.emplace_back(ToText(key)); });
  const internal::Key16 first = internal::FirstKeyOf(table);
  std::erase_if(keys,
                [&](const std::string& key) { return key < ToText(lmdb::ToVal(first.span())); });
  BOOST_TEST(!keys.empty());
  for (const std::string& key : keys) txn.Delete(txn.Table(""), key);
}

void DeleteEntry(const RawTxn& txn, Table table) {
  CheckLmdb(mdb_drop(txn.get(), txn.Table(internal::SpecOf(table).name), 1), "delete a table");
}

BOOST_AUTO_TEST_CASE(rule_10_not_found_is_believed_only_if_the_count_agrees) {
  using Change = void (*)(const RawTxn&, Table);
  for (const Change change : {Change{DeleteAll}, Change{DeleteEntry}}) {
    for (const Table table : {Table::kImages, Table::kIntents}) {
      if (change == DeleteEntry && internal::LiesInMain(table)) continue;
      ScratchStore victim(Mode::kStrict);
      victim.Pull(kImage, kRef, WithSecret(kSecretA));
      Must(victim->PutIntent({.image = kImage}));
      victim.Stop();
      ChildProcess observer([&] { return ServeAsObserver(victim.directory()); });
      BOOST_TEST(observer.Ask("hash-a") == "no pull");
      victim.Start();
      BOOST_TEST(victim.Check(kImage, kRef2).pull);
      Tamper(victim.directory(), [&](const RawTxn& txn) { change(txn, table); });
      BOOST_TEST_CONTEXT(internal::SpecOf(table).name
                         << (change == DeleteAll ? " emptied" : " deleted")) {
        for (const std::string_view ref : {kRef, kRef2}) BOOST_TEST(victim.Check(kImage, ref).pull);
        BOOST_TEST(observer.Ask("unknown") == "pull");
        BOOST_TEST(observer.Ask("nobody") == "pull");
        if (table == Table::kImages) {
          const auto record = victim->GetRecord({.image_ref = kRef});
          BOOST_TEST((!record && record.error().code == ErrorCode::kDamaged));
          BOOST_TEST(!victim->ListRecords().has_value());
        } else {
          const auto intent = victim->HasIntent({.image = kImage});
          BOOST_TEST((!intent && intent.error().code == ErrorCode::kDamaged));
        }
        BOOST_TEST(!Must(victim->Verify()).sound);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(rule_10_a_snapshot_older_than_its_id_is_not_believed) {
  // A commit that does not update the header.
  const std::string done = InChild([&] {
    const RawStore raw(store.directory(), 0, kMaxReaders);
    RawTxn txn(raw);
    DeleteAll(txn, Table::kImages);
    txn.Commit();
    return std::string("done");
  });
  BOOST_TEST(done == "done");
  BOOST_TEST(store.Check(kImage, kRef).pull);
  BOOST_TEST((store.Check(kImage, kRef2).reason == Reason::kStoreUnavailable));
}

// --- Rule 14

std::string RefOf(int i) { return "sha256:" + Sha256Hex(std::to_string(i)); }
std::string ImageOf(int i) { return "registry.example.com/app-" + std::to_string(i) + ":v1"; }

// An image with a credential of the usual forms and lengths.
ImagePullCredentials Usual(int i) {
  const std::string hex = Sha256Hex("uid" + std::to_string(i));
  const std::string uid = hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-4" + hex.substr(12, 3) +
                          "-8" + hex.substr(15, 3) + "-" + hex.substr(18, 12);
  return WithSecret(MakeSecret("team-" + std::to_string(i % 50), "regcred", uid,
                               Sha256Hex("hash" + std::to_string(i))));
}

// Every value as liblmdb shows it.
void ForEachValue(
    const fs::path& directory,
    const std::function<void(std::string_view table, MDB_val key, MDB_val value)>& see) {
  const RawStore raw(directory);
  const RawTxn txn(raw, MDB_RDONLY);
  const auto see_all = [&](const std::string& table) {
    txn.ForEach(txn.Table(table), [&](MDB_val key, MDB_val value) { see(table, key, value); });
  };
  see_all("");
  for (const auto& table : internal::kTables) {
    if (!internal::LiesInMain(table.table)) see_all(table.name);
  }
}

BOOST_FIXTURE_TEST_CASE(rule_14_every_value_is_aligned, ClosedStore) {
  std::mt19937_64 random(SeedOfThisRun());
  for (int i = 0; i < 300; ++i) {
    ImagePullCredentials credentials = Usual(i);
    // Up to overflow pages of every size, with names of any length.
    const int more = i % 10 == 0 ? static_cast<int>(random() % 200) : 0;
    for (int k = 0; k < more; ++k) {
      credentials.kubernetes_secrets.push_back(
          MakeSecret("n" + std::to_string(k), std::string(1 + random() % 90, 's'), "u", "h"));
    }
    store.Pull(ImageOf(i), RefOf(i) + std::string(random() % 9, 'x'), credentials);
    Must(store->PutIntent(
        {.image = "registry.example.com/" + std::string(1 + random() % 200, 'i')}));
  }
  store.Stop();
  std::size_t overflow = 0;
  std::size_t seen = 0;
  ForEachValue(store.directory(), [&](std::string_view table, MDB_val key, MDB_val value) {
    BOOST_TEST(key.mv_size == 16U);
    // A table's own entry in main is LMDB's.
    const bool is_entry =
        table.empty() && value.mv_size == 48 && std::memcmp(key.mv_data, "waybill-", 8) != 0;
    if (is_entry) return;
    ++seen;
    if (value.mv_size > 2048) ++overflow;
    BOOST_TEST(value.mv_size % 8 == 0U);
    BOOST_TEST(reinterpret_cast<std::uintptr_t>(value.mv_data) % 8 == 0U);
  });
  BOOST_TEST(seen > 400U);
  BOOST_TEST(overflow > 5U);
}

// While the store is open nobody reads the free list but LMDB, which believes it.
BOOST_FIXTURE_TEST_CASE(a_free_list_with_impossible_pages_is_damage, Scene) {
  Rotate();
  auto file = Must(internal::OpenFile(database(), O_RDWR));
  auto pages = Must(internal::PageFile::Open(file.get()));
  const internal::MetaPages metas = internal::ReadMetaPages(pages);
  const auto root = metas.meta[static_cast<std::size_t>(metas.newer_meta)].free_tree.root;
  internal::PageFile::Scratch scratch;
  const auto at = static_cast<off_t>(root * metas.page_bytes);
  const std::byte* bytes = pages.Read(static_cast<std::uint64_t>(at), metas.page_bytes, scratch);
  internal::NodePage leaf;
  BOOST_REQUIRE(leaf.Open(bytes, root, metas.page_bytes, internal::TreeKind::kFree) == nullptr);
  BOOST_REQUIRE(leaf.is_leaf());
  for (unsigned i = 0; i < leaf.count(); ++i) {
    const auto count = internal::Load<std::uint64_t>(leaf.Data(i));
    for (std::uint64_t n = 1; n <= count; ++n) {
      const std::byte* const number = leaf.Data(i) + n * sizeof(std::uint64_t);
      const std::uint64_t far = internal::Load<std::uint64_t>(number) | std::uint64_t{1} << 51;
      BOOST_REQUIRE(pwrite(file.get(), &far, sizeof(far), at + (number - bytes)) == sizeof(far));
    }
  }
  ExpectError(store->RecordImagePulled({.image = kImage, .image_ref = kRef2}, NodeWide()),
              ErrorCode::kDamaged);
  BOOST_TEST(!Pulls(kRotatedA));
  BOOST_TEST(Pulls(kThief));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
