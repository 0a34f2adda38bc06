#include "runtime/cri/containerd.h"

#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "runtime/cri/answers.h"
#include "runtime/cri/call.h"
#include "runtime/cri/endpoint.h"
#include "runtime/cri/message.h"
#include "store/base/caught.h"
#include "store/base/files.h"
#include "store/base/quote.h"
#include "store/base/try.h"

namespace waybill::cri {
namespace {

constexpr const char* kLeasesService = "containerd.services.leases.v1.Leases";
constexpr const char* kImagesService = "containerd.services.images.v1.Images";
constexpr const char* kContentService = "containerd.services.content.v1.Content";

// Of all lists together: a record or a blob has some twenty fields, most of them labels.
constexpr std::size_t kMaxFields = 16 * kMaxListedImages;
constexpr std::int64_t kNanoseconds = 1'000'000'000;

constexpr std::string_view kSource = "containerd.io/distribution.source.";
constexpr std::string_view kSchema1Layer = "containerd.io/docker.schema1.empty-layer";
constexpr std::string_view kConverted = "io.containerd.image/converted-docker-schema1";
constexpr std::string_view kRefConfig = "containerd.io/gc.ref.content.config";
constexpr std::string_view kRefLayer = "containerd.io/gc.ref.content.l.";
constexpr std::string_view kRefManifest = "containerd.io/gc.ref.content.m.";

Error NotContainerd(const std::string& path, std::string_view service) {
  return {ErrorCode::kInvalidArgument,
          "the container runtime at " + path + " answers " + std::string(service) +
              "/List with what containerd does not say",
          "check that containerd serves the endpoint"};
}

Error TooMuch(const std::string& path, std::string_view service) {
  return {ErrorCode::kLimitExceeded,
          "containerd at " + path + " answers " + std::string(service) + "/List with too much",
          "remove images that nobody needs, and look for a client that leaves leases behind"};
}

Error NotKnown(const std::string& path, const std::string& why) {
  return {ErrorCode::kUnavailable, "which process serves " + path + " can't be known: " + why,
          "run it in the PID namespace of containerd, with its /proc"};
}

// google.protobuf.Timestamp
struct Time {
  std::int64_t seconds = 0;      // 1
  std::int64_t nanoseconds = 0;  // 2

