
#include "runtime/files/pull_sources.h"

#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>
#include <utility>

#include "store/base/words.h"
#include "tests/support/memory_dir.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {

using testing::MemoryDir;
using testing::ReadFile;
using testing::WriteFile;

BOOST_AUTO_TEST_SUITE(pull_sources)

namespace {

const std::string kImage = "registry.example.com/team/app:1";
const std::string kDigest = "sha256:" + std::string(64, 'a');
const std::string kByDigest = "registry.example.com/team/app@" + kDigest;
const std::string kHosts = "/etc/containerd/certs.d/registry.example.com/hosts.toml";
const std::string kDefault = "/etc/containerd/certs.d/_default/hosts.toml";
const std::string kRegistriesConf = "/etc/containers/registries.conf";

// A node's files, below a directory of its own.
class Node {
 public:
  Node& Has(const std::string& path, const std::string& content) {
    const std::filesystem::path place = root_ / path.substr(1);
    std::filesystem::create_directories(place.parent_path());
    WriteFile(place, content);
    return *this;
  }
  Node& Runs(const std::string& version) {
    answers_.version = version;
    return *this;
  }
  Node& Says(const std::string& status) {
    answers_.status = status;
    return *this;
  }
  Node& IsTold(const std::string& config) {
    answers_.config = config;
    return *this;
  }
  Node& Links(const std::string& path, const std::string& to) {
    std::filesystem::create_directories(At(path).parent_path());
    std::filesystem::create_symlink(to, At(path));
    return *this;
  }
  std::filesystem::path At(const std::string& path) const { return root_ / path.substr(1); }

  RuntimePulls Pulls() {
    answers_.root = root_.path().string();
    auto pulls = ReadRuntimePulls(answers_);
    BOOST_REQUIRE(pulls);
    return *std::move(pulls);
  }
  PullSources Of(const std::string& image, const std::string& handler = "") {
    auto sources = PullSourcesOf(Pulls(), image, handler);
    BOOST_REQUIRE(sources);
    return std::move(sources->sources);
  }

 private:
  MemoryDir root_;
  RuntimeAnswers answers_;
};

// "mirror: mirror.example.com open, layers.example.com layers"
std::string Text(const PullSources& sources) {
  std::string text(WordOf(sources.checker));
  std::string separator = ": ";
  for (const PullSource& other : sources.others) {
    text += std::exchange(separator, ", ") + other.host;
    if (!other.serves_manifests) text += " layers";
    if (other.insecure) text += " insecure";
    if (other.open) text += " open";
  }
  return text;
}

std::string ProblemsOf(const PullSources& sources) {
  std::string text;
  for (const std::string& problem : sources.problems) text += problem + "\n";
  return text;
}

// What is said of the image where containerd has this hosts.toml for the registry.
std::string WithHosts(const std::string& toml, const std::string& image = kImage) {
  Node node;
  node.Runs("containerd v2.4.2").Has("/etc/containerd/config.toml", "").Has(kHosts, toml);
  return Text(node.Of(image));
}

std::string WithRegistries(const std::string& conf, const std::string& image = kImage,
                           const std::string& drop_in = "") {
  Node node;
  node.Runs("cri-o 1.33.1").Has(kRegistriesConf, conf);
  if (!drop_in.empty()) node.Has("/etc/containers/registries.conf.d/50.conf", drop_in);
  return Text(node.Of(image));
}

// containerd's configuration in one of its versions.
std::string Config(const std::string& plugin, const std::string& registry) {
  return "[plugins.\"" + plugin + "\".registry]\n" + registry;
}

void CheckProblem(const PullSources& sources, const std::string& part) {
  BOOST_TEST((sources.checker == VerifiedBy::kUnknown));
  BOOST_TEST(ProblemsOf(sources).find(part) != std::string::npos, ProblemsOf(sources)
                                                                      << " lacks " << part);
}

}  // namespace

// --- containerd's hosts.toml ---------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(without_other_hosts_it_is_the_registry) {
  BOOST_TEST(WithHosts("") == "registry");
  BOOST_TEST(WithHosts("server = \"https://registry.example.com\"\n") == "registry");
  BOOST_TEST(WithHosts("server = \"registry.example.com:443/v2/\"\n") == "registry");
  BOOST_TEST(WithHosts("[host.\"https://registry.example.com\"]\nskip_verify = true\n") ==
             "registry");
  BOOST_TEST(WithHosts("[host.\"http://Registry.example.com:80\"]\n") == "registry");
}

