#include "store/node/records/pulled_record.h"

#include <flatbuffers/flatbuffers.h>
#include <openssl/crypto.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "schema/v2/pulled_record_generated.h"
#include "store/base/hex.h"
#include "store/base/try.h"
#include "store/engine/database/flatbuffer.h"
#include "store/node/records/keys.h"
#include "store/node/records/platform_record.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v2 = schema::v2;

namespace {

constexpr std::string_view kRefPrefix = "sha256:";

bool DecodeRef(std::string_view ref, std::array<std::uint8_t, 32>& raw) {
  return ref.starts_with(kRefPrefix) && HexDecode(ref.substr(kRefPrefix.size()), raw);
}

bool IsText(const flatbuffers::String* string, std::string_view text) {
  return string != nullptr && Text(string) == text;
}

template <typename T>
bool HasCoordinates(const T& stored, const ProbeUid& uid, std::string_view namespace_name,
                    std::string_view name) {
  const bool same_uid =
      uid.is_raw ? stored.uid_raw() != nullptr && std::memcmp(stored.uid_raw()->bytes()->data(),
                                                              uid.raw.data(), uid.raw.size()) == 0
                 : IsText(stored.uid_text(), uid.text);
  return same_uid && IsText(stored.namespace_name(), namespace_name) && IsText(stored.name(), name);
}

// In constant time. OpenSSL compares 16 bytes at once, but other sizes byte by byte.
bool SameHash(const std::uint8_t* a, const std::uint8_t* b) {
  return (CRYPTO_memcmp(a, b, 16) | CRYPTO_memcmp(a + 16, b + 16, 16)) == 0;
}

// Of what a text decodes to, or of the text if that is stored: `raw` is nullptr then.
std::uint64_t HashOf(const std::uint8_t* raw, std::size_t raw_size, std::string_view text,
                     std::uint64_t key) {
  return raw != nullptr ? XXH3_64bits_withSeed(raw, raw_size, key)
                        : XXH3_64bits_withSeed(text.data(), text.size(), key);
}

SecretTag TagOf(std::uint64_t hash) { return static_cast<SecretTag>(hash) | 1; }

SecretTag HashTagOf(const std::uint8_t* raw, std::string_view text, std::uint64_t key) {
  return raw == nullptr && text.empty() ? kNoTag : TagOf(HashOf(raw, 32, text, key));
}

SecretTag CoordinatesTagOf(const std::uint8_t* uid_raw, std::string_view uid,
                           std::string_view namespace_name, std::string_view name,
                           std::uint64_t key) {
  key = HashOf(uid_raw, 16, uid, key);
  key = HashOf(nullptr, 0, namespace_name, key);
  return TagOf(HashOf(nullptr, 0, name, key));
}

Error TooLong(std::string_view what, std::size_t limit) {
  return {ErrorCode::kLimitExceeded,
          std::string(what) + " is longer than " + std::to_string(limit) + " bytes", ""};
}

Error TooMany(std::string_view what, const std::string& name, std::size_t limit) {
  return {ErrorCode::kLimitExceeded,
          "more than " + std::to_string(limit) + " " + std::string(what) + " under " + name, ""};
}

template <typename T>
Result<void> CheckCoordinates(const T& credential) {
  const auto fits = [](const std::string& text) { return text.size() <= kMaxCoordinateBytes; };
  if (!fits(credential.uid)) return TooLong("a uid", kMaxCoordinateBytes);
  if (!fits(credential.namespace_name)) return TooLong("a namespace", kMaxCoordinateBytes);
  if (!fits(credential.name)) return TooLong("a name", kMaxCoordinateBytes);
  return {};
}

bool WithinLimits(const Platform& platform) {
  if (platform.os_features.size() > kMaxOsFeatures) return false;
  const auto fits = [](const std::string& text) { return text.size() <= kMaxPlatformFieldBytes; };
  return fits(platform.architecture) && fits(platform.os) && fits(platform.os_version) &&
         fits(platform.variant) &&
         std::all_of(platform.os_features.begin(), platform.os_features.end(), fits);
}

std::int64_t SecondsOf(const std::optional<Timestamp>& time) { return time ? time->seconds : 0; }
std::optional<Timestamp> TimeOf(std::int64_t seconds) {
  return seconds == 0 ? std::nullopt : std::optional(Timestamp{seconds, 0});
}

// A number of a later version says nothing that counts.
VerifiedBy CheckerOf(std::uint8_t stored) {
  return stored <= static_cast<std::uint8_t>(VerifiedBy::kGuest) ? static_cast<VerifiedBy>(stored)
                                                                 : VerifiedBy::kUnknown;
}

template <typename T>
StoredProof StoredProofOf(const T& credential) {
  return {credential.proven(), credential.pull_began(), credential.good_until(),
          CheckerOf(credential.checker())};
}

template <typename T>
Proof ProofOf(const T& credential) {
  return ToProof(StoredProofOf(credential));
}

std::uint8_t NumberOf(VerifiedBy checker) { return static_cast<std::uint8_t>(checker); }

// Namespaces and names repeat within a record; CreateSharedString keeps each once.
flatbuffers::Offset<v1::Secret> Encode(flatbuffers::FlatBufferBuilder& builder,
                                       const ImagePullSecret& secret) {
  const StoredProof proof = ToStored(secret.proof);
  const ProbeSecret probe{ImagePullSecretView(secret)};
  const v1::Uuid uid(Raw(probe.uid.raw));
  const v1::Sha256 hash(Raw(probe.hash_raw));
  const auto namespace_name = builder.CreateSharedString(secret.namespace_name);
  const auto name = builder.CreateSharedString(secret.name);
  const auto uid_text = probe.uid.is_raw ? 0 : builder.CreateSharedString(secret.uid);
  flatbuffers::Offset<flatbuffers::String> hash_text;
  if (!probe.hash_is_raw && !secret.credential_hash.empty()) {
    hash_text = builder.CreateSharedString(secret.credential_hash);
  }
  return v1::CreateSecret(builder, probe.uid.is_raw ? &uid : nullptr, uid_text, namespace_name,
                          name, probe.hash_is_raw ? &hash : nullptr, hash_text, proof.proven,
                          proof.pull_began, NumberOf(proof.checker), proof.good_until);
}

flatbuffers::Offset<v1::ServiceAccount> Encode(flatbuffers::FlatBufferBuilder& builder,
                                               const ImagePullServiceAccount& account) {
  const StoredProof proof = ToStored(account.proof);
  const ProbeUid probe(account.uid);
  const v1::Uuid uid(Raw(probe.raw));
  const auto namespace_name = builder.CreateSharedString(account.namespace_name);
  const auto name = builder.CreateSharedString(account.name);
  const auto uid_text = probe.is_raw ? 0 : builder.CreateSharedString(account.uid);
  return v1::CreateServiceAccount(builder, probe.is_raw ? &uid : nullptr, uid_text, namespace_name,
                                  name, proof.proven, proof.pull_began, NumberOf(proof.checker),
                                  proof.good_until);
}

// Whether the UID, in one form, and both names are present and within limits.h.
template <typename T>
bool IsComplete(const T& coordinates) {
  return HasOneUid(coordinates, kMaxCoordinateBytes) && coordinates.namespace_name() != nullptr &&
         coordinates.name() != nullptr && Fits(coordinates.namespace_name(), kMaxCoordinateBytes) &&
         Fits(coordinates.name(), kMaxCoordinateBytes);
}

bool IsComplete(const v1::Entry& entry) {
  if (entry.image_name() == nullptr || !Fits(entry.image_name(), kMaxImageBytes)) return false;
  if (entry.secrets() != nullptr) {
    if (entry.secrets()->size() > kMaxCredentialsPerName) return false;
    for (const v1::Secret* secret : *entry.secrets()) {
      if (!IsComplete(*secret) || !Fits(secret->hash_text(), kMaxCoordinateBytes)) return false;
      if (secret->hash_raw() != nullptr && secret->hash_text() != nullptr) return false;
    }
  }
  if (entry.service_accounts() != nullptr) {
    if (entry.service_accounts()->size() > kMaxCredentialsPerName) return false;
    for (const v1::ServiceAccount* account : *entry.service_accounts()) {
      if (!IsComplete(*account)) return false;
    }
  }
  return true;
}

// nullptr: the FlatBuffer does not verify, is incomplete, out of order or above limits.h.
const v2::PulledRecord* ValidRoot(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v2::PulledRecord>(payload);
  if (root == nullptr) return nullptr;
  if ((root->ref_raw() == nullptr) == (root->ref_text() == nullptr)) return nullptr;
  if (root->entries() == nullptr || root->entries()->size() > kMaxImageNamesPerRecord) {
    return nullptr;
  }
  if (!Fits(root->ref_text(), kMaxImageRefBytes) ||
      !Fits(root->runtime_handler(), kMaxRuntimeHandlerBytes) ||
      !Fits(root->manifest_digest(), kMaxPlatformFieldBytes) || !Fits(root->platform()) ||
      !Fits(root->guest_platform()) || !Fits(root->closed_because(), kMaxReasonBytes)) {
    return nullptr;
  }
  const v1::Entry* previous = nullptr;
  for (const v1::Entry* entry : *root->entries()) {
    if (!IsComplete(*entry)) return nullptr;
    if (previous != nullptr && Text(previous->image_name()) >= Text(entry->image_name())) {
      return nullptr;
    }
    previous = entry;
  }
  return root;
}

std::string RefOf(const v2::PulledRecord& record) {
  if (record.ref_raw() == nullptr) return record.ref_text()->str();
  return std::string(kRefPrefix) + HexEncode({record.ref_raw()->bytes()->data(), 32});
}

ImagePullSecret Decode(const v1::Secret& secret) {
  std::string hash;
  if (secret.hash_raw() != nullptr) {
    hash = HexEncode({secret.hash_raw()->bytes()->data(), 32});
  } else if (secret.hash_text() != nullptr) {
    hash = secret.hash_text()->str();
  }
  return {UidOf(secret), secret.namespace_name()->str(), secret.name()->str(), std::move(hash),
          ProofOf(secret)};
}

ImagePullServiceAccount Decode(const v1::ServiceAccount& account) {
  return {UidOf(account), account.namespace_name()->str(), account.name()->str(), ProofOf(account)};
}

const v1::Secret* SecretAt(const v1::Entry* entry, std::size_t secret) {
  return entry->secrets()->Get(static_cast<flatbuffers::uoffset_t>(secret));
}

const v1::ServiceAccount* ServiceAccountAt(const v1::Entry* entry, std::size_t account) {
  return entry->service_accounts()->Get(static_cast<flatbuffers::uoffset_t>(account));
}

template <typename T, typename Out>
void DecodeAll(const flatbuffers::Vector<flatbuffers::Offset<T>>* in, std::vector<Out>& out) {
  if (in == nullptr) return;
  out.reserve(in->size());
  for (const T* item : *in) out.push_back(Decode(*item));
}

}  // namespace

