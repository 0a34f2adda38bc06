// What an export does to what is there.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "migrations/kubelet_files/kubelet_export.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "migrations/kubelet_files/userns_file.h"
#include "tests/support/expect_error.h"
#include "tests/support/good_in_child.h"
#include "tests/support/kubelet_content.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "tests/support/store_fixture.h"
#include "tests/support/tree.h"
#include "waybill/values.h"

namespace waybill::testing {

// What an export does to the directory: what it puts in place, keeps aside, leaves alone, refuses.
BOOST_AUTO_TEST_SUITE(export_directory)

namespace {

namespace fs = std::filesystem;
using internal::ExportKubeletDirectory;

constexpr Timestamp kNow{1767323045, 0};  // 2026-01-02T03:04:05Z
constexpr const char* kAside = "before-export-20260102T030405Z";

KubeletContent SomeContent() {
  KubeletContent content;
  ImagePulledRecord record;
  record.image_ref = kRef;
  record.last_updated = kNow;
  content.records = {record};
  content.intents = {{std::string(kImage)}};
  content.now = kNow;
  return content;
}

// A kubelet directory with image_manager/ in it.
class KubeletDirectory {
 public:
  KubeletDirectory() { fs::create_directory(image_manager()); }
  const fs::path& path() const { return dir_.path(); }
  fs::path image_manager() const { return dir_ / "image_manager"; }
  Tree tree() const { return TreeOf(image_manager()); }

  Result<ExportReport> Export(const KubeletContent& content = SomeContent()) const {
    return ExportKubeletDirectory(content, {.kubelet_directory = path()});
  }
  // The export refuses, and changes nothing.
  void CheckRefused(ErrorCode code, std::string_view about) const {
    const Tree before = TreeOf(path());
    ExpectError(Export(), code, about);
    BOOST_TEST((TreeOf(path()) == before));
  }
  // The exported files are in place.
  void CheckPlaced() const {
    const Tree now = tree();
    const auto at = [&](std::string_view folder, std::string_view key) {
      return now.at(RecordFile(folder, key).lexically_relative("image_manager").string());
    };
    BOOST_TEST(at("pulled", kRef) ==
               internal::ExportedForm(EncodePulledRecord(SomeContent().records[0])));
    BOOST_TEST(at("pulling", kImage) ==
               internal::ExportedForm(EncodePullIntent(SomeContent().intents[0])));
    BOOST_TEST(!now.contains("export.tmp"));
  }

