// Recorded nodes with one thing wrong each. A row says which check names it, how, and in which
// words; no other check may say anything but ok.

#include <boost/test/unit_test.hpp>
#include <map>
#include <set>

#include "tests/doctor/recorded_node.h"

namespace waybill {

BOOST_AUTO_TEST_SUITE(checks)

namespace {

using testing::Change;
using testing::RecordedNode;

struct Row {
  std::string check;    // "kubelet-gate"; with a + before it, others may say something, too
  std::string verdict;  // "ok": nothing is wrong, and that check says so in these words
  std::string words;
  std::vector<Change> changes;
};

const std::string kConfig = "/var/lib/kubelet/config.yaml";
const std::string kPolicy = "imagePullCredentialsVerificationPolicy";
const std::string kGuard = "/var/lib/kubelet/image_manager/waybill-guard";
const std::string kPulled = "/var/lib/kubelet/image_manager/pulled";
const std::string kHosts = "/etc/containerd/certs.d/";
const std::string kHex = "40a41701be082a898c7b030a05e0017df00899c437ab7e1946f82b618f8eeb1e";
const std::string kLogin = R"({"auths":{"registry.example.com":{"auth":"cm9ib3Q6eA=="}}})";
const std::string kImages = R"([plugins."io.containerd.cri.v1.images".registry])"
                            "\n";

// A record under `ref` of a pull of `name`, with a Secret or for every pod.
std::vector<Change> Record(const std::string& name, const std::string& ref = "sha256:" + kHex,
                           bool for_all = false) {
  return {{kPulled + "/sha256-" + std::to_string(for_all) + ref.substr(0, 1),
           R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
           R"("lastUpdatedTime":"2026-11-26T10:00:00Z","imageRef":")" +
               ref + R"(","credentialMapping":{")" + name + R"(":)" +
               (for_all ? R"({"nodePodsAccessible":true})"
                        : R"({"kubernetesSecrets":[{"uid":"u","namespace":"n","name":"s",)"
                          R"("credentialHash":"h"}]})") +
               "}}"}};
}
std::vector<Change> operator+(std::vector<Change> a, const std::vector<Change>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}
std::vector<Change> Set(const std::string& where, const std::string& what = {}) {
  return {{where, what}};
}
// Appended to the kubelet's configuration.
std::vector<Change> Config(const std::string& lines) { return Set("+" + kConfig, lines); }
const std::vector<Change> kRecord = Record("registry.example.com/team/app");
const std::vector<Change> kCrio = {
    {"cri/version.json", R"({"runtimeName":"cri-o","runtimeVersion":"1.34.2"})"},
    {"-/proc/812"},
    {"process 813", "/usr/bin/crio"}};
const std::vector<Change> kNoKubelet = {{"-/proc/4242"}};
std::vector<Change> Mount(const std::string& type, const std::string& at = "/var/lib/kubelet") {
  return {{"+/proc/self/mountinfo", "50 41 0:40 / " + at + " rw - " + type + " x rw\n"}};
}
std::vector<Change> SubIds(const std::string& uids) {
  return {{"/etc/subuid", uids}, {"/etc/subgid", uids}};
}
std::vector<Change> Version(const std::string& version) {
  return {
      {"options node", R"({"status":{"nodeInfo":{"kubeletVersion":")" + version +
                           R"("},"addresses":[{"type":"InternalIP","address":"10.0.17.4"}]}})"}};
}
// What a guard says of itself, and `more`.
std::vector<Change> Status(const std::string& more, const std::string& store = "/var/lib/waybill") {
  return {
      {kGuard + "/status.json", R"({"version":"0.1.0","since":"2026-11-26T09:00:00Z","store":")" +
                                    store + "\"," + more + "}"}};
}
const std::vector<Change> kElsewhere =
    Status(R"("kubeletRanBefore":false)", "/srv/w") +
    std::vector<Change>{{"-/var/lib/waybill"}, {"/srv/w/data.mdb"}};
// A kubelet that is part of k3s.
std::vector<Change> K3s(const std::string& drop_in) {
  return kNoKubelet +
         std::vector<Change>{{"-" + kConfig},
                             {"process 800", "/usr/local/bin/k3s agent"},
                             {"/var/lib/rancher/k3s/agent/etc/kubelet.conf.d/00.conf",
                              "kind: KubeletConfiguration\n" + drop_in}} +
         Version("v1.36.3+k3s1");
}
// Two containerds, of which the kubelet asks the second.
std::vector<Change> Talos(const std::string& one, const std::string& other) {
  return {{"-/proc/812"},
          {"process " + one, "/bin/containerd --address /system/run/containerd/containerd.sock"},
          {"process " + other,
           "/bin/containerd --address /run/containerd/containerd.sock --config "
           "/etc/cri/containerd.toml"},
          {"/etc/cri/containerd.toml", "version = 3\n" + kImages + "config_path = \"/hosts\"\n"},
          {"/hosts/_default/hosts.toml", "[host.\"http://127.0.0.1:5000\"]\n"}};
}

