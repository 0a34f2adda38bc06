// waybill top: which images and namespaces must be verified again most often.

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/owner_wait.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"
#include "waybill/owner.h"

namespace waybill::cli {
namespace {

std::vector<std::vector<std::string>> Rows(const std::vector<Reverified>& all, std::size_t most) {
  std::vector<std::vector<std::string>> rows;
  for (const Reverified& one : all) {
    if (rows.size() == most) break;
    rows.push_back({std::to_string(one.count), one.over == 0 ? "-" : std::to_string(one.over),
                    one.name.empty() ? "(not known)" : one.name});
  }
  return rows;
}

class TopCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Value("--limit", &limit_, "N", "how many of each the text has; 10",
                Number{1, kMaxReverified});
  }

  Result<ExitCode> Run(Output& out) override {
    auto owner =
        WhileBusy(store_.wait, [&] { return OwnerClient::Connect({.directory = store_.store}); });
    if (!owner) return OfNobody(owner.error());
    const auto report = TRY((*owner)->TopReverifications());
    out.WriteJson(JsonOf(report));
    out.Line("pulls of images on the node: {} since {}", report.counted,
             out.TimeText(report.since));
    if (report.missed > 0) out.Line("not looked at: {}", report.missed);
    if (report.counted == 0) return ExitCode::kYes;
    out.WriteTable({"PULLS", "AT MOST OF OTHERS", "IMAGE"}, Rows(report.images, limit_));
    out.WriteTable({"PULLS", "AT MOST OF OTHERS", "NAMESPACE"}, Rows(report.namespaces, limit_));
    return ExitCode::kYes;
  }

 private:
  static Error OfNobody(Error error) {
    if (error.code != ErrorCode::kNotFound) return error;
    error.hint =
        "it is counted in the memory of the process that decides, a kubelet with waybill "
        "inside: ask on its node, while it runs and serves";
    error.hint_code = Hint::kNone;
    return error;
  }

  std::uint64_t limit_ = 10;
};

}  // namespace

Command TopCommand() {
  return {
      .name = "top",
      .task = kTaskLook,
      .summary = "say which images and namespaces must be verified again most often",
      .notes =
          R"(Of decisions that an image on the node must be pulled, since the process that decides opened
the store; it is asked through its socket, and keeps 64 images and 64 namespaces in memory:
a name that is new takes the place of the rarest, and the second column says how much of its
count may be that one's. Of a pod a decision sees the credentials alone: the namespace is that
of its pull Secrets or its service account, and not known where it has none, or the answer
needed none. A guard makes no decisions.)",
      .examples = R"(waybill top
waybill top -o json)",
      .call = New<TopCall>};
}

}  // namespace waybill::cli
