// What the client makes of a runtime's answers, and of runtimes that give none.

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <string>
#include <thread>

#include "runtime/cri/runtime_client.h"
#include "runtime/files/documents.h"
#include "tests/cri/fake_runtime.h"
#include "tests/support/store_fixture.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(client)

namespace {

using cri::Client;
using cri::ClientOptions;
using cri::ImageEvents;
using std::chrono::milliseconds;

// Of calls that never end by themselves; of all others, longer than any of them takes.
constexpr milliseconds kShort{200};
constexpr milliseconds kLong{120'000};

std::string Text(const std::vector<ListedImage>& images) {
  std::string text;
  for (const ListedImage& image : images) {
    text += image.id + (image.pinned ? " pinned" : "") + " " + image.runtime_handler + "\n";
    for (const std::string& tag : image.repo_tags) text += "  " + tag + "\n";
    for (const std::string& digest : image.repo_digests) text += "  " + digest + "\n";
  }
  return text;
}

std::unique_ptr<Client> Connected(const FakeRuntime& fake, milliseconds timeout = kLong) {
  // With a time-out of its own: this call is answered.
  auto first = Client::Connect({.endpoint = fake.endpoint(), .timeout = kLong});
  BOOST_REQUIRE_MESSAGE(first, (first ? "" : first.error().ToString()));
  if (timeout == kLong) return *std::move(first);
  // It may need several times where the machine is busy.
  for (;;) {
    auto client = Client::Connect({.endpoint = fake.endpoint(), .timeout = timeout});
    if (client) return *std::move(client);
  }
}

template <typename T>
Error ErrorOf(const Result<T>& result) {
  BOOST_REQUIRE(!result);
  BOOST_TEST(result.error().has_hint(), result.error().message);
  return result.error();
}

Error ConnectError(const std::string& endpoint, milliseconds timeout = kLong) {
  return ErrorOf(Client::Connect({.endpoint = endpoint, .timeout = timeout}));
}

bool Has(const Error& error, const std::string& text) {
  const bool has = error.ToString().find(text) != std::string::npos;
  if (!has) BOOST_TEST_MESSAGE(error.ToString());
  return has;
}

// Listens on a socket, and does with each connection what `serve` says.
class RawRuntime {
 public:
  explicit RawRuntime(std::function<void(int, const std::atomic<bool>&)> serve, int backlog = 8) {
    listener_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    path().copy(address.sun_path, sizeof(address.sun_path) - 1);
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    BOOST_REQUIRE(::bind(listener_, generic, sizeof(address)) == 0);
    BOOST_REQUIRE(::listen(listener_, backlog) == 0);
    if (!serve) return;
    thread_ = std::thread([this, serve] {
      for (;;) {
        const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
        if (fd < 0) return;
        serve(fd, ended_);
        ::close(fd);
      }
    });
  }
  ~RawRuntime() {
    ended_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    ::close(listener_);
  }
  RawRuntime(const RawRuntime&) = delete;
  RawRuntime& operator=(const RawRuntime&) = delete;

  std::string path() const { return (dir_.path() / "raw.sock").string(); }

 private:
  TempDir dir_;
  int listener_ = -1;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

bool Readable(int fd, milliseconds wait) {
  pollfd one = {.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&one, 1, static_cast<int>(wait.count())) == 1;
}

const std::string kFixtures = WAYBILL_FIXTURES "/cri/containerd-";

}  // namespace

BOOST_AUTO_TEST_CASE(it_answers_what_crictl_prints) {
  FakeRuntime fake;
  for (const std::string version : {"1.6.20", "2.4.2"}) {
    fake.Answer("Version", Version("containerd", "v" + version));
    for (const std::string list : {"images", "cases"}) {
      const std::string json = ReadFile(kFixtures + version + "/" + list + ".json");
      fake.Answer("ListImages", ImagesFrom(json));
      const auto client = Connected(fake);
      BOOST_TEST(client->runtime() == "containerd v" + version);
      BOOST_TEST(client->endpoint() == fake.endpoint());
      const auto expected = Must(DecodeImageList(json));
      BOOST_TEST(expected.size() > 3);
      BOOST_TEST(Text(Must(client->ListImages())) == Text(expected));
    }
  }
}

BOOST_AUTO_TEST_CASE(handlers_are_those_of_crictl_info) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  const std::string json = ReadFile(kFixtures + "2.4.2/info.json");
  fake.Answer("Status", StatusFrom(json));
  const auto expected = Must(DecodeRuntimeStatus(json));
  BOOST_TEST(expected.size() == 2);
  BOOST_TEST((Must(client->RuntimeHandlers()) == expected));
  // The name of the default handler is in what only a verbose status has.
  runtime::v1::StatusRequest request;
  BOOST_REQUIRE(request.ParseFromString(fake.request("Status")));
  BOOST_TEST(request.verbose());
}

BOOST_AUTO_TEST_CASE(a_runtime_that_names_no_handlers_has_none) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  fake.Answer("Status", StatusFrom(ReadFile(kFixtures + "1.6.20/info.json")));
  BOOST_TEST(Must(client->RuntimeHandlers()).empty());
}

