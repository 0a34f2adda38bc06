// Records what a run does to the files below one directory, in the order in which it happened, with
// the points at which something was known to be on the disk. The calls are caught by functions of
// the same names in this program (recorder.cc), which liblmdb and the library end up in.
//
// And plays the log back as a power cut would leave it: what was synced is there; of the rest each
// write is there, gone, or there in some of its sectors, and each directory's changes are there up
// to some point. Some lose the end of the journal, too: a file that its last sync made longer has
// its earlier length (store/disk/lmdb/room_ahead.h says why).

#ifndef WAYBILL_TESTS_CRASH_RECORDER_H_
#define WAYBILL_TESTS_CRASH_RECORDER_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/support/draw.h"

namespace waybill::testing {

struct DiskEvent {
  enum class Kind : std::uint8_t {
    kWrite,       // file, offset, bytes
    kTruncate,    // file, offset: the new length
    kSynced,      // file: all of it so far
    kSyncFailed,  // file: what was not synced before never will be, though the kernel shows it
    kWritten,     // a write with O_DSYNC returned; index: of that write
    kCreate,      // directory, path, file
    kMakeDirectory,
    kRename,  // path to other_path; directory: of other_path
    kLink,    // file also under other_path
    kRemove,  // path, file or directory
    kDirectorySynced,
    kMark,  // the run's own; index: its meaning
  };
  Kind kind = Kind::kMark;
  std::size_t file = 0;
  std::uint64_t offset = 0;
  std::string bytes = {};
  std::string directory = {};
  std::string path = {};
  std::string other_path = {};
  std::size_t index = 0;
};

// Files and directories below the root that are there before a run is recorded, "/" in front.
struct KnownFiles {
  std::map<std::string, std::size_t> files = {};  // and their numbers
  std::set<std::string> directories = {};
  std::size_t next_file = 1;
};

// One at a time. `root` exists, and is not itself part of what can be lost.
class Recorder {
 public:
  explicit Recorder(const std::filesystem::path& root, const KnownFiles& known = {});
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // Something that the run knows, at this point of the log. From any thread.
  static void Mark(std::size_t meaning);
  // Stops recording.
  std::vector<DiskEvent> Take();
};

// A log that ends with what is in a directory now, all of it synced.
std::vector<DiskEvent> LogOf(const std::filesystem::path& directory);
// Appends what was recorded after `log`.
void Append(std::vector<DiskEvent>& log, std::vector<DiskEvent> later);
// What is there at the end of the log.
KnownFiles FilesAfter(const std::vector<DiskEvent>& log);

// Ends this process, as SIGKILL does, before the `calls`th call from now that changes a file or
// syncs one. 0: never.
void KillBeforeCall(std::uint64_t calls);

// What becomes of one call that changes or syncs a file, or of all from one on. With `below`: of
// any call at all on what lies there, looking and reading too.
struct Fault {
  enum class Kind : std::uint8_t {
    kNone,
    kFail,            // it does nothing and fails with `error_number`
    kShort,           // a write does half of it, and says so; other calls fail
    kShortBySectors,  // so, in whole sectors; a write within one fails
    kFailDone,        // a write is done all the same, and fails, as one with O_DSYNC may
    kGarble,  // a write writes one bit otherwise, and says nothing; other calls do as they should
    kGarbleSectors,  // so, but one bit of each sector: wherever the bytes in use are, some are hit
  };
  Kind kind = Kind::kNone;
  std::uint64_t call = 0;  // 1: the next
  int error_number = 0;
  bool lasting = false;  // so is each call after it
  std::string below = {};
};
void InjectFault(const Fault& fault);
// FaultHappened and FaultedCall still answer.
void StopFaults();
// Whether there was such a call.
bool FaultHappened();
// From now on, reads of that file that cover one of these offsets fail. Empty: no read does.
void SpoilSectors(ino_t file, std::vector<off_t> offsets);
// Called before each pread of this process, with its bytes; empty: nothing.
extern std::function<void(std::size_t)> before_read;
// Called before each sync of this process, in the thread that syncs, with the path: the error that
// the sync fails with, 0: it goes on. Empty: they all go on.
void SetBeforeSync(std::function<int(const std::string& path)> before_sync);
// Of a fault with `below`: the call that failed, "<function> <path>".
std::string FaultedCall();

// Whether fstatvfs says that nothing is free, so that files get no room ahead.
void ShowFullDisk(bool full);
// Whether renameat2 fails as on a file system that does not know its flags.
void RefuseExchange(bool refuse);

// The index of the first such mark.
std::size_t PlaceOfMark(const std::vector<DiskEvent>& log, std::size_t meaning);

// The kernel drops from memory what a failed sync left unwritten: what is on the disk of it, some,
// none or parts, is what is seen from now on. No event's index changes.
void ForgetUnwritten(std::vector<DiskEvent>& log, Draw& draw);
// Writes into the empty directory `into` what the first `cut` events show to other processes.
void PlayKill(const std::vector<DiskEvent>& log, std::size_t cut,
              const std::filesystem::path& into);
// The same, of what is left of them when the power fails.
void PlayPowerCut(const std::vector<DiskEvent>& log, std::size_t cut, Draw& draw,
                  const std::filesystem::path& into);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CRASH_RECORDER_H_
