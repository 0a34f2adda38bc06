// A user's first program: it records a pull, and asks who may use the image. Exits 0 if each answer
// is right.

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

#include "waybill/waybill.h"

namespace {

bool MayUse(waybill::NodeStore& store, const std::vector<waybill::ImagePullSecretView>& secrets) {
  waybill::FixedCredentials credentials({secrets, std::nullopt});
  return !store
              .MustAttemptPull(
                  {.image = "registry.example.com/team/app:v1", .image_ref = "sha256:1"},
                  credentials)
              .pull;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto store =
      waybill::NodeStore::Open({.directory = argv[1], .witness = waybill::Witness::None()});
  if (!store) {
    std::fprintf(stderr, "%s\n", store.error().ToString().c_str());
    return 3;
  }
  auto hash = waybill::HashCredentials({"user", "password", ""});
  if (!hash) return 3;
  const waybill::ImagePullSecret secret{"uid-1", "tenant-a", "pull", *hash};
  const std::string image = "registry.example.com/team/app:v1";
  const auto pull = (*store)->RecordPullIntent({.image = image});
  if (!pull) return 3;
  waybill::ImagePullCredentials credentials;
  credentials.kubernetes_secrets.push_back(secret);
  auto pulled = (*store)->RecordImagePulled({.image = image, .image_ref = "sha256:1"}, credentials,
                                            {.pull = *pull});
  if (!pulled) return 3;
  const bool right = MayUse(**store, {secret}) && !MayUse(**store, {});
  std::puts(right ? "the pod with the secret may, the other may not" : "wrong answers");
  return right && (*store)->Close() ? 0 : 1;
}
