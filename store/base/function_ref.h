// A reference to the caller's callable. Unlike std::function it owns nothing and never allocates.
// For parameters only; the callable must outlive the call.

#ifndef WAYBILL_STORE_BASE_FUNCTION_REF_H_
#define WAYBILL_STORE_BASE_FUNCTION_REF_H_

#include <memory>
#include <type_traits>
#include <utility>

namespace waybill::internal {

template <typename Signature>
class FunctionRef;

template <typename R, typename... Args>
class FunctionRef<R(Args...)> {
 public:
  template <typename F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
           std::is_invocable_r_v<R, F&, Args...>)
      // NOLINTNEXTLINE(google-explicit-constructor,bugprone-forwarding-reference-overload)
      FunctionRef(F&& callable)
  noexcept
      : callable_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* it, Args... args) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(it))(std::forward<Args>(args)...);
        }) {}

  R operator()(Args... args) const { return call_(callable_, std::forward<Args>(args)...); }

 private:
  void* callable_;
  R (*call_)(void*, Args...);
};

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_BASE_FUNCTION_REF_H_