BOOST_AUTO_TEST_CASE(another_host_is_a_mirror) {
  BOOST_TEST(WithHosts("[host.\"https://mirror.example.com\"]\n") == "mirror: mirror.example.com");
  BOOST_TEST(WithHosts("server = \"https://other.example.com\"\n") == "mirror: other.example.com");
  // In the order of the file, which is not that of the alphabet.
  BOOST_TEST(WithHosts("server = \"https://c.example.com\"\n"
                       "[host.\"https://b.example.com\"]\nskip_verify = true\n"
                       "[host.\"http://a.example.com\"]\n") ==
             "mirror: b.example.com insecure, a.example.com insecure, c.example.com");
  BOOST_TEST(WithHosts("[host.\"http://127.0.0.1:30020\"]\n") ==
             "mirror: 127.0.0.1:30020 insecure open");
  BOOST_TEST(WithHosts("[host.\"https://localhost:6443/v2\"]\n") == "mirror: localhost:6443 open");
  // Another port is another server.
  BOOST_TEST(WithHosts("[host.\"https://registry.example.com:5000\"]\n") ==
             "mirror: registry.example.com:5000");
  BOOST_TEST(WithHosts("[host.\"http://registry.example.com:443\"]\n") ==
             "mirror: registry.example.com:443 insecure");
}

BOOST_AUTO_TEST_CASE(this_node_by_its_own_names) {
  Node node;
  node.Runs("containerd v2.4.2")
      .Has("/etc/containerd/config.toml", "")
      .Has("/etc/hostname", "node-7\n")
      .Has(kHosts, "[host.\"https://node-7:5000\"]\n");
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: node-7:5000 open");
}

BOOST_AUTO_TEST_CASE(a_host_that_may_not_resolve_serves_no_tag) {
  const std::string pulls = "[host.\"https://m.example.com\"]\ncapabilities = [\"pull\"]\n";
  BOOST_TEST(WithHosts(pulls) == "registry: m.example.com layers");
  BOOST_TEST(WithHosts(pulls, kByDigest) == "mirror: m.example.com");
  BOOST_TEST(WithHosts(pulls, "registry.example.com/team/app:1@" + kDigest) ==
             "mirror: m.example.com");
  const std::string pushes = "[host.\"https://m.example.com\"]\ncapabilities = [\"push\"]\n";
  BOOST_TEST(WithHosts(pushes, kByDigest) == "registry");
  BOOST_TEST(
      WithHosts("[host.\"https://m.example.com\"]\ncapabilities = [\"PULL\", \"Resolve\"]\n") ==
      "mirror: m.example.com");
  BOOST_TEST(WithHosts("[host.\"https://m.example.com\"]\ncapabilities = []\n") ==
             "mirror: m.example.com");
}

BOOST_AUTO_TEST_CASE(another_path_is_another_repository) {
  BOOST_TEST(WithHosts("[host.\"https://registry.example.com/v2/hub\"]\noverride_path = true\n") ==
             "mirror: registry.example.com/v2/hub");
  BOOST_TEST(WithHosts("[host.\"https://registry.example.com/hub\"]\n") ==
             "mirror: registry.example.com/hub");
  BOOST_TEST(WithHosts("[host.\"https://registry.example.com\"]\noverride_path = true\n") ==
             "mirror: registry.example.com");
  BOOST_TEST(WithHosts("[host.\"https://registry.example.com/v2/\"]\noverride_path = true\n") ==
             "registry");
}

BOOST_AUTO_TEST_CASE(docker_hub_has_several_names) {
  Node node;
  node.Runs("containerd v2.4.2")
      .Has("/etc/containerd/config.toml", "")
      .Has("/etc/containerd/certs.d/docker.io/hosts.toml",
           "server = \"https://registry-1.docker.io\"\n[host.\"https://index.docker.io/v2\"]\n");
  for (const char* image : {"nginx", "index.docker.io/team/app", "docker.io/library/nginx:1"}) {
    BOOST_TEST(Text(node.Of(image)) == "registry");
    BOOST_TEST(node.Of(image).registry == "docker.io");
  }
}

BOOST_AUTO_TEST_CASE(what_the_runtime_shows_by_itself_proves_no_pod) {
  const std::string header =
      "[host.\"https://m.example.com\".header]\nAuthorization = \"Basic eA\"\n";
  BOOST_TEST(WithHosts(header) == "mirror: m.example.com open");
  BOOST_TEST(WithHosts("[host.\"https://m.example.com\"]\nclient = \"/etc/node.pem\"\n") ==
             "mirror: m.example.com open");
  BOOST_TEST(WithHosts("[host.\"https://m.example.com\"]\nclient = []\n"
                       "[host.\"https://m.example.com\".header]\nx-of-mine = \"1\"\n") ==
             "mirror: m.example.com");
  // The registry itself.
  BOOST_TEST(WithHosts("[header]\nauthorization = [\"Bearer t\"]\n") == "unknown");
  BOOST_TEST(WithHosts("server = \"https://registry.example.com\"\nclient = [[\"a\", \"b\"]]\n") ==
             "unknown");
  Node node;
  node.Runs("containerd v2.4.2")
      .Has("/etc/containerd/config.toml", "")
      .Has("/etc/containerd/certs.d/registry.example.com/node.cert", "x");
  CheckProblem(node.Of(kImage), "a client certificate");
  node.Has(kHosts, "");
  CheckProblem(node.Of(kImage), "a client certificate");
}

