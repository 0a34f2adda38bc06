#include "guard/kept_files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "store/base/files.h"
#include "store/base/try.h"

namespace waybill::guard {

namespace {

// Names of one record's file that differ in what they say.
constexpr int kMaxOfOneName = 64;

// The names in `folder`; none if it does not exist.
Result<std::vector<std::string>> NamesIn(const std::filesystem::path& folder) {
  auto there = TRY(internal::Exists(folder));
  return there ? internal::ListDirectory(folder) : std::vector<std::string>();
}

}  // namespace

KeptFiles::KeptFiles(std::filesystem::path own_folder)
    : own_(std::move(own_folder)), kept_(own_ / "kept"), before_(own_ / "kept-before") {}

Result<void> KeptFiles::Begin() {
  if (begun_) return {};
  auto kept = TRY(NamesIn(kept_));
  auto before = TRY(NamesIn(before_));
  for (const std::string& name : before) {
    TRY(internal::RemoveFile(before_ / name));
  }
  // A crash from here on costs nothing that was kept by the last guard.
  if (!kept.empty()) {
    if (::rename(kept_.c_str(), before_.c_str()) != 0) {
      return internal::SystemError(errno, "rename " + kept_.string() + " to", before_);
    }
    TRY(internal::SyncDirectory(own_));
  }
  for (const std::string& name : kept) {
    internal::FileLook look;
    if (internal::LookAt((before_ / name).c_str(), look)) {
      bytes_ += static_cast<std::size_t>(look.bytes);
    }
  }
  files_ = kept.size();
  begun_ = true;
  return {};
}

Result<std::optional<std::filesystem::path>> KeptFiles::Keep(const std::string& name,
                                                             std::string_view content) {
  TRY(Begin());
  if (files_ >= kMaxKeptFiles || bytes_ + content.size() > kMaxKeptBytes) {
    return std::optional<std::filesystem::path>();
  }
  TRY(internal::MakePrivateDirectory(kept_));
  const std::string first = "pulled-" + name;
  for (int number = 1; number <= kMaxOfOneName; ++number) {
    const std::filesystem::path path =
        kept_ / (number == 1 ? first : first + "-" + std::to_string(number));
    auto there = TRY(internal::Exists(path));
    if (there) {
      auto same = internal::ReadWholeFile(path, content.size());
      if (same && *same == content) return std::optional(path);
      continue;
    }
    TRY(internal::WriteFileDurably(path, content));
    ++files_;
    bytes_ += content.size();
    return std::optional(path);
  }
  return std::optional<std::filesystem::path>();
}

}  // namespace waybill::guard
