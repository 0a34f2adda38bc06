// containers-registries.conf(5), which CRI-O and podman read.
//
//   unqualified-search-registries = ["registry.example.com"]
//   [[registry]]
//   prefix = "*.example.com"        missing: the location
//   location = "other.example.com"  where such images really are
//   blocked = false
//   mirror-by-digest-only = false
//   [[registry.mirror]]             asked first, in order
//   location = "mirror.example.com/hub"
//   insecure = false
//   pull-from-mirror = "all"        "digest-only", "tag-only"
//   [aliases]
//   "short" = "registry.example.com/short"
//
// In version 1 of the file, [registries.search], [registries.insecure] and [registries.block] have
// lists `registries`.

#ifndef WAYBILL_RUNTIME_FILES_REGISTRIES_CONF_H_
#define WAYBILL_RUNTIME_FILES_REGISTRIES_CONF_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"

namespace waybill::internal {

struct RegistriesConfMirror {
  std::string location = {};
  bool insecure = false;
  bool by_digest = true;  // asked for images by digest; by tag
  bool by_tag = true;
  std::string where = {};
};

struct RegistriesConfEntry {
  std::string location = {};  // empty: the image's own, under a prefix "*.…"
  bool insecure = false;
  std::vector<RegistriesConfMirror> mirrors = {};
  std::string where = {};
};

struct RegistriesConf {
  std::map<std::string, RegistriesConfEntry> by_prefix = {};
  std::vector<std::string> search = {};             // unqualified-search-registries
  std::map<std::string, std::string> aliases = {};  // an empty one is none
};

// Reads one file into `conf`, over what earlier files say: a prefix, an alias and the list of
// registries to search are replaced. `place` is how messages name the file. kInvalidArgument, with
// the line, for what the runtimes refuse; `conf` is then of no use.
Result<void> ReadRegistriesConf(std::string_view text, const std::string& place, bool drop_in,
                                RegistriesConf& conf);

// How much of `image`, a name with its host, `prefix` matches; npos: it does not.
std::size_t MatchRegistryPrefix(std::string_view image, std::string_view prefix);
// The entry with the longest prefix that matches; null: none does.
const std::pair<const std::string, RegistriesConfEntry>* FindRegistryEntry(
    const RegistriesConf& conf, std::string_view image);

}  // namespace waybill::internal

#endif  // WAYBILL_RUNTIME_FILES_REGISTRIES_CONF_H_
