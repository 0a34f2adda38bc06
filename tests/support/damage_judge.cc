#include "tests/support/damage_judge.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "tests/support/forked_child.h"
#include "tests/support/memory_dir.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

namespace {

// The files are dealt out to this many processes.
constexpr std::size_t kWorkers = 2;

// Where `after` says "no pull" and `before` did not.
std::optional<std::size_t> FirstOpened(const std::vector<bool>& before,
                                       const std::vector<bool>& after) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (before[i] && !after[i]) return i;
  }
  return std::nullopt;
}

std::string Describe(const Probe& probe, const Asking& asking) {
  return probe.image + (probe.secrets.empty() ? "" : " by " + probe.secrets[0].namespace_name) +
         (asking.rules == Mode::kStrict ? ", closed rules, " : ", kubelet rules, ") +
         std::string(WordOf(asking.mode));
}

std::string FirstOf(const std::vector<std::string>& findings) {
  return findings.empty() ? "" : findings.front();
}

void WriteOver(const std::filesystem::path& path, const std::string& bytes) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  const bool written =
      fd >= 0 && pwrite(fd, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()) &&
      ftruncate(fd, static_cast<off_t>(bytes.size())) == 0;
  if (fd >= 0) close(fd);
  if (!written) throw std::runtime_error("cannot write " + path.string());
}

bool Covers(HostIdRange range, const LivingPod& pod) {
  return range.first <= pod.host_id && range.first + range.length >= pod.host_id + pod.length;
}

// The first fault: a pod has another mapping than it runs with, or some of its IDs could be handed
// out. "": no fault. Writes nothing.
std::string FaultOfRanges(const NodeStore& store, const std::vector<LivingPod>& living) {
  const auto mappings = store.ListUserNamespaces();
  const auto held = store.ListHeldPods();
  const auto statistics = store.GetUserNamespaceStatistics();
  if (!mappings || !held || !statistics) return "the ranges can't be read";
  const bool refused = !statistics->refused_because.empty();
  for (const LivingPod& pod : living) {
    bool has_it = false;
    for (const PodMapping& mapping : *mappings) {
      if (mapping.pod_uid != pod.uid) continue;
      has_it = mapping.host_id == pod.host_id && mapping.length == pod.length;
      if (!has_it) return "pod " + pod.uid + " has another range";
    }
    const bool is_held = std::any_of(held->begin(), held->end(), [&](const QuarantinedPod& one) {
      return std::any_of(one.ranges.begin(), one.ranges.end(),
                         [&](HostIdRange range) { return Covers(range, pod); });
    });
    if (!has_it && !is_held && !refused) {
      return "the range of pod " + pod.uid + " could be handed out again";
    }
  }
  return {};
}

void AddUp(DamageVerdicts& sum, const DamageVerdicts& part) {
  sum.judged += part.judged;
  sum.accepted += part.accepted;
  sum.set_aside += part.set_aside;
  sum.distrusted += part.distrusted;
  sum.refused += part.refused;
  sum.opened += part.opened;
  sum.changed += part.changed;
  sum.unrepaired += part.unrepaired;
  sum.failed += part.failed;
  sum.crashes += part.crashes;
  if (sum.first_fault[0] == '\0') sum.first_fault = part.first_fault;
}

}  // namespace

// A directory of its own, and a child that judges the files first, first + step, ...
class DamageJudge::Worker {
 public:
  struct Job {
    std::size_t first = 0;
    std::size_t step = 1;
    std::size_t count = 0;
    const Damage* damage = nullptr;
    OpenedBy by = OpenedBy::kOwner;
    bool every_asking = false;
  };

  Worker(const DamageJudge& judge, const Job& job) : judge_(judge), job_(job) {
    if (mkdir(directory().c_str(), 0700) != 0) throw std::runtime_error("mkdir");
    shared_->next = job.first;
  }

  // The answers of the sound store.
  Answers Baseline(const Asking& asking) {
    PutInPlace(judge_.sample_.database);
    const auto store = Must(NodeStore::Open(OptionsFor(asking)));
    if (store->recovery_report().set_aside || store->recovery_report().distrustful) {
      throw std::runtime_error("the sample store is not sound");
    }
    Answers answers{Ask(*store, judge_.sample_.probes), {}};
    if (asking.rules == Mode::kStrict) {
      Must(ListAll(*store));
      answers.listed = Ask(*store, judge_.sample_.probes);
      if (answers.listed == answers.opened && asking.mode != Verification::kAlwaysVerify) {
        throw std::runtime_error("the list of the sample store's images opens none");
      }
    }
    return answers;
  }

