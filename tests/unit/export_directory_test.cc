// What an export does to the directory: what it puts in place, keeps aside, leaves alone, refuses.

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <string>

#include "migrations/kubelet/kubelet_export.h"
#include "tests/support/expect_error.h"
#include "tests/support/good_in_child.h"
#include "tests/support/kubelet_content.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/rows.h"
#include "tests/support/tree.h"
#include "waybill/kubelet_format.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(export_directory)

namespace {

namespace fs = std::filesystem;
using internal::ExportContent;
using internal::ExportKubeletDirectory;

constexpr Timestamp kNow{1767323045, 0};  // 2026-01-02T03:04:05Z
constexpr const char* kAside = "before-export-20260102T030405Z";

ExportContent SomeContent() {
  ExportContent content;
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

  Result<ExportReport> Export(const ExportContent& content = SomeContent()) const {
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
    BOOST_TEST(at("pulled", kRef) == EncodePulledRecord(SomeContent().records[0]));
    BOOST_TEST(at("pulling", kImage) == EncodePullIntent(SomeContent().intents[0]));
    BOOST_TEST(!now.contains("export.tmp"));
  }

 private:
  TempDir dir_;
};

struct WithKubelet {
  const KubeletDirectory kubelet;
};

}  // namespace

BOOST_AUTO_TEST_CASE(modes_are_the_kubelets) {
  for (const bool exists : {false, true}) {
    const KubeletDirectory kubelet;
    if (exists) {
      fs::create_directory(kubelet.image_manager() / "pulled");
    } else {
      fs::remove(kubelet.image_manager());
    }
    const mode_t before = umask(0);
    Must(kubelet.Export());
    umask(before);
    kubelet.CheckPlaced();
    for (const std::string folder : {"pulled", "pulling"}) {
      BOOST_TEST(ModeOf(kubelet.image_manager() / folder) == 0700U);
      for (const auto& entry : fs::directory_iterator(kubelet.image_manager() / folder)) {
        BOOST_TEST(ModeOf(entry.path()) == 0600U);
      }
    }
    if (!exists) BOOST_TEST(ModeOf(kubelet.image_manager()) == 0700U);
  }
}

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
  const ExportContent now = ContentOf(kubelet.path());
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
  ExportContent content = SomeContent();
  for (const auto folder : {internal::KubeletFolder::kPulled, internal::KubeletFolder::kPulling}) {
    const fs::path path = kubelet.image_manager() / internal::FolderName(folder);
    for (const auto& entry : fs::directory_iterator(path)) {
      const auto file = Must(internal::ReadKubeletFile(kubelet.image_manager(), folder,
                                                       entry.path().filename().string(),
                                                       internal::OnReadError::kFail));
      content.imported.push_back(file.identity.value());
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

BOOST_FIXTURE_TEST_CASE(folders_without_files_are_not_kept, WithKubelet) {
  fs::create_directory(kubelet.image_manager() / "pulled");
  fs::create_directory(kubelet.image_manager() / "pulling");
  BOOST_TEST(Must(kubelet.Export()).replaced_path == "");
  kubelet.CheckPlaced();
  BOOST_TEST(kubelet.tree().size() == 5U);  // waybill-exported
}

BOOST_FIXTURE_TEST_CASE(what_a_crash_left_is_kept, WithKubelet) {
  const fs::path at = kubelet.image_manager();
  WriteRecordFile(kubelet.path(), "pulled", kRef, "an old record");
  fs::create_directories(at / "export.tmp" / "pulling");
  WriteFile(at / "export.tmp" / "pulling" / "old intent", "the kubelet's");
  const ExportReport report = Must(kubelet.Export());
  kubelet.CheckPlaced();
  BOOST_TEST(ReadFile(at / kAside / "pulling" / "old intent") == "the kubelet's");
  BOOST_TEST(report.replaced_path == (at / (std::string(kAside) + "-2")).string());
  BOOST_TEST((TreeOf(at / (std::string(kAside) + "-2")).size() == 2U));
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

BOOST_AUTO_TEST_CASE(a_missing_kubelet_directory_is_not_made) {
  const TempDir dir;
  for (const fs::path& path : {dir / "missing", fs::path()}) {
    ExpectError(ExportKubeletDirectory(SomeContent(), {.kubelet_directory = path}),
                ErrorCode::kNotFound);
    BOOST_TEST(fs::is_empty(dir.path()));
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

BOOST_FIXTURE_TEST_CASE(a_file_in_place_of_a_folder_is_refused, WithKubelet) {
  WriteFile(kubelet.image_manager() / "pulled", "a file");
  kubelet.CheckRefused(ErrorCode::kUnsafePath, "not a directory");
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
    ExportContent content = SomeContent();
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

}  // namespace waybill::testing
