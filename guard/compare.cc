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
#include <functional>
#include <utility>

#include "migrations/kubelet/kubelet_records.h"
#include "store/base/image_spellings.h"

namespace waybill::guard {
namespace {

using Form = SeenFile::Form;
using Image = internal::StoreContent::Image;

const std::string kOverflow = "the kernel's queue of events ran over";
const std::string kUnseen = "the kubelet's folders changed while no guard saw it";
constexpr std::string_view kNobodys = "a record can't be read, and nobody knows of which image";
constexpr std::string_view kUnreadIntent = "an intent was gone before it could be read";
constexpr std::string_view kUnreadableIntent = "an intent can't be read";

// Everything on record, also what does not count any more.
const internal::Credentials& Proven(const Image& image) {
  static const internal::Credentials kNone;
  return image.row.pulled ? image.row.pulled->entries : kNone;
}

class Comparison {
 public:
  Comparison(const Look& look, const KnownFiles& files, const Known& known, const MustFind& must,
             const Context& context)
      : look_(look),
        known_(files),
        about_(known),
        must_(must),
        context_(context),
        runs_(!context.life.empty()) {}

  Compared Make() && {
    TakeDirectory();
    for (const auto& [name, file] : look_.pulled) TakeRecord(name, file);
    TakeGone();
    TakeIntents();
    TakeQueue();
    SeeToRecords();
    SeeToIntents();
    NoteMayHave();
    FindWaiting();
    // D5
    const bool has_stamps = !look_.folders.empty() && look_.folders != known_.node.folders;
    const bool has_changing =
        std::ranges::any_of(known_.records, [](const auto& one) { return one.second.changing; });
    if (result_.into.empty() && result_.acts.empty() && (has_stamps || has_changing)) {
      Into({.what = Taken::What::kFolders});
    }
    return std::move(result_);
  }

 private:
  void Into(Taken taken) { result_.into.push_back(std::move(taken)); }

  // --- The directory and the kubelet

  void TakeDirectory() {
    bool missed = false;
    if (!context_.first) {
      std::string why;
      if (look_.overflow) {  // D2
        why = kOverflow;
        watched_ = false;
      } else if (!context_.watched && !IsAsNoted(look_, known_)) {  // D1
        why = look_.too_many.empty() ? kUnseen : look_.too_many + " has too many files";
      }
      missed = !why.empty();
      // A degraded store judges nothing until an operator accepts that something is lost.
      if (missed && !context_.lost) {
        Into({.what = Taken::What::kUnrecorded, .text = std::move(why)});
      }
    }
    gap_ = missed;
    if (runs_ && missed) Into({.what = Taken::What::kLostSight});  // K4
    if (context_.first && !context_.watched && !known_.node.took_over && look_.was_used) {
      Into({.what = Taken::What::kTookOver});  // D6
    }
    if (context_.life == known_.node.life) return;
    Into({.what = Taken::What::kLife});               // D4
    for (const auto& [name, row] : known_.intents) {  // I8
      Into({.what = Taken::What::kEnded, .name = name, .stays = true});
    }
  }

  // --- Records, into the store

  // What is in a later kubelet's format counts for nothing if somebody else may have written it.
  bool IsLeft(const SeenFile& file) const {
    return file.what == SeenFile::What::kMoving || (file.what == SeenFile::What::kLaterFormat &&
                                                    file.planted.empty() && look_.wide.empty());
  }

  void NoteLater(KubeletFolder folder, const FileName& name, const SeenFile& file) {
    if (file.what != SeenFile::What::kLaterFormat) return;
    result_.later_formats.emplace_back(folder, name);
  }

  // What the file's image must have, if it must have a record.
  const MustFind::Record* WantedFor(const FileName& name) const {
    const auto at = must_.records.find(name);
    return at == must_.records.end() ? nullptr : &at->second;
  }
  Items WantedItems(const MustFind::Record& must) const {
    return ItemsOf(must.record, known_.seed);
  }

  // Whether the store has what the file says.
  static bool IsTaken(const FileRow* row, const SeenFile& file) {
    return row != nullptr && row->content == file.digest && !row->gone;
  }
  static bool IsTakenIntent(const FileRow* row, const SeenFile& file) {
    return row != nullptr && row->inode == file.inode && row->changed == file.changed;
  }

