// waybill itself: whole decisions, whole records, digests and a witness.

#include <optional>

#include "bench/peers/peer.h"
#include "bench/scratch.h"

namespace waybill::bench {

namespace {

class WaybillPeer final : public Peer {
 public:
  using Peer::Peer;

  std::string name() const override { return "waybill"; }

  void Fill(std::size_t records, const StoredBytes& /*bytes*/) override {
    store_.emplace(directory());
    store_->Fill(records);
    store_->Close();
  }
  void Open() override {
    if (!store_) store_.emplace(directory());
    store_->Open();
    const OpeningReport& report = (*store_)->recovery_report();
    if (report.distrustful || !report.findings.empty()) {
      throw std::runtime_error("waybill: the store did not open clean; the figures are void");
    }
  }
  void Close() override { store_->Close(); }

  bool Read(const Question& question) override {
    FixedCredentials credentials({.secrets = {&question.secret, 1}, .service_account = {}});
    const Decision decision = (*store_)->MustAttemptPull(
        {.image = question.image, .image_ref = question.image_ref}, credentials);
    return !decision.pull && decision.reason == Reason::kSecretHashMatches;
  }

  void Put(const Pull& pull) override {
    const PullId id = Must((*store_)->RecordPullIntent({.image = pull.image}));
    Must((*store_)->RecordImagePulled({.image = pull.image, .image_ref = pull.image_ref},
                                      pull.credentials, {.pull = id}));
  }

 private:
  std::optional<ScratchStore> store_;
};

}  // namespace

std::unique_ptr<Peer> MakeWaybill(const std::filesystem::path& directory) {
  return std::make_unique<WaybillPeer>(directory);
}

}  // namespace waybill::bench
