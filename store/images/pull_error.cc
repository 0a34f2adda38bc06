// What kind of error a pull ended with, by the words of runtimes, registries and kubelets.

#include "store/images/pull_error.h"

#include <array>
#include <string>
#include <string_view>

#include "store/base/ascii.h"
#include "store/base/options.h"

namespace waybill {
namespace {

// Errors are short; what follows is the registry's page.
constexpr std::size_t kMaxErrorBytes = std::size_t{64} << 10;

// In lower case. Each begins where a word does, and not inside an image's name.
constexpr std::string_view kAuth[] = {"401 unauthorized",
                                      "403 forbidden",
                                      "unexpected status: 401",
                                      "unexpected status: 403",
                                      "status code 401",
                                      "status code 403",
                                      "statuscode: 401",
                                      "statuscode: 403",
                                      "code = unauthenticated",
                                      "code = permissiondenied",
                                      "pull access denied",
                                      "insufficient_scope",
                                      "authorization failed",
                                      "authentication required",
                                      "unauthorized: ",
                                      "requested access to the resource is denied",
                                      "denied: ",
                                      "no basic auth credentials",
                                      "invalid username/password",
                                      "incorrect username or password",
                                      "unable to retrieve auth token"};
constexpr std::string_view kUnavailable[] = {"code = unavailable",
                                             "code = deadlineexceeded",
                                             "code = resourceexhausted",
                                             "context deadline exceeded",
                                             "i/o timeout",
                                             "tls handshake timeout",
                                             "client.timeout exceeded",
                                             "connection refused",
                                             "connection reset by peer",
                                             "connection timed out",
                                             "no such host",
                                             "no route to host",
                                             "network is unreachable",
                                             "host is unreachable",
                                             "server misbehaving",
                                             "temporary failure in name resolution",
                                             "unexpected eof",
                                             "eof",
                                             "toomanyrequests",
                                             "429 too many requests",
                                             "500 internal server error",
                                             "502 bad gateway",
                                             "503 service unavailable",
                                             "504 gateway timeout",
                                             "504 gateway time-out",
                                             "unexpected status: 429",
                                             "unexpected status: 5",
                                             "status code 429",
                                             "status code 5",
                                             "statuscode: 429",
                                             "statuscode: 5",
                                             "registryunavailable"};
constexpr std::string_view kNotFound[] = {
    "code = notfound", "404 not found",    "unexpected status: 404", "status code 404",
    "statuscode: 404", "manifest unknown", "name unknown",           "repository name not known",
    "not found"};

bool IsOfAWord(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/' || c == '-' || c == '_' ||
         c == '.' || c == '"' || c == '\'' || c == '@';
}

template <std::size_t N>
bool HasAny(std::string_view text, const std::string_view (&phrases)[N]) {
  for (const std::string_view phrase : phrases) {
    for (std::size_t at = text.find(phrase); at != std::string_view::npos;
         at = text.find(phrase, at + 1)) {
      const std::size_t end = at + phrase.size();
      const bool begins = at == 0 || !IsOfAWord(text[at - 1]);
      const bool ends = end == text.size() || phrase != "eof" || !IsOfAWord(text[end]);
      if (begins && ends) return true;
    }
  }
  return false;
}

}  // namespace

// A registry that is down hides behind a token that can't be fetched, and Docker Hub says of a
// private image that it may not exist: so a refusal counts first, then what can't be reached.
PullErrorClass ClassifyPullError(std::string_view text) {
  if (text.empty()) return PullErrorClass::kUnknown;
  const std::string lower = internal::ToLower(text.substr(0, kMaxErrorBytes));
  if (HasAny(lower, kAuth)) return PullErrorClass::kAuth;
  if (HasAny(lower, kUnavailable)) return PullErrorClass::kUnavailable;
  if (HasAny(lower, kNotFound)) return PullErrorClass::kNotFound;
  return PullErrorClass::kOther;
}

}  // namespace waybill
