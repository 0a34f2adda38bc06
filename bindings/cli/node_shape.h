// The shape of a node, as `waybill advise` and the simulator of bench/sizing know it: how much runs
// there, and how it changes. kPresets is the one table of presets.

#ifndef WAYBILL_BINDINGS_CLI_NODE_SHAPE_H_
#define WAYBILL_BINDINGS_CLI_NODE_SHAPE_H_

#include <array>
#include <cstdint>
#include <string_view>

namespace waybill::cli {

struct NodeShape {
  std::string_view name = {};
  double pods = 0;                // that run at the same time; their images are not collected
  double images = 0;              // image refs on the node, above which images are collected
  double tenants = 0;             // namespaces at a time, each with a pull Secret
  double secrets_per_image = 0;   // tenants that use a private image: the mean
  double containers_per_pod = 0;  // each start of one asks for a decision
  double pod_starts_per_day = 0;  // pod churn
  double versions_per_day = 0;    // new versions of images that reach the node: new refs
  double zipf_skew = 0;           // 0: all images are equally popular
  double public_percent = 0;      // of images, pulled without credentials
  double fixed_percent = 0;       // of images, never get a new version (agents, sidecars)
  double preloaded = 0;           // images that came with the node
  double shared_percent = 0;      // of tenants, whose Secrets hold one credential of all
  double rotations_per_year = 0;  // of each credential: the same coordinates, a new hash
  double turnover_percent = 0;    // of tenants, replaced by new ones each day
  double failed_pulls_percent = 0;
  double lists_per_day = 0;      // complete lists of images (the kubelet collects every 5 minutes)
  double restarts_per_year = 0;  // of the node or its kubelet
};

// A field with its flag, its unit, its range, and what each preset has.
struct ShapeField {
  std::string_view flag;
  double NodeShape::*value;
  std::string_view unit;
  double least;
  double most;
  std::array<double, 4> presets;
};

// edge: a shop's or a base station's few machines, where little changes.
// default: what the kubelet runs by default, services and some periodic jobs of many teams.
// dense: the most pods that a node is configured for, of hundreds of tenants.
// ci: builds, with short pods, many images, a namespace for each branch, one robot account for
// most.
inline constexpr std::array<std::string_view, 4> kPresetNames = {"edge", "default", "dense", "ci"};

using Shape = NodeShape;
inline constexpr std::array<ShapeField, 17> kShapeFields = {{
    {"--pods", &Shape::pods, "pods", 1, 100'000, {30, 110, 1000, 60}},
    {"--images", &Shape::images, "images", 1, 200'000, {60, 300, 2000, 1500}},
    {"--tenants", &Shape::tenants, "namespaces", 1, 100'000, {4, 25, 200, 40}},
    {"--secrets-per-image", &Shape::secrets_per_image, "secrets", 1, 16'384, {1.5, 2, 4, 2.5}},
    {"--containers-per-pod", &Shape::containers_per_pod, "containers", 1, 100, {2, 2, 2, 3}},
    {"--pod-starts-per-day",
     &Shape::pod_starts_per_day,
     "a day",
     1,
     10'000'000,
     {600, 2000, 8000, 3000}},
    {"--versions-per-day", &Shape::versions_per_day, "a day", 0, 1'000'000, {4, 40, 200, 250}},
    {"--zipf-skew", &Shape::zipf_skew, "exponent", 0, 4, {0.8, 0.9, 0.9, 1.0}},
    {"--public-percent", &Shape::public_percent, "% of images", 0, 100, {20, 25, 15, 20}},
    {"--fixed-percent", &Shape::fixed_percent, "% of images", 0, 100, {40, 30, 20, 15}},
    {"--preloaded", &Shape::preloaded, "images", 0, 10'000, {8, 10, 12, 6}},
    {"--shared-percent", &Shape::shared_percent, "% of tenants", 0, 100, {50, 30, 30, 80}},
    {"--rotations-per-year", &Shape::rotations_per_year, "a year", 0, 10'000, {4, 12, 12, 12}},
    {"--turnover-percent", &Shape::turnover_percent, "% a day", 0, 1'000, {0.3, 2, 3, 30}},
    {"--failed-pulls-percent", &Shape::failed_pulls_percent, "% of pulls", 0, 100, {5, 2, 2, 3}},
    {"--lists-per-day", &Shape::lists_per_day, "a day", 1, 86'400, {288, 288, 288, 288}},
    {"--restarts-per-year", &Shape::restarts_per_year, "a year", 0, 10'000, {24, 12, 12, 52}},
}};

inline constexpr std::array<NodeShape, 4> kPresets = [] {
  std::array<NodeShape, 4> presets;
  for (std::size_t i = 0; i < presets.size(); ++i) {
    presets[i].name = kPresetNames[i];
    for (const ShapeField& field : kShapeFields) presets[i].*field.value = field.presets[i];
  }
  return presets;
}();

// nullptr: there is no such preset.
constexpr const NodeShape* FindPreset(std::string_view name) {
  for (const NodeShape& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_NODE_SHAPE_H_
