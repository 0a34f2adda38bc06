// Secrets, service accounts and namespaces are deleted. A node agent tells the store of it, unless
// the process is down then; after each start it tells everything that exists.

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <tuple>
#include <utility>

#include "tests/simulation/node_life.h"

namespace waybill::simulation {

namespace {

constexpr std::int64_t kSecondsADay = kDay / kSecond;

CredentialName NameOfSecret(const ImagePullSecret& secret) {
  return {secret.namespace_name, secret.name, secret.uid};
}

}  // namespace

void NodeLife::DeleteSomething() {
  const std::size_t index = draw_.Below(World::kTenants);
  const Tenant& tenant = world_.tenants()[index];
  const std::size_t kind = draw_.Below(6);
  const bool secret = kind < 3 || kind == 5;
  const bool account = kind >= 3;
  if ((secret && !tenant.has_secret) || (account && !tenant.has_account)) return;
  Revocation what;
  if (kind == 5) {
    what.kind = RevocationKind::kNamespace;
    what.who.namespace_name = tenant.secret.namespace_name;
  } else if (secret) {
    what.who = NameOfSecret(tenant.secret);
  } else {
    what.kind = RevocationKind::kServiceAccount;
    what.who = {tenant.account.namespace_name, tenant.account.name, tenant.account.uid};
  }
  // An agent that goes by names alone.
  if (draw_.OneIn(4)) what.who.uid.clear();
  if (secret) world_.DeleteSecret(index);
  if (account) world_.DeleteAccount(index);
  Log(std::nullopt,
      fmt::format("a {} of {} is deleted", WordOf(what.kind), what.who.namespace_name));
  const bool is_behind = draw_.OneIn(4);
  const std::uint64_t start = starts_;
  timeline_.After(Around(draw_, is_behind ? 10 * kMinute : 5 * kSecond), [this, what, start] {
    // Otherwise nobody hears of it.
    if (store_ != nullptr && starts_ == start) Forget(what);
  });
  for (const Millis soon : {Millis{0}, Around(draw_, kMinute), Around(draw_, 30 * kMinute)}) {
    timeline_.After(soon, [this, index] { AskWithFormer(index); });
  }
  const Millis until = draw_.OneIn(2) ? Around(draw_, kMinute) : Around(draw_, kHour);
  timeline_.After(until, [this, index, secret, account] {
    if (account) world_.CreateAccount(index);
    if (!secret) return;
    // The same credentials as before, those of the robot's other Secret, or new ones.
    const std::size_t kind_of_new = draw_.Below(4);
    const std::size_t like = kind_of_new == 0 && index < 2 ? 1 - index : index;
    std::string hash = world_.tenants()[like].secret.credential_hash;
    if (kind_of_new > 1) hash = fmt::format("hash-{}-{}", index, timeline_.now());
    world_.CreateSecret(index, std::move(hash));
  });
}

void NodeLife::AskWithFormer(std::size_t tenant) {
  if (mode_ != Role::kWaybill || runtime_.size() == 0) return;
  for (int i = 0; i < 6; ++i) {
    const Pod pod{tenant, draw_.OneIn(3) ? Credential::kFormerAccount : Credential::kFormerSecret};
    AskAbout(draw_.From(runtime_.List()), pod);
  }
}

void NodeLife::Forget(const Revocation& what) {
  RevokeReport report;
  report.stored = true;
  if (!Broken(Breakage::kForgettingUntold)) {
    std::optional<RevokeReport> dry;
    if (draw_.OneIn(4)) dry = Must(store_->Forget(what, {.dry_run = true}), "Forget, a dry run");
    Revocation told = what;
    if (Broken(Breakage::kOtherHashForgotten)) {
      for (const Tenant& tenant : world_.tenants()) {
        for (const EarlierHash& earlier : tenant.earlier_hashes) {
          if (earlier.hash == what.credential_hash) {
            told.credential_hash = tenant.secret.credential_hash;
          }
        }
      }
    }
    report = Must(store_->Forget(told), "Forget");
    const auto numbers = [](const RevokeReport& one) {
      return std::tuple(one.records, one.secrets, one.service_accounts, one.equal_hashes,
                        one.stored);
    };
    if (dry && numbers(*dry) != numbers(report)) {
      Fail("a dry run counts otherwise than what is done", std::nullopt);
    }
    if (!report.stored && report.records > 0) {
      Fail("something is forgotten, but no revocation is kept", std::nullopt);
    }
  }
  truth_.Revoked(what, report.stored, NextStep());
  Log(std::nullopt,
      fmt::format("step {}: forgotten: {} {}/{}/{} {}: {} records{}", step_, WordOf(what.kind),
                  what.who.namespace_name, what.who.name, what.who.uid, what.credential_hash,
                  report.records, report.stored ? "" : ", nothing is kept of it"));
}

// Between a decision and what it has written back.
void NodeLife::ForgetMeanwhile(const ImagePullSecret& secret) {
  Revocation what;
  switch (draw_.Below(3)) {
    case 0:
      what.who = NameOfSecret(secret);
      break;
    case 1:
      what.kind = RevocationKind::kNamespace;
      what.who.namespace_name = secret.namespace_name;
      break;
    default:
      what.kind = RevocationKind::kCredential;
      what.credential_hash = secret.credential_hash;
      break;
  }
  Forget(what);
}

void NodeLife::ForgetAsOperator() {
  if (store_ == nullptr) return;
  if (draw_.OneIn(2)) {
    if (mode_ != Role::kWaybill || runtime_.size() == 0) return;
    const std::vector<ContentIndex> contents = runtime_.Contents();
    ForgetImage(draw_.From(contents));
    return;
  }
  if (scenario_.earlier_hashes && draw_.OneIn(2)) {
    const std::size_t tenant = draw_.Below(World::kTenants);
    const Tenant& its = world_.tenants()[tenant];
    std::string hash = its.secret.credential_hash;
    if (!its.earlier_hashes.empty() && !draw_.OneIn(3)) hash = draw_.From(its.earlier_hashes).hash;
    Forget({.kind = RevocationKind::kCredential, .credential_hash = hash});
    AskWithHash(tenant, hash);
    timeline_.After(Around(draw_, 30 * kMinute), [=, this] { AskWithHash(tenant, hash); });
    return;
  }
  const ImagePullSecret& secret = draw_.From(world_.tenants()).secret;
  Revocation what;
  if (draw_.OneIn(2)) {
    what.kind = RevocationKind::kCredential;
    what.credential_hash = secret.credential_hash;
  } else {
    what.who = NameOfSecret(secret);
  }
  Forget(what);
}

void NodeLife::AskWithHash(std::size_t tenant, const std::string& hash) {
  if (mode_ != Role::kWaybill || runtime_.size() == 0) return;
  for (int i = 0; i < 6; ++i) {
    AskAbout(draw_.From(runtime_.List()), {tenant, Credential::kSecret, "", hash});
  }
}

// A list before tells the store how the runtime spells the image.
void NodeLife::ForgetImage(ContentIndex content) {
  ListNow();
  const std::string& hex = world_.content(content).hex;
  const std::vector<std::string> spellings = {runtime_.Id(content), hex, "sha256:" + hex};
  const ImageCopy copy{
      .image_ref = draw_.From(spellings),
      .runtime_handler = scenario_.runtime_handlers && draw_.OneIn(3) ? "kata" : ""};
  RevokeReport report;
  report.stored = true;
  if (!Broken(Breakage::kForgettingUntold)) {
    report = Must(store_->ForgetImage(copy), "ForgetImage");
  }
  truth_.RevokedImage(content, std::string(copy.runtime_handler), report.stored, NextStep());
  Log(content, fmt::format("step {}: what was proven for it is forgotten{}{}: {} records{}", step_,
                           copy.runtime_handler.empty() ? "" : " for ", copy.runtime_handler,
                           report.records, report.stored ? "" : ", nothing is kept of it"));
  if (!runtime_.Has(content)) return;
  AskAbout(runtime_.Entry(content), SomePod(draw_.Below(World::kTenants)));
}

ExistingCredentials NodeLife::WhatExists() const {
  ExistingCredentials all;
  for (const Tenant& tenant : world_.tenants()) {
    if (tenant.has_secret) all.secrets.push_back(NameOfSecret(tenant.secret));
    const ImagePullServiceAccount& account = tenant.account;
    if (tenant.has_account) {
      all.service_accounts.push_back({account.namespace_name, account.name, account.uid});
    }
  }
  return all;
}

// Token, what exists, and telling it, one after another. Now and then what the agent has is older
// than the token, against the manual: that closes more, and opens nothing.
void NodeLife::ReconcileSoon() {
  if (scenario_.deletions == 0 || store_ == nullptr) return;
  const std::uint64_t start = starts_;
  const auto same_process = [this, start] { return store_ != nullptr && starts_ == start; };
  struct Telling {
    ListToken token;
    Step step = 0;
    ExistingCredentials existing;
  };
  auto telling = std::make_shared<Telling>();
  const bool is_stale = draw_.OneIn(8);
  telling->existing = WhatExists();
  const Millis until_told = Between(draw_, 0, 20 * kSecond);
  timeline_.After(Between(draw_, 0, 30 * kSecond), [=, this] {
    if (!same_process()) return;
    telling->token = Must(store_->BeginList(), "BeginList");
    telling->step = NextStep();
  });
  timeline_.After(30 * kSecond + until_told / 2, [=, this] {
    if (!is_stale) telling->existing = WhatExists();
  });
  timeline_.After(30 * kSecond + until_told, [=, this] {
    if (!same_process()) return;
    const bool is_older = telling->token.commit < last_truth_;
    const bool is_empty =
        telling->existing.secrets.empty() && telling->existing.service_accounts.empty();
    const Result<RevokeMissingReport> report =
        store_->Reconcile(telling->existing, telling->token, {.allow_empty = is_empty});
    if (is_older) {
      if (report || report.error().code != ErrorCode::kInvalidArgument) {
        Fail("an older truth is taken", std::nullopt);
      }
      return;
    }
    if (!report) Fail("Reconcile: " + report.error().ToString(), std::nullopt);
    last_truth_ = telling->token.commit;
    truth_.Reconciled(telling->existing, telling->step);
    Log(std::nullopt, fmt::format("a truth of step {}: {} known, {} gone, {} newer", telling->step,
                                  report->known, report->gone, report->newer));
  });
}

// In a third of the lives nothing grows old, and revocations are kept for the store's own time.
void NodeLife::DrawAges() {
  max_age_ = std::chrono::seconds(0);
  ages_told_ = false;
  // A clock that jumps would end them at any time.
  revocations_kept_ = scenario_.clock_jumps > 0 && !scenario_.wrong_clocks
                          ? kMaxAge
                          : std::chrono::seconds(draw_.OneIn(2) ? kSecondsADay : 30 * kSecondsADay);
  if (draw_.OneIn(3)) return;
  const std::int64_t most = scenario_.wrong_clocks ? kSecondsADay / 4 : 2 * kSecondsADay;
  const Millis age = Between(draw_, kHour, kDay) / kSecond * most / kSecondsADay;
  max_age_ = std::max(kMinAge, std::chrono::seconds(age));
}

// The store remembers them, but another one may be there now.
void NodeLife::LimitAges(NodeStoreOptions& options) {
  if (!scenario_.ages) return;
  // By a clock that is wrong more is past its age than that.
  if (!scenario_.wrong_clocks && draw_.OneIn(10)) DrawAges();
  if ((!ages_told_ || draw_.OneIn(2)) && !Broken(Breakage::kAgesUntold)) options.max_age = max_age_;
  ages_told_ = true;
  // What was written while the clock was ahead, or before it went back, has that later time.
  const std::int64_t slack = scenario_.clock_jumps > 0 ? kSecondsADay : 0;
  options.revocations_kept = revocations_kept_;
  truth_.LimitAges(max_age_, revocations_kept_, scenario_.wrong_clocks ? kMinute / kSecond : slack);
}

}  // namespace waybill::simulation
