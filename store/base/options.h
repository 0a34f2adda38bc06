// What whoever opens and changes a NodeStore chooses, and values of it that the door does not show.

#ifndef WAYBILL_STORE_BASE_OPTIONS_H_
#define WAYBILL_STORE_BASE_OPTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/base/policy.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill {

// A small file outside the store that reveals when the whole store was wiped, swapped or replaced
// by an older copy. Without a witness such a loss goes unseen, so Witness::None must be explicit.
class Witness {
 public:
  // A file at `path`, by convention image_manager/waybill in the kubelet directory, which the
  // kubelet ignores. The path is absolute and outside the store's directory. The store remembers it
  // as given, once the witness is on disk. The file's directory is made if missing. An existing
  // file that is not a witness is left alone: kInvalidArgument. But if it lies below
  // NodeStoreOptions::kubelet_directory, the store opens, distrustful and without a witness. If the
  // store remembers another path, the witness there is read as well: if it is missing, unreadable
  // or contradicts the store, the store may be stale. A witness belongs to the directory of its
  // store: a copy of the store reads it, but does not write it (OpeningReport::copy_of).
  static Witness At(std::filesystem::path path) { return {Kind::kAt, std::move(path)}; }
  // The same, but the witness that the store remembers is not read: an operator confirms that the
  // store is the newest although that witness is missing. With the remembered path it is the same
  // as At.
  static Witness Anew(std::filesystem::path path) { return {Kind::kAnew, std::move(path)}; }
  // The witness that the store was last opened with, if any. For tools that open an existing store;
  // a wiped store remembers nothing.
  static Witness Remembered() { return {Kind::kRemembered, {}}; }
  // No witness; the store forgets the one that it remembers.
  static Witness None() { return {Kind::kNone, {}}; }

  // Which of these it is.
  enum class Kind : std::uint8_t { kAt, kRemembered, kNone, kAnew };
  Kind kind() const { return kind_; }
  const std::filesystem::path& path() const { return path_; }

 private:
  Witness(Kind kind, std::filesystem::path path) : kind_(kind), path_(std::move(path)) {}
  Kind kind_;
  std::filesystem::path path_;
};

// A trace of what the owner does (docs/trace.md, store/base/trace.h), for whoever plans capacity. A
// decision notes it in memory, and waits for nothing. It is not synced. No call fails for it, and
// no opening: OpeningReport::warnings says why there is none. What can't be written is dropped,
// and Metrics counts it.
struct TraceOptions {
  // A file of the caller's, 0600, outside the store's directory. With what was rotated (path.1, …)
  // and path.salt, which makes the pseudonyms of credentials. Empty: no trace.
  std::filesystem::path path = {};
  // For tests alone: bytes of one file, 256 KiB or more; files, 1 to kMaxTraceFiles.
  std::uint64_t max_file_bytes = std::uint64_t{16} << 20;
  std::size_t files = 4;
  // How long an event may wait in memory; how often a thread looks for one. 1 ms to 1 h.
  std::chrono::milliseconds written_within{5000};
};

// The spans are constants; only tests and recorded histories change them.
struct EvidenceOptions {
  // How long a pull stays unresolved after it ended, by CLOCK_BOOTTIME, to the token of a complete
  // list: after a failure that the runtime reported; after an unknown end, which a reboot ends too.
  std::chrono::seconds grace{120};
  std::chrono::seconds window{7200};
  ShortNames short_names = ShortNames::kAnywhere;
  // How long what was known of an image that is gone is retained, in time that the node ran. 0: not
  // at all.
  std::chrono::seconds remember{30 * 24 * 3600};
};

// Bounds of NodeStoreOptions::max_age.
inline constexpr std::chrono::seconds kMinAge{60};
inline constexpr std::chrono::seconds kMaxAge{std::chrono::hours(24 * 3650)};

// What a first start makes of images that have neither record nor open pull. Nobody can tell
// whether a kubelet pulled them before it kept records (KEP-2535, "What happens if we reenable
// the feature").
enum class FirstStart : std::uint8_t {
  kPresume,  // they enter the ledger as presumed: open, as a kubelet presumes
  kClose,    // they get records without credentials, as after a gap
};

