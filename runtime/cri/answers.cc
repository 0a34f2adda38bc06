#include "runtime/cri/answers.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/cri/message.h"
#include "runtime/files/documents.h"
#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::cri {
namespace {

// Fields of a list, including those of its images. They are counted before parsing, since a few
// bytes of an answer become an object of a hundred.
constexpr std::size_t kMaxFields = 16 * kMaxListedImages;

Error NotCri(std::string_view message) {
  return {
      ErrorCode::kInvalidArgument,
      "the answer is not a " + std::string(message) + " of CRI v1, or has text that is not UTF-8",
      "check that a container runtime serves the endpoint"};
}

// Of CRI v1, with its field numbers; its other fields are passed over.
struct Image {
  std::string id;                    // 1
  std::vector<std::string> tags;     // 2
  std::vector<std::string> digests;  // 3
  std::string runtime_handler;       // 7, ImageSpec: 19
  bool pinned = false;               // 8
};
constexpr int kImagesField = 1;  // of ListImagesResponse
constexpr int kSpecField = 7;

bool Read(std::string_view bytes, Image& image) {
  Message message(bytes);
  while (message.Next()) {
    switch (message.field()) {
      case 1:
        message.Read(image.id);
        break;
      case 2:
        message.Add(image.tags);
        break;
      case 3:
        message.Add(image.digests);
        break;
      case kSpecField:
        message.Within([&](std::string_view of_spec) {
          Message spec(of_spec);
          std::string ignored;
          while (spec.Next()) {
            if (spec.field() == 1) spec.Read(ignored);
            if (spec.field() == 19) spec.Read(image.runtime_handler);
          }
          return spec.is_sound();
        });
        break;
      case 8:
        message.Read(image.pinned);
        break;
      default:
        break;
    }
  }
  return message.is_sound();
}

struct Handler {
  std::string name;                         // 1
  bool has_features = false;                // 2, RuntimeHandlerFeatures:
  bool recursive_read_only_mounts = false;  // 1
  bool user_namespaces = false;             // 2
};

bool Read(std::string_view bytes, Handler& handler) {
  Message message(bytes);
  while (message.Next()) {
    if (message.field() == 1) message.Read(handler.name);
    if (message.field() != 2) continue;
    message.Within([&](std::string_view of_features) {
      handler.has_features = true;
      Message features(of_features);
      while (features.Next()) {
        if (features.field() == 1) features.Read(handler.recursive_read_only_mounts);
        if (features.field() == 2) features.Read(handler.user_namespaces);
      }
      return features.is_sound();
    });
  }
  return message.is_sound();
}

struct Status {
  std::map<std::string, std::string> info;  // 2; "config": the runtime's configuration, in JSON
  std::vector<Handler> handlers;            // 3
};

Result<Status> ReadStatus(std::string_view answer) {
  Status status;
  Message message(answer);
  while (message.Next()) {
    message.Within([&](std::string_view bytes) {
      if (message.field() == 3) return Read(bytes, status.handlers.emplace_back());
      if (message.field() != 2) return true;
      auto entry = ReadEntry(bytes);
      if (entry) status.info[std::move(entry->first)] = std::move(entry->second);
      return entry.has_value();
    });
  }
  return message.is_sound() ? Result<Status>(std::move(status)) : NotCri("StatusResponse");
}

// The messages in field 1: of a list all, of a status the last one.
Result<std::vector<Image>> ReadImages(std::string_view answer, std::string_view name,
                                      bool is_list) {
  std::vector<Image> images;
  Message message(answer);
  while (message.Next()) {
    if (message.field() != kImagesField) continue;
    message.Within([&](std::string_view bytes) {
      return Read(bytes, is_list || images.empty() ? images.emplace_back() : images.back());
    });
  }
  return message.is_sound() ? Result<std::vector<Image>>(std::move(images)) : NotCri(name);
}

Result<void> CheckFieldCount(const std::string& answer) {
  const auto fields = CountFields(answer, {kImagesField, kSpecField}, kMaxFields);
  if (!fields) return NotCri("ListImagesResponse");
  if (*fields <= kMaxFields) return {};
  return Error{ErrorCode::kLimitExceeded,
               "the list has more than " + std::to_string(kMaxFields) + " fields",
               {}};
}

// Writes `"name":` and what `value` appends, behind a comma unless it is the first of its object.
template <typename Value>
void AppendMember(std::string& json, std::string_view name, const Value& value) {
  if (json.back() != '{') json.push_back(',');
  AppendGoJsonString(name, json);
  json.push_back(':');
  value();
}
void AppendText(std::string& json, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  AppendMember(json, name, [&] { AppendGoJsonString(text, json); });
}
void AppendFlag(std::string& json, std::string_view name, bool flag) {
  if (flag) AppendMember(json, name, [&] { json += "true"; });
}
// A list without members is left out, as each member that says nothing.
template <typename T, typename Append>
void AppendList(std::string& json, std::string_view name, const std::vector<T>& list,
                const Append& append) {
  if (list.empty()) return;
  AppendMember(json, name, [&] {
    json.push_back('[');
    for (const T& one : list) {
      if (json.back() != '[') json.push_back(',');
      append(one);
    }
    json.push_back(']');
  });
}

// By the decoder for what crictl prints, which has the bounds.
Result<std::vector<ListedImage>> ImagesOf(const std::vector<Image>& list) {
  if (list.empty()) return std::vector<ListedImage>{};
  std::string json = "{";
  const auto text = [&](const std::string& one) { AppendGoJsonString(one, json); };
  AppendList(json, "images", list, [&](const Image& image) {
    json.push_back('{');
    AppendText(json, "id", image.id);
    AppendList(json, "repoTags", image.tags, text);
    AppendList(json, "repoDigests", image.digests, text);
    if (!image.runtime_handler.empty()) {
      AppendMember(json, "spec", [&] {
        json.push_back('{');
        AppendText(json, "runtimeHandler", image.runtime_handler);
        json.push_back('}');
      });
    }
    AppendFlag(json, "pinned", image.pinned);
    json.push_back('}');
  });
  json.push_back('}');
  return DecodeImageList(json);
}

// The handlers, and what the runtime says of its configuration.
std::string StatusJson(const Status& status) {
  std::string json = "{";
  // crictl prints each piece of information that is JSON as a member of its own.
  const auto config = status.info.find("config");
  if (config != status.info.end() && nlohmann::json::accept(config->second)) {
    AppendMember(json, "config", [&] { json += config->second; });
  }
  AppendList(json, "runtimeHandlers", status.handlers, [&](const Handler& handler) {
    json.push_back('{');
    AppendText(json, "name", handler.name);
    if (handler.has_features) {
      AppendMember(json, "features", [&] {
        json.push_back('{');
        AppendFlag(json, "recursiveReadOnlyMounts", handler.recursive_read_only_mounts);
        AppendFlag(json, "userNamespaces", handler.user_namespaces);
        json.push_back('}');
      });
    }
    json.push_back('}');
  });
  json.push_back('}');
  return json;
}

Result<void> CheckSize(const std::string& answer, std::size_t most) {
  if (answer.size() <= most) return {};
  return Error{
      ErrorCode::kLimitExceeded, "the answer has more than " + std::to_string(most) + " bytes", {}};
}

}  // namespace

