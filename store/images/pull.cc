#include "store/images/pull.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/try.h"
#include "store/images/observe.h"
#include "store/images/open_pulls.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "store/images/pull_row.h"
#include "store/images/revoked.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

// Takes the pulled manifest and the guest platform. If one of them differs from the record's, drops
// the credentials, which were proven for the old one. Returns whether anything changed: not if a
// record without credentials learns its guest platform only, which says nothing about the pull.
bool TakeManifest(PulledPart& record, const PulledImage& pulled, bool is_new) {
  const bool had_credentials = !record.entries.empty();
  const std::string digest = record.manifest_digest;
  const std::optional<Platform> platform = record.platform;
  const bool other_guest = record.guest_platform != pulled.guest_platform;
  const bool other_manifest =
      pulled.manifest && IsOther(record.manifest_digest, pulled.manifest->digest);
  if (!is_new && (other_guest || other_manifest)) {
    record.entries.clear();
    record.manifest_digest.clear();
    record.platform.reset();
  }
  record.guest_platform = pulled.guest_platform;
  if (pulled.manifest) {
    record.manifest_digest = pulled.manifest->digest;
    record.platform = pulled.manifest->platform;
  }
  return (other_guest && had_credentials) || record.manifest_digest != digest ||
         record.platform != platform;
}

// A quarantined image string stands for an unreadable intent of the default handler, since a
// kubelet without handlers wrote it. A pull for another handler reveals the string: then it is
// known which pull may have brought something.
Result<void> ClearImageQuarantine(StoreTxn& txn, const PulledImage& pulled, const BootTime& now) {
  if (!pulled.runtime_handler.empty() && txn.state().digest(Table::kQuarantine).count != 0) {
    if (TRY(IsQuarantined(txn, QuarantineKind::kImage, pulled.image))) {
      if (auto r = TakeOverIntent(txn, pulled.image, "", txn.now(), now); !r) return r;
    }
  }
  return EraseQuarantine(txn, QuarantineKind::kImage, pulled.image);
}

// Mode::kKubelet: the intent goes with the last pull of the string in this process.
Result<void> EraseIntents(StoreTxn& txn, std::string_view image, std::string_view runtime_handler) {
  auto pulls = TRY(FindOpenPulls(txn, image, runtime_handler));
  for (const UnresolvedPull& pull : pulls) TRY(EraseOpenPull(txn, pull));
  return {};
}

// The commit in which the pull began; 0: unknown. Without an ID it may be any that runs, so the
// oldest counts.
Result<std::uint64_t> PullBegan(const StoreTxn& txn, std::string_view image,
                                std::string_view runtime_handler, PullId id) {
  auto pulls = TRY(FindOpenPulls(txn, image, runtime_handler));
  std::optional<std::uint64_t> began;
  const auto take = [&](PullState state) {
    for (const UnresolvedPull& pull : pulls) {
      if (id.value != 0 ? pull.id == id : pull.state == state) {
        began = std::min(began.value_or(pull.stamp), pull.stamp);
      }
    }
  };
  take(PullState::kRunning);
  if (!began) take(PullState::kUnknown);
  return began.value_or(0);
}

// By the clock of ages. `written`: of a record, which proves nothing that came later.
Timestamp TimeOfProof(const StoreTxn& txn, const std::optional<Timestamp>& written) {
  const Clocks& now = txn.clocks();
  std::chrono::nanoseconds ago{0};
  if (written && written->seconds >= kEarliestClockSeconds) {
    ago = std::max(ago, Between(*written, now.wall));
  }
  return {std::max<std::int64_t>(Plus(now.ages, -ago).seconds, 1), 0};
}

Proof FreshProof(const StoreTxn& txn, std::uint64_t began, const ProofTerms& terms,
                 const std::optional<Timestamp>& written = {}) {
  return {TimeOfProof(txn, written), began, terms.checker, terms.good_until};
}

// No registry checked anything.
Proof OfEveryPod(Proof proof) {
  proof.checker = VerifiedBy::kNobody;
  return proof;
}

// Whether what a pull without credentials proved must not count: Secrets or service accounts are,
// or were, on record under the name, and the node's own credentials may have served the pull.
bool MayBeTheNodes(const Images& images, const ImageRow& row, std::string_view image_name,
                   const ProofTerms& terms) {
  return images.learns_aliases() && !terms.node_had_no_credentials && row.pulled &&
         NeededCredentials(*row.pulled, image_name);
}

