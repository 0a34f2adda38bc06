#include "bindings/cli/node_advice.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "bindings/cli/store_access.h"
#include "store/base/files.h"
#include "store/base/try.h"

namespace waybill::cli {

namespace {

std::string FlushesFrom(const SizingQuestion& question, const PresetFigures& figures,
                        const SizingAdvice& a) {
  std::string text = fmt::format("{:.1f} pulls at {:.1f}", a.pulls_per_day, figures.pulls.flushes);
  if (question.write_backs_per_day) {
    text += fmt::format(", {:.1f} new credentials at {:.1f}", *question.write_backs_per_day,
                        figures.write_backs.flushes);
  }
  text +=
      fmt::format(", {:.0f} lists at {:.1f}", question.shape.lists_per_day, figures.lists.flushes);
  return text +
         fmt::format("; flushes that a caller waits for, of the simulated node {}", figures.name);
}

void AddReasons(const NodeSource& source, std::vector<AdviceRow>& rows) {
  // Nothing but unknown ones.
  if (source.reasons.empty() ||
      (source.reasons.size() == 1 && source.reasons.begin()->first.empty())) {
    return;
  }
  std::vector<std::pair<std::uint64_t, std::string>> reasons;
  std::uint64_t all = 0;
  Json json = Json::object();
  for (const auto& [name, count] : source.reasons) {
    reasons.emplace_back(count, name.empty() ? "unknown" : name);
    json[reasons.back().second] = count;
    all += count;
  }
  std::sort(reasons.rbegin(), reasons.rend());
  std::string text;
  constexpr std::size_t kShown = 3;
  for (std::size_t i = 0; i < std::min(reasons.size(), kShown); ++i) {
    text += fmt::format("{}{} {:.1f} %", i == 0 ? "" : ", ", reasons[i].second,
                        100 * static_cast<double>(reasons[i].first) / static_cast<double>(all));
  }
  rows.push_back({"reasons", "why", std::move(json), std::move(text),
                  HowMany(all, "decision") + " with a known answer"});
}

}  // namespace

std::vector<AdviceRow> RowsOf(const NodeSource& source, const SizingQuestion& question,
                              const PresetFigures& figures, const SizingAdvice& a) {
  const std::string preset = fmt::format("the simulated node {}", figures.name);
  const auto from = [&](const std::optional<Known>& known) { return known ? known->from : preset; };
  std::vector<AdviceRow> rows = source.facts;
  const auto add = [&](std::string key, std::string label, Json value, std::string text,
                       std::string its) {
    rows.push_back(
        {std::move(key), std::move(label), std::move(value), std::move(text), std::move(its)});
  };
  const auto whole = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
  add("records", "records", whole(a.records), fmt::format("{:.0f}", a.records),
      from(source.records));
  add("bytesPerRecord", "a record", whole(a.bytes_per_record),
      fmt::format("{} with {:.1f} Secrets", BytesText(a.bytes_per_record), a.secrets_per_record),
      (source.secrets.empty() ? preset : source.secrets_from) +
          "; bytes by Secrets from the recorded model");
  add("diskBytes", "disk", whole(a.disk_bytes),
      fmt::format("{} at most, and as much again for a backup", BytesText(a.disk_bytes)),
      fmt::format("records, as {} grew in {:g} days", preset, a.simulated_days));
  add("mapBytes", "map", whole(a.map_bytes),
      fmt::format("{}: --map-size {:.0f}", BytesText(a.map_bytes), a.map_bytes),
      fmt::format("4 times the disk, and {} for deletions", BytesText(a.reserve_bytes)));
  add("residentBytes", "memory", whole(a.resident_bytes), BytesText(a.resident_bytes),
      "the part of the disk that " + preset + " touched");
  add("pullsPerDay", "pulls", a.pulls_per_day, fmt::format("{:.1f} a day", a.pulls_per_day),
      from(source.pulls_per_day));
  add("flushesPerDay", "flushes", whole(a.flushes_per_day),
      fmt::format("{:.0f} a day", a.flushes_per_day), FlushesFrom(question, figures, a));
  add("writtenBytesPerDay", "written", whole(a.written_bytes_per_day),
      fmt::format("{} a day", BytesText(a.written_bytes_per_day)),
      fmt::format("the same commits, {} a pull and {} a list on {}", BytesText(figures.pulls.bytes),
                  BytesText(figures.lists.bytes), preset));
  add("startSeconds", "start", a.start_seconds,
      fmt::format("{}, every page checked", SecondsText(a.start_seconds)),
      "the disk; time by size from the recorded model");
  add("recoverySeconds", "recovery", a.recovery_seconds,
      fmt::format("{} after a kill within a commit, a pull in flight",
                  SecondsText(a.recovery_seconds)),
      "the same, of stores whose owner was killed");
  add("decisionsPerDay", "decisions", whole(a.decisions_per_day),
      fmt::format("{:.0f} a day, {} each, 99 % within {}", a.decisions_per_day,
                  SecondsText(a.decision_p50_ns / 1e9), SecondsText(a.decision_p99_ns / 1e9)),
      from(source.decisions_per_day) + "; times from the recorded model");
  AddReasons(source, rows);
  add("cache", "cache",
      {{"records", whole(a.cache.capacity)},
       {"hitRate", a.cache.hit_rate},
       {"savesSecondsPerDay", a.cache_saves_seconds_per_day},
       {"pays", a.cache_pays}},
      fmt::format("{}: {:.0f} decoded records, {:.1f} % hits",
                  a.cache_pays ? "would pay" : "would not pay", a.cache.capacity,
                  100 * a.cache.hit_rate),
      question.cache_hit_rate ? "an LRU of the kubelet's size, played" : preset);
  return rows;
}

void AddImageDisk(const sizing::NodeHistory& history, const sizing::NodeCurves& curves,
                  std::vector<AdviceRow>& rows) {
  if (curves.disk.empty()) return;
  const auto bytes = [](const sizing::DiskPoint& point) {
    return sizing::DiskText(point.disk_bytes);
  };
  std::string text = bytes(curves.disk.front()) + " for what runs at once";
  Json json = {{"leastBytes", curves.disk.front().disk_bytes}};
  if (const auto* const tenth = sizing::LeastWithAgain(curves, 0.1)) {
    text += fmt::format("; {} pulls a tenth again", bytes(*tenth));
    json["tenthAgainBytes"] = tenth->disk_bytes;
  }
  if (const auto* const none = sizing::LeastWithAgain(curves, 0)) {
    text += fmt::format("; {} nothing", bytes(*none));
    json["nothingAgainBytes"] = none->disk_bytes;
  }
  std::string from = fmt::format("the kubelet's collection, {} % down to {} %",
                                 curves.gc.high_percent, curves.gc.low_percent);
  from += "; sizes " + history.unpacked_as;
  if (history.requests.unpacked != 1) {
    from += fmt::format(": {:.2g} times those listed", history.requests.unpacked);
    json["unpackedTimes"] = history.requests.unpacked;
  }
  if (history.images_without_bytes > 0) {
    from += fmt::format("; {} of {} images have the others' median size",
                        history.images_without_bytes, history.requests.bytes.size());
  }
  rows.push_back({"imageDisk", "image disk", std::move(json), std::move(text), std::move(from)});
  rows.push_back({"assumed", "assumed", Json(curves.running),
                  fmt::format("the {} containers that started last run still", curves.running),
                  "no trace says when pods end; --pods states how many run"});
}

void WriteNodeAdvice(const NodeSource& source, const NodeShape& fitted, const NodeShape& shape,
                     const std::vector<AdviceRow>& rows, Output& out) {
  Json json = {{"source", source.name}, {"preset", fitted.name}};
  Json from = Json::object();
  for (const AdviceRow& row : rows) {
    json[row.key] = row.value;
    from[row.key] = row.from;
  }
  Json fields = Json::object();
  std::string flags;
  for (const ShapeField& field : kShapeFields) {
    const auto known =
        std::find_if(source.shape.begin(), source.shape.end(),
                     [&](const sizing::Fitted& one) { return one.flag == field.flag; });
    const double value = shape.*field.value;
    const bool changed = value != fitted.*field.value;
    fields[field.flag.substr(2)] =
        Json{{"value", value},
             {"from", changed                       ? "flags"
                      : known == source.shape.end() ? "preset " + std::string(fitted.name)
                                                    : known->from}};
    if (changed || known != source.shape.end()) {
      flags += fmt::format(" {} {:.4g}", field.flag, value);
    }
  }
  json["shape"] = std::move(fields);
  json["from"] = std::move(from);
  out.WriteJson(json);
  if (out.json()) return;
  std::vector<std::vector<std::string>> table;
  table.reserve(rows.size());
  for (const AdviceRow& row : rows) table.push_back({row.label, row.text, row.from});
  out.WriteTable({"WHAT", "VALUE", "FROM"}, table, Output::Names::kNone);
  out.Line("to simulate it: waybill-bench sizing --preset {}{}", fitted.name, flags);
}

Result<void> WriteCurves(const sizing::NodeCurves& curves, const std::string& prefix) {
  const std::pair<const char*, std::string> files[] = {
      {".svg", sizing::SvgOf(curves)},
      {".csv", sizing::CsvOf(curves)},
      {".json", TextOf(sizing::JsonOf(curves)) + "\n"}};
  for (const auto& [suffix, content] : files) {
    auto written = internal::WriteFileDurably(prefix + suffix, content);
    if (written) continue;
    Error error = std::move(written.error());
    error.message = "--curves: " + error.message;
    if (error.code == ErrorCode::kNotFound || error.code == ErrorCode::kUnsafePath) {
      error.code = ErrorCode::kInvalidArgument;
      error.hint = "name a directory that exists, and how the files' names begin";
    }
    return error;
  }
  return {};
}

namespace {

namespace fs = std::filesystem;

constexpr double kDaySeconds = 86'400;

double Real(std::uint64_t count) { return static_cast<double>(count); }

// Files as they are long, and as the disk holds them.
struct Sizes {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t block_bytes = 0;

