#include "store/control/messages.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <optional>
#include <utility>
#include <variant>

#include "schema/control/control_generated.h"
#include "store/base/caught.h"
#include "store/database/flatbuffer.h"

namespace waybill::internal {

namespace {

namespace fb = schema::control;
using Builder = flatbuffers::FlatBufferBuilder;
using TextAt = flatbuffers::Offset<flatbuffers::String>;

// An offset, a length and the zero at the end: what a string takes beside its bytes, at least.
constexpr std::size_t kBytesBesideText = 9;

// Builds a message, and stops before it is larger than one may be.
class Writer {
 public:
  Builder& builder() { return builder_; }
  bool too_large() const { return bytes_ > kMaxOwnerMessageBytes; }
  // As of too_large(), with as much room again.
  bool half_full() const { return bytes_ > kMaxOwnerMessageBytes / 2; }

  TextAt Text(std::string_view text) {
    Take(text.size() + kBytesBesideText);
    if (too_large()) text = {};
    return builder_.CreateString(text.data(), text.size());
  }
  flatbuffers::Offset<flatbuffers::Vector<TextAt>> Texts(const std::vector<std::string>& texts) {
    std::vector<TextAt> offsets;
    for (const std::string& text : texts) {
      if (too_large()) break;
      offsets.push_back(Text(text));
    }
    return builder_.CreateVector(offsets);
  }
  flatbuffers::Offset<fb::Images> Images(std::span<const ImageOnNode> images) {
    std::vector<fb::ImageShape> shapes;
    std::vector<TextAt> texts;
    for (const ImageOnNode& image : images) {
      if (too_large()) break;
      Take(sizeof(fb::ImageShape));
      shapes.emplace_back(static_cast<std::uint32_t>(image.repo_tags.size()),
                          static_cast<std::uint32_t>(image.repo_digests.size()), image.pinned,
                          image.imported);
      texts.push_back(Text(image.id));
      texts.push_back(Text(image.runtime_handler));
      for (const auto* names : {&image.repo_tags, &image.repo_digests}) {
        for (const std::string& name : *names) {
          if (too_large()) break;
          texts.push_back(Text(name));
        }
      }
    }
    const auto shapes_at = builder_.CreateVectorOfStructs(shapes);
    return fb::CreateImages(builder_, shapes_at, builder_.CreateVector(texts));
  }

  template <typename Root>
  Bytes Finish(flatbuffers::Offset<Root> root) {
    return internal::Finish(builder_, root);
  }

 private:
  void Take(std::size_t bytes) { bytes_ += bytes; }

  Builder builder_;
  std::size_t bytes_ = 0;
};

// Copies out of a verified message. Its strings may be one and the same, many times over: what is
// copied is never more than its sender wrote, or it is refused.
class Reader {
 public:
  explicit Reader(std::size_t bytes) : left_(bytes) {}
  bool ok() const { return ok_; }
  void Refuse() { ok_ = false; }

  std::string Text(const flatbuffers::String* text) {
    const std::string_view view = internal::Text(text);
    if (!Take(view.size() + (text == nullptr ? 0 : kBytesBesideText))) return {};
    return std::string(view);
  }
  std::vector<std::string> Texts(const flatbuffers::Vector<TextAt>* texts) {
    std::vector<std::string> all;
    if (texts == nullptr) return all;
    for (const flatbuffers::String* text : *texts) {
      all.push_back(Text(text));
      if (!ok_) break;
    }
    return all;
  }
  std::vector<ImageOnNode> Images(const fb::Images* images) {
    std::vector<ImageOnNode> all;
    if (images == nullptr || images->shapes() == nullptr) return all;
    const auto* const texts = images->texts();
    const std::size_t count = texts == nullptr ? 0 : texts->size();
    std::size_t at = 0;
    for (const fb::ImageShape* shape : *images->shapes()) {
      constexpr std::size_t kAlways = 2;
      const std::size_t names = std::size_t{shape->tags()} + shape->digests();
      if (count - at < kAlways + names || !Take(sizeof(fb::ImageShape))) {
        Refuse();
        break;
      }
      const auto next = [&] { return Text(texts->Get(static_cast<std::uint32_t>(at++))); };
      ImageOnNode& image = all.emplace_back();
      image.id = next();
      image.runtime_handler = next();
      for (std::uint32_t i = 0; i < shape->tags() && ok_; ++i) image.repo_tags.push_back(next());
      for (std::uint32_t i = 0; i < shape->digests() && ok_; ++i) {
        image.repo_digests.push_back(next());
      }
      image.pinned = shape->pinned();
      image.imported = shape->imported();
      if (!ok_) break;
    }
    if (at != count) Refuse();
    return all;
  }

 private:
  bool Take(std::size_t bytes) {
    ok_ = ok_ && bytes <= left_;
    if (ok_) left_ -= bytes;
    return ok_;
  }

