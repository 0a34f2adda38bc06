#include "bindings/cli/preview.h"

#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <utility>

#include "bindings/cli/image_lookup.h"
#include "bindings/cli/keyring.h"
#include "bindings/cli/parse.h"
#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

// The name under which a kubelet of this machine registers, unless it is told another.
std::string NameOfMachine() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return {};
  std::string text = name.data();
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool IsFinished(const PodToStart& pod) { return pod.phase == "Succeeded" || pod.phase == "Failed"; }

// A pod's credentials; fetching fails if they can't be read. Fetched late, as a kubelet fetches
// them (may_block), since that shows whether the image needs any.
class PodsOwnCredentials final : public CredentialSource {
 public:
  PodsOwnCredentials(const PodForecast& pod, const ContainerForecast& container)
      : views_(container.secrets.begin(), container.secrets.end()),
        unreadable_(!pod.unreadable_because.empty()) {
    if (pod.service_account) account_.emplace(*pod.service_account);
  }

  Result<PodCredentials> Fetch() override {
    if (unreadable_) {
      return Error{ErrorCode::kCredentialsUnavailable, "a Secret of the pod can't be read", {}};
    }
    return PodCredentials{.secrets = views_, .service_account = account_};
  }

 private:
  std::vector<ImagePullSecretView> views_;
  std::optional<ImagePullServiceAccountView> account_;
  bool unreadable_;
};

// The names by which a runtime may list what a container calls `image`.
std::vector<std::string> NamesInLists(std::string_view image) {
  const auto full = NormaliseImage(image);
  const auto parts = PartsOfImage(image);
  if (!full || !parts) return {};
  // A runtime ignores the tag beside a digest.
  if (!parts->digest.empty()) {
    return {fmt::format("{}@{}", RepositoryOf(image), parts->digest), std::string(image)};
  }
  return {*full, std::string(image)};
}

// Where the image of a container is looked for.
struct Places {
  const std::optional<std::vector<ListedImage>>& list;
  std::optional<ImageIndex> index;
  std::vector<RuntimeHandler> handlers;
  std::map<std::pair<std::string, std::string>, std::set<std::string>>
      ledger;  // refs, by handler and name

  bool IsDefault(std::string_view handler) const {
    return handler.empty() || std::any_of(handlers.begin(), handlers.end(), [&](const auto& one) {
             return one.is_default && one.name == handler;
           });
  }
  // Whether a list's entry for `of_entry` is the copy that `handler` would use.
  bool SameHandler(std::string_view of_entry, std::string_view handler) const {
    return of_entry.empty() || of_entry == handler || (IsDefault(of_entry) && IsDefault(handler));
  }

  // The IDs under which the runtime lists that name, each once.
  std::vector<std::string> IdsOf(std::string_view name, std::string_view handler) const {
    std::vector<std::size_t> positions;
    index->Find(name, positions);
    std::vector<std::string> ids;
    for (const std::size_t at : positions) {
      const ListedImage& image = (*list)[at];
      const bool known = std::any_of(ids.begin(), ids.end(), [&](const std::string& id) {
        return SameSpelling(id, image.id);
      });
      if (!known && SameHandler(image.runtime_handler, handler)) ids.push_back(image.id);
    }
    return ids;
  }
};

void SetRef(ContainerForecast& container, std::string ref, RefSource source) {
  container.image_ref = std::move(ref);
  container.ref_source = source;
}

void FindInList(const Places& places, PodForecast& pod, ContainerForecast& container) {
  const std::string& image = container.container->image;
  for (const std::string& name : NamesInLists(image)) {
    const auto ids = places.IdsOf(name, pod.runtime_handler);
    if (ids.size() > 1) {
      pod.notes.push_back(
          fmt::format("the runtime lists {} for {} images: it counts as absent", name, ids.size()));
      return;
    }
    if (ids.size() == 1) return SetRef(container, ids.front(), RefSource::kRuntimeList);
  }
  // A name without a registry may be listed by what the runtime completed it to.
  const auto parts = PartsOfImage(image);
  if (!parts || !parts->domain.empty() || container.container->status_ref.empty()) return;
  const auto ids = places.IdsOf(container.container->status_ref, pod.runtime_handler);
  if (ids.size() == 1) SetRef(container, ids.front(), RefSource::kPodStatus);
}

