// Streaming requests: what a token opens, once; what is refused; what opening makes void. The cases
// of the kubelet's request cache have their counterpart here (k8s.io/cri-streaming, v0.36,
// request_cache_test.go).

#include <sys/resource.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "store/base/metrics.h"
#include "store/base/options.h"
#include "store/base/words.h"
#include "store/calls/streaming_store.h"
#include "store/disk/commit_mark.h"
#include "store/maintenance.h"
#include "store/opening/open_store.h"
#include "store/streams/streaming_row.h"
#include "tests/support/expect_error.h"
#include "tests/support/inspect_path.h"
#include "tests/support/node_store.h"
#include "tests/support/store_fixture.h"
#include "tests/support/streaming_scene.h"
#include "tests/support/versions.h"
#include "waybill/limits.h"
#include "waybill/values.h"

namespace waybill::testing {

BOOST_AUTO_TEST_SUITE(streaming)

namespace {

constexpr std::size_t kMaxInFlight = 1000;

void CheckNotFound(StreamingScene& scene, const std::string& token,
                   StreamKind kind = StreamKind::kExec) {
  const auto counters = scene->GetCounters();
  const Error request = ExpectError(scene->Consume(token, kind), ErrorCode::kNotFound);
  // One and the same text, whatever the reason.
  static const std::string text = request.ToString();
  BOOST_TEST(request.ToString() == text);
  BOOST_TEST(scene->GetCounters().open == counters.open);
}

void CheckOpens(StreamingScene& scene, const std::string& token, const StreamRequest& expected) {
  BOOST_TEST((Must(scene->Consume(token, expected.kind)) == expected));
}

// Changes each row, and makes every checksum right again. Returns how many there were.
std::size_t RewriteRows(const StreamingScene& scene,
                        const std::function<void(internal::StreamingRow&)>& change) {
  NodeStoreOptions options{.directory = scene.directory(), .witness = Witness::Remembered()};
  options.clock = scene.Options().clock;
  options.boot_clock = scene.Options().boot_clock;
  OpeningReport report;
  auto store = Must(internal::OpenAsOwner(options, internal::OnDamage::kRecover,
                                          {&internal::StreamingProduct()}, report));
  std::size_t rows = 0;
  Must(internal::CommitAtOpening(options, store, [&](internal::StoreTxn& txn) -> Result<void> {
    std::vector<std::pair<internal::Key16, std::vector<std::uint8_t>>> changed;
    auto walked = txn.ForEach(internal::Table::kStreamingTokens,
                              [&](const internal::Key16& key, internal::Payload payload) {
                                auto row = internal::DecodeStreamingRow(payload).value();
                                change(row);
                                changed.emplace_back(key, internal::EncodeStreamingRow(row));
                                return Result<bool>(true);
                              });
    if (!walked) return walked;
    rows = changed.size();
    for (const auto& [key, payload] : changed) {
      auto put = txn.Put(internal::Table::kStreamingTokens, key, payload);
      if (!put) return put;
    }
    return {};
  }));
  if (store.witness) Must(store.witness->Sync());
  return rows;
}

std::string StoredBytes(const StreamingScene& scene) {
  return ReadFile(scene.directory() / "data.mdb");
}

}  // namespace

// TestInsert.
BOOST_FIXTURE_TEST_CASE(as_many_are_open_as_may_be, Streams) {
  scene.Start();
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < kMaxInFlight; ++i) {
    tokens.push_back(scene.Prepare(i));
    BOOST_TEST(tokens.back().size() == 32U);
    BOOST_TEST((tokens.back().find_first_not_of("0123456789abcdef") == std::string::npos));
    BOOST_TEST(scene->GetCounters().open == i + 1);
  }
  BOOST_TEST(std::set(tokens.begin(), tokens.end()).size() == kMaxInFlight);
  CheckOpens(scene, tokens.back(), NumberedExec(kMaxInFlight - 1));
  tokens.back() = scene.Prepare(kMaxInFlight);

