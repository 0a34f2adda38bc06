// What the model makes of lists, of the ledger and of open pulls: Mode::kStrict.

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/support/model.h"
#include "tests/support/model_proofs.h"

namespace waybill::testing {

namespace {

constexpr std::string_view kSha256 = "sha256:";

bool IsBareId(const std::string& ref) {
  return ref.size() == 64 && ref.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// Whether the pull may have given the name. What it could give any image is asked before.
bool CouldGive(const KnownImage& pulled, const KnownImage& name) {
  if (pulled.repository != name.repository) return false;
  if (name.is_bare) return true;
  if (!pulled.digest.empty()) return pulled.digest == name.digest;
  return !name.digest.empty() || pulled.tag == name.tag;
}

// One record, with the credentials of both; of one Secret the newer hash.
ImagePulledRecord UniteProofs(const ImagePulledRecord& newer, const ImagePulledRecord& older,
                              const auto& merge) {
  ImagePulledRecord one = newer;
  one.closed_by_list = newer.closed_by_list && older.closed_by_list;
  one.closed_by_operator = newer.closed_by_operator || older.closed_by_operator;
  const auto only_closed = [](const ImagePulledRecord& record) {
    return !record.guest_platform && record.credential_mapping.empty() &&
           record.manifest_digest.empty();
  };
  if (only_closed(newer)) one.guest_platform = older.guest_platform;
  if (one.guest_platform != older.guest_platform && !only_closed(older)) {
    one.credential_mapping.clear();
    return one;
  }
  const bool other_manifest = !newer.manifest_digest.empty() && !older.manifest_digest.empty() &&
                              newer.manifest_digest != older.manifest_digest;
  if (other_manifest) return one;
  one.credential_mapping = older.credential_mapping;
  for (const auto& [name, credentials] : newer.credential_mapping) {
    if (!one.credential_mapping.contains(name)) {
      one.credential_mapping[name] = credentials;
    } else {
      merge(one, name, credentials);
    }
  }
  one.last_updated = std::max(newer.last_updated, older.last_updated);
  if (newer.manifest_digest.empty()) {
    one.manifest_digest = older.manifest_digest;
    one.platform = older.platform;
  }
  if (!one.credential_mapping.empty()) {
    one.closed_because.clear();
    one.closed_by_list = false;
  }
  return one;
}

// What was open to all gives way to Secrets that the other needed, or needs.
ImagePulledRecord GivesWay(const ImagePulledRecord& record, const ImagePulledRecord& other) {
  ImagePulledRecord left = record;
  for (const auto& [name, entry] : record.credential_mapping) {
    const auto there = other.credential_mapping.find(name);
    const bool open_there =
        there != other.credential_mapping.end() && there->second.node_pods_accessible;
    if (entry.node_pods_accessible && IsPrivate(other, name) && !open_there) {
      left.credential_mapping.erase(name);
    }
  }
  return left;
}

ImagePulledRecord Unite(const ImagePulledRecord& newer, const ImagePulledRecord& older,
                        const auto& merge) {
  ImagePulledRecord one = UniteProofs(GivesWay(newer, older), GivesWay(older, newer), merge);
  StaysPrivate(newer, one);
  StaysPrivate(older, one);
  return one;
}

}  // namespace

std::string SpellingOf(const std::string& ref) {
  if (IsBareId(ref)) return std::string(kSha256) + ref;
  const std::size_t at = ref.find("@sha256:");
  return at == std::string::npos ? ref : ref.substr(at + 1);
}

std::vector<std::string> PlainSpellings(const std::string& ref) {
  std::vector<std::string> all{ref};
  const std::string digest = SpellingOf(ref);
  if (digest != ref) all.push_back(digest);
  if (!digest.starts_with(kSha256)) return all;
  const std::string bare = digest.substr(kSha256.size());
  if (bare != ref && IsBareId(bare)) all.push_back(bare);
  return all;
}

// --- Spellings

std::string Model::ImageOf(const std::string& ref) const {
  if (!closed_) return ref;
  const std::string spelling = SpellingOf(ref);
  for (const auto& [copy, row] : rows_) {
    const bool has_it = copy.first != spelling &&
                        std::any_of(row.refs.begin(), row.refs.end(),
                                    [&](auto& other) { return SpellingOf(other) == spelling; });
    if (has_it) return copy.first;
  }
  return spelling;
}

std::vector<std::string> Model::RefsOf(const std::string& ref) const {
  if (!closed_) return {ref};
  std::vector<std::string> refs;
  const auto add = [&](const auto& others) {
    for (const std::string& other : others) {
      if (std::find(refs.begin(), refs.end(), other) == refs.end()) refs.push_back(other);
    }
  };
  add(PlainSpellings(ref));
  const std::string image = ImageOf(ref);
  add(PlainSpellings(image));
  for (const auto& [copy, row] : rows_) {
    if (copy.first == image) add(row.refs);
  }
  for (const auto& [copy, record] : records_) {
    if (copy.first == image) add(PlainSpellings(record.image_ref));
  }
  return refs;
}

Model::Records::const_iterator Model::FindRecord(const std::string& ref,
                                                 const std::string& stored) const {
  return records_.find({ImageOf(ref), stored});
}

// Each image of a list once for each handler.
std::vector<Model::Listed> Model::Prepare(const std::vector<ListedImage>& images,
                                          ClassifyReport& report) const {
  std::vector<Listed> prepared;
  for (const ListedImage& image : images) {
    ++report.listed;
    const std::string& handler = image.runtime_handler;
    // Without a list of handlers there is the default one only.
    const bool has_handler = !handlers_.empty() && !handler.empty();
    const std::string stored = has_handler ? Stored(handler).value_or(handler) : "";
    auto same = std::find_if(prepared.begin(), prepared.end(), [&](const Listed& other) {
      return SpellingOf(other.id) == SpellingOf(image.id) && other.stored == stored;
    });
    if (same == prepared.end()) {
      prepared.push_back({image.id, stored, false, true, has_handler, {}});
      same = std::prev(prepared.end());
    } else {
      ++report.repeated;
    }
    same->has_handler = same->has_handler && has_handler;
    same->pinned = same->pinned || image.pinned;
    same->imported = same->imported && image.imported;
    for (const auto* strings : {&image.repo_tags, &image.repo_digests}) {
      for (const std::string& name : *strings) {
        if (!FindKnownImage(name)->normalised) {
          ++report.not_names;
          continue;
        }
        same->names.push_back(name);
        if (strings == &image.repo_digests) same->digests.insert(name);
      }
    }
  }
  return prepared;
}

// How many records became part of another. No digest of these histories is of two images.
std::uint64_t Model::Learn(const std::vector<Listed>& images) {
  std::map<std::string, std::set<std::string>> digests;
  std::map<std::string, std::string> became;
  for (const Listed& image : images) {
    const std::string id = SpellingOf(image.id);
    digests[id].insert(image.digests.begin(), image.digests.end());
    for (const std::string& digest : image.digests) {
      if (ImageOf(digest) != id) became.emplace(SpellingOf(digest), id);
    }
  }
  for (const auto& [image, refs] : digests) {
    const CopyKey own{image, ""};
    Row& row = rows_[own];
    const Row before = row;
    row.listed = true;
    row.refs.insert(refs.begin(), refs.end());
    if (row == before) continue;
    if (!ledger_.contains(own)) Confirm(own);
    // The image may have been forgotten under what is now known to be a spelling of it.
    for (auto& [copy, record] : records_) {
      if (copy.first == image && DropForgotten(record)) record.stamp = writes_ + 1;
    }
  }
  std::uint64_t united = 0;
  for (const auto& [digest, image] : became) united += Become(digest, image);
  return united;
}

std::uint64_t Model::Become(const std::string& digest, const std::string& image) {
  std::set<std::string> handlers;
  const auto add = [&](const auto& all) {
    for (const auto& [copy, one] : all) {
      if (copy.first == digest) handlers.insert(copy.second);
    }
  };
  add(records_);
  add(ledger_);
  add(rows_);
  std::uint64_t united = 0;
  for (const std::string& handler : handlers) {
    const CopyKey copy{image, handler};
    const CopyKey with{digest, handler};
    united += records_.contains(copy) && records_.contains(with) ? 1U : 0U;
    UniteRows(copy, with);
  }
  return united;
}

// On the node if either says so. Of what is gone nothing counts beside a record.
void Model::UniteRows(const CopyKey& copy, const CopyKey& with) {
  const std::uint64_t stamp = StampOf(copy);
  const std::uint64_t other_stamp = StampOf(with);
  bool present = false;
  std::uint64_t absent_ran = 0;
  std::optional<Timestamp> absent_since;
  std::optional<ImagePulledRecord> record;
  std::optional<PreloadedImage> entry;
  bool both = false;
  const auto take_absent = [&](const auto& one) {
    present = present || !one.absent_since;
    if (one.absent_ran >= absent_ran) absent_since = one.absent_since;
    absent_ran = std::max(absent_ran, one.absent_ran);
  };
  for (const CopyKey& key : {copy, with}) {
    const auto at = records_.find(key);
    if (at == records_.end()) continue;
    DropForgotten(at->second);
    take_absent(at->second);
    both = record.has_value();
    if (!both) {
      record = at->second;
    } else {
      const bool other_is_newer = stamp < other_stamp;
      const auto merge = [&](auto& into, const auto& name, const auto& added) {
        return Merge(into, name, added);
      };
      record =
          other_is_newer ? Unite(at->second, *record, merge) : Unite(*record, at->second, merge);
    }
  }
  std::set<std::string> names;
  for (const CopyKey& key : {copy, with}) {
    const auto at = ledger_.find(key);
    if (at == ledger_.end()) continue;
    const PreloadedImage& one = at->second;
    take_absent(one);
    if (record && one.absent_since) continue;
    names.insert(one.names.begin(), one.names.end());
    const auto rank = [](const PreloadedImage& of) {
      return std::pair(!of.absent_since, of.stamp);
    };
    if (!entry || rank(*entry) < rank(one)) entry = one;
  }
  Row row = rows_[copy];
  const Row other = rows_[with];
  row.refs.insert(other.refs.begin(), other.refs.end());
  if (with.second.empty()) row.refs.insert(with.first);
  row.listed = row.listed || other.listed;
  if (present) absent_since.reset();
  records_.erase(with);
  ledger_.erase(with);
  rows_.erase(with);
  if (record) {
    record->runtime_handler = copy.second;
    record->absent_since = absent_since;
    record->absent_ran = absent_ran;
    if (both) record->stamp = writes_ + 1;
    records_[copy] = *record;
  } else {
    row.stamp = std::max(stamp, other_stamp);
  }
  rows_[copy] = row;
  ledger_.erase(copy);
  if (entry && !(record && (absent_since || record->closed_by_operator))) {
    entry->image_ref = copy.first;
    entry->names.assign(names.begin(), names.end());
    entry->absent_since = absent_since;
    entry->absent_ran = absent_ran;
    ledger_[copy] = *entry;
  }
}

void Model::LearnRef(const std::string& ref, const std::string& stored) {
  const std::string image = ImageOf(ref);
  const auto plain = PlainSpellings(image);
  if (std::find(plain.begin(), plain.end(), ref) != plain.end()) return;
  rows_[{image, stored}].refs.insert(ref);
}

void Model::LearnEntry(const ListedImage& image) {
  ClassifyReport ignored;
  Learn(Prepare({image}, ignored));
}

std::uint64_t Model::StampOf(const CopyKey& copy) const {
  if (const auto record = records_.find(copy); record != records_.end()) {
    return record->second.stamp;
  }
  const auto row = rows_.find(copy);
  return row == rows_.end() ? 0 : row->second.stamp;
}

void Model::Confirm(const CopyKey& copy) {
  if (!records_.contains(copy)) rows_[copy].stamp = writes_ + 1;
}

void Model::Unrecord(const CopyKey& copy) {
  const auto record = records_.find(copy);
  if (record == records_.end()) return;
  rows_[copy].stamp = record->second.stamp;
  records_.erase(record);
  TidyRow(copy);
}

void Model::Unload(const CopyKey& copy) {
  ledger_.erase(copy);
  TidyRow(copy);
}

void Model::TidyRow(const CopyKey& copy) {
  if (records_.contains(copy) || ledger_.contains(copy) || rows_[copy].listed) return;
  rows_.erase(copy);
}

// --- Open pulls

// Part of a write to come.
void Model::EvidenceRemoved() {
  evidence_removed_ = writes_ + 1;
  awaits_first_list_ = false;
}

std::vector<ModelPull>::iterator Model::Choose(const IntentKey& key, PullId id) {
  const auto newest = [&](PullState state) {
    const auto at = std::find_if(pulls_.rbegin(), pulls_.rend(), [&](const ModelPull& one) {
      const UnresolvedPull& pull = one.pull;
      return !pull.anything && !pull.several && pull.nothing_at == 0 && pull.state == state &&
             pull.image == key.first && pull.runtime_handler == key.second &&
             (id.value == 0 || pull.id == id);
    });
    return at == pulls_.rend() ? pulls_.end() : std::prev(at.base());
  };
  auto chosen = newest(PullState::kRunning);
  if (chosen == pulls_.end()) chosen = newest(PullState::kUnknown);
  if (chosen == pulls_.end() && id.value != 0) chosen = newest(PullState::kFailed);
  return chosen;
}

// Nobody says which of those of its string and state it is.
void Model::BeginWithTheOldest(UnresolvedPull& pull) const {
  for (const ModelPull& one : pulls_) {
    const UnresolvedPull& other = one.pull;
    const bool may_be_it = !other.anything && !other.several && other.nothing_at == 0 &&
                           other.image == pull.image && other.state == pull.state &&
                           other.runtime_handler == pull.runtime_handler;
    if (!may_be_it) continue;
    pull.began = std::min(pull.began, other.began);
    pull.stamp = std::min(pull.stamp, other.stamp);
  }
}

void Model::FailedOpenPull(const IntentKey& key, PullOutcome failure, PullId id) {
  const auto pull = Choose(key, id);
  if (pull != pulls_.end() && id.value == 0) BeginWithTheOldest(pull->pull);
  if (failure == PullOutcome::kNothing) {
    if (pull == pulls_.end()) return;
    const std::uint64_t began = pull->pull.stamp;
    if (began > opened_at_ && began > last_token_) {
      pulls_.erase(pull);
    } else {
      // A list that was drawn while it ran may have something of it.
      pull->pull.nothing_at = writes_ + 1;
      EndPull(pull, PullState::kFailed);
    }
    Written();
  } else if (pull != pulls_.end()) {
    EndPull(pull, failure == PullOutcome::kFailed ? PullState::kFailed : PullState::kUnknown);
    Written();
  }
}

void Model::EndPull(std::vector<ModelPull>::iterator at, PullState state) {
  ModelPull ended = *at;
  pulls_.erase(at);
  ended.pull.state = state;
  KeepEnded(std::move(ended));
}

// It ended now. Of one string and state one is kept.
void Model::KeepEnded(ModelPull ended) {
  UnresolvedPull& pull = ended.pull;
  pull.ended = now_;
  pull.ended_at = boot_;
  std::erase_if(pulls_, [&](const ModelPull& one) {
    const UnresolvedPull& other = one.pull;
    const bool same = other.anything == pull.anything && other.image == pull.image &&
                      other.runtime_handler == pull.runtime_handler && other.state == pull.state &&
                      (other.nothing_at == 0) == (pull.nothing_at == 0);
    if (!same) return false;
    pull.several = true;
    pull.began = std::min(pull.began, other.began);
    pull.stamp = std::min(pull.stamp, other.stamp);
    if (one.number > ended.number) {
      ended.number = one.number;
      pull.id = other.id;
    }
    return true;
  });
  pulls_.push_back(std::move(ended));
}

void Model::EndRunningPulls() {
  bool wrote = false;
  for (bool more = true; more;) {
    const auto runs = std::find_if(pulls_.begin(), pulls_.end(), [](const ModelPull& one) {
      return one.pull.state == PullState::kRunning;
    });
    more = runs != pulls_.end();
    if (more) EndPull(runs, PullState::kUnknown);
    wrote = wrote || more;
  }
  if (wrote) Written();
}

void Model::TakeOverIntent(const KnownImage& image, const std::string& stored, Timestamp began) {
  UnresolvedPull pull{
      .image = image.image, .runtime_handler = stored, .state = PullState::kUnknown};
  pull.began = began;
  KeepEnded({pull, image, ++last_number_});
}

void Model::PullOfAnything() {
  UnresolvedPull pull{.anything = true, .state = PullState::kUnknown};
  pull.began = now_;
  KeepEnded({pull, {}, ++last_number_});
}

void Model::PullOfDropped() {
  UnresolvedPull pull{.anything = true, .state = PullState::kDropped};
  pull.began = now_;
  pull.dropped_ran = RanSeconds();
  KeepEnded({pull, {}, ++last_number_});
}

bool Model::HasPullOfAnything() const {
  return std::any_of(pulls_.begin(), pulls_.end(),
                     [](const ModelPull& one) { return one.pull.anything; });
}

// Those of the chosen handlers become the default one's. How many.
std::uint64_t Model::FoldPulls(const Chosen& takes, std::set<std::string>& names) {
  std::vector<ModelPull> moved;
  std::erase_if(pulls_, [&](const ModelPull& one) {
    const bool taken = !one.pull.anything && takes(one.pull.runtime_handler);
    if (taken) moved.push_back(one);
    return taken;
  });
  std::uint64_t folded = 0;
  for (ModelPull& one : moved) {
    const bool may_bring = one.pull.nothing_at == 0;
    folded += may_bring ? 1U : 0U;
    if (may_bring) names.insert(one.pull.runtime_handler);
    one.pull.runtime_handler.clear();
    // The kubelet has one intent of a string.
    if (closed_ || !intents().contains({one.pull.image, ""})) pulls_.push_back(one);
  }
  SortPulls();
  return folded;
}

void Model::SortPulls() {
  std::sort(pulls_.begin(), pulls_.end(),
            [](const ModelPull& a, const ModelPull& b) { return a.number < b.number; });
}

std::uint64_t Model::SettlePulls(const ImageList& list) {
  const ListToken& token = *list.token;
  const BootTime& drawn = token.drawn;
  const bool knows_boot = drawn.boot_id == boot_.boot_id;
  std::uint64_t settled = 0;
  std::erase_if(pulls_, [&](const ModelPull& one) {
    const UnresolvedPull& pull = one.pull;
    if (!pull.ended) return false;
    // An image that was left may be its.
    const bool docker_hub = evidence_.short_names == ShortNames::kDockerHub;
    const KnownImage& pulled = one.image;
    const bool is_needed = pull.nothing_at == 0 && !IsBareId(pulled.image) &&
                           std::any_of(left_.begin(), left_.end(), [&](const std::string& name) {
                             return pull.anything || !pulled.normalised ||
                                    (!pulled.has_host && !docker_hub) ||
                                    CouldGive(pulled, *FindKnownImage(name));
                           });
    if (is_needed) return false;
    if (pull.state == PullState::kDropped) {
      settled += IsOver(pull.dropped_ran) ? 1 : 0;
      return IsOver(pull.dropped_ran);
    }
    if (pull.nothing_at != 0 && token.commit >= pull.nothing_at) return true;
    const bool this_boot = pull.ended_at.boot_id == boot_.boot_id;
    const std::chrono::nanoseconds since(drawn.nanoseconds - pull.ended_at.nanoseconds);
    const auto may_be_its = [&](const std::string& name) {
      return pull.anything || !pulled.normalised || (!pulled.has_host && !docker_hub) ||
             CouldGive(pulled, *FindKnownImage(name));
    };
    const bool comes =
        pull.nothing_at == 0 && !IsBareId(pulled.image) &&
        std::any_of(list.names_to_come.begin(), list.names_to_come.end(), may_be_its);
    const bool quiet =
        list.quiet_until && knows_boot && !comes && drawn.boot_id != BootTime().boot_id &&
        list.quiet_until->boot_id == drawn.boot_id && pull.ended_at.boot_id == drawn.boot_id &&
        pull.ended_at.nanoseconds <= list.quiet_until->nanoseconds &&
        list.quiet_until->nanoseconds <= drawn.nanoseconds;
    const bool settles =
        quiet ? true
        : pull.ended_at.boot_id == drawn.boot_id
            ? since >= (pull.state == PullState::kFailed ? evidence_.grace : evidence_.window)
            : knows_boot && !this_boot;
    settled += settles && pull.nothing_at == 0 ? 1 : 0;
    return settles;
  });
  return settled;
}

bool Model::Runs(PullId id) const {
  return std::any_of(pulls_.begin(), pulls_.end(), [&](const ModelPull& one) {
    return one.pull.id == id && one.pull.state == PullState::kRunning;
  });
}

bool Model::DropPull(PullId id) {
  if (id.value == 0) return false;
  const auto gone = std::erase_if(
      pulls_, [&](const ModelPull& one) { return one.pull.id == id && one.pull.nothing_at == 0; });
  if (gone == 0) return false;
  EvidenceRemoved();
  Written();
  return true;
}

// --- Judging

bool Model::InQuarantine(const std::string& ref) const {
  const auto refs = RefsOf(ref);
  return std::any_of(refs.begin(), refs.end(),
                     [&](const std::string& one) { return broken_refs_.contains(one); });
}

bool Model::IsKnown(const Listed& image) const {
  const auto entry = ledger_.find({ImageOf(image.id), image.stored});
  const bool in_ledger = entry != ledger_.end() && !entry->second.absent_since;
  return AnyRecordOf(image.id) || in_ledger || InQuarantine(image.id);
}

std::vector<Model::Listed> Model::Unknown(const std::vector<Listed>& images,
                                          ClassifyReport& report) const {
  std::vector<Listed> unknown;
  for (const Listed& image : images) {
    if (!IsKnown(image)) unknown.push_back(image);
  }
  report.known += images.size() - unknown.size();
  return unknown;
}

bool Model::Gives(const ModelPull& one, const KnownImage& name, bool pinned,
                  std::optional<std::uint64_t> until, bool first) const {
  const bool docker_hub = evidence_.short_names == ShortNames::kDockerHub;
  const KnownImage& pulled = one.image;
  if (one.pull.anything && first) return one.pull.state == PullState::kDropped;
  if (one.pull.nothing_at != 0 && (!until || *until >= one.pull.nothing_at)) return false;
  if (IsBareId(pulled.image)) return false;  // no runtime pulls by ID
  const bool anything =
      one.pull.anything || !pulled.normalised || (!pulled.has_host && !docker_hub);
  if (!anything) return CouldGive(pulled, name);
  const bool by_its_end = first || one.pull.nothing_at != 0;
  if (!by_its_end || pinned) return !pinned;
  // As a kubelet would presume: a registry or an alias that ends in what was written.
  KnownImage completed = pulled;
  completed.repository = name.repository;
  return pulled.normalised && name.repository.ends_with("/" + *pulled.name) &&
         CouldGive(completed, name);
}

bool Model::IsOver(std::uint64_t absent_ran) const {
  return RanSeconds() >= absent_ran + static_cast<std::uint64_t>(evidence_.remember.count());
}

Timestamp Model::AbsentFrom() const { return {std::max<std::int64_t>(now_.seconds, 1), 0}; }

void Model::ForgetAbsent(const CopyKey& copy) {
  const auto entry = ledger_.find(copy);
  if (entry != ledger_.end() && entry->second.absent_since) ledger_.erase(entry);
}

// What the runtime says of a copy says nothing of another one, and nothing against an operator.
void Model::ForgetOutdone(const std::vector<Listed>& images) {
  for (const Listed& image : images) {
    const auto says_so = [&](const std::string& stored) {
      bool its_own = false;
      bool any_copy = false;
      bool all = true;
      for (const Listed& other : images) {
        if (ImageOf(other.id) != ImageOf(image.id)) continue;
        if (!other.imported && !other.has_handler) return false;
        all = all && other.imported;
        any_copy = any_copy || !other.has_handler;
        its_own = its_own || (other.has_handler && other.imported && other.stored == stored);
      }
      return its_own || (any_copy && all);
    };
    const auto is_guess = [](const ImagePulledRecord& record) {
      return record.closed_by_list ? record.credential_mapping.empty()
                                   : record.absent_since && record.closed_because.empty();
    };
    std::vector<CopyKey> outdone;
    bool all = true;
    for (const auto& [copy, record] : records_) {
      if (copy.first != ImageOf(image.id)) continue;
      outdone.push_back(copy);
      all = all && !record.closed_by_operator && is_guess(record) && says_so(copy.second);
    }
    if (!all) continue;
    for (const CopyKey& copy : outdone) Unrecord(copy);
  }
}

const PreloadedImage* Model::ComesBack(const Listed& image, std::optional<std::uint64_t> until,
                                       bool first) const {
  const auto entry = ledger_.find({ImageOf(image.id), image.stored});
  if (entry == ledger_.end() || !entry->second.absent_since || IsRecordedAs(image)) return nullptr;
  const auto& had = entry->second.names;
  const bool has_own = std::any_of(image.names.begin(), image.names.end(), [&](const auto& name) {
    return std::find(had.begin(), had.end(), name) != had.end() &&
           std::none_of(pulls_.begin(), pulls_.end(), [&](const ModelPull& one) {
             // What is remembered was not dropped.
             return one.pull.state != PullState::kDropped &&
                    Gives(one, *FindKnownImage(name), false, until, first);
           });
  });
  return has_own ? &entry->second : nullptr;
}

void Model::GiveBack(const Listed& image) {
  const CopyKey copy{ImageOf(image.id), image.stored};
  PreloadedImage& entry = ledger_.at(copy);
  entry.absent_since.reset();
  entry.stamp = writes_ + 1;
  Confirm(copy);
}

Model::Origin Model::JudgeOrigin(const Listed& image, std::optional<std::uint64_t> until,
                                 bool first) const {
  const auto gives = [&](const ModelPull& one, const KnownImage& name) {
    return Gives(one, name, image.pinned, until, first);
  };
  // What it gave only a later list can tell.
  const auto is_later = [&](const ModelPull& one) {
    return one.pull.nothing_at != 0 || (until && one.pull.stamp > *until);
  };
  // Of an unreadable intent only the hash of one string is known.
  const auto broken_gives = [&](const KnownImage& name) {
    return std::any_of(broken_images_.begin(), broken_images_.end(), [&](const std::string& one) {
      return !name.digest.empty() || FindKnownImage(one)->normalised == name.normalised;
    });
  };
  // The image of a record whose ref no list ever had may be listed under another.
  const auto record_gives = [&](const ImagePulledRecord& record, const KnownImage& name) {
    if (first || WasListed(record.image_ref) || !record.closed_because.empty()) return false;
    if (record.absent_since) return false;
    const auto& mapping = record.credential_mapping;
    const bool has_name =
        std::any_of(KnownImages().begin(), KnownImages().end(), [&](const KnownImage& pulled) {
          return pulled.normalised && mapping.contains(pulled.name.value());
        });
    if (!has_name) {
      const std::size_t at = record.image_ref.find("@sha256:");
      if (at == std::string::npos) return !image.pinned;
      return FindKnownImage(record.image_ref)->repository == name.repository;
    }
    return std::any_of(KnownImages().begin(), KnownImages().end(), [&](const KnownImage& pulled) {
      return pulled.normalised && mapping.contains(pulled.name.value()) &&
             pulled.repository == name.repository;
    });
  };
  // A first start: what has an intent is not presumed preloaded, whatever its other names.
  const auto has_intent = [&](const ModelPull& one) {
    if (one.pull.anything || IsBareId(one.image.image)) return false;
    if (one.pull.nothing_at != 0 && (!until || *until >= one.pull.nothing_at)) return false;
    return std::any_of(image.names.begin(), image.names.end(), [&](const std::string& listed) {
      return listed == one.image.image || listed == one.image.normalised;
    });
  };
  if (IsRecordedAs(image)) return Origin::kPulled;
  bool later = false;
  bool unplaced = false;
  for (const std::string& listed : image.names) {
    const KnownImage& name = *FindKnownImage(listed);
    bool by_later = false;
    bool given = false;
    for (const ModelPull& one : pulls_) {
      if (gives(one, name)) (is_later(one) ? by_later : given) = true;
    }
    if (given || broken_gives(name)) {
      continue;
    } else if (std::any_of(records_.begin(), records_.end(),
                           [&](const auto& one) { return record_gives(one.second, name); })) {
      unplaced = true;
    } else if (by_later) {
      later = true;
    } else if (first && std::any_of(pulls_.begin(), pulls_.end(), has_intent)) {
      return Origin::kPulled;
    } else {
      return Origin::kPreloaded;
    }
  }
  return later ? Origin::kLater : unplaced ? Origin::kUnplaced : Origin::kPulled;
}

// Whether a record, readable or not, has the same content under a digest that is not known as the
// image's.
bool Model::IsRecordedAs(const Listed& image) const {
  std::set<std::string> recorded;
  for (const auto& [copy, record] : records_) {
    recorded.insert({SpellingOf(copy.first), ImageOf(copy.first)});
  }
  for (const std::string& broken : broken_refs_) {
    recorded.insert({SpellingOf(broken), ImageOf(broken)});
  }
  std::set<std::string> spellings = {SpellingOf(image.id)};
  for (const std::string& digest : image.digests) spellings.insert(SpellingOf(digest));
  return std::any_of(spellings.begin(), spellings.end(), [&](const std::string& one) {
    return recorded.contains(one) || recorded.contains(ImageOf(one));
  });
}

void Model::Enter(const Listed& image, const std::string& source, const std::string& reason) {
  const std::string of = ImageOf(image.id);
  const std::set<std::string> names(image.names.begin(), image.names.end());
  const CopyKey copy{of, image.stored};
  ledger_[copy] = {of,   image.stored, {names.begin(), names.end()}, source, reason,
                   now_, writes_ + 1};
  Confirm(copy);
  if (const auto record = records_.find(copy); record != records_.end()) {
    record->second.absent_since.reset();
  }
}

void Model::Leave(const Listed& image, ClassifyReport& report) {
  ++report.left;
  left_.insert(left_.end(), image.names.begin(), image.names.end());
}

void Model::JudgeAll(const std::vector<Listed>& images, const ImageList& list,
                     const std::vector<ListedImage>& preloaded, bool allow_empty,
                     ClassifyReport& report) {
  const bool first = awaits_first_list_ && list.complete && list.source.empty() &&
                     (!images.empty() || allow_empty);
  const bool placed = list.token && list.token->commit >= evidence_removed_;
  std::optional<std::uint64_t> until;
  if (list.token) until = list.token->commit;
  const std::vector<Listed> unknown = Unknown(images, report);
  // All are judged by what was known before the list.
  std::vector<Origin> origins;
  std::vector<bool> imported;
  std::vector<bool> comes_back;
  for (const Listed& image : unknown) {
    origins.push_back(JudgeOrigin(image, until, first));
    imported.push_back(image.imported && !IsRecordedAs(image));
    comes_back.push_back(ComesBack(image, until, first) != nullptr);
  }
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const bool named = first && Names(preloaded, unknown[i]);
    const bool may_enter = placed || (first && !list.token);
    if (!named && may_enter && (imported[i] || comes_back[i])) {
      if (imported[i]) {
        Enter(unknown[i], "imported", "");
        ++report.preloaded;
      } else {
        GiveBack(unknown[i]);
        ++report.known;
      }
    } else if (named || (origins[i] == Origin::kPreloaded && may_enter)) {
      Enter(unknown[i],
            named                        ? "preloaded-list"
            : !list.source.empty()       ? list.source
            : first && unknown[i].pinned ? "pinned"
            : first                      ? "presumed"
                                         : "listed",
            "");
      ++report.preloaded;
    } else if (origins[i] == Origin::kPulled ||
               (origins[i] == Origin::kUnplaced && list.complete)) {
      if (!list.source.empty()) {
        Leave(unknown[i], report);
        continue;
      }
      Close(unknown[i].id, unknown[i].stored, now_, true);
      ForgetAbsent({ImageOf(unknown[i].id), unknown[i].stored});
      ++report.closed;
    } else {
      Leave(unknown[i], report);
    }
  }
  if (first) awaits_first_list_ = false;
}

// Whether the list of an installer names the image.
bool Model::Names(const std::vector<ListedImage>& preloaded, const Listed& image) const {
  return std::any_of(preloaded.begin(), preloaded.end(), [&](const ListedImage& one) {
    const std::string named = SpellingOf(one.id);
    return named == SpellingOf(image.id) || named == ImageOf(image.id) ||
           std::any_of(image.digests.begin(), image.digests.end(),
                       [&](const std::string& digest) { return named == SpellingOf(digest); });
  });
}

void Model::CloseUnknown(const std::vector<Listed>& images,
                         const std::vector<ListedImage>& preloaded, bool may_enter, bool may_pin,
                         ClassifyReport& report) {
  const std::vector<Listed> unknown = Unknown(images, report);
  std::vector<std::string> sources;  // by what was known before
  for (const Listed& image : unknown) {
    const bool first = awaits_first_list_;
    const bool pinned =
        image.pinned && JudgeOrigin(image, std::nullopt, false) == Origin::kPreloaded;
    const bool imported = image.imported && !IsRecordedAs(image);
    sources.push_back(first && Names(preloaded, image) ? "preloaded-list"
                      : may_enter && imported          ? "imported"
                      : pinned                         ? "pinned"
                                                       : "");
  }
  for (std::size_t i = 0; i < unknown.size(); ++i) {
    const Listed& image = unknown[i];
    if (sources[i] == "pinned" && !may_pin) {
      Leave(image, report);
    } else if (!sources[i].empty()) {
      Enter(image, sources[i], "");
      ++report.preloaded;
    } else {
      Close(image.id, image.stored, now_, true);
      ForgetAbsent({ImageOf(image.id), image.stored});
      ++report.closed;
    }
  }
}

ClassifyReport Model::ObserveAt(const ImageList& list, const std::vector<ListedImage>& preloaded,
                                bool after_gap, bool allow_empty) {
  const Model before = *this;
  ClassifyReport report;
  auto images = Prepare(list.images, report);
  for (Listed& image : images) image.imported = image.imported && list.source.empty();
  const bool had_any = !records_.empty() || !ledger_.empty();
  // A list without anything that was known may be another node's, so to say.
  const auto tells = [&] {
    return allow_empty || report.known > 0 || (!had_any && !list.images.empty());
  };
  const bool in_gap = after_gap || gap_;
  const bool placed = list.token && list.token->commit >= evidence_removed_;
  left_.clear();
  std::vector<ListedImage> on_node = list.images;
  for (ListedImage& image : on_node) {
    if (handlers_.empty()) image.runtime_handler.clear();
  }
  if (list.source.empty()) report.united = Learn(images);
  if (placed) ForgetOutdone(images);
  if (list.complete && list.source.empty() && in_gap) {
    gap_ = true;
    CloseUnknown(images, preloaded, placed || (awaits_first_list_ && !list.token),
                 placed || awaits_first_list_, report);
    if (tells()) {
      gap_ = false;
      PullOfAnything();
      awaits_first_list_ = false;
    }
  } else if (distrustful()) {
    report.not_judged_because = "the store is distrustful";
    // Whatever the store lost, the runtime says that nobody pulled it.
    const std::vector<Listed> unknown = Unknown(images, report);
    std::vector<Listed> imported;
    for (const Listed& image : unknown) {
      if (placed && image.imported && !IsRecordedAs(image)) imported.push_back(image);
    }
    for (const Listed& image : imported) Enter(image, "imported", "");
    report.preloaded += imported.size();
    report.left = unknown.size() - imported.size();
  } else {
    JudgeAll(images, list, preloaded, allow_empty, report);
  }
  if (list.token && list.complete) {
    if (report.not_judged_because.empty() && tells()) report.pulls_settled = SettlePulls(list);
    if (report.pulls_settled > 0) EvidenceRemoved();
    const std::uint64_t token = list.token->commit;
    bool ignored = true;
    // A record that no list had may be of an image that was left.
    const auto old = [&](const ImagePulledRecord& one) {
      return one.stamp <= token &&
             (report.left == 0 || IsListed(on_node, one.image_ref, std::nullopt) ||
              WasListed(one.image_ref));
    };
    const bool keeps_ledger = in_gap && !tells();
    if (keeps_ledger) report.preloaded_removed = PruneLedger(on_node, token, true);
    const auto entry_old = [&](const PreloadedImage& one) { return one.stamp <= token; };
    const PruneReport pruned = PruneRecords(on_node, old, entry_old, ignored);
    report.records_removed = pruned.removed;
    report.preloaded_removed += pruned.preloaded_removed;
    if (!keeps_ledger) report.preloaded_removed += PruneLedger(on_node, token);
    KeepWithinBound();
    if (report.left == 0) ForgetUnknown(on_node, token);
  }
  if (list.token) last_list_ = list.token->commit;
  changed_ = after_gap || before.Evidence() != Evidence();
  if (changed_) Written();
  return report;
}

std::optional<ClassifyReport> Model::Observe(const ImageList& list, bool allow_empty) {
  if (list.token && list.token->commit < last_list_) return std::nullopt;
  const bool keeps_time = MustKeepTime();
  ClassifyReport report = ObserveAt(list, preloaded_, false, allow_empty);
  if (keeps_time && !std::exchange(changed_, true)) Written();
  return report;
}

std::uint64_t Model::PruneLedger(const std::vector<ListedImage>& images, std::uint64_t token,
                                 bool only_recorded) {
  const bool remembers = evidence_.remember.count() > 0;
  std::vector<CopyKey> gone;
  std::uint64_t left = 0;
  for (auto& [copy, entry] : ledger_) {
    if (entry.stamp > token || IsListed(images, copy.first, copy.second)) continue;
    if (remembers && entry.absent_since && !IsOver(entry.absent_ran)) continue;
    if (only_recorded && !AnyRecordOf(copy.first)) continue;
    left += entry.absent_since ? 0 : 1;
    const bool stays = remembers && !entry.absent_since && !records_.contains(copy) &&
                       !IsListed(images, copy.first, std::nullopt);
    if (!stays) {
      gone.push_back(copy);
      continue;
    }
    entry.absent_since = AbsentFrom();
    entry.absent_ran = RanSeconds();
    entry.stamp = writes_ + 1;
    Confirm(copy);
  }
  for (const CopyKey& copy : gone) Unload(copy);
  if (left > 0) EvidenceRemoved();
  return left;
}

// Images of which nothing is known but that a list had them.
void Model::ForgetUnknown(const std::vector<ListedImage>& on_node, std::uint64_t token) {
  const auto is_known = [](const auto& all, const std::string& image) {
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& one) { return one.first.first == image; });
  };
  std::erase_if(rows_, [&](const auto& one) {
    const std::string& image = one.first.first;
    return one.second.listed && one.second.stamp <= token && !is_known(records_, image) &&
           !is_known(ledger_, image) && !IsListed(on_node, image, std::nullopt);
  });
}

