#include "store/images/decide.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/policy.h"
#include "store/base/sha256.h"
#include "store/disk/key.h"
#include "store/images/image_row.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

// Which of a pod's secrets may match which stored ones, so that not each is compared with each.

// Looks for the tags of kAtATime secrets of the pod together among those of the stored secrets,
// which are read once for that. Lies on the stack, and allocates nothing.
class LikelyMatches {
 public:
  // `key` makes the tags. Without `by_coordinates` only hashes need to match.
  LikelyMatches(const EntryView& entry, std::span<const ImagePullSecretView> secrets,
                bool by_coordinates, std::uint64_t key)
      : entry_(entry),
        secrets_(secrets),
        stored_(entry.secret_count()),
        by_coordinates_(by_coordinates),
        key_(key) {}

  // The first stored secret from `from` on that the pod's `secret` may match; how many are stored
  // if there is none. Call with a `secret` that does not go back.
  std::size_t Next(std::size_t secret, std::size_t from);

 private:
  static constexpr std::size_t kAtATime = 128;
  static constexpr unsigned kSlotBits = 9;
  static_assert((std::size_t{1} << kSlotBits) == 4 * kAtATime,
                "at most half of the slots are used");

  void LookFor(std::size_t first);
  void Add(SecretTag tag, std::size_t secret);
  void Mark(SecretTag tag, std::uint64_t block);

  const EntryView& entry_;
  std::span<const ImagePullSecretView> secrets_;
  std::size_t stored_;
  bool by_coordinates_;
  std::uint64_t key_;
  // Of the secrets from `first_` to `end_`: in which of up to 64 blocks of stored ones, of
  // 1 << block_bits_ each, there is a tag of theirs.
  std::size_t first_ = 0;
  std::size_t end_ = 0;
  unsigned block_bits_ = 0;
  std::array<std::uint64_t, kAtATime> blocks_;
  // Their tags by the tag's highest bits, or in the next slot that is free.
  std::array<SecretTag, std::size_t{1} << kSlotBits> tags_;
  std::array<std::uint8_t, std::size_t{1} << kSlotBits> whose_;
};

std::size_t LikelyMatches::Next(std::size_t secret, std::size_t from) {
  if (from >= stored_) return stored_;
  if (secret >= end_) LookFor(secret);
  const std::size_t block = from >> block_bits_;
  const std::uint64_t left = blocks_[secret - first_] >> block;
  if ((left & 1) != 0) return from;
  if (left == 0) return stored_;
  return (block + static_cast<std::size_t>(std::countr_zero(left))) << block_bits_;
}

void LikelyMatches::LookFor(std::size_t first) {
  first_ = first;
  end_ = std::min(secrets_.size(), first + kAtATime);
  block_bits_ = static_cast<unsigned>(std::bit_width((stored_ - 1) / 64));
  blocks_.fill(0);
  tags_.fill(kNoTag);
  for (std::size_t i = first_; i < end_; ++i) {
    const ProbeSecret probe(secrets_[i]);
    Add(probe.HashTag(key_), i - first_);
    if (by_coordinates_) Add(probe.CoordinatesTag(key_), i - first_);
  }
  for (std::size_t i = 0; i < stored_; ++i) {
    const std::uint64_t block = std::uint64_t{1} << (i >> block_bits_);
    Mark(entry_.HashTag(i, key_), block);
    if (by_coordinates_) Mark(entry_.CoordinatesTag(i, key_), block);
  }
}

void LikelyMatches::Add(SecretTag tag, std::size_t secret) {
  if (tag == kNoTag) return;
  std::size_t slot = tag >> (32 - kSlotBits);
  while (tags_[slot] != kNoTag) slot = (slot + 1) % tags_.size();
  tags_[slot] = tag;
  whose_[slot] = static_cast<std::uint8_t>(secret);
}

void LikelyMatches::Mark(SecretTag tag, std::uint64_t block) {
  if (tag == kNoTag) return;
  std::size_t slot = tag >> (32 - kSlotBits);
  for (; tags_[slot] != kNoTag; slot = (slot + 1) % tags_.size()) {
    if (tags_[slot] == tag) blocks_[whose_[slot]] |= block;
  }
}