  scene.clock().AdvanceSeconds(7);
  const Error full = ExpectError(scene->Prepare(NumberedExec(1)), ErrorCode::kLimitExceeded);
  // The oldest is good for 60 s, up to and including that moment.
  BOOST_TEST((full.retry_after == std::chrono::seconds(53) + std::chrono::nanoseconds(1)));
  BOOST_TEST(full.message.find("1000 streaming requests") != std::string::npos);
  BOOST_TEST(scene->GetCounters().open == kMaxInFlight);
  BOOST_TEST(scene->GetCounters().prepare_full == 1U);
  CheckOpens(scene, tokens.front(), NumberedExec(0));
  scene.Prepare();
}

// With fewer allowed than wait, several must expire first.
BOOST_FIXTURE_TEST_CASE(a_full_store_says_when_there_is_room, KeptStreams) {
  scene.Start();
  for (std::size_t i = 0; i < 5; ++i) {
    scene.Prepare(i);
    scene.clock().AdvanceSeconds(10);
  }
  scene.Stop();
  StreamingOptions options = scene.Options();
  options.max_open = 2;
  scene.Start(options);
  // They expire 10, 20, 30, 40 and 50 s from now; room is when the fourth has.
  for (const std::int64_t passed : {0, 15, 10, 13}) {
    scene.clock().AdvanceSeconds(passed);
    const auto full = scene->Prepare(NumberedExec(9));
    BOOST_TEST_REQUIRE(!full);
    const BootTime now = scene.clock().Boot();
    scene.clock().AdvanceSeconds(0);
    const auto left =
        std::chrono::nanoseconds(1'000'050'000'000'000 + 40'000'000'000 - now.nanoseconds + 1);
    BOOST_TEST((full.error().retry_after == left), full.error().retry_after.count());
  }
  scene.clock().AdvanceSeconds(3);
  scene.Prepare(9);
}

// TestConsume.
BOOST_FIXTURE_TEST_CASE(a_token_opens_one_stream_once, Streams) {
  scene.Start();
  const std::string first = scene.Prepare(1);
  const std::string second = scene.Prepare(2);
  CheckOpens(scene, second, NumberedExec(2));
  CheckOpens(scene, first, NumberedExec(1));
  BOOST_TEST(scene->GetCounters().open == 0U);
  CheckNotFound(scene, first);   // used
  CheckNotFound(scene, second);  // used
  CheckNotFound(scene, "fooBAR");
  CheckNotFound(scene, "");
  CheckNotFound(scene, std::string(32, '0'));
  CheckNotFound(scene, std::string(std::size_t{1} << 20, 'a'));
  const std::string third = scene.Prepare(3);
  std::string upper = third;
  std::transform(upper.begin(), upper.end(), upper.begin(), ::toupper);
  if (upper != third) CheckNotFound(scene, upper);  // one spelling only
  for (const std::string& other : {third + " ", third + "0", third.substr(1), third + '\0'}) {
    CheckNotFound(scene, other);
  }
  scene.clock().AdvanceSeconds(120);
  CheckNotFound(scene, third);  // expired
  const StreamingCounters counters = scene->GetCounters();
  BOOST_TEST(counters.prepared == 3U);
  BOOST_TEST(counters.consumed == 2U);
  BOOST_TEST(counters.refused_expired == 1U);
  BOOST_TEST(counters.refused_unknown >= 9U);
}

