#include "store/images/open_pulls.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/base/image_spellings.h"
#include "store/base/quote.h"
#include "store/base/try.h"
#include "store/images/images.h"
#include "store/images/pull_row.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

// Whether `a` ended after `b`. The wall clock tells nothing: it jumps. Among earlier boots it does
// not matter.
bool EndedLater(const UnresolvedPull& a, const UnresolvedPull& b, const BootTime& now) {
  const auto order = [&](const UnresolvedPull& pull) {
    const bool this_boot = pull.ended_at.boot_id == now.boot_id;
    return std::pair(this_boot, this_boot ? pull.ended_at.nanoseconds
                                          : static_cast<std::int64_t>(pull.id.value));
  };
  return order(a) > order(b);
}

// Stores a pull that ended just now. `others`: of the same string and handler. Those of the same
// state become a part of it.
Result<void> KeepEnded(StoreTxn& txn, UnresolvedPull pull, std::vector<UnresolvedPull>& others) {
  const auto is_part = [&](const UnresolvedPull& other) {
    return other.id != pull.id && other.state == pull.state && other.anything == pull.anything;
  };
  const auto parts = std::ranges::stable_partition(others, std::not_fn(is_part));
  for (const UnresolvedPull& other : parts) {
    if (auto r = EraseOpenPull(txn, other); !r) return r;
    pull.several = true;
    pull.began = std::min(pull.began, other.began);
    pull.stamp = std::min(pull.stamp, other.stamp);
  }
  for (const UnresolvedPull& other : parts) pull.id = std::max(pull.id, other.id);
  others.erase(parts.begin(), parts.end());
  TRY(PutOpenPull(txn, pull));
  others.push_back(std::move(pull));
  return {};
}

Result<void> KeepEnded(StoreTxn& txn, UnresolvedPull pull) {
  const Brought brought = pull.nothing_at != 0 ? Brought::kNothing : Brought::kMaybe;
  auto others = TRY(pull.anything ? AllOpenPulls(txn)
                                  : FindOpenPulls(txn, pull.image, pull.runtime_handler, brought));
  return KeepEnded(txn, std::move(pull), others);
}

// Keeps the number of pulls that ended within its bound: the oldest become one of anything. Looks
// only now and then, since it reads them all.
Result<void> MakeRoom(StoreTxn& txn, const BootTime& now) {
  constexpr std::size_t kAtOnce = 64;
  const std::uint64_t count = txn.state().digest(Table::kIntents).count;
  if (count < kMaxEndedPulls || count % kAtOnce != 0) return {};
  auto pulls = TRY(AllOpenPulls(txn));
  std::optional<UnresolvedPull> before;
  for (const UnresolvedPull& one : pulls) {
    if (one.anything && one.state == PullState::kUnknown) before = one;
  }
  std::erase_if(pulls, [](const UnresolvedPull& one) { return !one.ended || one.anything; });
  if (pulls.size() + kAtOnce <= kMaxEndedPulls) return {};
  std::sort(pulls.begin(), pulls.end(), [&](const UnresolvedPull& a, const UnresolvedPull& b) {
    return EndedLater(b, a, now);
  });
  pulls.resize(pulls.size() + kAtOnce - kMaxEndedPulls);
  for (const UnresolvedPull& oldest : pulls) TRY(EraseOpenPull(txn, oldest));
  UnresolvedPull anything = std::move(pulls.back());  // the last end of these
  anything.anything = true;
  anything.image.clear();
  anything.runtime_handler.clear();
  anything.state = PullState::kUnknown;
  anything.stamp = 0;
  anything.nothing_at = 0;
  if (before && EndedLater(*before, anything, now)) {
    anything.ended = before->ended;
    anything.ended_at = before->ended_at;
  }
  return KeepEnded(txn, std::move(anything));
}

// Of the pulls, those that may have given one of the names.
std::set<PullId> NeededFor(const std::vector<UnresolvedPull>& pulls,
                           const std::vector<std::string>& names, ShortNames short_names) {
  std::set<PullId> needed;
  if (names.empty()) return needed;
  for (const UnresolvedPull& pull : PullsOfAny(pulls, names, short_names)) needed.insert(pull.id);
  return needed;
}

}  // namespace

