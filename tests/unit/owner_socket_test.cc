// The owner's socket, with a door that does what a test says: requests and replies, clients and
// owners that misbehave, bounds, what lies in the socket's place, closing.

#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/owner_socket/client.h"
#include "store/owner_socket/request.h"
#include "store/owner_socket/server.h"
#include "tests/support/child_process.h"
#include "tests/support/draw.h"
#include "tests/support/expect_error.h"
#include "tests/support/memory_dir.h"
#include "tests/support/varlink_client.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(owner_socket)

namespace {

namespace fs = std::filesystem;
using internal::AskOwner;

using internal::OwnerServer;
using std::chrono::milliseconds;

constexpr milliseconds kLong{600'000};
constexpr milliseconds kShort{50};

std::unique_ptr<OwnerServer> Serve(const fs::path& directory, internal::Door& door,
                                   const ServeOptions& options = {.patience = kLong},
                                   milliseconds idle = kLong) {
  auto started = OwnerServer::Start(directory, options, door, idle);
  if (!started) throw std::runtime_error(started.error().ToString());
  return *std::move(started);
}

// A directory whose owner serves.
struct Serving {
  explicit Serving(const ServeOptions& options = {.patience = kLong, .connections = 64},
                   milliseconds idle = kLong)
      : server(Serve(directory(), door, options, idle)) {}

  fs::path directory() const { return scratch.path(); }
  std::string Answer(const std::string& request) const {
    return VarlinkClient(directory()).Ask(request);
  }
  // Nothing that a client did matters to others.
  void ExpectWorks() const {
    const auto answer = AskOwner(directory(), "Echo", R"({"a":1})", false, kLong);
    BOOST_TEST((answer ? *answer : answer.error().ToString()) == R"({"a":1})");
  }

  MemoryDir scratch;
  FakeDoor door;
  std::unique_ptr<OwnerServer> server;
};

std::string Echo(const std::string& parameters, const std::string& more = "") {
  return R"({"method":"dev.waybill.Echo","parameters":)" + parameters + more + "}";
}
const std::string kBlock = R"({"method":"dev.waybill.Block"})";
const std::string kLarge = R"({"method":"dev.waybill.Large"})";

// "unavailable: message" of a reply with an error.
std::string ErrorIn(const std::string& reply) {
  if (reply.empty()) return "nothing came";
  const auto read = internal::ReadReply(reply);
  if (!read) return "no reply: " + reply;
  if (*read) return "no error: " + reply;
  return std::string(ErrorCodeName(read->error().code)) + ": " + read->error().message;
}
bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A process with clients of its own. "go" has it do `work`; they are connected until it ends.
using Clients = std::vector<std::unique_ptr<VarlinkClient>>;
std::unique_ptr<ChildProcess> InAnother(const std::function<std::string(Clients&)>& work) {
  return std::make_unique<ChildProcess>([work] {
    auto clients = std::make_shared<Clients>();
    return [clients, work](const std::string&) { return work(*clients); };
  });
}

}  // namespace

// --- Requests and replies

BOOST_FIXTURE_TEST_CASE(requests_and_their_replies, Serving) {
  const std::string service = "org.varlink.service.";
  const auto failure = [&](const std::string& name, const std::string& parameters) {
    return R"({"error":")" + service + name + R"(","parameters":)" + parameters + "}";
  };
  VarlinkClient client(directory());
  const std::vector<std::pair<std::string, std::string>> expected = {
      {Echo(R"({"a": [1, "ü"]})"), R"({"parameters":{"a": [1, "ü"]}})"},
      {R"( {"parameters" : {"b":2} , "method":"dev.waybill.Echo"}  )", R"({"parameters":{"b":2}})"},
      {R"({"method":"dev.waybill.\u0045cho"})", R"({"parameters":{}})"},
      {Echo("null", R"(,"oneway":null,"more":null,"upgrade":false)"), R"({"parameters":{}})"},
      {Echo("{}", R"(,"more":true)"), R"({"parameters":{}})"},
      {R"({"method":"dev.waybill.Refuse"})",
       R"({"error":"dev.waybill.Conflict","parameters":{"message":"no \"way\"","hint":")" +
           std::string(HintText(Hint::kReleasePod)) + R"(","retryAfterMs":2}})"},
      {R"({"method":"dev.waybill.Gone"})",
       failure("MethodNotFound", R"({"method":"dev.waybill.Gone"})")},
      {R"({"method":"dev.waybill.echo"})",
       failure("MethodNotFound", R"({"method":"dev.waybill.echo"})")},
      {R"({"method":"dev.waybill."})", failure("MethodNotFound", R"({"method":"dev.waybill."})")},
      {R"({"method":"dev.Echo"})", failure("InterfaceNotFound", R"({"interface":"dev"})")},
      {R"({"method":"Echo"})", failure("InterfaceNotFound", R"({"interface":"Echo"})")},
      {R"({"method":""})", failure("InterfaceNotFound", R"({"interface":""})")},
      {R"({"method":"org.varlink.service.Echo"})",
       failure("MethodNotFound", R"({"method":"org.varlink.service.Echo"})")},
      {R"({"method":"org.varlink.service.GetInfo"})",
       R"({"parameters":{"vendor":"waybill","product":"waybill","version":")" +
           std::string(internal::LibraryVersion()) +
           R"(","url":"","interfaces":["org.varlink.service","dev.waybill"]}})"},
      {R"({"method":"org.varlink.service.GetInterfaceDescription",)"
       R"("parameters":{"interface":"dev.waybill"}})",
       R"({"parameters":{"description":"interface dev.waybill\n"}})"},
      {R"({"method":"org.varlink.service.GetInterfaceDescription",)"
       R"("parameters":{"interface":"dev.other"}})",
       failure("InterfaceNotFound", R"({"interface":"dev.other"})")},
      {R"({"method":"org.varlink.service.GetInterfaceDescription"})",
       failure("InvalidParameter", R"({"parameter":"interface"})")},
      {R"({"method":"org.varlink.service.GetInterfaceDescription",)"
       R"("parameters":{"interface":"dev.waybill","interface":"dev.waybill"}})",
       failure("InvalidParameter", R"({"parameter":"interface"})")},
      {R"({"method":"org.varlink.service.GetInterfaceDescription",)"
       R"("parameters":{"interface":7}})",
       failure("InvalidParameter", R"({"parameter":"interface"})")}};
  for (const auto& [request, reply] : expected) BOOST_TEST(client.Ask(request) == reply, request);
  const std::string described =
      client.Ask(R"({"method":"org.varlink.service.GetInterfaceDescription",)"
                 R"("parameters":{"interface":"org.varlink.service"}})");
  BOOST_TEST(Says(described, "method GetInterfaceDescription(interface: string)"), described);
  BOOST_TEST(
      Says(ErrorIn(client.Ask(Echo("{}", R"(,"upgrade":true)"))), "invalidArgument: upgrade"));
}