constexpr Decision Pull(CheckResult result, Reason reason) { return {true, result, reason, false}; }
constexpr Decision Allow(CheckResult result, Reason reason) {
  return {false, result, reason, false};
}
constexpr Decision NoneMatches(Reason reason) {
  return {true, CheckResult::kMustAuthenticate, reason, true};
}
constexpr Decision kNoneMatches = NoneMatches(Reason::kNoCredentialMatches);
constexpr Decision Fail(Reason reason) { return Pull(CheckResult::kError, reason); }

// Why what matches does not count.
constexpr Reason ReasonOf(CredentialStanding verdict) {
  return verdict == CredentialStanding::kNotByRegistry ? Reason::kProofNotByRegistry
                                                       : Reason::kProofTooOld;
}

// True on an error, too: closed. `trail`: gets the file.
bool InQuarantine(const ReaderPool::Lease& snapshot, QuarantineKind kind, std::string_view text,
                  Trail* trail) {
  const auto sha256 = Sha256(text);
  if (!sha256) return true;
  Payload file;
  const Lookup found =
      snapshot.Get(Table::kQuarantine, QuarantineKey(kind, *sha256, snapshot.seed()), file);
  if (trail != nullptr && found == Lookup::kFound) {
    if (auto decoded = DecodeQuarantineValue(file)) trail->quarantine.push_back(*decoded);
  }
  return found != Lookup::kAbsent;
}

bool AnyInQuarantine(const ReaderPool::Lease& snapshot, QuarantineKind kind,
                     const std::vector<std::string>& texts, Trail* trail) {
  bool any = false;
  for (const std::string& text : texts) {
    if (any && trail == nullptr) break;
    any = InQuarantine(snapshot, kind, text, trail) || any;
  }
  return any;
}

// Mode::kKubelet: an intent for exactly this image string, under any runtime handler.
Lookup FindAnyIntent(const ReaderPool::Lease& snapshot, const Question& question) {
  if (snapshot.state().digest(Table::kIntents).count == 0) {
    return snapshot.CountIsTrue(Table::kIntents) ? Lookup::kAbsent : Lookup::kDamaged;
  }
  const auto matches = [&](Payload payload) {
    const IntentView intent = ViewIntent(payload);
    return !intent.anything && intent.image == question.image;
  };
  return snapshot.FindPull(IntentKey(question.image, PullId{}, snapshot.seed()), matches);
}

// Whether the image was pulled for any runtime handler (KEP-4216). Then it does not pass for
// preloaded under the handlers that it was not pulled for.
Lookup FindAnyRecord(const ReaderPool::Lease& snapshot, std::string_view subject, Trail* trail) {
  bool any = false;
  const auto matches = [&](Payload payload) {
    const ImageView view(payload);
    if (!view.is_recorded() || !view.SubjectIs(subject)) return false;
    any = true;
    if (trail != nullptr) trail->handlers.emplace_back(view.runtime_handler());
    return trail == nullptr;
  };
  const Lookup found = snapshot.FindWithPrefix(
      Table::kImages, FirstImageKey(subject, snapshot.seed()), kSubjectKeyBytes, matches);
  return any && found == Lookup::kAbsent ? Lookup::kFound : found;
}

Lookup GetRow(const ReaderPool::Lease& snapshot, std::string_view subject,
              std::string_view runtime_handler, Payload& row) {
  const Lookup found =
      snapshot.Get(Table::kImages, ImageKey(subject, runtime_handler, snapshot.seed()), row);
  if (found != Lookup::kFound) return found;
  const ImageView view(row);
  const std::string_view handler = view.runtime_handler();
  const bool is_it = view.SubjectIs(subject) && handler.size() == runtime_handler.size() &&
                     (handler.empty() || handler == runtime_handler);
  return is_it ? Lookup::kFound : Lookup::kDamaged;
}