  std::size_t left_;
  bool ok_ = true;
};

// nullptr: not such a message.
template <typename Root>
const Root* Verified(std::span<const std::uint8_t> message) {
  constexpr flatbuffers::uoffset_t kMaxDepth = 16;
  constexpr flatbuffers::uoffset_t kMaxTables = 100'000;
  if (message.size() > kMaxOwnerMessageBytes) return nullptr;
  flatbuffers::Verifier verifier(message.data(), message.size(), kMaxDepth, kMaxTables);
  if (!verifier.VerifyBuffer<Root>(nullptr)) return nullptr;
  return flatbuffers::GetRoot<Root>(message.data());
}

fb::Token TokenOf(const ListToken& token) {
  return {token.commit, token.store, token.drawn.nanoseconds, Raw(token.drawn.boot_id)};
}

ListToken TokenOf(const fb::Token& token) {
  ListToken read{.commit = token.commit(), .store = token.store()};
  read.drawn.nanoseconds = token.nanoseconds();
  std::copy(token.boot_id()->begin(), token.boot_id()->end(), read.drawn.boot_id.begin());
  return read;
}

fb::Options OptionsOf(const ChangeOptions& options) {
  return {options.allow_empty, options.dry_run};
}

ChangeOptions OptionsOf(const fb::Options* options) {
  if (options == nullptr) return {};
  return {.allow_empty = options->allow_empty(), .dry_run = options->dry_run()};
}

// What RFC 3339 can write, as types.h says.
bool IsTimestamp(const Timestamp& time) {
  return time.nanoseconds >= 0 && time.nanoseconds <= 999'999'999 &&
         time.seconds >= -62'135'596'800 && time.seconds <= 253'402'300'799;
}

// --- Errors

flatbuffers::Offset<fb::Error> EncodeError(Writer& writer, const Error& error) {
  const TextAt message = writer.Text(error.message);
  const TextAt hint = writer.Text(error.hint);
  return fb::CreateError(writer.builder(), static_cast<std::uint8_t>(error.code), message, hint,
                         static_cast<std::uint8_t>(error.hint_code));
}

Error DecodeError(const fb::Error& error) {
  Error read;
  read.code = static_cast<ErrorCode>(error.code());
  if (ErrorCodeName(read.code) == "unknown") read.code = ErrorCode::kInternal;
  read.message = Text(error.message());
  read.hint = Text(error.hint());
  // A later version's hint has no words here.
  if (error.hint_code() <= static_cast<std::uint8_t>(kLastHint)) {
    read.hint_code = static_cast<Hint>(error.hint_code());
  }
  return read;
}

Error Unintelligible() {
  return {ErrorCode::kInvalidArgument, "the request can't be read; nothing was changed",
          "send it with this version's OwnerClient"};
}

// --- Values

using Numbers = const flatbuffers::Vector<std::uint64_t>*;

// The members, in the order in which they are sent. New ones come last.
template <typename Report>
auto CountsIn(Report& report) {
  if constexpr (std::is_same_v<std::remove_const_t<Report>, ObserveReport>) {
    return std::array{&report.listed,
                      &report.repeated,
                      &report.not_names,
                      &report.known,
                      &report.preloaded,
                      &report.closed,
                      &report.left,
                      &report.united,
                      &report.pulls_settled,
                      &report.records_removed,
                      &report.preloaded_removed};
  } else if constexpr (std::is_same_v<std::remove_const_t<Report>, PruneReport>) {
    return std::array{&report.examined,
                      &report.removed,
                      &report.kept_in_list,
                      &report.kept_newer,
                      &report.kept_without_credentials,
                      &report.preloaded_removed};
  } else if constexpr (std::is_same_v<std::remove_const_t<Report>, ForgetReport>) {
    return std::array{&report.records,   &report.secrets,      &report.service_accounts,
                      &report.node_pods, &report.equal_hashes, &report.untidied};
  } else if constexpr (std::is_same_v<std::remove_const_t<Report>, ReconcileReport>) {
    return std::array{&report.known, &report.gone, &report.newer};
  } else {
    return std::array{&report.examined, &report.released, &report.kept_in_lists,
                      &report.kept_newer};
  }
}

template <typename Report>
auto EncodeCounts(Writer& writer, const Report& report) {
  std::vector<std::uint64_t> numbers;
  for (const std::uint64_t* number : CountsIn(report)) numbers.push_back(*number);
  return writer.builder().CreateVector(numbers);
}

template <typename Report>
void DecodeCounts(Reader& reader, Numbers numbers, Report& report) {
  const auto counts = CountsIn(report);
  if (numbers == nullptr || numbers->size() < counts.size()) return reader.Refuse();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    *counts[i] = numbers->Get(static_cast<flatbuffers::uoffset_t>(i));
  }
}

struct Encoded {
  fb::Value type = fb::Value::NONE;
  flatbuffers::Offset<void> value = 0;
};

Encoded EncodeValue(Writer& writer) {
  return {fb::Value::Done, fb::CreateDone(writer.builder()).Union()};
}
Encoded EncodeValue(Writer& writer, bool yes) {
  return {fb::Value::YesOrNo, fb::CreateYesOrNo(writer.builder(), yes).Union()};
}
Encoded EncodeValue(Writer& writer, const ListToken& token) {
  const fb::Token encoded = TokenOf(token);
  return {fb::Value::ListToken, fb::CreateListToken(writer.builder(), &encoded).Union()};
}
Encoded EncodeValue(Writer& writer, const ObserveReport& report) {
  std::vector<flatbuffers::Offset<fb::JudgedImage>> judged;
  for (const JudgedImage& image : report.judged) {
    // Names may be of any length, and these images are examples.
    if (writer.half_full()) break;
    const TextAt ref = writer.Text(image.image_ref);
    const TextAt handler = writer.Text(image.runtime_handler);
    const TextAt name = writer.Text(image.name);
    const TextAt because = writer.Text(image.because);
    judged.push_back(
        fb::CreateJudgedImage(writer.builder(), ref, handler, name, image.preloaded, because));
  }
  const auto counts = EncodeCounts(writer, report);
  const auto judged_at = writer.builder().CreateVector(judged);
  const auto digests = writer.Texts(report.shared_digests);
  const auto why = writer.Text(report.not_judged_because);
  return {fb::Value::ObserveReport,
          fb::CreateObserveReport(writer.builder(), counts, judged_at, digests, why).Union()};
}
Encoded EncodeValue(Writer& writer, const PruneReport& report) {
  const auto counts = EncodeCounts(writer, report);
  return {fb::Value::PruneReport, fb::CreatePruneReport(writer.builder(), counts).Union()};
}
Encoded EncodeValue(Writer& writer, const UserNamespaceCleanupReport& report) {
  const auto counts = EncodeCounts(writer, report);
  const auto pods = writer.Texts(report.released_pods);
  return {fb::Value::CleanupReport,
          fb::CreateCleanupReport(writer.builder(), counts, pods).Union()};
}
Encoded EncodeValue(Writer& writer, const Backup& backup) {
  const TextAt name = writer.Text(backup.path.filename().string());
  return {fb::Value::Backup, fb::CreateBackup(writer.builder(), name, backup.schema_version,
                                              backup.commit_sequence, backup.bytes)
                                 .Union()};
}

Encoded EncodeValue(Writer& writer, const PullId& pull) {
  return {fb::Value::BegunPull, fb::CreateBegunPull(writer.builder(), pull.value).Union()};
}

auto EncodeReport(Writer& writer, const ForgetReport& report) {
  const auto counts = EncodeCounts(writer, report);
  return fb::CreateForgetReport(writer.builder(), counts, report.stored);
}
Encoded EncodeValue(Writer& writer, const ForgetReport& report) {
  return {fb::Value::ForgetReport, EncodeReport(writer, report).Union()};
}
Encoded EncodeValue(Writer& writer, const ReconcileReport& report) {
  const auto forgotten = EncodeReport(writer, report.forgotten);
  const auto counts = EncodeCounts(writer, report);
  return {fb::Value::ReconcileReport,
          fb::CreateReconcileReport(writer.builder(), forgotten, counts).Union()};
}

bool DecodeValue(Reader&, const fb::Answer& answer, std::monostate&) {
  return answer.value_as_Done() != nullptr;
}
bool DecodeValue(Reader&, const fb::Answer& answer, bool& yes) {
  const auto* const value = answer.value_as_YesOrNo();
  if (value != nullptr) yes = value->yes();
  return value != nullptr;
}
bool DecodeValue(Reader&, const fb::Answer& answer, ListToken& token) {
  const auto* const value = answer.value_as_ListToken();
  if (value == nullptr || value->token() == nullptr) return false;
  token = TokenOf(*value->token());
  return true;
}
bool DecodeValue(Reader& reader, const fb::Answer& answer, ObserveReport& report) {
  const auto* const value = answer.value_as_ObserveReport();
  if (value == nullptr) return false;
  DecodeCounts(reader, value->counts(), report);
  if (value->judged() != nullptr) {
    for (const fb::JudgedImage* image : *value->judged()) {
      report.judged.push_back({.image_ref = reader.Text(image->image_ref()),
                               .runtime_handler = reader.Text(image->runtime_handler()),
                               .name = reader.Text(image->name()),
                               .preloaded = image->preloaded(),
                               .because = reader.Text(image->because())});
      if (!reader.ok()) return false;
    }
  }
  report.shared_digests = reader.Texts(value->shared_digests());
  report.not_judged_because = reader.Text(value->not_judged_because());
  return true;
}
bool DecodeValue(Reader& reader, const fb::Answer& answer, PruneReport& report) {
  const auto* const value = answer.value_as_PruneReport();
  if (value != nullptr) DecodeCounts(reader, value->counts(), report);
  return value != nullptr;
}
bool DecodeValue(Reader& reader, const fb::Answer& answer, UserNamespaceCleanupReport& report) {
  const auto* const value = answer.value_as_CleanupReport();
  if (value == nullptr) return false;
  DecodeCounts(reader, value->counts(), report);
  report.released_pods = reader.Texts(value->released_pods());
  return true;
}
bool DecodeValue(Reader& reader, const fb::Answer& answer, Backup& backup) {
  const auto* const value = answer.value_as_Backup();
  if (value == nullptr) return false;
  const std::string name = reader.Text(value->name());
  // It becomes part of a path.
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos) {
    return false;
  }
  backup = {.path = name,
            .schema_version = value->schema_version(),
            .commit_sequence = value->commit_sequence(),
            .bytes = value->bytes()};
  return true;
}