StoredProof ToStored(const Proof& proof) {
  return {SecondsOf(proof.proven), proof.pull_began, SecondsOf(proof.good_until), proof.checker};
}

Proof ToProof(const StoredProof& proof) {
  return {TimeOf(proof.proven), proof.pull_began, proof.checker, TimeOf(proof.good_until)};
}

Result<void> CheckRecordLimits(const ImagePulledRecord& record) {
  if (record.image_ref.size() > kMaxImageRefBytes)
    return TooLong("the image ref", kMaxImageRefBytes);
  if (record.runtime_handler.size() > kMaxRuntimeHandlerBytes) {
    return TooLong("the runtime handler", kMaxRuntimeHandlerBytes);
  }
  if (record.manifest_digest.size() > kMaxPlatformFieldBytes) {
    return TooLong("the manifest digest", kMaxPlatformFieldBytes);
  }
  for (const auto* platform : {&record.platform, &record.guest_platform}) {
    if (*platform && !WithinLimits(**platform)) {
      return TooLong("a field of the platform", kMaxPlatformFieldBytes);
    }
  }
  if (record.closed_because.size() > kMaxReasonBytes) {
    return TooLong("the reason why the image is closed", kMaxReasonBytes);
  }
  if (record.credential_mapping.size() > kMaxImageNamesPerRecord) {
    return TooMany("image names", record.image_ref, kMaxImageNamesPerRecord);
  }
  for (const auto& [name, credentials] : record.credential_mapping) {
    if (name.size() > kMaxImageBytes) return TooLong("an image name", kMaxImageBytes);
    if (credentials.kubernetes_secrets.size() > kMaxCredentialsPerName) {
      return TooMany("secrets", name, kMaxCredentialsPerName);
    }
    if (credentials.kubernetes_service_accounts.size() > kMaxCredentialsPerName) {
      return TooMany("service accounts", name, kMaxCredentialsPerName);
    }
    for (const auto& s : credentials.kubernetes_secrets) {
      if (auto r = CheckCoordinates(s); !r) return r;
      if (s.credential_hash.size() > kMaxCoordinateBytes) {
        return TooLong("a credential hash", kMaxCoordinateBytes);
      }
    }
    for (const auto& s : credentials.kubernetes_service_accounts) TRY(CheckCoordinates(s));
  }
  return {};
}

