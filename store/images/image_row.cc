#include "store/images/image_row.h"

#include <flatbuffers/flatbuffers.h>
#include <openssl/crypto.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "schema/v2/image_generated.h"
#include "store/base/hex.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/disk/flatbuffer.h"
#include "store/disk/tables.h"
#include "store/images/platform_record.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace v1 = schema::v1;
namespace v2 = schema::v2;

namespace {

constexpr std::string_view kSha256 = "sha256:";
using Sha256Bytes = std::array<std::uint8_t, 32>;
using UidBytes = std::array<std::uint8_t, 16>;
using Strings = flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>;

constexpr std::uint8_t kRecorded = 1;
constexpr std::uint8_t kListed = 2;
constexpr std::uint8_t kNotUpdated = 4;

// The places are stored, from 1 on.
constexpr std::array<std::string_view, 8> kSources = {
    kPresumedSource, "listed",         "pinned",   "imported",
    "adopted",       "preloaded-list", "operator", "observed-preloaded"};

bool DecodeDigest(std::string_view text, Sha256Bytes& raw) {
  return text.starts_with(kSha256) && HexDecode(text.substr(kSha256.size()), raw);
}

std::string DigestText(const std::uint8_t* raw) {
  return std::string(kSha256) + HexEncode({raw, 32});
}

// Zeros stand for what is text, or empty.
template <std::size_t N>
bool IsZero(const std::uint8_t* bytes) {
  std::uint64_t any = 0;
  for (std::size_t i = 0; i < N; i += sizeof(any)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes + i, sizeof(word));
    any |= word;
  }
  return any == 0;
}

const UidBytes& RawUid(const v1::Secret& secret) {
  return *reinterpret_cast<const UidBytes*>(secret.fixed()->uid().bytes()->data());
}
const Sha256Bytes& RawHash(const v1::Secret& secret) {
  return *reinterpret_cast<const Sha256Bytes*>(secret.fixed()->hash().bytes()->data());
}

struct Coordinates {
  std::string_view namespace_name;
  std::string_view name;
};
std::size_t NamespaceBytes(const v1::Secret& secret, std::string_view of) {
  return secret.namespace_bytes() != 0 ? secret.namespace_bytes() : of.find('/');
}
Coordinates CoordinatesOf(const v1::Secret& secret) {
  const std::string_view of = Text(secret.of());
  const std::size_t bytes = NamespaceBytes(secret, of);
  return {of.substr(0, bytes), of.substr(bytes + 1)};
}

