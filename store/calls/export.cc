// Going back to a kubelet without waybill.

#include <map>
#include <utility>

#include "migrations/kubelet_files/kubelet_export.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/files.h"
#include "store/base/try.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/disk/trust.h"
#include "store/images/kubelet_file_row.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"

namespace waybill {

using internal::ReaderPool;
using internal::Table;

namespace {

// Everything of one snapshot.
Result<internal::ExportContent> Collect(const NodeStore::Impl& impl,
                                        const ReaderPool::Lease& snapshot) {
  internal::ExportContent content;
  content.store = TRY(impl.ContentIn(snapshot, false));
  // A kubelet's files have no ends.
  for (internal::StoreContent::Image& image : content.store.images) {
    internal::LeaveIf(internal::HasNoEnd(), image.counting);
  }
  content.preloaded = TRY(ListIn(impl, snapshot, Table::kPreloaded, "the preloaded records",
                                 internal::DecodePreloadedValue));
  auto files = TRY(ListIn(impl, snapshot, Table::kKubeletFiles, "the imported files",
                          internal::DecodeKubeletFile));
  for (internal::KubeletFileRow& file : files) {
    if (file.content) content.imported.emplace(std::move(file.path), *file.content);
  }
  auto rows = TRY(impl.HostIdsIn(snapshot));
  for (internal::HostIds& row : rows) {
    if (row.has_range()) {
      const IdMapping mapping = row.mapping();
      content.allocations.push_back({.pod_uid = row.pod_uid,
                                     .host_id = mapping.host_id,
                                     .length = mapping.length,
                                     .created = row.created});
    }
    if (row.held) content.held.push_back(*std::move(row.held));
  }
  content.distrustful = snapshot.state().distrustful;
  return content;
}

// By path below image_manager/ what must be there for a kubelet in the place of one with waybill.
std::map<std::string, std::string> ContentsOf(const internal::MustFind& must, Timestamp now) {
  constexpr auto kReadByAll = KubeletApiVersion::kV1Alpha1;
  std::map<std::string, std::string> files;
  for (const auto& [name, image] : must.intents) {
    files["pulling/" + name] = EncodePullIntent({.image = image}, kReadByAll);
  }
  for (const auto& [name, one] : must.records) {
    ImagePulledRecord record = one.record;
    record.last_updated = record.last_updated.value_or(now);
    files["pulled/" + name] = EncodePulledRecord(record, kReadByAll);
  }
  // No runtime lists a name that is not UTF-8.
  std::erase_if(files, [](const auto& file) { return !internal::IsUtf8(file.second); });
  return files;
}

// Whether a file serves in the place of waybill's. A record that a kubelet can't read closes, too.
// What an export left may have credentials that were revoked since.
bool Serves(const internal::KubeletFile& file) {
  if (file.is_own) return internal::IsOwnClosing(file);
  const bool is_read = !std::holds_alternative<std::monostate>(file.content);
  const bool closes = file.folder == internal::KubeletFolder::kPulled && file.misfiled.empty();
  return file.planted.empty() && (is_read || closes);
}

}  // namespace

namespace door {

// Each folder of image_manager/ is replaced in one step, and the old one is kept aside. Images in
// quarantine become files that the kubelet can't read either. A ref under several handlers gets the
// default's credentials. Mode::kStrict: a record is written under every alias, and each listed
// image that is neither recorded nor preloaded gets a record without credentials. ID mappings go to
// pods/<uid>/userns; a file with other content is kept beside it. kConflict, and nothing is
// written: a pod is held, or the file of a pod that the store does not know overlaps a range.
// kInvalidArgument: the store is distrustful and has no list of images. kOwned: another export into
// that directory is running. After an error the folders are complete, old or new; call it again.
Result<ExportKubeletFiles::Answer> Do(NodeStore& store, const ExportKubeletFiles& call,
                                      const Progress&) {
  NodeStore::Impl& impl = store.impl();
  auto content = TRY(Collect(impl, impl.Read()));
  if (content.distrustful) {
    auto trust = TRY(store.GetTrust());
    content.distrust_reason = internal::LastReasonOf(trust.journal);
  }
  content.now = impl.clock();
  return internal::ExportKubeletDirectory(content, call);
}

// A folder that can't be listed has nothing that serves: whoever writes there learns why.
Result<ListKubeletFiles::Answer> Do(NodeStore& store, const ListKubeletFiles& call,
                                    const Progress&) {
  const NodeStore::Impl& impl = store.impl();
  const ReaderPool::Lease snapshot = store.impl().Read();
  auto content = impl.ContentIn(snapshot, false);
  // What can't be read of the store may need any file.
  const bool is_whole = content.has_value();
  if (!is_whole) content = TRY(impl.ContentIn(snapshot, true));
  const internal::MustFind must =
      WhatItMustFind(*content, internal::KnownImages(*content),
                     call.images ? &*call.images : nullptr, internal::ForWhom::kAdapter);
  auto missing = ContentsOf(must, impl.clock());
  ListKubeletFiles::Answer answer;
  const std::filesystem::path image_manager = call.kubelet_directory / "image_manager";
  for (const auto folder : {internal::KubeletFolder::kPulling, internal::KubeletFolder::kPulled}) {
    // An image that is listed may be one that the store does not know yet.
    const bool knows_all = folder == internal::KubeletFolder::kPulling
                               ? !must.awaits_list
                               : call.images || !content->has_evidence;
    const auto names = internal::ListDirectory(image_manager / internal::FolderName(folder));
    if (!names) continue;
    for (const std::string& name : *names) {
      if (!internal::IsRecordName(name)) continue;
      const auto file =
          internal::ReadKubeletFile(image_manager, folder, name, internal::OnReadError::kSkip);
      // What can't be read now serves nobody: it is written anew.
      if (!file) continue;
      const auto wanted = missing.find(file->path);
      if (wanted != missing.end()) {
        if (Serves(*file)) missing.erase(wanted);
      } else if (is_whole && knows_all && internal::IsOwnClosing(*file)) {
        answer.needless.push_back(file->path);
      }
    }
  }
  for (auto& [path, text] : missing) {
    answer.missing.push_back({path, internal::OwnForm(std::move(text))});
  }
  return answer;
}

}  // namespace door

}  // namespace waybill