  std::string Text() const {
    return fmt::format("{}, {}, in {} of blocks", HowMany(files, "file"), BytesText(Real(bytes)),
                       BytesText(Real(block_bytes)));
  }
  Json AsJson() const { return {{"files", files}, {"bytes", bytes}, {"blockBytes", block_bytes}}; }
};

// What can't be looked at does not count: sizes are for planning.
Sizes SizesIn(const fs::path& directory) {
  Sizes sizes;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    struct stat status = {};
    if (lstat(at->path().c_str(), &status) != 0 || !S_ISREG(status.st_mode)) continue;
    ++sizes.files;
    sizes.bytes += static_cast<std::uint64_t>(status.st_size);
    sizes.block_bytes += static_cast<std::uint64_t>(status.st_blocks) * 512;
  }
  return sizes;
}

// Since a file was made. nullopt: the file system does not say.
std::optional<double> DaysSinceBirth(const fs::path& path) {
  struct statx status = {};
  if (statx(AT_FDCWD, path.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &status) != 0 ||
      (status.stx_mask & STATX_BTIME) == 0) {
    return std::nullopt;
  }
  const auto now =
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch());
  const double days = (now.count() - static_cast<double>(status.stx_btime.tv_sec)) / kDaySeconds;
  // Of less than an hour no day can be told.
  return days > 1.0 / 24 ? std::optional(days) : std::nullopt;
}

