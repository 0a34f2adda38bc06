// Every bound of the store. A call that exceeds one fails with ErrorCode::kLimitExceeded and
// changes nothing; a decision answers "pull". A stored value that exceeds one counts as damaged.

#ifndef WAYBILL_LIMITS_H_
#define WAYBILL_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace [[gnu::visibility("default")]] waybill {

// Bytes of an image string as a pod writes it, and of an image ref as the runtime returns it.
inline constexpr std::size_t kMaxImageBytes = 4096;
inline constexpr std::size_t kMaxImageRefBytes = 4096;
// Bytes of a UID, a namespace, a name and a credential hash of a Secret or ServiceAccount.
inline constexpr std::size_t kMaxCoordinateBytes = 1024;
// Image names in one record; Secrets, and ServiceAccounts, under one image name.
inline constexpr std::size_t kMaxImageNamesPerRecord = 4096;
inline constexpr std::size_t kMaxCredentialsPerName = 16384;
// Bytes of one stored value.
inline constexpr std::size_t kMaxValueBytes = std::size_t{4} << 20;
// Bytes of one JSON document read from a kubelet directory or a command line.
inline constexpr std::size_t kMaxRecordFileBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxDocumentBytes = std::size_t{256} << 20;
// Nesting of such a document. A kubelet record needs 5.
inline constexpr int kMaxJsonDepth = 32;
// One image index, and the manifests in it. Registries refuse larger manifests.
inline constexpr std::size_t kMaxImageIndexBytes = std::size_t{4} << 20;
inline constexpr std::size_t kMaxManifestsPerIndex = 4096;
// Runtime handlers of a node; bytes of a handler's name, and of each field of a platform.
inline constexpr std::size_t kMaxRuntimeHandlers = 1024;
inline constexpr std::size_t kMaxRuntimeHandlerBytes = 253;
inline constexpr std::size_t kMaxPlatformFieldBytes = 256;
inline constexpr std::size_t kMaxOsFeatures = 64;
// Bytes of a pod's UID as a kubelet assigns it; of the name of any pod directory.
inline constexpr std::size_t kMaxPodUidBytes = 253;
inline constexpr std::size_t kMaxFileNameBytes = 255;
// Bytes of a path that the store remembers.
inline constexpr std::size_t kMaxPathBytes = 4096;
// Bytes of one file of ID mappings; mappings in it. The kernel takes 340 a user namespace.
inline constexpr std::size_t kMaxUsernsFileBytes = std::size_t{64} << 10;
inline constexpr std::size_t kMaxMappingsPerFile = 340;
// Images whose pulls are in flight at the same time in one process.
inline constexpr std::size_t kMaxInFlightImages = 65536;
// Open pulls that ended and whose image is named. With more, the oldest are merged into one that
// may have brought any image (UnresolvedPull::anything).
inline constexpr std::size_t kMaxEndedPulls = 4096;
// Records, and ledger entries, of images that are gone. With more, the oldest go first.
inline constexpr std::size_t kMaxRemembered = 10'000;
// Copies that operators closed (ImagePulledRecord::closed_by_operator), which have no end. With as
// many, no other copy can be closed that has no record yet.
inline constexpr std::size_t kMaxClosings = 10'000;
// Images in one list; names that are kept of one image (all count when it is judged); repo digests
// of one image that count as spellings.
inline constexpr std::size_t kMaxListedImages = 200'000;
inline constexpr std::size_t kMaxNamesPerImage = 4096;
inline constexpr std::size_t kMaxSpellingsPerImage = 256;
// Bytes of a source and of a reason in the ledger.
inline constexpr std::size_t kMaxReasonBytes = 1024;
// Once an image name has this many Secrets, decisions stop writing further ones back (KEP-2535,
// "Cache writes upon successful credentials match").
inline constexpr std::size_t kMaxSecretsForWriteBack = 100;
// Rotated credentials that wait to be written back. When the queue is full, a decision drops its
// own; the next decision on the same pod queues it again.
inline constexpr std::size_t kMaxQueuedWriteBacks = 1024;
// Streaming requests: bytes of a container's or pod sandbox's ID; arguments of a command, and bytes
// of all of them; ports of one request; requests that wait at the same time.
inline constexpr std::size_t kMaxContainerIdBytes = 1024;
inline constexpr std::size_t kMaxCommandArguments = 65536;
inline constexpr std::size_t kMaxCommandBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxRequestPorts = 1024;
inline constexpr std::size_t kMaxOpenStreams = 65536;
// Bytes of one file of a runtime's configuration, and how many files are read of it.
inline constexpr std::size_t kMaxPullConfigBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxPullConfigFiles = 256;
// Patterns in an allowlist.
inline constexpr std::size_t kMaxAllowlistPatterns = 65536;
// Entries in the journal of distrust. With more, the oldest that are no longer in force are
// deleted. If all are in force, one more entry says that there are others.
inline constexpr std::size_t kMaxTrustEvents = 64;
// How many replaced copies are kept: databases under quarantine/, folders
// image_manager/before-export-*, files userns.before-export-* of a pod. The oldest are deleted
// first. Exempt: a database that verifies and has no backup, and a folder with a file that no
// import took and no export wrote.
inline constexpr std::size_t kMaxKeptAside = 3;
// Processes and threads that read one store at the same time.
inline constexpr unsigned kMaxReaders = 1022;
// Size of the memory map, which bounds data.mdb, unless NodeStoreOptions gives or the store
// remembers another.
inline constexpr std::uint64_t kDefaultMapBytes = std::uint64_t{16} << 30;
// Bytes of a URL of a streaming server, and of a redirect's location; hosts and ports of a policy.
inline constexpr std::size_t kMaxStreamUrlBytes = 2048;
inline constexpr std::size_t kMaxStreamHosts = 1024;
inline constexpr std::size_t kMaxStreamPorts = 65535;

// Credentials in one list of those that exist.
inline constexpr std::size_t kMaxTruth = 1'000'000;

// Bytes of one request to an owner, and of one answer.
inline constexpr std::size_t kMaxOwnerMessageBytes = std::size_t{16} << 20;

// The schema version that this library writes, and the oldest that it opens.
inline constexpr std::uint32_t kNewestSchema = 2;
inline constexpr std::uint32_t kOldestSchema = 1;

}  // namespace waybill

#endif  // WAYBILL_LIMITS_H_
