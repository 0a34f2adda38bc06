// What a store counts and holds, family by family. The kubelet's names are those of its code, which
// has one more underscore in kubelet_image_manager_ensure_image_requests_total than the text of
// KEP-2535.

#include "store/base/metrics.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/go_json.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/disk/trust.h"
#include "waybill/limits.h"

namespace waybill {

using internal::ReaderPool, internal::Table;

Result<internal::RecordCounts> NodeStore::Impl::CountRecords(const ReaderPool::Lease& snapshot) {
  const internal::TableDigest& digest = snapshot.state().digest(Table::kImages);
  const std::scoped_lock lock(counted_mutex);
  if (counted_records && counted_records->of == digest) return *counted_records;
  internal::RecordCounts counts;
  counts.of = digest;
  const auto count = [&counts](internal::Payload one) {
    if (one.empty()) return;
    const internal::ImageView record(one);
    if (record.has_preloaded()) ++counts.preloaded;
    if (record.has_aliases()) ++counts.with_aliases;
    if (!record.is_recorded()) return;
    ++counts.by_handler[std::string(record.runtime_handler())];
    if (record.is_closed()) ++counts.closed;
    const auto proofs = record.CountProofs();
    counts.undated += proofs.undated;
    counts.ending += proofs.ending;
    for (std::size_t i = 0; i < counts.by_checker.size(); ++i) {
      counts.by_checker[i] += proofs.by_checker[i];
    }
    if (proofs.oldest != 0 && (counts.oldest_proof == 0 || proofs.oldest < counts.oldest_proof)) {
      counts.oldest_proof = proofs.oldest;
    }
  };
  if (!snapshot.ForEach(internal::SpecOf(Table::kImages), count)) {
    return Unreadable("the records");
  }
  counted_records = counts;
  return counts;
}

std::optional<double> ReverificationRatio(const EnsureImageRequests& requests) {
  constexpr std::size_t kAlways = 0;
  constexpr std::size_t kUnknown = 2;
  std::uint64_t all = 0;
  std::uint64_t again = 0;
  for (std::size_t policy = kAlways + 1; policy < requests.size(); ++policy) {
    for (std::size_t present = 0; present < kUnknown; ++present) {
      for (std::size_t required = 0; required < kUnknown; ++required) {
        all += requests[policy][present][required];
      }
    }
    again += requests[policy][1][1];
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(again) / static_cast<double>(all);
}

namespace {

constexpr std::string_view kPullPolicyLabels[] = {"always", "ifnotpresent", "never"};
constexpr std::string_view kTruthLabels[] = {"false", "true", "unknown"};
// No handler can have this name: it is a DNS label, or at least has no parenthesis in CRI.
constexpr std::string_view kDefaultHandler = "(default)";

double SecondsOf(Timestamp time) {
  return static_cast<double>(time.seconds) + static_cast<double>(time.nanoseconds) / 1e9;
}

// Prometheus takes UTF-8 only.
std::string AsUtf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t length = Utf8SequenceLength(text);
    valid += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return valid;
}

using Labels = std::vector<std::pair<std::string, std::string>>;

class Writer {
 public:
  void Family(std::string_view name, std::string_view type, std::string_view help) {
    families_.push_back({std::string(name), std::string(type), std::string(help), {}});
  }
  template <typename Number>
  void Series(Labels labels, Number value) {
    families_.back().series.push_back({std::move(labels), static_cast<double>(value)});
  }
  template <typename Number>
  void Gauge(std::string_view name, std::string_view help, Number value) {
    Family(name, "gauge", help);
    Series({}, value);
  }
  void Counter(std::string_view name, std::string_view help, std::uint64_t value) {
    Family(name, "counter", help);
    Series({}, value);
  }
  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

// What gauges say, read before any is written.
struct Held {
  StoreCounts counts = {};
  internal::RecordCounts records = {};
  Mode mode = Mode::kStrict;
  std::array<std::uint64_t, kMaxTrustKinds> distrust{};  // [0]: of kinds that nobody here knows
  std::uint64_t presumed = 0;
  std::array<std::uint64_t, 4> open_pulls{};  // by PullState; [0]: of anything
  std::optional<PoolUse> ranges = {};
};

Result<Held> ReadHeld(const NodeStore& store, NodeStore::Impl& impl) {
  Held held{.counts = TRY(store.GetStatistics())};
  {
    const ReaderPool::Lease snapshot = impl.Read();
    if (!snapshot) return impl.NoSnapshot(snapshot, "the records");
    held.records = TRY(impl.CountRecords(snapshot));
    held.mode = internal::ModeIn(snapshot);
  }
  const auto trust = TRY(store.GetTrust());
  for (const internal::Distrust& why : internal::ReasonsIn(trust.journal)) {
    const auto number = static_cast<std::size_t>(why.kind);
    ++held.distrust[number < kMaxTrustKinds && HasWord(why.kind) ? number : 0];
  }
  if (held.mode == Mode::kStrict) {
    const auto ledger = TRY(store.ListLedger());
    held.presumed =
        static_cast<std::uint64_t>(std::ranges::count_if(ledger, [](const PreloadedImage& entry) {
          return IsPresumed(entry) && !entry.absent_since;
        }));
    for (const UnresolvedPull& pull : TRY(store.ListOpenPulls())) {
      const auto state = static_cast<std::size_t>(pull.state);
      ++held.open_pulls[!pull.anything && state < held.open_pulls.size() ? state : 0];
    }
  }
  if (impl.user_namespaces.enabled) held.ranges = TRY(store.GetUserNamespaceStatistics());
  return held;
}

// What the readers of this process decided.
struct Decided {
  explicit Decided(const internal::Counters& counters) {
    for (std::size_t result = 0; result < by_result.size(); ++result) {
      for (std::size_t reason = 0; reason < kMaxReasons; ++reason) {
        const std::uint64_t count = counters[internal::CounterOf(static_cast<CheckResult>(result),
                                                                 static_cast<Reason>(reason))];
        by_result[result] += count;
        by_reason[reason] += count;
      }
    }
  }
  std::array<std::uint64_t, 5> by_result{};  // [kNotCounted] stays 0
  std::array<std::uint64_t, kMaxReasons> by_reason{};
};

EnsureImageRequests RequestsOf(const NodeStore::Impl& impl) {
  EnsureImageRequests requests{};
  for (std::size_t policy = 0; policy < requests.size(); ++policy) {
    for (std::size_t present = 0; present < std::size(kTruthLabels); ++present) {
      for (std::size_t required = 0; required < std::size(kTruthLabels); ++required) {
        requests[policy][present][required] =
            impl.ensure_requests[policy][present][required].load(std::memory_order_relaxed);
      }
    }
  }
  return requests;
}

void WriteChecks(std::string_view name, const Decided& decided, Writer& out) {
  out.Family(name, "counter", "Checks whether an image must be pulled, by result.");
  for (std::size_t i = 1; i < decided.by_result.size(); ++i) {
    out.Series({{"result", std::string(CheckResultName(static_cast<CheckResult>(i)))}},
               decided.by_result[i]);
  }
}

void WriteRequests(std::string_view name, const EnsureImageRequests& requests, Writer& out) {
  out.Family(name, "counter",
             "Requests for an image, by pull policy, presence on the node, and whether a pull "
             "was needed.");
  for (std::size_t policy = 0; policy < requests.size(); ++policy) {
    for (std::size_t present = 0; present < std::size(kTruthLabels); ++present) {
      for (std::size_t required = 0; required < std::size(kTruthLabels); ++required) {
        out.Series({{"pull_policy", std::string(kPullPolicyLabels[policy])},
                    {"present_locally", std::string(kTruthLabels[present])},
                    {"pull_required", std::string(kTruthLabels[required])}},
                   requests[policy][present][required]);
      }
    }
  }
}

// The store has no cache. Instead of a cache's use, two say how much of a bound is in use.
void WriteKubelets(const NodeStore::Impl& impl, const StoreCounts& counts, Writer& out) {
  constexpr double kPercent = 100.0;
  out.Gauge("kubelet_imagemanager_ondisk_pullintents", "Pull intents on disk.", counts.intents);
  out.Gauge("kubelet_imagemanager_ondisk_pulledrecords", "Pulled records on disk.", counts.records);
  out.Gauge("kubelet_imagemanager_inmemory_pullintents_usage_percent",
            "Images in flight, of the most there may be.",
            kPercent * static_cast<double>(impl.in_flight.size()) / kMaxInFlightImages);
  out.Gauge("kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
            "Pages of the memory map in use.",
            counts.map_bytes == 0 ? 0.0
                                  : kPercent * static_cast<double>(counts.used_bytes) /
                                        static_cast<double>(counts.map_bytes));
}

void WriteRecords(const Held& held, Writer& out) {
  out.Family("waybill_records", "gauge", "Images on record, by runtime handler.");
  // Invalid names may become the same one.
  std::map<std::string, std::uint64_t> by_label = {{std::string(kDefaultHandler), 0}};
  for (const auto& [handler, records] : held.records.by_handler) {
    by_label[handler.empty() ? std::string(kDefaultHandler) : AsUtf8(handler)] += records;
  }
  for (const auto& [handler, records] : by_label) {
    out.Series({{"runtime_handler", handler}}, records);
  }
  out.Gauge("waybill_nondefault_runtime_handler_images",
            "Images on record under another runtime handler than the default (KEP-4216).",
            held.counts.nondefault_handler_records);
  out.Gauge("waybill_closed_images",
            "Images on record that are closed since nobody knows where they came from.",
            held.records.closed);
  out.Gauge("waybill_preloaded_images", "Images in the ledger of preloaded ones.",
            held.counts.ledger_entries);
  out.Gauge("waybill_presumed_images",
            "Of these, images that a first start presumed preloaded, and nobody settled.",
            held.presumed);
  // A forgotten credential counts until it is taken out of its record.
  if (held.records.oldest_proof != 0) {
    out.Gauge("waybill_oldest_credential_timestamp_seconds",
              "When the oldest credential on record was proven, of those for which that is known.",
              held.records.oldest_proof);
  }
  out.Gauge("waybill_undated_credentials",
            "Credentials on record for which it is not known when they were proven.",
            held.records.undated);
  out.Family("waybill_credentials", "gauge",
             "Credentials on record, by who checked them when a pull proved them.");
  for (std::size_t i = 0; i < held.records.by_checker.size(); ++i) {
    out.Series({{"checker", std::string(WordOf(static_cast<VerifiedBy>(i)))}},
               held.records.by_checker[i]);
  }
  out.Gauge("waybill_revocations", "What was forgotten, and must not come back.",
            held.counts.revocations);
  out.Gauge("waybill_quarantine_entries",
            "Images that are closed since their record or intent could not be read.",
            held.counts.quarantine_entries);
  out.Gauge("waybill_open_pulls", "Pulls that may still bring an image, under the closed rules.",
            held.mode == Mode::kStrict ? held.counts.intents : 0);
  out.Family("waybill_open_pulls_by_state", "gauge",
             "Pulls that may still bring an image, under the closed rules, by how they ended; "
             "anything: those that can't be named, which may bring any image.");
  for (const PullState state : {PullState::kRunning, PullState::kFailed, PullState::kUnknown}) {
    out.Series({{"state", std::string(WordOf(state))}},
               held.open_pulls[static_cast<std::size_t>(state)]);
  }
  out.Series({{"state", "anything"}}, held.open_pulls[0]);
}

void WriteTrust(const Held& held, Writer& out) {
  out.Gauge("waybill_distrustful",
            "Whether something was lost, so that no image is judged until an operator clears it.",
            held.counts.distrustful);
  out.Family("waybill_distrust_reasons", "gauge",
             "Reasons for distrust in force, by kind; unknown: of a later version.");
  for (std::size_t i = 0; i < kMaxTrustKinds; ++i) {
    const auto kind = static_cast<DegradedKind>(i);
    if (HasWord(kind)) out.Series({{"kind", std::string(WordOf(kind))}}, held.distrust[i]);
  }
}

void WriteIdRanges(const Held& held, Writer& out) {
  out.Gauge("waybill_id_mappings", "Pods with a range of host IDs (KEP-127).",
            held.counts.id_mappings);
  out.Gauge("waybill_held_pods",
            "Pods whose range of host IDs is not verified, so that they get none.",
            held.counts.held_pods);
  if (!held.ranges) return;
  out.Family("waybill_id_ranges", "gauge", "Ranges of host IDs of the pool, by state.");
  out.Series({{"state", "free"}}, held.ranges->free);
  out.Series({{"state", "used"}}, held.ranges->used);
  out.Gauge("waybill_id_ranges_refused",
            "Whether no new range is handed out, since that of a held pod is not known.",
            held.ranges->refused_because.empty() ? 0 : 1);
}

void WriteDatabase(const StoreCounts& counts, Writer& out) {
  out.Gauge("waybill_schema_version", "Schema version of the store.", counts.schema_version);
  out.Counter("waybill_commits_total", "Commits since the store was made.", counts.commit_sequence);
  out.Gauge("waybill_map_bytes", "Size of the memory map: the most that the store may have.",
            counts.map_bytes);
  out.Gauge("waybill_used_bytes", "Of the memory map, in use; free pages inside count.",
            counts.used_bytes);
  out.Gauge("waybill_reader_slots_used", "Reader slots in use, over all processes.",
            counts.readers);
  out.Gauge("waybill_reader_slots", "Reader slots that there are.", counts.max_readers);
}

void WriteCounters(const NodeStore::Impl& impl, const Decided& decided,
                   const EnsureImageRequests& requests, Writer& out) {
  WriteChecks("waybill_mustpull_checks_total", decided, out);
  out.Family("waybill_decisions_total", "counter",
             "Checks whether an image must be pulled, by reason.");
  for (std::size_t i = 0; i < internal::ReasonCount(); ++i) {
    const auto reason = static_cast<Reason>(i);
    // These two are not counted.
    if (reason == Reason::kImageAbsent || reason == Reason::kCredentialsNeeded) continue;
    out.Series({{"reason", std::string(ReasonName(reason))}}, decided.by_reason[i]);
  }
  WriteRequests("waybill_ensure_image_requests_total", requests, out);
  if (const auto ratio = ReverificationRatio(requests)) {
    out.Gauge("waybill_reverification_ratio",
              "Of the requests for an image that may use one on the node, those that had to verify "
              "a present one again (KEP-2535).",
              *ratio);
  }
  out.Counter("waybill_commit_failures_total",
              "Changes that could not be written, or may not be on disk.",
              impl.committer ? impl.committer->failures() : 0);
  out.Counter("waybill_write_back_failures_total",
              "Rotated credentials that could not be written back.",
              impl.write_back_counts.failures.load(std::memory_order_relaxed));
  out.Counter("waybill_write_backs_dropped_total",
              "Rotated credentials that were not written back since too many waited.",
              impl.write_back_counts.dropped.load(std::memory_order_relaxed));
  out.Counter("waybill_id_range_failures_total",
              "Requests for a pod with hostUsers: false that got no range of host IDs.",
              impl.id_range_failures.load(std::memory_order_relaxed));
}

// Left out where no pull was recorded: a guard's store, whose kubelet pulls.
void WritePulls(const internal::PullCounts& pulls, Writer& out) {
  const internal::PullCounts::Ended ended = pulls.ended();
  if (ended == internal::PullCounts::Ended()) return;
  const auto count = [&](PullEnd outcome, PullErrorClass error_class) {
    return ended[static_cast<std::size_t>(outcome)][static_cast<std::size_t>(error_class)];
  };
  out.Family("waybill_pulls_total", "counter",
             "Pulls that ended, by outcome, and by the class of the error that the caller told; "
             "unknown: it told none.");
  out.Series({{"outcome", "succeeded"}}, count(PullEnd::kSucceeded, PullErrorClass::kUnknown));
  for (const auto& [outcome, name] :
       {std::pair(PullEnd::kFailed, "failed"), std::pair(PullEnd::kUnknown, "unknown")}) {
    for (const PullErrorClass error_class :
         {PullErrorClass::kUnknown, PullErrorClass::kAuth, PullErrorClass::kNotFound,
          PullErrorClass::kUnavailable, PullErrorClass::kOther}) {
      out.Series({{"outcome", name}, {"class", std::string(WordOf(error_class))}},
                 count(outcome, error_class));
    }
  }
  constexpr double kNanosecondsPerSecond = 1e9;
  out.Family("waybill_pull_duration_seconds_total", "counter",
             "How long pulls took together, from the intent to the end.");
  out.Series({}, static_cast<double>(pulls.nanoseconds()) / kNanosecondsPerSecond);
  out.Counter("waybill_pull_durations_total", "The pulls in that sum.", pulls.timed());
}

void WriteOpening(const NodeStore::Impl& impl, Writer& out) {
  const OpeningReport& report = impl.report;
  out.Gauge("waybill_last_opening_timestamp_seconds", "When the owner opened the store.",
            SecondsOf(impl.opened_when));
  out.Family("waybill_last_opening_findings", "gauge",
             "What that opening found and did; its report has the words.");
  const std::pair<std::string_view, std::uint64_t> findings[] = {
      {"damage", report.findings.size()},
      {"warnings", report.warnings.size()},
      {"modesMended", report.mended.size()},
      {"importProblems", report.import.problems.size()},
      {"idRangeProblems", report.user_namespaces.problems.size()},
      {"gapClosed", report.gap_closed},
      {"created", report.created},
      {"rebuilt", report.set_aside},
      {"commitUndone", report.commit_undone},
      {"witnessMade", report.witness_made},
      {"afterGap", report.after_gap}};
  for (const auto& [kind, count] : findings) out.Series({{"kind", std::string(kind)}}, count);
}

void WriteTrace(const internal::TraceWriter& trace, Writer& out) {
  out.Family("waybill_trace_events_total", "counter",
             "Events of the owner's trace since it was opened, by what became of them.");
  out.Series({{"result", "written"}}, trace.written());
  out.Series({{"result", "dropped"}}, trace.dropped());
}

}  // namespace

// Series that are 0 are included, so that a rate is defined from the first scrape. Left out are,
// without a live owner, the kubelet's names, what owners count, and the last opening; gauges that
// could not be read; ranges without user namespaces; the age of the oldest credential without one;
// the ratio without requests.
std::vector<MetricFamily> NodeStore::GetMetrics() const {
  Writer out;
  const Impl& impl = *impl_;
  const auto held = Guarded([&] { return ReadHeld(*this, *impl_); });
  const Decided decided(impl.readers.SumCounters());
  const EnsureImageRequests requests = RequestsOf(impl);
  if (impl.is_owner()) {
    WriteChecks("kubelet_imagemanager_image_mustpull_checks_total", decided, out);
    WriteRequests("kubelet_image_manager_ensure_image_requests_total", requests, out);
    if (held) WriteKubelets(impl, held->counts, out);
  }
  out.Gauge("waybill_live_owner", "Whether these are the metrics of the process that decides.",
            impl.is_owner());
  out.Gauge("waybill_store_readable", "Whether the store could be read for these metrics.",
            held.has_value());
  if (held) {
    WriteRecords(*held, out);
    WriteTrust(*held, out);
    WriteIdRanges(*held, out);
    WriteDatabase(held->counts, out);
  }
  if (impl.is_owner()) {
    WriteCounters(impl, decided, requests, out);
    WritePulls(impl.pull_counts, out);
    WriteOpening(impl, out);
  }
  if (impl.trace) WriteTrace(*impl.trace, out);
  return out.Take();
}

Result<GetMetrics::Answer> door::Do(NodeStore& store, const GetMetrics&, const Progress&) {
  return GetMetrics::Answer{ToPrometheusText(store.GetMetrics())};
}

}  // namespace waybill
