// Addresses of streaming servers; rates of connections.

#include "waybill/stream_url.h"

#include <cstring>
#include <limits>
#include <type_traits>

#include "bindings/c/convert.h"
#include "waybill/rate_limit.h"

using namespace waybill::c;
using waybill::RateLimit;
using waybill::Result;
using waybill::StreamScheme;
using waybill::StreamUrlRefusal;

namespace {

// Makes the result of `check(arguments, policy)`.
template <typename Check>
waybill_code Checked(const waybill_stream_url_policy* policy, waybill_stream_url_check** out,
                     waybill_error** error, const Check& check) noexcept {
  if (out != nullptr) *out = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    if (!arguments.Given(out, "check")) return arguments.error();
    const auto known = FromC(policy, arguments);
    const waybill::StreamUrlCheck checked = check(arguments, known);
    if (!arguments.ok()) return arguments.error();
    *out = NewResult<waybill_stream_url_check>([&](waybill_stream_url_check& to, Memory& memory) {
      to.refusal = static_cast<std::int32_t>(checked.refusal);
      to.scheme = static_cast<std::int32_t>(checked.address.scheme);
      to.message = Copy(checked.message, memory);
      to.host = Copy(checked.address.host, memory);
      to.port = checked.address.port;
      to.path = Copy(checked.address.path, memory);
    });
    return {};
  });
}

// The state that C keeps is the bytes of a RateLimit, so that all zero is one without a limit.
static_assert(std::is_trivially_copyable_v<RateLimit>);
static_assert(sizeof(RateLimit) <= sizeof(waybill_rate_limit));

template <typename Use>
auto With(waybill_rate_limit* limit, const Use& use) noexcept {
  RateLimit bucket({}, 0);
  std::memcpy(static_cast<void*>(&bucket), limit, sizeof bucket);
  const auto put_back = [&] { std::memcpy(limit, &bucket, sizeof bucket); };
  if constexpr (std::is_void_v<decltype(use(bucket))>) {
    use(bucket);
    put_back();
  } else {
    const auto answer = use(bucket);
    put_back();
    return answer;
  }
}

}  // namespace

waybill_code waybill_check_stream_url(waybill_string url, const waybill_stream_url_policy* policy,
                                      waybill_stream_url_check** check, waybill_error** error) {
  return Checked(policy, check, error, [&](Arguments& arguments, const auto& known) {
    return waybill::StreamUrlChecked(arguments.Text(url, "url"), known);
  });
}

waybill_code waybill_check_stream_redirect(waybill_string original, waybill_string location,
                                           const waybill_stream_url_policy* policy,
                                           waybill_stream_url_check** check,
                                           waybill_error** error) {
  return Checked(policy, check, error, [&](Arguments& arguments, const auto& known) {
    const std::string_view from = arguments.Text(original, "original");
    return waybill::CheckStreamRedirect(from, arguments.Text(location, "location"), known);
  });
}

waybill_rate_limit waybill_rate_limit_make(uint64_t bytes_per_second, uint64_t burst_bytes,
                                           int64_t now_ns) {
  const RateLimit bucket({.bytes_per_second = bytes_per_second, .burst_bytes = burst_bytes},
                         now_ns);
  waybill_rate_limit made{};
  std::memcpy(&made, &bucket, sizeof bucket);
  return made;
}

uint64_t waybill_rate_limit_take(waybill_rate_limit* limit, uint64_t wanted, int64_t now_ns) {
  if (limit == nullptr) return 0;
  return With(limit, [&](RateLimit& bucket) { return bucket.Take(wanted, now_ns); });
}

void waybill_rate_limit_give_back(waybill_rate_limit* limit, uint64_t bytes) {
  if (limit == nullptr) return;
  With(limit, [&](RateLimit& bucket) { bucket.GiveBack(bytes); });
}

int64_t waybill_rate_limit_wait(waybill_rate_limit* limit, uint64_t wanted, int64_t now_ns) {
  if (limit == nullptr) return std::numeric_limits<std::int64_t>::max();
  return With(limit, [&](RateLimit& bucket) { return bucket.Wait(wanted, now_ns); });
}
