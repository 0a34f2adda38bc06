// An image that must be closed, but has no form of its own in the kubelet's files, becomes
//
//   {"kind":…,"apiVersion":…,"closedByWaybill":"<why>","imageRef":false}   in pulling/: "image"
//
// A kubelet refuses it for two reasons: the unknown field, and the wrong type of the known one. The
// second is for decoders that ignore unknown fields: they would read a record of another ref, which
// the kubelet treats as no record.

#include "migrations/kubelet_files/kubelet_export.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>
#include <variant>

#include "migrations/kubelet_files/kubelet_file.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/staged_folders.h"
#include "migrations/kubelet_files/userns_export.h"
#include "migrations/kubelet_files/what_it_must_find.h"
#include "store/base/empty_list.h"
#include "store/base/go_json.h"
#include "store/base/hex.h"
#include "store/base/options.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

constexpr std::string_view kNotUtf8 = "it holds text that is not UTF-8";
// Without the reason, so that exporting over this file again writes the same.
constexpr std::string_view kUnreadInPlace = "what stood here could not be read";

class Exporter {
 public:
  Exporter(const ExportContent& content, const ExportKubeletFiles& options, StagedFolders& staged,
           const UsernsExport& id_mappings)
      : content_(content),
        options_(options),
        staged_(staged),
        id_mappings_(id_mappings),
        must_(WhatItMustFind(content.store, KnownImages(content.store),
                             options.images ? &*options.images : nullptr, ForWhom::kExport)) {}

  // Intents first: new intents beside old records can only close.
  Result<ExportReport> Run() {
    TRY(WriteIntents());
    TRY(WriteRecords());
    TRY(WritePreloaded());
    report_.id_mappings = TRY(id_mappings_.Write(content_.now));
    report_.replaced_path = TRY(staged_.Place());
    report_.removed_paths = staged_.RemoveOldAside(content_.imported);
    for (std::string& path : id_mappings_.RemoveOldAside()) {
      report_.removed_paths.push_back(std::move(path));
    }
    return std::move(report_);
  }

 private:
  Result<void> WriteIntents() {
    TRY(Begin(KubeletFolder::kPulling));
    TRY(WriteQuarantine(QuarantineKind::kImage));
    for (const auto& [name, image] : must_.intents) TRY(WriteIntent({.image = image}));
    return CarryOver();
  }

  Result<void> WriteIntent(const ImagePullIntent& intent) {
    if (TRY(WriteNew(intent.image, EncodePullIntent(intent, options_.api_version)))) {
      ++report_.intents;
    }
    return {};
  }

  Result<void> WriteRecords() {
    TRY(Begin(KubeletFolder::kPulled));
    TRY(WriteQuarantine(QuarantineKind::kImageRef));
    TRY(WriteFound(true, false));
    TRY(CarryOver());
    TRY(WriteFound(true, true));
    // Otherwise a list shows nothing that a kubelet does not know itself.
    if (!content_.store.has_evidence && !content_.distrustful) return {};
    TRY(WriteFound(false, false));
    return WriteFound(false, true);
  }

  Result<void> WriteFound(bool on_record, bool aliases) {
    for (const auto& [name, must] : must_.records) {
      if (must.is_on_record != on_record || must.is_alias != aliases) continue;
      ImagePulledRecord record = must.record;
      if (!on_record) record.last_updated = content_.now;
      const bool written =
          TRY(WriteNew(record.image_ref, EncodePulledRecord(record, options_.api_version)));
      if (!written) continue;
      if (!aliases) ++report_.records;
      if (!aliases && !on_record) ++report_.made;
      if (!aliases && must.is_of_other_handler) ++report_.without_credentials;
      if (aliases && on_record) ++report_.spellings;
    }
    return {};
  }

  // Whether a readable record was written.
  Result<bool> WriteRecord(const ImagePulledRecord& record) {
    auto written = WriteNew(record.image_ref, EncodePulledRecord(record, options_.api_version));
    if (written && *written) ++report_.records;
    return written;
  }

  // Preloaded records can only open images: one that can't be written is left out, and a
  // distrustful store writes none.
  Result<void> WritePreloaded() {
    const bool none = content_.distrustful || content_.preloaded.empty();
    if (none && !TRY(staged_.ExistsInPlace(KubeletFolder::kPreloaded))) return {};
    if (auto r = Begin(KubeletFolder::kPreloaded); !r || none) return r;
    for (const ImagePreloadedRecord& record : content_.preloaded) {
      // Kubelets write and read them only in this version.
      const std::string file = EncodePreloadedRecord(record);
      if (IsUtf8(file) && TRY(WriteNew(record.image_ref, file))) ++report_.preloaded;
    }
    return {};
  }

