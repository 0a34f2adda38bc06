// Statistics, metrics, verification, trust.

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "store/database/open_pulls_table.h"
#include "store/database/pulled_record.h"
#include "store/database/uuid.h"
#include "store/node_store/impl.h"
#include "store/recovery/inspect.h"
#include "store/trust/journal.h"

namespace waybill {

using internal::ReaderPool;
using internal::StoreTxn;
using internal::Table;

namespace {
constexpr int kVerifyTries = 5;
constexpr double kPercent = 100.0;
}  // namespace

Result<Statistics> NodeStore::GetStatistics() const {
  return Guarded([&]() -> Result<Statistics> {
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the header");
    const internal::OpenedDatabase& database = *impl_->database();
    const internal::State& state = snapshot.state();
    const lmdb::Env::Info info = database.env->GetInfo();
    Statistics statistics;
    statistics.store_uuid = internal::EncodeUuid(database.identity.uuid);
    statistics.schema_version = database.identity.schema_version;
    statistics.commit_sequence = state.commit_sequence;
    for (const internal::TableSpec& spec : internal::kTables) {
      if (spec.statistic != nullptr) statistics.*spec.statistic = state.digest(spec.table).count;
    }
    if (statistics.intents > 0) {
      const auto pulls =
          ListIn(*impl_, snapshot, Table::kIntents, "the open pulls", internal::DecodeOpenPull);
      if (!pulls) return pulls.error();
      statistics.intents -= static_cast<std::uint64_t>(std::count_if(
          pulls->begin(), pulls->end(), [](const OpenPull& pull) { return pull.nothing_at != 0; }));
    }
    auto nondefault = impl_->CountNondefault(snapshot);
    if (!nondefault) return nondefault.error();
    statistics.nondefault_handler_records = *nondefault;
    statistics.distrustful = state.distrustful;
    statistics.map_bytes = info.map_bytes;
    statistics.used_bytes = (info.last_page + 1) * info.page_size;
    statistics.readers = info.readers;
    statistics.max_readers = info.max_readers;
    return statistics;
  });
}

// Walks the table once a commit.
Result<std::uint64_t> NodeStore::Impl::CountNondefault(const ReaderPool::Lease& snapshot) {
  const std::uint64_t commit = snapshot.state().commit_sequence;
  const std::scoped_lock lock(nondefault_mutex);
  if (nondefault_at == commit) return nondefault_records;
  std::uint64_t count = 0;
  const bool walked =
      snapshot.ForEach(internal::SpecOf(Table::kPulled), [&](internal::Payload one) {
        if (!one.empty() && !internal::PulledRecordView(one).runtime_handler().empty()) ++count;
      });
  if (!walked) return Unreadable("the records");
  nondefault_records = count;
  nondefault_at = commit;
  return count;
}

Metrics NodeStore::GetMetrics() const {
  Metrics metrics;
  for (std::size_t i = 0; i < metrics.mustpull_checks.size(); ++i) {
    metrics.mustpull_checks[i] = impl_->readers.Counter(i);
  }
  for (std::size_t policy = 0; policy < 3; ++policy) {
    for (std::size_t present = 0; present < 3; ++present) {
      for (std::size_t required = 0; required < 3; ++required) {
        metrics.ensure_image_requests[policy][present][required] =
            impl_->ensure_requests[policy][present][required].load(std::memory_order_relaxed);
      }
    }
  }
  if (const auto statistics = GetStatistics()) {
    metrics.ondisk_pullintents = statistics->intents;
    metrics.ondisk_pulledrecords = statistics->records;
    metrics.nondefault_runtime_handler_images = statistics->nondefault_handler_records;
    metrics.preloaded_images = statistics->ledger_entries;
    if (impl_->rules == Rules::kClosed) metrics.open_pulls = statistics->intents;
    metrics.inmemory_pullintents_usage_percent =
        kPercent * static_cast<double>(impl_->in_flight.size()) / kMaxInFlightImages;
    if (statistics->map_bytes != 0) {
      metrics.inmemory_pulledrecords_usage_percent = kPercent *
                                                     static_cast<double>(statistics->used_bytes) /
                                                     static_cast<double>(statistics->map_bytes);
    }
  }
  return metrics;
}

namespace {

// Metrics as Prometheus text, under the names and labels of the kubelet's code (which has one more
// underscore in kubelet_image_manager_ensure_image_requests_total than the text of KEP-2535).
constexpr std::array<std::string_view, 3> kPullPolicyLabels = {"always", "ifnotpresent", "never"};
constexpr std::array<std::string_view, 3> kTruthLabels = {"false", "true", "unknown"};

void Header(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
  out += "# HELP " + std::string(name) + " " + std::string(help) + "\n";
  out += "# TYPE " + std::string(name) + " " + std::string(type) + "\n";
}

void Gauge(std::string& out, std::string_view name, std::string_view help, double value) {
  Header(out, name, "gauge", help);
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  out += std::string(name) + " " + std::string(digits, end) + "\n";
}

}  // namespace

std::string Metrics::ToPrometheusText() const {
  std::string out;
  constexpr std::string_view kChecks = "kubelet_imagemanager_image_mustpull_checks_total";
  Header(out, kChecks, "counter", "Checks whether an image must be pulled, by result.");
  for (std::size_t i = 1; i < mustpull_checks.size(); ++i) {
    out += std::string(kChecks) + "{result=\"" +
           std::string(CheckResultName(static_cast<CheckResult>(i))) + "\"} " +
           std::to_string(mustpull_checks[i]) + "\n";
  }
  constexpr std::string_view kEnsure = "kubelet_image_manager_ensure_image_requests_total";
  Header(out, kEnsure, "counter",
         "Requests for an image, by pull policy, presence on the node, and whether a pull was "
         "needed.");
  for (std::size_t policy = 0; policy < 3; ++policy) {
    for (std::size_t present = 0; present < 3; ++present) {
      for (std::size_t required = 0; required < 3; ++required) {
        out += std::string(kEnsure) + "{pull_policy=\"" + std::string(kPullPolicyLabels[policy]) +
               "\",present_locally=\"" + std::string(kTruthLabels[present]) +
               "\",pull_required=\"" + std::string(kTruthLabels[required]) + "\"} " +
               std::to_string(ensure_image_requests[policy][present][required]) + "\n";
      }
    }
  }
  Gauge(out, "kubelet_imagemanager_ondisk_pullintents", "Pull intents on disk.",
        static_cast<double>(ondisk_pullintents));
  Gauge(out, "kubelet_imagemanager_ondisk_pulledrecords", "Pulled records on disk.",
        static_cast<double>(ondisk_pulledrecords));
  Gauge(out, "kubelet_imagemanager_inmemory_pullintents_usage_percent",
        "Images in flight, of the most there may be.", inmemory_pullintents_usage_percent);
  Gauge(out, "kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
        "Pages of the memory map in use.", inmemory_pulledrecords_usage_percent);
  Gauge(out, "waybill_nondefault_runtime_handler_images",
        "Images on record under another runtime handler than the default (KEP-4216).",
        static_cast<double>(nondefault_runtime_handler_images));
  Gauge(out, "waybill_preloaded_images", "Images in the ledger of preloaded ones.",
        static_cast<double>(preloaded_images));
  Gauge(out, "waybill_open_pulls", "Pulls that may still bring an image, under the closed rules.",
        static_cast<double>(open_pulls));
  return out;
}

Result<VerifyReport> NodeStore::Verify() const {
  return Guarded([&]() -> Result<VerifyReport> {
    const std::filesystem::path path = impl_->directory / "data.mdb";
    internal::Inspection inspection;
    const auto inspect = [&]() -> Result<void> {
      auto file = internal::OpenFile(path, O_RDONLY);
      if (!file) return file.error();
      auto inspected = internal::InspectFile(*file);
      if (!inspected) return inspected.error();
      inspection = std::move(*inspected);
      return {};
    };
    if (impl_->committer) {
      if (auto r = impl_->committer->WithoutCommits(inspect); !r) return r.error();
    } else {
      const auto sequence = [this] {
        const ReaderPool::Lease snapshot = impl_->Read();
        return snapshot ? snapshot.state().commit_sequence : 0;
      };
      // A commit while the file is read looks like damage: believe it only if nothing was
      // committed.
      for (int i = 0;; ++i) {
        const std::uint64_t before = sequence();
        if (auto r = inspect(); !r) return r.error();
        if (inspection.sound || (!inspection.moved && before == sequence())) break;
        if (i == kVerifyTries) {
          return Error{
              ErrorCode::kIo,
              "the owner of " + impl_->directory.string() + " writes too often to verify it",
              "try again later"};
        }
      }
    }
    if (inspection.id_ranges_disagree) {
      inspection.sound = false;
      inspection.findings.push_back(
          "the table of blocks of host IDs contradicts the ID mappings; the next owner that opens "
          "the store mends it");
    }
    if (inspection.index_disagrees) {
      inspection.sound = false;
      inspection.findings.push_back(
          "the index of credentials has not what the records have; the next owner that opens the "
          "store makes it anew");
    }
    return VerifyReport{inspection.sound, inspection.pages, inspection.values,
                        std::move(inspection.findings)};
  });
}

Result<TrustState> NodeStore::GetTrust() const {
  return Guarded([&]() -> Result<TrustState> {
    const ReaderPool::Lease snapshot = impl_->Read();
    if (!snapshot) return impl_->NoSnapshot(snapshot, "the header");
    MDB_val k = lmdb::ToVal(internal::kTrustKey.span());
    MDB_val v{};
    if (mdb_get(snapshot.txn(), snapshot.main_dbi(), &k, &v) != MDB_SUCCESS) {
      return impl_->Unreadable("the trust journal");
    }
    const internal::Opened opened =
        internal::OpenEnvelope(internal::kTrustKey, lmdb::FromVal(v),
                               internal::RecordKind::kTrustJournal, internal::kNewest.header);
    auto journal = opened.state == internal::EnvelopeState::kSound
                       ? internal::DecodeJournal(opened.payload)
                       : std::optional<internal::Journal>();
    if (!journal) return impl_->Unreadable("the trust journal");
    return TrustState{snapshot.state().distrustful, std::move(*journal)};
  });
}

}  // namespace waybill
