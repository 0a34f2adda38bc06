// A user's first program: it records a pull, and asks who may use the image. Exits 0 if each answer
// is right.

#include <cstdio>
#include <string>
#include <vector>

#include "waybill/waybill.h"

namespace {

const std::string kImage = "registry.example.com/team/app:v1";

bool MayUse(waybill::Store& store, const std::vector<waybill::ImagePullSecretView>& secrets) {
  return !store.MustPull({.image = kImage, .image_ref = "sha256:1"}, {.secrets = secrets}).pull;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto store = waybill::Store::Open({.directory = argv[1], .loss_marker = waybill::kNoLossMarker});
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().ToString().c_str());
    return 3;
  }
  auto hash = waybill::HashCredentials({"user", "password", ""});
  if (!hash) return 3;
  const waybill::ImagePullSecret secret{"uid-1", "tenant-a", "pull", *hash};
  const auto pull = (*store)->BeginPull({.image = kImage});
  if (!pull) return 3;
  waybill::ImagePullCredentials credentials;
  credentials.kubernetes_secrets.push_back(secret);
  auto ended = (*store)->EndPull({.image = kImage, .image_ref = "sha256:1"}, *pull,
                                 waybill::PullOutcome::kPulled, credentials);
  if (!ended) return 3;
  const bool right = MayUse(**store, {secret}) && !MayUse(**store, {});
  std::puts(right ? "the pod with the secret may, the other may not" : "wrong answers");
  return right && (*store)->Close() ? 0 : 1;
}
