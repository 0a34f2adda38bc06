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
  const auto row = [&](const char* what, const auto& ours, const auto& undo) {
    BesideCommit(micro.figures, micro.pace, on.bare, what, ours, undo);
  };
  const auto stays = [](std::size_t) {};
  std::uint64_t fresh = kNewImages;

  PullId pull;
  const std::string image = ImageOf(fresh);
  row(
      "RecordPullIntent",
      [&](std::size_t) { pull = Must(store.RecordPullIntent({.image = image})); },
      [&](std::size_t) {
        Must(store.RecordImagePullFailed({.image = image}, kNothingTransferred, pull));
      });
  // Prepared by `undo` for the next one.
  const auto begin = [&](std::size_t) { pull = Must(store.RecordPullIntent({.image = image})); };
  begin(0);
  row(
      "RecordImagePullFailed: nothing transferred",
      [&](std::size_t) {
        Must(store.RecordImagePullFailed({.image = image}, kNothingTransferred, pull));
      },
      begin);
  const auto fail = [&](std::size_t) {
    Must(store.RecordImagePullError(
        {.image = image},
        {.failure = kNothingTransferred, .error_class = PullErrorClass::kNotFound, .pull = pull}));
  };
  row("RecordImagePullError: nothing transferred", fail, begin);
  fail(0);

  struct NewPull {
    explicit NewPull(std::uint64_t index)
        : image(ImageOf(index)), ref(ImageRefOf(index)), credentials(CredentialsOf(index)) {}
    std::string image;
    std::string ref;
    ImagePullCredentials credentials;
  };
  std::optional<NewPull> pulled;
  const auto begin_new = [&](std::size_t) {
    pulled.emplace(++fresh);
    pull = Must(store.RecordPullIntent({.image = pulled->image}));
  };
  const auto end_pull = [&](std::size_t) {
    Must(store.RecordImagePulled({.image = pulled->image, .image_ref = pulled->ref},
                                 pulled->credentials, {.pull = pull}));
  };
  begin_new(0);
  row("RecordImagePulled: new image", end_pull, begin_new);
  row(
      "RecordImagePulled: new image, with the runtime's entry",
      [&](std::size_t) {
        Must(store.RecordImagePulled({.image = pulled->image, .image_ref = pulled->ref},
                                     pulled->credentials,
                                     {.pull = pull, .image = ListOfImages(fresh, 1).front()}));
      },
      begin_new);
  const auto begin_again = [&](std::size_t) {
    pull = Must(store.RecordPullIntent({.image = pulled->image}));
  };
  end_pull(0);
  begin_again(0);
  row("RecordImagePulled: same image again", end_pull, begin_again);
  end_pull(0);

  std::optional<ImagePulledRecord> record;
  const auto next_record = [&](std::size_t) { record = RecordOf(++fresh); };
  next_record(0);
  row(
      "PutRecord: new", [&](std::size_t) { Must(store.PutRecord(*record)); }, next_record);
  const auto put_next = [&](std::size_t) {
    record = RecordOf(++fresh);
    Must(store.PutRecord(*record));
  };
  put_next(0);
  row(
      "DeleteRecord",
      [&](std::size_t) { Must(store.DeleteRecord({.image_ref = record->image_ref})); }, put_next);

  row(
      "PutIntent", [&](std::size_t) { Must(store.PutIntent({.image = image})); },
      [&](std::size_t) { Must(store.DeleteIntent({.image = image})); });
  const auto put_intent = [&](std::size_t) { Must(store.PutIntent({.image = image})); };
  put_intent(0);
  row(
      "DeleteIntent", [&](std::size_t) { Must(store.DeleteIntent({.image = image})); }, put_intent);
  const auto find_pull = [&](std::size_t) {
    Must(store.PutIntent({.image = image}));
    pull = {};
    for (const OpenPull& open : Must(store.ListOpenPulls())) {
      if (open.image == image) pull = open.id;
    }
    if (pull.value == 0) Unexpected("ListOpenPulls");
  };
  find_pull(0);
  row(
      "DropOpenPull", [&](std::size_t) { Must(store.DropOpenPull(pull, "measured")); }, find_pull);

  std::vector<ImageOnNode> preloaded;
  const auto next_preloaded = [&](std::size_t) { preloaded = ListOfImages(++fresh, 1); };
  next_preloaded(0);
  row(
      "AddToLedger",
      [&](std::size_t) { Must(store.AddToLedger(preloaded.front(), "bench", "measured")); },
      next_preloaded);
  const auto add_next = [&](std::size_t) {
    preloaded = ListOfImages(++fresh, 1);
    Must(store.AddToLedger(preloaded.front(), "bench", "measured"));
  };
  add_next(0);
  row(
      "RemoveFromLedger",
      [&](std::size_t) {
        if (!Must(store.RemoveFromLedger({.image_ref = preloaded.front().id}, "measured"))) {
          Unexpected("RemoveFromLedger");
        }
      },
      add_next);

  const auto presume_next = [&](std::size_t) {
    preloaded = ListOfImages(++fresh, 1);
    Must(store.AddToLedger(preloaded.front(), kPresumedSource, "measured"));
  };
  presume_next(0);
  row(
      "SettlePresumed",
      [&](std::size_t) {
        const ImageCopy copy{.image_ref = preloaded.front().id};
        if (!Must(store.SettlePresumed(copy, Settled::kPreloaded, "measured"))) {
          Unexpected("SettlePresumed");
        }
      },
      presume_next);

  ImageList list;
  const auto next_list = [&](std::size_t) {
    list.images = ListOfImages(++fresh, 1);
    list.token = Must(store.BeginList());
  };
  next_list(0);
  row(
      "ObserveImages: one new image",
      [&](std::size_t) {
        if (Must(store.ObserveImages(list)).listed != 1) Unexpected("ObserveImages");
      },
      next_list);
  row(
      "ClearDistrust", [&](std::size_t) { Must(store.ClearDistrust("measured")); }, stays);
  row(
      "NoteGap", [&](std::size_t) { Must(store.NoteGap("measured")); },
      [&](std::size_t) { Must(store.ClearDistrust("measured")); });
  row(
      "NoteKubeletBegan", [&](std::size_t) { Must(store.NoteKubeletBegan(SystemBootClock())); },
      stays);
}

void MeasureRevocationCalls(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  std::uint64_t fresh = kNewImages + 1'000'000;
  ImagePullSecret secret;
  std::string ref;
  // A record of a namespace of its own, with a Secret and a service account.
  const auto put_next = [&](std::size_t) {
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
    put_next(0);
    BesideCommit(
        micro.figures, micro.pace, on.bare, what,
        [&](std::size_t) {
          if (Must(forget()).records != 1) Unexpected(what);
        },
        put_next);
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