BOOST_AUTO_TEST_CASE(a_configuration_cannot_pose_as_a_list_of_handlers) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  runtime::v1::StatusResponse status;
  status.add_runtime_handlers()->set_name("runc");
  // It must be JSON by itself to stand beside the list.
  (*status.mutable_info())["config"] = R"({},"runtimeHandlers":[{"name":"evil"}])";
  fake.Answer("Status", status);
  const auto handlers = Must(client->RuntimeHandlers());
  BOOST_REQUIRE(handlers.size() == 1);
  BOOST_TEST(handlers.front().name == "runc");
}

BOOST_AUTO_TEST_CASE(many_images_and_the_same_one_twice) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  auto list = ManyImages(50'000);
  *list.add_images() = list.images(7);
  fake.Answer("ListImages", list);
  const auto listed = Must(client->ListImages());
  BOOST_TEST(listed.size() == 50'001);
  BOOST_TEST(listed.back().id == list.images(7).id());
}

BOOST_AUTO_TEST_CASE(no_runtime) {
  const TempDir dir;
  const std::string path = (dir.path() / "no.sock").string();
  BOOST_TEST(Has(ConnectError("unix://" + path), path + " is not there"));
  BOOST_TEST(static_cast<int>(ConnectError(path).code) ==
             static_cast<int>(ErrorCode::kUnavailable));
  BOOST_TEST(Has(ConnectError(path + "/below"), path + "/below is not there"));

  WriteFile(path, "");
  BOOST_TEST(Has(ConnectError(path), "is not a socket"));
  BOOST_TEST(Has(ConnectError(dir.path().string()), "is not a socket"));
}

BOOST_AUTO_TEST_CASE(a_socket_that_nobody_listens_on) {
  FakeRuntime fake;
  auto client = Connected(fake);
  const TempDir dir;
  const std::string left = (dir.path() / "left.sock").string();
  std::filesystem::create_hard_link(fake.path(), left);
  fake.Stop();
  const Error error = ConnectError(left);
  BOOST_TEST(Has(error, "nobody listens on the container runtime's socket " + left));
  BOOST_TEST((error.code == ErrorCode::kUnavailable));
}

BOOST_AUTO_TEST_CASE(a_socket_that_may_not_be_opened) {
  FakeRuntime fake;
  BOOST_REQUIRE(::chmod(fake.path().c_str(), 0) == 0);
  // Root may open every socket.
  const bool is_root = ::geteuid() == 0;
  BOOST_REQUIRE(!is_root || ::seteuid(65534) == 0);
  const Error error = ConnectError(fake.endpoint());
  BOOST_REQUIRE(!is_root || ::seteuid(0) == 0);
  BOOST_TEST(Has(error, "Permission denied"));
  BOOST_TEST((error.code == ErrorCode::kIo));
}

BOOST_AUTO_TEST_CASE(only_unix_sockets) {
  for (const std::string endpoint :
       {"tcp://127.0.0.1:2376", "http://x", "dns:///x", "unix://relative", "unix:", "relative",
        "npipe:////./pipe/x", "unix-abstract:x"}) {
    const Error error = ConnectError(endpoint);
    BOOST_TEST((error.code == ErrorCode::kInvalidArgument), endpoint);
    BOOST_TEST(Has(error, endpoint));
  }
  BOOST_TEST(Has(ConnectError("tcp://127.0.0.1:2376"), "no authentication"));
  BOOST_TEST(Has(ConnectError("/" + std::string(200, 'x')), "107 bytes"));
  BOOST_TEST(Has(ConnectError(std::string("/a\0b", 4)), "zero byte"));
}

BOOST_AUTO_TEST_CASE(a_runtime_that_refuses) {
  const struct {
    int status;
    std::string says;
    ErrorCode code;
    std::string about;
  } all[] = {
      {12, "unknown service runtime.v1.RuntimeService", ErrorCode::kInvalidArgument, "CRI v1"},
      // It starts up.
      {2, "server is not initialized yet", ErrorCode::kUnavailable, ""},
  };
  for (const auto& one : all) {
    FakeRuntime fake;
    fake.Fail("Version", one.status, one.says);
    const Error error = ConnectError(fake.endpoint());
    BOOST_TEST((error.code == one.code));
    BOOST_TEST(Has(error, one.says));
    BOOST_TEST(Has(error, one.about));
  }
}

BOOST_AUTO_TEST_CASE(a_runtime_that_hangs) {
  FakeRuntime fake;
  fake.Hang("ListImages");
  const Error error = ErrorOf(Connected(fake, kShort)->ListImages());
  BOOST_TEST((error.code == ErrorCode::kUnavailable));
  BOOST_TEST(Has(error, "did not answer ListImages within 200 ms"));
}

BOOST_AUTO_TEST_CASE(one_that_accepts_and_says_nothing) {
  const RawRuntime silent([](int fd, const auto& ended) {
    std::array<char, 4096> bytes = {};
    while (!ended && ::read(fd, bytes.data(), bytes.size()) > 0) {
    }
  });
  BOOST_TEST(Has(ConnectError(silent.path(), kShort), "did not answer Version within 200 ms"));
}

BOOST_AUTO_TEST_CASE(one_that_does_not_accept) {
  // As a stopped process: connections wait in its queue, of which there is an end.
  const RawRuntime stopped(nullptr, 0);
  std::set<std::string> said;
  for (int i = 0; i < 4; ++i) {
    const Error error = ConnectError(stopped.path(), kShort);
    BOOST_TEST((error.code == ErrorCode::kUnavailable));
    said.insert(error.message);
  }
  BOOST_TEST(said.size() >= 1);
}

BOOST_AUTO_TEST_CASE(one_that_drips) {
  // HTTP/2 as it should be, an acknowledged ping after the other, and never an answer.
  const RawRuntime dripping([](int fd, const auto& ended) {
    const std::string settings("\0\0\0\4\0\0\0\0\0", 9);
    const std::string ping("\0\0\x8\6\1\0\0\0\0\0\0\0\0\0\0\0\0", 17);
    bool goes_on = ::send(fd, settings.data(), settings.size(), MSG_NOSIGNAL) == 9;
    while (goes_on && !ended) {
      for (const char byte : ping) goes_on = goes_on && ::send(fd, &byte, 1, MSG_NOSIGNAL) == 1;
      std::this_thread::sleep_for(milliseconds(1));
    }
  });
  const Error error = ConnectError(dripping.path(), kShort);
  BOOST_TEST((error.code == ErrorCode::kUnavailable));
}

BOOST_AUTO_TEST_CASE(something_else_listens) {
  const RawRuntime other([](int fd, const auto&) {
    const std::string answer = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    (void)!::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL);
    std::array<char, 4096> bytes = {};
    while (::read(fd, bytes.data(), bytes.size()) > 0) {
    }
  });
  const Error error = ConnectError(other.path());
  BOOST_TEST((error.code == ErrorCode::kUnavailable));
  const RawRuntime closes([](int, const auto&) {});
  BOOST_TEST((ConnectError(closes.path()).code == ErrorCode::kUnavailable));
}