Result<std::vector<std::uint8_t>> EncodePulledRecordValue(const ImagePulledRecord& record) {
  TRY(CheckRecordLimits(record));
  flatbuffers::FlatBufferBuilder builder(512);
  std::vector<flatbuffers::Offset<v1::Entry>> entries;
  for (const auto& [name, credentials] : record.credential_mapping) {
    std::vector<flatbuffers::Offset<v1::Secret>> secrets;
    for (const auto& s : credentials.kubernetes_secrets) secrets.push_back(Encode(builder, s));
    std::vector<flatbuffers::Offset<v1::ServiceAccount>> accounts;
    for (const auto& s : credentials.kubernetes_service_accounts) {
      accounts.push_back(Encode(builder, s));
    }
    const StoredProof proof = ToStored(credentials.node_pods_proof);
    const auto image_name = builder.CreateString(name);
    const auto secrets_at = secrets.empty() ? 0 : builder.CreateVector(secrets);
    const auto accounts_at = accounts.empty() ? 0 : builder.CreateVector(accounts);
    entries.push_back(v1::CreateEntry(builder, image_name, credentials.node_pods_accessible,
                                      secrets_at, accounts_at, proof.proven, proof.pull_began,
                                      NumberOf(proof.checker), proof.good_until));
  }
  std::array<std::uint8_t, 32> raw{};
  const bool is_raw = DecodeRef(record.image_ref, raw);
  const v1::Sha256 ref(Raw(raw));
  const auto ref_text = is_raw ? 0 : builder.CreateString(record.image_ref);
  const auto entries_at = builder.CreateVector(entries);
  const auto handler = StringUnlessEmpty(builder, record.runtime_handler);
  const auto manifest = StringUnlessEmpty(builder, record.manifest_digest);
  const auto platform = EncodePlatform(builder, record.platform);
  const auto guest = EncodePlatform(builder, record.guest_platform);
  const auto because = StringUnlessEmpty(builder, record.closed_because);
  const v1::Time time = ToTime(record.last_updated.value_or(Timestamp{}));
  builder.Finish(v2::CreatePulledRecord(
      builder, is_raw ? &ref : nullptr, ref_text, record.last_updated ? &time : nullptr,
      record.stamp, entries_at, because, record.absent_since ? record.absent_since->seconds : 0,
      record.closed_by_list, record.absent_since ? record.absent_ran : 0, record.closed_by_operator,
      handler, manifest, platform, guest));
  const auto span = builder.GetBufferSpan();
  if (span.size() > kMaxValueBytes) {
    return Error{ErrorCode::kLimitExceeded,
                 "the record of " + record.image_ref + " is larger than " +
                     std::to_string(kMaxValueBytes) + " bytes",
                 ""};
  }
  return std::vector<std::uint8_t>(span.begin(), span.end());
}

