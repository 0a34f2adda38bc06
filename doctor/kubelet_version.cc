#include "doctor/kubelet_version.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <set>
#include <vector>

#include "doctor/checks.h"
#include "doctor/node.h"
#include "store/base/files.h"
#include "store/base/json_value.h"
#include "store/base/try.h"

namespace waybill::doctor {
namespace {

constexpr const char* kUsualPrograms[] = {"/usr/bin/kubelet", "/usr/local/bin/kubelet",
                                          "/opt/bin/kubelet"};
constexpr std::size_t kMaxVersion = 64;

bool IsOfVersion(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '-' || c == '+' || c == '_';
}

// What of `bytes`, from `at` on, is a version that ends with `end`.
std::optional<std::string> VersionAt(std::string_view bytes, std::size_t at, char end) {
  const std::size_t from = at;
  while (at < bytes.size() && at - from <= kMaxVersion && IsOfVersion(bytes[at])) ++at;
  if (at >= bytes.size() || bytes[at] != end) return std::nullopt;
  std::string text(bytes.substr(from, at - from));
  if (!ParseKubeletVersion(text)) return std::nullopt;
  return text;
}

// What a program says of itself.
struct Said {
  std::set<std::string> linked;  // by the linker's -X: it stands between zeros
  std::set<std::string> module;  // by Go: which version of which module it is made of
};

void Search(std::string_view bytes, Said& said) {
  using namespace std::string_view_literals;
  const auto each = [&](std::string_view before, char end, std::set<std::string>& found) {
    for (auto at = bytes.find(before); at != std::string_view::npos;
         at = bytes.find(before, at + 1)) {
      if (auto version = VersionAt(bytes, at + before.size(), end)) found.insert(*version);
    }
  };
  for (auto at = bytes.find("\0v1."sv); at != std::string_view::npos;
       at = bytes.find("\0v1."sv, at + 1)) {
    if (auto version = VersionAt(bytes, at + 1, '\0')) said.linked.insert(*version);
  }
  each("\nmod\tk8s.io/kubernetes\t"sv, '\t', said.module);
  each("\ndep\tk8s.io/kubernetes\t"sv, '\t', said.module);
}

Result<Said> ReadProgram(const Node& node, const std::filesystem::path& path) {
  const internal::Fd fd(TRY(node.OpenToRead(path)));
  Said said;
  constexpr std::size_t kChunk = std::size_t{1} << 20;
  constexpr std::size_t kOverlap = 256;
  std::string bytes;
  for (;;) {
    const std::size_t kept = bytes.size();
    bytes.resize(kept + kChunk);
    const ssize_t got = ::read(fd.get(), bytes.data() + kept, kChunk);
    if (got < 0 && errno != EINTR) return internal::SystemError(errno, "read", path);
    bytes.resize(kept + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return said;
    Search(bytes, said);
    bytes.erase(0, bytes.size() - std::min(bytes.size(), kOverlap));
  }
}

Result<KubeletVersion> OfNodeJson(const std::string& text) {
  const internal::Json node = internal::Json::Parse(text);
  const internal::Json* const status = node.Find("status");
  const internal::Json* const info = status == nullptr ? nullptr : status->Find("nodeInfo");
  const auto version = ParseKubeletVersion(info == nullptr ? "" : info->TextAt("kubeletVersion"));
  if (version) return *version;
  return Error{ErrorCode::kInvalidArgument, "--node: it has no status.nodeInfo.kubeletVersion",
               "give what `kubectl get node NAME -o json` prints"};
}

}  // namespace

std::optional<KubeletVersion> ParseKubeletVersion(std::string_view text) {
  constexpr std::string_view kMajor = "v1.";
  if (!text.starts_with(kMajor)) return std::nullopt;
  const char* const end = text.data() + text.size();
  KubeletVersion version{.text = std::string(text)};
  const auto dot = std::from_chars(text.data() + kMajor.size(), end, version.minor);
  int patch = 0;
  if (dot.ec != std::errc() || dot.ptr == end || *dot.ptr != '.') return std::nullopt;
  if (std::from_chars(dot.ptr + 1, end, patch).ec != std::errc()) return std::nullopt;
  // What a Go program is made of has versions, too; the modules of Kubernetes count from 0.
  if (version.minor < 20 || version.minor > 999) return std::nullopt;
  return version;
}

Result<KubeletVersion> FindKubeletVersion(const Node& node) {
  if (node.node_json()) return OfNodeJson(*node.node_json());
  std::vector<std::string> programs;
  if (node.kubelet() != nullptr) {
    programs = {"/proc/" + node.kubelet()->pid + "/exe", node.kubelet()->words[0]};
  } else {
    programs.assign(std::begin(kUsualPrograms), std::end(kUsualPrograms));
  }
  const std::string advice =
      "give --node what `kubectl get node NAME -o json` prints, or - and pipe it in";
  Error missing{ErrorCode::kNotFound, "no kubelet was found, running or installed", advice};
  for (const std::string& program : programs) {
    if (program.empty() || program[0] != '/') continue;
    auto said = ReadProgram(node, program);
    if (!said) {
      if (node.kubelet() != nullptr) {
        missing = said.error();
        missing.hint = advice;
      }
      continue;
    }
    const auto& versions = said->linked.empty() ? said->module : said->linked;
    if (versions.size() == 1) return *ParseKubeletVersion(*versions.begin());
    return Error{ErrorCode::kNotFound,
                 program + (versions.empty() ? " does not say which release it is"
                                             : " names several releases"),
                 advice};
  }
  return missing;
}

Findings KubeletVersionCheck(const Node& node) {
  const auto& version = node.Version();
  if (!version) return {Unknown(version.error())};
  if (version->minor < kOldestMinor) {
    return {VerifiesNothing(version->text + " verifies nothing: the feature came with 1.33",
                            "upgrade the kubelet to 1.35 or newer")};
  }
  if (version->minor > kNewestMinor) {
    return {Warn(version->text + " is newer than this waybill knows (1.37)",
                 "look for a newer waybill, and read its notes on this release")};
  }
  return {Ok(version->text)};
}

}  // namespace waybill::doctor
