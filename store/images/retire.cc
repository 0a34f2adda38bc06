#include "store/images/retire.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "store/base/try.h"
#include "store/images/open_pulls.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

std::atomic<std::size_t> most_remembered = kMaxRemembered;

// Nor may what was said of its coming be newer than the list: an operator may have said it.
bool OldEnough(const ImageRow& row, const RetireLimit& limit) {
  if (limit.by_stamp) {
    return row.stamp <= limit.token && (!row.preloaded || row.preloaded->as_of <= limit.token);
  }
  // On disk the kubelet's times have whole seconds.
  const auto& updated = row.pulled->last_updated;
  return !updated || Timestamp{updated->seconds, 0} < limit.until;
}

// Records to remove whose images are on the node under other handlers.
struct OtherCopies {
  std::map<std::string, std::vector<ImageRow>> by_subject;
  std::set<std::string> known;  // subjects that keep another record
};

// Removes them, except one for each image that keeps no other record: without it the copies on the
// node would pass for preloaded.
// NOLINTNEXTLINE(performance-unnecessary-value-param): the rows are moved from.
Result<void> RemoveCopies(Images& images, OtherCopies copies, PruneReport& report) {
  for (auto& [subject, rows] : copies.by_subject) {
    bool known = copies.known.contains(subject);
    // The one that was written last stays, whatever its key.
    std::ranges::sort(rows, [](const ImageRow& a, const ImageRow& b) {
      return a.stamp != b.stamp ? a.stamp > b.stamp : a.runtime_handler < b.runtime_handler;
    });
    for (ImageRow& row : rows) {
      if (known) {
        TRY(images.Unrecord(std::move(row)));
        ++report.removed;
        continue;
      }
      known = true;
      ++report.kept_without_credentials;
      if (row.pulled->entries.empty()) continue;
      row.pulled->entries.clear();
      TRY(images.Put(std::move(row), Images::Confirms::kYes));
    }
  }
  return {};
}

class Retiring {
 public:
  Retiring(Images& images, const OnNode& on_node, const RetireLimit& limit, const RetirePart& part)
      : images_(images), on_node_(on_node), limit_(limit), part_(part) {}

  Result<RetiredPart> Run() {
    retired_.report = part_.before;
    TRY(images_.txn().ForEachFrom(Table::kImages, part_.first,
                                  [&](const Key16& key, Payload payload) -> Result<bool> {
                                    // Rows of one subject are adjacent, and are judged together.
                                    if (changes_ >= part_.most && !IsOfLastSubject(key)) {
                                      retired_.next = key;
                                      return false;
                                    }
                                    last_ = key;
                                    return Visit(payload);
                                  }));
    for (ImageRow& row : turned_) {
      TRY(images_.Put(std::move(row), Images::Confirms::kYes, Images::Room::kReserve));
    }
    for (ImageRow& row : gone_) TRY(images_.Unrecord(std::move(row)));
    TRY(RemoveCopies(images_, std::move(copies_), retired_.report));
    if (retired_.report.removed > part_.before.removed) NoteEvidenceRemoved(images_.txn());
    return std::move(retired_);
  }

 private:
  bool IsOfLastSubject(const Key16& key) const {
    return std::equal(last_.bytes.begin(), last_.bytes.begin() + kSubjectKeyBytes,
                      key.bytes.begin());
  }

  Result<bool> Visit(Payload payload) {
    PruneReport& report = retired_.report;
    auto row = DecodeImage(payload);
    if (!row) {  // unreadable, so it may be of an image in the list
      ++report.examined;
      ++report.kept_in_list;
      return true;
    }
    if (!row->pulled) return true;
    ++report.examined;
    const auto listed = TRY(on_node_.Find(*row, OnNode::As::kRecord));
    if (listed.contains(std::nullopt) || listed.contains(row->runtime_handler)) {
      Keep(report.kept_in_list, *row);
      if (row->absent == 0) return true;
      row->absent = 0;
      Turn(*std::move(row));
      return true;
    }
    const StoreTxn& txn = images_.txn();
    // An operator's closing waits for its image, however long that is gone. What pulls proved goes.
    const bool stays = images_.learns_aliases() && row->pulled->closed_by == ClosedBy::kOperator;
    const bool is_over = txn.clocks().HasRunSince(row->absent, limit_.remember);
    if (row->absent != 0 && listed.empty() && (stays || !is_over)) {
      if (stays && is_over && !row->pulled->entries.empty()) {
        row->pulled->entries.clear();
        turned_.push_back(*std::move(row));
      }
      return true;
    }
    if (!OldEnough(*row, limit_)) {
      Keep(report.kept_newer, *row);
    } else if (stays && !listed.empty()) {
      Keep(report.kept_in_list, *row);
    } else if (!listed.empty()) {
      ++changes_;
      copies_.by_subject[row->subject].push_back(*std::move(row));
    } else {
      return Leave(*std::move(row), stays);
    }
    return true;
  }