// What is away, beyond the bound; here it is known of 0 alone what that is.
void Model::KeepWithinBound() {
  if (most_remembered_ != 0) return;
  std::vector<CopyKey> records;
  std::vector<CopyKey> entries;
  for (const auto& [copy, record] : records_) {
    if (record.absent_since && !record.closed_by_operator) records.push_back(copy);
  }
  for (const auto& [copy, entry] : ledger_) {
    if (entry.absent_since) entries.push_back(copy);
  }
  for (const CopyKey& copy : records) Unrecord(copy);
  for (const CopyKey& copy : entries) Unload(copy);
  if (records.empty()) return;
  PullOfDropped();
  EvidenceRemoved();
}

bool Model::WasListed(const std::string& ref) const {
  const std::string spelling = SpellingOf(ref);
  const auto row = rows_.find({spelling, ""});
  return ImageOf(ref) != spelling || (row != rows_.end() && row->second.listed);
}

// --- An operator's word

void Model::AddToLedger(const ListedImage& image, const std::string& source,
                        const std::string& reason) {
  ClassifyReport ignored;
  const Listed entry = Prepare({image}, ignored).front();
  const auto record = records_.find({ImageOf(entry.id), entry.stored});
  if (record != records_.end()) record->second.closed_by_operator = false;
  Enter(entry, source, reason);
  Written();
}

