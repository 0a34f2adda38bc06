#include "guard/life.h"

#include <map>
#include <utility>

#include "guard/look.h"
#include "store/base/json_value.h"
#include "store/base/metrics.h"
#include "store/base/quote.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kHoleNames[kHoleKinds] = {
    "record-lost",    "record-damaged", "record-stale",    "record-removed",
    "intent-dropped", "intent-lost",    "unrecorded-image"};

}  // namespace

std::string_view HoleName(HoleKind kind) { return kHoleNames[static_cast<std::size_t>(kind)]; }

Life::Life(GuardOptions from)
    : options(std::move(from)),
      image_manager(options.kubelet_directory / "image_manager"),
      pulled(image_manager, KubeletFolder::kPulled, options.synced),
      pulling(image_manager, KubeletFolder::kPulling, options.synced) {}

Result<void> Life::FindFolders() {
  const std::filesystem::path named = options.kubelet_directory / "image_manager";
  TRY(internal::MakePrivateDirectory(named));
  links_.clear();
  const auto find = [this](const std::filesystem::path& path) -> Result<std::filesystem::path> {
    auto place = TRY(FindFolder(path));
    if (!place.link.empty()) links_.push_back(place.link);
    if (!place.unsafe.empty()) {
      return Error{ErrorCode::kUnsafePath, place.unsafe + "; nothing was changed",
                   "let it belong to the kubelet's user, and nobody else write there"};
    }
    return place.path.empty() ? path : place.path;
  };
  image_manager = TRY(find(named));
  for (const KubeletFolder folder : {KubeletFolder::kPulled, KubeletFolder::kPulling}) {
    auto path = TRY(find(image_manager / internal::FolderName(folder)));
    FilesOf(folder).MoveTo(image_manager, std::move(path));
  }
  return {};
}

void Life::Log(LogLevel level, const std::string& text) const {
  if (options.log) options.log(level, text);
}

void Life::Found(HoleKind kind, const std::string& image, const std::string& text) {
  ++status.holes[static_cast<std::size_t>(kind)];
  Log(LogLevel::kNotice,
      std::string(HoleName(kind)) + ": " + internal::QuoteForMessage(image) + ": " + text);
  if (options.on_hole) options.on_hole({kind, image});
}

Result<void> Life::Missed(const std::string& what) {
  Log(LogLevel::kWarning,
      what + ": images that are not known by the next list are closed, as after a gap");
  wants_list = true;
  TRY(store->Call(NoteUnrecordedPeriod{.reason = "the guard missed something: " + what}));
  return {};
}

void Life::LeaveAlone(const std::filesystem::path& path) {
  if (!left_alone_.insert(path.string()).second) return;
  Log(LogLevel::kWarning, path.string() +
                              " has a format that this waybill does not know: it is left as it "
                              "is; use a waybill as new as the kubelet");
  ++status.left_alone;
}

std::string GuardStatus::VerifiesNothing() const {
  for (const CheckResult& result : checks) {
    if (result.verifies_nothing) return result.seen;
  }
  return {};
}

MetricFamily NotProtected(const std::string& why) {
  return {"waybill_guard_not_protected",
          "gauge",
          "Whether others may write the kubelet's files, so that the guard protects nothing.",
          {{{}, why.empty() ? 0.0 : 1.0}}};
}

std::string Life::MetricsText() const {
  const auto number = [](std::uint64_t value) { return static_cast<double>(value); };
  const auto counter = [&](const char* name, const char* help, std::uint64_t value) {
    return MetricFamily{name, "counter", help, {{{}, number(value)}}};
  };
  MetricFamily holes{
      "waybill_guard_holes_total", "counter", "Holes of the kubelet that the guard closed.", {}};
  for (std::size_t i = 0; i < kHoleKinds; ++i) {
    holes.series.push_back({{{"kind", std::string(kHoleNames[i])}}, number(status.holes[i])});
  }
  // A check that found several things fails if one of them does.
  std::map<std::string, bool> failed_checks;
  for (const CheckResult& result : status.checks) {
    bool& failed = failed_checks[result.check];
    failed = failed || result.failed;
  }
  MetricFamily failed{
      "waybill_guard_check_failed", "gauge", "Whether this check of waybill doctor fails.", {}};
  for (const auto& [check, does] : failed_checks) {
    failed.series.push_back({{{"check", check}}, does ? 1.0 : 0.0});
  }
  MetricFamily nothing{"waybill_guard_kubelet_verifies_nothing",
                       "gauge",
                       "Whether the kubelet verifies no image, whatever the guard does.",
                       {}};
  if (!status.checks.empty()) {
    nothing.series.push_back({{}, status.VerifiesNothing().empty() ? 0.0 : 1.0});
  }
  return ToPrometheusText(
      {nothing, guard::NotProtected(status.NotProtected()), failed, holes,
       counter("waybill_guard_events_total", "Changes of the kubelet's files.", status.events),
       counter("waybill_guard_comparisons_total", "Comparisons of all files.", status.comparisons),
       counter("waybill_guard_files_written_total", "Files written for the kubelet.",
               status.files_written)});
}

Result<std::string> Life::StatusJson() const {
  auto statistics = TRY(store->GetStatistics());
  const auto time = [](const std::optional<Timestamp>& at) -> internal::Json {
    if (!at) return nullptr;
    return FormatTimestamp(*at);
  };
  internal::Json holes;
  for (std::size_t i = 0; i < kHoleKinds; ++i) holes[std::string(kHoleNames[i])] = status.holes[i];
  internal::Json checks = internal::Json::array();
  for (const CheckResult& result : status.checks) {
    checks.push_back({{"check", result.check},
                      {"verdict", result.verdict},
                      {"seen", result.seen},
                      {"next", result.next}});
  }
  const internal::Json json = {{"verifiesNothing", status.VerifiesNothing()},
                               {"notProtected", status.NotProtected()},
                               {"version", options.version},
                               {"kubeletDirectory", options.kubelet_directory.string()},
                               {"store", options.store.directory.string()},
                               {"since", time(status.since)},
                               {"kubeletRanBefore", status.kubelet_ran_before},
                               {"afterGap", status.gap},
                               {"distrustful", statistics.distrustful},
                               {"images", status.images},
                               {"records", statistics.records},
                               {"ledgerEntries", statistics.ledger_entries},
                               {"presumed", status.presumed},
                               {"openPulls", statistics.intents},
                               {"lastList", time(status.last_list)},
                               {"runtimeError", status.runtime_error},
                               {"lastComparison", time(status.last_comparison)},
                               {"comparisons", status.comparisons},
                               {"events", status.events},
                               {"filesWritten", status.files_written},
                               {"filesRemoved", status.files_removed},
                               {"filesLeftAlone", status.left_alone},
                               {"filesKept", status.files_kept},
                               {"recordsUnlisted", status.records_unlisted},
                               {"unlisted", status.unlisted},
                               {"judgedCommit", status.judged_commit},
                               {"waiting", status.waiting},
                               {"holes", holes},
                               {"checks", checks}};
  return internal::TextOf(json, 2) + "\n";
}

}  // namespace waybill::guard
