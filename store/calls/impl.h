// What a NodeStore is made of.

#ifndef WAYBILL_STORE_CALLS_IMPL_H_
#define WAYBILL_STORE_CALLS_IMPL_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "store/base/caught.h"
#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/trace_writer.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "store/disk/committer.h"
#include "store/disk/reader_pool.h"
#include "store/door/settings.h"
#include "store/images/aliases.h"
#include "store/images/decide.h"
#include "store/images/in_flight.h"
#include "store/images/proofs.h"
#include "store/images/write_back_queue.h"
#include "store/opening/live_store.h"
#include "store/owner_socket/server.h"
#include "store/pods/allocator.h"
#include "store/pods/host_ids.h"
#include "waybill/values.h"

namespace waybill::internal {

// What metrics count in the table of images. Counted anew only if that has changed.
struct RecordCounts {
  TableDigest of;
  std::map<std::string, std::uint64_t> by_handler;  // ordered: "" is the default one
  std::uint64_t preloaded = 0;                      // on the node or away
  std::uint64_t with_aliases = 0;
  std::uint64_t closed = 0;
  std::int64_t oldest_proof = 0;  // as ImageView::Proofs
  std::uint64_t undated = 0;
  std::uint64_t ending = 0;
  std::array<std::uint64_t, 5> by_checker{};

  std::uint64_t records() const {
    std::uint64_t sum = 0;
    for (const auto& [handler, records] : by_handler) sum += records;
    return sum;
  }
  // Of other handlers than the default.
  std::uint64_t nondefault() const {
    std::uint64_t sum = 0;
    for (const auto& [handler, records] : by_handler) sum += handler.empty() ? 0 : records;
    return sum;
  }
};

}  // namespace waybill::internal

namespace waybill {

class NodeStore::Impl : public internal::LiveStore {
 public:
  static Result<std::unique_ptr<Impl>> OpenOwner(NodeStoreOptions options);
  static Result<std::unique_ptr<Impl>> OpenObserver(const ObserveOptions& options);
  ~Impl();
  Result<void> Close() noexcept;

  // must_attempt_pull.cc
  Decision Decide(const ImageCopy& copy, CredentialSource& source);
  // The same for a preview: counts nothing, and writes nothing back. `what_if`: another policy.
  Decision Preview(const ImageCopy& copy, CredentialSource& source,
                   const VerificationPolicy* what_if) noexcept;

  // What may be older than its witness opens nothing, nor what is only shown.
  bool MayDecide() const { return is_owner_ || (demands_.asks_witness && !shows_all_proofs_); }
  // What the store is decided by; the age is what it remembers.
  Settings SettingsNow() const;
  // What the last owner chose, for an observer.
  std::shared_ptr<const internal::Chosen> ChosenIn(
      const internal::ReaderPool::Lease& snapshot) const;
  std::shared_ptr<const VerificationPolicy> PolicyIn(
      const internal::ReaderPool::Lease& snapshot) const;
  // The store's, now.
  Mode ModeNow();

  // A snapshot to read from, of the store as it is on disk now.
  internal::ReaderPool::Lease Read();

  // Runs a change as the owner, after all that is queued to be written back; an error for everybody
  // else. No exception leaves it.
  Result<void> Write(internal::Committer::Change change) noexcept;
  // The same; a dry run takes it back once it succeeded.
  Result<void> Write(internal::Committer::Change change, const ChangeOptions& options) noexcept;
  // For as long as it lives, what this thread writes joins the transaction.
  class Joined {
   public:
    Joined(const Impl& impl, internal::StoreTxn& txn)
        : before_(std::exchange(current, {&impl, &txn})) {}
    ~Joined() { current = before_; }
    Joined(const Joined&) = delete;
    Joined& operator=(const Joined&) = delete;
    // Null: what it writes is a commit of its own.
    static internal::StoreTxn* Of(const Impl& impl) {
      return current.first == &impl ? current.second : nullptr;
    }

