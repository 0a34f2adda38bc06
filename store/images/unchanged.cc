#include "store/images/unchanged.h"

#include <algorithm>
#include <numeric>
#include <string_view>

#include "store/base/image_spellings.h"
#include "store/base/try.h"
#include "store/images/other_rows.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

Key16 KeyOf(std::string_view ref, const Images& images) {
  return FirstImageKey(Spelling(ref).text(), images.txn().seed());
}

// Whether no row but the image's own is about the digest, by its key or by its aliases.
Result<bool> IsOfNoOtherRow(const Images& images, const Spelling& digest, const Key16& image) {
  const StoreTxn& txn = images.txn();
  const Key16 key = FirstImageKey(digest.text(), txn.seed());
  bool has_row = false;
  if (key != image) {
    TRY(txn.ForEachWithPrefix(Table::kImages, key, kSubjectKeyBytes,
                              [&](const Key16&, Payload) -> Result<bool> {
                                has_row = true;
                                return false;
                              }));
  }
  if (has_row) return false;
  const auto rows = TRY(images.RowsWithAlias(digest.text()));
  return std::ranges::all_of(rows, [&](const Key16& row) { return FirstOfImage(row) == image; });
}

// Whether no row but the image's own is about one of its digests, and its own are about nothing
// else.
Result<bool> IsByItself(const Images& images, const ListedImage& listed, const Key16& image) {
  bool is_plain = true;
  TRY(images.txn().ForEachWithPrefix(
      Table::kImages, image, kSubjectKeyBytes, [&](const Key16&, Payload payload) -> Result<bool> {
        std::string of;
        is_plain = !payload.empty() && !ImageView(payload).AliasOf(of);
        return is_plain;
      }));
  if (!is_plain || !TRY(IsOfNoOtherRow(images, Spelling(listed.id), image))) return false;
  for (const std::string& digest : listed.repo_digests) {
    if (!TRY(IsOfNoOtherRow(images, Spelling(digest), image))) return false;
  }
  return true;
}

bool IsDigest(const std::string& name) {
  const NamedImage parsed = ReadListed(name);
  return parsed.parses && !parsed.digest.empty();
}

}  // namespace

NamedImage ReadListed(const std::string& name) {
  return name.size() <= kMaxImageBytes ? ReadName(name) : NamedImage();
}

bool CanBeKnown(const ListedImage& image) {
  return !image.id.empty() && image.id.size() <= kMaxImageRefBytes;
}

std::optional<std::string> HandlerInList(const std::vector<RuntimeHandler>& handlers,
                                         const ListedImage& image) {
  if (handlers.empty() || image.runtime_handler.empty()) return std::nullopt;
  // No record is of such a name.
  if (image.runtime_handler.size() > kMaxRuntimeHandlerBytes) return std::string();
  return StoredName(handlers, image.runtime_handler);
}

