#include "bench/sizing/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/data_set.h"
#include "store/base/trace.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

constexpr std::int64_t kDay = 86'400;

std::uint64_t PartOf(std::uint32_t number, std::uint64_t part) {
  return std::uint64_t{number} * 64 + part;
}

// From some MB to some GB, 150 MB for half of them: as what registries hold.
std::uint64_t BytesOf(ImageId image) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 12; ++i) {
    sum += static_cast<double>(Mix(image.app * 16 + i) >> 11) * 0x1p-53;
  }
  return static_cast<std::uint64_t>(150e6 * std::exp((sum - 6) * 1.1));
}

std::string NameText(std::uint32_t app) {
  return fmt::format("registry.example.com/team-{:03}/service-{:05}", app % 500, app);
}

}  // namespace

std::string ImageText(ImageId image) {
  return fmt::format("{}:v1.{}", NameText(image.app), image.ref);
}

std::string RefText(std::uint32_t ref) { return "sha256:" + Hex64(PartOf(ref, 0)); }

std::string RepoDigestText(ImageId image) {
  return fmt::format("{}@sha256:{}", NameText(image.app), Hex64(PartOf(image.ref, 8)));
}

ImagePullSecret SecretText(SecretId secret) {
  const std::uint64_t a = Mix(PartOf(secret.tenant, 16));
  const std::uint64_t b = Mix(PartOf(secret.tenant, 17));
  ImagePullSecret text;
  text.uid = fmt::format("{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}", a >> 32, (a >> 16) & 0xffff,
                         a & 0xfff, b >> 48, b & 0xffff'ffff'ffff);
  text.namespace_name = fmt::format("tenant-{:06}", secret.tenant);
  text.name = "registry-pull-secret";
  text.credential_hash = Hex64(PartOf(secret.credential, 32));
  return text;
}

Draws::Draws(std::uint64_t seed) : state_{Mix(seed), Mix(seed + 1) | 1} {}

std::uint64_t Draws::Next() {
  std::uint64_t a = state_[0];
  const std::uint64_t b = state_[1];
  state_[0] = b;
  a ^= a << 23;
  state_[1] = a ^ b ^ (a >> 17) ^ (b >> 26);
  return state_[1] + b;
}

std::uint64_t Draws::Around(double mean) {
  const double whole = std::floor(mean);
  return static_cast<std::uint64_t>(whole) + (Unit() < mean - whole ? 1 : 0);
}

Trace::Trace(const cli::NodeShape& shape, std::uint64_t seed, double days)
    : shape_(shape), draws_(seed), days_(days) {
  const auto tenants = static_cast<std::uint32_t>(shape.tenants);
  for (std::uint32_t i = 0; i < tenants; ++i) {
    // Spread evenly, so that a node of few tenants has its share, too.
    const bool shares = std::floor((i + 1) * shape.shared_percent / 100) >
                        std::floor(i * shape.shared_percent / 100);
    tenants_.push_back({next_tenant_++, shares, shares ? 0 : next_credential_++});
  }
  // Old versions fill the rest of the node's disk.
  const auto apps = std::max<std::uint32_t>(1, static_cast<std::uint32_t>(shape.images * 0.8));
  const auto preloaded = static_cast<std::uint32_t>(shape.preloaded);
  for (std::uint32_t i = 0; i < apps + preloaded; ++i) {
    App app{.ref = next_ref_++};
    app.is_preloaded = i >= apps;
    app.is_public = !app.is_preloaded && draws_.Percent(shape.public_percent);
    app.is_fixed = app.is_preloaded || draws_.Percent(shape.fixed_percent);
    // 1 to twice the mean, less 1: each as often.
    const double most = std::max(0.0, 2 * shape.secrets_per_image - 2);
    std::uint64_t users = 1 + draws_.Around(draws_.Unit() * most);
    users = std::min<std::uint64_t>(users, tenants);
    while (app.slots.size() < users) {
      const auto slot = static_cast<std::uint32_t>(draws_.Below(tenants));
      if (std::find(app.slots.begin(), app.slots.end(), slot) == app.slots.end()) {
        app.slots.push_back(slot);
      }
    }
    if (app.is_preloaded) preloaded_.push_back({i, app.ref});
    apps_.push_back(std::move(app));
  }
  // Which is how popular does not depend on its number, or the preloaded ones were the rarest.
  std::vector<double> weights;
  for (std::size_t i = 0; i < apps_.size(); ++i) {
    weights.push_back(1 / std::pow(static_cast<double>(i + 1), shape.zipf_skew));
  }
  for (std::size_t i = weights.size(); i > 1; --i) {
    std::swap(weights[i - 1], weights[draws_.Below(i)]);
  }
  double sum = 0;
  for (const double weight : weights) popularity_.push_back(sum += weight);
  Fill();
}

