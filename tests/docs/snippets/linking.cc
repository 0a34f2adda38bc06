// What the C++ of docs/linking.md leaves to its reader. Compiled by `check`, which makes cpp-1 and
// so on from the page.

#include <waybill/waybill.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

struct PodSpec {
  std::optional<bool> host_users;
};

int fail(const std::string& message) { return message.empty() ? 0 : 1; }

int Kubelet(const std::vector<waybill::ListedImage>& images,
            const std::vector<waybill::ListedImage>& listed,
            std::span<const waybill::ImagePullSecretView> secrets,
            const waybill::ImagePullServiceAccountView& service_account, const std::string& image,
            const std::string& image_ref, const std::string& pulled_ref, const std::string& handler,
            const std::string& pod_uid, const waybill::ImagePullCredentials& credentials,
            waybill::PullFailure failure, const PodSpec& spec) {
#include "cpp-1"
  return 0;
}

void Shim(const std::string& id, const std::vector<std::string>& command,
          const std::string& token_of_url) {
#include "cpp-2"
}

}  // namespace
