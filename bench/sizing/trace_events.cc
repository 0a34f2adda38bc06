#include "bench/sizing/trace_events.h"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "waybill/decision.h"

namespace waybill::bench {

namespace {

constexpr std::int64_t kBegin = 1'767'225'600'000;  // 2026-01-01

// From some MB to some GB, 150 MB for half of them: as what registries hold.
std::uint64_t BytesOf(ImageId image) {
  double sum = 0;
  for (std::uint64_t i = 0; i < 12; ++i) {
    sum += static_cast<double>(Mixed(image.app * 16 + i) >> 11) * 0x1p-53;
  }
  return static_cast<std::uint64_t>(150e6 * std::exp((sum - 6) * 1.1));
}

std::string Pseudonym(std::uint32_t credential) {
  return fmt::format("{:016x}", Mixed(credential));
}

}  // namespace

TraceEvents::TraceEvents(const Trace& trace) {
  for (const ImageId image : trace.preloaded()) {
    preloaded_.push_back(Begin(TraceEvent::Kind::kImage, image));
  }
}

TraceEvent TraceEvents::Begin(TraceEvent::Kind kind, ImageId image) const {
  return {.kind = kind,
          .time_ms = kBegin + second_ * 1000,
          .image = ImageText(image),
          .ref = RefText(image.ref),
          .bytes = BytesOf(image)};
}

TraceEvent TraceEvents::Use(const Event& event) {
  TraceEvent use = Begin(TraceEvent::Kind::kUse, event.image);
  const SecretId secret = event.secrets.front();
  use.pod_namespace = SecretText(secret).namespace_name;
  use.credentials = {Pseudonym(secret.credential)};
  use.must_pull = event.pull;
  const auto record = records_.find(event.image.ref);
  Reason reason = Reason::kNoCredentialMatches;
  if (!event.present) {
    use.ref.clear();
    use.bytes.reset();
    reason = Reason::kImageAbsent;
  } else if (record == records_.end()) {
    reason = Reason::kPolicyKnownPreloaded;
  } else if (!event.pull && record->second.empty()) {
    reason = Reason::kNodePodsAccessible;
  } else if (!event.pull) {
    const auto known = record->second.find(secret.tenant);
    const bool rotated =
        event.writes_back && known != record->second.end() && known->second != secret.credential;
    reason = rotated ? Reason::kSecretCoordinatesMatch : Reason::kSecretHashMatches;
    if (event.writes_back) record->second[secret.tenant] = secret.credential;
  }
  use.reason = ReasonName(reason);
  return use;
}

std::vector<TraceEvent> TraceEvents::Of(const Event& event) {
  using Kind = TraceEvent::Kind;
  second_ = event.second;
  std::vector<TraceEvent> events;
  switch (event.kind) {
    case Event::Kind::kDecide:
      return {Use(event)};
    case Event::Kind::kPull: {
      Tenants& record = records_[event.image.ref];
      for (const SecretId& secret : event.secrets) record[secret.tenant] = secret.credential;
      // What the node begins with was pulled before the trace.
      if (event.filling) return {Begin(Kind::kImage, event.image)};
      TraceEvent pulled = Begin(Kind::kPulled, event.image);
      for (const SecretId& secret : event.secrets) {
        pulled.pod_namespace = SecretText(secret).namespace_name;
        pulled.credentials.push_back(Pseudonym(secret.credential));
      }
      return {Begin(Kind::kPullBegun, event.image), std::move(pulled)};
    }
    case Event::Kind::kFailedPull:
      return {Begin(Kind::kPullBegun, event.image), Begin(Kind::kPullFailed, event.image)};
    case Event::Kind::kCutPull:
      return {Begin(Kind::kPullBegun, event.image)};
    case Event::Kind::kRestart:
      return {{.kind = Kind::kStart, .time_ms = kBegin + second_ * 1000}};
    case Event::Kind::kList:
      for (const ImageId image : event.collected) {
        records_.erase(image.ref);
        events.push_back(Begin(Kind::kRemoved, image));
      }
      for (TraceEvent& image : std::exchange(preloaded_, {})) events.push_back(std::move(image));
      events.push_back({.kind = Kind::kList, .time_ms = kBegin + second_ * 1000});
      return events;
  }
  return events;
}

std::string TraceText(const cli::NodeShape& shape, std::uint64_t seed, double days) {
  Trace trace(shape, seed, days);
  TraceEvents events(trace);
  std::string text = TraceHeaderLine("generated");
  text += TraceLine({.kind = TraceEvent::Kind::kStart, .time_ms = kBegin});
  while (const auto event = trace.Next()) {
    for (const TraceEvent& line : events.Of(*event)) text += TraceLine(line);
  }
  return text;
}

}  // namespace waybill::bench
