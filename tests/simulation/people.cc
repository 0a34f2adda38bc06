// What people do: developers push, prefetchers and operators bring images by hand and correct the
// ledger, and one tenant means no good.

#include <fmt/format.h>

#include "tests/simulation/node_life.h"

namespace waybill::simulation {

void NodeLife::MoveTag() {
  Repository* repository = nullptr;
  do {
    repository = &world_.repositories()[draw_.Below(world_.repositories().size())];
  } while (repository->name.starts_with("registry.k8s.io/"));
  const std::string tag = draw_.From(repository->tags).name;
  const ContentIndex content = world_.NewContent(draw_.OneIn(3));
  world_.Push(*repository, tag, content);
  Log(content, fmt::format("{}:{} moves to {}", repository->name, tag, NameOf(content)));
  if (Percent(draw_, scenario_.percent_prefetched)) {
    const FullName name{repository->name, tag, ""};
    timeline_.After(Between(draw_, 0, 2 * kMinute),
                    [this, content, name] { BringByHand(content, name, draw_.OneIn(2)); });
  }
}

void NodeLife::BringByHand(ContentIndex content, const FullName& name, bool as_pulled) {
  const bool was_there = runtime_.Has(content);
  if (as_pulled) {
    runtime_.Label(content);
    runtime_.Pulled(content, name);
  } else {
    runtime_.Import(content, name.repository.empty() ? "" : name.text());
  }
  runtime_.Used(content, timeline_.now());
  truth_.BroughtByHand(content, was_there, NextStep());
  const bool can_tell = !distrusted_ && !gap_open_ && !had_gap_ && !lost_ &&
                        timeline_.now() >= can_tell_from_ && !name.repository.empty();
  if (!can_tell) truth_.Forgotten(content);
  Log(content,
      fmt::format("{} is brought by hand{} as {}{}", NameOf(content), as_pulled ? ", pulled," : "",
                  name.text(), was_there ? ", where it was already" : ""));
}

// From a file: what no registry serves, or an index's image for another platform.
void NodeLife::ImportFile() {
  const std::string number = std::to_string(files_imported_++);
  if (draw_.OneIn(4)) {
    Repository& repository = world_.repositories()[draw_.Below(world_.repositories().size())];
    const Tag& tag = draw_.From(repository.tags);
    if (!world_.content(tag.content).index.empty()) {
      const ContentIndex other = world_.OtherPlatformOf(tag.content);
      truth_.NewOfIndex(tag.content, other);
      BringByHand(other, {repository.name, tag.name + "-arm64-" + number, ""}, false);
      return;
    }
  }
  const bool without_a_name = scenario_.operators > 0 && draw_.OneIn(10);
  BringByHand(world_.NewContent(false),
              without_a_name ? FullName{} : FullName{"site.example/tools/x" + number, "1", ""},
              false);
}

// What a registry serves under a tag.
void NodeLife::ImportTag() {
  Repository& repository = world_.repositories()[draw_.Below(world_.repositories().size())];
  const Tag& tag = draw_.From(repository.tags);
  // Where pods wait, nobody brings what is there.
  if (scenario_.pods_wait && runtime_.Has(tag.content)) return;
  BringByHand(tag.content, {repository.name, tag.name, ""},
              draw_.OneIn(scenario_.pods_wait ? 8 : 2));
}

// What a pod waits for, served by a registry or not.
void NodeLife::ImportFor(const Question& question) {
  const std::optional<FullName> name = runtime_.Complete(question.image);
  if (!name || !name->digest.empty()) return;
  std::optional<ContentIndex> content = world_.Serve(*name);
  if (!content) content = world_.NewContent(false);
  timeline_.After(Between(draw_, kMinute, kHour), [this, content = *content, name = *name] {
    if (!runtime_.Has(content)) BringByHand(content, name, false);
  });
}

void NodeLife::Operate() {
  if (mode_ != Role::kWaybill) return;
  const std::vector<ContentIndex> contents = runtime_.Contents();
  if (contents.empty()) return;
  const ContentIndex content = draw_.From(contents);
  if (draw_.OneIn(4)) {
    Retag(content);
    return;
  }
  const bool is_closed = truth_.IsClosed(content);
  if (!(is_closed || truth_.CameByHand(content)) || runtime_.IsPinned(content)) return;
  if (is_closed ? !draw_.OneIn(4) : draw_.OneIn(3)) {
    const bool was_there =
        Broken(Breakage::kClosingsUntold) ||
        Must(store_->RemoveFromLedger({.image_ref = runtime_.Id(content)}, "not ours"),
             "RemoveFromLedger");
    if (!was_there) return;
    Log(content, "an operator says that it is not preloaded");
    truth_.CalledNotPreloaded(content, scenario_.closes_for_good);
    return;
  }
  Log(content, "an operator says that it is preloaded");
  ListedImage entry = runtime_.Entry(content);
  if (draw_.OneIn(2)) entry.id = world_.content(content).hex;
  Must(store_->AddToLedger(entry, "operator", "ours"), "AddToLedger");
  truth_.CalledPreloaded(content, NextStep());
}

// To keep an image an operator gives it a name of his own.
void NodeLife::Retag(ContentIndex content) {
  if (truth_.IsUnrecorded(content) && !scenario_.beyond_limits) return;
  runtime_.Import(content, fmt::format("ops.example/keep/x{}:1", files_imported_++));
  truth_.Retagged(content);
  Log(content, "an operator gives it another tag");
}

void NodeLife::Attack() {
  Question question;
  question.pod = {World::kHostile, draw_.OneIn(4) ? Credential::kNone : Credential::kSecret};
  Repository& target = world_.repositories()[draw_.Below(world_.repositories().size())];
  // The last two are strings that may stand for anything.
  switch (draw_.Below(short_names_ ? 7 : 5)) {
    case 0:  // a tag that a preloaded repository does not have
      question.image = fmt::format("registry.k8s.io/pause:typo{}", draw_.Below(30));
      question.is_hasty = true;
      Ask(question);
      return;
    case 1: {  // a preloaded image in his own repository
      const std::vector<ContentIndex> contents = runtime_.Contents();
      if (contents.empty()) return;
      const ContentIndex content = draw_.From(contents);
      if (!truth_.CameByHand(content)) return;
      const std::string name = "priv.example/t" + std::to_string(World::kHostile) + "/copy" +
                               std::to_string(draw_.Below(5));
      Repository* repository = world_.Find(name);
      if (repository == nullptr) repository = &world_.Add(name, false, {World::kHostile});
      world_.Push(*repository, "1", content);
      question.image = name + ":1";
      question.is_hasty = draw_.OneIn(3);
      Ask(question);
      return;
    }
    case 2:  // other tenants' images, without a pull
      for (int i = 0; i < 10; ++i) {
        question.image = short_names_ && draw_.OneIn(2) ? SomeId(target) : SomeString(target);
        question.policy = draw_.OneIn(2) ? PullPolicy::kNever : PullPolicy::kIfNotPresent;
        Ask(question);
      }
      return;
    case 3:  // a flood of pulls of one string
      question.image = target.name + ":" + draw_.From(target.tags).name;
      question.policy = PullPolicy::kAlways;
      question.is_hasty = true;
      for (int i = 0; i < 20; ++i) Ask(question);
      return;
    case 4:  // what he may not pull
      question.image = SomeString(target);
      question.policy = PullPolicy::kAlways;
      question.is_hasty = draw_.OneIn(2);
      Ask(question);
      return;
    case 5:  // strings that the runtime completes as it likes
      question.image = draw_.OneIn(2) ? "tool" : fmt::format("thing{}", draw_.Below(30));
      question.is_hasty = true;
      Ask(question);
      return;
    default:  // a pull by ID, which no registry serves
      question.image = SomeId(target);
      question.policy = PullPolicy::kAlways;
      question.is_hasty = draw_.OneIn(2);
      Ask(question);
      return;
  }
}

// Deployments come and go: 500 pods with ten images ask, and all are deleted while they pull.
void NodeLife::Storm() {
  last_storm_ = timeline_.now();
  for (int i = 0; i < 10; ++i) {
    Question question = SomeQuestion();
    question.policy = PullPolicy::kAlways;
    question.is_hasty = true;
    for (int j = 0; j < 50; ++j) {
      timeline_.After(Between(draw_, 0, 30 * kSecond), [this, question] { Ask(question); });
    }
  }
  timeline_.After(5 * kMinute, [this] {
    const bool another_goes_on = timeline_.now() - last_storm_ < 5 * kMinute;
    if (mode_ != Role::kWaybill || another_goes_on) return;
    const std::size_t open = Must(store_->ListOpenPulls(), "ListOpenPulls").size();
    figures_.open_pulls_after_storm_most = std::max(figures_.open_pulls_after_storm_most, open);
  });
}

void NodeLife::RotateSecret() {
  Tenant& tenant = world_.tenants()[draw_.Below(World::kTenants)];
  if (scenario_.earlier_hashes) {
    tenant.earlier_hashes.push_back({tenant.secret.credential_hash, draw_.OneIn(2)});
    if (tenant.earlier_hashes.size() > 4)
      tenant.earlier_hashes.erase(tenant.earlier_hashes.begin());
  }
  tenant.secret.credential_hash = fmt::format("hash-{}-{}", tenant.secret.uid, timeline_.now());
}

}  // namespace waybill::simulation