const std::vector<Row> kRows = {
    // --- kubelet-version ------------------------------------------------------------------------
    {"kubelet-version", "ok", "v1.35.4+k3s1", Set("kubelet", "v1.35.4+k3s1")},
    {"kubelet-version", "fail", "v1.32.9 verifies nothing", Set("kubelet", "v1.32.9")},
    {"kubelet-version", "warn", "v1.39.0 is newer", Set("kubelet", "v1.39.0")},
    {"kubelet-version", "fail", "v1.31.1", Version("v1.31.1")},
    {"kubelet-version", "ok", "v1.36.1",
     Set("/usr/bin/kubelet", "ELF\npath\tx\nmod\tk8s.io/kubernetes\tv1.36.1\th1:\n")},
    {"kubelet-version", "ok", "v1.35.2",
     Set("/usr/bin/kubelet", "ELF\npath\tx\ndep\tk8s.io/kubernetes\tv1.35.2\th1:\n")},
    {"+kubelet-version", "unknown", "names several releases",
     Set("/usr/bin/kubelet", std::string("\0v1.36.3\0v1.35.0\0", 17))},
    // --- kubelet-gate ---------------------------------------------------------------------------
    {"kubelet-gate", "fail", "is off by default in v1.34.2", Set("kubelet", "v1.34.2")},
    {"kubelet-gate", "ok", "on by its command line",
     Set("kubelet", "v1.33.5 --feature-gates=KubeletEnsureSecretPulledImages=true")},
    {"kubelet-gate", "fail", "off by its configuration",
     Config("featureGates:\n  KubeletEnsureSecretPulledImages: false\n")},
    {"kubelet-gate", "fail", "off by its command line",
     Config("featureGates:\n  KubeletEnsureSecretPulledImages: true\n") +
         Set("kubelet", "v1.36.3 --feature-gates=Other=true,KubeletEnsureSecretPulledImages=0")},
    {"kubelet-gate", "ok", "on by its command line",
     Set("kubelet",
         "v1.36.3 --feature-gates KubeletEnsureSecretPulledImages=false "
         "--feature-gates KubeletEnsureSecretPulledImages=true")},
    {"kubelet-gate", "fail", "off by its configuration",
     Set("/etc/kubelet.d/10-a/20.conf",
         "featureGates:\n  KubeletEnsureSecretPulledImages: false\n") +
         Set("/etc/kubelet.d/30.txt", "not: [yaml") +
         Set("kubelet", "v1.36.3 --config-dir=/etc/kubelet.d")},
    // A null takes away what was said before it.
    {"kubelet-gate", "ok", "on by default",
     Set("/etc/kubelet.d/20.conf", "featureGates:\n  KubeletEnsureSecretPulledImages: false\n") +
         Set("/etc/kubelet.d/50.conf", "featureGates:\n  KubeletEnsureSecretPulledImages: null\n") +
         Set("kubelet", "v1.36.3 --config-dir=/etc/kubelet.d")},
    {"kubelet-gate", "fail", "AllBeta", Config("featureGates:\n  AllBeta: false\n")},
    {"kubelet-gate", "ok", "AllAlpha",
     Set("kubelet", "v1.34.2 --feature-gates=AllAlpha=true,RuntimeClassInImageCriApi=false")},
    {"+kubelet-gate", "unknown", kConfig, Config("featureGates: [\n")},
    {"+kubelet-gate", "unknown", "is no KubeletConfiguration", Set(kConfig, "---\n---\na: 1\n")},
    {"+kubelet-gate", "unknown", "no kubelet runs", kNoKubelet},
    {"+kubelet-gate", "unknown", "a key twice", Config("a: 1\na: 2\n")},
    {"kubelet-gate", "ok", "on", Config("a: &r {cpu: 100m}\nb: *r\n---\nc: 1\n")},
    {"+kubelet-gate", "unknown", "k3s hides",
     K3s("") + Set("/proc/800/cmdline", "/usr/bin/k3s server")},
    {"kubelet-gate", "fail", "off by its command line",
     K3s("") + Set("/etc/rancher/k3s/config.yaml",
                   "kubelet-arg:\n- feature-gates="
                   "KubeletEnsureSecretPulledImages=false\n")},
    {"kubelet-gate", "fail", "off by its command line",
     kNoKubelet + Version("v1.36.3") +
         Set("process 800", "/snap/microk8s/1/kubelite --kubelet-args-file=/args") +
         Set("/args",
             "--config=" + kConfig + "\n--feature-gates=KubeletEnsureSecretPulledImages=false\n")},
    {"+kubelet-gate", "unknown", "edgecore", kNoKubelet + Set("process 800", "/usr/bin/edgecore")},
    // What a kubelet does not take.
    {"+kubelet-gate", "unknown", "featureGates",
     Config("featureGates:\n  KubeletEnsureSecretPulledImages: \"false\"\n")},
    {"+kubelet-gate", "unknown", "featureGates", Config("featureGates: [a]\n")},
    // What is there and can't be read may say anything.
    {"+kubelet-gate", "unknown", "leads to nothing",
     K3s("") + Set("=/etc/rancher/k3s/config.yaml", "/nowhere")},
    {"+kubelet-gate", "unknown", "leads to nothing",
     K3s("") + Set("=/etc/rancher/k3s/config.yaml.d", "/nowhere")},
    {"+kubelet-gate", "unknown", "config.yaml has no fields",
     K3s("") + Set("/etc/rancher/k3s/config.yaml", "- a\n")},
    // Flags may be below the folder that a kubelet works in.
    {"+kubelet-gate", "unknown", "in which folder",
     Set("process 4242", "/usr/bin/kubelet --config=k.yaml")},
    {"kubelet-gate", "fail", "off by its configuration",
     Set("process 4242", "/usr/bin/kubelet --config=k.yaml") + Set("=/proc/4242/cwd", "/srv/k") +
         Set("/srv/k/k.yaml", "featureGates:\n  KubeletEnsureSecretPulledImages: false\n")},
    // --- kubelet-policy -------------------------------------------------------------------------
    {"kubelet-policy", "fail", "NeverVerify: the kubelet verifies nothing",
     Config("imagePullCredentialsVerificationPolicy: NeverVerify\n")},
    {"kubelet-policy", "fail", "NeverVerify: the kubelet verifies nothing",
     K3s("imagePullCredentialsVerificationPolicy: NeverVerify\n")},
    {"kubelet-policy", "ok", "NeverVerifyPreloadedImages", K3s("")},
    {"kubelet-policy", "warn", "all images of registry.example/* are open",
     Config("imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
            "preloadedImagesVerificationAllowlist: [registry.example/*, registry.example/a/*]\n")},
    {"kubelet-policy", "fail", "Sometimes is no policy",
     Config("imagePullCredentialsVerificationPolicy: Sometimes\n")},
    {"kubelet-policy", "fail", "does not start",
     Config("imagePullCredentialsVerificationPolicy: NeverVerifyAllowlistedImages\n"
            "preloadedImagesVerificationAllowlist: [\"*\"]\n")},
    {"kubelet-policy", "fail", "does not start",
     Config("preloadedImagesVerificationAllowlist: [registry.example/a]\n")},
    {"+kubelet-policy", "unknown", kPolicy, Config(kPolicy + ": [NeverVerify]\n")},
    {"+kubelet-policy", "unknown", "the gate is off", kNoKubelet + Version("v1.34.2")},
    {"+kubelet-policy", "unknown", "no kubelet runs", kNoKubelet},
    // --- kubelet-directory ----------------------------------------------------------------------
    {"+kubelet-directory", "fail", "keeps its files in /data/kubelet",
     Set("/data/kubelet/x") + Set("kubelet", "v1.36.3 --root-dir=/data/kubelet") +
         Set("options kubelet-dir", "/var/lib/kubelet")},
    {"+kubelet-directory", "unknown", "no kubelet runs", kNoKubelet},
    // Another node's, in a container.
    {"kubelet-directory", "ok", "/var/lib/kubelet",
     Set("process 33", "kubelet --root-dir=/x") + Set("/proc/33/status", "NSpid:\t33\t7\n")},
    {"kubelet-directory", "ok", "/var/lib/kubelet",
     Set("process 33", "kubelet --root-dir=/x") + Set("/proc/33/cgroup", "0::/kubepods/pod1/2\n")},
    // --- kubelet-records ------------------------------------------------------------------------
    {"kubelet-records", "fail", "keeps no records", Set("-" + kPulled)},
    {"kubelet-records", "ok", "1 record", {}},
    {"+kubelet-records", "unknown", "1 record by its files", kNoKubelet},
    {"+kubelet-records", "unknown", "there is no", kNoKubelet + Set("-" + kPulled)},
    {"kubelet-records", "warn", "1 file of the kubelet's can't be read",
     Set(kPulled + "/sha256-0", "{")},
    {"kubelet-records", "warn", "and an image came on",
     Set("/var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/0a") +
         Set("newer /var/lib/containerd/io.containerd.content.v1.content/blobs/sha256/0a", "300")},
    {"kubelet-records", "warn", "RuntimeClassInImageCriApi is on",
     Config("featureGates:\n  RuntimeClassInImageCriApi: true\n")},
    // --- runtime-version, runtime-image-refs, runtime-guest-pulls -------------------------------
    {"runtime-version", "ok", "containerd v2.4.2, handlers runc, second, 6 images, 1 pinned", {}},
    {"+runtime-version", "warn", "docker 26.1.5 is not a runtime whose pulls are understood",
     Set("cri/version.json", R"({"runtimeName":"docker","runtimeVersion":"26.1.5"})")},
    {"+runtime-version", "unknown", "no runtime is asked", Set("options cri")},
    {"runtime-image-refs", "fail", "otherwise than 1 record",
     Record("registry.example.com/team/app", kHex)},
    {"runtime-image-refs", "ok", "image IDs with sha256:", {}},
    {"+runtime-image-refs", "unknown", "no runtime is asked", Set("options cri")},
    {"runtime-guest-pulls", "ok", "no handler", {}},
    {"runtime-guest-pulls", "warn", "images of handler kata-qemu-snp",
     Set("/etc/containerd/config.toml",
         "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes.kata-qemu-snp]\n"
         "runtime_type = \"io.containerd.kata-qemu-snp.v2\"\n")},
    {"+runtime-guest-pulls", "unknown", "docker",
     Set("cri/version.json", R"({"runtimeName":"docker","runtimeVersion":"26.1.5"})")},
    // --- runtime-proxy --------------------------------------------------------------------------
    {"runtime-proxy", "warn", "through the proxy http://proxy.example.com:3128",
     Set("/proc/812/environ",
         std::string("A=b\0HTTPS_PROXY=http://user:s3cret@proxy.example.com:3128/\0", 60))},
    {"runtime-proxy", "unknown", "no process of the runtime is seen", Set("-/proc/812")},
    {"runtime-proxy", "unknown", "environ", Set("-/proc/812/environ")},
    {"runtime-proxy", "warn", "proxy http://p:1",
     K3s("") + Set("-/proc/812") + Set("process 801", "containerd") +
         Set("/proc/801/environ", std::string("https_proxy=http://p:1\0", 23))},
    // A pod can have any name.
    {"runtime-proxy", "ok", "no proxy",
     Set("process 7", "/usr/bin/containerd") +
         Set("/proc/7/cgroup", "0::/kubepods.slice/kubepods-pod1.slice/cri-1.scope\n") +
         Set("/proc/7/environ", std::string("HTTP_PROXY=http://p:1\0", 22))},
    // A limit: "With credentials of the node itself"
    // --- credentials-node -----------------------------------------------------------------------
    {"credentials-node", "ok", "none in", {}},
    // Anybody may start a process without a name.
    {"credentials-node", "ok", "none in", Set("/proc/900/cmdline", std::string("\0", 1))},
    {"+credentials-node", "unknown", "no kubelet runs",
     kNoKubelet + Set("options kubelet-config", kConfig)},
    {"credentials-node", "fail",
     "from registry.example.com with credentials of its own "
     "(/var/lib/kubelet/config.json)",
     Set("/var/lib/kubelet/config.json", kLogin)},
    {"credentials-node", "fail", "(/.dockercfg)",
     Set("/.dockercfg", R"({"registry.example.com":{"auth":"cm9ib3Q6eA=="}})")},
    {"credentials-node", "fail", "(/home/k/.docker/config.json)",
     Set("/home/k/.docker/config.json", kLogin) +
         Set("/proc/4242/environ", std::string("HOME=/home/k\0", 13))},
    // systemd gives a kubelet no home.
    {"credentials-node", "ok", "none in", Set("/root/.docker/config.json", kLogin)},
    {"credentials-node", "fail", "(/root/.docker/config.json)",
     Set("/root/.docker/config.json", kLogin) + Set("-/proc/4242/environ")},
    {"credentials-node", "unknown", "config.json: ", Set("/var/lib/kubelet/config.json", "{")},
    {"credentials-node", "ok", "none in",
     Set("/var/lib/kubelet/config.json",
         R"({"auths":{"registry.example.com":{}},"credsStore":"desktop"})")},
    {"credentials-node", "fail",
     "from *.dkr.ecr.*.amazonaws.com with credentials of its own (the "
     "credential provider ecr of /etc/p.yaml)",
     Set("kubelet", "v1.36.3 --image-credential-provider-config=/etc/p.yaml") +
         Set("/etc/p.yaml",
             "providers:\n- name: ecr\n  matchImages: ['*.dkr.ecr.*.amazonaws.com']\n")},
    {"credentials-node", "fail", "credential provider b",
     Set("kubelet", "v1.36.3 --image-credential-provider-config /etc/p") +
         Set("/etc/p/1.json",
             R"({"providers":[{"name":"a","matchImages":["a.test"],"tokenAttributes":{)"
             R"("requireServiceAccount":true}},{"name":"b","matchImages":["b.test"],"tokenAttributes":{)"
             R"("requireServiceAccount":false}}]})")},
    {"credentials-node", "ok", "none in",
     Set("kubelet", "v1.36.3 --image-credential-provider-config=/etc/p.yaml") +
         Set("/etc/p.yaml",
             "providers:\n- name: a\n  matchImages: [a.test]\n  tokenAttributes:\n"
             "    requireServiceAccount: true\n")},
    {"credentials-node", "unknown", "/etc/p.yaml",
     Set("kubelet", "v1.36.3 --image-credential-provider-config=/etc/p.yaml")},
    {"credentials-node", "unknown", "leads to nothing",
     K3s("") + Set("=/var/lib/rancher/credentialprovider/config.yaml", "/nowhere")},
    {"credentials-node", "fail", "(/srv/k/config.json)",
     Set("=/proc/4242/cwd", "/srv/k") + Set("/srv/k/config.json", kLogin)},
    {"+credentials-node", "unknown", "no kubelet runs", kNoKubelet},
    {"credentials-node", "fail",
     "registry.example.com with credentials of its own (/etc/containerd/"
     "config.toml)",
     Set("/etc/containerd/config.toml",
         "version = 3\n[plugins.\"io.containerd.cri.v1.images\".registry.configs."
         "\"registry.example.com\".auth]\nusername = \"robot\"\npassword = \"x\"\n")},
    {"credentials-node", "fail", "from https://registry.example.com with",
     Set("/etc/containerd/config.toml",
         "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry.auths."
         "\"https://registry.example.com\"]\nauth = \"x\"\n")},
    {"credentials-node", "fail", "what containerd says of itself",
     Set("cri/version.json", R"({"runtimeName":"containerd","runtimeVersion":"v1.7.27"})") +
         Set("cri/info.json",
             R"({"runtimeHandlers":[{"name":"a","features":{"user_namespaces":true}}],"config":{"registry":)"
             R"({"configs":{"r.test":{"auth":{"username":"a","password":"x"}}}}}})")},
    {"credentials-node", "unknown",
     "credentials.toml may have credentials of the node's for r.test",
     Set(kHosts + "r.test/credentials.toml", "auth = \"x\"\n")},
    {"credentials-node", "fail",
     "from 127.0.0.1:5000 with credentials of its own (" + kHosts + "127.0.0.1_5000_/hosts.toml)",
     Set(kHosts + "127.0.0.1_5000_/hosts.toml", "[header]\nAuthorization = \"Basic eDp5\"\n")},
    {"credentials-node", "fail", "(/var/lib/x.json)",
     kCrio +
         Set("/etc/crio/crio.conf.d/1.conf",
             "[crio.image]\nglobal_auth_file = \"/var/lib/x.json\"\n") +
         Set("/var/lib/x.json", kLogin)},
    {"credentials-node", "unknown",
     "/etc/containers/registries.conf.d/1.conf may have credentials of the node's for any registry",
     kCrio + Set("/etc/containers/registries.conf.d/1.conf",
                 "credential-helpers = [\"containers-auth.json\", \"secretservice\"]\n")},
    {"credentials-node", "fail", "(/etc/crio/auth/ns-1.json)",
     kCrio + Set("/etc/crio/auth/ns-1.json", kLogin)},
    {"credentials-node", "fail", "(/etc/containers/certs.d/registry.example.com/client.cert)",
     kCrio + Set("/etc/containers/certs.d/registry.example.com/client.cert", "x")},
    {"credentials-node", "fail", "(/run/containers/0/auth.json)",
     kCrio + Set("/run/containers/0/auth.json", kLogin)},
    {"credentials-node", "unknown", "auth.json may have credentials of the node's for any registry",
     kCrio + Set("/run/containers/0/auth.json", R"({"credsStore":"x"})")},
    {"credentials-node", "warn", "every pod may use images of registry.example.com/team/app",
     kRecord + Record("registry.example.com/team/app", "sha256:y", true)},
    // --- credentials-mirrors --------------------------------------------------------------------
    {"credentials-mirrors", "ok", "no other host serves images of 127.0.0.1:5000, registry.example",
     kRecord},
    {"credentials-mirrors", "fail",
     "images of registry.example.com may come from 127.0.0.1:30020 (" + kHosts +
         "_default/hosts.toml): it is on this node",
     kRecord + Set(kHosts + "_default/hosts.toml", "\n[host.\"http://127.0.0.1:30020\"]\n")},
    {"credentials-mirrors", "fail", "the runtime shows it a header with credentials",
     kRecord + Set(kHosts + "registry.example.com/hosts.toml",
                   "[host.\"https://m.example.com\".header]\nAuthorization = \"Basic eDp5\"\n")},
    {"credentials-mirrors", "warn", "nothing says whether it asks pods for credentials",
     kRecord +
         Set(kHosts + "registry.example.com/hosts.toml", "[host.\"https://m.example.com\"]\n")},
    {"credentials-mirrors", "ok", "",
     Record("other.example.com/app") +
         Set(kHosts + "registry.example.com/hosts.toml", "[host.\"https://m.example.com\"]\n")},
    // Digests alone come from it.
    {"credentials-mirrors", "warn", "m.example.com",
     kRecord + Set(kHosts + "_default/hosts.toml",
                   "[host.\"https://m.example.com\"]\ncapabilities = [\"pull\"]\n")},
    {"credentials-mirrors", "warn", "images of registry.example.com may come from m.test",
     Set("/var/lib/kubelet/image_manager/pulling/sha256-0",
         R"({"kind":"ImagePullIntent","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
         R"("image":"registry.example.com/team/app:1"})") +
         Set(kHosts + "registry.example.com/hosts.toml", "server = \"m.test\"\n")},
    // The images on the node count, whatever records name.
    {"credentials-mirrors", "warn", "images of 127.0.0.1:5000 may come from m.test",
     kRecord + Set(kHosts + "127.0.0.1_5000_/hosts.toml", "server = \"m.test\"\n")},
    {"credentials-mirrors", "warn", "images of 127.0.0.1:5000 may come from m.test",
     Set(kHosts + "127.0.0.1_5000_/hosts.toml", "server = \"m.test\"\n")},
    {"+credentials-mirrors", "unknown", kHosts + "_default/hosts.toml: line 1",
     Set(kHosts + "_default/hosts.toml", "server = \n")},
    {"+credentials-mirrors", "warn", "may come from mirror.example.net",
     Set(kHosts + "_default/hosts.toml",
         "server = \"*\"\n[host.\"https://mirror.example.net:443/v2\"]\n")},
    {"credentials-mirrors", "warn", "is not asked by HTTPS",
     kRecord + Set(kHosts + "registry.example.com/hosts.toml",
                   "server = \"http://registry.example.com\"\n")},
    {"credentials-mirrors", "warn", "is not asked by HTTPS",
     kRecord + Set(kHosts + "registry.example.com/hosts.toml",
                   "[host.\"https://registry.example.com\"]\nskip_verify = true\n")},
    {"credentials-mirrors", "warn", "others can answer for it",
     kCrio + kRecord +
         Set("/etc/containers/registries.conf.d/50-mirror.conf",
             "[[registry]]\nlocation = \"registry.example.com\"\n"
             "[[registry.mirror]]\nlocation = \"m.example.com\"\n"
             "insecure = true\n")},
    {"+credentials-mirrors", "unknown", "the flag --registries-conf",
     kCrio + Set("process 813", "/usr/bin/crio --registries-conf=/opt/r.conf")},
    {"credentials-mirrors", "warn", "short names are looked for at quay.io",
     kCrio + Set("/etc/containers/registries.conf",
                 "unqualified-search-registries = [\"docker.io\", \"quay.io\"]\n")},
    {"credentials-mirrors", "fail", "127.0.0.1:5000 (/hosts/_default", Talos("91", "92") + kRecord},
    {"credentials-mirrors", "fail", "127.0.0.1:5000 (/hosts/_default", Talos("92", "91") + kRecord},
    {"+credentials-mirrors", "unknown", "several processes are called containerd",
     Set("process 90", "/bin/containerd")},
    // --- userns-pool ----------------------------------------------------------------------------
    {"userns-pool", "ok", "room for 110 pods, from ID 65536", {}},
    {"userns-pool", "fail", "max_user_namespaces is 0",
     Set("/proc/sys/user/max_user_namespaces", "0\n")},
    {"userns-pool", "unknown", "max_user_namespaces", Set("-/proc/sys/user/max_user_namespaces")},
    {"userns-pool", "warn", "Linux 6.1.0-40-amd64 can't map",
     Set("/proc/sys/kernel/osrelease", "6.1.0-40-amd64\n")},
    {"userns-pool", "fail", "such a kubelet does not start", Set("-/usr/bin/getsubids")},
    {"+userns-pool", "ok", "room for", Version("v1.38.0") + Set("-/usr/bin/getsubids")},
    {"userns-pool", "fail", "250", Config("maxPods: 250\n")},
    {"userns-pool", "fail", "300", Set("kubelet", "v1.36.3 --max-pods=300")},
    {"userns-pool", "fail", "mismatch", Set("/etc/subgid", "kubelet:131072:7208960\n")},
    {"userns-pool", "unknown", "asked of a service",
     Set("/etc/nsswitch.conf", "passwd: files\nsubid: sss\n")},
    {"userns-pool", "fail", "", SubIds("kubelet:65536:7208960 \n")},
    {"userns-pool", "fail", "", SubIds("kubelet:65536:7208960\r\n")},
    {"userns-pool", "fail", "", SubIds("kubelet:65536\n")},
    {"userns-pool", "ok", "", SubIds("999:65536:7208960\n")},
    {"userns-pool", "ok", "", SubIds("# kubelet\nkubelet:0x10000:7208960:more\n")},
    {"userns-pool", "unknown", "leads to nothing", Set("=/etc/subuid", "/nowhere")},
    {"userns-pool", "fail", "only one line", SubIds("kubelet:65536:65536\nkubelet:131072:65536\n")},
    {"userns-pool", "warn", "host IDs 100000-165535 of ubuntu are in the kubelet's pool",
     SubIds("kubelet:65536:7208960\nubuntu:100000:65536\n")},
    {"userns-pool", "warn", "host IDs 100000-165535 of ubuntu",
     SubIds("ubuntu:100000:65536\n") + Set("/etc/passwd", "root:x:0:0::/:/b\n")},
    {"+userns-pool", "fail", "ends past the last mappable ID",
     Version("v1.38.0") + SubIds("kubelet:65536:4294901760\n")},
    {"userns-pool", "fail", "pod b7c1 begins at 131072, outside the pool",
     SubIds("kubelet:196608:7208960\n")},
    {"userns-pool", "fail", "has 65536 IDs, and idsPerPod is 131072",
     SubIds("kubelet:131072:7208960\n") +
         Config("userNamespaces:\n  idsPerPod: 131072\nmaxPods: 50\n")},
    {"userns-pool", "unknown", "pods/c3/userns",
     Set("=/var/lib/kubelet/pods/c3/userns", "/nowhere")},
    {"userns-pool", "warn", "no handler of the runtime",
     Set("cri/info.json", R"({"runtimeHandlers":[{"name":"runc"}]})") +
         Set("/etc/containerd/config.toml")},
    {"+userns-pool", "unknown", "whether volumes on f2fs can be mapped", Mount("f2fs")},
    {"userns-pool", "ok", "", Set("gave a", "131072 65536") + Set("ids 9", "0 131072 65536\n")},
    {"userns-pool", "ok", "", Set("ids 9", "0 131072 1\n")},  // by a file alone, and a part
    {"userns-pool", "ok", "", Set("ids 9", "0 1000 1\n")},    // outside the pool
    {"userns-pool", "fail", "process 9 has host IDs 655360-720895, which are not those of one pod",
     Set("gave a", "131072 65536") + Set("ids 9", "0 655360 65536\n")},
    {"userns-pool", "fail", "process 9 has host IDs 131072-262143",
     Set("gave a", "131072 65536") + Set("gave b", "196608 65536") +
         Set("ids 9", "0 131072 131072\n")},
    {"userns-pool", "fail", "process 9 has host IDs 196608-262143",
     Set("gave a", "131072 65536") + Set("gave b", "196608 65536") +
         Set("ids 9", "0 131072 65536\n") + Set("/proc/9/gid_map", "0 196608 65536\n")},
    {"userns-pool", "fail", "pod b's process 9 has host IDs of pod a",
     Set("gave a", "131072 65536") + Set("ids 9", "0 131072 65536\n") +
         Set("/proc/9/cgroup", "0::/kubepods/burstable/podb/0123\n")},
    {"userns-pool", "ok", "",
     Set("gave a-1", "131072 65536") + Set("ids 9", "0 131072 65536\n") +
         Set("/proc/9/cgroup",
             "0::/kubepods.slice/kubepods-poda_1.slice/cri-containerd-1.scope\n")},
    {"userns-pool", "unknown", "sees other user IDs than the host's",
     Set("ids self", "0 131072 65536\n")},
    // --- waybill-store --------------------------------------------------------------------------
    {"waybill-store", "ok", "/var/lib/waybill, schema", {}},
    {"+waybill-store", "warn", "no store", Set("-/var/lib/waybill") + Set("-" + kGuard)},
    // The guard's, in another place.
    {"waybill-store", "ok", "/srv/w, schema", kElsewhere},
    {"waybill-store", "fail", "page 7", kElsewhere + Set("store error", "page 7 is damaged")},
    {"waybill-store", "unknown", "busy", kElsewhere + Set("store owned", "busy")},
    {"waybill-store", "fail", "page 7", Set("store error", "page 7 is damaged")},
    {"waybill-store", "unknown", "busy", Set("store owned", "busy")},
    {"waybill-store", "unknown", "leads to nothing", Set("=/var/lib/waybill/data.mdb", "/nowhere")},
    {"waybill-store", "warn", "the store was lost", Set("store distrusts", "the store was lost")},
    {"waybill-store", "warn", "lost with it", Set("store witness")},
    {"waybill-store", "warn", "/mnt/old", Set("store copy", "/mnt/old")},
    {"+waybill-store", "warn", "a former store left its witness",
     Set("-/var/lib/waybill") + Set("-" + kGuard) + Set(kGuard + "/witness")},
    {"+waybill-store", "warn", "waybill was used on /var/lib/kubelet",
     Set("-/var/lib/waybill") + Set("-" + kGuard) + Set("used")},
    {"waybill-store", "warn", "knows no image since",
     Set("/var/lib/waybill/backup/v7-00000000000000000012-1767225600.mdb") +
         Set("newer /var/lib/waybill/backup/v7-00000000000000000012-1767225600.mdb", "-40")},
    // --- waybill-guard --------------------------------------------------------------------------
    {"waybill-guard", "ok", "runs since 2026-11-26", {}},
    {"waybill-guard", "warn", "no guard runs", Set("unlock " + kGuard + "/lock")},
    {"waybill-guard", "warn", "it came after the kubelet", Status(R"("kubeletRanBefore":true)")},
    // Its store is where that of a kubelet with waybill inside would be.
    {"waybill-guard", "ok", "runs since",
     Status(R"("kubeletRanBefore":false)", "/var/lib/kubelet/waybill") +
         Set("/var/lib/kubelet/waybill/data.mdb") + Set("/var/lib/kubelet/waybill/owner.lock") +
         Set("lock /var/lib/kubelet/waybill/owner.lock") + Set("-/var/lib/waybill")},
    {"waybill-guard", "unknown", "its status can't be read", Set(kGuard + "/status.json", "{")},
    {"waybill-guard", "unknown", "its status can't be read", Set(kGuard + "/status.json", "{}")},
    {"waybill-guard", "unknown", "whether it came after the kubelet", Status(R"("x":1)")},
    {"waybill-guard", "fail", "it protects nothing: others may write",
     Status(R"("notProtected":"others may write")")},
    {"waybill-guard", "warn", "it can't ask the runtime: gone",
     Status(R"("kubeletRanBefore":false,"runtimeError":"gone")")},
    {"waybill-guard", "fail", "beside a kubelet that has waybill inside",
     Set("/var/lib/kubelet/waybill/owner.lock") + Set("lock /var/lib/kubelet/waybill/owner.lock")},
    {"waybill-guard", "ok", "none is needed",
     Set("/var/lib/kubelet/waybill/owner.lock") + Set("lock /var/lib/kubelet/waybill/owner.lock") +
         Set("unlock " + kGuard + "/lock")},
    {"waybill-guard", "fail", "/data/kubelet and /var/lib/kubelet share one store",
     Set("process 5555", "kubelet --root-dir=/data/kubelet") +
         Set("/data/kubelet/image_manager/waybill-guard/status.json",
             R"({"store":"/var/lib/waybill","version":"0.1.0","since":"2026-11-26T09:00:00Z"})")},
    {"waybill-guard", "fail", "has its store in /var/lib/waybill",
     Set("/srv/waybill/data.mdb") + Set("options store", "/srv/waybill")},
    {"waybill-guard", "warn", "the guard that runs is 0.0.9",
     Set(kGuard + "/status.json", R"({"store":"/var/lib/waybill","version":"0.0.9",)"
                                  R"("since":"2026","kubeletRanBefore":false})")},
    {"waybill-guard", "warn", "is 0.2.0, this command 0.1.0",
     Set("/usr/lib/x86_64-linux-gnu/libwaybill.so.0.2.0")},
    {"waybill-guard", "ok", "runs",
     Set("/usr/lib/x86_64-linux-gnu/libwaybill.so.0.2.0") +
         Set("/usr/lib/x86_64-linux-gnu/libwaybill.so.0.1.0")},
    // --- disk-file-system, disk-space -----------------------------------------------------------
    {"disk-file-system", "ok", "xfs", {}},
    {"disk-file-system", "warn", "/var/lib/waybill, is on tmpfs, in memory",
     Mount("tmpfs", "/var/lib/waybill")},
    {"disk-file-system", "warn", "SIGBUS", Mount("zfs", "/var/lib/waybill")},
    {"disk-file-system", "warn", "SIGBUS", Mount("btrfs")},
    {"disk-file-system", "fail", "is on nfs4", Mount("nfs4", "/var/lib/waybill")},
    {"disk-file-system", "fail", "is on fuse.sshfs", Mount("fuse.sshfs", "/var/lib/waybill")},
    {"disk-file-system", "fail", "is on virtiofs", Mount("virtiofs", "/var/lib/waybill")},
    // Where a link leads, and a mount with a blank in its name.
    {"disk-file-system", "fail", "/var/lib/waybill, is on nfs4",
     Mount("nfs4", "/data") + Set("-/var/lib/waybill") + Set("/data/w/data.mdb") +
         Set("=/var/lib/waybill", "/data/w")},
    {"disk-file-system", "fail", "is on nfs4",
     Mount("nfs4", "/my\\040disk") + Set("-/var/lib/waybill") + Set("/my disk/w/data.mdb") +
         Set("=/var/lib/waybill", "/my disk/w")},
    {"disk-file-system", "unknown", "f2fs, on which waybill was never tried",
     Mount("f2fs", "/var/lib/waybill")},
    {"+disk-file-system", "unknown", "cannot read /var/lib/kubelet", Set("-/var/lib/kubelet")},
    {"disk-space", "fail", "the disk of /var/lib/waybill is full", Set("free /var/lib/waybill")},
    {"disk-space", "warn", "50 MiB are free", Set("free", "50")},
    {"+disk-space", "unknown", "",
     Set("options store", "/srv") + Set("/srv") + Set("-/var/lib/kubelet")},
    {"disk-space", "warn", "as many images at a time", Config("serializeImagePulls: false\n")},
    {"disk-space", "ok", "free", Config("serializeImagePulls: false\nmaxParallelImagePulls: 4\n")},
    {"disk-space", "fail", "such a kubelet does not start",
     Config("maxParallelImagePulls: 4\n") + Set("kubelet", "v1.36.3 --serialize-image-pulls")},
};

