#include "bindings/cli/preview_report.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace waybill::cli {
namespace {

constexpr std::size_t kMostImageColumns = 200;

std::string_view AnswerText(StartAnswer answer) {
  constexpr std::string_view kTexts[] = {"runs", "must pull", "CAN'T START"};
  return kTexts[static_cast<std::size_t>(answer)];
}

// The coordinates of Secrets, each once.
std::vector<const ImagePullSecret*> OnlyOnce(const std::vector<ImagePullSecret>& secrets) {
  std::vector<const ImagePullSecret*> once;
  for (const ImagePullSecret& secret : secrets) {
    bool known = false;
    for (const ImagePullSecret* other : once) {
      known = known || (other->namespace_name == secret.namespace_name &&
                        other->name == secret.name && other->uid == secret.uid);
    }
    if (!known) once.push_back(&secret);
  }
  return once;
}

std::string SecretsText(const std::vector<ImagePullSecret>& secrets) {
  std::string text;
  for (const ImagePullSecret* secret : OnlyOnce(secrets)) {
    text += (text.empty() ? "" : ", ") + secret->namespace_name + "/" + secret->name;
  }
  return text.empty() ? "-" : text;
}

std::string ContainerText(const ContainerToStart& container) {
  switch (container.kind) {
    case ContainerKind::kInit:
      return container.name + " (init)";
    case ContainerKind::kEphemeral:
      return container.name + " (ephemeral)";
    case ContainerKind::kImageVolume:
      return container.name + " (volume)";
    case ContainerKind::kRegular:
      break;
  }
  return container.name;
}

std::string PodText(const PodToStart& pod) { return pod.namespace_name + "/" + pod.name; }

Json JsonOfForecast(const Forecast& forecast, const PreviewedPolicy& policy) {
  const auto& decision = forecast.outcome.decision;
  return {{"policy", policy.name},
          {"answer", StartAnswerName(forecast.answer)},
          {"because", forecast.because},
          {"action", EnsureActionName(forecast.outcome.action)},
          {"reason", decision ? Json(ReasonName(decision->reason)) : Json(nullptr)}};
}

Json JsonOfContainer(const ContainerForecast& container,
                     const std::vector<PreviewedPolicy>& policies) {
  Json secrets = Json::array();
  for (const ImagePullSecret* secret : OnlyOnce(container.secrets)) {
    secrets.push_back(
        {{"namespace", secret->namespace_name}, {"name", secret->name}, {"uid", secret->uid}});
  }
  Json forecasts = Json::array();
  for (std::size_t i = 0; i < container.forecasts.size(); ++i) {
    forecasts.push_back(JsonOfForecast(container.forecasts[i], policies[i]));
  }
  const ContainerToStart& wanted = *container.container;
  return {{"kind", ContainerKindName(wanted.kind)},
          {"name", wanted.name},
          {"image", wanted.image},
          {"pullPolicy", PullPolicyName(wanted.pull_policy)},
          {"imageRef", container.image_ref},
          {"imageRefFrom", RefSourceName(container.ref_source)},
          {"pullSecrets", secrets},
          {"forecasts", forecasts}};
}

Json SummaryJson(const Preview& preview, const PreviewContext& context) {
  Json summary = Json::array();
  for (std::size_t i = 0; i < context.policies.size(); ++i) {
    const PreviewCounts counts = preview.Count(i);
    summary.push_back({{"policy", context.policies[i].name},
                       {"runs", counts.runs},
                       {"mustPull", counts.must_pull},
                       {"cannotStart", counts.cannot_start},
                       {"podsCannotStart", counts.pods_cannot_start}});
  }
  return summary;
}

void WriteTable(const Preview& preview, const PreviewContext& context, Output& out) {
  const bool alone = context.policies.size() == 1;
  std::vector<std::string> head = {"POD", "CONTAINER", "IMAGE"};
  for (const PreviewedPolicy& policy : context.policies) {
    head.push_back(alone ? "ANSWER" : policy.name);
  }
  head.emplace_back("PULL SECRETS");
  if (alone) head.emplace_back("WHY");
  std::vector<std::vector<std::string>> rows;
  for (const PodForecast& pod : preview.pods()) {
    for (const ContainerForecast& container : pod.containers) {
      std::vector<std::string>& row = rows.emplace_back();
      row = {PodText(*pod.pod), ContainerText(*container.container),
             container.container->image.substr(0, kMostImageColumns)};
      for (const Forecast& forecast : container.forecasts) {
        row.emplace_back(AnswerText(forecast.answer));
      }
      row.push_back(SecretsText(container.secrets));
      if (alone) row.push_back(container.forecasts.front().because);
    }
  }
  out.WriteTable(head, rows);
}

// With several columns there is no room in the table for why.
void WriteWhatCannotStart(const Preview& preview, const PreviewContext& context, Output& out) {
  if (context.policies.size() == 1) return;
  for (const PodForecast& pod : preview.pods()) {
    for (const ContainerForecast& container : pod.containers) {
      std::vector<std::pair<std::string, std::string>> under;  // why, and the policies
      for (std::size_t i = 0; i < container.forecasts.size(); ++i) {
        const Forecast& forecast = container.forecasts[i];
        if (forecast.answer != StartAnswer::kCannotStart) continue;
        const auto same = std::find_if(under.begin(), under.end(), [&](const auto& one) {
          return one.first == forecast.because;
        });
        if (same == under.end()) {
          under.emplace_back(forecast.because, context.policies[i].name);
        } else {
          same->second += ", " + context.policies[i].name;
        }
      }
      for (const auto& [because, policies] : under) {
        out.Line("can't start  {} {}: {} ({})", PodText(*pod.pod),
                 ContainerText(*container.container), because, policies);
      }
    }
  }
}

}  // namespace