// The subject of the image that has the digest among its aliases; empty: none, or two have it.
Lookup FindOwner(const ReaderPool::Lease& snapshot, Aliases& aliases, std::string_view subject,
                 std::string& owner) {
  Payload row;
  const Lookup found = GetRow(snapshot, subject, "", row);
  if (found == Lookup::kDamaged) return found;
  if (found == Lookup::kFound && ImageView(row).AliasOf(owner)) return Lookup::kFound;
  const auto keys = aliases.Find(snapshot, subject);
  if (!keys) return Lookup::kDamaged;
  for (const Key16& key : *keys) {
    const Lookup of_owner = snapshot.Get(Table::kImages, key, row);
    if (of_owner == Lookup::kDamaged) return of_owner;
    // The index may be of a moment earlier or later.
    if (of_owner == Lookup::kAbsent || !ImageView(row).HasAlias(subject)) continue;
    std::string one = ImageView(row).subject();
    if (!owner.empty() && owner != one) {
      owner.clear();
      return Lookup::kFound;
    }
    owner = std::move(one);
  }
  return Lookup::kFound;
}

// Whether the row says anything of an image, and not only of which image a digest is.
bool IsOfImage(const ImageView& view) {
  return view.is_recorded() || view.has_preloaded() || view.is_listed();
}

// What a ref leads to: its subject, the digest that it spells or in mode kubelet the very ref; and
// the image that has it as an alias, looked for once, so that one decision believes one index.
class Asked {
 public:
  Asked(const ReaderPool::Lease& snapshot, const Question& question)
      : snapshot_(snapshot),
        question_(question),
        learns_(LearnsAliases(ModeIn(snapshot))),
        spelling_(question.image_ref),
        subject_(learns_ ? spelling_.text() : question.image_ref) {}
  std::string_view subject() const { return subject_; }

  // The row of the ref's image under the handler, as stored. A hit is one look-up.
  FoundRow Find(std::string_view runtime_handler) {
    FoundRow found;
    found.lookup = GetRow(snapshot_, subject_, runtime_handler, found.row);
    if (!learns_ || found.lookup == Lookup::kDamaged) return found;
    if (found.lookup == Lookup::kFound && IsOfImage(ImageView(found.row))) return found;
    if (Owner(found.subject) == Lookup::kDamaged) {
      found.lookup = Lookup::kDamaged;
    } else if (found.subject.empty()) {
      found.lookup = Lookup::kAbsent;
    } else {
      found.lookup = GetRow(snapshot_, found.subject, runtime_handler, found.row);
    }
    return found;
  }

  // Every known way to write the ref's image, the ref first. kDamaged: unknown.
  Lookup Texts(std::vector<std::string>& texts) {
    texts.emplace_back(question_.image_ref);
    if (!learns_) return Lookup::kFound;
    const auto add = [&](const std::vector<std::string>& more) {
      for (const std::string& text : more) {
        if (std::ranges::find(texts, text) == texts.end()) texts.push_back(text);
      }
    };
    add(PlainSpellings(question_.image_ref));
    std::string home;
    if (Owner(home) == Lookup::kDamaged) return Lookup::kDamaged;
    if (home.empty()) home = subject_;
    bool readable = true;
    const auto add_row = [&](Payload payload) {
      const auto row = DecodeImage(payload);
      readable = readable && row;
      if (row && row->subject == home) add(TextsOf(*row));
      return false;  // and on to the next
    };
    const Lookup walked = snapshot_.FindWithPrefix(
        Table::kImages, FirstImageKey(home, snapshot_.seed()), kSubjectKeyBytes, add_row);
    add(PlainSpellings(home));
    return readable && walked != Lookup::kDamaged ? Lookup::kFound : Lookup::kDamaged;
  }

 private:
  // "": none, or two have it.
  Lookup Owner(std::string& owner) {
    if (!found_) found_ = FindOwner(snapshot_, question_.aliases, subject_, owner_);
    owner = owner_;
    return *found_;
  }

  const ReaderPool::Lease& snapshot_;
  const Question& question_;
  const bool learns_;
  Spelling spelling_;
  std::string_view subject_;
  std::optional<Lookup> found_;
  std::string owner_;
};

