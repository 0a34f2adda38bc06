// A guard that does one thing at a time, when it is told to: a test in another language plays a
// kubelet beside it (bindings/go/kubelet/guard_judge_test.go), and kills it.
//
//   waybill_guard_driver KUBELET-DIRECTORY STORE SHADOW
//
// Reads a JSON object a line from standard input, and answers with one: {} or {"error":"…"}, and
// the guard's status after it started or took a list.
//
//   {"do":"start","runtime":true,"images":[…],"maxAge":0}    as `crictl images -o json`; seconds
//   {"do":"events"}   {"do":"compare"}   {"do":"stop"}
//   {"do":"begin"}    draws a token; {"do":"list","images":[…]} hands over a list made since
//   {"do":"time","seconds":1767225600,"boot":1,"bootSeconds":1000}    goes before "start", too;
//     "mayHaveHad":[…]: names of images for which the node may have had credentials in this life
//   {"do":"lose","row":n}    while no guard runs: a row of kubelet-files does not verify any more
//
// "dieAfter":n  ends the process at once after so many files or folders were synced. "waitAfter":n
// says {"waits":true} then, and goes on at the next line, which has the life of the kubelet.
//
// Each has "life", which tells one kubelet from the next; 0: none runs.
//
// SHADOW gets what is on the disk: `content/<inode>-<time of change>` of each synced file, and
// `<folder>.json` of each synced folder, {"<name>":"<inode>-<time of change>"}. What is in neither
// is lost when the power fails.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "guard/guard.h"
#include "runtime/files/documents.h"
#include "tests/support/damage.h"
#include "tests/support/raw_lmdb.h"
#include "waybill/values.h"

