// waybill preload: the ledger of images that came to the node without the kubelet.

#include <fnmatch.h>

#include <algorithm>
#include <set>

#include "bindings/cli/command.h"
#include "bindings/cli/evidence_report.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/input.h"
#include "bindings/cli/record_json.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

// What the actions that change the ledger share.
class LedgerChange : public StoreCall {
 protected:
  // Returns --reason.
  Flag& DeclareShared(Flags& flags) {
    store_.DeclareToWrite(flags);
    runtime_.Declare(flags);
    change_.DeclareDryRun(flags);
    return flags.Value("--reason", &reason_, "TEXT", "why you state that", Length{kMaxReasonBytes});
  }

  // The handler of --runtime is known.
  Result<void> CheckHandler(const NodeStore& store) const {
    if (runtime_.handler().empty()) return {};
    auto names = TRY(HandlerNames::Of(store));
    return names.Check(runtime_.handler());
  }

  // Each image is a transaction of its own: `error` says how many were done before it.
  static Error After(Error error, std::size_t done, std::size_t all, std::string_view what) {
    if (done > 0) error.message += fmt::format("; {} of {} images {}", done, all, what);
    return error;
  }

  ChangeFlags change_;
  RuntimeFlag runtime_;
  std::string reason_;
};

class PreloadListCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override { store_.DeclareToWrite(flags); }

  Result<ExitCode> Run(Output& out) override {
    return WithStore(ObserveStore(store_, {.shows_any_age = true}),
                     [&](const NodeStore& store) -> Result<ExitCode> {
                       auto ledger = TRY(store.ListLedger());
                       auto names = TRY(HandlerNames::Of(store));
                       WriteLedger(ledger, names, out);
                       return ExitCode::kYes;
                     });
  }

 private:
  static void WriteLedger(const std::vector<PreloadedImage>& ledger, const HandlerNames& handlers,
                          Output& out) {
    std::vector<std::vector<std::string>> rows;
    for (const PreloadedImage& entry : ledger) {
      const std::string runtime = handlers.TextOf(entry.runtime_handler);
      const std::string since = out.TimeText(entry.since);
      const std::string reason = entry.reason.empty() ? "-" : entry.reason;
      const std::string source = entry.source + (entry.absent_since ? " (gone)" : "");
      for (const std::string& name : entry.names) {
        rows.push_back({entry.image_ref, runtime, name, source, since, reason});
      }
      if (entry.names.empty()) {
        rows.push_back({entry.image_ref, runtime, "-", source, since, reason});
      }
    }
    out.WriteJson({{"preloaded", JsonOf(ledger)}});
    out.WriteTable({"IMAGE REF", "RUNTIME", "NAME", "SOURCE", "SINCE", "REASON"}, rows);
  }
};

std::string NameOf(const ListedImage& image) {
  return !image.repo_tags.empty()      ? image.repo_tags.front()
         : !image.repo_digests.empty() ? image.repo_digests.front()
                                       : image.id;
}

class PreloadAddCall final : public LedgerChange {
 public:
  void Declare(Flags& flags) override {
    flags
        .Positionals(
            "IMAGE", &images_,
            "an ID, a digest (REPOSITORY@sha256:…), or, with --images or --cri, a name there",
            Length{kMaxImageRefBytes})
        .Required("name images");
    list_.Declare(flags, ", to find images by name");
    DeclareShared(flags).Required("state how you know that");
    flags.Value("--source", &source_, "NAME",
                "how the images came to the node; \"operator\" (default)", Length{kMaxReasonBytes});
  }