// Whether a kubelet's file about the image can't be read: by any way to write its ref, and in mode
// strict by any string with the same full form.
bool IsClosedByFiles(const ReaderPool::Lease& snapshot, const Question& question, Mode mode,
                     Asked& asked, Trail* trail) {
  std::vector<std::string> texts;
  const bool closed = asked.Texts(texts) == Lookup::kDamaged ||
                      AnyInQuarantine(snapshot, QuarantineKind::kImageRef, texts, trail);
  if (Presumes(mode) || (closed && trail == nullptr)) return closed;
  return AnyInQuarantine(snapshot, QuarantineKind::kImage, EquivalentImages(question.image),
                         trail) ||
         closed;
}

// The answer if step 4 allows the image.
Decision AllowedBy(Verification mode) {
  Reason reason = Reason::kPolicyPresumedPreloaded;
  if (mode == Verification::kNeverVerify) {
    reason = Reason::kPolicyNeverVerifies;
  } else if (mode == Verification::kNeverVerifyAllowlistedImages) {
    reason = Reason::kPolicyAllowlisted;
  }
  return Allow(CheckResult::kCredentialPolicyAllowed, reason);
}

// Strict: the answer if what was preloaded is open. nullopt: it is not.
std::optional<Decision> OpensAsPreloaded(const Question& question, Mode mode,
                                         const ImageView& row) {
  if (!row.has_preloaded() || row.is_absent() || !LearnsAliases(mode)) return std::nullopt;
  const VerificationPolicy& policy = question.policy;
  const auto verifies = [&](std::string_view name) {
    return policy.RequiresVerification(ImageName(name).value_or(name), ImageOrigin::kPreloaded);
  };
  if (policy.mode() == Verification::kNeverVerifyAllowlistedImages) {
    // The names that it was preloaded by: another pod may ask for it by a name of its own.
    const bool any = row.AnyPreloadedName([&](std::string_view name) { return !verifies(name); });
    return any ? std::optional(AllowedBy(policy.mode())) : std::nullopt;
  }
  if (verifies(question.image)) return std::nullopt;
  if (policy.mode() == Verification::kNeverVerify) return AllowedBy(policy.mode());
  return Allow(CheckResult::kCredentialPolicyAllowed, Reason::kPolicyKnownPreloaded);
}