// Of the records of a store: Secrets, tenants, who is public.
void AddRecords(const std::vector<ImagePulledRecord>& records, NodeSource& source) {
  constexpr const char* from = "the store's records";
  std::set<std::string> namespaces;
  std::uint64_t open = 0;
  double secrets = 0;
  double closed_to_some = 0;
  for (const ImagePulledRecord& record : records) {
    std::size_t count = 0;
    bool is_open = false;
    for (const auto& [name, entry] : record.credential_mapping) {
      count += entry.kubernetes_secrets.size() + entry.kubernetes_service_accounts.size();
      is_open = is_open || entry.node_pods_accessible;
      for (const ImagePullSecret& secret : entry.kubernetes_secrets) {
        namespaces.insert(secret.namespace_name);
      }
      for (const ImagePullServiceAccount& account : entry.kubernetes_service_accounts) {
        namespaces.insert(account.namespace_name);
      }
    }
    source.secrets.push_back(Real(count));
    if (is_open) ++open;
    if (count == 0) continue;
    secrets += Real(count);
    ++closed_to_some;
  }
  source.records = {Real(records.size()), from};
  source.secrets_from = from;
  if (records.empty()) return;
  source.shape.push_back({"--images", Real(records.size()), from});
  source.shape.push_back({"--public-percent", 100 * Real(open) / Real(records.size()), from});
  if (closed_to_some > 0) {
    source.shape.push_back({"--secrets-per-image", secrets / closed_to_some, from});
    source.shape.push_back(
        {"--tenants", Real(namespaces.size()),
         "namespaces whose credentials are on record, those that are gone, too"});
  }
}