  void Start() {
    child_.emplace([this] {
      try {
        for (; shared_->next < job_.count; shared_->next += job_.step) JudgeOne();
        return 0;
      } catch (const std::exception& error) {
        Fault(shared_->verdicts.failed, error.what());
        return kThrew;
      }
    });
  }
  // Waits for the child, and starts another where it died on a file.
  void Finish() {
    while (const int code = child_->Wait()) {
      if (code != kThrew) {
        Fault(shared_->verdicts.crashes, "crashed, code " + std::to_string(code));
      }
      shared_->next += job_.step;
      Start();
    }
  }

  const DamageVerdicts& verdicts() { return shared_->verdicts; }

 private:
  static constexpr int kThrew = 3;

  struct Progress {
    DamageVerdicts verdicts;
    std::size_t next = 0;  // the first file not judged to its end
  };

  void Fault(std::uint64_t& counter, const std::string& what) {
    ++counter;
    auto& first = shared_->verdicts.first_fault;
    if (first[0] != '\0') return;
    std::snprintf(first.data(), first.size(), "file %zu: %s", shared_->next, what.c_str());
  }

  std::filesystem::path directory() const { return dir_ / "store"; }
  std::filesystem::path witness() const { return dir_ / "witness"; }

  void PutInPlace(const std::string& bytes) const {
    std::filesystem::remove_all(directory() / "quarantine");
    // That of the opening before tells of later commits than the sample has.
    std::filesystem::remove(directory() / "commit.mark");
    WriteOver(directory() / "data.mdb", bytes);
    if (job_.by == OpenedBy::kOwnerWithWitness) WriteOver(witness(), judge_.sample_.witness);
  }

  NodeStoreOptions OptionsFor(const Asking& asking) const {
    NodeStoreOptions options{.directory = directory(), .witness = Witness::None()};
    if (job_.by == OpenedBy::kOwnerWithWitness) options.witness = Witness::At(witness());
    options.rules = asking.rules;
    options.policy = MakePolicy(asking.mode);
    options.clock = FakeClock().AsClock();
    options.boot_clock = FakeClock().AsBootClock();
    options.map_bytes = std::uint64_t{16} << 20;
    return options;
  }

  // Every image that is asked about, by the name that it is asked by first.
  Result<ClassifyReport> ListAll(NodeStore& store) const {
    ImageList list;
    std::set<std::string> refs;
    for (const Probe& probe : judge_.sample_.probes) {
      if (!refs.insert(probe.image_ref).second) continue;
      list.images.push_back({.id = probe.image_ref, .repo_tags = {probe.image}});
    }
    auto token = store.BeginList();
    if (!token) return token.error();
    list.token = *token;
    return store.ObserveImages(list);
  }

  void JudgeOne() {
    std::string bytes = judge_.sample_.database;
    (*job_.damage)(shared_->next, bytes);
    if (bytes == judge_.sample_.database) return;
    ++shared_->verdicts.judged;
    PutInPlace(bytes);
    job_.by == OpenedBy::kObserver ? JudgeObserver() : JudgeOwner();
  }

  void JudgeOwner();
  void JudgeObserver();
  void Compare(std::size_t asking, const std::vector<bool>& before,
               const std::vector<bool>& answers, bool accepted, const std::string& finding);

  const DamageJudge& judge_;
  const Job job_;
  const MemoryDir dir_;
  Shared<Progress> shared_;
  std::optional<Child> child_;
};

