#include "migrations/kubelet_files/kubelet_directory.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "migrations/kubelet_files/kubelet_file.h"
#include "migrations/kubelet_files/kubelet_places.h"
#include "store/base/files.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/disk/trust.h"
#include "store/images/gap.h"
#include "store/images/images.h"
#include "store/images/kubelet_file_row.h"
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

constexpr std::size_t kFilesPerTransaction = 512;
constexpr std::size_t kBytesPerTransaction = std::size_t{8} << 20;
constexpr std::size_t kMaxProblems = 100;

struct Entry {
  KubeletFolder folder;
  std::string name;
  std::string wide = {};  // why others may have put it there; empty: nothing says so
};

// What a kubelet directory has, in the folders that nobody else decides about.
struct Found {
  std::vector<Entry> entries;
  bool is_there = false;
  // Why others may have removed files; empty: they can't have.
  std::string doubt;

  // Whether the folder may be used.
  bool Take(const KubeletPlace& place) {
    is_there = is_there || !place.path.empty() || !place.unsafe.empty();
    if (doubt.empty()) doubt = place.unsafe.empty() ? place.wide : place.unsafe;
    return !place.path.empty();
  }
};

// Lists the records of each folder, sorted by name. A missing folder is empty.
Result<Found> List(const std::filesystem::path& image_manager, ImportReport& report) {
  Found found;
  const KubeletPlace around = TRY(FindPlace(image_manager));
  if (!found.Take(around)) return found;
  for (const KubeletFolder folder : kKubeletFolders) {
    const KubeletPlace place = TRY(FindPlace(image_manager / FolderName(folder)));
    if (!found.Take(place)) continue;
    // An intent can only close.
    const bool can_open = folder != KubeletFolder::kPulling;
    const std::string& wide = around.wide.empty() ? place.wide : around.wide;
    auto names = TRY(ListDirectory(place.path));
    std::sort(names.begin(), names.end());
    for (std::string& name : names) {
      ++report.files_seen;
      if (IsRecordName(name)) {
        found.entries.push_back({folder, std::move(name), can_open ? wide : ""});
      } else {
        ++report.skipped;
      }
    }
  }
  return found;
}

// The identity of what an earlier import took under this path.
Result<std::optional<Sha256Digest>> FindRemembered(const StoreTxn& txn, const std::string& path) {
  const auto row = TRY(FindKubeletFile(txn, path));
  return row ? row->content : std::nullopt;
}

// Whether an earlier import took a file under each of these paths, whatever its content.
Result<bool> AllPathsAreRemembered(const StoreTxn& txn, const std::vector<Entry>& entries) {
  for (const Entry& entry : entries) {
    const std::string path = std::string(FolderName(entry.folder)) + "/" + entry.name;
    if (!TRY(FindRemembered(txn, path))) return false;
  }
  return true;
}

// What the store has of a ref that a file is about.
struct KnownRef {
  bool known = false;
  // Otherwise: the row that another file of this import made, for another alias of the image.
  std::optional<ImageRow> sibling = {};
};

// `since`: the commit before this import.
Result<KnownRef> LookUpRef(const Images& images, const std::string& image_ref,
                           std::uint64_t since) {
  if (TRY(images.IsUnreadable(image_ref))) return KnownRef{.known = true};
  const auto home = TRY(images.Home(image_ref));
  if (!TRY(images.AnyRecorded(home))) return KnownRef{};
  const ImageRow row = TRY(images.FindOrMake(home));
  const bool is_fresh = row.pulled && row.stamp > since && row.Ref() != image_ref;
  return is_fresh ? KnownRef{.sibling = row} : KnownRef{.known = true};
}

class Importer {
 public:
  Importer(Images& images, bool looks_for_gap, bool without_credentials,
           const ImportOptions& options, std::uint64_t since, ImportReport& report)
      : images_(images),
        txn_(images.txn()),
        looks_for_gap_(looks_for_gap),
        without_credentials_(without_credentials),
        options_(options),
        since_(since),
        report_(report) {
    if (options.images_on_node == nullptr) return;
    on_node_.emplace();
    for (const ListedImage& image : *options.images_on_node) {
      on_node_->insert(SpellingOf(image.id));
      for (const std::string& digest : image.repo_digests) on_node_->insert(SpellingOf(digest));
    }
  }

