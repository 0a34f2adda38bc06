// What ends a proof, and what the store knows of time.

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/options.h"
#include "store/disk/clocks.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/rows.h"
#include "waybill/values.h"

namespace waybill::testing {

// What was forgotten stays forgotten, where histories/forgetting.jsonl does not reach: names that
// are too long, files that can't be read. More records than one commit changes: tests/model.
BOOST_AUTO_TEST_SUITE(revocation)

namespace {

const CredentialName kNameA = {"team-a", "pull", "uid-a"};

bool MustPull(ScratchStore& store, const ImagePullSecret& secret) {
  return store.Check(kImage, kRef, Pod(secret)).pull;
}

// Two images: one that A and B opened and one that A did.
void PullTwo(ScratchStore& store) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  store.Pull(kImage, kRef, WithSecret(kSecretB));
  store.Pull(kImage, kRef2, WithSecret(kSecretA));
}

// The Secret A, rotated to a hash of another Secret.
const ImagePullSecret kRotated = MakeSecret("team-a", "pull", "uid-a", "hash-x");

}  // namespace

BOOST_FIXTURE_TEST_CASE(a_name_that_is_too_long_and_no_image_at_all, ClosedStore) {
  const std::string long_text(kMaxCoordinateBytes + 1, 'x');
  ExpectError(store->ForgetNamespace(long_text), ErrorCode::kLimitExceeded);
  ExpectError(store->ForgetImage({}), ErrorCode::kInvalidArgument);
}

// Histories show it to decisions that fetch, inside and late.
BOOST_AUTO_TEST_CASE(a_forgotten_hash_that_is_at_hand_or_shown_to_an_observer_opens_nothing) {
  UnderBothRules([](ScratchStore& store) {
    const ImageCopy copy = {.image = kImage, .image_ref = kRef};
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    Must(store->ForgetCredential("hash-x"));
    const auto opens = [&](NodeStore& asked, const ImagePullSecret& secret) {
      Pod pod(secret);
      FixedCredentials fixed(Must(pod.Fetch()));
      return !asked.MustAttemptPull(copy, fixed).pull;
    };
    BOOST_TEST(!opens(*store, kRotated));
    BOOST_TEST(opens(*store, kSecretA));
    store.Stop();
    const auto observer = Must(NodeStore::Observe({.directory = store.directory()}));
    BOOST_TEST(!opens(*observer, kRotated));
    BOOST_TEST(DecisionOf(*observer, copy, Pod(kRotated)).pull);
    BOOST_TEST(opens(*observer, kSecretA));
  });
}

// A limit: "A credential that is forgotten by its hash still opens, by the coordinates"
BOOST_FIXTURE_TEST_CASE(a_kubelet_that_compares_by_itself_does_not_know_of_a_forgotten_hash,
                        KubeletStore) {
  store.Pull(kImage, kRef, WithSecret(kSecretA));
  Must(store->ForgetCredential("hash-x"));
  BOOST_TEST(MustPull(store, kRotated));
  // A store without the revocation, under the kubelet's rules, is the kubelet after an export.
  ScratchStore kubelet(Mode::kKubelet);
  Must(store->Export({.kubelet_directory = kubelet.kubelet_directory()}));
  kubelet.Restart();
  BOOST_TEST(!MustPull(kubelet, kRotated));
}

// Also where nothing of what the caller gives would be stored.
BOOST_AUTO_TEST_CASE(after_a_truth_what_is_too_long_is_refused_all_the_same) {
  UnderBothRules([](ScratchStore& store) {
    PullTwo(store);
    Must(store->Reconcile({.secrets = {{"team-b", "pull", "uid-b"}}}, Must(store->BeginList())));
    const ImagePullSecret too_long =
        MakeSecret("team-a", "pull", std::string(kMaxCoordinateBytes + 1, 'x'), "hash-a");
    ImagePulledRecord record = {.image_ref = std::string(kRef)};
    record.credential_mapping[std::string(kName)] = WithSecret(too_long);
    ExpectError(store->PutRecord(record), ErrorCode::kLimitExceeded);
    ExpectError(
        store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(too_long)),
        ErrorCode::kLimitExceeded);
    BOOST_TEST(!MustPull(store, kSecretB));
  });
}

// Nobody knows what it was about, so what began before it proves nothing.
BOOST_AUTO_TEST_CASE(a_pull_that_began_before_a_revocation_that_is_lost_proves_nothing) {
  UnderBothRules([](ScratchStore& store) {
    const PullId pull = Must(store->RecordPullIntent({.image = kImage}));
    Must(store->ForgetSecret(kNameA));
    store.Stop();
    std::string bytes = ReadFile(store.directory() / "data.mdb");
    const auto places = PlacesOf(bytes, "team-a");
    BOOST_TEST_REQUIRE(!places.empty());
    for (const std::size_t at : places) bytes[at] = '!';
    WriteFile(store.directory() / "data.mdb", bytes);
    store.Restart();
    BOOST_TEST(Must(store->ListRevocations()).empty());
    Must(store->RecordImagePulled({.image = kImage, .image_ref = kRef}, WithSecret(kSecretA),
                                  {.pull = pull}));
    BOOST_TEST(MustPull(store, kSecretA));
    store.Pull(kImage, kRef, WithSecret(kSecretA));
    BOOST_TEST(!MustPull(store, kSecretA));
  });
}