BOOST_FIXTURE_TEST_CASE(requests_in_one_piece, Serving) {
  VarlinkClient client(directory());
  std::string all;
  constexpr int kCount = 3000;
  for (int i = 0; i < kCount; ++i) {
    const std::string number = R"({"n":)" + std::to_string(i) + "}";
    all += Framed(Echo(number, i % 3 == 0 ? R"(,"oneway":true)" : ""));
    if (i % 7 == 0) all += '\0';  // nothing is no request
  }
  std::thread sending([&] {
    client.Send(all);
    client.EndSending();
  });
  for (int i = 0; i < kCount; ++i) {
    if (i % 3 != 0) {
      BOOST_TEST(client.Next() == R"({"parameters":{"n":)" + std::to_string(i) + "}}");
    }
    if (i % 7 == 0) BOOST_TEST(Says(ErrorIn(client.Next()), "invalidArgument"));
  }
  sending.join();
  BOOST_TEST(client.AtEnd());
  BOOST_TEST(door.calls == std::size_t{kCount});
}

BOOST_FIXTURE_TEST_CASE(bytes_that_are_no_request, Serving) {
  VarlinkClient client(directory());
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"", "expected an object"},
      {"x", "expected an object"},
      {"[]", "expected an object"},
      {"{}", "method"},
      {R"({"method":7})", "method: expected a string, at byte 10"},
      {R"({"method":null})", "method: expected a string"},
      {R"({"method":"a.B","method":"a.B"})", "method: it is there twice"},
      {R"({"method":"a.B","parameters":{},"parameters":{}})", "parameters: it is there twice"},
      {R"({"method":"a.B","parameters":[]})", "parameters: expected an object"},
      {R"({"method":"a.B","parameters":{"a":}})", "parameters"},
      {R"({"method":"a.B","oneway":1})", "oneway: expected true or false"},
      {R"({"method":"a.B","onceway":true})", "onceway: this version does not know it"},
      {R"({"method":"a.B"} {})", "text after the end"},
      {R"({"method":"a.B")", "expected a comma or the end"},
      {"{\"method\":\"a.\xff\"}", "UTF-8"},
      {"{\"method\":\"" + std::string(257, 'm') + "\"}", "method: it has more than 256"},
      {R"({"method":"dev.waybill.Echo","parameters":)" + std::string(40, '['),
       "parameters: too deep"},
      {R"({"method":"dev.waybill.Echo","parameters":{"a":)" + std::string(40, '['), "too deep"}};
  for (const auto& [request, part] : expected) {
    const std::string said = ErrorIn(client.Ask(request));
    BOOST_TEST(Says(said, "invalidArgument: "), said);
    BOOST_TEST(Says(said, part), said);
    BOOST_TEST(Says(said, "nothing was changed"), said);
  }
  BOOST_TEST(client.Ask(Echo("{}")) == R"({"parameters":{}})");
  BOOST_TEST(door.calls == 1U);
}

