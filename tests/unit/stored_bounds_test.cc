// Values with correct checksums that are larger than anything the library writes: from tampering,
// or from another program. They count as damaged everywhere.

#include <flatbuffers/flatbuffers.h>
#include <lmdb.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>

#include "schema/v2/pulled_record_generated.h"
#include "store/engine/database/envelope.h"
#include "store/engine/database/tables.h"
#include "store/engine/lmdb/env.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/keys.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/typed_tables.h"
#include "store/node/records/userns_tables.h"
#include "tests/support/expect_error.h"
#include "tests/support/inspect_path.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/rows.h"
#include "waybill/image_name.h"
#include "waybill/limits.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(stored_bounds)

namespace {

using internal::Key16;
using internal::Table;

// An intent larger than any call accepts: a 64 KiB image that is its own repository.
std::string LongImage() { return "example.com/" + std::string(std::size_t{64} << 10U, 'a'); }

std::vector<std::byte> SealedIntent(const Key16& key, const std::string& image) {
  return internal::Seal(key, internal::RecordKind::kPullIntent,
                        internal::kNewest.version(Table::kIntents),
                        internal::EncodeOpenPull({.id = PullId{1}, .image = image}));
}

void PutRaw(const std::filesystem::path& directory, Table table, const Key16& key,
            const std::vector<std::byte>& value) {
  const RawStore raw(directory);
  MDB_txn* txn = nullptr;
  MDB_dbi dbi = 0;
  CheckLmdb(mdb_txn_begin(raw.env(), nullptr, 0, &txn), "begin");
  CheckLmdb(mdb_dbi_open(txn, internal::SpecOf(table).name, 0, &dbi), "open");
  MDB_val k = lmdb::ToVal(key.span());
  MDB_val v = lmdb::ToVal(value);
  CheckLmdb(mdb_put(txn, dbi, &k, &v, 0), "put");
  CheckLmdb(mdb_txn_commit(txn), "commit");
}

void PutLongIntent(const std::filesystem::path& directory) {
  const auto seed = InspectPath(directory / "data.mdb").identity->hash_seed;
  const std::string image = LongImage();
  const Key16 key = internal::IntentKey(image, PullId{1}, seed);
  PutRaw(directory, Table::kIntents, key, SealedIntent(key, image));
}

bool IsReadable(Table table, const std::vector<std::uint8_t>& payload) {
  return internal::SpecOf(table).key_of(payload, 1).has_value();
}

std::array<std::byte, 8> FirstHalf(const Key16& key) {
  std::array<std::byte, 8> half;
  std::copy_n(key.bytes.begin(), half.size(), half.begin());
  return half;
}

std::string Bytes(std::size_t size) { return std::string(size, 'x'); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_rebuild_meets_an_intent_above_the_limits) {
  for (const Rules rules : kBothRules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Must(store->RecordPullIntent({.image = "registry.example.com/other:v1"}));
    store.Stop();
    PutLongIntent(store.directory());
    store.Start();
    const RecoveryReport& report = store->recovery_report();
    BOOST_TEST(report.set_aside);
    BOOST_TEST(report.distrustful);
    BOOST_TEST(report.records_carried == 1U);
    BOOST_TEST(report.intents_carried == 1U);
    BOOST_TEST(Must(store->Verify()).sound);
  }
}

BOOST_FIXTURE_TEST_CASE(a_restore_meets_an_intent_above_the_limits, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  const auto backup = store.scratch() / "backup";
  std::filesystem::copy(store.directory() / "data.mdb", backup);
  PutLongIntent(store.directory());
  const auto report = Must(Restore({.directory = store.directory(), .backup = backup}));
  BOOST_TEST(report.records == 1U);
  store.Start();
  BOOST_TEST(Must(store->ListIntents()).empty());
  BOOST_TEST(Must(store->Verify()).sound);
}

BOOST_FIXTURE_TEST_CASE(a_backup_with_an_intent_above_the_limits_is_refused, ClosedStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Stop();
  const auto copied = store.scratch() / "copied";
  std::filesystem::create_directory(copied);
  std::filesystem::copy(store.directory() / "data.mdb", copied);
  PutLongIntent(copied);
  ExpectError(Restore({.directory = store.directory(), .backup = copied / "data.mdb"}),
              ErrorCode::kDamaged);
}

BOOST_AUTO_TEST_CASE(keys_of_images_above_the_limits_are_hashes_like_others) {
  const std::string image = LongImage();
  BOOST_TEST(
      (internal::IntentKey(image, PullId{1}, 1) != internal::IntentKey(image + "a", PullId{1}, 1)));
}

// The keys on disk hash the repository as one string, however it is stored. To version 4.
BOOST_AUTO_TEST_CASE(intent_keys_stay_what_they_were) {
  for (const std::string& image :
       {std::string(), std::string("nginx"), std::string("library/nginx:1"),
        std::string("index.docker.io/a/b@sha256:0"), std::string("example.com:5000/a/b:v1"),
        "a/" + Bytes(200), "a/" + Bytes(250), Bytes(300), Bytes(kMaxImageBytes)}) {
    for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{0x123456789ABCDEF0}}) {
      const std::string repository = image.empty() ? image : RepositoryOf(image);
      std::array<std::byte, 8> expected;
      const std::uint64_t hash = XXH3_64bits_withSeed(repository.data(), repository.size(), seed);
      for (std::size_t i = 0; i < 8; ++i) {
        expected[i] = static_cast<std::byte>(hash >> (56 - 8 * i));
      }
      BOOST_TEST((FirstHalf(internal::OlderIntentKey(image, "", seed)) == expected),
                 "the key of \"" << image << "\"");
    }
  }
}

