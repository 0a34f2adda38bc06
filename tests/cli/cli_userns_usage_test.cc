// `waybill userns` and its flags used wrongly: exit code 2, an error that says what is wrong, and
// nothing changed.

#include <boost/test/unit_test.hpp>

#include "tests/support/cli_store.h"
#include "waybill/limits.h"

namespace waybill {
namespace {

using testing::CliStore;
using testing::CommandResult;
using Strings = std::vector<std::string>;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

void CheckUsageError(const CommandResult& result, const std::string& about) {
  BOOST_TEST(result.exit_code == 2, about << ": " << result.out << result.err);
  BOOST_TEST(result.err.starts_with("error: "), about << ": " << result.err);
  BOOST_TEST(result.out == "", about << ": " << result.out);
}

Strings Joined(Strings first, const Strings& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A store with one mapping, which no test of this file may change.
struct Sound {
  Sound() {
    store.Start({"--runtimes", "-"},
                R"({"runtimeHandlers":[{"features":{"user_namespaces":true}}]})");
    BOOST_TEST(Run({"get", "pod"}).exit_code == 0);
    before = store.Run("dump").out;
  }
  ~Sound() { BOOST_TEST(store.Run("dump").out == before); }

  CommandResult Run(const Strings& arguments, const std::string& input = {}) const {
    return store.Run("userns", arguments, input);
  }
  std::string Place(const std::string& name, const std::string& content) const {
    testing::WriteFile(store / name, content);
    return (store / name).string();
  }
  // The error of each command that takes these flags.
  void CheckPool(const Strings& flags, const std::string& message) const {
    for (const Strings& command :
         {Strings{"userns", "get", "other"}, Strings{"userns", "pool"}, Strings{"userns", "list"},
          Strings{"userns", "adopt", "other", "131072", "65536"}, Strings{"start"}}) {
      const CommandResult result =
          store.Run(command[0], Joined({command.begin() + 1, command.end()}, flags));
      CheckUsageError(result, command.back());
      BOOST_TEST(Contains(result.err, message), result.err);
    }
  }
  void CheckSubordinateIds(const std::string& uids, const std::string& gids,
                           const std::string& message) const {
    CheckPool({"--subuids", Place("u", uids), "--subgids", Place("g", gids)}, message);
  }

  CliStore store;
  std::string before;
};

BOOST_AUTO_TEST_SUITE(cli_userns_usage)

BOOST_FIXTURE_TEST_CASE(pools_that_are_none, Sound) {
  CheckPool({"--pool", "100000:7208960"},
            "kubelet user assigned ID 100000 is not a multiple of 65536");
  CheckPool({"--pool", "65536:13107200", "--ids-per-pod", "131072"},
            "kubelet user assigned ID 65536 is not a multiple of 131072");
  CheckPool({"--pool", "0:7208960"},
            "kubelet user assigned ID 0 must be greater or equal to 65536");
  CheckPool({"--pool", "65536:7208961"},
            "kubelet user assigned IDs length 7208961 is not a multiple of 65536");
  CheckPool({"--pool", "65536:7143424"},
            "kubelet user assigned IDs are not enough to support 110 pods");
  CheckPool({"--max-pods", "65535"},
            "kubelet user assigned IDs are not enough to support 65535 pods");
  CheckPool({"--pool", "131072:4294901760"}, "reach past 4294967295");
  CheckPool({"--pool", "18446744073709486080:18446744073709486080"}, "reach past 4294967295");
  CheckPool({"--ids-per-pod", "65537"},
            "kubelet user namespace length 65537 is not a multiple of 65536");
  CheckPool({"--ids-per-pod", "0"}, "must not be less than 65536");
  CheckPool({"--ids-per-pod", "4294967296"}, "must not be more than 4294967295");
  CheckPool({"--ids-per-pod", "18446744073709551615"}, "must not be more than 4294967295");
}

BOOST_FIXTURE_TEST_CASE(subordinate_ids_that_are_no_pool, Sound) {
  const std::string line = "0: kubelet 65536 7208960\n";
  CheckSubordinateIds(line, "0: kubelet 65536 7274496\n",
                      "mismatched subuids and subgids for user \"kubelet\"");
  CheckSubordinateIds(line + "1" + line, line + "1" + line, "it must contain only one line");
  CheckSubordinateIds("", "", "invalid line \"\"");
  CheckSubordinateIds("gar\x1b[2Jbage", "gar\x1b[2Jbage", "invalid line \"gar\\u001b[2Jbage\"");
  CheckSubordinateIds("0: kubelet 65536 x", "0: kubelet 65536 x",
                      "error parsing line \"0: kubelet 65536 x\"");
  CheckSubordinateIds("0: kubelet 0 7208960", "0: kubelet 0 7208960",
                      "kubelet user assigned ID 0 must be greater or equal to 65536");
  const std::string flood(1 << 20, 'x');
  CheckSubordinateIds(flood, flood, "has more than 4096 bytes");
  const std::string file = Place("u", line);
  CheckPool({"--subuids", file}, "--subgids: it is missing");
  CheckPool({"--subgids", file}, "--subuids: it is missing");
  CheckPool({"--subuids", file, "--subgids", "/nonexistent"}, "/nonexistent could not be read");
  CheckPool({"--subuids", "-", "--subgids", file}, "--subuids: it takes a file");
  CheckPool({"--subuids", file, "--subgids", ""}, "empty");
  BOOST_TEST(Run({"pool", "--subuids", file, "--subgids", file}).exit_code == 0);
}

BOOST_FIXTURE_TEST_CASE(flags_of_the_pool, Sound) {
  for (const std::string pool : {"", "65536", ":", "65536:", ":65536", "-65536:65536",
                                 "65536:7208960:1", "0x10000:7208960", "65536 :7208960"}) {
    CheckPool({"--pool", pool}, "--pool: ");
  }
  for (const std::string number : {"", "x", "-1", "1e5", "99999999999999999999"}) {
    CheckPool({"--ids-per-pod", number}, "--ids-per-pod: ");
    CheckPool({"--max-pods", number}, "--max-pods: ");
  }
  CheckPool({"--pool", "65536:7208960", "--subuids", "f"}, "--pool: it excludes");
  for (const Strings& flags : {Strings{"--pool", "65536:7208960"}, Strings{"--max-pods", "1"},
                               Strings{"--ids-per-pod", "65536"}, Strings{"--subgids", "f"}}) {
    CheckPool(Joined(flags, {"--no-user-namespaces"}),
              "--no-user-namespaces: it excludes " + flags[0]);
  }
}

BOOST_FIXTURE_TEST_CASE(pod_uids_that_can_be_none, Sound) {
  for (const std::string& uid :
       {std::string(), std::string("."), std::string(".."), std::string("a/b"), std::string("a b"),
        std::string("a\n"), std::string(kMaxPodUidBytes + 1, 'u')}) {
    for (const Strings& arguments :
         {Strings{"get", uid}, Strings{"release", uid}, Strings{"adopt", uid, "131072", "65536"}}) {
      const CommandResult result = Run(arguments);
      CheckUsageError(result, arguments[0] + " " + uid);
      BOOST_TEST(Contains(result.err, "pod UID"), result.err);
    }
  }
  BOOST_TEST(Run({"release", std::string(kMaxPodUidBytes, 'u')}).exit_code == 1);
}

BOOST_FIXTURE_TEST_CASE(ranges_that_no_pod_can_have, Sound) {
  for (const Strings& range :
       {Strings{"0", "65536"}, Strings{"65537", "65536"}, Strings{"131072", "1"},
        Strings{"131072", "0"}, Strings{"65536", "131072"}, Strings{"4294901760", "65536"},
        Strings{"2147483648", "2147483648"}, Strings{"4294967296", "65536"},
        Strings{"18446744073709486080", "65536"},
        Strings{"18446744073709486080", "18446744073709486080"}, Strings{"x", "65536"},
        Strings{"131072", ""}, Strings{"131072", "99999999999999999999"}}) {
    CheckUsageError(Run({"adopt", "other", range[0], range[1]}), range[0] + " " + range[1]);
  }
  for (const char* const length : {"", "x", "-1", "4294967296", "18446744073709551615"}) {
    CheckUsageError(Run({"get", "other", "--length", length}), length);
  }
  CheckUsageError(Run({"get", "other", "--length", "0"}), "no length");
}

BOOST_FIXTURE_TEST_CASE(arguments_that_need_or_exclude_each_other, Sound) {
  const std::string list = Place("pods.json", R"({"items":[]})");
  for (const Strings& wrong : std::vector<Strings>{
           {},
           {""},
           {"nonsense"},
           {"get"},
           {"get", "a", "b"},
           {"get", "a", "--host-users", "yes"},
           {"get", "a", "--host-users", ""},
           {"get", "a", "--lost"},
           {"get", "a", "--token", "1"},
           {"get", "a", "--runtime", std::string(kMaxRuntimeHandlerBytes + 1, 'h')},
           {"release"},
           {"release", "a", "--lost"},
           {"release", "a", "--max-pods", "1"},
           {"release", "a", "--runtime", ""},
           {"list", "a"},
           {"list", "--host-users", "true"},
           {"pool", "a"},
           {"adopt", "a"},
           {"adopt", "a", "131072"},
           {"adopt", "a", "131072", "65536", "more"},
           {"cleanup"},
           {"cleanup", "a"},
           {"cleanup", "--pool", "65536:7208960"},
           {"cleanup", "--begin", "--token", "1"},
           {"cleanup", "--existing", list},
           {"cleanup", "--existing", list, "--running", list},
           {"cleanup", "--existing", list, "--token", "1"},
           {"cleanup", "--running", list, "--token", "1"},
           {"cleanup", "--existing", "-", "--running", "-", "--token", "1"},
           {"cleanup", "--existing", list, "--running", list, "--token", "x"},
           {"cleanup", "--existing", list, "--running", list, "--token", "18446744073709551615"}}) {
    CheckUsageError(Run(wrong, R"({"items":[]})"), wrong.empty() ? "nothing" : wrong.back());
  }
  for (const std::string& directory : {std::string(), std::string("/nonexistent"), list}) {
    CheckUsageError(store.Run("start", {"--pods-dir", directory}), directory);
  }
}

// Each of them, taken for an empty list, would release a range.
BOOST_FIXTURE_TEST_CASE(lists_of_pods_that_cannot_be_read, Sound) {
  const std::string good = Place("good.json", R"({"items":[{"metadata":{"uid":"x"}}]})");
  std::string token = Run({"cleanup", "--begin"}).out;
  token.pop_back();
  for (const std::string& content :
       {std::string(), std::string("{"), std::string("[]"), std::string("{}"), std::string("null"),
        std::string(R"({"items":7})"), std::string(R"({"items":[{}]})"),
        std::string(R"({"items":[{"metadata":{}}]})"),
        std::string(R"({"items":[{"metadata":{"uid":""}}]})"),
        std::string(R"({"items":[],"metadata":{"continue":"abc"}})"),
        std::string(R"({"items":[]} more)"), std::string("\xff\xfe"),
        std::string(R"({"images":[]})")}) {
    const std::string file = Place("pods.json", content);
    for (const Strings& lists : {Strings{"--existing", file, "--running", good},
                                 Strings{"--existing", good, "--running", file}}) {
      const CommandResult result = Run(Joined({"cleanup", "--token", token}, lists));
      CheckUsageError(result, content);
      BOOST_TEST(Contains(result.err, file), result.err);
      BOOST_TEST(Contains(result.err, "hint: "), result.err);
    }
  }
  const auto huge = store / "huge.json";
  testing::WriteFile(huge, "{");
  std::filesystem::resize_file(huge, kMaxDocumentBytes + 1);  // sparse
  CheckUsageError(
      Run({"cleanup", "--token", token, "--existing", huge.string(), "--running", good}), "huge");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace waybill
