// What `waybill preview` does for a node's pods, from the text of the API server's lists on, beside
// as many decisions.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/rows.h"
#include "bindings/cli/cluster_list.h"
#include "bindings/cli/preview.h"

namespace waybill::bench {

namespace {

using Json = nlohmann::json;

// Each pod has two containers of images that the node has, and its team's pull Secret, which one
// of the images was pulled with.
struct Node {
  std::string list = {};  // pods and Secrets
  std::vector<ImageOnNode> images = {};
};

// {"auths":{"registry.example.com":{"auth":"dTpw"}}}
constexpr char kDockerConfig[] =
    "eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlLmNvbSI6eyJhdXRoIjoiZFRwdyJ9fX0=";

Node NodeOf(std::size_t pods, std::size_t records) {
  // As many teams as the data set has: each has the Secret of its first record.
  const std::size_t teams = std::min<std::size_t>(records, 500);
  Json items = Json::array();
  Node node;
  for (std::size_t i = 0; i < teams; ++i) {
    const ImagePullSecret secret = CredentialsOf(i).kubernetes_secrets.front();
    items.push_back(
        {{"kind", "Secret"},
         {"metadata",
          {{"namespace", secret.namespace_name}, {"name", secret.name}, {"uid", secret.uid}}},
         {"type", "kubernetes.io/dockerconfigjson"},
         {"data", {{".dockerconfigjson", kDockerConfig}}}});
  }
  for (std::size_t i = 0; i < std::min(2 * teams, records); ++i) {
    node.images.push_back(
        {.id = ImageRefOf(i), .repo_tags = {ImageOf(i)}, .repo_digests = {RepoDigestOf(i)}});
  }
  for (std::size_t i = 0; i < pods; ++i) {
    const std::size_t team = i % teams;
    const std::size_t other = team + teams < node.images.size() ? team + teams : team;
    const ImagePullSecret secret = CredentialsOf(team).kubernetes_secrets.front();
    items.push_back(
        {{"kind", "Pod"},
         {"metadata", {{"namespace", secret.namespace_name}, {"name", fmt::format("pod-{}", i)}}},
         {"spec",
          {{"nodeName", "node-1"},
           {"imagePullSecrets", {{{"name", secret.name}}}},
           {"containers",
            {{{"name", "app"}, {"image", ImageOf(team)}},
             {{"name", "sidecar"}, {"image", ImageOf(other)}}}}}}});
  }
  node.list = Json{{"kind", "List"}, {"items", items}}.dump();
  return node;
}

// Returns how many containers run with what is there.
std::size_t PreviewOf(NodeStore& store, const Node& node) {
  cli::PreviewInputs inputs;
  inputs.objects = Must(cli::DecodeClusterList(node.list, cli::ClusterKind::kPod));
  inputs.images = node.images;
  cli::Preview preview = Must(cli::Preview::Plan(std::move(inputs)));
  Must(preview.Ask(store, {}));
  return preview.Count(0).runs;
}

}  // namespace

void MeasurePreviews(const Bench& bench, ScratchStore& store, std::size_t records) {
  store.Close();
  // As the command opens it. A process can't have a store open twice.
  const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
  const Questions questions(records);
  for (const std::size_t pods : {std::size_t{110}, std::size_t{1000}}) {
    const Node node = NodeOf(pods, records);
    Turns turns;
    for (std::size_t i = 0; i < bench.effort.previews; ++i) {
      std::size_t running = 0;
      const double mine = NanosecondsOf([&] { running = PreviewOf(*observer, node); });
      const double decisions = NanosecondsOf([&] {
        for (std::size_t j = 0; j < 2 * pods; ++j) {
          if (!Hit(*observer, questions[j % questions.size()])) running = 0;
        }
      });
      if (running < pods) throw std::runtime_error("an answer was wrong; the figures are void");
      turns.Add(mine, decisions);
    }
    const Comparison result = turns.Result();
    bench.report.Add(
        {fmt::format("preview of {} pods, {} records", Grouped(pods), Grouped(records)),
         Duration(result.ours),
         fmt::format("{} decisions {}", Grouped(2 * pods), Duration(result.theirs)), result.ratio,
         "x"});
    bench.report.Add({fmt::format("  a pod, of {}", Grouped(pods)),
                      Duration(result.ours / static_cast<double>(pods)), "",
                      result.ours / 1e3 / static_cast<double>(pods), "us"});
  }
  Must(observer->Close());
  store.Open();
}

}  // namespace waybill::bench