// Steps 2 to 6, of an image on the node.
void DecideOnRow(const ReaderPool::Lease& snapshot, const Question& question, Trail* trail,
                 DecisionOrEntry& result) {
  const auto answer = [&result](const Decision& decision) { result.decision = decision; };
  const auto pass = [trail](std::string_view step) {
    if (trail != nullptr) trail->steps.emplace_back(step);
  };
  // 2. The row. Before it, the checks that close an image with or without one.
  if (question.image.size() > kMaxImageBytes || question.image_ref.size() > kMaxImageRefBytes) {
    return answer(Fail(Reason::kArgumentTooLong));
  }
  if (!snapshot) return answer(Fail(Reason::kStoreUnavailable));
  const std::string_view named = question.runtime_handler;
  const Lookup handler =
      named.empty() ? Lookup::kFound : FindStoredHandler(snapshot, named, result.runtime_handler);
  if (handler == Lookup::kAbsent) return answer(Fail(Reason::kRuntimeHandlerUnknown));
  if (handler == Lookup::kDamaged) return answer(Fail(Reason::kRecordDamaged));
  pass("handlerIsKnown");
  const Mode mode = ModeIn(snapshot);
  const bool any_quarantine = snapshot.state().digest(Table::kQuarantine).count != 0;
  if (!any_quarantine && !snapshot.CountIsTrue(Table::kQuarantine)) {
    return answer(Fail(Reason::kRecordDamaged));
  }
  Asked asked(snapshot, question);
  const FoundRow found = asked.Find(result.runtime_handler);
  std::optional<ImageView> row;
  if (found.lookup == Lookup::kFound) row.emplace(result.row = found.row);
  const std::string_view subject = found.subject.empty() ? asked.subject() : found.subject;
  if (trail != nullptr) {
    trail->unreadable = asked.Texts(trail->texts) == Lookup::kDamaged ||
                        FindAnyRecord(snapshot, subject, trail) == Lookup::kDamaged;
  }
  if (any_quarantine && IsClosedByFiles(snapshot, question, mode, asked, trail)) {
    return answer(Fail(Reason::kQuarantined));
  }
  pass("notQuarantined");
  if (found.lookup == Lookup::kDamaged) return answer(Fail(Reason::kRecordDamaged));
  const auto preloaded = [&] {  // most rows need no call
    return row && row->has_preloaded() ? OpensAsPreloaded(question, mode, *row)
                                       : std::optional<Decision>();
  };

  // 3. Where the image comes from. `closes`: why there is nothing to compare credentials with.
  ImageOrigin origin = ImageOrigin::kKubeletPulled;
  std::optional<Reason> closes;
  if (row && row->is_recorded()) {
    pass("recorded");
  } else {
    pass("notRecorded");
    if (const auto opened = preloaded()) return answer(*opened);
    if (any_quarantine && Presumes(mode) &&
        InQuarantine(snapshot, QuarantineKind::kImage, question.image, trail)) {
      return answer(Fail(Reason::kQuarantined));
    }
    const Lookup other_copy = FindAnyRecord(snapshot, subject, nullptr);
    const Lookup intent = Presumes(mode) && other_copy == Lookup::kAbsent
                              ? FindAnyIntent(snapshot, question)
                              : Lookup::kAbsent;
    if (other_copy == Lookup::kDamaged || intent == Lookup::kDamaged) {
      return answer(Fail(Reason::kRecordDamaged));
    }
    if (other_copy == Lookup::kFound) {
      closes = Reason::kPulledForOtherHandler;
    } else if (intent == Lookup::kFound) {
      closes = Reason::kPullInFlight;
    } else if (snapshot.state().distrustful) {
      origin = ImageOrigin::kUnknown;
      closes = Reason::kStoreDistrustful;
    } else if (Presumes(mode)) {
      origin = ImageOrigin::kPreloaded;
      closes = Reason::kNoRecord;
    } else {
      origin = ImageOrigin::kUnknown;
      // Whether it is preloaded may not matter.
      const auto name = ImageName(question.image).value_or(question.image);
      const bool verifies = question.policy.RequiresVerification(name, ImageOrigin::kPreloaded);
      closes = verifies ? Reason::kNoRecord : Reason::kNoEvidence;
    }
  }

  // 4. Whether the policy verifies such images.
  const auto image_name = ImageName(question.image);
  if (!question.policy.RequiresVerification(image_name.value_or(question.image), origin)) {
    return answer(AllowedBy(question.policy.mode()));
  }
  pass("policyVerifies");

  // 5. What pulls proved under the image name.
  if (closes) return answer(Pull(CheckResult::kMustAuthenticate, *closes));
  const auto pull_unless_preloaded = [&](Reason reason) {
    return answer(preloaded().value_or(Pull(CheckResult::kMustAuthenticate, reason)));
  };
  if (!image_name) return answer(preloaded().value_or(Fail(Reason::kImageDoesNotParse)));
  result.entry = row->Find(*image_name);
  if (!result.entry) {
    return pull_unless_preloaded(row->HasEntries() ? Reason::kNoEntryForImageName
                                                   : Reason::kEntryWithoutCredentials);
  }
  pass("pulledByThisName");

  // 6. Open to all pods of the node, or to none.
  if (result.entry->node_pods_accessible()) {
    const auto verdict = Standing(snapshot, question).OfNodePods(*result.entry);
    if (verdict != CredentialStanding::kCounts) return pull_unless_preloaded(ReasonOf(verdict));
    return answer(Allow(CheckResult::kCredentialRecordFound, Reason::kNodePodsAccessible));
  }
  if (result.entry->secret_count() == 0 && result.entry->service_account_count() == 0) {
    return pull_unless_preloaded(Reason::kEntryWithoutCredentials);
  }
  pass("credentialsOnRecord");
  result.decision = preloaded();
}

}  // namespace