// The node's own credentials: rather one too many.
BOOST_AUTO_TEST_CASE(for_which_images_the_node_has_credentials) {
  const auto fits = [](const std::string& registry, const std::string& image) {
    const NodeCredentials one{.held = {{registry, "here"}}};
    BOOST_TEST(one.MayHaveFor(image) == (one.For(image).size() == 1U));
    return one.MayHaveFor(image);
  };
  for (const char* registry :
       {"*", "registry.example.com", "https://Registry.example.com:443/v1/", "*.example.com/team",
        "registry.*.com", "registry.example.com/other"}) {
    BOOST_TEST(fits(registry, kImage), registry);
  }
  for (const char* registry : {"example.com", "*.example.org", "registry.example.com.evil"}) {
    BOOST_TEST(!fits(registry, kImage), registry);
  }
  BOOST_TEST(fits("https://index.docker.io/v1/", "nginx"));
  BOOST_TEST(fits("[::1]:5000", "[::1]:5000/app"));
  BOOST_TEST(NodeCredentials{.problems = {"a file can't be read"}}.MayHaveFor(kImage));
  Node node;
  node.Runs("containerd 1.7.27")
      .Says(R"({"config":{"registry":{"headers":{"Authorization":["x"]}}}})");
  NodeCredentials found;
  AddCredentialsOfRuntime(node.Pulls(), found);
  BOOST_TEST(found.MayHaveFor("nginx"));
}

BOOST_AUTO_TEST_CASE(which_folder_counts) {
  Node node;
  node.Runs("containerd v2.4.2").Has("/etc/containerd/config.toml", "");
  node.Has(kDefault, "[host.\"https://any.example.com\"]\n");
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: any.example.com");
  BOOST_TEST(Text(node.Of("nginx")) == "mirror: any.example.com");
  // A folder of its own, even an empty one.
  std::filesystem::create_directories(node.At("/etc/containerd/certs.d/registry.example.com"));
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  // With a port.
  const std::string with_port = "registry.example.com:5000/app";
  BOOST_TEST(Text(node.Of(with_port)) == "mirror: any.example.com");
  node.Has("/etc/containerd/certs.d/registry.example.com:5000/hosts.toml", "server = \"a.test\"\n");
  BOOST_TEST(Text(node.Of(with_port)) == "mirror: a.test");
  node.Has("/etc/containerd/certs.d/registry.example.com_5000_/hosts.toml",
           "server = \"b.test\"\n");
  BOOST_TEST(Text(node.Of(with_port)) == "mirror: b.test");
  // The second folder of the list counts where the first has neither.
  std::filesystem::remove_all(node.At("/etc/containerd/certs.d/_default"));
  node.Has("/etc/docker/certs.d/docker.io/hosts.toml", "server = \"c.test\"\n");
  BOOST_TEST(Text(node.Of("nginx")) == "mirror: c.test");
}

BOOST_AUTO_TEST_CASE(what_can_not_be_understood_is_never_the_registry) {
  for (const char* toml :
       {"server = ", "[host]\n\"https://m.example.com\" = 1\n", "host = 1\n", "server = 1\n",
        "Server = \"https://m.example.com\"\n", "\"\u017ferver\" = \"https://m.example.com\"\n",
        "[HOST.\"https://m.example.com\"]\n",
        "[host.\"https://m.example.com\"]\ncapabilities = [\"steal\"]\n",
        "[host.\"https://m.example.com\"]\ncapabilities = \"pull\"\n", "[host.\"\"]\n",
        "[host.\"ftp://m.example.com\"]\n", "server = \"https://a@m.example.com\"\n",
        "server = \"https://m.example.com?registry.example.com\"\n", "server = \"https://\"\n",
        "server = \"https://m.example.com\\\\@registry.example.com\"\n",
        "[host.\"https://a.test\"]\n[host.\"https://a.test\"]\n", "\xff = 1\n"}) {
    BOOST_TEST(WithHosts(toml).starts_with("unknown"), toml);
  }
  BOOST_TEST(WithHosts("#" + std::string(kMaxPullConfigBytes, 'x')).starts_with("unknown"));
  BOOST_TEST(WithHosts(std::string(300, '[')).starts_with("unknown"));
  BOOST_TEST(WithHosts("a" + std::string(300, '.') + "b = 1\n").starts_with("unknown"));
}

