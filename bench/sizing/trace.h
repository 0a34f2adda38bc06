// A node's life as a list of events, made from a shape and a seed: the same for both, on each
// machine. Each decision carries the answer that the kubelet's rules give, so that every side that
// replays the trace is checked against a third opinion.

#ifndef WAYBILL_BENCH_SIZING_TRACE_H_
#define WAYBILL_BENCH_SIZING_TRACE_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "bindings/cli/node_shape.h"
#include "waybill/values.h"

namespace waybill::bench {

// A tenant's Secret, by numbers: which one it is, and which credential it holds.
struct SecretId {
  std::uint32_t tenant = 0;
  std::uint32_t credential = 0;
};

// Application `app` in the version whose image ref is number `ref`.
struct ImageId {
  std::uint32_t app = 0;
  std::uint32_t ref = 0;
};

struct Event {
  enum class Kind : std::uint8_t {
    kDecide,      // a container of a pod starts
    kPull,        // intent, pull, record
    kFailedPull,  // intent, and the runtime reports an error
    kCutPull,     // intent, and the node goes down
    kList,        // a complete list of the images; before it, `collected` were deleted
    kRestart,
  };
  Kind kind = Kind::kDecide;
  bool filling = false;     // before the node's life: images that it starts with
  std::int64_t second = 0;  // since the node began
  ImageId image = {};
  bool pull = false;                     // kDecide: the answer
  Reason reason = Reason::kImageAbsent;  // of it
  bool writes_back = false;              // and the Secret is written to the record
  std::vector<SecretId> secrets = {};    // kDecide: the pod's; kPull: proven. None: public
  std::vector<ImageId> collected = {};
};

inline constexpr std::int64_t kBegin = 1'767'225'600;  // 2026-01-01T00:00:00Z

// The texts of a trace, as a node would have them.
std::string ImageText(ImageId image);
std::string RefText(std::uint32_t ref);
std::string RepoDigestText(ImageId image);
ImagePullSecret SecretText(SecretId secret);

// xorshift128+, so that a trace does not depend on the standard library.
class Draws {
 public:
  explicit Draws(std::uint64_t seed);
  std::uint64_t Next();
  std::uint64_t Below(std::uint64_t bound) { return Next() % bound; }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  bool Percent(double percent) { return Unit() * 100 < percent; }
  // A whole number whose mean is `mean`: it, or the next one.
  std::uint64_t Around(double mean);

 private:
  std::uint64_t state_[2];
};

class Trace {
 public:
  Trace(const cli::NodeShape& shape, std::uint64_t seed, double days);

  // nullopt: the trace is over.
  std::optional<Event> Next();

  const std::vector<ImageId>& preloaded() const { return preloaded_; }

 private:
  // What is known of an image on the node.
  struct Present {
    ImageId image = {};
    std::int64_t last_used = 0;
    std::uint32_t pods = 0;
    bool is_public = false;
    bool has_record = true;
    std::map<std::uint32_t, std::uint32_t> secrets = {};  // tenant → credential
  };
  struct App {
    std::uint32_t ref = 0;
    bool is_public = false;
    bool is_fixed = false;
    bool is_preloaded = false;
    std::vector<std::uint32_t> slots = {};  // of the tenants that use it
  };
  struct Tenant {
    std::uint32_t id = 0;
    bool shares = false;
    std::uint32_t credential = 0;
  };
  enum class Task : std::uint8_t { kPodStart, kVersion, kRotation, kTurnover, kList, kRestart };

  void Fill();
  void PlanDay();
  void Do(Task task, std::int64_t second);
  void StartPod(std::int64_t second);
  void StartContainer(std::int64_t second, std::vector<std::uint32_t>& pod);
  void PullImage(std::int64_t second, const App& app, ImageId image, SecretId secret);
  void ListImages(std::int64_t second);
  void Emit(Event event) { queue_.push_back(std::move(event)); }
  SecretId SecretOf(std::uint32_t slot) const;
  std::uint32_t PickApp();

  cli::NodeShape shape_;
  Draws draws_;
  double days_;
  std::int64_t day_ = 0;
  std::uint32_t next_ref_ = 1;
  std::uint32_t next_tenant_ = 1;
  std::uint32_t next_credential_ = 2;  // 1 is the shared one, at first
  std::uint32_t shared_credential_ = 1;
  std::vector<App> apps_;
  std::vector<double> popularity_;  // summed up
  std::vector<Tenant> tenants_;
  std::vector<ImageId> preloaded_;
  std::map<std::uint32_t, Present> present_;  // by ref
  std::deque<std::vector<std::uint32_t>> pods_;
  std::vector<std::pair<std::int64_t, Task>> plan_;
  std::size_t planned_ = 0;
  std::deque<Event> queue_;
};

// Days of a node as a trace (store/base/trace.h): what its owner would have written. The images
// that came with the node, and those that it begins with, are listed as such.
std::string TraceText(const cli::NodeShape& shape, std::uint64_t seed, double days);

}  // namespace waybill::bench

#endif  // WAYBILL_BENCH_SIZING_TRACE_H_
