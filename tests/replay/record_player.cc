// records.jsonl: {"kind":"pulled","key":"sha256:…","case":"field twice","file":"{…}",
// "accepted":false,"exists":true}, and "rewritten" where the kubelet accepts the file and writes it
// back. `key` is the image ref, or for "pulling" the image string, whose SHA-256 names the file.
// "fileBase64" stands in for "file" where that is not text; neither: an empty file.
//
// Each file is taken over by a store of its own. Accepted means that the record, or the intent, is
// there and encodes to what the kubelet wrote back; refused that a quarantine entry closes the key
// even under NeverVerify.

#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "migrations/kubelet_files/kubelet_records.h"
#include "store/base/options.h"
#include "tests/replay/fields.h"
#include "tests/replay/player.h"
#include "tests/support/kubelet_dir.h"
#include "tests/support/memory_dir.h"
#include "tests/support/node_store.h"
#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"
#include "waybill/values.h"

namespace waybill::replay {

namespace {

using nlohmann::json;
using testing::Must;
using testing::NodeStore;

// What is asked of a file: the kubelet's verdict, but for the cases below.
enum class Verdict { kAccept, kRefuse, kEither };

struct Exception {
  std::string_view folder;
  std::string_view name;
  Verdict verdict;
};

// Where waybill means to differ from v1.36.3.
constexpr std::array kExceptions = {
    // The two forms that the text of KEP-2535 shows are accepted.
    Exception{"pulled", "group of the KEP's text", Verdict::kAccept},
    Exception{"pulled", "field of the KEP's text", Verdict::kAccept},
    // A file that no kubelet writes may be refused, even if the kubelet's lenient parser takes it.
    Exception{"pulled", "YAML", Verdict::kEither},
    Exception{"pulled", "invalid UTF-8", Verdict::kEither},
    Exception{"pulled", "lone surrogate", Verdict::kEither},
    Exception{"pulled", "byte order mark", Verdict::kEither},
    // Where the kubelet says "no such record", and so opens the image, the file is damaged.
    Exception{"pulled", "another ref inside", Verdict::kRefuse},
    Exception{"pulled", "ref null", Verdict::kRefuse},
    Exception{"pulling", "another image inside", Verdict::kRefuse},
};

Verdict VerdictOf(std::string_view folder, std::string_view name, bool accepted) {
  const auto* it = std::find_if(kExceptions.begin(), kExceptions.end(), [&](const Exception& e) {
    return e.folder == folder && e.name == name;
  });
  if (it != kExceptions.end()) return it->verdict;
  return accepted ? Verdict::kAccept : Verdict::kRefuse;
}

std::string FromBase64(std::string text) {
  if (text.size() % 4 != 0) throw MalformedLine("field \"fileBase64\" is not base64");
  const auto padding = static_cast<std::size_t>(std::count(
      text.end() - static_cast<int>(std::min<std::size_t>(2, text.size())), text.end(), '='));
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size =
      EVP_DecodeBlock(static_cast<unsigned char*>(static_cast<void*>(bytes.data())),
                      static_cast<const unsigned char*>(static_cast<const void*>(text.data())),
                      static_cast<int>(text.size()));
  if (size < 0) throw MalformedLine("field \"fileBase64\" is not base64");
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

std::string ContentOf(const json& line) {
  if (line.contains("fileBase64")) return FromBase64(RequireString(line, "fileBase64"));
  if (line.contains("file")) return RequireString(line, "file");
  return "";
}

constexpr std::string_view kRefused = "refused, and closed";

class RecordPlayer final : public Player {
 public:
  void Play(const json& line, Log& log) override {
    RequireOnly(line,
                {"kind", "key", "case", "file", "fileBase64", "accepted", "exists", "rewritten"});
    const std::string folder = RequireString(line, "kind");
    if (folder != "pulled" && folder != "pulling") {
      throw MalformedLine("field \"kind\" is neither \"pulled\" nor \"pulling\"");
    }
    const std::string name = RequireString(line, "case");
    const std::string key = RequireString(line, "key");
    const std::string content = ContentOf(line);
    const Verdict verdict = VerdictOf(folder, name, RequireBool(line, "accepted"));

    const testing::MemoryDir scratch;
    testing::WriteRecordFile(scratch / "kubelet", folder, key, content);
    NodeStoreOptions options{.directory = scratch / "store", .witness = Witness::None()};
    options.rules = Mode::kKubelet;
    options.policy = testing::MakePolicy(Verification::kNeverVerify);
    options.kubelet_directory = scratch / "kubelet";
    const std::string what = folder + ", " + name;
    const Result<std::unique_ptr<NodeStore>> opened = NodeStore::Open(std::move(options));
    if (!opened) {
      log.Compare(what, "a store that opens", opened.error().ToString());
      return;
    }
    NodeStore& store = **opened;

    const std::string got = folder == "pulled" ? Pulled(store, key) : Pulling(store, key);
    if (verdict == Verdict::kRefuse || (verdict == Verdict::kEither && got == kRefused)) {
      log.Compare(what, std::string(kRefused), got);
    } else if (line.contains("rewritten")) {
      log.Compare(what, Text(line["rewritten"]), got);
    } else if (got.starts_with('{')) {
      log.Same();  // accepted against the kubelet, which so wrote nothing back
    } else {
      log.Compare(what, "accepted", got);
    }
  }

 private:
  // The record as JSON; kRefused; or what is wrong.
  static std::string Pulled(NodeStore& store, const std::string& ref) {
    if (Quarantined(store, QuarantineKind::kImageRef, ref)) {
      return Closes(store, "registry.example.com/a:v1", ref);
    }
    const Result<ImagePulledRecord> record = store.GetRecord({.image_ref = ref});
    if (!record) return "no record: " + record.error().ToString();
    return Text(json::parse(EncodePulledRecord(*record)));
  }

  static std::string Pulling(NodeStore& store, const std::string& image) {
    if (Quarantined(store, QuarantineKind::kImage, image)) {
      return Closes(store, image, "sha256:some-image");
    }
    const Result<bool> there = store.HasIntent({.image = image});
    if (!there) return "no intent: " + there.error().ToString();
    if (!*there) return "no intent";
    return Text(json::parse(EncodePullIntent({image})));
  }

  static bool Quarantined(NodeStore& store, QuarantineKind kind, const std::string& key) {
    const std::vector<QuarantinedFile> entries = Must(store.ListQuarantine());
    const std::string sha256 = testing::Sha256Hex(key);
    return std::any_of(entries.begin(), entries.end(), [&](const QuarantinedFile& entry) {
      return entry.kind == kind && entry.sha256 == sha256;
    });
  }

  static std::string Closes(NodeStore& store, const std::string& image, const std::string& ref) {
    testing::Pod pod;
    const Decision decision = store.MustAttemptPull({.image = image, .image_ref = ref}, pod);
    if (decision.pull && (ref.empty() || decision.result == CheckResult::kError)) {
      return std::string(kRefused);
    }
    return "refused, but a decision says " + std::string(ReasonName(decision.reason));
  }
};

}  // namespace

std::unique_ptr<Player> MakeRecordPlayer() { return std::make_unique<RecordPlayer>(); }

}  // namespace waybill::replay
