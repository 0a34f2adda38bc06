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

// A field with its flag, its unit and its range.
struct ShapeField {
  std::string_view flag;
  double NodeShape::*value;
  std::string_view unit;
  double least;
  double most;
};

inline constexpr std::array<ShapeField, 17> kShapeFields = {{
    {"--pods", &NodeShape::pods, "pods", 1, 100'000},
    {"--images", &NodeShape::images, "images", 1, 200'000},
    {"--tenants", &NodeShape::tenants, "namespaces", 1, 100'000},
    {"--secrets-per-image", &NodeShape::secrets_per_image, "secrets", 1, 16'384},
    {"--containers-per-pod", &NodeShape::containers_per_pod, "containers", 1, 100},
    {"--pod-starts-per-day", &NodeShape::pod_starts_per_day, "pods a day", 1, 10'000'000},
    {"--versions-per-day", &NodeShape::versions_per_day, "images a day", 0, 1'000'000},
    {"--zipf-skew", &NodeShape::zipf_skew, "exponent", 0, 4},
    {"--public-percent", &NodeShape::public_percent, "% of images", 0, 100},
    {"--fixed-percent", &NodeShape::fixed_percent, "% of images", 0, 100},
    {"--preloaded", &NodeShape::preloaded, "images", 0, 10'000},
    {"--shared-percent", &NodeShape::shared_percent, "% of tenants", 0, 100},
    {"--rotations-per-year", &NodeShape::rotations_per_year, "a secret and year", 0, 10'000},
    {"--turnover-percent", &NodeShape::turnover_percent, "% of tenants a day", 0, 1'000},
    {"--failed-pulls-percent", &NodeShape::failed_pulls_percent, "% of pulls", 0, 100},
    {"--lists-per-day", &NodeShape::lists_per_day, "lists a day", 1, 86'400},
    {"--restarts-per-year", &NodeShape::restarts_per_year, "a year", 0, 10'000},
}};

inline constexpr std::array<NodeShape, 4> kPresets = {{
    // A shop's or a base station's few machines: little changes.
    {.name = "edge",
     .pods = 30,
     .images = 60,
     .tenants = 4,
     .secrets_per_image = 1.5,
     .containers_per_pod = 2,
     .pod_starts_per_day = 600,
     .versions_per_day = 4,
     .zipf_skew = 0.8,
     .public_percent = 20,
     .fixed_percent = 40,
     .preloaded = 8,
     .shared_percent = 50,
     .rotations_per_year = 4,
     .turnover_percent = 0.3,
     .failed_pulls_percent = 5,
     .lists_per_day = 288,
     .restarts_per_year = 24},
    // What the kubelet runs by default: services and some periodic jobs of many teams.
    {.name = "default",
     .pods = 110,
     .images = 300,
     .tenants = 25,
     .secrets_per_image = 2,
     .containers_per_pod = 2,
     .pod_starts_per_day = 2000,
     .versions_per_day = 40,
     .zipf_skew = 0.9,
     .public_percent = 25,
     .fixed_percent = 30,
     .preloaded = 10,
     .shared_percent = 30,
     .rotations_per_year = 12,
     .turnover_percent = 2,
     .failed_pulls_percent = 2,
     .lists_per_day = 288,
     .restarts_per_year = 12},
    // The most pods that a node is configured for, of hundreds of tenants.
    {.name = "dense",
     .pods = 1000,
     .images = 2000,
     .tenants = 200,
     .secrets_per_image = 4,
     .containers_per_pod = 2,
     .pod_starts_per_day = 8000,
     .versions_per_day = 200,
     .zipf_skew = 0.9,
     .public_percent = 15,
     .fixed_percent = 20,
     .preloaded = 12,
     .shared_percent = 30,
     .rotations_per_year = 12,
     .turnover_percent = 3,
     .failed_pulls_percent = 2,
     .lists_per_day = 288,
     .restarts_per_year = 12},
    // Builds: short pods, many images, a namespace for each branch, one robot account for most.
    {.name = "ci",
     .pods = 60,
     .images = 1500,
     .tenants = 40,
     .secrets_per_image = 2.5,
     .containers_per_pod = 3,
     .pod_starts_per_day = 3000,
     .versions_per_day = 250,
     .zipf_skew = 1.0,
     .public_percent = 20,
     .fixed_percent = 15,
     .preloaded = 6,
     .shared_percent = 80,
     .rotations_per_year = 12,
     .turnover_percent = 30,
     .failed_pulls_percent = 3,
     .lists_per_day = 288,
     .restarts_per_year = 52},
}};

// nullptr: there is no such preset.
constexpr const NodeShape* FindPreset(std::string_view name) {
  for (const NodeShape& preset : kPresets) {
    if (preset.name == name) return &preset;
  }
  return nullptr;
}

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_NODE_SHAPE_H_
