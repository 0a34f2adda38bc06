// Files of a kubelet, and what is taken of them.

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/userns_file.h"
#include "store/base/options.h"
#include "store/base/quote.h"
#include "tests/support/child_process.h"
#include "tests/support/expect_error.h"
#include "tests/support/store_fixture.h"
#include "tests/support/temp_dir.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

// What kubelets write and read. Their own files, and their verdicts: `replay`, kubelet_export.
BOOST_AUTO_TEST_SUITE(kubelet_format)

namespace {

using namespace std::string_literals;

std::string PulledFile(const std::string& fields) {
  return R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1")" + fields +
         "}";
}

}  // namespace

BOOST_AUTO_TEST_CASE(strings_are_escaped_as_go_does) {
  ImagePulledRecord record;
  record.image_ref = "<&>\"\\\b\f\n\r\t\x01\x7f\0é\u2028\u2029\xff/"s;
  const std::string expected =
      R"({"kind":"ImagePulledRecord","apiVersion":"kubelet.config.k8s.io/v1beta1",)"
      R"("lastUpdatedTime":null,"imageRef":"\u003c\u0026\u003e\"\\\b\f\n\r\t\u0001)"
      "\x7f"
      R"(\u0000é\u2028\u2029\ufffd/"})"
      "\n";
  BOOST_TEST(EncodePulledRecord(record) == expected);
}

// In place of a key, of a value, or of the file's kind.
BOOST_AUTO_TEST_CASE(errors_never_quote_what_a_record_holds) {
  const std::string files[] = {
      R"({"kind":"5ecret"})",
      R"({"kind":"ImagePulledRecord","apiVersion":"5ecret"})",
      PulledFile(R"(,"5ecret":1)"),
      PulledFile(R"(,"lastUpdatedTime":"5ecret")"),
      PulledFile(R"(,"credentialMapping":"5ecret")"),
      PulledFile(R"(,"credentialMapping":{"5ecret":7})"),
      PulledFile(R"(,"credentialMapping":{"5ecret":{},"5ecret":{}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"5ecret":7}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"kubernetesSecrets":[{"5ecret":"x"}]}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"kubernetesSecrets":["5ecret"]}})"),
      PulledFile(R"(,"credentialMapping":{"a":{"nodePodsAccessible":"5ecret"}})")};
  for (const std::string& file : files) {
    const auto record = DecodePulledRecord(file);
    BOOST_REQUIRE_MESSAGE(!record, file);
    BOOST_TEST(record.error().ToString().find("5ecret") == std::string::npos,
               record.error().ToString());
    BOOST_TEST(!DecodePullIntent(file).has_value());
  }
}

BOOST_AUTO_TEST_CASE(bounds_are_errors) {
  const auto code = [](const std::string& fields) {
    const auto record = DecodePulledRecord(PulledFile(fields));
    return record ? "accepted" : std::string(ErrorCodeName(record.error().code));
  };
  const auto ref = [&](std::size_t size) {
    return code(",\"imageRef\":\"" + std::string(size, 'r') + "\"");
  };
  BOOST_TEST(ref(kMaxImageRefBytes) == "accepted");
  BOOST_TEST(ref(kMaxImageRefBytes + 1) == "limitExceeded");

  const auto uid = [&](std::size_t size) {
    return code(R"(,"credentialMapping":{"a":{"kubernetesServiceAccounts":[{"uid":")" +
                std::string(size, 'u') + "\"}]}}");
  };
  BOOST_TEST(uid(kMaxCoordinateBytes) == "accepted");
  BOOST_TEST(uid(kMaxCoordinateBytes + 1) == "limitExceeded");

  const auto names = [&](std::size_t count) {
    std::string mapping;
    for (std::size_t i = 0; i < count; ++i) {
      mapping += (i == 0 ? "\"" : ",\"") + std::to_string(i) + "\":null";
    }
    return code(",\"credentialMapping\":{" + mapping + "}");
  };
  BOOST_TEST(names(kMaxImageNamesPerRecord) == "accepted");
  BOOST_TEST(names(kMaxImageNamesPerRecord + 1) == "limitExceeded");

  const auto secrets = [&](std::size_t count) {
    std::string list = "{}";
    for (std::size_t i = 1; i < count; ++i) list += ",{}";
    return code(R"(,"credentialMapping":{"a":{"kubernetesSecrets":[)" + list + "]}}");
  };
  BOOST_TEST(secrets(kMaxCredentialsPerName) == "accepted");
  BOOST_TEST(secrets(kMaxCredentialsPerName + 1) == "limitExceeded");

  BOOST_TEST(code(std::string(kMaxRecordFileBytes, ' ')) == "limitExceeded");
}

