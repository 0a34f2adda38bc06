// Answers of a container runtime, of any bytes: no crash, and what is accepted keeps the bounds of
// lists.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "runtime/cri/answers.h"
#include "runtime/files/documents.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace waybill;
  if (size == 0) return 0;
  const std::string answer(reinterpret_cast<const char*>(data + 1), size - 1);
  const auto check = [](const ListedImage& image) {
    if (image.id.empty() || image.id.size() > kMaxImageRefBytes) std::abort();
    if (image.runtime_handler.size() > kMaxRuntimeHandlerBytes) std::abort();
    for (const auto* names : {&image.repo_tags, &image.repo_digests}) {
      for (const std::string& name : *names) {
        if (name.size() > kMaxImageBytes) std::abort();
      }
    }
  };
  switch (data[0] % 3) {
    case 0:
      if (const auto images = cri::DecodeImages(answer)) {
        if (images->size() > kMaxListedImages) std::abort();
        for (const ListedImage& image : *images) check(image);
      }
      break;
    case 1:
      if (const auto status = cri::DecodeStatus(answer)) {
        const auto handlers = DecodeRuntimeStatus(*status);
        if (handlers && handlers->size() > kMaxRuntimeHandlers) std::abort();
      }
      break;
    default:
      if (const auto version = cri::DecodeVersion(answer)) {
        if (version->size() > 201) std::abort();
      }
  }
  return 0;
}
