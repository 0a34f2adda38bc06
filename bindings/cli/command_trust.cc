// waybill trust: shows whether the store presumes images without a record preloaded, since when and
// why, and records an operator's confirmation that it may do so again.

#include "bindings/cli/command.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

class TrustCommand final : public Command {
 public:
  std::string name() const override { return "trust"; }
  std::string summary() const override { return "show distrust and its reasons, or clear it"; }
  std::string notes() const override {
    return R"(A store that lost records is distrustful: images without a record must be pulled, with
credentials, before a pod may use them. By clearing that you state that no image
without a record on the node is private. The reason is stored. 1 if the store is
distrustful.)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Switch("--clear", &clear_, "presume images without a record preloaded again");
    flags.Value("--reason", &reason_, "TEXT", "why that is safe; needed with --clear");
  }

  Result<ExitCode> Run(Output& out) override {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    if (clear_ != reason_.has_value()) {
      return BadFlag("--clear", "--clear and --reason belong together",
                     "state why images without a record are safe to use");
    }
    auto trust = WithStore(clear_ ? OwnStore(store_) : ObserveStore(store_),
                           [&](NodeStore& store) -> Result<TrustState> {
                             if (clear_) {
                               auto cleared = store.ClearDistrust(*reason_);
                               if (!cleared) return cleared.error();
                             }
                             return store.GetTrust();
                           });
    if (!trust) return trust.error();
    Write(*trust, out);
    return trust->distrustful ? ExitCode::kNo : ExitCode::kYes;
  }

 private:
  void Write(const TrustState& trust, Output& out) const {
    if (out.json()) {
      Json journal = Json::array();
      for (const TrustEvent& event : trust.journal) journal.push_back(JsonOf(event));
      out.WriteJson({{"distrustful", trust.distrustful}, {"journal", journal}});
      return;
    }
    if (trust.distrustful) {
      out.Line("distrustful: images without a record must be pulled before a pod may use them");
      out.Line("to clear: {}", ClearDistrustCommand(store_.store));
    } else {
      out.Line("trusted: images without a record are presumed preloaded");
    }
    if (trust.journal.empty()) return;
    std::vector<std::vector<std::string>> rows;
    for (const TrustEvent& event : trust.journal) {
      rows.push_back({out.TimeText(event.at), std::string(TrustActionName(event.action)),
                      std::string(TrustKindName(event.kind)),
                      event.distrustful ? "distrustful" : "trusted", event.reason});
    }
    out.WriteTable({"AT", "ACTION", "KIND", "STATE", "REASON"}, rows);
  }

  StoreFlags store_;
  bool clear_ = false;
  std::optional<std::string> reason_;
};

}  // namespace

std::unique_ptr<Command> MakeTrustCommand() { return std::make_unique<TrustCommand>(); }

}  // namespace waybill::cli