  Result<ExitCode> Run(Output& out) override {
    auto images = TRY(Resolve());
    std::vector<std::string> closed;
    TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
      TRY(CheckHandler(writer.store()));
      std::size_t done = 0;
      for (const ListedImage& image : images) {
        auto entered = writer.Call(AllowImage{.image = image,
                                              .source = source_,
                                              .reason = reason_,
                                              .pulled_too = true,
                                              .dry_run = change_.dry_run});
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
    for (const ListedImage& image : images) {
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

 private:
  // All are found before the first is entered, so that a mistyped name changes nothing.
  Result<std::vector<ListedImage>> Resolve() const {
    auto list = TRY(list_.ReadIfGiven());
    std::vector<ListedImage> found;
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
      for (ListedImage& image : found) image.runtime_handler = runtime_.handler();
    }
    return found;
  }

  std::vector<std::string> images_;
  ImagesFlags list_;
  std::string source_ = "operator";
};

class PreloadRemoveCall final : public LedgerChange {
 public:
  void Declare(Flags& flags) override {
    flags.Positionals("IMAGE", &images_, "images", Length{kMaxImageRefBytes})
        .Required("name images");
    list_.Declare(flags, ", to find images by name");
    DeclareShared(flags).Required("state how you know that");
  }

  Result<ExitCode> Run(Output& out) override {
    auto list = TRY(list_.ReadIfGiven());
    std::vector<std::pair<std::string, bool>> removed;
    TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
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
        auto denied = writer.Call(DenyImage{.image_ref = *refs[i],
                                            .runtime_handler = runtime_.handler(),
                                            .reason = reason_,
                                            .dry_run = change_.dry_run});
        if (!denied) return After(denied.error(), i, refs.size(), "were done");
        removed.emplace_back(*refs[i], denied->changed);
      }
      return {};
    }));
    WriteDryRun(change_.dry_run, out);
    bool all = true;
    Json images = Json::array();
    for (const auto& [ref, was_there] : removed) {
      all = all && was_there;
      images.push_back({{"imageRef", ref}, {"removed", was_there}});
      if (was_there) {
        out.Line("removed: {}{} is not preloaded", ref, ForHandler(runtime_.handler()));
      } else {
        out.Line("{}{} is not in the ledger", ref, ForHandler(runtime_.handler()));
      }
    }
    out.WriteJson({{"images", images}, {"reason", reason_}, {"dryRun", change_.dry_run}});
    return all ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  // The ref that `name` means: that of the ledger entry with that spelling or name; else what the
  // list says; else the name itself, if the store may know it as a spelling. nullopt: none.
  static Result<std::optional<std::string>> RefOf(
      const std::string& name, const std::vector<PreloadedImage>& ledger,
      const std::optional<std::vector<ListedImage>>& list, std::string_view flag) {
    std::set<std::string> refs;
    for (const PreloadedImage& entry : ledger) {
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

  std::vector<std::string> images_;
  ImagesFlags list_;
};

// `confirm` and `close`.
template <bool kCloses>
class PreloadSettleCall final : public LedgerChange {
 public:
  void Declare(Flags& flags) override {
    flags.Positionals("PATTERN", &patterns_,
                      "an ID, the first six digits of one, or a name; * stands for any characters",
                      Length{kMaxImageRefBytes});
    flags.Switch("--all", &all_, "every presumed image");
    DeclareShared(flags).Required("state how you know that");
    flags.Excludes("--all", {"PATTERN"});
    flags.Needed({"PATTERN", "--all"}, "name images, or --all");
  }

  Result<ExitCode> Run(Output& out) override {
    std::vector<PreloadedImage> done;
    std::vector<std::string> fit_none;
    TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
      TRY(CheckHandler(writer.store()));
      auto ledger = TRY(writer.store().ListLedger());
      std::erase_if(ledger, [&](const PreloadedImage& entry) {
        return !IsPresumed(entry) || (!kCloses && entry.absent_since) ||
               (runtime_.given() && entry.runtime_handler != runtime_.handler());
      });
      std::set<std::size_t> chosen;
      for (const std::string& pattern : patterns_) {
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
        PreloadedImage& entry = ledger[i];
        if (!all_ && !chosen.contains(i)) continue;
        // The entry may have gone, or been settled, meanwhile.
        auto was_presumed = SettleOne(writer, entry);
        if (!was_presumed) {
          return After(was_presumed.error(), done.size(), all_ ? ledger.size() : chosen.size(),
                       "were settled");
        }
        if (*was_presumed) done.push_back(std::move(entry));
      }
      return {};
    }));
    WriteDryRun(change_.dry_run, out);
    Json images = Json::array();
    for (const PreloadedImage& entry : done) {
      images.push_back({{"imageRef", entry.image_ref}, {"names", entry.names}});
      if (!entry.runtime_handler.empty()) images.back()["runtimeHandler"] = entry.runtime_handler;
      out.Line("{}: {}{}{}", kCloses ? "closed" : "preloaded", entry.image_ref,
               entry.names.empty() ? "" : " " + entry.names.front(),
               ForHandler(entry.runtime_handler));
    }
    out.WriteJson({{kCloses ? "closed" : "confirmed", images},
                   {"fitNone", fit_none},
                   {"reason", reason_},
                   {"dryRun", change_.dry_run}});
    // What is gone is remembered, and can be closed.
    const std::string_view image = kCloses ? "image" : "image on the node";
    for (const std::string& pattern : fit_none) {
      out.Line("{} fits no {} that is presumed preloaded", pattern, image);
    }
    if (all_ && done.empty()) out.Line("no {} is presumed preloaded", image);
    return fit_none.empty() ? ExitCode::kYes : ExitCode::kNo;
  }

 private:
  // Whether it was presumed.
  Result<bool> SettleOne(Writer& writer, const PreloadedImage& entry) const {
    if (kCloses) {
      return TRY(writer.Call(DenyImage{.image_ref = entry.image_ref,
                                       .runtime_handler = entry.runtime_handler,
                                       .reason = reason_,
                                       .only_unconfirmed = true,
                                       .dry_run = change_.dry_run}))
          .changed;
    }
    const ListedImage image{.id = entry.image_ref, .runtime_handler = entry.runtime_handler};
    return TRY(writer.Call(AllowImage{.image = image,
                                      .reason = reason_,
                                      .only_unconfirmed = true,
                                      .dry_run = change_.dry_run}))
        .changed;
  }

  static bool Fits(const std::string& pattern, const PreloadedImage& entry) {
    const auto fits = [&](const std::string& text) {
      return ::fnmatch(pattern.c_str(), text.c_str(), FNM_NOESCAPE) == 0;
    };
    return fits(entry.image_ref) || SameSpelling(entry.image_ref, pattern) ||
           std::any_of(entry.names.begin(), entry.names.end(), fits);
  }

  std::vector<std::string> patterns_;
  bool all_ = false;
};

}  // namespace

