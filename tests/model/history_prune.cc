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
    images.emplace_back(ref, DrawHandler());
    if (draw_.OneIn(4)) images.emplace_back(ref, DrawHandler());
  }
  return images;
}

std::vector<ListedImage> History::ListedFor(const Side& side,
                                            std::vector<ListedImage> images) const {
  for (ListedImage& image : images) image.runtime_handler = Named(side, image.runtime_handler);
  return images;
}

void History::DrawTokenStep() {
  Note("draw a token");
  for (Side& side : sides_) {
    const auto token = side.store->BeginPrune();
    if (!token) Expect(false, side, token.error().ToString());
    side.tokens.push_back({*token, side.model.token()});
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
    const TokenPair& token = side.tokens[which];
    const PruneReport expected = side.model.Prune(images, token.model);
    ComparePruned(side, side.store->Prune(images, token.store), expected);
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
    const PruneReport expected = side.model.PruneBefore(images, until);
    ComparePruned(side, side.store->PruneBefore(images, until), expected);
  }
}

void History::ComparePruned(Side& side, const Result<PruneReport>& got,
                            const PruneReport& expected) const {
  if (!got) Expect(false, side, got.error().ToString());
  Expect(Describe(*got) == Describe(expected), side,
         Describe(*got) + " instead of " + Describe(expected));
}

}  // namespace waybill::testing
