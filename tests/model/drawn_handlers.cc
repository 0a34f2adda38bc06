#include <utility>

#include "tests/model/drawn_values.h"

namespace waybill::testing {

namespace {

Platform DrawPlatform(Draw& draw) {
  static const std::vector<Platform> platforms = {
      {"amd64", "windows", "10.0.17763.4851"},
      {"amd64", "windows", "10.0.20348.1970", {"win32k"}},
      {.architecture = "arm", .os = "linux", .variant = "v7"}};
  return draw.From(platforms);
}

std::optional<Platform> DrawGuest(Draw& draw) {
  if (!draw.OneIn(3)) return std::nullopt;
  return DrawPlatform(draw);
}

}  // namespace

const std::vector<std::string>& HandlerNames() {
  static const std::vector<std::string> names = {"runc", "kata", "gvisor", "crun"};
  return names;
}

RuntimeHandler DrawDefaultHandler(Draw& draw) {
  RuntimeHandler handler;
  handler.is_default = true;
  // Mostly the same, or nothing proven would last.
  if (!draw.OneIn(10)) handler.name = draw.OneIn(6) ? draw.From(HandlerNames()) : "runc";
  if (draw.OneIn(4)) handler.guest_platform = DrawGuest(draw);
  return handler;
}

std::vector<RuntimeHandler> DrawHandlersBeside(Draw& draw, const RuntimeHandler& its_default) {
  std::vector<RuntimeHandler> handlers = {its_default};
  for (const std::string& name : HandlerNames()) {
    if (name == its_default.name || draw.OneIn(3)) continue;
    handlers.push_back({name, false, draw.OneIn(2), DrawGuest(draw)});
  }
  if (draw.OneIn(2)) std::swap(handlers.front(), handlers.back());
  return handlers;
}

std::vector<RuntimeHandler> DrawHandlers(Draw& draw) {
  const RuntimeHandler its_default = DrawDefaultHandler(draw);
  switch (draw.Below(12)) {
    case 0:
      return {};
    case 1:
      return {its_default};
    case 2: {  // the runtime does not say which is the default
      auto handlers = DrawHandlersBeside(draw, its_default);
      std::erase_if(handlers, [](const RuntimeHandler& handler) { return handler.is_default; });
      return handlers;
    }
    default:
      return DrawHandlersBeside(draw, its_default);
  }
}

std::vector<RuntimeHandler> DrawBadHandlers(Draw& draw) {
  auto handlers = DrawHandlersBeside(draw, DrawDefaultHandler(draw));
  switch (draw.Below(4)) {
    case 0:
      handlers.push_back(draw.From(handlers));
      break;
    case 1:
      handlers.push_back({.name = "another", .is_default = true});
      break;
    case 2:
      handlers.push_back({.name = "a/b"});
      break;
    default:
      handlers = {{.name = ""}};
      break;
  }
  return handlers;
}

PulledManifest DrawAnyManifest(Draw& draw) {
  return {"sha256:" + std::string(64, draw.OneIn(3) ? '9' : '8'), DrawPlatform(draw)};
}

}  // namespace waybill::testing
