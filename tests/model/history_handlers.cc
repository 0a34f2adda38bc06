// The steps of a history that change the registry of runtime handlers.

#include <algorithm>

#include "store/base/policy.h"
#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"

namespace waybill::testing {

namespace {

// What a caller may name.
std::set<std::string> NamesOf(const Model& model) {
  std::set<std::string> names = {""};
  for (const RuntimeHandler& handler : model.handlers()) names.insert(handler.name);
  return names;
}

std::set<std::string> Both(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::set<std::string> both;
  for (const std::string& name : a) {
    if (b.contains(name)) both.insert(name);
  }
  return both;
}

}  // namespace

void History::HandlersStep() {
  if (relation_ == Relation::kSameAnswers) {
    // The same default, and others that come and go.
    const auto known = sides_[1].model.handlers();
    const auto its_default =
        std::find_if(known.begin(), known.end(),
                     [](const RuntimeHandler& handler) { return handler.is_default; });
    return ReplaceHandlers(draw_.OneIn(4) ? std::vector<RuntimeHandler>{*its_default}
                                          : DrawHandlersBeside(draw_, *its_default));
  }
  if (draw_.OneIn(6)) return RefuseHandlers();
  if (default_only_) return;
  if (draw_.OneIn(4)) return CollapseHandlers();
  if (draw_.OneIn(2)) return ReplaceHandlersAtStart(DrawHandlers(draw_));
  return ReplaceHandlers(DrawHandlers(draw_));
}

void History::RefuseHandlers() {
  const auto handlers = DrawBadHandlers(draw_);
  Note("refused handlers" + DescribeHandlers(handlers));
  for (Side& side : sides_) {
    const auto result = side.store->ReplaceRuntimeHandlers(handlers);
    Expect(!result && result.error().code == ErrorCode::kInvalidArgument, side,
           "it should have been refused");
    ExpectSame(side);
  }
}

void History::ReplaceHandlers(const std::vector<RuntimeHandler>& handlers) {
  Note("handlers" + DescribeHandlers(handlers));
  if (!Agree([&](const Model& model) { return model.MayReplace(handlers); })) return;
  for (Side& side : sides_) {
    if (relation_ == Relation::kSameAnswers && &side == &sides_[0]) continue;
    const auto rehearsed =
        side.store->ReplaceRuntimeHandlers(handlers, {.allow_empty = true, .dry_run = true});
    ExpectSame(side, "a dry run changed the store: ");
    const auto result = side.store->ReplaceRuntimeHandlers(handlers, {.allow_empty = true});
    Expect(rehearsed.has_value() == result.has_value(), side, "the dry run ended otherwise");
    if (!side.model.MayReplace(handlers)) {
      Expect(!result && result.error().code == ErrorCode::kConflict, side,
             "it should have been refused");
      continue;
    }
    const Model before = side.model;
    const RuntimesReport expected = side.model.Replace(handlers);
    if (!result) Expect(false, side, result.error().ToString());
    Expect(Describe(*rehearsed) == Describe(*result), side, "the dry run said otherwise");
    Expect(Describe(*result) == Describe(expected), side,
           Describe(*result) + "\n  instead of " + Describe(expected));
    ExpectNothingOpened(side, before, Both(NamesOf(before), NamesOf(side.model)));
  }
}

// With no pull in flight, the registry may always be replaced.
void History::ReplaceHandlersAtStart(const std::vector<RuntimeHandler>& handlers) {
  ModelOpening opening;
  opening.handlers = handlers;
  opening.gap = Gap::kNo;
  Note("restart" + DescribeOpening(opening));
  for (Side& side : sides_) {
    const Model before = side.model;
    Stop(side);
    Open(side, opening);
    ExpectNothingOpened(side, before, Both(NamesOf(before), NamesOf(side.model)));
  }
}

void History::CollapseHandlers() {
  Note("collapse handlers");
  if (!Agree([&](const Model& model) { return model.MayCollapse(); })) return;
  for (Side& side : sides_) {
    const auto rehearsed = side.store->CollapseRuntimeHandlers({.dry_run = true});
    ExpectSame(side, "a dry run changed the store: ");
    const auto result = side.store->CollapseRuntimeHandlers();
    if (!side.model.MayCollapse()) {
      Expect(!result && result.error().code == ErrorCode::kConflict, side,
             "it should have been refused");
      continue;
    }
    const Model before = side.model;
    const RuntimesReport expected = side.model.Collapse();
    if (!result) Expect(false, side, result.error().ToString());
    Expect(rehearsed && Describe(*rehearsed) == Describe(*result), side,
           "the dry run said otherwise");
    Expect(Describe(*result) == Describe(expected), side,
           Describe(*result) + "\n  instead of " + Describe(expected));
    ExpectNothingOpened(side, before, NamesOf(side.model));
  }
}

void History::ExpectNothingOpened(const Side& side, const Model& before,
                                  const std::set<std::string>& handlers) {
  constexpr int kAsked = 12;
  for (int i = 0; i < kAsked; ++i) {
    const KnownImage& image = DrawImage(draw_);
    const std::string& ref = draw_.From(Refs());
    const ModelPod pod = DrawPod(draw_);
    for (const std::string& handler : handlers) {
      const Decision was = before.Decide(image, ref, pod, handler).decision;
      const Decision is = side.model.Decide(image, ref, pod, handler).decision;
      // An unreadable intent for another string stops a policy that opens everything only if there
      // is no record.
      const bool by_policy =
          is.reason == Reason::kPolicyNeverVerifies ||
          (is.reason == Reason::kPolicyAllowlisted && policy_.scope == AllowlistScope::kAnyImage);
      if (by_policy && was.reason == Reason::kQuarantined) continue;
      // With a hundred Secrets none counts by its coordinates; what drops some lets the others
      // count.
      if (is.reason == Reason::kSecretCoordinatesMatch &&
          before.SecretsFor(image, ref, handler) >= kMaxSecretsForWriteBack) {
        continue;
      }
      Expect(is.pull || !was.pull, side,
             "opens " + Quote(image.image) + " " + Quote(ref) + For(handler) + ": " + Describe(is) +
                 " instead of " + Describe(was));
    }
  }
}

}  // namespace waybill::testing