// As the kubelet's cache: at the very end it is still good.
BOOST_FIXTURE_TEST_CASE(a_token_lives_as_long_as_it_is_said_to, Streams) {
  StreamingOptions options = scene.Options();
  options.time_to_live = std::chrono::seconds(5);
  scene.Start(options);
  const std::string one = scene.Prepare(1);
  const std::string other = scene.Prepare(2);
  scene.clock().AdvanceSeconds(5);
  CheckOpens(scene, one, NumberedExec(1));
  scene.clock().AdvanceSeconds(1);
  CheckNotFound(scene, other);
  // Whatever the wall clock does.
  const std::string third = scene.Prepare(3);
  scene.clock().JumpSeconds(-100'000);
  const std::string fourth = scene.Prepare(4);
  scene.clock().JumpSeconds(10'000'000);
  CheckOpens(scene, third, NumberedExec(3));
  CheckOpens(scene, fourth, NumberedExec(4));
}

BOOST_FIXTURE_TEST_CASE(a_token_of_another_kind_stays_good_for_its_own, Streams) {
  scene.Start();
  const std::string token = scene.Prepare(1);
  const std::string before = StoredBytes(scene);
  CheckNotFound(scene, token, StreamKind::kAttach);
  CheckNotFound(scene, token, StreamKind::kPortForward);
  CheckNotFound(scene, std::string(32, 'f'));
  BOOST_TEST((StoredBytes(scene) == before));  // no refusal writes
  BOOST_TEST(scene->GetCounters().refused_kind == 2U);
  CheckOpens(scene, token, NumberedExec(1));
}

// TestValidateExecAttachRequest, and what the API server asks of an exec.
BOOST_AUTO_TEST_CASE(requests_are_checked) {
  const auto code = [](const StreamRequest& request) -> std::optional<ErrorCode> {
    const auto checked = CheckStreamRequest(request);
    if (checked) return std::nullopt;
    return checked.error().code;
  };
  // Every choice of streams: the kubelet binding has the real streaming server judge them.
  const auto wrong = [&](StreamRequest request, auto change) {
    change(request);
    return code(request) == ErrorCode::kInvalidArgument;
  };
  const auto exec = NumberedExec(1);
  const auto forward = SomePortForward();
  BOOST_TEST(wrong(exec, [](auto& r) { r.container_id.clear(); }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.container_id = std::string("a\0b", 3); }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.command.clear(); }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.command = {"", "x"}; }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.command = {"sh", std::string("a\0b", 3)}; }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.container_id = "\xff"; }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.command = {"sh", "\xc3"}; }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.pod_sandbox_id = "s"; }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.ports = {80}; }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.kind = static_cast<StreamKind>(0); }));
  BOOST_TEST(wrong(exec, [](auto& r) { r.kind = static_cast<StreamKind>(4); }));
  BOOST_TEST(wrong(SomeAttach(), [](auto& r) { r.command = {"sh"}; }));
  BOOST_TEST(wrong(forward, [](auto& r) { r.pod_sandbox_id.clear(); }));
  BOOST_TEST(wrong(forward, [](auto& r) { r.ports.push_back(0); }));
  BOOST_TEST(wrong(forward, [](auto& r) { r.container_id = "c"; }));
  BOOST_TEST(wrong(forward, [](auto& r) { r.std_in = true; }));
  BOOST_TEST(wrong(forward, [](auto& r) { r.tty = true; }));
  BOOST_TEST(wrong(forward, [](auto& r) { r.command = {"sh"}; }));
  const auto too_large = [&](StreamRequest request, auto change) {
    change(request);
    return code(request) == ErrorCode::kLimitExceeded;
  };
  BOOST_TEST(
      too_large(exec, [](auto& r) { r.container_id.assign(kMaxContainerIdBytes + 1, 'c'); }));
  BOOST_TEST(too_large(exec, [](auto& r) { r.command.resize(kMaxCommandArguments + 1); }));
  BOOST_TEST(too_large(exec, [](auto& r) { r.command.emplace_back(kMaxCommandBytes, 'x'); }));
  BOOST_TEST(too_large(forward, [](auto& r) { r.ports.assign(kMaxRequestPorts + 1, 80); }));

  // The largest of all is kept, and given back.
  StreamingScene scene;
  scene.Start();
  StreamRequest largest = exec;
  largest.container_id.assign(kMaxContainerIdBytes, 'c');
  largest.command.assign(kMaxCommandArguments,
                         std::string(kMaxCommandBytes / kMaxCommandArguments, 'x'));
  CheckOpens(scene, Must(scene->Prepare(largest)), largest);
  BOOST_TEST(!scene->Prepare({}));
  BOOST_TEST(scene->GetCounters().prepare_invalid == 1U);
}