SecretId Trace::SecretOf(std::uint32_t slot) const {
  const Tenant& tenant = tenants_[slot];
  return {tenant.id, tenant.shares ? shared_credential_ : tenant.credential};
}

// The node has run for a while: each image was pulled by all who use it.
void Trace::Fill() {
  for (std::uint32_t i = 0; i < apps_.size(); ++i) {
    const App& app = apps_[i];
    const ImageId image{i, app.ref};
    Present known{.image = image, .is_public = app.is_public, .has_record = !app.is_preloaded};
    Event event{.kind = Event::Kind::kPull, .filling = true, .image = image};
    if (!app.is_public && !app.is_preloaded) {
      for (const std::uint32_t slot : app.slots) {
        const SecretId secret = SecretOf(slot);
        known.secrets[secret.tenant] = secret.credential;
        event.secrets.push_back(secret);
      }
    }
    present_.emplace(app.ref, std::move(known));
    if (!app.is_preloaded) Emit(std::move(event));
  }
  Emit({.kind = Event::Kind::kList, .filling = true});
}

void Trace::PlanDay() {
  plan_.clear();
  planned_ = 0;
  const double part = std::min(1.0, days_ - static_cast<double>(day_));
  const auto length = static_cast<std::int64_t>(static_cast<double>(kDay) * part);
  const std::int64_t begin = day_ * kDay + 1;
  const auto add = [&](Task task, double a_day) {
    const std::uint64_t count = draws_.Around(a_day * part);
    for (std::uint64_t i = 0; i < count; ++i) {
      plan_.emplace_back(
          begin + static_cast<std::int64_t>(draws_.Below(static_cast<std::uint64_t>(length))),
          task);
    }
  };
  const double own = shape_.tenants * (1 - shape_.shared_percent / 100);
  const double credentials = own + (shape_.shared_percent > 0 ? 1 : 0);
  add(Task::kPodStart, shape_.pod_starts_per_day);
  add(Task::kVersion, shape_.versions_per_day);
  add(Task::kRotation, credentials * shape_.rotations_per_year / 365);
  add(Task::kTurnover, shape_.tenants * shape_.turnover_percent / 100);
  add(Task::kRestart, shape_.restarts_per_year / 365);
  const auto lists = static_cast<std::int64_t>(shape_.lists_per_day);
  for (std::int64_t i = 1; i <= lists; ++i) {
    const std::int64_t at = kDay * i / lists;
    if (at <= length) plan_.emplace_back(begin + at - 1, Task::kList);
  }
  std::sort(plan_.begin(), plan_.end());
  ++day_;
}

std::optional<Event> Trace::Next() {
  while (queue_.empty()) {
    if (planned_ == plan_.size()) {
      if (static_cast<double>(day_) >= days_) return std::nullopt;
      PlanDay();
      continue;
    }
    const auto [second, task] = plan_[planned_++];
    Do(task, second);
  }
  Event event = std::move(queue_.front());
  queue_.pop_front();
  return event;
}