// --- Bounds

BOOST_FIXTURE_TEST_CASE(messages_have_at_most_16_mib, Serving) {
  const std::size_t around = Echo("{\"a\":\"\"}").size();
  const std::string text(kMaxOwnerMessageBytes - around, 'x');
  {
    VarlinkClient client(directory());
    BOOST_TEST(client.Ask(Echo("{\"a\":\"" + text + "\"}")).size() > text.size());
    BOOST_TEST(client.Ask(Echo("{}")) == R"({"parameters":{}})");
    std::thread sending([&] { client.Send(Framed(Echo("{\"a\":\"" + text + "x\"}"))); });
    BOOST_TEST(Says(ErrorIn(client.Next()), "limitExceeded"));
    sending.join();
    BOOST_TEST(client.AtEnd());
  }
  {
    VarlinkClient endless(directory());
    std::thread sending([&] {
      while (endless.Send(text)) {
      }
    });
    BOOST_TEST(Says(ErrorIn(endless.Next()), "limitExceeded"));
    sending.join();
    BOOST_TEST(endless.AtEnd());
  }
  ExpectError(AskOwner(directory(), "Echo", "{\"a\":\"" + text + "x\"}", true, kLong),
              ErrorCode::kLimitExceeded, "nothing was changed");
  BOOST_TEST(AskOwner(directory(), "Echo", "{\"a\":\"" + text + "\"}", true, kLong).has_value());
  const std::size_t reply_around = std::string(R"({"parameters":})").size();
  door.large = std::string(kMaxOwnerMessageBytes - reply_around, ' ');
  door.large.front() = '{';
  door.large.back() = '}';
  VarlinkClient client(directory());
  BOOST_TEST(client.Ask(kLarge).size() == kMaxOwnerMessageBytes);
  BOOST_TEST(AskOwner(directory(), "Large", "", false, kLong).has_value());
  door.large.back() = ' ';
  door.large += '}';
  BOOST_TEST(Says(ErrorIn(client.Ask(kLarge)), "limitExceeded"));
  ExpectError(AskOwner(directory(), "Large", "", false, kLong), ErrorCode::kLimitExceeded);
  BOOST_TEST(client.Ask(Echo("{}")) == R"({"parameters":{}})");
}

// What is kept of requests that are not whole is bounded over all clients: who has been sending for
// longest has to go.
BOOST_FIXTURE_TEST_CASE(large_requests_that_are_never_finished, Serving) {
  const std::string part(std::size_t{15} << 20, 'x');
  Clients clients;
  for (int i = 0; i < 8; ++i) {
    clients.push_back(std::make_unique<VarlinkClient>(directory()));
    clients.back()->Send(part);
  }
  BOOST_TEST(Says(ErrorIn(clients.front()->Next()), "unavailable"));
  ExpectWorks();
  const std::string large = "{\"a\":\"" + part + "\"}";
  BOOST_TEST(AskOwner(directory(), "Echo", large, false, kLong).has_value());
}

// Nobody goes whose call runs: there is no room for another large request, but for a small one.
BOOST_FIXTURE_TEST_CASE(large_requests_that_run, Serving) {
  const std::string large = R"(,"parameters":{"a":")" + std::string(15'000'000, 'x') + "\"}}";
  std::string request = kBlock;
  request.replace(request.size() - 1, 1, large);
  Clients clients;
  for (std::size_t i = 1; i <= 4; ++i) {
    clients.push_back(std::make_unique<VarlinkClient>(directory()));
    clients.back()->Send(Framed(request));
    door.AwaitBlocked(i);
  }
  ExpectWorks();
  ExpectError(AskOwner(directory(), "Echo", large.substr(14, large.size() - 15), true, kLong),
              ErrorCode::kUnavailable, "large requests of others");
  door.Open();
  for (const auto& client : clients)
    BOOST_TEST(client->Next() == R"({"parameters":{"blocked":true}})");
}