Result<void> CheckNamedPull(const StoreTxn& txn, const EndingPull& pull) {
  if (pull.id.value == 0) return {};
  const std::string hint = "leave the number out: the newest pull of the image that runs ends";
  const std::string number = std::to_string(pull.id.value);
  if (!WasGiven(txn, pull.id)) {
    return Error{ErrorCode::kNotFound, "there was no pull " + number + "; nothing was changed",
                 hint};
  }
  // Most name one of theirs: then the pulls of others are not read.
  const auto is_named = [&](const UnresolvedPull& one) { return one.id == pull.id; };
  auto own = TRY(FindOpenPulls(txn, pull.image, pull.runtime_handler));
  if (std::any_of(own.begin(), own.end(), is_named)) return {};
  auto all = TRY(AllOpenPulls(txn));
  const auto at = std::find_if(all.begin(), all.end(), is_named);
  if (at == all.end() || at->anything || at->image == pull.image) return {};
  return Error{ErrorCode::kNotFound,
               "pull " + number + " is one of " + QuoteForMessage(at->image) + ", not of " +
                   QuoteForMessage(pull.image) + "; nothing was changed",
               hint};
}

Result<std::optional<UnresolvedPull>> FindEndingPull(const StoreTxn& txn,
                                                     const EndingPull& ending) {
  auto pulls = TRY(FindOpenPulls(txn, ending.image, ending.runtime_handler));
  std::erase_if(pulls, [&](const UnresolvedPull& pull) {
    return pull.several || (ending.id.value != 0 && pull.id != ending.id);
  });
  const auto newest = [&](PullState state) -> std::optional<UnresolvedPull> {
    const auto at = std::find_if(pulls.rbegin(), pulls.rend(),
                                 [&](const UnresolvedPull& pull) { return pull.state == state; });
    return at == pulls.rend() ? std::nullopt : std::optional(*at);
  };
  std::optional<UnresolvedPull> chosen = newest(PullState::kRunning);
  if (!chosen) chosen = newest(PullState::kUnknown);
  if (!chosen && ending.id.value != 0) chosen = newest(PullState::kFailed);
  if (!chosen || ending.id.value != 0) return chosen;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.state != chosen->state) continue;
    chosen->began = std::min(chosen->began, pull.began);
    chosen->stamp = std::min(chosen->stamp, pull.stamp);
  }
  return chosen;
}

Result<PullId> BeginPull(StoreTxn& txn, std::string_view image, std::string_view runtime_handler,
                         const BootTime& now) {
  TRY(MakeRoom(txn, now));
  UnresolvedPull pull;
  pull.id = NextPullId(txn);
  pull.image = image;
  pull.runtime_handler = runtime_handler;
  pull.began = txn.now();
  pull.stamp = txn.sequence();
  TRY(PutOpenPull(txn, pull));
  // A list without a token may be older than what this pull brings.
  txn.state().awaits_first_list = false;
  return pull.id;
}

Result<void> RemovePull(StoreTxn& txn, const EndingPull& pull) {
  auto chosen = TRY(FindEndingPull(txn, pull));
  return chosen ? EraseOpenPull(txn, *chosen) : Result<void>();
}

Result<void> EndPull(StoreTxn& txn, const EndingPull& pull, const Ended& ended) {
  auto chosen = TRY(FindEndingPull(txn, pull));
  if (!chosen) return {};
  UnresolvedPull one = std::move(*chosen);
  if (auto r = EraseOpenPull(txn, one); !r) return r;
  if (ended.nothing) one.nothing_at = txn.sequence();
  one.state = ended.state;
  one.ended = txn.now();
  one.ended_at = ended.at;
  return KeepEnded(txn, std::move(one));
}

Result<void> TakeOverIntent(StoreTxn& txn, std::string_view image, std::string_view runtime_handler,
                            Timestamp began, const BootTime& now) {
  UnresolvedPull pull;
  pull.id = NextPullId(txn);
  pull.image = image;
  pull.runtime_handler = runtime_handler;
  pull.state = PullState::kUnknown;
  pull.began = began;
  pull.ended = txn.now();
  pull.ended_at = now;
  pull.stamp = 0;  // before any list
  return KeepEnded(txn, std::move(pull));
}

Result<void> CarryPull(StoreTxn& txn, UnresolvedPull pull) {
  if (pull.state == PullState::kDropped) pull.dropped_ran = txn.clocks().RanSeconds();
  return PutOpenPull(txn, pull);
}