Result<void> FindInStore(NodeStore& store, const Places& places, const PodForecast& pod,
                         ContainerForecast& container) {
  const ContainerToStart& wanted = *container.container;
  if (!wanted.status_ref.empty()) {
    SetRef(container, wanted.status_ref, RefSource::kPodStatus);
    return {};
  }
  const std::string stored =
      places.IsDefault(pod.runtime_handler) ? std::string() : pod.runtime_handler;
  for (const std::string& name : NamesInLists(wanted.image)) {
    const auto found = places.ledger.find({stored, name});
    if (found != places.ledger.end() && found->second.size() == 1) {
      SetRef(container, *found->second.begin(), RefSource::kLedger);
      return {};
    }
    if (!IsSpelling(name)) continue;
    const auto record =
        store.GetRecord({.image_ref = name, .runtime_handler = pod.runtime_handler});
    if (record) {
      SetRef(container, name, RefSource::kDigest);
      return {};
    }
    if (record.error().code != ErrorCode::kNotFound) return record.error();
  }
  return {};
}

std::string WhyPull(const Forecast& forecast, const PodForecast& pod,
                    const ContainerForecast& container, const PreviewedPolicy& policy,
                    bool list_given) {
  if (!forecast.outcome.decision) {
    return policy.always_pulls ? "AlwaysPullImages makes every container pull"
                               : "the pull policy is Always";
  }
  if (container.ref_source == RefSource::kNone && !list_given) {
    return "the image is not known to be on the node";
  }
  const Reason reason = forecast.outcome.decision->reason;
  return reason == Reason::kCredentialsUnavailable ? pod.unreadable_because
                                                   : std::string(ReasonText(reason));
}

}  // namespace

std::string_view StartAnswerName(StartAnswer answer) {
  constexpr std::string_view kNames[] = {"runs", "mustPull", "cannotStart"};
  return kNames[static_cast<std::size_t>(answer)];
}

std::string_view RefSourceName(RefSource source) {
  constexpr std::string_view kNames[] = {"", "images", "podStatus", "ledger", "digest"};
  return kNames[static_cast<std::size_t>(source)];
}

Result<Preview> Preview::Plan(PreviewInputs inputs) {
  Preview preview(std::move(inputs));
  TRY(preview.ChooseNode());
  preview.ChoosePods();
  preview.FindCredentials();
  return preview;
}

Result<void> Preview::ChooseNode() {
  constexpr std::size_t kMostNamed = 10;
  if (inputs_.all_pods || !inputs_.node.empty()) return {};
  std::set<std::string> nodes;
  for (const PodToStart& pod : inputs_.objects.pods) {
    if (!pod.node_name.empty()) nodes.insert(pod.node_name);
  }
  if (nodes.empty()) return {};
  const std::string machine = NameOfMachine();
  if (nodes.size() == 1 || nodes.count(machine) != 0) {
    inputs_.node = nodes.count(machine) != 0 ? machine : *nodes.begin();
    return {};
  }
  std::string named;
  std::size_t count = 0;
  for (const std::string& node : nodes) {
    if (++count > kMostNamed) break;
    named += (named.empty() ? "" : ", ") + node;
  }
  if (nodes.size() > kMostNamed) named += fmt::format(" and {} more", nodes.size() - kMostNamed);
  return BadFlag("--pods",
                 fmt::format("its pods are bound to {} nodes, and none has this machine's name: {}",
                             nodes.size(), named),
                 "say whose pods to preview: --node NAME");
}

