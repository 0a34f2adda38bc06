#include "bindings/cli/store_access.h"

#include <fmt/core.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "bindings/cli/progress.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "store/calls/node_store.h"
#include "store/calls/streaming_store.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

namespace fs = std::filesystem;

Result<std::unique_ptr<NodeStore>> WithHint(Result<std::unique_ptr<NodeStore>> store) {
  if (!store) return WithStartHint(std::move(store.error()));
  return store;
}

void WarnOfCopy(const NodeStore& store, const std::string& directory) {
  const std::string& original = store.recovery_report().copy_of;
  if (original.empty()) return;
  Warn(directory + " was copied or moved from " + original +
           ", and the witness is that one's: it is read, and not written",
       "to go on with this one, run the node with it, or give it a witness of its own with waybill "
       "start --witness");
}

// One attempt, without waiting.
Result<std::unique_ptr<NodeStore>> TryToOwn(const StoreFlags& flags, const Opening& how) {
  auto store = WithHint(NodeStore::Open({.directory = flags.store,
                                         .create_if_missing = false,
                                         .witness = Witness::Remembered(),
                                         .evidence = how.evidence,
                                         .continues_pulls = true,
                                         .chooses = false,
                                         .migrate = false}));
  if (!store) return store;
  WarnOfCopy(**store, flags.store);
  const OpeningReport& report = (*store)->recovery_report();
  for (const std::string& mended : report.mended) {
    Warn(mended, "find out who else could read or change it");
  }
  if (report.set_aside) {
    Warn(
        "the store was damaged; what was sound in it was carried over, and the damaged one is at " +
            report.set_aside_path + "; " + std::string(kDistrustMeans),
        "see waybill trust --store " + ShellWord(flags.store));
  } else if (!report.findings.empty()) {
    Warn(report.findings.front() + "; " + std::string(kDistrustMeans),
         "see waybill trust --store " + ShellWord(flags.store));
  }
  return store;
}

// Most users of backups name a file once.
Result<void> CheckIsNoFile(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return {};
  return Error{
      ErrorCode::kUnsafePath, path.string() + " is not a directory; nothing was changed",
      "name the directory that data.mdb lies in; `waybill restore` puts a backup's file back"};
}

Result<std::unique_ptr<NodeStore>> TryToObserve(const ObserveOptions& options) {
  TRY(CheckIsNoFile(options.directory));
  auto store = WithHint(NodeStore::Observe(options));
  if (store) WarnOfCopy(**store, options.directory.string());
  return store;
}

}  // namespace

Result<std::unique_ptr<NodeStore>> OwnStore(const StoreFlags& flags, const Opening& how) {
  return WhileOwned(flags, [&] { return TryToOwn(flags, how); });
}

Result<std::unique_ptr<NodeStore>> ObserveStore(const StoreFlags& flags, const Opening& how) {
  ObserveOptions options = {.directory = flags.store,
                            .short_names = how.evidence.short_names,
                            .shows_all_proofs = how.shows_any_age,
                            .needs_slot = false};
  auto opened = TryToObserve(options);
  if (opened || !how.shows_any_age || opened.error().code != ErrorCode::kDamaged) return opened;
  options.asks_witness = false;
  auto of_any_age = TryToObserve(options);
  if (!of_any_age) return opened;
  Warn(opened.error().message, "what is shown may be long out of date; no command decides by it");
  return of_any_age;
}

Result<VerifyReport> VerifyStreams(const StoreFlags& flags) {
  auto streams = TRY(StreamingStore::Observe(flags.store, SystemBootClock, false));
  auto report = TRY(streams->Verify());
  TRY(streams->Close());
  return report;
}

Result<Writer> Writer::Open(const StoreFlags& flags, const Opening& how) {
  return WhileOwned(flags, [&] { return Try(flags, how); });
}