Result<std::uint64_t> EndRunningPulls(StoreTxn& txn, const BootTime& now, std::uint64_t at_most) {
  std::uint64_t ended = 0;
  const auto pulls = TRY(AllOpenPulls(txn));
  std::map<std::pair<std::string, std::string>, std::vector<UnresolvedPull>> by_copy;
  for (const UnresolvedPull& pull : pulls) {
    if (pull.nothing_at == 0) by_copy[{pull.image, pull.runtime_handler}].push_back(pull);
  }
  for (UnresolvedPull pull : pulls) {
    if (ended == at_most) break;
    if (pull.state != PullState::kRunning) continue;
    TRY(EraseOpenPull(txn, pull));
    pull.state = PullState::kUnknown;
    pull.ended = txn.now();
    pull.ended_at = now;
    auto& others = by_copy[{pull.image, pull.runtime_handler}];
    std::erase_if(others, [&](const UnresolvedPull& other) { return other.id == pull.id; });
    TRY(KeepEnded(txn, std::move(pull), others));
    ++ended;
  }
  return ended;
}

Result<void> OpenPullOfAnything(StoreTxn& txn, const BootTime& now, PullState state) {
  UnresolvedPull pull;
  pull.id = NextPullId(txn);
  pull.anything = true;
  pull.state = state;
  pull.began = txn.now();
  pull.ended = txn.now();
  pull.ended_at = now;
  if (state == PullState::kDropped) pull.dropped_ran = txn.clocks().RanSeconds();
  return KeepEnded(txn, std::move(pull));
}

std::vector<UnresolvedPull> PullsOfAny(std::vector<UnresolvedPull> pulls,
                                       const std::vector<std::string>& names,
                                       ShortNames short_names) {
  std::vector<NamedImage> parsed;
  for (const std::string& name : names) parsed.push_back(ReadName(name));
  std::erase_if(pulls, [&](const UnresolvedPull& pull) {
    if (pull.nothing_at != 0) return true;
    const NamedImage pulled = ReadName(pull.image);
    if (pull.anything || GivesAnything(pulled, short_names == ShortNames::kDockerHub)) return false;
    return std::none_of(parsed.begin(), parsed.end(), [&](const NamedImage& name) {
      return name.parses && CouldGive(pulled, name);
    });
  });
  std::sort(pulls.begin(), pulls.end(),
            [](const UnresolvedPull& a, const UnresolvedPull& b) { return a.id > b.id; });
  return pulls;
}

Result<std::uint64_t> SettlePulls(StoreTxn& txn, const ImageList& list, const BootTime& now,
                                  const EvidenceOptions& options,
                                  const std::vector<std::string>& names_left) {
  const BootTime& drawn = list.token->drawn;
  const std::uint64_t commit = list.token->commit;
  // A token of an earlier boot may be older than a pull that ended since.
  const bool knows_boot = drawn.boot_id == now.boot_id && now.boot_id != BootTime().boot_id;
  auto pulls = TRY(AllOpenPulls(txn));
  const std::set<PullId> needed = NeededFor(pulls, names_left, options.short_names);
  const std::set<PullId> comes = NeededFor(pulls, list.names_to_come, options.short_names);
  std::uint64_t settled = 0;
  for (const UnresolvedPull& pull : pulls) {
    if (!pull.ended || needed.contains(pull.id)) continue;
    if (pull.state == PullState::kDropped) {
      if (!txn.clocks().HasRunSince(pull.dropped_ran, options.remember)) continue;
      TRY(EraseOpenPull(txn, pull));
      ++settled;
      continue;
    }
    const bool is_nothing = pull.nothing_at != 0 && commit >= pull.nothing_at;
    const bool rebooted = knows_boot && pull.ended_at.boot_id != now.boot_id &&
                          pull.ended_at.boot_id != BootTime().boot_id;
    const std::chrono::nanoseconds since(drawn.nanoseconds - pull.ended_at.nanoseconds);
    const bool waited =
        drawn.boot_id == pull.ended_at.boot_id &&
        since >= (pull.state == PullState::kFailed ? options.grace : options.window);
    const bool is_quiet =
        list.quiet_until && knows_boot && list.quiet_until->boot_id == pull.ended_at.boot_id &&
        drawn.boot_id == pull.ended_at.boot_id &&
        pull.ended_at.nanoseconds <= list.quiet_until->nanoseconds &&
        list.quiet_until->nanoseconds <= drawn.nanoseconds && !comes.contains(pull.id);
    if (!rebooted && !waited && !is_nothing && !is_quiet) continue;
    TRY(EraseOpenPull(txn, pull));
    if (pull.nothing_at == 0) ++settled;
  }
  // An older list may have what they brought.
  if (settled > 0) NoteEvidenceRemoved(txn);
  return settled;
}

}  // namespace waybill::internal
