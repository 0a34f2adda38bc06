#include "tests/support/walk_judge.h"

#include <unistd.h>

#include <cstdio>

#include "tests/support/draw.h"
#include "tests/support/forked_child.h"
#include "tests/support/raw_lmdb.h"
#include "tests/support/temp_dir.h"
#include "tests/support/walk_recorder.h"

namespace waybill::testing {

struct WalkJudge::Progress {
  WalkVerdicts verdicts;
  std::size_t next = 0;  // the first file not judged to its end
  bool in_lmdb = false;  // whom a crash would be of
};

namespace {

constexpr int kThrew = 3;

void NoteLie(WalkVerdicts& verdicts, std::size_t index, const char* what) {
  if (verdicts.lies++ > 0) return;
  std::snprintf(verdicts.first_lie.data(), verdicts.first_lie.size(), "file %zu: %s", index, what);
}

// A commit on top must leave a sound file: it would not if it overwrote a page in use.
void CommitOnTop(const std::filesystem::path& path, const std::string& bytes, unsigned seed) {
  const MemoryDir dir;
  WriteFile(dir / "data.mdb", bytes);
  {
    RawStore store(dir.path(), MDB_NOSYNC | MDB_NOLOCK);
    RawModel ignored;
    RawChanger changer(seed, {"table-of-images1"},
                       {.max_changes = 20, .large_percent = 20, .delete_percent = 0});
    for (int i = 0; i < 3; ++i) changer.Commit(store, ignored);
  }
  const Walked walked = WalkPath(dir / "data.mdb");
  if (!walked.result.sound) {
    throw std::runtime_error(path.string() + " after a commit: " + FirstFinding(walked.result));
  }
}

}  // namespace

WalkJudge::WalkJudge(std::string original, std::uint64_t seed)
    : original_(std::move(original)), seed_(seed) {
  WriteFile(dir_ / "data.mdb", original_);
  const Walked walked = WalkPath(dir_ / "data.mdb");
  if (!walked.result.sound) throw std::runtime_error("original: " + FirstFinding(walked.result));
  original_text_ = walked.shown.text;
}

WalkVerdicts WalkJudge::Run(std::size_t count, const Damage& damage, std::size_t lmdb_stride) {
  const std::uint64_t one_in = count < 200 ? 1 : NumberFromEnv("WAYBILL_WALKS_ONE_IN", 1);
  Shared<Progress> shared;
  for (shared->next = seed_ % one_in; shared->next < count; shared->next += one_in) {
    Child child([&] {
      // LMDB reports a failed assertion on stderr before it aborts; the count says as much.
      if (freopen("/dev/null", "w", stderr) == nullptr) return kThrew;
      try {
        RunChild(count, damage, one_in, lmdb_stride, *shared);
      } catch (...) {
        return kThrew;
      }
      return 0;
    });
    if (child.Wait() == 0) break;
    if (shared->in_lmdb) {
      NoteLie(shared->verdicts, shared->next, "liblmdb crashed");
    } else {
      ++shared->verdicts.walk_crashes;
    }
    shared->in_lmdb = false;
  }
  return shared->verdicts;
}

void WalkJudge::RunChild(std::size_t count, const Damage& damage, std::size_t one_in,
                         std::size_t lmdb_stride, Progress& shared) {
  const OpenedFile file(dir_ / "data.mdb", O_RDWR);
  WalkVerdicts& verdicts = shared.verdicts;
  for (; shared.next < count; shared.next += one_in) {
    std::string bytes = original_;
    damage(shared.next, bytes);
    if (ftruncate(file.fd(), static_cast<off_t>(bytes.size())) != 0 ||
        pwrite(file.fd(), bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
      throw std::runtime_error("write");
    }
    WalkRecorder shown;
    const auto result = internal::WalkFile(file.fd(), shown);
    ++verdicts.judged;
    if (!result || !result->sound) {
      ++verdicts.flagged;
      // Whatever is left must be readable without harm.
      for (const int which : {0, 1}) {
        WalkRecorder salvaged;
        (void)internal::SalvageTree(file.fd(), which, salvaged).has_value();
      }
      continue;
    }
    const bool same = shown.text == original_text_;
    ++(same ? verdicts.sound_same : verdicts.sound_other);
    if (!same && verdicts.sound_other % lmdb_stride != 0) continue;
    shared.in_lmdb = true;
    CompareWithLmdb(shared.next, bytes, shown.text, shown.tables, shared);
    shared.in_lmdb = false;
  }
}

void WalkJudge::CompareWithLmdb(std::size_t index, const std::string& bytes,
                                const std::string& shown, const std::vector<std::string>& tables,
                                Progress& shared) {
  try {
    if (ReadByLmdb(dir_.path(), tables) != shown) {
      NoteLie(shared.verdicts, index, "liblmdb reads something else");
    }
    if (index % 32 == 0) CommitOnTop(dir_ / "data.mdb", bytes, static_cast<unsigned>(index));
  } catch (const std::exception& error) {
    NoteLie(shared.verdicts, index, error.what());
  }
}

}  // namespace waybill::testing
