// What is read from containerd itself, and what it takes to believe that an image was imported.

#include "runtime/cri/containerd.h"

#include <grpcpp/grpcpp.h>
#include <time.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <fstream>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

#include "containerd.pb.h"
#include "tests/cri/fake_runtime.h"
#include "waybill/limits.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(containerd)

namespace {

namespace messages = waybill::containerd;
using cri::Containerd;
using Labels = std::initializer_list<std::pair<std::string, std::string>>;

const std::string kLeases = "containerd.services.leases.v1.Leases/List";
const std::string kImages = "containerd.services.images.v1.Images/List";
const std::string kContent = "containerd.services.content.v1.Content/List";

const std::string kRef = "containerd.io/gc.ref.content.";
const std::string kSource = "containerd.io/distribution.source.";
const std::string kEmptyLayer = "containerd.io/docker.schema1.empty-layer";

constexpr std::int64_t kSecond = 1'000'000'000;

std::string Digest(char digit) { return "sha256:" + std::string(64, digit); }
const std::string kIndex = Digest('1');
const std::string kManifest = Digest('2');
const std::string kConfig = Digest('3');
const std::string kLayer = Digest('4');
const std::string kSecondLayer = Digest('5');
const std::string kElsewhere = Digest('6');

void Set(messages::Timestamp* time, std::int64_t seconds) { time->set_seconds(seconds); }

messages::Image* AddImage(messages::ListImagesResponse& list, const std::string& name,
                          const std::string& target) {
  auto* image = list.add_images();
  image->set_name(name);
  image->mutable_target()->set_digest(target);
  Set(image->mutable_created_at(), 1000);
  Set(image->mutable_updated_at(), 1001);
  return image;
}

// A containerd with an image `app` of two layers, imported by hand.
struct Node {
  FakeRuntime fake;
  messages::ListImagesResponse images;
  std::map<std::string, std::map<std::string, std::string>> blobs;

  Node() {
    AddImage(images, "registry.example.com/app:v1", kManifest);
    blobs[kManifest] = {
        {kRef + "config", kConfig}, {kRef + "l.0", kLayer}, {kRef + "l.1", kSecondLayer}};
    blobs[kConfig] = {};
    blobs[kLayer] = {{"containerd.io/uncompressed", kElsewhere}};
    blobs[kSecondLayer] = {};
    fake.Answer(kLeases, std::string());
  }

  // As an index of which one manifest is here.
  void MakeIndex() {
    images.mutable_images(0)->mutable_target()->set_digest(kIndex);
    blobs[kIndex] = {{kRef + "m.0", kElsewhere}, {kRef + "m.1", kManifest}};
  }

  void Answer() {
    fake.Answer(kImages, images);
    std::vector<std::string> stream;
    for (const auto& [digest, labels] : blobs) {
      messages::ListContentResponse part;
      auto* info = part.add_info();
      info->set_digest(digest);
      info->mutable_labels()->insert(labels.begin(), labels.end());
      stream.push_back(part.SerializeAsString());
    }
    fake.AnswerMany(kContent, stream);
  }

  Containerd At() const { return Containerd({.endpoint = fake.endpoint()}); }

  // Beginnings of IDs.
  std::string Imported() {
    Answer();
    const auto imported = At().Imported();
    if (!imported) return imported.error().ToString();
    std::string text;
    for (const std::string& id : *imported) text += id.substr(0, 8) + "\n";
    return text;
  }
};

const std::string kProven = "sha256:3\n";

template <typename T>
ErrorCode CodeOf(const Result<T>& result) {
  BOOST_REQUIRE(!result);
  BOOST_TEST(result.error().has_hint(), result.error().message);
  return result.error().code;
}

std::string LeaseBytes(const std::string& id, std::int64_t seconds) {
  messages::ListLeasesResponse list;
  auto* lease = list.add_leases();
  lease->set_id(id);
  Set(lease->mutable_created_at(), seconds);
  return list.SerializeAsString();
}

// While it lives, this process has containerd's name.
class NamedContainerd {
 public:
  NamedContainerd() {
    std::getline(std::ifstream(comm_), before_);
    std::ofstream(comm_) << "containerd";
  }
  ~NamedContainerd() { std::ofstream(comm_) << before_; }
  NamedContainerd(const NamedContainerd&) = delete;
  NamedContainerd& operator=(const NamedContainerd&) = delete;

