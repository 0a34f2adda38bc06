#include "migrations/kubelet_files/what_it_must_find.h"

#include <algorithm>
#include <new>
#include <utility>

#include "store/base/hex.h"
#include "store/base/image_name.h"
#include "store/base/image_spellings.h"
#include "store/base/options.h"
#include "store/base/sha256.h"

namespace waybill::internal {
namespace {

using Image = StoreContent::Image;

class Projection {
 public:
  Projection(const StoreContent& content, const KnownImages& images,
             const std::vector<ListedImage>* listed, ForWhom for_whom, bool preloaded_is_open)
      : content_(content),
        images_(images),
        listed_(listed),
        for_whom_(for_whom),
        preloaded_is_open_(preloaded_is_open) {
    for (const QuarantinedFile& entry : content.quarantine) {
      if (entry.kind == QuarantineKind::kImageRef) quarantined_.insert(entry.sha256);
    }
  }

  MustFind Make(const std::set<std::string>& kept) {
    // A kubelet asks by what its runtime shows. An export has each record under the ref that it was
    // recorded by, too.
    if (for_whom_ != ForWhom::kExport) TakeList();
    for (const auto& [subject, copies] : images_.by_subject()) TakeKnown(subject, copies);
    AddAliases();
    if (for_whom_ == ForWhom::kExport) TakeList();
    AddAliases();
    for (const UnresolvedPull& pull : content_.pulls) TakePull(pull, kept);
    return std::move(must_);
  }

 private:
  void TakeList() {
    if (listed_ == nullptr) return;
    for (const ListedImage& image : *listed_) {
      if (!image.id.empty()) TakeListed(image);
    }
  }

  void TakeListed(const ListedImage& listed) {
    const std::string home = images_.Home(listed.id);
    seen_.insert(home);
    const Image* image = images_.DefaultCopy(home);
    const std::vector<std::string> texts = TextsOf(listed);
    const bool in_quarantine = content_.has_evidence && InQuarantine(texts);
    const bool is_recorded = image != nullptr && image->row.pulled;
    if (content_.has_evidence && !in_quarantine && image != nullptr && image->row.preloaded &&
        image->row.absent == 0 && (preloaded_is_open_ || !is_recorded) &&
        (for_whom_ != ForWhom::kAdapter || PulledByOthers(home) == nullptr)) {
      must_.preloaded.emplace(RecordNameOf(listed.id), MustFind::Preloaded{listed.id, is_recorded});
      open_names_.insert(listed.repo_tags.begin(), listed.repo_tags.end());
      open_names_.insert(listed.repo_digests.begin(), listed.repo_digests.end());
      return;
    }
    MustFind::Record must{.is_on_record = is_recorded && for_whom_ == ForWhom::kGuard};
    if (must.is_on_record) must.record = RecordFrom(*image, !in_quarantine);
    must.record.image_ref = listed.id;
    Add(must, texts);
  }

  // Another handler's copy that was pulled; nullptr: none was.
  const Image* PulledByOthers(const std::string& subject) const {
    const auto at = images_.by_subject().find(subject);
    if (at == images_.by_subject().end()) return nullptr;
    const auto other = std::ranges::find_if(at->second, [](const Image* one) {
      return one->row.pulled && !one->row.runtime_handler.empty();
    });
    return other == at->second.end() ? nullptr : *other;
  }

  // What the store knows, and no list showed.
  void TakeKnown(const std::string& subject, const std::vector<const Image*>& copies) {
    const Image* image = images_.DefaultCopy(subject);
    // A kubelet has no handlers. Without a record of the default one's copy the others close it.
    const bool of_others = image == nullptr || !image->row.pulled;
    if (of_others && for_whom_ != ForWhom::kGuard) image = PulledByOthers(subject);
    if (image == nullptr || !image->row.pulled) return;
    const ImageRow& row = image->row;
    const std::vector<std::string> texts = for_whom_ != ForWhom::kExport && quarantined_.empty()
                                               ? std::vector<std::string>()
                                               : images_.TextsOf(row.Ref());
    const bool is_open = !content_.has_evidence || !InQuarantine(texts);
    MustFind::Record must{.record = RecordFrom(*image, is_open && row.runtime_handler.empty()),
                          .is_of_other_handler = !row.runtime_handler.empty()};
    for (const Image* copy : copies) {
      if (!copy->row.pulled) continue;
      must.record.last_updated = std::max(must.record.last_updated, copy->row.pulled->last_updated);
    }
    if (for_whom_ != ForWhom::kExport && seen_.contains(subject)) return;
    const bool by_list =
        for_whom_ == ForWhom::kGuard || (for_whom_ == ForWhom::kAdapter && content_.has_evidence);
    // A guard without a list: it may be back, since only a complete list takes an image for
    // present.
    const bool may_be_back = for_whom_ == ForWhom::kGuard && listed_ == nullptr;
    if (by_list && ((row.absent != 0 && !may_be_back) || row.preloaded)) return;
    Add(must, texts);
    must_.awaits_list = must_.awaits_list || (for_whom_ == ForWhom::kAdapter && !row.listed &&
                                              content_.has_evidence && !ReadName(row.Ref()).is_id);
  }

