#include "guard/items.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>

namespace waybill::guard {
namespace {

constexpr std::string_view kSecret = "secret";
constexpr std::string_view kServiceAccount = "serviceaccount";

std::uint64_t Hash(std::string_view text, std::uint64_t seed) {
  return text.empty() ? 0 : XXH3_64bits_withSeed(text.data(), text.size(), seed);
}

std::uint64_t Coordinates(std::string_view kind, std::string_view name_space, std::string_view name,
                          std::uint64_t seed) {
  std::string text(kind);
  for (const std::string_view part : {name_space, name}) {
    text += '\0';
    text += part;
  }
  const std::uint64_t hash = Hash(text, seed);
  return hash == Item::kAnyPod ? 0 : hash;
}

class Maker {
 public:
  Maker(const std::string& image_name, std::uint64_t seed)
      : name_(Hash(image_name, seed)), seed_(seed) {}

  Item AnyPod() const { return {.image_name = name_, .coordinates = Item::kAnyPod}; }
  Item operator()(const ImagePullSecret& one) const {
    Item item = Of(kSecret, one);
    item.hash = Hash(one.credential_hash, seed_);
    return item;
  }
  Item operator()(const ImagePullServiceAccount& one) const { return Of(kServiceAccount, one); }

 private:
  template <typename T>
  Item Of(std::string_view kind, const T& one) const {
    return {.image_name = name_,
            .name_space = Hash(one.namespace_name, seed_),
            .coordinates = Coordinates(kind, one.namespace_name, one.name, seed_),
            .uid = Hash(one.uid, seed_)};
  }

  std::uint64_t name_;
  std::uint64_t seed_;
};

bool AreOfOne(const Item& a, const Item& b) {
  return a.coordinates == b.coordinates && a.uid == b.uid;
}

template <typename T>
bool SameCoordinates(const T& a, const T& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

void Unite(ImagePullCredentials& into, const ImagePullCredentials& from) {
  if (into.node_pods_accessible || from.node_pods_accessible) {
    if (!into.node_pods_accessible) into.node_pods_proof = from.node_pods_proof;
    into.node_pods_accessible = true;
    into.kubernetes_secrets.clear();
    into.kubernetes_service_accounts.clear();
    return;
  }
  const auto add = [](auto& all, const auto& more) {
    for (const auto& one : more) {
      const bool known =
          std::ranges::any_of(all, [&](const auto& other) { return SameCoordinates(other, one); });
      if (!known) all.push_back(one);
    }
  };
  add(into.kubernetes_secrets, from.kubernetes_secrets);
  add(into.kubernetes_service_accounts, from.kubernetes_service_accounts);
}

}  // namespace

Items ItemsOf(const ImagePulledRecord& record, std::uint64_t seed) {
  Items items;
  for (const auto& [name, entry] : record.credential_mapping) {
    const Maker item(name, seed);
    if (entry.node_pods_accessible) items.push_back(item.AnyPod());
    for (const auto& one : entry.kubernetes_secrets) items.push_back(item(one));
    for (const auto& one : entry.kubernetes_service_accounts) items.push_back(item(one));
  }
  std::ranges::sort(items);
  const auto twice = std::ranges::unique(items);
  items.erase(twice.begin(), twice.end());
  return items;
}

ImagePulledRecord Only(ImagePulledRecord record, const Items& items, std::uint64_t seed) {
  for (auto& [name, entry] : record.credential_mapping) {
    const Maker item(name, seed);
    const auto is_out = [&](const auto& one) {
      return !std::ranges::binary_search(items, item(one));
    };
    if (!std::ranges::binary_search(items, item.AnyPod())) entry.node_pods_accessible = false;
    std::erase_if(entry.kubernetes_secrets, is_out);
    std::erase_if(entry.kubernetes_service_accounts, is_out);
  }
  std::erase_if(record.credential_mapping, [](const auto& entry) { return entry.second.empty(); });
  return record;
}

Items United(const Items& a, const Items& b) {
  Items all;
  std::ranges::set_union(a, b, std::back_inserter(all));
  return all;
}

Items Without(const Items& all, const Items& less) {
  Items left;
  std::ranges::set_difference(all, less, std::back_inserter(left));
  return left;
}

bool IsIn(const Items& some, const Items& all) { return std::ranges::includes(all, some); }

bool IsAkin(const Item& item, const Items& before) {
  if (item.is_any_pod()) return false;
  return std::ranges::any_of(before, [&](const Item& one) {
    return one.image_name == item.image_name &&
           (AreOfOne(one, item) || (item.hash != 0 && one.hash == item.hash));
  });
}

bool Covers(const Revocation& revocation, const Item& item, std::uint64_t seed) {
  const CredentialName& who = revocation.who;
  const auto is_named = [&](std::string_view kind) {
    return item.coordinates == Coordinates(kind, who.namespace_name, who.name, seed) &&
           (who.uid.empty() || item.uid == Hash(who.uid, seed));
  };
  switch (revocation.kind) {
    case RevocationKind::kSecret:
      return is_named(kSecret);
    case RevocationKind::kServiceAccount:
      return is_named(kServiceAccount);
    case RevocationKind::kNamespace:
      return item.name_space == Hash(who.namespace_name, seed);
    case RevocationKind::kCredential:
      return item.hash != 0 && item.hash == Hash(revocation.credential_hash, seed);
    case RevocationKind::kImage:
      break;
  }
  return false;
}

ImagePulledRecord United(const ImagePulledRecord& newer, const ImagePulledRecord& older) {
  ImagePulledRecord united = newer;
  for (const auto& [name, credentials] : older.credential_mapping) {
    auto [at, is_new] = united.credential_mapping.emplace(name, credentials);
    if (!is_new) Unite(at->second, credentials);
  }
  return united;
}

}  // namespace waybill::guard