bool HasCoordinates(const v1::Secret& stored, const ProbeUid& uid, std::string_view namespace_name,
                    std::string_view name) {
  const bool same_uid =
      uid.is_raw ? RawUid(stored) == uid.raw
                 : IsZero<16>(RawUid(stored).data()) && Text(stored.uid_text()) == uid.text;
  if (!same_uid) return false;
  const std::string_view of = Text(stored.of());
  const std::size_t bytes = namespace_name.size();
  using Bytes = std::char_traits<char>;  // none of an empty text
  return of.size() == bytes + 1 + name.size() && NamespaceBytes(stored, of) == bytes &&
         Bytes::compare(of.data(), namespace_name.data(), bytes) == 0 &&
         Bytes::compare(of.data() + bytes + 1, name.data(), name.size()) == 0;
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

// --- Limits --------------------------------------------------------------------------------------

Error TooLong(std::string_view what, std::size_t limit) {
  return {ErrorCode::kLimitExceeded,
          std::string(what) + " is longer than " + std::to_string(limit) + " bytes", ""};
}

Error TooMany(std::string_view what, const std::string& name, std::size_t limit) {
  return {ErrorCode::kLimitExceeded,
          "more than " + std::to_string(limit) + " " + std::string(what) + " under " + name, ""};
}

Result<void> CheckLengths(
    std::initializer_list<std::tuple<std::string_view, std::string_view, std::size_t>> all) {
  for (const auto& [what, text, limit] : all) {
    if (text.size() > limit) return TooLong(what, limit);
  }
  return {};
}

template <typename T>
Result<void> CheckCoordinates(const T& credential) {
  return CheckLengths({{"a uid", credential.uid, kMaxCoordinateBytes},
                       {"a namespace", credential.namespace_name, kMaxCoordinateBytes},
                       {"a name", credential.name, kMaxCoordinateBytes}});
}

bool WithinLimits(const Platform& platform) {
  if (platform.os_features.size() > kMaxOsFeatures) return false;
  const auto fits = [](const std::string& text) { return text.size() <= kMaxPlatformFieldBytes; };
  return fits(platform.architecture) && fits(platform.os) && fits(platform.os_version) &&
         fits(platform.variant) && std::ranges::all_of(platform.os_features, fits);
}

Result<void> CheckPulled(const PulledPart& pulled, const std::string& ref) {
  TRY(CheckLengths(
      {{"the manifest digest", pulled.manifest_digest, kMaxPlatformFieldBytes},
       {"the reason why the image is closed", pulled.closed_because, kMaxReasonBytes}}));
  for (const auto* platform : {&pulled.platform, &pulled.guest_platform}) {
    if (*platform && !WithinLimits(**platform)) {
      return TooLong("a field of the platform", kMaxPlatformFieldBytes);
    }
  }
  if (pulled.entries.size() > kMaxImageNamesPerRecord) {
    return TooMany("image names", ref, kMaxImageNamesPerRecord);
  }
  for (const auto& [name, credentials] : pulled.entries) {
    if (name.size() > kMaxImageBytes) return TooLong("an image name", kMaxImageBytes);
    if (credentials.kubernetes_secrets.size() > kMaxCredentialsPerName) {
      return TooMany("secrets", name, kMaxCredentialsPerName);
    }
    if (credentials.kubernetes_service_accounts.size() > kMaxCredentialsPerName) {
      return TooMany("service accounts", name, kMaxCredentialsPerName);
    }
    for (const auto& s : credentials.kubernetes_secrets) {
      TRY(CheckCoordinates(s));
      TRY(CheckLengths({{"a credential hash", s.credential_hash, kMaxCoordinateBytes}}));
    }
    for (const auto& s : credentials.kubernetes_service_accounts) TRY(CheckCoordinates(s));
  }
  return {};
}

// --- Encoding ------------------------------------------------------------------------------------

std::int64_t SecondsOf(const std::optional<Timestamp>& time) { return time ? time->seconds : 0; }
std::optional<Timestamp> TimeOf(std::int64_t seconds) {
  return seconds == 0 ? std::nullopt : std::optional(Timestamp{seconds, 0});
}

// Within 1970 to 2106. What lies before is not known, and an end that lies later is in 2106.
std::uint32_t Seconds32(std::int64_t seconds) {
  return static_cast<std::uint32_t>(
      std::clamp<std::int64_t>(seconds, 0, std::numeric_limits<std::uint32_t>::max()));
}

v1::Proof Encode(const Proof& proof) {
  const StoredProof stored = ToStored(proof);
  return {stored.pull_began, Seconds32(stored.proven), Seconds32(stored.good_until)};
}

// A number of a later version says nothing that counts.
VerifiedBy CheckerOf(std::uint8_t stored) {
  return stored <= static_cast<std::uint8_t>(VerifiedBy::kNobody) ? static_cast<VerifiedBy>(stored)
                                                                  : VerifiedBy::kUnknown;
}

StoredProof StoredProofOf(const v1::Proof& proof, std::uint8_t checker) {
  return {proof.proven(), proof.began(), proof.until(), CheckerOf(checker)};
}
StoredProof StoredProofOf(const v1::Secret& credential) {
  return StoredProofOf(credential.fixed()->proof(), credential.checker());
}

std::uint8_t NumberOf(VerifiedBy checker) { return static_cast<std::uint8_t>(checker); }

class Encoder {
 public:
  std::vector<std::uint8_t> Encode(const ImageRow& row) {
    const auto entries = row.pulled ? EncodeEntries(row.pulled->entries) : 0;
    const auto preloaded = row.preloaded ? EncodePreloaded(*row.preloaded) : 0;
    const auto alias = row.alias ? EncodeAlias(*row.alias) : 0;
    EncodeAliases(row.aliases);
    Sha256Bytes raw{};
    const bool is_raw = DecodeDigest(row.subject, raw) && !IsZero<32>(raw.data());
    const auto subject = is_raw ? 0 : builder_.CreateString(row.subject);
    const auto ref = row.ref.empty() || row.ref == row.subject ? 0 : builder_.CreateString(row.ref);
    const auto handler = StringUnlessEmpty(builder_, row.runtime_handler);
    flatbuffers::Offset<flatbuffers::String> because;
    flatbuffers::Offset<flatbuffers::String> manifest;
    flatbuffers::Offset<v2::Platform> platform;
    flatbuffers::Offset<v2::Platform> guest;
    flatbuffers::Offset<Strings> private_names;
    std::uint8_t flags = row.listed ? kListed : 0;
    Timestamp updated;
    ClosedBy closed_by = ClosedBy::kNobody;
    if (row.pulled) {
      because = StringUnlessEmpty(builder_, row.pulled->closed_because);
      manifest = StringUnlessEmpty(builder_, row.pulled->manifest_digest);
      platform = EncodePlatform(builder_, row.pulled->platform);
      guest = EncodePlatform(builder_, row.pulled->guest_platform);
      if (!row.pulled->private_names.empty()) {
        private_names = builder_.CreateVectorOfStrings(row.pulled->private_names);
      }
      flags |= kRecorded;
      if (!row.pulled->last_updated) flags |= kNotUpdated;
      updated = row.pulled->last_updated.value_or(Timestamp{});
      closed_by = row.pulled->closed_by;
    }
    if (!is_raw) raw = {};
    const v1::Fixed fixed(v1::Sha256(Raw(raw)), row.stamp, row.alias_since, updated.seconds,
                          static_cast<std::uint32_t>(updated.nanoseconds), flags,
                          static_cast<std::uint8_t>(closed_by));
    return Finish(builder_, v2::CreateImage(builder_, &fixed, entries, row.absent, preloaded,
                                            because, ref, subject, aliases_, alias_repositories_,
                                            alias_repository_, alias_texts_, alias, private_names,
                                            handler, manifest, platform, guest));
  }

 private:
  template <typename T>
  flatbuffers::Offset<v1::Secret> EncodeCredential(const T& one, std::string_view hash) {
    UidBytes uid{};
    Sha256Bytes raw_hash{};
    const bool uid_is_raw = DecodeUuid(one.uid, uid) && !IsZero<16>(uid.data());
    const bool hash_is_raw = HexDecode(hash, raw_hash) && !IsZero<32>(raw_hash.data());
    if (!uid_is_raw) uid = {};
    if (!hash_is_raw) raw_hash = {};
    // Namespaces and names repeat within a row; a shared string is kept once.
    const auto of = builder_.CreateSharedString(one.namespace_name + "/" + one.name);
    const auto uid_text = uid_is_raw ? 0 : SharedUnlessEmpty(one.uid);
    const auto hash_text = hash_is_raw ? 0 : SharedUnlessEmpty(hash);
    const v1::Credential fixed(v1::Uuid(Raw(uid)), v1::Sha256(Raw(raw_hash)),
                               internal::Encode(one.proof));
    const bool has_slash = one.namespace_name.find('/') != std::string::npos;
    const std::size_t bytes = has_slash ? one.namespace_name.size() : 0;
    return v1::CreateSecret(builder_, of, &fixed, NumberOf(one.proof.checker),
                            static_cast<std::uint16_t>(bytes), uid_text, hash_text);
  }

  flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<v1::Entry>>> EncodeEntries(
      const Credentials& all) {
    if (all.empty()) return 0;
    std::vector<flatbuffers::Offset<v1::Entry>> entries;
    for (const auto& [name, credentials] : all) {
      std::vector<flatbuffers::Offset<v1::Secret>> secrets;
      for (const auto& s : credentials.kubernetes_secrets) {
        secrets.push_back(EncodeCredential(s, s.credential_hash));
      }
      std::vector<flatbuffers::Offset<v1::Secret>> accounts;
      for (const auto& s : credentials.kubernetes_service_accounts) {
        accounts.push_back(EncodeCredential(s, ""));
      }
      const v1::Proof node_pods = internal::Encode(credentials.node_pods_proof);
      const bool open = credentials.node_pods_accessible;
      const auto image_name = builder_.CreateSharedString(name);
      const auto secrets_at = secrets.empty() ? 0 : builder_.CreateVector(secrets);
      const auto accounts_at = accounts.empty() ? 0 : builder_.CreateVector(accounts);
      entries.push_back(v1::CreateEntry(
          builder_, image_name, secrets_at, accounts_at, open ? &node_pods : nullptr,
          open ? NumberOf(credentials.node_pods_proof.checker) : std::uint8_t{0}));
    }
    return builder_.CreateVector(entries);
  }

  flatbuffers::Offset<v1::Preloaded> EncodePreloaded(const PreloadedPart& part) {
    const auto at = std::ranges::find(kSources, part.source);
    const bool is_known = at != kSources.end();
    std::vector<flatbuffers::Offset<flatbuffers::String>> names;
    for (const std::string& name : part.names) names.push_back(builder_.CreateSharedString(name));
    const auto names_at = names.empty() ? 0 : builder_.CreateVector(names);
    const auto source = is_known ? 0 : builder_.CreateString(part.source);
    const auto reason = StringUnlessEmpty(builder_, part.reason);
    const v1::Time since = ToTime(part.since);
    return v1::CreatePreloaded(builder_,
                               static_cast<std::uint8_t>(is_known ? at - kSources.begin() + 1 : 0),
                               part.as_of, &since, names_at, source, reason);
  }

  flatbuffers::Offset<v1::Alias> EncodeAlias(const AliasPart& alias) {
    const auto image = StringUnlessEmpty(builder_, alias.image);
    const auto taken_for =
        alias.taken_for.empty() ? 0 : builder_.CreateVectorOfStrings(alias.taken_for);
    return v1::CreateAlias(builder_, image, taken_for, alias.stamp);
  }

  void EncodeAliases(const std::vector<std::string>& aliases) {
    std::vector<v1::Sha256> digests;
    std::vector<std::uint8_t> which;
    std::vector<std::string_view> repositories;
    std::vector<std::string> texts;
    for (const std::string& alias : aliases) {
      const std::size_t at = alias.rfind('@');
      const std::string_view repository =
          at == std::string::npos ? "" : std::string_view(alias).substr(0, at);
      const std::string_view digest = at == std::string::npos
                                          ? std::string_view(alias)
                                          : std::string_view(alias).substr(at + 1);
      Sha256Bytes raw{};
      std::size_t number = 0;
      bool fits = DecodeDigest(digest, raw) && !(at == 0);
      if (fits && !repository.empty()) {
        const auto known = std::ranges::find(repositories, repository);
        number = static_cast<std::size_t>(known - repositories.begin()) + 1;
        fits = number <= std::numeric_limits<std::uint8_t>::max();
        if (fits && known == repositories.end()) repositories.push_back(repository);
      }
      if (!fits) {
        texts.push_back(alias);
        continue;
      }
      digests.emplace_back(Raw(raw));
      which.push_back(static_cast<std::uint8_t>(number));
    }
    if (!digests.empty()) aliases_ = builder_.CreateVectorOfStructs(digests);
    std::vector<flatbuffers::Offset<flatbuffers::String>> shared;
    for (const auto& repository : repositories) {
      shared.push_back(builder_.CreateSharedString(repository.data(), repository.size()));
    }
    if (!shared.empty()) alias_repositories_ = builder_.CreateVector(shared);
    if (std::ranges::any_of(which, [](std::uint8_t one) { return one != 1; })) {
      alias_repository_ = builder_.CreateVector(which);
    }
    if (!texts.empty()) alias_texts_ = builder_.CreateVectorOfStrings(texts);
  }

  flatbuffers::Offset<flatbuffers::String> SharedUnlessEmpty(std::string_view text) {
    if (text.empty()) return 0;
    return builder_.CreateSharedString(text.data(), text.size());
  }

  flatbuffers::FlatBufferBuilder builder_{512};
  flatbuffers::Offset<flatbuffers::Vector<const v1::Sha256*>> aliases_;
  flatbuffers::Offset<Strings> alias_repositories_;
  flatbuffers::Offset<flatbuffers::Vector<std::uint8_t>> alias_repository_;
  flatbuffers::Offset<Strings> alias_texts_;
};

// --- Decoding ------------------------------------------------------------------------------------

bool AllFit(const Strings* strings, std::size_t most, std::size_t bytes) {
  if (strings == nullptr) return true;
  return strings->size() <= most &&
         std::all_of(strings->begin(), strings->end(),
                     [&](const flatbuffers::String* text) { return Fits(text, bytes); });
}

std::vector<std::string> TextsIn(const Strings* strings) {
  std::vector<std::string> all;
  if (strings == nullptr) return all;
  for (const flatbuffers::String* text : *strings) all.push_back(text->str());
  return all;
}

bool IsComplete(const v1::Secret& secret) {
  if (secret.of() == nullptr || secret.fixed() == nullptr) return false;
  const std::string_view of = Text(secret.of());
  const std::size_t bytes = secret.namespace_bytes() != 0 ? secret.namespace_bytes() : of.find('/');
  return bytes < of.size() && of[bytes] == '/' && bytes <= kMaxCoordinateBytes &&
         of.size() - bytes - 1 <= kMaxCoordinateBytes &&
         Fits(secret.uid_text(), kMaxCoordinateBytes) &&
         Fits(secret.hash_text(), kMaxCoordinateBytes);
}

template <typename T>
bool AreComplete(const T* credentials) {
  return credentials == nullptr ||
         (credentials->size() <= kMaxCredentialsPerName &&
          std::all_of(credentials->begin(), credentials->end(),
                      [](const v1::Secret* one) { return IsComplete(*one); }));
}

bool AreComplete(const flatbuffers::Vector<flatbuffers::Offset<v1::Entry>>* entries) {
  if (entries == nullptr) return true;
  if (entries->size() > kMaxImageNamesPerRecord) return false;
  const v1::Entry* previous = nullptr;
  for (const v1::Entry* entry : *entries) {
    if (entry->image_name() == nullptr || !Fits(entry->image_name(), kMaxImageBytes) ||
        !AreComplete(entry->secrets()) || !AreComplete(entry->service_accounts())) {
      return false;
    }
    if (previous != nullptr && Text(previous->image_name()) >= Text(entry->image_name())) {
      return false;
    }
    previous = entry;
  }
  return true;
}

bool IsComplete(const v1::Preloaded& part) {
  return part.since() != nullptr && part.source() <= kSources.size() &&
         (part.source() == 0) == (part.source_text() != nullptr) &&
         Fits(part.source_text(), kMaxReasonBytes) && Fits(part.reason(), kMaxReasonBytes) &&
         AllFit(part.names(), kMaxNamesPerImage, kMaxImageBytes);
}

// Each alias is whole, and there are no more than are kept.
bool AreComplete(const v2::Image& image) {
  const std::size_t digests = image.aliases() == nullptr ? 0 : image.aliases()->size();
  const std::size_t texts = image.alias_texts() == nullptr ? 0 : image.alias_texts()->size();
  const auto* repositories = image.alias_repositories();
  const std::size_t named = repositories == nullptr ? 0 : repositories->size();
  if (digests + texts > kMaxSpellingsPerImage || named > digests ||
      !AllFit(repositories, kMaxSpellingsPerImage, kMaxImageRefBytes) ||
      !AllFit(image.alias_texts(), kMaxSpellingsPerImage, kMaxImageRefBytes)) {
    return false;
  }
  const auto* which = image.alias_repository();
  if (which == nullptr) return digests == 0 || named == 1;
  return which->size() == digests &&
         std::all_of(which->begin(), which->end(), [&](std::uint8_t one) { return one <= named; });
}

// What is searched by halves.
bool AreSorted(const Strings* strings) {
  const auto names = TextsIn(strings);
  return std::ranges::adjacent_find(names, std::ranges::greater_equal()) == names.end();
}

// nullptr: the FlatBuffer does not verify, is incomplete, out of order or above limits.h.
const v2::Image* ValidRoot(std::span<const std::uint8_t> payload) {
  const auto* root = Root<v2::Image>(payload);
  if (root == nullptr || root->fixed() == nullptr) return nullptr;
  const bool has_id = !IsZero<32>(root->fixed()->id().bytes()->data());
  const bool is_sound =
      has_id == (root->subject() == nullptr) && Fits(root->subject(), kMaxImageRefBytes) &&
      Fits(root->ref(), kMaxImageRefBytes) &&
      Fits(root->runtime_handler(), kMaxRuntimeHandlerBytes) &&
      Fits(root->manifest_digest(), kMaxPlatformFieldBytes) && Fits(root->platform()) &&
      Fits(root->guest_platform()) && Fits(root->closed_because(), kMaxReasonBytes) &&
      root->fixed()->closed_by() <= static_cast<std::uint8_t>(ClosedBy::kRestore) &&
      AllFit(root->private_names(), kMaxPrivateNames, kMaxImageBytes) &&
      AreSorted(root->private_names()) && AreComplete(root->entries()) && AreComplete(*root) &&
      (root->preloaded() == nullptr || IsComplete(*root->preloaded())) &&
      (root->alias() == nullptr ||
       (Fits(root->alias()->image(), kMaxImageRefBytes) &&
        AllFit(root->alias()->taken_for(), kMaxSpellingsPerImage, kMaxImageRefBytes)));
  return is_sound ? root : nullptr;
}

std::string SubjectOf(const v2::Image& image) {
  if (image.subject() != nullptr) return image.subject()->str();
  return DigestText(image.fixed()->id().bytes()->data());
}

std::string UidTextOf(const v1::Secret& secret) {
  if (IsZero<16>(RawUid(secret).data())) return std::string(Text(secret.uid_text()));
  return EncodeUuid(RawUid(secret));
}

ImagePullSecret DecodeSecret(const v1::Secret& secret) {
  const auto coordinates = CoordinatesOf(secret);
  std::string hash = IsZero<32>(RawHash(secret).data()) ? std::string(Text(secret.hash_text()))
                                                        : HexEncode(RawHash(secret));
  return {UidTextOf(secret), std::string(coordinates.namespace_name), std::string(coordinates.name),
          std::move(hash), ToProof(StoredProofOf(secret))};
}

ImagePullServiceAccount DecodeAccount(const v1::Secret& account) {
  const auto coordinates = CoordinatesOf(account);
  return {UidTextOf(account), std::string(coordinates.namespace_name),
          std::string(coordinates.name), ToProof(StoredProofOf(account))};
}

ImagePullCredentials DecodeEntry(const v1::Entry& entry) {
  ImagePullCredentials credentials;
  if (entry.node_pods() != nullptr) {
    credentials.node_pods_accessible = true;
    credentials.node_pods_proof =
        ToProof(StoredProofOf(*entry.node_pods(), entry.node_pods_checker()));
  }
  if (entry.secrets() != nullptr) {
    for (const auto* one : *entry.secrets()) {
      credentials.kubernetes_secrets.push_back(DecodeSecret(*one));
    }
  }
  if (entry.service_accounts() != nullptr) {
    for (const auto* one : *entry.service_accounts()) {
      credentials.kubernetes_service_accounts.push_back(DecodeAccount(*one));
    }
  }
  return credentials;
}

PulledPart DecodePulled(const v2::Image& image) {
  PulledPart pulled;
  const auto& fixed = *image.fixed();
  if ((fixed.flags() & kNotUpdated) == 0) {
    pulled.last_updated =
        Timestamp{fixed.updated(), static_cast<std::int32_t>(fixed.updated_nanoseconds())};
  }
  pulled.closed_because = Text(image.closed_because());
  pulled.closed_by = static_cast<ClosedBy>(fixed.closed_by());
  pulled.manifest_digest = Text(image.manifest_digest());
  pulled.platform = DecodePlatform(image.platform());
  pulled.guest_platform = DecodePlatform(image.guest_platform());
  pulled.private_names = TextsIn(image.private_names());
  if (image.entries() == nullptr) return pulled;
  for (const v1::Entry* entry : *image.entries()) {
    pulled.entries.emplace_hint(pulled.entries.end(), entry->image_name()->str(),
                                DecodeEntry(*entry));
  }
  return pulled;
}

PreloadedPart DecodePreloaded(const v1::Preloaded& part) {
  const std::string_view source =
      part.source() == 0 ? Text(part.source_text()) : kSources[part.source() - 1U];
  return {.names = TextsIn(part.names()),
          .source = std::string(source),
          .reason = std::string(Text(part.reason())),
          .since = FromTime(*part.since()),
          .as_of = part.as_of()};
}

std::vector<std::string> DecodeAliases(const v2::Image& image) {
  std::vector<std::string> aliases = TextsIn(image.alias_texts());
  if (image.aliases() == nullptr) return aliases;
  const auto* which = image.alias_repository();
  for (flatbuffers::uoffset_t i = 0; i < image.aliases()->size(); ++i) {
    const std::uint8_t number = which == nullptr ? std::uint8_t{1} : which->Get(i);
    std::string text = DigestText(image.aliases()->Get(i)->bytes()->data());
    if (number != 0) text.insert(0, image.alias_repositories()->Get(number - 1U)->str() + "@");
    aliases.push_back(std::move(text));
  }
  std::ranges::sort(aliases);
  return aliases;
}

const v1::Secret* At(const flatbuffers::Vector<flatbuffers::Offset<v1::Secret>>* all,
                     std::size_t i) {
  return all->Get(static_cast<flatbuffers::uoffset_t>(i));
}

}  // namespace