  Result<void> Take(const KubeletFile& file) {
    if (!file.planted.empty()) Tell(file);
    auto remembered = TRY(FindRemembered(txn_, file.path));
    if (remembered && file.identity == remembered) {
      const auto* record = std::get_if<ImagePulledRecord>(&file.content);
      if (record != nullptr) return TakeAgain(*record);
      ++report_.unchanged;
      return {};
    }
    if (auto r = LookForGap(file, remembered); !r) return r;
    TRY(std::visit([&](const auto& content) { return TakeContent(file, content); }, file.content));
    if (!file.identity) return {};
    // What a guard knows of the file stays.
    auto row = TRY(FindKubeletFile(txn_, file.path));
    if (!row) row = KubeletFileRow{.path = file.path};
    row->content = file.identity;
    return PutKubeletFile(txn_, *row);
  }

 private:
  Result<void> LookForGap(const KubeletFile& file, const std::optional<Sha256Digest>& remembered) {
    if (!looks_for_gap_ || file.folder == KubeletFolder::kPreloaded ||
        !report_.newly_written.empty() || ShowsNoKubelet(file)) {
      return {};
    }
    // A file that became unreadable, or readable again, was not necessarily written.
    if (remembered && (file.skipped || WasSkipped(*remembered))) return {};
    report_.newly_written = file.path;
    return NoteGap(txn_, GapOfFile(report_.newly_written));
  }

  void Tell(const KubeletFile& file) {
    if (report_.problems.size() >= kMaxProblems) return;
    report_.problems.push_back(file.path + ": " + file.problem);
  }

  Result<void> TakeContent(const KubeletFile& file, std::monostate) {
    if (file.planted.empty()) Tell(file);
    for (const QuarantinedFile& entry : file.quarantine) TRY(Close(entry));
    if (file.misfiled.empty()) return {};
    if (file.folder == KubeletFolder::kPulling) return TakeIntent(file.misfiled);
    // A record in its own place stays valid. Without one, only this file tells of the pull.
    if (TRY(IsRecorded(file.misfiled))) return {};
    auto other = QuarantineOfMisfiled(file);
    return other ? Close(*std::move(other)) : Result<void>(other.error());
  }

  Result<void> Close(QuarantinedFile entry) {
    entry.since = txn_.now();
    if (!TRY(StoreQuarantine(txn_, entry))) return {};
    ++report_.quarantined;
    if (options_.rules == Mode::kKubelet) return {};
    // Nobody can tell which image was pulled, or under which ref a list has it.
    return OpenPullOfAnything(txn_, options_.now);
  }

  Result<bool> IsRecorded(const std::string& image_ref) {
    const auto home = TRY(images_.Home(image_ref));
    return images_.AnyRecorded(home);
  }

  Result<void> TakeIntent(const std::string& image) {
    ++report_.intents;
    return TakeOverIntent(txn_, image, "", txn_.now(), options_.now);
  }

  Result<void> TakeContent(const KubeletFile& file, const ImagePulledRecord& record) {
    PulledPart part{.last_updated = record.last_updated, .entries = record.credential_mapping};
    if (IsOwnClosing(file) && !file.is_exported) {
      part.closed_because = "waybill kept it closed for a kubelet without waybill";
      // No operator closed it, so an import that the runtime shows opens it again.
      part.closed_by = ClosedBy::kList;
    }
    const auto found = TRY(LookUpRef(images_, record.image_ref, since_));
    if (found.known) {
      ++report_.known_refs;
      return {};
    }
    if (without_credentials_) part.entries.clear();
    ++report_.records;
    return Put(record.image_ref, std::move(part), found.sibling);
  }

