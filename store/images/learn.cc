#include "store/images/learn.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/images/proofs.h"
#include "store/images/revoked.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

// Those that become aliases.
std::span<const std::string> FirstOf(const std::vector<std::string>& digests) {
  return std::span(digests).first(std::min(digests.size(), kMaxSpellingsPerImage));
}

bool Has(const std::vector<std::string>& all, const std::string& one) {
  return std::ranges::find(all, one) != all.end();
}

// As which images pulls of a digest were recorded that becomes another image's or two images'
// (`owner` empty). Two of them tell as much as more.
Result<std::vector<std::string>> TakenFor(const Images& images, const std::string& digest,
                                          const std::optional<AliasPart>& before,
                                          const std::string& owner) {
  constexpr std::size_t kEnough = 2;
  if (!before) return std::vector<std::string>();
  std::vector<std::string> taken_for = before->taken_for;
  if (before->image == owner || taken_for.size() >= kEnough) return taken_for;
  const bool was_shared = before->image.empty();
  bool any = false;
  if (was_shared) {
    any = TRY(images.AnyRecorded(digest));
  } else {
    const auto rows = TRY(images.RowsOf(before->image));
    any = std::ranges::any_of(
        rows, [&](const ImageRow& row) { return row.pulled && row.stamp > before->stamp; });
  }
  const std::string& as = was_shared ? digest : before->image;
  if (any && !Has(taken_for, as)) taken_for.push_back(as);
  return taken_for;
}

// The digest is another image's now, or two images': what was recorded under it is not this one's.
Result<void> Lose(Images& images, const std::string& subject, const std::string& digest) {
  const auto rows = TRY(images.RowsOf(subject));
  for (const ImageRow& row : rows) {
    ImageRow left = row;
    std::erase_if(left.aliases,
                  [&](const std::string& alias) { return images.SubjectOf(alias) == digest; });
    if (!row.pulled || images.SubjectOf(row.Ref()) != digest) {
      TRY(images.Put(std::move(left), Images::Confirms::kNo));
      continue;
    }
    ImageRow there = TRY(images.FindOrMake(digest, row.runtime_handler));
    ImageRow moved = row;
    moved.ref = row.Ref();
    moved.subject = digest;
    moved.preloaded.reset();
    moved.aliases.clear();
    AddAlias(moved, row.Ref());
    moved.listed = there.listed;
    moved.alias = there.alias;
    if (WordOfOperator(row) == ClosedBy::kOperator) {
      // It is about the image, under whatever digest.
      left.pulled->entries.clear();
      left.ref.clear();
      TRY(images.Put(std::move(left), Images::Confirms::kNo));
    } else {
      TRY(images.Unrecord(std::move(left)));
    }
    if (there.pulled) {
      moved = Unite(std::move(there), std::move(moved), AgingIn(images.txn()));
    }
    TRY(PutUnited(images, std::move(moved), Images::Confirms::kNo));
  }
  return {};
}

// Whom a list says to have each digest.
using Owners = std::map<std::string, std::set<std::string>>;

class Learner {
 public:
  Learner(Images& images, std::vector<ImageInList>& listed, bool is_whole)
      : images_(images), listed_(listed), is_whole_(is_whole) {}

  Result<Learnt> Run() {
    TRY(Collect());
    for (const auto& [digest, of] : owners_) TRY(Place(digest, of));
    for (const auto& [subject, texts] : own_) TRY(KeepAliases(subject, texts));
    for (const auto& [digest, owner] : became_) {
      TRY(Become(images_, digest, owner, learnt_.united));
      // An image may have more aliases than are kept.
      const auto alias = TRY(images_.AliasOf(digest));
      if (!alias || alias->image != owner) {
        TRY(images_.SetAlias(digest, AliasPart{.image = owner, .stamp = images_.txn().sequence()}));
      }
    }
    if (is_whole_) TRY(Move());
    for (const auto& [digest, of] : owners_) TRY(Tidy(digest));
    return std::move(learnt_);
  }

 private:
  bool IsShared(const std::string& digest) const { return owners_.at(digest).size() > 1; }

  Result<void> Collect() {
    for (const ImageInList& one : listed_) {
      owners_[images_.SubjectOf(one.id)].insert(one.subject);
      for (const std::string& digest : FirstOf(one.digests)) {
        owners_[images_.SubjectOf(digest)].insert(one.subject);
      }
    }
    if (!is_whole_) {
      for (auto& [digest, of] : owners_) {
        const auto was = TRY(images_.Spelt(digest));
        if (!was) continue;
        of.insert(*was);
        // Two images had it: it stays shared.
        if (was->empty()) of.insert("another");
      }
    }
    for (ImageInList& one : listed_) {
      auto& texts = own_[one.subject];
      const std::string id = images_.SubjectOf(one.id);
      if (id != one.subject && !IsShared(id)) texts.push_back(one.id);
      for (const std::string& digest : FirstOf(one.digests)) {
        (IsShared(images_.SubjectOf(digest)) ? one.shared : texts).push_back(digest);
      }
    }
    return {};
  }