// Where toml++ would run into what it calls unreachable.
BOOST_AUTO_TEST_CASE(tables_whose_name_is_no_key) {
  for (const char* toml : {"[\r", "[\r\n", "[\n", "[=", "[[=", "[ \t#", "a = [\n1]\n[.",
                           "[[[a]]]\n", "\x01 = 1\n", "a = 1\r", "[a]\n [\x7f"}) {
    BOOST_TEST(WithHosts(toml).starts_with("unknown"), toml);
  }
  BOOST_TEST(WithHosts("a = [\n[1, 2],\n[\n]]\r\n [ a-b ]\n[[\"c\"]]\n['d']\n[1]\n") == "registry");
}

BOOST_AUTO_TEST_CASE(letters_that_are_not_ascii) {
  for (const char* toml :
       {"\u00e9 = 1\n", "[\u00e9]\n", "a = 1 \u00e9\n", "a = [1, \u02cc]\n", "a \u00e9 = 1\n",
        "a = '\u00e9' \u00e9\n", "a = '''\n''' \u00e9\n", "a = \"\\\"\" \u00e9\n"}) {
    BOOST_TEST(WithHosts(toml) == "unknown", toml);
  }
  BOOST_TEST(WithHosts("# \u00e9 '\na = \"\\\"\u00e9\"\nb = '''\n\u00e9 '\n'''\nc = '\u00e9'\n") ==
             "registry");
}

BOOST_AUTO_TEST_CASE(what_is_not_a_file_holds_nobody) {
  Node node;
  node.Runs("containerd v2.4.2").Has("/etc/containerd/config.toml", "");
  std::filesystem::create_directories(node.At(kHosts).parent_path());
  BOOST_REQUIRE(::mkfifo(node.At(kHosts).c_str(), 0600) == 0);
  CheckProblem(node.Of(kImage), "is not a file");
  // A file in the place of the registry's folder.
  std::filesystem::remove_all(node.At(kHosts).parent_path());
  node.Has("/etc/containerd/certs.d/registry.example.com", "");
  CheckProblem(node.Of(kImage), "hosts.toml");
}

BOOST_AUTO_TEST_CASE(a_symlink_stays_below_the_root) {
  Node node;
  node.Runs("containerd v2.4.2").Has("/etc/containerd/config.toml", "");
  node.Has("/elsewhere/hosts.toml", "server = \"m.example.com\"\n");
  std::filesystem::create_directories(node.At(kHosts).parent_path());
  std::filesystem::create_symlink("/../../elsewhere/hosts.toml", node.At(kHosts));
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: m.example.com");
  // What is outside is not seen.
  MemoryDir outside;
  WriteFile(outside / "hosts.toml", "server = \"m.example.com\"\n");
  std::filesystem::remove(node.At(kHosts));
  std::filesystem::create_symlink(outside / "hosts.toml", node.At(kHosts));
  CheckProblem(node.Of(kImage), "leads to nothing");
  std::filesystem::remove(node.At(kHosts));
  std::filesystem::create_symlink("hosts.toml", node.At(kHosts));
  CheckProblem(node.Of(kImage), "hosts.toml");
}

// --- Which configuration containerd has ----------------------------------------------------------

BOOST_AUTO_TEST_CASE(config_path_of_each_version) {
  for (const char* plugin : {"cri", "io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images"}) {
    Node node;
    node.Runs("containerd v1.7.27")
        .Has("/etc/containerd/config.toml", Config(plugin, "config_path = \"/opt/hosts\"\n"))
        .Has("/opt/hosts/_default/hosts.toml", "server = \"m.example.com\"\n");
    BOOST_TEST(Text(node.Of(kImage)) == "mirror: m.example.com", plugin);
  }
}

BOOST_AUTO_TEST_CASE(an_older_section_in_a_newer_file_is_not_in_force) {
  const auto with = [](const std::string& version) {
    Node node;
    node.Runs("containerd v2.4.2")
        .Has("/etc/containerd/config.toml",
             version + Config("io.containerd.grpc.v1.cri", "config_path = \"/opt/hosts\"\n"))
        .Has(kDefault, "server = \"m.example.com\"\n");
    return Text(node.Of(kImage));
  };
  BOOST_TEST(with("version = 2\n") == "registry");
  BOOST_TEST(with("version = 3\n") == "mirror: m.example.com");
  BOOST_TEST(with("version = \"3\"\n").starts_with("unknown"));
}

BOOST_AUTO_TEST_CASE(where_config_path_is_not_set) {
  const auto of = [](const std::string& version) {
    Node node;
    node.Runs(version).Has("/etc/containerd/config.toml", "version = 2\n");
    node.Has(kDefault, "server = \"m.example.com\"\n");
    return Text(node.Of(kImage));
  };
  BOOST_TEST(of("containerd 1.6.20~ds1") == "registry");
  BOOST_TEST(of("containerd v2.1.9") == "registry");
  BOOST_TEST(of("containerd v2.2.0") == "mirror: m.example.com");
  BOOST_TEST(of("containerd v10.0.0") == "mirror: m.example.com");
  BOOST_TEST(of("containerd") == "mirror: m.example.com");
  BOOST_TEST(of("containerd main") == "mirror: m.example.com");
}

