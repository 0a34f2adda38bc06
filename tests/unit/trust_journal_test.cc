// The journal of distrust: which entries are in force, how it stays bounded, and what versions
// before 4 read of it.

#include "store/engine/trust/trust_journal.h"

#include <flatbuffers/flatbuffers.h>

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "schema/v1/header_generated.h"
#include "store/node/records/userns_tables.h"
#include "tests/support/inspect_path.h"
#include "tests/support/versioned_store.h"
#include "tests/support/versions.h"
#include "waybill/limits.h"

namespace waybill::testing {

namespace {

using internal::Journal;

constexpr auto kUnknownKind = static_cast<DegradedKind>(200);
constexpr auto kUnknownAction = static_cast<DegradedAction>(200);

DegradedEvent Event(DegradedKind kind, DegradedAction action, std::string reason) {
  return {{}, kind, action, action == DegradedAction::kDistrust, std::move(reason)};
}

// What code of version 3 reads.
std::vector<std::string> ReasonsInV3(const Journal& journal) {
  const auto payload = internal::EncodeJournal(journal, 3);
  flatbuffers::Verifier verifier(payload.data(), payload.size());
  BOOST_REQUIRE(verifier.VerifyBuffer<schema::v1::TrustJournal>(nullptr));
  std::vector<std::string> reasons;
  const auto* events = flatbuffers::GetRoot<schema::v1::TrustJournal>(payload.data())->events();
  for (const auto* event : *events) {
    reasons.push_back((event->distrustful() ? "distrust: " : "trust: ") + event->reason()->str());
  }
  return reasons;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(trust_journal)

BOOST_AUTO_TEST_CASE(only_the_entry_of_the_same_kind_and_words_is_taken_back) {
  const Journal journal = {
      Event(DegradedKind::kGap, DegradedAction::kDistrust, "a"),
      Event(DegradedKind::kImportUnfinished, DegradedAction::kDistrust, "a"),
      Event(DegradedKind::kImportUnfinished, DegradedAction::kDistrust, "b"),
      Event(DegradedKind::kImportUnfinished, DegradedAction::kTakenBack, "a"),
      Event(kUnknownKind, DegradedAction::kTakenBack, "b"),
  };
  BOOST_TEST((internal::InForce(journal) == std::vector<bool>{true, false, true, false, false}));
  BOOST_TEST(internal::LastReasonOf(journal) == "b");
}

BOOST_AUTO_TEST_CASE(what_a_later_version_wrote_is_a_reason_until_an_operator_ends_it) {
  Journal journal = {
      Event(kUnknownKind, DegradedAction::kDistrust, "of a later version"),
      Event(DegradedKind::kGap, kUnknownAction, "likewise"),
  };
  BOOST_TEST((internal::InForce(journal) == std::vector<bool>{true, true}));
  const auto read = internal::DecodeJournal(internal::EncodeJournal(journal, kNewestSchema));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((internal::InForce(*read) == std::vector<bool>{true, true}));
  for (const std::string& reason : ReasonsInV3(journal)) {
    BOOST_TEST(reason.starts_with("distrust: "));
  }
  journal.push_back(Event(DegradedKind::kOperator, DegradedAction::kTrust, "seen"));
  BOOST_TEST((internal::InForce(journal) == std::vector<bool>{false, false, false}));
}

BOOST_AUTO_TEST_CASE(a_stored_journal_above_the_limits_is_damaged) {
  Journal journal(2 * kMaxTrustEvents, Event(DegradedKind::kGap, DegradedAction::kDistrust, "a"));
  BOOST_TEST(internal::DecodeJournal(internal::EncodeJournal(journal, kNewestSchema)).has_value());
  journal.push_back(journal.back());
  BOOST_TEST(!internal::DecodeJournal(internal::EncodeJournal(journal, kNewestSchema)).has_value());
}

// Making room drops entries, but never changes the reasons in force.
BOOST_AUTO_TEST_CASE(no_reason_in_force_is_dropped_and_none_comes_back) {
  const auto seed = std::random_device{}();
  BOOST_TEST_MESSAGE("seed " << seed);
  std::mt19937 random(seed);
  const auto in_force = [](const Journal& journal) {
    std::vector<DegradedEvent> reasons;
    const auto force = internal::InForce(journal);
    for (std::size_t i = 0; i < journal.size(); ++i) {
      if (force[i]) reasons.push_back(journal[i]);
    }
    return reasons;
  };
  for (int history = 0; history < 50; ++history) {
    BOOST_TEST_CONTEXT("seed " << seed << ", history " << history) {
      Journal journal;
      for (int i = 0; i < 300; ++i) {
        const auto kind = static_cast<DegradedKind>(1 + random() % 3);
        const auto roll = random() % 20;
        const auto action = roll == 0   ? DegradedAction::kTrust
                            : roll < 11 ? DegradedAction::kTakenBack
                                        : DegradedAction::kDistrust;
        const auto before = in_force(journal);
        const bool has_room = internal::MakeRoom(journal);
        BOOST_TEST((in_force(journal) == before));
        if (!has_room) {
          BOOST_TEST(before.size() == kMaxTrustEvents);
          break;
        }
        BOOST_TEST_REQUIRE(journal.size() < kMaxTrustEvents);
        journal.push_back(Event(kind, action, std::to_string(random() % 40)));
      }
    }
  }
}

// The words that code of version 3 looks for: never to be changed here.
BOOST_AUTO_TEST_CASE(version_3_finds_its_sentences) {
  const Journal journal = {
      Event(DegradedKind::kGap, DegradedAction::kDistrust, "images were pulled by somebody"),
      Event(DegradedKind::kOperator, DegradedAction::kTrust, "all are public"),
      Event(DegradedKind::kImportUnfinished, DegradedAction::kDistrust,
            "the import of /k is not done"),
      Event(DegradedKind::kImportUnfinished, DegradedAction::kTakenBack,
            "the import of /k is not done"),
      Event(DegradedKind::kStoreRebuilt, DegradedAction::kDistrust, "the import of blood"),
      Event(DegradedKind::kImportUnfinished, DegradedAction::kDistrust, "the import of /k"),
      Event(DegradedKind::kGap, DegradedAction::kDistrust, "new words"),
  };
  const std::vector<std::string> expected = {
      "distrust: images may have been pulled that nobody recorded: images were pulled by somebody",
      "trust: all are public",
      "distrust: distrust: the import of blood",
      "distrust: the import of /k",
      "distrust: images may have been pulled that nobody recorded: new words",
  };
  BOOST_TEST(ReasonsInV3(journal) == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(sentences_of_version_3_become_kinds) {
  const std::vector<std::pair<std::string, DegradedKind>> known = {
      {"the import of /var/lib/kubelet is not finished; run `waybill start --kubelet-dir` on it "
       "again",
       DegradedKind::kImportUnfinished},
      {"images may have been pulled that nobody recorded: requested with --after-gap; run "
       "`waybill start --after-gap --images` with the runtime's list",
       DegradedKind::kGap},
      {"the database failed its check (a table is missing); it is kept as /s/quarantine/x",
       DegradedKind::kStoreRebuilt},
      {"the store was put back from b.mdb, a backup of commit 9", DegradedKind::kStoreRestored},
      {"data.mdb is gone from /s", DegradedKind::kStoreLost},
      {"the store that the witness tells of is gone", DegradedKind::kStoreLost},
      {"of the store in /s only owner.lock is left", DegradedKind::kStoreLost},
      {"the witness /w is gone: the store may be older than it was when that was written last",
       DegradedKind::kStoreStale},
      {"the store is older than its witness /w: it is at commit 3 of 4", DegradedKind::kStoreStale},
      {"something that nobody knows", DegradedKind::kOther},
  };
  Journal journal;
  for (const auto& [reason, kind] : known) {
    journal.push_back(Event(kind, DegradedAction::kDistrust, reason));
  }
  // An operator's words stay an operator's, however they begin.
  journal.push_back(
      Event(DegradedKind::kOperator, DegradedAction::kTrust, "the import of /k is public"));
  const auto read = internal::DecodeJournal(internal::EncodeJournal(journal, 3));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((*read == journal));
}

BOOST_AUTO_TEST_CASE(a_held_pod_s_kind_survives_version_3) {
  const std::vector<QuarantinedPod> pods = {
      {"", {}, "", "a store was lost", {}, PodQuarantineKind::kLostRanges},
      {"",
       {},
       "",
       "the ID mappings of the kubelet's pods are not taken over: the store was just made",
       {},
       PodQuarantineKind::kUntilImport},
      {"a",
       {},
       "pods/a/userns",
       "its range overlaps that of pod b",
       {},
       PodQuarantineKind::kFileConflict},
      {"a",
       {},
       "",
       "the stored ID mappings contradicted each other",
       {},
       PodQuarantineKind::kTablesContradict},
      {"a", {}, "pods/a/userns", "it can't be read", {}, PodQuarantineKind::kUnreadableFile},
  };
  for (const QuarantinedPod& pod : pods) {
    const auto read = internal::DecodeUsernsHeld(internal::EncodeUsernsHeld({pod, 7}, 3));
    BOOST_REQUIRE(read.has_value());
    BOOST_TEST((read->pod == pod), pod.reason);
    BOOST_TEST(read->stamp == 7U);
  }
  // An import must not end lost ranges, whatever their words, nor an unknown kind.
  for (const auto kind : {PodQuarantineKind::kLostRanges, static_cast<PodQuarantineKind>(200)}) {
    const QuarantinedPod lost{"", {}, "", pods[1].reason, {}, kind};
    const auto down = internal::DecodeUsernsHeld(internal::EncodeUsernsHeld({lost, 7}, 3));
    BOOST_REQUIRE(down.has_value());
    BOOST_TEST((down->pod.kind == PodQuarantineKind::kLostRanges));
    const auto same =
        internal::DecodeUsernsHeld(internal::EncodeUsernsHeld({lost, 7}, kNewestSchema));
    BOOST_REQUIRE(same.has_value());
    BOOST_TEST((same->pod == lost));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// The step "kinds", 3 to 4.
BOOST_AUTO_TEST_SUITE(kinds_migration)

BOOST_AUTO_TEST_CASE(up_and_down_gives_back_every_byte_of_every_table) {
  const VersionedStore store(3);
  RawModel before = ValuesIn(store.directory());
  before.erase("");
  const Contents contents = ContentsOf(store.directory());
  const MigrationReport up = store.Migrate(4);
  BOOST_TEST_REQUIRE(up.steps.size() == 1U);
  BOOST_TEST(up.steps[0].name == "kinds");
  BOOST_TEST(up.steps[0].values_written == 2U);
  BOOST_TEST((ContentsOf(store.directory()) == contents));
  BOOST_TEST(InspectPath(store.database()).sound);
  RawModel newer = ValuesIn(store.directory());
  newer.erase("");
  for (const auto& [table, values] : newer) {
    if (table != "userns-held----1") BOOST_TEST((values == before.at(table)), table);
    for (const auto& [key, value] : values) {
      if (table == "userns-held----1") BOOST_TEST(VersionOf(value) == 4U);
    }
  }
  BOOST_TEST(store.Migrate(3).losses.empty());
  RawModel after = ValuesIn(store.directory());
  for (const auto& [key, value] : after.at("")) BOOST_TEST(VersionOf(value) == 3U);
  after.erase("");
  BOOST_TEST((after == before));
  BOOST_TEST((ContentsOf(store.directory()) == contents));

  store.Open([](NodeStore& opened) {
    for (const QuarantinedPod& pod : Must(opened.ListHeldPods())) {
      BOOST_TEST((pod.kind == PodQuarantineKind::kUnreadableFile), pod.reason);
    }
    const auto journal = Must(opened.GetTrust()).journal;
    BOOST_TEST_REQUIRE(journal.size() == 1U);
    BOOST_TEST((journal[0].kind == DegradedKind::kOperator));
    BOOST_TEST((journal[0].action == DegradedAction::kTrust));
  });
}

BOOST_FIXTURE_TEST_CASE(each_reason_goes_down_and_up_as_it_is, NoStoreYet) {
  NodeStoreOptions options = store.Options();
  options.gap = Gap::kYes;
  Must(Must(NodeStore::Open(options))->Close());
  WriteFile(store.witness(), "no witness");
  store.Open();
  const auto reasons = [&] {
    std::vector<std::pair<DegradedKind, std::string>> all;
    store.Open([&](NodeStore& opened) {
      for (const DegradedEvent& event : Must(opened.GetTrust()).journal) {
        all.emplace_back(event.kind, event.reason);
      }
    });
    return all;
  };
  const auto before = reasons();
  BOOST_TEST_REQUIRE(before.size() == 2U);
  BOOST_TEST((before[0].first == DegradedKind::kGap));
  BOOST_TEST((before[1].first == DegradedKind::kStoreStale));
  store.Migrate(3, true);
  BOOST_TEST(StateOf(store.directory()).distrustful);
  BOOST_TEST((reasons() == before));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
