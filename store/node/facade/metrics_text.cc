// How metrics are spelt. The kubelet's names are those of its code, which has one more underscore
// in kubelet_image_manager_ensure_image_requests_total than the text of KEP-2535.

#include <charconv>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/go_json.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "store/images/decide.h"
#include "waybill/values.h"

namespace waybill {

namespace {

constexpr std::array<std::string_view, 3> kPullPolicyLabels = {"always", "ifnotpresent", "never"};
constexpr std::array<std::string_view, 3> kTruthLabels = {"false", "true", "unknown"};
constexpr std::size_t kAlways = 0;
constexpr std::size_t kUnknownTruth = 2;
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

  void Checks(std::string_view name, std::string_view help,
              const std::array<std::uint64_t, 5>& checks) {
    Family(name, "counter", help);
    for (std::size_t i = 1; i < checks.size(); ++i) {
      Series({{"result", std::string(CheckResultName(static_cast<CheckResult>(i)))}}, checks[i]);
    }
  }
  void Requests(std::string_view name, std::string_view help, const EnsureImageRequests& requests) {
    Family(name, "counter", help);
    for (std::size_t policy = 0; policy < requests.size(); ++policy) {
      for (std::size_t present = 0; present < kTruthLabels.size(); ++present) {
        for (std::size_t required = 0; required < kTruthLabels.size(); ++required) {
          Series({{"pull_policy", std::string(kPullPolicyLabels[policy])},
                  {"present_locally", std::string(kTruthLabels[present])},
                  {"pull_required", std::string(kTruthLabels[required])}},
                 requests[policy][present][required]);
        }
      }
    }
  }

  std::vector<MetricFamily> Take() { return std::move(families_); }

