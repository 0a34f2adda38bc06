// `waybill guard` as a process, beside a runtime and a kubelet that the test plays.

#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "migrations/kubelet_files/kubelet_file.h"
#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/files.h"
#include "store/base/options.h"
#include "tests/cri/fake_runtime.h"
#include "tests/support/child_process.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/run_command.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(guard_service)

namespace {

using Strings = std::vector<std::string>;
using std::filesystem::path;

const std::string kApp = "r.example/a/app";

std::string Ref(int number) {
  const std::string digits = std::to_string(number);
  return "sha256:" + std::string(64 - digits.size(), 'a') + digits;
}
std::string Tag(int number) { return kApp + ":v" + std::to_string(number); }

// Whether it becomes so. The bound is for what never does.
template <typename Condition>
bool Becomes(Condition condition) {
  for (int i = 0; i < 18'000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

bool Contains(const std::string& text, const std::string& part) {
  const bool contains = text.find(part) != std::string::npos;
  if (!contains) BOOST_TEST_MESSAGE("no '" << part << "' in: " << text);
  return contains;
}

ImagePulledRecord RecordOf(int number, const std::string& tenant) {
  const ImagePullSecret secret = {.uid = "u-" + tenant,
                                  .namespace_name = tenant,
                                  .name = "pull",
                                  .credential_hash = "hash-" + tenant};
  return {.image_ref = Ref(number),
          .last_updated = Timestamp{1'700'000'000, 0},
          .credential_mapping = {{kApp, {.kubernetes_secrets = {secret}}}}};
}

class GuardProcess {
 public:
  explicit GuardProcess(const Strings& arguments) : command_(arguments) {}
  ~GuardProcess() {
    if (command_.pid() > 0) kill(command_.pid(), SIGKILL);
  }

  bool BecomesReady() {
    const bool ready =
        Becomes([&] { return Times("ready\n", command_.out()) >= 1 || !command_.Runs(); });
    if (!command_.Runs()) BOOST_TEST_MESSAGE("the guard ended: " << command_.err());
    return ready && command_.Runs();
  }
  void Send(int signal) const { kill(command_.pid(), signal); }
  CommandResult End(int signal = SIGTERM) {
    Send(signal);
    return command_.Wait();
  }
  CommandResult Wait() { return command_.Wait(); }
  bool Runs() const { return command_.Runs(); }
  pid_t pid() const { return command_.pid(); }
  std::string err() const { return command_.err(); }
  std::string out() const { return command_.out(); }
  bool Says(const std::string& text) const {
    return Becomes([&] { return command_.err().find(text) != std::string::npos; }) ||
           Contains(err(), text);
  }

  static int Times(const std::string& part, const std::string& text) {
    int times = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++times;
    return times;
  }

 private:
  RunningCommand command_;
};

// One that is ready, which most tests begin with.
class ReadyGuard : public GuardProcess {
 public:
  explicit ReadyGuard(const Strings& arguments) : GuardProcess(arguments) {
    BOOST_REQUIRE(BecomesReady());
  }
};

class Node {
 public:
  Node() {
    for (const char* folder :
         {"", "image_manager", "image_manager/pulled", "image_manager/pulling"}) {
      std::filesystem::create_directory(kubelet() / folder);
      std::filesystem::permissions(kubelet() / folder, std::filesystem::perms::owner_all);
    }
    List({});
  }

  path operator/(const std::string& name) const { return dir_ / name; }
  path kubelet() const { return dir_ / "kubelet"; }
  std::string store() const { return (dir_ / "store").string(); }
  path Pulled(int number) const { return kubelet() / RecordFile("pulled", Ref(number)); }
  path Pulling(int number) const { return kubelet() / RecordFile("pulling", Tag(number)); }
  path Marker(const std::string& folder) const {
    return kubelet() / "image_manager" / folder / "sha256-waybill-guard";
  }
  path Status() const { return kubelet() / "image_manager/waybill-guard/status.json"; }

  // As a kubelet writes.
  static void Put(const path& file, const std::string& content) {
    const path fresh = file.string() + ".tmp";
    WriteFile(fresh, content);
    std::filesystem::rename(fresh, file);
  }
  void WriteRecord(int number, const std::string& tenant = "a") const {
    Put(Pulled(number), EncodePulledRecord(RecordOf(number, tenant)));
  }
  void WriteIntent(int number) const {
    Put(Pulling(number), EncodePullIntent({.image = Tag(number)}));
  }
  // What a kubelet would read of it; "none": there is no file.
  std::string Tenant(int number) const {
    // Opened once: the guard may remove it at any time.
    std::ifstream in(Pulled(number), std::ios::binary);
    if (!in) return "none";
    const std::string text(std::istreambuf_iterator<char>(in), {});
    if (text.starts_with(internal::kClosingLine)) return "closed";
    const auto record = DecodePulledRecord(text);
    if (!record) return "damaged";
    if (record->credential_mapping.empty()) return "closed";
    const auto& secrets = record->credential_mapping.begin()->second.kubernetes_secrets;
    return secrets.empty() ? "nobody" : secrets[0].namespace_name;
  }

  static runtime::v1::ListImagesResponse ListOf(const std::vector<int>& numbers) {
    runtime::v1::ListImagesResponse list;
    for (const int number : numbers) {
      auto* image = list.add_images();
      image->set_id(Ref(number));
      image->add_repo_tags(Tag(number));
    }
    return list;
  }
  void List(const std::vector<int>& numbers) { runtime.Answer("ListImages", ListOf(numbers)); }

  Strings Arguments(const Strings& more = {}) const {
    Strings arguments = {WAYBILL_CLI, "guard", "--kubelet-dir", kubelet().string(),
                         "--store",   store(), "--cri",         runtime.endpoint()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return arguments;
  }
  CommandResult Once(const Strings& more = {}) const {
    Strings arguments = Arguments({"--once"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunCommand(arguments);
  }
  CommandResult Ask(const std::string& command, Strings more = {}) const {
    more.insert(more.begin(), {command, "--store", store()});
    return RunWaybill(more);
  }
  // What --status says, with its exit code as "exit".
  nlohmann::json Seen() const {
    const auto seen =
        RunWaybill({"guard", "--status", "--kubelet-dir", kubelet().string(), "-o", "json"});
    auto json = nlohmann::json::parse(seen.out, nullptr, false);
    if (json.is_discarded()) json = {{"output", seen.out}, {"error", seen.err}};
    json["exit"] = seen.exit_code;
    return json;
  }
  bool SeenBecomes(const std::string& key,
                   const std::function<bool(const nlohmann::json&)>& as) const {
    nlohmann::json seen;
    const bool becomes = Becomes([&] { return as((seen = Seen()).value(key, nlohmann::json())); });
    if (!becomes) BOOST_TEST_MESSAGE(seen.dump(1));
    return becomes;
  }
  bool StartsAnew(const GuardProcess& guard) const {
    const auto before = Seen().at("since");
    guard.Send(SIGHUP);
    return SeenBecomes("since", [&](const auto& since) { return since != before; });
  }
  bool StoreHas(int number) const {
    return Becomes([&] { return Ask("show", {"--image-ref", Ref(number)}).exit_code == 0; });
  }

  FakeRuntime runtime;

 private:
  TempDir dir_;
};

// Variables of the environment, while it lives.
class Environment {
 public:
  Environment(std::string name, const std::string& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Environment() { unsetenv(name_.c_str()); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::string name_;
};

// A service manager's end of NOTIFY_SOCKET.
class Manager {
 public:
  explicit Manager(const path& at) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    at.string().copy(address.sun_path, sizeof(address.sun_path) - 1);
    if (bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      throw std::runtime_error("bind");
    }
  }
  bool Hears(const std::string& text) {
    return Becomes([&] {
      char buffer[4096];
      for (;;) {
        const ssize_t bytes = recv(fd_.get(), buffer, sizeof(buffer), MSG_DONTWAIT);
        if (bytes < 0) break;
        heard_ += std::string(buffer, static_cast<std::size_t>(bytes)) + "\n";
      }
      const auto at = heard_.find(text);
      if (at == std::string::npos) return false;
      heard_.erase(0, at + text.size());
      return true;
    });
  }
  const std::string& heard() const { return heard_; }

 private:
  internal::Fd fd_;
  std::string heard_;
};

// In a directory in which others may write.
void PutBehindASymlink(const path& link, const path& way) {
  std::filesystem::create_directory(way);
  std::filesystem::rename(link, way / "target");
  std::filesystem::create_directory_symlink(way / "target", link);
  std::filesystem::permissions(way, std::filesystem::perms::all);
}

bool IsRoot() {
  const bool may = geteuid() == 0 && RunCommand({"/usr/bin/unshare", "-m", "true"}).exit_code == 0;
  if (!may) BOOST_TEST_MESSAGE("left out: it may not mount");
  return may;
}
// In mounts of its own: `script` with the rest as its arguments.
CommandResult InMounts(const std::string& script, const Strings& arguments) {
  Strings all = {"/usr/bin/unshare", "-m", "/bin/sh", "-c", script, "sh"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return RunCommand(all);
}

}  // namespace

BOOST_AUTO_TEST_CASE(once_says_what_it_did) {
  Node node;
  node.List({1, 2});
  node.WriteRecord(1);
  const auto first = node.Once();
  BOOST_TEST(first.exit_code == 0, first.err);
  BOOST_TEST(Contains(first.err, "1 image is presumed preloaded"));
  BOOST_TEST(Contains(first.out, "images"));
  BOOST_TEST(node.Tenant(2) == "none");
  std::filesystem::remove(node.Pulled(1));
  const auto second = node.Once({"-o", "json"});
  BOOST_TEST(second.exit_code == 0, second.err);
  const auto json = nlohmann::json::parse(second.out);
  BOOST_TEST(json.at("images") == 2);
  BOOST_TEST(json.at("filesWritten") == 1);
  BOOST_TEST(json.at("record-lost") == 1);
  BOOST_TEST(json.at("kubeletRan") == false);
  BOOST_TEST(node.Tenant(1) == "a");
  // Nobody is there who would keep it.
  BOOST_TEST(!std::filesystem::exists(node.Marker("pulled")));
}

// waybill-guard.service stays down by that code.
BOOST_AUTO_TEST_CASE(beside_a_kubelet_with_waybill_inside) {
  Node node;
  node.List({1});
  const auto inside =
      Must(NodeStore::Open({.directory = node.kubelet() / "waybill", .witness = Witness::None()}));
  const auto once = node.Once();
  BOOST_TEST(once.exit_code == 8);
  BOOST_TEST(
      Contains(once.err.substr(0, once.err.find('\n')), "systemctl disable --now waybill-guard"));
}

// As `start` reads it.
BOOST_AUTO_TEST_CASE(a_guard_without_a_witness) {
  Node node;
  node.List({1});
  const auto result = RunCommand(node.Arguments({"--once", "--witness", "none"}));
  BOOST_TEST(result.exit_code == 0, result.err);
  BOOST_TEST(std::filesystem::exists(node.store()));
  BOOST_TEST(!std::filesystem::exists("none"));
  BOOST_TEST(!std::filesystem::exists(node.kubelet() / "image_manager/waybill-guard/witness"));
}

BOOST_AUTO_TEST_CASE(the_service_manager_hears_of_it) {
  Node node;
  node.List({1});
  Manager manager(node / "notify");
  const Environment socket("NOTIFY_SOCKET", (node / "notify").string());
  const Environment watchdog("WATCHDOG_USEC", "200000");
  GuardProcess guard(node.Arguments());
  BOOST_TEST(manager.Hears("READY=1"), manager.heard());
  BOOST_TEST(manager.Hears("WATCHDOG=1"), manager.heard());
  BOOST_TEST(manager.Hears("WATCHDOG=1"), manager.heard());
  BOOST_TEST(guard.BecomesReady());
  guard.Send(SIGHUP);
  BOOST_TEST(manager.Hears("RELOADING=1"), manager.heard());
  BOOST_TEST(manager.Hears("READY=1"), manager.heard());
  BOOST_TEST(guard.End().exit_code == 0);
  BOOST_TEST(manager.Hears("STOPPING=1"), manager.heard());
  // Within the start of another service it says nothing of that one.
  BOOST_TEST(node.Once().exit_code == 0);
  Manager other(node / "other");
  const Environment socket2("NOTIFY_SOCKET", (node / "other").string());
  BOOST_TEST(node.Once().exit_code == 0);
  GuardProcess again(node.Arguments());
  BOOST_TEST(other.Hears("READY=1"));
  BOOST_TEST(other.heard().find("STOPPING") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(after_sighup_the_configuration_file_counts_as_it_is_then) {
  Node node;
  node.List({1});
  const path config = node / "config.toml";
  WriteFile(config, "wait-runtime = 2\n");
  const Environment file("WAYBILL_CONFIG", config.string());
  ReadyGuard guard(node.Arguments());
  const path metrics = node / "metrics.prom";
  WriteFile(config, "metrics-file = \"" + metrics.string() + "\"\n");
  BOOST_TEST(node.StartsAnew(guard));
  BOOST_TEST(Becomes([&] { return std::filesystem::exists(metrics); }));

  // What can't be gone on with is said, and changes nothing.
  const auto since = node.Seen().at("since");
  WriteFile(config, "metrics-fiel = \"/x\"\n");
  guard.Send(SIGHUP);
  BOOST_TEST(guard.Says("there is no setting 'metrics-fiel'"));
  // A guard that has ended could not write what it needs to begin.
  WriteFile(config, "");
  const path room = node.Marker("pulled").parent_path().parent_path() / "waybill-guard/room.tmp";
  std::filesystem::create_directories(room / "full");
  guard.Send(SIGHUP);
  BOOST_TEST(guard.Says("it could not start anew, and the guard goes on as it was"));
  BOOST_TEST(node.Seen().at("since") == since);
  std::filesystem::remove_all(room);
  BOOST_TEST(node.StartsAnew(guard));
  BOOST_TEST(guard.End().exit_code == 0);
}

BOOST_AUTO_TEST_CASE(an_event_of_the_runtime_closes_at_once) {
  Node node;
  node.runtime.Hang("Subscribe");
  node.List({1});
  // A list by the clock would come after an hour.
  ReadyGuard guard(node.Arguments());
  node.WriteIntent(2);
  BOOST_TEST(node.SeenBecomes("openPulls", [](const auto& open) { return open == 1; }));
  std::filesystem::remove(node.Pulling(2));
  BOOST_TEST(node.SeenBecomes("events", [](const auto& events) { return events >= 2; }));
  node.runtime.SendEvent();
  node.List({1, 2});
  node.runtime.SendEvent();
  BOOST_TEST(Becomes([&] { return node.Tenant(2) == "closed"; }));
  // The stream breaks, and is watched again.
  node.runtime.EndEvents();
  node.WriteIntent(3);
  BOOST_TEST(node.SeenBecomes("openPulls", [](const auto& open) { return open >= 1; }));
  std::filesystem::remove(node.Pulling(3));
  node.runtime.SendEvent();
  node.List({1, 2, 3});
  node.runtime.SendEvent();
  BOOST_TEST(Becomes([&] { return node.Tenant(3) == "closed"; }));
}

BOOST_AUTO_TEST_CASE(a_runtime_that_does_not_answer_holds_up_nothing) {
  Node node;
  node.List({1, 2});
  node.WriteRecord(1);
  ReadyGuard guard(node.Arguments());
  int next = 10;
  const auto follows = [&](const std::string& how) {
    const int number = next++;
    node.WriteRecord(number, "b");
    BOOST_TEST(node.StoreHas(number), how);
    std::filesystem::remove(node.Pulled(1));
    BOOST_TEST(Becomes([&] { return node.Tenant(1) == "a"; }), how);
  };
  const auto says = [&](const std::string& text) {
    return node.SeenBecomes("runtimeError", [&](const nlohmann::json& error) {
      return error.is_string() && error.template get<std::string>().find(text) != std::string::npos;
    });
  };
  node.List({1, 1, 2});
  follows("lists one twice");
  BOOST_TEST(says(""));
  node.runtime.Answer("ListImages", std::string("\xff\xff\xff"));
  BOOST_TEST(says("ListImages"));
  follows("answers nonsense");
  node.runtime.Stop();
  BOOST_TEST(says("is not there"));
  follows("is gone");
  node.runtime.Fail("Version", 12, "unknown service runtime.v1.RuntimeService");
  node.runtime.Start();
  BOOST_TEST(says("CRI v1"));
  follows("knows v1alpha2 only");
  node.runtime.Answer("Version", Version("fake", "v1.0"));
  auto many = ManyImages(50'000);
  many.MergeFrom(Node::ListOf({1, 2}));
  node.runtime.Answer("ListImages", many);
  BOOST_TEST(node.SeenBecomes("images", [](const auto& images) { return images == 50'002; }));
  follows("lists many");
  BOOST_TEST(node.Seen().at("runtimeError") == "");
  // What its time-out makes of it: cri/client.
  node.runtime.Hang("ListImages");
  follows("hangs");
  BOOST_TEST(guard.End().exit_code == 0);
}

BOOST_AUTO_TEST_CASE(a_start_waits_for_the_runtime) {
  Node node;
  node.WriteRecord(1);
  node.runtime.Stop();
  const auto refused = node.Once({"--wait-runtime", "0"});
  BOOST_TEST(refused.exit_code == 3);
  BOOST_TEST(Contains(refused.err, "--allow-no-runtime"));
  BOOST_TEST(Contains(refused.err, "is not there"));
  {
    GuardProcess waiting(node.Arguments({"--wait-runtime", "3600"}));
    BOOST_TEST(waiting.Says("waiting for the runtime"));
    BOOST_TEST(waiting.out() == "");
    // It must not take an hour to end.
    BOOST_TEST(waiting.End().exit_code == 3);
  }
  {
    GuardProcess waiting(node.Arguments({"--wait-runtime", "3600"}));
    BOOST_TEST(waiting.Says("waiting for the runtime"));
    node.List({1, 2});
    node.runtime.Start();
    BOOST_TEST(waiting.BecomesReady());
    BOOST_TEST(waiting.End().exit_code == 0);
  }
  // None of that is a gap.
  BOOST_TEST(node.Tenant(2) == "none");
  node.runtime.Stop();
  std::filesystem::remove(node.Pulled(1));
  const auto without = node.Once({"--wait-runtime", "0", "--allow-no-runtime", "-o", "json"});
  BOOST_TEST(without.exit_code == 0, without.err);
  BOOST_TEST(
      Contains(nlohmann::json::parse(without.out).value("runtimeError", ""), "is not there"));
  BOOST_TEST(node.Tenant(1) == "a");
  GuardProcess guard(node.Arguments({"--wait-runtime", "0", "--allow-no-runtime"}));
  BOOST_TEST(guard.BecomesReady());
  BOOST_TEST(node.SeenBecomes("runtimeError", [](const auto& error) { return error != ""; }));
  node.runtime.Start();
  BOOST_TEST(node.SeenBecomes("runtimeError", [](const auto& error) { return error == ""; }));
}

// Its time-out is longer than a service manager waits.
BOOST_AUTO_TEST_CASE(an_end_does_not_wait_for_a_runtime_that_hangs) {
  for (const char* method : {"Version", "ListImages"}) {
    Node node;
    std::atomic<bool> asked = false;
    node.runtime.Before(method, [&] { asked = true; });
    node.runtime.Hang(method);
    GuardProcess guard(node.Arguments());
    BOOST_TEST(Becomes([&] { return asked.load(); }));
    const auto ended = guard.End();
    BOOST_TEST(ended.exit_code == 3);
    BOOST_TEST(Contains(ended.err, "nobody waits any more"));
    BOOST_TEST(!Contains(ended.err, "did not answer"));
  }
  Node node;
  node.List({1});
  ReadyGuard guard(node.Arguments());
  node.runtime.Hang("ListImages");
  node.WriteRecord(2);
  BOOST_TEST(node.StoreHas(2));
  const auto ended = guard.End();
  BOOST_TEST(ended.exit_code == 0);
  BOOST_TEST(!Contains(ended.err, "nobody waits any more"));
  node.List({1, 3});
  ReadyGuard again(node.Arguments());
  BOOST_TEST(node.Seen().at("afterGap") == false);
}

BOOST_AUTO_TEST_CASE(how_it_ended_decides_on_a_gap) {
  Node node;
  // No kubelet used the directory before, which could have given pulls up.
  for (const char* folder : {"pulled", "pulling"}) {
    std::filesystem::remove(node.kubelet() / "image_manager" / folder);
  }
  {
    ReadyGuard guard(node.Arguments());
    node.WriteRecord(1);
    BOOST_TEST(node.StoreHas(1));
    node.List({1});
    BOOST_TEST(node.Seen().at("afterGap") == false);
    BOOST_TEST(node.StartsAnew(guard));
    BOOST_TEST(node.Seen().at("afterGap") == false);
    const auto ended = guard.End();
    BOOST_TEST(ended.exit_code == 0);
    BOOST_TEST(ended.err == "");
    BOOST_TEST(!std::filesystem::exists(node.Marker("pulled")));
    BOOST_TEST(!std::filesystem::exists(node.Marker("pulling")));
  }
  node.List({1, 2});
  {
    ReadyGuard guard(node.Arguments());
    BOOST_TEST(node.Seen().at("afterGap") == false);
    BOOST_TEST(node.Tenant(2) == "none");
    guard.End(SIGKILL);
  }
  // A kubelet goes on, and nobody sees it.
  const std::filesystem::path came = node.kubelet() / "image_manager/pulling/came";
  std::ofstream(came) << "and went";
  std::filesystem::remove(came);
  node.List({1, 2, 3});
  BOOST_TEST(std::filesystem::exists(node.Marker("pulled")));
  BOOST_TEST(node.Seen().at("runs") == false);
  BOOST_TEST(node.Seen().at("exit") == 1);
  ReadyGuard guard(node.Arguments());
  BOOST_TEST(node.Seen().at("afterGap") == true);
  BOOST_TEST(node.Tenant(3) == "closed");
}

BOOST_AUTO_TEST_CASE(the_marker_stays_while_it_starts_anew) {
  Node node;
  node.List({1});
  ReadyGuard guard(node.Arguments());
  // The kubelet lists its directory in this moment: what it then holds for complete, it looks up no
  // more.
  const auto inode = Must(internal::FileIdOf(node.Marker("pulled")));
  BOOST_TEST(node.StartsAnew(guard));
  BOOST_TEST((Must(internal::FileIdOf(node.Marker("pulled"))) == inode));
}

BOOST_AUTO_TEST_CASE(a_start_that_is_refused_leaves_no_gap) {
  Node node;
  node.List({1});
  {
    ReadyGuard guard(node.Arguments());
    guard.End();
  }
  {
    // Somebody else has the store for a while.
    NodeStoreOptions options = {.witness = Witness::At(node.kubelet() / "image_manager/waybill")};
    options.directory = node.store();
    options.rules = Mode::kStrict;
    ChildProcess owner([&] {
      auto store = std::make_shared<std::unique_ptr<NodeStore>>(Must(NodeStore::Open(options)));
      return [store](const std::string&) { return std::string("yes"); };
    });
    BOOST_REQUIRE(owner.Ask("owned") == "yes");
    const auto refused = node.Once();
    BOOST_TEST(refused.exit_code == 3);
    BOOST_TEST(Contains(refused.err, "owned"));
  }
  const auto seen = node.Once({"-o", "json"});
  BOOST_TEST(seen.exit_code == 0, seen.err);
}

BOOST_AUTO_TEST_CASE(a_second_guard_is_refused) {
  Node node;
  node.List({1});
  ReadyGuard guard(node.Arguments());
  const auto second = node.Once();
  BOOST_TEST(second.exit_code == 3);
  BOOST_TEST(Contains(second.err, "another guard runs"));
  Strings other = node.Arguments({"--once"});
  other[5] = (node / "other").string();
  const auto third = RunCommand(other);
  BOOST_TEST(third.exit_code == 3);
  BOOST_TEST(Contains(third.err, "another guard runs"));
  BOOST_TEST(!std::filesystem::exists(node / "other"));
  BOOST_TEST(guard.Runs());
}

BOOST_AUTO_TEST_CASE(asking_for_the_status_keeps_no_guard_from_starting) {
  Node node;
  node.List({1});
  BOOST_REQUIRE(node.Once().exit_code == 0);
  // Somebody reads the status, and takes a time over it.
  std::atomic<bool> ends = false;
  std::thread asks([&] {
    while (!ends) static_cast<void>(node.Seen());
  });
  for (int i = 0; i < 12; ++i) {
    const auto once = node.Once();
    BOOST_TEST(once.exit_code == 0, once.err);
  }
  ends = true;
  asks.join();
}

BOOST_AUTO_TEST_CASE(a_command_hears_of_each_hole) {
  Node node;
  const std::string hostile = kApp + ":$(touch " + (node / "pwned").string() + ")`touch " +
                              (node / "pwned").string() + "`;'\"\n*";
  std::vector<int> all;
  for (int i = 1; i <= 20; ++i) {
    node.WriteRecord(i);
    all.push_back(i);
  }
  node.List(all);
  {
    ReadyGuard guard(node.Arguments());
    guard.End();
  }
  for (const int i : all) std::filesystem::remove(node.Pulled(i));
  const std::string told = (node / "told").string();
  ReadyGuard guard(node.Arguments({
      "--on-hole",
      "printf '%s=%s|' \"$WAYBILL_HOLE\" \"$WAYBILL_IMAGE\" >> " + told,
  }));
  const auto heard = [&](const std::string& text) {
    return std::filesystem::exists(told) ? GuardProcess::Times(text, ReadFile(told)) : 0;
  };
  // More at once than run at a time.
  BOOST_TEST(Becomes([&] { return heard("record-lost=sha256:") == 20; }));
  node.Put(node.kubelet() / RecordFile("pulling", hostile), EncodePullIntent({.image = hostile}));
  // Beside that of anything, since records went while no guard ran.
  BOOST_TEST(node.SeenBecomes("openPulls", [](const auto& open) { return open == 2; }));
  std::filesystem::remove(node.kubelet() / RecordFile("pulling", hostile));
  BOOST_TEST(Becomes(
      [&] { return std::filesystem::exists(node.kubelet() / RecordFile("pulling", hostile)); }));
  std::filesystem::remove(node.kubelet() / RecordFile("pulling", hostile));
  BOOST_TEST(Becomes([&] { return heard("intent-dropped=" + hostile + "|") >= 1; }));
  BOOST_TEST(!std::filesystem::exists(node / "pwned"));
  BOOST_TEST(guard.err().find('\x1b') == std::string::npos);
  // None is left behind as a zombie, also of those before a restart in place.
  BOOST_TEST(node.StartsAnew(guard));
  const std::string children =
      "/proc/" + std::to_string(guard.pid()) + "/task/" + std::to_string(guard.pid()) + "/children";
  BOOST_TEST(Becomes([&] { return ReadFile(children).empty(); }), ReadFile(children));
  BOOST_TEST(guard.End().exit_code == 0);
}

// Whatever it is told by: nobody may take that for protection.
BOOST_AUTO_TEST_CASE(it_says_that_the_kubelet_verifies_nothing) {
  Node node;
  node.List({1});
  const path metrics = node / "waybill.prom";
  const auto says_so = [&](const Strings& arguments, const std::string& why) {
    ReadyGuard guard(node.Arguments(arguments));
    BOOST_TEST(guard.out().starts_with("no protection: " + why), guard.out());
    BOOST_TEST(guard.Says(why));
    const auto status = RunWaybill({"guard", "--status", "--kubelet-dir", node.kubelet().string()});
    BOOST_TEST(status.out.starts_with("protection"), status.out);
    BOOST_TEST(Contains(status.out, why));
    BOOST_TEST(guard.End().exit_code == 0);
  };
  says_so({"--policy", "NeverVerify", "--metrics-file", metrics.string()},
          "NeverVerify: the kubelet verifies nothing");
  const std::string text = ReadFile(metrics);
  BOOST_TEST(Contains(text, "waybill_guard_kubelet_verifies_nothing 1\n"));
  BOOST_TEST(Contains(text, "waybill_guard_check_failed{check=\"kubelet-policy\"} 1\n"));
  // A process that calls itself a kubelet, of this directory.
  const RunningCommand kubelet(
      {"/bin/bash", "-c",
       "exec -a kubelet /bin/bash -c 'sleep 60; :' x --root-dir=" + node.kubelet().string() +
           " --feature-gates=KubeletEnsureSecretPulledImages=false"});
  const path words = "/proc/" + std::to_string(kubelet.pid()) + "/cmdline";
  BOOST_REQUIRE(Becomes([&] { return ReadFile(words).starts_with("kubelet"); }));
  says_so({}, "KubeletEnsureSecretPulledImages is off by its command line");
  kill(kubelet.pid(), SIGKILL);
}

BOOST_AUTO_TEST_CASE(prometheus_reads_its_metrics) {
  Node node;
  node.List({1, 7, 8, 9});
  const path metrics = node / "waybill.prom";
  ReadyGuard guard(node.Arguments({"--metrics-file", metrics.string()}));
  BOOST_REQUIRE(Becomes([&] { return std::filesystem::exists(metrics); }));
  const std::string text = ReadFile(metrics);
  BOOST_TEST(Contains(text, "waybill_guard_holes_total{kind=\"record-lost\"} 0"));
  BOOST_TEST((std::filesystem::status(metrics).permissions() ==
              static_cast<std::filesystem::perms>(0644)));
  for (const char* promtool : {"/usr/bin/promtool", "/usr/local/bin/promtool"}) {
    if (!std::filesystem::exists(promtool)) continue;
    const auto checked = RunCommand({promtool, "check", "metrics"}, text);
    BOOST_TEST(checked.exit_code == 0, checked.out << checked.err << text);
    BOOST_TEST(checked.out + checked.err == "");
  }
  BOOST_TEST(guard.End().exit_code == 0);
  // A place that can't be written is said once, and stops nothing.
  ReadyGuard other(node.Arguments({"--metrics-file", (node / "none/metrics.prom").string()}));
  BOOST_TEST(other.Says("none/metrics.prom"));
  for (int i = 1; i <= 3; ++i) {
    node.WriteRecord(6 + i);
    BOOST_TEST(node.SeenBecomes("records", [&](const auto& records) { return records == i; }));
  }
  BOOST_TEST(GuardProcess::Times("metrics.prom", other.err()) == 1, other.err());
}

BOOST_AUTO_TEST_CASE(the_status_of_guards) {
  Node node;
  const auto status = [&](const Strings& more = {}) {
    Strings arguments = {"guard", "--status", "--kubelet-dir", node.kubelet().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return RunWaybill(arguments);
  };
  const auto never = status();
  BOOST_TEST(never.exit_code == 1);
  BOOST_TEST(Contains(never.out, "no guard ever ran"));
  BOOST_TEST(nlohmann::json::parse(status({"-o", "json"}).out) ==
             nlohmann::json({{"runs", false}}));
  node.List({1});
  {
    ReadyGuard guard(node.Arguments());
    const auto text = status();
    BOOST_TEST(text.exit_code == 0);
    BOOST_TEST(Contains(text.out, "runs"));
    BOOST_TEST(Contains(text.out, "images"));
    const auto json = nlohmann::json::parse(status({"-o", "json"}).out);
    BOOST_TEST(json.at("runs") == true);
    BOOST_TEST(json.at("images") == 1);
    BOOST_TEST(json.at("holes").size() == 7);
    BOOST_TEST(guard.End().exit_code == 0);
  }
  const auto after = status();
  BOOST_TEST(after.exit_code == 1);
  BOOST_TEST(Contains(after.out, "does not run"));
  WriteFile(node.Status(), "[1, 2");
  const auto damaged = status();
  BOOST_TEST(damaged.exit_code == 3);
  BOOST_TEST(Contains(damaged.err, "can't be read"));
  for (const std::string hostile :
       {R"({"holes": 7})", R"({"holes": [1]})", R"({"runs": "\u001b[31m", "a": {"b": [1]}})"}) {
    WriteFile(node.Status(), hostile);
    const auto read = status();
    BOOST_TEST(read.exit_code < 4, read.err);
    BOOST_TEST(read.out.find('\x1b') == std::string::npos);
    BOOST_TEST(status({"-o", "json"}).exit_code < 4);
  }
}

BOOST_AUTO_TEST_CASE(commands_beside_it_ask_it) {
  Node node;
  node.List({1, 2});
  node.WriteRecord(1);
  node.runtime.Hang("Subscribe");
  ReadyGuard guard(node.Arguments());
  BOOST_TEST(node.Tenant(1) == "a");
  const auto forgot = node.Ask("forget", {"secret", "a/pull"});
  BOOST_TEST(forgot.exit_code == 0, forgot.err);
  BOOST_TEST(Becomes([&] { return node.Tenant(1) == "closed"; }));
  const auto observed = node.Ask("observe", {"--cri", node.runtime.endpoint()});
  BOOST_TEST(observed.exit_code == 0, observed.err);
  const auto removed =
      node.Ask("preload", {"remove", Tag(2), "--reason", "r", "--cri", node.runtime.endpoint()});
  BOOST_TEST(removed.exit_code == 0, removed.err);
  BOOST_TEST(Becomes([&] { return node.Tenant(2) == "closed"; }));
  const auto added =
      node.Ask("preload", {"add", Tag(2), "--reason", "r", "--cri", node.runtime.endpoint()});
  BOOST_TEST(added.exit_code == 0, added.err);
  BOOST_TEST(Becomes([&] { return node.Tenant(2) == "none"; }));
  BOOST_TEST(guard.End().exit_code == 0);
}

BOOST_AUTO_TEST_CASE(what_is_no_image_manager_is_not_protected) {
  Node node;
  node.List({1});
  std::filesystem::remove_all(node.kubelet() / "image_manager");
  WriteFile(node.kubelet() / "image_manager", "");
  // A kubelet that verifies nothing starts there.
  const auto file = node.Once();
  BOOST_TEST(file.exit_code == 0);
  BOOST_TEST(Contains(file.out, "none: " + (node.kubelet() / "image_manager").string()));
  std::filesystem::remove(node.kubelet() / "image_manager");
  std::filesystem::create_directory_symlink(node / "elsewhere", node.kubelet() / "image_manager");
  BOOST_TEST(node.Once().exit_code == 0);
  BOOST_TEST(!std::filesystem::exists(node / "elsewhere"));
  BOOST_TEST(!std::filesystem::exists(node.store()));
}

// The kubelet starts, as it would without a guard, and nobody may take that for protection.
BOOST_AUTO_TEST_CASE(where_others_decide_what_a_kubelet_finds_it_protects_nothing) {
  for (const std::string name : {"image_manager", "image_manager/pulled"}) {
    Node node;
    node.List({1});
    node.WriteRecord(1);
    const path metrics = node / "waybill.prom";
    const path way = node / "way";
    const path link = node.kubelet() / name;
    PutBehindASymlink(link, way);
    const std::string why =
        link.string() + " is a symlink, and others may write in " + way.string();

    const auto once = node.Once();
    BOOST_TEST(once.exit_code == 0, once.err);
    BOOST_TEST(once.out.starts_with("protection"), once.out);
    BOOST_TEST(Contains(once.out, "none: " + why));

    Manager manager(node / "manager");
    const Environment socket("NOTIFY_SOCKET", (node / "manager").string());
    ReadyGuard guard(node.Arguments({"--metrics-file", metrics.string()}));
    BOOST_TEST(guard.out().starts_with("no protection: " + why), guard.out());
    BOOST_TEST(manager.Hears("READY=1"));
    BOOST_TEST(guard.Says(why));
    auto seen = node.Seen();
    BOOST_TEST(seen.at("exit") == 1);
    BOOST_TEST(seen.at("runs") == true);
    BOOST_TEST(seen.at("notProtected") == why);
    const auto status = RunWaybill({"guard", "--status", "--kubelet-dir", node.kubelet().string()});
    BOOST_TEST(status.exit_code == 1);
    BOOST_TEST(status.out.starts_with("protection"), status.out);
    BOOST_TEST(Contains(ReadFile(metrics), "waybill_guard_not_protected 1\n"));
    BOOST_TEST(node.Tenant(1) == "a");
    BOOST_TEST(!std::filesystem::exists(node.store()));
    // One is enough.
    BOOST_TEST(RunCommand(node.Arguments()).exit_code == 3);

    // Mended under its eyes: what happened meanwhile is a gap.
    node.List({1, 2});
    std::filesystem::permissions(way, std::filesystem::perms::owner_all);
    BOOST_TEST(node.SeenBecomes("afterGap", [](const auto& gap) { return gap == true; }));
    BOOST_TEST(node.SeenBecomes("images", [](const auto& images) { return images == 2; }));
    BOOST_TEST(Becomes([&] { return node.Tenant(2) == "closed"; }));
    BOOST_TEST(node.Tenant(1) == "a");
    seen = node.Seen();
    BOOST_TEST(seen.at("exit") == 0);
    BOOST_TEST(seen.at("notProtected") == "");
    BOOST_TEST(
        Becomes([&] { return Contains(ReadFile(metrics), "waybill_guard_not_protected 0\n"); }));

    // And spoiled again.
    std::filesystem::permissions(way, std::filesystem::perms::all);
    BOOST_TEST(node.SeenBecomes("notProtected", [&](const auto& text) { return text == why; }));
    BOOST_TEST(Becomes([&] { return node.Seen().at("since") != seen.at("since"); }));
    BOOST_TEST(node.Seen().at("exit") == 1);
    BOOST_TEST(guard.End().exit_code == 0);
  }
}

// Not even that has a place.
BOOST_AUTO_TEST_CASE(a_guard_that_stands_aside_starts_the_kubelet_without_its_own_status) {
  Node node;
  node.List({1});
  node.WriteRecord(1);
  const path way = node / "way";
  const path link = node.kubelet() / "image_manager";
  PutBehindASymlink(link, way);
  WriteFile(node.kubelet() / "waybill-guard", "");
  auto once = node.Once();
  BOOST_TEST(once.exit_code == 0, once.err);
  BOOST_TEST(Contains(once.err, "it has no status"));
  // Nothing says that it stood aside, so it may have.
  std::filesystem::permissions(way, std::filesystem::perms::owner_all);
  for (int starts = 0; starts < 2; ++starts) {
    once = node.Once();
    BOOST_TEST(once.exit_code == 0, once.err);
    BOOST_TEST(node.Seen().at("afterGap") == true);
    BOOST_TEST(Contains(once.err, "each start counts as after a gap"));
  }
}

BOOST_AUTO_TEST_CASE(a_kubelet_directory_that_can_not_be_written) {
  if (!IsRoot()) return;
  Node node;
  node.List({1});
  node.WriteRecord(1);
  const std::string before = ReadFile(node.Pulled(1));
  Strings arguments = node.Arguments({"--once"});
  arguments.insert(arguments.begin(), node.kubelet().string());
  const auto result = InMounts(
      "mount --bind \"$1\" \"$1\" && mount -o remount,bind,ro \"$1\" && shift && exec \"$@\"",
      arguments);
  BOOST_TEST(result.exit_code == 3, result.err);
  BOOST_TEST(Contains(result.err, "Read-only"));
  BOOST_TEST(!std::filesystem::exists(node.store()));
  BOOST_TEST(ReadFile(node.Pulled(1)) == before);
  BOOST_TEST(node.Once().exit_code == 0);
  BOOST_TEST(node.Tenant(1) == "a");
}

// Where a kubelet without a guard starts, one with a guard starts, too.
BOOST_AUTO_TEST_CASE(a_guard_that_can_write_nothing_is_ready_and_protects_nothing) {
  if (!IsRoot()) return;
  const std::vector<std::pair<std::string, std::string>> ways = {
      {"mount --bind . . && mount -o remount,bind,ro \"$PWD\"",
       "mount -o remount,bind,rw \"$PWD\""},
      {"mount -t tmpfs -o size=8k,mode=0700 tmpfs . && cd \"$PWD\" && "
       "! cat /dev/zero >filler 2>/dev/null",
       "mount -o remount,size=8m \"$PWD\""}};
  for (const auto& [breaks, mends] : ways) {
    Node node;
    node.List({1});
    Strings arguments = {node.kubelet().string(), breaks, mends, (node / "out").string(),
                         node.store()};
    for (const std::string& argument : node.Arguments()) arguments.push_back(argument);
    const auto result = InMounts(R"(
cd "$1" && eval "$2" && cd "$1" || exit 99
mends=$3 out=$4 store=$5
shift 5
until_true() { for i in $(seq 300); do "$@" && return; sleep 0.1; done; echo "never: $*"; }
"$@" >"$out" & guard=$!
until_true grep -q ready "$out" 2>/dev/null
cat "$out"
eval "$mends"
until_true test -e image_manager/waybill-guard/status.json
kill $guard
wait $guard
echo "exit $?"
)",
                                 arguments);
    BOOST_TEST(result.out.starts_with("no protection: cannot "), result.out << result.err);
    BOOST_TEST(result.out.ends_with("\nready\nexit 0\n"), result.out << result.err);
  }
}

BOOST_AUTO_TEST_CASE(a_kubelet_directory_that_is_full) {
  if (!IsRoot()) return;
  Node node;
  std::vector<int> all;
  for (int i = 1; i <= 30; ++i) {
    node.WriteRecord(i);
    all.push_back(i);
  }
  node.List(all);
  BOOST_REQUIRE(node.Once().exit_code == 0);
  // On another file system than the store, too. What the kubelet has is all there afterwards, and
  // what it lost is written once there is room.
  Strings arguments = node.Arguments({"--once"});
  arguments.insert(arguments.begin(), node.kubelet().string());
  const auto result = InMounts(R"(
kubelet=$1
shift
cp -a "$kubelet" "$kubelet.copy"
mount -t tmpfs -o mode=0700,size=300k,nr_inodes=1000 tmpfs "$kubelet" || exit 99
cp -a "$kubelet.copy/image_manager" "$kubelet/"
for one in $(ls "$kubelet/image_manager/pulled" | head -n 20); do rm "$kubelet/image_manager/pulled/$one"; done
cat /dev/zero >"$kubelet/filler" 2>/dev/null
ls "$kubelet/image_manager/pulled" | wc -l
"$@"
echo "exit $?"
left=$(ls "$kubelet/image_manager/pulled" | wc -l)
[ "$left" -ge 10 ] && echo kept
grep -L '"kind"' "$kubelet"/image_manager/pulled/*
rm "$kubelet/filler"
"$@" >/dev/null
echo "exit $?"
ls "$kubelet/image_manager/pulled" | wc -l
)",
                               arguments);
  BOOST_TEST(result.out == "10\nexit 3\nkept\nexit 0\n30\n", result.out << result.err);
  BOOST_TEST(Contains(result.err, "No space left"));
}

BOOST_AUTO_TEST_CASE(a_replaced_image_manager_is_watched) {
  Node node;
  node.List({1});
  node.WriteRecord(1);
  ReadyGuard guard(node.Arguments({"--witness", (node / "witness").string()}));
  std::filesystem::rename(node.kubelet() / "image_manager", node / "moved");
  BOOST_TEST(Becomes([&] { return node.Tenant(1) == "a"; }));
  BOOST_TEST(Becomes([&] { return std::filesystem::exists(node.Marker("pulled")); }));
  node.WriteRecord(2, "b");
  BOOST_TEST(node.StoreHas(2));
  BOOST_TEST(node.SeenBecomes("runs", [](const auto& runs) { return runs == true; }));
  // pulled/ alone.
  std::filesystem::rename(node.kubelet() / "image_manager/pulled", node / "moved-pulled");
  BOOST_TEST(Becomes([&] { return node.Tenant(1) == "a"; }));
  BOOST_TEST(Becomes([&] { return std::filesystem::exists(node.Marker("pulled")); }));
  node.WriteRecord(3, "b");
  BOOST_TEST(node.StoreHas(3));
  const auto ended = guard.End();
  BOOST_TEST(ended.exit_code == 0, ended.err);
}

BOOST_AUTO_TEST_CASE(a_kubelet_that_runs_already) {
  Node node;
  node.List({1});
  node.WriteRecord(1);
  const auto warns = [&] {
    ReadyGuard guard(node.Arguments());
    const bool seen = node.Seen().at("kubeletRanBefore");
    const bool warned = guard.err().find("a kubelet runs already") != std::string::npos;
    BOOST_TEST(seen == warned);
    BOOST_TEST(guard.End().exit_code == 0);
    return warned;
  };
  BOOST_TEST(!warns());
  const auto play = [&](const std::string& root) {
    std::filesystem::create_directories(node / "bin");
    if (!std::filesystem::exists(node / "bin/kubelet")) {
      std::filesystem::copy_file("/bin/sh", node / "bin/kubelet");
    }
    return std::make_unique<RunningCommand>(Strings{(node / "bin/kubelet").string(), "-c",
                                                    "while :; do sleep 1; done", "sh", "--root-dir",
                                                    root});
  };
  const auto end = [](RunningCommand& command) {
    kill(command.pid(), SIGKILL);
    command.Wait();
  };
  {
    auto other = play((node / "elsewhere").string());
    BOOST_TEST(!warns());
    end(*other);
    auto here = play(node.kubelet().string());
    BOOST_TEST(warns());
    end(*here);
  }
  {
    const internal::Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::filesystem::create_directory(node.kubelet() / "pod-resources");
    const std::string at = (node.kubelet() / "pod-resources/kubelet.sock").string();
    at.copy(address.sun_path, sizeof(address.sun_path) - 1);
    BOOST_REQUIRE(
        bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
    // Left by one that ended.
    BOOST_TEST(!warns());
    BOOST_REQUIRE(listen(socket.get(), 0) == 0);
    // Its queue is full from the second on.
    for (int i = 0; i < 3; ++i) BOOST_TEST(warns());
  }
  BOOST_TEST(!warns());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