StoredProof ToStored(const Proof& proof) {
  return {SecondsOf(proof.proven), proof.pull_began, SecondsOf(proof.good_until), proof.checker};
}

Proof ToProof(const StoredProof& proof) {
  return {TimeOf(proof.proven), proof.pull_began, proof.checker, TimeOf(proof.good_until)};
}

Result<void> CheckRowLimits(const ImageRow& row) {
  TRY(CheckLengths({{"the image ref", row.subject, kMaxImageRefBytes},
                    {"the image ref", row.ref, kMaxImageRefBytes},
                    {"the runtime handler", row.runtime_handler, kMaxRuntimeHandlerBytes}}));
  return row.pulled ? CheckPulled(*row.pulled, row.Ref()) : Result<void>();
}

Result<std::vector<std::uint8_t>> EncodeImage(const ImageRow& row) {
  TRY(CheckRowLimits(row));
  auto payload = Encoder().Encode(row);
  if (payload.size() <= kMaxValueBytes) return payload;
  return Error{
      ErrorCode::kLimitExceeded,
      "the record of " + row.Ref() + " is larger than " + std::to_string(kMaxValueBytes) + " bytes",
      ""};
}

std::optional<ImageRow> DecodeImage(std::span<const std::uint8_t> payload) {
  const auto* root = ValidRoot(payload);
  if (root == nullptr) return std::nullopt;
  ImageRow row;
  row.subject = SubjectOf(*root);
  row.runtime_handler = Text(root->runtime_handler());
  row.ref = Text(root->ref());
  row.stamp = root->fixed()->stamp();
  row.absent = root->absent();
  row.listed = (root->fixed()->flags() & kListed) != 0;
  if ((root->fixed()->flags() & kRecorded) != 0) row.pulled = DecodePulled(*root);
  if (root->preloaded() != nullptr) row.preloaded = DecodePreloaded(*root->preloaded());
  row.aliases = DecodeAliases(*root);
  row.alias_since = root->fixed()->alias_since();
  if (const auto* alias = root->alias()) {
    row.alias =
        AliasPart{std::string(Text(alias->image())), TextsIn(alias->taken_for()), alias->stamp()};
  }
  return row;
}

