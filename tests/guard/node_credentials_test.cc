// When the guard may say that the node had no credentials of its own (R19).

#include "guard/node_credentials.h"

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <string>

#include "tests/support/temp_dir.h"

namespace waybill::guard {
namespace {

constexpr const char* kAnImage = "r.example/a/app";

class Seen {
 public:
  Seen() { Write("{}"); }

  void Write(const std::string& content) const { std::ofstream(path_) << content; }
  std::int64_t ChangedAt() const {
    internal::ChangeLook look;
    BOOST_REQUIRE(internal::LookAtChange(path_.c_str(), look));
    return look.changed;
  }
  // Of the file, by a kubelet that began so much later than the file changed last.
  void Look(const std::string& life, std::optional<std::int64_t> later,
            NodeCredentials found = {}) {
    found.files = {path_};
    RunningKubelet kubelet{.life = life};
    if (later) kubelet.began = ChangedAt() + *later;
    seen_.Add(found, kubelet, ChangedAt() + 1'000'000'000);
  }
  bool HadNone(const std::string& life = "1", const std::string& image = kAnImage) const {
    return seen_.HadNone(image, life);
  }

 private:
  testing::TempDir scratch_;
  std::string path_ = (scratch_ / "config.json").string();
  NodeCredentialsSeen seen_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(node_credentials)

BOOST_AUTO_TEST_CASE(nothing_is_known_before_a_look_that_the_kubelet_outlived) {
  Seen seen;
  BOOST_TEST(!seen.HadNone());
  BOOST_TEST(!seen.HadNone(""));
  seen.Look("1", 1);
  BOOST_TEST(seen.HadNone());
  BOOST_TEST(!seen.HadNone("2"));  // it has other flags
  BOOST_TEST(!seen.HadNone(""));
}

BOOST_AUTO_TEST_CASE(a_file_that_changed_since_the_kubelet_began_may_have_had_some) {
  Seen seen;
  seen.Look("1", 0);
  BOOST_TEST(!seen.HadNone());
  seen.Look("2", std::nullopt);  // nobody knows when it began
  BOOST_TEST(!seen.HadNone("2"));
  seen.Look("3", 1);
  BOOST_TEST(seen.HadNone("3"));
  seen.Write("{ }");
  BOOST_TEST(!seen.HadNone("3"));
  seen.Look("3", 1);
  BOOST_TEST(!seen.HadNone("3"));  // whatever it says by now
  seen.Look("4", 1);
  BOOST_TEST(seen.HadNone("4"));
}

BOOST_AUTO_TEST_CASE(what_one_look_shows_counts_for_the_life_of_the_kubelet) {
  Seen seen;
  seen.Look("1", 1, {.held = {{.registry = "r.example", .where = "a file"}}});
  seen.Look("1", 1);
  BOOST_TEST(!seen.HadNone());
  BOOST_TEST(seen.HadNone("1", "other.example/app"));
  seen.Look("1", 1, {.problems = {"a file can't be read"}});
  seen.Look("1", 1);
  BOOST_TEST(!seen.HadNone("1", "other.example/app"));
  // A look at which no flags were known says nothing of the next kubelet.
  seen.Look("2", 1);
  BOOST_TEST(seen.HadNone("2"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::guard
