// What a comparison goes by, and what each half of it asks of a file: evidence.cc for what the
// store is told, acts.cc for what becomes of the files.

#ifndef WAYBILL_GUARD_MOMENT_H_
#define WAYBILL_GUARD_MOMENT_H_

#include <set>

#include "guard/compare.h"

namespace waybill::guard {

struct Moment {
  const Look& look;
  const KnownFiles& files;
  const Known& known;
  const MustFind& must;
  const Context& context;

  bool runs() const { return !context.life.empty(); }
  Items ItemsOf(const internal::Credentials& credentials) const {
    return guard::ItemsOf({.credential_mapping = credentials}, files.seed);
  }
  // What the file's image must have; nullptr: it need not have a record.
  const MustFind::Record* WantedFor(const FileName& name) const;
  Items WantedItems(const MustFind::Record& must_be) const {
    return ItemsOf(must_be.record.credential_mapping);
  }

  // Whether nothing is said of it, and nothing done to it. What is in a later kubelet's format is
  // not left if somebody else may have written it.
  bool IsLeft(const SeenFile& file) const;
  // Whether somebody else than a kubelet may have written it: also what anybody may have put into a
  // folder, unless it is known, or says just what it must.
  bool IsPlanted(const FileName& name, const SeenFile& file) const;
  // A record of the image that its name says, which a kubelet may have written.
  bool IsSound(const FileName& name, const SeenFile& file) const {
    return file.what == SeenFile::What::kRecord && file.about == name && !IsPlanted(name, file);
  }
};

// Whether the store has what the file says.
bool IsTaken(const FileRow* row, const SeenFile& file);
bool IsTakenIntent(const FileRow* row, const SeenFile& file);

// Each adds to `result`. `busy`: names of files of which the store is told something: they are
// changed in the next round.
void TakeEvidence(const Moment& at, Compared& result, std::set<FileName>& busy);
void AddActs(const Moment& at, const std::set<FileName>& busy, Compared& result);

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_MOMENT_H_