  // Whether somebody else than a kubelet may have written it: also what anybody may have put into a
  // folder, unless it is known, or says just what it must.
  bool IsPlanted(const FileName& name, const SeenFile& file) const {
    if (!file.planted.empty()) return true;  // R21
    if (file.what == SeenFile::What::kLaterFormat) return !look_.wide.empty();
    if (file.what != SeenFile::What::kRecord) return false;
    if (file.is_own()) {
      const MustFind::Record* const wanted = WantedFor(name);
      const bool opens_nothing = file.items.empty();  // R25
      if (opens_nothing || (wanted != nullptr && WantedItems(*wanted) == file.items)) return false;
    }
    // R20. What was planted stays so, whatever its folder is now.
    const FileRow* const row = known_.Record(name);
    if (row != nullptr && row->refused_planted && row->refused == file.digest) return true;
    return !look_.wide.empty() && !IsTaken(row, file);
  }
  // A record of the image that its name says, which a kubelet may have written.
  bool IsSound(const FileName& name, const SeenFile& file) const {
    return file.what == SeenFile::What::kRecord && file.about == name && !IsPlanted(name, file);
  }

  void TakeRecord(const FileName& name, const SeenFile& file) {
    if (IsLeft(file)) {  // R9
      NoteLater(KubeletFolder::kPulled, name, file);
      return;
    }
    if (!IsSound(name, file)) {
      TakeDamaged(name, file);
      return;
    }
    const FileRow* const row = known_.Record(name);
    const Image* const image = about_.Find(file.record.image_ref);
    if (file.is_own()) {
      TakeOwn(name, file, row, image);
      return;
    }
    static const Items kNone;
    const Items& may_have = row == nullptr ? kNone : row->may_have;
    const bool is_taken = IsTaken(row, file);
    if (is_taken && (image != nullptr || !IsIn(file.items, may_have))) return;
    const Items fresh = WithoutTakers(Without(file.items, may_have), may_have, image, file);
    if (!fresh.empty() && (watched_ ? MemoryIsKnown() || context_.nothing_ends  // R1, R2
                                    : CountsUnwatched(file, row, image))) {     // R3, R4
      Prove(name, file, fresh, may_have, image);
      return;
    }
    if (image == nullptr) {  // R5
      const bool waits = context_.listing == nullptr && !context_.no_list_comes;
      if (waits) {
        result_.wants_list = true;
        busy_.insert(name);
        // What it says is no longer new when the list comes.
        if (!is_taken) Seen(name, file);
        return;
      }
      if (context_.no_list_comes || context_.listing->contains(name)) {
        Into({.what = Taken::What::kPulled, .name = name, .file = &file});
        busy_.insert(name);
        return;
      }
    }
    if (!is_taken) Seen(name, file);  // R12
  }

  // Of the kubelet that wrote it: the one that runs, or that of the look before.
  bool MemoryIsKnown() const {
    const internal::KubeletNode& node = known_.node;
    const bool is_same = context_.life == node.life || node.life.empty();
    return context_.began_seen && (is_same || node.began_seen);
  }

  void TakeOwn(const FileName& name, const SeenFile& file, const FileRow* row, const Image* image) {
    const bool is_taken = IsTaken(row, file);
    if (context_.first && !file.items.empty() && !is_taken) {
      // R7: an export, or another store's guard.
      Prove(name, file, file.items, {}, image);
    } else if (context_.lost && file.items.empty() && image == nullptr &&
               file.record
                   .last_updated) {  // R8. Without a time it is of an image that is not judged.
      Into({.what = Taken::What::kPulled, .name = name, .file = &file});
      busy_.insert(name);
    } else if (!file.items.empty() && (row == nullptr || !IsIn(file.items, row->may_have))) {
      Seen(name, file);  // R24
    }
  }

  void Seen(const FileName& name, const SeenFile& file) {
    Into({.what = Taken::What::kSeen, .name = name, .file = &file});
    busy_.insert(name);
  }

  void Prove(const FileName& name, const SeenFile& file, const Items& fresh, const Items& may_have,
             const Image* image) {
    Taken taken{.what = Taken::What::kProven, .name = name, .file = &file, .watched = watched_};
    // R18. A decision adds a Secret whose hash or coordinates the kubelet knows: it proves nothing,
    // and counts as what it matched, if that counts.
    const Items counting =
        image == nullptr ? Items() : ItemsOf({.credential_mapping = image->counting}, known_.seed);
    for (const Item& item : fresh) {
      if (IsAkin(item, counting) || !IsAkin(item, may_have)) taken.items.push_back(item);
    }
    Into(std::move(taken));
    busy_.insert(name);
  }

