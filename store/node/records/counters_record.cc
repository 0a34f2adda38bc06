#include "store/node/records/counters_record.h"

#include <algorithm>
#include <array>
#include <bit>

#include "schema/v8/counters_generated.h"
#include "store/engine/database/flatbuffer.h"
#include "store/engine/database/tables.h"
#include "store/engine/lmdb/env.h"

namespace waybill::internal {

namespace v8 = schema::v8;

namespace {

constexpr std::size_t kRequests = 27;
using FlatRequests = std::array<std::uint64_t, kRequests>;

static_assert(sizeof(FlatRequests) == sizeof(EnsureImageRequests));

using Pulls = decltype(StoreCounters::pulls);
using FlatPulls = std::array<std::uint64_t, kPullOutcomes * kMaxPullErrorClasses>;

static_assert(sizeof(FlatPulls) == sizeof(Pulls));

template <std::size_t N>
bool TakeNumbers(const flatbuffers::Vector<std::uint64_t>* from, std::array<std::uint64_t, N>& to) {
  if (from == nullptr || from->size() != N) return false;
  std::copy(from->begin(), from->end(), to.begin());
  return true;
}

flatbuffers::Offset<v8::Opening> EncodeOpening(flatbuffers::FlatBufferBuilder& builder,
                                               const OpeningSummary& opening) {
  const schema::v1::Time at = ToTime(opening.at);
  return v8::CreateOpening(builder, &at, opening.damage, opening.warnings, opening.modes_mended,
                           opening.import_problems, opening.id_range_problems, opening.gap_closed,
                           opening.created, opening.rebuilt, opening.commit_undone,
                           opening.witness_made, opening.clock_was_ahead, opening.after_gap);
}

OpeningSummary DecodeOpening(const v8::Opening& opening) {
  return {.at = FromTime(*opening.at()),
          .damage = opening.damage(),
          .warnings = opening.warnings(),
          .modes_mended = opening.modes_mended(),
          .import_problems = opening.import_problems(),
          .id_range_problems = opening.id_range_problems(),
          .gap_closed = opening.gap_closed(),
          .created = opening.created(),
          .rebuilt = opening.rebuilt(),
          .commit_undone = opening.commit_undone(),
          .witness_made = opening.witness_made(),
          .clock_was_ahead = opening.clock_was_ahead(),
          .after_gap = opening.after_gap()};
}

}  // namespace

std::vector<std::uint8_t> EncodeCounters(const KeptCounters& kept) {
  flatbuffers::FlatBufferBuilder builder;
  // Always the same size: LMDB overwrites it in place.
  builder.ForceDefaults(true);
  const StoreCounters& counters = kept.counters;
  const auto requests = std::bit_cast<FlatRequests>(counters.ensure_image_requests);
  const auto decisions = builder.CreateVector(counters.decisions.data(), counters.decisions.size());
  const auto checks =
      builder.CreateVector(counters.mustpull_checks.data(), counters.mustpull_checks.size());
  const auto flat = builder.CreateVector(requests.data(), requests.size());
  const auto pulls_row = std::bit_cast<FlatPulls>(counters.pulls);
  const auto pulls = builder.CreateVector(pulls_row.data(), pulls_row.size());
  flatbuffers::Offset<v8::Opening> opening;
  if (kept.opening) opening = EncodeOpening(builder, *kept.opening);
  return Finish(builder,
                v8::CreateCounters(builder, decisions, checks, flat, counters.commit_failures,
                                   counters.write_back_failures, counters.write_backs_dropped,
                                   counters.id_range_failures, opening, pulls,
                                   counters.pull_nanoseconds, counters.pull_count));
}

std::optional<KeptCounters> DecodeCounters(std::span<const std::uint8_t> payload) {
  const auto* const root = Root<v8::Counters>(payload);
  if (root == nullptr) return std::nullopt;
  KeptCounters kept;
  FlatRequests requests{};
  if (!TakeNumbers(root->decisions(), kept.counters.decisions) ||
      !TakeNumbers(root->mustpull_checks(), kept.counters.mustpull_checks) ||
      !TakeNumbers(root->ensure_image_requests(), requests)) {
    return std::nullopt;
  }
  kept.counters.ensure_image_requests = std::bit_cast<EnsureImageRequests>(requests);
  kept.counters.commit_failures = root->commit_failures();
  kept.counters.write_back_failures = root->write_back_failures();
  kept.counters.write_backs_dropped = root->write_backs_dropped();
  kept.counters.id_range_failures = root->id_range_failures();
  // Absent: of an earlier version.
  FlatPulls pulls{};
  if (root->pulls() != nullptr && !TakeNumbers(root->pulls(), pulls)) return std::nullopt;
  kept.counters.pulls = std::bit_cast<Pulls>(pulls);
  kept.counters.pull_nanoseconds = root->pull_nanoseconds();
  kept.counters.pull_count = root->pull_count();
  if (const v8::Opening* const opening = root->opening()) {
    if (opening->at() == nullptr) return std::nullopt;
    kept.opening = DecodeOpening(*opening);
  }
  return kept;
}

std::optional<KeptCounters> OpenCounters(Value value) {
  const Opened opened = OpenEnvelope(kCountersKey, value, RecordKind::kCounters, kNewest.header);
  return opened.state == EnvelopeState::kSound ? DecodeCounters(opened.payload) : std::nullopt;
}

bool CountersVerify(Value value) { return OpenCounters(value).has_value(); }

FoundCounters FindCounters(MDB_txn* txn, MDB_dbi main) {
  MDB_val k = lmdb::ToVal(kCountersKey.span());
  MDB_val v{};
  const int rc = mdb_get(txn, main, &k, &v);
  if (rc == MDB_NOTFOUND) return {};
  FoundCounters found;
  if (rc == MDB_SUCCESS) found.kept = OpenCounters(lmdb::FromVal(v));
  found.damaged = !found.kept.has_value();
  return found;
}

}  // namespace waybill::internal
