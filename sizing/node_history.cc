#include "sizing/node_history.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "store/base/image_name.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::sizing {

namespace {

constexpr double kDayMs = 86'400'000;

// Reasons of a later version are not told apart.
std::string Known(const std::string& reason) {
  for (int i = 0; i <= static_cast<int>(Reason::kProofNotByRegistry); ++i) {
    if (reason == ReasonName(static_cast<Reason>(i))) return reason;
  }
  return reason.empty() ? "" : "other";
}

// CRI-O calls images by bare digits, containerd by sha256: and digits.
bool IsCrioId(std::string_view ref) {
  constexpr std::size_t kDigits = 64;
  return ref.size() == kDigits &&
         ref.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

using Numbers = std::unordered_map<std::string, std::uint32_t>;

class Counting {
 public:
  Counting(const HistoryLimits& limits, std::string_view source) : limits_(limits) {
    history_.source = source;
    history_.pulls_tell_credentials = source.find("events") == std::string_view::npos;
  }

  Result<void> Add(const TraceEvent& event) {
    if (history_.events++ == 0) history_.span = {event.time_ms, event.time_ms};
    if (!event.credentials.empty()) history_.has_credentials = true;
    // A clock that goes back stands still.
    history_.span.last_ms = std::max(history_.span.last_ms, event.time_ms);
    if (history_.days() > limits_.days) {
      return TooMuch("spans more than ten years", "a clock was wrong: cut the trace there");
    }
    switch (event.kind) {
      case TraceEvent::Kind::kStart:
        ++history_.starts;
        return {};
      case TraceEvent::Kind::kList:
        ++history_.lists;
        if (event.unpacked_percent) unpacked_percent_ = *event.unpacked_percent;
        if (std::exchange(removed_since_list_, false)) ++history_.collections;
        return {};
      case TraceEvent::Kind::kPullFailed:
        ++history_.failed_pulls;
        return {};
      case TraceEvent::Kind::kPullBegun:
        return {};
      case TraceEvent::Kind::kImage: {
        const std::uint32_t image = TRY(ImageOf(event));
        Arrived(image);
        return {};
      }
      case TraceEvent::Kind::kRemoved: {
        const std::uint32_t image = TRY(ImageOf(event));
        Removed(image);
        return {};
      }
      case TraceEvent::Kind::kPulled:
        return AddPull(event);
      case TraceEvent::Kind::kUse:
        return AddUse(event);
    }
    return {};
  }

  NodeHistory Take() {
    Requests& requests = history_.requests;
    if (requests.all.empty()) requests.all = std::move(pulls_);
    Number(requests);
    if (unpacked_percent_ > 0) {
      requests.unpacked = unpacked_percent_ / 100.0;
      history_.unpacked_as = "as unpacked, measured";
    } else if (is_crio_) {
      history_.unpacked_as = "as CRI-O lists them, unpacked";
    } else {
      requests.unpacked = kContainerdUnpacked;
      history_.unpacked_as = "as unpacked on containerd, estimated";
    }
    for (std::size_t i = 0; i < images_.size(); ++i) {
      const Image& image = images_[i];
      if (image.same_as) continue;
      if (image.has_ref || image.app_uses) ++history_.apps[image.app].refs;
      if (image.is_recorded) {
        history_.secrets.push_back(static_cast<std::uint32_t>(
            std::max(image.credentials.size(), image.tenants_ever.size())));
      }
    }
    for (const auto& [credential, holders] : holders_) {
      if (holders.tenants.size() < 2) continue;
      for (const std::uint32_t tenant : holders.tenants) history_.tenants[tenant].shares = true;
    }
    for (std::size_t i = 0; i < history_.apps.size(); ++i) {
      std::vector<Lifetime> lifetimes;
      for (const std::uint32_t tenant : app_tenants_[i]) {
        lifetimes.push_back(history_.tenants[tenant].alive);
      }
      history_.apps[i].tenants = static_cast<std::uint32_t>(MostAtOnce(lifetimes));
    }
    return std::move(history_);
  }

 private:
  struct Image {
    std::uint32_t app = 0;
    std::optional<std::uint32_t> same_as = {};  // found out later: the image of a ref
    std::uint64_t bytes = 0;                    // 0: unknown
    bool has_ref = false;
    bool app_uses = false;  // it is used, or pulled
    bool on_node = false;
    bool has_record = false;
    bool tenants_known = true;               // each pull said whose it was
    bool is_recorded = false;                // a pull or a use told whose it is
    std::set<std::string> credentials = {};  // proven by pulls
    std::set<std::uint32_t> tenants = {};    // that are in the record
    std::set<std::uint32_t> tenants_ever = {};
  };

  // Of a credential.
  struct Holders {
    std::uint32_t number = 0;
    std::set<std::uint32_t> tenants = {};
  };

  static Error TooMuch(std::string_view what, std::string_view hint) {
    return {ErrorCode::kLimitExceeded, "the trace " + std::string(what), std::string(hint)};
  }

  // About what a use, a name, and what is kept of each takes.
  static constexpr std::size_t kRequestBytes = sizeof(Request);
  static constexpr std::size_t kEntryBytes = 100;
  static constexpr std::size_t kThingBytes = 400;

  Result<void> Keep(std::size_t bytes) {
    kept_bytes_ += bytes;
    if (kept_bytes_ <= limits_.bytes) return {};
    return TooMuch(fmt::format("needs more than {} bytes of memory", limits_.bytes),
                   "take a part of it, or that of fewer nodes");
  }

  // A new one is `fresh`, behind all `things`.
  template <typename Thing>
  Result<std::uint32_t> NumberOf(const std::string& name, Numbers& numbers,
                                 std::vector<Thing>& things, Thing fresh) {
    const auto next = static_cast<std::uint32_t>(things.size());
    const auto [found, is_new] = numbers.emplace(name, next);
    if (is_new) {
      TRY(Keep(kThingBytes + name.size()));
      things.push_back(std::move(fresh));
    }
    return found->second;
  }

  Result<std::uint32_t> AppOf(const TraceEvent& event) {
    const std::string name = event.image.empty() ? event.ref : RepositoryOf(event.image);
    const std::uint32_t app = TRY(NumberOf(name, apps_, history_.apps, {}));
    app_tenants_.resize(history_.apps.size());
    return app;
  }

  Result<std::uint32_t> TenantOf(const std::string& name) {
    const std::uint32_t tenant =
        TRY(NumberOf(name, tenants_, history_.tenants,
                     {.alive = {history_.span.last_ms, history_.span.last_ms}}));
    credentials_of_.resize(history_.tenants.size());
    return tenant;
  }

  // By its ref. An absent image has none: it is the one that a pull of the same string brings.
  Result<std::uint32_t> ImageOf(const TraceEvent& event) {
    const std::string handler = event.runtime_handler + '\n';
    const bool has_ref = !event.ref.empty();
    Numbers& numbers = has_ref ? by_ref_ : by_name_;
    const std::string key = handler + (has_ref ? event.ref : event.image);
    const auto known = numbers.find(key);
    std::uint32_t app = 0;
    if (known == numbers.end()) app = TRY(AppOf(event));
    const std::uint32_t image =
        TRY(NumberOf(key, numbers, images_, {.app = app, .has_ref = has_ref}));
    if (event.bytes && *event.bytes > 0) {
      images_[image].bytes = *event.bytes;
      is_crio_ = is_crio_ || IsCrioId(event.ref);
    }
    if (has_ref && !event.image.empty() && event.kind != TraceEvent::Kind::kUse) {
      const auto waiting = by_name_.find(handler + event.image);
      if (waiting != by_name_.end()) {
        images_[waiting->second].same_as = image;
        if (std::exchange(images_[waiting->second].on_node, false)) --on_node_;
        images_[image].app_uses |= images_[waiting->second].app_uses;
        if (images_[image].bytes == 0) images_[image].bytes = images_[waiting->second].bytes;
        by_name_.erase(waiting);
      }
    }
    return image;
  }

  void Arrived(std::uint32_t image) {
    if (std::exchange(images_[image].on_node, true)) return;
    history_.images_at_once = std::max(history_.images_at_once, ++on_node_);
  }

  void Removed(std::uint32_t image) {
    removed_since_list_ = true;
    Image& gone = images_[image];
    if (std::exchange(gone.on_node, false)) --on_node_;
    if (std::exchange(gone.has_record, false)) --records_;
    gone.tenants.clear();
  }

  Result<void> AddRequest(std::vector<Request>& list, std::uint32_t image) {
    TRY(Keep(kRequestBytes));
    list.push_back({image, history_.span.last_ms});
    images_[image].app_uses = true;
    return {};
  }

  Result<void> AddPull(const TraceEvent& event) {
    const std::uint32_t number = TRY(ImageOf(event));
    ++history_.pulls;
    Arrived(number);
    TRY(AddRequest(pulls_, number));
    Image& image = images_[number];
    if (!std::exchange(image.has_record, true)) {
      history_.records_at_once = std::max(history_.records_at_once, ++records_);
    }
    if (!event.credentials.empty()) {
      image.is_recorded = history_.apps[image.app].is_private = true;
    } else if (history_.pulls_tell_credentials) {
      image.is_recorded = history_.apps[image.app].is_public = true;
    }
    for (const std::string& credential : event.credentials) {
      if (image.credentials.insert(credential).second) TRY(Keep(kEntryBytes));
    }
    if (event.credentials.size() > (event.pod_namespace.empty() ? 0U : 1U)) {
      image.tenants_known = false;
    }
    if (event.pod_namespace.empty()) return {};
    const std::uint32_t tenant = TRY(TenantOf(event.pod_namespace));
    image.tenants.insert(tenant);
    if (!event.credentials.empty()) image.tenants_ever.insert(tenant);
    return {};
  }

  Result<void> AddUse(const TraceEvent& event) {
    const std::uint32_t number = TRY(ImageOf(event));
    TRY(AddRequest(history_.requests.all, number));
    ++history_.uses;
    const auto is = [&event](Reason reason) { return event.reason == ReasonName(reason); };
    const bool is_absent =
        is(Reason::kImageAbsent) || (event.reason.empty() && event.must_pull.value_or(false));
    if (event.must_pull) {
      ++history_.answered;
      if (*event.must_pull) ++history_.must_pull;
      if (*event.must_pull && !event.reason.empty() && !is_absent) ++history_.must_prove;
      ++history_.reasons[Known(event.reason)];
    }
    // What is used is there, or a pull brings it.
    if (!is_absent) Arrived(number);
    Image& image = images_[number];
    SeenApp& app = history_.apps[image.app];
    ++app.uses;
    if (is(Reason::kNodePodsAccessible)) app.is_public = image.is_recorded = true;
    if (is(Reason::kPolicyPresumedPreloaded) || is(Reason::kPolicyKnownPreloaded)) {
      app.is_preloaded = true;
    }
    if (event.pod_namespace.empty()) return {};
    const std::uint32_t tenant = TRY(TenantOf(event.pod_namespace));
    history_.tenants[tenant].alive.last_ms = history_.span.last_ms;
    if (event.credentials.empty()) return {};
    if (app_tenants_[image.app].insert(tenant).second) TRY(Keep(kEntryBytes));
    const bool matches = is(Reason::kSecretHashMatches) || is(Reason::kServiceAccountMatches);
    const bool rotated = is(Reason::kSecretCoordinatesMatch);
    if (matches || rotated) {
      app.is_private = image.is_recorded = true;
      image.tenants_ever.insert(tenant);
    }
    // What is in a record of before the trace is not known.
    const bool adds =
        matches && image.tenants.insert(tenant).second && image.has_record && image.tenants_known;
    if (rotated || adds) ++history_.write_backs;
    for (const std::string& credential : event.credentials) TRY(Holds(tenant, credential));
    return {};
  }

  Result<void> Holds(std::uint32_t tenant, const std::string& credential) {
    std::vector<SeenCredential>& held = history_.tenants[tenant].credentials;
    const auto [found, is_new] =
        credentials_of_[tenant].emplace(credential, static_cast<std::uint32_t>(held.size()));
    if (is_new) {
      TRY(Keep(kEntryBytes));
      Holders& holders = holders_[credential];
      if (holders.tenants.empty()) holders.number = static_cast<std::uint32_t>(holders_.size());
      holders.tenants.insert(tenant);
      held.push_back({holders.number, {history_.span.last_ms, history_.span.last_ms}});
    }
    held[found->second].used.last_ms = history_.span.last_ms;
    return {};
  }

  // The images that are asked for, numbered anew, with their bytes.
  void Number(Requests& requests) {
    constexpr std::uint32_t kNone = UINT32_MAX;
    std::vector<std::uint32_t> number(images_.size(), kNone);
    std::vector<std::uint64_t> known;
    for (Request& request : requests.all) {
      std::uint32_t image = request.object;
      if (images_[image].same_as) image = *images_[image].same_as;
      if (number[image] == kNone) {
        number[image] = static_cast<std::uint32_t>(requests.bytes.size());
        requests.bytes.push_back(images_[image].bytes);
        if (images_[image].bytes != 0) known.push_back(images_[image].bytes);
      }
      request.object = number[image];
    }
    history_.images_without_bytes = requests.bytes.size() - known.size();
    std::uint64_t median = 1;
    if (!known.empty()) {
      const auto middle = known.begin() + static_cast<std::ptrdiff_t>(known.size() / 2);
      std::nth_element(known.begin(), middle, known.end());
      median = *middle;
    }
    std::replace(requests.bytes.begin(), requests.bytes.end(), std::uint64_t{0}, median);
  }

  HistoryLimits limits_;
  NodeHistory history_;
  std::vector<Request> pulls_;
  std::vector<Image> images_;
  Numbers by_ref_;
  Numbers by_name_;
  Numbers apps_;
  Numbers tenants_;
  std::vector<std::set<std::uint32_t>> app_tenants_;
  std::vector<Numbers> credentials_of_;  // tenants', by their place in SeenTenant::credentials
  std::unordered_map<std::string, Holders> holders_;
  bool removed_since_list_ = false;
  std::uint32_t unpacked_percent_ = 0;  // 0: unknown
  bool is_crio_ = false;
  std::uint64_t on_node_ = 0;
  std::uint64_t records_ = 0;
  std::size_t kept_bytes_ = 0;
};

}  // namespace

// One that ends when another begins is gone.
std::uint64_t MostAtOnce(const std::vector<Lifetime>& lifetimes) {
  std::vector<std::pair<std::int64_t, int>> changes;
  for (const Lifetime& one : lifetimes) {
    changes.emplace_back(one.first_ms, 1);
    changes.emplace_back(one.last_ms + 1, -1);
  }
  std::sort(changes.begin(), changes.end());
  std::int64_t alive = 0;
  std::int64_t most = 0;
  for (const auto& [time, change] : changes) most = std::max(most, alive += change);
  return static_cast<std::uint64_t>(most);
}

double NodeHistory::days() const {
  return (static_cast<double>(span.last_ms) - static_cast<double>(span.first_ms)) / kDayMs;
}

std::string NodeHistory::SpanText() const {
  const double minutes = days() * 24 * 60;
  if (days() >= 1) return fmt::format("{:.1f} days", days());
  if (minutes < 2) return fmt::format("{:.0f} seconds", minutes * 60);
  return minutes >= 120 ? fmt::format("{:.1f} hours", minutes / 60)
                        : fmt::format("{:.0f} minutes", minutes);
}

double NodeHistory::PerDay(std::uint64_t count) const {
  return days() <= 0 ? 0 : static_cast<double>(count) / days();
}

Result<NodeHistory> ReadHistory(TraceReader& reader, const HistoryLimits& limits) {
  Counting counting(limits, reader.source());
  while (true) {
    auto event = TRY(reader.Next());
    if (!event) break;
    if (auto added = counting.Add(*event); !added) {
      Error error = std::move(added.error());
      error.message = reader.where() + ": " + error.message;
      return error;
    }
  }
  NodeHistory history = counting.Take();
  history.node = reader.node();
  return history;
}

}  // namespace waybill::sizing