  Result<void> Place(const std::string& digest, const std::set<std::string>& of) {
    const bool is_shared = of.size() > 1;
    const bool is_own = own_.contains(digest);
    if (is_shared) learnt_.shared_digests.push_back(digest);
    // An ID is at least its own image's.
    if (!is_shared && is_own && of.contains(digest)) return {};
    const std::string owner = is_shared ? std::string() : *of.begin();
    const auto was = TRY(images_.Spelt(digest));
    const auto alias = TRY(images_.AliasOf(digest));
    AliasPart now{.image = owner, .stamp = images_.txn().sequence()};
    now.taken_for = TRY(TakenFor(images_, digest, alias, owner));
    if (alias && alias->image == now.image && alias->taken_for == now.taken_for) return {};
    if (was && !was->empty() && *was != digest) TRY(Lose(images_, *was, digest));
    const bool needs_row = is_shared || !now.taken_for.empty();
    TRY(images_.SetAlias(digest, needs_row ? std::optional(std::move(now)) : std::nullopt));
    if (!is_shared) {
      became_.emplace_back(digest, owner);
    } else if (!is_own) {
      // What was preloaded under it is neither's.
      const auto rows = TRY(images_.RowsOf(digest));
      for (const ImageRow& row : rows) {
        if (row.preloaded) TRY(images_.Unload(row));
      }
    }
    return {};
  }

  Result<void> KeepAliases(const std::string& subject, const std::vector<std::string>& texts) {
    // Its ID is another image's digest: it is known by itself only.
    if (const auto of = owners_.find(subject); of != owners_.end() && of->second.size() > 1) {
      return {};
    }
    ImageRow row = TRY(images_.FindOrMake(subject));
    std::vector<std::string> aliases = texts;
    for (const std::string& alias : row.aliases) {
      const auto of = owners_.find(images_.SubjectOf(alias));
      const bool stays =
          of == owners_.end() || (of->second.size() == 1 && *of->second.begin() == subject);
      if (stays) aliases.push_back(alias);
    }
    SortUnique(aliases);
    if (row.listed && aliases == row.aliases) return {};
    row.listed = true;
    row.aliases = std::move(aliases);
    // The image may have been forgotten under what is now known to be an alias of it.
    const bool loses = TRY(LeaveOutRevoked(images_, row));
    const bool is_known = row.pulled || row.preloaded;
    TRY(images_.Put(std::move(row),
                    loses || !is_known ? Images::Confirms::kYes : Images::Confirms::kNo));
    auto rows = TRY(images_.RowsOf(subject));
    for (ImageRow& copy : rows) {
      if (TRY(LeaveOutRevoked(images_, copy))) {
        TRY(images_.Put(std::move(copy), Images::Confirms::kYes));
      }
    }
    return {};
  }

  // Each row goes where the runtime has the image now: that is asked for.
  Result<void> Move() {
    for (const ImageInList& one : listed_) {
      const std::string now = images_.SubjectOf(one.id);
      const std::string old = one.subject;
      if (now == old) continue;
      const auto spelt = TRY(images_.Spelt(now));
      if (spelt != old) continue;
      TRY(images_.SetAlias(now, std::nullopt));
      TRY(Become(images_, old, now, learnt_.united));
      const auto alias = TRY(images_.AliasOf(old));
      if (!alias || alias->image != now) {
        TRY(images_.SetAlias(old, AliasPart{.image = now, .stamp = images_.txn().sequence()}));
      }
      for (ImageInList& other : listed_) {
        if (other.subject == old) other.subject = now;
      }
    }
    return {};
  }

  // No row of its own for what the image's row says.
  Result<void> Tidy(const std::string& digest) {
    const auto row = TRY(images_.FindOrMake(digest));
    if (!row.alias || row.alias->image.empty() || !row.alias->taken_for.empty()) return {};
    const auto rows = TRY(images_.RowsOf(row.alias->image));
    const bool says_so = std::ranges::any_of(rows, [&](const ImageRow& owner) {
      return std::ranges::any_of(owner.aliases, [&](const std::string& alias) {
        return images_.SubjectOf(alias) == digest;
      });
    });
    return says_so ? images_.SetAlias(digest, std::nullopt) : Result<void>();
  }

  Images& images_;
  std::vector<ImageInList>& listed_;
  const bool is_whole_;
  Owners owners_;
  std::map<std::string, std::vector<std::string>> own_;  // texts of aliases, by subject
  std::vector<std::pair<std::string, std::string>> became_;
  Learnt learnt_;
};

}  // namespace

