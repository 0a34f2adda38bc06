// Answers of CRI v1 are read by the decoders for what crictl prints of them, which have the bounds.

#include "runtime/cri/answers.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/cri/message.h"
#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/try.h"

namespace waybill::cri {
namespace {

Result<void> CheckSize(const std::string& answer, std::size_t most) {
  if (answer.size() <= most) return {};
  return Error{
      ErrorCode::kLimitExceeded, "the answer has more than " + std::to_string(most) + " bytes", {}};
}

Result<void> Check(const Reading& reading, std::string_view message) {
  if (reading.is_too_much) {
    return Error{ErrorCode::kLimitExceeded,
                 "the answer has more than " + std::to_string(kMaxFields) + " fields",
                 {}};
  }
  if (reading.is_sound) return {};
  return Error{
      ErrorCode::kInvalidArgument,
      "the answer is not a " + std::string(message) + " of CRI v1, or has text that is not UTF-8",
      "check that a container runtime serves the endpoint"};
}

nlohmann::json ImageOf(const Message& image) {
  return {{"id", image.Text(1)},
          {"repoTags", image.Texts(2)},
          {"repoDigests", image.Texts(3)},
          {"spec", {{"runtimeHandler", image.Within(7).Text(19)}}},
          {"pinned", image.Number(8) != 0}};
}

nlohmann::json HandlerOf(const Message& handler) {
  const Message features = handler.Within(2);
  return {{"name", handler.Text(1)},
          {"features",
           {{"recursiveReadOnlyMounts", features.Number(1) != 0},
            {"userNamespaces", features.Number(2) != 0}}}};
}

// The members of a list in JSON, in the order in which they came.
template <typename Make>
Result<std::string> ListOf(const Message& message, int field, const Reading& reading,
                           std::string_view name, const Make& make) {
  std::string json = "[";
  message.Each(field, [&](const Message& one) {
    if (!reading.is_sound || reading.is_too_much) return;
    auto made = make(one);
    // What is not UTF-8 can't be written.
    if (reading.is_sound) json += (json.size() == 1 ? "" : ",") + made.dump();
  });
  TRY(Check(reading, name));
  return json + "]";
}

}  // namespace

Result<std::vector<ListedImage>> DecodeImages(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::vector<ListedImage>> {
    TRY(CheckSize(answer, kMaxListBytes));
    Reading reading{.fields = kMaxFields};
    const auto list =
        TRY(ListOf(Message(answer, reading), 1, reading, "ListImagesResponse", ImageOf));
    return DecodeImageList("{\"images\":" + list + "}");
  });
}

Result<std::string> DecodeStatus(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::string> {
    TRY(CheckSize(answer, kMaxAnswerBytes));
    Reading reading{.fields = kMaxFields};
    const Message status(answer, reading);
    const auto handlers = TRY(ListOf(status, 3, reading, "StatusResponse", HandlerOf));
    auto info = status.Map(2);
    TRY(Check(reading, "StatusResponse"));
    // crictl prints each piece of information that is JSON as a member of its own.
    const std::string config =
        nlohmann::json::accept(info["config"]) ? "\"config\":" + info["config"] + "," : "";
    return "{" + config + "\"runtimeHandlers\":" + handlers + "}";
  });
}

Result<std::string> DecodeVersion(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::string> {
    constexpr std::size_t kMaxShown = 100;
    TRY(CheckSize(answer, kMaxAnswerBytes));
    Reading reading{.fields = kMaxFields};
    const Message version(answer, reading);
    const std::string name = version.Text(2);
    const std::string number = version.Text(3);
    reading.is_sound = reading.is_sound && !name.empty();
    TRY(Check(reading, "VersionResponse"));
    return name.substr(0, kMaxShown) + " " + number.substr(0, kMaxShown);
  });
}

}  // namespace waybill::cri
