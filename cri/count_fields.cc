#include "cri/count_fields.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <span>

namespace waybill::cri {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Up to the input's limit.
bool Count(CodedInputStream& input, std::span<const int> path, std::size_t most,
           std::size_t& fields) {
  while (const std::uint32_t tag = input.ReadTag()) {
    if (++fields > most) return true;
    if (path.empty() ||
        tag != WireFormatLite::MakeTag(path[0], WireFormatLite::WIRETYPE_LENGTH_DELIMITED)) {
      if (!WireFormatLite::SkipField(&input, tag)) return false;
      continue;
    }
    const auto limit = input.ReadLengthAndPushLimit();
    if (!Count(input, path.subspan(1), most, fields)) return false;
    if (fields > most) return true;
    if (!input.ConsumedEntireMessage()) return false;
    input.PopLimit(limit);
  }
  return true;
}

}  // namespace

std::optional<std::size_t> CountFields(const std::string& answer, const std::vector<int>& path,
                                       std::size_t most) {
  CodedInputStream input(reinterpret_cast<const std::uint8_t*>(answer.data()),
                         static_cast<int>(answer.size()));
  std::size_t fields = 0;
  if (!Count(input, path, most, fields)) return std::nullopt;
  return fields;
}

}  // namespace waybill::cri