// Nodes as distributions make them, out of the files that they publish, with waybill beside.
struct Distribution {
  std::string name;
  std::string files;  // their address
  std::string wrong;  // "VERDICT CHECK, …": what is not ok on a sound node
  std::vector<Change> changes;
};

// A process of containerd's alone, told of this configuration.
std::vector<Change> Containerd(const std::string& words, const std::string& config,
                               const std::string& content, const std::string& socket) {
  return {{"-/proc/812"},
          {"process 815", words},
          {config, content},
          {"cri/info.json",
           R"({"runtimeHandlers":[{"name":"runc","features":{"user_namespaces":true}}],)"
           R"("config":{"containerdEndpoint":")" +
               socket + "\"}}"}};
}

const std::string kRancher = "/var/lib/rancher/";
const std::string kSnap = "/var/snap/microk8s/";
const std::vector<Distribution> kDistributions = {
    {"Debian, kubeadm", "https://packages.debian.org/bookworm/containerd", "", {}},
    {"k3s", "https://github.com/k3s-io/k3s/blob/master/pkg/agent/templates/templates.go", "",
     K3s("featureGates: {}\n") +
         Containerd("containerd -c " + kRancher + "k3s/agent/etc/containerd/config.toml",
                    kRancher + "k3s/agent/etc/containerd/config.toml",
                    "version = 3\n[grpc]\naddress = \"/run/k3s/containerd/containerd.sock\"\n" +
                        kImages + "config_path = \"" + kRancher + "k3s/certs.d\"\n",
                    "/run/k3s/containerd/containerd.sock") +
         Set(kRancher + "k3s/certs.d/docker.io/hosts.toml",
             "server = \"https://docker.io\"\n"
             "[host.\"https://registry-1.docker.io\"]\n"
             "capabilities = [\"pull\", \"resolve\"]\n")},
    {"RKE2", "https://github.com/rancher/rke2/blob/master/pkg/podexecutor/staticpod.go", "",
     Containerd("containerd -c " + kRancher +
                    "rke2/agent/etc/containerd/config.toml -a "
                    "/run/k3s/containerd/containerd.sock",
                kRancher + "rke2/agent/etc/containerd/config.toml", "version = 3\n",
                "/run/k3s/containerd/containerd.sock") +
         Set("process 4242", kRancher + "rke2/data/v1/bin/kubelet --config-dir=" + kRancher +
                                 "rke2/agent/etc/kubelet.conf.d") +
         Set(kRancher + "rke2/agent/etc/kubelet.conf.d/00-rke2-defaults.conf",
             "kind: KubeletConfiguration\n")},
    {"EKS, Amazon Linux 2023",
     "https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/containerd/"
     "config2.template.toml",
     "fail credentials-node",
     Containerd("/usr/bin/containerd", "/etc/containerd/config.toml",
                "version = 3\n[grpc]\naddress = \"/run/containerd/containerd.sock\"\n" + kImages +
                    "config_path = \"/etc/containerd/certs.d:/etc/docker/certs.d\"\n",
                "/run/containerd/containerd.sock") +
         Set("process 4242",
             "/usr/bin/kubelet --config=" + kConfig +
                 " --image-credential-provider-config=/etc/eks/image-credential-provider/"
                 "config.json") +
         Set("/etc/eks/image-credential-provider/config.json",
             R"({"kind":"CredentialProviderConfig","providers":[{"name":"ecr-credential-provider",)"
             R"("matchImages":["*.dkr.ecr.*.amazonaws.com"]}]})")},
    {"Bottlerocket",
     "https://github.com/bottlerocket-os/bottlerocket-core-kit/blob/develop/packages/"
     "containerd-2.1/"
     "containerd-config-toml_k8s_containerd_sock",
     "",
     Containerd("/usr/bin/containerd", "/etc/containerd/config.toml",
                "version = 3\nimports = [\"/etc/containerd/config.d/*.toml\"]\n" + kImages +
                    "config_path = \"/etc/containerd/certs.d\"\n",
                "/run/containerd/containerd.sock")},
    {"Talos", "https://github.com/siderolabs/talos/blob/main/hack/cri-containerd.toml", "",
     Talos("91", "92") + Set("-/hosts") +
         Set("/etc/cri/containerd.toml",
             "version = 3\nimports = [\"/etc/cri/conf.d/cri.toml\"]\n") +
         Set("/etc/cri/conf.d/cri.toml",
             "version = 3\n[plugins.\"io.containerd.cri.v1.images\"]\n"
             "use_local_image_pull = true\n" +
                 kImages + "config_path = \"/etc/cri/conf.d/hosts\"\n")},
    {"OpenShift",
     "https://github.com/openshift/machine-config-operator/blob/main/templates/master/"
     "01-master-container-runtime/_base/files/crio.yaml",
     "fail credentials-node",
     kCrio +
         Set("/etc/crio/crio.conf.d/00-default",
             "[crio.runtime]\ndefault_runtime = \"crun\"\n[crio.runtime.runtimes.crun]\n"
             "runtime_root = \"/run/crun\"\n[crio.image]\n"
             "global_auth_file = \"/var/lib/kubelet/config.json\"\n") +
         Set("/var/lib/kubelet/config.json", kLogin)},
    {"MicroK8s",
     "https://github.com/canonical/microk8s/tree/master/microk8s-resources/default-args", "",
     kNoKubelet + Version("v1.36.1") +
         Containerd("/snap/microk8s/1/bin/containerd --config " + kSnap +
                        "current/args/containerd.toml --address " + kSnap +
                        "common/run/containerd.sock",
                    kSnap + "current/args/containerd.toml",
                    "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\n"
                    "config_path = \"" +
                        kSnap + "current/args/certs.d\"\n",
                    kSnap + "common/run/containerd.sock") +
         Set("process 800",
             "/snap/microk8s/1/kubelite --kubelet-args-file=" + kSnap + "current/args/kubelet") +
         Set(kSnap + "current/args/kubelet",
             "--anonymous-auth=false\n--container-runtime-endpoint=" + kSnap +
                 "common/run/containerd.sock\n") +
         Set(kSnap + "current/args/certs.d/localhost__32000/hosts.toml",
             "server = \"http://localhost:32000\"\n[host.\"http://localhost:32000\"]\n"
             "capabilities = [\"pull\", \"resolve\"]\n")},
};

