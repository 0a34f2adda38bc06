// Values with correct checksums that are larger than anything the library writes: from tampering,
// or from another program. They count as damaged everywhere.

#include <flatbuffers/flatbuffers.h>

#include <boost/test/unit_test.hpp>
#include <source_location>
#include <string>
#include <vector>

#include "schema/v2/image_generated.h"
#include "store/base/options.h"
#include "store/disk/envelope.h"
#include "store/disk/key.h"
#include "store/disk/lmdb/env.h"
#include "store/disk/tables.h"
#include "store/images/image_row.h"
#include "store/images/other_rows.h"
#include "store/images/pull_row.h"
#include "store/maintenance.h"
#include "store/pods/host_ids.h"
#include "tests/support/expect_error.h"
#include "tests/support/inspect_path.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/rows.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(stored_bounds)

namespace {

using internal::Key16;
using internal::Table;

// An intent larger than any call accepts: a 64 KiB image that is its own repository.
std::string LongImage() { return "example.com/" + std::string(std::size_t{64} << 10U, 'a'); }

std::vector<std::byte> SealedIntent(const Key16& key, const std::string& image) {
  return internal::Seal(key, internal::RecordKind::kPullIntent,
                        internal::SpecOf(Table::kIntents).form,
                        internal::EncodeUnresolvedPull({.id = PullId{1}, .image = image}));
}

void PutRaw(const std::filesystem::path& directory, Table table, const Key16& key,
            const std::vector<std::byte>& value) {
  const RawStore raw(directory);
  RawTxn txn(raw);
  txn.Put(txn.Table(internal::LiesInMain(table) ? "" : internal::SpecOf(table).name),
          ToText(lmdb::ToVal(key.span())), ToText(lmdb::ToVal(value)));
  txn.Commit();
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

std::string Bytes(std::size_t size) { return std::string(size, 'x'); }

}  // namespace

BOOST_AUTO_TEST_CASE(a_rebuild_meets_an_intent_above_the_limits) {
  for (const Mode rules : kBothRules) {
    ScratchStore store(rules);
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Must(store->RecordPullIntent({.image = "registry.example.com/other:v1"}));
    store.Stop();
    PutLongIntent(store.directory());
    store.Start();
    const OpeningReport& report = store->recovery_report();
    BOOST_TEST(report.set_aside);
    BOOST_TEST(report.distrustful);
    BOOST_TEST(report.records_carried == 1U);
    BOOST_TEST(report.intents_carried == 1U);
    BOOST_TEST(Must(store->Verify()).sound);
  }
}

BOOST_AUTO_TEST_CASE(decoders_take_what_is_at_the_limits_and_nothing_above) {
  for (const std::size_t more : {0U, 1U}) {
    const auto check = [&](Table table, const std::vector<std::uint8_t>& payload,
                           const std::source_location& at = std::source_location::current()) {
      BOOST_TEST(IsReadable(table, payload) == (more == 0), "line " << at.line());
    };
    UnresolvedPull ended{.id = PullId{7}, .state = PullState::kUnknown, .ended = Timestamp{}};
    ended.ended_at.nanoseconds = more == 0 ? 0 : -1;
    for (const UnresolvedPull& one :
         {ended, UnresolvedPull{.id = PullId{1U - more}},
          UnresolvedPull{.id = PullId{7}, .image = Bytes(kMaxImageBytes + more)},
          UnresolvedPull{.id = PullId{7},
          .image = "a",
          .runtime_handler = Bytes(kMaxRuntimeHandlerBytes + more)}}) {
      check(Table::kIntents, internal::EncodeUnresolvedPull(one));
    }
    check(Table::kQuarantine,
          internal::EncodeQuarantineValue(
              {QuarantineKind::kImage, std::string(64, 'a'), Bytes(kMaxPathBytes + more), "", {}}));
    for (const ImagePreloadedRecord& record : std::vector<ImagePreloadedRecord>{
             {Bytes(kMaxImageRefBytes + more), {}, {}},
             {"ref", {}, {Bytes(kMaxImageBytes + more)}},
             {"ref", {}, std::vector<std::string>(kMaxImageNamesPerRecord + more, "image")}}) {
      check(Table::kPreloaded, internal::EncodePreloadedValue(record));
    }
    Platform many_features{"amd64", "linux"};
    many_features.os_features.assign(kMaxOsFeatures + more, "f");
    Platform long_feature = many_features;
    long_feature.os_features = {Bytes(kMaxPlatformFieldBytes + more)};
    for (const RuntimeHandler& handler :
         std::vector<RuntimeHandler>{{Bytes(kMaxRuntimeHandlerBytes + more), false, false, {}},
                                     {"a", false, false, many_features},
                                     {"a", false, false, long_feature}}) {
      check(Table::kRuntimeHandlers, internal::EncodeRuntimeHandlerValue(handler));
    }
    const std::string uid = Bytes(kMaxFileNameBytes + more);
    internal::HostIds row{.pod_uid = uid, .range = {65536, 65536}};
    check(Table::kHostIds, internal::EncodeHostIds(row));
    row = {.pod_uid = "a-pod", .held = QuarantinedPod{}};
    for (const HostIdRange range : {HostIdRange{kHostIds + more, 1}, {65536, kHostIds + more}}) {
      row.held->ranges = {range};
      check(Table::kHostIds, internal::EncodeHostIds(row));
    }
    // The first block, the last one, a part of one, and nothing at all.
    for (const HostIdRange range : {HostIdRange{65536 - more * 65536, 65536},
                                    {kHostIds - 2 * 65536, 65536 + more * 65536},
                                    {65536, 65536 - more},
                                    {65536 + more, 65536},
                                    {65536, (1 - more) * 65536}}) {
      row = {.pod_uid = "a-pod", .range = range};
      check(Table::kHostIds, internal::EncodeHostIds(row));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_row_above_the_limits_is_damaged) {
  namespace v1 = schema::v1;
  namespace v2 = schema::v2;
  struct Sizes {
    std::size_t subject = 1, ref = 1, handler = 1, name = 1, secrets = 1, uid = 1, entries = 1,
                of = 1, alias = 1, aliases = 1, preloaded_name = 1, preloaded_names = 1, source = 1,
                reason = 1, taken_for = 1;
  };
  const auto readable = [](const Sizes& sizes) {
    flatbuffers::FlatBufferBuilder builder;
    const auto text = [&](std::size_t size) { return builder.CreateString(Bytes(size)); };
    const auto texts = [&](std::size_t count, std::size_t size) {
      return builder.CreateVectorOfStrings(std::vector<std::string>(count, Bytes(size)));
    };
    const v1::Credential none;
    const auto secret = v1::CreateSecret(builder, builder.CreateString(Bytes(sizes.of) + "/n"),
                                         &none, 0, 0, text(sizes.uid), text(1));
    const auto secrets =
        builder.CreateVector(std::vector<flatbuffers::Offset<v1::Secret>>(sizes.secrets, secret));
    std::vector<flatbuffers::Offset<v1::Entry>> entries;
    for (std::size_t i = 0; i < sizes.entries; ++i) {
      const std::string number = std::to_string(10'000 + i);
      const auto name = builder.CreateString(Bytes(sizes.name - 1) +
                                             number.substr(5 - (sizes.entries > 1 ? 5 : 1)));
      entries.push_back(v1::CreateEntry(builder, name, secrets));
    }
    const v1::Time since;
    const auto preloaded = v1::CreatePreloaded(builder, 0, 1, &since,
                                               texts(sizes.preloaded_names, sizes.preloaded_name),
                                               text(sizes.source), text(sizes.reason));
    const auto alias = v1::CreateAlias(builder, text(1), texts(1, sizes.taken_for), 1);
    const auto subject = text(sizes.subject);
    const auto ref = text(sizes.ref);
    const auto handler = text(sizes.handler);
    const auto aliases = texts(sizes.aliases, sizes.alias);
    const auto all = builder.CreateVector(entries);
    const v1::Fixed fixed;
    v2::ImageBuilder image(builder);
    image.add_fixed(&fixed);
    image.add_subject(subject);
    image.add_ref(ref);
    image.add_entries(all);
    image.add_preloaded(preloaded);
    image.add_alias(alias);
    image.add_alias_texts(aliases);
    image.add_runtime_handler(handler);
    builder.Finish(image.Finish());
    const auto span = builder.GetBufferSpan();
    const std::vector<std::uint8_t> payload(span.begin(), span.end());
    BOOST_TEST(internal::DecodeImage(payload).has_value() == IsReadable(Table::kImages, payload));
    return IsReadable(Table::kImages, payload);
  };
  for (const std::size_t more : {0U, 1U}) {
    for (const Sizes& sizes : std::vector<Sizes>{{.subject = kMaxImageRefBytes + more},
                                                 {.ref = kMaxImageRefBytes + more},
                                                 {.handler = kMaxRuntimeHandlerBytes + more},
                                                 {.name = kMaxImageBytes + more},
                                                 {.secrets = kMaxCredentialsPerName + more},
                                                 {.uid = kMaxCoordinateBytes + more},
                                                 {.entries = kMaxImageNamesPerRecord + more},
                                                 {.of = kMaxCoordinateBytes + more},
                                                 {.alias = kMaxImageRefBytes + more},
                                                 {.aliases = kMaxSpellingsPerImage + more},
                                                 {.preloaded_name = kMaxImageBytes + more},
                                                 {.preloaded_names = kMaxNamesPerImage + more},
                                                 {.source = kMaxReasonBytes + more},
                                                 {.reason = kMaxReasonBytes + more},
                                                 {.taken_for = kMaxImageRefBytes + more}}) {
      const auto at = &sizes;
      BOOST_TEST(readable(*at) == (more == 0));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