Result<Writer> Writer::Try(const StoreFlags& flags, const Opening& how) {
  auto own = TryToOwn(flags, how);
  if (own) {
    const Mode mode = (*own)->settings().mode;
    return Writer(*std::move(own), std::nullopt, mode, flags.wait);
  }
  if (own.error().code != ErrorCode::kOwned) return own.error();
  Owner owner(flags.store);
  const auto status = WhileBusy(flags.wait, [&] { return owner.Call(GetStatus()); });
  if (!status && status.error().code == ErrorCode::kNotFound) {
    Error error = own.error();
    error.message += "; that process takes no requests, since it does not serve owner.sock";
    return error;
  }
  if (!status) return status.error();
  const waybill::Settings& settings = status->settings;
  if (how.short_names != nullptr) {
    TRY(how.short_names->CheckOwner(settings));
  }
  Opening reading = how;
  reading.evidence.short_names =
      settings.short_names_anywhere ? ShortNames::kAnywhere : ShortNames::kDockerHub;
  auto store = TRY(ObserveStore(flags, reading));
  return Writer(std::move(store), std::move(owner), settings.mode, flags.wait);
}

Error WithStartHint(Error error) {
  if (error.code == ErrorCode::kNotFound && !error.has_hint()) {
    error.hint_code = Hint::kCreate;
  }
  return error;
}

std::string ClearDistrustHint(const std::string& store) {
  return "to clear that: waybill trust --store " + ShellWord(store) +
         " --clear --reason '…' --images FILE, with what `crictl images -o json` prints; its "
         "images without a record are closed then, or with --adopt, which states that no pod's "
         "credentials brought them, known as preloaded";
}

namespace {

constexpr std::chrono::microseconds kLongestNap{100'000};
constexpr std::array kEndingSignals = {SIGINT, SIGTERM};

// Cut short by a signal.
void NapFor(std::chrono::microseconds span) {
  constexpr long kNanosPerMicro = 1'000;
  const struct timespec nap = {.tv_sec = 0, .tv_nsec = span.count() * kNanosPerMicro};
  static_cast<void>(::nanosleep(&nap, nullptr));
}

}  // namespace

void NapWhileBusy() {
  static std::minstd_rand draw(static_cast<std::minstd_rand::result_type>(::getpid()));
  std::uniform_int_distribution<std::chrono::microseconds::rep> length(2'000, 50'000);
  NapFor(std::chrono::microseconds(length(draw)));
}

OwnerWait::OwnerWait(const StoreFlags& flags)
    : flags_(flags), draw_(static_cast<std::minstd_rand::result_type>(::getpid())) {}

OwnerWait::~OwnerWait() {
  if (!catches_) return;
  for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
    ::sigaction(kEndingSignals[i], &before_[i], nullptr);
  }
}

std::optional<Error> OwnerWait::Nap(const Error& owned) {
  Error error = owned;
  if (flags_.wait.count() == 0) {
    error.hint += std::string(error.hint.empty() ? "" : "; ") + "`--wait 30s` waits until it ends";
    return error;
  }
  if (!catches_) {
    for (std::size_t i = 0; i < kEndingSignals.size(); ++i) {
      ::sigaction(kEndingSignals[i], nullptr, &before_[i]);
    }
    CatchStopSignals();
    catches_ = true;
  }
  const auto left =
      std::chrono::duration_cast<std::chrono::microseconds>(began_ + flags_.wait - Clock::now());
  if (left.count() > 0 && !StopRequested()) {
    std::uniform_int_distribution<std::chrono::microseconds::rep> length(nap_.count() / 2,
                                                                         nap_.count());
    NapFor(std::min(left, std::chrono::microseconds(length(draw_))));
    nap_ = std::min(2 * nap_, kLongestNap);
  }
  if (StopRequested()) {
    error.code = ErrorCode::kInterrupted;
    error.message = "stopped by a signal while waiting: " + error.message;
    error.hint = "run the same command again, or stop the process that owns the store";
    return error;
  }
  if (left.count() > 0) return std::nullopt;
  error.message = fmt::format("waited {}s in vain: {}", flags_.wait.count(), error.message);
  error.hint = "wait for longer (--wait), or find out what that process does";
  return error;
}

}  // namespace waybill::cli
