#include "tests/support/known_images.h"

namespace waybill::testing {

namespace {

const std::string kDigestA = "sha256:" + std::string(64, 'a');
const std::string kDigestB = "sha256:" + std::string(64, 'b');
const std::string kNginx = "docker.io/library/nginx";
const std::string kTeamApp = "registry.example.com:5000/team/app";
const std::string kHex = std::string(64, 'e');

}  // namespace

const std::vector<KnownImage>& KnownImages() {
  constexpr bool kHost = true;
  constexpr bool kBare = true;
  static const std::vector<KnownImage> images = {
      {"nginx", "nginx", kNginx + ":latest", kNginx, !kHost, "latest", "", kBare},
      {"nginx:1.27", "nginx", kNginx + ":1.27", kNginx, !kHost, "1.27"},
      {"nginx@" + kDigestA, "nginx", kNginx + "@" + kDigestA, kNginx, !kHost, "", kDigestA},
      {kNginx, kNginx, kNginx + ":latest", kNginx, kHost, "latest", "", kBare},
      {kNginx + ":1.27", kNginx, kNginx + ":1.27", kNginx, kHost, "1.27"},
      {"docker.io/nginx:latest", "docker.io/nginx", kNginx + ":latest", kNginx, kHost, "latest"},
      {"index.docker.io/library/nginx@" + kDigestA, "index.docker.io/library/nginx",
       kNginx + "@" + kDigestA, kNginx, kHost, "", kDigestA},
      {kTeamApp, kTeamApp, kTeamApp + ":latest", kTeamApp, kHost, "latest", "", kBare},
      {kTeamApp + ":v1", kTeamApp, kTeamApp + ":v1", kTeamApp, kHost, "v1"},
      {kTeamApp + "@" + kDigestB, kTeamApp, kTeamApp + "@" + kDigestB, kTeamApp, kHost, "",
       kDigestB},
      {kTeamApp + ":v1@" + kDigestB, kTeamApp, kTeamApp + ":v1@" + kDigestB, kTeamApp, kHost, "v1",
       kDigestB},
      {"team/app:v1", "team/app", "docker.io/team/app:v1", "docker.io/team/app", !kHost, "v1"},
      {"docker.io/team/app:v1", "docker.io/team/app", "docker.io/team/app:v1", "docker.io/team/app",
       kHost, "v1"},
      {"localhost/tool:v2", "localhost/tool", "localhost/tool:v2", "localhost/tool", kHost, "v2"},
      {kHex, kHex, std::nullopt, kHex},
      {"Not A Name", std::nullopt, std::nullopt, "Not A Name"},
      {"nginx:", std::nullopt, std::nullopt, "nginx:"},
      {"", std::nullopt, std::nullopt, ""},
  };
  return images;
}

const KnownImage* FindKnownImage(const std::string& image) {
  for (const KnownImage& known : KnownImages()) {
    if (known.image == image) return &known;
  }
  return nullptr;
}

}  // namespace waybill::testing
