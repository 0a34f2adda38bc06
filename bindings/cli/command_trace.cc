// waybill trace: the history of a node, for `waybill advise`.

#include <algorithm>
#include <array>
#include <unordered_set>

#include "bindings/cli/command.h"
#include "bindings/cli/input.h"
#include "bindings/cli/trace_sources.h"
#include "store/base/timestamp.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

constexpr std::size_t kKinds = 8;

Timestamp TimeOf(std::int64_t milliseconds) {
  const std::int64_t rest = (milliseconds % 1000 + 1000) % 1000;
  return {(milliseconds - rest) / 1000, static_cast<std::int32_t>(rest * 1'000'000)};
}

class TraceImportCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.List("--events", &sources_.events, "FILE|-",
               "what kubectl get events -A -o json prints, also with -w");
    flags.List("--pods", &sources_.pods, "FILE|-",
               "kubectl get pods -A -o json: when containers started, with which\n"
               "pull Secrets");
    flags.List("--images", &sources_.images, "FILE[@TIME]",
               "crictl images -o json, made when the file was last written, or\n"
               "at TIME; of several, what changed. Beside a list: crictl imagefsinfo\n"
               "-o json, which says what its images take on the disk");
    flags.List("--containers", &sources_.containers, "FILE|-", "crictl ps -a -o json");
    flags.List("--trace", &sources_.traces, "FILE|-", "a trace that is there already");
    flags.Value("--node", &sources_.node, "NAME", "only what happened there");
    flags.Needed({"--events", "--pods", "--images", "--containers", "--trace"});
  }

  Result<ExitCode> Run(Output& out) override {
    const auto imported = TRY(ImportTrace(sources_));
    if (imported.lines.empty()) {
      return Error{ErrorCode::kInvalidArgument, "there is no event in what was given",
                   sources_.node.empty()
                       ? "check that the files are of the kinds that the flags say"
                       : "check the name of --node"};
    }
    const bool is_one = sources_.node.empty() && imported.nodes.size() == 1;
    out.WriteRaw(
        TraceHeaderLine(imported.sources, is_one ? *imported.nodes.begin() : sources_.node));
    out.WriteRaw(
        TraceLine({.kind = TraceEvent::Kind::kStart, .time_ms = imported.lines.begin()->first}));
    for (const auto& [time_ms, line] : imported.lines) out.WriteRaw(line);
    TRY(out.Flush());
    if (imported.nodes.size() > 1) {
      Warn(
          fmt::format("the trace mixes {} nodes, as if all shared one disk", imported.nodes.size()),
          fmt::format("take one by --node, as --node {}", *imported.nodes.begin()));
    }
    if (imported.other_nodes > 0) {
      Note(fmt::format("left out, of other nodes: {}", imported.other_nodes));
    }
    return ExitCode::kYes;
  }

 private:
  TraceSources sources_;
};

class TraceShowCall final : public Call {
 public:
  void Declare(Flags& flags) override {
    flags.Positional("FILE", &file_,
                     "the trace, with its older parts FILE.1, …; - is standard input", Length(),
                     kRequired);
  }

