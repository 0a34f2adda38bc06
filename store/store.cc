// The classes that programs see, on the stores below them.

#include "waybill/store.h"

#include <mutex>
#include <utility>

#include "store/base/caught.h"
#include "store/base/gate.h"
#include "store/base/options.h"
#include "store/base/policy.h"
#include "store/base/try.h"
#include "store/calls/node_store.h"
#include "store/calls/streaming_store.h"
#include "store/disk/lmdb/version.h"
#include "store/door.h"
#include "store/door/settings.h"
#include "store/owner_socket/client.h"
#include "waybill/values.h"

namespace waybill {

namespace {

Result<Witness> LossMarkerOf(const std::string& text) {
  if (text == kRememberedLossMarker) return Witness::Remembered();
  if (text == kNoLossMarker) return Witness::None();
  if (std::filesystem::path(text).is_absolute()) return Witness::At(text);
  // A relative one may be a word that is misspelt.
  return Error{
      ErrorCode::kInvalidArgument,
      (text.empty() ? "no loss marker was chosen" : "the loss marker is no absolute path") +
          std::string("; nothing was changed"),
      "name a file outside the store, which shows if the store is lost: by convention "
      "image_manager/waybill in the kubelet's directory; or \"none\""};
}

Error ClosedStore() {
  return {ErrorCode::kClosed, "the store was closed; nothing was changed", "open it again"};
}

// A call behind a gate.
template <typename Work>
auto Inside(Gate& gate, const Work& work) noexcept -> decltype(work()) {
  const Gate::Visit visit(gate);
  if (!visit) return internal::Guarded([]() -> decltype(work()) { return ClosedStore(); });
  return internal::Guarded(work);
}

// The answer as a value.
template <typename C>
Result<typename C::Answer> Understood(const Result<std::string>& json) {
  if (!json) return json.error();
  typename C::Answer answer;
  const std::string wrong = internal::FromJson(*json, answer, internal::Strangers::kSkip);
  if (wrong.empty()) return answer;
  return Error{ErrorCode::kIo,
               "the answer to " + std::string(internal::TypeName<C>()) + " can't be read: " + wrong,
               "use the version of waybill that the owner uses"};
}

class FetchedCredentials final : public CredentialSource {
 public:
  explicit FetchedCredentials(const FetchCredentials& fetch) : fetch_(fetch) {}
  Result<PodCredentials> Fetch() override { return fetch_(); }

 private:
  const FetchCredentials& fetch_;
};

}  // namespace

struct Store::Impl {
  std::unique_ptr<NodeStore> store;
  Gate gate;
  std::mutex closing;  // the second caller waits for the first
};

Store::Store(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Store::~Store() { static_cast<void>(Close()); }

Result<std::unique_ptr<Store>> Store::Open(OpenOptions options) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<Store>> {
    const Settings& settings = options.settings;
    const Witness loss_marker = TRY(LossMarkerOf(options.loss_marker));
    VerificationPolicy policy = TRY(internal::PolicyOf(settings.policy));
    NodeStoreOptions node{.directory = std::move(options.directory),
                          .create_if_missing = options.create,
                          .witness = loss_marker};
    node.rules = settings.mode;
    node.policy = std::move(policy);
    node.images_on_node = std::move(options.images);
    node.preloaded = std::move(options.preloaded);
    node.first_start = options.first_start_closes ? FirstStart::kClose : FirstStart::kPresume;
    node.evidence.short_names =
        settings.short_names_anywhere ? ShortNames::kAnywhere : ShortNames::kDockerHub;
    node.max_age = internal::MaxAgeOf(settings);
    node.continues_pulls = options.continues_pulls;
    node.clock = options.clocks.wall;
    node.boot_clock = options.clocks.boot;
    node.kubelet_directory = std::move(options.kubelet_directory);
    node.import_progress = options.progress;
    node.migration_progress = options.progress;
    node.gap = options.unrecorded;
    node.runtime_handlers = std::move(options.runtimes);
    node.user_namespaces = {.enabled = settings.pool.enabled, .pool = settings.pool.ids};
    node.migrate = options.migrate;
    node.skip_unreadable = options.skip_unreadable;
    node.allow_empty = options.allow_empty;
    node.map_bytes = settings.map_bytes;
    node.trace.path = settings.trace_file;
    node.flushes_twice = settings.flushes_twice;
    if (options.allow_untested_lmdb) AllowUntestedLmdb(true);
    auto impl = std::make_unique<Impl>();
    impl->store = TRY(NodeStore::Open(std::move(node)));
    return std::unique_ptr<Store>(new Store(std::move(impl)));
  });
}

