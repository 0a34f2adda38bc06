#include "guard/aside.h"

#include <utility>

#include "store/base/files.h"
#include "store/base/json_value.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"

namespace waybill::guard {
namespace {

// There while a gap of a guard that stood aside is not noted in the store.
constexpr std::string_view kAsideFile = "aside";

// The first of the folders of which `says` says something.
template <typename Says>
Result<std::string> FirstOf(const std::filesystem::path& kubelet_directory, const Says& says) {
  const std::filesystem::path image_manager = kubelet_directory / "image_manager";
  for (const std::filesystem::path& folder :
       {image_manager, image_manager / internal::FolderName(KubeletFolder::kPulled),
        image_manager / internal::FolderName(KubeletFolder::kPulling)}) {
    auto place = TRY(FindFolder(folder));
    std::string why = says(place);
    // Below such a folder nothing tells more.
    if (!why.empty() || place.path.empty()) return why;
  }
  return std::string();
}

}  // namespace

Result<std::string> WhyAside(const std::filesystem::path& kubelet_directory) {
  return FirstOf(kubelet_directory,
                 [](const internal::KubeletPlace& place) { return place.unsafe; });
}

Result<std::string> WhyNotProtected(const std::filesystem::path& kubelet_directory) {
  return FirstOf(kubelet_directory, [](const internal::KubeletPlace& place) {
    return place.unsafe.empty() ? place.wide : place.unsafe;
  });
}

std::filesystem::path AsideFolder(const std::filesystem::path& kubelet_directory) {
  return kubelet_directory / kOwnFolder;
}

Aside::Aside(const GuardOptions& options, Session session)
    : kubelet_directory_(options.kubelet_directory),
      store_(options.store.directory),
      version_(options.version),
      since_(options.store.clock()),
      session_(std::move(session)) {}

Result<Aside> Aside::Begin(const GuardOptions& options) {
  const std::filesystem::path folder = AsideFolder(options.kubelet_directory);
  auto session = TRY(Session::Begin(folder));
  TRY(internal::WriteFileDurably(folder / kAsideFile, ""));
  return Aside(options, std::move(session));
}

std::filesystem::path Aside::status_path() const {
  return AsideFolder(kubelet_directory_) / kStatusFile;
}

std::string Aside::StatusJson(const std::string& why) const {
  const internal::Json json = {{"notProtected", why},
                               {"version", version_},
                               {"kubeletDirectory", kubelet_directory_.string()},
                               {"store", store_.string()},
                               {"since", FormatTimestamp(since_)}};
  return internal::TextOf(json, 2) + "\n";
}

bool Aside::MayHaveBeenHere(const std::filesystem::path& kubelet_directory) {
  const std::filesystem::path folder = AsideFolder(kubelet_directory);
  const auto there = internal::Exists(folder);
  if (there.has_value() && !*there) return false;
  if (!internal::CheckPrivateDirectory(folder)) return true;
  const auto mark = internal::Exists(folder / kAsideFile);
  return !mark.has_value() || *mark;
}

Result<void> Aside::IsOver(const std::filesystem::path& kubelet_directory) {
  const std::filesystem::path folder = AsideFolder(kubelet_directory);
  TRY(internal::CheckPrivateDirectory(folder));
  return internal::RemoveFile(folder / kAsideFile);
}

}  // namespace waybill::guard
