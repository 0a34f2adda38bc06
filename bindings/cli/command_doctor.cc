// waybill doctor: whether this node keeps one tenant's images from another. Needs no store, and
// changes nothing.

#include <string>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "doctor/checks.h"
#include "doctor/node.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

using doctor::Finding;
using doctor::Protection;
using doctor::Verdict;

// The names of the checks that are of this verdict, each once.
std::vector<std::string> NamesOf(const doctor::Findings& findings, Verdict verdict,
                                 bool only_tenants) {
  std::vector<std::string> names;
  for (const doctor::Check& check : doctor::Checks()) {
    if (only_tenants && check.matters != doctor::Matters::kTenants) continue;
    for (const Finding& finding : findings) {
      if (finding.check != check.name || finding.verdict != verdict) continue;
      names.emplace_back(check.name);
      break;
    }
  }
  return names;
}

class DoctorCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    const FromSettings here{.unless = {"--root"}};
    flags
        .Value("--kubelet-dir", &options_.kubelet_directory, "DIR",
               "the kubelet's directory; else that of the kubelet that runs", Length())
        .TakesSetting(here);
    Flag& cri =
        flags.Value("--cri", &options_.cri, "ENDPOINT|auto|DIR",
                    "the runtime's socket; auto (default): the kubelet's; or a folder with\n"
                    "version.json, images.json and info.json, as crictl prints them",
                    Length());
    cri.choices = EndpointChoices();
    cri.TakesSetting(here);
    flags
        .List("--kubelet-config", &options_.kubelet_config, "FILE|DIR",
              "its config.yaml, or the directory of its --config-dir; may be repeated", Length())
        .TakesSetting(here);
    flags
        .Value("--store", &options_.store, "DIR",
               "waybill's store; else /var/lib/waybill, or the one inside the kubelet", Length())
        .TakesSetting(here);
    flags.Value("--node", &node_, "FILE|-",
                "what kubectl get node NAME -o json prints: which release the kubelet is");
    flags.Value("--root", &root_, "DIR", "look at the node whose root directory is there", Length(),
                kSeldom);
  }

  Result<ExitCode> Run(Output& out) override {
    if (root_) options_.root = std::filesystem::absolute(*root_);
    if (node_) options_.node_json = TRY(ReadInput(*node_, kMaxDocumentBytes));
    options_.waybill_version = WAYBILL_VERSION;
    doctor::Kernel kernel = doctor::ThisKernel();
    kernel.read_store = ReadStore;
    const auto node = TRY(doctor::Node::Find(options_, std::move(kernel)));
    const doctor::Findings findings = doctor::Examine(*node);
    WriteJson(findings, out);
    WriteText(findings, out);
    for (const std::string& name : NamesOf(findings, Verdict::kFail, false)) out.WriteName(name);
    return NamesOf(findings, Verdict::kFail, false).empty() ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  static Result<doctor::StoreFacts> ReadStore(const std::filesystem::path& directory) {
    StoreFlags flags;
    flags.store = directory.string();
    return WithStore(ObserveStore(flags), [](NodeStore& store) -> Result<doctor::StoreFacts> {
      const auto trust = TRY(store.GetTrust());
      const auto statistics = TRY(store.GetStatistics());
      doctor::StoreFacts facts{.schema_version = statistics.schema_version,
                               .witness_in_store = store.recovery_report().witness_in_store,
                               .copy_of = store.recovery_report().copy_of};
      const auto mappings = TRY(store.ListUserNamespaces());
      for (const PodMapping& one : mappings) {
        facts.host_ids.push_back({one.pod_uid, one.host_id, one.length});
      }
      const auto held = TRY(store.ListHeldPods());
      for (const QuarantinedPod& pod : held) {
        constexpr auto kHeld = doctor::PodIds::In::kHeld;
        if (pod.ranges.empty()) facts.host_ids.push_back({.pod = pod.pod_uid, .in = kHeld});
        for (const HostIdRange& range : pod.ranges) {
          facts.host_ids.push_back({pod.pod_uid, range.first, range.length, kHeld});
        }
      }
      if (trust.distrustful) {
        facts.distrusted_because = "see waybill trust";
        for (const DegradedEvent& event : trust.journal) {
          if (event.distrustful) facts.distrusted_because = event.reason;
        }
      }
      return facts;
    });
  }

  static void WriteJson(const doctor::Findings& findings, Output& out) {
    const Protection protection = doctor::ProtectionBy(findings);
    const Json protects =
        protection == Protection::kNotKnown ? Json() : Json(protection == Protection::kYes);
    Json list = Json::array();
    for (const Finding& finding : findings) {
      list.push_back({{"check", finding.check},
                      {"group", finding.group},
                      {"verdict", doctor::VerdictName(finding.verdict)},
                      {"seen", finding.seen},
                      {"next", finding.next}});
    }
    out.WriteJson({{"protects", protects}, {"findings", list}});
  }

  static void WriteText(const doctor::Findings& findings, Output& out) {
    switch (doctor::ProtectionBy(findings)) {
      case Protection::kYes:
        out.Line("this node keeps one tenant's images from another");
        break;
      case Protection::kNo:
        out.Line("this node DOES NOT keep one tenant's images from another: {}",
                 InWords(NamesOf(findings, Verdict::kFail, true)));
        break;
      case Protection::kNotKnown:
        out.Line("whether this node keeps one tenant's images from another is not known: {}",
                 InWords(NamesOf(findings, Verdict::kUnknown, true)));
        break;
    }
    std::size_t width = 0;
    for (const Finding& finding : findings) width = std::max(width, finding.check.size());
    std::string_view group;
    for (const Finding& finding : findings) {
      if (finding.group != group) out.Line("{}", finding.group);
      group = finding.group;
      out.Line("  {:<7}  {:<{}}  {}", doctor::VerdictName(finding.verdict), finding.check, width,
               finding.seen);
      if (!finding.next.empty()) out.Line("  {:<7}  {:<{}}  {}", "", "", width, finding.next);
    }
  }

  doctor::NodeOptions options_;
  std::optional<std::string> node_;
  std::optional<std::string> root_;
};

}  // namespace

Command DoctorCommand() {
  return {
      .name = "doctor",
      .task = kTaskTakeOver,
      .summary = "say whether this node keeps one tenant's images from another",
      .notes =
          R"(Says for each thing what it saw and what to do next: ok, warn, fail, or unknown where it
could not see. It needs no store, changes nothing, and runs no program of the node. As
root it sees most. docs/operations.md says more. 1: something fails. -q: what fails.)",
      .examples = R"(waybill doctor
kubectl get node node-7 -o json | waybill doctor --node -)",
      .call = New<DoctorCall>};
}

}  // namespace waybill::cli