Result<std::unique_ptr<Store>> Store::Observe(const std::filesystem::path& directory,
                                              const Clocks& clocks) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<Store>> {
    auto impl = std::make_unique<Impl>();
    impl->store = TRY(NodeStore::Observe(
        {.directory = directory, .clock = clocks.wall, .boot_clock = clocks.boot}));
    return std::unique_ptr<Store>(new Store(std::move(impl)));
  });
}

Result<void> Store::Close() {
  const std::lock_guard lock(impl_->closing);
  if (!impl_->gate.Close()) return {};
  return impl_->store->Close();
}

Result<void> Store::Serve(const ServeOptions& options) {
  return Inside(impl_->gate, [&] { return impl_->store->Serve(options); });
}

Decision Store::MustPull(const ImageCopy& copy, CredentialSource& credentials) {
  const Gate::Visit visit(impl_->gate);
  return visit ? impl_->store->MustAttemptPull(copy, credentials) : Decision();
}

Decision Store::MustPull(const ImageCopy& copy, const PodCredentials& credentials) {
  FixedCredentials source(credentials);
  return MustPull(copy, source);
}

Decision Store::MustPull(const ImageCopy& copy, const FetchCredentials& fetch) {
  FetchedCredentials source(fetch);
  return MustPull(copy, source);
}

Result<PullId> Store::BeginPull(const ImageCopy& copy) {
  const auto begun = TRY(Call(waybill::BeginPull{
      .image = std::string(copy.image), .runtime_handler = std::string(copy.runtime_handler)}));
  return PullId{begun.pull};
}

Result<void> Store::EndPull(const ImageCopy& copy, PullId pull, PullOutcome outcome,
                            const std::optional<ImagePullCredentials>& credentials,
                            const PullDetails& details) {
  TRY(Call(waybill::EndPull{.image = std::string(copy.image),
                            .image_ref = std::string(copy.image_ref),
                            .runtime_handler = std::string(copy.runtime_handler),
                            .pull = pull.value,
                            .outcome = outcome,
                            .credentials = credentials,
                            .details = details}));
  return {};
}

Result<UserNamespace> Store::ClaimUserNamespace(const UserNamespaceRequest& request) {
  return Inside(impl_->gate, [&] { return impl_->store->GetOrCreateUserNamespace(request); });
}

template <typename C>
Result<typename C::Answer> Store::Call(const C& call) {
  return Inside(impl_->gate, [&] { return impl_->store->Call(call); });
}

Result<std::string> Store::CallJson(std::string_view name, std::string_view parameters,
                                    const Progress& progress) {
  return Inside(impl_->gate, [&] { return impl_->store->CallJson(name, parameters, progress); });
}

// --- Library -------------------------------------------------------------------------------------

template <typename C>
Result<typename C::Answer> Library::Call(const C& call, const Progress& progress) {
  return internal::Guarded([&] { return door::Do(call, progress); });
}

Result<std::string> Library::CallJson(std::string_view name, std::string_view parameters,
                                      const Progress& progress) {
  return door::CallLibraryJson(name, parameters, progress);
}

// --- Owner ---------------------------------------------------------------------------------------

Owner::Owner(std::filesystem::path directory, std::chrono::milliseconds patience)
    : directory_(std::move(directory)), patience_(patience) {}

