// What `start --dry-run` opens: a copy of the store.

#ifndef WAYBILL_BINDINGS_CLI_SCRATCH_START_H_
#define WAYBILL_BINDINGS_CLI_SCRATCH_START_H_

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "bindings/cli/scratch_directory.h"
#include "waybill/options.h"
#include "waybill/report.h"
#include "waybill/result.h"

namespace waybill::cli {

class ScratchStart {
 public:
  // Copies data.mdb to a directory of its own in TMPDIR, while no other process owns the store.
  // Opening the copy reads the witness and the kubelet directory, and changes neither. kOwned,
  // kUnsafePath, kIo: as opening would say. kInterrupted: `progress` returned false. The directory
  // goes with the object.
  static Result<std::unique_ptr<ScratchStart>> Make(const OpenOptions& real,
                                                    const Progress& progress);
  ~ScratchStart() = default;
  ScratchStart(const ScratchStart&) = delete;
  ScratchStart& operator=(const ScratchStart&) = delete;

  // For opening the copy.
  const OpenOptions& options() const { return options_; }

  // With the store's directory in place of the copy's.
  Error InTruth(Error error) const;
  void PutInTruth(RecoveryReport& report) const;

 private:
  ScratchStart(ScratchDirectory directory, const OpenOptions& real);
  Result<void> Copy(const Progress& progress) const;
  std::string InTruth(std::string text) const;

  ScratchDirectory directory_;  // the copy's is in it
  std::filesystem::path real_;
  OpenOptions options_;
};

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_SCRATCH_START_H_