Lookup FindStoredHandler(const ReaderPool::Lease& snapshot, std::string_view name,
                         std::string_view& stored) {
  stored = name;
  if (name.empty()) return Lookup::kFound;
  if (name.size() > kMaxRuntimeHandlerBytes) return Lookup::kAbsent;
  Payload payload;
  const Lookup found =
      snapshot.Get(Table::kRuntimeHandlers, HashKey(name, snapshot.seed()), payload);
  if (found != Lookup::kFound) return found;
  const RuntimeHandlerView handler = ViewRuntimeHandler(payload);
  if (handler.name != name) return Lookup::kDamaged;
  if (handler.is_default) stored = {};
  return Lookup::kFound;
}

FoundRow FindRow(const ReaderPool::Lease& snapshot, const Question& question,
                 std::string_view runtime_handler) {
  return Asked(snapshot, question).Find(runtime_handler);
}

DecisionOrEntry DecideWithoutCredentials(const ReaderPool::Lease& snapshot,
                                         const Question& question, Trail* trail) {
  DecisionOrEntry result;
  if (question.image_ref.empty()) {
    // 1. It is not on the node.
    result.decision = Pull(CheckResult::kNotCounted, Reason::kImageAbsent);
  } else {
    DecideOnRow(snapshot, question, trail, result);
  }
  return result;
}

Standing::Standing(const ReaderPool::Lease& snapshot, const Question& question)
    : snapshot_(snapshot), question_(question) {
  const VerificationPolicy& policy = question.policy;
  if (!policy.chooses_proofs()) return;
  const auto name = ImageName(question.image);
  only_registry_ = policy.CountsOnlyRegistry(name.value_or(question.image));
}

CredentialStanding Standing::Of(const StoredProof& proof) const {
  if (only_registry_ && proof.checker != VerifiedBy::kRegistry)
    return CredentialStanding::kNotByRegistry;
  const std::chrono::seconds most = snapshot_.state().max_age;
  if (most.count() == 0 && proof.good_until == 0) return CredentialStanding::kCounts;
  const Clocks now = snapshot_.state().clocks.At(question_.boot_clock(), question_.clock());
  return IsPastAge(proof, most, now) ? CredentialStanding::kTooOld : CredentialStanding::kCounts;
}

CredentialStanding Standing::OfNodePods(const EntryView& entry) const {
  if (!snapshot_) return CredentialStanding::kForgotten;
  return Of(entry.node_pods_proof());
}

CredentialStanding Standing::OfSecret(const EntryView& entry, std::size_t secret) const {
  if (!snapshot_) return CredentialStanding::kForgotten;
  if (AsksRevocations() && IsForgotten(snapshot_, entry.secret(secret))) {
    return CredentialStanding::kForgotten;
  }
  return Of(entry.secret_proof(secret));
}

CredentialStanding Standing::OfServiceAccount(const EntryView& entry, std::size_t account) const {
  if (!snapshot_) return CredentialStanding::kForgotten;
  if (AsksRevocations() && IsForgotten(snapshot_, entry.service_account(account))) {
    return CredentialStanding::kForgotten;
  }
  return Of(entry.service_account_proof(account));
}

bool Standing::IsHashForgotten(std::string_view hash) const {
  return !snapshot_ || internal::IsHashForgotten(snapshot_, hash);
}