// Allocates nothing: opening calls it for every record.
std::optional<Key16> KeyOfPulledRecord(std::span<const std::uint8_t> payload, std::uint64_t seed) {
  const auto* root = ValidRoot(payload);
  if (root == nullptr) return std::nullopt;
  const std::string_view handler = Text(root->runtime_handler());
  if (root->ref_raw() == nullptr) return PulledKey(Text(root->ref_text()), handler, seed);
  char ref[kRefPrefix.size() + 64];
  std::memcpy(ref, kRefPrefix.data(), kRefPrefix.size());
  HexEncode({root->ref_raw()->bytes()->data(), 32}, ref + kRefPrefix.size());
  return PulledKey({ref, sizeof(ref)}, handler, seed);
}

std::optional<ImagePulledRecord> DecodePulledRecordValue(std::span<const std::uint8_t> payload) {
  const auto* root = ValidRoot(payload);
  if (root == nullptr) return std::nullopt;
  ImagePulledRecord record;
  record.image_ref = RefOf(*root);
  if (root->last_updated() != nullptr) record.last_updated = FromTime(*root->last_updated());
  record.stamp = root->stamp();
  record.runtime_handler = Text(root->runtime_handler());
  record.manifest_digest = Text(root->manifest_digest());
  record.platform = DecodePlatform(root->platform());
  record.guest_platform = DecodePlatform(root->guest_platform());
  record.closed_because = Text(root->closed_because());
  record.closed_by_list = root->closed_by_list();
  record.closed_by_operator = root->closed_by_operator();
  if (root->absent_since() != 0) record.absent_since = Timestamp{root->absent_since(), 0};
  record.absent_ran = root->absent_ran();
  for (const v1::Entry* entry : *root->entries()) {
    ImagePullCredentials& credentials = record.credential_mapping[entry->image_name()->str()];
    credentials.node_pods_accessible = entry->node_pods_accessible();
    if (credentials.node_pods_accessible) credentials.node_pods_proof = ProofOf(*entry);
    DecodeAll(entry->secrets(), credentials.kubernetes_secrets);
    DecodeAll(entry->service_accounts(), credentials.kubernetes_service_accounts);
  }
  return record;
}

