// TRY(expression): the value of a Result. If it is an error, the function returns that. It stands
// alone, is a whole condition, negated or not, or all that a variable is made of or set to: in a
// larger expression other values may live when it returns.
//
//   auto record = TRY(ReadRecord(key));
//   if (TRY(Exists(path))) …
//   TRY(txn.Delete(key));

#ifndef WAYBILL_STORE_BASE_TRY_H_
#define WAYBILL_STORE_BASE_TRY_H_

#include <type_traits>
#include <utility>

namespace waybill::internal {

// The value, out of a temporary or copied.
template <typename R>
typename std::remove_cvref_t<R>::value_type ValueOf(R&& result) {
  if constexpr (!std::is_void_v<typename std::remove_cvref_t<R>::value_type>) {
    return *std::forward<R>(result);
  }
}

}  // namespace waybill::internal

// NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared takes none.
#define WAYBILL_TRY_NAMED(result, expression)                             \
  __extension__({                                                         \
    auto&& result = (expression);                                         \
    if (!result.has_value()) [[unlikely]] {                               \
      return std::forward<decltype(result)>(result).error();              \
    }                                                                     \
    ::waybill::internal::ValueOf(std::forward<decltype(result)>(result)); \
  })
// NOLINTEND(bugprone-macro-parentheses)
#define WAYBILL_TRY_NUMBERED(number, ...) WAYBILL_TRY_NAMED(try_result_##number, (__VA_ARGS__))
#define WAYBILL_TRY_COUNTED(number, ...) WAYBILL_TRY_NUMBERED(number, __VA_ARGS__)
#define TRY(...) WAYBILL_TRY_COUNTED(__COUNTER__, __VA_ARGS__)

#endif  // WAYBILL_STORE_BASE_TRY_H_
