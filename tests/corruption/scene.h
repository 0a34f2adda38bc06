// A store with one record, another tenant who has its credential, and an observer.

#ifndef WAYBILL_TESTS_CORRUPTION_SCENE_H_
#define WAYBILL_TESTS_CORRUPTION_SCENE_H_

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <memory>
#include <string>

#include "tests/support/child_process.h"
#include "tests/support/expect_error.h"
#include "tests/support/rows.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

// The hash that kSecretA had first, in another tenant's hands.
inline const ImagePullSecret kThief = MakeSecret("team-c", "pull", "uid-c", "hash-a");
inline const ImagePullSecret kRotatedA = MakeSecret("team-a", "pull", "uid-a", "hash-a-2");

struct Scene {
  Scene() { store.Pull(kImage, kRef, WithSecret(kSecretA)); }
  std::filesystem::path database() const { return store.directory() / "data.mdb"; }
  std::filesystem::path lock() const { return store.directory() / "lock.mdb"; }
  bool Pulls(const ImagePullSecret& secret) { return store.Check(kImage, kRef, Pod(secret)).pull; }
  void Rotate() { store.Pull(kImage, kRef, WithSecret(kRotatedA)); }

  ScratchStore store{Mode::kStrict};
};

// Answers "pull" or "no pull" on kImage for a secret with the hash that it is told; "nobody": for a
// pod without secrets; "unknown": on kRef2. "stats": reader slots used and in all.
inline ChildProcess::Serve ServeAsObserver(const std::filesystem::path& directory) {
  std::shared_ptr<NodeStore> observer = Must(NodeStore::Observe({.directory = directory}));
  return [observer](const std::string& line) {
    if (line == "stats") {
      const StoreCounts statistics = Must(observer->GetStatistics());
      return std::to_string(statistics.readers) + " of " + std::to_string(statistics.max_readers);
    }
    Pod pod(line == "nobody" ? Pod() : Pod(MakeSecret("team-x", "pull", "uid-x", line)));
    const std::string ref(line == "unknown" ? kRef2 : kRef);
    const bool pull = observer->MustAttemptPull({.image = kImage, .image_ref = ref}, pod).pull;
    return std::string(pull ? "pull" : "no pull");
  };
}

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_CORRUPTION_SCENE_H_
