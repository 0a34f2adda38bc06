#include "store/node/pulls/recording.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/base/image_name.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/try.h"
#include "store/node/images/merge_credentials.h"
#include "store/node/images/spellings.h"
#include "store/node/pulls/open_pulls.h"
#include "store/node/records/age.h"
#include "store/node/records/evidence_tables.h"
#include "store/node/records/open_pulls_table.h"
#include "store/node/records/pulled_record.h"
#include "store/node/records/revocations_table.h"
#include "store/node/records/typed_tables.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::internal {

namespace {

// Stores the pulled manifest and the guest platform. If one of them differs from the record's,
// drops the credentials, which were proven for the old one. Returns whether anything changed: not
// if a record without credentials learns its guest platform only, which says nothing about the
// pull.
bool TakeManifest(ImagePulledRecord& record, const PulledImage& pulled, bool is_new) {
  const bool had_credentials = !record.credential_mapping.empty();
  const std::string digest = record.manifest_digest;
  const std::optional<Platform> platform = record.platform;
  const bool other_guest = record.guest_platform != pulled.guest_platform;
  const bool other_manifest = pulled.manifest && !record.manifest_digest.empty() &&
                              record.manifest_digest != pulled.manifest->digest;
  if (!is_new && (other_guest || other_manifest)) {
    record.credential_mapping.clear();
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

// By the clock of ages.
Timestamp TimeOfProof(const StoreTxn& txn) { return {txn.clocks().ages.seconds, 0}; }

Proof FreshProof(const StoreTxn& txn, std::uint64_t began, const ProofTerms& terms) {
  return {TimeOfProof(txn), began, terms.checker, terms.good_until};
}

// What the pull proved. One that began before the last truth may have been made with a Secret that
// the truth did not have.
ImagePullCredentials Proven(const StoreTxn& txn, const ImagePullCredentials& credentials,
                            std::uint64_t began, const ProofTerms& terms) {
  ImagePullCredentials proven = credentials;
  const Proof proof = FreshProof(txn, began, terms);
  proven.node_pods_proof = proof;
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
void DropIdleNodePods(const StoreTxn& txn, const VerificationPolicy& policy,
                      ImagePulledRecord& record, std::string_view image_name) {
  const auto at = record.credential_mapping.find(std::string(image_name));
  if (at == record.credential_mapping.end() || !at->second.node_pods_accessible) return;
  const Proof& proof = at->second.node_pods_proof;
  const Aging aging = AgingIn(txn);
  if (IsPastAge(proof, aging.limits.node_pods, aging.now) ||
      !policy.ProofCounts(image_name, proof.checker)) {
    record.credential_mapping.erase(at);
  }
}

// Whether another pull of the string is in flight still.
bool CountDown(InFlight& in_flight, std::string_view image, std::string_view runtime_handler) {
  InFlight::Entry entry = in_flight.Get(image, runtime_handler);
  const bool others = entry.count > 1;
  entry.count = others ? entry.count - 1 : 0;
  in_flight.Set(image, runtime_handler, entry);
  return others;
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
      by_hash = Better(by_hash.value_or(one.proof), one.proof, aging.limits.credentials, aging.now);
    }
    if (one.uid == secret.uid && one.name == secret.name &&
        one.namespace_name == secret.namespace_name) {
      by_coordinates = one.proof;
    }
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
    const auto same = std::find_if(stored.begin(), stored.end(), [&](const auto& one) {
      return one.uid == secret.uid && one.name == secret.name &&
             one.namespace_name == secret.namespace_name;
    });
    if (same != stored.end()) secret = *same;
  }
  return {};
}

// The guest platform that the handler has now; nullopt in the outer one: it is not in the registry.
Result<std::optional<std::optional<Platform>>> GuestNow(const StoreTxn& txn,
                                                        std::string_view runtime_handler) {
  using Guest = std::optional<std::optional<Platform>>;
  auto handlers = TRY(ReadRuntimeHandlers(txn));
  for (const RuntimeHandler& known : handlers) {
    if (runtime_handler.empty() ? known.is_default : known.name == runtime_handler) {
      return Guest(known.guest_platform);
    }
  }
  return runtime_handler.empty() ? Guest(std::in_place) : Guest();
}

// Mode::kKubelet: the record that a decision read went meanwhile. It says that the image was
// pulled, and has the secret if that counts still.
Result<void> StoreAgain(StoreTxn& txn, const MatchedSecret& matched, bool forgot) {
  ImagePulledRecord record = *matched.read;
  record.last_updated = txn.now();
  auto guest = TRY(GuestNow(txn, matched.runtime_handler));
  if (!forgot && guest && *guest == record.guest_platform) {
    record.credential_mapping[matched.image_name].kubernetes_secrets = {matched.secret};
  }
  return StoreRecord(txn, std::move(record));
}

}  // namespace

Result<void> GiveProofs(const StoreTxn& txn, const std::optional<ImagePulledRecord>& before,
                        const ProofTerms& terms, const VerificationPolicy& policy,
                        ImagePulledRecord& put) {
  auto pulls = TRY(AllOpenPulls(txn));
  std::optional<ImagePulledRecord> standing = before;
  if (standing && txn.state().untidied != 0) TRY(DropForgotten(txn, *standing));
  const Aging aging = AgingIn(txn);
  const auto& [ages, now] = aging;
  for (auto& [name, entry] : put.credential_mapping) {
    ImagePullCredentials stored;
    if (standing) {
      const auto at = standing->credential_mapping.find(name);
      if (at != standing->credential_mapping.end()) stored = at->second;
    }
    const std::uint64_t began = PullOfNameBegan(pulls, name, put.runtime_handler);
    Proof fresh;
    if (began != 0) fresh = FreshProof(txn, began, terms);
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
    const auto secrets = Counting(stored.kubernetes_secrets, only_registry, ages.credentials, now);
    give(entry.kubernetes_secrets, secrets);
    give(entry.kubernetes_service_accounts,
         Counting(stored.kubernetes_service_accounts, only_registry, AgeOfServiceAccounts(ages),
                  now));
    if (failed) failed = KeepWhatIsNotForgotten(txn, secrets, entry.kubernetes_secrets);
    if (!failed) return failed;
    const Proof& of_node = stored.node_pods_proof;
    const bool still_open = stored.node_pods_accessible &&
                            policy.ProofCounts(name, of_node.checker) &&
                            !IsPastAge(of_node, ages.node_pods, now);
    entry.node_pods_proof = still_open ? of_node : fresh;
  }
  return {};
}

Result<void> ClearRefQuarantine(StoreTxn& txn, std::string_view image_ref, Mode rules) {
  if (txn.state().digest(Table::kQuarantine).count == 0) return {};
  std::vector<std::string> refs{std::string(image_ref)};
  if (rules == Mode::kStrict) refs = TRY(RefsOfImage(txn, image_ref));
  for (const std::string& ref : refs) {
    if (auto r = EraseQuarantine(txn, QuarantineKind::kImageRef, ref); !r) return r;
  }
  return {};
}

Result<PullId> RecordIntent(StoreTxn& txn, InFlight& in_flight, Mode rules, std::string_view image,
                            std::string_view runtime_handler, const BootTime& now) {
  InFlight::Entry entry = in_flight.Get(image, runtime_handler);
  if (entry.count == 0 && in_flight.size() >= kMaxInFlightImages) {
    return Error{ErrorCode::kLimitExceeded,
                 "pulls of " + std::to_string(kMaxInFlightImages) + " images are in flight already",
                 "record how earlier pulls ended"};
  }
  Result<PullId> id = PullId();
  if (rules == Mode::kKubelet) {
    auto there = TRY(FindOpenPulls(txn, image, runtime_handler));
    if (!there.empty()) id = there.back().id;
  }
  if (id->value == 0) id = BeginPull(txn, image, runtime_handler, now);
  if (!id) return id;
  ++entry.count;
  in_flight.Set(image, runtime_handler, entry);
  return id;
}

Result<void> RecordPulled(StoreTxn& txn, InFlight& in_flight, Mode rules,
                          const PulledImage& pulled) {
  if (rules == Mode::kStrict) {
    // A list without a token may be older than this image.
    txn.state().awaits_first_list = false;
    TRY(TakeOverRecord(txn, pulled.image_ref, pulled.runtime_handler));
    TRY(EraseRemembered(txn, pulled.image_ref, pulled.runtime_handler));
  }
  auto found = FindRecord(txn, pulled.image_ref, pulled.runtime_handler);
  if (!found && found.error().code != ErrorCode::kDamaged) return found.error();
  const bool is_new = !found || !*found;  // an unreadable record is replaced
  ImagePulledRecord record;
  if (!is_new) record = std::move(**found);
  // A proof that was forgotten must not outlive a later one (Better).
  if (txn.state().untidied != 0) TRY(DropForgotten(txn, record));
  record.image_ref = pulled.image_ref;
  record.runtime_handler = pulled.runtime_handler;
  const bool other_guest = record.guest_platform != pulled.guest_platform;
  // The image was gone: what was proven for it then counts no more.
  const bool was_absent = rules == Mode::kStrict && record.absent_since;
  if (was_absent) record.credential_mapping.clear();
  record.absent_since.reset();
  bool changed = TakeManifest(record, pulled, is_new) || is_new || was_absent;
  record.closed_because.clear();
  record.closed_by_list = false;
  bool proves = false;
  if (pulled.credentials) {
    // Of what the caller gives, not of what is left of it.
    ImagePulledRecord given;
    given.credential_mapping.emplace(pulled.image_name, *pulled.credentials);
    if (auto r = CheckRecordLimits(given); !r) return r;
    auto began = TRY(PullBegan(txn, pulled.image, pulled.runtime_handler, pulled.pull));
    ImagePulledRecord proven;
    proven.image_ref = pulled.image_ref;
    proven.runtime_handler = pulled.runtime_handler;
    proven.credential_mapping.emplace(pulled.image_name,
                                      Proven(txn, *pulled.credentials, began, pulled.terms));
    // Here already: what was forgotten since it began must not take the place of what was not.
    TRY(DropForgotten(txn, proven));
    for (const auto& [name, entry] : proven.credential_mapping) {
      proves = !entry.empty();
      if (proves) DropIdleNodePods(txn, pulled.policy, record, name);
      const bool merged = MergeCredentials(record, name, entry, AgingIn(txn));
      // On a new record the kubelet keeps even an entry without credentials.
      if (is_new) record.credential_mapping.try_emplace(name, entry);
      changed = changed || merged;
    }
  }
  // Rule 4: a pull that adds nothing still confirms the record, or garbage collection could remove
  // it.
  const bool confirms = changed || rules == Mode::kStrict;
  if (confirms || proves || other_guest) {
    // A record written by a clock that was ahead keeps its time.
    const bool ahead = rules == Mode::kStrict && record.last_updated > txn.now();
    if (confirms && !ahead) record.last_updated = txn.now();
    TRY(confirms ? StoreRecord(txn, std::move(record)) : StoreProofs(txn, std::move(record)));
  }
  if (auto r = ClearRefQuarantine(txn, pulled.image_ref, rules); !r) return r;
  if (auto r = ClearImageQuarantine(txn, pulled, pulled.now); !r) return r;

  const bool others = CountDown(in_flight, pulled.image, pulled.runtime_handler);
  if (rules == Mode::kStrict) {
    return RemovePull(txn, {pulled.image, pulled.runtime_handler, pulled.pull});
  }
  return others ? Result<void>() : EraseIntents(txn, pulled.image, pulled.runtime_handler);
}

Result<void> RecordFailed(StoreTxn& txn, InFlight& in_flight, Mode rules,
                          const FailedPull& failed) {
  const bool others = CountDown(in_flight, failed.image, failed.runtime_handler);
  if (rules == Mode::kKubelet) {
    return others ? Result<void>() : EraseIntents(txn, failed.image, failed.runtime_handler);
  }
  const EndingPull ending{failed.image, failed.runtime_handler, failed.pull};
  if (failed.failure == PullFailure::kNothingTransferred) {
    auto pull = TRY(FindEndingPull(txn, ending));
    // A list that was drawn while it ran may have something of it. There is none if the pull began
    // in this process, which drew no token since.
    const bool no_list = pull && pull->stamp > failed.opened_at && pull->stamp > failed.last_token;
    if (no_list) return RemovePull(txn, ending);
    return EndPull(txn, ending, {.state = PullState::kFailed, .nothing = true, .at = failed.now});
  }
  const bool reported = failed.failure == PullFailure::kFailed;
  return EndPull(txn, ending,
                 {.state = reported ? PullState::kFailed : PullState::kUnknown, .at = failed.now});
}

Result<void> StoreIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler,
                         Mode rules, const BootTime& now) {
  auto pulls = TRY(FindOpenPulls(txn, image, runtime_handler));
  const bool runs = std::any_of(pulls.begin(), pulls.end(), [&](const UnresolvedPull& pull) {
    return rules == Mode::kKubelet || pull.state == PullState::kRunning;
  });
  if (runs) return {};
  auto begun = BeginPull(txn, image, runtime_handler, now);
  return begun ? Result<void>() : begun.error();
}

