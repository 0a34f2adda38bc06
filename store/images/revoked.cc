#include "store/images/revoked.h"

#include <flatbuffers/flatbuffers.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string>

#include "schema/v2/revocation_generated.h"
#include "store/base/hex.h"
#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/disk/flatbuffer.h"
#include "store/images/images.h"
#include "store/images/other_rows.h"
#include "store/images/proofs.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

namespace v1 = schema::v1;
namespace v2 = schema::v2;

// Each part with its length before it, so that no two identities are one.
void AddPart(std::string& identity, std::string_view part) {
  const auto size = static_cast<std::uint32_t>(part.size());
  for (unsigned shift = 0; shift < 32; shift += 8) {
    identity.push_back(static_cast<char>(size >> shift & 0xff));
  }
  identity += part;
}

// What is forgotten: its kind, and what tells it from others of the kind.
struct Forgotten {
  RevocationKind kind;
  std::string_view a = {};
  std::string_view b = {};
  std::string_view c = {};

  friend bool operator==(const Forgotten&, const Forgotten&) = default;
};

Key16 KeyOf(const Forgotten& identity, std::uint64_t seed) {
  std::string text(1, static_cast<char>(identity.kind));
  for (const std::string_view part : {identity.a, identity.b, identity.c}) AddPart(text, part);
  return HashKey(text, seed);
}

Forgotten IdentityOf(const Revocation& revocation) {
  switch (revocation.kind) {
    case RevocationKind::kImage:
      return {revocation.kind, revocation.image_ref, revocation.runtime_handler};
    case RevocationKind::kCredential:
      return {revocation.kind, revocation.credential_hash};
    case RevocationKind::kNamespace:
      return {revocation.kind, revocation.who.namespace_name};
    case RevocationKind::kSecret:
    case RevocationKind::kServiceAccount:
      break;
  }
  return {revocation.kind, revocation.who.namespace_name, revocation.who.name, revocation.who.uid};
}

// Under which a credential may be forgotten.
using Identities = std::vector<Forgotten>;

Identities IdentitiesOf(const ImagePullSecret& secret) {
  Identities all = {{RevocationKind::kNamespace, secret.namespace_name},
                    {RevocationKind::kSecret, secret.namespace_name, secret.name}};
  if (!secret.uid.empty()) {
    all.push_back({RevocationKind::kSecret, secret.namespace_name, secret.name, secret.uid});
  }
  if (!secret.credential_hash.empty()) {
    all.push_back({RevocationKind::kCredential, secret.credential_hash});
  }
  return all;
}

Identities IdentitiesOf(const ImagePullServiceAccount& account) {
  Identities all = {{RevocationKind::kNamespace, account.namespace_name},
                    {RevocationKind::kServiceAccount, account.namespace_name, account.name}};
  if (!account.uid.empty()) {
    all.push_back(
        {RevocationKind::kServiceAccount, account.namespace_name, account.name, account.uid});
  }
  return all;
}

bool HasRevocations(const StoreTxn& txn) {
  return txn.state().digest(Table::kRevocations).count != 0;
}

// Whether one of them is forgotten. An unreadable one counts.
Result<bool> AnyForgotten(const StoreTxn& txn, const Identities& identities,
                          std::uint64_t pull_began) {
  for (const Forgotten& identity : identities) {
    auto payload = txn.Get(Table::kRevocations, KeyOf(identity, txn.seed()));
    if (!payload && payload.error().code == ErrorCode::kDamaged) return true;
    if (!payload) return payload.error();
    if (!*payload) continue;
    const auto stored = DecodeRevocation(**payload);
    if (!stored || stored->commit >= pull_began) return true;
  }
  return false;
}

bool AnyForgotten(const ReaderPool::Lease& snapshot, const Identities& identities,
                  std::uint64_t pull_began) {
  for (const Forgotten& identity : identities) {
    Payload payload;
    const Lookup found =
        snapshot.Get(Table::kRevocations, KeyOf(identity, snapshot.seed()), payload);
    if (found == Lookup::kAbsent) continue;
    const auto stored = found == Lookup::kFound ? DecodeRevocation(payload) : std::nullopt;
    if (!stored || stored->commit >= pull_began) return true;
  }
  return false;
}

