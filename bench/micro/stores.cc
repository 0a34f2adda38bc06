// Calls on the whole store, beside bare LMDB that opens and reads every entry.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/micro/rows.h"
#include "store/api/maintenance.h"
#include "store/base/options.h"
#include "store/node/facade/node_store.h"
#include "waybill/values.h"

namespace waybill::bench {

namespace {

// An export writes, and flushes, a file for each record.
constexpr std::size_t kMostExported = 2000;

}  // namespace

void MeasureWholeStores(const Micro& micro, const MicroStore& on) {
  ScratchStore& store = on.store;
  const auto row = [&](const std::string& what, const auto& before, const auto& ours,
                       const auto&... after) {
    BesideScan(micro, on.bare, what, before, ours, after...);
  };
  const auto read = [&](const std::string& what, const auto& ours) { row(what, kNothing, ours); };

  read("ListRecords", [&] {
    if (Must(store->ListRecords()).size() < on.records) Unexpected("ListRecords");
  });
  read(fmt::format("ListLedger: at least {}", Grouped(on.ledger)), [&] {
    if (Must(store->ListLedger()).size() < on.ledger) Unexpected("ListLedger");
  });
  read("ListRevocations", [&] {
    if (Must(store->ListRevocations()).empty()) Unexpected("ListRevocations");
  });
  read("TidyUp: nothing to do", [&] { Must(store->TidyUp()); });
  // The truth lacks every Secret.
  ListToken token;
  const auto draw = [&] { token = Must(store->BeginList()); };
  row("Reconcile: dry run", draw, [&] {
    if (Must(store->Reconcile({.secrets = {{"team", "name", {}}}}, token, {.dry_run = true}))
            .gone == 0) {
      Unexpected("Reconcile");
    }
  });
  read("MakeBackup", [&] { Must(store->MakeBackup()); });
  const std::filesystem::path file = micro.scratch.path() / "backup.mdb";
  row(
      "WriteBackup", kNothing, [&] { Must(store->WriteBackup(file)); },
      [&] { std::filesystem::remove(file); });
  read("Verify", [&] {
    if (!Must(store->Verify()).sound) Unexpected("Verify");
  });

  ImageList list{.images = ListOfImages(0, std::min(on.records, kMostListed))};
  row(
      fmt::format("ObserveImages: {} recorded images", Grouped(list.images.size())),
      [&] { list.token = Must(store->BeginList()); },
      [&] {
        if (Must(store->ObserveImages(list)).listed != list.images.size()) {
          Unexpected("ObserveImages");
        }
      });
  {
    ScratchStore fresh(micro.scratch.path() / fmt::format("lists-{}", on.records));
    fresh.Open();
    std::uint64_t first = kNewImages;
    row(
        fmt::format("ObserveImages: {} new images", Grouped(list.images.size())),
        [&] {
          list.images = ListOfImages(first += list.images.size(), list.images.size());
          list.token = Must(fresh->BeginList());
        },
        [&] {
          if (Must(fresh->ObserveImages(list)).listed != list.images.size()) {
            Unexpected("ObserveImages");
          }
        });
    fresh.Close();
  }
  std::vector<ListedImage> images;
  for (const ImagePulledRecord& record : Must(store->ListRecords())) {
    images.push_back({.id = record.image_ref});
  }
  for (const PreloadedImage& entry : Must(store->ListLedger())) {
    images.push_back({.id = entry.image_ref});
  }
  row("Prune: all are listed", draw, [&] {
    if (Must(store->Prune(images, token)).removed != 0) Unexpected("Prune");
  });
  read("PruneBefore: all are listed", [&] {
    if (Must(store->PruneBefore(images, SystemClock())).removed != 0) Unexpected("PruneBefore");
  });

  if (on.records <= kMostExported) {
    const std::filesystem::path kubelet =
        micro.scratch.path() / fmt::format("export-{}", on.records);
    std::filesystem::create_directory(kubelet);
    ExportOptions options;
    options.kubelet_directory = kubelet;
    options.images_on_node = images;
    read("Export", [&] { Must(store->Export(options)); });
  }

  store.Close();
  std::unique_ptr<NodeStore> opened;
  const auto open = [&] { opened = Must(NodeStore::Open(store.Options())); };
  const auto close = [&] {
    Must(opened->Close());
    opened.reset();
  };
  row("NodeStore::Open", kNothing, open, close);
  row(
      "Close", open, [&] { Must(opened->Close()); }, [&] { opened.reset(); });
  row(
      "Serve", open, [&] { Must(opened->Serve()); }, close);
  row(
      "NodeStore::Observe", kNothing,
      [&] { opened = Must(NodeStore::Observe({.directory = store.directory()})); },
      [&] { opened.reset(); });
  store.Open();

  // Of records alone, which version 1 can hold.
  ScratchStore plain(micro.scratch.path() / fmt::format("plain-{}", on.records));
  plain.Fill(on.records);
  plain.Close();
  const auto migrate = [](const MigrateOptions& options) {
    if (Must(MigrateStore(options)).steps.empty()) Unexpected("Migrate");
  };
  const auto down = [&] { migrate({.directory = plain.directory(), .to = 1}); };
  const auto up = [&] { migrate({.directory = plain.directory()}); };
  row("Migrate: down to version 1", kNothing, down, up);
  row("Migrate: up from version 1", down, up);
  std::vector<Backup> backups;
  read("ListBackups", [&] {
    backups = Must(BackupsOf(plain.directory()));
    if (backups.empty()) Unexpected("ListBackups");
  });
  read("Restore", [&] {
    Must(RestoreStore({.directory = plain.directory(), .backup = backups.front().path}));
  });
}

}  // namespace waybill::bench