ProbeUid::ProbeUid(std::string_view uid) : text(uid), is_raw(DecodeUuid(uid, raw)) {}

ProbeSecret::ProbeSecret(const ImagePullSecretView& secret)
    : text(secret), uid(secret.uid), hash_is_raw(HexDecode(secret.credential_hash, hash_raw)) {}

SecretTag ProbeSecret::HashTag(std::uint64_t key) const {
  return HashTagOf(hash_is_raw ? hash_raw.data() : nullptr, text.credential_hash, key);
}

SecretTag ProbeSecret::CoordinatesTag(std::uint64_t key) const {
  return CoordinatesTagOf(uid.is_raw ? uid.raw.data() : nullptr, uid.text, text.namespace_name,
                          text.name, key);
}

bool EntryView::node_pods_accessible() const { return entry_->node_pods_accessible(); }

std::size_t EntryView::secret_count() const {
  return entry_->secrets() == nullptr ? 0 : entry_->secrets()->size();
}

std::size_t EntryView::service_account_count() const {
  return entry_->service_accounts() == nullptr ? 0 : entry_->service_accounts()->size();
}

SecretMatch EntryView::Match(std::size_t secret, const ProbeSecret& probe) const {
  const v1::Secret* stored = SecretAt(entry_, secret);
  SecretMatch match;
  if (probe.hash_is_raw) {
    match.hash = stored->hash_raw() != nullptr &&
                 SameHash(stored->hash_raw()->bytes()->data(), probe.hash_raw.data());
  } else {
    const std::string_view hash = Text(stored->hash_text());
    match.hash = !hash.empty() && hash.size() == probe.text.credential_hash.size() &&
                 CRYPTO_memcmp(hash.data(), probe.text.credential_hash.data(), hash.size()) == 0;
  }
  match.coordinates =
      HasCoordinates(*stored, probe.uid, probe.text.namespace_name, probe.text.name);
  return match;
}

