// Room ahead of a commit: zeros behind the last page of data.mdb, written and on the disk before a
// commit needs them.
//
// A page that makes the file longer, or fills a hole, is on the disk only when the file system's
// journal has its new size and extent, too. If the journal breaks off at that moment, Linux 6.18's
// ext4 lets fdatasync succeed without it: what was acknowledged was lost in 1 of 70 power cuts. A
// page that was written before only needs the page itself. Space that is merely allocated
// (fallocate) does not help: its extents count as unwritten.
//
// How many pages a commit takes is known only afterwards, since LMDB's free list may take some. So
// room is made while some is left, more where commits grew more, and a commit that outgrew it is
// settled: the size is made certain before anything is acknowledged.
//
// It is always allowed that a data file has more pages than are in use: a crash leaves it so, too.
// What lies behind the last page counts for nothing.

#ifndef WAYBILL_STORE_DISK_LMDB_ROOM_AHEAD_H_
#define WAYBILL_STORE_DISK_LMDB_ROOM_AHEAD_H_

#include <cstdint>
#include <filesystem>

#include "store/disk/lmdb/env.h"
#include "waybill/result.h"

namespace waybill::lmdb {

// fsync, and proof that the file's size is on the disk with it: the journal takes another change of
// the inode afterwards.
Result<void> SyncWithSize(int fd, const std::filesystem::path& path);

// Of an owner; called by its writer only. The file never gets shorter.
class RoomAhead {
 public:
  // Costs nothing before the first Make. The first commit after that must flush twice: then the
  // size that the file had is certain.
  explicit RoomAhead(const Env& env);

  // Call it before each commit, the first time before the transaction writes anything. Usually only
  // compares. Makes room for at least `pages` and some more, in steps of 1/16 of the file, 128 KiB
  // to 1 MiB, not beyond the map. Takes at most a quarter of the space that is free. If there is
  // none to be had, does without, and tries again some commits later.
  void Make(const Env::Info& info, std::uint64_t pages = 0);

  // After a commit was flushed, before it is acknowledged. Does nothing if it kept to its room.
  // An error: nobody knows whether it is on the disk.
  Result<void> Settle(const Env::Info& info);

 private:
  // Writes zeros from `begin` to `end`; returns where it ended.
  std::uint64_t Fill(std::uint64_t begin, std::uint64_t end) const;
  // Those before end_. False: some are left, so every commit must be settled.
  bool FillHoles();

  const Env& env_;
  int fd_ = -1;
  bool begun_ = false;
  bool off_ = false;          // a flush of zeros failed
  std::uint64_t end_ = 0;     // all before it is certainly part of the file
  std::uint64_t used_ = 0;    // by the last commit
  std::uint64_t growth_ = 0;  // by how much commits grew of late
  std::uint64_t wait_ = 0;    // so many commits until the next try
};

}  // namespace waybill::lmdb

#endif  // WAYBILL_STORE_DISK_LMDB_ROOM_AHEAD_H_
