// What runs, as the kernel tells it: /proc/PID/uid_map, gid_map and cgroup of every process.
//
// The kernel writes a map's host IDs as the reader's own user namespace sees them, and those of
// processes in that very namespace as its parent does. In the host's namespace both are the host's
// IDs, for nested namespaces too. Anywhere else they are not, so that is refused.

#ifndef WAYBILL_BINDINGS_CLI_PROC_ID_MAPS_H_
#define WAYBILL_BINDINGS_CLI_PROC_ID_MAPS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waybill/result.h"
#include "waybill/user_namespace.h"

namespace waybill::cli {

using IdMap = std::vector<IdMapping>;

// Processes with the same maps in the same pod.
struct MappedProcesses {
  IdMap uids;
  IdMap gids;
  std::string cgroup_pod;  // the pod's UID, if a kubelet made their cgroup; else empty
  std::uint64_t count = 0;
  std::vector<std::uint64_t> pids;  // the first kMaxNamedProcesses
};
inline constexpr std::size_t kMaxNamedProcesses = 8;

struct ProcIdMaps {
  std::uint64_t processes = 0;          // all
  std::uint64_t unreadable = 0;         // no permission, or not what a kernel writes
  std::vector<MappedProcesses> mapped;  // those with other maps than the host's, by their first IDs
};

// Reads `proc`: by convention /proc. Processes that end meanwhile are left out. kInvalidArgument:
// it is no such directory, or this process is itself in a user namespace.
Result<ProcIdMaps> ReadProcIdMaps(const std::string& proc);

// The lines of a uid_map or gid_map, at most 340. nullopt: no kernel wrote this. Empty: a namespace
// without mappings.
std::optional<IdMap> ParseIdMap(std::string_view text);

// Every ID of the host as itself: the map of the host's own namespace.
bool IsHosts(const IdMap& ids);

// The pod whose cgroup a /proc/PID/cgroup names: the outermost, since a container can make cgroups
// of any name below its own. Empty: none.
std::string PodOfCgroup(std::string_view text);

}  // namespace waybill::cli

#endif  // WAYBILL_BINDINGS_CLI_PROC_ID_MAPS_H_
