// waybill rm: one record, one intent or one entry of the ledger stops counting. What is left behind
// never opens an image: nothing that keeps an image closed is deleted.

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/store_access.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

enum class Removes { kRecords, kIntents, kLedgerEntries };

// What an argument means.
struct Removal {
  std::string image;               // the ref of a record or entry; of an intent its string
  std::string handler;             // as it is stored
  std::vector<PullId> pulls = {};  // of an intent
  ForgetReport forgotten = {};     // of a record, once it is done
  bool stays_preloaded = false;    // of a record: the ledger has the image, too
};

// "2 secrets, 1 service account", "nothing".
std::string ForgottenText(const ForgetReport& report) {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view noun) {
    if (count > 0) text += (text.empty() ? "" : ", ") + HowMany(count, noun);
  };
  add(report.secrets, "secret");
  add(report.service_accounts, "service account");
  add(report.node_pods, "name that was open to all pods");
  return text.empty() ? "nothing, since no credential opened it" : text;
}

class RmCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.Declare(flags);
    flags
        .Positionals("REF", &images_, "which ones; --intent: image strings", Length{kMaxImageBytes})
        .Required("say what is to be removed");
    flags.Switch("--intent", &intent_, "the open pulls of an image string");
    flags.Switch("--preloaded", &preloaded_, "the entry in the ledger of preloaded images");
    flags.Value("--reason", &reason_, "TEXT", "why, for the journal; with --intent and --preloaded",
                Length{kMaxReasonBytes});
    runtime_.Declare(flags);
    change_.DeclareDryRun(flags);
    store_.DeclareRules(flags);
    flags.Excludes("--intent", {"--preloaded"});
    flags.Needs("--reason", {"--intent", "--preloaded"});
    flags.Needs("--intent", {"--reason"},
                "state why these pulls brought nothing, and will bring nothing; `waybill pulls` "
                "shows them");
    flags.Needs("--preloaded", {"--reason"}, "state how you know that the image is not preloaded");
  }

  Result<ExitCode> Run(Output& out) override {
    what_ = intent_ ? Removes::kIntents : preloaded_ ? Removes::kLedgerEntries : Removes::kRecords;
    std::vector<Removal> removals;
    std::vector<std::string> missing;
    bool only_preloaded = false;  // one of them
    TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
      auto names = TRY(HandlerNames::Of(writer.store()));
      TRY(Find(writer.store(), names, removals, missing, only_preloaded));
      if (!missing.empty()) return {};
      return RemoveAll(writer.owner(), removals);
    }));
    return missing.empty() ? WriteRemoved(removals, out)
                           : WriteMissing(missing, only_preloaded, out);
  }

 private:
  // --- Finding

  // All arguments, before the first is removed.
  Result<void> Find(const NodeStore& store, const HandlerNames& names,
                    std::vector<Removal>& removals, std::vector<std::string>& missing,
                    bool& only_preloaded) const {
    const std::string handler = names.StoredNameOf(runtime_.handler());
    std::set<std::string> found_already;
    for (const std::string& image : images_) {
      auto found = TRY(what_ == Removes::kRecords   ? FindRecord(store, image, handler)
                       : what_ == Removes::kIntents ? FindIntent(store, image, handler)
                                                    : FindEntry(store, image, handler));
      if (!found) {
        missing.push_back(image);
        if (what_ == Removes::kRecords) {
          only_preloaded = only_preloaded || TRY(FindEntry(store, image, handler)).has_value();
        }
      } else if (found_already.insert(found->image).second) {
        removals.push_back(std::move(*found));
      }
    }
    // Checked last: a handler that vanished may still have records.
    return missing.empty() ? Result<void>() : names.Check(handler);
  }

  using Found = Result<std::optional<Removal>>;

  static Found FindRecord(const NodeStore& store, const std::string& image,
                          const std::string& handler) {
    auto ref = TRY(ResolveRef("REF", image, store));
    auto record = store.GetRecord({.image_ref = ref, .runtime_handler = handler});
    if (!record) {
      if (record.error().code == ErrorCode::kNotFound) return std::optional<Removal>();
      return record.error();
    }
    Removal removal{.image = record->image_ref, .handler = handler};
    const auto why = store.Explain(
        {.image = record->image_ref, .image_ref = record->image_ref, .runtime_handler = handler});
    removal.stays_preloaded = why && why->ledger_entry;
    return std::optional(std::move(removal));
  }

  static Found FindIntent(const NodeStore& store, const std::string& image,
                          const std::string& handler) {
    auto pulls = TRY(store.ListOpenPulls());
    Removal removal{.image = image, .handler = handler};
    for (const OpenPull& pull : pulls) {
      if (!pull.anything && pull.image == image && pull.runtime_handler == handler) {
        removal.pulls.push_back(pull.id);
      }
    }
    return removal.pulls.empty() ? std::nullopt : std::optional(std::move(removal));
  }

  static Found FindEntry(const NodeStore& store, const std::string& image,
                         const std::string& handler) {
    auto ref = TRY(ResolveRef("REF", image, store));
    auto ledger = TRY(store.ListLedger());
    for (const LedgerEntry& entry : ledger) {
      if (entry.runtime_handler == handler && entry.image_ref == ref) {
        return std::optional(Removal{.image = ref, .handler = handler});
      }
    }
    // The argument may be another spelling of an image in the ledger.
    if (!IsSpelling(ref)) return std::optional<Removal>();
    const auto why = store.Explain({.image = ref, .image_ref = ref, .runtime_handler = handler});
    if (!why) return std::optional<Removal>();
    const auto& entry = why->ledger_entry ? why->ledger_entry : why->gone_entry;
    if (!entry) return std::optional<Removal>();
    return std::optional(Removal{.image = entry->image_ref, .handler = handler});
  }

  // --- Removing

  // What can be refused is refused before anything is changed.
  Result<void> RemoveAll(OwnerCalls& owner, std::vector<Removal>& removals) const {
    for (Removal& removal : removals) {
      TRY(Remove(owner, removal, {.dry_run = true}));
    }
    if (change_.dry_run) return {};
    std::size_t removed = 0;
    for (Removal& removal : removals) {
      if (auto done = Remove(owner, removal, {}); !done) {
        Error error = done.error();
        if (removed > 0) {
          error.message += fmt::format("; {} of {} were removed before, up to {}", removed,
                                       removals.size(), removals[removed - 1].image);
        }
        return error;
      }
      ++removed;
    }
    return {};
  }

  Result<void> Remove(OwnerCalls& owner, Removal& removal, const ChangeOptions& options) const {
    switch (what_) {
      case Removes::kRecords: {
        removal.forgotten = TRY(owner.Forget({.kind = RevocationKind::kImage,
                                              .image_ref = removal.image,
                                              .runtime_handler = removal.handler},
                                             options));
        return {};
      }
      case Removes::kIntents:
        for (const PullId pull : removal.pulls) {
          TRY(owner.DropOpenPull(pull, *reason_, options));
        }
        return {};
      case Removes::kLedgerEntries: {
        auto done = owner.RemoveFromLedger(
            {.image_ref = removal.image, .runtime_handler = removal.handler}, *reason_, options);
        return done ? Result<void>() : done.error();
      }
    }
    return {};
  }

  // --- Saying

  ExitCode WriteRemoved(const std::vector<Removal>& removals, Output& out) const {
    WriteDryRun(change_.dry_run, out);
    Json list = Json::array();
    for (const Removal& removal : removals) {
      list.push_back(JsonOf(removal));
      WriteRemoval(removal, out);
    }
    Json answer = {{"removed", list}};
    if (reason_) answer["reason"] = *reason_;
    answer["dryRun"] = change_.dry_run;
    out.WriteJson(answer);
    (void)out.Flush();
    for (const Removal& removal : removals) {
      if (!removal.stays_preloaded) continue;
      Warn(removal.image + ForHandler(removal.handler) +
               " is in the ledger of preloaded images, and stays open to all pods",
           "if that is wrong: waybill rm --preloaded, with a --reason");
    }
    return ExitCode::kYes;
  }

  Json JsonOf(const Removal& removal) const {
    Json object = {{what_ == Removes::kIntents ? "image" : "imageRef", removal.image}};
    if (!removal.handler.empty()) object["runtimeHandler"] = removal.handler;
    if (what_ == Removes::kRecords) {
      object["secrets"] = removal.forgotten.secrets;
      object["serviceAccounts"] = removal.forgotten.service_accounts;
      object["nodePods"] = removal.forgotten.node_pods;
      object["staysPreloaded"] = removal.stays_preloaded;
    }
    if (what_ == Removes::kIntents) {
      object["pulls"] = Json::array();
      for (const PullId pull : removal.pulls) object["pulls"].push_back(pull.value);
    }
    return object;
  }

  void WriteRemoval(const Removal& removal, Output& out) const {
    const std::string image = removal.image + ForHandler(removal.handler);
    switch (what_) {
      case Removes::kRecords:
        return out.Line("removed: {}; forgotten: {}", image, ForgottenText(removal.forgotten));
      case Removes::kIntents:
        return out.Line("removed: {}; {} dropped", image,
                        HowMany(removal.pulls.size(), "open pull"));
      case Removes::kLedgerEntries:
        return out.Line("removed: {} is not preloaded", image);
    }
  }

  ExitCode WriteMissing(const std::vector<std::string>& missing, bool only_preloaded,
                        Output& out) const {
    const std::string for_handler = ForHandler(runtime_.handler());
    out.WriteJson({{"removed", Json::array()}, {"missing", missing}, {"dryRun", change_.dry_run}});
    for (const std::string& image : missing) {
      out.Line("{} {}{}",
               what_ == Removes::kRecords   ? "no record of"
               : what_ == Removes::kIntents ? "no open pull of"
                                            : "not in the ledger:",
               image, for_handler);
    }
    (void)out.Flush();
    const std::string store = " --store " + ShellWord(store_.store);
    Warn("nothing was removed",
         only_preloaded ? "what is preloaded is closed by waybill rm --preloaded, with a --reason"
         : what_ == Removes::kRecords ? "see waybill list" + store
         : what_ == Removes::kIntents ? "see waybill pulls" + store
                                      : "see waybill preload" + store);
    return ExitCode::kNo;
  }

  RuntimeFlag runtime_;
  ChangeFlags change_;
  std::vector<std::string> images_;
  bool intent_ = false;
  bool preloaded_ = false;
  std::optional<std::string> reason_;
  Removes what_ = Removes::kRecords;
};

}  // namespace

Command RmCommand() {
  return {
      .name = "rm",
      .task = kTaskOpenClose,
      .summary = "remove a record, an intent or a ledger entry",
      .notes =
          R"(rm REF…                the record of an image: `waybill forget image`. It stays, empty, and
                       keeps the image closed until a pod proves credentials; without it
                       the image would pass for preloaded
rm --intent IMAGE…     the open pulls of an image string: `waybill pulls drop`
rm --preloaded REF…    the ledger's entry: `waybill preload remove`
REF is what the runtime calls the image, another spelling of it, or at least six digits of
its ID. If one argument means nothing, or several images, nothing is removed, and the exit
code is 1 or 2.)",
      .examples = R"(waybill rm 2c26b46b68ff)",
      .call = New<RmCall>};
}

}  // namespace waybill::cli