namespace {

std::string Frame(char type, char flags, const std::string& payload) {
  std::string frame = {'\0',
                       static_cast<char>(payload.size() >> 8U),
                       static_cast<char>(payload.size()),
                       type,
                       flags,
                       0,
                       0,
                       0,
                       1};
  if (type == '\4') frame.back() = 0;  // SETTINGS: of the connection
  return frame + payload;
}
std::string Headers(const std::string& fields, bool last) {
  return Frame('\1', last ? '\5' : '\4', fields);
}
std::string Literal(const std::string& name, const std::string& value) {
  return std::string(1, '\0') + static_cast<char>(name.size()) + name +
         static_cast<char>(value.size()) + value;
}
std::string Data(const std::string& bytes, bool last = false) {
  return Frame('\0', last ? '\1' : '\0', bytes);
}
std::string Status(const std::string& code) { return Headers(Literal("grpc-status", code), true); }

}  // namespace

BOOST_AUTO_TEST_CASE(answers_byte_by_byte) {
  const std::string begin = Headers("\x88", false);  // :status 200
  const std::string empty("\0\0\0\0\0", 5);
  const std::string version("\0\0\0\0\4\x12\2ab", 9);
  struct Row {
    std::string frames;
    ErrorCode code;
    std::string text;
  };
  const Row rows[] = {
      {begin + Data("\1" + empty.substr(1)), ErrorCode::kUnavailable, "is compressed"},
      {begin + Data(version.substr(0, 7)) + Status("0"), ErrorCode::kUnavailable, "cut short"},
      {begin + Data(version.substr(0, 3), true), ErrorCode::kUnavailable, "cut short"},
      {begin + Data(version, true), ErrorCode::kUnavailable, "does not say how the call ended"},
      {begin + Data(version + version) + Status("0"), ErrorCode::kUnavailable, "two answers"},
      {begin + Status("0"), ErrorCode::kUnavailable, "there is no answer"},
      {begin + Data("\0\xff\xff\xff\xff"), ErrorCode::kUnavailable, "Version"},
      {begin + Data(std::string("\0\xff\xff\xff\xff", 5)), ErrorCode::kLimitExceeded, "4294967295"},
      {begin + Data(version) + Status("nonsense"), ErrorCode::kUnavailable, "does not say"},
      {Headers("\x8d", true), ErrorCode::kInvalidArgument, "HTTP status 404"},
      {Headers("\x8e", true), ErrorCode::kUnavailable, "HTTP status 500"},
      {Headers("\x88" + Literal("grpc-status", "2") + Literal("grpc-message", "a%20b%zz%2"), true),
       ErrorCode::kUnavailable, "a b%zz%2"},
      {begin + Frame('\3', '\0', std::string("\0\0\0\2", 4)), ErrorCode::kUnavailable,
       "gave the call up"},
      {begin + Data(version), ErrorCode::kUnavailable, "closed the connection"},
      {Headers("\xff\xff\xff\xff\xff", true), ErrorCode::kUnavailable, "Version"},
      {std::string(100, '\xff'), ErrorCode::kUnavailable, "Version"},
  };
  for (const Row& row : rows) {
    const RawRuntime raw([&](int fd, const auto&) {
      std::array<char, 4096> request = {};
      (void)!::read(fd, request.data(), request.size());
      const std::string answer = Frame('\4', '\0', "") + row.frames;
      // In two parts, as a socket may give them.
      const std::size_t half = answer.size() / 2;
      (void)!::send(fd, answer.data(), half, MSG_NOSIGNAL);
      (void)!::send(fd, answer.data() + half, answer.size() - half, MSG_NOSIGNAL);
      ::shutdown(fd, SHUT_WR);
      while (::read(fd, request.data(), request.size()) > 0) {
      }
    });
    const Error error = ConnectError(raw.path());
    BOOST_TEST(Has(error, row.text), row.text << ": " << error.ToString());
    BOOST_TEST((error.code == row.code), row.text << ": " << error.ToString());
  }
  const RawRuntime sound([&](int fd, const auto&) {
    const std::string answer = Frame('\4', '\0', "") + begin + Data(version) + Status("0");
    for (const char byte : answer) (void)!::send(fd, &byte, 1, MSG_NOSIGNAL);
    std::array<char, 4096> request = {};
    while (::read(fd, request.data(), request.size()) > 0) {
    }
  });
  const auto client = Client::Connect({.endpoint = sound.path()});
  BOOST_REQUIRE(client);
  BOOST_TEST((*client)->runtime() == "ab ");
}