bool DecodeValue(Reader&, const fb::Answer& answer, PullId& pull) {
  const auto* const value = answer.value_as_BegunPull();
  if (value != nullptr) pull.value = value->pull();
  return value != nullptr;
}

bool DecodeReport(Reader& reader, const fb::ForgetReport* value, ForgetReport& report) {
  if (value == nullptr) return false;
  DecodeCounts(reader, value->counts(), report);
  report.stored = value->stored();
  return true;
}
bool DecodeValue(Reader& reader, const fb::Answer& answer, ForgetReport& report) {
  return DecodeReport(reader, answer.value_as_ForgetReport(), report);
}
bool DecodeValue(Reader& reader, const fb::Answer& answer, ReconcileReport& report) {
  const auto* const value = answer.value_as_ReconcileReport();
  if (value == nullptr) return false;
  DecodeCounts(reader, value->counts(), report);
  return DecodeReport(reader, value->forgotten(), report.forgotten);
}

// --- Answering

std::vector<CredentialName> NamesIn(Reader& reader, const flatbuffers::Vector<TextAt>* texts) {
  std::vector<std::string> all = reader.Texts(texts);
  constexpr std::size_t kParts = 3;
  if (all.size() % kParts != 0) reader.Refuse();
  std::vector<CredentialName> names;
  for (std::size_t i = 0; reader.ok() && i < all.size(); i += kParts) {
    names.push_back({std::move(all[i]), std::move(all[i + 1]), std::move(all[i + 2])});
  }
  return names;
}