// Allocates nothing: opening calls it for every row.
std::optional<Key16> KeyOfImage(std::span<const std::uint8_t> payload, std::uint64_t seed) {
  const auto* root = ValidRoot(payload);
  if (root == nullptr) return std::nullopt;
  const std::string_view handler = Text(root->runtime_handler());
  if (root->subject() != nullptr) return ImageKey(Text(root->subject()), handler, seed);
  char subject[kSha256.size() + 64];
  std::memcpy(subject, kSha256.data(), kSha256.size());
  HexEncode({root->fixed()->id().bytes()->data(), 32}, subject + kSha256.size());
  return ImageKey({subject, sizeof(subject)}, handler, seed);
}

// --- In place ------------------------------------------------------------------------------------

ProbeUid::ProbeUid(std::string_view uid)
    : text(uid), is_raw(DecodeUuid(uid, raw) && !IsZero<16>(raw.data())) {}

ProbeSecret::ProbeSecret(const ImagePullSecretView& secret)
    : text(secret),
      uid(secret.uid),
      hash_is_raw(HexDecode(secret.credential_hash, hash_raw) && !IsZero<32>(hash_raw.data())) {}

SecretTag ProbeSecret::HashTag(std::uint64_t key) const {
  return HashTagOf(hash_is_raw ? hash_raw.data() : nullptr, text.credential_hash, key);
}

