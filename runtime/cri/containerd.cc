#include "runtime/cri/containerd.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/cri/answers.h"
#include "runtime/cri/call.h"
#include "runtime/cri/endpoint.h"
#include "runtime/cri/message.h"
#include "store/base/caught.h"
#include "store/base/command_line.h"
#include "store/base/files.h"
#include "store/base/hex.h"
#include "store/base/try.h"

namespace waybill::cri {
namespace {

constexpr const char* kLeasesService = "containerd.services.leases.v1.Leases";
constexpr const char* kImagesService = "containerd.services.images.v1.Images";
constexpr const char* kContentService = "containerd.services.content.v1.Content";

constexpr std::int64_t kNanoseconds = 1'000'000'000;

constexpr std::string_view kSource = "containerd.io/distribution.source.";
constexpr std::string_view kSchema1Layer = "containerd.io/docker.schema1.empty-layer";
constexpr std::string_view kConverted = "io.containerd.image/converted-docker-schema1";
constexpr std::string_view kRefConfig = "containerd.io/gc.ref.content.config";
constexpr std::string_view kRefLayer = "containerd.io/gc.ref.content.l.";
constexpr std::string_view kRefManifest = "containerd.io/gc.ref.content.m.";

Error NotKnown(const std::string& path, const std::string& why) {
  return {ErrorCode::kUnavailable, "which process serves " + path + " can't be known: " + why,
          "run it in the PID namespace of containerd, with its /proc"};
}

// A google.protobuf.Timestamp in nanoseconds; 0: no such time, as where none was sent.
std::int64_t TimeOf(const Message& time) {
  constexpr std::uint64_t kYear2200 = 7'258'118'400;
  const std::uint64_t seconds = time.Number(1);
  const std::uint64_t nanoseconds = time.Number(2);
  if (seconds > kYear2200 || nanoseconds >= kNanoseconds) return 0;
  return static_cast<std::int64_t>(seconds * kNanoseconds + nanoseconds);
}

bool IsDigest(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  constexpr std::size_t kHex = 64;
  return text.starts_with(kAlgorithm) && text.size() == kAlgorithm.size() + kHex &&
         internal::IsLowerHex(text.data() + kAlgorithm.size(), kHex);
}

std::int64_t BootNow() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kNanoseconds + now.tv_nsec;
}

// Calls SERVICE/List in the kubelet's namespace, for everything; it answers with one message or
// with many. `read` gets each message in field 1 of them, and says whether it is what containerd
// says. So many bytes and messages may come.
template <typename Read>
Result<void> List(const ClientOptions& options, const std::string& service, std::size_t bytes,
                  std::size_t messages, const Read& read) {
  Reading reading{.fields = kMaxFields};
  const auto take = [&](const std::string& answer) {
    reading.is_too_much = answer.size() > bytes;
    if (reading.is_too_much) return false;
    bytes -= answer.size();
    Message(answer, reading).Each(1, [&](const Message& message) {
      reading.is_too_much = reading.is_too_much || messages == 0;
      if (!reading.is_sound || reading.is_too_much) return;
      --messages;
      if (!read(message)) reading.is_sound = false;
    });
    return reading.is_sound && !reading.is_too_much;
  };
  TRY(Ask(options, {.method = "/" + service + "/List",
                    .containerd_namespace = "k8s.io",
                    .most = bytes,
                    .take = take}));
  const std::string whose = "containerd at " + options.endpoint + " answers " + service + "/List ";
  if (reading.is_too_much) {
    return Error{
        ErrorCode::kLimitExceeded, whose + "with too much",
        "remove images that nobody needs, and look for a client that leaves leases behind"};
  }
  if (reading.is_sound) return {};
  return Error{ErrorCode::kInvalidArgument, whose + "with what containerd does not say",
               "check that containerd serves the endpoint"};
}

// What counts of a blob.
struct Blob {
  bool fetched = false;
  bool schema1_layer = false;
  std::vector<std::string> configs = {};
  std::vector<std::string> layers = {};
  std::vector<std::string> manifests = {};
};
using Content = std::unordered_map<std::string, Blob>;

void AddLabel(const std::string& key, const std::string& value, Blob& blob) {
  if (key.starts_with(kSource)) blob.fetched = true;
  if (key == kSchema1Layer) blob.schema1_layer = true;
  // A second one is called config1.
  if (key.starts_with(kRefConfig)) blob.configs.push_back(value);
  if (key.starts_with(kRefLayer)) blob.layers.push_back(value);
  if (key.starts_with(kRefManifest)) blob.manifests.push_back(value);
}

class Proof {
 public:
  explicit Proof(const Content& content) : content_(content) {}

  // Adds what CRI calls the image, if it is proven imported.
  void Add(const ContainerdImage& image, std::vector<std::string>& imported) const {
    for (std::string& id : IdsOf(image)) imported.push_back(std::move(id));
  }

 private:
  std::vector<std::string> IdsOf(const ContainerdImage& image) const {
    if (!IsDigest(image.target) || image.labels.contains(std::string(kConverted))) return {};
    const Blob* const target = Unfetched(image.target);
    if (target == nullptr) return {};
    if (target->manifests.empty()) {
      return IsUnfetched(*target) ? target->configs : std::vector<std::string>();
    }
    std::vector<std::string> ids;
    // The manifests of other platforms are usually not here.
    if (!target->configs.empty() || !target->layers.empty()) return {};
    for (const std::string& digest : target->manifests) {
      if (!content_.contains(digest)) continue;
      const Blob* const manifest = Unfetched(digest);
      if (manifest == nullptr || !IsUnfetched(*manifest)) return {};
      ids.push_back(manifest->configs.front());
    }
    return ids;
  }