// nullopt: they are not known.
std::optional<ImagePullCredentials> CredentialsIn(Reader& reader,
                                                  const fb::RecordImagePulled& call) {
  std::vector<std::string> secrets = reader.Texts(call.secrets());
  std::vector<std::string> accounts = reader.Texts(call.service_accounts());
  constexpr std::size_t kOfSecret = 4;
  constexpr std::size_t kOfAccount = 3;
  const bool any = call.node_pods_accessible() || !secrets.empty() || !accounts.empty();
  if (secrets.size() % kOfSecret != 0 || accounts.size() % kOfAccount != 0 ||
      (any && !call.knows_credentials())) {
    reader.Refuse();
  }
  if (!reader.ok() || !call.knows_credentials()) return std::nullopt;
  ImagePullCredentials credentials;
  credentials.node_pods_accessible = call.node_pods_accessible();
  for (std::size_t i = 0; i < secrets.size(); i += kOfSecret) {
    credentials.kubernetes_secrets.push_back({.uid = std::move(secrets[i]),
                                              .namespace_name = std::move(secrets[i + 1]),
                                              .name = std::move(secrets[i + 2]),
                                              .credential_hash = std::move(secrets[i + 3])});
  }
  for (std::size_t i = 0; i < accounts.size(); i += kOfAccount) {
    credentials.kubernetes_service_accounts.push_back({.uid = std::move(accounts[i]),
                                                       .namespace_name = std::move(accounts[i + 1]),
                                                       .name = std::move(accounts[i + 2])});
  }
  return credentials;
}

PullResult ResultIn(Reader& reader, const fb::RecordImagePulled& call) {
  PullResult result{.pull = {call.pull()}};
  std::vector<std::string> platform = reader.Texts(call.platform());
  constexpr std::size_t kAlways = 4;
  if ((call.manifest() != nullptr) != (platform.size() >= kAlways)) reader.Refuse();
  if (call.manifest() == nullptr && !platform.empty()) reader.Refuse();
  if (call.manifest() != nullptr && reader.ok()) {
    PulledManifest& manifest = result.manifest.emplace();
    manifest.digest = reader.Text(call.manifest());
    manifest.platform = {.architecture = std::move(platform[0]),
                         .os = std::move(platform[1]),
                         .os_version = std::move(platform[2]),
                         .variant = std::move(platform[3])};
    manifest.platform.os_features.assign(std::make_move_iterator(platform.begin() + kAlways),
                                         std::make_move_iterator(platform.end()));
  }
  if (call.listed() != nullptr) {
    auto listed = reader.Images(call.listed());
    if (listed.size() != 1) reader.Refuse();
    if (reader.ok()) result.image = std::move(listed.front());
  }
  return result;
}

template <typename T>
Bytes AnswerWith(const Result<T>& result) {
  if (!result) return AnswerOf(result.error());
  Writer writer;
  Encoded encoded;
  if constexpr (std::is_void_v<T>) {
    encoded = EncodeValue(writer);
  } else {
    encoded = EncodeValue(writer, *result);
  }
  return writer.Finish(fb::CreateAnswer(writer.builder(), 0, encoded.type, encoded.value));
}

