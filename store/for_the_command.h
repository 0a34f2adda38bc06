// For the command (../../bindings/cli/) alone. Where the public API is too little for it:
//
//   it opens a store; the command also copies one that must not change         owner_lock.h,
//                                                                              store_files.h
//   it reads a Secret as a document of its own; the command finds it in others  auth_document.h
//   it compares UIDs, and digests of what it stores; the command does so with  hex.h, sha256.h,
//   those of a list that a cluster published, and of files that it installs    uuid.h
//   it writes values as the socket does, and asks which calls only read        door.h

#ifndef WAYBILL_STORE_FOR_THE_COMMAND_H_
#define WAYBILL_STORE_FOR_THE_COMMAND_H_

#include "runtime/files/auth_document.h"
#include "store/base/hex.h"
#include "store/base/sha256.h"
#include "store/disk/uuid.h"
#include "store/door.h"
#include "store/opening/owner_lock.h"
#include "store/opening/store_files.h"

#endif  // WAYBILL_STORE_FOR_THE_COMMAND_H_
