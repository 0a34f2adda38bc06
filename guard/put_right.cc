#include "guard/put_right.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "store/base/quote.h"
#include "store/base/sha256.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::guard {

using internal::QuoteForMessage;
using What = Act::What;
using Why = Act::Why;

Result<bool> PutRight::operator()(std::vector<Act> acts, bool watched) {
  stays_.clear();
  if (acts.empty()) {
    told_.clear();
    life_.status.cannot_write.clear();
    return false;
  }
  std::ranges::stable_sort(acts, {}, [](const Act& act) {
    return std::tuple(act.what == What::kRemove, act.folder != KubeletFolder::kPulling, act.what);
  });
  bool again = false;
  std::string problem;
  for (const Act& act : acts) {
    auto done = Do(act, watched);
    again = again || done.value_or(false);
    if (done) continue;
    problem = done.error().ToString();
    TellOnce("can't put right " + act.name + ": " + problem);
  }
  life_.status.cannot_write = problem;
  told_ = stays_;
  if (!again) return false;
  TRY(life_.pulling.SyncFolder());
  TRY(life_.pulled.SyncFolder());
  return true;
}

void PutRight::TellOnce(const std::string& problem) {
  stays_.insert(problem);
  if (!told_.contains(problem)) life_.Log(LogLevel::kError, problem);
}

// Returns whether to look again.
Result<bool> PutRight::Do(const Act& act, bool watched) {
  const RecordFiles& files = life_.FilesOf(act.folder);
  std::string kept;
  if (act.keeps) {
    auto copy = Keep(act);
    // Without a copy nothing goes, but what somebody else put there.
    if (!copy && act.what == What::kRemove && act.why != Why::kPlanted) return false;
    kept = std::move(copy).value_or("");
  }
  FileWas was;
  if (act.was != nullptr) {
    was = {act.was->digest, act.was->planted.empty() ? 0 : act.was->inode};
  }
  bool changed = false;
  switch (act.what) {
    case What::kCreate:
      changed = TRY(files.Create(act.name, act.content));
      break;
    case What::kExchange:
      changed = TRY(files.Replace(act.name, was, act.content));
      break;
    case What::kRemove:
      changed = TRY(files.Remove(act.name, was));
      break;
  }
  // If not, the kubelet was faster: the next look takes that over.
  if (!changed) return true;
  ++(act.what == What::kRemove ? life_.status.files_removed : life_.status.files_written);
  Tell(act, watched, kept);
  return true;
}

// Returns the words that say where a copy of the file is; empty: there is nothing to keep. nullopt:
// it can't be kept, which was logged.
std::optional<std::string> PutRight::Keep(const Act& act) {
  const std::filesystem::path path = life_.pulled.path() / act.name;
  const auto bytes = internal::ReadKubeletBytes(path, kMaxRecordFileBytes);
  if (!bytes || bytes->content.empty()) return "";
  const auto digest = internal::Sha256(bytes->content);
  // It changed: so the act will not be done.
  if (!digest || *digest != act.was->digest) return "";
  auto kept = kept_.Keep(act.name, bytes->content);
  if (kept && *kept) {
    ++life_.status.files_kept;
    return "; it is kept as " + (*kept)->string() + " until the next start but one";
  }
  TellOnce("can't keep a copy of " + path.string() + ": " +
           (kept ? "waybill-guard has " + std::to_string(kMaxKeptFiles) + " files or " +
                       std::to_string(kMaxKeptBytes >> 20U) + " MiB of what was kept"
                 : kept.error().ToString()));
  return std::nullopt;
}

void PutRight::Tell(const Act& act, bool watched, const std::string& kept) {
  const std::string no_word = act.was == nullptr || act.was->planted.empty()
                                  ? " could not be read ("
                                  : " is no kubelet's word (";
  const std::string problem = act.was == nullptr         ? ""
                              : act.was->planted.empty() ? act.was->problem
                                                         : act.was->planted;
  if (act.what == What::kRemove) {
    if (act.folder == KubeletFolder::kPulled) TellRemoved(act, kept);
    return;
  }
  switch (act.why) {
    case Why::kMissing:
      if (watched && act.was_there) {
        life_.put_back.insert(act.subject);
      } else if (!watched && !act.items.empty()) {
        life_.Found(HoleKind::kRecordLost, act.subject, "its record was gone; it is written again");
      }
      return;
    case Why::kUnreadable:
    case Why::kPlanted:
      life_.Found(HoleKind::kRecordDamaged, act.subject,
                  "its record" + no_word + problem + "); it is written again" +
                      (act.items.empty() ? ", without credentials" : "") + kept);
      return;
    case Why::kStale:
      life_.Found(HoleKind::kRecordStale, act.subject,
                  "its record had credentials that do not count; it is written again" + kept);
      return;
    case Why::kUnlisted:
      life_.Found(HoleKind::kRecordStale, act.subject,
                  "the runtime does not list it, and its record had credentials that do not count; "
                  "it is written again" +
                      kept);
      return;
    case Why::kIntent:
      // That of a pull that ended just now comes again: that is no hole.
      if (life_.ended_now.contains(act.name)) return;
      life_.Found(watched && act.was == nullptr ? HoleKind::kIntentDropped : HoleKind::kIntentLost,
                  act.subject,
                  watched && act.was == nullptr
                      ? "the kubelet dropped the intent of a pull that may still bring it"
                      : "its intent was gone or damaged; it is written again");
      return;
    case Why::kForm:
    case Why::kPreloaded:
    case Why::kOfNobody:
    case Why::kNoIntent:
      return;
  }
}

void PutRight::TellRemoved(const Act& act, const std::string& kept) const {
  const bool is_planted = !act.was->planted.empty();
  std::string why = ": its image came without the kubelet, and is open to all pods";
  if (act.why != Why::kPreloaded) {
    why = (is_planted ? ": " + act.was->planted : std::string(": it can't be read")) +
          ", and is about no image that the runtime lists";
  }
  life_.Log(kept.empty() ? LogLevel::kInfo : LogLevel::kNotice,
            "removed " + (life_.pulled.path() / act.name).string() +
                (act.subject.empty() ? "" : ", the record of " + QuoteForMessage(act.subject)) +
                why + kept);
}

}  // namespace waybill::guard
