// A container runtime's images. containerd keeps the names that it was given; CRI-O lists each
// repository of an image's names with each of the image's digests, and completes short names by
// aliases.

#ifndef WAYBILL_TESTS_SIMULATION_RUNTIME_H_
#define WAYBILL_TESTS_SIMULATION_RUNTIME_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/simulation/world.h"
#include "waybill/values.h"

namespace waybill::simulation {

enum class RuntimeKind { kContainerd, kCrio };

class Runtime {
 public:
  struct Image {
    std::vector<std::string> tags;     // "repo:tag"
    std::vector<std::string> digests;  // "repo@digest", as pulled
    bool pinned = false;
    Millis last_used = 0;
  };

  // `tells_imports`: lists say of an image that no pull brought it.
  Runtime(const World& world, RuntimeKind kind, bool tells_imports);

  RuntimeKind kind() const { return kind_; }

  // An upgrade that changes what refs look like.
  void ChangeForms(bool ids_with_prefix, bool pulls_return_repo_digests);

  // nullopt: no reference, such as an image ID.
  std::optional<FullName> Complete(std::string_view image) const;
  // The image that the string stands for, if it is on the node: by name, by ID or by the beginning
  // of the ID.
  std::optional<ContentIndex> Resolve(std::string_view image) const;
  // The ID as ImageStatus and ListImages give it.
  std::string Id(ContentIndex content) const;
  // What PullImage returns.
  std::string PullRef(ContentIndex content, const FullName& name) const;
  // As it is listed. The image must be on the node.
  ListedImage Entry(ContentIndex content) const;
  // Everything, in the order of the contents.
  const std::vector<ListedImage>& List() const;
  std::vector<ContentIndex> Contents() const;
  bool Has(ContentIndex content) const { return images_.contains(content); }
  std::size_t size() const { return images_.size(); }

  // A pull by that name brought it.
  void Pulled(ContentIndex content, const FullName& name);
  // Only with this tag, which it takes from another image; empty: without a name.
  void Import(ContentIndex content, const std::string& tag);
  void Remove(ContentIndex content);
  // Its disk goes, and comes back. Of an image that was brought to another disk meanwhile nothing
  // changes, and tags that another image has now are not given back.
  Image Take(ContentIndex content);
  void GiveBack(ContentIndex content, const Image& image);
  // A pull walks through the content, which has a label from then on; until nobody needs it.
  void Label(ContentIndex content);
  void Collect(ContentIndex content);
  void Pin(ContentIndex content) { images_.at(content).pinned = true; }
  bool IsPinned(ContentIndex content) const { return images_.at(content).pinned; }

  void Used(ContentIndex content, Millis now) { images_.at(content).last_used = now; }
  Millis last_used(ContentIndex content) const { return images_.at(content).last_used; }

 private:
  void GiveTag(ContentIndex content, const std::string& tag);
  bool IsImported(ContentIndex content) const;
  std::vector<std::string> RepoDigests(ContentIndex content, const Image& image) const;
  void Changed() { listed_ = false; }

  const World& world_;
  RuntimeKind kind_;
  bool tells_imports_;
  bool ids_with_prefix_;
  bool pulls_return_repo_digests_ = false;
  std::map<ContentIndex, Image> images_;
  std::unordered_map<std::string, ContentIndex> by_tag_;
  std::set<std::string> labelled_;  // digests
  mutable bool listed_ = false;
  mutable std::vector<ListedImage> list_;
  mutable std::unordered_map<std::string, ContentIndex> by_digest_;  // "repo@digest"
  mutable std::unordered_map<std::string, ContentIndex> by_hex_;
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_RUNTIME_H_