 private:
  const std::string comm_ = "/proc/" + std::to_string(::getpid()) + "/comm";
  std::string before_;
};

}  // namespace

BOOST_AUTO_TEST_CASE(lists) {
  Node node;
  auto* image = node.images.mutable_images(0);
  (*image->mutable_labels())["io.cri-containerd.image"] = "managed";
  image->mutable_updated_at()->set_nanos(7);
  node.Answer();

  const auto images = node.At().Images();
  BOOST_REQUIRE(images);
  BOOST_TEST(node.fake.containerd_namespace() == "k8s.io");
  const cri::ContainerdImage expected{.name = "registry.example.com/app:v1",
                                      .target = kManifest,
                                      .created = 1000 * kSecond,
                                      .updated = 1001 * kSecond + 7,
                                      .labels = {{"io.cri-containerd.image", "managed"}}};
  BOOST_TEST(images->size() == 1U);
  BOOST_TEST((images->at(0) == expected));
}

BOOST_AUTO_TEST_CASE(by_hand) {
  Node node;
  BOOST_TEST(node.Imported() == kProven);
  // As of an archive that `docker save` made.
  node.blobs[kManifest][kRef + "0"] = kConfig;
  BOOST_TEST(node.Imported() == kProven);
  node.MakeIndex();
  BOOST_TEST(node.Imported() == kProven);
  // A base layer that another image brought.
  node.blobs[kLayer][kSource + "docker.io"] = "library/debian";
  BOOST_TEST(node.Imported() == kProven);
}

BOOST_AUTO_TEST_CASE(not_proven) {
  const std::pair<const char*, std::function<void(Node&)>> ways[] = {
      {"a manifest that was fetched",
       [](Node& node) { node.blobs[kManifest][kSource + "docker.io"] = "library/app"; }},
      {"from a registry without a name", [](Node& node) { node.blobs[kManifest][kSource] = ""; }},
      {"an index that was fetched",
       [](Node& node) {
         node.MakeIndex();
         node.blobs[kIndex][kSource + "docker.io"] = "library/app";
       }},
      {"an index whose manifest was fetched",
       [](Node& node) {
         node.MakeIndex();
         node.blobs[kManifest][kSource + "docker.io"] = "library/app";
       }},
      {"an index of which another manifest was fetched",
       [](Node& node) {
         node.MakeIndex();
         node.blobs[kElsewhere] = {{kSource + "docker.io", "library/app"}};
       }},
      {"an index without manifests that are here",
       [](Node& node) {
         node.MakeIndex();
         node.blobs.erase(kManifest);
       }},
      {"an index that names a layer",
       [](Node& node) {
         node.MakeIndex();
         node.blobs[kIndex][kRef + "l.0"] = kLayer;
       }},
      {"an index of indexes",
       [](Node& node) {
         node.MakeIndex();
         node.blobs[kManifest] = {{kRef + "m.0", kElsewhere}};
       }},
      // Containerd makes a manifest of its own of these.
      {"a config of an unknown type",
       [](Node& node) {
         node.blobs[kManifest] = {{kRef + "0", kConfig}, {kRef + "1", kLayer}};
         node.blobs[kConfig][kSource + "docker.io"] = "library/app";
       }},
      {"a manifest of schema 1",
       [](Node& node) {
         node.blobs[kManifest] = {{kRef + "0", kConfig}, {kRef + "1", kLayer}};
         node.blobs[kLayer][kEmptyLayer] = "false";
       }},
      {"the same, imported before", [](Node& node) { node.blobs[kLayer][kEmptyLayer] = "false"; }},
      {"a record that says so",
       [](Node& node) {
         (*node.images.mutable_images(0)
               ->mutable_labels())["io.containerd.image/converted-docker-schema1"] = kElsewhere;
       }},
      {"a config that was fetched",
       [](Node& node) { node.blobs[kConfig][kSource + "docker.io"] = "library/app"; }},
      {"a config that is not here", [](Node& node) { node.blobs.erase(kConfig); }},
      {"two configs", [](Node& node) { node.blobs[kManifest][kRef + "config1"] = kElsewhere; }},
      {"a config that is no digest",
       [](Node& node) {
         node.blobs[kManifest][kRef + "config"] = "sha256:3";
         node.blobs["sha256:3"] = {};
       }},
      {"no layers",
       [](Node& node) {
         node.blobs[kManifest] = {{kRef + "config", kConfig}};
       }},
      {"a layer that is not here", [](Node& node) { node.blobs.erase(kSecondLayer); }},
      {"nothing is here", [](Node& node) { node.blobs.erase(kManifest); }},
      {"a record twice",
       [](Node& node) { AddImage(node.images, "registry.example.com/app:v1", kManifest); }},
      {"a target that is no digest",
       [](Node& node) { node.images.mutable_images(0)->mutable_target()->set_digest("app"); }},
      {"no target", [](Node& node) { node.images.mutable_images(0)->clear_target(); }},
  };
  for (const auto& [what, change] : ways) {
    BOOST_TEST_CONTEXT(what) {
      Node node;
      change(node);
      BOOST_TEST(node.Imported() == "");
    }
  }
}

