#include "cri/answers.h"

#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/util/json_util.h>

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "cri.pb.h"
#include "cri/count_fields.h"
#include "store/base/caught.h"
#include "store/base/try.h"
#include "waybill/kubelet_format.h"

namespace waybill::cri {
namespace {

namespace v1 = runtime::v1;

// Fields of a list, including those of its images. They are counted before parsing, since a few
// bytes of an answer become an object of a hundred.
constexpr std::size_t kMaxFields = 16 * kMaxListedImages;

Error NotCri(std::string_view message) {
  return {
      ErrorCode::kInvalidArgument,
      "the answer is not a " + std::string(message) + " of CRI v1, or has text that is not UTF-8",
      "check that a container runtime serves the endpoint"};
}

template <typename Message>
Result<void> Parse(const std::string& answer, Message& out) {
  // Otherwise protobuf would write to standard error.
  static const auto before = google::protobuf::SetLogHandler(nullptr);
  static_cast<void>(before);
  if (out.ParseFromString(answer)) return {};
  return NotCri(out.GetTypeName().substr(std::string_view("runtime.v1.").size()));
}

Result<void> CheckFieldCount(const std::string& answer) {
  const auto fields =
      CountFields(answer, {v1::ListImagesResponse::kImagesFieldNumber, v1::Image::kSpecFieldNumber},
                  kMaxFields);
  if (!fields) return NotCri("ListImagesResponse");
  if (*fields <= kMaxFields) return {};
  return Error{ErrorCode::kLimitExceeded,
               "the list has more than " + std::to_string(kMaxFields) + " fields",
               {}};
}

// As crictl prints it.
Result<std::string> JsonOf(const google::protobuf::Message& message) {
  std::string json;
  const auto status = google::protobuf::util::MessageToJsonString(message, &json);
  if (!status.ok()) return NotCri(message.GetTypeName());
  return json;
}

Result<std::vector<ImageOnNode>> ImagesOf(const v1::ListImagesResponse& list) {
  // JSON leaves out a list without members.
  if (list.images().empty()) return std::vector<ImageOnNode>{};
  auto json = TRY(JsonOf(list));
  return DecodeImageList(json);
}

// The handlers, and what the runtime says of its configuration.
Result<std::string> StatusJson(const v1::StatusResponse& status) {
  v1::StatusResponse handlers;
  *handlers.mutable_runtime_handlers() = status.runtime_handlers();
  auto json = TRY(JsonOf(handlers));
  // crictl prints each piece of information that is JSON as a member of its own.
  const auto config = status.info().find("config");
  if (config != status.info().end() && nlohmann::json::accept(config->second)) {
    json.insert(1, "\"config\":" + config->second + (json == "{}" ? "" : ","));
  }
  return json;
}

Result<void> CheckSize(const std::string& answer, std::size_t most) {
  if (answer.size() <= most) return {};
  return Error{
      ErrorCode::kLimitExceeded, "the answer has more than " + std::to_string(most) + " bytes", {}};
}

}  // namespace

Result<std::vector<ImageOnNode>> DecodeImages(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::vector<ImageOnNode>> {
    TRY(CheckSize(answer, kMaxListBytes));
    TRY(CheckFieldCount(answer));
    v1::ListImagesResponse list;
    TRY(Parse(answer, list));
    return ImagesOf(list);
  });
}

Result<std::optional<ImageOnNode>> DecodeImageStatus(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::optional<ImageOnNode>> {
    TRY(CheckSize(answer, kMaxAnswerBytes));
    v1::ImageStatusResponse status;
    TRY(Parse(answer, status));
    if (!status.has_image()) return std::optional<ImageOnNode>();
    v1::ListImagesResponse list;
    *list.add_images() = status.image();
    auto images = TRY(ImagesOf(list));
    return std::optional<ImageOnNode>(std::move(images.front()));
  });
}

Result<std::vector<RuntimeHandler>> DecodeHandlers(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::vector<RuntimeHandler>> {
    TRY(CheckSize(answer, kMaxAnswerBytes));
    v1::StatusResponse status;
    TRY(Parse(answer, status));
    if (status.runtime_handlers().empty()) return std::vector<RuntimeHandler>{};
    const auto json = TRY(StatusJson(status));
    return DecodeRuntimeStatus(json);
  });
}

Result<std::string> DecodeStatus(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::string> {
    TRY(CheckSize(answer, kMaxAnswerBytes));
    v1::StatusResponse status;
    TRY(Parse(answer, status));
    return StatusJson(status);
  });
}

Result<std::string> DecodeVersion(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::string> {
    constexpr std::size_t kMaxShown = 100;
    TRY(CheckSize(answer, kMaxAnswerBytes));
    v1::VersionResponse version;
    TRY(Parse(answer, version));
    if (version.runtime_name().empty()) return NotCri("VersionResponse");
    return version.runtime_name().substr(0, kMaxShown) + " " +
           version.runtime_version().substr(0, kMaxShown);
  });
}

}  // namespace waybill::cri
