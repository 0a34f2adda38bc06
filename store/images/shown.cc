#include "store/images/shown.h"

#include <algorithm>

namespace waybill::internal {

namespace {

std::optional<Timestamp> AbsentSince(const ImageRow& row, const Clocks& now, Timestamp clock) {
  if (row.absent == 0) return std::nullopt;
  auto ran = static_cast<std::int64_t>(std::max(now.RanSeconds(), row.absent) - row.absent);
  // Seconds of the two clocks do not begin together: the answer would change from call to call.
  if (clock.nanoseconds < now.ran.count() % 1'000'000'000) ++ran;
  return Timestamp{std::max<std::int64_t>(clock.seconds - ran, 1), 0};
}

}  // namespace

ImagePulledRecord RecordOf(const ImageRow& row, const Clocks& now, Timestamp clock) {
  const PulledPart& pulled = *row.pulled;
  ImagePulledRecord record;
  record.image_ref = row.Ref();
  record.last_updated = pulled.last_updated;
  record.credential_mapping = pulled.entries;
  record.private_names = pulled.private_names;
  record.stamp = row.stamp;
  record.runtime_handler = row.runtime_handler;
  record.manifest_digest = pulled.manifest_digest;
  record.platform = pulled.platform;
  record.guest_platform = pulled.guest_platform;
  record.closed_because = pulled.closed_because;
  record.closed_by_list = pulled.closed_by == ClosedBy::kList;
  record.closed_by_operator = pulled.closed_by == ClosedBy::kOperator;
  record.absent_since = AbsentSince(row, now, clock);
  record.absent_ran = row.absent;
  return record;
}

PreloadedImage PreloadedOf(const ImageRow& row, const Clocks& now, Timestamp clock) {
  const PreloadedPart& part = *row.preloaded;
  return {.image_ref = row.subject,
          .runtime_handler = row.runtime_handler,
          .names = part.names,
          .source = part.source,
          .reason = part.reason,
          .since = part.since,
          .stamp = part.as_of,
          .absent_since = AbsentSince(row, now, clock),
          .absent_ran = row.absent};
}

}  // namespace waybill::internal
