// Which pods of a node could start now: for each container the store is asked as a kubelet asks it
// (NodeStore::EnsureImage), with the pod's own credentials. Knows no rule of a decision itself.

#ifndef WAYBILL_BINDINGS_CLI_PREVIEW_H_
#define WAYBILL_BINDINGS_CLI_PREVIEW_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bindings/cli/cluster_list.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::cli {

// A column of a preview: of the store's own policy, or of another one. `always_pulls`: the
// admission plugin AlwaysPullImages, which gives every container and image volume the pull policy
// Always.
struct PreviewedPolicy {
  std::string name = {};
  std::optional<VerificationPolicy> what_if = {};
  bool always_pulls = false;
};

enum class StartAnswer : std::uint8_t { kRuns, kMustPull, kCannotStart };
std::string_view StartAnswerName(StartAnswer answer);  // "runs", "mustPull", "cannotStart"

struct Forecast {
  StartAnswer answer = StartAnswer::kCannotStart;
  EnsureOutcome outcome = {};  // the store's
  std::string because = {};    // one sentence, no full stop
};

// Where it is known from what the runtime calls an image.
enum class RefSource : std::uint8_t {
  kNone,         // it is not on the node, or not known to be
  kRuntimeList,  // the runtime lists it by that name
  kPodStatus,    // the pod runs it
  kLedger,       // the ledger has it by that name
  kDigest,       // the store knows its digest
};
std::string_view RefSourceName(RefSource source);  // "", "images", "podStatus", "ledger", "digest"

struct ContainerForecast {
  const ContainerToStart* container = nullptr;
  std::string image_ref = {};  // empty: not known to be on the node
  RefSource ref_source = RefSource::kNone;
  // The pod's pull Secrets that apply to the image, in the kubelet's order. Hashes are never shown.
  std::vector<ImagePullSecret> secrets = {};
  std::vector<Forecast> forecasts = {};  // one for each policy that was asked for
};

struct PodForecast {
  const PodToStart* pod = nullptr;
  std::string runtime_handler = {};  // as decisions are asked; empty: the default
  std::optional<ImagePullServiceAccount> service_account = {};  // if the list of them has it
  std::string unreadable_because = {};  // credentials: no pull with them is possible
  std::vector<std::string> notes = {};  // one sentence each
  std::vector<ContainerForecast> containers = {};
};

struct PreviewInputs {
  ClusterObjects objects = {};
  // The runtime's complete list: what is not in it is not on the node. nullopt: unknown.
  std::optional<std::vector<ListedImage>> images = {};
  // Empty: this machine's name, if a pod is bound to a node of that name; otherwise the only node
  // that pods are bound to.
  std::string node = {};
  // Every pod is this node's, whatever it is bound to, finished or not.
  bool all_pods = false;
  bool registry_down = false;  // nothing can be pulled
};

// What was counted and left out.
struct LeftOut {
  std::size_t of_other_nodes = 0;
  std::size_t unbound = 0;   // no node yet
  std::size_t finished = 0;  // Succeeded or Failed
};

// How many containers, and pods, have which answer under a policy.
struct PreviewCounts {
  std::size_t runs = 0;
  std::size_t must_pull = 0;
  std::size_t cannot_start = 0;
  std::size_t pods_cannot_start = 0;
};

class Preview {
 public:
  // kInvalidArgument: the node can't be told. The message names nodes, for --node.
  static Result<Preview> Plan(PreviewInputs inputs);
  Preview(Preview&&) = default;
  Preview& operator=(Preview&&) = delete;

  // Asks `store` about every container: one more column. The first call also looks up what the
  // runtime calls the images. Errors: as NodeStore::ListRuntimeHandlers and ListLedger.
  Result<void> Ask(NodeStore& store, const PreviewedPolicy& policy);

  // The same with the pull policy IfNotPresent for all, so that every answer is a decision, unless
  // the image is not a valid name.
  Result<void> AskWhetherToPull(NodeStore& store, const VerificationPolicy* what_if);

  const std::vector<PodForecast>& pods() const { return pods_; }
  const std::string& node() const { return inputs_.node; }  // empty: there is no pod
  const LeftOut& left_out() const { return left_out_; }
  // The summary of the column `index`.
  PreviewCounts Count(std::size_t index) const;

 private:
  explicit Preview(PreviewInputs inputs) : inputs_(std::move(inputs)) {}
  Result<void> ChooseNode();
  void ChoosePods();
  void FindCredentials();
  Result<void> FindImages(NodeStore& store);
  Forecast AskAbout(NodeStore& store, const PreviewedPolicy& policy, PullPolicy pull_policy,
                    const PodForecast& pod, const ContainerForecast& container) const;

  PreviewInputs inputs_;
  LeftOut left_out_;
  std::vector<PodForecast> pods_;
  bool images_found_ = false;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PREVIEW_H_
