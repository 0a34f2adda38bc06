// Streaming requests: their store and its calls.

#include <chrono>
#include <limits>

#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::Result;
using waybill::StreamingStore;

waybill_code waybill_streaming_open(const waybill_streaming_options* options,
                                    waybill_streaming_store** store, waybill_error** error) {
  return MakeHandle(store, error,
                    [&](waybill_streaming_store* made,
                        Arguments& arguments) -> Result<std::unique_ptr<StreamingStore>> {
                      const auto o = arguments.Options(options, "options");
                      waybill::StreamingOptions to{
                          .directory = arguments.Path(o.directory, "directory"),
                          .create_if_missing = !o.must_exist,
                          .witness = ToWitness(o.witness_kind, o.witness_path, arguments)};
                      to.keeps_tokens = o.keeps_tokens;
                      if (o.time_to_live_ns >
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
                        arguments.Wrong("time_to_live_ns", "is more than 1 hour");
                      } else if (o.time_to_live_ns != 0) {
                        to.time_to_live =
                            std::chrono::nanoseconds(static_cast<std::int64_t>(o.time_to_live_ns));
                      }
                      if (o.max_open != 0) to.max_open = o.max_open;
                      to.migrate = !o.no_migration;
                      to.skip_unreadable = o.skip_unreadable;
                      to.flushes_twice = o.flushes_twice;
                      if (o.map_bytes != 0) to.map_bytes = o.map_bytes;
                      to.clock = ToClock(o.clock, o.clock_context, made);
                      to.boot_clock = ToBootClock(o.boot_clock, o.boot_clock_context, made);
                      if (!arguments.ok()) return arguments.error();
                      return o.continues ? StreamingStore::Continue(std::move(to))
                                         : StreamingStore::Open(std::move(to));
                    });
}

waybill_code waybill_streaming_observe(waybill_string directory, waybill_streaming_store** store,
                                       waybill_error** error) {
  return MakeHandle(store, error,
                    [&](waybill_streaming_store*,
                        Arguments& arguments) -> Result<std::unique_ptr<StreamingStore>> {
                      const auto path = arguments.Path(directory, "directory");
                      if (!arguments.ok()) return arguments.error();
                      return StreamingStore::Observe(path);
                    });
}

waybill_code waybill_streaming_close(waybill_streaming_store* store, waybill_error** error) {
  return CloseHandle(store, error);
}

void waybill_streaming_store_free(waybill_streaming_store* store) { FreeHandle(store); }

waybill_code waybill_get_streaming_report(waybill_streaming_store* store,
                                          waybill_streaming_report** report,
                                          waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(store, "store");
    arguments.Given(report, "report");
    if (!arguments.ok()) return arguments.error();
    return Give(Result<waybill::StreamingReport>(store->store->report()), report);
  });
}

waybill_code waybill_get_streaming_counters(waybill_streaming_store* store,
                                            waybill_streaming_counters** counters,
                                            waybill_error** error) {
  return Query(store, counters, "counters", error, [](StreamingStore& streams) {
    return Result<waybill::StreamingCounters>(streams.GetCounters());
  });
}
