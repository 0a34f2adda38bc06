// Every combination of older, newer and removed files of a store whose credential was revoked
// meanwhile: what commit.mark or the witness tells of opens nothing. What remains is in
// docs/limits.md.

#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/corruption/scene.h"
#include "tests/support/memory_dir.h"
#include "tests/support/tree.h"

namespace {

BOOST_AUTO_TEST_SUITE(rolled_back)

namespace fs = std::filesystem;
using namespace waybill;
using namespace waybill::testing;
using waybill::testing::NodeStore;

enum class Moment : std::uint8_t { kNew, kOld, kRemoved };
constexpr Moment kMoments[] = {Moment::kNew, Moment::kOld, Moment::kRemoved};

std::ostream& operator<<(std::ostream& out, Moment moment) {
  constexpr const char* kNames[] = {"new", "old", "removed"};
  return out << kNames[static_cast<std::size_t>(moment)];
}

void Pull(NodeStore& store, const ImagePullSecret& secret) {
  Must(store.RecordPullIntent({.image = kImage}));
  Must(store.RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(secret)));
}

// The files of a store in which kSecretA was proven, and then what kThief has of it was revoked.
class Revoked {
 public:
  using Revoke = std::function<void(NodeStore&)>;

  Revoked(Mode rules, bool has_witness, bool flushes_twice, const Revoke& revoke)
      : rules_(rules), has_witness_(has_witness), twice_(flushes_twice) {
    DoAndClose([](NodeStore& store) { Pull(store, kSecretA); });
    old_ = TreeOf(root_.path());
    DoAndClose(revoke);
    new_ = TreeOf(root_.path());
  }

  fs::path directory() const { return root_ / "store"; }
  NodeStoreOptions Options() const {
    NodeStoreOptions options = OptionsIn(root_.path(), rules_);
    if (!has_witness_) options.witness = Witness::None();
    options.flushes_twice = twice_;
    options.continues_pulls = true;
    return options;
  }
  void Put(const std::string& name, Moment moment) const {
    if (moment == Moment::kRemoved) {
      fs::remove(root_ / name);
    } else {
      WriteFile(root_ / name, (moment == Moment::kNew ? new_ : old_).at(name));
    }
  }
  void PutAll() const {
    fs::remove_all(directory());
    fs::create_directory(directory());
    fs::permissions(directory(), fs::perms::owner_all);
    for (const char* name :
         {"store/data.mdb", "store/lock.mdb", "store/commit.mark", "store/owner.lock"}) {
      Put(name, Moment::kNew);
    }
    if (has_witness_) Put("witness", Moment::kNew);
  }

 private:
  void DoAndClose(const Revoke& what) const {
    const auto store = Must(NodeStore::Open(Options()));
    what(*store);
    Must(store->Close());
  }

  MemoryDir root_;
  const Mode rules_;
  const bool has_witness_;
  const bool twice_;
  Tree old_;
  Tree new_;
};

bool OpensTo(NodeStore& store, const ImagePullSecret& secret) {
  return !DecisionOf(store, {.image = kImage, .image_ref = kRef}, Pod(secret)).pull;
}

// Whether the revoked credential opens, to an observer without an owner or to an owner.
bool OpensRevoked(const Revoked& scene) {
  if (auto observer = NodeStore::Observe({.directory = scene.directory()})) {
    if (OpensTo(**observer, kThief)) return true;
  }
  auto store = NodeStore::Open(scene.Options());
  if (!store) return false;
  const bool opens = OpensTo(**store, kThief);
  static_cast<void>((*store)->Close());
  return opens;
}

const std::vector<std::pair<const char*, Revoked::Revoke>> kWays = {
    {"forgotten", [](NodeStore& store) { Must(store.ForgetCredential("hash-a")); }},
    {"rotated", [](NodeStore& store) { Pull(store, kRotatedA); }},
    {"removed and pulled again",
     [](NodeStore& store) {
       Must(store.DeleteRecord({.image_ref = kRef}));
       Pull(store, kSecretB);
     }},
};

