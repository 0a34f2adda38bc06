// Decodes a runtime's answers: protobuf messages of CRI v1, of which no byte is trusted.

#ifndef WAYBILL_RUNTIME_CRI_ANSWERS_H_
#define WAYBILL_RUNTIME_CRI_ANSWERS_H_

#include <cstddef>
#include <string>
#include <vector>

#include "waybill/limits.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cri {

// Bytes of a list, at 320 an image; of any other answer.
inline constexpr std::size_t kMaxListBytes = kMaxListedImages * 320;
inline constexpr std::size_t kMaxAnswerBytes = std::size_t{4} << 20;
// Fields of an answer, with those of the messages in it.
inline constexpr std::size_t kMaxFields = 16 * kMaxListedImages;

// ListImagesResponse.
Result<std::vector<ListedImage>> DecodeImages(const std::string& answer);
// StatusResponse, as `crictl info` prints it: handlers, and the configuration that the runtime
// says.
Result<std::string> DecodeStatus(const std::string& answer);
// VersionResponse: "containerd v2.4.2".
Result<std::string> DecodeVersion(const std::string& answer);

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_ANSWERS_H_