// Its content may have been collected and imported anew in between.
BOOST_AUTO_TEST_CASE(a_record_that_changes_meanwhile) {
  for (const bool removed : {true, false}) {
    Node node;
    node.Answer();
    int lists = 0;
    node.fake.Before("List", [&] {
      // Images, content, images.
      if (++lists != 3) return;
      auto changed = node.images;
      if (removed) changed.clear_images();
      if (!removed) Set(changed.mutable_images(0)->mutable_created_at(), 1002);
      node.fake.Answer(kImages, changed);
    });
    const auto imported = node.At().Imported();
    BOOST_REQUIRE(imported);
    BOOST_TEST(imported->empty());
  }
}

BOOST_AUTO_TEST_CASE(hostile_answers) {
  Node node;
  node.Answer();
  const Containerd at = node.At();

  const auto leases = [&](const auto& answer) {
    const NamedContainerd name;
    node.fake.Answer(kLeases, answer);
    return CodeOf(at.LookAtPulls());
  };
  BOOST_TEST((leases(std::string("\xff\xff\xff")) == ErrorCode::kInvalidArgument));
  BOOST_TEST((leases(LeaseBytes("", 1000)) == ErrorCode::kInvalidArgument));
  messages::ListLeasesResponse many;
  for (std::size_t i = 0; i <= Containerd::kMaxLeases; ++i) {
    many.add_leases()->set_id(std::to_string(i));
  }
  BOOST_TEST((leases(many) == ErrorCode::kLimitExceeded));
  BOOST_TEST((leases(std::string(std::size_t{5} << 20, '\0')) == ErrorCode::kLimitExceeded));

  node.fake.Answer(kImages, std::string("\x0a\x05\x0a\x09"));
  BOOST_TEST((CodeOf(at.Images()) == ErrorCode::kInvalidArgument));
  messages::ListImagesResponse nameless;
  AddImage(nameless, "", kManifest);
  node.fake.Answer(kImages, nameless);
  BOOST_TEST((CodeOf(at.Images()) == ErrorCode::kInvalidArgument));
  // Of two bytes each would become a hundred.
  std::string fields;
  for (std::size_t i = 0; i < 16 * kMaxListedImages + 1; ++i) fields += std::string("\x0a\x00", 2);
  node.fake.Answer(kImages, fields);
  BOOST_TEST((CodeOf(at.Images()) == ErrorCode::kLimitExceeded));

  node.Answer();
  node.fake.Answer(kContent, fields);
  BOOST_TEST((CodeOf(at.Imported()) == ErrorCode::kLimitExceeded));
  node.fake.AnswerMany(kContent, {fields.substr(2), fields.substr(2)});
  BOOST_TEST((CodeOf(at.Imported()) == ErrorCode::kLimitExceeded));
  node.fake.AnswerMany(kContent, {std::string(), std::string("\x0a")});
  BOOST_TEST((CodeOf(at.Imported()) == ErrorCode::kInvalidArgument));
  // One that is fetched, and not.
  messages::ListContentResponse twice;
  for (const bool fetched : {false, true}) {
    auto* info = twice.add_info();
    info->set_digest(kManifest);
    if (fetched) (*info->mutable_labels())[kSource + "docker.io"] = "library/app";
  }
  node.fake.Answer(kContent, twice);
  BOOST_TEST((CodeOf(at.Imported()) == ErrorCode::kInvalidArgument));
}

