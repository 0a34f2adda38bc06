#include "bindings/cli/trace_sources.h"

#include <fmt/core.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <unordered_map>

#include "bindings/cli/input.h"
#include "bindings/cli/json_stream.h"
#include "bindings/cli/parse.h"
#include "bindings/cli/pull_message.h"
#include "bindings/cli/sizing_model.h"
#include "store/base/described.h"
#include "store/base/image_name.h"
#include "store/base/json.h"
#include "store/base/timestamp.h"
#include "store/base/trace.h"
#include "store/base/try.h"
#include "store/for_the_command.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::cli {
namespace {

using internal::JsonText;
using internal::ReadForeign;

constexpr std::int64_t kMillisecondsPerSecond = 1000;
// An event says how often it happened; above this the rest is left out.
constexpr std::uint64_t kMaxRepeats = 100'000;
// Of all lines, which are in memory.
constexpr std::size_t kMaxTraceBytes = std::size_t{512} << 20;
// A container starts soon after the event about its image, by the same clock.
constexpr std::int64_t kStartsWithin = 300 * kMillisecondsPerSecond;
constexpr std::int64_t kStartsBefore = 60 * kMillisecondsPerSecond;

// Of what others wrote much is missing: then it is empty.
JsonText At(JsonText value, std::initializer_list<std::string_view> path) {
  for (const std::string_view name : path) value.text = internal::MemberOf(value.text, name);
  return value;
}
std::string TextAt(JsonText value, std::initializer_list<std::string_view> path) {
  std::string text;
  return ReadForeign(At(value, path).text, kMaxDocumentBytes, text) ? text : "";
}
// Some write a number as a string.
std::uint64_t NumberAt(JsonText value, std::initializer_list<std::string_view> path) {
  std::string_view json = At(value, path).text;
  json.remove_prefix(json.starts_with('"') ? 1 : 0);
  std::uint64_t number = 0;
  std::from_chars(json.data(), json.data() + json.size(), number);
  return number;
}
std::optional<std::int64_t> TimeAt(JsonText value, std::initializer_list<std::string_view> path) {
  const auto time = ParseTimestamp(TextAt(value, path));
  return time ? std::optional(TraceTime(*time)) : std::nullopt;
}
std::vector<JsonText> ListAt(JsonText value, std::initializer_list<std::string_view> path) {
  std::vector<JsonText> list;
  return ReadForeign(At(value, path).text, kMaxDocumentBytes, list) ? list
                                                                    : std::vector<JsonText>();
}

// Calls `take(JsonText)` for each object of the file; of a list, for each of `items`.
template <typename Take>
Result<void> ForEachObject(const std::string& path, std::string_view items, const Take& take) {
  auto stream = TRY(JsonStream::Open(path, kMaxDocumentBytes));
  while (const auto text = TRY(stream.Next())) {
    JsonText root;
    const auto read = ReadForeign(*text, kMaxDocumentBytes, root);
    if (!read) return AboutInput(stream.where(), read.error(), {});
    if (!At(root, {items}).text.starts_with('[')) TRY(take(root));
    for (const JsonText item : ListAt(root, {items})) TRY(take(item));
  }
  return {};
}

// FILE@TIME, or FILE: when it was last written.
struct Snapshot {
  std::string path = {};
  std::int64_t time_ms = 0;
};

Result<Snapshot> ParseSnapshot(const std::string& flag, const std::string& text) {
  const std::size_t at = text.rfind('@');
  if (at != std::string::npos && at > 0) {
    const auto time = ParseTimestamp(text.substr(at + 1));
    if (time) return Snapshot{text.substr(0, at), TraceTime(*time)};
  }
  struct stat about = {};
  if (text == "-" || ::stat(text.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) {
    return BadFlag(flag, fmt::format("{} does not say when it was made", text.substr(0, 200)),
                   "name a file, which was last written then, or add the time: "
                   "FILE@2026-01-02T03:04:05Z");
  }
  return Snapshot{
      text, about.st_mtim.tv_sec * kMillisecondsPerSecond + about.st_mtim.tv_nsec / 1'000'000};
}

class Importer {
 public:
  explicit Importer(const TraceSources& sources) : sources_(sources) {}

  Result<TraceImport> Import() {
    if (::getrandom(salt_.data(), salt_.size(), 0) != static_cast<ssize_t>(salt_.size())) {
      return Error{ErrorCode::kIo, "the kernel gave no random bytes", {}};
    }
    // What images are called, then who has which credentials, then what happened.
    TRY(ReadImages());
    for (const std::string& path : sources_.traces) TRY(ReadTrace(path));
    for (const std::string& path : sources_.pods) TRY(ReadPods(path));
    for (const std::string& path : sources_.containers) TRY(ReadContainers(path));
    for (const std::string& path : sources_.events) TRY(ReadEvents(path));
    AddStarts();
    if (IsTooMuch()) {
      return Error{ErrorCode::kLimitExceeded,
                   fmt::format("the trace would have more than {} MiB; nothing was printed",
                               kMaxTraceBytes >> 20),
                   "import one node with --node, or fewer files"};
    }
    NameSources();
    return std::move(import_);
  }

 private:
  // A container that started, by a pod's status or by the runtime.
  struct Start {
    std::string pod = {};  // namespace/name
    TraceEvent event = {};
  };
  struct Known {
    std::string ref = {};
    std::uint64_t bytes = 0;
    bool listed = false;  // by --images, which counts more than a trace
  };

  void NameSources() {
    const auto add = [&](bool given, std::string_view name) {
      if (!given) return;
      if (!import_.sources.empty()) import_.sources += '+';
      import_.sources += name;
    };
    add(!sources_.traces.empty(), "trace");
    // Of a trace that was imported, too: its reader must know that events tell no credentials.
    add(!sources_.events.empty() || traces_have_events_, "events");
    add(!sources_.pods.empty(), "pods");
    add(!sources_.images.empty() || !sources_.containers.empty(), "crictl");
  }

  // Whether this is of the history that is wanted; "": nobody knows, so it is.
  bool IsWanted(const std::string& node) {
    const bool wanted = sources_.node.empty() || node.empty() || node == sources_.node;
    if (!wanted) ++import_.other_nodes;
    return wanted;
  }
  void NoteNode(const std::string& node) {
    constexpr std::size_t kMaxNodes = 10'000;
    if (!node.empty() && import_.nodes.size() < kMaxNodes) import_.nodes.insert(node);
  }

  Result<std::string> Pseudonym(std::string_view pod_namespace, std::string_view name) const {
    std::string salted(salt_.begin(), salt_.end());
    salted.append(pod_namespace).append("/").append(name);
    const auto digest = TRY(internal::Sha256(salted));
    return internal::HexEncode(std::span(digest).first(kTracePseudonymDigits / 2));
  }

  // The event with what else is known of its image, if it fits a line.
  void Add(TraceEvent event) {
    if (event.image.size() > kMaxImageBytes) event.image.clear();
    if (event.ref.size() > kMaxImageRefBytes) event.ref.clear();
    if (event.pod_namespace.size() > kMaxCoordinateBytes) event.pod_namespace.clear();
    std::ranges::sort(event.credentials);
    const auto same = std::ranges::unique(event.credentials);
    event.credentials.erase(same.begin(), same.end());
    if (event.credentials.size() > kMaxTraceCredentials) {
      event.credentials.resize(kMaxTraceCredentials);
    }
    if (event.kind != TraceEvent::Kind::kImage && event.kind != TraceEvent::Kind::kList) {
      const Known* const known = Find(event);
      if (known != nullptr) {
        event.ref = known->ref;
        if (!event.bytes && known->bytes > 0) event.bytes = known->bytes;
      }
    }
    std::string line = TraceLine(event);
    bytes_ += line.size();
    // Import says so in the end.
    if (!IsTooMuch()) import_.lines.emplace(event.time_ms, std::move(line));
  }

  const Known* Find(const TraceEvent& event) const {
    for (const std::string& name : {event.ref, event.image}) {
      if (name.empty()) continue;
      auto found = known_.find(name);
      if (found == known_.end()) {
        if (const auto full = NormaliseImage(name)) found = known_.find(*full);
      }
      if (found != known_.end()) return &found->second;
    }
    return nullptr;
  }

  // ---- crictl

  Result<void> ReadImages() {
    std::vector<Snapshot> snapshots;
    for (const std::string& text : sources_.images) {
      snapshots.push_back(TRY(ParseSnapshot("--images", text)));
    }
    std::ranges::stable_sort(snapshots, {}, &Snapshot::time_ms);
    std::map<std::string, ListedImage> before;
    std::optional<TraceEvent> list_event;
    for (const Snapshot& snapshot : snapshots) {
      const std::string content = TRY(ReadInput(snapshot.path, kMaxDocumentBytes));
      if (const auto used = BytesOfImages(content)) {
        if (!list_event) {
          return BadFlag("--images",
                         InputName(snapshot.path) + " is older than each list of images",
                         "make it after `crictl images -o json`, or add its time: FILE@TIME");
        }
        list_event->unpacked_percent = TRY(PercentOf(*used, before, snapshot.path));
        continue;
      }
      const auto list = TRY(ParseImageList(snapshot.path, content));
      if (list_event) Add(*std::exchange(list_event, std::nullopt));
      std::map<std::string, ListedImage> now;
      for (const ListedImage& image : list) {
        for (const auto& names : {image.repo_tags, image.repo_digests}) {
          for (const std::string& name : names) known_[name] = {image.id, image.bytes, true};
        }
        known_[image.id] = {image.id, image.bytes, true};
        now.try_emplace(image.id, image);
      }
      for (const auto& [id, image] : now) {
        const auto was = before.find(id);
        if (was == before.end() || was->second.bytes != image.bytes) {
          Add(OfList(TraceEvent::Kind::kImage, snapshot, image));
        }
      }
      for (const auto& [id, image] : before) {
        if (!now.contains(id)) Add(OfList(TraceEvent::Kind::kRemoved, snapshot, image));
      }
      list_event = TraceEvent{.kind = TraceEvent::Kind::kList, .time_ms = snapshot.time_ms};
      before = std::move(now);
    }
    if (list_event) Add(*std::move(list_event));
    return {};
  }

  // Of what `crictl imagefsinfo -o json` prints: what the images take on the disk, unpacked.
  // nullopt: that is something else. Older ones print one file system alone.
  static std::optional<std::uint64_t> BytesOfImages(std::string_view content) {
    const JsonText status = At({content}, {"status"});
    if (!At(status, {"usedBytes"}).text.empty()) return NumberAt(status, {"usedBytes", "value"});
    if (!At(status, {"imageFilesystems"}).text.starts_with('[')) return std::nullopt;
    std::uint64_t used = 0;
    for (const JsonText system : ListAt(status, {"imageFilesystems"})) {
      used += NumberAt(system, {"usedBytes", "value"});
    }
    return used;
  }

  static Result<std::uint32_t> PercentOf(std::uint64_t used,
                                         const std::map<std::string, ListedImage>& images,
                                         const std::string& path) {
    double listed = 0;
    for (const auto& [id, image] : images) listed += static_cast<double>(image.bytes);
    const double percent = std::round(100 * static_cast<double>(used) / std::max(listed, 1.0));
    constexpr double kLeast = 10;
    if (listed > 0 && percent >= kLeast && percent <= kMaxTraceUnpackedPercent) {
      return static_cast<std::uint32_t>(percent);
    }
    return BadFlag(
        "--images",
        fmt::format("{}: images of {} take {} there, so it is not of the list before it",
                    InputName(path), BytesText(listed), BytesText(static_cast<double>(used))),
        "make both on one node, one after the other");
  }

  static TraceEvent OfList(TraceEvent::Kind kind, const Snapshot& snapshot,
                           const ListedImage& image) {
    TraceEvent event{.kind = kind,
                     .time_ms = snapshot.time_ms,
                     .ref = image.id,
                     .runtime_handler = image.runtime_handler};
    if (!image.repo_tags.empty()) {
      event.image = image.repo_tags.front();
    } else if (!image.repo_digests.empty()) {
      event.image = image.repo_digests.front();
    }
    if (image.bytes > 0) event.bytes = image.bytes;
    return event;
  }

  Result<void> ReadContainers(const std::string& path) {
    return ForEachObject(path, "containers", [&](JsonText item) -> Result<void> {
      const auto nanoseconds = static_cast<std::int64_t>(NumberAt(item, {"createdAt"}));
      if (nanoseconds <= 0) {
        return Error{ErrorCode::kInvalidArgument,
                     fmt::format("{}: a container says no createdAt", InputName(path)),
                     "give what `crictl ps -a -o json` prints"};
      }
      Start start;
      start.event.time_ms = nanoseconds / 1'000'000;
      start.event.image = TextAt(item, {"image", "userSpecifiedImage"});
      if (start.event.image.empty()) start.event.image = TextAt(item, {"image", "image"});
      start.event.ref = TextAt(item, {"imageRef"});
      start.event.pod_namespace = TextAt(item, {"labels", "io.kubernetes.pod.namespace"});
      start.pod =
          PodKey(start.event.pod_namespace, TextAt(item, {"labels", "io.kubernetes.pod.name"}));
      starts_.push_back(std::move(start));
      return {};
    });
  }

  // ---- kubectl

  static std::string PodKey(std::string_view pod_namespace, std::string_view name) {
    return std::string(pod_namespace).append("/").append(name);
  }

  Result<void> ReadPods(const std::string& path) {
    return ForEachObject(path, "items", [&](JsonText item) -> Result<void> {
      const std::string pod_namespace = TextAt(item, {"metadata", "namespace"});
      const std::string pod = PodKey(pod_namespace, TextAt(item, {"metadata", "name"}));
      const std::string node = TextAt(item, {"spec", "nodeName"});
      if (!IsWanted(node)) return {};
      NoteNode(node);
      std::vector<std::string>& credentials = credentials_[pod];
      for (const JsonText secret : ListAt(item, {"spec", "imagePullSecrets"})) {
        const std::string name = TextAt(secret, {"name"});
        if (!name.empty()) credentials.push_back(TRY(Pseudonym(pod_namespace, name)));
      }
      constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
          {"containers", "containerStatuses"},
          {"initContainers", "initContainerStatuses"},
          {"ephemeralContainers", "ephemeralContainerStatuses"}};
      for (const auto& [containers, statuses] : kKinds) {
        const auto specs = ListAt(item, {"spec", containers});
        for (const JsonText status : ListAt(item, {"status", statuses})) {
          AddContainer(pod, pod_namespace, specs, status);
        }
      }
      return {};
    });
  }

  void AddContainer(const std::string& pod, const std::string& pod_namespace,
                    const std::vector<JsonText>& specs, JsonText status) {
    Start start{.pod = pod};
    start.event.pod_namespace = pod_namespace;
    start.event.image = TextAt(status, {"image"});
    // The status has the runtime's spelling; the pod's is in its specification.
    const std::string name = TextAt(status, {"name"});
    for (const JsonText spec : specs) {
      if (TextAt(spec, {"name"}) == name) start.event.image = TextAt(spec, {"image"});
    }
    start.event.ref = TextAt(status, {"imageID"});
    if (const std::size_t scheme = start.event.ref.find("://"); scheme != std::string::npos) {
      start.event.ref.erase(0, scheme + 3);
    }
    for (const std::string_view state : {"state", "lastState"}) {
      for (const std::string_view phase : {"running", "terminated"}) {
        const auto began = TimeAt(status, {state, phase, "startedAt"});
        // One that never started has the year 1 there.
        if (!began || *began <= 0) continue;
        start.event.time_ms = *began;
        starts_.push_back(start);
      }
    }
  }

  struct Seen {
    std::uint64_t count = 0;
    std::int64_t last_ms = 0;
  };

  Result<void> ReadEvents(const std::string& path) {
    return ForEachObject(path, "items", [&](JsonText item) -> Result<void> {
      // Of a watch with --output-watch-events.
      const JsonText object = At(item, {"object"});
      ReadEvent(object.text.empty() ? item : object);
      return {};
    });
  }

  // events.k8s.io/v1 has other names than v1.
  void ReadEvent(JsonText item) {
    const bool is_new = !At(item, {"regarding"}).text.empty();
    const std::string_view object = is_new ? "regarding" : "involvedObject";
    if (TextAt(item, {object, "kind"}) != "Pod") return;
    const auto message =
        ParsePullMessage(TextAt(item, {"reason"}), TextAt(item, {is_new ? "note" : "message"}));
    if (!message) return;
    std::string node = TextAt(item, {is_new ? "deprecatedSource" : "source", "host"});
    if (node.empty()) node = TextAt(item, {"reportingInstance"});
    if (!IsWanted(node)) return;
    NoteNode(node);
    auto last = TimeAt(item, {"series", "lastObservedTime"});
    if (!last) last = TimeAt(item, {is_new ? "deprecatedLastTimestamp" : "lastTimestamp"});
    if (!last) last = TimeAt(item, {"eventTime"});
    if (!last) last = TimeAt(item, {"metadata", "creationTimestamp"});
    if (!last) return;
    auto first = TimeAt(item, {is_new ? "deprecatedFirstTimestamp" : "firstTimestamp"});
    if (!first) first = TimeAt(item, {"eventTime"});
    const std::uint64_t count =
        std::max<std::uint64_t>({1, NumberAt(item, {is_new ? "deprecatedCount" : "count"}),
                                 NumberAt(item, {"series", "count"})});
    // A watch tells the same event again, with a higher count.
    const std::string uid = TextAt(item, {"metadata", "uid"});
    Seen unnamed;
    Seen& seen = uid.empty() ? unnamed : seen_[uid];
    const bool is_first = seen.count == 0;
    if (count <= seen.count) return;
    const std::uint64_t news = std::min(is_first ? count : count - seen.count, kMaxRepeats);
    const std::int64_t from = is_first ? std::min(first.value_or(*last), *last) : seen.last_ms;
    TraceEvent event;
    event.pod_namespace = TextAt(item, {object, "namespace"});
    event.image = message->image;
    const std::string pod = PodKey(event.pod_namespace, TextAt(item, {object, "name"}));
    if (const auto found = credentials_.find(pod); found != credentials_.end()) {
      event.credentials = found->second;
    }
    // Only the first and the last time are known: the others are spread between them.
    const std::uint64_t steps = is_first ? news - 1 : news;
    for (std::uint64_t i = 0; i < news && !IsTooMuch(); ++i) {
      const std::uint64_t step = is_first ? i : i + 1;
      event.time_ms = steps == 0
                          ? *last
                          : from + static_cast<std::int64_t>(static_cast<double>(*last - from) *
                                                             static_cast<double>(step) /
                                                             static_cast<double>(steps));
      AddPull(*message, event, pod);
    }
    seen = {.count = count, .last_ms = *last};
  }

  bool IsTooMuch() const { return bytes_ > kMaxTraceBytes; }

  void AddPull(const PullMessage& message, TraceEvent event, const std::string& pod) {
    event.kind = message.kind;
    if (message.kind == TraceEvent::Kind::kPullBegun || message.kind == TraceEvent::Kind::kUse) {
      TraceEvent use = event;
      use.kind = TraceEvent::Kind::kUse;
      use.must_pull = message.kind == TraceEvent::Kind::kPullBegun;
      if (!starts_.empty()) used_[pod + "/" + event.image].push_back(event.time_ms);
      Add(std::move(use));
      if (message.kind == TraceEvent::Kind::kUse) return;
      event.credentials.clear();
    }
    event.took_ms = message.took_ms;
    event.bytes = message.bytes;
    Add(std::move(event));
  }

  // Of those that no event tells.
  void AddStarts() {
    std::ranges::stable_sort(starts_, {}, [](const Start& start) { return start.event.time_ms; });
    for (auto& [key, times] : used_) std::ranges::sort(times);
    for (Start& start : starts_) {
      std::vector<std::int64_t>& times = used_[start.pod + "/" + start.event.image];
      const std::int64_t time = start.event.time_ms;
      const auto near = std::ranges::lower_bound(times, time - kStartsWithin);
      if (near != times.end() && *near <= time + kStartsBefore) continue;
      // A pod's status and the runtime tell the same start.
      times.insert(std::ranges::upper_bound(times, time), time);
      if (const auto found = credentials_.find(start.pod); found != credentials_.end()) {
        start.event.credentials = found->second;
      }
      Add(std::move(start.event));
    }
    starts_.clear();
    used_.clear();
  }

  // ---- Traces

  Result<void> ReadTrace(const std::string& path) {
    auto reader = TRY(TraceReader::Open(path));
    if (reader.source().find("events") != std::string_view::npos) traces_have_events_ = true;
    while (auto event = TRY(reader.Next())) {
      if (event->kind == TraceEvent::Kind::kImage && !event->ref.empty()) {
        Learn(event->image, *event);
        Learn(event->ref, *event);
      }
      Add(*std::move(event));
    }
    return {};
  }

  // What the owner's runtime calls the images that pods name.
  void Learn(const std::string& name, const TraceEvent& image) {
    constexpr std::size_t kMostNames = 400'000;
    if (name.empty() || known_.size() >= kMostNames) return;
    Known& known = known_[name];
    if (!known.listed) known = {image.ref, image.bytes.value_or(known.bytes), false};
  }

  const TraceSources& sources_;
  std::size_t bytes_ = 0;  // of all lines
  TraceImport import_;
  bool traces_have_events_ = false;
  std::array<char, 32> salt_{};
  std::unordered_map<std::string, Known> known_;                           // by each name
  std::unordered_map<std::string, std::vector<std::string>> credentials_;  // of pods
  std::vector<Start> starts_;
  // When an event said that a pod's container wants an image, by both.
  std::unordered_map<std::string, std::vector<std::int64_t>> used_;
  std::unordered_map<std::string, Seen> seen_;  // events, by UID
};

}  // namespace

Result<TraceImport> ImportTrace(const TraceSources& sources) { return Importer(sources).Import(); }

}  // namespace waybill::cli
