// Loose files as the kubelet writes them, made durable (kubelet_folder.h).

#include <unistd.h>

#include <optional>

#include "bench/kubelet_folder.h"
#include "bench/peers/peer.h"
#include "migrations/kubelet/kubelet_records.h"

namespace waybill::bench {

namespace {

class FilesPeer final : public Peer {
 public:
  using Peer::Peer;

  std::string name() const override { return "files, fsync"; }

  void Fill(std::size_t records, const StoredBytes& /*bytes*/) override {
    Open();
    for (std::size_t i = 0; i < records; ++i) {
      pulled_->Write(ImageRefOf(i), EncodePulledRecord(RecordOf(i)), false);
    }
    sync();
    Close();
  }
  void Open() override {
    pulled_.emplace(directory() / "image_manager/pulled");
    pulling_.emplace(directory() / "image_manager/pulling");
  }
  void Close() override {
    pulled_.reset();
    pulling_.reset();
  }

  bool Read(const Question& question) override {
    return pulled_->Read(question.image_ref).has_value();
  }

  // The record and the intent's end are two steps, so a crash may leave both.
  void Put(const Pull& pull) override {
    pulling_->Write(pull.image, pull.intent_file);
    pulled_->Write(pull.image_ref, pull.record_file);
    pulling_->Remove(pull.image);
    pulling_->Sync();
  }

 private:
  std::optional<KubeletFolder> pulled_;
  std::optional<KubeletFolder> pulling_;
};

}  // namespace

std::unique_ptr<Peer> MakeFiles(const std::filesystem::path& directory) {
  return std::make_unique<FilesPeer>(directory);
}

}  // namespace waybill::bench