BOOST_FIXTURE_TEST_CASE(answers_that_nobody_takes, Serving) {
  door.large = std::string(kMaxOwnerMessageBytes - 100, ' ');
  door.large.front() = '{';
  door.large.back() = '}';
  Clients deaf;
  for (int i = 0; i < 12; ++i) {
    deaf.push_back(std::make_unique<VarlinkClient>(directory()));
    deaf.back()->Send(Framed(kLarge));
  }
  // Four of the answers have room at a time; the others break off.
  const auto count_lost = [&] {
    return std::count_if(deaf.begin(), deaf.end(), [](const auto& one) { return one->is_lost(); });
  };
  while (count_lost() < 8) std::this_thread::yield();
  BOOST_TEST(AskOwner(directory(), "Large", "", false, kLong).has_value());
  BOOST_TEST(count_lost() == 9);
  ExpectWorks();
}

BOOST_AUTO_TEST_CASE(slow_clients_are_cut_off) {
  Serving serving({.patience = kShort}, kLong);
  VarlinkClient slow(serving.directory());
  slow.Send("{");
  BOOST_TEST(slow.AtEnd());
  // One that takes no answer.
  serving.door.large = "{" + std::string(4'000'000, ' ') + "}";
  VarlinkClient deaf(serving.directory());
  deaf.Send(Framed(kLarge));
  while (deaf.Send(std::string(1, '\0'))) std::this_thread::yield();
  // One that asks, and then nothing.
  Serving impatient({.patience = kLong}, kShort);
  VarlinkClient idle(impatient.directory());
  BOOST_TEST(idle.AtEnd());
  VarlinkClient asked_once(impatient.directory());
  asked_once.Ask(Echo("{}"));
  BOOST_TEST(asked_once.AtEnd());
}

// --- Connections

BOOST_AUTO_TEST_CASE(silent_clients_stop_nobody) {
  const Serving serving({.patience = kLong, .connections = 8});
  const fs::path directory = serving.directory();
  // A process gets two of them. What it has more of is refused.
  VarlinkClient first(directory);
  VarlinkClient second(directory);
  BOOST_TEST(first.Ask(Echo("{}")) == R"({"parameters":{}})");
  BOOST_TEST(second.Ask(Echo("{}")) == R"({"parameters":{}})");
  ExpectError(AskOwner(directory, "Echo", "", true, kLong), ErrorCode::kUnavailable,
              "process " + std::to_string(getpid()) + " has 2 connections");
  // Others take the rest, and more: those that wait for longest go.
  std::vector<std::unique_ptr<ChildProcess>> hanging;
  for (int i = 0; i < 5; ++i) {
    hanging.push_back(InAnother([&](Clients& clients) {
      for (int j = 0; j < 2; ++j) {
        clients.push_back(std::make_unique<VarlinkClient>(directory));
        clients.back()->Ask(Echo("{}"));
        clients.back()->Send("{\"meth");
      }
      return std::string("hangs");
    }));
    BOOST_TEST(hanging.back()->Ask("go") == "hangs");
  }
  // Those of this process were the first.
  BOOST_TEST(Says(ErrorIn(first.Next()), "unavailable: the owner is busy: others wait"));
  BOOST_TEST(Says(ErrorIn(second.Next()), "unavailable: the owner is busy: others wait"));
  serving.ExpectWorks();
}

// The share of a process is one: each call finds the connection of the one before gone.
BOOST_AUTO_TEST_CASE(one_call_after_the_other) {
  const Serving serving({.patience = kLong, .connections = 1});
  for (int i = 0; i < 500; ++i) serving.ExpectWorks();
}

BOOST_AUTO_TEST_CASE(calls_that_run_are_not_cut) {
  Serving serving({.patience = kLong, .connections = 4});
  const fs::path directory = serving.directory();
  std::vector<std::unique_ptr<ChildProcess>> busy;
  for (std::size_t i = 1; i <= 4; ++i) {
    busy.push_back(InAnother([&](Clients& clients) {
      if (!clients.empty()) return clients.back()->Next();
      clients.push_back(std::make_unique<VarlinkClient>(directory));
      clients.back()->Send(Framed(kBlock));
      return std::string("asks");
    }));
    BOOST_TEST(busy.back()->Ask("go") == "asks");
    serving.door.AwaitBlocked(i);
  }
  ExpectError(AskOwner(directory, "Echo", "", true, kLong), ErrorCode::kUnavailable, "at work");
  busy.front()->Kill();  // its call goes on
  ExpectError(AskOwner(directory, "Echo", "", true, kLong), ErrorCode::kUnavailable, "at work");
  serving.door.Open();
  for (std::size_t i = 1; i < 4; ++i) {
    BOOST_TEST(busy[i]->Ask("go") == R"({"parameters":{"blocked":true}})");
  }
  serving.ExpectWorks();
}

