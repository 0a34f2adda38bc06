#include "bench/sizing/calibrate.h"

#include <algorithm>

#include "bench/measure.h"
#include "bench/scratch.h"
#include "bench/sizing/store_side.h"
#include "waybill/image_name.h"

namespace waybill::bench {

namespace {

constexpr std::uint32_t kRecords = 1000;
constexpr std::uint32_t kMoreRecords[] = {3000, 10'000};
constexpr std::uint32_t kSecrets[] = {0, 1, 2, 4, 8, 16, 32, 64, 100};

}  // namespace

StoreSize MeasureStore(const std::filesystem::path& directory, std::uint32_t records,
                       std::uint32_t secrets) {
  const std::filesystem::path path = directory / "calibration";
  NodeState node({});
  StoreSize size{.records = static_cast<double>(records)};
  {
    StoreSide side(path, Rules::kClosed, node);
    for (std::uint32_t i = 0; i < records; ++i) {
      const ImageId image{i, i + 1};
      const std::string text = ImageText(image);
      ImagePulledRecord record;
      record.image_ref = RefText(image.ref);
      record.last_updated = node.now();
      ImagePullCredentials& entry = record.credential_mapping[std::string(*ImageName(text))];
      for (std::uint32_t secret = 0; secret < secrets; ++secret) {
        entry.kubernetes_secrets.push_back(SecretText({i * secrets + secret, secret}));
      }
      entry.node_pods_accessible = secrets == 0;
      Must(side.store().PutRecord(record));
      node.Add(image);
    }
    side.List(false);
    size.bytes = static_cast<double>(side.UsedBytes());
    std::vector<double> starts;
    for (int i = 0; i < 9; ++i) starts.push_back(side.Restart());
    size.start_seconds = Median(starts);
    std::vector<double> recoveries;
    for (int i = 0; i < 5; ++i) recoveries.push_back(side.Recover());
    size.recovery_seconds = Median(recoveries);
  }
  std::filesystem::remove_all(path);
  std::filesystem::remove(path.string() + ".witness");
  return size;
}

Line RecoveryBySize(const std::vector<StoreSize>& stores) {
  double mean_bytes = 0;
  double mean_seconds = 0;
  for (const StoreSize& store : stores) {
    mean_bytes += store.bytes / static_cast<double>(stores.size());
    mean_seconds += store.recovery_seconds / static_cast<double>(stores.size());
  }
  double together = 0;
  double squares = 0;
  for (const StoreSize& store : stores) {
    together += (store.bytes - mean_bytes) * (store.recovery_seconds - mean_seconds);
    squares += (store.bytes - mean_bytes) * (store.bytes - mean_bytes);
  }
  const double slope = squares == 0 ? 0 : together / squares;
  return {std::max(0.0, mean_seconds - slope * mean_bytes), slope};
}

Calibration Calibrate(const std::filesystem::path& directory) {
  Calibration found;
  found.empty_bytes = MeasureStore(directory, 0, 0).bytes;
  for (const std::uint32_t secrets : kSecrets) {
    const StoreSize size = MeasureStore(directory, kRecords, secrets);
    found.record_sizes.push_back(
        {static_cast<double>(secrets), (size.bytes - found.empty_bytes) / kRecords});
    if (secrets == 1) found.openings.push_back(size);
  }
  for (const std::uint32_t records : kMoreRecords) {
    found.openings.push_back(MeasureStore(directory, records, 1));
  }
  const StoreSize& few = found.openings.front();
  const StoreSize& many = found.openings.back();
  found.start_seconds_per_byte =
      (many.start_seconds - few.start_seconds) / (many.bytes - few.bytes);
  found.recovery = RecoveryBySize(found.openings);
  return found;
}

}  // namespace waybill::bench
