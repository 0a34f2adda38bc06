// Image strings, by the grammar of the `distribution/reference` library (kubelet behaviour). No
// regular expressions; parsing allocates nothing. All functions are pure and thread-safe.

#ifndef WAYBILL_IMAGE_NAME_H_
#define WAYBILL_IMAGE_NAME_H_

#include <optional>
#include <string>
#include <string_view>

namespace [[gnu::visibility("default")]] waybill {

// The parts of an image string, as views into it. `name` is the image name: what credentials are
// kept under. It is the string cut of tag and digest, and nothing else changed: `nginx` and
// `docker.io/library/nginx` are two names, since a runtime may take a short name from elsewhere.
struct ImageParts {
  std::string_view name;
  std::string_view domain;  // "registry.example.com:443"; empty where the name has none
  std::string_view path;    // what follows domain and '/'; at most 255 bytes
  std::string_view tag;     // without ':'; empty where there is none
  std::string_view digest;  // "sha256:…", without '@'; empty where there is none
};

// nullopt: the string does not parse. Takes time linear in its length; any bytes are safe.
std::optional<ImageParts> ParseImage(std::string_view image);

// The image name of `image`, or nullopt where it does not parse.
std::optional<std::string_view> ImageName(std::string_view image);

// The full form: registry and `library/` filled in, tag `latest` where there is neither tag nor
// digest. nullopt where `image` does not parse or would be ambiguous (64 hex digits). Serves replay
// and Ensure only; no decision is made on it (kubelet behaviour).
std::optional<std::string> NormaliseImage(std::string_view image);

// What two strings must share to name the same repository, whatever their tags and digests:
// the name part of the full form; where there is no full form, the image name; where the string
// does not parse, the string.
std::string RepositoryOf(std::string_view image);

}  // namespace waybill

#endif  // WAYBILL_IMAGE_NAME_H_
