#include "doctor/recorded_runtime.h"

#include "runtime/files/documents.h"
#include "store/base/files.h"
#include "store/base/json_value.h"
#include "store/base/try.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::doctor {
namespace {

Result<std::string> ReadAnswer(const std::filesystem::path& folder, const char* name) {
  return internal::ReadWholeFile(folder / name, kMaxDocumentBytes);
}

}  // namespace

Result<std::string> RecordedRuntime::Name() const {
  const auto text = TRY(ReadAnswer(folder_, "version.json"));
  const auto version = internal::Json::Parse(text);
  const std::string name = version.TextAt("runtimeName");
  if (name.empty()) {
    return Error{ErrorCode::kInvalidArgument,
                 (folder_ / "version.json").string() + " names no runtime",
                 "put there what `crictl version -o json` prints"};
  }
  return name + " " + version.TextAt("runtimeVersion");
}

Result<std::vector<ListedImage>> RecordedRuntime::ListImages() {
  const auto text = TRY(ReadAnswer(folder_, "images.json"));
  return DecodeImageList(text);
}

Result<std::vector<RuntimeHandler>> RecordedRuntime::RuntimeHandlers() {
  const auto text = TRY(ReadAnswer(folder_, "info.json"));
  return DecodeRuntimeStatus(text);
}

Result<std::string> RecordedRuntime::Status() { return ReadAnswer(folder_, "info.json"); }

}  // namespace waybill::doctor
