// Streaming requests: their store and its calls.

#include "waybill/streaming.h"

#include <chrono>
#include <limits>

#include "bindings/c/store.h"
#include "store/base/try.h"

using namespace waybill::c;
using waybill::Error;
using waybill::ErrorCode;
using waybill::Result;
using waybill::StreamingStore;

struct waybill_streaming_store {
  Gate gate;
  std::unique_ptr<StreamingStore> store;
};

namespace waybill::c {
namespace {

// Runs `body(StreamingStore&, Arguments&)`, which returns Result<void>. The store can't be closed
// meanwhile.
template <typename Body>
waybill_code OnStreams(waybill_streaming_store* store, waybill_error** error,
                       const Body& body) noexcept {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (store == nullptr) return Error{ErrorCode::kInvalidArgument, "store is a null pointer", {}};
    if (CallbackScope::IsInside(store)) {
      return Error{ErrorCode::kInvalidArgument, "a callback called back into its own store", {}};
    }
    if (!store->gate.Enter())
      return Error{ErrorCode::kClosed, "the store is closed", "open it again"};
    struct Leaving {
      Gate& gate;
      ~Leaving() { gate.Leave(); }
    } const leaving{store->gate};
    return body(*store->store, arguments);
  });
}

template <typename C, typename Get>
waybill_code QueryStreams(waybill_streaming_store* store, C** out, const char* name,
                          waybill_error** error, const Get& get) noexcept {
  if (out != nullptr) *out = nullptr;
  return OnStreams(store, error,
                   [&](StreamingStore& streams, Arguments& arguments) -> Result<void> {
                     if (!arguments.Given(out, name)) return arguments.error();
                     return get(streams);
                   });
}

StreamKind ToStreamKind(std::int32_t kind, Arguments& arguments) {
  if (kind < WAYBILL_STREAM_EXEC || kind > WAYBILL_STREAM_PORT_FORWARD) {
    arguments.Wrong("kind", "has no such value");
    return StreamKind::kExec;
  }
  return static_cast<StreamKind>(kind);
}

StreamingRequest ToStreamingRequest(const waybill_streaming_request* request,
                                    Arguments& arguments) {
  if (!arguments.Given(request, "request")) return {};
  StreamingRequest to{.kind = ToStreamKind(request->kind, arguments),
                      .container_id = arguments.String(request->container_id, "container_id"),
                      .pod_sandbox_id = arguments.String(request->pod_sandbox_id, "pod_sandbox_id"),
                      .command = arguments.Strings(request->command, "command"),
                      .std_in = request->std_in,
                      .std_out = request->std_out,
                      .std_err = request->std_err,
                      .tty = request->tty};
  const auto ports = arguments.Array(request->ports, request->port_count, "ports");
  to.ports.assign(ports.begin(), ports.end());
  return to;
}

waybill_streaming_request ToC(const StreamingRequest& request, Memory& memory) {
  return {.kind = static_cast<std::int32_t>(request.kind),
          .container_id = Copy(request.container_id, memory),
          .pod_sandbox_id = Copy(request.pod_sandbox_id, memory),
          .command = CopyStrings(request.command, memory),
          .std_in = request.std_in,
          .std_out = request.std_out,
          .std_err = request.std_err,
          .tty = request.tty,
          .ports = CopyEach<std::uint16_t>(request.ports, memory,
                                           [](std::uint16_t port, Memory&) { return port; }),
          .port_count = request.ports.size()};
}

// Opens with `open`, and gives the handle to the caller.
template <typename Open>
waybill_code MakeStreams(waybill_streaming_store** store, waybill_error** error,
                         const Open& open) noexcept {
  if (store != nullptr) *store = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(store, "store");
    auto made = std::make_unique<waybill_streaming_store>();
    auto opened = TRY(open(made.get(), arguments));
    made->store = std::move(opened);
    *store = made.release();
    return {};
  });
}

}  // namespace
}  // namespace waybill::c

waybill_string waybill_stream_kind_name(int32_t kind) {
  if (kind < WAYBILL_STREAM_EXEC || kind > WAYBILL_STREAM_PORT_FORWARD) return Borrow("");
  return Borrow(waybill::StreamKindName(static_cast<waybill::StreamKind>(kind)));
}

waybill_code waybill_check_streaming_request(const waybill_streaming_request* request,
                                             waybill_error** error) {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto checked = ToStreamingRequest(request, arguments);
    if (!arguments.ok()) return arguments.error();
    return waybill::CheckStreamingRequest(checked);
  });
}

waybill_code waybill_stream_token_id(waybill_string token, waybill_string** id,
                                     waybill_error** error) {
  if (id != nullptr) *id = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto text = arguments.Text(token, "token");
    arguments.Given(id, "id");
    if (!arguments.ok()) return arguments.error();
    *id = NewResult<waybill_string>([&](waybill_string& to, Memory& memory) {
      to = Copy(waybill::StreamTokenId(text), memory);
    });
    return {};
  });
}