Result<Unchanged> Unchanged::Find(const Images& images, const std::vector<ListedImage>& list) {
  Unchanged found;
  const StoreTxn& txn = images.txn();
  if (!images.learns_aliases()) return found;
  const auto handlers = TRY(ReadRuntimeHandlers(txn));
  found.Read(images, handlers, list);

  std::vector<std::size_t> places(list.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  const auto image_of = [&](std::size_t place) { return found.entries_[place].image; };
  std::ranges::sort(places, {}, image_of);
  for (std::span<const std::size_t> rest = places; !rest.empty();) {
    const Key16 image = image_of(rest.front());
    const auto end = std::ranges::upper_bound(rest, image, {}, image_of);
    const Places of_image = rest.first(static_cast<std::size_t>(end - rest.begin()));
    rest = rest.subspan(of_image.size());
    if (!TRY(found.IsUnchanged(images, list, of_image))) continue;
    for (const std::size_t place : of_image) found.entries_[place].is_unchanged = true;
    found.images_.push_back(image);
    found.count_ += of_image.size();
  }
  if (found.count_ == 0) return Unchanged();
  for (std::size_t place = 0; place < list.size(); ++place) {
    if (found.Has(place) || !CanBeKnown(list[place])) continue;
    if (!TRY(IsByItself(images, list[place], image_of(place)))) return Unchanged();
  }
  std::erase_if(found.mentions_, [&](const Mention& of) { return !found.Has(of.second); });
  return found;
}

void Unchanged::Read(const Images& images, const std::vector<RuntimeHandler>& handlers,
                     const std::vector<ListedImage>& list) {
  entries_.reserve(list.size());
  mentions_.reserve(2 * list.size());
  for (std::size_t place = 0; place < list.size(); ++place) {
    const ListedImage& one = list[place];
    entries_.push_back({.image = KeyOf(one.id, images), .handler = HandlerInList(handlers, one)});
    mentions_.emplace_back(entries_.back().image, place);
    for (const std::string& digest : one.repo_digests) {
      mentions_.emplace_back(KeyOf(digest, images), place);
    }
  }
  std::ranges::sort(mentions_);
}

std::span<const Unchanged::Mention> Unchanged::MentionsOf(const Key16& digest) const {
  return std::ranges::equal_range(mentions_, digest, {}, &Mention::first);
}

bool Unchanged::IsOnlyOf(const Key16& digest, const Key16& image) const {
  return std::ranges::all_of(MentionsOf(digest), [&](const Mention& mention) {
    return entries_[mention.second].image == image;
  });
}

Result<bool> Unchanged::IsUnchanged(const Images& images, const std::vector<ListedImage>& list,
                                    Places places) const {
  const Key16 image = entries_[places.front()].image;
  const std::string subject = images.SubjectOf(list[places.front()].id);
  std::set<std::string_view> copies;
  bool any_without_handler = false;
  bool any_imported = false;
  for (const std::size_t place : places) {
    if (!CanBeKnown(list[place])) return false;
    const auto& handler = entries_[place].handler;
    if (!copies.insert(handler ? std::string_view(*handler) : "").second) return false;
    any_without_handler = any_without_handler || !handler;
    any_imported = any_imported || list[place].imported;
  }

  // What is known of it counts, and each known copy is on the list.
  bool is_same = true;
  bool is_listed = false;
  bool is_recorded = false;
  std::set<std::string_view> preloaded;
  std::vector<std::string> aliases;
  TRY(images.txn().ForEachWithPrefix(
      Table::kImages, image, kSubjectKeyBytes, [&](const Key16&, Payload payload) -> Result<bool> {
        is_same = false;
        if (payload.empty()) return false;
        const ImageView row(payload);
        std::string of;
        if (!row.SubjectIs(subject) || row.is_absent() || row.AliasOf(of)) return false;
        const std::string_view handler = row.runtime_handler();
        const bool is_known = row.is_recorded() || row.has_preloaded();
        if (is_known && !any_without_handler && !copies.contains(handler)) return false;
        if (handler.empty()) {
          is_listed = row.is_listed();
          aliases = row.Aliases();
        }
        is_recorded = is_recorded || row.is_recorded();
        if (row.has_preloaded()) preloaded.insert(handler);
        return is_same = true;
      }));
  const bool is_known = is_recorded ? !any_imported : std::ranges::includes(preloaded, copies);
  if (!is_same || !is_listed || !is_known) return false;

  for (const std::size_t place : places) {
    const auto& digests = list[place].repo_digests;
    const bool has_all = std::ranges::all_of(digests, [&](const std::string& digest) {
      return std::ranges::binary_search(aliases, digest) && IsDigest(digest);
    });
    if (!has_all) return false;
  }
  aliases.push_back(subject);
  for (const std::string& alias : aliases) {
    const Spelling digest(alias);
    if (!IsOnlyOf(FirstImageKey(digest.text(), images.txn().seed()), image)) return false;
    if (!TRY(IsOfNoOtherRow(images, digest, image))) return false;
  }
  return true;
}

bool Unchanged::HasRow(const Key16& key) const {
  return std::ranges::binary_search(images_, FirstOfImage(key));
}

void Unchanged::AddHandlers(const Key16& digest,
                            std::set<std::optional<std::string>>& handlers) const {
  for (const auto& [key, place] : MentionsOf(digest)) {
    handlers.insert(entries_[place].handler);
  }
}

}  // namespace waybill::internal
