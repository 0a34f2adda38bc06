// names.jsonl: {"image":"nginx:1.27","name":"nginx","normalised":"docker.io/library/nginx:1.27"};
// null where the string does not parse, or can't be normalised.

#include <optional>
#include <string>

#include "store/base/image_name.h"
#include "tests/replay/fields.h"
#include "tests/replay/player.h"

namespace waybill::replay {

namespace {

class NamePlayer final : public Player {
 public:
  void Play(const nlohmann::json& line, Log& log) override {
    RequireOnly(line, {"image", "name", "normalised"});
    const std::string image = RequireString(line, "image");
    const std::optional<std::string_view> name = ImageName(image);
    log.Compare("image name of " + Text(image), Shown(RequireStringOrNull(line, "name")),
                Shown(name ? std::optional<std::string>(*name) : std::nullopt));
    log.Compare("normalised form of " + Text(image), Shown(RequireStringOrNull(line, "normalised")),
                Shown(NormaliseImage(image)));
  }

 private:
  static std::string Shown(const std::optional<std::string>& text) {
    return text ? Text(*text) : "null";
  }
};

}  // namespace

std::unique_ptr<Player> MakeNamePlayer() { return std::make_unique<NamePlayer>(); }

}  // namespace waybill::replay
