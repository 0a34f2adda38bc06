#include "tests/model/userns_history.h"

#include <stdexcept>
#include <utility>


namespace waybill::testing {

namespace {

constexpr std::size_t kRemembered = 30;
constexpr std::size_t kTokens = 4;

std::string Text(const HostIdRange& range) {
  return std::to_string(range.first) + "+" + std::to_string(range.length);
}

}  // namespace

UsernsHistory::UsernsHistory(std::filesystem::path scratch, std::uint64_t seed)
    : draw_(seed), scratch_(std::move(scratch)) {
  options_.pool = DrawPool(draw_);
  model_.set_now(clock_.Now());
  const bool with_pods = draw_.OneIn(2);
  if (with_pods) WritePods();
  Open(with_pods);
}

void UsernsHistory::Play(std::uint64_t steps) {
  try {
    for (; step_ < steps; ++step_) {
      clock_.AdvanceSeconds(1);
      model_.set_now(clock_.Now());
      Step();
      CompareAll();
    }
  } catch (const std::exception& e) {
    std::string text = e.what();
    text += "\nin step " + std::to_string(step_) + "; the last ones were:";
    for (const std::string& what : last_) text += "\n  " + what;
    throw std::runtime_error(text);
  }
}

void UsernsHistory::Step() {
  using Action = void (UsernsHistory::*)();
  static const std::vector<std::pair<std::size_t, Action>> actions = {
      {400, &UsernsHistory::GetStep},     {60, &UsernsHistory::LookUpStep},
      {160, &UsernsHistory::ReleaseStep}, {60, &UsernsHistory::AdoptStep},
      {30, &UsernsHistory::TokenStep},    {30, &UsernsHistory::CleanUpStep},
      {10, &UsernsHistory::HandlersStep}, {25, &UsernsHistory::HeldStep},
      {10, &UsernsHistory::RestartStep},  {6, &UsernsHistory::CrashStep},
      {1, &UsernsHistory::WrongPoolStep}, {1, &UsernsHistory::UnreadableStep},
  };
  (this->*draw_.Weighted(actions))();
}

void UsernsHistory::GetStep() {
  const std::string pod_uid = DrawPodUid(draw_);
  const std::string handler = draw_.OneIn(4) ? DrawHandlerName(draw_) : "";
  UserNamespaceRequest request{.pod_uid = pod_uid, .host_users = false, .runtime_handler = handler};
  if (draw_.OneIn(20)) request.host_users = draw_.OneIn(2) ? std::nullopt : std::optional(true);
  if (draw_.OneIn(8)) {
    const auto length = draw_.OneIn(3) ? DrawRange(draw_).length : options_.pool.ids_per_pod;
    request.length = static_cast<std::uint32_t>(length);
  }
  Note("get " + pod_uid + " for " + handler +
       (request.length ? " of " + std::to_string(*request.length) : ""));
  const auto asked = model_.Get(request);
  const auto got = store_->GetOrCreateUserNamespace(request);
  if (asked.answer == UsernsModel::Answer::kRefused) {
    Expect(!got.has_value(), "what is to be refused was given");
    ExpectCode(got.error(), *asked.code, asked.words);
    ++counts_["refused: " + asked.words];
    return;
  }
  Expect(got.has_value(), got ? "" : got.error().ToString());
  if (asked.answer == UsernsModel::Answer::kNode) {
    return Expect(*got == UserNamespace{}, "not the node's user namespace");
  }
  Expect(got->mode == NamespaceMode::kPod && got->uids.size() == 1 && got->gids == got->uids &&
             got->uids.front().container_id == 0,
         "not a pod's user namespace");
  const IdMapping& mapping = got->uids.front();
  const HostIdRange range{mapping.host_id, mapping.length};
  if (asked.answer == UsernsModel::Answer::kMapping) {
    ++counts_["same"];
    return Expect(range == asked.range, "got " + Text(range) + ", had " + Text(asked.range));
  }
  ++counts_["new"];
  const std::string wrong = model_.Give(pod_uid, mapping);
  Expect(wrong.empty(), "got " + Text(range) + ": " + wrong);
}

void UsernsHistory::LookUpStep() {
  const std::string pod_uid = DrawPodUid(draw_);
  Note("look up " + pod_uid);
  const auto got = store_->GetUserNamespace(pod_uid);
  const auto found = model_.mappings().find(pod_uid);
  if (got.has_value()) {
    Expect(found != model_.mappings().end() && !model_.held().contains(pod_uid) &&
               got->host_id == found->second.range.first &&
               got->length == found->second.range.length && got->pod_uid == pod_uid &&
               got->created == found->second.created,
           "another mapping");
  } else if (got.error().code == ErrorCode::kNotFound) {
    Expect(found == model_.mappings().end() && !model_.held().contains(pod_uid), "not found");
  } else if (got.error().code == ErrorCode::kConflict) {
    Expect(model_.held().contains(pod_uid), "is not held");
  } else {
    ExpectCode(got.error(), ErrorCode::kInvalidArgument);
  }
}

void UsernsHistory::ReleaseStep() {
  std::string pod_uid = DrawPodUid(draw_);
  Note("release " + pod_uid);
  const auto expected = model_.Release(pod_uid);
  const auto got = store_->ReleaseUserNamespace(pod_uid);
  if (!expected) {
    Expect(!got.has_value(), "released what can't be");
    return ExpectCode(got.error(), ErrorCode::kInvalidArgument);
  }
  Expect(got.has_value() && *got == *expected, got ? "released or not" : got.error().ToString());
  seen_.erase(pod_uid);
}

void UsernsHistory::AdoptStep() {
  const std::string pod_uid = DrawPodUid(draw_);
  HostIdRange range = DrawAnyRange(draw_);
  const auto found = model_.mappings().find(pod_uid);
  if (found != model_.mappings().end() && draw_.OneIn(3)) range = found->second.range;
  Note("adopt " + pod_uid + " " + Text(range));
  const bool was_held = model_.held().contains(pod_uid);
  const auto expected = model_.Adopt(pod_uid, range);
  const auto got = store_->AdoptUserNamespace(pod_uid, range.first, range.length);
  if (expected) {
    Expect(!got.has_value(), "adopted what can't be");
    return ExpectCode(got.error(), *expected);
  }
  Expect(got.has_value(), got ? "" : got.error().ToString());
  ++counts_["adopted"];
  if (was_held) seen_.erase(pod_uid);  // its mapping was in doubt
}

void UsernsHistory::TokenStep() {
  Note("draw a token");
  const auto token = store_->BeginList();
  Expect(token.has_value(), "no token");
  tokens_.push_back({*token, clock_.Now()});
  if (tokens_.size() > kTokens) tokens_.pop_front();
}

void UsernsHistory::CleanUpStep() {
  if (tokens_.empty()) return;
  const Token token = tokens_[draw_.Below(tokens_.size())];
  std::vector<std::string> existing;
  std::vector<std::string> running;
  for (const std::string& uid : PodUids()) {
    if (!draw_.OneIn(4)) (draw_.OneIn(2) ? existing : running).push_back(uid);
  }
  Note("clean up by token " + std::to_string(token.token.commit));
  if (draw_.OneIn(20)) {
    ListToken later = token.token;
    later.commit = UINT64_MAX;
    const auto future = store_->CleanUpUserNamespaces(existing, running, later);
    Expect(!future.has_value(), "a token from the future");
    ExpectCode(future.error(), ErrorCode::kInvalidArgument);
  }
  std::vector<std::string> both = existing;
  both.insert(both.end(), running.begin(), running.end());
  const auto expected = model_.CleanUp(both, token.drawn);
  // A dry run reports what the run then does.
  for (const bool dry_run : {true, false}) {
    const auto got = store_->CleanUpUserNamespaces(existing, running, token.token,
                                                   {.allow_empty = true, .dry_run = dry_run});
    Expect(got.has_value(), got ? "" : got.error().ToString());
    Expect(got->examined == expected.examined && got->released == expected.released &&
               got->kept_in_lists == expected.kept_in_lists &&
               got->kept_newer == expected.kept_newer &&
               got->released_pods == expected.released_pods,
           std::to_string(got->released) + " released, " + std::to_string(got->kept_newer) +
               " kept as newer, instead of " + std::to_string(expected.released) + " and " +
               std::to_string(expected.kept_newer));
  }
  for (const std::string& uid : expected.released_pods) seen_.erase(uid);
  counts_["cleaned up"] += expected.released;
  counts_["kept as newer"] += expected.kept_newer;
}

void UsernsHistory::HandlersStep() {
  const auto handlers = DrawUsernsHandlers(draw_);
  Note("other handlers");
  const auto replaced = store_->ReplaceRuntimeHandlers(handlers, {.allow_empty = true});
  Expect(replaced.has_value(), replaced ? "" : replaced.error().ToString());
  model_.set_handlers(handlers);
}

// An operator sees to one of the held pods, so that new mappings can be handed out again.
void UsernsHistory::HeldStep() {
  if (model_.held().empty()) return;
  auto held = model_.held().begin();
  std::advance(held, static_cast<std::ptrdiff_t>(draw_.Below(model_.held().size())));
  const std::string pod_uid = held->first;
  if (pod_uid.empty()) {
    Note("release lost ranges");
    const auto released = store_->ReleaseLostUserNamespaces();
    Expect(released.has_value() && *released == model_.ReleaseLost(), "lost ranges");
    return;
  }
  if (!held->second.ranges.empty() && draw_.OneIn(2)) {
    const HostIdRange range = held->second.ranges.front();
    Note("adopt held " + pod_uid + " " + Text(range));
    const auto expected = model_.Adopt(pod_uid, range);
    const auto got = store_->AdoptUserNamespace(pod_uid, range.first, range.length);
    Expect(got.has_value() == !expected, got ? "adopted" : got.error().ToString());
    if (got.has_value()) {
      seen_.erase(pod_uid);
      ++counts_["adopted held"];
    }
    return;
  }
  Note("release held " + pod_uid);
  const auto released = store_->ReleaseUserNamespace(pod_uid);
  Expect(released.has_value() && *released, "a held pod is not released");
  static_cast<void>(model_.Release(pod_uid));
  seen_.erase(pod_uid);
}

void UsernsHistory::CompareAll() {
  const auto list = store_->ListUserNamespaces();
  Expect(list.has_value(), list ? "" : list.error().ToString());
  CheckInvariants(*list);
  Expect(*list == model_.List(), "another list of mappings");
  const auto held = store_->ListHeldPods();
  Expect(held.has_value(), held ? "" : held.error().ToString());
  const std::string difference = model_.Settle(*held);
  Expect(difference.empty(), difference);
  // With a pool of all ranges only sometimes: it is slow.
  if (options_.pool.id_count > (kHostIds >> 8U) && !draw_.OneIn(50)) return;
  const auto got = store_->GetUserNamespaceStatistics();
  Expect(got.has_value(), got ? "" : got.error().ToString());
  const PoolUse expected = model_.StoreCounts();
  Expect(got->free + got->used == got->ranges, "free and used are not all");
  const bool refuses = !got->refused_because.empty();
  Expect(got->enabled == expected.enabled && got->pool == expected.pool &&
             got->ranges == expected.ranges && got->used == expected.used &&
             got->largest_free_run == expected.largest_free_run &&
             got->allocations == expected.allocations &&
             got->outside_pool == expected.outside_pool &&
             got->other_length == expected.other_length && got->held_pods == expected.held_pods &&
             refuses == model_.Refuses(),
         "other statistics");
}

void UsernsHistory::CheckInvariants(const std::vector<PodMapping>& list) {
  std::map<std::string, HostIdRange> now;
  std::uint64_t end = 0;
  for (const PodMapping& one : list) {
    const HostIdRange range{one.host_id, one.length};
    Expect(range.first >= end, one.pod_uid + " overlaps the one before");
    Expect(MayBeHandedOut(range), one.pod_uid + " has IDs that are nobody's");
    end = range.first + range.length;
    const auto before = seen_.find(one.pod_uid);
    Expect(before == seen_.end() || before->second == range, one.pod_uid + " was moved");
    now[one.pod_uid] = range;
  }
  for (const auto& [uid, range] : seen_) Expect(now.contains(uid), uid + " lost its mapping");
  seen_ = std::move(now);
}

void UsernsHistory::Note(std::string what) {
  last_.push_back(std::move(what));
  if (last_.size() > kRemembered) last_.pop_front();
}

void UsernsHistory::Expect(bool ok, const std::string& what) const {
  if (!ok) throw std::runtime_error(what);
}

void UsernsHistory::ExpectCode(const Error& error, ErrorCode code, const std::string& words) const {
  Expect(error.code == code && error.message.find(words) != std::string::npos,
         "the error is " + error.ToString() + ", not about " + words);
}

}  // namespace waybill::testing
