// Reads what getsubids printed:
//
//   0: kubelet FIRST COUNT

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "store/base/caught.h"
#include "store/base/quote.h"
#include "waybill/user_namespace.h"

namespace waybill {
namespace {

using internal::QuoteForMessage;

constexpr std::size_t kFields = 4;
constexpr std::string_view kForm =
    "getsubids kubelet must print one line, \"0: kubelet FIRST COUNT\"";

Error Invalid(std::string message, std::string_view hint) {
  return {ErrorCode::kInvalidArgument, std::move(message), std::string(hint)};
}

std::string_view WithoutNewlines(std::string_view text) {
  const std::size_t first = text.find_first_not_of('\n');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of('\n') + 1 - first);
}

// Stops one field after those that a line may have.
std::vector<std::string_view> FieldsOf(std::string_view line) {
  constexpr std::string_view kSpace = " \t\n\v\f\r";
  std::vector<std::string_view> fields;
  while (fields.size() <= kFields) {
    const std::size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) break;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(kSpace), line.size());
    fields.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return fields;
}

Result<std::uint32_t> ParseId(std::string_view output, std::string_view field) {
  std::uint32_t id = 0;
  const char* const end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, id);
  if (error == std::errc() && stop == end) return id;
  const std::string_view why =
      error == std::errc::result_out_of_range ? "value out of range" : "invalid syntax";
  return Invalid("error parsing line " + QuoteForMessage(output) + ": " + QuoteForMessage(field) +
                     ": " + std::string(why),
                 kForm);
}

Result<HostIdRange> ParseOutput(std::string_view output) {
  const std::string_view line = WithoutNewlines(output);
  if (line.find('\n') != std::string_view::npos) {
    return Invalid(
        "error parsing line " + QuoteForMessage(output) + ": it must contain only one line",
        "give the user kubelet one range in /etc/subuid, and the same one in /etc/subgid");
  }
  const std::vector<std::string_view> fields = FieldsOf(line);
  // A kubelet reads only the numbers, but another user's line is not the node's pool.
  if (fields.size() != kFields || fields[0] != "0:" || fields[1] != "kubelet") {
    return Invalid("invalid line " + QuoteForMessage(output), kForm);
  }
  auto first = ParseId(output, fields[2]);
  if (!first) return first.error();
  auto count = ParseId(output, fields[3]);
  if (!count) return count.error();
  return HostIdRange{*first, *count};
}

}  // namespace

Result<UserNamespacePool> PoolOfSubordinateIds(const SubordinateIds& found,
                                               std::uint64_t ids_per_pod,
                                               std::uint64_t max_pods) try {
  UserNamespacePool pool = UserNamespacePool::Default(ids_per_pod, max_pods);
  if (found.user_exists && found.tool_exists) {
    if (found.uids != found.gids) {
      return Invalid("mismatched subuids and subgids for user \"kubelet\"",
                     "give it the same one range in /etc/subuid and /etc/subgid");
    }
    auto range = ParseOutput(found.uids);
    if (!range) return range.error();
    pool.first_id = range->first;
    pool.id_count = range->length;
  }
  if (auto checked = CheckUserNamespacePool(pool); !checked) return checked.error();
  return pool;
} catch (...) {
  return internal::Caught();
}

}  // namespace waybill