// Does what the verified request says. nullopt: it can't be read.
std::optional<Bytes> Perform(const fb::Request& request, Reader& reader, OwnerCalls& owner) {
  switch (request.call_type()) {
    case fb::Call::NONE:
      return std::nullopt;
    case fb::Call::BeginList:
      return AnswerWith(owner.BeginList());
    case fb::Call::ObserveImages: {
      const auto& call = *request.call_as_ObserveImages();
      ImageList list{.images = reader.Images(call.images()),
                     .complete = call.complete(),
                     .source = reader.Text(call.source())};
      if (call.token() != nullptr) list.token = TokenOf(*call.token());
      if (!reader.ok()) return std::nullopt;
      return AnswerWith(owner.ObserveImages(list, OptionsOf(call.options())));
    }
    case fb::Call::Prune: {
      const auto& call = *request.call_as_Prune();
      const auto images = reader.Images(call.images());
      if (!reader.ok() || call.token() == nullptr) return std::nullopt;
      return AnswerWith(owner.Prune(images, TokenOf(*call.token()), OptionsOf(call.options())));
    }
    case fb::Call::PruneBefore: {
      const auto& call = *request.call_as_PruneBefore();
      const auto images = reader.Images(call.images());
      if (!reader.ok() || call.until() == nullptr) return std::nullopt;
      const Timestamp until = FromTime(*call.until());
      if (!IsTimestamp(until)) return std::nullopt;
      return AnswerWith(owner.PruneBefore(images, until, OptionsOf(call.options())));
    }
    case fb::Call::AddToLedger: {
      const auto& call = *request.call_as_AddToLedger();
      const auto images = reader.Images(call.image());
      const std::string source = reader.Text(call.source());
      const std::string reason = reader.Text(call.reason());
      if (!reader.ok() || images.size() != 1) return std::nullopt;
      return AnswerWith(
          owner.AddToLedger(images.front(), source, reason, OptionsOf(call.options())));
    }
    case fb::Call::RemoveFromLedger: {
      const auto& call = *request.call_as_RemoveFromLedger();
      const ImageCopy copy{.image_ref = Text(call.image_ref()),
                           .runtime_handler = Text(call.runtime_handler())};
      return AnswerWith(
          owner.RemoveFromLedger(copy, Text(call.reason()), OptionsOf(call.options())));
    }
    case fb::Call::SettlePresumed: {
      const auto& call = *request.call_as_SettlePresumed();
      const ImageCopy copy{.image_ref = Text(call.image_ref()),
                           .runtime_handler = Text(call.runtime_handler())};
      const Settled settled = call.closed() ? Settled::kClosed : Settled::kPreloaded;
      return AnswerWith(
          owner.SettlePresumed(copy, settled, Text(call.reason()), OptionsOf(call.options())));
    }
    case fb::Call::DropOpenPull: {
      const auto& call = *request.call_as_DropOpenPull();
      return AnswerWith(
          owner.DropOpenPull({call.pull()}, Text(call.reason()), OptionsOf(call.options())));
    }
    case fb::Call::ClearDistrust: {
      const auto& call = *request.call_as_ClearDistrust();
      ClearOptions options{.adopt = call.adopt()};
      const ChangeOptions how = OptionsOf(call.options());
      options.allow_empty = how.allow_empty;
      options.dry_run = how.dry_run;
      if (call.images() != nullptr) options.images_on_node = reader.Images(call.images());
      if (!reader.ok()) return std::nullopt;
      return AnswerWith(owner.ClearDistrust(Text(call.reason()), options));
    }
    case fb::Call::AdoptUserNamespace: {
      const auto& call = *request.call_as_AdoptUserNamespace();
      return AnswerWith(
          owner.AdoptUserNamespace(Text(call.pod_uid()), call.host_id(), call.length()));
    }
    case fb::Call::ReleaseUserNamespace: {
      const auto& call = *request.call_as_ReleaseUserNamespace();
      return AnswerWith(
          owner.ReleaseUserNamespace(Text(call.pod_uid()), OptionsOf(call.options())));
    }
    case fb::Call::ReleaseLostUserNamespaces:
      return AnswerWith(owner.ReleaseLostUserNamespaces(
          OptionsOf(request.call_as_ReleaseLostUserNamespaces()->options())));
    case fb::Call::CleanUpUserNamespaces: {
      const auto& call = *request.call_as_CleanUpUserNamespaces();
      const auto existing = reader.Texts(call.existing());
      const auto running = reader.Texts(call.running());
      if (!reader.ok() || call.token() == nullptr) return std::nullopt;
      return AnswerWith(owner.CleanUpUserNamespaces(existing, running, TokenOf(*call.token()),
                                                    OptionsOf(call.options())));
    }
    case fb::Call::MakeBackup:
      return AnswerWith(owner.MakeBackup());
    case fb::Call::Forget: {
      const auto& call = *request.call_as_Forget();
      const Revocation what{.kind = static_cast<RevocationKind>(call.kind()),
                            .who = {.namespace_name = reader.Text(call.namespace_name()),
                                    .name = reader.Text(call.name()),
                                    .uid = reader.Text(call.uid())},
                            .image_ref = reader.Text(call.image_ref()),
                            .runtime_handler = reader.Text(call.runtime_handler()),
                            .credential_hash = reader.Text(call.credential_hash())};
      if (!reader.ok()) return std::nullopt;
      return AnswerWith(owner.Forget(what, OptionsOf(call.options())));
    }
    case fb::Call::Reconcile: {
      const auto& call = *request.call_as_Reconcile();
      const ExistingCredentials truth{.secrets = NamesIn(reader, call.secrets()),
                                      .service_accounts = NamesIn(reader, call.service_accounts())};
      if (!reader.ok() || call.token() == nullptr) return std::nullopt;
      return AnswerWith(owner.Reconcile(truth, TokenOf(*call.token()), OptionsOf(call.options())));
    }
    case fb::Call::RecordPullIntent: {
      const auto& call = *request.call_as_RecordPullIntent();
      return AnswerWith(owner.RecordPullIntent(
          {.image = Text(call.image()), .runtime_handler = Text(call.runtime_handler())}));
    }
    case fb::Call::RecordImagePulled: {
      const auto& call = *request.call_as_RecordImagePulled();
      const auto credentials = CredentialsIn(reader, call);
      const PullResult result = ResultIn(reader, call);
      if (!reader.ok()) return std::nullopt;
      return AnswerWith(owner.RecordImagePulled({.image = Text(call.image()),
                                                 .image_ref = Text(call.image_ref()),
                                                 .runtime_handler = Text(call.runtime_handler())},
                                                credentials, result));
    }
    case fb::Call::RecordImagePullFailed: {
      const auto& call = *request.call_as_RecordImagePullFailed();
      if (call.failure() > static_cast<std::uint8_t>(PullFailure::kNothingTransferred)) {
        return std::nullopt;
      }
      return AnswerWith(owner.RecordImagePullFailed(
          {.image = Text(call.image()), .runtime_handler = Text(call.runtime_handler())},
          static_cast<PullFailure>(call.failure()), {call.pull()}));
    }
  }
  return AnswerOf({ErrorCode::kInvalidArgument,
                   "the owner does not know this call; nothing was changed",
                   "use the version of waybill that the owner uses"});
}

