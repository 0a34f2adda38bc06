#include "bindings/c/store.h"

#include <chrono>
#include <thread>

#include "store/base/try.h"

namespace waybill::c {

thread_local const CallbackScope* CallbackScope::innermost_ = nullptr;

std::size_t Gate::StripeOfThread() {
  // Each thread has its own copy, some pages away from those of other threads.
  static thread_local char of_thread;
  const auto address = reinterpret_cast<std::uintptr_t>(&of_thread);
  return ((address >> 12U) * 0x9E3779B97F4A7C15U) >> 59U;
}

bool Gate::Close() {
  if (closed_.exchange(true)) return false;
  for (const Count& count : counts_) {
    // Sequentially consistent, as the two steps of Enter: either Enter sees that the gate is
    // closed, or this loop sees the call.
    for (unsigned looks = 0; count.inside.load() != 0; ++looks) {
      if (looks < 100) {
        std::this_thread::yield();
      } else {
        std::this_thread::sleep_for(std::chrono::microseconds(200));
      }
    }
  }
  return true;
}

Result<void> CheckHandle(const void* store) {
  if (store == nullptr) return Error{ErrorCode::kInvalidArgument, "store is a null pointer", {}};
  if (CallbackScope::IsInside(store)) {
    return Error{ErrorCode::kInvalidArgument, "a callback called back into its own store", {}};
  }
  return {};
}

Error Refusal(const void* store) {
  auto checked = CheckHandle(store);
  return checked ? Error{ErrorCode::kClosed, "the store is closed", "open it again"}
                 : std::move(checked.error());
}

Clock ToClock(waybill_clock clock, void* context, const void* store) {
  if (clock == nullptr) return SystemClock;
  return [clock, context, store] {
    const CallbackScope scope(store);
    const waybill_timestamp time = clock(context);
    // A record whose time is out of bounds could not be read again.
    return IsTime(time) ? Timestamp{time.seconds, time.nanoseconds} : SystemClock();
  };
}

BootClock ToBootClock(waybill_boot_clock clock, void* context, const void* store) {
  if (clock == nullptr) return SystemBootClock;
  return [clock, context, store] {
    const CallbackScope scope(store);
    Arguments none;
    return FromC(clock(context), none);
  };
}

Progress ToProgress(waybill_progress progress, void* context, const void* store) {
  if (progress == nullptr) return {};
  return [progress, context, store](std::uint64_t done, std::uint64_t total) {
    const CallbackScope scope(store);
    return progress(context, done, total);
  };
}

Witness ToWitness(std::int32_t kind, waybill_string path, Arguments& arguments) {
  const std::string at = arguments.Path(path, "witness_path");
  switch (kind) {
    case WAYBILL_WITNESS_AT:
    case WAYBILL_WITNESS_ANEW:
      if (at.empty()) arguments.Wrong("witness_path", "is empty");
      return kind == WAYBILL_WITNESS_AT ? Witness::At(at) : Witness::Anew(at);
    case WAYBILL_WITNESS_REMEMBERED:
    case WAYBILL_WITNESS_NONE:
      if (!at.empty()) arguments.Wrong("witness_path", "is set beside another witness_kind");
      return kind == WAYBILL_WITNESS_NONE ? Witness::None() : Witness::Remembered();
    default:
      arguments.Wrong("witness_kind", "has no such value: having none must be spelt out");
      return Witness::None();
  }
}

namespace {

UserNamespaceOptions ToUserNamespaces(const waybill_user_namespace_options* options,
                                      Arguments& arguments) {
  if (options == nullptr) return {};
  const auto known = arguments.Options(options, "user_namespaces");
  UserNamespaceOptions to{.enabled = !known.disabled, .pool = FromC(known.pool, arguments)};
  if (to.pool == IdPool{0, 0, 0, 0}) to.pool = IdPool::Default();
  return to;
}

EvidenceOptions ToEvidence(const waybill_evidence_options* options, Arguments& arguments) {
  EvidenceOptions to;
  if (options == nullptr) return to;
  const auto o = arguments.Options(options, "evidence");
  if (o.grace_seconds != 0) to.grace = std::chrono::seconds(o.grace_seconds);
  if (o.window_seconds != 0) to.window = std::chrono::seconds(o.window_seconds);
  to.short_names = arguments.OneOf(o.short_names, waybill::ShortNames::kDockerHub, "short_names");
  if (o.remember_seconds != 0) {
    to.remember = std::chrono::seconds(std::max<std::int64_t>(o.remember_seconds, 0));
  }
  return to;
}

std::optional<AgeLimits> ToAges(const waybill_age_limits* limits, Arguments& arguments) {
  if (limits == nullptr) return std::nullopt;
  const auto known = arguments.Options(limits, "ages");
  AgeLimits to{.credentials = std::chrono::seconds(known.credentials_seconds),
               .service_accounts = std::chrono::seconds(known.service_accounts_seconds),
               .node_pods = std::chrono::seconds(known.node_pods_seconds)};
  if (known.revocations_seconds != 0) {
    to.revocations = std::chrono::seconds(known.revocations_seconds);
  }
  return to;
}

TraceOptions ToTrace(const waybill_trace_options* trace, Arguments& arguments) {
  TraceOptions to;
  if (trace == nullptr) return to;
  const auto known = arguments.Options(trace, "trace");
  to.path = arguments.Path(known.path, "trace");
  if (known.max_file_bytes != 0) to.max_file_bytes = known.max_file_bytes;
  if (known.files != 0) to.files = known.files;
  return to;
}

VerificationPolicy ToPolicy(const waybill_policy* policy) {
  return policy == nullptr ? VerificationPolicy{} : policy->policy;
}

}  // namespace
}  // namespace waybill::c