bool IsInBounds(const v2::Revocation& stored) {
  return Fits(stored.namespace_name(), kMaxCoordinateBytes) &&
         Fits(stored.name(), kMaxCoordinateBytes) && Fits(stored.uid(), kMaxCoordinateBytes) &&
         Fits(stored.hash_text(), kMaxCoordinateBytes) &&
         Fits(stored.image_ref(), kMaxImageRefBytes) &&
         Fits(stored.runtime_handler(), kMaxRuntimeHandlerBytes);
}

}  // namespace

std::vector<std::uint8_t> EncodeRevocation(const Revocation& revocation) {
  flatbuffers::FlatBufferBuilder builder(256);
  const auto namespace_name = StringUnlessEmpty(builder, revocation.who.namespace_name);
  const auto name = StringUnlessEmpty(builder, revocation.who.name);
  const auto uid = StringUnlessEmpty(builder, revocation.who.uid);
  std::array<std::uint8_t, 32> raw{};
  const bool is_raw = HexDecode(revocation.credential_hash, raw);
  const v1::Sha256 hash(Raw(raw));
  flatbuffers::Offset<flatbuffers::String> hash_text;
  if (!is_raw) hash_text = StringUnlessEmpty(builder, revocation.credential_hash);
  const auto ref = StringUnlessEmpty(builder, revocation.image_ref);
  const auto handler = StringUnlessEmpty(builder, revocation.runtime_handler);
  const v1::Time since = ToTime(revocation.since);
  return Finish(builder, v2::CreateRevocation(builder, static_cast<std::uint8_t>(revocation.kind),
                                              namespace_name, name, uid, is_raw ? &hash : nullptr,
                                              hash_text, ref, revocation.commit, &since,
                                              revocation.unfinished, revocation.ran, handler));
}

std::optional<Revocation> DecodeRevocation(Payload payload) {
  const auto* root = Root<v2::Revocation>(payload);
  if (root == nullptr || root->since() == nullptr || root->kind() == 0 ||
      root->kind() > static_cast<std::uint8_t>(RevocationKind::kCredential) || !IsInBounds(*root) ||
      (root->hash_raw() != nullptr && root->hash_text() != nullptr)) {
    return std::nullopt;
  }
  Revocation revocation;
  revocation.kind = static_cast<RevocationKind>(root->kind());
  revocation.who = {std::string(Text(root->namespace_name())), std::string(Text(root->name())),
                    std::string(Text(root->uid()))};
  revocation.credential_hash = root->hash_raw() != nullptr
                                   ? HexEncode({root->hash_raw()->bytes()->data(), 32})
                                   : std::string(Text(root->hash_text()));
  revocation.image_ref = Text(root->image_ref());
  revocation.runtime_handler = Text(root->runtime_handler());
  revocation.commit = root->commit();
  revocation.since = FromTime(*root->since());
  revocation.unfinished = root->unfinished();
  revocation.ran = root->ran();
  return revocation;
}

std::optional<Key16> KeyOfRevocation(Payload payload, std::uint64_t seed) {
  const auto revocation = DecodeRevocation(payload);
  return revocation ? std::optional(KeyOf(IdentityOf(*revocation), seed)) : std::nullopt;
}

Result<std::vector<Revocation>> ReadRevocations(const StoreTxn& txn) {
  return ReadAll(txn, Table::kRevocations, DecodeRevocation,
                 Error{ErrorCode::kDamaged, "a revocation can't be read", {}, Hint::kRecover});
}

Result<std::optional<Revocation>> FindRevocation(const StoreTxn& txn, const Revocation& like) {
  auto payload = txn.Get(Table::kRevocations, KeyOf(IdentityOf(like), txn.seed()));
  if (!payload && payload.error().code != ErrorCode::kDamaged) return payload.error();
  if (!payload || !*payload) return std::optional<Revocation>();
  auto stored = DecodeRevocation(**payload);
  if (stored && !(IdentityOf(*stored) == IdentityOf(like))) return KeyIsTaken("a revocation");
  return stored;
}

