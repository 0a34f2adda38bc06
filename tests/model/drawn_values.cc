#include "tests/model/drawn_values.h"

#include <algorithm>
#include <utility>

#include "store/base/policy.h"

namespace waybill::testing {

namespace {

const std::string kUuid = "0f0e0d0c-0b0a-4908-8706-050403020100";

// Raw form in the store and text form, each twice; and a hash that failed.
std::string DrawHash(Draw& draw) {
  switch (draw.Below(6)) {
    case 0:
      return "";
    case 1:
      return "opaque";
    case 2:
      return std::string(64, 'F');
    case 3:
      return std::string(64, 'f');
    default:
      return std::string(63, '0') + std::to_string(draw.Below(2));
  }
}

ImagePullServiceAccount DrawServiceAccount(Draw& draw) {
  return {draw.OneIn(2) ? kUuid : "sa-uid", draw.OneIn(2) ? "team-a" : "team-b",
          draw.OneIn(2) ? "builder" : "default"};
}

ImagePullSecret NumberedSecret(Draw& draw, std::size_t number) {
  std::string uid = kUuid;
  uid.replace(uid.size() - 3, 3, std::to_string(100 + number));
  const std::string hash =
      draw.OneIn(8) ? DrawHash(draw) : std::string(61, 'c') + std::to_string(100 + number);
  return {uid, "bulk", "s" + std::to_string(number), hash};
}

std::string Id(char digit) { return "sha256:" + std::string(64, digit); }

// Of the images with the IDs 1 and 2.
const std::vector<std::string>& RepoDigests() {
  static const std::vector<std::string> digests = {
      "index.docker.io/library/nginx@sha256:" + std::string(64, 'a'),
      "registry.example.com:5000/team/app@sha256:" + std::string(64, 'b')};
  return digests;
}

}  // namespace

const std::vector<std::string>& Refs() {
  static const std::vector<std::string> refs = {
      Id('1'), std::string(64, '1'), RepoDigests()[0], Id('2'), RepoDigests()[1],
      Id('3'), std::string(64, '5'), "an opaque ref"};
  return refs;
}

ListedImage ImageOfRef(const std::string& ref) {
  for (std::size_t i = 0; i < RepoDigests().size(); ++i) {
    const std::string id = Id(static_cast<char>('1' + i));
    const std::string digest = SpellingOf(RepoDigests()[i]);
    if (SpellingOf(ref) != id && SpellingOf(ref) != digest) continue;
    return {.id = id, .repo_digests = {RepoDigests()[i]}};
  }
  return {.id = ref};
}

const KnownImage& DrawImage(Draw& draw) { return draw.From(KnownImages()); }

ImagePullSecret DrawSecret(Draw& draw) {
  return {draw.OneIn(2) ? kUuid : "uid-2", draw.OneIn(2) ? "team-a" : "team-b",
          draw.OneIn(3) ? "other" : "pull", DrawHash(draw)};
}

std::vector<ImagePullSecret> DrawSecrets(Draw& draw) {
  std::vector<ImagePullSecret> secrets;
  if (draw.OneIn(12)) {
    const std::size_t first = draw.Below(20);
    const std::size_t count = draw.OneIn(2) ? 95 + draw.Below(26) : draw.Below(121);
    for (std::size_t i = 0; i < count; ++i) secrets.push_back(NumberedSecret(draw, first + i));
    if (draw.OneIn(2)) std::reverse(secrets.begin(), secrets.end());
    return secrets;
  }
  const std::size_t count = draw.Below(4);
  for (std::size_t i = 0; i < count; ++i) secrets.push_back(DrawSecret(draw));
  return secrets;
}

std::optional<ImagePullCredentials> DrawCredentials(Draw& draw) {
  ImagePullCredentials credentials;
  switch (draw.Below(12)) {
    case 0:
      return std::nullopt;
    case 1:
      return credentials;
    case 2:
      credentials.node_pods_accessible = true;
      return credentials;
    case 3:
    case 4:
      credentials.kubernetes_service_accounts.push_back(DrawServiceAccount(draw));
      if (draw.OneIn(3)) {
        credentials.kubernetes_service_accounts.push_back(DrawServiceAccount(draw));
      }
      return credentials;
    default:
      credentials.kubernetes_secrets = DrawSecrets(draw);
      if (draw.OneIn(10)) {
        credentials.kubernetes_service_accounts.push_back(DrawServiceAccount(draw));
      }
      return credentials;
  }
}

ModelPod DrawPod(Draw& draw) {
  ModelPod pod;
  pod.available = !draw.OneIn(10);
  pod.secrets = DrawSecrets(draw);
  if (draw.OneIn(3)) pod.service_account = DrawServiceAccount(draw);
  return pod;
}

namespace {

std::vector<ProofRule> DrawProofs(Draw& draw) {
  const auto proofs = [&] { return draw.OneIn(2) ? Proofs::kRegistry : Proofs::kAny; };
  std::vector<ProofRule> rules;
  for (const char* pattern : {"", "nginx", "registry.example.com:5000/*",
                              "registry.example.com:5000/team/*", "localhost/tool"}) {
    if (draw.OneIn(2)) rules.push_back({pattern, proofs()});
  }
  return rules;
}

ModelPolicy DrawMode(Draw& draw) {
  switch (draw.Below(6)) {
    case 0:
      return {Verification::kNeverVerify};
    case 1:
      return {Verification::kAlwaysVerify};
    case 2:
      return {Verification::kNeverVerifyAllowlistedImages,
              {"nginx", "registry.example.com:5000/team/*", "localhost/tool"},
              draw.OneIn(2) ? AllowlistScope::kAnyImage : AllowlistScope::kPreloadedOnly};
    default:
      return {};
  }
}

}  // namespace

ModelPolicy DrawPolicy(Draw& draw) {
  ModelPolicy policy = DrawMode(draw);
  if (draw.OneIn(3)) policy.proofs = DrawProofs(draw);
  return policy;
}

ProofTerms DrawTerms(Draw& draw, Timestamp now) {
  ProofTerms terms;
  if (!draw.OneIn(3)) terms.checker = static_cast<VerifiedBy>(draw.Below(5));
  if (draw.OneIn(6)) {
    terms.good_until = Timestamp{now.seconds + static_cast<std::int64_t>(draw.Below(400)) - 20, 0};
  }
  terms.node_had_no_credentials = draw.OneIn(3);
  return terms;
}

ImagePulledRecord DrawRecord(Draw& draw, Timestamp now) {
  ImagePulledRecord record;
  record.image_ref = draw.From(Refs());
  if (!draw.OneIn(4)) {
    now.seconds += static_cast<std::int64_t>(draw.Below(40)) - 20;
    record.last_updated = now;
  }
  const std::size_t names = draw.Below(3);
  for (std::size_t i = 0; i < names; ++i) {
    const KnownImage& image = DrawImage(draw);
    if (!image.name) continue;
    record.credential_mapping[*image.name] = DrawCredentials(draw).value_or(ImagePullCredentials{});
  }
  return record;
}

std::vector<ListedImage> DrawImagesOnNode(Draw& draw) {
  std::vector<ListedImage> images;
  const std::size_t count = draw.Below(6);
  for (std::size_t i = 0; i < count; ++i) {
    ListedImage image = ImageOfRef(draw.From(Refs()));
    if (draw.OneIn(8)) image.id = image.id.substr(image.id.find(':') + 1);
    if (draw.OneIn(3)) image.repo_digests.clear();
    const std::size_t tags = draw.Below(3);
    for (std::size_t j = 0; j < tags; ++j) {
      const KnownImage& name = DrawImage(draw);
      if (name.digest.empty()) image.repo_tags.push_back(name.image);
    }
    image.pinned = draw.OneIn(8);
    images.push_back(std::move(image));
  }
  return images;
}

std::vector<std::string> DrawRefs(Draw& draw) {
  std::vector<std::string> refs;
  for (const std::string& ref : Refs()) {
    if (draw.OneIn(2)) refs.push_back(ref);
  }
  return refs;
}

std::chrono::seconds DrawMaxAge(Draw& draw) {
  constexpr std::int64_t kAges[] = {0, 0, 60, 100, 300, 3600};
  return std::chrono::seconds(kAges[draw.Below(std::size(kAges))]);
}

Revocation DrawRevocation(Draw& draw, const std::string& handler) {
  Revocation what;
  what.kind = static_cast<RevocationKind>(1 + draw.Below(5));
  const bool by_uid = draw.OneIn(2);
  switch (what.kind) {
    case RevocationKind::kServiceAccount: {
      const ImagePullServiceAccount one = DrawServiceAccount(draw);
      what.who = {one.namespace_name, one.name, by_uid ? one.uid : ""};
      break;
    }
    case RevocationKind::kImage:
      what.image_ref = draw.From(Refs());
      what.runtime_handler = handler;
      break;
    default: {
      const ImagePullSecret one =
          draw.OneIn(3) ? NumberedSecret(draw, draw.Below(30)) : DrawSecret(draw);
      if (what.kind == RevocationKind::kCredential) {
        what.credential_hash = one.credential_hash.empty() ? "opaque" : one.credential_hash;
        break;
      }
      what.who.namespace_name = one.namespace_name;
      if (what.kind == RevocationKind::kNamespace) break;
      what.who.name = one.name;
      if (by_uid) what.who.uid = one.uid;
    }
  }
  return what;
}

ExistingCredentials DrawTruth(Draw& draw) {
  ExistingCredentials truth;
  if (draw.OneIn(6)) return truth;
  const auto name = [&](const auto& one) {
    return CredentialName{one.namespace_name, one.name, draw.OneIn(4) ? "" : one.uid};
  };
  for (int i = 0; i < 8; ++i) {
    if (!draw.OneIn(4)) truth.secrets.push_back(name(DrawSecret(draw)));
    if (draw.OneIn(2)) truth.service_accounts.push_back(name(DrawServiceAccount(draw)));
  }
  for (std::size_t i = draw.Below(3) * 40; i > 0; --i) {
    truth.secrets.push_back(name(NumberedSecret(draw, i)));
  }
  return truth;
}

}  // namespace waybill::testing
