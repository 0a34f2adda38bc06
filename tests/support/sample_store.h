// A small store with one of everything, its whole history, and questions whose answer "pull" no
// damage may change.

#ifndef WAYBILL_TESTS_SUPPORT_SAMPLE_STORE_H_
#define WAYBILL_TESTS_SUPPORT_SAMPLE_STORE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/node_store.h"
#include "waybill/values.h"

namespace waybill::testing {

// A pod that runs with a range of IDs.
struct LivingPod {
  std::string uid;
  std::uint64_t host_id = 0;
  std::uint64_t length = 0;
};

struct Probe {
  std::string image;
  std::string image_ref;
  std::vector<ImagePullSecret> secrets;
  std::string runtime_handler;
};

// A mode and a policy under which probes are asked.
struct Asking {
  Mode rules;
  Verification mode;
};
std::vector<Asking> AllAskings();

// What a probe is answered: true is "pull".
// `what_if`: by another policy than the store's.
std::vector<bool> Ask(NodeStore& store, const std::vector<Probe>& probes,
                      const VerificationPolicy* what_if = nullptr);

struct SampleStore {
  std::string database;              // data.mdb
  std::vector<std::string> history;  // data.mdb after each earlier commit, oldest first
  std::string witness;
  std::vector<Probe> probes;
  std::vector<LivingPod> living;
};

// Two tenants' records with secrets, records for all pods of the node, intents, quarantine entries,
// a preloaded record, imported files; a hash that was rotated away, records that were replaced by
// ones with fewer credentials, deleted and pruned ones; copies for several runtime handlers, and
// one whose handler got another guest platform; ledger entries, one of which was taken back, open
// pulls that ended, an image that a list closed, one with two spellings; ID ranges of pods, some of
// which were others' before. `more_records` of no special kind beside these.
SampleStore MakeSampleStore(int more_records);

}  // namespace waybill::testing

#endif  // WAYBILL_TESTS_SUPPORT_SAMPLE_STORE_H_
