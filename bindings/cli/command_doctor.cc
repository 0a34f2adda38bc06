// waybill doctor: whether this node keeps one tenant's images from another. Needs no store, and
// changes nothing.

#include <algorithm>
#include <map>
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

// The worst that each check found.
std::map<std::string, Verdict> WorstOf(const doctor::Findings& findings) {
  std::map<std::string, Verdict> worst;
  for (const Finding& finding : findings) {
    Verdict& verdict = worst[finding.check];
    verdict = std::max(verdict, finding.verdict);
  }
  return worst;
}

// "16 checks: 2 fail, 1 unknown, 13 ok".
std::string VerdictsOf(const doctor::Findings& findings) {
  const auto worst = WorstOf(findings);
  std::string counts;
  for (const Verdict verdict : {Verdict::kFail, Verdict::kWarn, Verdict::kUnknown, Verdict::kOk}) {
    const auto count =
        std::ranges::count_if(worst, [&](const auto& check) { return check.second == verdict; });
    if (count == 0) continue;
    counts +=
        fmt::format("{}{} {}", counts.empty() ? "" : ", ", count, doctor::VerdictName(verdict));
  }
  return fmt::format("{} checks: {}", worst.size(), counts);
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
    for (const auto& [name, verdict] : WorstOf(findings)) {
      if (verdict == Verdict::kFail) out.WriteName(name);
    }
    switch (doctor::ProtectionBy(findings)) {
      case Protection::kYes:
        return ExitCode::kYes;
      case Protection::kNotKnown:
        return ExitCode::kNotKnown;
      default:
        return ExitCode::kNo;
    }
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
        for (const HostIdRange& range : pod.ranges) {
          facts.host_ids.push_back({pod.pod_uid, range.first, range.length});
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
                      {"verdict", doctor::VerdictName(finding.verdict)},
                      {"seen", finding.seen},
                      {"next", finding.next}});
    }
    out.WriteJson({{"protects", protects}, {"findings", list}});
  }

  static void WriteText(const doctor::Findings& findings, Output& out) {
    out.Line("{}", doctor::SentenceOf(doctor::ProtectionBy(findings)));
    out.Line("{}", VerdictsOf(findings));
    std::size_t width = 0;
    for (const Finding& finding : findings) width = std::max(width, finding.check.size());
    for (const Finding& finding : findings) {
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
          R"(Says for each of 16 checks what it saw and what to do next: ok, warn, fail, or unknown
where it could not see. It needs no store, changes nothing, and runs no program of the
node. As root it sees most. docs/doctor.md explains each check. 1: it does not, or only
until the kubelet loses a record; 4: not known. -q: what fails.)",
      .examples = R"(waybill doctor
kubectl get node node-7 -o json | waybill doctor --node -)",
      .call = New<DoctorCall>};
}

}  // namespace waybill::cli