BOOST_FIXTURE_TEST_CASE(options_are_checked, Streams) {
  const auto refused = [&](auto change) {
    StreamingOptions options = scene.Options();
    change(options);
    const auto store = StreamingStore::Open(options);
    return !store && store.error().code == ErrorCode::kInvalidArgument;
  };
  BOOST_TEST(refused([](auto& o) { o.time_to_live = std::chrono::milliseconds(999); }));
  BOOST_TEST(refused([](auto& o) { o.time_to_live = std::chrono::nanoseconds(-1); }));
  BOOST_TEST(refused([](auto& o) { o.time_to_live = std::chrono::minutes(61); }));
  BOOST_TEST(refused([](auto& o) { o.max_open = 0; }));
  BOOST_TEST(refused([](auto& o) { o.max_open = kMaxOpenStreams + 1; }));
  BOOST_TEST(refused([](auto& o) { o.directory.clear(); }));
  BOOST_TEST(!std::filesystem::exists(scene.directory()));
}

// --- What is at rest -----------------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(neither_token_nor_command_is_at_rest, Streams) {
  scene.Start();
  StreamRequest request = NumberedExec(1);
  request.container_id = "container-of-tenant-a";
  request.command = {"mysql", "--password=hunter2-and-more"};
  const std::string token = Must(scene->Prepare(request));
  scene.Stop();
  std::array<std::uint8_t, 16> raw{};
  for (std::size_t i = 0; i < raw.size(); ++i) {
    raw[i] = static_cast<std::uint8_t>(std::stoi(token.substr(2 * i, 2), nullptr, 16));
  }
  const std::string raw_token(raw.begin(), raw.end());
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(scene.scratch())) {
    if (!entry.is_regular_file()) continue;
    ++files;
    const std::string content = ReadFile(entry.path());
    for (const std::string& secret : {token, raw_token, std::string("hunter2"),
                                      std::string("mysql"), std::string("tenant-a")}) {
      BOOST_TEST((content.find(secret) == std::string::npos), entry.path() << " has " << secret);
    }
  }
  BOOST_TEST(files >= 3U);
}

BOOST_AUTO_TEST_CASE(what_was_changed_on_the_disk_opens_nothing) {
  // A row that says that it lives longer, with checksums that are right.
  StreamingScene scene(true);
  scene.Start();
  const std::string token = scene.Prepare(1);
  scene.Stop();
  const auto live_longer = [](internal::StreamingRow& row) {
    row.expires += std::int64_t{3600} * 1'000'000'000;
  };
  BOOST_TEST(RewriteRows(scene, live_longer) == 1U);
  scene.Start();
  BOOST_TEST(scene->report().open == 1U);
  scene.clock().AdvanceSeconds(100);
  const Error request = ExpectError(scene->Consume(token, StreamKind::kExec), ErrorCode::kDamaged);
  BOOST_TEST(request.message.find(token) == std::string::npos);
  BOOST_TEST(scene->GetCounters().consume_failed == 1U);
}

// --- Opening -------------------------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(another_boot_makes_tokens_void_always) {
  for (const bool continues : {false, true}) {
    StreamingScene scene(true);
    scene.Start();
    const std::string token = scene.Prepare(1);
    scene.Stop();
    scene.clock().Reboot();
    // The new boot's time may have come as far as the old one's.
    scene.clock().AdvanceSeconds(1'000'010);
    continues ? scene.Continue() : scene.Start();
    BOOST_TEST(scene->report().voided == 1U);
    CheckNotFound(scene, token);
  }
}

BOOST_FIXTURE_TEST_CASE(a_boot_that_is_not_known_makes_tokens_void, KeptStreams) {
  scene.clock().ForgetBootId();
  scene.Start();
  const std::string token = scene.Prepare(1);
  CheckOpens(scene, scene.Prepare(2), NumberedExec(2));
  scene.Restart();
  BOOST_TEST(scene->report().voided == 1U);
  CheckNotFound(scene, token);
}

// What a clock of the caller's says can spoil nothing.
BOOST_FIXTURE_TEST_CASE(an_impossible_time_is_refused, KeptStreams) {
  BootTime now = scene.clock().Boot();
  StreamingOptions options = scene.Options();
  options.boot_clock = [&now] { return now; };
  scene.Start(options);
  const std::string token = scene.Prepare(1);
  const std::int64_t before = now.nanoseconds;
  for (const std::int64_t time : {std::int64_t{-1}, std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max()}) {
    now.nanoseconds = time;
    BOOST_TEST(!scene->Prepare(NumberedExec(2)));
    CheckNotFound(scene, token);
  }
  now.nanoseconds = before;
  BOOST_TEST(Must(scene->Verify()).sound);
  CheckOpens(scene, token, NumberedExec(1));
}

