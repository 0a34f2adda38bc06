// The grammar, as it is scanned here: one pass from the left, one table look-up a byte.
//
//   image     = name [":" tag] ["@" digest]
//   name      = [domain "/"] path
//   domain    = (host | "[" [0-9a-fA-F:]+ "]") [":" [0-9]+]
//   host      = runs of [0-9A-Za-z] joined by "." or "-"+
//   path      = component ("/" component)*, at most 255 bytes
//   component = runs of [0-9a-z] joined by ".", "_", "__" or "-"+
//   tag       = [0-9A-Za-z_] [0-9A-Za-z_.-]{0,127}
//   digest    = "sha256:" 64, "sha384:" 96 or "sha512:" 128 of [0-9a-f]
//
// What stands before the first "/" is the domain wherever it can be one: `library/nginx` has the
// domain `library`. A ":" opens a port if digits and a "/" follow, and a tag otherwise.

#include "waybill/image_name.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "store/base/hex.h"

namespace waybill {
namespace {

constexpr std::size_t kMaxPathBytes = 255;
constexpr std::size_t kMaxTagBytes = 128;

enum CharClass : std::uint8_t {
  kLower = 1,   // [0-9a-z]
  kUpper = 2,   // [A-Z]
  kDigit = 4,   // [0-9]
  kWord = 8,    // [0-9A-Za-z_]
  kInTag = 16,  // [0-9A-Za-z_.-]
  kInIpv6 = 32,
  kUnderscore = 64,
};

constexpr std::array<std::uint8_t, 256> MakeClasses() {
  std::array<std::uint8_t, 256> classes{};
  for (unsigned c = 'a'; c <= 'z'; ++c) classes[c] = kLower | kWord | kInTag;
  for (unsigned c = 'A'; c <= 'Z'; ++c) classes[c] = kUpper | kWord | kInTag;
  for (unsigned c = '0'; c <= '9'; ++c) classes[c] = kLower | kDigit | kWord | kInTag | kInIpv6;
  for (unsigned c = 'a'; c <= 'f'; ++c) classes[c] |= kInIpv6;
  for (unsigned c = 'A'; c <= 'F'; ++c) classes[c] |= kInIpv6;
  classes[':'] = kInIpv6;
  classes['_'] = kUnderscore | kWord | kInTag;
  classes['.'] = kInTag;
  classes['-'] = kInTag;
  return classes;
}

constexpr std::array<std::uint8_t, 256> kClasses = MakeClasses();

inline std::uint8_t ClassOf(char c) { return kClasses[static_cast<unsigned char>(c)]; }

inline const char* SkipClass(const char* at, const char* end, std::uint8_t mask) {
  while (at != end && (ClassOf(*at) & mask) != 0) ++at;
  return at;
}

// Runs of `run` joined by separators: the end, or null where a run is empty. `seen` gathers the
// classes that were met.
inline const char* SkipRuns(const char* at, const char* end, std::uint8_t run, unsigned& seen) {
  for (;;) {
    const char* const start = at;
    for (; at != end; ++at) {
      const std::uint8_t met = ClassOf(*at);
      if ((met & run) == 0) break;
      seen |= met;
    }
    if (at == start) return nullptr;
    if (at == end) return at;
    if (*at == '.') {
      ++at;
    } else if (*at == '-') {
      do ++at;
      while (at != end && *at == '-');
    } else if (*at == '_') {
      seen |= kUnderscore;
      ++at;
      if (at != end && *at == '_') ++at;
    } else {
      return at;
    }
  }
}

// The bytes that "@" and a digest take at the end of `image`; 0 where none does. An "@" elsewhere
// is in no class, and so stops the scan of the rest.
inline std::size_t DigestSuffix(std::string_view image) {
  struct Algorithm {
    std::string_view mark;
    std::size_t digits;
  };
  constexpr std::array<Algorithm, 3> kAlgorithms = {
      {{"@sha256:", 64}, {"@sha384:", 96}, {"@sha512:", 128}}};
  for (const Algorithm& algorithm : kAlgorithms) {
    const std::size_t bytes = algorithm.mark.size() + algorithm.digits;
    if (image.size() <= bytes) return 0;
    const char* const mark = image.data() + (image.size() - bytes);
    if (*mark == '@' && std::string_view(mark, algorithm.mark.size()) == algorithm.mark) {
      return internal::IsLowerHex(mark + algorithm.mark.size(), algorithm.digits) ? bytes : 0;
    }
  }
  return 0;
}

inline std::string_view Between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

inline bool Scan(std::string_view image, ImageParts& parts) {
  if (image.empty()) return false;
  const char* const begin = image.data();
  const std::size_t digest_bytes = DigestSuffix(image);
  const char* const end = begin + (image.size() - digest_bytes);
  if (digest_bytes != 0) parts.digest = {end + 1, digest_bytes - 1};

  const char* at = begin;
  unsigned seen = 0;
  bool only_domain = *at == '[';
  if (only_domain) {
    const char* const close = SkipClass(at + 1, end, kInIpv6);
    if (close == at + 1 || close == end || *close != ']') return false;
    at = close + 1;
  } else {
    at = SkipRuns(at, end, kLower | kUpper, seen);
    if (at == nullptr) return false;
  }
  if (at != end && *at == ':') {
    const char* const past = SkipClass(at + 1, end, kDigit);
    if (past != at + 1 && past != end && *past == '/') {
      only_domain = true;
      at = past;
    }
  }

  const char* path = begin;
  const bool can_be_domain = (seen & kUnderscore) == 0;
  if (at != end && *at == '/' && can_be_domain) {
    parts.domain = Between(begin, at);
    path = at + 1;
  } else if (only_domain || (seen & kUpper) != 0) {
    return false;
  }
  while (at != end && *at == '/') {
    at = SkipRuns(at + 1, end, kLower, seen);
    if (at == nullptr) return false;
  }
  parts.name = Between(begin, at);
  parts.path = Between(path, at);
  if (parts.path.size() > kMaxPathBytes) return false;
  if (at == end) return true;

  if (*at != ':') return false;
  const char* const tag = at + 1;
  if (tag == end || (ClassOf(*tag) & kWord) == 0) return false;
  parts.tag = Between(tag, end);
  return parts.tag.size() <= kMaxTagBytes && SkipClass(tag, end, kInTag) == end;
}

constexpr std::string_view kHub = "docker.io";
constexpr std::string_view kHubLegacy = "index.docker.io";

// `name` with registry and `library/` filled in; unchecked.
std::string FullName(std::string_view name) {
  std::string_view domain = kHub;
  std::string_view rest = name;
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view first = name.substr(0, slash);
    bool is_domain = first == "localhost";
    for (const char c : first) {
      is_domain = is_domain || c == '.' || c == ':' || (ClassOf(c) & kUpper) != 0;
    }
    if (is_domain) {
      domain = first == kHubLegacy ? kHub : first;
      rest = name.substr(slash + 1);
    }
  }
  std::string full(domain);
  full += '/';
  if (domain == kHub && rest.find('/') == std::string_view::npos) full += "library/";
  full += rest;
  return full;
}

// The name part of the full form; empty where there is none.
std::string NormalisedName(std::string_view image, std::string_view name) {
  constexpr std::size_t kIdentifierDigits = 64;
  if (image.size() == kIdentifierDigits && internal::IsLowerHex(image.data(), image.size())) {
    return {};
  }
  // Filling in can make the path too long, and puts `[ab]`, a host by the grammar, into the path.
  std::string full = FullName(name);
  ImageParts parts;
  if (!Scan(full, parts)) full.clear();
  return full;
}

}  // namespace

std::optional<ImageParts> ParseImage(std::string_view image) {
  std::optional<ImageParts> parts(std::in_place);
  if (!Scan(image, *parts)) parts.reset();
  return parts;
}

std::optional<std::string_view> ImageName(std::string_view image) {
  ImageParts parts;
  if (!Scan(image, parts)) return std::nullopt;
  return parts.name;
}

std::optional<std::string> NormaliseImage(std::string_view image) {
  ImageParts parts;
  if (!Scan(image, parts)) return std::nullopt;
  std::string full = NormalisedName(image, parts.name);
  if (full.empty()) return std::nullopt;
  if (parts.tag.empty() && parts.digest.empty()) parts.tag = "latest";
  if (!parts.tag.empty()) (full += ':') += parts.tag;
  if (!parts.digest.empty()) (full += '@') += parts.digest;
  return full;
}

std::string RepositoryOf(std::string_view image) {
  ImageParts parts;
  if (!Scan(image, parts)) return std::string(image);
  std::string full = NormalisedName(image, parts.name);
  return full.empty() ? std::string(parts.name) : full;
}

}  // namespace waybill
