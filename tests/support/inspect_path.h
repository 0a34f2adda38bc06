// What an inspection says of a database file.

#ifndef WAYBILL_TESTS_SUPPORT_INSPECT_PATH_H_
#define WAYBILL_TESTS_SUPPORT_INSPECT_PATH_H_

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "store/base/files.h"
#include "store/opening/inspect.h"
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
  WriteFile(dir / "data.mdb", sound);
  const auto file = Must(internal::OpenFile(dir / "data.mdb", O_RDWR));
  const auto write = [&](std::size_t at, char byte) {
    if (pwrite(file.get(), &byte, 1, static_cast<off_t>(at)) != 1) {
      throw std::runtime_error("can't write " + (dir / "data.mdb").string());
    }
  };
  for (std::size_t at = 0; at < sound.size(); ++at) {
    if (sound[at] == 0) continue;  // most of a file is room
    const char flipped = static_cast<char>(sound[at] ^ 4);
    write(at, flipped);
    const auto findings = Must(internal::InspectFile(file)).findings;
    if (findings.size() == 1 && findings[0] == finding) {
      std::string bytes = sound;
      bytes[at] = flipped;
      return bytes;
    }
    write(at, sound[at]);
  }
  throw std::runtime_error("no flip leads to: " + finding);
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_INSPECT_PATH_H_
