// waybill start: take over a kubelet's records, recover, report. The main job.

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/start_report.h"
#include "bindings/cli/store_access.h"

namespace waybill::cli {
namespace {

// Set by the first SIGINT or SIGTERM; a second one kills.
volatile sig_atomic_t stop_requested = 0;

void RequestStop(int) { stop_requested = 1; }

void CatchStopSignals() {
  struct sigaction action = {};
  action.sa_handler = RequestStop;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM}) ::sigaction(signal, &action, nullptr);
}

// A line on standard error that is written over and over; nothing where nobody watches.
class ProgressLine {
 public:
  ProgressLine() : shown_(::isatty(STDERR_FILENO) == 1) {}
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  void Show(std::uint64_t done, std::uint64_t total) {
    if (!shown_) return;
    written_ = true;
    fmt::print(stderr, "\rimporting: {} of {} files", done, total);
    std::fflush(stderr);
  }
  void Clear() {
    if (!written_) return;
    written_ = false;
    std::fputs("\r\x1b[K", stderr);
    std::fflush(stderr);
  }

 private:
  bool shown_;
  bool written_ = false;
};

class StartCommand final : public Command {
 public:
  std::string name() const override { return "start"; }
  std::string summary() const override { return "take over a kubelet's records, recover, report"; }
  std::string notes() const override {
    return "Makes the store where there is none. Safe to run again, after a crash or an "
           "interruption at\n"
           "any point: what was done is kept, and a file that was taken is not taken twice. "
           "Without\n"
           "--images a pull that was cut short stays open, which keeps its image closed.\n"
           "The witness tells when the whole store was wiped or put back from an older copy: the "
           "file\n"
           "of --witness, else image_manager/waybill in the kubelet directory, else the one that "
           "the\n"
           "store remembers. The policy is checked, but not kept: each command takes its own.";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags.Value("--kubelet-dir", &kubelet_directory_, "DIR",
                "a kubelet directory, the one with image_manager/ in it");
    flags.Value("--images", &images_, "FILE|-", "what crictl images -o json prints: all images");
    policy_.Declare(flags);
    store_.DeclareRules(flags);
    flags.Value("--witness", &witness_, "FILE", "the witness file, outside the store");
    flags.Switch("--no-witness", &no_witness_, "have none: a wiped store then goes unnoticed");
    flags.Value("--map-size", &map_size_, "BYTES", "the largest size that the store may grow to");
  }

  Result<ExitCode> Run(Output& out) override {
    OpenOptions options{.directory = {}, .witness = Witness::None()};
    if (auto parsed = Parse(options); !parsed) return parsed.error();
    if (images_) {
      auto images = ReadImageList(*images_);
      if (!images) return images.error();
      options.images_on_node = *std::move(images);
    }
    // Asked before opening: a witness makes the directory.
    const bool nothing_there =
        kubelet_directory_ && ::access((*kubelet_directory_ + "/image_manager").c_str(), F_OK) != 0;
    auto report = OpenAndClose(std::move(options));
    if (!report) return report.error();
    WriteStartReport(*report, store_.store, out);
    if (nothing_there) {
      (void)out.Flush();
      Warn(*kubelet_directory_ + " has no image_manager in it: nothing was taken over",
           "right for a node that never pulled an image; else name the kubelet's root directory");
    }
    if (report->created && !witness_ && !no_witness_ && !kubelet_directory_) {
      (void)out.Flush();
      Warn("the store has no witness: when it is wiped, that goes unseen, and opens images",
           "run it again with --kubelet-dir or --witness; --no-witness is to mean it");
    }
    return ExitCode::kYes;
  }

 private:
  Result<void> Parse(OpenOptions& options) {
    if (auto parsed = store_.Parse(); !parsed) return parsed.error();
    if (auto parsed = policy_.Parse(); !parsed) return parsed.error();
    options.directory = store_.store;
    options.rules = store_.rules;
    options.policy = policy_.policy;
    if (kubelet_directory_) {
      if (auto checked = CheckKubeletDirectory(); !checked) return checked.error();
      options.kubelet_directory = *kubelet_directory_;
    }
    if (witness_ && no_witness_) return BadFlag("--no-witness", "it excludes --witness");
    if (witness_ && witness_->empty()) return BadFlag("--witness", "the value is empty");
    if (no_witness_) {
      options.witness = Witness::None();
    } else if (witness_) {
      options.witness = WitnessAt(*witness_);
    } else if (kubelet_directory_) {
      options.witness = WitnessAt(options.kubelet_directory / "image_manager" / "waybill");
    } else {
      options.witness = Witness::Remembered();
    }
    if (map_size_) {
      auto bytes = ParseNumber("--map-size", *map_size_);
      if (!bytes) return bytes.error();
      options.map_bytes = *bytes;
    }
    return {};
  }

  // The store remembers the path, and is used from other directories than this one.
  static Witness WitnessAt(const std::filesystem::path& path) {
    return Witness::At(std::filesystem::absolute(path));
  }

  // A mistyped directory would look like a node that never pulled anything.
  Result<void> CheckKubeletDirectory() const {
    if (kubelet_directory_->empty()) return BadFlag("--kubelet-dir", "the value is empty");
    struct stat status = {};
    const int error = ::stat(kubelet_directory_->c_str(), &status) == 0 ? 0 : errno;
    if (error == 0 && S_ISDIR(status.st_mode)) return {};
    return BadFlag(
        "--kubelet-dir",
        fmt::format("{}: {}", *kubelet_directory_, ::strerror(error == 0 ? ENOTDIR : error)),
        "name the kubelet's root directory, by default /var/lib/kubelet");
  }

  static Result<RecoveryReport> OpenAndClose(OpenOptions options) {
    CatchStopSignals();
    ProgressLine line;
    options.import_progress = [&line](std::uint64_t done, std::uint64_t total) {
      line.Show(done, total);
      return stop_requested == 0;
    };
    auto store = NodeStore::Open(std::move(options));
    line.Clear();
    if (!store) {
      Error error = store.error();
      if (error.code == ErrorCode::kInterrupted && error.hint.empty()) {
        error.hint = "it is safe to run the same command again: it goes on from here";
      }
      return error;
    }
    RecoveryReport report = (*store)->recovery_report();
    if (auto closed = (*store)->Close(); !closed) return closed.error();
    return report;
  }

  StoreFlags store_;
  PolicyFlags policy_;
  std::optional<std::string> kubelet_directory_;
  std::optional<std::string> images_;
  std::optional<std::string> witness_;
  bool no_witness_ = false;
  std::optional<std::string> map_size_;
};

}  // namespace

std::unique_ptr<Command> MakeStartCommand() { return std::make_unique<StartCommand>(); }

}  // namespace waybill::cli