BOOST_AUTO_TEST_CASE(answers_that_are_no_messages) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  runtime::v1::ListImagesResponse list;
  list.add_images()->set_id("sha256:x");
  const std::string sound = list.SerializeAsString();
  for (const std::string& bytes :
       {std::string("\xff\xff\xff"), std::string(100, '\n'), sound + "\x0a", sound.substr(0, 5)}) {
    fake.Answer("ListImages", bytes);
    BOOST_TEST((ErrorOf(client->ListImages()).code == ErrorCode::kInvalidArgument));
    fake.Answer("Status", bytes + "\xff");
    BOOST_TEST((ErrorOf(client->RuntimeHandlers()).code == ErrorCode::kInvalidArgument));
  }
  fake.Answer("Version", std::string("\xff"));
  BOOST_TEST(Has(ConnectError(fake.endpoint()), "VersionResponse of CRI v1"));
  fake.Answer("Version", std::string());
  BOOST_TEST(Has(ConnectError(fake.endpoint()), "VersionResponse of CRI v1"));
}

BOOST_AUTO_TEST_CASE(images_that_no_list_may_have) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  const auto refused = [&](const std::function<void(runtime::v1::Image&)>& change) {
    auto list = ManyImages(3);
    change(*list.mutable_images(1));
    fake.Answer("ListImages", list);
    Error error = ErrorOf(client->ListImages());
    BOOST_TEST(Has(error, fake.path()));
    return error;
  };
  BOOST_TEST(
      Has(refused([](auto& image) { image.clear_id(); }), "images[1].id: it is missing or empty"));
  BOOST_TEST(
      Has(refused([](auto& image) { image.set_id(std::string(kMaxImageRefBytes + 1, 'x')); }),
          "images[1].id"));
  BOOST_TEST(Has(
      refused([](auto& image) { image.set_repo_tags(0, std::string(kMaxImageBytes + 1, 'x')); }),
      "images[1].repoTags[0]"));
  BOOST_TEST(Has(refused([](auto& image) {
                   image.mutable_spec()->set_runtime_handler(
                       std::string(kMaxRuntimeHandlerBytes + 1, 'x'));
                 }),
                 "images[1].spec.runtimeHandler"));
  // Not UTF-8. The library for messages says so only while it reads.
  auto list = ManyImages(1);
  std::string bytes = list.SerializeAsString();
  bytes[bytes.find("aaaa")] = '\xff';
  fake.Answer("ListImages", bytes);
  BOOST_TEST(
      Has(ErrorOf(client->ListImages()), "the answer is not a ListImagesResponse of CRI v1"));
}

