// For the command (../../bindings/cli/) alone. Where the public API is too little for it:
//
//   it reads a store, but no backup without restoring it                       ReadBackup,
//   what_counts.h it opens a store; the command also copies one that must not change owner_lock.h,
//                                                                              store_files.h
//   it reads a Secret, and what a runtime says of a guest platform, as         auth_document.h,
//   documents of their own; the command finds them inside others               guest_platform.h
//   it compares UIDs, and digests of what it stores; the command does so with  hex.h, sha256.h,
//   those of a list that a cluster published, and of files that it installs    uuid.h

#ifndef WAYBILL_STORE_MAINTENANCE_FOR_THE_COMMAND_H_
#define WAYBILL_STORE_MAINTENANCE_FOR_THE_COMMAND_H_

#include <filesystem>
#include <vector>

#include "migrations/runtime/auth_document.h"
#include "migrations/runtime/guest_platform.h"
#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/engine/database/uuid.h"
#include "store/engine/recovery/owner_lock.h"
#include "store/engine/recovery/store_files.h"
#include "store/node/records/what_counts.h"
#include "waybill/evidence.h"
#include "waybill/revocation.h"
#include "waybill/types.h"

namespace waybill::internal {

// What a backup holds about images: all that it stores, also what was forgotten or is too old.
struct BackupContent {
  std::vector<ImagePulledRecord> records = {};
  std::vector<LedgerEntry> ledger = {};
  std::vector<OpenPull> pulls = {};
  std::vector<QuarantineEntry> quarantine = {};
  std::vector<Revocation> revocations = {};
  bool distrustful = false;
  AgeLimits ages = {};
  Clocks clocks = {};  // of its newest commit
};

// Reads the file of a backup, and changes nothing. kNotFound, kUnsafePath, kIo, kDamaged,
// kNewerSchema.
Result<BackupContent> ReadBackup(const std::filesystem::path& path);

}  // namespace waybill::internal

#endif  // WAYBILL_STORE_MAINTENANCE_FOR_THE_COMMAND_H_
