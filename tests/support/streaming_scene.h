// A store of streaming requests in a directory of its own, with a fake clock, that can be closed,
// killed and opened again.

#ifndef WAYBILL_TESTS_SUPPORT_STREAMING_SCENE_H_
#define WAYBILL_TESTS_SUPPORT_STREAMING_SCENE_H_

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "store/base/options.h"
#include "store/calls/streaming_store.h"
#include "tests/support/fake_clock.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill::testing {

// Different ones for different numbers.
inline StreamRequest NumberedExec(std::size_t number) {
  return {.kind = StreamKind::kExec,
          .container_id = "container-" + std::to_string(number),
          .command = {"sh", "-c", "echo " + std::to_string(number)},
          .std_in = number % 2 == 0,
          .std_out = true,
          .tty = number % 3 == 0};
}
inline StreamRequest SomeAttach() {
  return {.kind = StreamKind::kAttach, .container_id = "attached", .std_err = true};
}
inline StreamRequest SomePortForward() {
  return {.kind = StreamKind::kPortForward, .pod_sandbox_id = "sandbox", .ports = {80, 65535}};
}

class StreamingScene {
 public:
  explicit StreamingScene(bool keeps_tokens = false) : keeps_tokens_(keeps_tokens) {}

  StreamingStore* operator->() { return store_.get(); }
  StreamingStore& operator*() { return *store_; }
  FakeClock& clock() { return clock_; }
  std::filesystem::path scratch() const { return scratch_.path(); }
  std::filesystem::path directory() const { return scratch_ / "streams"; }
  std::filesystem::path witness() const { return scratch_ / "witness"; }

  StreamingOptions Options() const {
    StreamingOptions options{.directory = directory(), .witness = Witness::At(witness())};
    options.keeps_tokens = keeps_tokens_;
    options.clock = clock_.AsClock();
    options.boot_clock = clock_.AsBootClock();
    options.map_bytes = std::uint64_t{64} << 20U;
    return options;
  }
  void Start() { Start(Options()); }
  void Start(StreamingOptions options) { store_ = Must(StreamingStore::Open(std::move(options))); }
  void Continue() {
    StreamingOptions options = Options();
    options.continues = true;
    Start(options);
  }
  void Stop() {
    if (store_) Must(store_->Close());
    store_.reset();
  }
  void Restart() {
    Stop();
    Start();
  }

  std::string Prepare(std::size_t number = 1) {
    return Must(store_->Prepare(NumberedExec(number)));
  }
  // The error's code, or nullopt: it opened a stream.
  std::optional<ErrorCode> Refused(const std::string& token, StreamKind kind = StreamKind::kExec) {
    const auto request = store_->Consume(token, kind);
    return request ? std::optional<ErrorCode>() : request.error().code;
  }

 private:
  MemoryDir scratch_;  // thousands of commits
  FakeClock clock_;
  bool keeps_tokens_;
  std::unique_ptr<StreamingStore> store_;
};

// Fixtures.
struct Streams {
  StreamingScene scene;
};
struct KeptStreams {
  StreamingScene scene{true};
};

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_STREAMING_SCENE_H_
