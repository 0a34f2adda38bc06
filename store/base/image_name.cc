// The grammar, scanned in one pass from the left, with one table look-up for each byte.
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
// What comes before the first "/" is the domain if it can be one: `library/nginx` has the domain
// `library`. A ":" begins a port if digits and a "/" follow, otherwise a tag.
//
// Every decision parses its image, so SSE2 scans usual ones in blocks of 16 bytes: names of single
// separators, without "_", upper case or a port. Whatever it does not accept is scanned byte by
// byte.

#include "store/base/image_name.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "store/base/hex.h"
#include "store/base/image_spellings.h"

namespace waybill {
namespace {

constexpr std::size_t kMaxImagePathBytes = 255;
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

// Skips runs of class `run` joined by separators; nullptr: a run is empty. Adds the classes that it
// meets to `seen`.
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

// The size of "@" and a digest at the end of `image`; 0: there is no digest. An "@" elsewhere is in
// no class, so it stops the scan of the rest.
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

// Sets name, domain, path and tag; false, with nothing set: the text may be good or bad. It is what
// comes before the digest.
#ifdef __SSE2__
inline bool ScanBlocks(const char* begin, const char* end, ImageParts& parts) {
  constexpr std::size_t kBlock = 16;
  const auto size = static_cast<std::size_t>(end - begin);
  if (size < kBlock) return false;
  std::size_t name_bytes = size;
  std::size_t slash = size;
  unsigned after_separator = 1;  // of the byte before the block; a name begins as after one
  for (std::size_t at = 0; at < size;) {
    // The last block begins earlier, so that it ends with the text.
    const std::size_t start = std::min(at, size - kBlock);
    const auto skipped = static_cast<unsigned>(at - start);
    const internal::Bytes16 bytes = internal::Load16(begin + start);
    const auto are = [bytes](char c) { return internal::IsBetween(bytes, c, c); };
    const auto mask = [skipped](internal::Bytes16 which) {
      return static_cast<unsigned>(_mm_movemask_epi8(reinterpret_cast<__m128i>(which))) >> skipped;
    };
    const unsigned all = 0xffffU >> skipped;
    const unsigned slashes = mask(are('/'));
    const unsigned colons = mask(are(':'));
    const unsigned separators = slashes | mask(are('.') | are('-'));
    const unsigned runs =
        mask(internal::IsBetween(bytes, 'a', 'z') | internal::IsBetween(bytes, '0', '9'));
    // Up to the first colon, which ends the name as a separator would.
    const unsigned name = colons == 0 ? all : (colons & -colons) - 1;
    const unsigned last = colons & -colons;
    const unsigned follows_separator = separators << 1 | after_separator;
    if ((name & ~(runs | separators)) != 0 ||
        (follows_separator & ((separators & name) | last)) != 0) {
      return false;
    }
    if (slash == size && (slashes & name) != 0) {
      slash = at + static_cast<std::size_t>(std::countr_zero(slashes & name));
    }
    if (last != 0) {
      name_bytes = at + static_cast<std::size_t>(std::countr_zero(last));
      break;
    }
    at = start + kBlock;
    after_separator = separators >> (kBlock - 1 - skipped) & 1;
  }
  if (name_bytes == size && after_separator != 0) return false;
  const std::size_t path = slash == size ? 0 : slash + 1;
  if (name_bytes - path > kMaxImagePathBytes) return false;
  if (name_bytes != size) {
    const char* const tag = begin + name_bytes + 1;
    if (tag == end || (ClassOf(*tag) & kWord) == 0 || SkipClass(tag, end, kInTag) != end ||
        static_cast<std::size_t>(end - tag) > kMaxTagBytes) {
      return false;
    }
    parts.tag = Between(tag, end);
  }
  parts.name = {begin, name_bytes};
  if (path != 0) parts.domain = {begin, slash};
  parts.path = parts.name.substr(path);
  return true;
}
#else
inline bool ScanBlocks(const char*, const char*, ImageParts&) { return false; }
#endif

// Likewise, but false means that the text is bad.
bool ScanBytes(const char* begin, const char* end, ImageParts& parts) {
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
  if (parts.path.size() > kMaxImagePathBytes) return false;
  if (at == end) return true;

  if (*at != ':') return false;
  const char* const tag = at + 1;
  if (tag == end || (ClassOf(*tag) & kWord) == 0) return false;
  parts.tag = Between(tag, end);
  return parts.tag.size() <= kMaxTagBytes && SkipClass(tag, end, kInTag) == end;
}

enum class InBlocks : bool { kNo, kYes };

inline bool Scan(std::string_view image, ImageParts& parts, InBlocks in_blocks = InBlocks::kYes) {
  if (image.empty()) return false;
  const char* const begin = image.data();
  const std::size_t digest_bytes = DigestSuffix(image);
  const char* const end = begin + (image.size() - digest_bytes);
  if (digest_bytes != 0) parts.digest = {end + 1, digest_bytes - 1};
  if (in_blocks == InBlocks::kYes && ScanBlocks(begin, end, parts)) return true;
  return ScanBytes(begin, end, parts);
}

using internal::RepositoryParts;

// Of the first component of a name.
inline bool IsHost(std::string_view first) {
  return first == "localhost" || std::any_of(first.begin(), first.end(), [](char c) {
           return c == '.' || c == ':' || (ClassOf(c) & kUpper) != 0;
         });
}

// The name in the full form of `image`, whose image name is `name`. Copies nothing. nullopt: the
// image has no full form.
std::optional<RepositoryParts> FullName(std::string_view image, std::string_view name) {
  constexpr std::size_t kIdentifierDigits = 64;
  constexpr std::string_view kLibrary = "library/";
  // It could be an image ID.
  if (image.size() == kIdentifierDigits && internal::IsLowerHex(image.data(), image.size())) {
    return std::nullopt;
  }
  std::string_view path = name;
  const std::size_t slash = name.find('/');
  if (slash != std::string_view::npos) {
    const std::string_view first = name.substr(0, slash);
    const bool is_hub = first == "docker.io" || first == "index.docker.io";
    if (IsHost(first) && !is_hub) return RepositoryParts{name, "", ""};
    if (is_hub) path = name.substr(slash + 1);
  }
  const bool is_official =
      path.starts_with(kLibrary) && path.find('/', kLibrary.size()) == std::string_view::npos;
  if (is_official) path.remove_prefix(kLibrary.size());
  const std::string_view library =
      is_official || path.find('/') == std::string_view::npos ? kLibrary : "";
  // "library/" can make the path too long. `[ab]`, a host by the grammar, can't be a path.
  if (library.size() + path.size() > kMaxImagePathBytes || path.starts_with('['))
    return std::nullopt;
  return RepositoryParts{"docker.io/", library, path};
}

std::string Join(const RepositoryParts& parts) {
  std::string joined;
  joined.reserve(parts[0].size() + parts[1].size() + parts[2].size());
  for (const std::string_view part : parts) joined += part;
  return joined;
}

}  // namespace

std::optional<ImageParts> PartsOfImage(std::string_view image) {
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
  const auto name = FullName(image, parts.name);
  if (!name) return std::nullopt;
  std::string full = Join(*name);
  if (parts.tag.empty() && parts.digest.empty()) parts.tag = "latest";
  if (!parts.tag.empty()) (full += ':') += parts.tag;
  if (!parts.digest.empty()) (full += '@') += parts.digest;
  return full;
}

std::string RepositoryOf(std::string_view image) {
  return Join(internal::RepositoryPartsOf(image));
}

namespace internal {

std::optional<ImageParts> ParseImageBytes(std::string_view image) {
  ImageParts parts;
  if (!Scan(image, parts, InBlocks::kNo)) return std::nullopt;
  return parts;
}

RepositoryParts RepositoryPartsOf(std::string_view image) {
  ImageParts parts;
  if (!Scan(image, parts)) return {image, "", ""};
  return FullName(image, parts.name).value_or(RepositoryParts{parts.name, "", ""});
}

std::vector<std::string> EquivalentImages(std::string_view image) {
  std::vector<std::string> images{std::string(image)};
  const auto full = NormaliseImage(image);
  if (!full) return images;
  constexpr std::string_view kLatest = ":latest";
  std::vector<std::string_view> endings{*full};
  if (full->ends_with(kLatest)) {
    endings.push_back(std::string_view(*full).substr(0, full->size() - kLatest.size()));
  }
  for (const std::string_view ending : endings) {
    images.emplace_back(ending);
    for (const std::string_view removed : {"docker.io/", "docker.io/library/"}) {
      if (!ending.starts_with(removed)) continue;
      const std::string_view rest = ending.substr(removed.size());
      for (const std::string_view added : {"", "docker.io/", "index.docker.io/"}) {
        images.push_back(std::string(added) + std::string(rest));
      }
    }
  }
  std::erase_if(images, [&](const std::string& candidate) {
    return candidate != image && NormaliseImage(candidate) != full;
  });
  std::sort(images.begin(), images.end());
  images.erase(std::unique(images.begin(), images.end()), images.end());
  return images;
}

namespace {

constexpr std::string_view kSha256 = "sha256:";
constexpr std::size_t kSha256Digits = 64;

bool IsBareId(std::string_view ref) {
  return ref.size() == kSha256Digits && IsLowerHex(ref.data(), ref.size());
}

}  // namespace

// NOLINTNEXTLINE(*-member-init): of the buffer only what text_ shows is read.
Spelling::Spelling(std::string_view ref) : text_(ref) {
  if (IsBareId(ref)) {
    kSha256.copy(buffer_.data(), kSha256.size());
    ref.copy(buffer_.data() + kSha256.size(), ref.size());
    text_ = {buffer_.data(), buffer_.size()};
  } else if (const std::size_t digest = DigestSuffix(ref); digest != 0) {
    text_ = ref.substr(ref.size() - digest + 1);
  }
}

std::string SpellingOf(std::string_view ref) { return std::string(Spelling(ref).text()); }

std::vector<std::string> PlainSpellings(std::string_view ref) {
  std::vector<std::string> all{std::string(ref)};
  const std::string digest = SpellingOf(ref);
  if (digest != ref) all.push_back(digest);
  if (digest.starts_with(kSha256) && IsBareId(std::string_view(digest).substr(kSha256.size()))) {
    const std::string bare = digest.substr(kSha256.size());
    if (bare != ref) all.push_back(bare);
  }
  return all;
}

NamedImage ReadName(std::string_view image) {
  NamedImage named;
  const bool has_prefix = image.starts_with(kSha256);
  named.is_id = IsBareId(has_prefix ? image.substr(kSha256.size()) : image);
  ImageParts parts;
  if (!Scan(image, parts)) return named;
  const auto name = FullName(image, parts.name);
  if (!name) return named;
  named.parses = true;
  const std::size_t slash = parts.name.find('/');
  named.has_host = slash != std::string_view::npos && IsHost(parts.name.substr(0, slash));
  named.repository = Join(*name);
  named.written = parts.name;
  const std::size_t host_end = std::min(named.repository.find('/'), named.repository.size());
  std::transform(
      named.repository.begin(), named.repository.begin() + static_cast<std::ptrdiff_t>(host_end),
      named.repository.begin(),
      [](char c) { return (ClassOf(c) & kUpper) != 0 ? static_cast<char>(c - 'A' + 'a') : c; });
  named.tag = parts.tag;
  named.digest = parts.digest;
  named.is_bare = parts.tag.empty() && parts.digest.empty();
  if (named.is_bare) named.tag = "latest";
  return named;
}

bool GivesAnything(const NamedImage& pulled, bool docker_hub_only) {
  return !pulled.is_id && (!pulled.parses || (!pulled.has_host && !docker_hub_only));
}

bool CouldComplete(const NamedImage& pulled, const NamedImage& name) {
  if (!pulled.parses || !name.repository.ends_with("/" + pulled.written)) return false;
  NamedImage completed = pulled;
  completed.repository = name.repository;
  return CouldGive(completed, name);
}

bool CouldGive(const NamedImage& pulled, const NamedImage& name) {
  if (pulled.repository != name.repository) return false;
  // A list's name without tag and digest may stand for any.
  if (name.is_bare) return true;
  // Tags move, so a pull of a tag may have brought any digest. So may one of an index's digest:
  // CRI-O lists the image by its manifest's digest as well.
  if (!name.digest.empty()) return true;
  return pulled.digest.empty() && pulled.tag == name.tag;
}

}  // namespace internal
}  // namespace waybill