 private:
  TempDir dir_;
};

struct WithKubelet {
  const KubeletDirectory kubelet;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(what_was_there_is_kept, WithKubelet) {
  const fs::path at = kubelet.image_manager();
  WriteRecordFile(kubelet.path(), "pulled", kRef, "an old record");
  WriteRecordFile(kubelet.path(), "pulling", kImage, "an old intent");
  WriteRecordFile(kubelet.path(), "observed-preloaded", kRef, "of old");
  WriteFile(at / "pulled" / "sha256-x.tmp", "unfinished");
  WriteFile(at / "waybill", "the witness");
  fs::create_directory(at / "else");
  WriteFile(at / "else" / "file", "somebody's");
  const Tree before = kubelet.tree();

  const ExportReport report = Must(kubelet.Export());
  BOOST_TEST(report.replaced_path == (at / kAside).string());
  kubelet.CheckPlaced();
  Tree aside = TreeOf(at / kAside);
  aside["waybill"] = "the witness";
  aside["else"] = "directory";
  aside["else/file"] = "somebody's";
  BOOST_TEST((aside == before));
  BOOST_TEST(ReadFile(at / "waybill") == "the witness");
  BOOST_TEST(ReadFile(at / "else" / "file") == "somebody's");
  // A preloaded record could open an image that is closed now.
  BOOST_TEST(fs::is_empty(at / "observed-preloaded"));

  // In the same second.
  const Tree first = TreeOf(at / kAside);
  const ExportReport again = Must(kubelet.Export());
  BOOST_TEST(again.replaced_path == (at / (std::string(kAside) + "-2")).string());
  BOOST_TEST((TreeOf(at / kAside) == first));
  kubelet.CheckPlaced();
}

// A kubelet ran without waybill: its records must neither be lost nor opened.
BOOST_FIXTURE_TEST_CASE(files_that_no_import_took_stay_closed, WithKubelet) {
  ImagePulledRecord record = SomeContent().records[0];
  record.credential_mapping["name"] = WithSecret(kSecretA);
  WriteRecordFile(kubelet.path(), "pulled", kRef, EncodePulledRecord(record));
  record.image_ref = "of the kubelet";
  WriteRecordFile(kubelet.path(), "pulled", "of the kubelet", EncodePulledRecord(record));
  WriteRecordFile(kubelet.path(), "pulled", "misplaced", EncodePulledRecord(record));
  WriteRecordFile(kubelet.path(), "pulled", "broken", "{");
  WriteRecordFile(kubelet.path(), "pulling", "broken", "{");
  WriteRecordFile(kubelet.path(), "pulling", "image", EncodePullIntent({"image"}));
  const ExportReport report = Must(kubelet.Export());
  kubelet.CheckPlaced();
  const KubeletContent now = ContentOf(kubelet.path());
  BOOST_TEST(report.records + report.intents + report.closed == 7U);
  BOOST_TEST(now.quarantine.size() == report.closed);
  BOOST_TEST(now.quarantine.size() >= 3U);
  BOOST_TEST_REQUIRE(now.intents.size() == 2U);
  BOOST_TEST(now.intents[0].image == "image");
  for (const ImagePulledRecord& kept : now.records) BOOST_TEST(kept.credential_mapping.empty());
}

BOOST_FIXTURE_TEST_CASE(files_that_an_import_took_do_not_come_back, WithKubelet) {
  ImagePulledRecord record = SomeContent().records[0];
  for (const std::string ref : {"pruned", "pruned, then pulled by the kubelet"}) {
    record.image_ref = ref;
    WriteRecordFile(kubelet.path(), "pulled", ref, EncodePulledRecord(record));
  }
  WriteRecordFile(kubelet.path(), "pulled", "broken", "{");
  WriteRecordFile(kubelet.path(), "pulling", "done", EncodePullIntent({"done"}));
  KubeletContent content = SomeContent();
  for (const auto folder : {internal::KubeletFolder::kPulled, internal::KubeletFolder::kPulling}) {
    const fs::path path = kubelet.image_manager() / internal::FolderName(folder);
    for (const auto& entry : fs::directory_iterator(path)) {
      const auto file = Must(internal::ReadKubeletFile(kubelet.image_manager(), folder,
                                                       entry.path().filename().string(),
                                                       internal::OnReadError::kFail));
      content.imported.emplace(file.path, file.identity.value());
    }
  }
  record.last_updated->seconds += 60;
  WriteRecordFile(kubelet.path(), "pulled", record.image_ref, EncodePulledRecord(record));
  const ExportReport report = Must(kubelet.Export(content));
  BOOST_TEST(report.records == 2U);
  BOOST_TEST(report.without_credentials == 1U);
  BOOST_TEST(report.intents == 1U);
  BOOST_TEST(report.closed == 0U);
}

BOOST_AUTO_TEST_CASE(whatever_stands_in_the_way_is_moved_away) {
  for (const std::string kind : {"file", "symlink", "nothing in it"}) {
    const KubeletDirectory kubelet;
    const fs::path staging = kubelet.image_manager() / "export.tmp";
    const fs::path target = kubelet.path() / "target";
    fs::create_directory(target);
    if (kind == "file") WriteFile(staging, "content");
    if (kind == "symlink") fs::create_directory_symlink(target, staging);
    if (kind == "nothing in it") fs::create_directories(staging / "pulled");
    Must(kubelet.Export());
    kubelet.CheckPlaced();
    const fs::path aside = kubelet.image_manager() / kAside;
    BOOST_TEST(fs::is_empty(target));
    BOOST_TEST(fs::exists(aside) == (kind != "nothing in it"));
    BOOST_TEST(fs::is_symlink(aside) == (kind == "symlink"));
  }
}

BOOST_AUTO_TEST_CASE(symlinks_are_not_followed) {
  for (const std::string link : {"kubelet/", "image_manager", "image_manager/pulling"}) {
    const KubeletDirectory kubelet;
    const TempDir elsewhere;
    if (link == "kubelet/") {
      fs::create_directory_symlink(kubelet.path(), elsewhere / "kubelet");
      ExpectError(ExportKubeletDirectory(SomeContent(), {.kubelet_directory = elsewhere / link}),
                  ErrorCode::kUnsafePath);
      BOOST_TEST(fs::is_empty(kubelet.image_manager()));
      continue;
    }
    fs::remove(kubelet.path() / link);
    fs::create_directory_symlink(elsewhere.path(), kubelet.path() / link);
    kubelet.CheckRefused(ErrorCode::kUnsafePath, "symlink");
    BOOST_TEST(fs::is_empty(elsewhere.path()));
  }
}

BOOST_AUTO_TEST_CASE(what_others_can_change_is_not_written_to) {
  for (const std::string path : {"", "image_manager", "image_manager/observed-preloaded"}) {
    const KubeletDirectory kubelet;
    fs::create_directories(kubelet.path() / path);
    BOOST_REQUIRE(chmod((kubelet.path() / path).c_str(), 0777) == 0);
    kubelet.CheckRefused(ErrorCode::kUnsafePath, "everybody");
    if (geteuid() != 0) continue;
    BOOST_REQUIRE(chmod((kubelet.path() / path).c_str(), 0700) == 0);
    BOOST_REQUIRE(chown((kubelet.path() / path).c_str(), 4711, 4711) == 0);
    kubelet.CheckRefused(ErrorCode::kUnsafePath, "belongs to user 4711");
  }
}

BOOST_FIXTURE_TEST_CASE(two_exports_at_once_do_not_mix, WithKubelet) {
  const int other = open(kubelet.image_manager().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  BOOST_REQUIRE(other >= 0);
  BOOST_REQUIRE(flock(other, LOCK_EX) == 0);
  kubelet.CheckRefused(ErrorCode::kOwned, "another export");
  close(other);
  Must(kubelet.Export());
  kubelet.CheckPlaced();
}

BOOST_FIXTURE_TEST_CASE(a_full_disk_changes_nothing, WithKubelet) {
  ExpectGoodInChild([&]() -> std::string {
    if (!MountSmallFileSystem(kubelet.path(), "1m")) return kMayNotMount;
    WriteRecordFile(kubelet.path(), "pulled", "old", "an old record");
    WriteRecordFile(kubelet.path(), "pulling", "old", "an old intent");
    if (chmod(kubelet.image_manager().c_str(), 0700) != 0) return "chmod";
    for (const std::string folder : {"pulled", "pulling"}) {
      if (chmod((kubelet.image_manager() / folder).c_str(), 0700) != 0) return "chmod";
    }
    const Tree before = kubelet.tree();
    KubeletContent content = SomeContent();
    for (int i = 0; i < 1000; ++i) {
      ImagePulledRecord record = content.records[0];
      record.image_ref = std::to_string(i);
      content.records.push_back(record);
    }
    const auto full = kubelet.Export(content);
    if (full) return "it had room";
    if (full.error().code != ErrorCode::kDiskFull) return full.error().ToString();
    if (kubelet.tree() != before) return "something was changed";
    const auto fits = kubelet.Export();
    return fits ? "good" : fits.error().ToString();
  });
}

BOOST_AUTO_TEST_SUITE_END()

// What an export does with ID mappings: which files it writes, keeps aside, leaves alone, and what
// stops it before it writes any.
BOOST_AUTO_TEST_SUITE(userns_export)

namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using internal::EncodeUsernsFile;
using internal::ExportKubeletDirectory;

constexpr Timestamp kNow{1767323045, 0};  // 2026-01-02T03:04:05Z
const std::string kAside = "userns.before-export-20260102T030405Z";

PodMapping Allocation(std::string pod_uid, std::uint32_t block, std::uint32_t blocks = 1) {
  PodMapping allocation;
  allocation.pod_uid = std::move(pod_uid);
  allocation.host_id = block * static_cast<std::uint32_t>(kIdsPerBlock);
  allocation.length = blocks * static_cast<std::uint32_t>(kIdsPerBlock);
  return allocation;
}

std::string FileOf(const PodMapping& allocation) {
  return EncodeUsernsFile(allocation.host_id, allocation.length);
}

// A kubelet directory with pods/ in it.
class KubeletDirectory {
 public:
  KubeletDirectory() { fs::create_directory(pods()); }
  const fs::path& path() const { return dir_.path(); }
  fs::path pods() const { return dir_ / "pods"; }
  Tree tree() const { return TreeOf(pods()); }
  // The place of the pod's file.
  fs::path Pod(const std::string& pod_uid) const {
    fs::create_directory(pods() / pod_uid);
    return pods() / pod_uid / "userns";
  }
  std::string At(const std::string& pod_uid) const { return ReadFile(pods() / pod_uid / "userns"); }

  Result<ExportReport> Export(std::vector<PodMapping> allocations,
                              std::vector<QuarantinedPod> held = {}) const {
    KubeletContent content;
    content.intents = {{"an image"}};
    content.allocations = std::move(allocations);
    content.held = std::move(held);
    content.now = kNow;
    return ExportKubeletDirectory(content, {.kubelet_directory = path()});
  }
  std::uint64_t Exported(const std::vector<PodMapping>& allocations) const {
    const ExportReport report = Must(Export(allocations));
    BOOST_TEST(!fs::is_empty(dir_ / "image_manager" / "pulling"));
    return report.id_mappings;
  }
  // It refuses, and writes nothing.
  void CheckRefused(ErrorCode code, std::string_view about,
                    const std::vector<PodMapping>& allocations,
                    const std::vector<QuarantinedPod>& held = {}) const {
    const Tree before = tree();
    const Error error = ExpectError(Export(allocations, held), code, about);
    BOOST_TEST(error.has_hint(), error.ToString());
    BOOST_TEST((tree() == before));
    BOOST_TEST(fs::is_empty(dir_ / "image_manager"));
  }
  void CheckConflict(const std::string& about, const std::vector<PodMapping>& allocations,
                     const std::vector<QuarantinedPod>& held = {}) const {
    CheckRefused(ErrorCode::kConflict, about, allocations, held);
  }

 private:
  TempDir dir_;
};

struct WithKubelet {
  const KubeletDirectory kubelet;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(without_mappings_pods_are_not_looked_at, WithKubelet) {
  WriteFile(kubelet.Pod("foreign"), "broken");
  fs::permissions(kubelet.pods(), fs::perms::all);
  const Tree before = kubelet.tree();
  BOOST_TEST(kubelet.Exported({}) == 0U);
  BOOST_TEST((kubelet.tree() == before));
  fs::remove_all(kubelet.pods());
  BOOST_TEST(kubelet.Exported({}) == 0U);
  BOOST_TEST(!fs::exists(kubelet.pods()));
}

BOOST_FIXTURE_TEST_CASE(what_says_something_else_is_kept, WithKubelet) {
  const auto a = Allocation("a", 1);
  const auto b = Allocation("b", 2);
  const auto c = Allocation("c", 3);
  const std::string same = "\n" + FileOf(c) + "\n";
  // They changed places; the store is right.
  WriteFile(kubelet.Pod("a"), FileOf(b));
  WriteFile(kubelet.Pod("b"), FileOf(a));
  WriteFile(kubelet.Pod("c"), same);
  WriteFile(kubelet.pods() / "a" / "else", "somebody's");
  BOOST_TEST(kubelet.Exported({a, b, c}) == 3U);
  Tree expected = {{"a", "directory"},         {"a/else", "somebody's"}, {"a/userns", FileOf(a)},
                   {"a/" + kAside, FileOf(b)}, {"b", "directory"},       {"b/userns", FileOf(b)},
                   {"b/" + kAside, FileOf(a)}, {"c", "directory"},       {"c/userns", same}};
  BOOST_TEST((kubelet.tree() == expected));

  kubelet.Exported({a, b, c});
  BOOST_TEST((kubelet.tree() == expected));

  WriteFile(kubelet.Pod("a"), "broken");
  kubelet.Exported({a, b, c});
  expected["a/" + kAside + "-2"] = "broken";
  BOOST_TEST((kubelet.tree() == expected));
}

BOOST_FIXTURE_TEST_CASE(what_was_replaced_has_an_end, WithKubelet) {
  const auto a = Allocation("a", 1);
  std::vector<std::string> removed;
  for (int i = 0; i < 12; ++i) {
    WriteFile(kubelet.Pod("a"), "broken " + std::to_string(i));
    const ExportReport report = Must(kubelet.Export({a}));
    std::copy_if(report.removed_paths.begin(), report.removed_paths.end(),
                 std::back_inserter(removed), [](const std::string& path) {
                   return path.find("/userns.before-export-") != std::string::npos;
                 });
  }
  Tree expected = {{"a", "directory"}, {"a/userns", FileOf(a)}};
  for (const int n : {10, 11, 12}) {
    expected["a/" + kAside + "-" + std::to_string(n)] = "broken " + std::to_string(n - 1);
  }
  BOOST_TEST((kubelet.tree() == expected));
  BOOST_TEST(removed.size() == 9U);
}

BOOST_AUTO_TEST_CASE(whatever_stands_in_the_way_is_moved_away) {
  using Make = std::function<void(const fs::path&)>;
  const TempDir elsewhere;
  WriteFile(elsewhere / "target", "not ours");
  const std::vector<Make> kinds = {
      [](const fs::path& path) { fs::create_directories(path / "sub"); },
      [](const fs::path& path) { BOOST_REQUIRE(mkfifo(path.c_str(), 0600) == 0); },
      [&](const fs::path& path) { fs::create_symlink(elsewhere / "target", path); },
      [](const fs::path& path) { fs::create_symlink("nothing", path); },
  };
  for (const Make& make : kinds) {
    const KubeletDirectory kubelet;
    make(kubelet.Pod("a"));
    const auto kind = fs::symlink_status(kubelet.Pod("a")).type();
    kubelet.Exported({Allocation("a", 1)});
    BOOST_TEST(kubelet.At("a") == FileOf(Allocation("a", 1)));
    BOOST_TEST(fs::is_regular_file(fs::symlink_status(kubelet.Pod("a"))));
    BOOST_TEST((fs::symlink_status(kubelet.pods() / "a" / kAside).type() == kind));
    BOOST_TEST(ReadFile(elsewhere / "target") == "not ours");
  }
}

BOOST_FIXTURE_TEST_CASE(held_pods_stop_it, WithKubelet) {
  QuarantinedPod held;
  held.pod_uid = "a";
  held.reason = "its file is broken";
  kubelet.CheckConflict("pod a (its file is broken)", {}, {held});
  kubelet.CheckConflict("pod a (its file is broken)", {Allocation("b", 1)}, {held});
  QuarantinedPod lost;
  lost.ranges = {{65536, 65536}};
  kubelet.CheckConflict("unknown pods, pod a", {}, {lost, held});
  held.pod_uid = "\x1b[31m";
  held.reason = {};
  kubelet.CheckConflict(R"(pod "\u001b[31m", pod "\u001b[31m", pod "\u001b[31m" and 2 more)", {},
                        {held, held, held, held, held});
}

BOOST_FIXTURE_TEST_CASE(several_lengths_stop_it, WithKubelet) {
  kubelet.CheckConflict("2 pods with 65536 IDs, 1 pod with 131072 IDs",
                        {Allocation("a", 1), Allocation("b", 2, 2), Allocation("c", 4)});
  // Of a pod that the store does not know.
  WriteFile(kubelet.Pod("foreign"), FileOf(Allocation("foreign", 8, 4)));
  kubelet.CheckConflict("1 pod with 131072 IDs, 1 pod with 262144 IDs", {Allocation("b", 2, 2)});
  BOOST_TEST(kubelet.Exported({Allocation("a", 4, 4)}) == 1U);
}

BOOST_FIXTURE_TEST_CASE(ranges_that_overlap_stop_it, WithKubelet) {
  WriteFile(kubelet.Pod("foreign"), FileOf(Allocation("foreign", 2)));
  kubelet.CheckConflict("of a pod that the store does not know, pods/foreign/userns",
                        {Allocation("a", 1), Allocation("b", 2)});
  kubelet.CheckConflict("pod a overlap", {Allocation("a", 1), Allocation("foreign2", 1)});
  const auto own = Allocation("foreign", 3);
  BOOST_TEST(kubelet.Exported({Allocation("b", 2), own}) == 2U);
  BOOST_TEST(kubelet.At("foreign") == FileOf(own));
}

BOOST_AUTO_TEST_CASE(files_that_no_kubelet_takes_stop_it) {
  for (const std::string content :
       {"", "{", "{}", R"({"uidMappings":[{"hostId":0,"length":1}]})"}) {
    const KubeletDirectory kubelet;
    WriteFile(kubelet.Pod("foreign"), content);
    kubelet.CheckConflict("unverified host IDs in pods/foreign/userns", {Allocation("a", 1)});
    BOOST_TEST(kubelet.Exported({Allocation("foreign", 1)}) == 1U);
  }
}

BOOST_AUTO_TEST_CASE(unsafe_paths_stop_it) {
  const TempDir elsewhere;
  for (const std::string path : {"pods", "pods/b"}) {
    for (const std::string kind : {"symlink", "file", "for everybody", "foreign"}) {
      const KubeletDirectory kubelet;
      const fs::path there = kubelet.path() / path;
      if (path == "pods") fs::remove(there);
      if (kind == "symlink") fs::create_directory_symlink(elsewhere.path(), there);
      if (kind == "file") WriteFile(there, "");
      if (kind == "for everybody" || kind == "foreign") fs::create_directory(there);
      if (kind == "for everybody") fs::permissions(there, fs::perms::all);
      if (kind == "foreign" && chown(there.c_str(), 4711, 4711) != 0) continue;
      kubelet.CheckRefused(ErrorCode::kUnsafePath, there.string(),
                           {Allocation("a", 1), Allocation("b", 2)});
      BOOST_TEST(fs::is_empty(elsewhere.path()));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(what_is_no_mapping_of_a_pod_is_not_written, WithKubelet) {
  for (const std::string& pod_uid : {""s, "."s, ".."s, "../x"s, "a/b"s, "a\0"s}) {
    kubelet.CheckRefused(ErrorCode::kInvalidArgument, "no directory can have the pod UID",
                         {Allocation(pod_uid, 1)});
  }
  kubelet.CheckRefused(ErrorCode::kInvalidArgument, "", {Allocation("a", 0)});
  kubelet.CheckRefused(ErrorCode::kInvalidArgument, "", {Allocation("a", 1, 0)});
  kubelet.CheckRefused(ErrorCode::kInvalidArgument, "", {Allocation("a", 65535)});
}

BOOST_FIXTURE_TEST_CASE(where_it_fails_the_folders_are_as_they_were, WithKubelet) {
  const std::string hostile =
      "\x9b"
      "31m";
  fs::create_directories(kubelet.pods() / hostile / "userns.tmp");
  const auto failed = kubelet.Export({Allocation("a", 1), Allocation(hostile, 2)});
  BOOST_TEST_REQUIRE(!failed.has_value());
  const std::string text = failed.error().ToString();
  BOOST_TEST(text.find("1 of 2 ID mappings are written") != std::string::npos, text);
  BOOST_TEST(text.find(R"(pods/"\ufffd31m"/userns.tmp)") != std::string::npos, text);
  BOOST_TEST(text.find(hostile) == std::string::npos);
  BOOST_TEST(kubelet.At("a") == FileOf(Allocation("a", 1)));
  BOOST_TEST(fs::is_empty(kubelet.path() / "image_manager"));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