Error AnswerUnreadable(bool changes) {
  return {changes ? ErrorCode::kOutcomeUnknown : ErrorCode::kUnavailable,
          changes ? "the owner's answer can't be read: the change may or may not have happened"
                  : "the owner's answer can't be read; nothing was changed",
          "look at the store to find out, and use the version of waybill that the owner uses"};
}

}  // namespace

Bytes AnswerRequest(std::span<const std::uint8_t> request, OwnerCalls& owner) {
  const auto* const root = Verified<fb::Request>(request);
  if (root == nullptr) return AnswerOf(Unintelligible());
  // A table that the verifier does not know, or none, has no content.
  if (root->call_type() <= fb::Call::MAX && root->call() == nullptr) {
    return AnswerOf(Unintelligible());
  }
  Reader reader(request.size());
  auto answer = Perform(*root, reader, owner);
  return answer ? *std::move(answer) : AnswerOf(Unintelligible());
}

Bytes AnswerOf(const Error& error) {
  Writer writer;
  const auto encoded = EncodeError(writer, error);
  return writer.Finish(fb::CreateAnswer(writer.builder(), encoded));
}

Bytes EncodeGreeting(const Greeting& greeting) {
  Writer writer;
  const OwnerDescription& owner = greeting.owner;
  return writer.Finish(fb::CreateGreeting(
      writer.builder(), greeting.store, owner.process_id, static_cast<std::uint8_t>(owner.rules),
      static_cast<std::uint8_t>(owner.evidence.short_names), owner.evidence.grace.count(),
      owner.evidence.window.count(), owner.evidence.remember.count()));
}

Result<Greeting> DecodeGreeting(std::span<const std::uint8_t> message) {
  const auto* const root = Verified<fb::Greeting>(message);
  if (root == nullptr || root->rules() > static_cast<std::uint8_t>(Rules::kKubelet) ||
      root->short_names() > static_cast<std::uint8_t>(ShortNames::kDockerHub)) {
    return Error{ErrorCode::kIo, "the owner's greeting can't be read; nothing was changed",
                 "use the version of waybill that the owner uses"};
  }
  Greeting greeting;
  greeting.store = root->store();
  greeting.owner.process_id = root->process();
  greeting.owner.rules = static_cast<Rules>(root->rules());
  greeting.owner.evidence = {.grace = std::chrono::seconds(root->grace_seconds()),
                             .window = std::chrono::seconds(root->window_seconds()),
                             .short_names = static_cast<ShortNames>(root->short_names()),
                             .remember = std::chrono::seconds(root->remember_seconds())};
  return greeting;
}

Error DecodeRefusal(std::span<const std::uint8_t> message) {
  const auto* const root = Verified<fb::Answer>(message);
  if (root != nullptr && root->error() != nullptr) return DecodeError(*root->error());
  return {ErrorCode::kIo, "what the owner said can't be read; nothing was changed",
          "use the version of waybill that the owner uses"};
}

template <typename Value, typename Make, typename Take>
Result<Value> AskingCalls::Call(bool changes, const Make& make, const Take& take) {
  bool asked = false;
  try {
    Writer writer;
    const std::pair<fb::Call, flatbuffers::Offset<void>> call = make(writer);
    Bytes request;
    if (!writer.too_large()) {
      request = writer.Finish(fb::CreateRequest(writer.builder(), call.first, call.second));
    }
    if (request.empty() || request.size() > kMaxOwnerMessageBytes) {
      return Error{ErrorCode::kLimitExceeded,
                   "the request to the owner has more than " +
                       std::to_string(kMaxOwnerMessageBytes) + " bytes; nothing was changed",
                   "stop the owner, and open the store"};
    }
    asked = true;
    const auto answer = Ask(request, changes);
    if (!answer) return answer.error();
    const auto* const root = Verified<fb::Answer>(*answer);
    if (root == nullptr) return AnswerUnreadable(changes);
    if (root->error() != nullptr) return DecodeError(*root->error());
    Reader reader(answer->size());
    return take(*root, reader);
  } catch (...) {
    return asked && changes ? AnswerUnreadable(changes) : Caught();
  }
}

namespace {

// Takes a value out of an answer, or says that it is not there.
template <typename Value>
auto Taken(bool changes) {
  return [changes](const fb::Answer& answer, Reader& reader) -> Result<Value> {
    Value value{};
    if (DecodeValue(reader, answer, value) && reader.ok()) return value;
    return AnswerUnreadable(changes);
  };
}
auto TakenDone(bool changes) {
  return [changes](const fb::Answer& answer, Reader& reader) -> Result<void> {
    std::monostate done;
    return DecodeValue(reader, answer, done) ? Result<void>() : AnswerUnreadable(changes);
  };
}

using Made = std::pair<fb::Call, flatbuffers::Offset<void>>;

}  // namespace

Result<ListToken> AskingCalls::BeginList() {
  return Call<ListToken>(
      false,
      [](Writer& writer) {
        return Made{fb::Call::BeginList, fb::CreateBeginList(writer.builder()).Union()};
      },
      Taken<ListToken>(false));
}

Result<ObserveReport> AskingCalls::ObserveImages(const ImageList& list,
                                                 const ChangeOptions& options) {
  return Call<ObserveReport>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto images = writer.Images(list.images);
        const auto source = writer.Text(list.source);
        const fb::Token token = list.token ? TokenOf(*list.token) : fb::Token();
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::ObserveImages,
                    fb::CreateObserveImages(writer.builder(), images, list.token ? &token : nullptr,
                                            list.complete, source, &how)
                        .Union()};
      },
      Taken<ObserveReport>(!options.dry_run));
}

