// Records, in the files of pulled/: what these must say, and the two directions.

#ifndef WAYBILL_GUARD_RECORDS_H_
#define WAYBILL_GUARD_RECORDS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "guard/kept_files.h"
#include "guard/life.h"
#include "guard/listed_images.h"
#include "guard/pulls.h"
#include "guard/session.h"

namespace waybill::guard {

// What the files must say, by the store and the last list of images.
class RecordPlan {
 public:
  RecordPlan(Life& life, const ListedImages& listed) : life_(life), listed_(listed) {}

  Result<void> Make();

  // By the names of the files.
  const std::map<std::string, ImagePulledRecord>& records() const { return records_; }
  // nullptr: none is planned.
  const ImagePulledRecord* Find(const std::string& name) const;
  // Names of files that there must not be, since the ledger opens their images.
  const std::set<std::string>& preloaded() const { return preloaded_; }
  // What was recorded since, unless there must be no file.
  void Set(const std::string& name, ImagePulledRecord record);

  // The content of the file for a record; in ClosingForm if it only closes.
  std::string FileOf(ImagePulledRecord record) const;

 private:
  Result<std::optional<ImagePulledRecord>> RecordFor(const ListedImage& image) const;

  Life& life_;
  const ListedImages& listed_;
  std::map<std::string, ImagePulledRecord> records_;
  std::set<std::string> preloaded_;
};

// From the files into the store.
//
// A credential is taken only where the kubelet can have proven it: while the guard watches, or in a
// file that is not older than what the store has. If an earlier copy of the file may have been put
// back, it only shows that the image was pulled.
class RecordsTakenOver {
 public:
  RecordsTakenOver(Life& life, RecordPlan& plan, Pulls& pulls)
      : life_(life), plan_(plan), pulls_(pulls) {}

  // Takes over what is in pulled/. false: some of it, in a hurry.
  Result<bool> TakeOverAll();
  Result<void> TakeOver(const std::string& name);
  // What was read from the file of that name.
  Result<void> TakeOverContent(const std::string& name, const ImagePulledRecord& record);
  // The file was removed.
  Result<void> Gone(const std::string& name);

  // Before a list is judged: takes over records of its images that were left to it. Without a list
  // (nullptr) any of them may be about an image on the node.
  Result<void> TakeOverUnproven(const std::vector<ListedImage>* images);
  // Likewise: finds out which images unreadable files are about, and closes them.
  Result<void> CloseDamaged(const std::vector<ListedImage>& images);

  // A record that nobody has time to take over; and one that was left like that. Not `believed`: it
  // only shows that its image was pulled.
  Result<void> LeaveToNext(const std::string& name, Left& left);
  Result<void> TakeOverLeft(ImagePulledRecord record, bool believed);

  // The part of a record in a file that is new since that was seen last. The kubelet keeps in
  // memory, and writes again, credentials that the store has forgotten.
  ImagePulledRecord NewIn(const std::string& name, const ImagePulledRecord& record) const;
  // A kubelet that starts later knows only this.
  void Saw(const std::string& name, const ImagePulledRecord& record) { seen_[name] = record; }
  // The guard changed a record that the kubelet had.
  void NoteRewritten(const std::string& name) { rewritten_[name] = life_.Now(); }
  // A kubelet begins with what the files say.
  void KubeletStarted();

  // Records that vanished since this was last asked: the next list tells whether rightly.
  std::set<std::string> TakeRemoved() { return std::exchange(removed_, {}); }

 private:
  ImagePulledRecord Seen(const std::string& name) const;
  Result<void> Close(const std::string& ref);
  Result<bool> Put(const ImagePulledRecord& record, const std::string& what,
                   const ProofTerms& terms = {});
  // Of what a kubelet has proven just now.
  ProofTerms TermsOf(const ImagePulledRecord& proven) const;

  Life& life_;
  RecordPlan& plan_;
  Pulls& pulls_;
  // By file name: what each record said when it was last read. What the kubelet added since tells
  // whether a pull wrote it.
  std::map<std::string, ImagePulledRecord> seen_;
  std::map<std::string, std::int64_t> rewritten_;  // when; nanoseconds since the boot
  std::set<std::string> removed_;
  std::set<std::string> damaged_;  // can't be read
  // Without credentials, and not known to the store: if the image is gone, such a record must not
  // count for another one.
  std::vector<ImagePulledRecord> unproven_;
};

// From the plan into the files. Nothing that a kubelet wrote meanwhile is overwritten unread, and
// what is taken away is kept (kept_files.h).
class RecordsPutRight {
 public:
  RecordsPutRight(Life& life, const ListedImages& listed, const RecordPlan& plan,
                  RecordsTakenOver& taken_over)
      : life_(life),
        listed_(listed),
        plan_(plan),
        taken_over_(taken_over),
        kept_(life.image_manager / kOwnFolder) {}

  Result<void> PutRight();
  // Gives closing records the form that is right now (RecordPlan::FileOf).
  Result<void> SetForms();
  // Says how many records the first list had no image for.
  void TellUnlisted() const;
  Result<void> BeginKeeping() { return kept_.Begin(); }

 private:
  Result<void> Put(const std::string& name, const ImagePulledRecord& planned);
  Result<void> Make(const std::string& name, const ImagePulledRecord& planned);
  Result<void> Rewrite(const std::string& name, const RecordFile& file,
                       const ImagePulledRecord& wanted);
  Result<void> SetForm(const std::string& name, const RecordFile& file) const;
  Result<void> Sweep(const std::string& name);
  bool MustGo(const std::string& name, const ImagePulledRecord* there) const;
  Result<void> TakeAway(const std::string& name, const RecordFile& file);
  Result<void> SeeToUnlisted(const std::string& name, const RecordFile& file,
                             const ImagePulledRecord& there);
  Result<void> SeeToPlanted(const std::string& name, const RecordFile& file);
  Result<void> LeaveWhatCounts(const std::string& name, const RecordFile& file,
                               const ImagePulledRecord& there);
  bool IsUnknown(const ImagePulledRecord& record) const;
  void WaitsForKubelet(const std::string& image_ref);
  std::optional<std::string> KeepAside(const std::string& name, const RecordFile& file);

  Life& life_;
  const ListedImages& listed_;
  const RecordPlan& plan_;
  RecordsTakenOver& taken_over_;
  KeptFiles kept_;
  std::set<std::string> named_;  // files of unlisted images, said to be
};

}  // namespace waybill::guard

#endif  // WAYBILL_GUARD_RECORDS_H_
