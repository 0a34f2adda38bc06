// The guard's only memory: what the store knows of a kubelet's files (table "kubelet-files--1").
// Held in memory as it is on disk; a change is made in a draft, which a commit takes along.

#ifndef WAYBILL_GUARD_KNOWN_FILES_H_
#define WAYBILL_GUARD_KNOWN_FILES_H_

#include <map>
#include <optional>
#include <set>
#include <string>

#include "guard/look.h"
#include "store/calls/node_store.h"
#include "store/for_the_guard.h"
#include "waybill/result.h"

namespace waybill::guard {

using FileRow = internal::KubeletFileRow;

struct KnownFiles {
  std::map<FileName, FileRow> records;
  std::map<FileName, FileRow> intents;
  internal::KubeletNode node;
  std::uint64_t seed = 0;
  bool is_forgotten = false;  // on disk the row of the node says more than is known

  // If rows are lost, what the folders and the kubelet's life were is not known either.
  static Result<KnownFiles> Read(const NodeStore& store);

  // What the folders and the kubelet's memory were is not known any more.
  void ForgetLook();
  const FileRow* Record(const FileName& name) const;
  const FileRow* Intent(const FileName& name) const;
};

// Several changes of the table, made as one.
class Draft {
 public:
  explicit Draft(const KnownFiles& files) : files_(files), node_(files.node) {}

  // To be changed; a new one if there is none.
  FileRow& Record(const FileName& name) { return Row(files_.records, records_, "pulled/", name); }
  FileRow& Intent(const FileName& name) { return Row(files_.intents, intents_, "pulling/", name); }
  internal::KubeletNode& node() { return node_; }
  void EraseRecord(const FileName& name) { records_[name].reset(); }
  void EraseIntent(const FileName& name) { intents_[name].reset(); }
  // As they are by now.
  const FileRow* FindRecord(const FileName& name) const {
    return Find(files_.records, records_, name);
  }
  const FileRow* FindIntent(const FileName& name) const {
    return Find(files_.intents, intents_, name);
  }

  // Within a commit of the store.
  Result<void> Write(NodeStore& store) const;
  // After it.
  void Apply(KnownFiles& files) &&;

 private:
  using Rows = std::map<FileName, FileRow>;
  using Changes = std::map<FileName, std::optional<FileRow>>;  // nullopt: it goes

  static FileRow& Row(const Rows& rows, Changes& changes, const char* folder, const FileName& name);
  static const FileRow* Find(const Rows& rows, const Changes& changes, const FileName& name);

  const KnownFiles& files_;
  Changes records_;
  Changes intents_;
  internal::KubeletNode node_;
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_KNOWN_FILES_H_
