// Calls that read: of one record beside a bare lookup, of many beside a bare opening and scan.

#include "bench/micro/rows.h"
#include "store/base/metrics.h"

namespace waybill::bench {

void MeasureReadingCalls(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  const Questions& known = on.questions;
  const auto row = [&](const char* what, const auto& ours) {
    BesideLookup(micro, on.bare, what, ours);
  };
  const auto copy = [&known](std::size_t i) {
    const Question& question = known[i % known.size()];
    return ImageCopy{.image = question.image, .image_ref = question.image_ref};
  };
  row("GetRecord", [&](std::size_t i) {
    if (Must(store.GetRecord({.image_ref = copy(i).image_ref})).credential_mapping.size() != 1) {
      Unexpected("GetRecord");
    }
  });
  row("HasIntent: none", [&](std::size_t i) {
    if (Must(store.HasIntent({.image = copy(i).image}))) Unexpected("HasIntent");
  });
  row("Explain: a record", [&](std::size_t i) {
    if (!Must(store.Explain(copy(i))).recorded) Unexpected("Explain");
  });
  row("ListIntents", [&](std::size_t) { Must(store.ListIntents()); });
  row("ListOpenPulls", [&](std::size_t) { Must(store.ListOpenPulls()); });
  row("ListQuarantine", [&](std::size_t) { Must(store.ListQuarantine()); });
  row("ListPreloaded", [&](std::size_t) { Must(store.ListPreloaded()); });
  row("GetTrust", [&](std::size_t) { Must(store.GetTrust()); });
  row("GetStatistics", [&](std::size_t) {
    if (Must(store.GetStatistics()).records < on.records) Unexpected("GetStatistics");
  });
  row("GetMetrics", [&](std::size_t) { (void)store.GetMetrics(); });
  const Metrics metrics = store.GetMetrics();
  row("Metrics::ToPrometheusText", [&](std::size_t) {
    if (metrics.ToPrometheusText().empty()) Unexpected("ToPrometheusText");
  });
  row("recovery_report", [&](std::size_t) {
    if (store.recovery_report().distrustful) Unexpected("recovery_report");
  });
  row("BeginList", [&](std::size_t) { Must(store.BeginList()); });
  row("Flush: nothing waits", [&](std::size_t) { Must(store.Flush()); });
}

}  // namespace waybill::bench
