// What a store must answer and hold, said a second time: in memory, slowly and plainly, knowing
// nothing of the library but its public types. Kubelet behaviour throughout; what Rules::kClosed
// does differently stands in functions named after the rule.

#ifndef WAYBILL_TESTS_SUPPORT_MODEL_H_
#define WAYBILL_TESTS_SUPPORT_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
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

struct ModelPolicy {
  VerificationMode mode = VerificationMode::kNeverVerifyPreloadedImages;
  std::vector<std::string> patterns = {};
  AllowlistScope scope = AllowlistScope::kAnyImage;
};

class Model {
 public:
  explicit Model(Rules rules) : closed_(rules == Rules::kClosed) {}

  void set_now(Timestamp now) { now_ = now; }
  void set_policy(ModelPolicy policy) { policy_ = std::move(policy); }

  // A decision, counted; and the pod's secret that is to be remembered.
  struct Answer {
    Decision decision;
    std::optional<ImagePullSecret> write_back;
  };
  Answer Check(const KnownImage& image, const std::string& ref, const ModelPod& pod);
  void WriteBack(const KnownImage& image, const std::string& ref, const ImagePullSecret& secret);
  EnsureAction Ensure(const KnownImage& image, const std::string& ref, PullPolicy policy,
                      const ModelPod& pod, std::optional<ImagePullSecret>& write_back);

  void Intent(const KnownImage& image);
  // False: refused, and nothing changed.
  bool Pulled(const KnownImage& image, const std::string& ref,
              const std::optional<ImagePullCredentials>& credentials);
  void Failed(const KnownImage& image, PullFailure failure);

  // Writes are numbered; a token is the number of the last one.
  std::uint64_t token() const { return writes_; }
  PruneReport Prune(const std::vector<std::string>& refs, std::uint64_t token);
  PruneReport PruneBefore(const std::vector<std::string>& refs, Timestamp until);

  void Put(const ImagePulledRecord& record);
  void Delete(const std::string& ref);
  void PutIntent(const KnownImage& image);
  void DeleteIntent(const KnownImage& image);
  bool HasIntent(const KnownImage& image) const { return intents_.contains(image.image); }

  // The store is made, which writes: its clock knows that time.
  void Made() { Written(); }
  // A new process. What the images on the node make of the intents; how many were matched.
  std::uint64_t Restart(const std::optional<std::vector<ImageOnNode>>& images,
                        const std::vector<KnownImage>& known);

  // Stamps are the numbers of writes here, so compare all but those.
  const std::map<std::string, ImagePulledRecord>& records() const { return records_; }
  const std::map<std::string, KnownImage>& intents() const { return intents_; }
  std::size_t in_flight() const { return in_flight_.size(); }
  const Metrics& metrics() const { return metrics_; }

 private:
  struct InFlight {
    std::uint64_t count = 0;
    bool intent_is_older = false;  // the intent was there before, or outlived a pull
  };

  Answer Decide(const KnownImage& image, const std::string& ref, const ModelPod& pod) const;
  Answer Compare(const ImagePullCredentials& entry, const ModelPod& pod) const;
  bool PolicyOpens(const KnownImage& image, bool kubelet_pulled) const;
  bool IntentCloses(const KnownImage& image) const;
  bool RuleThreeCloses(const KnownImage& image) const;
  bool RuleFourSpares(const ImagePulledRecord& record) const;
  PruneReport PruneIf(const std::vector<std::string>& refs, const auto& old_enough);
  void Erase(const KnownImage& image);
  void Written();
  Timestamp TimeOfWriting() const;

  const bool closed_;
  ModelPolicy policy_;
  Timestamp now_;
  Timestamp latest_{};  // of anything written
  std::uint64_t writes_ = 0;
  std::map<std::string, ImagePulledRecord> records_;
  std::map<std::string, KnownImage> intents_;
  std::map<std::string, InFlight> in_flight_;
  Metrics metrics_;
};

// "" where the store holds what the model does, else the first difference.
std::string Difference(const Model& model, const NodeStore& store);
std::string Difference(const Model& model, const std::vector<ImagePulledRecord>& records,
                       const std::vector<ImagePullIntent>& intents);

std::string DescribeCredentials(const ImagePullCredentials& credentials);
std::string DescribeRecord(const ImagePulledRecord& record);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_MODEL_H_
