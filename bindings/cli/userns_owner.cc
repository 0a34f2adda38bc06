// waybill userns owner: which pod has a host ID.

#include <set>
#include <string>
#include <vector>

#include "bindings/cli/parse.h"
#include "bindings/cli/store_access.h"
#include "bindings/cli/userns_actions.h"
#include "bindings/cli/userns_json.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

struct Owner {
  std::uint64_t first = 0;
  std::uint64_t length = 0;
  std::string pod;
  bool held = false;

  auto operator<=>(const Owner&) const = default;
};

struct Owners {
  std::set<Owner> owners;
  std::vector<std::string> unknown;  // held pods whose ranges are not known: any may have the ID
};

Result<Owners> FindOwners(const NodeStore& store, std::uint64_t id) {
  Owners found;
  const auto mappings = TRY(store.ListUserNamespaces());
  for (const UserNamespaceAllocation& one : mappings) {
    if (id < one.host_id || id - one.host_id >= one.length) continue;
    found.owners.insert({one.host_id, one.length, one.pod_uid, false});
  }
  const auto held = TRY(store.ListHeldPods());
  for (const HeldPod& pod : held) {
    if (pod.ranges.empty()) found.unknown.push_back(pod.pod_uid);
    for (const HostIdRange& range : pod.ranges) {
      if (id < range.first || id - range.first >= range.length) continue;
      found.owners.insert({range.first, range.length, pod.pod_uid, true});
    }
  }
  return found;
}

class UsernsOwnerCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    const auto parse = [](std::string_view flag, std::string_view text) -> Result<std::uint64_t> {
      auto id = TRY(Number()(flag, text));
      if (id < kHostIds - 1) return id;
      return BadFlag(flag, fmt::format("{} is not an ID: they go up to {}", id, kHostIds - 2));
    };
    flags.Positional("HOST-ID", &id_, "a host's UID or GID", parse, kRequired);
  }

  Result<ExitCode> Run(Output& out) override {
    const std::uint64_t id = id_;
    const auto [owners, unknown] = TRY(
        WithStore(ObserveStore(store_), [&](NodeStore& store) { return FindOwners(store, id); }));
    Json list = Json::array();
    for (const Owner& owner : owners) {
      list.push_back({{"podUid", owner.pod},
                      {"hostId", owner.first},
                      {"length", owner.length},
                      {"containerId", id - owner.first},
                      {"held", owner.held}});
      out.Line("{}: host ID {} is UID and GID {} of the pod, which has {}{}", PodText(owner.pod),
               id, id - owner.first, RangeText(owner.first, owner.length),
               owner.held ? ", unverified: it is held" : "");
    }
    out.WriteJson({{"hostId", id}, {"owners", list}, {"unknownRanges", unknown}});
    if (owners.empty()) {
      out.Line("host ID {} is of no pod that the store knows{}", id,
               id < kIdsPerBlock ? ": it is the host's own" : "");
    }
    std::string names;
    for (const std::string& pod : unknown) names += (names.empty() ? "" : ", ") + PodText(pod);
    if (!names.empty()) out.Line("held, with ranges that are not known: {}", names);
    return owners.empty() ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  std::uint64_t id_ = 0;
};

}  // namespace

Command UsernsOwnerAction() {
  return {.name = "owner",
          .summary = "whose host UID or GID that is",
          .notes = "1 if no pod's.",
          .examples = "waybill userns owner 131072",
          .call = New<UsernsOwnerCall>};
}

}  // namespace waybill::cli
