// Decisions of every kind.

#include <fmt/format.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "bench/micro/rows.h"
#include "store/base/metrics.h"
#include "store/base/policy.h"
#include "tests/support/allocations.h"

namespace waybill::bench {

void MeasureKindsOfDecisions(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  const Questions& hits = on.questions;
  const auto ask = [&store](const Question& question, Reason reason) {
    Expect(Decide(store, question).reason == reason, "MustAttemptPull");
  };
  const auto row = [&](const std::string& kind, const Questions& questions, Reason reason) {
    BesideLookup(micro, on.bare, "MustAttemptPull: " + kind,
                 [&](std::size_t i) { ask(questions[i % questions.size()], reason); });
  };
  row("hit", hits, Reason::kSecretHashMatches);
  const std::size_t allocations = testing::AllocationsOfThread();
  ask(hits[0], Reason::kSecretHashMatches);
  if (testing::AllocationsOfThread() != allocations) {
    throw std::runtime_error("a decision allocates memory");
  }
  // It takes a new snapshot, and so does the lookup.
  bool there = false;
  const auto commit = [&] {
    const std::string image = "registry.example.com/commits:1";
    if (there) {
      Must(store.Call(DropPulls{.image = image, .reason = "to commit"}));
    } else {
      Must(store.Call(BeginPull{.image = image, .unless_running = true}));
    }
    there = !there;
    on.bare.Commit();
  };
  commit();
  std::size_t next = 0;
  const auto hit = [&] { ask(hits[next++ % hits.size()], Reason::kSecretHashMatches); };
  const auto lookup = [&] { on.bare.Lookup(); };
  micro.Row("MustAttemptPull: hit, just after a commit",
            [&](State& state) { Beside(state, lookup, kNothing, hit, commit); },
            {.iterations = 10});
  if (there) commit();
  const std::size_t listed = std::min(on.records, kMostListed);
  const ListToken token = Must(store.Call(BeginList())).token;
  Must(store.Call(ClassifyImages{
      .list = {.images = ListOfImages(0, listed), .token = token, .complete = false}}));
  row("hit by another spelling", Questions(listed, 0, RepoDigestOf), Reason::kSecretHashMatches);
  row("in the ledger", Questions(on.ledger, kLedgerImages), Reason::kPolicyKnownPreloaded);
}

void MeasureThreads(const Micro& micro, const MicroStore& on) {
  const Questions& hits = on.questions;
  const std::size_t batch = micro.quick ? 16 : 200'000;
  // Nanoseconds a decision, where so many threads share the batch.
  const auto shared_by = [&](std::size_t threads) {
    std::atomic<bool> missed = false;
    const auto decide = [&](std::size_t i) {
      for (; i < batch; i += threads) {
        if (Decide(*on.store, hits[i % hits.size()]).pull) missed = true;
      }
    };
    const double took = NanosecondsOf([&] {
      std::vector<std::jthread> all;
      for (std::size_t first = 0; first < threads; ++first) all.emplace_back(decide, first);
    });
    if (missed) throw std::runtime_error("a decision did not hit; the figures are void");
    return took / static_cast<double>(batch);
  };
  for (const std::size_t threads : {1, 2, 4, 8, 16}) {
    const auto body = [&](State& state) {
      for (auto _ : state) {
        state.counters[kBare] = shared_by(1);
        state.SetIterationTime(shared_by(threads) / 1e9);
      }
      state.SetItemsProcessed(state.iterations());
    };
    micro.Row(fmt::format("MustAttemptPull: hit, {} thread{}", threads, threads == 1 ? "" : "s"),
              body, {.iterations = 1});
  }
}

void MeasureSecrets(const Micro& micro) {
  const std::size_t records = micro.quick ? 20 : 1000;
  const Questions questions(records);
  for (const std::size_t secrets : {1, 10, 100}) {
    ScratchStore store(micro.scratch.path() / fmt::format("secrets-{}", secrets));
    store.Open();
    FromAllCallers(records, [&](std::size_t i) {
      ImagePulledRecord record = RecordOf(i);
      auto& kept = record.credential_mapping.begin()->second.kubernetes_secrets;
      for (std::size_t k = 1; k < secrets; ++k) {
        kept.push_back(CredentialsOf(kNewImages + i * 100 + k).kubernetes_secrets.front());
      }
      Must(store->Call(PutImage{.record = record}));
    });
    store.Close();
    BareLmdb peer(store.directory(),
                  micro.scratch.path() / fmt::format("bare-secrets-{}", secrets));
    store.Open();
    Bare bare(peer, questions);
    // The pod has as many secrets, and only the last one is the image's.
    std::vector<ImagePullSecret> others;
    for (std::size_t k = 1; k < secrets; ++k) {
      others.push_back(CredentialsOf(kNewImages * 2 + k).kubernetes_secrets.front());
    }
    std::vector<ImagePullSecretView> pod(others.begin(), others.end());
    pod.emplace_back();
    BesideLookup(micro, bare,
                 fmt::format("MustAttemptPull: hit, {} secret{} an image and a pod", secrets,
                             secrets == 1 ? "" : "s"),
                 [&](std::size_t i) {
                   const Question& question = questions[i % records];
                   pod.back() = question.secret;
                   FixedCredentials credentials({.secrets = pod});
                   const ImageCopy copy{.image = question.image, .image_ref = question.image_ref};
                   Expect(!store->MustAttemptPull(copy, credentials).pull, "MustAttemptPull");
                 });
    store.Close();
  }
}

}  // namespace waybill::bench