BOOST_AUTO_TEST_CASE(answers_that_are_too_large) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  fake.Answer("ListImages", std::string(kMaxListedImages * 320 + 1, '\0'));
  BOOST_TEST((ErrorOf(client->ListImages()).code == ErrorCode::kLimitExceeded));
  fake.Answer("Status", std::string((std::size_t{4} << 20) + 1, '\0'));
  BOOST_TEST((ErrorOf(client->RuntimeHandlers()).code == ErrorCode::kLimitExceeded));
  // One image more than a list may have.
  runtime::v1::ListImagesResponse list;
  for (std::size_t i = 0; i <= kMaxListedImages; ++i) list.add_images()->set_id("x");
  fake.Answer("ListImages", list);
  BOOST_TEST((ErrorOf(client->ListImages()).code == ErrorCode::kLimitExceeded));
  // Bytes of which each two would become an object of a hundred.
  std::string empty_images;
  while (empty_images.size() < kMaxListedImages * 300) empty_images.append("\x0a\0", 2);
  fake.Answer("ListImages", empty_images);
  BOOST_TEST(Has(ErrorOf(client->ListImages()), "fields"));
}

BOOST_AUTO_TEST_CASE(a_runtime_may_restart_between_calls) {
  FakeRuntime fake;
  const auto client = Connected(fake);
  fake.Answer("ListImages", ManyImages(1));
  BOOST_TEST(client->ListImages().has_value());
  fake.Stop();
  BOOST_TEST((client->ListImages().error().code == ErrorCode::kUnavailable));
  fake.Start();
  BOOST_TEST(client->ListImages().has_value());
}

BOOST_AUTO_TEST_CASE(events_make_it_readable) {
  FakeRuntime fake;
  fake.Hang("Subscribe");
  ImageEvents events({.endpoint = fake.endpoint()});
  BOOST_TEST(events.available());
  for (int i = 0; i < 3; ++i) {
    fake.SendEvent();
    BOOST_REQUIRE(Readable(events.fd(), kLong));
    events.Drain();
    BOOST_TEST(!Readable(events.fd(), milliseconds(0)));
  }
  BOOST_TEST(fake.request("Subscribe").find("namespace==k8s.io") != std::string::npos);
  fake.EndEvents();
  BOOST_REQUIRE(Readable(events.fd(), kLong));
  BOOST_TEST(!events.available());
}

BOOST_AUTO_TEST_CASE(a_runtime_that_goes_away_makes_it_readable) {
  FakeRuntime fake;
  fake.Hang("Subscribe");
  ImageEvents events({.endpoint = fake.endpoint()});
  fake.SendEvent();
  BOOST_REQUIRE(Readable(events.fd(), kLong));
  events.Drain();
  fake.Stop();
  BOOST_REQUIRE(Readable(events.fd(), kLong));
  BOOST_TEST(!events.available());
}

BOOST_AUTO_TEST_CASE(a_runtime_without_events) {
  ImageEvents nowhere({.endpoint = "/nowhere.sock"});
  BOOST_TEST(!nowhere.available());
  BOOST_TEST(!Readable(nowhere.fd(), milliseconds(0)));

  FakeRuntime fake;
  ImageEvents events({.endpoint = fake.endpoint()});
  while (events.available()) std::this_thread::yield();
  BOOST_TEST(!Readable(events.fd(), milliseconds(0)));
}

BOOST_AUTO_TEST_CASE(watching_ends_at_any_time) {
  FakeRuntime fake;
  fake.Hang("Subscribe");
  for (int i = 0; i < 50; ++i) {
    ImageEvents events({.endpoint = fake.endpoint()});
    if (i % 2 == 0) std::this_thread::yield();
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