Json JsonOf(const PodForecast& pod, const std::vector<PreviewedPolicy>& policies) {
  Json containers = Json::array();
  for (const ContainerForecast& container : pod.containers) {
    containers.push_back(JsonOfContainer(container, policies));
  }
  Json object = {
      {"namespace", pod.pod->namespace_name}, {"name", pod.pod->name}, {"uid", pod.pod->uid}};
  if (!pod.runtime_handler.empty()) object["runtimeHandler"] = pod.runtime_handler;
  object["notes"] = pod.notes;
  object["containers"] = containers;
  return object;
}

void WritePreview(const Preview& preview, const PreviewContext& context, Output& out) {
  const LeftOut& left_out = preview.left_out();
  Json pods = Json::array();
  for (const PodForecast& pod : preview.pods()) pods.push_back(JsonOf(pod, context.policies));
  out.WriteJson({{"node", preview.node()},
                 {"registryDown", context.registry_down},
                 {"migratedFrom", context.migrated_from},
                 {"pods", pods},
                 {"leftOut",
                  {{"otherNodes", left_out.of_other_nodes},
                   {"unbound", left_out.unbound},
                   {"finished", left_out.finished}}},
                 {"summary", SummaryJson(preview, context)}});
  WriteTable(preview, context, out);
  WriteWhatCannotStart(preview, context, out);
  for (const PodForecast& pod : preview.pods()) {
    for (const std::string& note : pod.notes) {
      out.Line("note         {}: {}", PodText(*pod.pod), note);
    }
  }
  if (context.migrated_from != 0) {
    out.Line("schema       the store has version {}: this is what it says once it is migrated",
             context.migrated_from);
  }
  if (left_out.of_other_nodes + left_out.unbound + left_out.finished > 0) {
    out.Line("left out     {} of other nodes, {} without a node, {} finished",
             HowMany(left_out.of_other_nodes, "pod"), left_out.unbound, left_out.finished);
  }
  out.Line("node         {}: {}{}", preview.node().empty() ? "-" : preview.node(),
           HowMany(preview.pods().size(), "pod"),
           context.registry_down ? ", while no registry can be reached" : "");
  for (std::size_t i = 0; i < context.policies.size(); ++i) {
    const PreviewCounts counts = preview.Count(i);
    out.Line("in all       {}: {} run with what is there, {} must pull, {} can't start ({})",
             context.policies[i].name, counts.runs, counts.must_pull, counts.cannot_start,
             HowMany(counts.pods_cannot_start, "pod"));
  }
}

}  // namespace waybill::cli