// What the pull proved. One that began before the last truth may have been made with a Secret that
// the truth did not have.
ImagePullCredentials Proven(const StoreTxn& txn, const ImagePullCredentials& credentials,
                            std::uint64_t began, const ProofTerms& terms) {
  ImagePullCredentials proven = credentials;
  const Proof proof = FreshProof(txn, began, terms);
  proven.node_pods_proof = OfEveryPod(proof);
  for (ImagePullSecret& secret : proven.kubernetes_secrets) secret.proof = proof;
  for (auto& account : proven.kubernetes_service_accounts) account.proof = proof;
  if (txn.state().last_truth != 0 && began <= txn.state().last_truth) {
    proven.kubernetes_secrets.clear();
    proven.kubernetes_service_accounts.clear();
  }
  return proven;
}

// That all pods may use the image gives way to what a pull proves if it does not count, by its age
// or by who checked it: otherwise nothing could be added to it.
void DropIdleNodePods(const StoreTxn& txn, const VerificationPolicy& policy, Credentials& entries,
                      std::string_view image_name) {
  const auto at = entries.find(std::string(image_name));
  if (at == entries.end() || !at->second.node_pods_accessible) return;
  const Proof& proof = at->second.node_pods_proof;
  const Aging aging = AgingIn(txn);
  if (IsPastAge(proof, aging.max_age, aging.now) ||
      !policy.ProofCounts(image_name, proof.checker)) {
    entries.erase(at);
  }
}

// Whether another pull of the string is in flight still.
bool CountDown(InFlight& in_flight, std::string_view image, std::string_view runtime_handler) {
  const std::uint64_t count = in_flight.Get(image, runtime_handler);
  in_flight.Set(image, runtime_handler, count == 0 ? 0 : count - 1);
  return count > 1;
}

// The commit in which the oldest running pull of the image name began; 0: none runs.
std::uint64_t PullOfNameBegan(const std::vector<UnresolvedPull>& pulls, std::string_view image_name,
                              std::string_view runtime_handler) {
  std::uint64_t began = 0;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.state != PullState::kRunning || pull.runtime_handler != runtime_handler) continue;
    if (ImageName(pull.image) != image_name) continue;
    began = began == 0 ? pull.stamp : std::min(began, pull.stamp);
  }
  return began;
}

// The stored credentials whose proofs others may inherit: those that count.
template <typename T>
std::vector<T> Counting(const std::vector<T>& stored, bool only_registry, std::chrono::seconds most,
                        const Clocks& now) {
  std::vector<T> counting;
  for (const T& one : stored) {
    const bool is_checked = !only_registry || one.proof.checker == VerifiedBy::kRegistry;
    if (is_checked && !IsPastAge(one.proof, most, now)) counting.push_back(one);
  }
  return counting;
}

bool HaveSameCoordinates(const ImagePullSecret& a, const ImagePullSecret& b) {
  return a.uid == b.uid && a.name == b.name && a.namespace_name == b.namespace_name;
}

// nullopt: none of them is the secret, or matches it. A hash that was forgotten inherits nothing
// from another one of the same coordinates.
Result<std::optional<Proof>> InheritedBy(const StoreTxn& txn, const ImagePullSecret& secret,
                                         const std::vector<ImagePullSecret>& stored,
                                         const Aging& aging) {
  std::optional<Proof> by_hash;
  std::optional<Proof> by_coordinates;
  for (const ImagePullSecret& one : stored) {
    if (one == secret) return std::optional(one.proof);
    if (!one.credential_hash.empty() && one.credential_hash == secret.credential_hash) {
      by_hash = Better(by_hash.value_or(one.proof), one.proof, aging.max_age, aging.now);
    }
    if (HaveSameCoordinates(one, secret)) by_coordinates = one.proof;
  }
  if (by_hash || !by_coordinates) return by_hash;
  auto forgotten = TRY(IsHashForgotten(txn, secret.credential_hash));
  return forgotten ? std::nullopt : by_coordinates;
}

Result<std::optional<Proof>> InheritedBy(const StoreTxn&, const ImagePullServiceAccount& account,
                                         const std::vector<ImagePullServiceAccount>& stored,
                                         const Aging&) {
  const auto at = std::find(stored.begin(), stored.end(), account);
  return at == stored.end() ? std::nullopt : std::optional(at->proof);
}

