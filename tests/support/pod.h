// A pod's credentials, owned, and what a decision did with them.

#ifndef WAYBILL_TESTS_SUPPORT_POD_H_
#define WAYBILL_TESTS_SUPPORT_POD_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waybill/values.h"

namespace waybill::testing {

class Pod final : public CredentialSource {
 public:
  Pod() = default;
  explicit Pod(std::vector<ImagePullSecret> secrets) : secrets_(std::move(secrets)) {}
  explicit Pod(ImagePullSecret secret) : secrets_{std::move(secret)} {}
  explicit Pod(ImagePullServiceAccount account) : account_(std::move(account)) {}
  Pod(std::vector<ImagePullSecret> secrets, std::optional<ImagePullServiceAccount> account)
      : secrets_(std::move(secrets)), account_(std::move(account)) {}

  // A pod whose credentials can't be fetched: the API server is unavailable.
  static Pod Unavailable() {
    Pod pod;
    pod.available_ = false;
    return pod;
  }
  void MakeUnavailable() { available_ = false; }

  Result<PodCredentials> Fetch() override {
    ++asked_;
    if (!available_) {
      return Error{ErrorCode::kCredentialsUnavailable, "the pod's secrets can't be had", ""};
    }
    views_.assign(secrets_.begin(), secrets_.end());
    PodCredentials credentials;
    credentials.secrets = views_;
    if (account_) credentials.service_account = ImagePullServiceAccountView(*account_);
    return credentials;
  }

  int asked() const { return asked_; }
  bool failed() const { return asked_ > 0 && !available_; }

 private:
  std::vector<ImagePullSecret> secrets_;
  std::optional<ImagePullServiceAccount> account_;
  std::vector<ImagePullSecretView> views_;
  bool available_ = true;
  int asked_ = 0;
};

inline ImagePullSecret MakeSecret(std::string namespace_name, std::string name, std::string uid,
                                  std::string hash) {
  return {std::move(uid), std::move(namespace_name), std::move(name), std::move(hash)};
}

inline ImagePullCredentials WithSecret(ImagePullSecret secret) {
  ImagePullCredentials credentials;
  credentials.kubernetes_secrets.push_back(std::move(secret));
  return credentials;
}

inline ImagePullCredentials NodeWide() {
  ImagePullCredentials credentials;
  credentials.node_pods_accessible = true;
  return credentials;
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_POD_H_