BOOST_AUTO_TEST_CASE(imports) {
  Node node;
  node.Runs("containerd v1.7.0")
      .Has("/etc/containerd/config.toml", "imports = [\"conf.d/*.toml\", \"/opt/a.toml\"]\n")
      .Has("/etc/containerd/conf.d/10.toml",
           Config("io.containerd.grpc.v1.cri", "config_path = \"/etc/containerd/certs.d\"\n"))
      .Has("/etc/containerd/conf.d/ignored", "broken")
      .Has(kDefault, "server = \"m.example.com\"\n");
  CheckProblem(node.Of(kImage), "/opt/a.toml is not there");
  node.Has("/opt/a.toml", "imports = [\"/etc/containerd/config.toml\"]\n");
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: m.example.com");
  node.Has("/opt/a.toml", Config("io.containerd.grpc.v1.cri", "config_path = \"/other\"\n"));
  CheckProblem(node.Of(kImage), "different folders");
  node.Has("/opt/a.toml", "broken");
  CheckProblem(node.Of(kImage), "/opt/a.toml: line 1");
  node.Has("/opt/a.toml", "imports = [\"/etc/*/a.toml\"]\n");
  CheckProblem(node.Of(kImage), "pattern");
}

BOOST_AUTO_TEST_CASE(older_mirrors) {
  const auto with = [](const std::string& registry, const std::string& image = kImage) {
    Node node;
    node.Runs("containerd v1.7.0")
        .Has("/etc/containerd/config.toml", Config("io.containerd.grpc.v1.cri", registry));
    return Text(node.Of(image));
  };
  const std::string named =
      "[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"registry.example.com\"]\n"
      "endpoint = [\"http://m.example.com\", \"https://registry.example.com\"]\n";
  const std::string any =
      "[plugins.\"io.containerd.grpc.v1.cri\".registry.mirrors.\"*\"]\n"
      "endpoint = [\"localhost:5000\"]\n";
  BOOST_TEST(with(named) == "mirror: m.example.com insecure");
  BOOST_TEST(with(named, "nginx") == "registry");
  BOOST_TEST(with(any, "nginx") == "mirror: localhost:5000 insecure open");
  BOOST_TEST(with(any + named) == "mirror: m.example.com insecure");
  BOOST_TEST(with("config_path = \"/x\"\n" + named).starts_with("unknown"));
  BOOST_TEST(with("[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"registry.example.com\""
                  ".tls]\ncert_file = \"/etc/node.pem\"\n") == "unknown");
  BOOST_TEST(with("[plugins.\"io.containerd.grpc.v1.cri\".registry.headers]\n"
                  "Authorization = [\"Basic eA\"]\n") == "unknown");
  BOOST_TEST(with("[plugins.\"io.containerd.grpc.v1.cri\".registry.configs.\"registry.example.com\""
                  ".tls]\nca_file = \"/etc/ca.pem\"\n") == "registry");
  BOOST_TEST(with("Mirrors = 1\n").starts_with("unknown"));
}

BOOST_AUTO_TEST_CASE(containerds_own_answer) {
  const std::string fixtures = WAYBILL_FIXTURES "/cri/containerd-";
  Node old;
  old.Runs("containerd 1.6.20~ds1").Says(ReadFile(fixtures + "1.6.20/info.json"));
  BOOST_TEST(Text(old.Of(kImage)) == "registry");
  BOOST_TEST(old.Pulls().files.empty());
  BOOST_TEST(old.Pulls().default_handler == "runc");

  // From 2.0 on it does not say its registries. A file that is missing is the default.
  Node node;
  node.Runs("containerd v2.4.2").Says(ReadFile(fixtures + "2.4.2/info.json"));
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  BOOST_TEST(Text(node.Of(kImage, "second")) == "registry");
  CheckProblem(node.Of(kImage, "third"), "no handler \"third\"");
  node.Has(kDefault, "server = \"m.example.com\"\n");
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: m.example.com");
  // A file of another containerd.
  node.Has("/etc/containerd/config.toml", "[grpc]\naddress = \"/run/other.sock\"\n");
  CheckProblem(node.Of(kImage), "its socket");
  node.Has("/var/lib/rancher/k3s/agent/etc/containerd/config.toml",
           "[grpc]\naddress = \"unix:///var/run/containerd/containerd.sock\"\n" +
               Config("io.containerd.cri.v1.images", "config_path = \"/k3s\"\n"));
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  node.Has("/k3s/_default/hosts.toml", "[host.\"https://127.0.0.1:6443/v2\"]\n");
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: 127.0.0.1:6443 open");
}

