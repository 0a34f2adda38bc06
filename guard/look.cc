#include "guard/look.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "guard/record_files.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/described.h"
#include "store/base/files.h"
#include "store/base/json_value.h"
#include "store/base/try.h"
#include "store/for_the_guard.h"
#include "waybill/limits.h"

namespace waybill::guard {

using internal::RecordNameOf;

namespace {

// A change within the same tick of the file system's clock would not show.
constexpr std::int64_t kTick = 20'000'000;
constexpr int kReadings = 3;
constexpr std::string_view kBeta = "kubelet.config.k8s.io/v1beta1";

std::int64_t Nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

std::int64_t Now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return Nanoseconds(now);
}

bool IsSame(const struct stat& a, const struct stat& b) {
  return a.st_ino == b.st_ino && a.st_size == b.st_size &&
         Nanoseconds(a.st_mtim) == Nanoseconds(b.st_mtim) &&
         Nanoseconds(a.st_ctim) == Nanoseconds(b.st_ctim);
}

// What the folders show when somebody writes in them, or puts another one in their place. Empty:
// one changed just now.
std::string StampsOf(const Places& places) {
  internal::Json stamps = internal::Json::array();
  std::vector<std::filesystem::path> all = {places.pulled, places.pulling};
  all.insert(all.end(), places.links.begin(), places.links.end());
  const std::int64_t now = Now();
  for (const std::filesystem::path& path : all) {
    struct stat st {};
    if (::lstat(path.c_str(), &st) != 0) {
      stamps.push_back(nullptr);
      continue;
    }
    const std::int64_t changed = Nanoseconds(st.st_ctim);
    // Or a moment ahead: the clock that is read here may tick less often.
    if (now - changed < kTick && changed - now < kTick) return {};
    stamps.push_back({static_cast<std::uint64_t>(st.st_dev), static_cast<std::uint64_t>(st.st_ino),
                      Nanoseconds(st.st_mtim), changed});
  }
  return internal::TextOf(stamps);
}

using Fields = std::map<std::string, internal::JsonText>;

// The document's, and its apiVersion. Nothing: it is no object, or has none.
std::pair<Fields, std::string> FieldsOf(const std::string& content) {
  Fields fields;
  std::string version;
  if (!internal::ReadForeign(content, kMaxRecordFileBytes, fields) ||
      !internal::ReadForeign(fields["apiVersion"].text, kMaxRecordFileBytes, version)) {
    return {};
  }
  return {std::move(fields), std::move(version)};
}

// Whether a file that can't be decoded is one that a later kubelet wrote, not a damaged one.
bool IsLaterFormat(Fields fields, const std::string& version) {
  if (!fields["kind"].text.starts_with('"')) return false;
  if (fields.contains("closedByWaybill")) return false;
  if (!version.starts_with("kubelet.config.k8s.io/")) return false;
  if (version != "kubelet.config.k8s.io/v1alpha1" && version != kBeta) return true;
  return std::ranges::any_of(fields, [](const auto& member) {
    const std::string& field = member.first;
    return field != "kind" && field != "apiVersion" && field != "lastUpdatedTime" &&
           field != "imageRef" && field != "credentialMapping" && field != "image";
  });
}

// What the bytes say, to a kubelet and to us.
void Judge(KubeletFolder folder, const FileName& name, std::uint64_t seed,
           const std::string& content, SeenFile& seen) {
  const internal::KubeletFile judged = internal::JudgeKubeletFile(folder, name, content);
  if (judged.identity) seen.digest = *judged.identity;
  if (judged.is_own) seen.form = SeenFile::Form::kOwn;
  if (judged.is_closing) seen.form = SeenFile::Form::kClosing;
  seen.problem = judged.problem;
  auto [fields, version] = FieldsOf(content);
  seen.is_beta = version == kBeta;
  const auto* record = std::get_if<ImagePulledRecord>(&judged.content);
  if (record != nullptr && record->image_ref.empty()) {
    seen.problem = "it is about no image";
    return;
  }
  if (record != nullptr) {
    seen.record = *record;
  } else if (const auto* intent = std::get_if<ImagePullIntent>(&judged.content)) {
    seen.image = intent->image;
  } else if (!judged.misfiled.empty() && folder == KubeletFolder::kPulling) {
    seen.image = judged.misfiled;
  } else if (auto other = DecodePulledRecord(content); other && !judged.misfiled.empty()) {
    seen.record = *std::move(other);
  } else {
    if (IsLaterFormat(std::move(fields), version)) seen.what = SeenFile::What::kLaterFormat;
    return;
  }
  const bool is_record = folder == KubeletFolder::kPulled;
  seen.what = is_record ? SeenFile::What::kRecord : SeenFile::What::kIntent;
  seen.about = RecordNameOf(is_record ? seen.record.image_ref : seen.image);
  seen.items = ItemsOf(seen.record, seed);
}

}  // namespace