  Result<void> Put(const std::string& image_ref, PulledPart part,
                   const std::optional<ImageRow>& sibling) {
    const auto home = TRY(images_.Home(image_ref));
    ImageRow row = TRY(images_.FindOrMake(home));
    const ClosedBy word = WordOfOperator(row);
    if (row.pulled) LeaveOutEveryPod(*row.pulled, part);
    row = Present(std::move(row));
    row.absent = 0;
    row.ref = image_ref;
    row.pulled = std::move(part);
    if (word == ClosedBy::kOperator) row.pulled->closed_by = word;
    if (images_.learns_aliases()) AddAlias(row, image_ref);
    if (sibling) {
      // Neither may bring back what was revoked.
      ImageRow other = *sibling;
      TRY(LeaveOutRevoked(images_, other));
      TRY(LeaveOutRevoked(images_, row));
      const bool is_newer = row.pulled->last_updated >= other.pulled->last_updated;
      (is_newer ? row : other).stamp = 1;
      (is_newer ? other : row).stamp = 0;
      row = Unite(std::move(row), std::move(other), AgingIn(txn_));
      row.ref = sibling->Ref();
    }
    return images_.Put(std::move(row), Images::Confirms::kYes);
  }

  // The store's record may have gone with its image. A kubelet that ran alone since, and pulled the
  // image again with a credential that it knew, left its file as it was. Nobody knows any more what
  // was forgotten meanwhile, so the record is taken without credentials.
  Result<void> TakeAgain(const ImagePulledRecord& known) {
    if (on_node_ && !on_node_->contains(SpellingOf(known.image_ref))) {
      ++report_.unchanged;
      return {};
    }
    const auto found = TRY(LookUpRef(images_, known.image_ref, since_));
    const auto home = TRY(images_.Home(known.image_ref));
    const ImageRow row = TRY(images_.FindOrMake(home));
    if (found.known || found.sibling || (row.preloaded && row.absent == 0)) {
      ++report_.unchanged;
      return {};
    }
    ++report_.records;
    return Put(known.image_ref,
               {.last_updated = txn_.now(),
                .closed_because = "the kubelet has a record of it, and waybill's was removed",
                .closed_by = ClosedBy::kList},
               std::nullopt);
  }

  Result<void> TakeContent(const KubeletFile& file, const ImagePullIntent& intent) {
    if (IsOwnClosing(file)) {
      auto pulls = TRY(AllOpenPulls(txn_));
      const bool known = std::any_of(pulls.begin(), pulls.end(), [&](const UnresolvedPull& pull) {
        if (pull.anything || pull.nothing_at != 0) return false;
        // As it is, or as the runtime lists it.
        const NamedImage named = ReadName(pull.image);
        return pull.image == intent.image || NormaliseImage(pull.image) == intent.image ||
               (!named.digest.empty() && named.repository + "@" + named.digest == intent.image);
      });
      if (known) return {};
    }
    return TakeIntent(intent.image);
  }

  Result<void> TakeContent(const KubeletFile&, const ImagePreloadedRecord& record) {
    ++report_.preloaded;
    return txn_.Put(Table::kPreloaded, HashKey(record.image_ref, txn_.seed()),
                    EncodePreloadedValue(record));
  }

  Images& images_;
  StoreTxn& txn_;
  const bool looks_for_gap_;
  const bool without_credentials_;
  const ImportOptions& options_;
  const std::uint64_t since_;
  std::optional<std::unordered_set<std::string>> on_node_;  // refs; nullopt: not known
  ImportReport& report_;
};

}  // namespace

