#include "store/images/judge.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/timestamp.h"
#include "store/base/try.h"
#include "store/images/other_rows.h"
#include "store/images/pull_row.h"
#include "waybill/values.h"

namespace waybill::internal {

std::string Describe(const UnresolvedPull& pull) {
  if (pull.state == PullState::kDropped) {
    return "an image that was gone, and dropped when too many were remembered at " +
           FormatTimestamp(pull.began);
  }
  std::string text =
      pull.anything ? "a pull that can't be named" : "a pull of " + QuoteForMessage(pull.image);
  if (pull.several) text = "several pulls" + text.substr(std::string_view("a pull").size());
  text += ", begun " + FormatTimestamp(pull.began);
  if (!pull.ended) return text + " and not ended";
  return text + " and ended " + FormatTimestamp(*pull.ended) +
         (pull.state == PullState::kFailed ? " with an error" : " with unknown outcome");
}

Result<bool> IsKnown(const Images& images, const ImageInList& image) {
  if (TRY(images.AnyRecorded(image.subject))) return true;
  // An image may have more digests than are kept.
  for (const std::string& digest : image.digests) {
    if (std::ranges::find(image.shared, digest) != image.shared.end()) continue;
    if (TRY(images.AnyRecorded(images.SubjectOf(digest)))) return true;
  }
  const auto row = TRY(images.FindOrMake(image.subject, image.runtime_handler));
  if (row.preloaded && row.absent == 0) return true;
  return images.IsUnreadable(image.id);
}

Result<Givers> Givers::Collect(const Images& images, const Options& options) {
  const StoreTxn& txn = images.txn();
  Givers all;
  all.options_ = options;
  auto pulls = TRY(AllOpenPulls(txn));
  std::ranges::sort(pulls, std::ranges::greater(), &UnresolvedPull::id);
  const auto add = [&](Giver giver, bool anything) {
    if (anything) {
      all.anything_.push_back(all.givers_.size());
    } else {
      all.by_repository_[giver.named.repository].push_back(all.givers_.size());
    }
    all.givers_.push_back(std::move(giver));
  };
  const auto add_unreadable = [&] {
    Giver unreadable;
    unreadable.pull.anything = true;
    add(std::move(unreadable), true);
  };
  for (UnresolvedPull& pull : pulls) {
    if (pull.anything && options.first_start && pull.state != PullState::kDropped) {
      all.leaves_anything_out_ = true;
      continue;
    }
    if (pull.nothing_at != 0 && (!options.until || *options.until >= pull.nothing_at)) continue;
    NamedImage named = ReadName(pull.image);
    if (named.is_id && !pull.anything && !named.parses) continue;
    const bool anything =
        pull.anything || GivesAnything(named, options.short_names == ShortNames::kDockerHub);
    add({std::move(pull), std::move(named)}, anything);
  }
  // A pull that can't be read is one of anything.
  if (pulls.size() < txn.state().digest(Table::kIntents).count) add_unreadable();

  TRY(txn.ForEach(Table::kQuarantine, [&](const Key16&, Payload payload) -> Result<bool> {
    const auto entry = DecodeQuarantineValue(payload);
    if (!entry || entry->kind == QuarantineKind::kImage) all.unreadable_intents_ = true;
    return !all.unreadable_intents_;
  }));

  TRY(images.ForEach([&](const ImageRow* row) -> Result<bool> {
    if (row == nullptr) {
      add_unreadable();
      return true;
    }
    if (!row->pulled) return true;
    all.recorded_.insert(row->subject);
    // One that a list made, or an operator, is of no pull; and what the image of one that is gone
    // was listed as, a complete list told.
    if (options.first_start || !row->pulled->closed_because.empty() || row->absent != 0 ||
        row->listed) {
      return true;
    }
    if (TRY(images.WasListed(row->Ref()))) return true;
    // Whatever its stamp: that is of the end of its pull, so the list may have what it brought.
    const auto giver_of = [&](const std::string& name) {
      Giver giver;
      giver.named = ReadName(name);
      giver.is_record = true;
      giver.pull.image = name;
      giver.pull.began = row->pulled->last_updated.value_or(Timestamp{});
      return giver;
    };
    bool has_name = false;
    for (const auto& [name, credentials] : row->pulled->entries) {
      Giver giver = giver_of(name);
      if (!giver.named.parses) continue;
      has_name = true;
      add(std::move(giver), false);
    }
    if (has_name) return true;
    // Its credentials are not known, or were taken, which must open nothing.
    Giver giver = giver_of(row->Ref());
    const bool anything = !giver.named.parses || giver.named.is_id;
    add(std::move(giver), anything);
    return true;
  }));
  return all;
}

const Givers::Giver* Givers::FindGiver(const NamedImage& name, bool pinned, bool records,
                                       bool dropped) const {
  const Giver* later = nullptr;
  const auto closes = [&](const Giver& giver) {
    if (!IsLater(giver)) return true;
    if (later == nullptr) later = &giver;
    return false;
  };
  if (const auto at = by_repository_.find(name.repository); at != by_repository_.end()) {
    for (const std::size_t i : at->second) {
      const Giver& giver = givers_[i];
      // A record tells its image name only: any tag or digest of it.
      const bool gives = giver.is_record || CouldGive(giver.named, name);
      if (giver.is_record == records && gives && closes(giver)) return &giver;
    }
  }
  if (pinned) return later;
  for (const std::size_t i : anything_) {
    const Giver& giver = givers_[i];
    if (giver.is_record != records) continue;
    if (!dropped && giver.pull.state == PullState::kDropped) continue;
    // Of what brought nothing the runtime said so under that very string.
    const bool by_its_end = options_.first_start || giver.pull.nothing_at != 0;
    const bool gives = records || !by_its_end || CouldComplete(giver.named, name);
    if (gives && closes(giver)) return &giver;
  }
  return later;
}

bool Givers::IsNamedByPulls(const ImageInList& image) const {
  constexpr bool kNotAnything = true;
  return std::all_of(image.parsed.begin(), image.parsed.end(), [&](const NamedImage& name) {
    const auto completes = [&](std::size_t i) {
      const Giver& giver = givers_[i];
      return !giver.is_record && !giver.pull.anything && CouldComplete(giver.named, name);
    };
    return FindGiver(name, kNotAnything, false) != nullptr ||
           std::any_of(anything_.begin(), anything_.end(), completes);
  });
}

bool Givers::HasOwnName(const ImageInList& image, const std::vector<std::string>& names) const {
  for (std::size_t i = 0; i < image.names.size(); ++i) {
    if (std::find(names.begin(), names.end(), image.names[i]) == names.end()) continue;
    // What is remembered was not dropped.
    if (FindGiver(image.parsed[i], false, false, false) == nullptr) return true;
  }
  return false;
}

// Whether only a later list can tell what it gave.
bool Givers::IsLater(const Giver& giver) const {
  return !giver.is_record &&
         (giver.pull.nothing_at != 0 || (options_.until && giver.pull.stamp > *options_.until));
}

Result<bool> Givers::UnreadableIntentGives(const Images& images, const std::string& name,
                                           const NamedImage& parsed) const {
  if (!unreadable_intents_) return false;
  // The string is known by its hash only; its repository may be any.
  if (!parsed.digest.empty()) return true;
  return images.AnyUnreadable(QuarantineKind::kImage, EquivalentImages(name));
}

Result<std::string> Givers::MayBeKnown(const Images& images, const ImageInList& image) const {
  // A record under a digest that two images share may be this image's.
  for (const std::string& digest : image.shared) {
    const bool recorded = TRY(images.AnyRecorded(images.SubjectOf(digest)));
    const bool unreadable =
        TRY(images.AnyUnreadable(QuarantineKind::kImageRef, PlainSpellings(digest)));
    if (recorded || unreadable) {
      return "the record of " + QuoteForMessage(digest) +
             ", a digest that two images have, may be its own";
    }
  }
  // So may one of the same content under another ID, or under a digest that is not its own.
  std::vector<std::string> own{image.id};
  own.insert(own.end(), image.digests.begin(), image.digests.end());
  std::vector<std::string> texts;
  for (const std::string& ref : own) {
    for (std::string& plain : PlainSpellings(ref)) texts.push_back(std::move(plain));
  }
  for (const std::string& former : image.formerly) {
    const auto of_former = TRY(images.TextsOf(former));
    texts.insert(texts.end(), of_former.begin(), of_former.end());
  }
  if (TRY(images.AnyUnreadable(QuarantineKind::kImageRef, texts))) {
    return std::string("it is in quarantine under another ref");
  }
  own.insert(own.end(), image.formerly.begin(), image.formerly.end());
  for (const std::string& ref : own) {
    const auto home = TRY(images.Home(ref));
    if (recorded_.contains(images.SubjectOf(ref)) || recorded_.contains(home)) {
      return "a record of " + QuoteForMessage(ref) + ", one of its digests, may be its own";
    }
  }
  // Nor does the digest of an index tell which of its images a pull brought.
  for (const std::string& digest : image.shared) {
    const auto alias = TRY(images.AliasOf(images.SubjectOf(digest)));
    if (!alias || !alias->image.empty()) continue;
    for (const std::string& other : alias->taken_for) {
      const auto home = TRY(images.Home(other));
      if (home == image.subject) continue;
      return "a pull that was recorded as one of " + QuoteForMessage(other) +
             ", which has a digest in common with it, may have brought it";
    }
  }
  if (image.was_shared) {
    return std::string("its ID is new, and two images had one of its digests");
  }
  return std::string();
}

// At a first start: an image with an intent is not presumed preloaded, whatever its other names
// (kubelet behaviour: replay).
const Givers::Giver* Givers::IntentFor(const ImageInList& image) const {
  if (!options_.first_start) return nullptr;
  for (const Giver& giver : givers_) {
    if (giver.is_record || giver.pull.anything) continue;
    const auto full = NormaliseImage(giver.pull.image);
    for (const std::string& name : image.names) {
      if (name == giver.pull.image || (full && name == *full)) return &giver;
    }
  }
  return nullptr;
}

Result<Givers::Judgement> Givers::Judge(const Images& images, const ImageInList& image) const {
  auto known = TRY(MayBeKnown(images, image));
  if (!known.empty()) return Judgement{Verdict::kPulled, std::move(known)};
  if (!image.formerly.empty()) {
    const std::string& former = image.formerly.front();
    const auto row = TRY(images.FindOrMake(former, image.runtime_handler));
    // A complete list with a token moves it.
    if (row.preloaded) {
      return Judgement{Verdict::kLater, "it is in the ledger as " + QuoteForMessage(former)};
    }
    return Judgement{Verdict::kPulled, "it was on the node as " + QuoteForMessage(former) +
                                           ", and what was known of that is gone"};
  }
  if (image.names.empty()) {
    return Judgement{Verdict::kPulled,
                     "the runtime lists it without a name, so nothing tells where it came from"};
  }
  std::string because;
  bool unplaced = false;
  bool later = false;
  for (std::size_t i = 0; i < image.names.size(); ++i) {
    const NamedImage& name = image.parsed[i];
    const Giver* pull = FindGiver(name, image.pinned, false);
    if (pull != nullptr && !IsLater(*pull)) {
      if (because.empty()) {
        because = Describe(pull->pull) + ", may have brought " + QuoteForMessage(image.names[i]);
      }
      continue;
    }
    if (TRY(UnreadableIntentGives(images, image.names[i], name))) {
      if (because.empty()) {
        because =
            "a pull whose file can't be read may have brought " + QuoteForMessage(image.names[i]);
      }
      continue;
    }
    if (const Giver* giver = FindGiver(name, image.pinned, true)) {
      unplaced = true;
      because = "an image of " + QuoteForMessage(giver->pull.image) +
                " was pulled, and no list has it under the ref of its record";
      continue;
    }
    if (pull != nullptr) {
      later = true;
      if (because.empty()) {
        because = Describe(pull->pull) + ", may have brought " + QuoteForMessage(image.names[i]);
      }
      continue;
    }
    if (const Giver* intent = IntentFor(image)) {
      return Judgement{Verdict::kPulled, Describe(intent->pull) + ", is of one of its names"};
    }
    return Judgement{
        Verdict::kPreloaded,
        (leaves_anything_out_ ? "no open pull that can be named could have given it the name "
                              : "no open pull could have given it the name ") +
            QuoteForMessage(image.names[i])};
  }
  const Verdict verdict = later      ? Verdict::kLater
                          : unplaced ? Verdict::kUnplaced
                                     : Verdict::kPulled;
  return Judgement{verdict, std::move(because)};
}

void Conclude(Mode rules, bool has_credentials, Explanation& why) {
  const bool closed = rules == Mode::kStrict;
  const std::string preload =
      closed ? "; if it came to the node without the kubelet, enter it in the ledger" : "";
  why.hint = kAPullProves;
  if (why.in_quarantine) {
    why.text = "a file of the kubelet about this image could not be read";
    why.hint = "a pull of it succeeds, which ends the quarantine";
  } else if (why.ledger_entry) {
    why.hint.clear();
  } else if (why.recorded && has_credentials) {
    why.text = "a pull is on record, and pods must prove the credentials that it took";
  } else if (why.recorded && why.closed_because.empty()) {
    // A pull that is on record brought it: nothing for an operator to call preloaded.
    why.text = "a pull is on record, but what it proved was forgotten, or is not known";
  } else if (why.recorded) {
    why.text = why.closed_because;
    why.hint += preload;
  } else if (!why.other_handlers.empty()) {
    why.text = "it was pulled for another runtime handler";
  } else if (!why.pulls.empty()) {
    why.text = Describe(why.pulls.front()) + ", may have brought it";
    why.hint += preload;
  } else if (why.distrustful) {
    why.text = closed ? "the store is distrustful, so it judges no image"
                      : "the store is distrustful, so it presumes no image preloaded";
    why.hint += "; an operator can clear the distrust, with a reason";
  } else if (closed) {
    why.text = why.gone_entry ? "it was preloaded, and no list of images has had it since it went"
                              : "no list of images had it yet";
    why.hint.insert(0, "the runtime's list judges it; ");
  } else {
    why.hint.clear();
  }
}

}  // namespace waybill::internal

namespace waybill {

std::vector<std::string> NamesGivenBy(const UnresolvedPull& pull, ShortNames short_names) {
  const internal::NamedImage named = internal::ReadName(pull.image);
  if (pull.anything || internal::GivesAnything(named, short_names == ShortNames::kDockerHub)) {
    return {"anything"};
  }
  std::vector<std::string> names;
  if (!named.parses) return names;
  if (named.digest.empty()) names.push_back(named.repository + ":" + named.tag);
  names.push_back(named.repository + "@…");
  return names;
}

}  // namespace waybill