 private:
  std::vector<MetricFamily> families_;
};

void WriteKubelets(const Metrics& metrics, Writer& out) {
  out.Checks("kubelet_imagemanager_image_mustpull_checks_total",
             "Checks whether an image must be pulled, by result.", metrics.mustpull_checks);
  out.Requests("kubelet_image_manager_ensure_image_requests_total",
               "Requests for an image, by pull policy, presence on the node, and whether a pull "
               "was needed.",
               metrics.ensure_image_requests);
  if (!metrics.readable) return;
  out.Gauge("kubelet_imagemanager_ondisk_pullintents", "Pull intents on disk.",
            metrics.ondisk_pullintents);
  out.Gauge("kubelet_imagemanager_ondisk_pulledrecords", "Pulled records on disk.",
            metrics.ondisk_pulledrecords);
  out.Gauge("kubelet_imagemanager_inmemory_pullintents_usage_percent",
            "Images in flight, of the most there may be.",
            metrics.inmemory_pullintents_usage_percent);
  out.Gauge("kubelet_imagemanager_inmemory_pulledrecords_usage_percent",
            "Pages of the memory map in use.", metrics.inmemory_pulledrecords_usage_percent);
}

void WriteRecords(const Metrics& metrics, Writer& out) {
  out.Family("waybill_records", "gauge", "Images on record, by runtime handler.");
  std::map<std::string, std::uint64_t> by_label;  // invalid names may become the same one
  for (const HandlerRecords& one : metrics.records_by_handler) {
    by_label[one.runtime_handler.empty() ? std::string(kDefaultHandler)
                                         : AsUtf8(one.runtime_handler)] += one.records;
  }
  for (const auto& [handler, records] : by_label) {
    out.Series({{"runtime_handler", handler}}, records);
  }
  out.Gauge("waybill_nondefault_runtime_handler_images",
            "Images on record under another runtime handler than the default (KEP-4216).",
            metrics.nondefault_runtime_handler_images);
  out.Gauge("waybill_closed_images",
            "Images on record that are closed since nobody knows where they came from.",
            metrics.closed_images);
  out.Gauge("waybill_preloaded_images", "Images in the ledger of preloaded ones.",
            metrics.preloaded_images);
  out.Gauge("waybill_presumed_images",
            "Of these, images that a first start presumed preloaded, and nobody settled.",
            metrics.presumed_images);
  if (metrics.oldest_credential) {
    out.Gauge("waybill_oldest_credential_timestamp_seconds",
              "When the oldest credential on record was proven, of those for which that is known.",
              SecondsOf(*metrics.oldest_credential));
  }
  out.Gauge("waybill_undated_credentials",
            "Credentials on record for which it is not known when they were proven.",
            metrics.undated_credentials);
  out.Family("waybill_credentials", "gauge",
             "Credentials on record, by who checked them when a pull proved them.");
  for (std::size_t i = 0; i < metrics.credentials_by_checker.size(); ++i) {
    const auto checker = static_cast<VerifiedBy>(i);
    out.Series({{"checker", std::string(WordOf(checker))}}, metrics.credentials_by_checker[i]);
  }
  out.Gauge("waybill_revocations", "What was forgotten, and must not come back.",
            metrics.revocations);
  out.Gauge("waybill_quarantine_entries",
            "Images that are closed since their record or intent could not be read.",
            metrics.quarantine_entries);
  out.Gauge("waybill_open_pulls", "Pulls that may still bring an image, under the closed rules.",
            metrics.open_pulls);
  out.Family("waybill_open_pulls_by_state", "gauge",
             "Pulls that may still bring an image, under the closed rules, by how they ended; "
             "anything: those that can't be named, which may bring any image.");
  for (const PullState state : {PullState::kRunning, PullState::kFailed, PullState::kUnknown}) {
    out.Series({{"state", std::string(WordOf(state))}},
               metrics.open_pulls_by_state[static_cast<std::size_t>(state)]);
  }
  out.Series({{"state", "anything"}}, metrics.open_pulls_by_state[0]);
}

void WriteTrust(const Metrics& metrics, Writer& out) {
  out.Gauge("waybill_distrustful",
            "Whether something was lost, so that no image is judged until an operator clears it.",
            metrics.distrustful);
  out.Family("waybill_distrust_reasons", "gauge",
             "Reasons for distrust in force, by kind; unknown: of a later version.");
  for (std::size_t i = 0; i < kMaxTrustKinds; ++i) {
    const auto kind = static_cast<DegradedKind>(i);
    if (HasWord(kind)) {
      out.Series({{"kind", std::string(WordOf(kind))}}, metrics.distrust_reasons[i]);
    }
  }
}

void WriteIdRanges(const Metrics& metrics, Writer& out) {
  out.Gauge("waybill_id_mappings", "Pods with a range of host IDs (KEP-127).", metrics.id_mappings);
  out.Gauge("waybill_held_pods",
            "Pods whose range of host IDs is not verified, so that they get none.",
            metrics.held_pods);
  if (!metrics.user_namespaces) return;
  out.Family("waybill_id_ranges", "gauge", "Ranges of host IDs of the pool, by state.");
  out.Series({{"state", "free"}}, metrics.id_ranges_free);
  out.Series({{"state", "used"}}, metrics.id_ranges_used);
  out.Gauge("waybill_id_ranges_refused",
            "Whether no new range is handed out, since that of a held pod is not known.",
            metrics.id_ranges_refused);
}

void WriteTrace(const Metrics& metrics, Writer& out) {
  if (!metrics.writes_trace) return;
  out.Family("waybill_trace_events_total", "counter",
             "Events of the owner's trace since it was opened, by what became of them.");
  out.Series({{"result", "written"}}, metrics.trace_events);
  out.Series({{"result", "dropped"}}, metrics.trace_events_dropped);
}

void WriteDatabase(const Metrics& metrics, Writer& out) {
  out.Gauge("waybill_schema_version", "Schema version of the store.", metrics.schema_version);
  out.Counter("waybill_commits_total", "Commits since the store was made.",
              metrics.commit_sequence);
  out.Gauge("waybill_map_bytes", "Size of the memory map: the most that the store may have.",
            metrics.map_bytes);
  out.Gauge("waybill_used_bytes", "Of the memory map, in use; free pages inside count.",
            metrics.used_bytes);
  out.Gauge("waybill_reader_slots_used", "Reader slots in use, over all processes.",
            metrics.readers);
  out.Gauge("waybill_reader_slots", "Reader slots that there are.", metrics.max_readers);
}

void WriteCounters(const StoreCounters& counters, Writer& out) {
  out.Checks("waybill_mustpull_checks_total", "Checks whether an image must be pulled, by result.",
             counters.mustpull_checks);
  out.Family("waybill_decisions_total", "counter",
             "Checks whether an image must be pulled, by reason.");
  for (std::size_t i = 0; i < internal::ReasonCount(); ++i) {
    const auto reason = static_cast<Reason>(i);
    // These two are not counted.
    if (reason == Reason::kImageAbsent || reason == Reason::kCredentialsNeeded) continue;
    out.Series({{"reason", std::string(ReasonName(reason))}}, counters.decisions[i]);
  }
  out.Requests("waybill_ensure_image_requests_total",
               "Requests for an image, by pull policy, presence on the node, and whether a pull "
               "was needed.",
               counters.ensure_image_requests);
  if (const auto ratio = counters.ReverificationRatio()) {
    out.Gauge("waybill_reverification_ratio",
              "Of the requests for an image that may use one on the node, those that had to verify "
              "a present one again (KEP-2535).",
              *ratio);
  }
  out.Counter("waybill_commit_failures_total",
              "Changes that could not be written, or may not be on disk.",
              counters.commit_failures);
  out.Counter("waybill_write_back_failures_total",
              "Rotated credentials that could not be written back.", counters.write_back_failures);
  out.Counter("waybill_write_backs_dropped_total",
              "Rotated credentials that were not written back since too many waited.",
              counters.write_backs_dropped);
  out.Counter("waybill_id_range_failures_total",
              "Requests for a pod with hostUsers: false that got no range of host IDs.",
              counters.id_range_failures);
}

// Left out where no pull was recorded: a guard's store, whose kubelet pulls.
void WritePulls(const StoreCounters& counters, Writer& out) {
  if (counters.pulls == StoreCounters().pulls) return;
  const auto count = [&](PullEnd outcome, PullErrorClass error_class) {
    return counters.pulls[static_cast<std::size_t>(outcome)][static_cast<std::size_t>(error_class)];
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
  out.Series({}, static_cast<double>(counters.pull_nanoseconds) / kNanosecondsPerSecond);
  out.Counter("waybill_pull_durations_total", "The pulls in that sum.", counters.pull_count);
}

void WriteOpening(const OpeningSummary& opening, Writer& out) {
  out.Gauge("waybill_last_opening_timestamp_seconds", "When the owner opened the store.",
            SecondsOf(opening.at));
  out.Family("waybill_last_opening_findings", "gauge",
             "What that opening found and did; its report has the words.");
  const std::pair<std::string_view, std::uint64_t> findings[] = {
      {"damage", opening.damage},
      {"warnings", opening.warnings},
      {"modesMended", opening.modes_mended},
      {"importProblems", opening.import_problems},
      {"idRangeProblems", opening.id_range_problems},
      {"gapClosed", opening.gap_closed},
      {"created", opening.created},
      {"rebuilt", opening.rebuilt},
      {"commitUndone", opening.commit_undone},
      {"witnessMade", opening.witness_made},
      {"clockWasAhead", opening.clock_was_ahead},
      {"afterGap", opening.after_gap}};
  for (const auto& [kind, count] : findings) out.Series({{"kind", std::string(kind)}}, count);
}

void AppendValue(double value, std::string& out) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  char digits[64];
  const bool whole = value == std::floor(value) && std::abs(value) < kExact;
  const char* const end =
      whole ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(value)).ptr
            : std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, static_cast<std::size_t>(end - digits));
}

