#include "tests/simulation/node_life.h"

#include <fmt/format.h>

#include <algorithm>

#include "store/images/retire.h"
#include "tests/simulation/machine.h"

namespace waybill::simulation {

NodeLife::NodeLife(const Scenario& scenario, std::filesystem::path directory, std::uint64_t seed,
                   Breakage breakage)
    : scenario_(scenario),
      breakage_(breakage),
      seed_(seed),
      directory_(std::move(directory)),
      draw_(seed),
      world_(draw_),
      runtime_(
          world_,
          draw_.OneIn(2) && !scenario.containerd ? RuntimeKind::kCrio : RuntimeKind::kContainerd,
          scenario.tells_imports),
      machine_(std::make_shared<Machine>()),
      short_names_(draw_.OneIn(2)),
      names_pulls_(!(scenario.older_adapters || scenario.nameless_pulls) || draw_.OneIn(2)),
      passes_entries_(!scenario.older_adapters || draw_.OneIn(2)) {
  if (runtime_.kind() == RuntimeKind::kCrio) runtime_.ChangeForms(false, draw_.OneIn(2));
  if (scenario.ages) DrawAges();
  if (scenario.kubelets > 0 || scenario.kubelet_first) {
    kubelet_.emplace(directory_ / "kubelet");
  }
  if (scenario.kubelet_beside) kubelet_.emplace(std::filesystem::path());
  if (scenario.rewritings > 0) memory_.emplace(std::filesystem::path());
  if (memory_) truth_.KubeletBegan(NextStep());
  internal::SetMostRememberedForTests(scenario.most_remembered > 0 ? scenario.most_remembered
                                                                   : kMaxRemembered);
  FirstStart();
  timeline_.After(kSecond, [this] { ListRegularly(); });
  const auto every = [this](Millis mean, void (NodeLife::*what)()) {
    timeline_.Every(draw_, mean, [this, what] { (this->*what)(); });
  };
  every(scenario.questions, &NodeLife::AskSomething);
  every(scenario.questions, &NodeLife::AskOutOfTurn);
  every(scenario.tag_moves, &NodeLife::MoveTag);
  every(scenario.collections, &NodeLife::CollectGarbage);
  every(scenario.imports, &NodeLife::ImportFile);
  every(scenario.imports_of_tags, &NodeLife::ImportTag);
  every(scenario.rotations, &NodeLife::RotateSecret);
  every(scenario.handovers, &NodeLife::HandOver);
  every(scenario.reboots, &NodeLife::Reboot);
  every(scenario.losses, &NodeLife::LoseStore);
  every(scenario.gaps, &NodeLife::HaveGap);
  every(scenario.kubelets, &NodeLife::LeaveKubeletAlone);
  every(scenario.operators, &NodeLife::Operate);
  every(scenario.upgrades, &NodeLife::UpgradeRuntime);
  every(scenario.outages, &NodeLife::LoseRegistries);
  every(scenario.runtime_restarts, &NodeLife::RestartRuntime);
  every(scenario.wipes, &NodeLife::WipeRuntime);
  every(scenario.clock_jumps,
        scenario.wrong_clocks ? &NodeLife::MistakeTheTime : &NodeLife::JumpClock);
  every(scenario.disks, &NodeLife::DiskGoes);
  every(scenario.words, &NodeLife::SpeakOfAway);
  every(scenario.rewritings, &NodeLife::KubeletWritesAgain);
  every(scenario.attacks, &NodeLife::Attack);
  every(scenario.storms, &NodeLife::Storm);
  every(scenario.deletions, &NodeLife::DeleteSomething);
  every(scenario.forgettings, &NodeLife::ForgetAsOperator);
  if (scenario.deletions > 0) timeline_.Every(draw_, 12 * kHour, [this] { ReconcileSoon(); });
  timeline_.Every(draw_, scenario.backups, [this] {
    if (mode_ == Role::kWaybill) backup_ = Must(store_->MakeBackup(), "MakeBackup");
  });
  timeline_.Every(draw_, scenario.kills, [this] { Kill(Around(draw_, scenario_.downtimes)); });
  timeline_.Every(draw_, scenario.removals, [this] {
    const std::vector<ContentIndex> contents = runtime_.Contents();
    if (contents.empty()) return;
    const ContentIndex content = draw_.From(contents);
    if (!runtime_.IsPinned(content)) RemoveImage(content);
  });
  if (scenario.reachable_half_the_time) {
    timeline_.Every(draw_, kHour, [this] { registries_reachable_ = !registries_reachable_; });
  }
}

NodeLife::~NodeLife() = default;

void NodeLife::Live(std::uint64_t decisions, Millis time) {
  while (figures_.decisions < decisions && timeline_.now() < time) {
    const Timeline::Event event = timeline_.Next();
    SetClocks();
    machine_->Set(Uptime());
    event();
  }
  for (const auto& [who, wait] : waits_) figures_.waits.push_back(timeline_.now() - wait.since);
  waits_.clear();
}

std::string NodeLife::NameOf(ContentIndex content) const {
  return "image " + world_.content(content).hex.substr(0, 8);
}

void NodeLife::Log(std::optional<ContentIndex> content, std::string text) {
  history_.push_back({timeline_.now(), content, false, std::move(text)});
}

// A pull that brings nothing concerns no image, unless it may have brought any.
void NodeLife::LogPull(const Pull& pull, std::string text) {
  const bool may_be_anything = pull.question.image.find('.') == std::string::npos;
  history_.push_back({timeline_.now(), pull.content, !may_be_anything,
                      fmt::format("pull {} {}", pull.number, text)});
}

// The last events that concern the image, with some of the whole node, the oldest first.
std::string NodeLife::History(std::optional<ContentIndex> content, std::size_t most) const {
  std::vector<std::string> lines;
  std::size_t of_the_node = 0;
  for (auto event = history_.rbegin(); event != history_.rend() && lines.size() < most; ++event) {
    if (event->content && event->content != content) continue;
    if (content && !event->content && (event->is_minor || of_the_node++ >= most / 3)) continue;
    const Millis at = event->at;
    lines.push_back(fmt::format("\n  day {} {:02}:{:02}:{:02}.{:03}  {}", at / kDay,
                                at % kDay / kHour, at % kHour / kMinute, at % kMinute / kSecond,
                                at % kSecond, event->text));
  }
  std::string text;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) text += *line;
  return text;
}

void NodeLife::Fail(const std::string& what, std::optional<ContentIndex> content) {
  std::string text =
      fmt::format("scenario {}, seed {}, {}: {}", scenario_.name, seed_,
                  runtime_.kind() == RuntimeKind::kCrio ? "CRI-O" : "containerd", what);
  if (breakage_ != Breakage::kNone) {
    text += fmt::format(" (deliberately broken: {})", BreakageName(breakage_));
  }
  if (content) text += "\n  truth: " + truth_.Describe(*content);
  if (content && runtime_.Has(*content)) {
    const ListedImage entry = runtime_.Entry(*content);
    text += "\n  listed as " + entry.id;
    for (const auto* names : {&entry.repo_tags, &entry.repo_digests}) {
      for (const std::string& name : *names) text += "\n    " + name;
    }
  }
  throw Wrong(text + History(content, 60));
}

}  // namespace waybill::simulation