  // One whose image is not on the node under any handler.
  Result<bool> Leave(ImageRow row, bool stays) {
    PruneReport& report = retired_.report;
    if (images_.learns_aliases()) {
      const auto was_known = TRY(images_.WasListed(row.Ref()));
      const bool was_listed = was_known || row.listed;
      if (limit_.spared != nullptr && (!was_listed || limit_.spared->contains(row.subject))) {
        Keep(report.kept_in_list, row);
        return true;
      }
      retired_.never_listed = retired_.never_listed || !was_listed;
    }
    const bool remembers = limit_.remember.count() > 0;
    if ((stays || remembers) && row.absent == 0) {
      ++report.removed;
      if (row.preloaded) ++report.preloaded_removed;
      row.absent = images_.txn().clocks().RanSeconds();
      if (!remembers) row.pulled->entries.clear();
      Turn(std::move(row));
      return true;
    }
    ++changes_;
    if (row.absent == 0 || !remembers) ++report.removed;
    gone_.push_back(std::move(row));
    return true;
  }

  void Keep(std::uint64_t& counter, const ImageRow& row) {
    ++counter;
    copies_.known.insert(row.subject);
  }

  // It left the node, or came back.
  void Turn(ImageRow row) {
    ++changes_;
    turned_.push_back(std::move(row));
  }

  Images& images_;
  const OnNode& on_node_;
  const RetireLimit& limit_;
  const RetirePart& part_;
  RetiredPart retired_;
  std::size_t changes_ = 0;
  Key16 last_;
  std::vector<ImageRow> turned_;
  std::vector<ImageRow> gone_;
  OtherCopies copies_;
};

}  // namespace

void SetMostRememberedForTests(std::size_t most) { most_remembered = most; }

Result<void> OnNode::Add(const std::string& id, const std::vector<std::string>& digests,
                         const std::optional<std::string>& runtime_handler) {
  const auto home = TRY(images_.Home(id));
  handlers_[images_.SubjectOf(id)].insert(runtime_handler);
  handlers_[home].insert(runtime_handler);
  if (!images_.learns_aliases()) return {};
  for (const std::string& digest : digests) {
    handlers_[images_.SubjectOf(digest)].insert(runtime_handler);
  }
  return {};
}

Result<OnNode::Handlers> OnNode::Find(const ImageRow& row, As as) const {
  Handlers found;
  const auto add = [&](const std::string& key) {
    const auto at = handlers_.find(key);
    if (at != handlers_.end()) found.insert(at->second.begin(), at->second.end());
  };
  add(row.subject);
  if (!images_.learns_aliases()) return found;
  const auto home = TRY(images_.Home(row.subject));
  add(home);
  if (row.pulled && as == As::kRecord) add(images_.SubjectOf(row.Ref()));
  return found;
}

Result<RetiredPart> RetireRecords(Images& images, const OnNode& on_node, const RetireLimit& limit,
                                  const RetirePart& part) {
  return Retiring(images, on_node, limit, part).Run();
}

