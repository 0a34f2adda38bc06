// waybill preload: the ledger of images that came to the node without the kubelet.

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "bindings/cli/command.h"
#include "bindings/cli/described_json.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/input.h"
#include "bindings/cli/list_token.h"
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

class PreloadCommand final : public Command {
 public:
  std::string name() const override { return "preload"; }
  std::string summary() const override { return "say which images are preloaded, or list them"; }
  std::string notes() const override {
    return R"(list (default)  the ledger: images that are known to have come to the node without the
                kubelet, or presumed so since a first start (source "presumed"), and
                so are open to all pods under every name
add IMAGE…      you state that these images are preloaded. IMAGE is an ID, a digest
                (REPOSITORY@sha256:…), or, with --images or --cri, a name there
remove IMAGE…   you state that they are not; 1 if one was not in the ledger. Without a
                record they are closed until a pod proves credentials
confirm PATTERN…, close PATTERN…, or --all
                you state what the presumed images are: preloaded (source "operator"
                from now on), or not, so that they are closed until a pod proves
                credentials. A PATTERN is an ID or the first six digits of one, or a
                name; * stands for any characters. 1 if a pattern fits none
add --from-list FILE --source NAME --token TOKEN
                a prefetcher's or installer's list, judged like a list of the runtime's:
                a name that an open pull could have given an image proves nothing. An
                entry needs a name or an ID; with --images or --cri only its ID, or
                else its names, are looked up there. Draw the token (waybill observe --begin)
                before the lists are made)";
  }

  void Declare(Flags& flags) override {
    store_.Declare(flags);
    store_.DeclareWait(flags);
    flags.Positional("ACTION", &action_, "list, add, remove, confirm or close");
    flags.Positionals("IMAGE", &images_, "add, remove: images; confirm, close: patterns");
    flags.Switch("--all", &all_, "confirm, close: every presumed image");
    list_.Declare(flags, ", to find images by name");
    flags.Value("--reason", &reason_, "TEXT", "why you state that");
    flags.Value("--source", &source_, "NAME",
                "add: how the images came to the node; \"operator\" (default)");
    flags.Value("--from-list", &from_list_, "FILE|-", "add: the images of this list");
    flags.Value("--token", &token_, "TOKEN", "add --from-list: the token");
    runtime_.Declare(flags);
    change_.DeclareDryRun(flags);
    evidence_.Declare(flags);
    store_.DeclareRules(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    TRY(store_.Parse());
    TRY(runtime_.Parse());
    TRY(evidence_.Parse());
    const std::string action = action_.value_or("list");
    const bool settles = action == "confirm" || action == "close";
    if (action != "list" && action != "add" && action != "remove" && !settles) {
      return BadFlag("ACTION", fmt::format("there is no '{}'", action.substr(0, 200)),
                     "the actions are list, add, remove, confirm and close");
    }
    TRY(Check(action));
    if (action == "list") return List(out);
    if (action == "remove") return Remove(out);
    if (settles) return Settle(action == "close" ? Settled::kClosed : Settled::kPreloaded, out);
    return from_list_ ? AddList(out) : Add(out);
  }

 private:
  Result<void> Check(std::string_view action) const {
    const struct {
      std::string_view name;
      bool given;
      bool list;
      bool add;
      bool add_list;
      bool remove;
      bool settle;
    } all[] = {{"IMAGE", !images_.empty(), false, true, false, true, true},
               {"--all", all_, false, false, false, false, true},
               {list_.name(), list_.given(), false, true, true, true, false},
               {"--reason", reason_.has_value(), false, true, false, true, true},
               {"--source", source_.has_value(), false, true, true, false, false},
               {"--from-list", from_list_.has_value(), false, false, true, false, false},
               {"--token", token_.has_value(), false, false, true, false, false},
               {"--runtime", runtime_.given(), false, true, false, true, true},
               {"--dry-run", change_.options.dry_run, false, true, true, true, true}};
    const bool settles = action == "confirm" || action == "close";
    for (const auto& argument : all) {
      const bool belongs = action == "list"     ? argument.list
                           : action == "remove" ? argument.remove
                           : settles            ? argument.settle
                           : from_list_         ? argument.add_list
                                                : argument.add;
      if (!argument.given || belongs) continue;
      return BadFlag(argument.name, fmt::format("{}{} does not take it", action,
                                                from_list_ ? " --from-list" : ""));
    }
    TRY(list_.Check());
    if (action == "list") return {};
    if (from_list_) return CheckFromList();
    if (all_ && !images_.empty()) return BadFlag("--all", "it excludes patterns");
    if (images_.empty() && !all_) {
      return BadFlag("IMAGE", "it is missing", settles ? "name images, or --all" : "name images");
    }
    for (const std::string& image : images_) {
      TRY(CheckLength("IMAGE", image, kMaxImageRefBytes));
    }
    if (!reason_) return BadFlag("--reason", "it is missing", "state how you know that");
    TRY(CheckLength("--reason", *reason_, kMaxReasonBytes));
    if (!source_) return {};
    return CheckLength("--source", *source_, kMaxReasonBytes);
  }

  Result<void> CheckFromList() const {
    if (!source_) return BadFlag("--source", "it is missing", "name who made the list");
    TRY(CheckLength("--source", *source_, kMaxReasonBytes));
    if (!token_) {
      return BadFlag("--token", "it is missing",
                     "draw a token with `waybill observe --begin`, before the list is made");
    }
    return CheckStandardInput({{"--from-list", from_list_}, {"--images", list_.path()}});
  }

  // --- list

  Result<ExitCode> List(Output& out) const {
    auto listed = WithStore(ObserveStore(store_, {.shows_any_age = true}),
                            [&](const NodeStore& store) -> Result<ExitCode> {
                              auto ledger = TRY(store.ListLedger());
                              auto names = TRY(HandlerNames::Of(store));
                              WriteLedger(ledger, names, out);
                              return ExitCode::kYes;
                            });
    return listed;
  }

  static void WriteLedger(const std::vector<LedgerEntry>& ledger, const HandlerNames& handlers,
                          Output& out) {
    Json list = Json::array();
    std::vector<std::vector<std::string>> rows;
    for (const LedgerEntry& entry : ledger) {
      if (out.json()) {
        list.push_back(JsonOf(entry));
        continue;
      }
      const std::string runtime = handlers.TextOf(entry.runtime_handler);
      const std::string since = out.TimeText(entry.since);
      const std::string reason = entry.reason.empty() ? "-" : entry.reason;
      for (const std::string& name : entry.names) {
        rows.push_back({entry.image_ref, runtime, name, entry.source, since, reason});
      }
      if (entry.names.empty()) {
        rows.push_back({entry.image_ref, runtime, "-", entry.source, since, reason});
      }
    }
    if (out.json()) return out.WriteJson({{"ledger", list}});
    out.WriteTable({"IMAGE REF", "RUNTIME", "NAME", "SOURCE", "SINCE", "REASON"}, rows);
  }

  // --- add IMAGE…

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
      for (ImageOnNode& image : found) image.runtime_handler = runtime_.handler;
    }
    return found;
  }

  Result<ExitCode> Add(Output& out) const {
    auto images = TRY(Resolve());
    const std::string source = source_.value_or("operator");
    std::vector<std::string> closed;
    auto added = WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<std::size_t> {
      TRY(CheckHandler(writer.store()));
      std::size_t done = 0;
      for (const ImageOnNode& image : images) {
        auto entered = writer.owner().AddToLedger(image, source, *reason_, change_.options);
        if (!entered) return After(entered.error(), done, images.size(), "were entered");
        ++done;
        const auto why = writer.store().Explain(
            {.image = image.id, .image_ref = image.id, .runtime_handler = runtime_.handler});
        if (why && why->in_quarantine) closed.push_back(image.id);
      }
      return done;
    });
    if (!added) return added.error();
    WriteDryRun(change_.options.dry_run, out);
    Json list = Json::array();
    for (const ImageOnNode& image : images) {
      list.push_back({{"imageRef", image.id}, {"name", NameOf(image)}});
      if (out.json()) continue;
      out.Line("preloaded: {}{}", image.id, ForHandler(image.runtime_handler));
    }
    if (out.json()) {
      out.WriteJson({{"added", list},
                     {"source", source},
                     {"reason", *reason_},
                     {"dryRun", change_.options.dry_run}});
    }
    (void)out.Flush();
    for (const std::string& id : closed) {
      Warn(id + " is in quarantine, which closes it all the same",
           "see waybill list --quarantine --store " + ShellWord(store_.store) +
               "; pulling the image ends that");
    }
    return ExitCode::kYes;
  }

  // --- add --from-list

  Result<ExitCode> AddList(Output& out) const {
    auto token = TRY(ParseListToken(*token_));
    auto wanted = TRY(ReadPreloadedList(*from_list_));
    auto listed = TRY(list_.ReadIfGiven());
    auto selected = TRY(Select(wanted, listed));
    const ImageList list{.images = std::move(selected.images),
                         .token = token,
                         .complete = false,
                         .source = *source_};
    auto report = TRY(WithWriter(
        Writer::Open(store_, {.evidence = evidence_.options, .evidence_flags = &evidence_}),
        [&](Writer& writer) { return writer.owner().ObserveImages(list, change_.options); }));
    WriteDryRun(change_.options.dry_run, out);
    if (out.json()) {
      Json answer = JsonOf(report);
      answer["notOnNode"] = selected.absent;
      answer["dryRun"] = change_.options.dry_run;
      out.WriteJson(answer);
      return ExitCode::kYes;
    }
    WriteObserved(report, {}, out);
    for (const std::string& name : selected.absent) {
      out.Line("absent      {}: the runtime does not list it", name);
    }
    return ExitCode::kYes;
  }

  // --- remove

  // The ref that `name` means: that of the ledger entry with that spelling or name; else what the
  // list says; else the name itself, if the store may know it as a spelling. nullopt: none.
  static Result<std::optional<std::string>> RefOf(
      const std::string& name, const std::vector<LedgerEntry>& ledger,
      const std::optional<std::vector<ImageOnNode>>& list, std::string_view flag) {
    std::set<std::string> refs;
    for (const LedgerEntry& entry : ledger) {
      const bool named =
          std::find(entry.names.begin(), entry.names.end(), name) != entry.names.end();
      if (named || SameSpelling(entry.image_ref, name)) refs.insert(entry.image_ref);
    }
    if (refs.size() > 1) {
      std::string all;
      for (const std::string& ref : refs) all += (all.empty() ? "" : ", ") + ref;
      return BadFlag(
          "IMAGE",
          fmt::format("{} is a name of several images in the ledger: {}", name.substr(0, 200), all),
          "give an ID");
    }
    if (!refs.empty()) return std::optional(*refs.begin());
    if (list) {
      auto entries = TRY(FindListed(name, *list, flag));
      return std::optional(entries.front().id);
    }
    return IsSpelling(name) ? std::optional(name) : std::nullopt;
  }

  Result<ExitCode> Remove(Output& out) const {
    auto list = TRY(list_.ReadIfGiven());
    std::vector<std::pair<std::string, bool>> removed;
    auto done = WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
      TRY(CheckHandler(writer.store()));
      auto ledger = TRY(writer.store().ListLedger());
      std::vector<std::optional<std::string>> refs;
      for (const std::string& given : images_) {
        auto meant = TRY(IsShortRef(given) ? ResolveRef("IMAGE", given, writer.store())
                                           : Result<std::string>(given));
        const std::string& name = meant;
        auto ref = TRY(RefOf(name, ledger, list, list_.name()));
        refs.push_back(std::move(ref));
      }
      for (std::size_t i = 0; i < refs.size(); ++i) {
        if (!refs[i]) {
          removed.emplace_back(images_[i], false);
          continue;
        }
        auto was_there = writer.owner().RemoveFromLedger(
            {.image_ref = *refs[i], .runtime_handler = runtime_.handler}, *reason_,
            change_.options);
        if (!was_there) return After(was_there.error(), i, refs.size(), "were done");
        removed.emplace_back(*refs[i], *was_there);
      }
      return {};
    });
    if (!done) return done.error();
    WriteDryRun(change_.options.dry_run, out);
    bool all = true;
    Json images = Json::array();
    for (const auto& [ref, was_there] : removed) {
      all = all && was_there;
      images.push_back({{"imageRef", ref}, {"removed", was_there}});
      if (out.json()) continue;
      if (was_there) {
        out.Line("removed: {}{} is not preloaded", ref, ForHandler(runtime_.handler));
      } else {
        out.Line("{}{} is not in the ledger", ref, ForHandler(runtime_.handler));
      }
    }
    if (out.json()) {
      out.WriteJson(
          {{"images", images}, {"reason", *reason_}, {"dryRun", change_.options.dry_run}});
    }
    return all ? ExitCode::kYes : ExitCode::kNo;
  }

  // --- confirm, close

  static bool Fits(const std::string& pattern, const LedgerEntry& entry) {
    const auto fits = [&](const std::string& text) {
      return ::fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
    };
    return fits(entry.image_ref) || SameSpelling(entry.image_ref, pattern) ||
           std::any_of(entry.names.begin(), entry.names.end(), fits);
  }

  Result<ExitCode> Settle(Settled settled, Output& out) const {
    std::vector<LedgerEntry> done;
    std::vector<std::string> fit_none;
    auto settling = WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
      TRY(CheckHandler(writer.store()));
      auto ledger = TRY(writer.store().ListLedger());
      std::erase_if(ledger, [&](const LedgerEntry& entry) {
        return !IsPresumed(entry) ||
               (runtime_.given() && entry.runtime_handler != runtime_.handler);
      });
      std::set<std::size_t> chosen;
      for (const std::string& pattern : images_) {
        auto meant = TRY(IsShortRef(pattern) ? ResolveRef("IMAGE", pattern, writer.store())
                                             : Result<std::string>(pattern));
        bool any = false;
        for (std::size_t i = 0; i < ledger.size(); ++i) {
          if (!Fits(meant, ledger[i])) continue;
          any = true;
          chosen.insert(i);
        }
        if (!any) fit_none.push_back(pattern);
      }
      for (std::size_t i = 0; i < ledger.size(); ++i) {
        LedgerEntry& entry = ledger[i];
        if (!all_ && !chosen.contains(i)) continue;
        // The entry may have gone, or been settled, meanwhile.
        auto was_presumed = writer.owner().SettlePresumed(
            {.image_ref = entry.image_ref, .runtime_handler = entry.runtime_handler}, settled,
            *reason_, change_.options);
        if (!was_presumed) {
          return After(was_presumed.error(), done.size(), all_ ? ledger.size() : chosen.size(),
                       "were settled");
        }
        if (*was_presumed) done.push_back(std::move(entry));
      }
      return {};
    });
    if (!settling) return settling.error();
    WriteDryRun(change_.options.dry_run, out);
    const bool closed = settled == Settled::kClosed;
    Json images = Json::array();
    for (const LedgerEntry& entry : done) {
      images.push_back({{"imageRef", entry.image_ref}, {"names", entry.names}});
      if (!entry.runtime_handler.empty()) images.back()["runtimeHandler"] = entry.runtime_handler;
      if (out.json()) continue;
      out.Line("{}: {}{}{}", closed ? "closed" : "preloaded", entry.image_ref,
               entry.names.empty() ? "" : " " + entry.names.front(),
               ForHandler(entry.runtime_handler));
    }
    if (out.json()) {
      out.WriteJson({{closed ? "closed" : "confirmed", images},
                     {"fitNone", fit_none},
                     {"reason", *reason_},
                     {"dryRun", change_.options.dry_run}});
    } else {
      for (const std::string& pattern : fit_none) {
        out.Line("{} fits no image that is presumed preloaded", pattern);
      }
      if (all_ && done.empty()) out.Line("no image is presumed preloaded");
    }
    return fit_none.empty() ? ExitCode::kYes : ExitCode::kNo;
  }

  // --- all that change something

  Result<void> CheckHandler(const NodeStore& store) const {
    if (runtime_.handler.empty()) return {};
    auto names = TRY(HandlerNames::Of(store));
    return names.Check(runtime_.handler);
  }

  // Each image is a transaction of its own.
  static Error After(Error error, std::size_t done, std::size_t all, std::string_view what) {
    if (done > 0) error.message += fmt::format("; {} of {} images {}", done, all, what);
    return error;
  }

  StoreFlags store_;
  ChangeFlags change_;
  EvidenceFlags evidence_;
  RuntimeFlag runtime_;
  std::optional<std::string> action_;
  std::vector<std::string> images_;
  bool all_ = false;
  ImagesFlags list_;
  std::optional<std::string> reason_;
  std::optional<std::string> source_;
  std::optional<std::string> from_list_;
  std::optional<std::string> token_;
};

}  // namespace

std::unique_ptr<Command> MakePreloadCommand() { return std::make_unique<PreloadCommand>(); }

}  // namespace waybill::cli
