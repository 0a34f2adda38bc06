// The decision table. The rows' names stand in the comments; tests/guard/compare_test.cc has a
// moment of a node's life for each.
//
//   a record's file            store                                          row
//   ------------------------------------------------------------------------------------------
//   later format               -                                              R9
//   in a wide folder, unless   as planted                                     R20, R25
//   it says what it must
//   own, with credentials      first start: proven                            R7
//                              not all in may_have: seen (its row was lost)   R24
//   own, without               degraded store, image not known: pulled        R8
//   new credentials            any pod in the place of Secrets: not new, but  R19
//                              if the node had no credential for it
//                              watched, memory known: proven                  R1
//                              watched, memory unknown: as if none was new    R2
//                              an unrecorded period or a first start, no      R3, R10, R11
//                              older than what is known, store not degraded:
//                              proven by a pull of unknown beginning
//                              otherwise no kubelet ran: as if none was new   R4
//   nothing new, not known     on the list: pulled                            R5
//   nothing new, other         seen                                           R12
//   unreadable, planted,       of an image that list or store knows: damaged  R6, R21
//   about another ref          of nobody: an unrecorded period                R13
//   gone                       gone                                           K7
//   came and went unread       the kubelet's memory is unknown                R16
//
//   an intent's file
//   ------------------------------------------------------------------------------------------
//   a kubelet's                a kubelet runs that wrote it: a pull began     I1
//                              otherwise: a pull of unknown end               I2, I11
//   gone, or own in its place  its end is not known                           I3
//   came and went unread       a pull of unknown end; string not known: an    I4
//                              unrecorded period
//   unreadable                 likewise                                       I5
//   own                        degraded store, pull not known: unknown end    I7
//   of another kubelet         ended                                          I8
//   older than the window      ended                                          I9
//   its row is lost            ended                                          I13
//
//   the directory and the kubelet
//   ------------------------------------------------------------------------------------------
//   not watched, folders differ; the queue ran over    an unrecorded period   D1, D2
//   … while a kubelet runs                             memory unknown         K4
//   another kubelet, or none                           noted, after the rest  D4, K1, K2, K5, K8
//   a first start on a directory that was used         a pull of anything     D6
//   nothing left to do                                 the folders            D5
//
//   must be         is                       act
//   ------------------------------------------------------------------------------------------
//   any             later format             none                             F9
//   a record        none                     create                           F1
//                   unreadable, planted      copy, exchange                   F2
//                   other credentials        copy, exchange                   F4
//                   own, in another form     exchange, if no kubelet runs or  F3
//                                            the guard ends
//   preloaded       unreadable               copy, remove                     F5
//                   a record                 remove, if no kubelet runs or    F7
//                                            it has no credentials
//                                            remove, if none is on record     F8
//   nothing         unreadable, planted      copy, remove, if planted or no   F6
//                                            kubelet runs
//                   planted, no list yet     exchange for a closing line      F13
//                   closing form             exchange for the readable form   F10, F12
//                   credentials that do not  copy, exchange for what does,    F11
//                   count                    if no kubelet runs
//   an intent       none; unreadable         create; exchange                 G1, G2
//   no intent       own; taken over, and no  remove                           G4, G3
//                   kubelet runs

#include "guard/compare.h"

#include <algorithm>

#include "guard/moment.h"
#include "store/base/image_spellings.h"

namespace waybill::guard {

const MustFind::Record* Moment::WantedFor(const FileName& name) const {
  const auto at = must.records.find(name);
  return at == must.records.end() ? nullptr : &at->second;
}

bool Moment::IsLeft(const SeenFile& file) const {
  return file.what == SeenFile::What::kMoving ||
         (file.what == SeenFile::What::kLaterFormat && file.planted.empty() && look.wide.empty());
}

bool Moment::IsPlanted(const FileName& name, const SeenFile& file) const {
  if (!file.planted.empty()) return true;  // R21
  if (file.what == SeenFile::What::kLaterFormat) return !look.wide.empty();
  if (file.what != SeenFile::What::kRecord) return false;
  if (file.is_own()) {
    const MustFind::Record* const wanted = WantedFor(name);
    const bool opens_nothing = file.items.empty();  // R25
    if (opens_nothing || (wanted != nullptr && WantedItems(*wanted) == file.items)) return false;
  }
  // R20. What was planted stays so, whatever its folder is now.
  const FileRow* const row = files.FindRecord(name);
  if (row != nullptr && row->refused_planted && row->refused == file.digest) return true;
  return !look.wide.empty() && !IsTaken(row, file);
}

bool IsTaken(const FileRow* row, const SeenFile& file) {
  return row != nullptr && row->content == file.digest && !row->gone;
}

bool IsTakenIntent(const FileRow* row, const SeenFile& file) {
  return row != nullptr && row->inode == file.inode && row->changed == file.changed;
}

const internal::StoreContent::Image* Known::Find(const std::string& image_ref) const {
  const auto* image = images_.Find(image_ref);
  return image != nullptr && (image->row.pulled || image->row.preloaded) ? image : nullptr;
}

std::optional<std::string> Known::RefOf(const FileName& name) const {
  if (!refs_) {
    refs_.emplace();
    const auto add = [&](const std::string& ref) {
      refs_->emplace(internal::RecordNameOf(ref), ref);
    };
    for (const ListedImage& image : list_) {
      std::ranges::for_each(images_.TextsOf(image.id), add);
      std::ranges::for_each(image.repo_digests, add);
    }
    for (const auto& image : content_.images) {
      const internal::ImageRow& row = image.row;
      if (row.pulled || row.preloaded) std::ranges::for_each(images_.TextsOf(row.Ref()), add);
    }
  }
  const auto at = refs_->find(name);
  return at == refs_->end() ? std::nullopt : std::optional(at->second);
}

std::optional<std::string> Known::StringOf(const FileName& name) const {
  if (!strings_) {
    strings_.emplace();
    for (const UnresolvedPull& pull : content_.pulls) {
      if (!pull.anything) strings_->emplace(internal::RecordNameOf(pull.image), pull.image);
    }
    for (const ListedImage& image : list_) {
      for (const std::string& tag : image.repo_tags) {
        for (const std::string& string : internal::EquivalentImages(tag)) {
          strings_->emplace(internal::RecordNameOf(string), string);
        }
      }
    }
  }
  const auto at = strings_->find(name);
  return at == strings_->end() ? std::nullopt : std::optional(at->second);
}

bool Compared::has_unrecorded() const {
  return std::ranges::any_of(calls, [](const StoreCall& call) {
    return std::holds_alternative<NoteUnrecordedPeriod>(call);
  });
}

namespace {

// D5
void NoteLook(const Moment& at, Compared& result) {
  if (!at.look.folders.empty() && at.look.folders != at.files.node.folders) {
    result.Rows(at.files).node.folders = at.look.folders;
  }
  for (const auto& [name, row] : at.files.records) {
    if (row.changing) result.Rows(at.files).Record(name).changing = false;
  }
  result.takes = result.rows.has_value();
}

}  // namespace

Compared Compare(const Look& look, const KnownFiles& files, const Known& known,
                 const MustFind& must, const Context& context) {
  const Moment at{look, files, known, must, context};
  Compared result;
  std::set<FileName> busy;
  TakeEvidence(at, result, busy);
  result.takes = !result.calls.empty() || result.rows;
  // Nothing is put right before a list that is at hand was judged.
  if (context.listing != nullptr) return result;
  AddActs(at, busy, result);
  if (!result.takes && result.acts.empty()) NoteLook(at, result);
  return result;
}

}  // namespace waybill::guard
