// A guard that stands aside: others decide what a kubelet finds (a symlink that they can change,
// a folder that is theirs), so nothing that the guard writes there protects anything, and nothing
// that is there tells anything; or it can write nothing at its start (a full disk, a read-only
// one). The kubelet starts all the same. Status and metric say that nothing
// protects it. What happens meanwhile is a gap.

#ifndef WAYBILL_GUARD_ASIDE_H_
#define WAYBILL_GUARD_ASIDE_H_

#include <filesystem>
#include <string>

#include "guard/life.h"
#include "guard/look.h"
#include "guard/session.h"
#include "waybill/result.h"

namespace waybill::guard {

// Why a guard has to stand aside; empty: nothing asks for it.
Result<std::string> WhyAside(const std::filesystem::path& kubelet_directory);
// The same; where a guard may run, also why it protects nothing.
Result<std::string> WhyNotProtected(const std::filesystem::path& kubelet_directory);

// Where such a guard has its lock and its status: nothing below image_manager is safe.
std::filesystem::path AsideFolder(const std::filesystem::path& kubelet_directory);

class Aside {
 public:
  // kOwned: another guard stands aside here. kUnsafePath, kIo, kDiskFull.
  static Result<Aside> Begin(const GuardOptions& options);

  std::filesystem::path status_path() const;
  std::string StatusJson(const std::string& why) const;

  // Whether a guard may have stood aside since this was said to be over: also where nothing can say
  // so.
  static bool MayHaveBeenHere(const std::filesystem::path& kubelet_directory);
  // If that fails, the next start sees a gap, too. kUnsafePath, kIo.
  static Result<void> IsOver(const std::filesystem::path& kubelet_directory);

 private:
  Aside(const GuardOptions& options, Session session);

  std::filesystem::path kubelet_directory_;
  std::filesystem::path store_;
  std::string version_;
  Timestamp since_;
  Session session_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_ASIDE_H_