BOOST_AUTO_TEST_SUITE_END()

// Which files of a pods directory are read, and what is recorded for those that can't be.
BOOST_AUTO_TEST_SUITE(pods_directory)

namespace {

namespace fs = std::filesystem;
using internal::EncodeUsernsFile;
using internal::ReadPodsDirectory;
using internal::UsernsFile;

// A pods directory, to be filled.
class Pods {
 public:
  Pods() { fs::create_directory(path()); }
  fs::path path() const { return dir_ / "pods"; }
  fs::path Add(const std::string& pod_uid) const {
    fs::create_directory(path() / pod_uid);
    return path() / pod_uid / "userns";
  }
  std::vector<UsernsFile> Read() const {
    auto files = ReadPodsDirectory(path());
    BOOST_REQUIRE(files.has_value());
    return *files;
  }
  // There is one file, and its range is unknown.
  void CheckUnknown(std::string_view about) const {
    const std::vector<UsernsFile> files = Read();
    BOOST_TEST_REQUIRE(files.size() == 1U);
    BOOST_TEST(!files[0].mapping.has_value());
    BOOST_TEST(files[0].ranges.empty());
    BOOST_TEST(files[0].problem.find(about) != std::string::npos, files[0].problem);
  }
  const TempDir& dir() const { return dir_; }

 private:
  TempDir dir_;
};

struct WithPods {
  const Pods pods;
};

}  // namespace

// A kubelet follows it, whoever can change it.
BOOST_FIXTURE_TEST_CASE(a_symlink_is_followed_if_nobody_else_can_change_it, WithPods) {
  WriteFile(pods.Add("a"), EncodeUsernsFile(65536, 65536));
  fs::create_directory(pods.dir() / "way");
  fs::rename(pods.path(), pods.dir() / "way" / "pods");
  fs::create_directory_symlink("way/pods", pods.dir() / "link");
  BOOST_TEST(Must(ReadPodsDirectory(pods.dir() / "link/")).size() == 1U);
  fs::permissions(pods.dir() / "way", fs::perms::all);
  for (const std::string name : {"link", "link/", "link/."}) {
    const Error refused =
        ExpectError(ReadPodsDirectory(pods.dir() / name), ErrorCode::kUnsafePath, "symlink");
    BOOST_TEST(!refused.hint.empty());
  }
}

BOOST_FIXTURE_TEST_CASE(each_directory_is_a_pod_and_nothing_else_is, WithPods) {
  const std::string content = EncodeUsernsFile(65536, 65536);
  WriteFile(pods.Add("b"), content);
  WriteFile(pods.Add("a"), content);
  WriteFile(pods.Add(".hidden"), content);
  pods.Add("without");
  WriteFile(pods.path() / "file", content);
  WriteFile(pods.path() / "userns", content);
  fs::create_directory_symlink("without", pods.path() / "link");
  fs::create_symlink("file", pods.path() / "link-to-file");
  fs::create_symlink("nothing", pods.path() / "link-to-nothing");
  BOOST_REQUIRE(mkfifo((pods.path() / "fifo").c_str(), 0600) == 0);
  const std::vector<UsernsFile> files = pods.Read();
  BOOST_TEST_REQUIRE(files.size() == 3U);
  BOOST_TEST(files[0].pod_uid == ".hidden");
  BOOST_TEST(files[1].pod_uid == "a");
  BOOST_TEST(files[2].pod_uid == "b");
  for (const UsernsFile& file : files) BOOST_TEST(file.mapping.has_value());
}

// Its range is not known then.
BOOST_FIXTURE_TEST_CASE(what_somebody_else_may_have_written_is_a_problem, WithPods) {
  WriteFile(pods.Add("mode"), EncodeUsernsFile(65536, 65536));
  BOOST_REQUIRE(::chmod((pods.path() / "mode" / "userns").c_str(), 0666) == 0);
  WriteFile(pods.Add("link"), EncodeUsernsFile(2 * 65536, 65536));
  fs::create_hard_link(pods.path() / "link" / "userns", pods.path() / "link" / "other");
  if (::geteuid() == 0) {
    WriteFile(pods.Add("owner"), EncodeUsernsFile(3 * 65536, 65536));
    BOOST_REQUIRE(::chown((pods.path() / "owner" / "userns").c_str(), 65534, 65534) == 0);
  }
  for (const UsernsFile& file : pods.Read()) {
    BOOST_TEST_CONTEXT(file.pod_uid) {
      BOOST_TEST(!file.mapping.has_value());
      BOOST_TEST(file.ranges.empty());
      BOOST_TEST(file.problem.starts_with("somebody else may have written it: "));
    }
  }
}