SecretTag ProbeSecret::CoordinatesTag(std::uint64_t key) const {
  return CoordinatesTagOf(uid.is_raw ? uid.raw.data() : nullptr, uid.text, text.namespace_name,
                          text.name, key);
}

bool EntryView::node_pods_accessible() const { return entry_->node_pods() != nullptr; }

std::size_t EntryView::secret_count() const {
  return entry_->secrets() == nullptr ? 0 : entry_->secrets()->size();
}

std::size_t EntryView::service_account_count() const {
  return entry_->service_accounts() == nullptr ? 0 : entry_->service_accounts()->size();
}

bool EntryView::HasHash(std::size_t secret, const ProbeSecret& probe) const {
  const v1::Secret& stored = *At(entry_->secrets(), secret);
  if (probe.hash_is_raw) return SameHash(RawHash(stored).data(), probe.hash_raw.data());
  const std::string_view hash = Text(stored.hash_text());
  return !hash.empty() && hash.size() == probe.text.credential_hash.size() &&
         CRYPTO_memcmp(hash.data(), probe.text.credential_hash.data(), hash.size()) == 0;
}

bool EntryView::IsSecret(std::size_t secret, const ProbeSecret& probe) const {
  return HasCoordinates(*At(entry_->secrets(), secret), probe.uid, probe.text.namespace_name,
                        probe.text.name);
}