void DamageJudge::Worker::JudgeOwner() {
  DamageVerdicts& verdicts = shared_->verdicts;
  const std::vector<Asking>& askings = judge_.askings_;
  const std::size_t rounds = job_.every_asking ? askings.size() : 1;
  bool accepted = false;
  for (std::size_t round = 0; round < rounds; ++round) {
    const std::size_t at = (shared_->next / job_.step + round) % askings.size();
    auto store = NodeStore::Open(OptionsFor(askings[at]));
    if (!store) {
      Fault(verdicts.failed, "refused: " + store.error().ToString());
      return;
    }
    const OpeningReport& report = (*store)->recovery_report();
    if (round == 0) {
      accepted = !report.set_aside && !report.distrustful;
      ++(accepted           ? verdicts.accepted
         : report.set_aside ? verdicts.set_aside
                            : verdicts.distrusted);
    } else if (report.set_aside) {
      Fault(verdicts.unrepaired, "set aside again: " + FirstOf(report.findings));
    }
    const Answers& before = judge_.answers_[at];
    Compare(at, before.opened, Ask(**store, judge_.sample_.probes), accepted,
            FirstOf(report.findings));
    // What the list enters is there for all that ask later.
    if (round + 1 == rounds && askings[at].rules == Mode::kStrict) {
      if (auto listed = ListAll(**store); !listed) {
        Fault(verdicts.failed, "refused a list: " + listed.error().ToString());
      }
      Compare(at, before.listed, Ask(**store, judge_.sample_.probes), accepted,
              "after a list; " + FirstOf(report.findings));
    }
    const std::string fault = FaultOfRanges(**store, judge_.sample_.living);
    if (!fault.empty()) Fault(verdicts.opened, fault + "; " + FirstOf(report.findings));
  }
}

void DamageJudge::Worker::JudgeObserver() {
  // The sample is of a store in mode strict, and so is what an observer makes of it.
  const std::vector<Asking>& askings = judge_.askings_;
  std::size_t at = shared_->next / job_.step % askings.size();
  while (askings[at].rules != Mode::kStrict) at = (at + 1) % askings.size();
  const VerificationPolicy policy = MakePolicy(askings[at].mode);
  ObserveOptions options;
  options.directory = directory();
  options.clock = FakeClock().AsClock();
  auto store = NodeStore::Observe(options);
  if (!store) {
    ++shared_->verdicts.refused;
    return;
  }
  ++shared_->verdicts.accepted;
  for (const LivingPod& pod : judge_.sample_.living) {
    const auto found = (*store)->GetUserNamespace(pod.uid);
    if (found && (found->host_id != pod.host_id || found->length != pod.length)) {
      Fault(shared_->verdicts.opened, "observed: pod " + pod.uid + " has another range");
    }
  }
  Compare(at, judge_.answers_[at].opened, Ask(**store, judge_.sample_.probes, &policy), true,
          "observed");
}

void DamageJudge::Worker::Compare(std::size_t asking, const std::vector<bool>& before,
                                  const std::vector<bool>& answers, bool accepted,
                                  const std::string& finding) {
  if (const auto opened = FirstOpened(before, answers)) {
    Fault(shared_->verdicts.opened,
          "opened " + Describe(judge_.sample_.probes[*opened], judge_.askings_[asking]) + "; " +
              finding);
  } else if (accepted && answers != before) {
    Fault(shared_->verdicts.changed, "accepted, but answers otherwise");
  }
}

std::ostream& operator<<(std::ostream& out, const DamageVerdicts& verdicts) {
  out << verdicts.judged << " files: " << verdicts.accepted << " accepted, " << verdicts.set_aside
      << " set aside, " << verdicts.distrusted << " distrusted, " << verdicts.refused << " refused";
  if (verdicts.Good()) return out;
  return out << "; " << verdicts.opened << " opened, " << verdicts.changed << " changed, "
             << verdicts.unrepaired << " unrepaired, " << verdicts.failed << " failed, "
             << verdicts.crashes << " crashed; first " << verdicts.first_fault.data();
}

DamageJudge::DamageJudge(SampleStore sample) : sample_(std::move(sample)) {
  Worker::Job job;
  job.by = OpenedBy::kOwnerWithWitness;
  Worker worker(*this, job);
  for (const Asking& asking : askings_) answers_.push_back(worker.Baseline(asking));
}

DamageVerdicts DamageJudge::Run(std::size_t count, const Damage& damage, OpenedBy by,
                                bool every_asking) {
  std::deque<Worker> workers;
  for (std::size_t i = 0; i < kWorkers; ++i) {
    workers.emplace_back(*this, Worker::Job{i, kWorkers, count, &damage, by, every_asking});
  }
  for (Worker& worker : workers) worker.Start();
  DamageVerdicts verdicts;
  for (Worker& worker : workers) {
    worker.Finish();
    AddUp(verdicts, worker.verdicts());
  }
  return verdicts;
}

}  // namespace waybill::testing