void Preview::ChoosePods() {
  for (const PodToStart& pod : inputs_.objects.pods) {
    if (!inputs_.all_pods) {
      std::size_t* const reason = pod.node_name.empty()           ? &left_out_.unbound
                                  : pod.node_name != inputs_.node ? &left_out_.of_other_nodes
                                  : IsFinished(pod)               ? &left_out_.finished
                                                                  : nullptr;
      if (reason != nullptr) {
        ++*reason;
        continue;
      }
    }
    PodForecast& chosen = pods_.emplace_back();
    chosen.pod = &pod;
    for (const ContainerToStart& container : pod.containers) {
      chosen.containers.emplace_back().container = &container;
    }
  }
}

void Preview::FindCredentials() {
  using Name = std::pair<std::string_view, std::string_view>;
  std::map<Name, const ListedSecret*> secrets;
  for (const ListedSecret& one : inputs_.objects.secrets) {
    secrets[{one.namespace_name, one.name}] = &one;
  }
  std::map<Name, const ListedServiceAccount*> accounts;
  for (const ListedServiceAccount& one : inputs_.objects.service_accounts) {
    accounts[{one.namespace_name, one.name}] = &one;
  }
  for (PodForecast& forecast : pods_) {
    const PodToStart& pod = *forecast.pod;
    std::vector<std::string> names = pod.pull_secrets;
    const auto account = accounts.find(
        {pod.namespace_name, pod.service_account.empty() ? "default" : pod.service_account});
    if (account != accounts.end()) {
      const ListedServiceAccount& own = *account->second;
      if (!own.uid.empty()) {
        forecast.service_account = ImagePullServiceAccount{
            .uid = own.uid, .namespace_name = own.namespace_name, .name = own.name};
      }
      if (names.empty() && !own.pull_secrets.empty()) {
        names = own.pull_secrets;
        forecast.notes.push_back(
            fmt::format("it names no pull Secret, and would get those of its service account {}/{} "
                        "when it is created anew",
                        own.namespace_name, own.name));
      }
    }
    Keyring keyring;
    for (const std::string& name : names) {
      const auto found = secrets.find({pod.namespace_name, name});
      if (found == secrets.end()) {
        forecast.notes.push_back(
            fmt::format("its pull Secret {}/{} is not listed", pod.namespace_name, name));
        continue;
      }
      const ListedSecret& secret = *found->second;
      if (!secret.unreadable_because.empty()) {
        if (!forecast.unreadable_because.empty()) continue;
        forecast.unreadable_because =
            fmt::format("its pull Secret {}/{} can't be read: {}", pod.namespace_name, name,
                        secret.unreadable_because);
      } else if (!secret.registries) {
        forecast.notes.push_back(fmt::format("its pull Secret {}/{} holds no pull credentials",
                                             pod.namespace_name, name));
      } else {
        keyring.Add(
            {.uid = secret.uid, .namespace_name = secret.namespace_name, .name = secret.name},
            *secret.registries);
      }
    }
    for (ContainerForecast& container : forecast.containers) {
      container.secrets = keyring.Lookup(container.container->image);
    }
  }
}

Result<void> Preview::FindImages(NodeStore& store) {
  if (std::exchange(images_found_, true)) return {};
  auto handlers = TRY(store.ListRuntimeHandlers());
  Places places{.list = inputs_.images, .index = {}, .handlers = std::move(handlers), .ledger = {}};
  if (inputs_.images) {
    places.index.emplace(*inputs_.images);
  } else {
    auto ledger = TRY(store.ListLedger());
    for (const PreloadedImage& entry : ledger) {
      if (entry.absent_since) continue;
      for (const std::string& name : entry.names) {
        places.ledger[{entry.runtime_handler, name}].insert(entry.image_ref);
      }
    }
  }
  for (PodForecast& pod : pods_) {
    const std::string& wanted = pod.pod->runtime_class;
    if (!wanted.empty() && !places.handlers.empty()) {
      const auto by_class = inputs_.objects.handlers.find(wanted);
      pod.runtime_handler = by_class == inputs_.objects.handlers.end() ? wanted : by_class->second;
    } else if (!wanted.empty()) {
      pod.notes.push_back(fmt::format(
          "its runtime class {} does not count: the store has no list of runtime handlers",
          wanted));
    }
    for (ContainerForecast& container : pod.containers) {
      if (inputs_.images) {
        FindInList(places, pod, container);
      } else if (auto found = FindInStore(store, places, pod, container); !found) {
        return found;
      }
    }
  }
  return {};
}