struct UserNamespaceOptions {
  // The feature UserNamespacesSupport. If off, no new mappings are handed out and `pool` is
  // ignored; releasing, listing and cleaning up still work.
  bool enabled = true;
  IdPool pool = {};
};

struct NodeStoreOptions {
  // The store's own directory. If it is missing, create_if_missing makes it (0700); its parent
  // must exist. An existing one must be a directory, not a symlink, owned by the caller, and
  // neither group- nor world-writable. A store is made only in a directory that holds nothing
  // except remains of a store or the lost+found of a file system, and never in kubelet_directory
  // itself: otherwise kUnsafePath.
  std::filesystem::path directory = {};
  bool create_if_missing = true;
  Witness witness;
  // Opening reads the witness, but neither makes nor writes it: for trying an opening on a copy
  // of a store.
  bool leaves_witness = false;
  Mode rules = Mode::kStrict;
  VerificationPolicy policy = {};
  // The runtime's complete list of images. nullopt: unknown. Mode::kKubelet replays dangling
  // intents against it. Mode::kStrict judges its images (ClassifyImages). Since it has no token,
  // it removes nothing, settles nothing and enters nothing in the ledger, except at a first
  // start: since the store was made or came up from an older schema, no list was judged, no pull
  // began and no record was removed.
  std::optional<std::vector<ListedImage>> images_on_node = std::nullopt;
  // An operator's or installer's list of preloaded images; an entry without an ID names its
  // image. At a first start, the images of the first complete list that it names enter the ledger
  // before anything is judged, unless they have a record or are in quarantine. Ignored later,
  // since it does not say when an image came.
  std::optional<std::vector<ListedImage>> preloaded = std::nullopt;
  // What becomes of the other images without a record on that first complete list: see
  // FirstStart. Mode::kKubelet ignores it. A store that came up from a schema without a ledger
  // has a first start, too.
  FirstStart first_start = FirstStart::kPresume;
  EvidenceOptions evidence = {};
  // How long a proof counts, of whatever kind. Past it a matching credential gives "pull",
  // kProofTooOld, until a pull proves it again. What was proven at an unknown time (Proof) is
  // past every age. 0: for ever; otherwise kMinAge to kMaxAge, else kInvalidArgument. nullopt: as
  // the store remembers. Age goes on with the time that the node ran (CLOCK_BOOTTIME) or with the
  // wall clock, whichever is more: a clock that jumps ahead makes what was proven before older by
  // that jump, and nothing younger when it is put right.
  std::optional<std::chrono::seconds> max_age = std::nullopt;
  // How long the node must run (CLOCK_BOOTTIME, summed up over boots) before a revocation can
  // end; only tests change it. It ends when the store is then opened as a restart, and no kubelet
  // that ran when it was made can still run: the machine booted since, or
  // NodeStore::NoteKubeletBegan was told of a later one. It is kept longer while the kubelet's
  // directory, if the opening names one, has a record with what was forgotten, or can't be read
  // or synced; while backup/ holds an older backup, a pull that began before it is open, or
  // records still hold it. A revocation of a hash is also kept while any record has a Secret,
  // which may be rotated to that hash. One day to kMaxAge, else kInvalidArgument.
  std::chrono::seconds revocations_kept{std::chrono::hours(24 * 30)};
  // This process continues the pulls of the one before it, as commands do that begin and end a
  // pull in two processes. Otherwise pulls that were left running count as ended with an unknown
  // outcome.
  bool continues_pulls = false;
  // Whether pulls that are left running end with the process before this one. A guard knows better:
  // they are its kubelet's.
  bool ends_running_pulls = true;
  // Whether rules, policy, pool and short names become the store's. False: a command that owns it
  // for a moment, and goes by the mode and the policy that it has; but one that is just made gets
  // all of them.
  bool chooses = true;
  BootClock boot_clock = SystemBootClock;
  // Accepts an empty images_on_node and empty runtime_handlers. A runtime that starts up lists
  // nothing, so an empty list of handlers is otherwise kInvalidArgument if the store holds some.
  // Under Mode::kKubelet, or with evidence.remember 0, an empty list of images is
  // kInvalidArgument, too, if the store holds records or intents or must close a gap. In other
  // cases that list settles no pull and closes no gap.
  bool allow_empty = false;
  // A kubelet directory (the one with image_manager/ in it) to take over. Empty: none.
  std::filesystem::path kubelet_directory = {};
  // Where the kubelet's files are if kubelet_directory is empty. A revocation ends only when all
  // of its records can be read, and none has the credential. Empty: where the witness is.
  std::filesystem::path kubelet_files = {};
  // Counts the files of the import. If it stops the import, the files taken so far are kept, and
  // the next import goes on from there.
  Progress import_progress = {};
  // After a gap each image in images_on_node without a record gets one without credentials, and
  // the report names it; without that list the store turns distrustful.
  Gap gap = Gap::kDetect;
  // The node's runtime handlers, which replace those in the store. nullopt: unchanged.
  std::optional<std::vector<RuntimeHandler>> runtime_handlers = std::nullopt;
  // For pods in user namespaces. An invalid pool is kInvalidArgument. A changed pool does not
  // affect pods that have a range.
  UserNamespaceOptions user_namespaces = {};
  // The directory with the pods' directories, to take over ID mappings from (`<uid>/userns`).
  // Empty: pods/ in kubelet_directory, if both exist.
  std::filesystem::path pods_directory = {};
  // Whether a store of an older schema is taken to the newest, after a backup (Migrate in
  // maintenance.h). If false, opening such a store fails with kOlderSchema and changes nothing.
  bool migrate = true;
  // A read error of the disk stops opening with kIo, and nothing is changed: trying again may
  // help. If the error persists, this option opens the store anyway. Unreadable parts of data.mdb
  // count as damaged, so the store is rebuilt from the rest and turns distrustful. An unreadable
  // file of the kubelet closes its image (a quarantine entry), and a pod with an unreadable
  // userns file is held.
  bool skip_unreadable = false;
  // Counts the values of the migration. If it stops the migration, the store is as before the
  // step (kInterrupted).
  Progress migration_progress = {};
  Clock clock = SystemClock;
  // Commits flush the disk twice, as LMDB does by itself. Otherwise they flush once where that is
  // safe: on ext2 to ext4, xfs and tmpfs, without DAX, if the boot is known; the first commit
  // after an opening or after a change that was given up flushes twice. What is acknowledged is
  // on the disk either way. One flush has one weakness: if the power fails within 200 ms of an
  // acknowledgement, damage to the pages of the newest commit counts as a commit that was cut
  // short.
  bool flushes_twice = false;
  // Records that one commit takes revoked credentials out of. If there are more, the first commit
  // stores the revocation, which decisions honour at once, and others follow before the call
  // returns. 0 counts as 1.
  std::size_t rows_at_once = 2048;
  // Bytes of the memory map, and so the bound of data.mdb: 1 MiB to 16 TiB, rounded up to pages.
  // The store remembers it. A larger store gets what it needs. 0: as remembered, or else
  // kDefaultMapBytes; a store that is rebuilt gets what it needs then, too.
  std::uint64_t map_bytes = 0;
  TraceOptions trace = {};
};

