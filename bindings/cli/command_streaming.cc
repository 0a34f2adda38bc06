// waybill streaming: streaming requests to containers (exec, attach, port-forward; KEP-1558).
// `prepare`, `consume` and `list` do by hand what a runtime's streaming server does.

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/store_access.h"
#include "store/base/options.h"
#include "store/base/try.h"
#include "store/base/words.h"
#include "store/calls/streaming_store.h"
#include "store/streams/streaming_plan.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kMaxTokenBytes = 4096;
constexpr std::uint64_t kLastPort = 65535;

// Hints that name a command for nodes' stores, in words for stores of streaming requests.
Error InStreamingWords(Error error) {
  if (error.code == ErrorCode::kNotFound && !error.has_hint()) error.hint_code = Hint::kCreate;
  std::string_view hint;
  switch (error.hint_code) {
    case Hint::kCreate:
      hint =
          "make one with `waybill streaming prepare --witness FILE`, or start the streaming server";
      break;
    case Hint::kRecover:
    case Hint::kVerify:
    case Hint::kMigrate:
      hint =
          "`waybill streaming prepare` or `consume`, or a start of the streaming server, mends the "
          "store; damage makes every token void";
      break;
    case Hint::kPruneOrEnlarge:
      hint = "wait until open requests expire, or open the store with a larger map";
      break;
    default:
      return error;
  }
  error.hint_code = Hint::kNone;
  error.hint = hint;
  return error;
}

double Seconds(std::chrono::nanoseconds span) {
  return std::chrono::duration<double>(span).count();
}

void WarnOfWhatOpeningFound(const StreamingReport& report) {
  for (const std::string& mended : report.recovery.mended) {
    Warn(mended, "find out who else could read or change it");
  }
  if (report.recovery.set_aside) {
    Warn("the store was damaged, and every streaming token is void; the damaged one is at " +
             report.recovery.set_aside_path,
         "clients must ask for their streams again");
  } else if (report.voided > 0) {
    Warn(fmt::format(
             "{} void now: {}",
             report.voided == 1 ? "1 streaming token is"
                                : fmt::format("{} streaming tokens are", report.voided),
             report.void_reason.empty() ? "of another boot, or unreadable" : report.void_reason),
         "clients must ask for their streams again");
  }
}

// Runs `body(StreamingStore&)`, which returns a Result, on the opened store, and closes it.
template <typename Body>
std::invoke_result_t<Body, StreamingStore&> WithStreams(
    Result<std::unique_ptr<StreamingStore>> store, const Body& body) {
  if (!store) return InStreamingWords(std::move(store.error()));
  WarnOfWhatOpeningFound((*store)->report());
  auto result = body(**store);
  if (!result) return InStreamingWords(std::move(result.error()));
  if (auto closed = (*store)->Close(); !closed) return InStreamingWords(closed.error());
  return result;
}

// The word may be a token, so it is not repeated.
Result<StreamKind> ParseKind(std::string_view flag, std::string_view text) {
  auto kind = FromWord<StreamKind>(text, "kind of stream");
  if (!kind) return BadFlag(flag, "there is no such kind", kind.error().hint);
  return kind;
}

void DeclareStore(Flags& flags, StoreFlags& store) {
  store.DeclareOptional(flags).Required("name the streaming server's store");
  store.DeclareWait(flags);
}

void DeclareKind(Flags& flags, StreamKind* target) {
  flags.Choice("KIND", target, "exec|attach|portForward", "exec, attach or portForward", ParseKind)
      .Required("the kinds are exec, attach and portForward");
}

class StreamingPrepareCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    DeclareStore(flags, store_);
    DeclareKind(flags, &request_.kind);
    flags.Positionals("COMMAND", &request_.command, "of exec: what to run, behind --");
    flags.Value("--container", &request_.container_id, "ID", "exec, attach: the container");
    flags.Value("--pod-sandbox", &request_.pod_sandbox_id, "ID", "portForward: the pod sandbox");
    flags.Switch("--stdin", &request_.std_in, "exec, attach: stream standard input");
    flags.Switch("--stdout", &request_.std_out, "exec, attach: stream standard output");
    flags.Switch("--stderr", &request_.std_err, "exec, attach: stream standard error");
    flags.Switch("--tty", &request_.tty, "exec, attach: a terminal; excludes --stderr");
    flags.List("--port", &request_.ports, "N", "portForward: 1 to 65535; may be repeated",
               Number{1, kLastPort});
    flags.Value("--ttl", &options_.time_to_live, "DURATION", "how long the token is good (60s)",
                ParseDuration);
    flags.Value("--max-open", &options_.max_open, "N", "refuse if so many are open (1000)",
                Number());
    flags.Value("--witness", &witness_, "FILE|none",
                "make a store that is missing, with this witness");
  }

  Result<ExitCode> Run(Output& out) override {
    // Checked before a store is made for nothing.
    TRY(CheckStreamRequest(request_));
    StreamingOptions options = options_;
    options.directory = store_.store;
    options.create_if_missing = witness_.has_value();
    options.continues = true;
    options.witness = !witness_             ? Witness::Remembered()
                      : *witness_ == "none" ? Witness::None()
                                            : Witness::At(*witness_);
    std::optional<std::chrono::nanoseconds> retry_after;
    std::string token;
    auto opened = WhileOwned(store_, [&] { return StreamingStore::Open(options); });
    TRY(WithStreams(std::move(opened), [&](StreamingStore& streams) -> Result<void> {
      auto made = streams.Prepare(request_);
      if (made) {
        token = *std::move(made);
        return {};
      }
      if (made.error().retry_after.count() == 0) return made.error();
      retry_after = made.error().retry_after;
      return {};
    }));
    if (retry_after) {
      out.WriteJson({{"token", nullptr}, {"retryAfterSeconds", Seconds(*retry_after)}});
      out.Line("full: as many streams wait as may; try again in {:.3f} s", Seconds(*retry_after));
      return ExitCode::kNo;
    }
    out.WriteJson({{"token", token},
                   {"id", StreamTokenId(token)},
                   {"timeToLiveSeconds", Seconds(options.time_to_live)}});
    out.WriteName(token);
    out.WriteLine(token);
    return ExitCode::kYes;
  }

 private:
  StreamRequest request_;
  StreamingOptions options_{.directory = {}, .witness = Witness::Remembered()};
  std::optional<std::string> witness_;
};

class StreamingConsumeCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    DeclareStore(flags, store_);
    DeclareKind(flags, &kind_);
    flags.Positional("TOKEN", &token_, "-: read it from standard input")
        .Required(
            "write waybill streaming consume KIND TOKEN, or - to read it from standard input");
  }

  Result<ExitCode> Run(Output& out) override {
    std::string token = token_;
    if (token == "-") {
      token = TRY(ReadInput("-", kMaxTokenBytes));
      while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    }
    std::optional<StreamRequest> request;
    const StreamingOptions options{.directory = store_.store,
                                   .create_if_missing = false,
                                   .witness = Witness::Remembered(),
                                   .continues = true};
    auto opened = WhileOwned(store_, [&] { return StreamingStore::Open(options); });
    TRY(WithStreams(std::move(opened), [&](StreamingStore& streams) -> Result<void> {
      auto got = streams.Consume(token, kind_);
      if (got) {
        request = *std::move(got);
      } else if (got.error().code != ErrorCode::kNotFound) {
        return got.error();
      }
      return {};
    }));
    if (!request) {
      out.WriteJson({{"found", false}});
      out.Line("no stream waits under this token");
      return ExitCode::kNo;
    }
    Json answer = {{"found", true}};
    answer.update(JsonOf(*request));
    out.WriteJson(answer);
    out.Line("{}", WordOf(request->kind));
    if (request->kind == StreamKind::kPortForward) {
      out.Line("pod sandbox  {}", request->pod_sandbox_id);
      for (const std::uint16_t port : request->ports) out.Line("port         {}", port);
      return ExitCode::kYes;
    }
    out.Line("container    {}", request->container_id);
    if (request->kind == StreamKind::kExec) {
      std::string line;
      for (const std::string& argument : request->command) line += " " + ShellWord(argument);
      out.Line("command     {}", line);
    }
    std::string streams;
    for (const auto& [name, set] : {std::pair("stdin", request->std_in),
                                    {"stdout", request->std_out},
                                    {"stderr", request->std_err},
                                    {"tty", request->tty}}) {
      if (set) streams += (streams.empty() ? "" : ", ") + std::string(name);
    }
    out.Line("streams      {}", streams);
    return ExitCode::kYes;
  }

 private:
  StreamKind kind_ = StreamKind::kExec;
  std::string token_;
};

class StreamingListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override { DeclareStore(flags, store_); }

  Result<ExitCode> Run(Output& out) override {
    auto streams = TRY(WithStreams(StreamingStore::Observe(store_.store, SystemBootClock, false),
                                   [](StreamingStore& observed) { return observed.List(); }));
    out.WriteJson({{"streams", JsonOf(streams)}});
    std::vector<std::vector<std::string>> rows;
    for (const OpenStream& stream : streams) {
      rows.push_back({stream.id, std::string(WordOf(stream.kind)), out.TimeText(stream.prepared),
                      fmt::format("{:.1f} s", static_cast<double>(stream.expires_in_ms) / 1000)});
    }
    out.WriteTable({"ID", "KIND", "PREPARED", "EXPIRES IN"}, rows);
    return ExitCode::kYes;
  }
};

Result<std::uint32_t> ParseRelease(std::string_view flag, std::string_view text) {
  auto release = ParseKubernetesRelease(text);
  if (!release) return BadFlag(flag, release.error().message, release.error().hint);
  return release;
}

void WriteFindings(const StreamingLint& lint, Output& out) {
  for (const StreamFinding& finding : lint.findings) {
    out.Line("{:<10}  {}", WordOf(finding.severity), finding.setting);
    if (!finding.words.empty()) out.Line("{:<10}  says: {}", "", finding.words);
    out.Line("{:<10}  do: {}", "", finding.advice);
  }
  if (lint.findings.empty()) out.Line("nothing found");
  for (const std::string& note : lint.notes) out.Line("note: {}", note);
}

class StreamingLintCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Value("--kubelet-version", &kubelet_, "V", "the flags are a kubelet's: as v1.36.3",
                ParseRelease);
    flags.Value("--apiserver-version", &api_server_, "V", "they are an API server's: as v1.36.3",
                ParseRelease);
    flags
        .Positionals("FLAG", &request_.arguments,
                     "as the component gets it, with its value, behind --")
        .Required("write the component's flags behind --");
    flags.OneOf({"--kubelet-version", "--apiserver-version"},
                "give what `kubelet --version` or `kube-apiserver --version` prints");
  }

  Result<ExitCode> Run(Output& out) override {
    request_.component = kubelet_ ? StreamingComponent::kKubelet : StreamingComponent::kApiServer;
    request_.release = kubelet_ ? *kubelet_ : *api_server_;
    const auto lint = TRY(LintStreaming(request_));
    out.WriteJson({{"component", WordOf(request_.component)},
                   {"version", ReleaseName(request_.release)},
                   {"findings", JsonOf(lint.findings)},
                   {"notes", lint.notes}});
    out.Line("{} {}", ProgramOf(request_.component), ReleaseName(request_.release));
    WriteFindings(lint, out);
    return lint.findings.empty() ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  std::optional<std::uint32_t> kubelet_;
  std::optional<std::uint32_t> api_server_;
  StreamingSetup request_;
};

}  // namespace

Command StreamingCommand() {
  return {
      .name = "streaming",
      .task = kTaskPods,
      .summary = "give out tokens that open a stream once; judge flags of streaming",
      .actions = {
          {.name = "prepare",
           .summary = "store what an exec, attach or portForward asks for, and print a token",
           .notes = "The token opens it once. 1 if as many wait as may.",
           .examples =
               "waybill streaming prepare exec --store streams --container 5e3f --stdout -- ls -l",
           .call = New<StreamingPrepareCall>},
          {.name = "consume",
           .summary = "use a token up, and print its request",
           .notes = "1 if it opens nothing.",
           .examples = "waybill streaming consume exec --store streams - < token",
           .call = New<StreamingConsumeCall>},
          {.name = "list",
           .summary = "what waits for its client; beside a live owner, too",
           .examples = "waybill streaming list --store streams",
           .call = New<StreamingListCall>},
          {.name = "lint",
           .summary = "what a release makes of a kubelet's or an API server's flags of streaming",
           .notes =
               "Says which are deprecated, ignored, removed or fatal there; 1 if there are any.",
           .examples = "waybill streaming lint --kubelet-version v1.24.0 -- "
                       "--redirect-container-streaming",
           .call = New<StreamingLintCall>}}};
}

}  // namespace waybill::cli