SecretTag EntryView::HashTag(std::size_t secret, std::uint64_t key) const {
  const v1::Secret* stored = SecretAt(entry_, secret);
  const auto* raw = stored->hash_raw();
  return HashTagOf(raw == nullptr ? nullptr : raw->bytes()->data(), Text(stored->hash_text()), key);
}

SecretTag EntryView::CoordinatesTag(std::size_t secret, std::uint64_t key) const {
  const v1::Secret* stored = SecretAt(entry_, secret);
  const auto* raw = stored->uid_raw();
  return CoordinatesTagOf(raw == nullptr ? nullptr : raw->bytes()->data(), Text(stored->uid_text()),
                          Text(stored->namespace_name()), Text(stored->name()), key);
}

bool EntryView::MatchServiceAccount(std::size_t account, const ProbeUid& uid,
                                    const ImagePullServiceAccountView& probe) const {
  return HasCoordinates(*ServiceAccountAt(entry_, account), uid, probe.namespace_name, probe.name);
}

StoredProof EntryView::node_pods_proof() const { return StoredProofOf(*entry_); }
StoredProof EntryView::secret_proof(std::size_t secret) const {
  return StoredProofOf(*SecretAt(entry_, secret));
}
StoredProof EntryView::service_account_proof(std::size_t account) const {
  return StoredProofOf(*ServiceAccountAt(entry_, account));
}
ImagePullSecret EntryView::secret(std::size_t secret) const {
  return Decode(*SecretAt(entry_, secret));
}
ImagePullServiceAccount EntryView::service_account(std::size_t account) const {
  return Decode(*ServiceAccountAt(entry_, account));
}

PulledRecordView::PulledRecordView(std::span<const std::uint8_t> payload)
    : record_(flatbuffers::GetRoot<v2::PulledRecord>(payload.data())) {}

std::string_view PulledRecordView::runtime_handler() const {
  return Text(record_->runtime_handler());
}

std::optional<Platform> PulledRecordView::guest_platform() const {
  return DecodePlatform(record_->guest_platform());
}

PulledRecordView::Proofs PulledRecordView::CountProofs() const {
  Proofs proofs;
  const auto count = [&proofs](const StoredProof& proof) {
    ++proofs.by_checker[NumberOf(proof.checker)];
    if (proof.good_until != 0) ++proofs.ending;
    if (proof.proven == 0) {
      ++proofs.undated;
    } else if (proofs.oldest == 0 || proof.proven < proofs.oldest) {
      proofs.oldest = proof.proven;
    }
  };
  if (record_->entries() == nullptr) return proofs;
  for (const auto* const stored : *record_->entries()) {
    const EntryView entry(stored);
    if (entry.node_pods_accessible()) count(entry.node_pods_proof());
    for (std::size_t i = 0; i < entry.secret_count(); ++i) count(entry.secret_proof(i));
    for (std::size_t i = 0; i < entry.service_account_count(); ++i) {
      count(entry.service_account_proof(i));
    }
  }
  return proofs;
}

bool PulledRecordView::IsClosed() const { return record_->closed_because() != nullptr; }

std::string PulledRecordView::ref() const { return RefOf(*record_); }

bool PulledRecordView::RefIs(std::string_view image_ref) const {
  std::array<std::uint8_t, 32> raw{};
  if (DecodeRef(image_ref, raw)) {
    return record_->ref_raw() != nullptr &&
           std::memcmp(record_->ref_raw()->bytes()->data(), raw.data(), raw.size()) == 0;
  }
  return IsText(record_->ref_text(), image_ref);
}

std::optional<EntryView> PulledRecordView::Find(std::string_view image_name) const {
  const auto* entries = record_->entries();
  flatbuffers::uoffset_t low = 0;
  flatbuffers::uoffset_t high = entries->size();
  while (low < high) {
    const flatbuffers::uoffset_t middle = low + (high - low) / 2;
    const v1::Entry* entry = entries->Get(middle);
    const int order = Text(entry->image_name()).compare(image_name);
    if (order == 0) return EntryView(entry);
    if (order < 0) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

bool PulledRecordView::HasEntries() const { return record_->entries()->size() != 0; }

}  // namespace waybill::internal
