// The lower half of the decision table (compare.cc): what becomes of the files.

#include <algorithm>
#include <string>
#include <utility>

#include "guard/moment.h"
#include "migrations/kubelet_files/kubelet_records.h"

namespace waybill::guard {
namespace {

using Form = SeenFile::Form;
using Image = internal::StoreContent::Image;
using What = Act::What;
using Why = Act::Why;

class Acts {
 public:
  Acts(const Moment& at, const std::set<FileName>& busy, Compared& result)
      : at_(at), look_(at.look), context_(at.context), busy_(busy), result_(result) {}

  void Find() {
    SeeToRecords();
    SeeToIntents();
    NoteMayHave();
    FindWaiting();
  }

 private:
  Act& Add(What what, Why why, const FileName& name, const SeenFile* was, bool keeps) {
    return result_.acts.emplace_back(
        Act{.what = what, .why = why, .name = name, .was = was, .keeps = keeps});
  }
  void Write(What what, Why why, const FileName& name, const SeenFile* was,
             const ImagePulledRecord& record, bool keeps) {
    Act& act = Add(what, why, name, was, keeps);
    act.subject = record.image_ref;
    act.items = at_.ItemsOf(record.credential_mapping);
    act.content = ContentOf(record, Closes(act.items));
  }
  void Remove(Why why, const FileName& name, const SeenFile& was, const std::string& ref,
              bool keeps) {
    Add(What::kRemove, why, name, &was, keeps).subject = ref;
  }

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

  // --- Records

  void SeeToRecords() {
    for (const auto& [name, must] : at_.must.records) {
      const auto found = look_.pulled.find(name);
      if (busy_.contains(name)) continue;
      SeeToWanted(name, must, found == look_.pulled.end() ? nullptr : &found->second);
    }
    for (const auto& [name, file] : look_.pulled) {
      if (busy_.contains(name) || at_.must.records.contains(name) || at_.IsLeft(file)) continue;
      const auto preloaded = at_.must.preloaded.find(name);
      if (preloaded != at_.must.preloaded.end()) {
        SeeToPreloaded(name, file, preloaded->second);
      } else if (!at_.IsSound(name, file)) {
        SeeToNobodys(name, file);
      } else {
        SeeToUnlisted(name, file);
      }
    }
  }

  Why WhyUnsound(const FileName& name, const SeenFile& file) const {
    return at_.IsPlanted(name, file) ? Why::kPlanted : Why::kUnreadable;
  }

  void SeeToWanted(const FileName& name, const MustFind::Record& must, const SeenFile* file) {
    if (file == nullptr) {  // F1
      if (!look_.too_many.empty()) return;
      Write(What::kCreate, Why::kMissing, name, nullptr, must.record, false);
      result_.acts.back().was_there = at_.files.FindRecord(name) != nullptr;
      return;
    }
    if (at_.IsLeft(*file)) return;    // F9
    if (!at_.IsSound(name, *file)) {  // F2
      Write(What::kExchange, WhyUnsound(name, *file), name, file, must.record, true);
      return;
    }
    const Items wanted = at_.WantedItems(must);
    if (file->items != wanted) {  // F4
      Write(What::kExchange, Why::kStale, name, file, must.record, !file->is_own());
      return;
    }
    const Form form = Closes(wanted) ? Form::kClosing : Form::kOwn;
    if (file->is_own() && wanted.empty() && file->form != form &&
        (!at_.runs() || !context_.live)) {  // F3
      Write(What::kExchange, Why::kForm, name, file, file->record, false);
    }
  }

  void SeeToPreloaded(const FileName& name, const SeenFile& file,
                      const MustFind::Preloaded& preloaded) {
    if (!at_.IsSound(name, file)) {  // F5
      Remove(WhyUnsound(name, file), name, file, preloaded.ref, true);
    } else if (!at_.runs() || file.items.empty() || !preloaded.is_recorded) {  // F7, F8
      const bool keeps = !(file.is_own() && file.items.empty());
      Remove(Why::kPreloaded, name, file, preloaded.ref, keeps);
    }
  }

  void SeeToNobodys(const FileName& name, const SeenFile& file) {
    const bool is_planted = at_.IsPlanted(name, file);
    if (!context_.had_list && !context_.no_list_comes) return;
    if (is_planted && file.what == SeenFile::What::kRecord && file.about == name) {
      // Its image may come back, and must not pass for preloaded then.
      LeaveWhatCounts(Why::kPlanted, name, file);
    } else if (context_.had_list) {
      if (at_.runs() && !is_planted) return;
      Remove(is_planted ? Why::kPlanted : Why::kOfNobody, name, file, file.record.image_ref,
             true);           // F6
    } else if (is_planted) {  // F13: until a list tells of which image it is
      Add(What::kExchange, Why::kPlanted, name, &file, true).content =
          std::string(internal::kClosingLine);
    }
  }

