// What a store must answer and hold, written a second time: in memory, slow and plain. It uses only
// the library's public types. It follows the kubelet; what Rules::kClosed does differently is in
// functions named after the rule.

#ifndef WAYBILL_TESTS_SUPPORT_MODEL_H_
#define WAYBILL_TESTS_SUPPORT_MODEL_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/known_images.h"
#include "waybill/node_store.h"

namespace waybill::testing {

struct ModelPod {
  bool available = true;
  std::vector<ImagePullSecret> secrets;
  std::optional<ImagePullServiceAccount> service_account;
};

// Of secrets or service accounts.
template <typename T>
bool SameCoordinates(const T& a, const T& b) {
  return a.uid == b.uid && a.namespace_name == b.namespace_name && a.name == b.name;
}

struct ModelPolicy {
  VerificationMode mode = VerificationMode::kNeverVerifyPreloadedImages;
  std::vector<std::string> patterns = {};
  AllowlistScope scope = AllowlistScope::kAnyImage;
};

// What a store is opened with, beside its policy.
struct ModelOpening {
  std::optional<std::vector<ImageOnNode>> images = std::nullopt;
  std::optional<std::vector<RuntimeHandler>> handlers = std::nullopt;
  Gap gap = Gap::kDetect;  // nothing here to detect one by
  // Files of the kubelet that can't be read, known by their names.
  std::set<std::string> broken_refs = {};
  std::set<std::string> broken_images = {};
};

struct ModelOpened {
  std::uint64_t intents_found = 0;
  std::uint64_t intents_replayed = 0;
  std::uint64_t gap_closed = 0;
  RuntimesReport runtimes = {};
};

class Model {
 public:
  using CopyKey = std::pair<std::string, std::string>;    // image ref, handler as it is stored
  using IntentKey = std::pair<std::string, std::string>;  // image, handler as it is stored

  explicit Model(Rules rules) : closed_(rules == Rules::kClosed) {}

  void set_now(Timestamp now) { now_ = now; }
  void set_policy(ModelPolicy policy) { policy_ = std::move(policy); }

  // The name under which records are kept; nullopt: not in the registry. Handlers are named here as
  // callers name them.
  std::optional<std::string> Stored(const std::string& handler) const;

  // A decision, which is counted, and the secret of the pod that the record gets.
  struct Answer {
    Decision decision;
    std::optional<ImagePullSecret> write_back;
  };
  Answer Check(const KnownImage& image, const std::string& ref, const ModelPod& pod,
               const std::string& handler = {});
  // The same, not counted.
  Answer Decide(const KnownImage& image, const std::string& ref, const ModelPod& pod,
                const std::string& handler) const;
  void WriteBack(const KnownImage& image, const std::string& ref, const ImagePullSecret& secret,
                 const std::string& handler = {});
  EnsureAction Ensure(const KnownImage& image, const std::string& ref, PullPolicy policy,
                      const ModelPod& pod, std::optional<ImagePullSecret>& write_back,
                      const std::string& handler = {});

  // false: refused, and nothing changed.
  bool Intent(const KnownImage& image, const std::string& handler = {});
  bool Pulled(const KnownImage& image, const std::string& ref,
              const std::optional<ImagePullCredentials>& credentials,
              const std::string& handler = {},
              const std::optional<PulledManifest>& manifest = std::nullopt);
  bool Failed(const KnownImage& image, PullFailure failure, const std::string& handler = {});
  // Whether the end of a pull may be recorded.
  bool MayEnd(const KnownImage& image, const std::string& handler) const;

  // Writes are numbered; a token is the number of the last one.
  std::uint64_t token() const { return writes_; }
  PruneReport Prune(const std::vector<ListedImage>& images, std::uint64_t token);
  PruneReport PruneBefore(const std::vector<ListedImage>& images, Timestamp until);

  // False: refused, and nothing changed.
  bool Put(const ImagePulledRecord& record);
  void Delete(const std::string& ref, const std::string& handler = {});
  bool PutIntent(const KnownImage& image, const std::string& handler = {});
  void DeleteIntent(const KnownImage& image, const std::string& handler = {});
  bool HasIntent(const KnownImage& image, const std::string& handler = {}) const;
  // nullptr: there is no such record.
  const ImagePulledRecord* Find(const std::string& ref, const std::string& handler) const;