  void TakePull(const UnresolvedPull& pull, const std::set<std::string>& kept) {
    if (pull.anything || pull.nothing_at != 0) return;
    if (for_whom_ == ForWhom::kGuard && !pull.runtime_handler.empty()) return;
    const std::string name = RecordNameOf(pull.image);
    must_.unresolved.insert(name);
    if (pull.state == PullState::kRunning) ++must_.running[pull.image];
    const std::vector<std::string> names = AsListed(pull.image);
    const bool is_open = std::ranges::any_of(
        names, [&](const std::string& one) { return open_names_.contains(one); });
    if (for_whom_ == ForWhom::kGuard && !kept.contains(name) && is_open) return;
    must_.intents.emplace(name, pull.image);
    if (for_whom_ != ForWhom::kAdapter) return;
    for (const std::string& one : names) must_.intents.emplace(RecordNameOf(one), one);
  }

  // The string, and how a runtime lists the image that a pull of it brings.
  static std::vector<std::string> AsListed(const std::string& image) {
    std::vector<std::string> names = {image};
    if (auto full = NormaliseImage(image)) names.push_back(*std::move(full));
    // For `repo:tag@digest` that is only `repo@digest`.
    const NamedImage named = ReadName(image);
    if (!named.digest.empty()) names.push_back(named.repository + "@" + named.digest);
    return names;
  }

  // An image that is listed and not preloaded, or on record.
  void Add(MustFind::Record must, const std::vector<std::string>& texts) {
    if (for_whom_ == ForWhom::kAdapter) must.record.credential_mapping.clear();
    must_.records.emplace(RecordNameOf(must.record.image_ref), must);
    if (for_whom_ != ForWhom::kExport || !content_.has_evidence) return;
    must.is_alias = true;
    for (const std::string& text : texts) {
      must.record.image_ref = text;
      aliases_.push_back(must);
    }
  }

  // Behind the records of the refs themselves.
  void AddAliases() {
    for (MustFind::Record& must : std::exchange(aliases_, {})) {
      std::string name = RecordNameOf(must.record.image_ref);
      must_.records.emplace(std::move(name), std::move(must));
    }
  }

  static ImagePulledRecord RecordFrom(const Image& image, bool is_open) {
    ImagePulledRecord record{.image_ref = image.row.Ref(),
                             .last_updated = image.row.pulled->last_updated};
    if (is_open) record.credential_mapping = image.counting;
    return record;
  }

  // Only an export needs them for more than what is in quarantine.
  std::vector<std::string> TextsOf(const ListedImage& listed) const {
    if (for_whom_ != ForWhom::kExport && quarantined_.empty()) return {};
    std::vector<std::string> texts = images_.TextsOf(listed.id);
    texts.insert(texts.end(), listed.repo_digests.begin(), listed.repo_digests.end());
    return texts;
  }

  // Quarantine closes an image under every ref; a kubelet finds it under the exact one only.
  bool InQuarantine(const std::vector<std::string>& texts) const {
    if (quarantined_.empty()) return false;
    return std::ranges::any_of(texts, [&](const std::string& text) {
      const auto sha256 = Sha256(text);
      return !sha256 || quarantined_.contains(HexEncode(*sha256));
    });
  }

  const StoreContent& content_;
  const KnownImages& images_;
  const std::vector<ListedImage>* const listed_;
  const ForWhom for_whom_;
  const bool preloaded_is_open_;
  std::set<std::string> quarantined_;  // of image refs, in hex
  std::set<std::string> seen_;         // subjects of listed images
  std::set<std::string> open_names_;   // of those that are preloaded
  std::vector<MustFind::Record> aliases_;
  MustFind must_;
};

}  // namespace

std::string RecordNameOf(std::string_view ref_or_image) {
  const auto hash = Sha256(ref_or_image);
  // It refuses for lack of memory alone, and from then on.
  if (!hash) throw std::bad_alloc();
  return "sha256-" + HexEncode(*hash);
}

KnownImages::KnownImages(const StoreContent& content) : has_evidence_(content.has_evidence) {
  for (const Image& image : content.images) {
    const ImageRow& row = image.row;
    rows_[row.subject].push_back(&image);
    if (row.alias) owners_[row.subject] = row.alias->image;
    for (const std::string& alias : row.aliases) {
      const auto [at, is_new] = owners_.try_emplace(SpellingOf(alias), row.subject);
      if (!is_new && at->second != row.subject) at->second.clear();  // two images have it
    }
  }
}

std::vector<std::string> KnownImages::TextsOf(const std::string& image_ref) const {
  if (!has_evidence_) return {image_ref};
  std::vector<std::string> all = PlainSpellings(image_ref);
  const std::string home = Home(image_ref);
  if (const auto at = rows_.find(home); at != rows_.end()) {
    for (const Image* image : at->second) {
      const auto texts = internal::TextsOf(image->row);
      all.insert(all.end(), texts.begin(), texts.end());
    }
  }
  for (std::string& plain : PlainSpellings(home)) all.push_back(std::move(plain));
  return all;
}

std::string KnownImages::Home(const std::string& image_ref) const {
  if (!has_evidence_) return image_ref;
  std::string own = SpellingOf(image_ref);
  const auto at = owners_.find(own);
  return at == owners_.end() || at->second.empty() ? own : at->second;
}

const StoreContent::Image* KnownImages::DefaultCopy(const std::string& subject) const {
  const auto at = rows_.find(subject);
  if (at == rows_.end()) return nullptr;
  const auto copy = std::ranges::find_if(
      at->second, [](const Image* one) { return one->row.runtime_handler.empty(); });
  return copy == at->second.end() ? nullptr : *copy;
}

MustFind WhatItMustFind(const StoreContent& content, const KnownImages& images,
                        const std::vector<ListedImage>* listed, ForWhom for_whom,
                        const std::set<std::string>& kept, bool preloaded_is_open) {
  return Projection(content, images, listed, for_whom, preloaded_is_open).Make(kept);
}

}  // namespace waybill::internal