  // R19. Where Secrets of that name are on record, or may be in memory, one was needed once: that
  // all pods may use the image is then the word of a node that may have credentials of its own.
  Items WithoutTakers(Items fresh, const Items& may_have, const Image* image,
                      const SeenFile& file) const {
    std::erase_if(fresh, [&](const Item& item) {
      if (!item.is_any_pod()) return false;
      Items before = may_have;
      if (image != nullptr) {
        before = United(before, ItemsOf({.credential_mapping = Proven(*image)}, known_.seed));
      }
      const bool was_needed = std::ranges::any_of(before, [&](const Item& one) {
        return one.image_name == item.image_name && !one.is_any_pod();
      });
      return was_needed && !(watched_ && NodeHadNone(item, file));
    });
    return fresh;
  }

  bool NodeHadNone(const Item& item, const SeenFile& file) const {
    if (!context_.node_had_none) return false;
    return std::ranges::any_of(file.record.credential_mapping, [&](const auto& entry) {
      const ImagePulledRecord only{.credential_mapping = {entry}};
      const Items items = ItemsOf(only, known_.seed);
      return std::ranges::find(items, item) != items.end() && context_.node_had_none(entry.first);
    });
  }

  // What was written while nobody watched, if a kubelet ran then; and not an older copy that
  // somebody put back (R10). A degraded store may have lost what was revoked (R11).
  bool CountsUnwatched(const SeenFile& file, const FileRow* row, const Image* image) const {
    if (!(gap_ || context_.first) || context_.lost) return false;
    const std::int64_t time = file.record.last_updated ? file.record.last_updated->seconds : 0;
    const bool was_taken = row != nullptr && row->content && !row->gone;
    if (was_taken && time < row->time) return false;
    if (image == nullptr) return true;
    const auto& pulled = image->row.pulled;
    const std::int64_t stored = pulled && pulled->last_updated ? pulled->last_updated->seconds : 0;
    // A list may have closed it in the very second in which a kubelet proved it.
    const bool only_closed = pulled && pulled->closed_by == internal::ClosedBy::kList &&
                             Proven(*image).empty() && pulled->private_names.empty();
    return time > stored || (time == stored && (row != nullptr || only_closed));
  }

  void TakeDamaged(const FileName& name, const SeenFile& file) {
    const FileRow* const row = known_.Record(name);
    const bool is_planted = IsPlanted(name, file);
    if (row != nullptr && row->refused == file.digest && row->refused_planted == is_planted) return;
    if (context_.listing == nullptr && !context_.no_list_comes) {
      result_.wants_list = result_.waits_for_list = true;
      return;
    }
    Taken damaged{.what = Taken::What::kDamaged, .name = name, .file = &file};
    damaged.stays = is_planted;
    if (auto ref = about_.RefOf(name)) {  // R6
      damaged.text = *std::move(ref);
    } else if (context_.no_list_comes && file.about == name) {
      damaged.text = file.record.image_ref;
    } else {  // R13
      Into({.what = Taken::What::kUnrecorded, .text = std::string(kNobodys)});
    }
    Into(std::move(damaged));
    busy_.insert(name);
  }

  void TakeGone() {
    if (!look_.too_many.empty()) return;
    for (const auto& [name, row] : known_.records) {
      if (row.gone || look_.pulled.contains(name)) continue;
      Into({.what = Taken::What::kGone, .name = name});  // K7
    }
  }

  // --- Intents, into the store

  void TakeIntents() {
    for (const auto& [string, count] : must_.running) {  // I13
      const FileRow* const row = known_.Intent(internal::RecordNameOf(string));
      if (row == nullptr || (row->since == 0 && row->ended == 0)) {
        Into({.what = Taken::What::kEndedWithoutRow, .text = string});
      }
    }
    for (const auto& [name, file] : look_.pulling) TakeIntent(name, file);
    for (const auto& [name, row] : known_.intents) {  // I3
      if (!look_.pulling.contains(name) && row.ended == 0) {
        IntoIntent({.what = Taken::What::kEnded, .name = name});
      }
    }
  }

  // Its file waits for the next round.
  void IntoIntent(Taken taken) {
    busy_.insert(taken.name);
    Into(std::move(taken));
  }

