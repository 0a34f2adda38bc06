// waybill allow: opens an image that was imported by hand, and says to whom and from when on.

#include <chrono>
#include <thread>

#include "bindings/cli/command.h"
#include "bindings/cli/handler_names.h"
#include "bindings/cli/image_lookup.h"
#include "bindings/cli/runtime_lists.h"
#include "bindings/cli/store_access.h"
#include "guard/service.h"
#include "store/base/try.h"

namespace waybill::cli {
namespace {

using std::chrono::steady_clock;

// How long a guard may take: it looks each second, asks the runtime, and writes the kubelet's
// files.
constexpr std::chrono::seconds kGuardTakes{5};

// From when on the kubelet opens the image.
enum class InForce : std::uint8_t {
  kNow,
  kKubeletRestart,  // it may have read that the image is closed, and keeps that in memory
  kGuardLags,       // the guard has not put the files right yet
  kNobody,          // no owner serves: nobody tells a kubelet before the next start
};

class AllowCall final : public StoreCall {
 public:
  void Declare(Flags& flags) override {
    store_.DeclareToWrite(flags);
    flags.Positionals("IMAGE", &images_, "what to open", Length{kMaxImageRefBytes})
        .Required("name what is to be opened");
    list_.Declare(flags, ", to find images by name; --cri auto (default)").TakesSetting();
    flags.Value("--reason", &reason_, "TEXT", "why; \"allowed by hand\"", Length{kMaxReasonBytes});
    flags.Switch("--pulled-too", &pulled_too_, "also images that were pulled with credentials");
    flags.Value("--kubelet-dir", &kubelet_directory_, "DIR",
                "the kubelet's directory: waits for its guard, 5 seconds at most", kTakesSetting);
    runtime_.Declare(flags);
    change_.DeclareDryRun(flags);
  }

  Result<ExitCode> Run(Output& out) override {
    auto found = TRY(Find());
    std::vector<ListedImage> refused;
    std::uint64_t commit = 0;
    TRY(WithWriter(Writer::Open(store_), [&](Writer& writer) -> Result<void> {
      for (const ListedImage& image : found) {
        auto why = TRY(writer.store().Explain(
            {.image = image.id, .image_ref = image.id, .runtime_handler = image.runtime_handler}));
        if (!pulled_too_ && !why.ledger_entry && WasPulledForSome(why)) {
          refused.push_back(image);
        }
      }
      // All or none: a mistyped name opens nothing else.
      if (!refused.empty()) return {};
      for (const ListedImage& image : found) {
        TRY(writer.Call(AllowImage{.image = image,
                                   .reason = reason_,
                                   .pulled_too = pulled_too_,
                                   .dry_run = change_.dry_run}));
      }
      auto statistics = TRY(writer.store().GetStatistics());
      commit = statistics.commit_sequence;
      return {};
    }));
    if (!refused.empty()) return Refuse(refused, out);
    const InForce in_force = change_.dry_run ? InForce::kNow : WhenInForce(found, commit);
    Tell(found, in_force, out);
    return ExitCode::kYes;
  }

 private:
  // Not for every pod, or nobody knows for whom.
  static bool WasPulledForSome(const Explanation& why) {
    if (!why.record || !why.record->closed_because.empty()) return false;
    return why.credentials.empty() ||
           std::any_of(why.credentials.begin(), why.credentials.end(), [](const auto& one) {
             return one.kind != ExplainedCredential::Kind::kNodePods;
           });
  }
  Result<std::vector<ListedImage>> Find() {
    std::vector<ListedImage> found;
    std::optional<std::vector<ListedImage>> list;
    for (const std::string& image : images_) {
      if (!list && !(IsSpelling(image) && !list_.given())) {
        list = TRY(list_.given() ? list_.Read() : ListOfUsualRuntime());
      }
      if (list) {
        auto entries = TRY(FindListed(image, *list, list_.given() ? list_.name() : "--cri"));
        found.insert(found.end(), entries.begin(), entries.end());
      } else {
        found.push_back({.id = image});
      }
    }
    if (runtime_.given()) {
      for (ListedImage& image : found) image.runtime_handler = runtime_.handler();
    }
    return found;
  }