// A secret whose hash was forgotten does not take the place of the stored one of its coordinates.
Result<void> KeepWhatIsNotForgotten(const StoreTxn& txn, const std::vector<ImagePullSecret>& stored,
                                    std::vector<ImagePullSecret>& put) {
  for (ImagePullSecret& secret : put) {
    if (!TRY(IsForgotten(txn, secret))) continue;
    const auto same = std::ranges::find_if(
        stored, [&](const auto& one) { return HaveSameCoordinates(one, secret); });
    if (same != stored.end()) secret = *same;
  }
  return {};
}

// Mode::kKubelet: the record that a decision read went meanwhile. It says that the image was
// pulled, and has the secret if that counts still.
Result<void> StoreAgain(Images& images, const MatchedSecret& matched, bool forgot) {
  const auto home = TRY(images.Home(matched.image_ref));
  ImageRow row = TRY(images.FindOrMake(home, matched.runtime_handler));
  row = Present(std::move(row));
  row.ref = matched.read->ref;
  row.pulled = matched.read->pulled;
  row.pulled->last_updated = images.txn().now();
  const auto handlers = TRY(ReadRuntimeHandlers(images.txn()));
  const RuntimeHandler* const known = FindStored(handlers, matched.runtime_handler);
  const auto guest = known != nullptr ? known->guest_platform : std::nullopt;
  const bool is_served = known != nullptr || matched.runtime_handler.empty();
  if (!forgot && is_served && guest == row.pulled->guest_platform) {
    row.pulled->entries[matched.image_name].kubernetes_secrets = {matched.secret};
  }
  return images.Put(std::move(row), Images::Confirms::kYes);
}

}  // namespace

Result<void> GiveProofs(const Images& images, ImageRow before, const ProofTerms& terms,
                        const VerificationPolicy& policy, PulledPart& part) {
  Credentials& put = part.entries;
  const StoreTxn& txn = images.txn();
  const auto pulls = TRY(AllOpenPulls(txn));
  if (txn.state().unfinished != 0) TRY(LeaveOutRevoked(images, before));
  const Aging aging = AgingIn(txn);
  const auto& [max_age, now] = aging;
  // Of these what is stored stays, unless the image was gone, or was another manifest's.
  Credentials stays;
  const bool is_same = before.pulled && before.pulled->guest_platform == part.guest_platform &&
                       !IsOther(before.pulled->manifest_digest, part.manifest_digest);
  std::erase_if(put, [&](const auto& one) {
    const auto& [name, entry] = one;
    if (!entry.node_pods_accessible || !MayBeTheNodes(images, before, name, terms)) return false;
    const auto at = before.pulled->entries.find(name);
    if (at != before.pulled->entries.end() && before.absent == 0 && is_same) stays.insert(*at);
    return true;
  });
  for (auto& [name, entry] : put) {
    ImagePullCredentials stored;
    if (before.pulled) {
      const auto at = before.pulled->entries.find(name);
      if (at != before.pulled->entries.end()) stored = at->second;
    }
    const std::uint64_t began = PullOfNameBegan(pulls, name, before.runtime_handler);
    Proof fresh;
    if (began != 0) fresh = FreshProof(txn, began, terms, part.last_updated);
    const bool may_be_gone = txn.state().last_truth != 0 && began <= txn.state().last_truth;
    Result<void> failed;
    const auto give = [&](auto& credentials, const auto& counting) {
      std::erase_if(credentials, [&](auto& one) {
        auto inherited = InheritedBy(txn, one, counting, aging);
        if (!inherited) failed = inherited.error();
        if (!failed) return false;
        one.proof = inherited->value_or(fresh);
        return !*inherited && may_be_gone;
      });
    };
    const bool only_registry = policy.CountsOnlyRegistry(name);
    const auto secrets = Counting(stored.kubernetes_secrets, only_registry, max_age, now);
    give(entry.kubernetes_secrets, secrets);
    give(entry.kubernetes_service_accounts,
         Counting(stored.kubernetes_service_accounts, only_registry, max_age, now));
    if (failed) failed = KeepWhatIsNotForgotten(txn, secrets, entry.kubernetes_secrets);
    if (!failed) return failed;
    const Proof& of_node = stored.node_pods_proof;
    const bool still_open = stored.node_pods_accessible &&
                            policy.ProofCounts(name, of_node.checker) &&
                            !IsPastAge(of_node, max_age, now);
    entry.node_pods_proof = OfEveryPod(still_open ? of_node : fresh);
  }
  put.merge(stays);
  return {};
}