// A mirror at `host` of the registry, on a node at 10.0.17.4 and fd00::5.
std::string MirrorAt(const std::string& host) {
  const RecordedNode node(
      kRecord + Version("v1.36.3") +
      std::vector<Change>{
          {"/etc/hostname", "node-7\n"},
          {"/etc/hosts", "10.0.17.4 cache.example.net # me\n10.0.0.9 other\n"},
          {"/proc/1/net/if_inet6", "fd000000000000000000000000000005 02 40 00 80 e\n"},
          {"/proc/1/net/fib_trie", "  |-- 10.9.0.1\n     /32 host LOCAL\n"},
          {kHosts + "_default/hosts.toml", "[host.\"http://" + host + "\"]\n"}});
  for (const doctor::Finding& finding : node.Examine()) {
    if (finding.check == "credentials-mirrors") {
      return std::string(doctor::VerdictName(finding.verdict)) + " " + finding.next;
    }
  }
  return "nothing";
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_row) {
  for (const Row& row : kRows) {
    const bool others = row.check.starts_with('+');
    const std::string check = row.check.substr(others ? 1 : 0);
    const doctor::Findings findings = RecordedNode(row.changes).Examine();
    bool named = false;
    for (const doctor::Finding& finding : findings) {
      const bool is_meant = finding.check == check &&
                            doctor::VerdictName(finding.verdict) == row.verdict &&
                            finding.seen.find(row.words) != std::string::npos;
      named = named || is_meant;
      const bool is_ok = finding.verdict == doctor::Verdict::kOk;
      BOOST_TEST((is_ok || !finding.next.empty()), finding.seen);
      BOOST_TEST((is_ok || others || finding.check == check),
                 row.check << " " << row.words << ": " << finding.check << ": " << finding.seen);
      for (const char* secret : {"s3cret", "eDp5", "cm9ib3Q6eA"}) {
        BOOST_TEST((finding.seen + finding.next).find(secret) == std::string::npos);
      }
    }
    BOOST_TEST(named, row.check << ": no line is " << row.verdict << " with \"" << row.words
                                << "\":\n"
                                << testing::Wrong(findings));
  }
}

