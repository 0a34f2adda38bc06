#include "bindings/cli/streaming_requests.h"

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <utility>

#include "bindings/cli/input.h"
#include "bindings/cli/owner_wait.h"
#include "store/base/try.h"
#include "waybill/streaming.h"

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

Result<StreamKind> KindIn(const std::vector<std::string>& rest) {
  if (rest.empty()) {
    return BadFlag("KIND", "it is missing", "the kinds are exec, attach and portforward");
  }
  auto kind = ParseStreamKind(rest[0]);
  // The word may be a token, so it is not repeated.
  if (!kind) return BadFlag("KIND", "there is no such kind", kind.error().hint);
  return kind;
}

}  // namespace

void StreamingRequestFlags::Declare(Flags& flags) {
  flags.Value("--container", &container_, "ID", "prepare exec, attach: the container");
  flags.Value("--pod-sandbox", &sandbox_, "ID", "prepare portforward: the pod sandbox");
  flags.Switch("--stdin", &std_in_, "prepare exec, attach: stream standard input");
  flags.Switch("--stdout", &std_out_, "prepare exec, attach: stream standard output");
  flags.Switch("--stderr", &std_err_, "prepare exec, attach: stream standard error");
  flags.Switch("--tty", &tty_, "prepare exec, attach: a terminal; excludes --stderr");
  flags.List("--port", &ports_, "N", "prepare portforward: 1 to 65535; may be repeated");
  flags.Value("--ttl", &time_to_live_, "DURATION", "prepare: how long the token is good (60s)");
  flags.Value("--max-open", &max_open_, "N", "prepare: refuse if so many are open (1000)");
  flags.Value("--witness", &witness_, "FILE|none",
              "prepare: makes a store that is missing, with this witness or\nwithout one");
}

bool StreamingRequestFlags::Has(std::string_view action) {
  return action == "prepare" || action == "consume" || action == "list";
}

std::string StreamingRequestFlags::Given() const {
  const struct {
    const char* name;
    bool given;
  } all[] = {{"--container", container_.has_value()},
             {"--pod-sandbox", sandbox_.has_value()},
             {"--stdin", std_in_},
             {"--stdout", std_out_},
             {"--stderr", std_err_},
             {"--tty", tty_},
             {"--port", !ports_.empty()},
             {"--ttl", time_to_live_.has_value()},
             {"--max-open", max_open_.has_value()},
             {"--witness", witness_.has_value()}};
  for (const auto& flag : all) {
    if (flag.given) return flag.name;
  }
  return {};
}

Result<void> StreamingRequestFlags::CheckBelonging(std::string_view action) const {
  const std::string given = Given();
  if (action == "prepare" || given.empty()) return {};
  return BadFlag(given, "it belongs to prepare");
}

Result<ExitCode> StreamingRequestFlags::Run(std::string_view action, const StoreFlags& store,
                                            const std::vector<std::string>& rest,
                                            Output& out) const {
  TRY(CheckBelonging(action));
  if (store.store.empty()) return BadFlag("--store", "it is missing");
  if (action == "prepare") return Prepare(store, rest, out);
  if (action == "consume") return Consume(store, rest, out);
  if (!rest.empty()) return BadFlag("ACTION", "list takes nothing after it");
  return List(store, out);
}

