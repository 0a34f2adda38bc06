// Whether a kubelet's files may be believed: whether nobody but root and the user of this process,
// who is the kubelet's, can have written them.

#ifndef WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_PLACES_H_
#define WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_PLACES_H_

#include <sys/stat.h>

#include <cstddef>
#include <filesystem>
#include <string>

#include "waybill/result.h"

namespace waybill::internal {

// Why somebody else may have written the file: it has several links, another owner, or modes by
// which others may write it. Empty: nobody can have.
std::string WhyPlanted(const struct stat& file);

// What is in a file, why somebody else may have written that, and when it was written. Never waits
// for a pipe. Errors: those of ReadWholeFile.
struct KubeletBytes {
  std::string content;
  std::string planted;
  timespec changed;
};
Result<KubeletBytes> ReadKubeletBytes(const std::filesystem::path& path, std::size_t max_bytes);

// A folder of a kubelet's directory. A symlink is followed, as a kubelet does.
struct KubeletPlace {
  std::filesystem::path path;  // of the folder itself; empty: there is none that may be used
  std::filesystem::path link;  // the symlink that leads there; empty: none does
  // Why others decide what a kubelet finds there. Nothing there tells anything then, and nothing
  // that is written there holds. Empty: they don't.
  std::string unsafe;
  // That others may write in the folder; nothing new in it counts then. Empty: they may not.
  std::string wide;
};
// kIo: it can't be looked at.
Result<KubeletPlace> FindPlace(const std::filesystem::path& named);

}  // namespace waybill::internal

#endif  // WAYBILL_MIGRATIONS_KUBELET_FILES_KUBELET_PLACES_H_
