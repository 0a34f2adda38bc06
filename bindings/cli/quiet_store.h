// Reads a store without leaving a trace in it. If no process owns it, a copy in TMPDIR is read, and
// not a byte of the store's directory changes, its lock file included; nor is an owner kept from
// opening it meanwhile. Beside a live owner the store itself is observed, which takes a slot in
// lock.mdb and changes nothing else.

#ifndef WAYBILL_BINDINGS_CLI_QUIET_STORE_H_
#define WAYBILL_BINDINGS_CLI_QUIET_STORE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "bindings/cli/scratch_directory.h"
#include "waybill/node_store.h"

namespace waybill::cli {

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
  static Result<QuietStore> OfKubelet(OpenOptions options);

  // `options.directory` is set here. Errors: NodeStore::Observe, about the real directory.
  Result<std::unique_ptr<NodeStore>> ObserveAsItIs(ObserveOptions options) const;

  // The same, but a copy of an older schema is migrated first.
  Result<std::unique_ptr<NodeStore>> Observe(ObserveOptions options);

  // `error` about the real directory, with advice that fits it.
  Error InTruth(Error error) const;

  // Whether it is a copy, and of which schema version the store is if that was migrated.
  bool copied() const { return copy_.has_value(); }
  std::uint32_t migrated_from() const { return migrated_from_; }
  // What to open, to read.
  const std::filesystem::path& readable() const { return copy_ ? directory_ : real_; }

 private:
  explicit QuietStore(std::filesystem::path real) : real_(std::move(real)) {}
  // Opens the copy as its owner, which takes it to the newest schema.
  Result<void> Migrate(Rules rules);

  std::filesystem::path real_;
  std::optional<ScratchDirectory> copy_;
  std::filesystem::path directory_;  // of the copy
  std::uint32_t migrated_from_ = 0;  // 0: it was not
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_QUIET_STORE_H_