void AddFact(NodeSource& source, std::string key, std::string label, Json value, std::string text,
             std::string from) {
  source.facts.push_back(
      {std::move(key), std::move(label), std::move(value), std::move(text), std::move(from)});
}

// How often it committed since it was made.
void AddCommits(const StoreCounts& statistics, const fs::path& directory, NodeSource& source) {
  const auto days = DaysSinceBirth(directory / "owner.lock");
  if (!days) return;
  const std::string since =
      *days < 2 ? fmt::format("in the {:.1f} hours since the store was made", *days * 24)
                : fmt::format("in the {:.1f} days since the store was made", *days);
  AddFact(source, "commitsPerDay", "commits", Real(statistics.commit_sequence) / *days,
          fmt::format("{:.1f} a day", Real(statistics.commit_sequence) / *days),
          HowMany(statistics.commit_sequence, "commit") + " " + since);
}

}  // namespace

NodeSource SourceOf(const sizing::NodeHistory& history, const std::string& path,
                    double containers_per_pod) {
  NodeSource source{.name = path, .shape = sizing::FitShape(history, containers_per_pod)};
  AddFact(source, "events", "history", history.events,
          fmt::format("{}, {}", history.SpanText(), HowMany(history.events, "event")),
          history.source);
  const auto preloaded = static_cast<std::uint64_t>(
      std::count_if(history.apps.begin(), history.apps.end(), [](const sizing::SeenApp& app) {
        return app.refs > 0 && app.is_preloaded && !app.is_private;
      }));
  const std::uint64_t on_node =
      history.images_at_once - std::min(preloaded, history.images_at_once);
  if (history.records_at_once > 0 || on_node > 0) {
    source.records =
        on_node > history.records_at_once
            ? Known{Real(on_node), "images at once, less those that came with the node"}
            : Known{Real(history.records_at_once), "images that were pulled, at once"};
  }
  if (!history.pulls_tell_credentials && history.secrets.empty()) {
    AddFact(source, "credentials", "credentials", Json(), "not known",
            "events tell none of a pull: Secrets are the preset's");
  } else if (history.has_credentials) {
    source.secrets.assign(history.secrets.begin(), history.secrets.end());
    source.secrets_from =
        fmt::format("credentials of {}", HowMany(history.secrets.size(), "record"));
  }
  source.reasons = history.reasons;
  if (history.days() <= 0) return source;
  const auto per_day = [&](std::uint64_t count, std::string_view what) {
    return Known{history.PerDay(count),
                 fmt::format("{} in {}", HowMany(count, what), history.SpanText())};
  };
  if (history.uses > 0) source.decisions_per_day = per_day(history.uses, "use");
  // Some sources know of no pulls.
  if (history.pulls + history.failed_pulls + history.answered > 0) {
    source.pulls_per_day = per_day(history.pulls, "pull");
    source.failed_pulls_per_day = per_day(history.failed_pulls, "failed pull");
  }
  if (history.has_credentials && history.pulls_tell_credentials) {
    source.write_backs_per_day = per_day(history.write_backs, "credential");
  }
  if (history.lists > 0) {
    source.collections_per_day = per_day(history.collections, "list");
  }
  if (history.must_pull > 0) {
    source.proving_part = Real(history.must_prove) / Real(history.must_pull);
  }
  if (history.days() < 1) {
    AddFact(source, "note", "note", "less than a day",
            "less than a day: what is a day may be far off", "the trace");
  }
  return source;
}

Result<NodeSource> SourceOfStore(const StoreFlags& flags) {
  return WithStore(ObserveStore(flags), [&](NodeStore& store) -> Result<NodeSource> {
    NodeSource source{.name = flags.store};
    const auto records = TRY(store.ListRecords());
    const auto statistics = TRY(store.GetStatistics());
    AddRecords(records, source);
    source.shape.push_back({"--preloaded", Real(statistics.ledger_entries), "the store's ledger"});
    const Sizes sizes = SizesIn(flags.store);
    AddFact(source, "storeFiles", "files", sizes.AsJson(), sizes.Text(), "the store's directory");
    AddFact(source, "usedBytes", "used", statistics.used_bytes,
            fmt::format("{} of a map of {}", BytesText(Real(statistics.used_bytes)),
                        BytesText(Real(statistics.map_bytes))),
            "the store's pages");
    AddCommits(statistics, flags.store, source);
    return source;
  });
}

}  // namespace waybill::cli
