// Image strings, by the grammar of the `distribution/reference` library (kubelet behaviour).
// Parsing allocates nothing, and takes time linear in the length. Pure, thread-safe.

#ifndef WAYBILL_STORE_BASE_IMAGE_NAME_H_
#define WAYBILL_STORE_BASE_IMAGE_NAME_H_

#include <optional>
#include <string>
#include <string_view>

namespace waybill {

// The parts of an image string, as views into it. Credentials are stored under `name`, the string
// without tag and digest, otherwise unchanged: `nginx` and `docker.io/library/nginx` are two names,
// since a runtime may resolve a short name elsewhere.
struct ImageParts {
  std::string_view name = {};
  std::string_view domain = {};  // "registry.example.com:443"; may be empty
  std::string_view path = {};    // what follows domain and '/'; at most 255 bytes
  std::string_view tag = {};     // without ':'; may be empty
  std::string_view digest = {};  // "sha256:…", without '@'; may be empty
};

// nullopt: the string does not parse. Takes time linear in its length; any bytes are safe.
std::optional<ImageParts> PartsOfImage(std::string_view image);

// The image name of `image`, or nullopt where it does not parse.
std::optional<std::string_view> ImageName(std::string_view image);

// The full form: registry and `library/` filled in, and the tag `latest` if `image` has neither tag
// nor digest. nullopt if `image` does not parse or is ambiguous (64 hex digits). Only replay and
// Ensure use it; decisions do not (kubelet behaviour).
std::optional<std::string> NormaliseImage(std::string_view image);

// The repository of an image string: equal for two strings that name the same one, whatever their
// tags and digests. It is the name in the full form; without a full form, the image name; if the
// string does not parse, the string itself.
std::string RepositoryOf(std::string_view image);

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_IMAGE_NAME_H_
