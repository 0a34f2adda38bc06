// waybill preload add: an operator's word, or a list, on what came to the node without the kubelet.

#include <set>

#include "bindings/cli/described_json.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
#include "bindings/cli/preload.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

std::string NameOf(const ImageOnNode& image) {
  return !image.repo_tags.empty()      ? image.repo_tags.front()
         : !image.repo_digests.empty() ? image.repo_digests.front()
                                       : image.id;
}

// The images on the node that an installer's list names.
struct Selected {
  std::vector<ImageOnNode> images;
  std::vector<std::string> absent;  // names that the runtime does not list
};

// The runtime's entries for those that `wanted` names: their names are the ones that pods use.
// Without `listed` each wanted one must have its ID.
Result<Selected> Select(const std::vector<ImageOnNode>& wanted,
                        const std::optional<std::vector<ImageOnNode>>& listed) {
  Selected selected;
  if (!listed) {
    for (const ImageOnNode& image : wanted) {
      if (!image.id.empty()) continue;
      return BadFlag("--from-list", fmt::format("{} has no ID", NameOf(image).substr(0, 200)),
                     "add --images FILE, with what `crictl images -o json` prints, or --cri");
    }
    selected.images = wanted;
    return selected;
  }
  const ImageIndex index(*listed);
  std::set<std::size_t> chosen;
  for (const ImageOnNode& image : wanted) {
    std::vector<std::size_t> its;
    if (image.id.empty()) {
      for (const auto* names : {&image.repo_tags, &image.repo_digests}) {
        for (const std::string& name : *names) index.Find(name, its);
      }
    } else {
      index.Find(image.id, its);
    }
    chosen.insert(its.begin(), its.end());
    if (its.empty()) selected.absent.push_back(NameOf(image));
  }
  for (const std::size_t i : chosen) selected.images.push_back((*listed)[i]);
  return selected;
}

class PreloadAddCall final : public LedgerChange {
 public:
  void Declare(Flags& flags) override {
    flags.Positionals(
        "IMAGE", &images_,
        "an ID, a digest (REPOSITORY@sha256:…), or, with --images or --cri, a name there",
        Length{kMaxImageRefBytes});
    list_.Declare(flags, ", to find images by name");
    DeclareShared(flags);
    flags.Value("--source", &source_, "NAME",
                "how the images came to the node; \"operator\" (default)", Length{kMaxReasonBytes});
    flags.Value("--from-list", &from_list_, "FILE|-", "the images of this list");
    flags.Value("--token", &token_, "TOKEN", "with --from-list: the token", ParseListToken);
    flags.Excludes("--from-list", {"IMAGE", "--reason", "--runtime"});
    flags.Needs("--token", {"--from-list"});
    flags.Needs("--from-list", {"--source"}, "name who made the list");
    flags.Needs("--from-list", {"--token"},
                "draw a token with `waybill observe --begin`, before the list is made");
    flags.Needed({"IMAGE", "--from-list"}, "name images");
    flags.Needed({"--reason", "--from-list"}, "state how you know that");
  }

  Result<ExitCode> Run(Output& out) override { return from_list_ ? AddList(out) : Add(out); }

 private:
  // All are found before the first is entered, so that a mistyped name changes nothing.
  Result<std::vector<ImageOnNode>> Resolve() const {
    auto list = TRY(list_.ReadIfGiven());
    std::vector<ImageOnNode> found;
    for (const std::string& name : images_) {
      if (list) {
        auto entries = TRY(FindListed(name, *list, list_.name()));
        found.insert(found.end(), entries.begin(), entries.end());
      } else if (IsSpelling(name)) {
        found.push_back({.id = name});
      } else {
        return BadFlag(
            "IMAGE",
            fmt::format("{} is {}, and may be another image's tomorrow", name.substr(0, 200),
                        IsShortRef(name) ? "short for an ID" : "a name"),
            "add --images FILE, with what `crictl images -o json` prints, or --cri, to find the "
            "image that has the name now; or give its ID");
      }
    }
    if (runtime_.given()) {
      for (ImageOnNode& image : found) image.runtime_handler = runtime_.handler();
    }
    return found;
  }

  Result<ExitCode> Add(Output& out) const {
    auto images = TRY(Resolve());
    std::vector<std::string> closed;
    TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
      TRY(CheckHandler(writer.store()));
      std::size_t done = 0;
      for (const ImageOnNode& image : images) {
        auto entered = writer.owner().AddToLedger(image, source_, reason_, change_);
        if (!entered) return After(entered.error(), done, images.size(), "were entered");
        ++done;
        const auto why = writer.store().Explain(
            {.image = image.id, .image_ref = image.id, .runtime_handler = runtime_.handler()});
        if (why && why->in_quarantine) closed.push_back(image.id);
      }
      return {};
    }));
    WriteDryRun(change_.dry_run, out);
    Json list = Json::array();
    for (const ImageOnNode& image : images) {
      list.push_back({{"imageRef", image.id}, {"name", NameOf(image)}});
      out.Line("preloaded: {}{}", image.id, ForHandler(image.runtime_handler));
    }
    out.WriteJson(
        {{"added", list}, {"source", source_}, {"reason", reason_}, {"dryRun", change_.dry_run}});
    (void)out.Flush();
    for (const std::string& id : closed) {
      Warn(id + " is in quarantine, which closes it all the same",
           "see waybill list --quarantine --store " + ShellWord(store_.store) +
               "; pulling the image ends that");
    }
    return ExitCode::kYes;
  }

  Result<ExitCode> AddList(Output& out) const {
    auto wanted = TRY(ReadPreloadedList(*from_list_));
    auto listed = TRY(list_.ReadIfGiven());
    auto selected = TRY(Select(wanted, listed));
    const ImageList list{.images = std::move(selected.images),
                         .token = *token_,
                         .complete = false,
                         .source = source_};
    auto report = TRY(WithWriter(
        Writer::Open(store_, {.evidence = evidence_.options(), .evidence_flags = &evidence_}),
        [&](Writer& writer) { return writer.owner().ObserveImages(list, change_); }));
    Json answer = JsonOf(report);
    answer["notOnNode"] = selected.absent;
    WriteChange(std::move(answer), change_.dry_run, out);
    WriteObserved(report, {}, out);
    for (const std::string& name : selected.absent) {
      out.Line("absent      {}: the runtime does not list it", name);
    }
    return ExitCode::kYes;
  }

  std::vector<std::string> images_;
  ImagesFlags list_;
  std::string source_ = "operator";
  std::optional<std::string> from_list_;
  std::optional<ListToken> token_;
};

}  // namespace

Command PreloadAddAction() {
  return {
      .name = "add",
      .summary = "state that images are preloaded",
      .notes =
          R"(With --from-list, --source and --token: a prefetcher's or installer's list, judged like
a list of the runtime's: a name that an open pull could have given an image proves
nothing. An entry needs a name or an ID; with --images or --cri only its ID, or else its
names, are looked up there. Draw the token (waybill observe --begin) before the lists
are made.)",
      .examples =
          R"(waybill preload add registry.example/tool:1 --cri auto --reason 'loaded by hand'
waybill preload add --from-list images.json --source installer --token "$token")",
      .call = New<PreloadAddCall>};
}

}  // namespace waybill::cli