waybill_code waybill_streaming_open(const waybill_streaming_options* options,
                                    waybill_streaming_store** store, waybill_error** error) {
  return MakeStreams(store, error,
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
  return MakeStreams(store, error,
                     [&](waybill_streaming_store*,
                         Arguments& arguments) -> Result<std::unique_ptr<StreamingStore>> {
                       const auto path = arguments.Path(directory, "directory");
                       if (!arguments.ok()) return arguments.error();
                       return StreamingStore::Observe(path);
                     });
}

waybill_code waybill_streaming_close(waybill_streaming_store* store, waybill_error** error) {
  return Call(error, [&](Arguments&) -> Result<void> {
    if (store == nullptr) return Error{ErrorCode::kInvalidArgument, "store is a null pointer", {}};
    if (CallbackScope::IsInside(store)) {
      return Error{ErrorCode::kInvalidArgument, "a callback called back into its own store", {}};
    }
    if (!store->gate.Close()) {
      return Error{ErrorCode::kClosed, "the store is closed already", {}};
    }
    return store->store->Close();
  });
}

void waybill_streaming_store_free(waybill_streaming_store* store) {
  if (store == nullptr || CallbackScope::IsInside(store)) return;
  if (!store->gate.closed()) static_cast<void>(waybill_streaming_close(store, nullptr));
  delete store;
}

waybill_code waybill_get_streaming_report(waybill_streaming_store* store,
                                          waybill_streaming_report** report,
                                          waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(store, "store");
    arguments.Given(report, "report");
    if (!arguments.ok()) return arguments.error();
    *report = NewResult<waybill_streaming_report>(
        [&](auto& to, Memory& memory) { to = ToC(store->store->report(), memory); });
    return {};
  });
}

waybill_code waybill_prepare_stream(waybill_streaming_store* store,
                                    const waybill_streaming_request* request,
                                    waybill_string** token, waybill_error** error) {
  if (token != nullptr) *token = nullptr;
  return OnStreams(
      store, error, [&](StreamingStore& streams, Arguments& arguments) -> Result<void> {
        const auto asked = ToStreamingRequest(request, arguments);
        arguments.Given(token, "token");
        if (!arguments.ok()) return arguments.error();
        const auto prepared = TRY(streams.Prepare(asked));
        *token = NewResult<waybill_string>(
            [&](waybill_string& to, Memory& memory) { to = Copy(prepared, memory); }, Wiping());
        return {};
      });
}

waybill_code waybill_consume_stream(waybill_streaming_store* store, waybill_string token,
                                    int32_t kind, waybill_streaming_request** request,
                                    waybill_error** error) {
  if (request != nullptr) *request = nullptr;
  return OnStreams(
      store, error, [&](StreamingStore& streams, Arguments& arguments) -> Result<void> {
        const auto text = arguments.Text(token, "token");
        const auto stream_kind = ToStreamKind(kind, arguments);
        arguments.Given(request, "request");
        if (!arguments.ok()) return arguments.error();
        const auto consumed = TRY(streams.Consume(text, stream_kind));
        *request = NewResult<waybill_streaming_request>(
            [&](waybill_streaming_request& to, Memory& memory) { to = ToC(consumed, memory); },
            Wiping());
        return {};
      });
}

waybill_code waybill_list_streams(waybill_streaming_store* store, waybill_open_streams** streams,
                                  waybill_error** error) {
  return QueryStreams(store, streams, "streams", error, [&](StreamingStore& from) -> Result<void> {
    return Give(from.List(), streams);
  });
}

waybill_code waybill_get_streaming_counters(waybill_streaming_store* store,
                                            waybill_streaming_counters** counters,
                                            waybill_error** error) {
  return QueryStreams(
      store, counters, "counters", error, [&](StreamingStore& from) -> Result<void> {
        const waybill::StreamingCounters now = from.GetCounters();
        *counters = NewResult<waybill_streaming_counters>(
            [&](waybill_streaming_counters& to, Memory& memory) {
              to = {.prepared = now.prepared,
                    .prepare_invalid = now.prepare_invalid,
                    .prepare_full = now.prepare_full,
                    .prepare_failed = now.prepare_failed,
                    .consumed = now.consumed,
                    .refused_unknown = now.refused_unknown,
                    .refused_expired = now.refused_expired,
                    .refused_kind = now.refused_kind,
                    .consume_failed = now.consume_failed,
                    .voided = now.voided,
                    .open = now.open,
                    .prometheus_text = Copy(waybill::ToPrometheusText(now.Families()), memory)};
            });
        return {};
      });
}

waybill_code waybill_verify_streaming(waybill_streaming_store* store,
                                      waybill_verify_report** report, waybill_error** error) {
  return QueryStreams(store, report, "report", error, [&](StreamingStore& from) -> Result<void> {
    return Give(from.Verify(), report);
  });
}