Result<void> ForgetIntent(StoreTxn& txn, const InFlight& in_flight, std::string_view image,
                          std::string_view runtime_handler) {
  const bool in_flight_here = in_flight.Get(image, runtime_handler).count > 0;
  auto pulls = TRY(FindOpenPulls(txn, image, runtime_handler));
  for (const UnresolvedPull& pull : pulls) {
    if (in_flight_here && pull.state == PullState::kRunning) continue;
    if (auto r = EraseOpenPull(txn, pull); !r) return r;
    NoteEvidenceRemoved(txn);
  }
  return {};
}

Result<void> WriteBack(StoreTxn& txn, const MatchedSecret& matched, bool forgot) {
  const ImagePullSecret& secret = matched.secret;
  const std::string& runtime_handler = matched.runtime_handler;
  auto record = FindRecord(txn, matched.image_ref, runtime_handler);
  if (!record) return record.error();
  if (!*record && !txn.state().kubelet_rules) {
    // The decision may have been about another spelling of the record's image.
    auto refs = TRY(RefsOfImage(txn, matched.image_ref));
    for (const std::string& ref : refs) {
      record = FindRecord(txn, ref, runtime_handler);
      if (!record) return record.error();
      if (*record) break;
    }
  }
  if (!*record) return matched.read ? StoreAgain(txn, matched, forgot) : Result<void>();
  if (forgot) return {};
  // A credential that was forgotten proves nothing.
  if (txn.state().untidied != 0) TRY(DropForgotten(txn, **record));
  const auto entry = (*record)->credential_mapping.find(matched.image_name);
  if (entry == (*record)->credential_mapping.end()) return {};
  const auto& secrets = entry->second.kubernetes_secrets;
  if (secrets.size() >= kMaxSecretsForWriteBack) return {};
  // A match proves nothing: what it adds has the proof of what it matched.
  std::optional<Proof> by_hash;
  std::optional<Proof> by_coordinates;
  const Aging aging = AgingIn(txn);
  for (const auto& stored :
       Counting(secrets, matched.only_registry, aging.limits.credentials, aging.now)) {
    const bool hash =
        !stored.credential_hash.empty() && stored.credential_hash == secret.credential_hash;
    const bool coordinates = stored.uid == secret.uid && stored.name == secret.name &&
                             stored.namespace_name == secret.namespace_name;
    if (hash) {
      by_hash =
          Better(by_hash.value_or(stored.proof), stored.proof, aging.limits.credentials, aging.now);
    }
    if (coordinates) by_coordinates = stored.proof;
  }
  if (!by_hash && !by_coordinates) return {};
  ImagePullCredentials added;
  added.kubernetes_secrets.push_back(secret);
  added.kubernetes_secrets.back().proof = by_hash ? *by_hash : *by_coordinates;
  // What was forgotten must not take the place of what was not.
  auto forgotten = IsForgotten(txn, added.kubernetes_secrets.back());
  if (forgotten && !*forgotten && !by_hash) {
    forgotten = IsHashForgotten(txn, secret.credential_hash);
  }
  if (!forgotten) return forgotten.error();
  if (*forgotten) return {};
  if (!MergeCredentials(**record, matched.image_name, added, aging)) return {};
  (*record)->last_updated = txn.now();
  return StoreRecord(txn, std::move(**record));
}

}  // namespace waybill::internal