Result<void> ImportKubeletDirectory(Committer& committer, Aliases& aliases,
                                    const std::filesystem::path& directory,
                                    const ImportOptions& options, const Progress& progress,
                                    ImportReport& report) {
  TRY(OpenDirectory(directory));
  const std::filesystem::path image_manager = directory / "image_manager";
  const Found found = TRY(List(image_manager, report));
  if (!found.is_there) return {};
  const std::vector<Entry>& entries = found.entries;
  if (!found.doubt.empty()) report.problems.push_back(found.doubt + ": nothing new in it counts");
  const Distrust unfinished = ImportUnfinished(directory);
  const std::uint64_t since = committer.state().commit_sequence;
  // A store that lost something knows neither which files it took before nor what was revoked
  // since.
  bool without_credentials = false;
  bool look_for_gap = false;
  bool uncut = false;
  TRY(committer.Run([&](StoreTxn& txn) -> Result<void> {
    auto reasons = TRY(ReasonsOfDistrust(txn));
    without_credentials =
        txn.state().distrustful &&
        (reasons.empty() || !std::all_of(reasons.begin(), reasons.end(), LosesNothing));
    // Files that an unfinished import left are not new.
    const bool goes_on = std::any_of(reasons.begin(), reasons.end(), [](const Distrust& why) {
      return why.kind == DegradedKind::kImportUnfinished;
    });
    uncut = options.created || !goes_on;
    look_for_gap = options.taken_over_before && (without_credentials || !goes_on);
    if (options.first && !entries.empty()) TRY(OpenPullOfAnything(txn, options.now));
    // A record that somebody removed leaves nothing that could be found.
    if (!found.doubt.empty()) TRY(NoteGap(txn, GapBecause(found.doubt)));
    auto known = TRY(AllPathsAreRemembered(txn, entries));
    return known ? Result<void>() : SetDistrust(txn, unfinished);
  }));

  const auto take = [&](std::span<const KubeletFile> files) -> Result<void> {
    ImportReport step;
    TRY(committer.Run([&](StoreTxn& txn) -> Result<void> {
      step = report;  // the change may run twice
      Images images(txn, aliases);
      Importer importer(images, look_for_gap, without_credentials, options, since, step);
      for (const KubeletFile& file : files) TRY(importer.Take(file));
      return {};
    }));
    report = std::move(step);
    return {};
  };

  // Last, when every record in its own place is known.
  std::vector<KubeletFile> misfiled;
  for (std::size_t done = 0; done < entries.size();) {
    if (progress && !progress(done, entries.size())) {
      report.interrupted = true;
      return Error{ErrorCode::kInterrupted,
                   "the import stopped after " + std::to_string(done) + " of " +
                       std::to_string(entries.size()) + " files; what was taken is kept",
                   "run it again to go on"};
    }
    std::size_t bytes = 0;
    std::vector<KubeletFile> files;
    while (done < entries.size() && files.size() < kFilesPerTransaction &&
           bytes < kBytesPerTransaction) {
      const Entry& next = entries[done++];
      auto file = TRY(ReadKubeletFile(image_manager, next.folder, next.name, options.on_error));
      if (!next.wide.empty() && !IsOwnClosing(file)) CountAsPlanted(file, next.wide);
      bytes += file.bytes;
      (file.misfiled.empty() ? files : misfiled).push_back(std::move(file));
    }
    if (auto r = take(files); !r) return r;
  }
  for (std::span<const KubeletFile> left = misfiled; !left.empty();) {
    const std::size_t count = std::min(left.size(), kFilesPerTransaction);
    if (auto r = take(left.first(count)); !r) return r;
    left = left.subspan(count);
  }
  if (progress && !entries.empty()) static_cast<void>(progress(entries.size(), entries.size()));
  return committer.Run([&](StoreTxn& txn) { return EndImport(txn, directory, uncut); });
}

Result<std::vector<ImagePulledRecord>> SyncAndReadRecords(const std::filesystem::path& directory) {
  const std::filesystem::path image_manager = directory / "image_manager";
  ImportReport ignored;
  const Found found = TRY(List(image_manager, ignored));
  if (!found.doubt.empty()) return Error{ErrorCode::kUnsafePath, found.doubt};
  const std::filesystem::path pulled = image_manager / FolderName(KubeletFolder::kPulled);
  if (!TRY(Exists(pulled))) return SystemError(ENOENT, "look at", pulled);
  for (const KubeletFolder folder : {KubeletFolder::kPulling, KubeletFolder::kPulled}) {
    const std::filesystem::path path = image_manager / FolderName(folder);
    if (TRY(Exists(path))) TRY(SyncDirectory(path));
  }
  std::vector<ImagePulledRecord> records;
  for (const Entry& entry : found.entries) {
    if (entry.folder != KubeletFolder::kPulled) continue;
    auto file = TRY(ReadKubeletFile(image_manager, entry.folder, entry.name, OnReadError::kFail));
    auto* const record = std::get_if<ImagePulledRecord>(&file.content);
    if (record == nullptr) return Error{ErrorCode::kDamaged, file.problem};
    records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace waybill::internal
