#include "bindings/cli/keyring.h"

#include <algorithm>
#include <cstddef>

#include "store/base/image_name.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

constexpr std::string_view kDockerHub = "index.docker.io";

// Host (with port) and path of a URL, as Go's net/url reads them.
struct HostAndPath {
  std::string host;
  std::string path;
};

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool IsAlphanumeric(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The value of the escape "%xx" at `at`; -1: malformed.
int EscapeAt(std::string_view text, std::size_t at) {
  if (at + 2 >= text.size()) return -1;
  const int high = HexDigit(text[at + 1]);
  const int low = HexDigit(text[at + 2]);
  return high < 0 || low < 0 ? -1 : high * 16 + low;
}

std::optional<std::string> UnescapedPath(std::string_view path) {
  std::string out;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      out += path[i];
      continue;
    }
    const int value = EscapeAt(path, i);
    if (value < 0) return std::nullopt;
    out += static_cast<char>(value);
    i += 2;
  }
  return out;
}

// Only bytes beyond ASCII may be escaped in a host.
std::optional<std::string> UnescapedHost(std::string_view host) {
  constexpr std::string_view kAllowed = "-_.~!$&'()*+,;=:[]<>\"";
  std::string out;
  for (std::size_t i = 0; i < host.size(); ++i) {
    const char c = host[i];
    if (c == '%') {
      const int value = EscapeAt(host, i);
      if (value == '%') {
        out += '%';
      } else if (value < 0x80) {
        return std::nullopt;
      } else {
        out += static_cast<char>(value);
      }
      i += 2;
      continue;
    }
    const bool beyond_ascii = static_cast<unsigned char>(c) >= 0x80;
    if (!beyond_ascii && !IsAlphanumeric(c) && kAllowed.find(c) == std::string_view::npos) {
      return std::nullopt;
    }
    out += c;
  }
  return out;
}

bool IsPort(std::string_view after_host) {
  return after_host.empty() ||
         (after_host.front() == ':' &&
          after_host.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

std::optional<std::string> HostOf(std::string_view authority) {
  if (const std::size_t at = authority.rfind('@'); at != std::string_view::npos) {
    constexpr std::string_view kUserinfo = "-._:~!$&'()*+,;=%@";
    const std::string_view user = authority.substr(0, at);
    const bool valid = std::all_of(user.begin(), user.end(), [&](char c) {
      return IsAlphanumeric(c) || kUserinfo.find(c) != std::string_view::npos;
    });
    if (!valid || !UnescapedPath(user)) return std::nullopt;
    authority.remove_prefix(at + 1);
  }
  if (authority.starts_with('[')) {
    const std::size_t end = authority.rfind(']');
    if (end == std::string_view::npos || !IsPort(authority.substr(end + 1))) return std::nullopt;
  } else if (const std::size_t colon = authority.rfind(':'); colon != std::string_view::npos) {
    if (!IsPort(authority.substr(colon))) return std::nullopt;
  }
  return UnescapedHost(authority);
}

// What follows "https://".
std::optional<HostAndPath> ParseWithoutScheme(std::string_view text) {
  const bool has_controls = std::any_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
  });
  if (has_controls) return std::nullopt;
  const std::size_t fragment = std::min(text.find('#'), text.size());
  if (!UnescapedPath(text.substr(fragment))) return std::nullopt;
  text = text.substr(0, fragment);
  text = text.substr(0, text.find('?'));
  const std::size_t slash = std::min(text.find('/'), text.size());
  auto host = HostOf(text.substr(0, slash));
  auto path = UnescapedPath(text.substr(slash));
  if (!host || !path) return std::nullopt;
  return HostAndPath{*std::move(host), *std::move(path)};
}

struct HostAndPort {
  std::string_view host;
  std::string_view port;
};

// As Go's net.SplitHostPort; where that fails, all of it is the host.
HostAndPort SplitPort(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return {text, {}};
  const std::string_view port = text.substr(colon + 1);
  std::string_view host = text.substr(0, colon);
  if (host.starts_with('[')) {
    if (host.find(']') != host.size() - 1) return {text, {}};
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != std::string_view::npos) {
    return {text, {}};
  }
  const bool stray = host.find_first_of("[]") != std::string_view::npos ||
                     port.find_first_of("[]") != std::string_view::npos;
  return stray ? HostAndPort{text, {}} : HostAndPort{host, port};
}