namespace {

// Whether a verdict counts. If not, `why` says so, unless what matches was forgotten.
bool Counts(CredentialStanding verdict, Reason& why) {
  if (verdict == CredentialStanding::kCounts) return true;
  if (verdict != CredentialStanding::kForgotten) why = ReasonOf(verdict);
  return false;
}

// What step 7 compares a pod's secrets with.
struct StoredSecrets {
  const EntryView& entry;
  const Standing& standing;
  std::size_t count = entry.secret_count();
  bool may_write_back = count < kMaxSecretsForWriteBack;
};

// Whether the stored secret `i` opens the image to a pod that has `secret`. `why` says by what, or
// why it does not.
[[gnu::always_inline]] inline bool Opens(const StoredSecrets& stored, std::size_t i,
                                         const ImagePullSecretView& secret,
                                         const ProbeSecret& probe, SecretToStore& write_back,
                                         Reason& why) {
  const auto& [entry, standing, count, may_write_back] = stored;
  if (entry.HasHash(i, probe)) {
    if (!Counts(standing.OfSecret(entry, i), why)) return false;
    if (may_write_back && !entry.IsSecret(i, probe)) write_back = {&secret, entry.secret_proof(i)};
    why = Reason::kSecretHashMatches;
    return true;
  }
  // At the limit a changed Secret can't be stored, so it does not match (kubelet behaviour).
  if (!may_write_back || !entry.IsSecret(i, probe) ||
      standing.IsHashForgotten(secret.credential_hash) ||
      !Counts(standing.OfSecret(entry, i), why)) {
    return false;
  }
  write_back = {&secret, entry.secret_proof(i)};
  why = Reason::kSecretCoordinatesMatch;
  return true;
}

// Whether one of many secrets does. Keeps what it needs out of the stack of other decisions.
[[gnu::noinline]] bool AnyOpens(const StoredSecrets& stored,
                                std::span<const ImagePullSecretView> secrets,
                                SecretToStore& write_back, Reason& why) {
  if (!stored.standing.has_snapshot()) return false;
  LikelyMatches likely(stored.entry, secrets, stored.may_write_back, stored.standing.seed());
  for (std::size_t at = 0; at < secrets.size(); ++at) {
    std::size_t i = likely.Next(at, 0);
    if (i == stored.count) continue;
    const ProbeSecret probe(secrets[at]);
    for (; i < stored.count; i = likely.Next(at, i + 1)) {
      if (Opens(stored, i, secrets[at], probe, write_back, why)) return true;
    }
  }
  return false;
}

}  // namespace

Decision CompareCredentials(const EntryView& entry, const PodCredentials& credentials,
                            const Standing& standing, SecretToStore& write_back) {
  constexpr auto opened = [](Reason why) {
    return Decision{false, CheckResult::kCredentialRecordFound, why, true};
  };
  Reason why = Reason::kNoCredentialMatches;
  // 7. A secret that the image was pulled with. Most pods have one or two, and one of the first
  // matches: they are compared with all.
  const StoredSecrets stored{entry, standing};
  const std::size_t few = std::min<std::size_t>(credentials.secrets.size(), 2);
  for (const ImagePullSecretView& secret : credentials.secrets.first(few)) {
    const ProbeSecret probe(secret);
    for (std::size_t i = 0; i < stored.count; ++i) {
      if (Opens(stored, i, secret, probe, write_back, why)) return opened(why);
    }
  }
  if (few < credentials.secrets.size() &&
      AnyOpens(stored, credentials.secrets.subspan(few), write_back, why)) {
    return opened(why);
  }
  // 8. A service account that the image was pulled with.
  if (credentials.service_account) {
    const ProbeUid uid(credentials.service_account->uid);
    for (std::size_t i = 0; i < entry.service_account_count(); ++i) {
      if (entry.MatchServiceAccount(i, uid, *credentials.service_account) &&
          Counts(standing.OfServiceAccount(entry, i), why)) {
        return opened(Reason::kServiceAccountMatches);
      }
    }
  }
  // 9. No credential matches.
  return NoneMatches(why);
}

Decision CompareWithCopy(Payload row, std::string_view asked, const Question& question,
                         std::string_view runtime_handler, const PodCredentials& credentials,
                         const Standing& standing, SecretToStore& write_back) {
  const ImageView view(row);
  const auto image_name = ImageName(question.image);
  if (!image_name || asked != question.image_ref || view.runtime_handler() != runtime_handler) {
    return kNoneMatches;
  }
  const auto entry = view.Find(*image_name);
  return entry ? CompareCredentials(*entry, credentials, standing.OfCopy(), write_back)
               : kNoneMatches;
}

Decision ConfirmOrTighten(const Decision& first, const DecisionOrEntry& later, Mode mode,
                          const PodCredentials& credentials, const Standing& standing) {
  if (later.decision) {
    Decision now = *later.decision;
    now.credentials_read = true;
    if (now.result == CheckResult::kError) return now;
    return !first.pull && now.pull && mode == Mode::kStrict ? now : first;
  }
  if (first.pull || mode == Mode::kKubelet) return first;
  SecretToStore ignored;
  const Decision now = CompareCredentials(*later.entry, credentials, standing, ignored);
  return now.pull ? now : first;
}

}  // namespace waybill::internal
