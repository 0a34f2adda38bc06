#include "store/door.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "store/base/caught.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::door {

namespace {

template <typename Store>
struct Entry {
  std::string_view name;
  Result<std::string> (*perform)(Store&, std::string_view, const Progress&);
};
struct NoStore {};

template <typename C>
Result<C> Parsed(std::string_view parameters) {
  return ParametersOf<C>(parameters.empty() ? "{}" : parameters);
}
template <typename C, typename Store>
Result<std::string> Perform(Store& store, std::string_view parameters, const Progress& progress) {
  const C call = TRY(Parsed<C>(parameters));
  const auto answer = TRY(Do(store, call, progress));
  return internal::ToJson(answer);
}
template <typename C>
Result<std::string> PerformAlone(NoStore&, std::string_view parameters, const Progress& progress) {
  const C call = TRY(Parsed<C>(parameters));
  const auto answer = TRY(Do(call, progress));
  return internal::ToJson(answer);
}

#define WAYBILL_ENTRY(C) Entry<NodeStore>{#C, Perform<C, NodeStore>},
constexpr Entry<NodeStore> kReading[] = {WAYBILL_READING_CALLS(WAYBILL_ENTRY)};
constexpr Entry<NodeStore> kChanging[] = {WAYBILL_CHANGING_CALLS(WAYBILL_ENTRY)};
constexpr Entry<NodeStore> kUnserved[] = {WAYBILL_UNSERVED_CALLS(WAYBILL_ENTRY)};
#undef WAYBILL_ENTRY
#define WAYBILL_ENTRY(C) Entry<StreamingStore>{#C, Perform<C, StreamingStore>},
constexpr Entry<StreamingStore> kOfStreams[] = {WAYBILL_STREAM_CALLS(WAYBILL_ENTRY) WAYBILL_ENTRY(
    GetStatus) WAYBILL_ENTRY(GetMetrics) WAYBILL_ENTRY(Verify)};
#undef WAYBILL_ENTRY
#define WAYBILL_ENTRY(C) Entry<NoStore>{#C, PerformAlone<C>},
constexpr Entry<NoStore> kAlone[] = {WAYBILL_LIBRARY_CALLS(WAYBILL_ENTRY)};
#undef WAYBILL_ENTRY

template <typename Store>
const Entry<Store>* Find(std::span<const Entry<Store>> entries, std::string_view name) {
  const auto at = std::find_if(entries.begin(), entries.end(),
                               [&](const Entry<Store>& entry) { return entry.name == name; });
  return at == entries.end() ? nullptr : &*at;
}

template <typename Store>
Result<std::string> CallOneOf(std::initializer_list<std::span<const Entry<Store>>> lists,
                              Store& store, std::string_view name, std::string_view parameters,
                              const Progress& progress, std::string_view whose) {
  return internal::Guarded([&]() -> Result<std::string> {
    for (const auto& list : lists) {
      if (const auto* entry = Find(list, name)) return entry->perform(store, parameters, progress);
    }
    return Error{ErrorCode::kInvalidArgument,
                 std::string(whose) + " has no call " + internal::QuoteForMessage(name) +
                     "; nothing was changed",
                 "dev.waybill.varlink has all calls"};
  });
}

}  // namespace

Result<std::string> CallJson(NodeStore& store, std::string_view name, std::string_view parameters,
                             const Progress& progress) {
  return CallOneOf<NodeStore>({kReading, kChanging, kUnserved}, store, name, parameters, progress,
                              "a store");
}

Result<std::string> CallJson(StreamingStore& store, std::string_view name,
                             std::string_view parameters, const Progress& progress) {
  return CallOneOf<StreamingStore>({kOfStreams}, store, name, parameters, progress,
                                   "a store of streams");
}

Result<std::string> CallLibraryJson(std::string_view name, std::string_view parameters,
                                    const Progress& progress) {
  NoStore none;
  return CallOneOf<NoStore>({kAlone}, none, name, parameters, progress, "waybill without a store");
}

bool IsServed(std::string_view name) {
  return OnlyReads(name) || Find<NodeStore>(kChanging, name) != nullptr;
}

bool OnlyReads(std::string_view name) { return Find<NodeStore>(kReading, name) != nullptr; }

}  // namespace waybill::door