// A limit: "An older copy of a store goes unnoticed"
BOOST_AUTO_TEST_CASE(what_the_mark_or_the_witness_tells_of_opens_nothing) {
  std::size_t played = 0;
  std::size_t opened = 0;
  std::size_t tests = 0;
  for (const Mode rules : kBothRules) {
    for (const bool twice : {false, true}) {
      for (const bool has_witness : {true, false}) {
        const auto& [how, revoke] = kWays[tests++ % kWays.size()];
        const Revoked scene(rules, has_witness, twice, revoke);
        for (int combination = 0; combination < 243; ++combination) {
          int rest = combination;
          const auto next = [&rest] {
            const Moment moment = kMoments[rest % 3];
            rest /= 3;
            return moment;
          };
          const Moment data = next();
          const Moment lock = next();
          const Moment owner = next();
          const Moment mark = next();
          const Moment witness = next();
          if (!has_witness && witness != Moment::kNew) continue;
          BOOST_TEST_CONTEXT(how << ", data.mdb " << data << ", lock.mdb " << lock
                                 << ", owner.lock " << owner << ", commit.mark " << mark
                                 << (has_witness ? ", witness " : ", no witness: ") << witness
                                 << (twice ? ", two flushes" : "")) {
            scene.PutAll();
            scene.Put("store/data.mdb", data);
            scene.Put("store/lock.mdb", lock);
            scene.Put("store/owner.lock", owner);
            scene.Put("store/commit.mark", mark);
            if (has_witness) scene.Put("witness", witness);
            // The limit: nothing outside of data.mdb says that there was a later commit.
            const bool is_told = mark == Moment::kNew || (has_witness && witness != Moment::kOld);
            const bool all_gone = data == Moment::kRemoved && lock == data && owner == data &&
                                  mark == data && (!has_witness || witness == data);
            // Of a store without a trace those rules presume what a kubelet without files does.
            const bool is_fresh = all_gone && rules == Mode::kKubelet;
            const bool may_open = (data == Moment::kOld && !is_told) || is_fresh;
            const bool opens = OpensRevoked(scene);
            BOOST_TEST(opens == may_open);
            ++played;
            opened += opens ? 1 : 0;
            // Nor does the same file, put back once more.
            if (data == Moment::kOld && is_told && !opens) {
              scene.Put("store/data.mdb", data);
              scene.Put("store/lock.mdb", lock);
              BOOST_TEST(!OpensRevoked(scene));
            }
          }
        }
      }
    }
  }
  BOOST_TEST_MESSAGE(opened << " of " << played << " combinations open");
  BOOST_TEST(played == 4U * (243U + 81U));
  BOOST_TEST(opened == 4U * (18U + 18U) + 2U * (1U + 1U));
}

// commit.mark is that of the store that took its place.
BOOST_AUTO_TEST_CASE(a_store_that_another_took_the_place_of_opens_nothing) {
  for (const Mode rules : kBothRules) {
    for (const bool twice : {false, true}) {
      const Revoked scene(rules, false, twice,
                          [](NodeStore& store) { Must(store.ForgetCredential("hash-a")); });
      scene.PutAll();
      scene.Put("store/data.mdb", Moment::kRemoved);
      Must(Must(NodeStore::Open(scene.Options()))->Close());
      for (int times = 0; times < 2; ++times) {
        scene.Put("store/data.mdb", Moment::kOld);
        scene.Put("store/lock.mdb", Moment::kOld);
        ExpectError(NodeStore::Observe({.directory = scene.directory()}), ErrorCode::kDamaged);
        const auto store = Must(NodeStore::Open(scene.Options()));
        BOOST_TEST(store->recovery_report().distrustful);
        BOOST_TEST(!OpensTo(*store, kThief));
        Must(store->Close());
        // From then on the mark is its own.
        const auto again = Must(NodeStore::Open(scene.Options()));
        BOOST_TEST(again->recovery_report().findings.empty());
        Must(again->Close());
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