// A kubelet follows it.
BOOST_FIXTURE_TEST_CASE(a_pod_behind_a_symlink_is_a_problem, WithPods) {
  WriteFile(pods.Add("a"), EncodeUsernsFile(65536, 65536));
  fs::create_directory_symlink("a", pods.path() / "link");
  const std::vector<UsernsFile> files = pods.Read();
  BOOST_TEST_REQUIRE(files.size() == 2U);
  BOOST_TEST(files[1].pod_uid == "link");
  BOOST_TEST(!files[1].mapping.has_value());
  BOOST_TEST(files[1].ranges.empty());
  BOOST_TEST(files[1].problem.find("symlink") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(what_is_no_regular_file_is_a_problem) {
  const auto in_place = [](std::string_view about, const auto& make) {
    const Pods pods;
    make(pods.Add("uid"));
    pods.CheckUnknown(about);
  };
  in_place("not a regular file", [](const fs::path& path) { fs::create_directory(path); });
  in_place("not a regular file",
           [](const fs::path& path) { BOOST_REQUIRE(mkfifo(path.c_str(), 0600) == 0); });
  in_place("symlink", [](const fs::path& path) {
    WriteFile(path.parent_path() / "other", EncodeUsernsFile(65536, 65536));
    fs::create_symlink("other", path);
  });
  in_place("symlink", [](const fs::path& path) { fs::create_symlink("nothing", path); });
  in_place("can't be opened", [](const fs::path& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    BOOST_REQUIRE(path.string().size() < sizeof(address.sun_path));
    std::memcpy(address.sun_path, path.c_str(), path.string().size());
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    BOOST_REQUIRE(fd >= 0);
    BOOST_REQUIRE(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    close(fd);
  });
}

BOOST_FIXTURE_TEST_CASE(files_are_read_up_to_their_bound, WithPods) {
  std::string content = EncodeUsernsFile(65536, 65536);
  content.resize(kMaxUsernsFileBytes, '\n');
  WriteFile(pods.Add("uid"), content);
  BOOST_TEST(pods.Read().at(0).mapping.has_value());
  WriteFile(pods.Add("uid"), content + "\n");
  pods.CheckUnknown("larger than 65536 bytes");
  WriteFile(pods.Add("uid"), "");
  pods.CheckUnknown("expected an object");
}

BOOST_FIXTURE_TEST_CASE(what_may_not_be_read_is_a_problem, WithPods) {
  WriteFile(pods.Add("file"), EncodeUsernsFile(65536, 65536));
  WriteFile(pods.Add("directory"), EncodeUsernsFile(131072, 65536));
  fs::permissions(pods.dir().path(), fs::perms::all);
  fs::permissions(pods.path(), fs::perms::all);
  fs::permissions(pods.path() / "file", fs::perms::all);
  fs::permissions(pods.path() / "file" / "userns", fs::perms::none);
  fs::permissions(pods.path() / "directory", fs::perms::none);
  const std::string answer = InChild([&]() -> std::string {
    if (geteuid() == 0 && seteuid(65534) != 0) return "seteuid";
    const auto files = ReadPodsDirectory(pods.path());
    if (!files) return files.error().ToString();
    std::string problems;
    for (const UsernsFile& file : *files) {
      problems += file.pod_uid + ": " + (file.mapping ? "read" : file.problem) + ". ";
    }
    return problems;
  });
  fs::permissions(pods.path() / "directory", fs::perms::owner_all);
  BOOST_TEST(answer ==
             "directory: its directory can't be opened: Permission denied. "
             "file: it can't be opened: Permission denied. ");
}

BOOST_FIXTURE_TEST_CASE(names_are_escaped_where_they_could_do_harm, WithPods) {
  const std::string hostile = "\x1b[31m\xff\n\"";
  const std::string longest(255, 'x');
  for (const std::string& name : {hostile, longest}) WriteFile(pods.Add(name), "{");
  const std::vector<UsernsFile> files = pods.Read();
  BOOST_TEST_REQUIRE(files.size() == 2U);
  BOOST_TEST(files[0].pod_uid == hostile);
  BOOST_TEST(files[0].source == R"(pods/"\u001b[31m\ufffd\n\""/userns)");
  BOOST_TEST(files[1].source == "pods/" + longest + "/userns");
  BOOST_TEST(internal::ShownPodUid("") == R"("")");
  BOOST_TEST(internal::ShownPodUid("a b") == R"("a b")");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
