// The steps of a history that forget credentials.

#include <algorithm>

#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"
#include "tests/support/pod.h"

namespace waybill::testing {

namespace {

Result<RevokeReport> ForgetBy(NodeStore& store, const Revocation& what,
                              const waybill::ChangeOptions& options) {
  switch (what.kind) {
    case RevocationKind::kSecret:
      return store.ForgetSecret(what.who, options);
    case RevocationKind::kServiceAccount:
      return store.ForgetServiceAccount(what.who, options);
    case RevocationKind::kNamespace:
      return store.ForgetNamespace(what.who.namespace_name, options);
    case RevocationKind::kImage:
      return store.ForgetImage(
          {.image_ref = what.image_ref, .runtime_handler = what.runtime_handler}, options);
    case RevocationKind::kCredential:
      break;
  }
  return store.ForgetCredential(what.credential_hash, options);
}

std::string DescribeWhat(const Revocation& what) {
  return std::string(WordOf(what.kind)) + " " + what.who.namespace_name + "/" + what.who.name +
         "/" + what.who.uid + Quote(what.image_ref) + For(what.runtime_handler) + " " +
         what.credential_hash;
}

}  // namespace

std::optional<History::Question> History::DrawQuestion() {
  if (!draw_.OneIn(3)) return std::nullopt;
  return Question{DrawImage(draw_), draw_.From(Refs()), DrawPod(draw_), DrawHandler()};
}

// `call` does it in the store, or rehearses it; `expect` in the model, and is nullopt if refused.
template <typename Report, typename Call, typename Expected>
void History::ForgetIn(Side& side, const std::optional<Question>& in_flight, const Call& call,
                       const Expected& expect) {
  const Result<Report> rehearsed = call({.allow_empty = true, .dry_run = true});
  ExpectSame(side, "a dry run changed the store: ");
  const Model before = side.model;

  DeferredCredentials late;
  std::vector<ImagePullSecretView> views;
  ImageCopy copy;
  std::string handler;
  Decision first;
  if (in_flight) {
    handler = Named(side, in_flight->handler);
    views.assign(in_flight->pod.secrets.begin(), in_flight->pod.secrets.end());
    copy = {
        .image = in_flight->image.image, .image_ref = in_flight->ref, .runtime_handler = handler};
    first = side.store->MustAttemptPull(copy, late);
  }

  const std::optional<Report> expected = expect(side.model);
  const Result<Report> got = call({.allow_empty = true});
  Expect(rehearsed.has_value() == got.has_value(), side, "the dry run ended otherwise");
  if (!expected) {
    Expect(!got && got.error().code == ErrorCode::kInvalidArgument, side,
           "it should have been refused");
  } else {
    if (!got) Expect(false, side, got.error().ToString());
    Expect(Describe(*rehearsed) == Describe(*got), side, "the dry run said otherwise");
    Expect(Describe(*got) == Describe(*expected), side,
           Describe(*got) + "\n  instead of " + Describe(*expected));
  }

  // Very many records change in further commits.
  for (const ImagePulledRecord& record : Must(side.store->ListRecords())) {
    const Model::CopyKey key(side.model.ImageOf(record.image_ref), record.runtime_handler);
    if (side.model.records().contains(key) && record.stamp > side.model.token()) {
      side.model.set_stamp(key, record.stamp);
    }
  }
  // Refused: nothing was forgotten.
  if (in_flight && !expected) side.model.Count(first);
  const std::uint64_t last = Must(side.store->GetStatistics()).commit_sequence;
  Expect(!expected || last == before.token() || side.model.changed(), side,
         "what forgot nothing committed");
  side.model.CommittedSoFar(last);
  if (in_flight && expected) {
    Decision decision = first;
    const ModelPod& pod = in_flight->pod;
    if (first.reason == Reason::kCredentialsNeeded) {
      PodCredentials credentials{.secrets = views};
      std::optional<ImagePullServiceAccountView> account;
      if (pod.service_account) account.emplace(*pod.service_account);
      if (account) credentials.service_account = account;
      if (pod.available) {
        late.Provide(credentials);
      } else {
        late.Provide(Error{ErrorCode::kCredentialsUnavailable, "no credentials"});
      }
      decision = side.store->MustAttemptPull(copy, late);
    }
    side.model.Count(decision);
    const auto ask = [&](const Model& model) {
      return model.Decide(in_flight->image, in_flight->ref, pod, handler).decision;
    };
    const Decision was = ask(before);
    const Decision is = ask(side.model);
    Expect(decision.pull || !was.pull || !is.pull, side,
           "what was decided meanwhile is open: " + Describe(decision) + ", before " +
               Describe(was) + ", after " + Describe(is));
    if (side.model.closed() && first.reason == Reason::kCredentialsNeeded) {
      Expect(decision.pull || !is.pull, side,
             "a decision that ended after it is open: " + Describe(decision));
    }
    ExpectDone(side.store->Flush(), side);
    ExpectSame(side, "what was read before it is written back: ");
  }
}

void History::ForgetStep() {
  const Revocation drawn = DrawRevocation(draw_, DrawHandler());
  const auto in_flight = DrawQuestion();
  Note("forget " + DescribeWhat(drawn) +
       (in_flight ? " while " + Quote(in_flight->image.image) + " " + Quote(in_flight->ref) +
                        For(in_flight->handler) + " is decided for " + DescribePod(in_flight->pod)
                  : ""));
  for (Side& side : sides_) {
    Revocation what = drawn;
    if (what.kind == RevocationKind::kImage) {
      what.runtime_handler = Named(side, what.runtime_handler);
    }
    ForgetIn<RevokeReport>(
        side, in_flight,
        [&](const waybill::ChangeOptions& how) { return ForgetBy(*side.store, what, how); },
        [&](Model& model) { return std::optional(model.Forget(what)); });
  }
  AskAfterRevoking();
}

void History::ReconcileStep() {
  if (sides_[0].tokens.empty() || draw_.OneIn(2)) DrawTokenStep();
  const ExistingCredentials truth = DrawTruth(draw_);
  const auto& tokens = sides_[0].tokens;
  const std::size_t which = draw_.OneIn(2) ? tokens.size() - 1 : draw_.Below(tokens.size());
  const auto in_flight = DrawQuestion();
  std::string what;
  for (const auto* all : {&truth.secrets, &truth.service_accounts}) {
    for (const CredentialName& one : *all) {
      if (one.namespace_name != "bulk") {
        what += " " + one.namespace_name + "/" + one.name + "/" + one.uid.substr(0, 8);
      }
    }
    what += all == &truth.secrets ? " and service accounts" : "";
  }
  Note("reconcile by token " + std::to_string(which) + " of " + std::to_string(tokens.size()) +
       " with " + std::to_string(truth.secrets.size()) + ":" + what);
  for (Side& side : sides_) {
    const ListToken token = side.tokens[which];
    if (truth.secrets.empty() && truth.service_accounts.empty() &&
        side.model.MentionsCredentials()) {
      const auto refused = side.store->Reconcile(truth, token);
      Expect(!refused && refused.error().code == ErrorCode::kInvalidArgument, side,
             "an empty truth should have been refused");
    }
    ForgetIn<RevokeMissingReport>(
        side, in_flight,
        [&](const waybill::ChangeOptions& how) { return side.store->Reconcile(truth, token, how); },
        [&](Model& model) { return model.Reconcile(truth, token.commit); });
  }
  AskAfterRevoking();
}

void History::AskAfterRevoking() {
  struct Asked {
    const KnownImage& image;
    const std::string& ref;
    ModelPod pod;
  };
  std::vector<Asked> questions;
  for (std::size_t i = draw_.Below(6); i > 0; --i) {
    questions.push_back({DrawImage(draw_), draw_.From(Refs()), DrawPod(draw_)});
  }
  const bool restarts = draw_.OneIn(4);
  for (Side& side : sides_) {
    const auto kept = Must(side.store->ListRevocations());
    Expect(std::ranges::none_of(kept, &Revocation::unfinished), side, "a record holds it still");
    if (restarts) {
      Stop(side);
      Open(side, {.gap = Gap::kNo});
    }
    for (const auto& [image, ref, pod] : questions) {
      const std::string handler = Named(side, "");
      const Model::Answer expected = side.model.Decide(image, ref, pod, handler);
      if (expected.write_back) continue;
      Pod source(pod.secrets, pod.service_account);
      if (!pod.available) source.MakeUnavailable();
      const Decision decision = side.store->MustAttemptPull(
          {.image = image.image, .image_ref = ref, .runtime_handler = handler}, source);
      side.model.Count(decision);
      Expect(decision.pull == expected.decision.pull, side,
             "after a revocation " + Quote(image.image) + " " + Quote(ref) + " is " +
                 Describe(decision) + " instead of " + Describe(expected.decision));
    }
    ExpectSame(side);
  }
}

}  // namespace waybill::testing
