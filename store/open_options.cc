#include "store/open_options.h"

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "store/base/described.h"
#include "store/base/try.h"
#include "store/door/calls.h"

namespace waybill::internal {

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

// What only tests choose.
struct TestParameters {
  bool manual_clock = false;
  std::int64_t unix_ns = 0;
  std::int64_t boot_ns = 0;
};

WAYBILL_DESCRIBE(TestParameters, (), (manual_clock, unix_ns, boot_ns));

struct OpenParameters {
  OpenOptions options;
  TestParameters test;
};

void Describe(auto& v, const OpenParameters& x) {
  WAYBILL_MAY_HAVE(x.options, kubelet_directory, images, runtimes, settings, preloaded,
                   first_start_closes, unrecorded, create, migrate, skip_unreadable,
                   continues_pulls, allow_untested_lmdb, allow_empty);
  v.Flat(x.test);
}

struct StreamParameters {
  StreamOptions options;
  TestParameters test;
};

void Describe(auto& v, const StreamParameters& x) {
  WAYBILL_MAY_HAVE(x.options, keeps_tokens, continues, time_to_live_ms, max_open);
  v.Flat(x.test);
}

// `name`: what the caller calls the text.
template <typename T>
Result<T> Read(std::string_view json, std::string_view name) {
  T value;
  if (json.empty()) return value;
  if (const std::string wrong = FromJson(json, value, Strangers::kRefuse); !wrong.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 std::string(name) + ": " + wrong + "; nothing was changed"};
  }
  return value;
}

template <typename Parameters>
auto OptionsOf(std::string_view directory, std::string_view loss_marker, std::string_view json,
               ManualClock& clock) -> Result<decltype(Parameters::options)> {
  auto read = TRY(Read<Parameters>(json, "options"));
  read.options.directory = directory;
  read.options.loss_marker = loss_marker;
  if (read.test.manual_clock) {
    read.options.clocks = clock.Use(read.test.unix_ns, read.test.boot_ns);
  }
  return std::move(read.options);
}

}  // namespace

waybill::Clocks ManualClock::Use(std::int64_t unix_ns, std::int64_t boot_ns) {
  const Timestamp now = SystemClock();
  const BootTime since_boot = SystemBootClock();
  used_ = true;
  boot_id_ = since_boot.boot_id;
  Set(unix_ns != 0 ? unix_ns : now.seconds * kSecond + now.nanoseconds,
      boot_ns != 0 ? boot_ns : since_boot.nanoseconds);
  return {
      .wall =
          [this] {
            const std::chrono::nanoseconds since(unix_ns_);
            const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
            return Timestamp{seconds.count(), static_cast<std::int32_t>((since - seconds).count())};
          },
      .boot =
          [this] {
            return BootTime{boot_id_, boot_ns_};
          }};
}

void ManualClock::Set(std::int64_t unix_ns, std::int64_t boot_ns) {
  unix_ns_ = unix_ns;
  boot_ns_ = boot_ns;
}

Result<OpenOptions> OpenOptionsOf(std::string_view directory, std::string_view loss_marker,
                                  std::string_view json, ManualClock& clock) {
  return OptionsOf<OpenParameters>(directory, loss_marker, json, clock);
}

Result<StreamOptions> StreamOptionsOf(std::string_view directory, std::string_view loss_marker,
                                      std::string_view json, ManualClock& clock) {
  return OptionsOf<StreamParameters>(directory, loss_marker, json, clock);
}

Result<PullDetails> PullDetailsOf(std::string_view json) {
  return Read<PullDetails>(json, "details");
}

}  // namespace waybill::internal