// Otherwise each would open twice.
BOOST_AUTO_TEST_CASE(tokens_open_nothing_in_a_copy) {
  for (int with = 0; with < 3; ++with) {
    for (const bool copy_first : {true, false}) {
      StreamingScene scene(true);
      scene.Start();
      const std::string token = scene.Prepare(1);
      scene.Stop();
      const std::filesystem::path copy = scene.scratch() / "copy";
      std::filesystem::copy(scene.directory(), copy, std::filesystem::copy_options::recursive);
      StreamingOptions options = scene.Options();
      options.directory = copy;
      options.witness = with == 0   ? Witness::Remembered()
                        : with == 1 ? Witness::None()
                                    : Witness::At(scene.scratch() / "own");
      options.continues = true;
      const auto consume_copy = [&] {
        const auto opened = Must(StreamingStore::Open(options));
        BOOST_TEST(opened->report().open == 0U);
        BOOST_TEST(!opened->Consume(token, StreamKind::kExec));
        Must(opened->Close());
      };
      if (copy_first) consume_copy();
      scene.Continue();
      CheckOpens(scene, token, NumberedExec(1));
      scene.Stop();
      if (!copy_first) consume_copy();
    }
  }
}

// Each combination of older, newer and removed files, in one boot: a token opens once. What is left
// is an older copy of all that tells of it, and of that the witness tells.
// A limit: "Streaming tokens that are kept over a restart"
BOOST_AUTO_TEST_CASE(no_older_data_opens_a_used_token_without_its_mark) {
  for (const auto& [twice, has_witness, continues] :
       {std::tuple(false, false, false), std::tuple(true, false, false),
        std::tuple(false, true, false), std::tuple(false, false, true),
        std::tuple(false, true, true)}) {
    std::size_t opened = 0;
    for (int combination = 0; combination < 27; ++combination) {
      StreamingScene scene(true);
      StreamingOptions options = scene.Options();
      if (!has_witness) options.witness = Witness::None();
      options.flushes_twice = twice;
      scene.Start(options);
      const std::string token = scene.Prepare(1);
      scene.Stop();
      const std::vector<std::string> names = {"data.mdb", "lock.mdb", "commit.mark"};
      std::vector<std::string> older;
      for (const std::string& name : names) older.push_back(ReadFile(scene.directory() / name));
      scene.Start(options);
      BOOST_TEST(scene->report().open == 1U);
      CheckOpens(scene, token, NumberedExec(1));
      scene.Stop();
      std::vector<int> states;
      for (int i = 0, rest = combination; i < 3; ++i, rest /= 3) {
        const auto at = static_cast<std::size_t>(i);
        states.push_back(rest % 3);
        if (states.back() == 1) WriteFile(scene.directory() / names[at], older[at]);
        if (states.back() == 2) std::filesystem::remove(scene.directory() / names[at]);
      }
      options.continues = continues;
      auto store = StreamingStore::Open(options);
      const bool opens = store && (*store)->Consume(token, StreamKind::kExec).has_value();
      BOOST_TEST(opens == (!has_witness && states[0] == 1 && states[2] == 1),
                 "data.mdb " << states[0] << ", lock.mdb " << states[1] << ", commit.mark "
                             << states[2] << (continues ? ", continued" : ""));
      if (states[0] == 1 && !opens) {
        BOOST_TEST((*store)->report().voided == 1U);
        BOOST_TEST(!(*store)->report().void_reason.empty());
        BOOST_TEST(!(*store)->report().recovery.distrustful);
        // What is prepared from now on is sound.
        const std::string fresh = Must((*store)->Prepare(NumberedExec(3)));
        Must((*store)->Close());
        store->reset();
        scene.Start(options);
        CheckOpens(scene, fresh, NumberedExec(3));
      }
      opened += opens ? 1 : 0;
    }
    BOOST_TEST(opened == (has_witness ? 0U : 3U));
  }
}

