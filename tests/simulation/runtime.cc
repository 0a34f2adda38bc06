#include "tests/simulation/runtime.h"

#include <algorithm>

#include "store/base/image_name.h"
#include "waybill/values.h"

namespace waybill::simulation {

namespace {

constexpr std::string_view kSha256 = "sha256:";

bool IsHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// The hex digits of an ID, also of its beginning; empty: it is a name.
std::string_view HexOf(std::string_view image) {
  if (image.starts_with(kSha256)) image.remove_prefix(kSha256.size());
  return image.size() >= 12 && image.size() <= 64 && IsHex(image) ? image : std::string_view();
}

bool HasHost(std::string_view name) {
  const std::string_view first = name.substr(0, name.find('/'));
  return first.size() < name.size() &&
         (first.find('.') != std::string_view::npos || first.find(':') != std::string_view::npos ||
          first == "localhost");
}

std::string RepositoryOfName(const std::string& name) {
  return name.substr(0, std::min(name.find('@'), name.rfind(':')));
}

}  // namespace

Runtime::Runtime(const World& world, RuntimeKind kind, bool tells_imports)
    : world_(world),
      kind_(kind),
      tells_imports_(tells_imports && kind == RuntimeKind::kContainerd),
      ids_with_prefix_(kind == RuntimeKind::kContainerd) {}

void Runtime::ChangeForms(bool ids_with_prefix, bool pulls_return_repo_digests) {
  ids_with_prefix_ = ids_with_prefix;
  pulls_return_repo_digests_ = pulls_return_repo_digests;
  Changed();
}

std::optional<FullName> Runtime::Complete(std::string_view image) const {
  const std::optional<ImageParts> parts = PartsOfImage(image);
  if (!parts || parts->name == "sha256") return std::nullopt;
  FullName full{std::string(parts->name), std::string(parts->tag), std::string(parts->digest)};
  if (!full.digest.empty()) {
    full.tag.clear();
  } else if (full.tag.empty()) {
    full.tag = "latest";
  }
  if (HasHost(full.repository)) return full;
  if (kind_ == RuntimeKind::kCrio) {
    const auto alias = world_.aliases().find(full.repository);
    if (alias != world_.aliases().end()) {
      full.repository = alias->second;
      return full;
    }
  }
  const bool has_path = full.repository.find('/') != std::string::npos;
  full.repository = (has_path ? "docker.io/" : "docker.io/library/") + full.repository;
  return full;
}

std::optional<ContentIndex> Runtime::Resolve(std::string_view image) const {
  List();
  if (const std::string_view hex = HexOf(image); !hex.empty()) {
    if (hex.size() == 64) {
      const auto found = by_hex_.find(std::string(hex));
      if (found != by_hex_.end()) return found->second;
      return std::nullopt;
    }
    for (const auto& [content, ignored] : images_) {
      if (world_.content(content).hex.starts_with(hex)) return content;
    }
  }
  const std::optional<FullName> full = Complete(image);
  if (!full) return std::nullopt;
  const auto& names = full->digest.empty() ? by_tag_ : by_digest_;
  const auto found = names.find(full->text());
  if (found == names.end()) return std::nullopt;
  return found->second;
}

std::string Runtime::Id(ContentIndex content) const {
  const std::string& hex = world_.content(content).hex;
  return ids_with_prefix_ ? std::string(kSha256) + hex : hex;
}

std::string Runtime::PullRef(ContentIndex content, const FullName& name) const {
  if (!pulls_return_repo_digests_) return Id(content);
  const std::string& digest =
      name.digest.empty() ? world_.content(content).top_digest() : name.digest;
  return name.repository + "@" + digest;
}

ListedImage Runtime::Entry(ContentIndex content) const {
  const Image& image = images_.at(content);
  return {.id = Id(content),
          .repo_tags = image.tags,
          .repo_digests = RepoDigests(content, image),
          .pinned = image.pinned,
          .imported = IsImported(content)};
}

std::vector<std::string> Runtime::RepoDigests(ContentIndex content, const Image& image) const {
  std::vector<std::string> names = image.digests;
  if (kind_ == RuntimeKind::kContainerd) return names;
  const auto add = [&](const std::string& repository, const std::string& digest) {
    if (digest.empty()) return;
    const std::string name = repository + "@" + digest;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  const Content& known = world_.content(content);
  for (const auto* list : {&image.tags, &image.digests}) {
    for (const std::string& name : *list) {
      const std::string repository = RepositoryOfName(name);
      add(repository, known.manifest);
      add(repository, known.index);
    }
  }
  return names;
}

const std::vector<ListedImage>& Runtime::List() const {
  if (listed_) return list_;
  list_.clear();
  by_digest_.clear();
  by_hex_.clear();
  for (const auto& [content, image] : images_) {
    list_.push_back(Entry(content));
    by_hex_[world_.content(content).hex] = content;
    for (const std::string& name : list_.back().repo_digests) by_digest_[name] = content;
  }
  listed_ = true;
  return list_;
}

std::vector<ContentIndex> Runtime::Contents() const {
  std::vector<ContentIndex> contents;
  for (const auto& [content, ignored] : images_) contents.push_back(content);
  return contents;
}

void Runtime::GiveTag(ContentIndex content, const std::string& tag) {
  const auto owner = by_tag_.find(tag);
  if (owner != by_tag_.end()) {
    if (owner->second == content) return;
    std::erase(images_.at(owner->second).tags, tag);
  }
  by_tag_[tag] = content;
  images_.at(content).tags.push_back(tag);
}

void Runtime::Pulled(ContentIndex content, const FullName& name) {
  Image& image = images_[content];
  if (name.digest.empty()) GiveTag(content, name.text());
  // containerd names the digest that the tag stood for, CRI-O makes it up when it lists.
  if (kind_ == RuntimeKind::kContainerd || !name.digest.empty()) {
    const std::string digest =
        name.repository + "@" +
        (name.digest.empty() ? world_.content(content).top_digest() : name.digest);
    if (std::find(image.digests.begin(), image.digests.end(), digest) == image.digests.end()) {
      image.digests.push_back(digest);
    }
  }
  Changed();
}

void Runtime::Import(ContentIndex content, const std::string& tag) {
  images_.try_emplace(content);
  if (!tag.empty()) GiveTag(content, tag);
  Changed();
}

void Runtime::Label(ContentIndex content) {
  if (!tells_imports_) return;
  labelled_.insert(world_.content(content).manifest);
  labelled_.insert(world_.content(content).top_digest());
  Changed();
}

void Runtime::Collect(ContentIndex content) {
  const Content& gone = world_.content(content);
  labelled_.erase(gone.manifest);
  // The index may be needed by the image of another platform.
  const bool is_needed = std::any_of(images_.begin(), images_.end(), [&](const auto& image) {
    return world_.content(image.first).top_digest() == gone.top_digest();
  });
  if (!is_needed) labelled_.erase(gone.top_digest());
}

bool Runtime::IsImported(ContentIndex content) const {
  return tells_imports_ && !labelled_.contains(world_.content(content).manifest) &&
         !labelled_.contains(world_.content(content).top_digest());
}

Runtime::Image Runtime::Take(ContentIndex content) {
  Image image = images_.at(content);
  Remove(content);
  return image;
}

void Runtime::GiveBack(ContentIndex content, const Image& image) {
  const auto [at, is_gone] = images_.try_emplace(content, image);
  if (!is_gone) return;
  at->second.tags.clear();
  for (const std::string& tag : image.tags) {
    if (!by_tag_.contains(tag)) GiveTag(content, tag);
  }
  Changed();
}

void Runtime::Remove(ContentIndex content) {
  for (const std::string& tag : images_.at(content).tags) by_tag_.erase(tag);
  images_.erase(content);
  Changed();
}

}  // namespace waybill::simulation