// The class "[a-c]" at the start of `pattern` against `c`. nullopt: malformed. Cuts it off.
std::optional<bool> MatchClass(std::string_view& pattern, char c) {
  pattern.remove_prefix(1);
  bool matched = false;
  for (bool first = true;; first = false) {
    if (pattern.empty()) return std::nullopt;
    if (pattern.front() == ']' && !first) break;
    if (pattern.front() == ']' || pattern.front() == '-') return std::nullopt;
    const char low = pattern.front();
    char high = low;
    pattern.remove_prefix(1);
    if (pattern.starts_with('-')) {
      if (pattern.size() < 2 || pattern[1] == ']' || pattern[1] == '-') return std::nullopt;
      high = pattern[1];
      pattern.remove_prefix(2);
    }
    matched = matched || (low <= c && c <= high);
  }
  pattern.remove_prefix(1);
  return matched;
}

// A part of a host against a part of a pattern, as Go's filepath.Match. Each '*' is tried once more
// from the next character, so that time is bounded by the product of the lengths.
bool MatchPart(std::string_view pattern, std::string_view text) {
  std::optional<std::string_view> star;
  std::string_view after_star;
  for (;;) {
    if (!pattern.empty() && pattern.front() == '*') {
      pattern.remove_prefix(1);
      star = pattern;
      after_star = text;
      continue;
    }
    bool matched = pattern.empty() && text.empty();
    if (matched) return true;
    if (!pattern.empty() && !text.empty()) {
      if (pattern.front() == '[') {
        const auto in_class = MatchClass(pattern, text.front());
        if (!in_class) return false;
        matched = *in_class;
      } else {
        matched = pattern.front() == text.front();
        pattern.remove_prefix(1);
      }
    }
    if (matched) {
      text.remove_prefix(1);
      continue;
    }
    if (!star || after_star.empty()) return false;
    after_star.remove_prefix(1);
    pattern = *star;
    text = after_star;
  }
}

bool HostMatches(std::string_view pattern, std::string_view host) {
  for (;;) {
    const std::size_t dot = pattern.find('.');
    const std::size_t host_dot = host.find('.');
    if ((dot == std::string_view::npos) != (host_dot == std::string_view::npos)) return false;
    if (!MatchPart(pattern.substr(0, dot), host.substr(0, host_dot))) return false;
    if (dot == std::string_view::npos) return true;
    pattern.remove_prefix(dot + 1);
    host.remove_prefix(host_dot + 1);
  }
}

bool IsOnDockerHub(std::string_view repository) {
  const std::size_t slash = repository.find('/');
  const std::string_view host = repository.substr(0, slash);
  if (host.empty()) return false;
  return slash == std::string_view::npos || host == "docker.io" || host == kDockerHub ||
         host.find_first_of(".:") == std::string_view::npos;
}

}  // namespace

std::optional<std::string> KeyOfRegistry(std::string_view registry) {
  for (const std::string_view scheme : {"https://", "http://"}) {
    if (!registry.starts_with(scheme)) continue;
    registry.remove_prefix(scheme.size());
    break;
  }
  const auto url = ParseWithoutScheme(registry);
  if (!url) return std::nullopt;
  std::string_view path = url->path;
  if (path.starts_with("/v1/") || path.starts_with("/v2/")) path.remove_prefix(3);
  return path == "/" ? url->host : url->host + std::string(path);
}

bool KeyMatches(std::string_view key, std::string_view repository) {
  const auto pattern = ParseWithoutScheme(key);
  const auto target = ParseWithoutScheme(repository);
  if (!pattern || !target || !target->path.starts_with(pattern->path)) return false;
  const HostAndPort left = SplitPort(pattern->host);
  const HostAndPort right = SplitPort(target->host);
  return left.port == right.port && HostMatches(left.host, right.host);
}

void Keyring::Add(const ImagePullSecret& secret,
                  const std::vector<internal::RegistryHash>& registries) {
  for (const internal::RegistryHash& entry : registries) {
    const auto key = KeyOfRegistry(entry.registry);
    if (!key) continue;
    ImagePullSecret& added = secrets_[*key].emplace_back(secret);
    added.credential_hash = entry.hash;
  }
}

std::vector<ImagePullSecret> Keyring::Lookup(std::string_view image) const {
  std::vector<ImagePullSecret> found;
  if (!NormaliseImage(image)) return found;
  const std::string repository = RepositoryOf(image);
  for (const auto& [key, secrets] : secrets_) {
    if (KeyMatches(key, repository)) found.insert(found.end(), secrets.begin(), secrets.end());
  }
  if (!found.empty() || !IsOnDockerHub(repository)) return found;
  const auto hub = secrets_.find(std::string(kDockerHub));
  return hub == secrets_.end() ? found : hub->second;
}

}  // namespace waybill::cli