BOOST_AUTO_TEST_CASE(an_answer_with_registries) {
  const auto with = [](const std::string& registry) {
    Node node;
    node.Runs("containerd 1.7.27").Says(R"({"config":{"registry":{)" + registry + "}}}");
    // Which is not in force.
    node.Has("/etc/containerd/config.toml", "broken").Has(kDefault, "server = \"m.test\"\n");
    return Text(node.Of(kImage));
  };
  BOOST_TEST(with(R"("configPath":"","mirrors":null)") == "registry");
  BOOST_TEST(with(R"("configPath":"/etc/containerd/certs.d")") == "mirror: m.test");
  BOOST_TEST(with(R"("mirrors":{"*":{"endpoint":["https://m.test"]}})") == "mirror: m.test");
  BOOST_TEST(with(R"("mirrors":{"*":{"endpoint":["x y"]}})") == "unknown");
  BOOST_TEST(with(R"("mirrors":[])") == "unknown");
  BOOST_TEST(with(R"("headers":{"Authorization":["x"]})") == "unknown");
  BOOST_TEST(with(R"("configs":{"registry.example.com":{"tls":{"certFile":"a"}}})") == "unknown");
  BOOST_TEST(with(R"("configs":{"registry.example.com":{"auth":{"password":"p"},"tls":null}})") ==
             "unknown");
  BOOST_TEST(with(R"("configs":{"registry.example.com":{"auth":null,"tls":null}})") == "registry");
  Node broken;
  broken.Runs("containerd 1.7.27").Says("{");
  CheckProblem(broken.Of(kImage), "the runtime's status");
}

BOOST_AUTO_TEST_CASE(nothing_known) {
  Node node;
  CheckProblem(node.Of(kImage), "neither containerd nor CRI-O was asked");
  node.Has("/etc/containerd/config.toml", "");
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  node.Has("/etc/crio/crio.conf", "");
  CheckProblem(node.Of(kImage), "both containerd and CRI-O");
  node.Runs("docker 26.1.5");
  CheckProblem(node.Of(kImage), "\"docker 26.1.5\"");
  node.Runs("containerd v2.4.2");
  CheckProblem(node.Of("Not An Image"), "is not the name of an image");
  CheckProblem(node.Of(std::string(64, 'a')), "is not the name of an image");
  BOOST_TEST(Text(PullSourcesOf(RuntimePulls{}, kImage, "").value().sources) == "unknown");
}

// --- Pulls in the guest --------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(guests_that_pull) {
  const auto with = [](const std::string& name, const std::string& fields) {
    Node node;
    node.Runs("containerd v2.4.2")
        .Has("/etc/containerd/config.toml",
             "[plugins.\"io.containerd.cri.v1.runtime\".containerd.runtimes." + name + "]\n" +
                 fields)
        .Has("/opt/forced.toml", "[runtime]\nexperimental_force_guest_pull = true\n")
        .Has("/opt/newer.toml", "[runtime]\nexperimental = [\"force_guest_pull\"]\n")
        .Has("/opt/plain.toml", "[runtime]\nexperimental = []\n")
        .Has("/opt/broken.toml", "[");
    BOOST_TEST(Text(node.Of(kImage)) == Text(node.Of(kImage, "")));
    return Text(node.Of(kImage, name));
  };
  BOOST_TEST(with("kata", "runtime_type = \"io.containerd.kata.v2\"\n") == "registry");
  BOOST_TEST(with("kata", "snapshotter = \"nydus\"\n") == "guest");
  BOOST_TEST(with("lazy", "snapshotter = \"nydus\"\n") == "registry");
  BOOST_TEST(with("kata-remote", "") == "guest");
  BOOST_TEST(with("kata-qemu-snp", "") == "guest");
  BOOST_TEST(with("kata-second", "") == "registry");
  BOOST_TEST(with("secret", "runtime_type = \"io.containerd.kata-qemu-tdx.v2\"\n") == "guest");
  const auto told = [&](const std::string& file) {
    return with("kata", "options = {ConfigPath = \"/opt/" + file + "\"}\n");
  };
  BOOST_TEST(told("forced.toml") == "guest");
  BOOST_TEST(told("newer.toml") == "guest");
  BOOST_TEST(told("plain.toml") == "registry");
  BOOST_TEST(told("missing.toml") == "unknown");
  BOOST_TEST(told("broken.toml") == "unknown");
}

BOOST_AUTO_TEST_CASE(the_default_handler_may_pull_in_the_guest) {
  Node node;
  node.Runs("cri-o 1.33.1")
      .Has("/etc/crio/crio.conf", "[crio.runtime]\ndefault_runtime = \"runc\"\n")
      .Has("/etc/crio/crio.conf.d/10",
           "[crio.runtime.runtimes.kata-qemu-coco-dev]\nruntime_pull_image = true\n");
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  BOOST_TEST(Text(node.Of(kImage, "crun")) == "registry");
  BOOST_TEST(Text(node.Of(kImage, "kata-qemu-coco-dev")) == "guest");
  CheckProblem(node.Of(kImage, "other"), "no handler");
  node.Has("/etc/crio/crio.conf.d/20",
           "[crio.runtime]\ndefault_runtime = \"kata-qemu-coco-dev\"\n");
  BOOST_TEST(Text(node.Of(kImage)) == "guest");
  node.Has("/etc/crio/crio.conf.d/30", "[crio.runtime.runtimes.kata-qemu-coco-dev]\n");
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  node.Has("/etc/crio/crio.conf.d/40", "[crio");
  CheckProblem(node.Of(kImage), "/etc/crio/crio.conf.d/40: line 1");
}

// --- registries.conf -----------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(mirrors_of_a_prefix) {
  BOOST_TEST(WithRegistries("") == "registry");
  const std::string mirrored =
      "[[registry]]\nlocation = \"registry.example.com\"\n"
      "[[registry.mirror]]\nlocation = \"m.example.com/hub\"\n";
  BOOST_TEST(WithRegistries(mirrored) == "mirror: m.example.com/hub");
  BOOST_TEST(WithRegistries(mirrored, "nginx") == "registry");
  BOOST_TEST(WithRegistries(mirrored, "registry.example.community/app") == "registry");
  BOOST_TEST(WithRegistries(mirrored + "insecure = true\n") ==
             "mirror: m.example.com/hub insecure");
  // Each prefix that fits counts, though the longest alone is in force.
  BOOST_TEST(
      WithRegistries(mirrored + "[[registry]]\nlocation = \"registry.example.com/team\"\n") ==
      "mirror: m.example.com/hub");
  // A port is below its host.
  BOOST_TEST(WithRegistries(mirrored, "registry.example.com:5000/app") ==
             "mirror: m.example.com/hub");
  BOOST_TEST(WithRegistries("[[registry]]\nprefix = \"registry.example.com\"\n"
                            "location = \"m.test\"\n",
                            "registry.example.com:5000/app") == "mirror: m.test:5000");
  BOOST_TEST(WithRegistries("[[registry]]\nlocation = \"registry.example.com\"\n",
                            "registry.example.com:5000/app") == "registry");
  // Patterns are not understood.
  BOOST_TEST(WithRegistries("[[registry]]\nprefix = \"*.example.com\"\n"
                            "[[registry.mirror]]\nlocation = \"localhost:5000\"\n") == "unknown");
  BOOST_TEST(WithRegistries("[[registry]]\nprefix = \"registry.example.com\"\n"
                            "location = \"registry.example.com\"\nblocked = true\n") == "registry");
}