// What the kubelet's files may still say does not open, and files that can't be read may say it.
BOOST_AUTO_TEST_CASE(a_revocation_waits_for_all_that_the_kubelets_files_may_say) {
  namespace fs = std::filesystem;
  using Spoil = std::function<void(const fs::path& pulled, const fs::path& file)>;
  const std::pair<const char*, Spoil> cases[] = {
      {"as it is", [](auto&, auto&) {}},
      {"gone", [](auto&, auto& file) { fs::remove(file); }},
      {"pulled/ is away",
       [](auto& pulled, auto&) { fs::rename(pulled, pulled.string() + ".away"); }},
      {"linked", [](auto&, auto& file) { fs::create_hard_link(file, file.string() + ".link"); }},
      {"anybody's", [](auto&, auto& file) { fs::permissions(file, fs::perms::all); }},
      {"cut short", [](auto&, auto& file) { fs::resize_file(file, 20); }},
      {"another's name",
       [](auto& pulled, auto& file) {
         fs::rename(file, pulled / fs::path(RecordFile("pulled", kRef2)).filename());
       }},
  };
  for (const auto& [what, spoil] : cases) {
    ScratchStore store(Mode::kStrict);
    PullTwo(store);
    const fs::path files = store.scratch() / "files";
    ImagePulledRecord record{.image_ref = std::string(kRef)};
    record.credential_mapping[std::string(kName)] = WithSecret(kSecretA);
    WriteRecordFile(files, "pulled", kRef, EncodePulledRecord(record));
    Must(store->ForgetSecret(kNameA));
    const fs::path file = files / RecordFile("pulled", kRef);
    spoil(file.parent_path(), file);
    store.clock().Reboot();
    store.clock().AdvanceSeconds(31 * 86400);
    store.Stop();
    NodeStoreOptions options = store.Options({});
    options.kubelet_files = files;
    const auto opened = Must(NodeStore::Open(options));
    const bool is_over = std::string_view(what) == "gone";
    BOOST_TEST(Must(opened->ListRevocations()).empty() == is_over, what);
  }
}

BOOST_FIXTURE_TEST_CASE(a_kubelet_begins_in_this_boot_and_not_later_than_now, ClosedStore) {
  BootTime began = store.clock().Boot();
  ++began.nanoseconds;
  ExpectError(store->NoteKubeletBegan(began), ErrorCode::kInvalidArgument);
  began = store.clock().Boot();
  began.boot_id = {99};
  ExpectError(store->NoteKubeletBegan(began), ErrorCode::kInvalidArgument);
  ExpectError(store->NoteKubeletBegan({}), ErrorCode::kInvalidArgument);
}

BOOST_AUTO_TEST_SUITE_END()

// What the store knows of time, beside what really passed.
BOOST_AUTO_TEST_SUITE(clocks)

using internal::Clocks;
using std::chrono::nanoseconds;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = 1'800'000'000;

// A machine with a true time, which boots, is off, and has a wall clock that jumps.
BOOST_AUTO_TEST_CASE(what_ran_is_never_more_than_the_truth_and_ages_are_never_less) {
  Draw draw(SeedOfThisRun());
  for (int machine = 0; machine < 200; ++machine) {
    BootTime boot{{1}, 100 * kSecond};
    std::int64_t truth = 0;  // since the first commit; likewise below
    std::int64_t ran = 0;
    std::int64_t lead = 0;  // of the wall clock
    const auto wall = [&] { return internal::Plus({kStart, 0}, nanoseconds(truth + lead)); };
    Clocks clocks = Clocks().At(boot, wall());
    const Timestamp first = clocks.ages;
    for (int step = 0; step < 100; ++step) {
      const auto passed = static_cast<std::int64_t>(draw.Below(100'000)) * kSecond / 7;
      switch (draw.Below(8)) {
        case 0:  // it is off, and boots
          truth += passed;
          boot = {{static_cast<std::uint8_t>(boot.boot_id[0] % 250 + 1)}, 0};
          break;
        case 1:
          lead += draw.OneIn(2) ? passed : -passed;
          break;
        case 2:
          lead = 0;
          break;
        default:
          truth += passed;
          ran += passed;
          boot.nanoseconds += passed;
      }
      const Clocks now = clocks.At(draw.OneIn(10) ? BootTime() : boot, wall());
      BOOST_TEST_REQUIRE(now.ran.count() <= ran);
      BOOST_TEST_REQUIRE((now.ran >= clocks.ran));
      BOOST_TEST_REQUIRE((now.boot_ran <= now.ran));
      BOOST_TEST_REQUIRE((now.ages >= clocks.ages));
      if (draw.OneIn(2)) clocks = now;
    }
    // Once the clock is right, all that passed has counted.
    lead = 0;
    const Clocks last = clocks.At(boot, wall());
    BOOST_TEST_REQUIRE((internal::Between(first, last.ages).count() >= truth));
  }
}

BOOST_AUTO_TEST_CASE(no_stored_or_given_time_overflows) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  for (const std::int64_t seconds : {kLeast, std::int64_t{0}, kStart, kMost}) {
    for (const std::int64_t ticks : {kLeast, std::int64_t{0}, kMost}) {
      Clocks clocks{.boot = {{1}, ticks}, .wall = {seconds, 0}, .ages = {seconds, 0}};
      clocks.ran = internal::kLongestRun;
      for (const std::int64_t now : {kLeast, std::int64_t{-1}, kStart, kMost}) {
        for (std::uint8_t boot = 0; boot < 3; ++boot) {
          const Clocks later = clocks.At({{boot}, now}, {now, 999'999'999});
          BOOST_TEST((later.ran <= internal::kLongestRun));
          BOOST_TEST((later.ages >= clocks.ages || clocks.ages == Timestamp()));
        }
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