BOOST_AUTO_TEST_CASE(decoders_take_what_is_at_the_limits_and_nothing_above) {
  for (const std::size_t more : {0U, 1U}) {
    const bool readable = more == 0;
    for (const std::uint64_t id : {0U, 7U}) {  // of an older version, of this one
      const auto readable_pull = [&](std::size_t image, std::size_t handler) {
        return IsReadable(
            Table::kIntents,
            internal::EncodeOpenPull(
                {.id = PullId{id}, .image = Bytes(image), .runtime_handler = Bytes(handler)}));
      };
      OpenPull ended{.id = PullId{7}, .state = PullState::kUnknown, .ended = Timestamp{}};
      ended.ended_at.nanoseconds = more == 0 ? 0 : -1;
      BOOST_TEST(IsReadable(Table::kIntents, internal::EncodeOpenPull(ended)) == readable);
      BOOST_TEST(readable_pull(kMaxImageBytes + more, 1) == readable);
      BOOST_TEST(readable_pull(1, kMaxRuntimeHandlerBytes + more) == readable);
    }
    const auto readable_entry = [](const LedgerEntry& entry) {
      return IsReadable(Table::kLedger, internal::EncodeLedgerEntry(entry));
    };
    BOOST_TEST(readable_entry({.image_ref = Bytes(kMaxImageRefBytes + more)}) == readable);
    BOOST_TEST(readable_entry({.runtime_handler = Bytes(kMaxRuntimeHandlerBytes + more)}) ==
               readable);
    BOOST_TEST(readable_entry({.names = {Bytes(kMaxImageBytes + more)}}) == readable);
    BOOST_TEST(readable_entry({.names = std::vector<std::string>(kMaxNamesPerImage + more, "a")}) ==
               readable);
    BOOST_TEST(readable_entry({.source = Bytes(kMaxReasonBytes + more)}) == readable);
    BOOST_TEST(readable_entry({.reason = Bytes(kMaxReasonBytes + more)}) == readable);
    const auto readable_row = [](std::size_t spelling, std::size_t image, std::size_t refs,
                                 std::size_t ref) {
      const std::vector<std::string> all(refs, Bytes(ref));
      return IsReadable(Table::kSpellings,
                        internal::EncodeSpelling({Bytes(spelling), Bytes(image), all, 1}));
    };
    BOOST_TEST(readable_row(kMaxImageRefBytes + more, 1, 1, 1) == readable);
    BOOST_TEST(readable_row(1, kMaxImageRefBytes + more, 1, 1) == readable);
    BOOST_TEST(readable_row(1, 1, kMaxSpellingsPerImage + more, 1) == readable);
    BOOST_TEST(readable_row(1, 1, 1, kMaxImageRefBytes + more) == readable);
    const std::string sha256(64, 'a');
    BOOST_TEST(
        IsReadable(Table::kQuarantine,
                   internal::EncodeQuarantineValue(
                       {QuarantineKind::kImage, sha256, Bytes(kMaxPathBytes + more), "", {}})) ==
        readable);
    BOOST_TEST(IsReadable(Table::kPreloaded, internal::EncodePreloadedValue(
                                                 {Bytes(kMaxImageRefBytes + more), {}, {}})) ==
               readable);
    BOOST_TEST(IsReadable(Table::kPreloaded, internal::EncodePreloadedValue(
                                                 {"ref", {}, {Bytes(kMaxImageBytes + more)}})) ==
               readable);
    BOOST_TEST(
        IsReadable(
            Table::kPreloaded,
            internal::EncodePreloadedValue(
                {"ref", {}, std::vector<std::string>(kMaxImageNamesPerRecord + more, "image")})) ==
        readable);
    BOOST_TEST(IsReadable(Table::kRuntimeHandlers,
                          internal::EncodeRuntimeHandlerValue(
                              {Bytes(kMaxRuntimeHandlerBytes + more), false, false, {}})) ==
               readable);
    Platform platform{"amd64", "linux"};
    platform.os_features.assign(kMaxOsFeatures + more, "f");
    BOOST_TEST(IsReadable(Table::kRuntimeHandlers, internal::EncodeRuntimeHandlerValue(
                                                       {"a", false, false, platform})) == readable);
    platform.os_features = {Bytes(kMaxPlatformFieldBytes + more)};
    BOOST_TEST(IsReadable(Table::kRuntimeHandlers, internal::EncodeRuntimeHandlerValue(
                                                       {"a", false, false, platform})) == readable);
    const std::string uid = Bytes(kMaxFileNameBytes + more);
    BOOST_TEST(IsReadable(Table::kUsernsMappings,
                          internal::EncodeUsernsMapping({uid, 65536, 65536, {}, 1})) == readable);
    BOOST_TEST(IsReadable(Table::kUsernsBlocks, internal::EncodeUsernsBlock({uid, 1})) == readable);
    internal::UsernsHeld held;
    held.pod.pod_uid = uid;
    BOOST_TEST(IsReadable(Table::kUsernsHeld, internal::EncodeUsernsHeld(held, kNewestSchema)) ==
               readable);
    held.pod.pod_uid = "a-pod";
    for (const HostIdRange range : {HostIdRange{kHostIds + more, 1}, {65536, kHostIds + more}}) {
      held.pod.ranges = {range};
      BOOST_TEST(IsReadable(Table::kUsernsHeld, internal::EncodeUsernsHeld(held, kNewestSchema)) ==
                 readable);
    }
  }
}

