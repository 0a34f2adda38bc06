// What is done to a whole store that is not in use (store/maintenance.h).

#include "store/maintenance.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>

#include "migrations/steps/migrate.h"
#include "store/base/caught.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/calls/streaming_store.h"
#include "store/disk/uuid.h"
#include "store/opening/backup.h"
#include "store/opening/open_store.h"
#include "store/opening/product.h"
#include "store/opening/rebuild_and_restore.h"
#include "waybill/values.h"

namespace waybill {

using internal::Guarded;

Timestamp SystemClock() {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return {now.tv_sec, static_cast<std::int32_t>(now.tv_nsec)};
}

BootTime SystemBootClock() {
  // Read once: it does not change while this process lives.
  static const std::array<std::uint8_t, 16> boot_id = [] {
    std::array<std::uint8_t, 16> id{};
    std::ifstream file("/proc/sys/kernel/random/boot_id");
    std::string text;
    if (!std::getline(file, text) || !internal::DecodeUuid(text, id)) id = {};
    return id;
  }();
  // A library that shifts a process's clocks (libfaketime) would add years to what the node ran.
  static const bool is_shifted = [] {
    struct timespec told {};
    struct timespec kernels {};
    clock_gettime(CLOCK_BOOTTIME, &told);
    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &kernels);
    return kernels.tv_sec - told.tv_sec > 1 || told.tv_sec > kernels.tv_sec;
  }();
  struct timespec now {};
  if (is_shifted) {
    syscall(SYS_clock_gettime, CLOCK_BOOTTIME, &now);
  } else {
    clock_gettime(CLOCK_BOOTTIME, &now);
  }
  return {boot_id, std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec};
}

Result<MigrationReport> MigrateStore(const MigrateOptions& options) {
  return Guarded([&]() -> Result<MigrationReport> {
    TRY(internal::CheckVersion(options.to));
    // A dry run writes nothing, so it does not settle with the witness either.
    NodeStoreOptions open{.directory = options.directory,
                          .create_if_missing = false,
                          .witness = Witness::Remembered()};
    open.clock = options.clock;
    open.boot_clock = options.boot_clock;
    open.map_bytes = options.map_bytes;
    OpeningReport ignored;
    auto store = TRY(internal::OpenAsOwner(
        open, options.dry_run ? internal::OnDamage::kOnlyLook : internal::OnDamage::kRefuse,
        {&internal::NodeProduct(), &internal::StreamingProduct()}, ignored));
    auto report = internal::MigrateStore(store, options);
    if (!report) return report;
    if (store.witness && !options.dry_run) TRY(store.witness->Sync());
    return report;
  });
}

Result<std::vector<Backup>> BackupsOf(const std::filesystem::path& directory) {
  return Guarded([&] { return internal::FindBackups(directory); });
}

Result<RestoreReport> RestoreStore(const RestoreOptions& options) {
  return Guarded([&] {
    return internal::RestoreBackup(options,
                                   {&internal::NodeProduct(), &internal::StreamingProduct()});
  });
}

}  // namespace waybill
