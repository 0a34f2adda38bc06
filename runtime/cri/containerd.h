// Asks containerd itself, on the socket at which it serves CRI, in the kubelet's namespace: which
// pulls are under way, and which images came by hand.

#ifndef WAYBILL_RUNTIME_CRI_CONTAINERD_H_
#define WAYBILL_RUNTIME_CRI_CONTAINERD_H_

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "runtime/cri/pull_ends.h"
#include "runtime/cri/runtime_client.h"
#include "waybill/result.h"

namespace waybill::cri {

// Thread-safe. Each call makes connections of its own. Nothing in an answer is trusted.
//
// kInvalidArgument: whoever serves the socket is not containerd, or lacks the service.
// kUnavailable: it does not answer at this moment. kLimitExceeded: it says too much.
class Containerd {
 public:
  // More leases are too much.
  static constexpr std::size_t kMaxLeases = 10'000;

  // `options` have an endpoint.
  explicit Containerd(ClientOptions options) : options_(std::move(options)) {}

  // Errors also: kUnavailable: nobody can tell which process listens (it is in another PID
  // namespace, /proc is not of this one, it has ended), or it has another name: the restart of a
  // relay says nothing of containerd.
  Result<ServerProcess> Process() const;

  // For PullEnds: the leases, between two looks at the process that must be the same. Otherwise
  // kUnavailable.
  Result<PullLook> LookAtPulls() const;

  Result<std::vector<ContainerdImage>> Images() const;

  // What CRI calls the images that are proven to come from `ctr images import` or the like, not
  // from a registry: the config digest; for an index, those of its manifests that are here. Whoever
  // pulls through CRI gets an image of which at least one of this is not so
  // (1.6.20, 1.7.29, 2.4.2):
  //   - target, manifests and config are here without a `containerd.io/distribution.source.*`
  //     label, which containerd gives to all that a pull walks through, before it records the
  //     image;
  //   - a manifest names its config and one layer at least by the labels
  //     `containerd.io/gc.ref.content.config` and `.l.*`, an index its manifests by `.m.*`: what a
  //     pull converts (schema 1, or a config of an unknown type) has numbers there;
  //   - all layers are here, without `containerd.io/docker.schema1.empty-layer`. They may have been
  //     fetched, such as a base layer that several images share: no pull through CRI leaves an
  //     image of which only layers were fetched;
  //   - the record is not labelled as converted, and is the same before and after the content.
  // Some imported images are not proven: those that were pulled before and are not collected yet,
  // that a pull left half fetched, or that share their config with a pulled image. Wrong for images
  // that a containerd before 1.3 pulled, which gave no such labels: ask only about images that came
  // since a later one has been running.
  Result<std::vector<std::string>> Imported() const;

 private:
  ClientOptions options_;
};

}  // namespace waybill::cri

#endif  // WAYBILL_RUNTIME_CRI_CONTAINERD_H_
