// Decisions of every kind.

#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "bench/micro/rows.h"
#include "store/base/metrics.h"
#include "store/base/policy.h"
#include "tests/support/allocations.h"

namespace waybill::bench {

namespace {

void Expect(NodeStore& store, const Question& question, Reason reason) {
  if (Decide(store, question).reason != reason) Unexpected("MustAttemptPull");
}

// Another hash for each i.
std::string RotatedHash(std::uint64_t i) { return fmt::format("{:064x}", i); }

}  // namespace

bool Hit(NodeStore& store, const Question& question) {
  return Decide(store, question).reason == Reason::kSecretHashMatches;
}

void MeasureKindsOfDecisions(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  const Questions& hits = on.questions;
  const auto row = [&](const std::string& kind, const auto& ours) {
    BesideLookup(micro, on.bare, "MustAttemptPull: " + kind, ours);
  };
  const auto hit = [&](std::size_t i) {
    Expect(store, hits[i % hits.size()], Reason::kSecretHashMatches);
  };
  row("hit", hit);
  const std::size_t allocations = testing::AllocationsOfThread();
  hit(0);
  if (testing::AllocationsOfThread() != allocations) {
    throw std::runtime_error("a decision allocates memory");
  }
  // It takes a new snapshot, and so does the lookup.
  bool there = false;
  const auto commit = [&] {
    const ImageCopy copy{.image = "registry.example.com/commits:1"};
    Must(there ? store.DeleteIntent(copy) : store.PutIntent(copy));
    there = !there;
    on.bare.Commit();
  };
  commit();
  std::size_t next = 0;
  micro.Row("MustAttemptPull: hit, just after a commit",
            [&](State& state) {
              Beside(
                  state, [&] { on.bare.Lookup(); }, kNothing, [&] { hit(next++); }, commit);
            },
            {.iterations = 10});
  if (there) commit();
  const std::size_t listed = std::min(on.records, kMostListed);
  Must(store.ObserveImages(
      {.images = ListOfImages(0, listed), .token = Must(store.BeginList()), .complete = false}));
  const Questions spelled(listed, 0, RepoDigestOf);
  row("hit by another spelling", [&](std::size_t i) {
    Expect(store, spelled[i % spelled.size()], Reason::kSecretHashMatches);
  });
  const Questions unknown(std::min<std::size_t>(on.records, 2000), kNewImages);
  row("miss, no record",
      [&](std::size_t i) { Expect(store, unknown[i % unknown.size()], Reason::kNoEvidence); });
  const std::string other_hash = RotatedHash(0);
  row("wrong secret", [&](std::size_t i) {
    Question question = hits[i % hits.size()];
    question.secret.uid = "00000000-0000-4000-8000-000000000000";
    question.secret.credential_hash = other_hash;
    Expect(store, question, Reason::kNoCredentialMatches);
  });
  const Questions ledger(on.ledger, kLedgerImages);
  row("in the ledger", [&](std::size_t i) {
    Expect(store, ledger[i % ledger.size()], Reason::kPolicyKnownPreloaded);
  });

  // Each queues a write-back, which is waited for outside the time. What the data set says is put
  // back at the end.
  const std::size_t batch = micro.quick ? 2 : 50;
  std::vector<std::string> hashes;
  std::size_t asked = 0;
  const auto prepare = [&] {
    Must(store.Flush());
    hashes.clear();
    for (std::size_t k = 0; k < batch; ++k) hashes.push_back(RotatedHash(1 + asked + k));
  };
  const auto lookups = [&] {
    for (std::size_t k = 0; k < batch; ++k) on.bare.Lookup();
  };
  const auto rotate = [&] {
    for (const std::string& hash : hashes) {
      Question question = hits[asked++ % hits.size()];
      question.secret.credential_hash = hash;
      Expect(store, question, Reason::kSecretCoordinatesMatch);
    }
  };
  micro.Row("MustAttemptPull: rotated secret",
            [&](State& state) { Beside(state, lookups, prepare, rotate, kNothing, batch, batch); },
            {.iterations = 10});
  Must(store.Flush());
  for (std::size_t i = 0; i < std::min(asked, hits.size()); ++i) {
    Expect(store, hits[i], Reason::kSecretCoordinatesMatch);
    if (i % 500 == 499) Must(store.Flush());
  }
  Must(store.Flush());

  BesideLookup(micro, on.bare, "PreviewDecision: hit", [&](std::size_t i) {
    const Question& question = hits[i % hits.size()];
    FixedCredentials credentials({.secrets = {&question.secret, 1}});
    if (store
            .PreviewDecision({.image = question.image, .image_ref = question.image_ref},
                             credentials)
            .pull) {
      Unexpected("PreviewDecision");
    }
  });
  BesideLookup(micro, on.bare, "EnsureImage: IfNotPresent, hit", [&](std::size_t i) {
    const Question& question = hits[i % hits.size()];
    FixedCredentials credentials({.secrets = {&question.secret, 1}});
    if (store
            .EnsureImage({.image = question.image, .image_ref = question.image_ref},
                         PullPolicy::kIfNotPresent, credentials)
            .action != EnsureAction::kUsePresent) {
      Unexpected("EnsureImage");
    }
  });
}

void MeasureAllowlists(const Micro& micro, const MicroStore& on) {
  const Questions& hits = on.questions;
  for (const std::size_t patterns : {1, 10, 100, 1000}) {
    // The last pattern is for all images of the data set; the others for none.
    std::vector<std::string> list;
    for (std::size_t i = 1; i < patterns; ++i) {
      list.push_back(fmt::format("registry.example.net/team-{:04}/*", i));
    }
    list.emplace_back("registry.example.com/*");
    on.store.Close();
    NodeStoreOptions options = on.store.Options();
    options.policy = Must(
        VerificationPolicy::Make(Verification::kNeverVerifyAllowlistedImages, std::move(list)));
    {
      const auto store = Must(NodeStore::Open(options));
      BesideLookup(micro, on.bare, fmt::format("MustAttemptPull: allowlist of {}", patterns),
                   [&](std::size_t i) {
                     Expect(*store, hits[i % hits.size()], Reason::kPolicyAllowlisted);
                   });
      Must(store->Close());
    }
    on.store.Open();
  }
}

void MeasureTraced(const Micro& micro, const MicroStore& on) {
  // Fills more than half of the writer's buffer, so that it is written at once, and not all of it:
  // what is dropped costs less.
  const std::size_t batch = micro.quick ? 2 : 700;
  on.store.Close();
  NodeStoreOptions options = on.store.Options();
  options.trace.path = micro.scratch.path() / "trace";
  {
    const auto store = Must(NodeStore::Open(options));
    std::size_t asked = 1;  // the owner's start is an event, too
    const auto written = [&] {
      Metrics metrics;
      do {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        metrics = store->GetMetrics();
      } while (metrics.trace_events + metrics.trace_events_dropped < asked);
      if (metrics.trace_events_dropped > 0) throw std::runtime_error("a trace lacks decisions");
    };
    const auto hits = [&] {
      for (std::size_t i = 0; i < batch; ++i) {
        Expect(*store, on.questions[asked++ % on.questions.size()], Reason::kSecretHashMatches);
      }
    };
    const auto lookups = [&] {
      for (std::size_t i = 0; i < batch; ++i) on.bare.Lookup();
    };
    micro.Row("MustAttemptPull: hit, with a trace",
              [&](State& state) { Beside(state, lookups, kNothing, hits, written, batch, batch); },
              {.iterations = 3});
    Must(store->Close());
  }
  on.store.Open();
}

void MeasureThreads(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  const Questions& hits = on.questions;
  for (const int threads : {1, 2, 4, 8, 16}) {
    const auto body = [&](State& state) {
      auto i = static_cast<std::size_t>(state.thread_index());
      const auto decide = [&] {
        if (Decide(store, hits[i % hits.size()]).pull) state.SkipWithError("a decision was no hit");
        i += static_cast<std::size_t>(threads);
      };
      for (auto _ : state) decide();
      state.SetItemsProcessed(state.iterations());
      if (state.thread_index() != 0) return;
      // Beside one thread, when all have ended.
      state.counters[kBare] = NanosecondsOf([&] {
                                for (benchmark::IterationCount k = 0; k < state.iterations(); ++k) {
                                  decide();
                                }
                              }) /
                              static_cast<double>(state.iterations());
    };
    micro.Row(fmt::format("MustAttemptPull: hit, {} thread{}", threads, threads == 1 ? "" : "s"),
              body, {.threads = threads, .by_hand = false});
  }
}

void MeasureSecrets(const Micro& micro) {
  const std::size_t records = micro.quick ? 20 : 1000;
  const Questions questions(records);
  for (const std::size_t secrets : {1, 10, 100}) {
    const std::string count = fmt::format("{} secret{}", secrets, secrets == 1 ? "" : "s");
    ScratchStore store(micro.scratch.path() / fmt::format("secrets-{}", secrets));
    store.Open();
    FromAllCallers(records, [&](std::size_t i) {
      ImagePulledRecord record = RecordOf(i);
      auto& kept = record.credential_mapping.begin()->second.kubernetes_secrets;
      for (std::size_t k = 1; k < secrets; ++k) {
        kept.push_back(CredentialsOf(kNewImages + i * 100 + k).kubernetes_secrets.front());
      }
      return store->PutRecord(record).has_value();
    });
    store.Close();
    BareLmdb peer(store.directory(),
                  micro.scratch.path() / fmt::format("bare-secrets-{}", secrets));
    store.Open();
    Bare bare(peer, questions);
    BesideLookup(
        micro, bare, fmt::format("MustAttemptPull: hit, {} an image", count),
        [&](std::size_t i) { Expect(*store, questions[i % records], Reason::kSecretHashMatches); });
    // The pod has as many secrets, and only the last one is the image's.
    std::vector<ImagePullSecret> others;
    for (std::size_t k = 1; k < secrets; ++k) {
      others.push_back(CredentialsOf(kNewImages * 2 + k).kubernetes_secrets.front());
    }
    std::vector<ImagePullSecretView> pod(others.begin(), others.end());
    pod.emplace_back();
    BesideLookup(
        micro, bare, fmt::format("MustAttemptPull: hit, {} an image and a pod", count),
        [&](std::size_t i) {
          const Question& question = questions[i % records];
          pod.back() = question.secret;
          FixedCredentials credentials({.secrets = pod});
          if (store
                  ->MustAttemptPull({.image = question.image, .image_ref = question.image_ref},
                                    credentials)
                  .pull) {
            Unexpected("MustAttemptPull");
          }
        });
    store.Close();
  }
}

}  // namespace waybill::bench