  static Result<std::vector<ListedImage>> ListOfUsualRuntime() {
    auto client = TRY(cri::Client::Connect({}));
    return client->ListImages();
  }

  InForce WhenInForce(const std::vector<ListedImage>& images, std::uint64_t commit) const {
    if (!kubelet_directory_) return InForce::kNobody;
    const auto until = steady_clock::now() + kGuardTakes;
    for (;;) {
      auto seen = guard::SeeGuard(*kubelet_directory_);
      const Json status = seen ? ParseJson(seen->json) : Json();
      if (!seen || !seen->runs || !status.contains("judgedCommit")) return InForce::kNobody;
      if (NumberAt(status, "judgedCommit") >= commit) {
        const Json* const waits = FieldAt(status, "waiting");
        for (const ListedImage& image : images) {
          if (waits != nullptr &&
              std::find(waits->begin(), waits->end(), image.id) != waits->end()) {
            return InForce::kKubeletRestart;
          }
        }
        return InForce::kNow;
      }
      if (steady_clock::now() >= until) return InForce::kGuardLags;
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  static std::string NameOf(const ListedImage& image) {
    return image.repo_tags.empty() ? image.id : image.repo_tags.front();
  }

  Result<ExitCode> Refuse(const std::vector<ListedImage>& refused, Output& out) const {
    Json list = Json::array();
    for (const ListedImage& image : refused) {
      list.push_back({{"imageRef", image.id}, {"name", NameOf(image)}});
      out.Line("not allowed: {} ({}): pods pulled it with credentials of their own", NameOf(image),
               image.id);
    }
    out.WriteJson({{"allowed", Json::array()}, {"refused", list}});
    out.Line(
        "nothing was changed; `waybill explain` says who may use it now; if it is for every pod "
        "of this node: --pulled-too");
    return ExitCode::kNo;
  }

  void Tell(const std::vector<ListedImage>& images, InForce in_force, Output& out) const {
    WriteDryRun(change_.dry_run, out);
    Json list = Json::array();
    for (const ListedImage& image : images) {
      list.push_back({{"imageRef", image.id}, {"name", NameOf(image)}});
      out.Line("allowed: {} ({}){}, to every pod of this node, under every name", NameOf(image),
               image.id, ForHandler(image.runtime_handler));
    }
    constexpr std::string_view kNames[] = {"now", "kubeletRestart", "guardLags", "ownersStart"};
    out.WriteJson({{"allowed", list},
                   {"reason", reason_},
                   {"inForce", kNames[static_cast<std::size_t>(in_force)]},
                   {"dryRun", change_.dry_run}});
    if (change_.dry_run) return;
    switch (in_force) {
      case InForce::kNow:
        return out.Line("in force now");
      case InForce::kKubeletRestart:
        return out.Line(
            "in force from the kubelet's next start: it may have read before that the image is "
            "closed, and remembers that. `systemctl restart kubelet`; containers that run go on");
      case InForce::kGuardLags:
        return out.Line(
            "the guard has not put the kubelet's files right yet: see `waybill guard --status`");
      case InForce::kNobody:
        return out.Line(
            "in force at once for a kubelet that has waybill inside; beside a guard within seconds "
            "(--kubelet-dir waits for it); otherwise from the next `waybill start` or guard on");
    }
  }

  ChangeFlags change_;
  RuntimeFlag runtime_;
  std::vector<std::string> images_;
  ImagesFlags list_;
  std::string reason_ = "allowed by hand";
  bool pulled_too_ = false;
  std::optional<std::string> kubelet_directory_;
};

}  // namespace

Command AllowCommand() {
  return {
      .name = "allow",
      .task = kTaskOpenClose,
      .summary = "open an image that was imported by hand",
      .notes =
          R"(You state that these images are for every pod of this node. IMAGE is a name that the
runtime lists now, an ID, or a digest. It is `waybill preload add` with the runtime's
list and a reason by default, and says from when on the kubelet goes by it. An image
that tenants pulled with credentials of theirs is refused (1) without --pulled-too.
`waybill preload remove IMAGE` takes it back.)",
      .examples = R"(waybill allow registry.example/app:v1 --cri auto)",
      .call = New<AllowCall>};
}

}  // namespace waybill::cli