   private:
    using Of_ = std::pair<const Impl*, internal::StoreTxn*>;
    static inline thread_local Of_ current;
    Of_ before_;
  };
  // Everything of one snapshot that a kubelet's files can say. `leaves_unreadable`: as GetContent.
  Result<internal::StoreContent> ContentIn(const internal::ReaderPool::Lease& snapshot,
                                           bool leaves_unreadable) const;
  bool is_owner() const { return is_owner_; }

  // The owner's, fixed once it is open. An observer goes by ModeIn and PolicyIn.
  Mode rules;
  VerificationPolicy policy;
  const Clock clock;
  const BootClock boot_clock;
  EvidenceOptions evidence;
  const std::optional<std::vector<ListedImage>> preloaded;  // NodeStoreOptions::preloaded
  UserNamespaceOptions user_namespaces;
  const std::filesystem::path trace_file;
  const bool flushes_twice;
  OpeningReport report;
  internal::InFlight in_flight;
  mutable internal::Aliases aliases;
  internal::UndoBoth undo{in_flight, aliases};
  // As EnsureImageRequests.
  std::array<std::array<std::array<std::atomic<std::uint64_t>, 3>, 3>, 3> ensure_requests{};

  // Owner only, else null.
  std::unique_ptr<internal::WriteBackQueue> write_backs;
  std::size_t rows_at_once = 0;                  // NodeStoreOptions
  std::optional<internal::Allocator> allocator;  // inside changes only
  // The last token drawn, in this process or an earlier one. A mapping with an older stamp could be
  // cleaned up by lists that were made before its pod came back.
  std::atomic<std::uint64_t> last_token{0};
  std::uint64_t opened_at = 0;  // the commit sequence when opening ended
  // Of the newest list that was used in this process; for transactions. One that changed nothing is
  // in no commit: if it is forgotten, that is as if it had never come.
  ListToken last_list;

  std::unique_ptr<internal::TraceWriter> trace;  // null: none is written

  // revocation.cc
  // Takes what was revoked out of the records that still hold it, in parts. Decisions honour what
  // is left.
  Result<void> FinishRevocations();
  // The list of what exists that came in part so far, if there is one: `parts_before` counts them.
  std::mutex parts_mutex;
  std::optional<RevokeMissing> parts;  // guarded by parts_mutex
  // The records as they count. pulls_and_records.cc
  Result<std::vector<ImagePulledRecord>> ListRecordsIn(
      const internal::ReaderPool::Lease& snapshot) const;
  internal::Question AskAbout(const ImageCopy& copy, const VerificationPolicy& by) const {
    return {by, copy.image, copy.image_ref, copy.runtime_handler, clock, boot_clock, aliases};
  }
  internal::Aging AgingIn(const internal::ReaderPool::Lease& snapshot) const {
    const std::chrono::seconds most(0);
    return {shows_all_proofs_ ? most : snapshot.state().max_age, ClocksIn(snapshot)};
  }
  internal::Clocks ClocksIn(const internal::ReaderPool::Lease& snapshot) const {
    return snapshot.state().clocks.At(boot_clock(), clock());
  }

  // metrics.cc. kDamaged: unreadable.
  Result<internal::RecordCounts> CountRecords(const internal::ReaderPool::Lease& snapshot);
  // pods.cc. Sorted by pod UID. kDamaged: a row can't be read, or is missing; likewise the next.
  Result<std::vector<internal::HostIds>> HostIdsIn(
      const internal::ReaderPool::Lease& snapshot) const;
  Result<PoolUse> CountHostIds(const internal::ReaderPool::Lease& snapshot);
  std::mutex counted_mutex;
  std::optional<internal::RecordCounts> counted_records;  // guarded by counted_mutex; likewise:
  std::optional<std::pair<internal::TableDigest, PoolUse>> counted_host_ids;
  std::atomic<std::uint64_t> id_range_failures{0};
  internal::WriteBackCounts write_back_counts;
  internal::PullCounts pull_counts;
  Timestamp opened_when = {};  // owner