using namespace waybill::c;

waybill_code waybill_open(const waybill_open_options* options, waybill_store** store,
                          waybill_error** error) {
  return MakeHandle(
      store, error,
      [&](waybill_store* made,
          Arguments& arguments) -> waybill::Result<std::unique_ptr<waybill::NodeStore>> {
        const auto o = arguments.Options(options, "options");
        waybill::NodeStoreOptions to{.directory = arguments.Path(o.directory, "directory"),
                                .create_if_missing = !o.must_exist,
                                .witness = ToWitness(o.witness_kind, o.witness_path, arguments)};
        to.rules = arguments.OneOf(o.rules, waybill::Rules::kKubelet, "rules");
        to.policy = ToPolicy(o.policy);
        to.images_on_node = ListFromCIfAny(o.images_on_node, "images_on_node", arguments);
        to.preloaded = ListFromCIfAny(o.preloaded, "preloaded", arguments);
        to.first_start = arguments.OneOf(o.first_start, waybill::FirstStart::kClose, "first_start");
        to.evidence = ToEvidence(o.evidence, arguments);
        to.continues_pulls = o.continues_pulls;
        to.leaves_witness = o.leaves_witness;
        to.boot_clock = ToBootClock(o.boot_clock, o.boot_clock_context, made);
        to.flushes_twice = o.flushes_twice;
        to.ages = ToAges(o.ages, arguments);
        to.kubelet_directory = arguments.Path(o.kubelet_directory, "kubelet_directory");
        to.import_progress = ToProgress(o.import_progress, o.import_context, made);
        to.gap = arguments.OneOf(o.gap, waybill::Gap::kNo, "gap");
        to.runtime_handlers = ListFromCIfAny(o.runtime_handlers, "runtime_handlers", arguments);
        to.user_namespaces = ToUserNamespaces(o.user_namespaces, arguments);
        to.pods_directory = arguments.Path(o.pods_directory, "pods_directory");
        to.migrate = !o.no_migration;
        to.allow_empty = o.allow_empty;
        to.skip_unreadable = o.skip_unreadable;
        to.migration_progress = ToProgress(o.migration_progress, o.migration_context, made);
        to.clock = ToClock(o.clock, o.clock_context, made);
        if (o.map_bytes != 0) to.map_bytes = o.map_bytes;
        to.trace = ToTrace(o.trace, arguments);
        if (!arguments.ok()) return arguments.error();
        return waybill::NodeStore::Open(std::move(to));
      });
}

waybill_code waybill_observe(const waybill_observe_options* options, waybill_store** store,
                             waybill_error** error) {
  return MakeHandle(
      store, error,
      [&](waybill_store* made,
          Arguments& arguments) -> waybill::Result<std::unique_ptr<waybill::NodeStore>> {
        const auto o = arguments.Options(options, "options");
        waybill::ObserveOptions to;
        to.directory = arguments.Path(o.directory, "directory");
        to.rules = arguments.OneOf(o.rules, waybill::Rules::kKubelet, "rules");
        to.policy = ToPolicy(o.policy);
        to.user_namespaces = ToUserNamespaces(o.user_namespaces, arguments);
        to.short_names =
            arguments.OneOf(o.short_names, waybill::ShortNames::kDockerHub, "short_names");
        to.ages = ToAges(o.ages, arguments);
        to.clock = ToClock(o.clock, o.clock_context, made);
        to.asks_witness = !o.ignores_witness;
        if (!arguments.ok()) return arguments.error();
        return waybill::NodeStore::Observe(to);
      });
}

waybill_code waybill_serve(waybill_store* store, const waybill_serve_options* options,
                           waybill_error** error) {
  return OnStore(
      store, error,
      [&](waybill::NodeStore& node_store, Arguments& arguments) -> waybill::Result<void> {
        waybill::ServeOptions to;
        if (options != nullptr) {
          const auto o = arguments.Options(options, "options");
          if (o.patience_ms != 0) to.patience = std::chrono::milliseconds(o.patience_ms);
          if (o.connections != 0) to.connections = o.connections;
        }
        if (!arguments.ok()) return arguments.error();
        return node_store.Serve(to);
      });
}

waybill_code waybill_close(waybill_store* store, waybill_error** error) {
  return CloseHandle(store, error);
}

void waybill_store_free(waybill_store* store) { FreeHandle(store); }

waybill_code waybill_get_recovery_report(waybill_store* store, waybill_recovery_report** report,
                                         waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return Call(error, [&](Arguments& arguments) -> waybill::Result<void> {
    arguments.Given(store, "store");
    arguments.Given(report, "report");
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::Result<waybill::OpeningReport>(store->store->recovery_report()), report);
  });
}