Result<std::vector<ListedImage>> DecodeImages(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::vector<ListedImage>> {
    TRY(CheckSize(answer, kMaxListBytes));
    TRY(CheckFieldCount(answer));
    const auto images = TRY(ReadImages(answer, "ListImagesResponse", true));
    return ImagesOf(images);
  });
}

Result<std::optional<ListedImage>> DecodeImageStatus(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::optional<ListedImage>> {
    TRY(CheckSize(answer, kMaxAnswerBytes));
    const auto status = TRY(ReadImages(answer, "ImageStatusResponse", false));
    if (status.empty()) return std::optional<ListedImage>();
    auto images = TRY(ImagesOf(status));
    return std::optional<ListedImage>(std::move(images.front()));
  });
}

Result<std::vector<RuntimeHandler>> DecodeHandlers(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::vector<RuntimeHandler>> {
    TRY(CheckSize(answer, kMaxAnswerBytes));
    const auto status = TRY(ReadStatus(answer));
    if (status.handlers.empty()) return std::vector<RuntimeHandler>{};
    return DecodeRuntimeStatus(StatusJson(status));
  });
}

Result<std::string> DecodeStatus(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::string> {
    TRY(CheckSize(answer, kMaxAnswerBytes));
    const auto status = TRY(ReadStatus(answer));
    return StatusJson(status);
  });
}

Result<std::string> DecodeVersion(const std::string& answer) {
  return internal::Guarded([&]() -> Result<std::string> {
    constexpr std::size_t kMaxShown = 100;
    TRY(CheckSize(answer, kMaxAnswerBytes));
    std::string name;     // 2
    std::string version;  // 3
    std::string ignored;
    Message message(answer);
    while (message.Next()) {
      if (message.field() == 2) message.Read(name);
      if (message.field() == 3) message.Read(version);
      if (message.field() == 1 || message.field() == 4) message.Read(ignored);
    }
    if (!message.is_sound() || name.empty()) return NotCri("VersionResponse");
    return name.substr(0, kMaxShown) + " " + version.substr(0, kMaxShown);
  });
}

}  // namespace waybill::cri