SecretTag EntryView::HashTag(std::size_t secret, std::uint64_t key) const {
  const v1::Secret& stored = *At(entry_->secrets(), secret);
  const auto& raw = RawHash(stored);
  return HashTagOf(IsZero<32>(raw.data()) ? nullptr : raw.data(), Text(stored.hash_text()), key);
}

SecretTag EntryView::CoordinatesTag(std::size_t secret, std::uint64_t key) const {
  const v1::Secret& stored = *At(entry_->secrets(), secret);
  const auto& raw = RawUid(stored);
  const auto its = CoordinatesOf(stored);
  return CoordinatesTagOf(IsZero<16>(raw.data()) ? nullptr : raw.data(), Text(stored.uid_text()),
                          its.namespace_name, its.name, key);
}

bool EntryView::MatchServiceAccount(std::size_t account, const ProbeUid& uid,
                                    const ImagePullServiceAccountView& probe) const {
  return HasCoordinates(*At(entry_->service_accounts(), account), uid, probe.namespace_name,
                        probe.name);
}

StoredProof EntryView::node_pods_proof() const {
  return StoredProofOf(*entry_->node_pods(), entry_->node_pods_checker());
}
StoredProof EntryView::secret_proof(std::size_t secret) const {
  return StoredProofOf(*At(entry_->secrets(), secret));
}
StoredProof EntryView::service_account_proof(std::size_t account) const {
  return StoredProofOf(*At(entry_->service_accounts(), account));
}
ImagePullSecret EntryView::secret(std::size_t secret) const {
  return DecodeSecret(*At(entry_->secrets(), secret));
}
ImagePullServiceAccount EntryView::service_account(std::size_t account) const {
  return DecodeAccount(*At(entry_->service_accounts(), account));
}