  void TakeIntent(const FileName& name, const SeenFile& file) {
    if (file.what == SeenFile::What::kMoving) return;
    if (file.planted.empty()) NoteLater(KubeletFolder::kPulling, name, file);
    const FileRow* const row = known_.Intent(name);
    if (IsTakenIntent(row, file)) {
      const bool is_old = runs_ && row->since != 0 && context_.now - row->since > context_.window;
      if (is_old) Into({.what = Taken::What::kEnded, .name = name, .stays = true});  // I9
      return;
    }
    if (file.what != SeenFile::What::kIntent || file.about != name) {
      TakeUnreadableIntent(name, file);
    } else if (file.is_own()) {
      if (context_.lost && !must_.unresolved.contains(name)) {  // I7
        Into({.what = Taken::What::kUnknownEnd, .text = file.image});
      }
      if (row != nullptr && row->ended == 0) {
        Into({.what = Taken::What::kEnded, .name = name});  // I3
      }
    } else if (runs_ && (!context_.began || file.changed >= *context_.began)) {  // I1
      const auto written = look_.written.find({KubeletFolder::kPulling, name});
      const int writes = written == look_.written.end() ? 0 : written->second;
      Into({.what = Taken::What::kBegan,
            .name = name,
            .text = file.image,
            .file = &file,
            .watched = watched_,
            .several = writes != 1});
    } else {  // I2, I11
      Into({.what = Taken::What::kUnknownEnd, .name = name, .text = file.image, .file = &file});
    }
  }

  void TakeUnreadableIntent(const FileName& name, const SeenFile& file) {  // I5
    const auto string = about_.StringOf(name);
    if (file.what == SeenFile::What::kIntent) {
      Into({.what = Taken::What::kUnknownEnd, .name = name, .text = file.image, .file = &file});
    } else if (file.what == SeenFile::What::kLaterFormat || !string) {
      Into({.what = Taken::What::kUnrecorded, .text = std::string(kUnreadableIntent)});
      Into({.what = Taken::What::kUnreadableIntent, .name = name, .file = &file});
    } else {
      Into({.what = Taken::What::kUnknownEnd, .name = name, .text = *string, .file = &file});
    }
  }

  // What came and went before it could be read.
  void TakeQueue() {
    for (const auto& [file, times] : look_.written) {
      const auto& [folder, name] = file;
      if (folder == KubeletFolder::kPulled) {
        const auto at = look_.pulled.find(name);
        const bool is_kubelets = at != look_.pulled.end() && !at->second.is_own() &&
                                 (IsLeft(at->second) || IsSound(name, at->second));
        if (runs_ && !is_kubelets) Into({.what = Taken::What::kLostSight});  // R16
        continue;
      }
      if (look_.pulling.contains(name)) continue;
      auto string = about_.StringOf(name);  // I4
      const FileRow* const row = known_.Intent(name);
      if (!string && row != nullptr && !row->image.empty()) string = row->image;
      if (string) {
        Into({.what = Taken::What::kUnknownEnd, .text = *std::move(string)});
      } else {
        Into({.what = Taken::What::kUnrecorded, .text = std::string(kUnreadIntent)});
      }
    }
  }

  // --- The files of records

  std::string ContentOf(const ImagePulledRecord& record, bool is_closing) const {
    // An entry without credentials says nothing.
    ImagePulledRecord said = record;
    std::erase_if(said.credential_mapping, [](const auto& one) { return one.second.empty(); });
    std::string json = EncodePulledRecord(said, context_.version);
    return is_closing ? internal::ClosingForm(std::move(json)) : internal::OwnForm(std::move(json));
  }
  // While the guard stays, what only closes is a file that no kubelet reads, so none remembers it.
  bool Closes(const Items& items) const {
    return items.empty() && context_.live && context_.verifies_recorded;
  }

  void Add(Act::What what, Act::Why why, const FileName& name, const SeenFile* was,
           const ImagePulledRecord& record, bool keeps) {
    Act act{.what = what, .why = why, .name = name, .was = was, .keeps = keeps};
    act.subject = record.image_ref;
    if (what != Act::What::kRemove) {
      act.items = ItemsOf(record, known_.seed);
      act.content = ContentOf(record, Closes(act.items));
    }
    result_.acts.push_back(std::move(act));
  }

  void SeeToRecords() {
    for (const auto& [name, must] : must_.records) {
      const auto at = look_.pulled.find(name);
      if (!busy_.contains(name)) {
        SeeToWanted(name, must, at == look_.pulled.end() ? nullptr : &at->second);
      }
    }
    for (const auto& [name, file] : look_.pulled) {
      if (busy_.contains(name) || must_.records.contains(name) || IsLeft(file)) continue;
      const auto preloaded = must_.preloaded.find(name);
      if (preloaded != must_.preloaded.end()) {
        SeeToPreloaded(name, file, preloaded->second);
      } else if (!IsSound(name, file)) {
        SeeToNobodys(name, file);
      } else {
        SeeToUnlisted(name, file);
      }
    }
  }