BOOST_AUTO_TEST_CASE(a_location_that_is_elsewhere) {
  BOOST_TEST(WithRegistries("[[registry]]\nprefix = \"registry.example.com\"\n"
                            "location = \"other.example.com\"\n") == "mirror: other.example.com");
  // The same host, another repository.
  BOOST_TEST(WithRegistries("[[registry]]\nprefix = \"registry.example.com/team\"\n"
                            "location = \"registry.example.com/public\"\n") ==
             "mirror: registry.example.com/public");
  BOOST_TEST(WithRegistries("[[registry]]\nprefix = \"docker.io\"\n"
                            "location = \"registry-1.docker.io\"\n",
                            "docker.io/library/nginx") == "registry");
}

// Whatever it is for.
BOOST_AUTO_TEST_CASE(mirrors_for_tags_or_digests) {
  const auto with = [](const std::string& registry, const std::string& mirror) {
    const std::string conf = "[[registry]]\nlocation = \"registry.example.com\"\n" + registry +
                             "[[registry.mirror]]\nlocation = \"m.test\"\n" + mirror;
    return WithRegistries(conf) + ", " + WithRegistries(conf, kByDigest);
  };
  for (const char* only : {"", "pull-from-mirror = \"digest-only\"\n",
                           "pull-from-mirror = \"tag-only\"\n", "pull-from-mirror = \"all\"\n"}) {
    BOOST_TEST(with("", only) == "mirror: m.test, mirror: m.test");
    BOOST_TEST(with("mirror-by-digest-only = true\n", only) == "mirror: m.test, mirror: m.test");
  }
}

// A drop-in may have taken it back: rather one too many.
BOOST_AUTO_TEST_CASE(a_mirror_in_any_file_counts) {
  const std::string mirrored =
      "[[registry]]\nlocation = \"registry.example.com\"\n"
      "[[registry.mirror]]\nlocation = \"m.test\"\n";
  const std::string plain = "[[registry]]\nlocation = \"registry.example.com\"\n";
  BOOST_TEST(WithRegistries(mirrored, kImage, plain) == "mirror: m.test");
  BOOST_TEST(WithRegistries(plain, kImage, mirrored) == "mirror: m.test");
  BOOST_TEST(WithRegistries(plain, kImage, plain) == "registry");
  BOOST_TEST(WithRegistries(mirrored, kImage, "broken").starts_with("unknown"));
  Node node;
  node.Runs("cri-o 1.33.1")
      .Has("/etc/containers/registries.conf.d/20.conf", plain)
      .Has("/etc/containers/registries.conf.d/30.bak", mirrored);
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  node.Has("/root/.config/containers/registries.conf.d/00.conf", mirrored);
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: m.test");
}