BOOST_AUTO_TEST_CASE(no_answers) {
  FakeRuntime fake;
  const Containerd at({.endpoint = fake.endpoint()});
  // Another runtime.
  const auto images = at.Images();
  BOOST_TEST((CodeOf(images) == ErrorCode::kInvalidArgument));
  BOOST_TEST(images.error().ToString().find("only containerd") != std::string::npos);
  BOOST_TEST((CodeOf(at.Imported()) == ErrorCode::kInvalidArgument));

  fake.Fail(kImages, static_cast<int>(grpc::StatusCode::UNAVAILABLE), "later");
  BOOST_TEST((CodeOf(at.Images()) == ErrorCode::kUnavailable));
  fake.Hang(kImages);
  const Containerd short_at(
      {.endpoint = fake.endpoint(), .timeout = std::chrono::milliseconds(200)});
  BOOST_TEST((CodeOf(short_at.Images()) == ErrorCode::kUnavailable));
  const Containerd cancelled({.endpoint = fake.endpoint(), .cancelled = [] { return true; }});
  const auto interrupted = cancelled.Images();
  BOOST_REQUIRE(!interrupted);
  BOOST_TEST((interrupted.error().code == ErrorCode::kInterrupted));

  fake.Stop();
  BOOST_TEST((CodeOf(at.Images()) == ErrorCode::kUnavailable));
  BOOST_TEST((CodeOf(at.Process()) == ErrorCode::kUnavailable));
  const Containerd elsewhere({.endpoint = "tcp://1.2.3.4:5"});
  BOOST_TEST((CodeOf(elsewhere.Images()) == ErrorCode::kInvalidArgument));
}

BOOST_AUTO_TEST_CASE(which_process) {
  Node node;
  node.Answer();
  // A relay's life says nothing of containerd's.
  const auto other = node.At().Process();
  BOOST_TEST((CodeOf(other) == ErrorCode::kUnavailable));
  BOOST_TEST((CodeOf(node.At().LookAtPulls()) == ErrorCode::kUnavailable));

  node.fake.Answer(kLeases, LeaseBytes("a lease", 1000));
  const auto [process, look] = [&] {
    const NamedContainerd name;
    return std::pair(node.At().Process(), node.At().LookAtPulls());
  }();
  timespec now = {};
  ::clock_gettime(CLOCK_BOOTTIME, &now);

  BOOST_REQUIRE_MESSAGE(process, (process ? "" : process.error().ToString()));
  BOOST_TEST(process->pid == ::getpid());
  BOOST_TEST(process->started > 0);
  BOOST_TEST(process->started <= now.tv_sec * kSecond + now.tv_nsec);
  BOOST_REQUIRE(look);
  BOOST_TEST((look->process == *process));
  BOOST_TEST((look->leases == std::vector<std::string>{"a lease"}));
  BOOST_TEST(process->started < look->began);
  BOOST_TEST(look->began < look->ended);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
