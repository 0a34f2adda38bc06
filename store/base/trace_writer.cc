#include "store/base/trace_writer.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <set>
#include <type_traits>
#include <utility>

#include "store/base/caught.h"
#include "store/base/go_json.h"
#include "store/base/hex.h"
#include "store/base/random.h"
#include "store/base/try.h"
#include "waybill/limits.h"

namespace waybill::internal {

namespace {

constexpr std::int64_t kSecondsBetweenLists = 3600;
constexpr std::string_view kSource = "owner";

// An event in the buffer: this, then its strings, then of each credential its length and bytes.
struct Packed {
  TraceEvent::Kind kind = TraceEvent::Kind::kUse;
  std::int8_t must_pull = -1;
  bool account_first = false;
  std::uint16_t credentials = 0;
  std::int64_t time_ms = 0;
  std::uint64_t bytes = 0;
  std::int64_t took_ms = -1;
  std::string_view reason = {};
  std::uint32_t image = 0;
  std::uint32_t ref = 0;
  std::uint32_t handler = 0;
  std::uint32_t pod_namespace = 0;
};
static_assert(std::is_trivially_copyable_v<Packed>);

// Above the bound, or not UTF-8, it is left out: no such image, and no such pod, is used, and no
// reader would take it.
std::string_view Fitting(std::string_view text, std::size_t most) {
  const bool fits = text.size() <= most && ValidUtf8Prefix(text) == text.size();
  return fits ? text : std::string_view();
}

// What tells one credential from another.
constexpr std::size_t kIdentityParts = 3;
using CredentialIdentity = std::array<std::string_view, kIdentityParts>;
CredentialIdentity IdentityOf(const ImagePullSecretView& secret) {
  if (!secret.credential_hash.empty()) return {secret.credential_hash, "", ""};
  return {secret.uid, secret.namespace_name, secret.name};
}
CredentialIdentity IdentityOf(const ImagePullServiceAccountView& account) {
  return {account.uid, account.namespace_name, account.name};
}
std::size_t SizeOf(const CredentialIdentity& identity) {
  std::size_t size = kIdentityParts;
  for (const std::string_view part : identity) size += part.size();
  return size;
}
bool FitsALine(const CredentialIdentity& identity) {
  return std::ranges::all_of(
      identity, [](std::string_view part) { return part.size() <= kMaxCoordinateBytes; });
}

std::string_view Cut(std::string_view& from, std::size_t size) {
  const std::string_view part = from.substr(0, size);
  from.remove_prefix(part.size());
  return part;
}

// Another user could have made it, or read it, or it may be something else under a second name.
Result<struct ::stat> TakeAsOwn(const Fd& fd, const std::filesystem::path& path) {
  struct ::stat about {};
  if (::fstat(fd.get(), &about) != 0) return SystemError(errno, "look at", path);
  if (about.st_uid != ::geteuid() || about.st_nlink != 1) {
    return Error{ErrorCode::kUnsafePath, path.string() + " is another user's, or has a second name",
                 "name a file in a directory that only this user may write"};
  }
  if (::fchmod(fd.get(), 0600) != 0) return SystemError(errno, "protect", path);
  return about;
}

Result<std::uint64_t> BytesOf(const Fd& fd, const std::filesystem::path& path) {
  struct ::stat about {};
  if (::fstat(fd.get(), &about) != 0) return SystemError(errno, "look at", path);
  return static_cast<std::uint64_t>(about.st_size);
}

std::filesystem::path PartOf(const std::filesystem::path& path, std::size_t number) {
  return path.string() + (number == 0 ? "" : "." + std::to_string(number));
}

Error NotATrace(const std::filesystem::path& path) {
  return {ErrorCode::kInvalidArgument,
          path.string() + " is no trace of an owner, so nothing is added to it",
          "name a file that does not exist, or remove this one"};
}

// Whether the file is empty, or begins as an owner's trace. Nothing else is written to, renamed or
// removed. kNotFound: there is none.
Result<bool> IsTrace(const std::filesystem::path& path) {
  const Fd file = TRY(internal::OpenFile(path, O_RDONLY));
  const std::string header = TraceHeaderLine(kSource);
  std::string first(header.size(), '\0');
  const ssize_t read = ::pread(file.get(), first.data(), first.size(), 0);
  if (read < 0) return SystemError(errno, "read", path);
  return read == 0 || first == header;
}

Result<void> CheckParts(const TraceOptions& options, std::size_t first) {
  for (std::size_t number = first; number < kMaxTraceFiles; ++number) {
    const std::filesystem::path path = PartOf(options.path, number);
    const auto is_trace = IsTrace(path);
    if (!is_trace && is_trace.error().code != ErrorCode::kNotFound) return is_trace.error();
    if (is_trace && !*is_trace) return NotATrace(path);
  }
  return {};
}

}  // namespace

TraceWriter::TraceWriter(const TraceOptions& options, Clock clock)
    : options_(options), clock_(std::move(clock)) {}

Result<std::unique_ptr<TraceWriter>> TraceWriter::Open(const TraceOptions& options,
                                                       Clock clock) try {
  std::unique_ptr<TraceWriter> writer(new TraceWriter(options, std::move(clock)));
  TRY(CheckParts(options, 0));
  TRY(writer->OpenSalt());
  TRY(writer->OpenFile());
  writer->buffer_.reserve(kBuffer);
  writer->thread_ = std::thread([raw = writer.get()] { raw->Run(); });
  return writer;
} catch (...) {
  return Caught();
}

TraceWriter::~TraceWriter() { Stop(); }

void TraceWriter::Stop() noexcept {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  news_.notify_all();
  if (!thread_.joinable()) return;
  thread_.join();
  file_.Reset();
  salt_file_.Reset();
}

Result<void> TraceWriter::OpenSalt() {
  const std::string path = options_.path.string() + ".salt";
  salt_file_ = TRY(internal::OpenFile(path, O_RDWR | O_CREAT));
  if (::flock(salt_file_.get(), LOCK_EX | LOCK_NB) != 0) {
    return Error{ErrorCode::kOwned, "another process writes the trace " + options_.path.string(),
                 "give each owner a trace of its own"};
  }
  struct ::stat there {};
  if (::fstat(salt_file_.get(), &there) != 0) return SystemError(errno, "look at", path);
  if (there.st_size != 0 && there.st_size != static_cast<off_t>(salt_.size())) {
    return Error{ErrorCode::kInvalidArgument,
                 path + " is not what makes the pseudonyms of a trace, so no trace is written",
                 "name another file for the trace, or remove this one"};
  }
  TRY(TakeAsOwn(salt_file_, path));
  const ssize_t read = ::pread(salt_file_.get(), salt_.data(), salt_.size(), 0);
  if (read == static_cast<ssize_t>(salt_.size())) return {};
  if (!Randomise(salt_.data(), salt_.size())) {
    return Error{ErrorCode::kIo, "the kernel gave no random bytes for the trace"};
  }
  return PWriteAll(salt_file_, {reinterpret_cast<const char*>(salt_.data()), salt_.size()}, 0,
                   path);
}

Result<void> TraceWriter::OpenFile() {
  file_.Reset();
  const auto is_trace = IsTrace(options_.path);
  if (is_trace && !*is_trace) return NotATrace(options_.path);
  Fd opened = TRY(internal::OpenFile(options_.path, O_RDWR | O_CREAT | O_APPEND));
  const auto about = TRY(TakeAsOwn(opened, options_.path));
  file_ = std::move(opened);
  file_bytes_ = static_cast<std::uint64_t>(about.st_size);
  if (file_bytes_ == 0) return BeginFile();
  // A line that was cut short, by a full disk say, ends a part.
  char last = 0;
  const bool is_whole = ::pread(file_.get(), &last, 1, about.st_size - 1) == 1 && last == '\n';
  return is_whole ? Result<void>() : Rotate();
}

// Somebody emptied the file, or cut it off: it is a trace again, or nothing is added to it.
Result<void> TraceWriter::MendIfCut() {
  if (TRY(BytesOf(file_, options_.path)) == file_bytes_) return {};
  // What is left of the first line is this owner's own.
  const std::string header = TraceHeaderLine(kSource);
  std::string left(header.size(), '\0');
  const ssize_t read = ::pread(file_.get(), left.data(), left.size(), 0);
  if (read < 0) return SystemError(errno, "read", options_.path);
  left.resize(static_cast<std::size_t>(read));
  if (left == header || !header.starts_with(left)) return OpenFile();
  TRY(Empty());
  return BeginFile();
}

Result<void> TraceWriter::Empty() {
  if (::ftruncate(file_.get(), 0) != 0) return SystemError(errno, "empty", options_.path);
  return {};
}

Result<void> TraceWriter::BeginFile() {
  // The images of earlier lists are not in it.
  rotations_.fetch_add(1, std::memory_order_relaxed);
  const std::string header = TraceHeaderLine(kSource);
  auto written = PWriteAll(file_, header, 0, options_.path);
  if (written) {
    file_bytes_ = header.size();
    return {};
  }
  // Empty again, it is begun at the next try.
  static_cast<void>(::ftruncate(file_.get(), 0) == 0);
  file_.Reset();
  return written;
}

Result<void> TraceWriter::Rotate() {
  const auto part = [&](std::size_t number) { return PartOf(options_.path, number).string(); };
  TRY(CheckParts(options_, 1));
  for (std::size_t number = options_.files; number < kMaxTraceFiles; ++number) {
    if (::unlink(part(number).c_str()) != 0) break;
  }
  for (std::size_t number = options_.files; number-- > 1;) {
    if (::rename(part(number - 1).c_str(), part(number).c_str()) != 0 && errno != ENOENT) {
      return SystemError(errno, "rotate the trace", part(number - 1));
    }
  }
  if (options_.files == 1) TRY(RemoveFile(options_.path));
  file_ = TRY(internal::OpenFile(options_.path, O_RDWR | O_CREAT | O_EXCL | O_APPEND));
  return BeginFile();
}

bool TraceWriter::InPlace() const {
  FileLook there;
  if (!file_.valid() || !LookAt(options_.path.c_str(), there)) return false;
  const auto open = FileIdOf(file_, options_.path);
  return open && *open == there.id;
}

void TraceWriter::Add(const Noted& noted, std::size_t most) noexcept {
  try {
    Packed packed;
    packed.kind = noted.kind;
    packed.time_ms = TraceTime(clock_());
    if (noted.must_pull) packed.must_pull = *noted.must_pull ? 1 : 0;
    packed.bytes = noted.bytes;
    packed.took_ms = noted.took_ms.value_or(-1);
    packed.reason = noted.reason;
    const std::string_view image = Fitting(noted.copy.image, kMaxImageBytes);
    const std::string_view ref = Fitting(noted.copy.image_ref, kMaxImageRefBytes);
    const std::string_view handler = Fitting(noted.copy.runtime_handler, kMaxRuntimeHandlerBytes);
    const std::string_view pod_namespace = Fitting(noted.pod_namespace, kMaxCoordinateBytes);
    packed.image = static_cast<std::uint32_t>(image.size());
    packed.ref = static_cast<std::uint32_t>(ref.size());
    packed.handler = static_cast<std::uint32_t>(handler.size());
    packed.pod_namespace = static_cast<std::uint32_t>(pod_namespace.size());
    std::size_t size =
        sizeof(packed) + image.size() + ref.size() + handler.size() + pod_namespace.size();
    // The first ones; an account, of which there is one, before them.
    const auto each_identity = [&](const auto& take) {
      if (noted.credentials == nullptr) return;
      std::size_t count = 0;
      const auto& account = noted.credentials->service_account;
      if (account && FitsALine(IdentityOf(*account))) {
        take(IdentityOf(*account), true);
        ++count;
      }
      for (const ImagePullSecretView& secret : noted.credentials->secrets) {
        if (count == kMaxTraceCredentials) break;
        const CredentialIdentity identity = IdentityOf(secret);
        if (!FitsALine(identity)) continue;
        take(identity, false);
        ++count;
      }
    };
    each_identity([&](const CredentialIdentity& identity, bool is_account) {
      ++packed.credentials;
      packed.account_first = packed.account_first || is_account;
      size += sizeof(std::uint32_t) + SizeOf(identity);
    });

    const std::scoped_lock lock(mutex_);
    if (stopping_ || buffer_.size() + size > most) {
      Drop();
      return;
    }
    const std::size_t before = buffer_.size();
    // Nothing throws after this, so no event is half there.
    if (before + size > buffer_.capacity()) buffer_.reserve(std::max(2 * before, before + size));
    buffer_.append(reinterpret_cast<const char*>(&packed), sizeof(packed));
    buffer_.append(image).append(ref).append(handler).append(pod_namespace);
    each_identity([&](const CredentialIdentity& identity, bool) {
      const auto length = static_cast<std::uint32_t>(SizeOf(identity));
      buffer_.append(reinterpret_cast<const char*>(&length), sizeof(length));
      for (const std::string_view part : identity) buffer_.append(part).append(1, '\0');
    });
    ++noted_;
    const bool is_half = before < kBuffer / 2 && buffer_.size() >= kBuffer / 2;
    if (is_half) news_.notify_one();
  } catch (...) {
    Drop();
  }
}

void TraceWriter::AddList(const std::vector<ListedImage>& images) noexcept {
  try {
    const std::scoped_lock lock(list_mutex_);
    // The parts with the images of earlier lists will go.
    const std::uint64_t rotations = rotations_.load(std::memory_order_relaxed);
    const bool anew = std::exchange(listed_in_, rotations) != rotations;
    std::map<std::string, Listed> now;
    bool changed = false;
    for (const ListedImage& image : images) {
      const std::string& name = !image.repo_tags.empty()      ? image.repo_tags.front()
                                : !image.repo_digests.empty() ? image.repo_digests.front()
                                                              : std::string();
      const auto was = listed_.find(image.id);
      // Not every list says it: one that came through the socket does not.
      const std::uint64_t bytes =
          image.bytes == 0 && was != listed_.end() ? was->second.bytes : image.bytes;
      const auto [at, added] =
          now.try_emplace(image.id, Listed{name, image.runtime_handler, bytes});
      if (!added) continue;
      if (!anew && was != listed_.end() && was->second == at->second) continue;
      changed = true;
      Add({.kind = TraceEvent::Kind::kImage,
           .copy = {.image = name, .image_ref = image.id, .runtime_handler = image.runtime_handler},
           .bytes = bytes},
          kBufferOfLists);
    }
    for (const auto& [ref, listed] : listed_) {
      if (now.contains(ref)) continue;
      changed = true;
      Add({.kind = TraceEvent::Kind::kRemoved,
           .copy = {.image = listed.image,
                    .image_ref = ref,
                    .runtime_handler = listed.runtime_handler},
           .bytes = listed.bytes},
          kBufferOfLists);
    }
    listed_.swap(now);
    const std::int64_t seconds = clock_().seconds;
    const bool is_due =
        !listed_at_ || seconds < *listed_at_ || seconds - *listed_at_ >= kSecondsBetweenLists;
    if (!changed && !is_due) return;
    listed_at_ = seconds;
    Add({.kind = TraceEvent::Kind::kList}, kBufferOfLists);
  } catch (...) {
    Drop();
  }
}

void TraceWriter::AddRecord(const ImagePulledRecord* before,
                            const ImagePulledRecord& record) noexcept try {
  const ImagePullCredentials none;
  const auto is_in = [](const auto& all, const auto& one) {
    return std::ranges::find(all, one) != all.end();
  };
  for (const auto& [image, has] : record.credential_mapping) {
    const ImagePullCredentials* had = &none;
    if (before != nullptr) {
      const auto at = before->credential_mapping.find(image);
      if (at != before->credential_mapping.end()) had = &at->second;
    }
    const ImageCopy copy{
        .image = image, .image_ref = record.image_ref, .runtime_handler = record.runtime_handler};
    if (has.node_pods_accessible && !had->node_pods_accessible) Add({.copy = copy});
    for (const ImagePullSecret& secret : has.kubernetes_secrets) {
      if (is_in(had->kubernetes_secrets, secret)) continue;
      const ImagePullSecretView view(secret);
      const PodCredentials one{.secrets = {&view, 1}};
      Add({.copy = copy, .pod_namespace = secret.namespace_name, .credentials = &one});
    }
    for (const ImagePullServiceAccount& account : has.kubernetes_service_accounts) {
      if (is_in(had->kubernetes_service_accounts, account)) continue;
      const PodCredentials one{.service_account = ImagePullServiceAccountView(account)};
      Add({.copy = copy, .pod_namespace = account.namespace_name, .credentials = &one});
    }
  }
} catch (...) {
  Drop();
}

void TraceWriter::Run() {
  std::string noted;
  noted.reserve(kBuffer);
  std::unique_lock lock(mutex_);
  for (;;) {
    news_.wait_for(lock, options_.written_within,
                   [&] { return stopping_ || buffer_.size() >= kBuffer / 2; });
    if (buffer_.empty()) {
      if (stopping_) return;
      continue;
    }
    noted.swap(buffer_);
    const std::uint64_t events = std::exchange(noted_, 0);
    lock.unlock();
    const std::uint64_t before = written();
    try {
      Write(noted);
    } catch (...) {
    }
    dropped_.fetch_add(events - (written() - before), std::memory_order_relaxed);
    noted.clear();
    // A long list is no reason to keep its memory.
    if (noted.capacity() > 2 * kBuffer) {
      noted = std::string();
      noted.reserve(kBuffer);
    }
    lock.lock();
  }
}

void TraceWriter::Write(std::string_view noted) {
  constexpr std::size_t kAtOnce = std::size_t{64} << 10;
  if (!InPlace() && !OpenFile()) return;
  std::string lines;
  std::uint64_t events = 0;
  const auto append = [&] {
    if (Append(lines)) written_.fetch_add(events, std::memory_order_relaxed);
    lines.clear();
    events = 0;
  };
  while (!noted.empty()) {
    lines += TraceLine(Decode(noted));
    ++events;
    if (lines.size() >= kAtOnce) append();
  }
  if (events > 0) append();
}

// All of the lines or none.
Result<void> TraceWriter::Append(std::string_view lines) {
  if (!file_.valid()) TRY(OpenFile());
  TRY(MendIfCut());
  if (file_bytes_ + lines.size() > options_.max_file_bytes) TRY(Rotate());
  auto written = PWriteAll(file_, lines, static_cast<off_t>(file_bytes_), options_.path);
  if (!written) {
    if (::ftruncate(file_.get(), static_cast<off_t>(file_bytes_)) != 0) file_.Reset();
    return written;
  }
  file_bytes_ += lines.size();
  if (TRY(BytesOf(file_, options_.path)) != lines.size()) return {};
  // Emptied since the look: what was added is all that it has.
  TRY(Empty());
  TRY(BeginFile());
  return Append(lines);
}

std::string TraceWriter::Pseudonym(std::string_view kind, std::string_view identity) const {
  std::string salted(reinterpret_cast<const char*>(salt_.data()), salt_.size());
  salted.append(kind).append(identity);
  const auto digest = Sha256(salted);
  if (!digest) throw std::bad_alloc();
  return HexEncode(std::span(*digest).first(kTracePseudonymDigits / 2));
}

TraceEvent TraceWriter::Decode(std::string_view& noted) const {
  Packed packed;
  std::memcpy(&packed, noted.data(), sizeof(packed));
  noted.remove_prefix(sizeof(packed));
  TraceEvent event;
  event.kind = packed.kind;
  event.time_ms = packed.time_ms;
  event.image = Cut(noted, packed.image);
  event.ref = Cut(noted, packed.ref);
  event.runtime_handler = Cut(noted, packed.handler);
  event.pod_namespace = Cut(noted, packed.pod_namespace);
  event.reason = packed.reason;
  if (packed.must_pull >= 0) event.must_pull = packed.must_pull != 0;
  if (packed.bytes > 0) event.bytes = packed.bytes;
  if (packed.took_ms >= 0) event.took_ms = packed.took_ms;
  std::set<std::string> pseudonyms;
  for (std::uint16_t i = 0; i < packed.credentials; ++i) {
    std::uint32_t length = 0;
    std::memcpy(&length, noted.data(), sizeof(length));
    noted.remove_prefix(sizeof(length));
    const bool is_account = packed.account_first && i == 0;
    pseudonyms.insert(Pseudonym(is_account ? "account" : "secret", Cut(noted, length)));
  }
  event.credentials.assign(pseudonyms.begin(), pseudonyms.end());
  return event;
}

}  // namespace waybill::internal
