// The one door: a call by its name, with parameters and answer as JSON. The same in this process
// (Store::CallJson, waybill_call) and through the owner's socket.

#ifndef WAYBILL_STORE_DOOR_H_
#define WAYBILL_STORE_DOOR_H_

#include <optional>
#include <string>
#include <string_view>

#include "store/calls/do.h"
#include "store/calls/node_store.h"
#include "store/calls/streaming_store.h"
#include "store/door/calls.h"
#include "waybill/values.h"

namespace waybill::door {

// kInvalidArgument: no such call, or parameters that it does not have; nothing was changed.
Result<std::string> CallJson(NodeStore& store, std::string_view name, std::string_view parameters,
                             const Progress& progress);
Result<std::string> CallJson(StreamingStore& store, std::string_view name,
                             std::string_view parameters, const Progress& progress);
Result<std::string> CallLibraryJson(std::string_view name, std::string_view parameters,
                                    const Progress& progress);

// Whether the owner's socket takes the call, and whether it changes nothing.
bool IsServed(std::string_view name);
bool OnlyReads(std::string_view name);

// The parameters of a call. kInvalidArgument: they are not; nothing was changed.
template <typename C>
Result<C> ParametersOf(std::string_view parameters) {
  C call{};
  if (const auto wrong = internal::FromJson(parameters, call, internal::Strangers::kRefuse);
      !wrong.empty()) {
    return Error{ErrorCode::kInvalidArgument, "parameters: " + wrong + "; nothing was changed",
                 "dev.waybill.varlink has the members of " + std::string(internal::TypeName<C>())};
  }
  return call;
}

// What a call does to a store of streams, and what one does without a store: do.cc.
#define WAYBILL_DECLARE(C) Result<C::Answer> Do(StreamingStore&, const C&, const Progress&);
WAYBILL_STREAM_CALLS(WAYBILL_DECLARE)
WAYBILL_DECLARE(GetStatus)
WAYBILL_DECLARE(GetMetrics)
WAYBILL_DECLARE(Verify)
#undef WAYBILL_DECLARE
#define WAYBILL_DECLARE(C) Result<C::Answer> Do(const C&, const Progress&);
WAYBILL_LIBRARY_CALLS(WAYBILL_DECLARE)
#undef WAYBILL_DECLARE

}  // namespace waybill::door

#endif  // WAYBILL_STORE_DOOR_H_