Result<PullId> RecordIntent(StoreTxn& txn, InFlight& in_flight, Mode mode, std::string_view image,
                            std::string_view runtime_handler, const BootTime& now) {
  const std::uint64_t count = in_flight.Get(image, runtime_handler);
  if (count == 0 && in_flight.size() >= kMaxInFlightImages) {
    return Error{ErrorCode::kLimitExceeded,
                 "pulls of " + std::to_string(kMaxInFlightImages) + " images are in flight already",
                 "record how earlier pulls ended"};
  }
  Result<PullId> id = PullId();
  if (!KeepsEndedPulls(mode)) {
    auto there = TRY(FindOpenPulls(txn, image, runtime_handler));
    if (!there.empty()) id = there.back().id;
  }
  if (id->value == 0) id = BeginPull(txn, image, runtime_handler, now);
  if (!id) return id;
  in_flight.Set(image, runtime_handler, count + 1);
  return id;
}

Result<void> RecordPulled(Images& images, InFlight& in_flight, const PulledImage& pulled) {
  StoreTxn& txn = images.txn();
  const bool strict = images.learns_aliases();
  // What the pull returned may be a digest that two images have: then its record would be found by
  // no other.
  std::string ref(pulled.image_ref);
  if (strict) {
    if (pulled.entry && TRY(LearnEntry(images, *pulled.entry, ref))) ref = pulled.entry->id;
    // A list without a token may be older than this image.
    txn.state().awaits_first_list = false;
  }
  const auto home = TRY(images.Home(ref));
  ImageRow row = TRY(images.FindOrMake(home, std::string(pulled.runtime_handler)));
  // A proof that was forgotten must not outlive a later one (Better).
  if (txn.state().unfinished != 0) TRY(LeaveOutRevoked(images, row));
  const bool is_new = !row.pulled;
  const bool may_be_nodes = MayBeTheNodes(images, row, pulled.image_name, pulled.terms);
  const bool was_absent = strict && row.absent != 0;
  // What came back is what this pull brought: what was proven, or known of its coming, counts no
  // more.
  row = Present(std::move(row));
  PulledPart record = row.pulled.value_or(PulledPart());
  if (was_absent) record.entries.clear();
  const bool other_guest = record.guest_platform != pulled.guest_platform;
  bool changed = TakeManifest(record, pulled, is_new) || is_new || was_absent;
  record.closed_because.clear();
  record.closed_by = WordOfOperator(row);
  row.ref = ref;
  if (strict) AddAlias(row, ref);
  bool proves = false;
  if (pulled.credentials) {
    // Of what the caller gives, not of what is left of it.
    const auto given = [&](ImagePullCredentials credentials) {
      ImageRow one = row;
      one.pulled = PulledPart{};
      one.pulled->entries.emplace(pulled.image_name, std::move(credentials));
      return one;
    };
    TRY(CheckRowLimits(given(*pulled.credentials)));
    ImagePullCredentials credentials = *pulled.credentials;
    if (may_be_nodes) credentials.node_pods_accessible = false;
    const auto began = TRY(PullBegan(txn, pulled.image, pulled.runtime_handler, pulled.pull));
    ImageRow proven = given(Proven(txn, credentials, began, pulled.terms));
    // Here already: what was forgotten since it began must not take the place of what was not.
    TRY(LeaveOutRevoked(images, proven));
    for (const auto& [name, entry] : proven.pulled->entries) {
      proves = !entry.empty();
      if (proves) DropIdleNodePods(txn, pulled.policy, record.entries, name);
      const bool merged = MergeCredentials(record.entries, name, entry, AgingIn(txn));
      // On a new record the kubelet keeps even an entry without credentials.
      if (is_new) record.entries.try_emplace(name, entry);
      changed = changed || merged;
    }
  }
  // Rule 4: a pull that adds nothing still confirms the record, or garbage collection could remove
  // it.
  const bool confirms = changed || strict;
  if (confirms || proves || other_guest) {
    if (confirms) record.last_updated = txn.now();
    row.pulled = std::move(record);
    TRY(images.Put(std::move(row), confirms ? Images::Confirms::kYes : Images::Confirms::kNo));
  }
  TRY(images.ClearUnreadable(ref));
  TRY(ClearImageQuarantine(txn, pulled, pulled.now));

  const bool others = CountDown(in_flight, pulled.image, pulled.runtime_handler);
  if (KeepsEndedPulls(images.mode())) {
    return RemovePull(txn, {pulled.image, pulled.runtime_handler, pulled.pull});
  }
  return others ? Result<void>() : EraseIntents(txn, pulled.image, pulled.runtime_handler);
}