  void NoteToken(std::uint64_t token) {
    std::uint64_t last = last_token.load();
    while (last < token && !last_token.compare_exchange_weak(last, token)) {
    }
  }
  // Owner, in a transaction that uses a list with that token.
  void NoteList(const ListToken& token) {
    const bool is_later = token.commit > last_list.commit ||
                          (token.commit == last_list.commit &&
                           (token.drawn.boot_id != last_list.drawn.boot_id ||
                            token.drawn.nanoseconds >= last_list.drawn.nanoseconds));
    if (is_later) last_list = token;
  }
  // Owner, in a transaction: whether a list that changes nothing must be committed all the same.
  // Ages are measured by the newest commit's time where the clock went back.
  Result<bool> MustKeepTime(const internal::StoreTxn& txn);

  // serve.cc
  Result<void> Serve(std::unique_ptr<internal::Door> door, const ServeOptions& options);
  void StopServing() noexcept;
  Result<Backup> WriteBackup(const std::filesystem::path& file, const Progress& progress);
  // Owner, before a backup: what was queued is part of it. kOwned, kOutcomeUnknown.
  Result<void> PrepareBackup();
  // Owner: whether the commit is on the disk, or was taken back by an error.
  Result<void> IsDurable(std::uint64_t sequence);
  std::mutex serving_mutex;
  std::unique_ptr<internal::Door> served;  // guarded by serving_mutex, as `server`
  std::unique_ptr<internal::OwnerServer> server;
  std::mutex backup_mutex;  // held while a backup is made

  // Observer only: `observed` is reopened if the files were replaced, under this mutex, which a
  // decision never waits for, and without readers.
  std::shared_mutex observed_mutex;

  // How long is remembered what was known of images that are gone.
  std::chrono::seconds Remember() const {
    return rules == Mode::kStrict ? evidence.remember : std::chrono::seconds(0);
  }

 private:
  // Of an observer's options: those that it has.
  explicit Impl(const NodeStoreOptions& options)
      : LiveStore(options.directory),
        rules(options.rules),
        policy(options.policy),
        clock(options.clock),
        boot_clock(options.boot_clock),
        evidence(options.evidence),
        preloaded(options.preloaded),
        user_namespaces(options.user_namespaces),
        trace_file(options.trace.path),
        flushes_twice(options.flushes_twice) {}

  Result<void> FinishOpening(const NodeStoreOptions& options);
  Result<void> KeepSettings();
  std::string SettingsToKeep() const;
  void OpenTrace(const NodeStoreOptions& options);
  // The steps between the opened database and the readers.
  Result<void> EndRunningPulls();
  Result<void> OpenRevocations(const NodeStoreOptions& options);
  Result<void> DropOldRevocations(std::filesystem::path kubelet_directory,
                                  std::chrono::seconds kept);
  Result<void> TakeOver(const NodeStoreOptions& options);
  Result<void> CountPulls(std::uint64_t& count);
  Result<void> Replay(const NodeStoreOptions& options);
  Result<void> ObserveAtOpening(internal::Images& images, const NodeStoreOptions& options);
  // pods.cc
  Result<void> OpenUserNamespaces(const NodeStoreOptions& options);
  Result<void> TakeOverUserNamespaces(const NodeStoreOptions& options);
  // Owner: whether it may answer. Looks at the store's files if neither a decision nor a commit did
  // in this tick of the kernel's coarse clock (1 to 10 ms), so that a decision hardly ever pays.
  bool OwnsStill();
  // Observer: whether the files that are open are those under the store's names.
  bool FilesAreCurrent();
  // Observer: opens the files, and attaches the readers.
  Result<void> OpenFiles();
  // Observer: reopens the files. False: that can't be done right now.
  bool Reopen();

  // Observer: the store's settings when it last looked.
  mutable std::atomic<std::shared_ptr<const internal::Chosen>> chosen_;

