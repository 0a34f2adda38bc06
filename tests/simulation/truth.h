// What really happened: which content came to the node how, and who proved what for it. It sees
// what a judge above the node would see, and decides whether an answer was right.

#ifndef WAYBILL_TESTS_SIMULATION_TRUTH_H_
#define WAYBILL_TESTS_SIMULATION_TRUTH_H_

#include <compare>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/base/options.h"
#include "store/base/policy.h"
#include "tests/simulation/world.h"
#include "waybill/values.h"

namespace waybill::simulation {

// The order of what happened. Two things have the same step only if they happened at once.
using Step = std::uint64_t;

// The limits that EVIDENCE names for openings.
// kLost is that the runtime said of a pull that failed that nothing is there, and it came after
// all. kPresumed is what the kubelet before the first take-over presumed preloaded.
enum class Limit { kNone, kLate, kPartialList, kRetagged, kLost, kPresumed };

// What a pod holds out, by value.
struct Proof {
  bool anonymous = false;  // every pod of the node
  std::optional<ImagePullSecret> secret = {};
  std::optional<ImagePullServiceAccount> account = {};
};

// By their coordinates.
bool SameSecret(const ImagePullSecret& a, const ImagePullSecret& b);

// By which of them a pod may have an image.
enum class Means { kAnyway, kByProof };

// One pull that proved something.
struct Evidence {
  Step began = 0;            // the pull; 0: nobody can say
  std::int64_t proven = 0;   // by the node's clock, in seconds
  std::int64_t counted = 0;  // by what the node's store can have counted, in seconds
  Step recorded = 0;
  std::int64_t good_until = 0;  // by that clock; 0: it does not end by itself
};

// What proofs are kept under: the image name, of one runtime handler's copy.
struct CopyName {
  std::string name;
  std::string runtime_handler;  // empty: the default
  friend auto operator<=>(const CopyName&, const CopyName&) = default;
};

class Truth {
 public:
  // --- What happened ---

  // An operator or an installer brought it.
  void BroughtByHand(ContentIndex content, bool was_there, Step now);
  // A pull brought it; whether anybody records that is another matter. `late`: after the time until
  // which the store had to expect it. `lost`: the runtime had said that it is not there.
  void BroughtByPull(ContentIndex content, bool was_there, bool late, bool lost, Step now);
  // A pull's success was recorded, with what the registry had accepted. `known_began`: when the
  // store takes the pull to have begun, which may be earlier. nullopt: the store need not hear of
  // it.
  void Proven(ContentIndex content, const CopyName& name, const Proof& proof, Step began,
              std::optional<Step> known_began, Step now, std::int64_t good_until = 0);
  // The kubelet without waybill takes it for preloaded, and is believed.
  void Presumed(ContentIndex content) { images_[content].presumed = true; }
  // A match opened it, and what the pod held out is kept with what that match was worth. Not
  // `is_sure`: something is forgotten meanwhile.
  void WrittenBack(ContentIndex content, const CopyName& name, const ImagePullSecret& secret,
                   bool by_hash, bool is_sure, Step now);
  void Removed(ContentIndex content);
  // The store was given a complete list, made after `token`, without the contents that are missing
  // in `listed`. Whatever came or was proven before is over for those.
  void SeenGone(const std::set<ContentIndex>& listed, Step token);
  // The store judged it.
  void Judged(ContentIndex content) { images_[content].judged = true; }
  // An operator's words, both true.
  void CalledPreloaded(ContentIndex content, Step now);
  // `for_good`: until somebody calls it preloaded, whoever brings it anew.
  void CalledNotPreloaded(ContentIndex content, bool for_good);
  // Its disk goes, with all that is true of it, and comes back. What a store must know of it ends.
  void WentAway(ContentIndex content);
  void CameBack(ContentIndex content, Step now) {
    images_[content].away = false;
    images_[content].back = now;
  }
  // A new image of the index that has `of`. Who may pull an index may pull each of its images, so
  // what was proven for one of them is true of each: a runtime that returns the index's digest does
  // not tell which one it was. What is forgotten of one of them stays true of the others.
  void NewOfIndex(ContentIndex of, ContentIndex content);
  // Somebody gave it another name by hand.
  void Retagged(ContentIndex content);
  // A partial list without it was passed as complete while it was on the node.
  void LeftOut(ContentIndex content) { images_[content].left_out = true; }
  // What was forgotten by a call that succeeded: nothing counts that a pull proved which began
  // before. `keeps`: what such a pull proves later does not count either.
  void Revoked(const Revocation& what, bool keeps, Step now);
  // Likewise one handler's copy of an image.
  void RevokedImage(ContentIndex content, const std::string& handler, bool keeps, Step now);
  // What does not exist and was proven by pulls that began before the token.
  void Reconciled(const ExistingCredentials& existing, Step token);
  // A kubelet ran alone, and left nothing by which the store could see that: a limit.
  void RanUnseen();
  // How long proofs count, and how much longer a store may take them to that can't trust its clock.
  void LimitAges(std::chrono::seconds max_age, std::chrono::seconds revocations_kept,
                 std::int64_t slack) {
    max_age_ = max_age;
    revocations_kept_ = revocations_kept;
    slack_ = slack;
  }
  // The time, and what a store can have counted of it.
  void SetClock(std::int64_t seconds, std::int64_t counted) {
    clock_ = seconds;
    counted_ = counted;
  }
  void ClockJumped(Step now) { jumped_ = now; }
  // A kubelet has its memory until the machine reboots: so long no revocation from before ends.
  void KubeletBegan(Step now) { kubelet_began_ = now; }
  // The store lost what it knew, or closed what it could not tell from what was pulled.
  void Forgotten();
  void Forgotten(ContentIndex content) { Forget(images_[content]); }
  // The store closed what it had neither recorded nor judged before.
  void ForgottenUnjudged();

