// A kubelet without waybill: what one of today decides, and the files that it keeps.

#ifndef WAYBILL_TESTS_SIMULATION_STOCK_KUBELET_H_
#define WAYBILL_TESTS_SIMULATION_STOCK_KUBELET_H_

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/simulation/truth.h"
#include "waybill/values.h"

namespace waybill::simulation {

class StockKubelet {
 public:
  enum class Match { kNone, kAnyway, kHash, kCoordinates };
  struct Answer {
    bool pull = true;
    Match by = Match::kNone;
  };

  // Its directory, with image_manager/ in it. Empty: it keeps no files.
  explicit StockKubelet(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Another process: it reads the files, and replays intents of what is listed.
  void Start(const std::vector<ListedImage>& images, Timestamp now);
  // Whether a pod must prove its credentials, by the default policy. A match is written back.
  Answer Decide(std::string_view image, const std::string& ref, const Proof& proof, Timestamp now);
  void Begin(const std::string& image);
  void Succeed(const std::string& image, const std::string& ref,
               const ImagePullCredentials& credentials, Timestamp now);
  // The pull failed, or was cancelled.
  void Fail(const std::string& image);
  // Garbage was collected: of the images that it did not keep, those not written since have gone.
  void Prune(const std::set<std::string>& kept, Timestamp until);
  // From now on it runs alone. Whether it has left a file since by which that shows.
  void RunAlone(Timestamp now);
  bool LeftASign() const;
  // What it has in memory of the ref; nullptr: nothing.
  const ImagePulledRecord* Find(const std::string& ref) const;
  // Whether it takes an image for preloaded.
  bool Presumes(const ListedImage& image) const;

 private:
  void Write(const ImagePulledRecord& record);
  void EndOne(const std::string& image);

  const std::filesystem::path directory_;
  std::map<std::string, ImagePulledRecord> records_;  // by ref
  std::set<std::string> intents_;
  std::map<std::string, int> in_flight_;
  std::optional<Timestamp> alone_since_;
  std::set<std::string> intents_then_;
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_STOCK_KUBELET_H_