void Trace::Do(Task task, std::int64_t second) {
  switch (task) {
    case Task::kPodStart:
      return StartPod(second);
    case Task::kVersion: {
      App& app = apps_[draws_.Below(apps_.size())];
      if (!app.is_fixed) app.ref = next_ref_++;
      return;
    }
    case Task::kRotation: {
      const std::uint64_t slot = draws_.Below(tenants_.size());
      if (tenants_[slot].shares) {
        shared_credential_ = next_credential_++;
      } else {
        tenants_[slot].credential = next_credential_++;
      }
      return;
    }
    case Task::kTurnover: {
      Tenant& tenant = tenants_[draws_.Below(tenants_.size())];
      tenant.id = next_tenant_++;
      if (!tenant.shares) tenant.credential = next_credential_++;
      return;
    }
    case Task::kList:
      return ListImages(second);
    case Task::kRestart: {
      // A pull is cut short: its image does not arrive.
      const std::uint32_t app = PickApp();
      if (!apps_[app].is_preloaded && !present_.contains(apps_[app].ref)) {
        Emit({.kind = Event::Kind::kCutPull, .second = second, .image = {app, apps_[app].ref}});
      }
      Emit({.kind = Event::Kind::kRestart, .second = second});
      return;
    }
  }
}

std::uint32_t Trace::PickApp() {
  const double at = draws_.Unit() * popularity_.back();
  const auto found = std::upper_bound(popularity_.begin(), popularity_.end(), at);
  const auto index = static_cast<std::uint32_t>(found - popularity_.begin());
  return std::min(index, static_cast<std::uint32_t>(apps_.size() - 1));
}

void Trace::StartPod(std::int64_t second) {
  std::vector<std::uint32_t> refs;
  const std::uint64_t containers =
      std::max<std::uint64_t>(1, draws_.Around(shape_.containers_per_pod));
  for (std::uint64_t i = 0; i < containers; ++i) StartContainer(second, refs);
  pods_.push_back(std::move(refs));
  while (static_cast<double>(pods_.size()) > shape_.pods) {
    for (const std::uint32_t ref : pods_.front()) --present_.at(ref).pods;
    pods_.pop_front();
  }
}

void Trace::StartContainer(std::int64_t second, std::vector<std::uint32_t>& pod) {
  const std::uint32_t index = PickApp();
  const App& app = apps_[index];
  const ImageId image{index, app.ref};
  const SecretId secret = SecretOf(app.slots[draws_.Below(app.slots.size())]);
  Event event{.kind = Event::Kind::kDecide, .second = second, .image = image};
  event.secrets = {secret};
  const auto found = present_.find(app.ref);
  if (found == present_.end()) {
    event.pull = true;
  } else if (!found->second.has_record) {
    event.reason = Reason::kPolicyKnownPreloaded;
  } else if (found->second.is_public) {
    event.reason = Reason::kNodePodsAccessible;
  } else {
    auto& known = found->second.secrets;
    const bool may_write = known.size() < kMaxSecretsForWriteBack;
    const auto same = known.find(secret.tenant);
    const bool same_hash = std::any_of(known.begin(), known.end(), [&](const auto& one) {
      return one.second == secret.credential;
    });
    const bool changes = same == known.end() || same->second != secret.credential;
    event.pull = !same_hash && !(same != known.end() && may_write);
    event.writes_back = !event.pull && changes && may_write;
    event.reason = event.pull                                 ? Reason::kNoCredentialMatches
                   : event.writes_back && same != known.end() ? Reason::kSecretCoordinatesMatch
                                                              : Reason::kSecretHashMatches;
    if (event.writes_back) known[secret.tenant] = secret.credential;
  }
  const bool pull = event.pull;
  Emit(std::move(event));
  if (pull) PullImage(second, app, image, secret);
  Present& used = present_.at(app.ref);
  used.last_used = second;
  ++used.pods;
  pod.push_back(app.ref);
}