// An opening without a mark ends before its commit: it leaves no mark that the next one believes.
BOOST_FIXTURE_TEST_CASE(an_opening_that_fails_makes_no_mark, KeptStreams) {
  StreamingOptions options = scene.Options();
  options.witness = Witness::None();
  scene.Start(options);
  const std::string token = scene.Prepare(1);
  scene.Stop();
  const std::string older = ReadFile(scene.directory() / "data.mdb");
  scene.Start(options);
  CheckOpens(scene, token, NumberedExec(1));
  scene.Stop();
  WriteFile(scene.directory() / "data.mdb", older);
  const std::filesystem::path mark = scene.directory() / "commit.mark";
  for (const std::string& content : {std::string(), std::string(512, 'x')}) {
    std::filesystem::remove(mark);
    if (!content.empty()) WriteFile(mark, content);
    // Writes to data.mdb fail behind its first page.
    struct rlimit limit {};
    BOOST_REQUIRE(getrlimit(RLIMIT_FSIZE, &limit) == 0);
    const auto handler = std::signal(SIGXFSZ, SIG_IGN);
    struct rlimit small = limit;
    small.rlim_cur = 4096;
    BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    const bool opened = StreamingStore::Open(options).has_value();
    BOOST_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    std::signal(SIGXFSZ, handler);
    BOOST_TEST(!opened);
    WriteFile(scene.directory() / "data.mdb", older);
    const auto read = Must(internal::ReadCommitMark(scene.directory()));
    BOOST_TEST(!read.line.has_value());
  }
  scene.Start(options);
  CheckNotFound(scene, token);
}

// Changes bytes of the pages that have this text in them.
void SpoilPagesWith(const std::filesystem::path& file, std::string_view text) {
  constexpr std::size_t kPage = 4096;
  std::string bytes = ReadFile(file);
  std::size_t spoiled = 0;
  for (std::size_t page = 0; page + kPage <= bytes.size(); page += kPage) {
    if (std::string_view(bytes).substr(page, kPage).find(text) == std::string_view::npos) continue;
    for (std::size_t at = page; at < page + kPage; at += 16) bytes[at] ^= 0x55;
    ++spoiled;
  }
  BOOST_TEST_REQUIRE(spoiled > 0U);
  WriteFile(file, bytes);
}

