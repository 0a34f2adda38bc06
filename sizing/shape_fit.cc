#include "sizing/shape_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <utility>

namespace waybill::sizing {

namespace {

double Real(std::uint64_t count) { return static_cast<double>(count); }

// Credentials that came after another one of the namespace was used for the last time; a shared
// one counts once.
std::uint64_t Rotations(const std::vector<SeenTenant>& tenants) {
  std::set<std::uint32_t> rotated;
  for (const SeenTenant& tenant : tenants) {
    std::int64_t first_end = INT64_MAX;
    for (const SeenCredential& one : tenant.credentials) {
      first_end = std::min(first_end, one.used.last_ms);
    }
    for (const SeenCredential& one : tenant.credentials) {
      if (one.used.first_ms > first_end) rotated.insert(one.number);
    }
  }
  return rotated.size();
}

// Where `is_below` turns false.
double Bisect(double low, double high, const std::function<bool(double)>& is_below) {
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (is_below(middle) ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double FitZipf(std::span<const std::uint64_t> uses) {
  std::vector<double> counts;
  for (const std::uint64_t count : uses) {
    if (count > 0) counts.push_back(Real(count));
  }
  if (counts.size() < 2) return 0;
  std::sort(counts.begin(), counts.end(), std::greater<>());
  double all = 0;
  double logs = 0;  // of the ranks, as often as each is used
  for (std::size_t i = 0; i < counts.size(); ++i) {
    all += counts[i];
    logs += counts[i] * std::log(Real(i + 1));
  }
  // The mean log of the rank falls as the exponent grows; it is to be the one that was seen.
  const auto mean_log = [&](double skew) {
    double weights = 0;
    double sum = 0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const double log = std::log(Real(i + 1));
      const double weight = std::exp(-skew * log);
      weights += weight;
      sum += weight * log;
    }
    return sum / weights;
  };
  return Bisect(0, 4, [&](double skew) { return mean_log(skew) > logs / all; });
}

double FitFixedPart(double repositories, double unchanged, double versions) {
  if (repositories <= 0) return 0;
  const double seen = std::clamp(unchanged / repositories, 0.0, 1.0);
  if (versions <= 0) return seen;
  return Bisect(0, seen, [&](double fixed) {
    const double changing = repositories * (1 - fixed);
    return fixed + (1 - fixed) * (changing <= 0 ? 0 : std::exp(-versions / changing)) < seen;
  });
}

std::vector<Fitted> FitShape(const NodeHistory& history, double containers_per_pod) {
  std::vector<Fitted> shape;
  const auto add = [&](std::string_view flag, double value, std::string from) {
    // Four places: what is behind them is the search's.
    shape.push_back({flag, std::round(value * 1e4) / 1e4, std::move(from)});
  };
  const double days = history.days();

  if (history.images_at_once > 0) {
    add("--images", Real(history.images_at_once), "the most images on the node at once");
  } else if (!history.requests.bytes.empty()) {
    add("--images", Real(history.requests.bytes.size()),
        fmt::format("{} images that were used", history.requests.bytes.size()));
  }

  std::vector<std::uint64_t> uses;
  double repositories = 0;
  double public_ones = 0;
  double known = 0;
  double private_ones = 0;
  double tenants_of_private = 0;
  double preloaded = 0;
  double unchanged = 0;
  double versions = 0;
  for (const SeenApp& app : history.apps) {
    if (app.refs == 0) continue;
    uses.push_back(app.uses);
    if (app.is_preloaded && !app.is_private) {
      ++preloaded;
      continue;
    }
    ++repositories;
    versions += app.refs - 1;
    if (app.refs == 1) ++unchanged;
    if (app.is_private || app.is_public) ++known;
    if (app.is_public && !app.is_private) ++public_ones;
    if (app.tenants > 0 && !(app.is_public && !app.is_private)) {
      ++private_ones;
      tenants_of_private += app.tenants;
    }
  }
  if (history.uses > 0 && uses.size() > 1) {
    add("--zipf-skew", FitZipf(uses),
        fmt::format("{} uses of {} repositories", history.uses, uses.size()));
  }
  if (history.has_credentials && history.pulls_tell_credentials && known > 0) {
    add("--public-percent", 100 * public_ones / known,
        fmt::format("{:.0f} of {:.0f} repositories were pulled or used without credentials",
                    public_ones, known));
  }
  if (private_ones > 0) {
    add("--secrets-per-image", tenants_of_private / private_ones,
        fmt::format("namespaces with credentials, of {:.0f} repositories", private_ones));
  }
  if (history.answered > 0) {
    add("--preloaded", preloaded, fmt::format("{:.0f} repositories whose uses say so", preloaded));
  }

  if (days > 0) {
    if (history.uses > 0) {
      add("--pod-starts-per-day", history.PerDay(history.uses) / containers_per_pod,
          fmt::format("{} uses in {}, {:g} containers a pod", history.uses, history.SpanText(),
                      containers_per_pod));
    }
    if (repositories > 0) {
      // The generator also draws those that never change.
      const double fixed = FitFixedPart(repositories, unchanged, versions);
      const double changing = std::max(1.0, repositories * (1 - fixed));
      add("--versions-per-day", versions / days * (repositories + preloaded) / changing,
          fmt::format("{:.0f} new refs, and as often for repositories that never change",
                      versions));
      add("--fixed-percent", 100 * fixed,
          fmt::format("{:.0f} of {:.0f} repositories had one ref, and some would change later",
                      unchanged, repositories));
    }
    // An owner only writes lists that changed something.
    if (history.lists > 0 && history.source.find("owner") == std::string::npos) {
      add("--lists-per-day", std::max(1.0, history.PerDay(history.lists)),
          fmt::format("{} lists", history.lists));
    }
    if (history.starts > 0) {
      // The first is the history's own.
      add("--restarts-per-year", history.PerDay(history.starts - 1) * 365,
          fmt::format("{} starts after the first", history.starts - 1));
    }
  }
  if (history.pulls + history.failed_pulls > 0) {
    add("--failed-pulls-percent",
        100 * Real(history.failed_pulls) / Real(history.pulls + history.failed_pulls),
        fmt::format("{} of {} pulls", history.failed_pulls, history.pulls + history.failed_pulls));
  }

  std::vector<SeenTenant> tenants;
  std::copy_if(history.tenants.begin(), history.tenants.end(), std::back_inserter(tenants),
               [](const SeenTenant& tenant) { return !tenant.credentials.empty(); });
  if (tenants.empty()) return shape;
  std::vector<Lifetime> lifetimes;
  lifetimes.reserve(tenants.size());
  for (const SeenTenant& tenant : tenants) lifetimes.push_back(tenant.alive);
  const std::uint64_t at_once = MostAtOnce(lifetimes);
  add("--tenants", Real(at_once),
      fmt::format("namespaces with credentials between their first and last use, of {} in all",
                  tenants.size()));
  const auto sharing = static_cast<double>(std::count_if(
      tenants.begin(), tenants.end(), [](const SeenTenant& tenant) { return tenant.shares; }));
  add("--shared-percent", 100 * sharing / Real(tenants.size()),
      fmt::format("{:.0f} of {} namespaces hold a credential that another holds", sharing,
                  tenants.size()));
  if (days > 0) {
    // Those that are new in the first half may only be seen late.
    const std::int64_t middle =
        history.span.first_ms + (history.span.last_ms - history.span.first_ms) / 2;
    std::uint64_t born = 0;
    for (const SeenTenant& tenant : tenants) {
      if (tenant.alive.first_ms > middle) ++born;
    }
    add("--turnover-percent", 100 * Real(born) / (days / 2) / Real(at_once),
        fmt::format("{} new namespaces in the second half", born));
    const std::uint64_t rotations = Rotations(tenants);
    const double own = Real(at_once) * (1 - sharing / Real(tenants.size()));
    add("--rotations-per-year",
        Real(rotations) / std::max(1.0, own + (sharing > 0 ? 1 : 0)) / days * 365,
        fmt::format("{} credentials that took the place of another", rotations));
  }
  return shape;
}

}  // namespace waybill::sizing
