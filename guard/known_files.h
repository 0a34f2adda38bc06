// The guard's only memory: what the store knows of a kubelet's files (table "kubelet-files--1").
// Held in memory as it is on disk. A change is made in a copy, which a commit takes along.

#ifndef WAYBILL_GUARD_KNOWN_FILES_H_
#define WAYBILL_GUARD_KNOWN_FILES_H_

#include <map>
#include <string>

#include "guard/look.h"
#include "store/calls/node_store.h"
#include "store/for_the_guard.h"
#include "waybill/result.h"

namespace waybill::guard {

using FileRow = internal::KubeletFileRow;
using FileRows = std::map<FileName, FileRow>;

struct KnownFiles {
  FileRows records;
  FileRows intents;
  internal::KubeletNode node;
  std::uint64_t seed = 0;
  bool is_forgotten = false;  // on disk the row of the node says more than is known

  // If rows are lost, what the folders and the kubelet's life were is not known either.
  static Result<KnownFiles> Read(const NodeStore& store);
  // What the folders and the kubelet's memory were is not known any more.
  void ForgetLook();
  // Within a commit of the store: what is other than in `before`.
  Result<void> Write(NodeStore& store, const KnownFiles& before) const;

  // nullptr: there is none.
  const FileRow* FindRecord(const FileName& name) const { return Find(records, name); }
  const FileRow* FindIntent(const FileName& name) const { return Find(intents, name); }
  // To be changed; a new one if there is none.
  FileRow& Record(const FileName& name) { return Row(records, "pulled/", name); }
  FileRow& Intent(const FileName& name) { return Row(intents, "pulling/", name); }

 private:
  static const FileRow* Find(const FileRows& rows, const FileName& name);
  static FileRow& Row(FileRows& rows, const char* folder, const FileName& name);
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_KNOWN_FILES_H_
