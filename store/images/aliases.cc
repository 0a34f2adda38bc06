#include "store/images/aliases.h"

#include <algorithm>
#include <set>

#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/disk/tables.h"

namespace waybill::internal {

namespace {

// Those of which the row must be found under its own key.
std::set<Key16> KeysOf(const std::string& subject, const std::vector<std::string>& aliases,
                       std::uint64_t seed) {
  std::set<Key16> keys;
  for (const std::string& alias : aliases) {
    const Spelling spelling(alias);
    if (spelling.text() != subject) keys.insert(ImageKey(spelling.text(), "", seed));
  }
  return keys;
}

void AddRow(Payload payload, std::uint64_t seed, std::vector<std::pair<Key16, Key16>>& pairs) {
  if (payload.empty() || !ImageView(payload).has_aliases()) return;
  const auto row = DecodeImage(payload);
  if (!row) return;
  const Key16 image = ImageKey(row->subject, row->runtime_handler, seed);
  for (const Key16& digest : KeysOf(row->subject, row->aliases, seed)) {
    pairs.emplace_back(digest, image);
  }
}

}  // namespace

std::vector<Key16> Aliases::FindIn(const Pairs& pairs, const Key16& digest) {
  std::vector<Key16> rows;
  auto at = std::ranges::lower_bound(pairs, digest, {}, &std::pair<Key16, Key16>::first);
  for (; at != pairs.end() && at->first == digest; ++at) rows.push_back(at->second);
  return rows;
}

Result<void> Aliases::Load(const StoreTxn& txn) {
  if (committed_.load() != nullptr) return {};
  auto index = std::make_shared<Index>();
  index->as_of = txn.state().aliases_changed;
  TRY(txn.ForEach(Table::kImages, [&](const Key16&, Payload payload) -> Result<bool> {
    AddRow(payload, txn.seed(), index->pairs);
    return true;
  }));
  std::ranges::sort(index->pairs);
  committed_ = std::move(index);
  return {};
}

Result<std::vector<Key16>> Aliases::Find(const StoreTxn& txn, std::string_view subject) {
  TRY(Load(txn));
  const Key16 digest = ImageKey(subject, "", txn.seed());
  if (const auto at = changed_.find(digest); at != changed_.end()) return at->second;
  return FindIn(committed_.load()->pairs, digest);
}

std::vector<Key16>& Aliases::ChangedOf(const Key16& digest) {
  const auto at = changed_.find(digest);
  if (at != changed_.end()) {
    undo_.emplace_back(digest, at->second);
    return at->second;
  }
  auto rows = FindIn(committed_.load()->pairs, digest);
  undo_.emplace_back(digest, std::nullopt);
  return changed_.emplace(digest, std::move(rows)).first->second;
}

Result<void> Aliases::Change(StoreTxn& txn, const ImageRow& row,
                             const std::vector<std::string>& before) {
  if (before == row.aliases) return {};
  TRY(Load(txn));
  const Key16 image = ImageKey(row.subject, row.runtime_handler, txn.seed());
  const std::set<Key16> was = KeysOf(row.subject, before, txn.seed());
  const std::set<Key16> is = KeysOf(row.subject, row.aliases, txn.seed());
  for (const Key16& digest : was) {
    if (!is.contains(digest)) std::erase(ChangedOf(digest), image);
  }
  for (const Key16& digest : is) {
    if (was.contains(digest)) continue;
    auto& rows = ChangedOf(digest);
    if (std::ranges::find(rows, image) == rows.end()) rows.push_back(image);
  }
  changed_in_ = txn.sequence();
  txn.state().aliases_changed = txn.sequence();
  return {};
}

void Aliases::RollBackTo(std::size_t mark) {
  while (undo_.size() > mark) {
    auto& [digest, before] = undo_.back();
    if (before) {
      changed_.find(digest)->second.swap(*before);
    } else {
      changed_.erase(digest);
    }
    undo_.pop_back();
  }
}

void Aliases::Publish() noexcept {
  if (changed_.empty()) return;
  const auto before = committed_.load();
  try {
    committed_ = Merge(*before);
  } catch (...) {
    committed_.store({});  // out of memory: it is made anew when it is needed
  }
  changed_.clear();
}

std::shared_ptr<const Aliases::Index> Aliases::Merge(const Index& before) const {
  auto index = std::make_shared<Index>();
  index->as_of = changed_in_;
  index->pairs.reserve(before.pairs.size() + changed_.size());
  for (const auto& pair : before.pairs) {
    if (!changed_.contains(pair.first)) index->pairs.push_back(pair);
  }
  for (const auto& [digest, rows] : changed_) {
    for (const Key16& row : rows) index->pairs.emplace_back(digest, row);
  }
  std::ranges::sort(index->pairs);
  return index;
}

std::optional<std::vector<Key16>> Aliases::Find(const ReaderPool::Lease& snapshot,
                                                std::string_view subject) {
  const Key16 digest = ImageKey(subject, "", snapshot.seed());
  // The owner's own is never older than a commit whose caller knows of it.
  if (const auto index = committed_.load()) return FindIn(index->pairs, digest);
  auto index = scanned_.load();
  const std::uint64_t seed = snapshot.seed();
  if (index == nullptr || index->as_of != snapshot.state().aliases_changed || index->seed != seed) {
    auto made = std::make_shared<Index>();
    made->as_of = snapshot.state().aliases_changed;
    made->seed = seed;
    const auto add = [&](Payload payload) { AddRow(payload, snapshot.seed(), made->pairs); };
    if (!snapshot.ForEach(SpecOf(Table::kImages), add)) return std::nullopt;
    std::ranges::sort(made->pairs);
    scanned_ = index = std::move(made);
  }
  return FindIn(index->pairs, digest);
}

}  // namespace waybill::internal