namespace waybill::guard {
namespace {

using Json = nlohmann::json;

std::string KeyOf(const std::filesystem::path& path) {
  struct stat st {};
  if (::lstat(path.c_str(), &st) != 0) return {};
  return std::to_string(st.st_ino) + "-" + std::to_string(st.st_mtim.tv_sec) + "." +
         std::to_string(st.st_mtim.tv_nsec);
}

void Replace(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::path fresh = path;
  fresh += ".new";
  std::ofstream(fresh, std::ios::binary) << content;
  std::filesystem::rename(fresh, path);
}

void NoteSynced(const std::filesystem::path& shadow, const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    Json entries = Json::object();
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      entries[entry.path().filename().string()] = KeyOf(entry.path());
    }
    Replace(shadow / (path.filename().string() + ".json"), entries.dump());
    return;
  }
  std::ifstream file(path, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  const std::string key = KeyOf(path);
  if (!key.empty()) Replace(shadow / "content" / key, content);
}

// Turns a bit of one of the rows of kubelet-files, as a bad disk does.
void LoseRow(const std::filesystem::path& store, std::size_t row) {
  std::vector<std::string> rows;
  {
    const testing::RawStore raw(store, MDB_RDONLY | MDB_NOLOCK);
    const testing::RawTxn txn(raw, MDB_RDONLY);
    txn.ForEach(txn.Table("kubelet-files--1"),
                [&](MDB_val, MDB_val value) { rows.emplace_back(testing::ToText(value)); });
  }
  if (rows.empty()) return;
  std::fstream file(store / "data.mdb", std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  for (const std::size_t place : testing::PlacesOf(bytes, rows[row % rows.size()])) {
    testing::FlipBit(bytes, place * 8 + 100);
    file.seekp(static_cast<std::streamoff>(place));
    file.write(&bytes[place], 16);
  }
}

class Driver {
 public:
  Driver(const std::filesystem::path& kubelet, const std::filesystem::path& store,
         const std::filesystem::path& shadow)
      : kubelet_(kubelet), store_(store), shadow_(shadow) {
    std::filesystem::create_directories(shadow / "content");
  }

  Json Do(const Json& order) {
    const std::string what = order.value("do", "");
    life_ = order.value("life", life_);
    die_after_ = order.value("dieAfter", 0);
    wait_after_ = order.value("waitAfter", 0);
    if (what == "time") {
      now_ = {order.at("seconds").get<std::int64_t>(), 0};
      boot_.boot_id = {static_cast<std::uint8_t>(order.at("boot").get<int>())};
      boot_.nanoseconds = order.at("bootSeconds").get<std::int64_t>() * 1'000'000'000;
      may_have_had_ = order.value("mayHaveHad", may_have_had_);
      return Json::object();
    }
    if (what == "start") return Start(order);
    if (what == "lose") {
      guard_.reset();
      LoseRow(store_, order.at("row"));
      return Json::object();
    }
    if (!guard_) return {{"error", "no guard runs"}};
    if (what == "events") return Answer(guard_->Again());
    if (what == "compare") return Answer(guard_->Compare());
    if (what == "begin") {
      auto token = guard_->BeginList();
      if (token) token_ = *token;
      return token ? Json::object() : Answer(token.error());
    }
    if (what == "list") {
      auto taken = guard_->TakeList(token_, Images(order));
      return taken ? WithStatus() : Answer(taken);
    }
    if (what == "stop") {
      auto stopped = guard_->Stop();
      guard_.reset();
      return Answer(stopped);
    }
    return {{"error", "what is " + what + "?"}};
  }

 private:
  static Result<std::vector<ListedImage>> Images(const Json& order) {
    return DecodeImageList(Json{{"images", order.at("images")}}.dump());
  }
  static Json Answer(const Result<void>& result) {
    if (result) return Json::object();
    return {{"error", result.error().ToString()}};
  }
  Json WithStatus() {
    auto status = guard_->StatusJson();
    if (!status) return Answer(status.error());
    return {{"status", Json::parse(*status)}, {"log", std::exchange(log_, Json::array())}};
  }

  void Wait() {
    std::cout << R"({"waits":true})" << std::endl;
    std::string line;
    if (std::getline(std::cin, line)) life_ = Json::parse(line).at("life");
  }

  Json Start(const Json& order) {
    guard_.reset();
    GuardOptions options;
    options.kubelet_directory = kubelet_;
    options.store.directory = store_;
    options.store.map_bytes = std::uint64_t{64} << 20U;
    options.store.clock = [this] { return now_; };
    options.store.boot_clock = [this] { return boot_; };
    options.store.evidence.short_names = ShortNames::kDockerHub;
    options.store.max_age = std::chrono::seconds(order.value("maxAge", 0));
    options.needs_runtime = order.value("runtime", true);
    if (options.needs_runtime) options.list_images = [order] { return Images(order); };
    options.kubelet = [this]() -> std::optional<RunningKubelet> {
      return life_ == 0 ? std::nullopt
                        : std::optional(RunningKubelet{.life = std::to_string(life_)});
    };
    options.node_had_none = [this](const std::string& name) {
      return life_ != 0 && !may_have_had_.contains(name);
    };
    options.log = [this](LogLevel, const std::string& text) { log_.push_back(text); };
    options.synced = [this](const std::filesystem::path& path) {
      NoteSynced(shadow_, path);
      if (die_after_ > 0 && --die_after_ == 0) ::_exit(9);
      if (wait_after_ > 0 && --wait_after_ == 0) Wait();
    };
    auto guard = Guard::Start(std::move(options));
    if (!guard) return Answer(guard.error());
    guard_ = *std::move(guard);
    return WithStatus();
  }

  std::filesystem::path kubelet_;
  std::filesystem::path store_;
  std::filesystem::path shadow_;
  Timestamp now_ = {1767225600, 0};
  BootTime boot_ = {.boot_id = {1}, .nanoseconds = 1'000'000'000'000};
  int die_after_ = 0;
  int wait_after_ = 0;
  std::set<std::string> may_have_had_;
  int life_ = 0;  // of the kubelet that runs; 0: none does
  Json log_ = Json::array();
  ListToken token_;
  std::unique_ptr<Guard> guard_;
};

}  // namespace
}  // namespace waybill::guard

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  waybill::guard::Driver driver(argv[1], argv[2], argv[3]);
  for (std::string line; std::getline(std::cin, line);) {
    nlohmann::json answer;
    try {
      answer = driver.Do(nlohmann::json::parse(line));
    } catch (const std::exception& error) {
      answer = {{"error", error.what()}};
    }
    std::cout << answer.dump() << std::endl;
  }
  return 0;
}