// An observer goes by the mode, the policy and the age that the store's last owner chose.
struct ObserveOptions {
  std::filesystem::path directory = {};
  std::optional<ShortNames> short_names = {};  // for Explain; nullopt: the store's
  Clock clock = SystemClock;
  BootClock boot_clock = SystemBootClock;  // for ages
  // False: a store that no process owns is read whatever its witness says, so it may be an older
  // copy. This is for showing its content: every decision is "pull".
  bool asks_witness = true;
  // Records show what no longer counts, too. This is for showing content: every decision is
  // "pull".
  bool shows_all_proofs = false;
  // False: where lock.mdb is missing or can't be written, the store is read without a slot in it.
  // Nothing is written then, and owners are kept out meanwhile; a live one is kOwned. This is for
  // whoever reads and goes: NodeStore::Close is kOwned if a writer that no lock shows was there.
  bool needs_slot = true;
};

// Options of changes that delete.
struct ChangeOptions {
  // Accepts an empty list. A runtime that starts up lists nothing, so an empty list is otherwise
  // kInvalidArgument if it would delete something. For ClassifyImages also: the list counts
  // although it has none of the known images.
  bool allow_empty = false;
  // Makes the change, reports it, and undoes it: nothing reaches the disk.
  bool dry_run = false;
};