ImageView::ImageView(std::span<const std::uint8_t> payload)
    : image_(flatbuffers::GetRoot<v2::Image>(payload.data())) {}

bool ImageView::SubjectIs(std::string_view subject) const {
  if (image_->subject() != nullptr) return Text(image_->subject()) == subject;
  return subject.size() == kSha256.size() + 64 && subject.starts_with(kSha256) &&
         AreDigitsOf(subject.data() + kSha256.size(), image_->fixed()->id().bytes()->data());
}

std::string_view ImageView::runtime_handler() const { return Text(image_->runtime_handler()); }
bool ImageView::is_recorded() const { return (image_->fixed()->flags() & kRecorded) != 0; }
bool ImageView::is_listed() const { return (image_->fixed()->flags() & kListed) != 0; }
bool ImageView::is_absent() const { return image_->absent() != 0; }
bool ImageView::has_preloaded() const { return image_->preloaded() != nullptr; }
bool ImageView::is_closed() const { return image_->closed_because() != nullptr; }
bool ImageView::is_closed_by_operator() const {
  return is_recorded() &&
         image_->fixed()->closed_by() == static_cast<std::uint8_t>(ClosedBy::kOperator);
}
std::string ImageView::subject() const { return SubjectOf(*image_); }

std::optional<EntryView> ImageView::Find(std::string_view image_name) const {
  const auto* entries = image_->entries();
  flatbuffers::uoffset_t low = 0;
  flatbuffers::uoffset_t high = entries == nullptr ? 0 : entries->size();
  while (low < high) {
    const flatbuffers::uoffset_t middle = low + (high - low) / 2;
    const v1::Entry* entry = entries->Get(middle);
    const std::string_view name = Text(entry->image_name());
    const int order = std::char_traits<char>::compare(name.data(), image_name.data(),
                                                      std::min(name.size(), image_name.size()));
    if (order == 0 && name.size() == image_name.size()) return EntryView(entry);
    if (order < 0 || (order == 0 && name.size() < image_name.size())) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return std::nullopt;
}

bool ImageView::HasEntries() const {
  return image_->entries() != nullptr && image_->entries()->size() != 0;
}

bool ImageView::AnyPreloadedName(FunctionRef<bool(std::string_view)> is_it) const {
  const auto* names = image_->preloaded() == nullptr ? nullptr : image_->preloaded()->names();
  return names != nullptr &&
         std::any_of(names->begin(), names->end(),
                     [&](const flatbuffers::String* name) { return is_it(Text(name)); });
}

bool ImageView::has_aliases() const {
  return image_->aliases() != nullptr || image_->alias_texts() != nullptr;
}

bool ImageView::HasAlias(std::string_view subject) const {
  Sha256Bytes raw{};
  if (DecodeDigest(subject, raw) && image_->aliases() != nullptr) {
    for (const v1::Sha256* one : *image_->aliases()) {
      if (std::memcmp(one->bytes()->data(), raw.data(), raw.size()) == 0) return true;
    }
  }
  const auto* texts = image_->alias_texts();
  return texts != nullptr &&
         std::any_of(texts->begin(), texts->end(), [&](const flatbuffers::String* text) {
           return Spelling(Text(text)).text() == subject;
         });
}

bool ImageView::AliasOf(std::string& image) const {
  if (image_->alias() == nullptr) return false;
  image = Text(image_->alias()->image());
  return true;
}

ImageView::Proofs ImageView::CountProofs() const {
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
  if (image_->entries() == nullptr) return proofs;
  for (const auto* const stored : *image_->entries()) {
    const EntryView entry(stored);
    if (entry.node_pods_accessible()) count(entry.node_pods_proof());
    for (std::size_t i = 0; i < entry.secret_count(); ++i) count(entry.secret_proof(i));
    for (std::size_t i = 0; i < entry.service_account_count(); ++i) {
      count(entry.service_account_proof(i));
    }
  }
  return proofs;
}

void SortUnique(std::vector<std::string>& texts) {
  std::ranges::sort(texts);
  const auto repeated = std::ranges::unique(texts);
  texts.erase(repeated.begin(), repeated.end());
}

std::vector<std::string> TextsOf(const ImageRow& row) {
  std::vector<std::string> texts = PlainSpellings(row.Ref());
  texts.insert(texts.end(), row.aliases.begin(), row.aliases.end());
  for (std::string& plain : PlainSpellings(row.subject)) {
    if (std::ranges::find(texts, plain) == texts.end()) texts.push_back(std::move(plain));
  }
  return texts;
}

// --- Keys ----------------------------------------------------------------------------------------

Key16 ImageKey(std::string_view subject, std::string_view runtime_handler, std::uint64_t seed) {
  Key16 key = HashKey(subject, seed);
  if (runtime_handler.empty()) return key;
  const std::uint64_t hash =
      XXH3_64bits_withSeed(runtime_handler.data(), runtime_handler.size(), seed);
  // Never 0: that is the default handler's.
  const auto mask = std::max<std::uint32_t>(static_cast<std::uint32_t>(hash), 1);
  for (std::size_t i = 0; i < sizeof(mask); ++i) {
    key.bytes[kSubjectKeyBytes + i] ^= static_cast<std::byte>(mask >> (8 * i));
  }
  return key;
}

Key16 FirstImageKey(std::string_view subject, std::uint64_t seed) {
  Key16 key = HashKey(subject, seed);
  std::fill(key.bytes.begin() + kSubjectKeyBytes, key.bytes.end(), std::byte{0});
  return key;
}

}  // namespace waybill::internal
