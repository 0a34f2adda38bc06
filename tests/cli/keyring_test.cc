// Which registries of a docker config apply to an image, as the kubelet's keyring says.

#include "bindings/cli/keyring.h"

#include <boost/test/unit_test.hpp>
#include <string>
#include <vector>


namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(keyring)

namespace {

// The names of the Secrets that apply, in order. Each holds one registry.
std::string Applying(const std::vector<std::string>& registries, const std::string& image) {
  cli::Keyring keyring;
  for (std::size_t i = 0; i < registries.size(); ++i) {
    keyring.Add({.uid = "u", .namespace_name = "n", .name = std::to_string(i)},
                {{.registry = registries[i], .hash = "h" + std::to_string(i)}});
  }
  std::string names;
  for (const ImagePullSecret& secret : keyring.Lookup(image)) {
    BOOST_TEST(secret.credential_hash == "h" + secret.name);
    names += secret.name;
  }
  return names;
}

bool Applies(const std::string& registry, const std::string& image) {
  return !Applying({registry}, image).empty();
}

}  // namespace

BOOST_AUTO_TEST_CASE(a_registry_applies_to_its_repositories) {
  const std::string image = "hello.kubernetes.io/foo/bar:v1";
  for (const char* registry :
       {"hello.kubernetes.io", "http://hello.kubernetes.io", "https://hello.kubernetes.io",
        "https://hello.kubernetes.io/", "hello.kubernetes.io/foo", "http://hello.kubernetes.io/foo",
        "https://hello.kubernetes.io/foo/bar", "https://hello.kubernetes.io/v1/",
        "https://hello.kubernetes.io/v2/", "hello.kubernetes.io/v2/foo", "hello.kubernetes.io/fo",
        "user@hello.kubernetes.io", "hello.kubernetes.io?x=y", "hello.kubernetes.io#f",
        "hello.kubernetes.io/f%6fo"}) {
    BOOST_TEST(Applies(registry, image), registry);
  }
  for (const char* registry :
       {"", "kubernetes.io", "hello.kubernetes", "hello.kubernetes.io/bar",
        "hello.kubernetes.io/v1", "hello.kubernetes.io:5000", "xhello.kubernetes.io",
        "hello.kubernetes.io.", "/foo", "HELLO.kubernetes.io", "HTTPS://hello.kubernetes.io",
        "ftp://hello.kubernetes.io", "hello.kubernetes.io/foo/bar/",
        "hello.kubernetes.io/foo/bar:v1", "docker.io", "index.docker.io"}) {
    BOOST_TEST(!Applies(registry, image), registry);
  }
}

BOOST_AUTO_TEST_CASE(stars_stand_for_parts_of_hosts) {
  const std::string image = "a.b-c.example.com/x/y";
  for (const char* registry :
       {"*.b-c.example.com", "*.*.example.com", "a.*.example.com", "a.b*.example.com",
        "a.*-c.example.com", "*.*.*.*", "a.b-c.example.*", "a.b-c.ex*m*e.com",
        "*.b-c.example.com/x", "a.b[+-]c.example.com", "[a-c].b-c.example.com"}) {
    // "[+-]" has a range without an end: Go takes the pattern for malformed.
    const bool malformed = std::string(registry).find("+-]") != std::string::npos;
    // At the start of a host a bracket opens an IPv6 address for Go, which it is not closed as.
    const bool address = registry[0] == '[';
    BOOST_TEST(Applies(registry, image) == !(malformed || address), registry);
  }
  BOOST_TEST(Applies("x[a-c]z.io", "xbz.io/y"));
  BOOST_TEST(!Applies("x[a-c]z.io", "xdz.io/y"));
  BOOST_TEST(!Applies("x[a-c.io", "xb.io/y"));
  for (const char* registry :
       {"*.example.com", "*.com", "*", "*.*.*.example.com", "*.b-c.example.com:1",
        "*.b-c.example.com/z", "a.b-c.example.com/*"}) {
    BOOST_TEST(!Applies(registry, image), registry);
  }
  // Time stays bounded.
  const std::string host(250, 'a');
  std::string stars;
  for (int i = 0; i < 120; ++i) stars += "*a";
  BOOST_TEST(!Applies(stars + "b.io", host + ".io/x"));
}

BOOST_AUTO_TEST_CASE(ports_are_equal) {
  BOOST_TEST(Applies("r.io:5000", "r.io:5000/x"));
  BOOST_TEST(Applies("https://r.io:5000/v2/", "r.io:5000/x"));
  BOOST_TEST(!Applies("r.io", "r.io:5000/x"));
  BOOST_TEST(!Applies("r.io:5001", "r.io:5000/x"));
  BOOST_TEST(!Applies("r.io:443", "r.io/x"));
  BOOST_TEST(Applies("r.io:", "r.io/x"));
  BOOST_TEST(!Applies("r.io:port", "r.io/x"));
  BOOST_TEST(Applies("localhost:5000", "localhost:5000/x"));
}

BOOST_AUTO_TEST_CASE(docker_hub_has_several_names) {
  for (const char* image : {"nginx", "nginx:1.27", "library/nginx", "docker.io/library/nginx",
                            "docker.io/team/app:v1", "index.docker.io/library/nginx"}) {
    BOOST_TEST(Applies("index.docker.io", image), image);
    BOOST_TEST(Applies("https://index.docker.io/v1/", image), image);
    BOOST_TEST(Applies("docker.io", image), image);
    BOOST_TEST(!Applies("registry-1.docker.io", image), image);
    // Only where nothing else applies.
    BOOST_TEST(Applying({"index.docker.io", "docker.io"}, image) == "1", image);
  }
  BOOST_TEST(!Applies("index.docker.io", "quay.io/library/nginx"));
  BOOST_TEST(!Applies("index.docker.io/v1", "nginx"));
  BOOST_TEST(Applies("docker.io/library", "nginx"));
  BOOST_TEST(!Applies("docker.io/team", "nginx"));
}

BOOST_AUTO_TEST_CASE(the_most_specific_comes_first) {
  BOOST_TEST(Applying({"r.io", "r.io/team", "*.io", "r.io/team/app"}, "r.io/team/app:v1") ==
             "3102");
  BOOST_TEST(Applying({"r.io", "https://r.io/v1/", "r.io"}, "r.io/x") == "012");
}

BOOST_AUTO_TEST_CASE(what_is_no_url_or_no_image_is_ignored) {
  const std::string control = {'r', '.', 'i', 'o', '\n'};
  for (const std::string& registry :
       {control, std::string("r.io%zz"), std::string("r.io/%"), std::string("r .io"),
        std::string("r.io:5x"), std::string("a b@r.io"), std::string("r|.io"), std::string("[::1"),
        std::string("r.io%41")}) {
    BOOST_TEST(!cli::KeyOfRegistry(registry), registry);
  }
  BOOST_TEST(*cli::KeyOfRegistry("[::1]:5000/x") == "[::1]:5000/x");
  for (const char* image : {"", "UPPER", "a:b:c", "r.io/", " r.io/x"}) {
    BOOST_TEST(!Applies("*", image), image);
    BOOST_TEST(!Applies("r.io", image), image);
  }
  // Any bytes are safe.
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      (void)cli::KeyMatches(text, "r.io/x");
      (void)cli::KeyMatches("r" + text, "r" + text);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