// WAYBILL_FLOOD: processes, with 25 connections each: silent, half a request, deaf, larger halves,
// busy.
BOOST_AUTO_TEST_CASE(a_flood_stops_nobody) {
  Serving serving({.patience = kLong});
  serving.door.large = "{" + std::string(4'000'000, ' ') + "}";
  const fs::path directory = serving.directory();
  const std::string part(100'000, 'x');
  std::vector<std::unique_ptr<ChildProcess>> flood;
  for (std::uint64_t i = NumberFromEnv("WAYBILL_FLOOD", 6); i > 0; --i) {
    flood.push_back(InAnother([&](Clients& clients) {
      for (int round = 0; round < 10; ++round) {
        clients.clear();
        for (int j = 0; j < 25; ++j) {
          clients.push_back(std::make_unique<VarlinkClient>(directory));
          VarlinkClient& client = *clients.back();
          if (j % 5 == 1) client.Send("{");
          if (j % 5 == 2) client.Send(Framed(kLarge));
          if (j % 5 == 3) client.Send(part);
          for (int k = 0; j % 5 == 4 && k < 50 && !client.Ask(Echo("{}")).empty(); ++k) {
          }
        }
      }
      return std::string("flooded");
    }));
  }
  std::vector<std::thread> asking;
  for (auto& one : flood) asking.emplace_back([&] { BOOST_CHECK(one->Ask("go") == "flooded"); });
  // As one process of all.
  std::size_t answered = 0;
  std::size_t refused = 0;
  milliseconds longest{0};
  for (int i = 0; i < 200; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = AskOwner(directory, "Echo", "", true, kLong);
    if (!answer)
      BOOST_TEST((answer.error().code == ErrorCode::kUnavailable), answer.error().ToString());
    longest = std::max(longest,
                       std::chrono::ceil<milliseconds>(std::chrono::steady_clock::now() - begin));
    ++(answer ? answered : refused);
  }
  for (std::thread& one : asking) one.join();
  BOOST_TEST_MESSAGE(answered << " answered, " << refused << " refused, the longest after "
                              << longest.count() << " ms");
  BOOST_TEST(answered > refused);
  serving.ExpectWorks();
}

// --- Starting and closing

BOOST_AUTO_TEST_CASE(options_out_of_range) {
  const MemoryDir scratch;
  FakeDoor door;
  for (const ServeOptions& options :
       {ServeOptions{.patience = milliseconds(0)}, ServeOptions{.patience = std::chrono::hours(2)},
        ServeOptions{.connections = 0}, ServeOptions{.connections = 1025}}) {
    ExpectError(OwnerServer::Start(scratch.path(), options, door), ErrorCode::kInvalidArgument,
                "nothing was changed");
  }
  BOOST_TEST(!fs::exists(scratch / "owner.sock"));
}

BOOST_FIXTURE_TEST_CASE(the_socket_is_of_its_owner_alone, Serving) {
  struct stat st {};
  BOOST_TEST_REQUIRE(lstat((directory() / "owner.sock").c_str(), &st) == 0);
  BOOST_TEST(S_ISSOCK(st.st_mode));
  BOOST_TEST((st.st_mode & 07777U) == 0600U);
  server.reset();
  BOOST_TEST(!fs::exists(directory() / "owner.sock"));
  ExpectError(AskOwner(directory(), "Echo", "", true, kLong), ErrorCode::kNotFound, "no owner");
  server = Serve(directory(), door);
  ExpectWorks();
}

BOOST_FIXTURE_TEST_CASE(closing_waits_for_no_client, Serving) {
  door.large = "{" + std::string(4'000'000, ' ') + "}";
  const std::string request = Framed(Echo("{}"));
  Clients clients;
  for (std::size_t i = 0; i < 13; ++i) {
    clients.push_back(std::make_unique<VarlinkClient>(directory()));
    BOOST_TEST(clients.back()->Ask(Echo("{}")) == R"({"parameters":{}})");
    clients.back()->Send(std::string_view(request).substr(0, i));
  }
  VarlinkClient deaf(directory());
  deaf.Send(Framed(kLarge));
  while (door.calls < 14) std::this_thread::yield();
  // Its call is finished, and what it asked behind it is not done.
  VarlinkClient running(directory());
  running.Send(Framed(kBlock) + Framed(Echo("{}")));
  door.AwaitBlocked(1);
  const std::size_t calls = door.calls;
  std::thread opening([&] {
    BOOST_CHECK(Says(ErrorIn(clients.front()->Next()), "closes"));
    door.Open();
  });
  server.reset();
  opening.join();
  for (std::size_t i = 1; i < clients.size(); ++i) {
    BOOST_TEST(Says(ErrorIn(clients[i]->Next()), "unavailable: the owner is busy: it closes"), i);
    BOOST_TEST(clients[i]->AtEnd());
  }
  BOOST_TEST(running.Next() == R"({"parameters":{"blocked":true}})");
  BOOST_TEST(Says(ErrorIn(running.Next()), "closes"));
  BOOST_TEST(running.AtEnd());
  BOOST_TEST(deaf.Next().empty());
  BOOST_TEST(door.calls == calls);
}

BOOST_AUTO_TEST_CASE(a_killed_owners_socket_is_replaced) {
  const MemoryDir scratch;
  FakeDoor door;
  ChildProcess owner([&] {
    auto server = std::make_shared<std::unique_ptr<OwnerServer>>(Serve(scratch.path(), door));
    return [server](const std::string&) { return std::string("serves"); };
  });
  BOOST_TEST(owner.Ask("?") == "serves");
  BOOST_TEST(AskOwner(scratch.path(), "Echo", "", true, kLong).has_value());
  owner.Kill();
  BOOST_TEST(fs::is_socket(scratch / "owner.sock"));
  ExpectError(AskOwner(scratch.path(), "Echo", "", true, kLong), ErrorCode::kNotFound);
  const auto server = Serve(scratch.path(), door);
  BOOST_TEST(AskOwner(scratch.path(), "Echo", "", true, kLong).has_value());
}

BOOST_AUTO_TEST_CASE(what_lies_in_the_way_is_left_alone) {
  const std::vector<std::function<void(const fs::path&)>> kinds = {
      [](const fs::path& place) { WriteFile(place, "precious"); },
      [](const fs::path& place) { fs::create_directory(place); },
      [](const fs::path& place) { fs::create_symlink("data.mdb", place); },
      [](const fs::path& place) { BOOST_TEST(mkfifo(place.c_str(), 0600) == 0); }};
  FakeDoor door;
  for (const auto& put : kinds) {
    const MemoryDir scratch;
    const fs::path place = scratch / "owner.sock";
    put(place);
    const auto type = fs::symlink_status(place).type();
    ExpectError(OwnerServer::Start(scratch.path(), {}, door), ErrorCode::kUnsafePath);
    ExpectError(AskOwner(scratch.path(), "Echo", "", true, kLong), ErrorCode::kUnsafePath);
    BOOST_TEST((fs::symlink_status(place).type() == type));
  }
}

// Somebody moved the socket away, and put a file there: closing removes only what was bound.
BOOST_FIXTURE_TEST_CASE(closing_removes_its_own_socket_only, Serving) {
  fs::rename(directory() / "owner.sock", directory() / "moved");
  WriteFile(directory() / "owner.sock", "precious");
  server.reset();
  BOOST_TEST(ReadFile(directory() / "owner.sock") == "precious");
}

BOOST_AUTO_TEST_CASE(deep_directories_work) {
  const MemoryDir scratch;
  FakeDoor door;
  // Up to and beyond the 108 bytes of sun_path.
  std::vector<fs::path> places = {scratch / std::string(200, 'd') / std::string(200, 'd')};
  for (std::size_t bytes = 90; bytes < 112; ++bytes) {
    places.push_back(scratch / std::string(bytes - scratch.path().string().size() - 1, 'd'));
  }
  for (const fs::path& place : places) {
    fs::create_directories(place);
    fs::permissions(place, fs::perms::owner_all);
    auto server = Serve(place, door);
    BOOST_TEST(AskOwner(place, "Echo", "", true, kLong).has_value(), place);
    server.reset();
    BOOST_TEST(fs::is_empty(place));
  }
}

// --- Who may talk

// A limit: "An owner answers other processes only where it serves"
BOOST_AUTO_TEST_CASE(other_users_are_refused) {
  if (geteuid() != 0) {
    BOOST_TEST_MESSAGE("left out: only root can become somebody else");
    return;
  }
  constexpr uid_t kNobody = 65534;
  Serving serving;
  const fs::path directory = serving.directory();
  // The modes that keep others away from the socket are gone: its peers are looked at as well.
  BOOST_TEST_REQUIRE(chmod(directory.c_str(), 0755) == 0);
  BOOST_TEST_REQUIRE(chmod((directory / "owner.sock").c_str(), 0666) == 0);
  const std::string said = InChild([&]() -> std::string {
    if (seteuid(kNobody) != 0) return "seteuid failed";
    const auto answer = AskOwner(directory, "Echo", "", true, kLong);
    if (answer || answer.error().code != ErrorCode::kUnsafePath) return "it asked";
    VarlinkClient raw(directory);
    if (!raw.is_connected()) return "the modes still keep it away";
    const std::string first = raw.Next();
    return raw.AtEnd() ? first : "it may go on";
  });
  BOOST_TEST(said == R"({"error":"org.varlink.service.PermissionDenied","parameters":{}})");
  BOOST_TEST(Says(ErrorIn(said), "unsafePath"));
  BOOST_TEST(serving.door.calls == 0U);
  serving.server.reset();

  // Another user listens on a socket that root made.
  ChildProcess impostor([&] {
    auto fd = std::make_shared<internal::Fd>(RawSocket());
    const sockaddr_un name = SocketAddress(directory);
    if (bind(fd->get(), reinterpret_cast<const sockaddr*>(&name), sizeof(name)) != 0 ||
        seteuid(kNobody) != 0 || listen(fd->get(), 8) != 0) {
      throw std::runtime_error("cannot listen");
    }
    return [fd](const std::string&) { return std::string("listens"); };
  });
  BOOST_TEST_REQUIRE(impostor.Ask("?") == "listens");
  ExpectError(AskOwner(directory, "Echo", "", true, kLong), ErrorCode::kUnsafePath, "65534");

  // Another user's socket is not replaced.
  BOOST_TEST_REQUIRE(lchown((directory / "owner.sock").c_str(), kNobody, kNobody) == 0);
  impostor.Kill();
  ExpectError(OwnerServer::Start(directory, {}, serving.door), ErrorCode::kUnsafePath);
  BOOST_TEST(fs::is_socket(directory / "owner.sock"));
}

// --- Asking

BOOST_FIXTURE_TEST_CASE(what_an_owner_says_to_who_asks, Serving) {
  const auto ask = [&](std::string_view name, std::string_view parameters = {}) {
    return AskOwner(directory(), name, parameters, true, kLong);
  };
  BOOST_TEST(*ask("Echo") == "{}");
  BOOST_TEST(*ask("Echo", R"( {"a":1} )") == R"({"a":1})");
  const Error refused = ExpectError(ask("Refuse"), ErrorCode::kConflict);
  BOOST_TEST(refused.message == "no \"way\"");
  BOOST_TEST((refused.hint_code == Hint::kReleasePod));
  BOOST_TEST((refused.retry_after == milliseconds(2)));
  ExpectError(ask("Later"), ErrorCode::kInvalidArgument, "version");
  ExpectError(ask("Gone"), ErrorCode::kInvalidArgument, "version");
  for (const std::string parameters : {"x", "[]", "{", "null", R"({},"oneway":true)", "{}}"}) {
    ExpectError(ask("Echo", parameters), ErrorCode::kInvalidArgument, "nothing was changed");
  }
  for (const milliseconds patience :
       {milliseconds(0), milliseconds(-1), milliseconds(90'000'000)}) {
    ExpectError(AskOwner(directory(), "Echo", "", true, patience), ErrorCode::kInvalidArgument);
  }
  ExpectError(AskOwner(directory() / "none", "Echo", "", true, kLong), ErrorCode::kNotFound);
  fs::create_directory_symlink(directory(), directory() / "link");
  ExpectError(AskOwner(directory() / "link", "Echo", "", true, kLong), ErrorCode::kUnsafePath);
}

BOOST_AUTO_TEST_CASE(each_code_comes_back) {
  for (int number = 1; number <= 0xff; ++number) {
    const auto code = static_cast<ErrorCode>(number);
    if (ErrorCodeName(code) == "unknown") continue;
    const auto read = internal::ReadReply(internal::ErrorReply({code, "m", "h"}));
    BOOST_TEST_REQUIRE(read.has_value());
    BOOST_TEST((read->error().code == code), number);
    BOOST_TEST(read->error().message == "m");
    BOOST_TEST(read->error().hint == "h");
  }
}

BOOST_AUTO_TEST_CASE(owners_that_lose_the_connection) {
  const MemoryDir scratch;
  const fs::path& directory = scratch.path();
  const auto ask = [&](bool changes, milliseconds patience = kLong) {
    return AskOwner(directory, "Echo", "", changes, patience);
  };
  // Once it has heard the request, it says this, and goes.
  const auto answers = [](const std::string& answer) {
    return [answer](int client) {
      RawOwner::Hear(client);
      SendAll(client, answer);
    };
  };
  {
    // One that serves, and takes nobody: there is room for one to wait.
    const internal::Fd full = RawSocket();
    const internal::Fd waiting = RawSocket();
    const sockaddr_un name = SocketAddress(directory);
    const auto* address = reinterpret_cast<const sockaddr*>(&name);
    BOOST_REQUIRE(bind(full.get(), address, sizeof(name)) == 0);
    BOOST_REQUIRE(listen(full.get(), 0) == 0);
    BOOST_REQUIRE(::connect(waiting.get(), address, sizeof(name)) == 0);
    ExpectError(ask(true, kShort), ErrorCode::kUnavailable, "too many clients waiting");
  }
  // Answers that are none.
  for (const std::string& answer :
       {std::string(), std::string("{"), Framed(""), Framed("x"), Framed("[]"),
        Framed(R"({"parameters":[]})"), Framed(R"({"parameters":{}} x)"),
        Framed(R"({"error":"other.Error"})"), Framed(R"({"error":"x"})"),
        Framed(R"({"error":"dev.waybill.Io","parameters":{"message":7}})"),
        std::string(kMaxOwnerMessageBytes + 20'000, ' ')}) {
    const RawOwner lying(directory, answers(answer));
    ExpectError(ask(true), ErrorCode::kOutcomeUnknown);
    ExpectError(ask(false), ErrorCode::kUnavailable, "nothing was changed");
  }
  {
    const RawOwner slow(directory, [](int client) { RawOwner::WaitForEnd(client); });
    ExpectError(ask(true, kShort), ErrorCode::kOutcomeUnknown, "may still happen");
    ExpectError(ask(false, kShort), ErrorCode::kUnavailable, "nothing was changed");
    const std::string large = "{\"a\":\"" + std::string(1'000'000, 'x') + "\"}";
    const RawOwner stopped(directory, [](int) { std::this_thread::sleep_for(4 * kShort); });
    ExpectError(AskOwner(directory, "Echo", large, true, kShort), ErrorCode::kUnavailable,
                "did not take the request in time");
  }
  {
    // It refuses, and takes nothing.
    const std::string refusal = Framed(internal::ErrorReply({ErrorCode::kUnavailable, "so busy"}));
    const RawOwner busy(directory, [&](int client) { SendAll(client, refusal); });
    ExpectError(ask(true), ErrorCode::kUnavailable, "so busy");
    const std::string large = "{\"a\":\"" + std::string(1'000'000, 'x') + "\"}";
    ExpectError(AskOwner(directory, "Echo", large, true, kLong), ErrorCode::kUnavailable,
                "so busy");
  }
  {
    const std::string large = "{\"a\":\"" + std::string(1'000'000, 'x') + "\"}";
    const RawOwner closing(directory, [](int) {});
    ExpectError(AskOwner(directory, "Echo", large, true, kLong), ErrorCode::kUnavailable,
                "took no request");
  }
  // What a later version may say.
  for (const auto& [said, code, message] :
       std::vector<std::tuple<std::string, ErrorCode, std::string>>{
           {R"({"error":"dev.waybill.Odd","parameters":{"message":"m","new":[1]},"x":{}})",
            ErrorCode::kInternal, "m"},
           {R"({"error":"dev.waybill.Unknown","parameters":{"message":"m"}})", ErrorCode::kInternal,
            "m"},
           {R"({"error":"dev.waybill.Io"})", ErrorCode::kIo, ""},
           {R"({"error":"org.varlink.service.MethodNotImplemented"})", ErrorCode::kInvalidArgument,
            "version"},
           {R"({"error":"org.varlink.service.InvalidParameter"})", ErrorCode::kInvalidArgument,
            "parameters"}}) {
    const RawOwner later(directory, answers(Framed(said)));
    ExpectError(ask(true), code, message);
  }
  const RawOwner later(directory,
                       answers(Framed(R"({"new":1,"error":null,"continues":false})") + "{"));
  BOOST_TEST(*ask(true) == "{}");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