  std::optional<internal::Inspection> seen_unowned_;  // guarded by observed_mutex
  internal::ObserverDemands demands_;                 // ObserveOptions; likewise:
  bool shows_all_proofs_ = false;
  bool is_owner_ = false;
};

// For large deletions: whether to try again with fewer in a transaction, because the map has no
// room for the pages that `most` of them touch. Lowers `most`.
inline bool TakeSmallerSteps(const Error& error, std::size_t& most) {
  constexpr std::size_t kManyDeletions = 4096;
  if (error.code != ErrorCode::kStoreFull || most <= 1) return false;
  most = std::min(kManyDeletions, most / 8);
  return true;
}

using internal::CheckLength, internal::Guarded;

// Of a call, what rooms take of several.
ImageCopy CopyOf(const auto& call) {
  ImageCopy copy{.runtime_handler = call.runtime_handler};
  if constexpr (requires { call.image_ref; }) copy.image_ref = call.image_ref;
  if constexpr (requires { ImageCopy{.image = call.image}; }) copy.image = call.image;
  return copy;
}
ChangeOptions OptionsOf(const auto& call) {
  ChangeOptions options{.dry_run = call.dry_run};
  if constexpr (requires { call.allow_empty; }) options.allow_empty = call.allow_empty;
  return options;
}
// Only the outcome of a call that answers nothing.
inline Result<Nothing> Done(const Result<void>& result) {
  return result ? Result<Nothing>(Nothing()) : result.error();
}
inline Error Invalid(std::string what, std::string hint = {}) {
  return {ErrorCode::kInvalidArgument, std::move(what) + "; nothing was changed", std::move(hint)};
}

// Of an image that an operator names.
Result<void> CheckImageRef(std::string_view image_ref);

// Impl::Write for a change that returns a value: that of the run that was committed.
template <typename Change>
auto WriteAndGet(NodeStore::Impl& impl, const Change& change,
                 const ChangeOptions& options = {}) noexcept {
  using Value = std::invoke_result_t<Change, internal::StoreTxn&>;
  return Guarded([&]() -> Value {
    typename Value::value_type value{};
    TRY(impl.Write(
        [&](internal::StoreTxn& txn) -> Result<void> {
          value = TRY(change(txn));
          return {};
        },
        options));
    return value;
  });
}

// The same for a change of images.
template <typename Change>
auto WriteImages(NodeStore::Impl& impl, const Change& change,
                 const ChangeOptions& options = {}) noexcept {
  const auto run = [&](internal::StoreTxn& txn) {
    internal::Images images(txn, impl.aliases);
    return change(images);
  };
  if constexpr (std::is_void_v<
                    typename std::invoke_result_t<Change, internal::Images&>::value_type>) {
    return impl.Write(run, options);
  } else {
    return WriteAndGet(impl, run, options);
  }
}

// The values of a table in one snapshot. False: one can't be read, or is missing.
template <typename T>
bool ReadTable(const internal::ReaderPool::Lease& snapshot, internal::Table table,
               std::optional<T> (*decode)(internal::Payload), std::vector<T>& all) {
  bool are_sound = true;
  const bool walked = snapshot.ForEach(internal::SpecOf(table), [&](internal::Payload payload) {
    auto decoded = payload.empty() ? std::nullopt : decode(payload);
    are_sound = are_sound && decoded.has_value();
    if (decoded) all.push_back(*std::move(decoded));
  });
  return walked && are_sound && snapshot.CountIsTrue(table);
}

// Every value. An error if one can't be read or is missing.
template <typename T>
Result<std::vector<T>> ListIn(const NodeStore::Impl& impl,
                              const internal::ReaderPool::Lease& snapshot, internal::Table table,
                              std::string_view what,
                              std::optional<T> (*decode)(internal::Payload)) {
  if (!snapshot) return impl.NoSnapshot(snapshot, what);
  std::vector<T> all;
  if (!ReadTable(snapshot, table, decode, all)) return impl.Unreadable(what);
  return all;
}

template <typename T>
Result<std::vector<T>> ListTable(NodeStore::Impl& impl, internal::Table table,
                                 std::string_view what,
                                 std::optional<T> (*decode)(internal::Payload)) {
  return Guarded([&] { return ListIn(impl, impl.Read(), table, what, decode); });
}

}  // namespace waybill

#endif  // WAYBILL_STORE_CALLS_IMPL_H_
