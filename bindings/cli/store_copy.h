// Copies of stores in TMPDIR: what is read or tried there leaves the store itself as it is.

#ifndef WAYBILL_BINDINGS_CLI_STORE_COPY_H_
#define WAYBILL_BINDINGS_CLI_STORE_COPY_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "store/base/options.h"
#include "store/node/facade/node_store.h"
#include "waybill/result.h"
#include "waybill/values.h"

namespace waybill::cli {

// A directory in TMPDIR that goes with the object, and in it the copy.
class StoreCopy {
 public:
  // For a copy of `real`, which is not made yet. `name`: how the directory's name begins. kIo.
  static Result<StoreCopy> Make(std::string_view name, std::filesystem::path real);
  // What `start --dry-run` opens: data.mdb, copied while no other process owns the store, or the
  // traces of a store that was lost. Opening it with NodeStoreOptions::leaves_witness reads the
  // witness and the kubelet directory, and changes neither. kOwned, kUnsafePath, kIo: as opening
  // would say. kInterrupted: `progress` returned false.
  static Result<StoreCopy> ToStart(const std::filesystem::path& real, const Progress& progress);
  ~StoreCopy();
  StoreCopy(StoreCopy&& other) noexcept
      : scratch_(std::exchange(other.scratch_, {})),
        directory_(std::move(other.directory_)),
        real_(std::move(other.real_)) {}
  StoreCopy& operator=(StoreCopy&&) = delete;

  const std::filesystem::path& directory() const { return directory_; }
  // With the store's directory in place of the copy's.
  Error InTruth(Error error) const;
  void PutInTruth(OpeningReport& report) const;

 private:
  StoreCopy(const std::filesystem::path& scratch, std::filesystem::path real)
      : scratch_(scratch), directory_(scratch / "store"), real_(std::move(real)) {}
  std::string InTruth(std::string text) const;

  std::filesystem::path scratch_;  // empty: moved from
  std::filesystem::path directory_;
  std::filesystem::path real_;
};

// Reads a store without leaving a trace in it. If no process owns it, a copy is read, and not a
// byte of the store's directory changes, its lock file included; nor is an owner kept from opening
// it meanwhile. Beside a live owner the store itself is observed, which takes a slot in lock.mdb
// and changes nothing else.
class QuietStore {
 public:
  // Whether the store in `directory` can be read only as a copy: nobody can take a slot in its
  // lock.mdb, since the file can't be written, or since it is not there: then the directory is a
  // copy itself, and stays as it is.
  static bool IsNeeded(const std::filesystem::path& directory);
  // kNotFound, kUnsafePath, kIo, kDiskFull; kOwned: a process writes to it, and no slot can be
  // taken beside it; kInterrupted: `progress` returned false.
  static Result<QuietStore> Of(const std::filesystem::path& directory, const Progress& progress);
  // What opening with `options` makes of a kubelet directory: a store in TMPDIR, without a witness.
  // Its directory, witness and clock are set here. Errors: NodeStore::Open.
  static Result<QuietStore> OfKubelet(NodeStoreOptions options);

  // `options.directory` is set here. Errors: NodeStore::Observe, about the real directory.
  Result<std::unique_ptr<NodeStore>> ObserveAsItIs(ObserveOptions options) const;

  // The same, but a copy of an older schema is migrated first.
  Result<std::unique_ptr<NodeStore>> Observe(ObserveOptions options);

  // `error` about the real directory, with advice that fits it.
  Error InTruth(Error error) const;

  // Of which schema version the store is, if its copy was migrated.
  std::uint32_t migrated_from() const { return migrated_from_; }
  // What to open, to read.
  const std::filesystem::path& readable() const { return copy_ ? copy_->directory() : real_; }

 private:
  explicit QuietStore(std::filesystem::path real) : real_(std::move(real)) {}
  // Opens the copy as its owner, which takes it to the newest schema.
  Result<void> Migrate(Mode rules);

  std::filesystem::path real_;
  std::optional<StoreCopy> copy_;
  std::uint32_t migrated_from_ = 0;  // 0: it was not
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_STORE_COPY_H_