BOOST_AUTO_TEST_CASE(a_file_of_roots_own_replaces_the_systems) {
  Node node;
  node.Runs("cri-o 1.33.1").Has(kRegistriesConf, "");
  node.Has("/root/.config/containers/registries.conf",
           "[[registry]]\nprefix = \"registry.example.com\"\nlocation = \"m.test\"\n");
  BOOST_TEST(Text(node.Of(kImage)) == "mirror: m.test");
}

// What is there and can't be read may say anything.
BOOST_AUTO_TEST_CASE(what_leads_nowhere_is_not_missing) {
  Node node;
  node.Runs("cri-o 1.33.1").Has("/usr/share/containers/registries.conf", "");
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  node.Links(kRegistriesConf, "/nowhere");
  CheckProblem(node.Of(kImage), "leads to nothing");
  CheckProblem(Node().Runs("cri-o 1.33.1").IsTold("/opt/crio.conf").Of(kImage),
               "/opt/crio.conf is not there");
  CheckProblem(Node()
                   .Has("/etc/crio/crio.conf", "")
                   .Links("/etc/containerd/config.toml", "/nowhere")
                   .Of(kImage),
               "both containerd and CRI-O");
}

BOOST_AUTO_TEST_CASE(version_1_of_the_format_is_not_understood) {
  const std::string conf = "[registries.search]\nregistries = [\"quay.io\"]\n";
  BOOST_TEST(WithRegistries(conf) == "unknown");
  BOOST_TEST(WithRegistries("", kImage, conf) == "unknown");
}

BOOST_AUTO_TEST_CASE(short_names) {
  const std::string search = "unqualified-search-registries = [\"quay.io\", \"docker.io\"]\n";
  BOOST_TEST(WithRegistries("", "nginx") == "registry");
  BOOST_TEST(WithRegistries(search, "team/nginx:1") == "mirror: quay.io");
  BOOST_TEST(WithRegistries(search, "docker.io/library/nginx") == "registry");
  BOOST_TEST(WithRegistries("unqualified-search-registries = [\"docker.io\"]\n", "nginx") ==
             "registry");
  BOOST_TEST(WithRegistries(search + "[aliases]\nnginx = \"docker.io/library/nginx\"\n",
                            "nginx@" + kDigest) == "mirror: quay.io");
  const std::string alias = "[aliases]\nnginx = \"registry.example.com/team/nginx\"\n";
  BOOST_TEST(WithRegistries(alias, "nginx") == "mirror: registry.example.com");
  BOOST_TEST(WithRegistries(alias, "nginx", "[aliases]\nnginx = \"\"\n") ==
             "mirror: registry.example.com");
  BOOST_TEST(WithRegistries("[aliases]\nnginx = \"docker.io/library/nginx\"\n", "nginx") ==
             "registry");
  BOOST_TEST(WithRegistries("[aliases]\nnginx = \"Not A Name\"\n", "nginx") == "unknown");
  BOOST_TEST(WithRegistries("[aliases]\nnginx = 1\n", "nginx") == "unknown");
}

BOOST_AUTO_TEST_CASE(refused_registries_conf) {
  for (const char* conf :
       {"registry = 1\n", "registry = [1]\n", "[[registry]]\n",
        "[[registry]]\nprefix = \"a.test\"\n", "[[registry]]\nlocation = \"https://a.test\"\n",
        "[[REGISTRY]]\nlocation = \"a.test\"\n", "[[registry]]\nprefix = \"*.a.test/b\"\n",
        "[[registry]]\nlocation = 1\n", "[[registry]]\nlocation = \"a b\"\n",
        "[[registry]]\nlocation = \"a.test\"\npull-from-mirror = \"all\"\n",
        "[[registry]]\nlocation = \"a.test\"\n[[registry.mirror]]\n",
        "[[registry]]\nlocation = \"a.test\"\nblocked = 1\n", "[registries]\nsearch = 1\n",
        "unqualified-search-registries = \"a\"\n", "Aliases = 1\n"}) {
    BOOST_TEST(WithRegistries(conf) == "unknown", conf);
  }
}

BOOST_AUTO_TEST_CASE(certificates_of_the_node_for_cri_o) {
  Node node;
  node.Runs("cri-o 1.33.1").Has("/etc/containers/certs.d/registry.example.com/ca.crt", "x");
  BOOST_TEST(Text(node.Of(kImage)) == "registry");
  node.Has("/etc/docker/certs.d/registry.example.com/node.cert", "x");
  CheckProblem(node.Of(kImage), "a client certificate");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill
