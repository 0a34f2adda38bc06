// The steps of a history that collect garbage.

#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"

namespace waybill::testing {

namespace {
constexpr std::size_t kTokensKept = 8;
}  // namespace

std::vector<ListedImage> History::DrawListed() {
  std::vector<ListedImage> images;
  for (const std::string& ref : DrawRefs(draw_)) {
    images.push_back({.id = ref, .runtime_handler = DrawHandler()});
    if (draw_.OneIn(4)) images.push_back({.id = ref, .runtime_handler = DrawHandler()});
  }
  return images;
}

std::vector<ListedImage> History::ListedFor(const Side& side,
                                            std::vector<ListedImage> images) const {
  for (ListedImage& image : images) image.runtime_handler = Named(side, image.runtime_handler);
  return images;
}

void History::DrawTokenStep() {
  // On all sides it is newer than the last one, or on none: a registry makes further commits.
  for (const Side& side : sides_) {
    const auto commits = Must(side.store->GetStatistics()).commit_sequence;
    if (!side.tokens.empty() && side.tokens.back().commit == commits) return;
  }
  Note("draw a token");
  for (Side& side : sides_) {
    const auto token = side.store->BeginList();
    if (!token) Expect(false, side, token.error().ToString());
    side.tokens.push_back(*token);
    side.model.Drew(token->commit);
    if (side.tokens.size() > kTokensKept) side.tokens.pop_front();
  }
}

void History::PruneByTokenStep() {
  if (sides_[0].tokens.empty()) DrawTokenStep();
  const std::vector<ListedImage> drawn = DrawListed();
  const std::size_t which = draw_.Below(sides_[0].tokens.size());
  Note("prune by token " + std::to_string(which) + " of " +
       std::to_string(sides_[0].tokens.size()) + ", listed:" + DescribeListed(drawn));
  for (Side& side : sides_) {
    const auto images = ListedFor(side, drawn);
    const ListToken token = side.tokens[which];
    ComparePruned(
        side, images,
        [&](const waybill::ChangeOptions& how) { return side.store->Prune(images, token, how); },
        [&](Model& model) { return model.Prune(images, token.commit); });
  }
}

void History::PruneByTimeStep() {
  const std::vector<ListedImage> drawn = DrawListed();
  Timestamp until = clock_.Now();
  until.seconds -= static_cast<std::int64_t>(draw_.Below(20));
  if (draw_.OneIn(2)) until.nanoseconds = static_cast<std::int32_t>(draw_.Below(3)) * 400'000'000;
  Note("prune before " + std::to_string(until.seconds) + "." + std::to_string(until.nanoseconds) +
       ", listed:" + DescribeListed(drawn));
  for (Side& side : sides_) {
    const auto images = ListedFor(side, drawn);
    if (side.rules == Mode::kStrict) {
      const auto refused = side.store->PruneBefore(images, until);
      Expect(!refused && refused.error().code == ErrorCode::kInvalidArgument, side,
             "a time should have been refused");
      continue;
    }
    ComparePruned(
        side, images,
        [&](const waybill::ChangeOptions& how) {
          return side.store->PruneBefore(images, until, how);
        },
        [&](Model& model) { return model.PruneBefore(images, until); });
  }
}

void History::ComparePruned(
    Side& side, const std::vector<ListedImage>& images,
    const std::function<Result<PruneReport>(const waybill::ChangeOptions&)>& prune,
    const std::function<PruneReport(Model&)>& expect) {
  if (images.empty() && !Must(side.store->ListRecords()).empty()) {
    const auto refused = prune({});
    Expect(!refused && refused.error().code == ErrorCode::kInvalidArgument, side,
           "an empty list should have been refused");
  }
  const auto rehearsed = prune({.allow_empty = true, .dry_run = true});
  ExpectSame(side, "a dry run changed the store: ");
  const PruneReport expected = expect(side.model);
  const auto got = prune({.allow_empty = true});
  for (const auto* report : {&rehearsed, &got}) {
    if (!*report) Expect(false, side, report->error().ToString());
    Expect(Describe(**report) == Describe(expected), side,
           Describe(**report) + " instead of " + Describe(expected));
  }
  ExpectSame(side);
}

}  // namespace waybill::testing