void Trace::PullImage(std::int64_t second, const App& app, ImageId image, SecretId secret) {
  if (draws_.Percent(shape_.failed_pulls_percent)) {
    Emit({.kind = Event::Kind::kFailedPull, .second = second, .image = image});
  }
  Event event{.kind = Event::Kind::kPull, .second = second, .image = image};
  Present& known = present_[app.ref];
  known.image = image;
  known.is_public = app.is_public;
  if (!app.is_public) {
    event.secrets = {secret};
    known.secrets[secret.tenant] = secret.credential;
  }
  Emit(std::move(event));
}

void Trace::ListImages(std::int64_t second) {
  Event event{.kind = Event::Kind::kList, .second = second};
  if (static_cast<double>(present_.size()) > shape_.images) {
    std::vector<std::pair<std::int64_t, std::uint32_t>> unused;
    for (const auto& [ref, image] : present_) {
      if (image.pods == 0 && image.has_record) unused.emplace_back(image.last_used, ref);
    }
    std::sort(unused.begin(), unused.end());
    const double keep = shape_.images * 0.9;
    for (const auto& [used, ref] : unused) {
      if (static_cast<double>(present_.size()) <= keep) break;
      event.collected.push_back(present_.at(ref).image);
      present_.erase(ref);
    }
  }
  Emit(std::move(event));
}

namespace {

TraceEvent LineOf(TraceEvent::Kind kind, const Event& event, ImageId image) {
  return {.kind = kind,
          .time_ms = (kBegin + event.second) * 1000,
          .image = ImageText(image),
          .ref = RefText(image.ref),
          .bytes = BytesOf(image)};
}

std::vector<TraceEvent> LinesOf(const Event& event, const Trace& trace) {
  using Kind = TraceEvent::Kind;
  const auto line = [&event](Kind kind) { return LineOf(kind, event, event.image); };
  // A pull or a use, and whose it is.
  const auto by_secrets = [&](Kind kind) {
    TraceEvent told = line(kind);
    for (const SecretId& secret : event.secrets) {
      told.pod_namespace = SecretText(secret).namespace_name;
      told.credentials.push_back(fmt::format("{:016x}", Mix(secret.credential)));
    }
    return told;
  };
  switch (event.kind) {
    case Event::Kind::kDecide: {
      TraceEvent use = by_secrets(Kind::kUse);
      use.must_pull = event.pull;
      use.reason = ReasonName(event.reason);
      if (event.reason == Reason::kImageAbsent) {
        use.ref.clear();
        use.bytes.reset();
      }
      return {use};
    }
    case Event::Kind::kPull:
      // What the node begins with was pulled before the trace.
      if (event.filling) return {line(Kind::kImage)};
      return {line(Kind::kPullBegun), by_secrets(Kind::kPulled)};
    case Event::Kind::kFailedPull:
      return {line(Kind::kPullBegun), line(Kind::kPullFailed)};
    case Event::Kind::kCutPull:
      return {line(Kind::kPullBegun)};
    case Event::Kind::kRestart:
      return {{.kind = Kind::kStart, .time_ms = (kBegin + event.second) * 1000}};
    case Event::Kind::kList:
      break;
  }
  std::vector<TraceEvent> lines;
  for (const ImageId image : event.collected) {
    lines.push_back(LineOf(Kind::kRemoved, event, image));
  }
  if (event.filling) {
    for (const ImageId image : trace.preloaded()) {
      lines.push_back(LineOf(Kind::kImage, event, image));
    }
  }
  lines.push_back({.kind = Kind::kList, .time_ms = (kBegin + event.second) * 1000});
  return lines;
}

}  // namespace

std::string TraceText(const cli::NodeShape& shape, std::uint64_t seed, double days) {
  Trace trace(shape, seed, days);
  std::string text = TraceHeaderLine("generated");
  text += TraceLine({.kind = TraceEvent::Kind::kStart, .time_ms = kBegin * 1000});
  while (const auto event = trace.Next()) {
    for (const TraceEvent& line : LinesOf(*event, trace)) text += TraceLine(line);
  }
  return text;
}

}  // namespace waybill::bench