Result<void> PutRevocation(StoreTxn& txn, const Revocation& revocation) {
  auto before = TRY(FindRevocation(txn, revocation));
  Revocation stored = revocation;
  if (before) {
    stored.unfinished = stored.unfinished || (before->unfinished && before->commit > stored.commit);
    stored.commit = std::max(stored.commit, before->commit);
    stored.since = std::max(stored.since, before->since);
    stored.ran = std::max(stored.ran, before->ran);
    if (before->unfinished) --txn.state().unfinished;
  }
  if (stored.unfinished) ++txn.state().unfinished;
  const Key16 key = KeyOf(IdentityOf(stored), txn.seed());
  return txn.PutFromReserve(Table::kRevocations, key, EncodeRevocation(stored));
}

Result<void> EraseRevocation(StoreTxn& txn, const Revocation& revocation) {
  auto erased = TRY(txn.Delete(Table::kRevocations, KeyOf(IdentityOf(revocation), txn.seed())));
  if (erased && revocation.unfinished) --txn.state().unfinished;
  return {};
}

namespace {

// What is revoked in itself, or with its image. An error counts as revoked, and is kept.
class IsRevoked {
 public:
  IsRevoked(const StoreTxn& txn, const Identities& of_image) : txn_(txn), of_image_(of_image) {}
  bool operator()(const Proof& of_node_pods) const { return Any(of_image_, of_node_pods); }
  template <typename T>
  bool operator()(const T& one) const {
    Identities identities = IdentitiesOf(one);
    identities.insert(identities.end(), of_image_.begin(), of_image_.end());
    return Any(identities, one.proof);
  }
  const Result<void>& failed() const { return failed_; }

 private:
  bool Any(const Identities& identities, const Proof& proof) const {
    const auto is = AnyForgotten(txn_, identities, proof.pull_began);
    if (!is && failed_) failed_ = is.error();
    return !is || *is;
  }

  const StoreTxn& txn_;
  const Identities& of_image_;
  mutable Result<void> failed_;
};

}  // namespace

Result<bool> LeaveOutRevoked(const Images& images, ImageRow& row) {
  const StoreTxn& txn = images.txn();
  if (!row.pulled || row.pulled->entries.empty() || !HasRevocations(txn)) return false;
  std::set<std::string> subjects{SpellingOf(row.subject)};
  auto texts = TRY(images.TextsOf(row.subject));
  for (const std::string& more : TextsOf(row)) texts.push_back(more);
  for (const std::string& text : texts) subjects.insert(SpellingOf(text));
  Identities of_image;
  for (const std::string& subject : subjects) {
    of_image.push_back({RevocationKind::kImage, subject, row.runtime_handler});
  }
  const IsRevoked is_revoked(txn, of_image);
  const PulledPart was = *row.pulled;
  const bool any = LeaveIf([&](const std::string&, const auto& one) { return !is_revoked(one); },
                           row.pulled->entries);
  if (!is_revoked.failed()) return is_revoked.failed().error();
  if (any) KeepPrivateNames(was, *row.pulled);
  return any;
}

Result<bool> IsForgotten(const StoreTxn& txn, const ImagePullSecret& secret) {
  if (!HasRevocations(txn)) return false;
  return AnyForgotten(txn, IdentitiesOf(secret), secret.proof.pull_began);
}

Result<bool> IsHashForgotten(const StoreTxn& txn, std::string_view hash) {
  if (hash.empty() || !HasRevocations(txn)) return false;
  return AnyForgotten(txn, {{RevocationKind::kCredential, hash}}, 0);
}

bool IsForgotten(const ReaderPool::Lease& snapshot, const ImagePullSecret& secret) {
  return AnyForgotten(snapshot, IdentitiesOf(secret), secret.proof.pull_began);
}

bool IsForgotten(const ReaderPool::Lease& snapshot, const ImagePullServiceAccount& account) {
  return AnyForgotten(snapshot, IdentitiesOf(account), account.proof.pull_began);
}

bool IsHashForgotten(const ReaderPool::Lease& snapshot, std::string_view hash) {
  if (hash.empty()) return false;
  if (snapshot.state().digest(Table::kRevocations).count == 0) {
    return !snapshot.CountIsTrue(Table::kRevocations);
  }
  return AnyForgotten(snapshot, {{RevocationKind::kCredential, hash}}, 0);
}

}  // namespace waybill::internal
