#include "bindings/cli/secrets.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "bindings/cli/input.h"
#include "bindings/cli/output.h"
#include "bindings/cli/parse.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kMaxSecretFileBytes = std::size_t{64} << 10;
constexpr std::string_view kLineForm =
    R"(the form of a line is {"namespace":"…","name":"…","uid":"…","credentialHash":"…"})";

// The line of a file that has one line.
Result<std::string> ReadLine(const std::string& path) {
  auto line = ReadInput(path, kMaxSecretFileBytes);
  if (!line) return line;
  if (line->ends_with('\n')) line->pop_back();
  if (line->ends_with('\r')) line->pop_back();
  if (line->find('\n') == std::string::npos) return line;
  return BadFlag("--secret", fmt::format("{} has more than one line", path),
                 "a file for each secret; or all in JSON lines: --secrets FILE");
}

Result<ImagePullSecret> SecretOf(std::string_view line) {
  const Json object = Json::ParseFlat(line);
  if (object.is_null()) return BadFlag("--secrets", "not a flat JSON object", kLineForm);
  ImagePullSecret secret;
  for (const auto& [key, value] : object.items()) {
    std::string* const target = key == "namespace"        ? &secret.namespace_name
                                : key == "name"           ? &secret.name
                                : key == "uid"            ? &secret.uid
                                : key == "credentialHash" ? &secret.credential_hash
                                                          : nullptr;
    if (target == nullptr) return BadFlag("--secrets", "a field is unknown", kLineForm);
    if (!value.is_string()) {
      return BadFlag("--secrets", fmt::format("{} is not a string", key), kLineForm);
    }
    *target = value.text();
  }
  TRY(CheckSecret("--secrets", secret, kLineForm));
  return secret;
}

}  // namespace

Result<ImagePullSecret> ReadSecret(std::string_view /*flag*/, const std::string& text) {
  if (!text.starts_with('@')) return ParseSecret(text);
  const std::string path = text.substr(1);
  if (path == "-") {
    return BadFlag("--secret", "@- is not a file", "--secrets - reads standard input");
  }
  auto line = TRY(ReadLine(path));
  auto secret = ParseSecret(line);
  if (!secret) secret.error().message += fmt::format(", in {}", path);
  return secret;
}

Result<std::vector<ImagePullSecret>> ReadSecrets(const std::string& path) {
  const auto content = TRY(ReadInput(path, kMaxRecordFileBytes));
  std::vector<ImagePullSecret> secrets;
  std::string_view rest = content;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    auto secret = SecretOf(line);
    if (!secret) {
      Error error = secret.error();
      error.message += fmt::format(", in line {} of {}", number, InputName(path));
      return error;
    }
    secrets.push_back(*std::move(secret));
  }
  return secrets;
}

}  // namespace waybill::cli
