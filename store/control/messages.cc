#include "store/control/messages.h"

#include <array>
#include <string>
#include <tuple>
#include <utility>

#include "store/base/caught.h"
#include "store/control/wire.h"

namespace waybill::internal {

namespace {

Error Unintelligible() {
  return {ErrorCode::kInvalidArgument, "the request can't be read; nothing was changed",
          "send it with this version's OwnerClient"};
}

Error AnswerUnreadable(bool changes) {
  return {changes ? ErrorCode::kOutcomeUnknown : ErrorCode::kUnavailable,
          changes ? "the owner's answer can't be read: the change may or may not have happened"
                  : "the owner's answer can't be read; nothing was changed",
          "look at the store to find out, and use the version of waybill that the owner uses"};
}

// Empty: it would be larger than a message may be.
template <typename... Values>
Bytes Message(const Values&... values) {
  Bytes bytes;
  Put put(bytes);
  (put(values), ...);
  if (put.too_large()) bytes.clear();
  return bytes;
}

template <typename T>
Bytes AnswerWith(const Result<T>& result) {
  if (!result) return AnswerOf(result.error());
  if constexpr (std::is_void_v<T>) {
    return Message(true);
  } else if constexpr (std::is_same_v<T, Backup>) {
    Backup named = *result;  // its path is in the owner's spelling
    named.path = named.path.filename();
    return Message(true, named);
  } else {
    Bytes answer = Message(true, *result);
    if constexpr (std::is_same_v<T, ClassifyReport>) {
      // Names may be of any length, and these are examples.
      for (ClassifyReport fewer = *result; answer.empty();) {
        fewer.judged.resize(fewer.judged.size() / 2);
        fewer.shared_digests.resize(fewer.shared_digests.size() / 2);
        answer = Message(true, fewer);
      }
    }
    return answer;
  }
}

template <typename R, typename... Args>
Bytes Perform(OwnerCalls& owner, R (OwnerCalls::*method)(Args...), [[maybe_unused]] Take& take) {
  std::tuple<std::remove_cvref_t<Args>...> arguments;
  std::apply([&](auto&... value) { (take(value), ...); }, arguments);
  take.End();
  if (!take.ok()) return AnswerOf(Unintelligible());
  return std::apply([&](const auto&... value) { return AnswerWith((owner.*method)(value...)); },
                    arguments);
}

template <auto... Methods>
struct Performers {
  static constexpr std::array kAll{
      +[](OwnerCalls& owner, Take& take) { return Perform(owner, Methods, take); }...};
};
template <auto... Methods>
constexpr auto PerformersOf(CallList<Methods...>) {
  return Performers<Methods...>::kAll;
}

// A code or hint of a later version has no words here.
void Known(Error& error) {
  if (ErrorCodeName(error.code) == "unknown") error.code = ErrorCode::kInternal;
  if (error.hint_code > kLastHint) error.hint_code = Hint::kNone;
}

// The error of an answer, if it is one. Otherwise `take` is at the result.
Result<void> TakeAnswer(Take& take, bool changes) {
  bool succeeded = false;
  take(succeeded);
  Error error;
  if (!succeeded && take.ok()) take(error);
  if (!take.ok()) return AnswerUnreadable(changes);
  Known(error);
  return succeeded ? Result<void>() : error;
}

template <typename T>
bool IsDry(const T& argument) {
  if constexpr (requires { argument.dry_run; }) return argument.dry_run;
  return false;
}

}  // namespace

Bytes AnswerRequest(std::span<const std::uint8_t> request, OwnerCalls& owner) {
  static constexpr auto kPerform = PerformersOf(CallsOfOwner());
  Take take(request, Take::Unknown::kRefuse);
  std::uint8_t number = 0;
  take(number);
  if (!take.ok()) return AnswerOf(Unintelligible());
  if (number >= kPerform.size()) {
    return AnswerOf({ErrorCode::kInvalidArgument,
                     "the owner does not know this call; nothing was changed",
                     "use the version of waybill that the owner uses"});
  }
  return kPerform[number](owner, take);
}

Bytes AnswerOf(const Error& error) { return Message(false, error); }

Bytes EncodeGreeting(const Greeting& greeting) { return Message(greeting.store, greeting.owner); }

Result<Greeting> DecodeGreeting(std::span<const std::uint8_t> message) {
  Take take(message);
  Greeting greeting;
  take(greeting.store);
  take(greeting.owner);
  if (take.ok()) return greeting;
  return Error{ErrorCode::kIo, "the owner's greeting can't be read; nothing was changed",
               "use the version of waybill that the owner uses"};
}

Error DecodeRefusal(std::span<const std::uint8_t> message) {
  Take take(message);
  bool succeeded = false;
  Error error;
  take(succeeded);
  take(error);
  Known(error);
  if (take.ok() && !succeeded) return error;
  return {ErrorCode::kIo, "what the owner said can't be read; nothing was changed",
          "use the version of waybill that the owner uses"};
}

template <auto Method, typename... Args>
auto AskingCalls::Call(const Args&... arguments) {
  using R = std::invoke_result_t<decltype(Method), OwnerCalls&, const Args&...>;
  using T = typename R::value_type;
  constexpr bool kReads = IsSame<Method, &OwnerCalls::BeginList>();
  const bool changes = !kReads && !(IsDry(arguments) || ...);
  bool asked = false;
  try {
    const Bytes request = Message(CallsOfOwner::NumberOf<Method>(), arguments...);
    if (request.empty()) {
      return R(Error{ErrorCode::kLimitExceeded,
                     "the request to the owner has more than " +
                         std::to_string(kMaxOwnerMessageBytes) + " bytes; nothing was changed",
                     "stop the owner, and open the store"});
    }
    asked = true;
    const auto answer = Ask(request, changes);
    if (!answer) return R(answer.error());
    Take take(*answer);
    if (auto r = TakeAnswer(take, changes); !r) return R(r.error());
    if constexpr (std::is_void_v<T>) {
      return R();
    } else {
      T value{};
      take(value);
      if constexpr (std::is_same_v<T, Backup>) {
        const std::string name = value.path;
        if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
          return R(AnswerUnreadable(changes));
        }
        value.path = directory() / "backup" / name;
      }
      return take.ok() ? R(std::move(value)) : R(AnswerUnreadable(changes));
    }
  } catch (...) {
    return R(asked && changes ? AnswerUnreadable(changes) : Caught());
  }
}

#include "store/control/calls.inc"

}  // namespace waybill::internal
