#include "bindings/cli/node_sources.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <system_error>
#include <utility>

#include "bindings/cli/progress.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/store_copy.h"
#include "store/base/try.h"

namespace waybill::cli {

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
void AddRecords(const std::vector<ImagePulledRecord>& records, const std::string& from,
                NodeSource& source) {
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
void AddCommits(const Statistics& statistics, const fs::path& directory, NodeSource& source) {
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
    AddRecords(records, "the store's records", source);
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

Result<NodeSource> SourceOfKubelet(const std::string& directory) {
  ProgressLine importing("importing", "files");
  OpenOptions options{.directory = {}, .witness = Witness::None()};
  options.allow_empty = true;
  options.kubelet_directory = directory;
  options.import_progress = importing.UntilStopped();
  auto quiet = TRY(QuietStore::OfKubelet(std::move(options)));
  return WithStore(quiet.Observe({}), [&](NodeStore& store) -> Result<NodeSource> {
    NodeSource source{.name = directory};
    const auto records = TRY(store.ListRecords());
    const auto statistics = TRY(store.GetStatistics());
    AddRecords(records, "the kubelet's records", source);
    for (const char* const folder : {"pulled", "pulling", "observed-preloaded"}) {
      const Sizes sizes = SizesIn(fs::path(directory) / "image_manager" / folder);
      if (sizes.files == 0) continue;
      AddFact(source, folder, folder, sizes.AsJson(), sizes.Text(), "the kubelet's files");
    }
    AddFact(source, "usedBytes", "used", statistics.used_bytes,
            BytesText(Real(statistics.used_bytes)), "a store that took them over");
    return source;
  });
}

}  // namespace waybill::cli