  Act::Why WhyUnsound(const FileName& name, const SeenFile& file) const {
    return IsPlanted(name, file) ? Act::Why::kPlanted : Act::Why::kUnreadable;
  }

  void SeeToWanted(const FileName& name, const MustFind::Record& must, const SeenFile* file) {
    if (file == nullptr) {  // F1
      if (!look_.too_many.empty()) return;
      Add(Act::What::kCreate, Act::Why::kMissing, name, nullptr, must.record, false);
      result_.acts.back().was_there = known_.Record(name) != nullptr;
      return;
    }
    if (IsLeft(*file)) return;    // F9
    if (!IsSound(name, *file)) {  // F2
      Add(Act::What::kExchange, WhyUnsound(name, *file), name, file, must.record, true);
      return;
    }
    const Items wanted = WantedItems(must);
    if (file->items != wanted) {  // F4
      Add(Act::What::kExchange, Act::Why::kStale, name, file, must.record, !file->is_own());
      return;
    }
    const Form form = Closes(wanted) ? Form::kClosing : Form::kOwn;
    if (file->is_own() && wanted.empty() && file->form != form && (!runs_ || !context_.live)) {
      ImagePulledRecord same = file->record;  // F3
      Add(Act::What::kExchange, Act::Why::kForm, name, file, same, false);
    }
  }

  void SeeToPreloaded(const FileName& name, const SeenFile& file,
                      const MustFind::Preloaded& preloaded) {
    const ImagePulledRecord about{.image_ref = preloaded.ref};
    if (!IsSound(name, file)) {  // F5
      Add(Act::What::kRemove, WhyUnsound(name, file), name, &file, about, true);
    } else if (!runs_ || file.items.empty() || !preloaded.is_recorded) {  // F7, F8
      const bool keeps = !(file.is_own() && file.items.empty());
      Add(Act::What::kRemove, Act::Why::kPreloaded, name, &file, about, keeps);
    }
  }

  void SeeToNobodys(const FileName& name, const SeenFile& file) {
    const bool is_planted = IsPlanted(name, file);
    if (!context_.had_list && !context_.no_list_comes) return;
    if (is_planted && file.what == SeenFile::What::kRecord && file.about == name) {
      // Its image may come back, and must not pass for preloaded then.
      LeaveWhatCounts(Act::Why::kPlanted, name, file);
    } else if (context_.had_list) {
      if (!runs_ || is_planted) {  // F6
        Add(Act::What::kRemove, is_planted ? Act::Why::kPlanted : Act::Why::kOfNobody, name, &file,
            file.record, true);
      }
    } else if (is_planted) {  // F13: until a list tells of which image it is
      Act act{.what = Act::What::kExchange,
              .why = Act::Why::kPlanted,
              .name = name,
              .was = &file,
              .content = std::string(internal::kClosingLine),
              .keeps = true};
      result_.acts.push_back(std::move(act));
    }
  }

  // The image is away, or of another ref: a file may be there, with what counts at most.
  void SeeToUnlisted(const FileName& name, const SeenFile& file) {
    const bool ends = !context_.live && file.form == Form::kClosing;
    if (!context_.had_list && !ends) return;  // F12
    const Image* const image = about_.Find(file.record.image_ref);
    if (file.form == Form::kClosing) {  // F10
      if (image != nullptr && image->row.pulled && context_.live) return;
      Act act{.what = Act::What::kExchange, .why = Act::Why::kForm, .name = name, .was = &file};
      act.subject = file.record.image_ref;
      act.content = ContentOf(file.record, false);
      result_.acts.push_back(std::move(act));
      return;
    }
    if (!runs_) LeaveWhatCounts(Act::Why::kUnlisted, name, file);  // F11
  }