BOOST_AUTO_TEST_CASE(each_distribution) {
  for (const Distribution& one : kDistributions) {
    const doctor::Findings findings = RecordedNode(one.changes).Examine();
    std::set<std::string> wrong;
    for (const doctor::Finding& finding : findings) {
      if (finding.verdict == doctor::Verdict::kOk) continue;
      wrong.insert(std::string(doctor::VerdictName(finding.verdict)) + " " + finding.check);
    }
    std::string text;
    for (const std::string& line : wrong) text += (text.empty() ? "" : ", ") + line;
    BOOST_TEST(text == one.wrong, one.name << ", " << one.files << ":\n"
                                           << testing::Wrong(findings));
  }
}

BOOST_AUTO_TEST_CASE(a_release_across_the_end_of_what_is_read_at_once) {
  for (int offset = -10; offset <= 3; ++offset) {
    const std::string before(static_cast<std::size_t>((1 << 20) + offset), 'x');
    const RecordedNode node({{"/usr/bin/kubelet", before + std::string("\0v1.36.7\0", 9)}});
    BOOST_TEST(node.Examine().front().seen == "v1.36.7", offset);
  }
}

BOOST_AUTO_TEST_CASE(each_check_has_a_row_that_fails_one_that_is_unknown_and_one_that_is_ok) {
  std::map<std::string, std::set<std::string>> verdicts;
  for (const Row& row : kRows) {
    verdicts[row.check.substr(row.check.starts_with('+') ? 1 : 0)].insert(row.verdict);
  }
  BOOST_TEST(doctor::Checks().size() == 16U);
  for (const doctor::Check& check : doctor::Checks()) {
    BOOST_TEST((verdicts[check.name].contains("fail") || verdicts[check.name].contains("warn")),
               check.name);
    BOOST_TEST(verdicts[check.name].contains("unknown"), check.name);
    BOOST_TEST(verdicts[check.name].contains("ok"), check.name);
  }
}

