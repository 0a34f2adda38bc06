// Calls: those that commit beside a bare commit of one value, those of one pod beside a bare
// lookup, those on the whole store beside bare LMDB that opens and reads every entry. What follows
// a call, to bring the store back, is outside the time.

#include <fmt/format.h>

#include <memory>
#include <utility>

#include "bench/micro/rows.h"
#include "store/base/options.h"
#include "store/calls/node_store.h"
#include "store/maintenance.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

std::string UidOf(std::size_t i) { return fmt::format("{:08x}-2222-4222-8333-444444444444", i); }

UserNamespaceRequest PodOf(const std::string& uid) { return {.pod_uid = uid, .host_users = false}; }

}  // namespace

void MeasureCommits(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  std::uint64_t index = kNewImages;
  std::string image;
  std::uint64_t pull = 0;
  const auto next = [&] { image = ImageOf(++index); };
  const auto begin = [&] { pull = Must(store.Call(BeginPull{.image = image})).pull; };
  BesideCommit(micro, on.bare, "RecordPullIntent", next, begin, [&] {
    Must(store.Call(EndPull{.image = image, .pull = pull, .outcome = PullOutcome::kNothing}));
  });
  std::string ref;
  ImagePullCredentials credentials;
  BesideCommit(
      micro, on.bare, "RecordImagePulled: new image",
      [&] {
        next();
        begin();
        ref = ImageRefOf(index);
        credentials = CredentialsOf(index);
      },
      [&] {
        Must(store.Call(EndPull{.image = image,
                                .image_ref = ref,
                                .pull = pull,
                                .outcome = PullOutcome::kPulled,
                                .credentials = credentials}));
      });
}

void MeasureUserNamespaces(const Micro& micro, const MicroStore& on) {
  NodeStore& store = *on.store;
  Must(store.Call(
      SetRuntimes{.handlers = {{.name = "", .is_default = true, .user_namespaces = true}}}));
  const std::size_t pods = micro.quick ? 5 : 110;  // as many as a kubelet runs
  std::vector<std::string> uids;
  for (std::size_t i = 0; i < pods; ++i) {
    uids.push_back(UidOf(i));
    Must(store.GetOrCreateUserNamespace(PodOf(uids.back())));
  }
  BesideLookup(micro, on.bare, "GetUserNamespace",
               [&](std::size_t i) { Must(store.GetUserNamespace(uids[i % pods])); });
}

void MeasureFullPool(const Micro& micro) {
  ScratchStore empty(micro.scratch.path() / "pool-empty");
  ScratchStore full(micro.scratch.path() / "pool-full");
  const std::size_t all = micro.quick ? 200 : 65'534;
  const std::size_t few = all / 100;
  for (const auto& [store, pods] : {std::pair(&empty, few), {&full, all - few}}) {
    store->Open();
    Must((*store)->Call(
        SetRuntimes{.handlers = {{.name = "", .is_default = true, .user_namespaces = true}}}));
    FromAllCallers(pods, [&, store = store](std::size_t i) {
      Must((*store)->GetOrCreateUserNamespace(PodOf(UidOf(i))));
    });
  }
  const std::string uid = UidOf(all);
  const auto create_in = [&](ScratchStore& store) {
    return [&] { Must(store->GetOrCreateUserNamespace(PodOf(uid))); };
  };
  const auto release = [&] {
    for (ScratchStore* store : {&empty, &full}) Must((*store)->ReleaseUserNamespace(uid));
  };
  micro.Row("GetOrCreateUserNamespace: new, pool 99 % full", [&](State& state) {
    Beside(state, create_in(empty), kNothing, create_in(full), release);
  });
  for (ScratchStore* store : {&empty, &full}) store->Close();
}

void MeasureWholeStores(const Micro& micro, const MicroStore& on) {
  ScratchStore& store = on.store;
  const auto row = [&](const std::string& what, const auto& before, const auto& ours,
                       const auto&... after) {
    const auto scan = [&] { on.bare.Scan(); };
    micro.Row(
        what, [&](State& state) { Beside(state, scan, before, ours, after...); }, kLong);
  };
  store.Close();
  std::unique_ptr<NodeStore> opened;
  row(
      "NodeStore::Open", kNothing, [&] { opened = Must(NodeStore::Open(store.Options())); },
      [&] {
        Must(opened->Close());
        opened.reset();
      });
  store.Open();

  // Of records alone, which version 1 can hold.
  ScratchStore plain(micro.scratch.path() / fmt::format("plain-{}", on.records));
  plain.Fill(on.records);
  plain.Close();
  const auto migrate = [](const MigrateOptions& options) {
    Expect(!Must(MigrateStore(options)).steps.empty(), "Migrate");
  };
  const auto down = [&] { migrate({.directory = plain.directory(), .to = 1}); };
  const auto up = [&] { migrate({.directory = plain.directory()}); };
  row("Migrate: down to version 1", kNothing, down, up);
  row("Migrate: up from version 1", down, up);

  // The first list tells of every image.
  ClassifyImages list{.list = {.images = ListOfImages(0, on.records), .complete = true}};
  const auto classify = [&] {
    list.list.token = Must(store->Call(BeginList())).token;
    Expect(Must(store->Call(list)).listed == on.records, "ClassifyImages");
  };
  classify();
  row("ClassifyImages: as before", kNothing, classify);
}

}  // namespace waybill::bench