template <typename C>
Result<typename C::Answer> Owner::Call(const C& call) const {
  return internal::Guarded(
      [&] { return Understood<C>(CallJson(internal::TypeName<C>(), internal::ToJson(call))); });
}

Result<std::string> Owner::CallJson(std::string_view name, std::string_view parameters) const {
  // What changes nothing is known to have changed nothing.
  const bool changes = !door::OnlyReads(name) && name != "BeginList";
  return internal::Guarded(
      [&] { return internal::AskOwner(directory_, name, parameters, changes, patience_); });
}

// --- Streams -------------------------------------------------------------------------------------

struct Streams::Impl {
  std::unique_ptr<StreamingStore> store;
  Gate gate;
  std::mutex closing;
};

Streams::Streams(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Streams::~Streams() { static_cast<void>(Close()); }

Result<std::unique_ptr<Streams>> Streams::Open(StreamOptions options) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<Streams>> {
    const Witness loss_marker = TRY(LossMarkerOf(options.loss_marker));
    StreamingOptions streams{.directory = std::move(options.directory), .witness = loss_marker};
    streams.keeps_tokens = options.keeps_tokens;
    streams.continues = options.continues;
    // Above any bound it is refused, and must not wrap around.
    constexpr std::uint64_t kMostMs = 86'400'000;
    streams.time_to_live =
        std::chrono::milliseconds(std::min<std::uint64_t>(options.time_to_live_ms, kMostMs));
    streams.max_open = options.max_open;
    streams.clock = options.clocks.wall;
    streams.boot_clock = options.clocks.boot;
    auto impl = std::make_unique<Impl>();
    impl->store = TRY(StreamingStore::Open(std::move(streams)));
    return std::unique_ptr<Streams>(new Streams(std::move(impl)));
  });
}

Result<std::unique_ptr<Streams>> Streams::Observe(const std::filesystem::path& directory) {
  return internal::Guarded([&]() -> Result<std::unique_ptr<Streams>> {
    auto impl = std::make_unique<Impl>();
    impl->store = TRY(StreamingStore::Observe(directory));
    return std::unique_ptr<Streams>(new Streams(std::move(impl)));
  });
}

Result<void> Streams::Close() {
  const std::lock_guard lock(impl_->closing);
  if (!impl_->gate.Close()) return {};
  return impl_->store->Close();
}

template <typename C>
Result<typename C::Answer> Streams::Call(const C& call) {
  return Inside(impl_->gate, [&] { return door::Do(*impl_->store, call, {}); });
}

Result<std::string> Streams::CallJson(std::string_view name, std::string_view parameters) {
  return Inside(impl_->gate, [&] { return door::CallJson(*impl_->store, name, parameters, {}); });
}

// --- Instances -----------------------------------------------------------------------------------

#define WAYBILL_OF_STORE(C) template Result<waybill::C::Answer> Store::Call(const waybill::C&);
WAYBILL_READING_CALLS(WAYBILL_OF_STORE)
WAYBILL_CHANGING_CALLS(WAYBILL_OF_STORE)
WAYBILL_UNSERVED_CALLS(WAYBILL_OF_STORE)
#define WAYBILL_OF_OWNER(C) \
  template Result<waybill::C::Answer> Owner::Call(const waybill::C&) const;
WAYBILL_READING_CALLS(WAYBILL_OF_OWNER)
WAYBILL_CHANGING_CALLS(WAYBILL_OF_OWNER)
#define WAYBILL_OF_LIBRARY(C) \
  template Result<waybill::C::Answer> Library::Call(const waybill::C&, const Progress&);
WAYBILL_LIBRARY_CALLS(WAYBILL_OF_LIBRARY)
#define WAYBILL_OF_STREAMS(C) template Result<waybill::C::Answer> Streams::Call(const waybill::C&);
WAYBILL_STREAM_CALLS(WAYBILL_OF_STREAMS)
WAYBILL_OF_STREAMS(GetStatus)
WAYBILL_OF_STREAMS(GetMetrics)
WAYBILL_OF_STREAMS(Verify)

}  // namespace waybill
