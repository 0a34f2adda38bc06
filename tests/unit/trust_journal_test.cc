// The journal of distrust: which entries are in force, and how it stays bounded.

#include <boost/test/unit_test.hpp>
#include <random>
#include <string>
#include <vector>

#include "store/disk/trust.h"
#include "waybill/limits.h"

namespace waybill::testing {

namespace {

using internal::Journal;

constexpr auto kUnknownKind = static_cast<DegradedKind>(200);
constexpr auto kUnknownAction = static_cast<DegradedAction>(200);

DegradedEvent Event(DegradedKind kind, DegradedAction action, std::string reason) {
  return {{}, kind, action, action == DegradedAction::kDistrust, std::move(reason)};
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
  const auto read = internal::DecodeJournal(internal::EncodeJournal(journal));
  BOOST_REQUIRE(read.has_value());
  BOOST_TEST((internal::InForce(*read) == std::vector<bool>{true, true}));
  journal.push_back(Event(DegradedKind::kOperator, DegradedAction::kTrust, "seen"));
  BOOST_TEST((internal::InForce(journal) == std::vector<bool>{false, false, false}));
}

BOOST_AUTO_TEST_CASE(a_stored_journal_above_the_limits_is_damaged) {
  Journal journal(2 * kMaxTrustEvents, Event(DegradedKind::kGap, DegradedAction::kDistrust, "a"));
  BOOST_TEST(internal::DecodeJournal(internal::EncodeJournal(journal)).has_value());
  journal.push_back(journal.back());
  BOOST_TEST(!internal::DecodeJournal(internal::EncodeJournal(journal)).has_value());
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

// The number of a kind or an action is never 0.
BOOST_AUTO_TEST_CASE(an_entry_without_kind_or_action_is_damaged) {
  for (const auto& event : {Event(DegradedKind{}, DegradedAction::kDistrust, "a"),
                            Event(DegradedKind::kGap, DegradedAction{}, "a")}) {
    BOOST_TEST(!internal::DecodeJournal(internal::EncodeJournal({event})).has_value());
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
