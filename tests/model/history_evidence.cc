// The steps of a history about lists, the ledger and open pulls. Under kubelet rules they change
// nothing.

#include <algorithm>

#include "tests/model/describe.h"
#include "tests/model/drawn_values.h"
#include "tests/model/history.h"
#include "tests/support/pod.h"
#include "tests/support/store_fixture.h"

namespace waybill::testing {

void History::ObserveStep() {
  if (draw_.OneIn(3)) DrawTokenStep();
  ImageList drawn{.images = DrawImagesOnNode(draw_), .complete = draw_.OneIn(2)};
  for (ListedImage& image : drawn.images) {
    image.runtime_handler = DrawHandler();
    image.imported = draw_.OneIn(8);
  }
  // The runtime said that nothing is under way.
  if (draw_.OneIn(4)) {
    drawn.quiet_until = clock_.Boot();
    drawn.quiet_until->nanoseconds -= static_cast<std::int64_t>(draw_.Below(7200)) * 1'000'000'000;
  }
  if (drawn.quiet_until && draw_.OneIn(3)) drawn.names_to_come = {DrawImage(draw_).image};
  const bool allow_empty = draw_.OneIn(3);
  // Only the runtime knows every image.
  if (!drawn.complete && draw_.OneIn(3)) drawn.source = "prefetcher";
  const auto& tokens = sides_[0].tokens;
  std::optional<std::size_t> which;
  if (!tokens.empty() && !draw_.OneIn(6)) {
    which = draw_.OneIn(2) ? tokens.size() - 1 : draw_.Below(tokens.size());
  }
  ObserveIn(drawn, which, allow_empty);
}

void History::ObserveIn(const ImageList& drawn, std::optional<std::size_t> which,
                        bool allow_empty) {
  const auto& tokens = sides_[0].tokens;
  const std::string token =
      which ? ", by token " + std::to_string(*which) + " of " + std::to_string(tokens.size())
            : ", without a token";
  Note("observe " + drawn.source + (drawn.complete ? " all" : " some") + token + ":" +
       DescribeListed(drawn.images));
  for (Side& side : sides_) {
    ImageList list = drawn;
    list.images = ListedFor(side, drawn.images);
    if (which) list.token = side.tokens[*which];
    const auto rehearsed =
        side.store->ObserveImages(list, {.allow_empty = allow_empty, .dry_run = true});
    ExpectSame(side, "a dry run changed the store: ");
    const auto commits = Must(side.store->GetStatistics()).commit_sequence;
    const auto got = side.store->ObserveImages(list, {.allow_empty = allow_empty});
    const bool committed = Must(side.store->GetStatistics()).commit_sequence != commits;
    Expect(rehearsed.has_value() == got.has_value(), side, "the dry run ended otherwise");
    if (!side.model.closed()) {
      Expect(got && !got->not_judged_because.empty(), side, "a list was judged");
      ExpectSame(side);
      continue;
    }
    const auto expected = side.model.Observe(list, allow_empty);
    if (!expected) {
      Expect(!got && got.error().code == ErrorCode::kInvalidArgument, side,
             "an old list was taken");
      continue;
    }
    if (!got) Expect(false, side, got.error().ToString());
    Expect(!committed || side.model.changed(), side, "a list that changed nothing committed");
    Expect(Describe(*rehearsed) == Describe(*got), side, "the dry run said otherwise");
    Expect(Describe(*got) == Describe(*expected), side,
           Describe(*got) + "\n  instead of " + Describe(*expected));
    ExpectSame(side);
  }
}

void History::AddToLedgerStep() {
  ListedImage image = ImageOfRef(draw_.From(Refs()));
  image.repo_tags = {DrawImage(draw_).image};
  image.runtime_handler = draw_.OneIn(3) ? DrawHandler() : "";
  Note("add to the ledger" + DescribeListed({image}));
  for (Side& side : sides_) {
    if (!side.model.closed()) continue;
    ListedImage named = image;
    named.runtime_handler = Named(side, image.runtime_handler);
    const bool known = side.model.Stored(named.runtime_handler).has_value();
    const auto added = side.store->AddToLedger(named, "operator", "by hand");
    ExpectTaken(added, known, side);
    if (known) side.model.AddToLedger(named, "operator", "by hand");
    ExpectSame(side);
  }
}

void History::RemoveFromLedgerStep() {
  const std::string& ref = draw_.From(Refs());
  const std::string handler = draw_.OneIn(3) ? DrawHandler() : "";
  RemoveFromLedger(ref, handler);
}

void History::RemoveFromLedger(const std::string& ref, const std::string& handler) {
  Note("remove from the ledger " + Quote(ref) + For(handler));
  for (Side& side : sides_) {
    if (!side.model.closed()) continue;
    const std::string name = Named(side, handler);
    if (!side.model.Stored(name)) continue;
    const bool expected = side.model.RemoveFromLedger(ref, name);
    const auto removed =
        side.store->RemoveFromLedger({.image_ref = ref, .runtime_handler = name}, "a tenant's");
    Expect(removed.has_value() && *removed == expected, side, "removed, or not");
    ExpectSame(side);
  }
}

void History::SettlePresumedStep() {
  const std::string& ref = draw_.From(Refs());
  const std::string handler = draw_.OneIn(3) ? DrawHandler() : "";
  const Settled settled = draw_.OneIn(2) ? Settled::kClosed : Settled::kPreloaded;
  SettlePresumed(ref, handler, settled);
}

void History::SettlePresumed(const std::string& ref, const std::string& handler, Settled settled) {
  Note((settled == Settled::kClosed ? "close if presumed " : "confirm if presumed ") + Quote(ref) +
       For(handler));
  for (Side& side : sides_) {
    if (!side.model.closed()) continue;
    const std::string name = Named(side, handler);
    if (!side.model.Stored(name)) continue;
    const bool expected = side.model.SettlePresumed(ref, name, settled, "seen");
    const auto done =
        side.store->SettlePresumed({.image_ref = ref, .runtime_handler = name}, settled, "seen");
    Expect(done.has_value() && *done == expected, side, "settled, or not");
    ExpectSame(side);
  }
}

void History::DropPullStep() {
  if (begun_.empty()) return;
  const std::size_t which = draw_.Below(begun_.size());
  Note("drop the pull of " + Quote(begun_[which].image.image));
  for (Side& side : sides_) {
    if (!side.model.closed()) continue;
    const auto dropped = side.store->DropOpenPull(side.pulls[which], "it brought nothing");
    const bool runs = !dropped && dropped.error().code == ErrorCode::kConflict;
    if (runs) {
      Expect(side.model.Runs(side.pulls[which]), side, "it does not run");
      continue;
    }
    Expect(dropped.has_value() == side.model.DropPull(side.pulls[which]), side, "dropped, or not");
    ExpectSame(side);
  }
}

// However an image is spelt, the answer is the same. Of a repo digest alone it is not known whether
// it is an ID as well.
void History::SpellingsStep() {
  const KnownImage& image = DrawImage(draw_);
  const std::string& ref = draw_.From(Refs());
  const ModelPod pod = DrawPod(draw_);
  Note("check all spellings of " + Quote(ref) + " as " + Quote(image.image));
  for (Side& side : sides_) {
    const std::string handler = Named(side, "");
    const Decision first = Ask(side, image, ref, pod, handler);
    const auto refs = side.model.RefsOf(ref);
    for (const std::string& spelt : refs) {
      const auto back = side.model.RefsOf(spelt);
      if (std::find(back.begin(), back.end(), ref) == back.end()) continue;
      const Decision again = Ask(side, image, spelt, pod, handler);
      Expect(again.pull == first.pull, side,
             Quote(spelt) + " is answered " + Describe(again) + ", and not " + Describe(first));
    }
  }
}

}  // namespace waybill::testing