  bool Read(std::string_view bytes) {
    Message message(bytes);
    while (message.Next()) {
      if (message.field() == 1) message.Read(seconds);
      if (message.field() == 2) message.Read(nanoseconds);
    }
    return message.is_sound();
  }
  // Nanoseconds since 1970. nullopt: no such time, as where none was sent.
  std::optional<std::int64_t> Sum() const {
    constexpr std::int64_t kYear2200 = 7'258'118'400;
    if (seconds <= 0 || seconds > kYear2200) return std::nullopt;
    if (nanoseconds < 0 || nanoseconds >= kNanoseconds) return std::nullopt;
    return seconds * kNanoseconds + nanoseconds;
  }
};

bool IsDigest(std::string_view text) {
  constexpr std::string_view kAlgorithm = "sha256:";
  constexpr std::size_t kHex = 64;
  if (!text.starts_with(kAlgorithm)) return false;
  text.remove_prefix(kAlgorithm.size());
  return text.size() == kHex && text.find_first_not_of("0123456789abcdef") == text.npos;
}

std::int64_t BootNow() {
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * kNanoseconds + now.tv_nsec;
}

// The field of /proc/PID/stat with that number, counted from 1. The second, the command, may
// contain anything, so counting starts behind its last bracket.
std::optional<std::int64_t> StatField(std::string_view stat, int number) {
  const std::size_t bracket = stat.rfind(") ");
  if (bracket == stat.npos) return std::nullopt;
  stat.remove_prefix(bracket + 2);
  for (int field = 3; field < number; ++field) {
    const std::size_t space = stat.find(' ');
    if (space == stat.npos) return std::nullopt;
    stat.remove_prefix(space + 1);
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(stat.data(), stat.data() + stat.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  return value;
}

// Reads the messages in field 1 of an answer. `fields` counts those of this answer and of those
// before, with those of the messages and of what they have in their field `labels`.
template <typename Reader>
Result<void> ReadList(const std::string& answer, int labels, std::size_t& fields,
                      const std::string& path, std::string_view service, const Reader& read) {
  const auto counted = CountFields(answer, {1, labels}, kMaxFields);
  if (!counted) return NotContainerd(path, service);
  fields += *counted;
  if (fields > kMaxFields) return TooMuch(path, service);
  Message message(answer);
  while (message.Next()) {
    if (message.field() != 1 || !message.bytes()) continue;
    TRY(read(*message.bytes()));
  }
  return {};
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

// Of a Descriptor.
bool ReadDigest(std::string_view bytes, std::string& digest) {
  Message message(bytes);
  while (message.Next()) {
    if (message.field() == 2) message.Read(digest);
  }
  return message.is_sound();
}

class Proof {
 public:
  explicit Proof(const Content& content) : content_(content) {}

  std::optional<ImportedImage> Of(const ContainerdImage& image) const {
    if (!IsDigest(image.target) || image.labels.contains(std::string(kConverted))) return {};
    const Blob* const target = Unfetched(image.target);
    if (target == nullptr) return {};
    ImportedImage imported{.name = image.name, .target = image.target};
    if (target->manifests.empty()) {
      if (!Manifest(*target, imported)) return {};
      return imported;
    }
    // The manifests of other platforms are usually not here.
    if (!target->configs.empty() || !target->layers.empty()) return {};
    for (const std::string& digest : target->manifests) {
      if (!content_.contains(digest)) continue;
      const Blob* const manifest = Unfetched(digest);
      if (manifest == nullptr || !Manifest(*manifest, imported)) return {};
    }
    if (imported.ids.empty()) return {};
    return imported;
  }

 private:
  // nullptr: the blob is not here, or was fetched.
  const Blob* Unfetched(const std::string& digest) const {
    const auto found = content_.find(digest);
    return found == content_.end() || found->second.fetched ? nullptr : &found->second;
  }

  bool Manifest(const Blob& manifest, ImportedImage& imported) const {
    if (!manifest.manifests.empty() || manifest.configs.size() != 1 || manifest.layers.empty()) {
      return false;
    }
    const std::string& config = manifest.configs.front();
    if (!IsDigest(config) || Unfetched(config) == nullptr) return false;
    for (const std::string& digest : manifest.layers) {
      const auto layer = content_.find(digest);
      if (layer == content_.end() || layer->second.schema1_layer) return false;
      if (layer->second.fetched) imported.shares_layers = true;
    }
    imported.ids.push_back(config);
    return true;
  }

  const Content& content_;
};

}  // namespace

Containerd::Containerd(std::string path, const ClientOptions& options)
    : path_(std::move(path)), timeout_(options.timeout), cancelled_(options.cancelled) {}

Result<Containerd> Containerd::At(const ClientOptions& options) {
  return internal::Guarded([&]() -> Result<Containerd> {
    std::string endpoint = options.endpoint;
    if (endpoint.empty()) {
      auto client = TRY(Client::Connect(options));
      endpoint = client->endpoint();
    }
    auto path = TRY(SocketPath(endpoint));
    return Containerd(std::move(path), options);
  });
}

Result<ServerProcess> Containerd::Process() const {
  return internal::Guarded([&]() -> Result<ServerProcess> {
    auto connected = TRY(ConnectSocket(path_));
    const internal::Fd fd(connected);
    ucred peer = {};
    socklen_t size = sizeof(peer);
    if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
      return internal::SystemError(errno, "ask for the peer of", path_);
    }
    if (peer.pid <= 0) return NotKnown(path_, "it is in another PID namespace");
    // A /proc of another PID namespace has other processes under these numbers.
    char self[32] = {};
    const auto length = ::readlink("/proc/self", self, sizeof(self) - 1);
    if (length <= 0 || std::to_string(::getpid()) != self) {
      return NotKnown(path_, "/proc is not of this PID namespace");
    }
    constexpr std::size_t kMaxStat = 4096;
    const std::string place = "/proc/" + std::to_string(peer.pid);
    auto command = internal::ReadWholeFile(place + "/comm", kMaxStat);
    auto stat = internal::ReadWholeFile(place + "/stat", kMaxStat);
    if (!command || !stat)
      return NotKnown(path_, "process " + place.substr(6) + " is not in /proc");
    if (*command != "containerd\n") {
      return NotKnown(path_, "process " + place.substr(6) + " is not called containerd");
    }
    constexpr int kStartTime = 22;
    const auto ticks = StatField(*stat, kStartTime);
    const std::int64_t ticks_a_second = ::sysconf(_SC_CLK_TCK);
    if (!ticks || ticks_a_second <= 0 || *ticks / ticks_a_second > BootNow() / kNanoseconds) {
      return NotKnown(path_, place + "/stat has no time of its start");
    }
    return ServerProcess{.pid = peer.pid, .started = *ticks * (kNanoseconds / ticks_a_second)};
  });
}

Result<std::vector<Lease>> Containerd::Leases() const {
  return internal::Guarded([&]() -> Result<std::vector<Lease>> {
    std::vector<Lease> leases;
    std::size_t fields = 0;
    const auto read = [&](std::string_view bytes) -> Result<void> {
      Lease lease;  // 1: id, 2: created_at
      Time created;
      Message message(bytes);
      while (message.Next()) {
        if (message.field() == 1) message.Read(lease.id);
        if (message.field() == 2) message.Within([&](auto time) { return created.Read(time); });
      }
      const auto sum = created.Sum();
      if (!message.is_sound() || lease.id.empty() || !sum) {
        return NotContainerd(path_, kLeasesService);
      }
      if (leases.size() == kMaxLeases) return TooMuch(path_, kLeasesService);
      lease.created = *sum;
      leases.push_back(std::move(lease));
      return {};
    };
    const auto take = [&](const std::string& answer) {
      return ReadList(answer, 0, fields, path_, kLeasesService, read);
    };
    TRY(ListOfContainerd(path_, kLeasesService, kMaxAnswerBytes, timeout_, cancelled_, take));
    return leases;
  });
}

Result<PullLook> Containerd::LookAtPulls() const {
  return internal::Guarded([&]() -> Result<PullLook> {
    PullLook look;
    look.began = BootNow();
    auto process = TRY(Process());
    auto leases = TRY(Leases());
    auto after = TRY(Process());
    if (after != process) return NotKnown(path_, "containerd was restarted meanwhile");
    look.ended = BootNow();
    look.process = process;
    for (Lease& lease : leases) look.leases.push_back(std::move(lease.id));
    return look;
  });
}

Result<std::vector<ContainerdImage>> Containerd::Images() const {
  return internal::Guarded([&]() -> Result<std::vector<ContainerdImage>> {
    std::vector<ContainerdImage> images;
    std::size_t fields = 0;
    const auto read = [&](std::string_view bytes) -> Result<void> {
      ContainerdImage image;  // 1: name, 2: labels, 3: target, 7: created_at, 8: updated_at
      Time created;
      Time updated;
      Message message(bytes);
      while (message.Next()) {
        if (message.field() == 1) message.Read(image.name);
        message.Within([&](std::string_view within) {
          if (message.field() == 7) return created.Read(within);
          if (message.field() == 8) return updated.Read(within);
          if (message.field() == 3) return ReadDigest(within, image.target);
          if (message.field() != 2) return true;
          auto label = ReadEntry(within);
          if (label) image.labels[std::move(label->first)] = std::move(label->second);
          return label.has_value();
        });
      }
      const auto created_at = created.Sum();
      const auto updated_at = updated.Sum();
      if (!message.is_sound() || image.name.empty() || !created_at || !updated_at) {
        return NotContainerd(path_, kImagesService);
      }
      if (images.size() == kMaxListedImages) return TooMuch(path_, kImagesService);
      image.created = *created_at;
      image.updated = *updated_at;
      images.push_back(std::move(image));
      return {};
    };
    const auto take = [&](const std::string& answer) {
      return ReadList(answer, 2, fields, path_, kImagesService, read);
    };
    TRY(ListOfContainerd(path_, kImagesService, kMaxListBytes, timeout_, cancelled_, take));
    return images;
  });
}

Result<std::vector<ImportedImage>> Containerd::Imported() const {
  return internal::Guarded([&]() -> Result<std::vector<ImportedImage>> {
    auto before = TRY(Images());
    Content content;
    std::size_t fields = 0;
    const auto read = [&](std::string_view bytes) -> Result<void> {
      std::string digest;                         // 1
      std::map<std::string, std::string> labels;  // 5
      Message message(bytes);
      while (message.Next()) {
        if (message.field() == 1) message.Read(digest);
        if (message.field() != 5) continue;
        message.Within([&](std::string_view within) {
          auto label = ReadEntry(within);
          if (label) labels[std::move(label->first)] = std::move(label->second);
          return label.has_value();
        });
      }
      if (!message.is_sound()) return NotContainerd(path_, kContentService);
      if (!IsDigest(digest)) return {};
      Blob blob;
      for (const auto& [key, value] : labels) AddLabel(key, value, blob);
      // A blob that is listed twice is ambiguous.
      if (content.emplace(std::move(digest), std::move(blob)).second) return {};
      return NotContainerd(path_, kContentService);
    };
    const auto take = [&](const std::string& answer) {
      return ReadList(answer, 5, fields, path_, kContentService, read);
    };
    TRY(ListOfContainerd(path_, kContentService, kMaxListBytes, timeout_, cancelled_, take));
    // A record that was there all the time kept its content from being collected and imported anew.
    auto after = TRY(Images());
    const auto by_name = [](const ContainerdImage& a, const ContainerdImage& b) {
      return a.name < b.name;
    };
    std::sort(after.begin(), after.end(), by_name);
    std::vector<ImportedImage> imported;
    const Proof proof(content);
    for (const ContainerdImage& image : before) {
      const auto [first, last] = std::equal_range(after.begin(), after.end(), image, by_name);
      if (last - first != 1 || *first != image) continue;
      if (auto proven = proof.Of(image)) imported.push_back(*std::move(proven));
    }
    return imported;
  });
}

}  // namespace waybill::cri