Result<PruneReport> AskingCalls::Prune(const std::vector<ImageOnNode>& images,
                                       const ListToken& token, const ChangeOptions& options) {
  return Call<PruneReport>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto listed = writer.Images(images);
        const fb::Token drawn = TokenOf(token);
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::Prune,
                    fb::CreatePrune(writer.builder(), listed, &drawn, &how).Union()};
      },
      Taken<PruneReport>(!options.dry_run));
}

Result<PruneReport> AskingCalls::PruneBefore(const std::vector<ImageOnNode>& images,
                                             Timestamp until, const ChangeOptions& options) {
  return Call<PruneReport>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto listed = writer.Images(images);
        const auto time = ToTime(until);
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::PruneBefore,
                    fb::CreatePruneBefore(writer.builder(), listed, &time, &how).Union()};
      },
      Taken<PruneReport>(!options.dry_run));
}

Result<void> AskingCalls::AddToLedger(const ImageOnNode& image, std::string_view source,
                                      std::string_view reason, const ChangeOptions& options) {
  return Call<void>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto one = writer.Images({&image, 1});
        const auto source_at = writer.Text(source);
        const auto reason_at = writer.Text(reason);
        const fb::Options how = OptionsOf(options);
        return Made{
            fb::Call::AddToLedger,
            fb::CreateAddToLedger(writer.builder(), one, source_at, reason_at, &how).Union()};
      },
      TakenDone(!options.dry_run));
}

Result<bool> AskingCalls::RemoveFromLedger(const ImageCopy& copy, std::string_view reason,
                                           const ChangeOptions& options) {
  return Call<bool>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto ref = writer.Text(copy.image_ref);
        const auto handler = writer.Text(copy.runtime_handler);
        const auto reason_at = writer.Text(reason);
        const fb::Options how = OptionsOf(options);
        return Made{
            fb::Call::RemoveFromLedger,
            fb::CreateRemoveFromLedger(writer.builder(), ref, handler, reason_at, &how).Union()};
      },
      Taken<bool>(!options.dry_run));
}

Result<bool> AskingCalls::SettlePresumed(const ImageCopy& copy, Settled settled,
                                         std::string_view reason, const ChangeOptions& options) {
  return Call<bool>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto ref = writer.Text(copy.image_ref);
        const auto handler = writer.Text(copy.runtime_handler);
        const auto reason_at = writer.Text(reason);
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::SettlePresumed,
                    fb::CreateSettlePresumed(writer.builder(), ref, handler,
                                             settled == Settled::kClosed, reason_at, &how)
                        .Union()};
      },
      Taken<bool>(!options.dry_run));
}

Result<void> AskingCalls::DropOpenPull(PullId pull, std::string_view reason,
                                       const ChangeOptions& options) {
  return Call<void>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto reason_at = writer.Text(reason);
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::DropOpenPull,
                    fb::CreateDropOpenPull(writer.builder(), pull.value, reason_at, &how).Union()};
      },
      TakenDone(!options.dry_run));
}

Result<ObserveReport> AskingCalls::ClearDistrust(std::string_view reason,
                                                 const ClearOptions& options) {
  return Call<ObserveReport>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto reason_at = writer.Text(reason);
        flatbuffers::Offset<fb::Images> images = 0;
        if (options.images_on_node) images = writer.Images(*options.images_on_node);
        const fb::Options how(options.allow_empty, options.dry_run);
        return Made{fb::Call::ClearDistrust, fb::CreateClearDistrust(writer.builder(), reason_at,
                                                                     images, options.adopt, &how)
                                                 .Union()};
      },
      Taken<ObserveReport>(!options.dry_run));
}

Result<void> AskingCalls::AdoptUserNamespace(std::string_view pod_uid, std::uint64_t host_id,
                                             std::uint64_t length) {
  return Call<void>(
      true,
      [&](Writer& writer) {
        const auto pod = writer.Text(pod_uid);
        return Made{fb::Call::AdoptUserNamespace,
                    fb::CreateAdoptUserNamespace(writer.builder(), pod, host_id, length).Union()};
      },
      TakenDone(true));
}

Result<bool> AskingCalls::ReleaseUserNamespace(std::string_view pod_uid,
                                               const ChangeOptions& options) {
  return Call<bool>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto pod = writer.Text(pod_uid);
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::ReleaseUserNamespace,
                    fb::CreateReleaseUserNamespace(writer.builder(), pod, &how).Union()};
      },
      Taken<bool>(!options.dry_run));
}

Result<bool> AskingCalls::ReleaseLostUserNamespaces(const ChangeOptions& options) {
  return Call<bool>(
      !options.dry_run,
      [&](Writer& writer) {
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::ReleaseLostUserNamespaces,
                    fb::CreateReleaseLostUserNamespaces(writer.builder(), &how).Union()};
      },
      Taken<bool>(!options.dry_run));
}

Result<UserNamespaceCleanupReport> AskingCalls::CleanUpUserNamespaces(
    const std::vector<std::string>& existing, const std::vector<std::string>& running,
    ListToken token, const ChangeOptions& options) {
  return Call<UserNamespaceCleanupReport>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto existing_at = writer.Texts(existing);
        const auto running_at = writer.Texts(running);
        const fb::Token drawn = TokenOf(token);
        const fb::Options how = OptionsOf(options);
        return Made{
            fb::Call::CleanUpUserNamespaces,
            fb::CreateCleanUpUserNamespaces(writer.builder(), existing_at, running_at, &drawn, &how)
                .Union()};
      },
      Taken<UserNamespaceCleanupReport>(!options.dry_run));
}