BOOST_AUTO_TEST_CASE(a_pulled_record_above_the_limits_is_damaged) {
  namespace v1 = schema::v1;
  namespace v2 = schema::v2;
  struct Sizes {
    std::size_t ref = 1, handler = 1, name = 1, secrets = 1, uid = 1, entries = 1;
  };
  const auto readable = [](const Sizes& sizes) {
    flatbuffers::FlatBufferBuilder builder;
    const auto text = [&](std::size_t size) { return builder.CreateString(Bytes(size)); };
    const auto secret =
        v1::CreateSecret(builder, nullptr, text(sizes.uid), text(1), text(1), nullptr);
    const auto secrets =
        builder.CreateVector(std::vector<flatbuffers::Offset<v1::Secret>>(sizes.secrets, secret));
    std::vector<flatbuffers::Offset<v1::Entry>> entries;
    for (std::size_t i = 0; i < sizes.entries; ++i) {
      const std::string number = std::to_string(10'000 + i);
      const auto name = builder.CreateString(Bytes(sizes.name - 1) +
                                             number.substr(5 - (sizes.entries > 1 ? 5 : 1)));
      entries.push_back(v1::CreateEntry(builder, name, false, secrets));
    }
    builder.Finish(v2::CreatePulledRecord(builder, nullptr, text(sizes.ref), nullptr, 1,
                                          builder.CreateVector(entries), text(sizes.handler)));
    const auto span = builder.GetBufferSpan();
    const std::vector<std::uint8_t> payload(span.begin(), span.end());
    BOOST_TEST(internal::DecodePulledRecordValue(payload).has_value() ==
               IsReadable(Table::kPulled, payload));
    return IsReadable(Table::kPulled, payload);
  };
  for (const std::size_t more : {0U, 1U}) {
    BOOST_TEST(readable({.ref = kMaxImageRefBytes + more}) == (more == 0));
    BOOST_TEST(readable({.handler = kMaxRuntimeHandlerBytes + more}) == (more == 0));
    BOOST_TEST(readable({.name = kMaxImageBytes + more}) == (more == 0));
    BOOST_TEST(readable({.secrets = kMaxCredentialsPerName + more}) == (more == 0));
    BOOST_TEST(readable({.uid = kMaxCoordinateBytes + more}) == (more == 0));
    BOOST_TEST(readable({.entries = kMaxImageNamesPerRecord + more}) == (more == 0));
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
