// What an inspection says of a database file.

#ifndef WAYBILL_TESTS_SUPPORT_INSPECT_PATH_H_
#define WAYBILL_TESTS_SUPPORT_INSPECT_PATH_H_

#include <fcntl.h>

#include <filesystem>
#include <string>

#include "store/base/files.h"
#include "store/recovery/inspect.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

inline internal::Inspection InspectPath(const std::filesystem::path& path) {
  return Must(internal::InspectFile(Must(internal::OpenFile(path, O_RDONLY))));
}

inline std::string FirstFinding(const internal::Inspection& inspection) {
  return inspection.findings.empty() ? "" : inspection.findings.front();
}

// `path` with one bit flipped so that the only finding is `finding`. Throws where no bit does that.
inline std::string FlipUntil(const std::filesystem::path& path, const std::string& finding) {
  const TempDir dir;
  const std::string sound = ReadFile(path);
  for (std::size_t at = 0; at < sound.size(); ++at) {
    std::string bytes = sound;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    WriteFile(dir / "data.mdb", bytes);
    const auto findings = InspectPath(dir / "data.mdb").findings;
    if (findings.size() == 1 && findings[0] == finding) return bytes;
  }
  throw std::runtime_error("no flip leads to: " + finding);
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_INSPECT_PATH_H_