// What each check answers, and the first line by it.
BOOST_AUTO_TEST_CASE(the_first_line) {
  using doctor::Protection;
  const doctor::Findings healthy = RecordedNode().Examine();
  BOOST_TEST(testing::Wrong(healthy) == "");
  BOOST_TEST(healthy.size() == 16U);
  BOOST_TEST((doctor::ProtectionBy(healthy) == Protection::kYes));
  for (const doctor::Check& check : doctor::Checks()) {
    const auto of = [&](doctor::Verdict verdict) {
      return doctor::ProtectionBy({{.check = check.name, .verdict = verdict}});
    };
    const bool concerns = check.concerns_access;
    using enum doctor::Verdict;
    BOOST_TEST((of(kFail) == (concerns ? Protection::kNo : Protection::kYes)));
    BOOST_TEST((of(kUnknown) == (concerns ? Protection::kNotKnown : Protection::kYes)));
    BOOST_TEST((of(kWarn) == Protection::kYes));
  }
  const auto by = [](const std::vector<Change>& changes) {
    return doctor::SentenceOf(doctor::ProtectionBy(RecordedNode(changes).Examine()));
  };
  const std::string_view until = doctor::SentenceOf(Protection::kUntilLoss);
  BOOST_TEST(by({{"-/var/lib/waybill"}, {"-" + kGuard}}) == until);
  BOOST_TEST(by({{"unlock " + kGuard + "/lock"}}) == until);
  BOOST_TEST(by(Status(R"("kubeletRanBefore":true)")) == until);
  BOOST_TEST(by(kNoKubelet) == doctor::SentenceOf(Protection::kNotKnown));
  BOOST_TEST(by({{"-/proc/812"}}) == doctor::SentenceOf(Protection::kYes));
  BOOST_TEST(by({{"kubelet", "v1.34.2"}, {"-/proc/4242/environ"}}) ==
             doctor::SentenceOf(Protection::kNo));
}