Result<void> Preview::Ask(NodeStore& store, const PreviewedPolicy& policy) {
  TRY(FindImages(store));
  for (PodForecast& pod : pods_) {
    for (ContainerForecast& container : pod.containers) {
      const PullPolicy own = container.container->pull_policy;
      container.forecasts.push_back(
          AskAbout(store, policy, policy.always_pulls ? PullPolicy::kAlways : own, pod, container));
    }
  }
  return {};
}

Result<void> Preview::AskWhetherToPull(NodeStore& store, const VerificationPolicy* what_if) {
  TRY(FindImages(store));
  PreviewedPolicy policy;
  if (what_if != nullptr) policy.what_if = *what_if;
  for (PodForecast& pod : pods_) {
    for (ContainerForecast& container : pod.containers) {
      container.forecasts.push_back(
          AskAbout(store, policy, PullPolicy::kIfNotPresent, pod, container));
    }
  }
  return {};
}

Forecast Preview::AskAbout(NodeStore& store, const PreviewedPolicy& policy, PullPolicy pull_policy,
                           const PodForecast& pod, const ContainerForecast& container) const {
  const ContainerToStart& wanted = *container.container;
  PodsOwnCredentials credentials(pod, container);
  Forecast forecast;
  forecast.outcome = store.EnsureImage({.image = wanted.image,
                                        .image_ref = container.image_ref,
                                        .runtime_handler = pod.runtime_handler},
                                       pull_policy, credentials, true,
                                       policy.what_if ? &*policy.what_if : nullptr);
  const auto& decision = forecast.outcome.decision;
  switch (forecast.outcome.action) {
    case EnsureAction::kUsePresent:
      forecast.answer = StartAnswer::kRuns;
      forecast.because = decision ? ReasonText(decision->reason) : "";
      return forecast;
    case EnsureAction::kInvalidImageName:
      forecast.because = "its image is not a valid image name";
      return forecast;
    case EnsureAction::kCredentialsError:
      forecast.because = pod.unreadable_because;
      return forecast;
    case EnsureAction::kNeverPull:
      forecast.because = "the pull policy is Never, and " +
                         WhyPull(forecast, pod, container, policy, inputs_.images.has_value());
      return forecast;
    case EnsureAction::kPull:
      break;
  }
  // Without its keyring a kubelet pulls nothing.
  if (!pod.unreadable_because.empty()) {
    forecast.because = pod.unreadable_because;
    return forecast;
  }
  forecast.because = WhyPull(forecast, pod, container, policy, inputs_.images.has_value());
  if (inputs_.registry_down) {
    forecast.because = "no registry can be reached, and " + forecast.because;
    return forecast;
  }
  forecast.answer = StartAnswer::kMustPull;
  return forecast;
}

PreviewCounts Preview::Count(std::size_t index) const {
  PreviewCounts counts;
  for (const PodForecast& pod : pods_) {
    bool starts = true;
    for (const ContainerForecast& container : pod.containers) {
      switch (container.forecasts[index].answer) {
        case StartAnswer::kRuns:
          ++counts.runs;
          break;
        case StartAnswer::kMustPull:
          ++counts.must_pull;
          break;
        case StartAnswer::kCannotStart:
          ++counts.cannot_start;
          starts = false;
          break;
      }
    }
    counts.pods_cannot_start += starts ? 0 : 1;
  }
  return counts;
}

}  // namespace waybill::cli
