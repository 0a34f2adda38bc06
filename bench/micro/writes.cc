// Calls that commit, beside a bare commit of one value. What follows each, to bring the store back,
// is outside the time.

#include <optional>

#include "bench/micro/rows.h"

namespace waybill::bench {

namespace {

constexpr auto kNothingTransferred = PullFailure::kNothingTransferred;

}  // namespace

void MeasureRecordingCalls(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  const auto row = [&](const char* what, const auto& before, const auto& ours,
                       const auto&... after) {
    BesideCommit(micro, on.bare, what, before, ours, after...);
  };
  std::uint64_t fresh = kNewImages;

  PullId pull;
  const std::string image = ImageOf(fresh);
  const auto begin = [&] { pull = Must(store.RecordPullIntent({.image = image})); };
  const auto fail = [&] {
    Must(store.RecordImagePullFailed({.image = image}, kNothingTransferred, pull));
  };
  row("RecordPullIntent", kNothing, begin, fail);
  row("RecordImagePullFailed: nothing transferred", begin, fail);
  row("RecordImagePullError: nothing transferred", begin, [&] {
    Must(store.RecordImagePullError(
        {.image = image},
        {.failure = kNothingTransferred, .error_class = PullErrorClass::kNotFound, .pull = pull}));
  });

  struct NewPull {
    explicit NewPull(std::uint64_t index)
        : image(ImageOf(index)), ref(ImageRefOf(index)), credentials(CredentialsOf(index)) {}
    std::string image;
    std::string ref;
    ImagePullCredentials credentials;
  };
  std::optional<NewPull> pulled;
  const auto begin_again = [&] { pull = Must(store.RecordPullIntent({.image = pulled->image})); };
  const auto begin_new = [&] {
    pulled.emplace(++fresh);
    begin_again();
  };
  const auto end_pull = [&] {
    Must(store.RecordImagePulled({.image = pulled->image, .image_ref = pulled->ref},
                                 pulled->credentials, {.pull = pull}));
  };
  row("RecordImagePulled: new image", begin_new, end_pull);
  row("RecordImagePulled: new image, with the runtime's entry", begin_new, [&] {
    Must(store.RecordImagePulled({.image = pulled->image, .image_ref = pulled->ref},
                                 pulled->credentials,
                                 {.pull = pull, .image = ListOfImages(fresh, 1).front()}));
  });
  row("RecordImagePulled: same image again", begin_again, end_pull);

  std::optional<ImagePulledRecord> record;
  const auto next_record = [&] { record = RecordOf(++fresh); };
  const auto put = [&] { Must(store.PutRecord(*record)); };
  row("PutRecord: new", next_record, put);
  row(
      "DeleteRecord",
      [&] {
        next_record();
        put();
      },
      [&] { Must(store.DeleteRecord({.image_ref = record->image_ref})); });

  const auto put_intent = [&] { Must(store.PutIntent({.image = image})); };
  const auto delete_intent = [&] { Must(store.DeleteIntent({.image = image})); };
  row("PutIntent", kNothing, put_intent, delete_intent);
  row("DeleteIntent", put_intent, delete_intent);
  row(
      "DropOpenPull",
      [&] {
        put_intent();
        pull = {};
        for (const UnresolvedPull& open : Must(store.ListOpenPulls())) {
          if (open.image == image) pull = open.id;
        }
        if (pull.value == 0) Unexpected("ListOpenPulls");
      },
      [&] { Must(store.DropOpenPull(pull, "measured")); });

  std::vector<ListedImage> preloaded;
  const auto next_preloaded = [&] { preloaded = ListOfImages(++fresh, 1); };
  const auto add_as = [&](std::string_view source) {
    next_preloaded();
    Must(store.AddToLedger(preloaded.front(), source, "measured"));
  };
  row("AddToLedger", next_preloaded,
      [&] { Must(store.AddToLedger(preloaded.front(), "bench", "measured")); });
  row(
      "RemoveFromLedger", [&] { add_as("bench"); },
      [&] {
        if (!Must(store.RemoveFromLedger({.image_ref = preloaded.front().id}, "measured"))) {
          Unexpected("RemoveFromLedger");
        }
      });
  row(
      "SettlePresumed", [&] { add_as(kPresumedSource); },
      [&] {
        const ImageCopy copy{.image_ref = preloaded.front().id};
        if (!Must(store.SettlePresumed(copy, Settled::kPreloaded, "measured"))) {
          Unexpected("SettlePresumed");
        }
      });

  ImageList list;
  row(
      "ObserveImages: one new image",
      [&] {
        list.images = ListOfImages(++fresh, 1);
        list.token = Must(store.BeginList());
      },
      [&] {
        if (Must(store.ObserveImages(list)).listed != 1) Unexpected("ObserveImages");
      });
  const auto clear = [&] { Must(store.ClearDistrust("measured")); };
  row("ClearDistrust", kNothing, clear);
  row(
      "NoteGap", kNothing, [&] { Must(store.NoteGap("measured")); }, clear);
  row("NoteKubeletBegan", kNothing, [&] { Must(store.NoteKubeletBegan(SystemBootClock())); });
}

void MeasureRevocationCalls(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  std::uint64_t fresh = kNewImages + 1'000'000;
  ImagePullSecret secret;
  std::string ref;
  // A record of a namespace of its own, with a Secret and a service account.
  const auto put_next = [&] {
    ImagePulledRecord record = RecordOf(++fresh);
    ImagePullCredentials& entry = record.credential_mapping.begin()->second;
    secret = entry.kubernetes_secrets.front();
    secret.namespace_name = "forgotten-" + std::to_string(fresh);
    entry.kubernetes_secrets.front() = secret;
    entry.kubernetes_service_accounts = {{secret.uid, secret.namespace_name, "builder"}};
    ref = record.image_ref;
    Must(store.PutRecord(record));
  };
  const auto row = [&](const char* what, const auto& forget) {
    BesideCommit(micro, on.bare, what, put_next, [&] {
      if (Must(forget()).records != 1) Unexpected(what);
    });
  };
  row("ForgetSecret", [&] {
    return store.ForgetSecret({secret.namespace_name, secret.name, secret.uid});
  });
  row("ForgetServiceAccount", [&] {
    return store.ForgetServiceAccount({secret.namespace_name, "builder", {}});
  });
  row("ForgetNamespace", [&] { return store.ForgetNamespace(secret.namespace_name); });
  row("ForgetImage", [&] { return store.ForgetImage({.image_ref = ref}); });
  row("ForgetCredential", [&] { return store.ForgetCredential(secret.credential_hash); });
  row("Forget: dry run", [&] {
    return store.Forget(
        {.kind = RevocationKind::kNamespace, .who = {.namespace_name = secret.namespace_name}},
        {.dry_run = true});
  });
}

}  // namespace waybill::bench