BOOST_AUTO_TEST_CASE(this_node_under_each_of_its_names) {
  for (const char* host :
       {"10.0.17.4:29999", "0.0.0.0:5000", "127.0.0.1", "127.1:80", "localhost", "LOCALHOST:5",
        "[::1]:5000", "[0:0:0:0:0:0:0:1]", "[::]", "[::ffff:127.0.0.1]:1", "[::ffff:10.0.17.4]",
        "node-7:5000", "cache.example.net", "[fd00::5]:5000", "10.9.0.1", "registry.localhost"}) {
    BOOST_TEST(MirrorAt(host).starts_with("fail "), host);
  }
  for (const char* host : {"10.0.17.5:29999", "other", "node-70", "[fd00::6]", "128.0.0.1"}) {
    BOOST_TEST(MirrorAt(host).starts_with("warn "), host);
    // The scheme that is configured.
    BOOST_TEST(MirrorAt(host).find("GET http://" + std::string(host)) != std::string::npos);
  }
}

BOOST_AUTO_TEST_CASE(a_directory_that_others_can_write) {
  RecordedNode node;
  std::filesystem::permissions(node.At(kPulled), std::filesystem::perms::others_write,
                               std::filesystem::perm_options::add);
  BOOST_TEST(testing::Wrong(node.Examine()) ==
             "fail kubelet-directory: " + kPulled +
                 " can be written by others: they can write records\n");
}

// A node that is elsewhere may hold anything: its links lead to its own files.
BOOST_AUTO_TEST_CASE(a_link_out_of_the_node) {
  const testing::TempDir outside;
  testing::WriteFile(outside / "config.yaml",
                     "featureGates:\n  KubeletEnsureSecretPulledImages: false\n");
  const std::string wrong =
      testing::Wrong(RecordedNode({{"=" + kConfig, (outside / "config.yaml").string()}}).Examine());
  BOOST_TEST(wrong.find("off by its configuration") == std::string::npos);
  BOOST_TEST(wrong.find("unknown kubelet-policy") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