  Result<ExitCode> Run(Output& out) override {
    auto reader = TRY(TraceReader::Open(file_));
    std::array<std::uint64_t, kKinds> kinds{};
    std::optional<std::int64_t> first;
    std::int64_t last = 0;
    std::uint64_t pulled_bytes = 0;
    std::uint64_t answers = 0;
    std::uint64_t must_pull = 0;
    std::uint64_t wrong = 0;
    std::uint64_t back = 0;
    std::optional<std::int64_t> before;
    for (;;) {
      auto next = reader.Next();
      if (!next) {
        // What can't be read any further, can't be shown.
        if (next.error().code != ErrorCode::kInvalidArgument) return next.error();
        ++wrong;
        AddProblem(std::move(next.error().message));
        continue;
      }
      const auto& event = *next;
      if (!event) break;
      if (event->time_ms < before.value_or(event->time_ms)) {
        ++back;
        AddProblem(fmt::format("{}: the time goes back", reader.where()));
      }
      before = event->time_ms;
      ++kinds[static_cast<std::size_t>(event->kind)];
      first = std::min(first.value_or(event->time_ms), event->time_ms);
      last = std::max(first == event->time_ms ? event->time_ms : last, event->time_ms);
      Count(event->ref.empty() ? event->image : event->ref, images_);
      Count(event->pod_namespace, namespaces_);
      for (const std::string& credential : event->credentials) Count(credential, credentials_);
      if (event->kind == TraceEvent::Kind::kPulled) pulled_bytes += event->bytes.value_or(0);
      if (event->must_pull) ++answers;
      if (event->must_pull.value_or(false)) ++must_pull;
    }
    std::vector<Field> fields = {{"source", "from", std::string(reader.source())},
                                 {"events", "events", reader.events()}};
    if (first) {
      fields.push_back({"from", "first event", FormatTimestamp(TimeOf(*first))});
      fields.push_back({"to", "last event", FormatTimestamp(TimeOf(last))});
    }
    for (std::size_t i = 0; i < kKinds; ++i) {
      const std::string name(TraceKindName(static_cast<TraceEvent::Kind>(i)));
      fields.push_back({name, kinds[i] == 0 ? "" : LabelOf(name), kinds[i]});
    }
    fields.push_back({"answers", "uses with an answer", answers});
    fields.push_back({"mustPull", "of these, must pull", must_pull});
    fields.push_back({"images", "images", images_.size()});
    fields.push_back({"namespaces", "namespaces", namespaces_.size()});
    fields.push_back({"credentials", "credentials", credentials_.size()});
    fields.push_back({"pulledBytes", "bytes pulled, as far as known", pulled_bytes});
    fields.push_back(
        {"cutLines", reader.cut_lines() == 0 ? "" : "lines cut short", reader.cut_lines()});
    fields.push_back({"wrong", wrong == 0 ? "" : "lines that are no event", wrong});
    fields.push_back({"timeGoesBack", back == 0 ? "" : "times that go back", back});
    fields.push_back({"problems", problems_.empty() ? "" : "problems", Json(problems_)});
    out.WriteFields(fields);
    return wrong + back == 0 ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  void AddProblem(std::string text) {
    constexpr std::size_t kMostShown = 20;
    if (problems_.size() < kMostShown) problems_.push_back(std::move(text));
  }

  using Names = std::unordered_set<std::uint64_t>;
  static void Count(const std::string& name, Names& names) {
    if (!name.empty()) names.insert(std::hash<std::string>()(name));
  }

  std::string file_;
  std::vector<std::string> problems_;
  Names images_;
  Names namespaces_;
  Names credentials_;
};

}  // namespace

Command TraceCommand() {
  return {
      .name = "trace",
      .task = kTaskPlan,
      .summary = "make and read the history of a node",
      .actions = {
          {.name = "import",
           .summary = "make a trace of what kubectl and crictl recorded",
           .notes =
               R"(Prints a trace: JSON lines without secrets (docs/trace.md), which `waybill advise`
reads. Several files become one history in the order of time. Pull Secrets become
pseudonyms, which no second import repeats.

Events last an hour in most clusters: keep a `kubectl get events -A -w -o json` running
for as long as the history shall be. An event that happened several times says only when
first and last; the times between are spread evenly. With --images what events and pods
call an image finds its ID and its size.)",
           .examples =
               R"(kubectl get events -A -w -o json > events.json
waybill trace import --events events.json --pods pods.json --node worker-1 > node.trace
waybill trace import --images monday.json --images friday.json > node.trace)",
           .call = New<TraceImportCall>},
          {.name = "show",
           .summary = "say what is in a trace; 1: something is wrong with it",
           .notes = R"(Names the lines that are no event, and the times that go back.)",
           .examples = R"(waybill trace show node.trace)",
           .call = New<TraceShowCall>}}};
}

}  // namespace waybill::cli
