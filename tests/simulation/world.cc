#include "tests/simulation/world.h"

#include <algorithm>
#include <utility>

namespace waybill::simulation {

World::World(Draw& draw) : draw_(draw) {
  for (std::size_t i = 0; i < kTenants; ++i) {
    const std::string number = std::to_string(i);
    // Tenants 0 and 1 have the same robot account, in a Secret each.
    const std::string hash = i < 2 ? "hash-robot" : "hash-" + number;
    tenants_.push_back({{"uid-" + number, "team-" + number, "pull", hash},
                        {"uid-sa-" + number, "team-" + number, "builder"}});
  }
  aliases_ = {{"tool", "quay.example/org/tool"}, {"org/app", "priv.example/t0/aliased"}};
  const auto add = [&](std::string name, bool is_public, std::vector<std::size_t> readers,
                       const std::vector<std::string>& tags,
                       std::vector<std::string> other_names = {}) {
    Repository& repository = Add(std::move(name), is_public, std::move(readers));
    repository.other_names = std::move(other_names);
    for (const std::string& tag : tags) Push(repository, tag, NewContent(draw_.OneIn(3)));
  };
  // The installer's images, first: they are on the node from the beginning.
  for (const char* name : {"pause", "kube-proxy", "coredns", "etcd"}) {
    add(std::string("registry.k8s.io/") + name, true, {}, {"3.10"});
  }
  add("docker.io/library/web", true, {}, {"1", "latest"}, {"web"});
  add("docker.io/library/db", true, {}, {"1", "latest"}, {"db"});
  add("docker.io/group/job", true, {}, {"1"}, {"group/job"});
  add("quay.example/org/tool", false, {2}, {"1", "latest"}, {"tool"});
  add("priv.example/t0/aliased", false, {0}, {"1", "latest"}, {"org/app"});
  for (std::size_t tenant = 0; tenant < kTenants; ++tenant) {
    const std::string prefix = "priv.example/t" + std::to_string(tenant) + "/";
    add(prefix + "app", false, {tenant}, {"1", "2", "latest"});
    add(prefix + "batch", false, {tenant}, {"1", "2"});
  }
  add("priv.example/shared/base", false, {0, 2}, {"1", "2"});
  add("priv.example/shared/robot", false, {0, 1}, {"1"});
}

std::string World::Hex() {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string hex;
  for (int i = 0; i < 64; ++i) hex += kDigits[draw_.Below(16)];
  return hex;
}

ContentIndex World::NewContent(bool with_index) {
  contents_.push_back({Hex(), "sha256:" + Hex(), with_index ? "sha256:" + Hex() : std::string()});
  return contents_.size() - 1;
}

ContentIndex World::OtherPlatformOf(ContentIndex content) {
  const std::string index = contents_[content].index;
  contents_.push_back({Hex(), "sha256:" + Hex(), index});
  return contents_.size() - 1;
}

Repository* World::Find(std::string_view name) {
  const auto found = std::find_if(repositories_.begin(), repositories_.end(),
                                  [&](const Repository& r) { return r.name == name; });
  return found == repositories_.end() ? nullptr : &*found;
}

Repository& World::Add(std::string name, bool is_public, std::vector<std::size_t> readers) {
  repositories_.push_back(
      {.name = std::move(name), .is_public = is_public, .readers = std::move(readers)});
  return repositories_.back();
}

void World::Push(Repository& repository, const std::string& tag, ContentIndex content) {
  const Content& pushed = contents_[content];
  repository.by_digest[pushed.manifest] = content;
  if (!pushed.index.empty()) repository.by_digest[pushed.index] = content;
  for (Tag& existing : repository.tags) {
    if (existing.name != tag) continue;
    existing.earlier.push_back(existing.content);
    existing.content = content;
    return;
  }
  repository.tags.push_back({tag, content});
}

std::optional<ContentIndex> World::Serve(const FullName& name) {
  const Repository* const repository = Find(name.repository);
  if (repository == nullptr) return std::nullopt;
  if (!name.digest.empty()) {
    const auto found = repository->by_digest.find(name.digest);
    if (found == repository->by_digest.end()) return std::nullopt;
    return found->second;
  }
  for (const Tag& tag : repository->tags) {
    if (tag.name == name.tag) return tag.content;
  }
  return std::nullopt;
}

void World::DeleteSecret(std::size_t tenant) {
  Tenant& its = tenants_[tenant];
  its.has_secret = false;
  its.former_secret = its.secret;
  its.former_accepted = draw_.OneIn(2);
}

void World::DeleteAccount(std::size_t tenant) {
  Tenant& its = tenants_[tenant];
  its.has_account = false;
  its.former_account = its.account;
  its.former_accepted = draw_.OneIn(2);
}

void World::CreateSecret(std::size_t tenant, std::string credential_hash) {
  Tenant& its = tenants_[tenant];
  its.has_secret = true;
  its.secret.uid = "uid-new-" + std::to_string(created_++);
  its.secret.credential_hash = std::move(credential_hash);
}

void World::CreateAccount(std::size_t tenant) {
  Tenant& its = tenants_[tenant];
  its.has_account = true;
  its.account.uid = "uid-new-" + std::to_string(created_++);
}

bool World::HasCredential(const Pod& pod) const {
  const Tenant& its = tenants_[pod.tenant];
  switch (pod.credential) {
    case Credential::kNone:
      return false;
    case Credential::kSecret:
      return its.has_secret;
    case Credential::kAccount:
      return its.has_account;
    case Credential::kFormerSecret:
      return its.former_secret.has_value();
    case Credential::kFormerAccount:
      return its.former_account.has_value();
  }
  return false;
}

bool World::MayPull(const Pod& pod, const Repository& repository) const {
  if (repository.is_public) return true;
  if (!HasCredential(pod)) return false;
  const bool is_former =
      pod.credential == Credential::kFormerSecret || pod.credential == Credential::kFormerAccount;
  if (is_former && !tenants_[pod.tenant].former_accepted) return false;
  for (const EarlierHash& earlier : tenants_[pod.tenant].earlier_hashes) {
    if (!pod.hash.empty() && pod.hash == earlier.hash && !earlier.accepted) return false;
  }
  return std::find(repository.readers.begin(), repository.readers.end(), pod.tenant) !=
         repository.readers.end();
}

}  // namespace waybill::simulation
