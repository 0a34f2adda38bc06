#include "guard/known_files.h"

#include <utility>

#include "store/base/try.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kPulled = "pulled/";
constexpr std::string_view kPulling = "pulling/";

const FileRow* FindIn(const std::map<FileName, FileRow>& rows, const FileName& name) {
  const auto at = rows.find(name);
  return at == rows.end() ? nullptr : &at->second;
}

Result<void> WriteRows(NodeStore& store, std::string_view folder,
                       const std::map<FileName, FileRow>& before,
                       const std::map<FileName, std::optional<FileRow>>& changes) {
  for (const auto& [name, row] : changes) {
    const FileRow* const was = FindIn(before, name);
    if (!row) {
      TRY(was == nullptr ? Result<void>() : store.EraseKubeletFile(std::string(folder) + name));
    } else if (was == nullptr || *was != *row) {
      TRY(store.PutKubeletFile(*row));
    }
  }
  return {};
}

}  // namespace

Result<KnownFiles> KnownFiles::Read(const NodeStore& store) {
  auto read = TRY(store.GetKubeletFiles());
  KnownFiles files;
  files.seed = read.seed;
  for (FileRow& row : read.rows) {
    if (row.node) {
      files.node = *row.node;
    } else if (row.path.starts_with(kPulled)) {
      FileName name = row.path.substr(kPulled.size());
      files.records.emplace(std::move(name), std::move(row));
    } else if (row.path.starts_with(kPulling)) {
      FileName name = row.path.substr(kPulling.size());
      files.intents.emplace(std::move(name), std::move(row));
    }
  }
  if (!read.is_whole) files.ForgetLook();
  return files;
}

void KnownFiles::ForgetLook() {
  node.folders.clear();
  node.began_seen = false;
  is_forgotten = true;
}

const FileRow* KnownFiles::Record(const FileName& name) const { return FindIn(records, name); }
const FileRow* KnownFiles::Intent(const FileName& name) const { return FindIn(intents, name); }

FileRow& Draft::Row(const Rows& rows, Changes& changes, const char* folder, const FileName& name) {
  auto [at, is_new] = changes.try_emplace(name);
  if (is_new) {
    const FileRow* const was = FindIn(rows, name);
    if (was != nullptr) at->second = *was;
  }
  if (!at->second) at->second = FileRow{.path = folder + name};
  return *at->second;
}

const FileRow* Draft::Find(const Rows& rows, const Changes& changes, const FileName& name) {
  const auto at = changes.find(name);
  if (at == changes.end()) return FindIn(rows, name);
  return at->second ? &*at->second : nullptr;
}

Result<void> Draft::Write(NodeStore& store) const {
  TRY(WriteRows(store, kPulled, files_.records, records_));
  TRY(WriteRows(store, kPulling, files_.intents, intents_));
  const bool stays = node_ == files_.node && !files_.is_forgotten;
  return stays ? Result<void>() : store.PutKubeletFile({.node = node_});
}

void Draft::Apply(KnownFiles& files) && {
  const auto apply = [](Changes& changes, Rows& rows) {
    for (auto& [name, row] : changes) {
      if (row) {
        rows[name] = *std::move(row);
      } else {
        rows.erase(name);
      }
    }
  };
  apply(records_, files.records);
  apply(intents_, files.intents);
  files.node = std::move(node_);
  files.is_forgotten = false;
}

}  // namespace waybill::guard