Result<internal::KubeletPlace> FindFolder(const std::filesystem::path& named) {
  auto place = TRY(internal::FindPlace(named));
  if (place.link.empty() || !place.unsafe.empty()) return place;
  // The guard's unit may allow it the kubelet's directory only.
  if (::access(place.path.c_str(), W_OK) == 0) return place;
  place.unsafe =
      named.string() + " is a symlink, and the guard may not write in " + place.path.string();
  place.path.clear();
  return place;
}

bool IsDirectoryItself(const std::filesystem::path& path) {
  struct stat st {};
  return ::lstat(path.c_str(), &st) == 0 && S_ISDIR(st.st_mode);
}

std::string WideAmong(const std::vector<std::filesystem::path>& folders) {
  for (const std::filesystem::path& folder : folders) {
    auto place = internal::FindPlace(folder);
    // One that can't be looked at now can't be read either.
    if (place && !place->wide.empty()) return place->wide;
  }
  return {};
}

Result<Look*> Looker::LookAt(const Places& places) {
  const std::int64_t began = Now();
  Look before = std::exchange(look_, Look());
  const std::string folders = StampsOf(places);
  look_.wide = WideAmong({places.image_manager, places.pulled});
  TRY(ReadFolder(places.pulling, KubeletFolder::kPulling, std::move(before.pulling),
                 look_.pulling));
  TRY(ReadFolder(places.pulled, KubeletFolder::kPulled, std::move(before.pulled), look_.pulled));
  const bool is_moving = std::ranges::any_of(
      look_.pulled, [](const auto& one) { return one.second.what == SeenFile::What::kMoving; });
  if (!is_moving && look_.too_many.empty() && folders == StampsOf(places)) look_.folders = folders;
  began_ = began;
  return &look_;
}

Result<void> Looker::ReadFolder(const std::filesystem::path& path, KubeletFolder folder,
                                SeenFiles before, SeenFiles& files) {
  auto there = TRY(internal::Exists(path));
  if (!there) return {};
  auto names = TRY(internal::ListDirectory(path));
  for (const std::string& name : names) {
    if (name == kMarkerName) {
      const bool is_pulled = folder == KubeletFolder::kPulled;
      (is_pulled ? look_.pulled_has_marker : look_.pulling_has_marker) = true;
      continue;
    }
    struct stat st {};
    // A kubelet passes over directories, too.
    if (!internal::IsRecordName(name) || ::lstat((path / name).c_str(), &st) != 0 ||
        S_ISDIR(st.st_mode)) {
      continue;
    }
    if (files.size() >= kMaxSeenFiles) {
      look_.too_many = path.string();
      break;
    }
    const auto known = before.find(name);
    const std::int64_t changed = Nanoseconds(st.st_ctim);
    if (known != before.end() && known->second.inode == st.st_ino &&
        known->second.changed == changed && changed < began_ - kTick &&
        known->second.what != SeenFile::What::kMoving) {
      files.insert(before.extract(known));
      continue;
    }
    SeenFile seen = ReadFile(path / name, folder, name);
    if (seen.inode != 0) files.emplace(name, std::move(seen));
  }
  return {};
}

// Without an inode: it is gone.
SeenFile Looker::ReadFile(const std::filesystem::path& path, KubeletFolder folder,
                          const FileName& name) const {
  SeenFile seen;
  for (int reading = 0; reading < kReadings; ++reading) {
    struct stat st {};
    struct stat after {};
    if (::lstat(path.c_str(), &st) != 0 || S_ISDIR(st.st_mode)) return {};
    auto bytes = internal::ReadKubeletBytes(path, kMaxRecordFileBytes);
    if (::lstat(path.c_str(), &after) != 0) return {};
    if (!IsSame(st, after)) {
      // Who may write it all the time must not keep it there.
      seen.planted = internal::WhyPlanted(after);
      seen.inode = after.st_ino;
      if (!seen.planted.empty()) return seen;
      continue;
    }
    seen.inode = st.st_ino;
    seen.changed = Nanoseconds(st.st_ctim);
    if (!bytes) {
      seen.problem = bytes.error().message;
      // No kubelet makes links, pipes or devices.
      if (bytes.error().code == ErrorCode::kUnsafePath) seen.planted = seen.problem;
      return seen;
    }
    Judge(folder, name, seed_, bytes->content, seen);
    seen.planted = std::move(bytes->planted);
    return seen;
  }
  seen.what = SeenFile::What::kMoving;
  return seen;
}

}  // namespace waybill::guard