Result<Backup> AskingCalls::MakeBackup() {
  auto made = Call<Backup>(
      true,
      [](Writer& writer) {
        return Made{fb::Call::MakeBackup, fb::CreateMakeBackup(writer.builder()).Union()};
      },
      Taken<Backup>(true));
  if (made) made->path = directory() / "backup" / made->path;
  return made;
}

Result<ForgetReport> AskingCalls::Forget(const Revocation& what, const ChangeOptions& options) {
  return Call<ForgetReport>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto namespace_name = writer.Text(what.who.namespace_name);
        const auto name = writer.Text(what.who.name);
        const auto uid = writer.Text(what.who.uid);
        const auto ref = writer.Text(what.image_ref);
        const auto handler = writer.Text(what.runtime_handler);
        const auto hash = writer.Text(what.credential_hash);
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::Forget,
                    fb::CreateForget(writer.builder(), static_cast<std::uint8_t>(what.kind),
                                     namespace_name, name, uid, ref, handler, hash, &how)
                        .Union()};
      },
      Taken<ForgetReport>(!options.dry_run));
}

Result<ReconcileReport> AskingCalls::Reconcile(const ExistingCredentials& truth,
                                               const ListToken& token,
                                               const ChangeOptions& options) {
  const auto parts = [](const std::vector<CredentialName>& names) {
    std::vector<std::string> texts;
    for (const CredentialName& who : names) {
      texts.insert(texts.end(), {who.namespace_name, who.name, who.uid});
    }
    return texts;
  };
  return Call<ReconcileReport>(
      !options.dry_run,
      [&](Writer& writer) {
        const auto secrets = writer.Texts(parts(truth.secrets));
        const auto accounts = writer.Texts(parts(truth.service_accounts));
        const fb::Token drawn = TokenOf(token);
        const fb::Options how = OptionsOf(options);
        return Made{fb::Call::Reconcile,
                    fb::CreateReconcile(writer.builder(), secrets, accounts, &drawn, &how).Union()};
      },
      Taken<ReconcileReport>(!options.dry_run));
}

Result<PullId> AskingCalls::RecordPullIntent(const ImageCopy& copy) {
  return Call<PullId>(
      true,
      [&](Writer& writer) {
        const auto image = writer.Text(copy.image);
        const auto handler = writer.Text(copy.runtime_handler);
        return Made{fb::Call::RecordPullIntent,
                    fb::CreateRecordPullIntent(writer.builder(), image, handler).Union()};
      },
      Taken<PullId>(true));
}

Result<void> AskingCalls::RecordImagePulled(const ImageCopy& copy,
                                            const std::optional<ImagePullCredentials>& credentials,
                                            const PullResult& result) {
  std::vector<std::string> secrets;
  std::vector<std::string> accounts;
  if (credentials) {
    for (const ImagePullSecret& secret : credentials->kubernetes_secrets) {
      secrets.insert(secrets.end(),
                     {secret.uid, secret.namespace_name, secret.name, secret.credential_hash});
    }
    for (const ImagePullServiceAccount& account : credentials->kubernetes_service_accounts) {
      accounts.insert(accounts.end(), {account.uid, account.namespace_name, account.name});
    }
  }
  std::vector<std::string> platform;
  if (result.manifest) {
    const Platform& p = result.manifest->platform;
    platform = {p.architecture, p.os, p.os_version, p.variant};
    platform.insert(platform.end(), p.os_features.begin(), p.os_features.end());
  }
  return Call<void>(
      true,
      [&](Writer& writer) {
        const auto image = writer.Text(copy.image);
        const auto ref = writer.Text(copy.image_ref);
        const auto handler = writer.Text(copy.runtime_handler);
        const auto secrets_at = writer.Texts(secrets);
        const auto accounts_at = writer.Texts(accounts);
        TextAt manifest = 0;
        flatbuffers::Offset<flatbuffers::Vector<TextAt>> platform_at = 0;
        if (result.manifest) {
          manifest = writer.Text(result.manifest->digest);
          platform_at = writer.Texts(platform);
        }
        flatbuffers::Offset<fb::Images> listed = 0;
        if (result.image) listed = writer.Images({&*result.image, 1});
        return Made{fb::Call::RecordImagePulled,
                    fb::CreateRecordImagePulled(
                        writer.builder(), image, ref, handler, credentials.has_value(),
                        credentials && credentials->node_pods_accessible, secrets_at, accounts_at,
                        result.pull.value, manifest, platform_at, listed)
                        .Union()};
      },
      TakenDone(true));
}

Result<void> AskingCalls::RecordImagePullFailed(const ImageCopy& copy, PullFailure failure,
                                                PullId pull) {
  return Call<void>(
      true,
      [&](Writer& writer) {
        const auto image = writer.Text(copy.image);
        const auto handler = writer.Text(copy.runtime_handler);
        return Made{fb::Call::RecordImagePullFailed,
                    fb::CreateRecordImagePullFailed(writer.builder(), image, handler,
                                                    static_cast<std::uint8_t>(failure), pull.value)
                        .Union()};
      },
      TakenDone(true));
}

}  // namespace waybill::internal