Command PreloadCommand() {
  const std::string patterns =
      "1 if a pattern fits none. Presumed is what a first start took for preloaded.";
  return {
      .name = "preload",
      .task = kTaskTakeOver,
      .summary = "say which images are preloaded, or list them",
      .actions =
          {{.name = "list",
            .summary = "the ledger of preloaded images",
            .notes =
                R"(Images that are open to all pods under every name, since they came without the kubelet,
or since a first start presumed so (source "presumed"). One that is gone opens nothing.)",
            .examples = "waybill preload list",
            .call = New<PreloadListCall>},
           {.name = "add",
            .summary = "state that images are preloaded",
            .examples =
                "waybill preload add registry.example/tool:1 --cri auto --reason 'loaded by hand'",
            .call = New<PreloadAddCall>},
           {.name = "remove",
            .summary = "state that images are not preloaded",
            .notes =
                R"(They are closed until a pod proves credentials; no list opens them, until `waybill
preload add`. 1 if one was not in the ledger.)",
            .examples = "waybill preload remove 2c26b46b68ff --reason 'it is of a tenant'",
            .call = New<PreloadRemoveCall>},
           {.name = "confirm",
            .summary = "state that presumed images are preloaded",
            .notes = patterns,
            .examples = "waybill preload confirm 'registry.k8s.io/*' --reason 'the image of "
                        "the node has them'",
            .call = New<PreloadSettleCall<false>>},
           {.name = "close",
            .summary = "state that presumed images are not: closed until a pod proves "
                       "credentials",
            .notes = patterns,
            .examples = "waybill preload close --all --reason 'nobody knows where they came from'",
            .call = New<PreloadSettleCall<true>>}},
      .default_action = "list"};
}

}  // namespace waybill::cli
