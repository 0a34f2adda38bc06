#include "bindings/cli/quiet_store.h"

#include <errno.h>
#include <fcntl.h>

#include <system_error>
#include <utility>

#include "bindings/cli/store_access.h"
#include "store/recovery/owner_lock.h"
#include "store/recovery/store_files.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

}  // namespace

Result<QuietStore> QuietStore::Of(const fs::path& directory, const Progress& progress) {
  if (auto safe = internal::CheckPrivateDirectory(directory); !safe) {
    return WithStartHint(safe.error());
  }
  if (auto safe = internal::CheckStoreFiles(directory); !safe) return safe.error();
  QuietStore store(directory);
  const fs::path path = directory / "data.mdb";
  auto database = internal::OpenFile(path, O_RDONLY);
  if (!database) return WithStartHint(database.error());
  if (const auto unowned = internal::LockOutOwners(*database, path); !unowned) {
    if (unowned.error().code == ErrorCode::kOwned) return store;
    return unowned.error();
  }
  auto scratch = ScratchDirectory::Make("waybill-copy");
  if (!scratch) return scratch.error();
  store.directory_ = scratch->path() / "store";
  store.copy_.emplace(*std::move(scratch));
  if (auto made = internal::MakePrivateDirectory(store.directory_); !made) return made.error();
  std::error_code error;
  const fs::path mark = directory / "commit.mark";
  if (fs::exists(mark, error)) fs::copy_file(mark, store.directory_ / "commit.mark", error);
  if (error) return CopyFailed(mark, error.message());
  auto copied = CopyOpenFile(*database, path, store.directory_ / "data.mdb", progress);
  if (!copied) return copied.error();
  return store;
}

Result<QuietStore> QuietStore::OfKubelet(OpenOptions options) {
  auto scratch = ScratchDirectory::Make("waybill-copy");
  if (!scratch) return scratch.error();
  QuietStore store(options.kubelet_directory);
  store.directory_ = scratch->path() / "store";
  store.copy_.emplace(*std::move(scratch));
  options.directory = store.directory_;
  options.witness = Witness::None();
  auto opened = WithStore(NodeStore::Open(std::move(options)),
                          [](const NodeStore&) -> Result<bool> { return true; });
  if (!opened) return store.InTruth(opened.error());
  return store;
}

Result<std::unique_ptr<NodeStore>> QuietStore::Observe(ObserveOptions options) {
  options.directory = readable();
  auto observed = NodeStore::Observe(options);
  if (!observed && observed.error().code == ErrorCode::kOlderSchema && copy_) {
    auto migrated = Migrate(options.rules, Witness::Remembered());
    if (!migrated) return InTruth(migrated.error());
    observed = NodeStore::Observe(std::move(options));
  }
  if (!observed) return InTruth(WithStartHint(observed.error()));
  return observed;
}

Result<std::unique_ptr<NodeStore>> QuietStore::ObserveAnyAge(ObserveOptions options) {
  if (copy_) {
    auto migrated = Migrate(options.rules, Witness::None());
    if (!migrated) return InTruth(migrated.error());
  }
  return Observe(std::move(options));
}

Result<void> QuietStore::Migrate(Rules rules, const Witness& witness) {
  auto migrated =
      WithStore(NodeStore::Open({.directory = directory_,
                                 .create_if_missing = false,
                                 .witness = witness,
                                 .leaves_witness = true,
                                 .rules = rules,
                                 .continues_pulls = true}),
                [&](const NodeStore& opened) -> Result<std::uint32_t> {
                  const RecoveryReport& report = opened.recovery_report();
                  if (report.set_aside && witness.kind() == Witness::Kind::kNone) {
                    return Error{ErrorCode::kDamaged,
                                 directory_.string() + " is damaged; nothing was changed",
                                 {},
                                 Hint::kRecover};
                  }
                  return report.migration ? report.migration->from : 0;
                });
  if (!migrated) return migrated.error();
  migrated_from_ = *migrated;
  return {};
}

Error QuietStore::InTruth(Error error) const {
  if (!copy_) return error;
  error.message = WithPathReplaced(std::move(error.message), directory_, real_);
  error.hint = WithPathReplaced(std::move(error.hint), directory_, real_);
  return error;
}

}  // namespace waybill::cli