  void LeaveWhatCounts(Act::Why why, const FileName& name, const SeenFile& file) {
    // A file under another ref of a known image may have what counts of it.
    const Image* const image = about_.Find(file.record.image_ref);
    ImagePulledRecord counts = file.record;
    counts.credential_mapping.clear();
    if (image != nullptr) {
      const Items items = ItemsOf({.credential_mapping = image->counting}, known_.seed);
      counts = Only(file.record, items, known_.seed);
    }
    if (why == Act::Why::kUnlisted && ItemsOf(counts, known_.seed) == file.items) return;
    Act act{.what = Act::What::kExchange,
            .why = why,
            .name = name,
            .was = &file,
            .items = ItemsOf(counts, known_.seed),
            .keeps = true};
    act.subject = file.record.image_ref;
    // In the kubelet's form where the store does not know what it says.
    act.content = why == Act::Why::kPlanted ? EncodePulledRecord(counts, context_.version)
                                            : ContentOf(counts, false);
    result_.acts.push_back(std::move(act));
  }

  // --- The files of intents

  void SeeToIntents() {
    for (const auto& [name, string] : must_.intents) {
      if (busy_.contains(name)) continue;
      const auto at = look_.pulling.find(name);
      Act act{.what = Act::What::kCreate,
              .why = Act::Why::kIntent,
              .folder = KubeletFolder::kPulling,
              .name = name};
      act.subject = string;
      if (at != look_.pulling.end()) {  // G2
        const SeenFile& file = at->second;
        const bool is_there = file.what == SeenFile::What::kIntent && file.about == name;
        if (IsLeft(file) || (is_there && file.planted.empty())) continue;
        act.what = Act::What::kExchange;
        act.was = &file;
      } else if (const FileRow* const row = known_.Intent(name);
                 row != nullptr && row->ended != 0 && must_.running.contains(string)) {
        continue;  // the next list tells whether this pull brought its image
      }
      act.content = internal::OwnForm(EncodePullIntent({.image = string}, context_.version));
      result_.acts.push_back(std::move(act));  // G1
    }
    for (const auto& [name, file] : look_.pulling) {
      if (must_.intents.contains(name) || IsLeft(file)) continue;
      const bool is_ours =
          file.is_own() && file.what == SeenFile::What::kIntent && file.about == name;
      const FileRow* const row = known_.Intent(name);
      const bool is_taken = IsTakenIntent(row, file);
      // G4, G3
      if (!is_ours && ((runs_ && file.planted.empty()) || !is_taken)) continue;
      result_.acts.push_back({.what = Act::What::kRemove,
                              .why = Act::Why::kNoIntent,
                              .folder = KubeletFolder::kPulling,
                              .name = name,
                              .was = &file});
    }
  }

  // --- What a kubelet may have in memory by a change, whether one is seen to run or not: one may
  // begin before the act. What waybill writes, a kubelet may write again as its own (K6).
  void NoteMayHave() {
    for (const Act& act : result_.acts) {
      if (act.folder != KubeletFolder::kPulled) continue;
      MayHave note{.name = act.name};
      if (act.was != nullptr && act.was->is_read_as_record()) {
        if (act.was->about == act.name) {  // K3
          note.items = act.was->items;
          note.changing = true;
        } else if (!act.was->about.empty()) {  // K8: a kubelet keeps it by the ref in it
          result_.may_have.push_back({act.was->about, act.was->items, true});
        }
      } else if (act.was != nullptr && act.was->is_read_unknown()) {
        result_.may_have.push_back({.name = act.name, .unknown = true});
      }
      note.items = United(note.items, act.items);
      if (note.changing || !note.items.empty()) result_.may_have.push_back(std::move(note));
    }
  }

  // U1
  void FindWaiting() {
    if (!runs_) return;
    for (const auto& [name, row] : known_.records) {
      if (row.may_have.empty()) continue;
      const auto preloaded = must_.preloaded.find(name);
      if (preloaded != must_.preloaded.end()) {
        result_.waiting.insert(preloaded->second.ref);
        continue;
      }
      const MustFind::Record* const wanted = WantedFor(name);
      if (wanted != nullptr && IsIn(row.may_have, WantedItems(*wanted))) continue;
      if (const auto ref =
              wanted != nullptr ? std::optional(wanted->record.image_ref) : about_.RefOf(name)) {
        result_.waiting.insert(*ref);
      }
    }
  }

  const Look& look_;
  const KnownFiles& known_;
  const Known& about_;
  const MustFind& must_;
  const Context& context_;
  const bool runs_;
  bool watched_ = context_.watched;
  bool gap_ = false;
  std::set<FileName> busy_;  // with something to take over: their files wait for the next round
  Compared result_;
};

}  // namespace

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

Compared Compare(const Look& look, const KnownFiles& files, const Known& known,
                 const MustFind& must, const Context& context) {
  return Comparison(look, files, known, must, context).Make();
}

}  // namespace waybill::guard