// Credentials at hand.
class FixedCredentials final : public CredentialSource {
 public:
  explicit FixedCredentials(PodCredentials credentials) : credentials_(credentials) {}
  Result<PodCredentials> Fetch() override { return credentials_; }
  bool may_block() const override { return false; }

 private:
  PodCredentials credentials_;
};

// What the kubelet does next.
enum class EnsureAction : std::uint8_t {
  kPull,              // ask the runtime to pull: record the intent before, the outcome after
  kUsePresent,        // start the container with the image on the node
  kInvalidImageName,  // the kubelet's InvalidImageName
  kNeverPull,         // the kubelet's ErrImageNeverPull
  kCredentialsError,  // Mode::kKubelet only: the pod's credentials are not available
};

struct EnsureOutcome {
  EnsureAction action = EnsureAction::kPull;
  // What the pod may see, in the kubelet's words. Under Mode::kStrict, `action` and `message` are
  // the same for an absent image and for one that this pod may not use.
  std::string message = {};
  // For the node's own log, never for the pod. nullopt: no decision was needed.
  std::optional<Decision> decision = {};
};

// A pull that began and whose outcome is not recorded. `image` is the container's image string as
// the pod wrote it; it need not parse.
struct ImagePullIntent {
  std::string image = {};
  std::string runtime_handler = {};  // empty: the default handler

  friend auto operator<=>(const ImagePullIntent&, const ImagePullIntent&) = default;
};

// An image that a newer kubelet found on the node before it pulled anything: a file of
// observed-preloaded/. Mode::kStrict judges it as an image of a list (ClassifyImages).
struct ImagePreloadedRecord {
  std::string image_ref = {};
  std::optional<Timestamp> last_updated = {};
  std::vector<std::string> observed_images = {};  // image names, sorted

  friend bool operator==(const ImagePreloadedRecord&, const ImagePreloadedRecord&) = default;
};

// The manifest that a pull chose out of an index (runtime/files/documents.h).
struct PulledManifest {
  std::string digest = {};
  Platform platform = {};
};

// What kind of error a pull ended with, for metrics alone. Numbers do not change.
enum class PullErrorClass : std::uint8_t {
  kUnknown,      // nobody said
  kAuth,         // the registry refused the credentials, or wants some: 401, 403
  kNotFound,     // it has no such image: 404
  kUnavailable,  // it can't be reached, or does not serve now: time-outs, 429, 5xx
  kOther,        // an error of none of these kinds
};

// Whether a store is distrustful, and its journal. The journal only grows, except that an
// unfinished import leaves no entry if the same opening finishes it. Of more than kMaxTrustEvents
// entries (waybill/limits.h), the oldest that are no longer a reason for distrust are deleted.
struct TrustState {
  bool distrustful = false;
  std::vector<DegradedEvent> journal = {};  // oldest first
};

struct MigrateOptions {
  std::filesystem::path directory = {};
  std::uint32_t to = kNewestSchema;
  bool dry_run = false;      // report what would be done, and change nothing
  bool accept_loss = false;  // go down even if that loses something
  Progress progress = {};
  Clock clock = SystemClock;
  BootClock boot_clock = SystemBootClock;
  // As in NodeStoreOptions, but for this call only: the store remembers it only if it is larger
  // than the remembered size.
  std::uint64_t map_bytes = 0;
};

struct RestoreOptions {
  std::filesystem::path directory = {};
  // A backup, a data.mdb that was copied while no process owned its store, or a directory with
  // one.
  std::filesystem::path backup = {};
  bool dry_run = false;  // report what would be done, and change nothing
  Clock clock = SystemClock;
  BootClock boot_clock = SystemBootClock;
  // As in NodeStoreOptions. 0: as the replaced store remembers it, or else the backup; more if
  // needed.
  std::uint64_t map_bytes = 0;
};

}  // namespace waybill

#endif  // WAYBILL_STORE_BASE_OPTIONS_H_