  // The image is away, or of another ref: a file may be there, with what counts at most.
  void SeeToUnlisted(const FileName& name, const SeenFile& file) {
    const bool is_closing = file.form == Form::kClosing;
    if (!context_.had_list && (context_.live || !is_closing)) return;  // F12
    if (!is_closing) {
      if (!at_.runs()) LeaveWhatCounts(Why::kUnlisted, name, file);  // F11
      return;
    }
    const Image* const image = at_.known.Find(file.record.image_ref);
    if (image != nullptr && image->row.pulled && context_.live) return;
    Act& act = Add(What::kExchange, Why::kForm, name, &file, false);  // F10
    act.subject = file.record.image_ref;
    act.content = ContentOf(file.record, false);
  }

  void LeaveWhatCounts(Why why, const FileName& name, const SeenFile& file) {
    // A file under another ref of a known image may have what counts of it.
    const Image* const image = at_.known.Find(file.record.image_ref);
    const Items counting = image == nullptr ? Items() : at_.ItemsOf(image->counting);
    const ImagePulledRecord counts = Only(file.record, counting, at_.files.seed);
    Items items = at_.ItemsOf(counts.credential_mapping);
    if (why == Why::kUnlisted && items == file.items) return;
    Act& act = Add(What::kExchange, why, name, &file, true);
    act.items = std::move(items);
    act.subject = file.record.image_ref;
    // In the kubelet's form where the store does not know what it says.
    act.content = why == Why::kPlanted ? EncodePulledRecord(counts, context_.version)
                                       : ContentOf(counts, false);
  }

  // --- Intents

  void SeeToIntents() {
    for (const auto& [name, string] : at_.must.intents) {
      if (busy_.contains(name)) continue;
      const auto found = look_.pulling.find(name);
      const SeenFile* const file = found == look_.pulling.end() ? nullptr : &found->second;
      const FileRow* const row = at_.files.FindIntent(name);
      if (file != nullptr) {
        const bool is_there = file->what == SeenFile::What::kIntent && file->about == name;
        if (at_.IsLeft(*file) || (is_there && file->planted.empty())) continue;
      } else if (row != nullptr && row->ended != 0 && at_.must.running.contains(string)) {
        continue;  // the next list tells whether this pull brought its image
      }
      const What what = file == nullptr ? What::kCreate : What::kExchange;  // G1, G2
      Act& act = Add(what, Why::kIntent, name, file, false);
      act.folder = KubeletFolder::kPulling;
      act.subject = string;
      act.content = internal::OwnForm(EncodePullIntent({.image = string}, context_.version));
    }
    for (const auto& [name, file] : look_.pulling) {
      if (at_.must.intents.contains(name) || at_.IsLeft(file)) continue;
      const bool is_ours =
          file.is_own() && file.what == SeenFile::What::kIntent && file.about == name;
      const bool is_done =
          IsTakenIntent(at_.files.FindIntent(name), file) && !(at_.runs() && file.planted.empty());
      if (!is_ours && !is_done) continue;  // G4, G3
      Add(What::kRemove, Why::kNoIntent, name, &file, false).folder = KubeletFolder::kPulling;
    }
  }

  // What a kubelet may have in memory by a change, whether one is seen to run or not: one may begin
  // before the act. What waybill writes, a kubelet may write again as its own (K6).
  void NoteMayHave() {
    for (const Act& act : result_.acts) {
      if (act.folder != KubeletFolder::kPulled) continue;
      const bool is_read = act.was != nullptr && act.was->is_read_as_record();
      if (is_read && !act.was->about.empty()) {
        MayHave(act.was->about, act.was->items, true);  // K3, K8: it keeps it by the ref in it
      } else if (act.was != nullptr && act.was->is_read_unknown()) {
        internal::KubeletNode& node = result_.Rows(at_.files).node;
        node.read_unknown = true;
        node.began_seen = false;
      }
      if (!act.items.empty()) MayHave(act.name, act.items, false);
    }
  }

  void MayHave(const FileName& name, const Items& items, bool is_changing) {
    FileRow& row = result_.Rows(at_.files).Record(name);
    row.may_have = United(row.may_have, items);
    row.changing = row.changing || is_changing;
    // Waybill's own file comes into the place of one that is gone, and a kubelet may read it.
    if (std::exchange(row.gone, false)) row.content.reset();
  }

  // U1
  void FindWaiting() {
    if (!at_.runs()) return;
    for (const auto& [name, row] : at_.files.records) {
      if (row.may_have.empty()) continue;
      const auto preloaded = at_.must.preloaded.find(name);
      if (preloaded != at_.must.preloaded.end()) {
        result_.waiting.insert(preloaded->second.ref);
        continue;
      }
      const MustFind::Record* const wanted = at_.WantedFor(name);
      if (wanted != nullptr && IsIn(row.may_have, at_.WantedItems(*wanted))) continue;
      if (const auto ref =
              wanted != nullptr ? std::optional(wanted->record.image_ref) : at_.known.RefOf(name)) {
        result_.waiting.insert(*ref);
      }
    }
  }

  const Moment& at_;
  const Look& look_;
  const Context& context_;
  const std::set<FileName>& busy_;
  Compared& result_;
};

}  // namespace

void AddActs(const Moment& at, const std::set<FileName>& busy, Compared& result) {
  Acts(at, busy, result).Find();
}

}  // namespace waybill::guard
