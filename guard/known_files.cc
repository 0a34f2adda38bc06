#include "guard/known_files.h"

#include <utility>

#include "store/base/try.h"

namespace waybill::guard {
namespace {

constexpr std::string_view kPulled = "pulled/";
constexpr std::string_view kPulling = "pulling/";

Result<void> WriteRows(NodeStore& store, const FileRows& before, const FileRows& now) {
  for (const auto& [name, row] : before) {
    if (!now.contains(name)) TRY(store.EraseKubeletFile(row.path));
  }
  for (const auto& [name, row] : now) {
    const auto was = before.find(name);
    if (was == before.end() || was->second != row) TRY(store.PutKubeletFile(row));
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

Result<void> KnownFiles::Write(NodeStore& store, const KnownFiles& before) const {
  TRY(WriteRows(store, before.records, records));
  TRY(WriteRows(store, before.intents, intents));
  const bool stays = node == before.node && !before.is_forgotten;
  return stays ? Result<void>() : store.PutKubeletFile({.node = node});
}

const FileRow* KnownFiles::Find(const FileRows& rows, const FileName& name) {
  const auto at = rows.find(name);
  return at == rows.end() ? nullptr : &at->second;
}

FileRow& KnownFiles::Row(FileRows& rows, const char* folder, const FileName& name) {
  FileRow& row = rows[name];
  if (row.path.empty()) row.path = folder + name;
  return row;
}

}  // namespace waybill::guard
