// What `waybill preview` does for a node's pods, from the text of the API server's lists on, beside
// two decisions a pod: the ratio is of the whole to one decision.

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "bench/micro/rows.h"
#include "bindings/cli/cluster_list.h"
#include "bindings/cli/preview.h"

namespace waybill::bench {

namespace {

// Each pod has two containers of images that the node has, and its team's pull Secret, which one
// of the images was pulled with.
struct Node {
  std::string list = {};  // pods and Secrets
  std::vector<ListedImage> images = {};
};

Node NodeOf(std::size_t pods, std::size_t records) {
  // As many teams as the data set has: each has the Secret of its first record.
  const std::size_t teams = std::min<std::size_t>(records, 500);
  Node node{.list = R"({"kind":"List","items":[)",
            .images = ListOfImages(0, std::min(2 * teams, records))};
  for (std::size_t i = 0; i < teams; ++i) {
    const ImagePullSecret secret = CredentialsOf(i).kubernetes_secrets.front();
    // {"auths":{"registry.example.com":{"auth":"dTpw"}}}
    node.list += fmt::format(
        R"({{"kind":"Secret","metadata":{{"namespace":"{}","name":"{}","uid":"{}"}},)"
        R"("type":"kubernetes.io/dockerconfigjson","data":{{".dockerconfigjson":)"
        R"("eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlLmNvbSI6eyJhdXRoIjoiZFRwdyJ9fX0="}}}},)",
        secret.namespace_name, secret.name, secret.uid);
  }
  for (std::size_t i = 0; i < pods; ++i) {
    const std::size_t team = i % teams;
    const std::size_t other = team + teams < node.images.size() ? team + teams : team;
    const ImagePullSecret secret = CredentialsOf(team).kubernetes_secrets.front();
    node.list += fmt::format(
        R"({}{{"kind":"Pod","metadata":{{"namespace":"{}","name":"pod-{}"}},"spec":{{)"
        R"("nodeName":"node-1","imagePullSecrets":[{{"name":"{}"}}],"containers":[)"
        R"({{"name":"app","image":"{}"}},{{"name":"sidecar","image":"{}"}}]}}}})",
        i == 0 ? "" : ",", secret.namespace_name, i, secret.name, ImageOf(team), ImageOf(other));
  }
  node.list += "]}";
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

void MeasurePreviews(const Micro& micro, const MicroStore& on) {
  on.store.Close();
  // As the command opens it. A process can't have a store open twice.
  const auto observer = Must(NodeStore::Observe({.directory = on.store.directory()}));
  const Questions& questions = on.questions;
  for (const std::size_t pods : {std::size_t{110}, std::size_t{1000}}) {
    const Node node = NodeOf(pods, on.records);
    const std::size_t decisions = 2 * pods;
    std::size_t next = 0;
    const auto decide = [&] {
      for (std::size_t i = 0; i < decisions; ++i) {
        const Decision decision = Decide(*observer, questions[next++ % questions.size()]);
        Expect(decision.reason == Reason::kSecretHashMatches, "MustAttemptPull");
      }
    };
    const auto preview = [&] { Expect(PreviewOf(*observer, node) >= pods, "Preview"); };
    micro.Row(fmt::format("preview of {} pods", Grouped(pods)),
              [&](State& state) { Beside(state, decide, kNothing, preview, kNothing, decisions); });
  }
  Must(observer->Close());
  on.store.Open();
}

}  // namespace waybill::bench