// It may be a node's, which must not be replaced. Of streams nothing is worth keeping.
BOOST_AUTO_TEST_CASE(what_does_not_say_that_it_is_for_streams_is_left_alone) {
  const std::vector<std::function<void(const std::filesystem::path&)>> damages = {
      [](const auto& data) { std::filesystem::remove(data); },
      [](const auto& data) { WriteFile(data, ""); },
      [](const auto& data) {
        WriteFile(data, std::string(8192, '\0') + ReadFile(data).substr(8192));
      },
      [](const auto& data) { SpoilPagesWith(data, "waybill-identity"); },
      [](const auto& data) { WriteFile(data, std::string(ReadFile(data).size(), '\0')); }};
  for (std::size_t i = 0; i < damages.size(); ++i) {
    for (const bool is_node : {true, false}) {
      StreamingScene scene(true);
      ScratchStore images(Mode::kStrict);
      StreamingOptions options = scene.Options();
      if (is_node) {
        Must(images->RecordPullIntent({.image = "docker.io/library/nginx"}));
        options.directory = images.directory();
        options.witness = Witness::None();
      } else {
        scene.Start();
        scene.Prepare(1);
        scene.Stop();
      }
      images.Stop();
      const std::filesystem::path data = options.directory / "data.mdb";
      damages[i](data);
      const bool is_there = std::filesystem::exists(data);
      const std::string before = is_there ? ReadFile(data) : "";
      BOOST_TEST_CONTEXT("damage " << i << (is_node ? " of a node's store" : "")) {
        for (const bool continues : {false, true}) {
          options.continues = continues;
          ExpectError(StreamingStore::Open(options), ErrorCode::kDamaged);
        }
        BOOST_TEST(std::filesystem::exists(data) == is_there);
        if (is_there) BOOST_TEST((ReadFile(data) == before));
        if (is_node) {
          images.Start();
          BOOST_TEST(images->recovery_report().distrustful);
        } else {
          std::filesystem::remove_all(options.directory);
          scene.Start();
          CheckOpens(scene, scene.Prepare(2), NumberedExec(2));
        }
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(a_restore_puts_no_token_back, KeptStreams) {
  scene.Start();
  const std::string token = scene.Prepare(1);
  scene.Stop();
  // Down makes a backup with the token in it.
  Must(MigrateStore({.directory = scene.directory(),
                     .to = 1,
                     .accept_loss = true,
                     .clock = scene.clock().AsClock(),
                     .boot_clock = scene.clock().AsBootClock()}));
  const auto backups = Must(BackupsOf(scene.directory()));
  BOOST_REQUIRE(backups.size() == 1U);
  Must(RestoreStore({.directory = scene.directory(),
                     .backup = backups[0].path,
                     .clock = scene.clock().AsClock(),
                     .boot_clock = scene.clock().AsBootClock()}));
  // Not even before it is opened.
  BOOST_TEST(StateOf(scene.directory()).digest(internal::Table::kStreamingTokens).count == 0U);
  scene.Start();
  BOOST_TEST(scene->report().open == 0U);
  BOOST_TEST(scene->report().void_reason.find("put back from") != std::string::npos);
  CheckNotFound(scene, token);
  BOOST_TEST(Must(scene->Verify()).sound);
}

// tests/fixtures/golden/README.md. WAYBILL_REWRITE=1 makes it anew.
BOOST_AUTO_TEST_CASE(the_golden_store_opens) {
  const std::filesystem::path golden =
      std::filesystem::path(WAYBILL_FIXTURES) / "golden/v2/streaming";
  const std::vector<StreamRequest> expected = {
      {.kind = StreamKind::kExec,
       .container_id = "8d0f3c1e5b7a",
       .command = {"sh", "-c", "echo 'golden' \u00fc"},
       .std_in = true,
       .std_out = true,
       .tty = true},
      {.kind = StreamKind::kAttach,
       .container_id = "8d0f3c1e5b7a",
       .std_out = true,
       .std_err = true},
      {.kind = StreamKind::kPortForward, .pod_sandbox_id = "77aa", .ports = {80, 65535}}};
  if (std::getenv("WAYBILL_REWRITE") != nullptr) {
    StreamingScene scene(true);
    scene.Start();
    std::string tokens;
    for (const StreamRequest& one : expected) tokens += Must(scene->Prepare(one)) + '\n';
    const std::string used = scene.Prepare();
    Must(scene->Consume(used, StreamKind::kExec));
    scene.Stop();
    std::filesystem::create_directories(golden);
    WriteFile(golden / "data.mdb", ReadFile(scene.directory() / "data.mdb"));
    WriteFile(golden / "tokens", tokens + used + '\n');
  }
  StreamingScene scene(true);
  std::filesystem::create_directory(scene.directory());
  std::filesystem::permissions(scene.directory(), std::filesystem::perms::owner_all);
  std::filesystem::copy_file(golden / "data.mdb", scene.directory() / "data.mdb");
  // Without the mark that lay beside it every token would be void.
  const internal::Inspection found = InspectPath(scene.directory() / "data.mdb");
  const std::uint64_t sequence = found.state.value().commit_sequence;
  Must(internal::WriteCommitMark(scene.directory(),
                                 internal::ShutAt(found.identity.value().uuid, sequence)));
  StreamingOptions options = scene.Options();
  options.witness = Witness::None();
  scene.Start(options);
  BOOST_TEST(scene->report().open == 3U);
  std::ifstream tokens(golden / "tokens");
  std::string token;
  for (const StreamRequest& one : expected) {
    BOOST_REQUIRE(tokens >> token);
    BOOST_TEST((Must(scene->Consume(token, one.kind)) == one));
  }
  BOOST_REQUIRE(tokens >> token);
  CheckNotFound(scene, token);  // used when it was made
}

// --- Beside other features -----------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_nodes_store_and_one_of_streams_are_kept_apart, Streams) {
  scene.Start();
  scene.Stop();
  NodeStoreOptions node{.directory = scene.directory(), .witness = Witness::Remembered()};
  const std::string before = StoredBytes(scene);
  for (const Mode rules : kBothRules) {
    node.rules = rules;
    ExpectError(NodeStore::Open(node), ErrorCode::kInvalidArgument);
  }
  ExpectError(NodeStore::Observe({.directory = scene.directory()}), ErrorCode::kInvalidArgument);
  BOOST_TEST((StoredBytes(scene) == before));

  ScratchStore images(Mode::kStrict);
  images.Stop();
  StreamingOptions options = scene.Options();
  options.directory = images.directory();
  options.witness = Witness::Remembered();
  const std::string untouched = ReadFile(images.directory() / "data.mdb");
  for (const bool continues : {false, true}) {
    options.continues = continues;
    ExpectError(StreamingStore::Open(options), ErrorCode::kInvalidArgument);
  }
  ExpectError(StreamingStore::Observe(images.directory()), ErrorCode::kInvalidArgument);
  BOOST_TEST((ReadFile(images.directory() / "data.mdb") == untouched));
  images.Start();
}

BOOST_FIXTURE_TEST_CASE(an_observer_lists_beside_the_owner, Streams) {
  scene.Start();
  scene.Prepare(1);
  scene.clock().AdvanceSeconds(10);
  const std::string token = Must(scene->Prepare(SomePortForward()));
  const auto listed = Must(scene->List());
  BOOST_REQUIRE(listed.size() == 2U);
  BOOST_TEST((listed[0].kind == StreamKind::kExec));
  BOOST_TEST(listed[0].expires_in_ms == 50'000U);
  BOOST_TEST((listed[1].kind == StreamKind::kPortForward));
  BOOST_TEST(listed[1].id == StreamTokenId(token));
  BOOST_TEST(listed[1].id.size() == 16U);
  BOOST_TEST((listed[1].prepared == scene.clock().Now()));
  scene.Stop();
  auto observer = Must(StreamingStore::Observe(scene.directory(), scene.clock().AsBootClock()));
  BOOST_TEST(Must(observer->List()).size() == 2U);
  BOOST_TEST(observer->GetCounters().open == 2U);
  ExpectError(observer->Prepare(NumberedExec(1)), ErrorCode::kNotOwner);
  ExpectError(observer->Consume(token, StreamKind::kPortForward), ErrorCode::kNotOwner);
  BOOST_TEST(Must(observer->Verify()).sound);
  Must(observer->Close());
  ExpectError(observer->List(), ErrorCode::kClosed);
}

BOOST_FIXTURE_TEST_CASE(counters_are_metrics, Streams) {
  scene.Start();
  scene.Prepare(1);
  static_cast<void>(scene->Consume("no token", StreamKind::kExec));
  const std::string text = ToPrometheusText(scene->GetCounters().Families());
  for (const char* line :
       {"waybill_streaming_prepares_total{outcome=\"prepared\"} 1\n",
        "waybill_streaming_prepares_total{outcome=\"full\"} 0\n",
        "waybill_streaming_consumes_total{outcome=\"unknown\"} 1\n",
        "waybill_streaming_consumes_total{outcome=\"consumed\"} 0\n",
        "waybill_streaming_voided_tokens 0\n", "waybill_streaming_open_tokens 1\n"}) {
    BOOST_TEST(text.find(line) != std::string::npos, line << " is missing in\n" << text);
  }
}

// --- Full stores and disks -----------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(a_full_store_refuses_and_still_consumes, Streams) {
  StreamingOptions options = scene.Options();
  options.map_bytes = std::uint64_t{1} << 20;
  scene.Start(options);
  StreamRequest large = NumberedExec(1);
  large.command.emplace_back(50'000, 'x');
  std::vector<std::string> tokens;
  while (true) {
    auto token = scene->Prepare(large);
    if (!token) {
      BOOST_TEST((token.error().code == ErrorCode::kStoreFull), token.error().ToString());
      BOOST_TEST((token.error().retry_after.count() == 0));
      break;
    }
    tokens.push_back(*std::move(token));
    BOOST_REQUIRE(tokens.size() < 100U);
  }
  BOOST_TEST(scene->GetCounters().prepare_failed == 1U);
  BOOST_REQUIRE(!tokens.empty());
  for (const std::string& token : tokens) CheckOpens(scene, token, large);
  tokens.push_back(Must(scene->Prepare(large)));
  scene.Stop();
  scene.Start(options);
  CheckNotFound(scene, tokens.back());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace waybill::testing