Result<ExitCode> StreamingRequestFlags::Prepare(const StoreFlags& store,
                                                const std::vector<std::string>& rest,
                                                Output& out) const {
  auto kind = TRY(KindIn(rest));
  StreamingRequest request{.kind = kind,
                           .container_id = container_.value_or(""),
                           .pod_sandbox_id = sandbox_.value_or(""),
                           .command = {rest.begin() + 1, rest.end()},
                           .std_in = std_in_,
                           .std_out = std_out_,
                           .std_err = std_err_,
                           .tty = tty_};
  for (const std::string& text : ports_) {
    auto port = TRY(ParseNumber("--port", text));
    if (port == 0 || port > kLastPort) {
      return BadFlag("--port", fmt::format("{} is out of range", port), "use 1 to 65535");
    }
    request.ports.push_back(static_cast<std::uint16_t>(port));
  }
  // Checked before a store is made for nothing.
  TRY(CheckStreamingRequest(request));
  StreamingOptions options{.directory = store.store,
                           .create_if_missing = witness_.has_value(),
                           .witness = !witness_             ? Witness::Remembered()
                                      : *witness_ == "none" ? Witness::None()
                                                            : Witness::At(*witness_)};
  if (time_to_live_) {
    options.time_to_live = TRY(ParseDuration("--ttl", *time_to_live_));
  }
  std::uint64_t most = options.max_open;
  TRY(ParseNumber("--max-open", max_open_, most));
  options.max_open = static_cast<std::size_t>(most);
  std::optional<std::chrono::nanoseconds> retry_after;
  std::string token;
  auto opened = WhileOwned(store, [&] { return StreamingStore::Continue(options); });
  auto prepared = WithStreams(std::move(opened), [&](StreamingStore& streams) -> Result<void> {
    auto made = streams.Prepare(request);
    if (made) {
      token = *std::move(made);
      return {};
    }
    if (made.error().retry_after.count() == 0) return made.error();
    retry_after = made.error().retry_after;
    return {};
  });
  if (!prepared) return prepared.error();
  if (retry_after) {
    if (out.json()) {
      out.WriteJson({{"token", nullptr}, {"retryAfterSeconds", Seconds(*retry_after)}});
    } else {
      out.Line("full: as many streams wait as may; try again in {:.3f} s", Seconds(*retry_after));
    }
    return ExitCode::kNo;
  }
  if (out.json()) {
    out.WriteJson({{"token", token},
                   {"id", StreamTokenId(token)},
                   {"timeToLiveSeconds", Seconds(options.time_to_live)}});
  } else {
    out.WriteName(token);
  }
  return ExitCode::kYes;
}

Result<ExitCode> StreamingRequestFlags::Consume(const StoreFlags& store,
                                                const std::vector<std::string>& rest,
                                                Output& out) const {
  auto kind = TRY(KindIn(rest));
  if (rest.size() != 2) {
    return BadFlag(
        "TOKEN", rest.size() < 2 ? "it is missing" : "there is more than one",
        "write waybill streaming consume KIND TOKEN, or - to read it from standard input");
  }
  std::string token = rest[1];
  if (token == "-") {
    token = TRY(ReadInput("-", kMaxTokenBytes));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
  }
  std::optional<StreamingRequest> request;
  const StreamingOptions options{
      .directory = store.store, .create_if_missing = false, .witness = Witness::Remembered()};
  auto opened = WhileOwned(store, [&] { return StreamingStore::Continue(options); });
  auto consumed = WithStreams(std::move(opened), [&](StreamingStore& streams) -> Result<void> {
    auto got = streams.Consume(token, kind);
    if (got) {
      request = *std::move(got);
    } else if (got.error().code != ErrorCode::kNotFound) {
      return got.error();
    }
    return {};
  });
  if (!consumed) return consumed.error();
  if (!request) {
    if (out.json()) {
      out.WriteJson({{"found", false}});
    } else {
      out.Line("no stream waits under this token");
    }
    return ExitCode::kNo;
  }
  if (out.json()) {
    Json answer = {{"found", true}, {"kind", StreamKindName(request->kind)}};
    if (request->kind == StreamKind::kPortForward) {
      answer["podSandboxId"] = request->pod_sandbox_id;
      answer["ports"] = request->ports;
    } else {
      answer["containerId"] = request->container_id;
      if (request->kind == StreamKind::kExec) answer["command"] = request->command;
      answer["stdin"] = request->std_in;
      answer["stdout"] = request->std_out;
      answer["stderr"] = request->std_err;
      answer["tty"] = request->tty;
    }
    out.WriteJson(answer);
    return ExitCode::kYes;
  }
  out.Line("{}", StreamKindName(request->kind));
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

Result<ExitCode> StreamingRequestFlags::List(const StoreFlags& store, Output& out) const {
  auto streams = TRY(WithStreams(StreamingStore::Observe(store.store),
                                 [](StreamingStore& observed) { return observed.List(); }));
  if (out.json()) {
    Json list = Json::array();
    for (const OpenStream& stream : streams) {
      list.push_back({{"id", stream.id},
                      {"kind", StreamKindName(stream.kind)},
                      {"prepared", FormatTimestamp(stream.prepared)},
                      {"expiresInSeconds", Seconds(stream.expires_in)}});
    }
    out.WriteJson({{"streams", list}});
    return ExitCode::kYes;
  }
  std::vector<std::vector<std::string>> rows;
  for (const OpenStream& stream : streams) {
    rows.push_back({stream.id, std::string(StreamKindName(stream.kind)),
                    out.TimeText(stream.prepared),
                    fmt::format("{:.1f} s", Seconds(stream.expires_in))});
  }
  out.WriteTable({"ID", "KIND", "PREPARED", "EXPIRES IN"}, rows);
  return ExitCode::kYes;
}

}  // namespace waybill::cli
