// Converts between the values of C and those of C++. Arguments checks those that go in; those that
// come out are copied into the memory of their result. described.h has the plain ones.

#ifndef WAYBILL_BINDINGS_C_CONVERT_H_
#define WAYBILL_BINDINGS_C_CONVERT_H_

#include <optional>
#include <string>
#include <vector>

#include "bindings/c/call.h"
#include "bindings/c/described.h"
#include "bindings/c/result.h"
#include "waybill/streaming.h"
#include "waybill/waybill.h"

struct waybill_policy {
  waybill::VerificationPolicy policy;
};

namespace waybill::c {

// --- In ---

// Whether the time lies in the years 1 to 9999.
bool IsTime(waybill_timestamp time);
Timestamp FromC(const waybill_timestamp& time, Arguments& arguments);
BootTime FromC(const waybill_boot_time& time, Arguments& arguments);
ListToken FromC(const waybill_list_token& token, Arguments& arguments);
ImageCopy FromC(const waybill_image_copy& copy, Arguments& arguments);
ImagePullCredentials FromC(const waybill_image_pull_credentials& credentials, Arguments& arguments);
ImagePulledRecord FromC(const waybill_image_pulled_record& record, Arguments& arguments);
ImageList FromC(const waybill_image_list* list, Arguments& arguments);
// NULL stands for the defaults.
ChangeOptions FromC(const waybill_change_options* options, Arguments& arguments);

// NULL: none.
template <typename C>
auto FromCIfAny(const C* value, Arguments& arguments) {
  std::optional<decltype(FromC(*value, arguments))> to;
  if (value != nullptr) to = FromC(*value, arguments);
  return to;
}

template <typename C>
auto ListFromC(const C* items, std::size_t count, const char* name, Arguments& arguments) {
  std::vector<decltype(FromC(*items, arguments))> to;
  for (const C& item : arguments.Array(items, count, name)) to.push_back(FromC(item, arguments));
  return to;
}
// NULL: unknown.
template <typename List>
auto ListFromCIfAny(const List* list, const char* name, Arguments& arguments) {
  std::optional<decltype(ListFromC(list->items, list->count, name, arguments))> to;
  if (list != nullptr) to = ListFromC(list->items, list->count, name, arguments);
  return to;
}

// --- Out ---

inline waybill_timestamp ToC(Timestamp time) { return {time.seconds, time.nanoseconds}; }
inline waybill_timestamp ToC(Timestamp time, Memory&) { return ToC(time); }
waybill_boot_time ToC(const BootTime& time);
inline waybill_boot_time ToC(const BootTime& time, Memory&) { return ToC(time); }
waybill_list_token ToC(const ListToken& token);
inline waybill_list_token ToC(const ListToken& token, Memory&) { return ToC(token); }
inline waybill_string ToC(const std::string& text, Memory& memory) { return Copy(text, memory); }
waybill_image_pulled_record ToC(const ImagePulledRecord& record, Memory& memory);
waybill_proven_record ToProvenC(const ImagePulledRecord& record, Memory& memory);
waybill_registry_auth ToC(const RegistryAuth& auth, Memory& memory);
waybill_decision ToC(const Decision& decision);                            // decisions.cc
waybill_ensure_outcome ToC(const EnsureOutcome& outcome, Memory& memory);  // likewise
waybill_store_counters ToC(const StoreCounters& counters, Memory& memory);
waybill_streaming_counters ToC(const StreamingCounters& counters, Memory& memory);

inline waybill_string Borrow(std::string_view text) { return {text.data(), text.size()}; }

// The name of an enumerator, if `number` is `first` to `last`; otherwise empty.
template <typename Enum>
waybill_string NameOf(std::int32_t number, Enum first, Enum last, std::string_view (*name)(Enum)) {
  if (number < static_cast<std::int32_t>(first) || number > static_cast<std::int32_t>(last)) {
    return Borrow("");
  }
  return Borrow(name(static_cast<Enum>(number)));
}

// The enumerator with that name. `out`: what the argument `number` is called.
template <typename Enum>
waybill_code ParseName(waybill_string name, Result<Enum> (*parse)(std::string_view),
                       std::int32_t* number, const char* out, waybill_error** error) noexcept {
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    arguments.Given(number, out);
    const auto text = arguments.Text(name, "name");
    if (!arguments.ok()) return arguments.error();
    return parse(text).map([&](Enum parsed) { *number = static_cast<std::int32_t>(parsed); });
  });
}

template <typename T>
auto ToCIfAny(const std::optional<T>& value, Memory& memory) -> const
    decltype(ToC(*value, memory))* {
  return value ? CopyOne(ToC(*value, memory), memory) : nullptr;
}

// Each element converted by ToC.
template <typename C, typename Range>
const C* EachToC(const Range& range, Memory& memory) {
  return CopyEach<C>(range, memory,
                     [](const auto& element, Memory& into) { return ToC(element, into); });
}
// {items, count}
template <typename List, typename C, typename Range>
List ListOf(const Range& range, Memory& memory) {
  return {EachToC<C>(range, memory), range.size()};
}

// --- Results ---

// Puts the value into *out, or returns its error. A null `out`: the caller does not want the value.
template <typename C, typename T>
Result<void> Give(const Result<T>& value, C** out,
                  Memory* upstream = std::pmr::new_delete_resource()) {
  if (!value) return value.error();
  if (out == nullptr) return {};
  *out = NewResult<C>([&](C& to, Memory& memory) { to = ToC(*value, memory); }, upstream);
  return {};
}

template <typename C, typename T>
Result<void> Give(const Result<std::vector<T>>& values, C** out,
                  Memory* upstream = std::pmr::new_delete_resource()) {
  if (!values) return values.error();
  using Item = std::remove_cv_t<std::remove_pointer_t<decltype(C::items)>>;
  *out =
      NewResult<C>([&](C& to, Memory& memory) { to = ListOf<C, Item>(*values, memory); }, upstream);
  return {};
}

// The same for what C gets by value.
template <typename C, typename T>
Result<void> Give(const Result<T>& value, C* out) {
  if (value && out != nullptr) *out = ToC(*value, *std::pmr::null_memory_resource());
  return value.map([](const T&) {});
}
inline Result<void> Give(const Result<bool>& value, bool* out) {
  if (value && out != nullptr) *out = *value;
  return value.map([](bool) {});
}
inline Result<void> Give(const Result<PullId>& value, waybill_pull_id* out) {
  if (value && out != nullptr) *out = value->value;
  return value.map([](PullId) {});
}

}  // namespace waybill::c

#endif  // WAYBILL_BINDINGS_C_CONVERT_H_
