// What is known of images without a pull: decisions that the ledger or the table of spellings
// answers, beside hits of records; lists of images.

#include <fmt/format.h>

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bench/data_set.h"
#include "bench/measure.h"
#include "bench/rows.h"

namespace waybill::bench {

namespace {

// The index of the first image that no pull has to do with.
constexpr std::uint64_t kPreloaded = 30'000'000;
// Of images that no store has.
constexpr std::uint64_t kNewPulls = 40'000'000;

std::vector<ImageOnNode> ListOf(std::uint64_t first, std::size_t images) {
  std::vector<ImageOnNode> list;
  list.reserve(images);
  for (std::uint64_t i = first; i < first + images; ++i) {
    list.push_back(
        {.id = ImageRefOf(i), .repo_tags = {ImageOf(i)}, .repo_digests = {RepoDigestOf(i)}});
  }
  return list;
}

ObserveReport Observe(NodeStore& store, ImageList& list) {
  list.token = Must(store.BeginList());
  list.complete = true;
  return Must(store.ObserveImages(list));
}

bool IsPreloaded(NodeStore& store, const Question& question) {
  FixedCredentials credentials({.secrets = {&question.secret, 1}, .service_account = {}});
  return store
             .MustAttemptPull({.image = question.image, .image_ref = question.image_ref},
                              credentials)
             .reason == Reason::kPolicyKnownPreloaded;
}

// Goes through the questions, `count` at a time.
class Asker {
 public:
  Asker(NodeStore& store, Questions questions, bool (*expected)(NodeStore&, const Question&))
      : store_(store), questions_(std::move(questions)), expected_(expected) {}
  void Ask(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      if (!expected_(store_, questions_[next_])) {
        throw std::runtime_error("a decision was not as expected; the figures are void");
      }
      next_ = next_ + 1 == questions_.size() ? 0 : next_ + 1;
    }
  }

 private:
  NodeStore& store_;
  Questions questions_;
  bool (*expected_)(NodeStore&, const Question&);
  std::size_t next_ = 0;
};

void MeasureBeside(const Bench& bench, std::size_t records, const std::string& what, Reach reach,
                   Asker asker, Asker hits) {
  const std::size_t batch = bench.effort.decision_batch;
  for (std::size_t done = 0; done < records; done += batch) {  // warm
    asker.Ask(batch);
    hits.Ask(batch);
  }
  Turns turns;
  const auto each = static_cast<double>(batch);
  for (std::size_t i = 0; i < bench.effort.decision_turns; ++i) {
    const double ours = NanosecondsOf([&] { asker.Ask(batch); });
    const double hit = NanosecondsOf([&] { hits.Ask(batch); });
    turns.Add(ours / each, hit / each);
  }
  const Comparison result = turns.Result();
  bench.report.Add({fmt::format("decision, {}, {} of each", what, Grouped(records)),
                    Duration(result.ours), "record hit " + Duration(result.theirs), result.ratio,
                    "x", reach});
}

// A pull whose spellings are new, beside one of which the runtime said nothing.
void MeasureEntries(const Bench& bench, NodeStore& store, std::size_t records) {
  Turns turns;
  const auto pull = [&](std::uint64_t index, bool with_entry) {
    const ImagePullCredentials credentials = CredentialsOf(index);
    const std::string image = ImageOf(index);
    const std::string ref = ImageRefOf(index);
    PullResult result;
    if (with_entry) result.image = ListOf(index, 1).front();
    return NanosecondsOf([&] {
      result.pull = Must(store.RecordPullIntent({.image = image}));
      Must(store.RecordImagePulled({.image = image, .image_ref = ref}, credentials, result));
    });
  };
  for (std::size_t i = 0; i < bench.effort.commits; ++i) {
    const double ours = pull(kNewPulls + 2 * i, true);
    turns.Add(ours, pull(kNewPulls + 2 * i + 1, false));
  }
  const Comparison result = turns.Result();
  bench.report.Add({fmt::format("pull with the runtime's entry, {} records", Grouped(records)),
                    Duration(result.ours), "without " + Duration(result.theirs), result.ratio, "x",
                    AtMost(1.5)});
}

void AddList(const Bench& bench, const std::string& what, std::size_t images,
             const std::vector<double>& times) {
  const double time = Median(times);
  bench.report.Add({fmt::format("list of images, {}, {} images", what, Grouped(images)),
                    Duration(time), "", time / 1e3 / static_cast<double>(images), "us/image"});
}

}  // namespace

void MeasureEvidence(const Bench& bench, std::size_t records) {
  std::vector<double> known;
  std::vector<double> fresh;
  for (std::size_t i = 0; i < bench.effort.lists; ++i) {
    ScratchStore store(bench.scratch.path() / fmt::format("lists-{}-{}", records, i));
    store.Open();
    ImageList list{.images = ListOf(kPreloaded, records)};
    for (std::vector<double>* times : {&fresh, &known}) {
      ObserveReport report;
      times->push_back(NanosecondsOf([&] { report = Observe(*store, list); }));
      if ((times == &fresh ? report.preloaded : report.known) != records) {
        throw std::runtime_error("a list was not judged as expected; the figures are void");
      }
    }
    store.Close();
    std::filesystem::remove_all(store.directory());
  }
  AddList(bench, "all new", records, fresh);
  AddList(bench, "all known", records, known);

  ScratchStore store(bench.scratch.path() / fmt::format("evidence-{}", records));
  store.Fill(records);
  ImageList all{.images = ListOf(kPreloaded, records)};
  for (ImageOnNode& image : ListOf(0, records)) all.images.push_back(std::move(image));
  Observe(*store, all);
  MeasureBeside(bench, records, "preloaded", AtMost(1.5),
                Asker(*store, Questions(records, kPreloaded), IsPreloaded),
                Asker(*store, Questions(records), Hit));
  MeasureBeside(bench, records, "another spelling", {},
                Asker(*store, Questions(records, 0, RepoDigestOf), Hit),
                Asker(*store, Questions(records), Hit));
  MeasureEntries(bench, *store, records);
  store.Close();
}

}  // namespace waybill::bench