void AppendLabel(const std::pair<std::string, std::string>& label, std::string& out) {
  out += label.first + "=\"";
  for (const char c : label.second) {
    if (c == '\\' || c == '"') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace

std::optional<double> StoreCounters::ReverificationRatio() const {
  std::uint64_t all = 0;
  std::uint64_t again = 0;
  for (std::size_t policy = 0; policy < ensure_image_requests.size(); ++policy) {
    if (policy == kAlways) continue;
    for (std::size_t present = 0; present < kUnknownTruth; ++present) {
      for (std::size_t required = 0; required < kUnknownTruth; ++required) {
        all += ensure_image_requests[policy][present][required];
      }
    }
    again += ensure_image_requests[policy][1][1];
  }
  if (all == 0) return std::nullopt;
  return static_cast<double>(again) / static_cast<double>(all);
}

std::vector<MetricFamily> Metrics::Families() const {
  Writer out;
  if (live_owner) WriteKubelets(*this, out);
  out.Gauge("waybill_live_owner", "Whether these are the metrics of the process that decides.",
            live_owner);
  out.Gauge("waybill_store_readable", "Whether the store could be read for these metrics.",
            readable);
  if (readable) {
    WriteRecords(*this, out);
    WriteTrust(*this, out);
    WriteIdRanges(*this, out);
    WriteDatabase(*this, out);
  }
  if (counters) {
    WriteCounters(*counters, out);
    WritePulls(*counters, out);
  }
  if (last_opening) WriteOpening(*last_opening, out);
  WriteTrace(*this, out);
  return out.Take();
}

std::string Metrics::ToPrometheusText() const { return waybill::ToPrometheusText(Families()); }

std::string ToPrometheusText(const std::vector<MetricFamily>& families) {
  std::string out;
  for (const MetricFamily& family : families) {
    out += "# HELP " + family.name + " " + family.help + "\n";
    out += "# TYPE " + family.name + " " + family.type + "\n";
    for (const MetricFamily::Series& series : family.series) {
      out += family.name;
      for (std::size_t i = 0; i < series.labels.size(); ++i) {
        out += i == 0 ? '{' : ',';
        AppendLabel(series.labels[i], out);
      }
      if (!series.labels.empty()) out += '}';
      out += ' ';
      AppendValue(series.value, out);
      out += '\n';
    }
  }
  return out;
}

}  // namespace waybill