Result<void> RecordFailed(StoreTxn& txn, InFlight& in_flight, Mode mode, const FailedPull& failed) {
  const bool others = CountDown(in_flight, failed.image, failed.runtime_handler);
  if (!KeepsEndedPulls(mode)) {
    return others ? Result<void>() : EraseIntents(txn, failed.image, failed.runtime_handler);
  }
  const EndingPull ending{failed.image, failed.runtime_handler, failed.pull};
  if (failed.outcome == PullOutcome::kNothing) {
    auto pull = TRY(FindEndingPull(txn, ending));
    // A list that was drawn while it ran may have something of it. There is none if the pull began
    // in this process, which drew no token since.
    const bool no_list = pull && pull->stamp > failed.opened_at && pull->stamp > failed.last_token;
    if (no_list) return RemovePull(txn, ending);
    return EndPull(txn, ending, {.state = PullState::kFailed, .nothing = true, .at = failed.now});
  }
  const bool reported = failed.outcome == PullOutcome::kFailed;
  return EndPull(txn, ending,
                 {.state = reported ? PullState::kFailed : PullState::kUnknown, .at = failed.now});
}

Result<void> StoreIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler,
                         Mode mode, const BootTime& now) {
  auto pulls = TRY(FindOpenPulls(txn, image, runtime_handler));
  const bool runs = std::any_of(pulls.begin(), pulls.end(), [&](const UnresolvedPull& pull) {
    return !KeepsEndedPulls(mode) || pull.state == PullState::kRunning;
  });
  if (runs) return {};
  auto begun = BeginPull(txn, image, runtime_handler, now);
  return begun ? Result<void>() : begun.error();
}

Result<void> ForgetIntent(StoreTxn& txn, const InFlight& in_flight, std::string_view image,
                          std::string_view runtime_handler) {
  const bool in_flight_here = in_flight.Get(image, runtime_handler) > 0;
  auto pulls = TRY(FindOpenPulls(txn, image, runtime_handler));
  for (const UnresolvedPull& pull : pulls) {
    if (in_flight_here && pull.state == PullState::kRunning) continue;
    if (auto r = EraseOpenPull(txn, pull); !r) return r;
    NoteEvidenceRemoved(txn);
  }
  return {};
}

Result<void> WriteBack(Images& images, const MatchedSecret& matched, bool forgot) {
  const StoreTxn& txn = images.txn();
  const auto home = TRY(images.Home(matched.image_ref));
  auto found = TRY(images.Find(home, matched.runtime_handler));
  if (!found || !found->pulled) {
    return matched.read ? StoreAgain(images, matched, forgot) : Result<void>();
  }
  if (forgot) return {};
  ImageRow row = *std::move(found);
  // A credential that was forgotten proves nothing.
  if (txn.state().unfinished != 0) TRY(LeaveOutRevoked(images, row));
  const auto entry = row.pulled->entries.find(matched.image_name);
  if (entry == row.pulled->entries.end()) return {};
  const auto& secrets = entry->second.kubernetes_secrets;
  if (secrets.size() >= kMaxSecretsForWriteBack) return {};
  // A match proves nothing: what it adds has the proof of what it matched.
  const Aging aging = AgingIn(txn);
  const auto counting = Counting(secrets, matched.only_registry, aging.max_age, aging.now);
  const auto inherited = TRY(InheritedBy(txn, matched.secret, counting, aging));
  if (!inherited) return {};
  ImagePullCredentials added;
  ImagePullSecret& secret = added.kubernetes_secrets.emplace_back(matched.secret);
  secret.proof = *inherited;
  // What was forgotten must not take the place of what was not.
  if (TRY(IsForgotten(txn, secret))) return {};
  if (!MergeCredentials(row.pulled->entries, matched.image_name, added, aging)) return {};
  row.pulled->last_updated = txn.now();
  return images.Put(std::move(row), Images::Confirms::kYes);
}

}  // namespace waybill::internal