Result<RetiredPreloaded> RetirePreloaded(Images& images, const OnNode& on_node,
                                         const RetireLimit& limit, bool only_recorded,
                                         std::size_t most) {
  RetiredPreloaded retired;
  const Clocks now = images.txn().clocks();
  std::vector<ImageRow> gone;
  std::vector<ImageRow> away;
  TRY(images.ForEach([&](const ImageRow* row) -> Result<bool> {
    if (row == nullptr || !row->preloaded || row->preloaded->as_of > limit.token) return true;
    const auto listed = TRY(on_node.Find(*row, OnNode::As::kPreloaded));
    if (listed.contains(row->runtime_handler) || listed.contains(std::nullopt)) return true;
    if (row->absent != 0 && !row->pulled && !now.HasRunSince(row->absent, limit.remember)) {
      return true;
    }
    if (only_recorded && !TRY(images.AnyRecorded(row->subject))) return true;
    if (row->absent == 0) ++retired.entries;
    const bool stays =
        limit.remember.count() > 0 && row->absent == 0 && listed.empty() && !row->pulled;
    (stays ? away : gone).push_back(*row);
    retired.more = away.size() + gone.size() >= most;
    return !retired.more;
  }));
  for (ImageRow& row : away) {
    row.absent = now.RanSeconds();
    row.preloaded->as_of = images.txn().sequence();
    TRY(images.Put(std::move(row), Images::Confirms::kYes, Images::Room::kReserve));
  }
  for (ImageRow& row : gone) TRY(images.Unload(std::move(row)));
  if (retired.entries > 0) NoteEvidenceRemoved(images.txn());
  return retired;
}

Result<void> KeepWithinBound(Images& images) {
  const StoreTxn& txn = images.txn();
  const std::size_t most = most_remembered;
  using Away = std::tuple<bool, std::uint64_t, Key16>;  // what goes first, first
  std::vector<Away> records;
  std::vector<Away> preloaded;
  TRY(txn.ForEach(Table::kImages, [&](const Key16& key, Payload payload) -> Result<bool> {
    if (payload.empty()) return true;
    const ImageView view(payload);
    if (!view.is_absent() || view.is_closed_by_operator()) return true;
    const auto row = DecodeImage(payload);
    if (!row) return true;
    const bool by_list = row->pulled && row->pulled->closed_by == ClosedBy::kList;
    (row->pulled ? records : preloaded).emplace_back(by_list, row->absent, key);
    return true;
  }));
  const bool drops_records = records.size() > most;
  for (std::vector<Away>* all : {&records, &preloaded}) {
    std::ranges::sort(*all);
    all->resize(all->size() - std::min(all->size(), most));
    for (const auto& [by_list, absent, key] : *all) {
      const auto payload = TRY(txn.Get(Table::kImages, key));
      auto row = payload ? DecodeImage(*payload) : std::nullopt;
      if (!row) continue;
      TRY(row->pulled ? images.Unrecord(*std::move(row)) : images.Unload(*std::move(row)));
    }
  }
  if (!drops_records) return {};
  NoteEvidenceRemoved(images.txn());
  return OpenPullOfAnything(images.txn(), txn.clocks().boot, PullState::kDropped);
}

Result<void> ForgetUnknown(Images& images, const OnNode& on_node, std::uint64_t token) {
  std::vector<ImageRow> gone;
  TRY(images.ForEach([&](const ImageRow* row) -> Result<bool> {
    if (row == nullptr || !row->runtime_handler.empty() || (!row->listed && !row->alias)) {
      return true;
    }
    const auto listed = TRY(on_node.Find(*row, OnNode::As::kRecord));
    if (!listed.empty()) return true;
    const auto is_known = [](const ImageRow& one) { return one.pulled || one.preloaded; };
    const auto rows = TRY(images.RowsOf(row->subject));
    const bool is_its_own =
        row->listed && row->stamp <= token && !std::ranges::any_of(rows, is_known);
    bool is_no_alias = false;
    if (row->alias && row->alias->stamp <= token) {
      const std::string& of = row->alias->image.empty() ? row->subject : row->alias->image;
      const auto owner = TRY(images.RowsOf(of));
      is_no_alias = std::ranges::none_of(
          owner, [&](const ImageRow& one) { return is_known(one) || one.listed; });
    }
    if (!is_its_own && !is_no_alias) return true;
    gone.push_back(*row);
    if (is_its_own) {
      gone.back().listed = false;
      gone.back().aliases.clear();
    }
    if (is_no_alias) gone.back().alias.reset();
    return true;
  }));
  for (ImageRow& row : gone) {
    TRY(images.Put(std::move(row), Images::Confirms::kNo, Images::Room::kReserve));
  }
  return {};
}

}  // namespace waybill::internal
