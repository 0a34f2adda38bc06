// The class of an error that a pull ended with, by what runtimes, registries and kubelets say.

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>

#include "waybill/evidence.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(pull_error)

namespace {

using Class = PullErrorClass;

// As containerd 1.6 to 2.1, CRI-O 1.28 to 1.34 and kubelets 1.33 to 1.36 word them.
const std::
    pair<const char*, Class>
        kMessages
            [] =
                {
                    // containerd
                    {R"(rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/private:1": failed to resolve reference "docker.io/library/private:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed)",
                     Class::kAuth},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://registry.example/token?scope=repository%3Ax%3Apull: 401 Unauthorized)",
                     Class::kAuth},
                    {R"(rpc error: code = Unknown desc = failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": unexpected status from HEAD request to https://registry.example/v2/x/manifests/1: 403 Forbidden)",
                     Class::kAuth},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to authorize: failed to fetch oauth token: unexpected status: 401 Unauthorized)",
                     Class::kAuth},
                    {R"(rpc error: code = NotFound desc = failed to pull and unpack image "docker.io/library/busybox:nope": failed to resolve reference "docker.io/library/busybox:nope": docker.io/library/busybox:nope: not found)",
                     Class::kNotFound},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": unexpected status from HEAD request to https://registry.example/v2/x/manifests/1: 503 Service Unavailable)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": dial tcp: lookup registry.example on 10.96.0.10:53: no such host)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": dial tcp 192.0.2.1:443: connect: connection refused)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "docker.io/library/x:1": failed to resolve reference "docker.io/library/x:1": failed to authorize: failed to fetch anonymous token: Get "https://auth.docker.io/token?service=registry.docker.io": dial tcp 192.0.2.1:443: i/o timeout)",
                     Class::kUnavailable},
                    {R"(failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://registry.example/v2/x/blobs/sha256:00": net/http: TLS handshake timeout)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "docker.io/library/x:1": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/library/x/manifests/sha256:00: 429 Too Many Requests - Server message: toomanyrequests: You have reached your pull rate limit.)",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": EOF)",
                     Class::kUnavailable},
                    {R"(rpc error: code = DeadlineExceeded desc = context deadline exceeded)",
                     Class::kUnavailable},
                    {R"(rpc error: code = Unavailable desc = connection error: desc = "transport: Error while dialing: dial unix /run/containerd/containerd.sock: connect: connection refused")",
                     Class::kUnavailable},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to resolve reference "registry.example/x:1": failed to do request: Head "https://registry.example/v2/x/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority)",
                     Class::kOther},
                    {R"(failed to pull and unpack image "registry.example/x:1": failed to extract layer sha256:00: write /var/lib/containerd/x: no space left on device)",
                     Class::kOther},
                    // CRI-O
                    {R"(rpc error: code = Unknown desc = unable to pull image or OCI artifact: pull image err: initializing source docker://docker.io/library/private:1: reading manifest 1 in docker.io/library/private: requested access to the resource is denied)",
                     Class::kAuth},
                    {R"(initializing source docker://registry.example/x:1: unable to retrieve auth token: invalid username/password: unauthorized: incorrect username or password)",
                     Class::kAuth},
                    {R"(initializing source docker://quay.io/team/x:1: reading manifest 1 in quay.io/team/x: unauthorized: access to the requested resource is not authorized)",
                     Class::kAuth},
                    {R"(initializing source docker://ghcr.io/team/x:1: reading manifest 1 in ghcr.io/team/x: denied: denied)",
                     Class::kAuth},
                    {R"(initializing source docker://registry.example/x:9: reading manifest 9 in registry.example/x: manifest unknown)",
                     Class::kNotFound},
                    {R"(initializing source docker://registry.example/x:9: reading manifest 9 in registry.example/x: name unknown: repository name not known to registry)",
                     Class::kNotFound},
                    {R"(initializing source docker://registry.example/x:1: pinging container registry registry.example: Get "https://registry.example/v2/": dial tcp 192.0.2.1:443: connect: no route to host)",
                     Class::kUnavailable},
                    {R"(initializing source docker://registry.example/x:1: pinging container registry registry.example: received unexpected HTTP status: 503 Service Unavailable)",
                     Class::kUnavailable},
                    {R"(initializing source docker://registry.example/x:1: reading manifest 1 in registry.example/x: StatusCode: 404, "<html>")",
                     Class::kNotFound},
                    // kubelets
                    {"ErrImagePull: pull QPS exceeded", Class::kOther},
                    {"RegistryUnavailable: image pull failed for registry.example/x:1 because the "
                     "registry is "
                     "unavailable.",
                     Class::kUnavailable},
                    {"SignatureValidationFailed: image pull failed because the signature "
                     "validation failed",
                     Class::kOther},
                    // Names are no words of an error.
                    {R"(failed to pull image "registry.example/denied:eof": no space left on device)",
                     Class::kOther},
                    {"reading registry.example/eof: x509: certificate has expired", Class::kOther},
                    {"401", Class::kOther},
                    {"", Class::kUnknown},
};

}  // namespace

BOOST_AUTO_TEST_CASE(messages_have_their_class) {
  for (const auto& [message, expected] : kMessages) {
    BOOST_TEST(PullErrorClassName(ClassifyPullError(message)) == PullErrorClassName(expected),
               message);
  }
}

BOOST_AUTO_TEST_CASE(a_page_of_a_registry_is_read_in_part) {
  BOOST_TEST((ClassifyPullError(std::string(1 << 20, 'x') + " 401 Unauthorized") == Class::kOther));
}

BOOST_AUTO_TEST_CASE(classes_have_names) {
  for (const Class one :
       {Class::kUnknown, Class::kAuth, Class::kNotFound, Class::kUnavailable, Class::kOther}) {
    BOOST_TEST((*ParsePullErrorClass(PullErrorClassName(one)) == one));
  }
  BOOST_TEST(!ParsePullErrorClass("Auth").has_value());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
