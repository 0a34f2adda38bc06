#include "store/opening/verify.h"

#include <fcntl.h>

#include <utility>

#include "store/base/files.h"
#include "store/base/try.h"
#include "store/opening/inspect.h"

namespace waybill::internal {

namespace {

constexpr int kVerifyTries = 5;

}  // namespace

Result<VerifyReport> VerifyStore(const std::filesystem::path& directory, Committer* committer,
                                 FunctionRef<std::uint64_t()> sequence, const Progress& progress) {
  const std::filesystem::path path = directory / "data.mdb";
  Inspection inspection;
  const auto inspect = [&]() -> Result<void> {
    auto file = TRY(OpenFile(path, O_RDONLY));
    inspection = TRY(InspectFile(file, FileIs::kStore, OnReadError::kFail, progress));
    return {};
  };
  if (committer != nullptr) {
    if (auto r = committer->WithoutCommits(inspect); !r) return r.error();
  } else {
    // A commit while the file is read looks like damage: believe it only if nothing was
    // committed.
    for (int i = 0;; ++i) {
      const std::uint64_t before = sequence();
      TRY(inspect());
      if (inspection.sound || (!inspection.moved && before == sequence())) break;
      if (i == kVerifyTries) {
        return Error{ErrorCode::kIo,
                     "the owner of " + directory.string() + " writes too often to verify it",
                     "try again later"};
      }
    }
  }
  return VerifyReport{inspection.sound, inspection.pages, inspection.values,
                      std::move(inspection.findings)};
}

}  // namespace waybill::internal