bool Model::RemoveFromLedger(const std::string& ref, const std::string& handler) {
  const std::string stored = Stored(handler).value_or(handler);
  const std::string image = ImageOf(ref);
  const auto entry = ledger_.find({image, stored});
  if (entry == ledger_.end()) return false;
  const PreloadedImage before = entry->second;
  ledger_.erase(entry);
  bool has_own = false;
  for (auto& [copy, record] : records_) {
    if (copy.first != image) continue;
    has_own = has_own || copy.second == stored;
    if (!record.closed_by_list && copy.second != stored) continue;
    record.closed_by_operator = true;
    if (std::exchange(record.closed_by_list, false)) record.stamp = writes_ + 1;
  }
  if (!has_own) {
    Close(image, stored, now_);
    ImagePulledRecord& closed = records_.at({image, stored});
    closed.closed_by_operator = true;
    closed.absent_since = before.absent_since;
    closed.absent_ran = before.absent_ran;
  }
  EvidenceRemoved();
  Written();
  return true;
}

bool Model::SettlePresumed(const std::string& ref, const std::string& handler, Settled settled,
                           const std::string& reason) {
  const auto entry = ledger_.find({ImageOf(ref), Stored(handler).value_or(handler)});
  if (entry == ledger_.end() || entry->second.source != "presumed") return false;
  if (settled == Settled::kClosed) return RemoveFromLedger(ref, handler);
  if (entry->second.absent_since) return false;
  entry->second.source = "operator";
  entry->second.reason = reason;
  entry->second.since = now_;
  entry->second.stamp = writes_ + 1;
  Confirm(entry->first);
  Written();
  return true;
}