  // The registry. Refused because of pulls in flight: nothing changed.
  bool MayReplace(const std::vector<RuntimeHandler>& handlers) const;
  RuntimesReport Replace(std::vector<RuntimeHandler> handlers);
  bool MayCollapse() const;
  CollapseReport Collapse();

  // The store was created, which is a write at this time.
  void Made() { Written(); }
  // A new process.
  ModelOpened Restart(const ModelOpening& opening);
  ModelOpened Restart() { return Restart({}); }

  // Schema versions: whether going down loses something; going down; going up, which restores
  // nothing.
  bool DownLoses() const;
  void Down();
  void Up() { Written(); }

  // Replaces this with a backup of that schema version. How many records lose their credentials.
  std::uint64_t Restore(const Model& backup, std::uint32_t version);
  void ClearDistrust();
  // Something was written that is not in this model.
  void WroteOther() { Written(); }
  bool distrustful() const { return gap_ || loss_; }

  // Here, stamps are numbers of writes: do not compare them.
  const std::map<CopyKey, ImagePulledRecord>& records() const { return records_; }
  const std::map<IntentKey, KnownImage>& intents() const { return intents_; }
  const std::vector<RuntimeHandler>& handlers() const { return handlers_; }  // sorted by name
  // Image refs and images whose files could not be read.
  const std::set<std::string>& broken_refs() const { return broken_refs_; }
  const std::set<std::string>& broken_images() const { return broken_images_; }
  std::size_t in_flight() const { return in_flight_.size(); }
  const Metrics& metrics() const { return metrics_; }

 private:
  struct InFlight {
    std::uint64_t count = 0;
    bool intent_is_older = false;  // the intent was there before, or outlived a pull
  };
  using Chosen = std::function<bool(const std::string& stored)>;

  Answer DecideCopy(const KnownImage& image, const CopyKey& copy, const ModelPod& pod) const;
  Answer Compare(const ImagePullCredentials& entry, const ModelPod& pod) const;
  Answer WithoutRecord(const KnownImage& image, const std::string& ref) const;
  bool PolicyOpens(const KnownImage& image, bool kubelet_pulled) const;
  bool AnyRecordOf(const std::string& ref) const;
  bool IntentCloses(const KnownImage& image) const;
  bool RuleThreeCloses(const KnownImage& image) const;
  bool RuleFourSpares(const ImagePulledRecord& record) const;
  std::optional<std::string> StoredOfPull(const KnownImage& image,
                                          const std::string& handler) const;
  std::optional<Platform> GuestOf(const std::string& stored) const;
  PruneReport PruneIf(const std::vector<ListedImage>& images, const auto& old_enough);
  bool Fold(const Chosen& chosen, Timestamp time, CollapseReport& report);
  bool TurnsOn(const std::vector<RuntimeHandler>& handlers) const;
  void DropOutdated(bool other_default, RuntimesReport& report);
  bool ClearBroken(const KnownImage& image, const std::string& stored);
  void TakeBroken(const ModelOpening& opening);
  bool Close(const std::string& ref, const std::string& stored, Timestamp time);
  void Replay(const std::vector<ImageOnNode>& images, ModelOpened& opened);
  void CloseGap(const std::vector<ImageOnNode>& images, ModelOpened& opened);
  void Erase(const IntentKey& key);
  void Written();
  Timestamp TimeOfWriting() const;

  const bool closed_;
  ModelPolicy policy_;
  Timestamp now_;
  Timestamp latest_{};  // of anything written
  std::uint64_t writes_ = 0;
  std::map<CopyKey, ImagePulledRecord> records_;
  std::map<IntentKey, KnownImage> intents_;
  std::vector<RuntimeHandler> handlers_;
  std::set<std::string> broken_refs_;
  std::set<std::string> broken_images_;
  // Why it is distrustful. A gap ends when the images that came meanwhile are closed; a loss, when
  // an operator says so.
  bool gap_ = false;
  bool loss_ = false;
  std::map<IntentKey, InFlight> in_flight_;
  Metrics metrics_;
};

// The first difference; "": the store holds what the model holds.
std::string Difference(const Model& model, const NodeStore& store);
std::string Difference(const Model& model, const std::vector<ImagePulledRecord>& records,
                       const std::vector<ImagePullIntent>& intents);

std::string DescribeCredentials(const ImagePullCredentials& credentials);
std::string DescribeRecord(const ImagePulledRecord& record);
std::string DescribeHandlers(const std::vector<RuntimeHandler>& handlers);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MODEL_H_
