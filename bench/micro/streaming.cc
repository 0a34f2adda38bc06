// Streaming requests: what prepares and consumes beside a bare commit, refusals beside a bare
// lookup.

#include <string>
#include <vector>

#include "bench/micro/rows.h"
#include "store/base/options.h"
#include "store/streaming/streaming_store.h"
#include "waybill/values.h"

namespace waybill::bench {

void MeasureStreaming(const Micro& micro, Bare& bare) {
  const StreamRequest request{.kind = StreamKind::kExec,
                              .container_id = "8d0f3c1e5b7a49d2",
                              .command = {"sh", "-c", "ls -l /proc/1/fd"},
                              .std_in = true,
                              .std_out = true,
                              .tty = true};
  StreamingOptions options{.directory = micro.scratch.path() / "streams",
                           .witness = Witness::At(micro.scratch.path() / "streams-witness")};
  auto store = Must(StreamingStore::Open(options));
  std::string token;
  const auto consume = [&] { Must(store->Consume(token, StreamKind::kExec)); };
  const auto prepare = [&] { token = Must(store->Prepare(request)); };
  BesideCommit(micro, bare, "Prepare", kNothing, prepare, consume);
  BesideCommit(micro, bare, "Consume", prepare, consume);
  prepare();
  const auto lookup = [&](const char* what, const auto& ours) {
    BesideLookup(micro, bare, what, ours);
  };
  const std::string unknown(32, '0');
  lookup("Consume: unknown token", [&](std::size_t) {
    if (store->Consume(unknown, StreamKind::kExec)) Unexpected("Consume");
  });
  lookup("Consume: another kind", [&](std::size_t) {
    if (store->Consume(token, StreamKind::kAttach)) Unexpected("Consume");
  });
  lookup("CheckStreamRequest", [&](std::size_t) { Must(CheckStreamRequest(request)); });
  while (store->Prepare(request)) continue;
  lookup("Prepare: full", [&](std::size_t) {
    if (store->Prepare(request)) Unexpected("Prepare");
  });
  lookup("List: 1,000 streams", [&](std::size_t) {
    if (Must(store->List()).size() != options.max_open) Unexpected("List");
  });
  Must(store->Close());
}

}  // namespace waybill::bench