  // nullptr: the blob is not here, or was fetched.
  const Blob* Unfetched(const std::string& digest) const {
    const auto found = content_.find(digest);
    return found == content_.end() || found->second.fetched ? nullptr : &found->second;
  }

  bool IsUnfetched(const Blob& manifest) const {
    if (!manifest.manifests.empty() || manifest.configs.size() != 1 || manifest.layers.empty()) {
      return false;
    }
    const std::string& config = manifest.configs.front();
    if (!IsDigest(config) || Unfetched(config) == nullptr) return false;
    return std::all_of(manifest.layers.begin(), manifest.layers.end(), [&](const auto& digest) {
      const auto layer = content_.find(digest);
      return layer != content_.end() && !layer->second.schema1_layer;
    });
  }

  const Content& content_;
};

}  // namespace

Result<ServerProcess> Containerd::Process() const {
  return internal::Guarded([&]() -> Result<ServerProcess> {
    const auto path = TRY(SocketPath(options_.endpoint));
    const internal::Fd fd(TRY(ConnectSocket(path)));
    ucred peer = {};
    socklen_t size = sizeof(peer);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      return internal::SystemError(errno, "ask for the peer of", path);
    }
    if (peer.pid <= 0) return NotKnown(path, "it is in another PID namespace");
    // A /proc of another PID namespace has other processes under these numbers.
    char self[32] = {};
    const auto length = ::readlink("/proc/self", self, sizeof(self) - 1);
    if (length <= 0 || std::to_string(::getpid()) != self) {
      return NotKnown(path, "/proc is not of this PID namespace");
    }
    constexpr std::size_t kMaxStat = 4096;
    const std::string place = "/proc/" + std::to_string(peer.pid);
    auto command = internal::ReadWholeFile(place + "/comm", kMaxStat);
    auto stat = internal::ReadWholeFile(place + "/stat", kMaxStat);
    if (!command || !stat) return NotKnown(path, "process " + place.substr(6) + " is not in /proc");
    if (*command != "containerd\n") {
      return NotKnown(path, "process " + place.substr(6) + " is not called containerd");
    }
    const auto ticks = internal::StartOf(*stat);
    const std::int64_t ticks_a_second = ::sysconf(_SC_CLK_TCK);
    if (!ticks || ticks_a_second <= 0 || *ticks / ticks_a_second > BootNow() / kNanoseconds) {
      return NotKnown(path, place + "/stat has no time of its start");
    }
    return ServerProcess{.pid = peer.pid, .started = *ticks * (kNanoseconds / ticks_a_second)};
  });
}

Result<PullLook> Containerd::LookAtPulls() const {
  return internal::Guarded([&]() -> Result<PullLook> {
    PullLook look;
    look.began = BootNow();
    look.process = TRY(Process());
    TRY(List(options_, kLeasesService, kMaxAnswerBytes, kMaxLeases, [&](const Message& lease) {
      look.leases.push_back(lease.Text(1));
      return !look.leases.back().empty();
    }));
    if (TRY(Process()) != look.process) {
      return NotKnown(options_.endpoint, "containerd was restarted meanwhile");
    }
    look.ended = BootNow();
    return look;
  });
}

Result<std::vector<ContainerdImage>> Containerd::Images() const {
  return internal::Guarded([&]() -> Result<std::vector<ContainerdImage>> {
    std::vector<ContainerdImage> images;
    const auto read = [&](const Message& image) {
      images.push_back({.name = image.Text(1),
                        .target = image.Within(3).Text(2),
                        .created = TimeOf(image.Within(7)),
                        .updated = TimeOf(image.Within(8)),
                        .labels = image.Map(2)});
      const ContainerdImage& last = images.back();
      return !last.name.empty() && last.created != 0 && last.updated != 0;
    };
    TRY(List(options_, kImagesService, kMaxListBytes, kMaxListedImages, read));
    return images;
  });
}

Result<std::vector<std::string>> Containerd::Imported() const {
  return internal::Guarded([&]() -> Result<std::vector<std::string>> {
    const auto before = TRY(Images());
    Content content;
    const auto read = [&](const Message& info) {
      std::string digest = info.Text(1);
      Blob blob;
      for (const auto& [key, value] : info.Map(5)) AddLabel(key, value, blob);
      // A blob that is listed twice is ambiguous.
      return !IsDigest(digest) || content.emplace(std::move(digest), std::move(blob)).second;
    };
    TRY(List(options_, kContentService, kMaxListBytes, kMaxFields, read));
    // A record that was there all the time kept its content from being collected and imported anew.
    auto after = TRY(Images());
    const auto by_name = [](const ContainerdImage& a, const ContainerdImage& b) {
      return a.name < b.name;
    };
    std::sort(after.begin(), after.end(), by_name);
    std::vector<std::string> imported;
    const Proof proof(content);
    for (const ContainerdImage& image : before) {
      const auto [first, last] = std::equal_range(after.begin(), after.end(), image, by_name);
      if (last - first == 1 && *first == image) proof.Add(image, imported);
    }
    return imported;
  });
}

}  // namespace waybill::cri