Result<void> FindFormer(const Images& images, std::vector<ImageInList>& listed) {
  std::unordered_set<std::string> ids;
  for (const ImageInList& one : listed) ids.insert(images.SubjectOf(one.id));
  for (ImageInList& one : listed) {
    one.subject = images.SubjectOf(one.id);
    const auto was = TRY(images.Spelt(one.subject));
    if (was && !was->empty() && !ids.contains(*was)) one.subject = *was;
  }
  for (const ImageInList& one : listed) ids.insert(one.subject);
  for (ImageInList& one : listed) {
    const std::string id = images.SubjectOf(one.id);
    const auto spelt = TRY(images.Spelt(id));
    const auto row = TRY(images.FindOrMake(id));
    one.same_id = row.listed;
    std::vector<std::string> own{one.id};
    own.insert(own.end(), one.digests.begin(), one.digests.end());
    for (const std::string& ref : own) {
      auto was = TRY(images.Spelt(images.SubjectOf(ref)));
      if (!was) continue;
      one.was_shared = one.was_shared || (was->empty() && !spelt);
      if (!was->empty() && !ids.contains(*was)) one.formerly.push_back(*std::move(was));
    }
  }
  return {};
}

Result<Learnt> Learn(Images& images, std::vector<ImageInList>& listed, bool is_whole) {
  return Learner(images, listed, is_whole).Run();
}

Result<void> PutUnited(Images& images, ImageRow one, Images::Confirms confirms) {
  auto put = images.Put(one, confirms);
  if (put || put.error().code != ErrorCode::kLimitExceeded || !one.pulled) return put;
  const PulledPart was = *one.pulled;
  one.pulled->entries.clear();
  KeepPrivateNames(was, *one.pulled);
  return images.Put(std::move(one), Images::Confirms::kYes);
}

Result<void> Become(Images& images, const std::string& old, const std::string& now,
                    std::uint64_t& united) {
  const auto rows = TRY(images.RowsOf(old));
  for (const ImageRow& row : rows) {
    if (row.alias && !row.pulled && !row.preloaded && !row.listed) continue;
    for (const std::string& text : row.aliases) {
      const std::string digest = images.SubjectOf(text);
      ImageRow of_digest = TRY(images.FindOrMake(digest));
      if (!of_digest.alias || of_digest.alias->image != old) continue;
      of_digest.alias->image = now;
      TRY(images.Put(std::move(of_digest), Images::Confirms::kNo));
    }
    ImageRow there = TRY(images.FindOrMake(now, row.runtime_handler));
    const bool both = there.pulled && row.pulled;
    if (both) ++united;
    ImageRow emptied{.subject = old, .runtime_handler = row.runtime_handler, .alias = row.alias};
    TRY(images.Put(std::move(emptied), Images::Confirms::kNo));
    ImageRow moved = row;
    moved.ref = row.Ref();
    moved.subject = now;
    moved.alias.reset();
    TRY(LeaveOutRevoked(images, there));
    TRY(LeaveOutRevoked(images, moved));
    ImageRow one = Unite(std::move(there), std::move(moved), AgingIn(images.txn()));
    if (images.SubjectOf(old) != now && row.runtime_handler.empty()) AddAlias(one, old);
    TRY(PutUnited(images, std::move(one), both ? Images::Confirms::kYes : Images::Confirms::kNo));
  }
  return {};
}

namespace {

// Under each text of the image.
Result<void> Spread(Images& images) {
  const auto rows = TRY(images.All([](const ImageRow& row) { return row.pulled.has_value(); }));
  for (const ImageRow& row : rows) {
    std::vector<std::string> texts = TextsOf(row);
    const ImageRow of_default = TRY(images.FindOrMake(row.subject));
    for (const std::string& text : TextsOf(of_default)) texts.push_back(text);
    for (const std::string& text : texts) {
      if (text == row.subject) continue;
      const auto there = TRY(images.FindOrMake(text, row.runtime_handler));
      if (there.pulled) continue;
      ImageRow copy{.subject = text, .runtime_handler = row.runtime_handler, .stamp = row.stamp};
      copy.absent = row.absent;
      copy.pulled = row.pulled;
      // It keeps the image closed.
      TRY(images.Put(std::move(copy), Images::Confirms::kNo, Images::Room::kReserve));
    }
    ImageRow own = row;
    own.ref.clear();
    TRY(images.Put(std::move(own), Images::Confirms::kNo));
  }
  return {};
}

Result<void> Gather(Images& images) {
  const auto rows = TRY(images.All([](const ImageRow&) { return true; }));
  for (const ImageRow& row : rows) {
    if (!row.pulled && !row.preloaded && !row.listed) continue;
    const auto home = TRY(images.Home(row.subject));
    if (home == row.subject) continue;
    ImageRow moved = row;
    moved.ref = row.Ref();
    moved.subject = home;
    moved.alias.reset();
    ImageRow emptied{
        .subject = row.subject, .runtime_handler = row.runtime_handler, .alias = row.alias};
    TRY(images.Put(std::move(emptied), Images::Confirms::kNo));
    ImageRow there = TRY(images.FindOrMake(home, row.runtime_handler));
    TRY(LeaveOutRevoked(images, moved));
    ImageRow one = Unite(std::move(there), std::move(moved), AgingIn(images.txn()));
    TRY(PutUnited(images, std::move(one), Images::Confirms::kNo));
  }
  return {};
}

}  // namespace

Result<void> ChangeMode(Images& images) {
  return images.learns_aliases() ? Gather(images) : Spread(images);
}

}  // namespace waybill::internal