  // A kubelet that ran without waybill may have written files that the store does not know. Without
  // them their images would pass for preloaded.
  Result<void> CarryOver() {
    const auto names = TRY(staged_.NamesInPlace(folder_));
    std::vector<QuarantinedFile> misfiled;
    for (const std::string& name : names) {
      if (names_.contains(name)) continue;
      // If the disk refuses to read a file, its image is closed, and the file is kept aside with
      // the others.
      const auto file =
          TRY(ReadKubeletFile(staged_.image_manager(), folder_, name, OnReadError::kSkip));
      if (file.identity && content_.imported.contains({file.path, *file.identity})) continue;
      if (const auto* record = std::get_if<ImagePulledRecord>(&file.content)) {
        // The list of images tells what is closed.
        if (content_.store.has_evidence && IsOwnClosing(file)) continue;
        ImagePulledRecord bare = *record;
        bare.credential_mapping.clear();
        if (TRY(WriteRecord(bare))) ++report_.without_credentials;
      } else if (const auto* intent = std::get_if<ImagePullIntent>(&file.content)) {
        TRY(WriteIntent(*intent));
      }
      for (const QuarantinedFile& entry : file.quarantine) TRY(CloseUnread(entry));
      if (file.misfiled.empty()) continue;
      if (folder_ == KubeletFolder::kPulling) {
        TRY(WriteIntent({.image = file.misfiled}));
      } else {
        auto other = TRY(QuarantineOfMisfiled(file));
        misfiled.push_back(std::move(other));
      }
    }
    // Their refs may have records in their own places, so these come last.
    for (const QuarantinedFile& other : misfiled) TRY(CloseUnread(other));
    return {};
  }

  Result<void> CloseUnread(const QuarantinedFile& entry) {
    if (!names_.insert("sha256-" + entry.sha256).second) return {};
    return WriteClosed("sha256-" + entry.sha256, kUnreadInPlace);
  }

  Result<void> WriteQuarantine(QuarantineKind kind) {
    for (const QuarantinedFile& entry : content_.store.quarantine) {
      if (entry.kind != kind) continue;
      const std::string name = "sha256-" + entry.sha256;
      if (!IsRecordName(name)) {
        return Error{ErrorCode::kInvalidArgument,
                     "a quarantine entry has no SHA-256; nothing was exported", ""};
      }
      if (!names_.insert(name).second) continue;
      TRY(WriteClosed(name, entry.source + ": " + entry.reason));
    }
    return {};
  }

  Result<void> WriteClosed(const std::string& name, std::string_view why) {
    const bool of_ref = folder_ == KubeletFolder::kPulled;
    // An empty record's encoding, cut before the field that names the image.
    std::string file = of_ref ? EncodePulledRecord({}, options_.api_version)
                              : EncodePullIntent({}, options_.api_version);
    file.resize(file.find(of_ref ? "\"lastUpdatedTime\"" : "\"image\""));
    file += "\"closedByWaybill\":";
    AppendGoJsonString(why, file);
    file += of_ref ? ",\"imageRef\":false}\n" : ",\"image\":false}\n";
    TRY(staged_.Write(name, file));
    ++report_.closed;
    return {};
  }

  Result<void> Begin(KubeletFolder folder) {
    folder_ = folder;
    names_.clear();
    return staged_.Open(folder);
  }

  // Writes `content`, or a closing file if it is not UTF-8, unless the folder has a file of that
  // name. Returns whether `content` was written.
  Result<bool> WriteNew(std::string_view ref_or_image, std::string content) {
    const std::string name = RecordNameOf(ref_or_image);
    if (!names_.insert(name).second) return false;
    const bool is_utf8 = IsUtf8(content);
    TRY(is_utf8 ? staged_.Write(name, std::move(content)) : WriteClosed(name, kNotUtf8));
    return is_utf8;
  }

  const ExportContent& content_;
  const ExportKubeletFiles& options_;
  StagedFolders& staged_;
  const UsernsExport& id_mappings_;
  const MustFind must_;
  KubeletFolder folder_ = KubeletFolder::kPulling;
  std::set<std::string> names_;  // files in the folder so far
  ExportReport report_;
};

}  // namespace

// Go writes \ufffd in place of what is not, and U+FFFD itself as it is.
bool IsUtf8(std::string_view file) {
  for (std::size_t at = 0; (at = file.find('\\', at)) != std::string_view::npos; at += 2) {
    if (file.substr(at).starts_with("\\ufffd")) return false;
  }
  return true;
}

Result<ExportReport> ExportKubeletDirectory(const ExportContent& content,
                                            const ExportKubeletFiles& options) {
  const std::string why = content.distrustful ? "is distrustful (" + content.distrust_reason + ")"
                                              : "knows which images are preloaded";
  const bool needs_list = content.distrustful || content.store.has_evidence;
  if (needs_list && !options.images) {
    return Error{ErrorCode::kInvalidArgument,
                 "the store " + why + ", which a kubelet can't be told; nothing was exported",
                 "give the runtime's complete list of images: each one of which nothing is known "
                 "then gets a record without credentials"};
  }
  if (needs_list && options.images->empty() && !options.allow_empty) {
    return EmptyList("the list of images on the node is", why, "nothing was exported");
  }
  auto staged = TRY(StagedFolders::Begin(options.kubelet_directory, content.now));
  // Under the lock of `staged`, so no other export into that directory runs.
  auto id_mappings =
      TRY(UsernsExport::Plan(options.kubelet_directory, content.allocations, content.held));
  return Exporter(content, options, *staged, id_mappings).Run();
}

}  // namespace waybill::internal
