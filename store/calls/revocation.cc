// Forgetting credentials, and how long they count.

#include <algorithm>
#include <limits>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "migrations/kubelet_files/kubelet_directory.h"
#include "store/base/empty_list.h"
#include "store/base/try.h"
#include "store/calls/do.h"
#include "store/calls/impl.h"
#include "store/images/forget.h"
#include "store/images/other_rows.h"
#include "store/images/revoked.h"
#include "store/opening/backup.h"
#include "store/runtimes/runtime_handlers.h"

namespace waybill {

using internal::StoreTxn;
using internal::Table;

Result<void> NodeStore::Impl::OpenRevocations(const NodeStoreOptions& options) {
  if (options.max_age && *options.max_age != committer->state().max_age) {
    TRY(committer->Run([&](StoreTxn& txn) -> Result<void> {
      txn.state().max_age = *options.max_age;
      txn.Touch();
      return {};
    }));
  }
  return {};
}

namespace {

// The kubelet directory that the witness lies in; empty: it lies elsewhere.
std::filesystem::path KubeletDirectoryOf(const std::filesystem::path& witness) {
  std::filesystem::path directory = witness.parent_path();
  while (directory.has_relative_path() && directory.filename() != "image_manager") {
    directory = directory.parent_path();
  }
  return directory.filename() == "image_manager" ? directory.parent_path()
                                                 : std::filesystem::path();
}

}  // namespace

Result<void> NodeStore::Impl::DropOldRevocations(std::filesystem::path kubelet_directory,
                                                 std::chrono::seconds kept) {
  const internal::State state = committer->state();
  if (state.digest(Table::kRevocations).count == 0) return {};
  if (kubelet_directory.empty()) {
    kubelet_directory = KubeletDirectoryOf(owned->database.identity.witness_path);
  }
  // It is somewhere.
  if (kubelet_directory.empty() && state.digest(Table::kKubeletFiles).count > 0) return {};
  auto backups = internal::FindBackups(directory);
  if (!backups && backups.error().code != ErrorCode::kNotFound) return backups.error();
  std::uint64_t oldest = std::numeric_limits<std::uint64_t>::max();
  if (backups) {
    for (const Backup& backup : *backups) oldest = std::min(oldest, backup.commit_sequence);
  }
  auto old = TRY(WriteImages(*this, [&](internal::Images& images) {
    return internal::OldRevocations(images, kept, oldest);
  }));
  if (old.empty()) return {};
  if (!kubelet_directory.empty()) {
    // Where they can't all be synced and read, nothing ends.
    auto records = internal::SyncAndReadRecords(kubelet_directory);
    if (!records) return {};
    std::erase_if(old, [&](const Revocation& one) {
      return std::any_of(records->begin(), records->end(), [&](const ImagePulledRecord& record) {
        return internal::IsCovered(one, record);
      });
    });
  }
  return committer->Run([&](StoreTxn& txn) -> Result<void> {
    for (const Revocation& one : old) TRY(internal::EraseRevocation(txn, one));
    return {};
  });
}

Result<void> NodeStore::Impl::FinishRevocations() {
  internal::Unfinished left;
  for (bool more = committer->state().unfinished != 0; more;) {
    // A change may run twice: what is left is known once it is committed.
    internal::Unfinished after;
    auto done = WriteImages(*this, [&](internal::Images& images) -> Result<void> {
      after = left;
      more = TRY(internal::FinishPart(images, after, rows_at_once));
      return {};
    });
    if (!done) {
      Error error = done.error();
      error.message =
          "what was revoked opens nothing, but records still hold it, until the next "
          "revocation or start goes on: " +
          error.message;
      return error;
    }
    left = std::move(after);
  }
  return {};
}

namespace {

// Runs a change that forgets.
template <typename Change>
auto WriteRevocation(NodeStore::Impl& impl, const Change& change,
                     const ChangeOptions& options) noexcept {
  using Reported = std::invoke_result_t<Change, internal::Images&>;
  return Guarded([&]() -> Reported {
    auto done = WriteImages(
        impl,
        [&](internal::Images& images) -> Reported {
          auto changed = change(images);
          // Not if it is refused: then no commit follows, and what later decisions offer would be
          // dropped, too.
          if (changed && !options.dry_run && impl.write_backs) {
            impl.write_backs->DropReadUpTo(images.txn().state().commit_sequence);
          }
          return changed;
        },
        options);
    if (!done || options.dry_run) return done;
    // It counts from its commit on. What a failed step left, the next revocation or start takes
    // out.
    static_cast<void>(impl.FinishRevocations());
    return done;
  });
}

// A digest that two images have names neither: only a record under that very ref can be meant.
// Otherwise "0 records" would pass for "nothing is open".
Result<void> CheckForgettableImage(const internal::Images& images, std::string_view image_ref) {
  const auto recorded = TRY(images.AnyRecorded(images.SubjectOf(image_ref)));
  return recorded ? Result<void>() : images.CheckOfOneImage(image_ref);
}

// A pull that began before the token and ends later records no Secret or service account: it may
// have used one that is gone. kInvalidArgument: a token older than that of the last truth.
Result<RevokeMissingReport> Reconcile(NodeStore::Impl& impl, const ExistingCredentials& truth,
                                      const ListToken& token, const ChangeOptions& options) {
  TRY(internal::CheckTruth(truth));
  return WriteRevocation(
      impl,
      [&](internal::Images& images) -> Result<RevokeMissingReport> {
        const bool is_empty = truth.secrets.empty() && truth.service_accounts.empty();
        if (is_empty && !options.allow_empty && TRY(internal::MentionsAny(images))) {
          return internal::EmptyList("the list of Secrets and service accounts is",
                                     "has records that mention some", "nothing was forgotten");
        }
        return internal::ReconcileWith(images, truth, token, impl.rows_at_once);
      },
      options);
}

}  // namespace

Result<void> NodeStore::NoteKubeletBegan(const BootTime& began) {
  return impl_->Write([&](StoreTxn& txn) -> Result<void> {
    const internal::Clocks now = txn.clocks();
    const std::chrono::nanoseconds since(now.boot.nanoseconds - began.nanoseconds);
    if (began.boot_id != now.boot.boot_id || began.boot_id == BootTime().boot_id ||
        began.nanoseconds < 0 || since.count() < 0) {
      return Error{
          ErrorCode::kInvalidArgument,
          "the kubelet is said to have begun in another boot or in the future; nothing was "
          "changed",
          "say when it began by CLOCK_BOOTTIME"};
    }
    const auto ran = std::max(now.ran - since, std::chrono::nanoseconds(0));
    if (ran <= now.kubelet_ran) return {};
    txn.state().clocks.kubelet_ran = ran;
    txn.Touch();
    return {};
  });
}

namespace door {

// A decision that begins after a call returned does not count what was forgotten, not even after a
// crash; one that is under way sees all of the change or nothing of it. A pull whose beginning is
// not on record (BeginPull) counts as begun before. An image by any spelling (Mode::kStrict), and
// of a handler that is not in the registry, too; what is preloaded stays.
Result<Revoke::Answer> Do(NodeStore& store, const Revoke& call, const Progress&) {
  const Revocation& what = call.what;
  TRY(internal::CheckForgettable(what));
  NodeStore::Impl& impl = store.impl();
  return WriteRevocation(
      impl,
      [&](internal::Images& images) -> Result<RevokeReport> {
        Revocation stored = what;
        if (what.kind == RevocationKind::kImage) {
          TRY(CheckForgettableImage(images, what.image_ref));
          auto handler = TRY(internal::FindHandler(images.txn(), what.runtime_handler));
          stored.runtime_handler = handler.stored;
        }
        return internal::Forget(images, std::move(stored), impl.rows_at_once);
      },
      OptionsOf(call));
}

Result<RevokeMissing::Answer> Do(NodeStore& store, const RevokeMissing& part, const Progress&) {
  NodeStore::Impl& impl = store.impl();
  if (!impl.committer) return impl.NotOwner();
  const ChangeOptions options = OptionsOf(part);
  if (!part.more && part.parts_before == 0) {
    return Reconcile(impl, part.existing, part.token, options);
  }
  ExistingCredentials all;
  {
    const std::lock_guard lock(impl.parts_mutex);
    auto& before = impl.parts;
    if (part.parts_before == 0) {
      before = RevokeMissing{
          .token = part.token, .allow_empty = part.allow_empty, .dry_run = part.dry_run};
    }
    if (!before || !(before->token == part.token) || before->parts_before != part.parts_before ||
        before->allow_empty != part.allow_empty || before->dry_run != part.dry_run) {
      return Error{ErrorCode::kInvalidArgument,
                   "part " + std::to_string(part.parts_before + 1) +
                       " of the list does not follow the one before; nothing was revoked",
                   "send the list anew, from its first part on, with the same flags, and from "
                   "one place at a time"};
    }
    // Taken out: a list that fails, or whose memory runs out, begins anew.
    RevokeMissing so_far = *std::exchange(before, std::nullopt);
    all = std::move(so_far.existing);
    const auto add = [](std::vector<CredentialName>& to, const std::vector<CredentialName>& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    add(all.secrets, part.existing.secrets);
    add(all.service_accounts, part.existing.service_accounts);
    TRY(internal::CheckTruth(all));
    if (part.more) {
      so_far.existing = std::move(all);
      ++so_far.parts_before;
      before = std::move(so_far);
      return RevokeMissingReport();
    }
  }
  return Reconcile(impl, all, part.token, options);
}

Result<ListRevocations::Answer> Do(NodeStore& store, const ListRevocations& call, const Progress&) {
  ListRevocations::Answer answer;
  answer.revocations = TRY(
      ListTable(store.impl(), Table::kRevocations, "the revocations", internal::DecodeRevocation));
  std::ranges::sort(answer.revocations, {}, [](const Revocation& one) {
    return std::tie(one.commit, one.kind, one.who, one.image_ref, one.runtime_handler,
                    one.credential_hash);
  });
  for (Revocation& one : answer.revocations) {
    if (!call.hashes) one.credential_hash.clear();
  }
  return answer;
}

}  // namespace door

}  // namespace waybill