ClassifyReport Model::ClearDistrust(const AcceptLoss& options, const std::string& reason) {
  ClassifyReport report;
  gap_ = false;
  loss_ = false;
  if (!closed_) {
    Written();
    return report;
  }
  awaits_first_list_ = false;  // no list counts as the first any more, nor this one
  if (options.images) {
    const auto images = Prepare(*options.images, report);
    report.united = Learn(images);
    if (!options.allow_all) CloseUnknown(images, {}, false, true, report);
    for (const Listed& image :
         options.allow_all ? Unknown(images, report) : std::vector<Listed>()) {
      const bool pinned =
          image.pinned && JudgeOrigin(image, std::nullopt, false) == Origin::kPreloaded;
      Enter(image, pinned ? "pinned" : "adopted", pinned ? "" : reason);
      ++report.preloaded;
    }
  }
  PullOfAnything();
  Written();
  return report;
}

// --- Putting a backup back

// Pulls of either store may bring something. An entry of the ledger counts where both have it.
void Model::RestoreEvidence(const Model& backup) {
  const auto pulls = std::move(pulls_);
  pulls_ = backup.pulls_;
  last_number_ = std::max(last_number_, backup.last_number_);
  for (ModelPull one : pulls) {
    std::string& handler = one.pull.runtime_handler;
    handler = Stored(handler).value_or(handler);
    std::erase_if(pulls_, [&](const ModelPull& other) { return other.number == one.number; });
    pulls_.push_back(one);
  }
  SortPulls();
  // What can't be read closes an image under every spelling, which the backup may not know.
  const bool any_broken = !broken_refs_.empty() || !broken_images_.empty() ||
                          !backup.broken_refs_.empty() || !backup.broken_images_.empty();
  auto entries = backup.ledger_;
  std::erase_if(entries, [&](const auto& one) {
    const auto same = ledger_.find(one.first);
    return any_broken || same == ledger_.end() || same->second != one.second;
  });
  ledger_ = std::move(entries);
  last_list_ = kept_list_ = 0;
}

}  // namespace waybill::testing
