// What exists outside of the node: tenants, registries with repositories whose tags move, and
// contents. A content is the same wherever it is copied to.

#ifndef WAYBILL_TESTS_SIMULATION_WORLD_H_
#define WAYBILL_TESTS_SIMULATION_WORLD_H_

#include <cstddef>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/simulation/timeline.h"
#include "waybill/values.h"

namespace waybill::simulation {

using ContentIndex = std::size_t;

struct Content {
  std::string hex;       // the image ID without "sha256:"
  std::string manifest;  // its digest
  std::string index;     // digest of the index that has the manifest; empty: none has
  // What a registry serves for `repo:tag`.
  const std::string& top_digest() const { return index.empty() ? manifest : index; }
};

struct Tag {
  std::string name;
  ContentIndex content = 0;
  std::vector<ContentIndex> earlier = {};
};

struct Repository {
  std::string name;                           // in full, with the registry's host
  std::vector<std::string> other_names = {};  // that a runtime completes to it
  bool is_public = false;
  std::vector<std::size_t> readers = {};  // tenants; of a private one
  std::vector<Tag> tags = {};
  std::unordered_map<std::string, ContentIndex> by_digest = {};
};

struct EarlierHash {
  std::string hash;
  bool accepted = true;  // by the registries, still
};

struct Tenant {
  ImagePullSecret secret;
  ImagePullServiceAccount account;
  bool has_secret = true;
  bool has_account = true;
  // The last that were deleted: some pods have them still.
  std::optional<ImagePullSecret> former_secret = {};
  std::optional<ImagePullServiceAccount> former_account = {};
  bool former_accepted = true;  // the registries do not know that they are gone
  // The Secret's hashes before it was rotated: pods that are older show them.
  std::vector<EarlierHash> earlier_hashes = {};
};

// The former ones are those that were deleted last.
enum class Credential { kNone, kSecret, kAccount, kFormerSecret, kFormerAccount };

// As far as the kubelet's question goes.
struct Pod {
  std::size_t tenant = 0;
  Credential credential = Credential::kNone;
  std::string_view runtime_handler = {};  // empty: the default
  std::string hash = {};  // of its Secret before it was rotated; empty: as it is now
};

// An image string in full.
struct FullName {
  std::string repository;
  std::string tag;     // empty where there is a digest
  std::string digest;  // "sha256:…"
  std::string text() const { return repository + (digest.empty() ? ":" + tag : "@" + digest); }
};

class World {
 public:
  // The tenant who has no friends.
  static constexpr std::size_t kHostile = 3;
  static constexpr std::size_t kTenants = 4;

  explicit World(Draw& draw);

  const Content& content(ContentIndex index) const { return contents_[index]; }
  std::size_t contents() const { return contents_.size(); }
  // A content that no repository has yet.
  ContentIndex NewContent(bool with_index);
  // The same index for another platform: a second image with the same index digest.
  ContentIndex OtherPlatformOf(ContentIndex content);

  std::deque<Repository>& repositories() { return repositories_; }
  // The repository of that full name, or nullptr.
  Repository* Find(std::string_view name);
  Repository& Add(std::string name, bool is_public, std::vector<std::size_t> readers = {});
  // Pushes a content to a tag, which may move it.
  void Push(Repository& repository, const std::string& tag, ContentIndex content);
  // What the registry serves, if anything.
  std::optional<ContentIndex> Serve(const FullName& name);
  // Somebody deletes it; and makes another one of the same name.
  void DeleteSecret(std::size_t tenant);
  void DeleteAccount(std::size_t tenant);
  void CreateSecret(std::size_t tenant, std::string credential_hash);
  void CreateAccount(std::size_t tenant);
  bool HasCredential(const Pod& pod) const;
  // Whether this pod's credentials, or none, get it.
  bool MayPull(const Pod& pod, const Repository& repository) const;

  std::vector<Tenant>& tenants() { return tenants_; }
  const std::vector<Tenant>& tenants() const { return tenants_; }
  // CRI-O's short-name aliases, to other paths than their own.
  const std::map<std::string, std::string, std::less<>>& aliases() const { return aliases_; }

 private:
  std::string Hex();

  Draw& draw_;
  std::vector<Content> contents_;
  std::deque<Repository> repositories_;
  std::vector<Tenant> tenants_;
  std::map<std::string, std::string, std::less<>> aliases_;
  std::size_t created_ = 0;
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_WORLD_H_
