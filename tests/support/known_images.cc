#include "tests/support/known_images.h"

namespace waybill::testing {

namespace {

const std::string kDigestA = "@sha256:" + std::string(64, 'a');
const std::string kDigestB = "@sha256:" + std::string(64, 'b');
const std::string kNginx = "docker.io/library/nginx";
const std::string kApp = "registry.example.com:5000/team/app";
const std::string kHex = std::string(64, 'e');

}  // namespace

const std::vector<KnownImage>& KnownImages() {
  static const std::vector<KnownImage> images = {
      {"nginx", "nginx", kNginx + ":latest", kNginx},
      {"nginx:1.27", "nginx", kNginx + ":1.27", kNginx},
      {"nginx" + kDigestA, "nginx", kNginx + kDigestA, kNginx},
      {kNginx, kNginx, kNginx + ":latest", kNginx},
      {kNginx + ":1.27", kNginx, kNginx + ":1.27", kNginx},
      {"docker.io/nginx:latest", "docker.io/nginx", kNginx + ":latest", kNginx},
      {"index.docker.io/library/nginx" + kDigestA, "index.docker.io/library/nginx",
       kNginx + kDigestA, kNginx},
      {kApp, kApp, kApp + ":latest", kApp},
      {kApp + ":v1", kApp, kApp + ":v1", kApp},
      {kApp + kDigestB, kApp, kApp + kDigestB, kApp},
      {"team/app:v1", "team/app", "docker.io/team/app:v1", "docker.io/team/app"},
      {"docker.io/team/app:v1", "docker.io/team/app", "docker.io/team/app:v1",
       "docker.io/team/app"},
      {"localhost/tool:v2", "localhost/tool", "localhost/tool:v2", "localhost/tool"},
      {kHex, kHex, std::nullopt, kHex},
      {"Not A Name", std::nullopt, std::nullopt, "Not A Name"},
      {"nginx:", std::nullopt, std::nullopt, "nginx:"},
      {"", std::nullopt, std::nullopt, ""},
  };
  return images;
}

}  // namespace waybill::testing
