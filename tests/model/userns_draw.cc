#include "tests/model/userns_draw.h"

#include <algorithm>


namespace waybill::testing {

namespace {

constexpr std::uint64_t kBlocksDrawn = 40;
constexpr std::uint64_t kAllBlocks = kHostIds / kIdsPerBlock;

std::uint64_t DrawBlocksPerPod(Draw& draw) {
  static const std::vector<std::uint64_t> lengths = {1, 1, 1, 1, 2, 2, 3, 4, 8};
  return draw.From(lengths);
}

struct Written {
  std::uint64_t host_id = 0;
  std::uint64_t container_id = 0;
  std::uint64_t length = 0;
};

std::string ListOf(const std::vector<Written>& mappings) {
  std::string text;
  for (const Written& mapping : mappings) {
    text += (text.empty() ? "{\"hostId\":" : ",{\"hostId\":") + std::to_string(mapping.host_id) +
            ",\"containerId\":" + std::to_string(mapping.container_id) +
            ",\"length\":" + std::to_string(mapping.length) + "}";
  }
  return "[" + text + "]";
}

DrawnUsernsFile Refused(const std::vector<Written>& uids, const std::vector<Written>& gids) {
  DrawnUsernsFile file;
  file.content = "{\"uidMappings\":" + ListOf(uids) + ",\"gidMappings\":" + ListOf(gids) + "}";
  for (const auto* mappings : {&uids, &gids}) {
    for (const Written& mapping : *mappings) {
      const HostIdRange range{mapping.host_id, mapping.length};
      if (std::find(file.ranges.begin(), file.ranges.end(), range) == file.ranges.end()) {
        file.ranges.push_back(range);
      }
    }
  }
  return file;
}

DrawnUsernsFile Sound(HostIdRange range) {
  const std::vector<Written> mappings = {{range.first, 0, range.length}};
  DrawnUsernsFile file = Refused(mappings, mappings);
  file.ranges.clear();
  file.mapping = range;
  return file;
}

DrawnUsernsFile DrawRefused(Draw& draw) {
  const HostIdRange range = DrawRange(draw);
  const HostIdRange other = DrawRange(draw);
  const Written one{range.first, 0, range.length};
  const Written two{other.first, 0, other.length};
  switch (draw.Below(7)) {
    case 0:  // two of each
      return Refused({one, two}, {one, two});
    case 1:  // not the same, or none
      return range == other ? Refused({one}, {}) : Refused({one}, {two});
    case 2: {
      const Written inside{range.first, 1000, range.length};
      return Refused({inside}, {inside});
    }
    case 3: {
      const Written askew{range.first + 1 + draw.Below(kIdsPerBlock - 1), 0, range.length};
      return Refused({askew}, {askew});
    }
    case 4: {
      const Written odd{range.first, 0, 1 + draw.Below(kIdsPerBlock - 1)};
      return Refused({odd}, {odd});
    }
    case 5: {
      const Written host{0, 0, kIdsPerBlock * (1 + draw.Below(2))};
      return Refused({host}, {host});
    }
    default: {
      const Written last{kHostIds - kIdsPerBlock, 0, kIdsPerBlock * (1 + draw.Below(2))};
      return Refused({last}, {last});
    }
  }
}

DrawnUsernsFile DrawBroken(Draw& draw) {
  static const std::vector<std::string> contents = {
      "", "{", "{}", "null", "[]", "{\"uidMappings\":{}}", "{\"uidMappings\":[{\"hostId\":-1}]}"};
  return {draw.From(contents), std::nullopt, {}};
}

}  // namespace

const std::vector<std::string>& PodUids() {
  static const std::vector<std::string> uids = [] {
    std::vector<std::string> made = {
        std::string(253, 'u'), "\xc3\xbc", std::string(255, 'd'), "a b", "...", "A", "a"};
    for (int i = 0; i < 40; ++i) made.push_back("pod-" + std::to_string(i));
    return made;
  }();
  return uids;
}

std::string DrawPodUid(Draw& draw) {
  static const std::vector<std::string> impossible = {"", ".", "..", "a/b", "a\nb"};
  return draw.OneIn(100) ? draw.From(impossible) : draw.From(PodUids());
}

std::string DrawHandlerName(Draw& draw) {
  static const std::vector<std::string> names = {"runc", "runc", "gvisor", "kata", "wasm"};
  return draw.OneIn(2) ? "" : draw.From(names);
}

std::vector<RuntimeHandler> DrawUsernsHandlers(Draw& draw) {
  if (draw.OneIn(12)) return {};
  std::vector<RuntimeHandler> handlers = {
      {.name = draw.OneIn(3) ? "" : "runc", .is_default = true, .user_namespaces = !draw.OneIn(8)},
      {.name = "gvisor", .user_namespaces = draw.OneIn(2)}};
  if (draw.OneIn(2)) handlers.push_back({.name = "kata", .user_namespaces = draw.OneIn(2)});
  return handlers;
}

IdPool DrawPool(Draw& draw) {
  if (draw.OneIn(30)) return IdPool::Default(kIdsPerBlock * DrawBlocksPerPod(draw));
  IdPool pool;
  const std::uint64_t blocks = DrawBlocksPerPod(draw);
  const std::uint64_t ranges = 2 + draw.Below(blocks > 2 ? 6 : 16);
  pool.ids_per_pod = blocks * kIdsPerBlock;
  pool.id_count = ranges * pool.ids_per_pod;
  pool.max_pods = 1 + draw.Below(ranges - 1);
  const std::uint64_t lowest = 1 + draw.Below(kBlocksDrawn / blocks / 2);
  const std::uint64_t highest = kAllBlocks / blocks - ranges - draw.Below(3);
  pool.first_id = (draw.OneIn(6) ? highest : lowest) * pool.ids_per_pod;
  return pool;
}

IdPool DrawWrongPool(Draw& draw) {
  IdPool pool = DrawPool(draw);
  switch (draw.Below(6)) {
    case 0:
      pool.first_id += 1 + draw.Below(kIdsPerBlock - 1);
      break;
    case 1:
      pool.first_id = 0;
      break;
    case 2:
      pool.id_count += 1 + draw.Below(kIdsPerBlock - 1);
      break;
    case 3:
      pool.max_pods = pool.id_count / pool.ids_per_pod + 1;
      break;
    case 4:
      pool.first_id = kHostIds - kHostIds % pool.ids_per_pod;
      break;
    default:
      pool.ids_per_pod += 1;
      break;
  }
  return pool;
}

HostIdRange DrawRange(Draw& draw) {
  const std::uint64_t length = DrawBlocksPerPod(draw);
  const std::uint64_t low = 1 + draw.Below(kBlocksDrawn / length);
  const std::uint64_t high = (kAllBlocks - 1) / length - 1 - draw.Below(16);
  return {(draw.OneIn(6) ? high : low) * length * kIdsPerBlock, length * kIdsPerBlock};
}

HostIdRange DrawAnyRange(Draw& draw) {
  HostIdRange range = DrawRange(draw);
  if (!draw.OneIn(6)) return range;
  switch (draw.Below(5)) {
    case 0:
      range.first = 0;
      break;
    case 1:
      range.first = kHostIds - range.length;
      break;
    case 2:
      range.first += 1 + draw.Below(kIdsPerBlock - 1);
      break;
    case 3:
      range.length += draw.Below(kIdsPerBlock);
      break;
    default:
      range = {kHostIds, kIdsPerBlock};
      break;
  }
  return range;
}

DrawnPods DrawPods(Draw& draw, const UsernsModel& model) {
  DrawnPods pods;
  for (const auto& [uid, mapping] : model.mappings()) {
    if (!draw.OneIn(3)) pods[uid] = Sound(mapping.range);
  }
  const bool careful = draw.OneIn(3);  // no file that nobody can read
  for (std::size_t others = draw.Below(8); others > 0; --others) {
    const std::string& uid = draw.From(PodUids());
    if (!draw.OneIn(4)) {
      pods[uid] = Sound(DrawRange(draw));
    } else if (careful || !draw.OneIn(4)) {
      pods[uid] = DrawRefused(draw);
    } else {
      pods[uid] = DrawBroken(draw);
    }
  }
  return pods;
}

}  // namespace waybill::testing