  // --- What follows ---

  // Whether a pod with that proof may have the content under that image name.
  bool MayHave(ContentIndex content, const CopyName& name, const Proof& proof,
               Means means = Means::kAnyway) const;
  // Whether a store must know that. Less than MayHave: after a loss it can't.
  bool MustKnow(ContentIndex content, const CopyName& name, const Proof& proof) const;
  // Whether this very Secret, as it is now, was proven.
  bool HasVery(ContentIndex content, const CopyName& name, const ImagePullSecret& secret) const;
  // Whether a Secret or a service account is, or was, surely on record.
  bool IsPrivate(ContentIndex content, const CopyName& name) const;
  bool CameByHand(ContentIndex content) const;
  // By an operator's word that holds.
  bool IsClosed(ContentIndex content) const;
  bool IsRecorded(ContentIndex content) const;
  // Brought by pulls only, none recorded since.
  bool IsUnrecorded(ContentIndex content) const;
  // Which limit explains that the content is open to all.
  Limit WhyOpen(ContentIndex content) const;
  std::string Describe(ContentIndex content) const;
  // Why a pod that holds this out must not have the content: what a store that let it in forgot.
  std::string_view WhyClosed(ContentIndex content, const CopyName& name, const Proof& proof) const;

 private:
  template <typename T>
  struct Credential {
    T what;
    std::vector<Evidence> evidence;
  };
  struct Proofs {
    std::vector<Evidence> anonymous;
    std::vector<Credential<ImagePullSecret>> secrets;
    std::vector<Credential<ImagePullServiceAccount>> accounts;
    // Takes away what `leaves` says: (credential or nullptr, its evidence).
    template <typename Leaves>
    void Drop(const Leaves& leaves);
  };
  // What is known counts only if it is sure that it does.
  enum class Kind { kTrue, kKnown };
  struct Forgetting {
    Revocation what;                                   // of kImage: only that
    std::optional<ContentIndex> content = {};          // of kImage
    std::optional<ExistingCredentials> existing = {};  // of a truth, in order; `what` is nothing
    Step at = 0;
    std::int64_t clock = 0;
  };
  bool IsOver(const Forgetting& forgetting) const;
  struct Image {
    Step by_hand = 0;      // 0: not, as far as any list can tell
    bool stayed = false;   // on the node since it was brought by hand, and brought by hand first
    bool knowable = true;  // nothing was lost since
    Step pulled = 0;       // the last arrival by a pull
    bool first_pull_late = false;
    bool first_pull_lost = false;
    bool presumed = false;
    bool judged = false;
    bool left_out = false;
    bool retagged_unjudged = false;
    bool closed = false;  // by an operator, for good
    bool away = false;    // with its disk
    Step back = 0;        // a list that was drawn before can't say that it is gone
    Step recorded = 0;    // the last record; 0: none
    std::map<CopyName, Proofs> proofs;
    std::map<CopyName, Proofs> known_proofs;  // of these, what was not lost
    std::set<CopyName> private_names;         // had Secrets or service accounts in it
  };
  static void Forget(Image& image);
  bool Counts(const Evidence& evidence, Kind kind) const;
  bool Match(const Proofs& proofs, const Proof& proof, Kind kind) const;
  // A hash that was forgotten matches nothing by the coordinates that it is shown with.
  bool IsHashForgotten(std::string_view hash, Kind kind) const;
  // Nothing for nullptr, that all pods may have it.
  template <typename T>
  bool Covers(const Forgetting& forgetting, const T* credential, const Evidence& evidence,
              ContentIndex content, const CopyName& name, Kind kind) const;
  template <typename T>
  bool IsRevoked(const T* credential, const Evidence& evidence, ContentIndex content,
                 const CopyName& name, Kind kind, bool by_match = false) const;
  void Apply(const Forgetting& forgetting, bool keeps);
  const Image* Find(ContentIndex content) const;
  // Itself among them.
  std::vector<ContentIndex> AllOfIndex(ContentIndex content) const;

  std::map<ContentIndex, Image> images_;
  std::map<ContentIndex, std::vector<ContentIndex>> of_one_index_;
  std::vector<Forgetting> forgettings_;
  Step last_truth_ = 0;  // its token
  std::chrono::seconds max_age_{0};
  std::chrono::seconds revocations_kept_{std::chrono::hours(24 * 30)};
  std::int64_t slack_ = 0;
  std::int64_t clock_ = 0;
  std::int64_t counted_ = 0;
  Step jumped_ = 0;
  Step kubelet_began_ = std::numeric_limits<Step>::max();
};

}  // namespace waybill::simulation

#endif  // WAYBILL_TESTS_SIMULATION_TRUTH_H_
