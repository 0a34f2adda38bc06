// Calls on the whole store, beside bare LMDB that opens and reads every entry.

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "bench/micro/rows.h"
#include "waybill/maintenance.h"

namespace waybill::bench {

namespace {

// An export writes, and flushes, a file for each record.
constexpr std::size_t kMostExported = 2000;

}  // namespace

std::vector<ImageOnNode> ListOfImages(std::uint64_t first, std::size_t count) {
  std::vector<ImageOnNode> list;
  list.reserve(count);
  for (std::uint64_t i = first; i < first + count; ++i) {
    list.push_back(
        {.id = ImageRefOf(i), .repo_tags = {ImageOf(i)}, .repo_digests = {RepoDigestOf(i)}});
  }
  return list;
}

void MeasureWholeStores(const Micro& micro, const MicroStore& on) {
  ScratchStore& store = on.store;
  const auto row = [&](const std::string& what, const auto& ours, const auto& undo) {
    BesideScan(micro.figures, micro.pace, on.bare, what, ours, undo);
  };
  const auto nothing = [] {};

  row(
      "ListRecords",
      [&](std::size_t) {
        if (Must(store->ListRecords()).size() < on.records) Unexpected("ListRecords");
      },
      nothing);
  row(
      fmt::format("ListLedger: at least {}", Grouped(on.ledger)),
      [&](std::size_t) {
        if (Must(store->ListLedger()).size() < on.ledger) Unexpected("ListLedger");
      },
      nothing);
  row(
      "ListRevocations",
      [&](std::size_t) {
        if (Must(store->ListRevocations()).empty()) Unexpected("ListRevocations");
      },
      nothing);
  row(
      "TidyUp: nothing to do", [&](std::size_t) { Must(store->TidyUp()); }, nothing);
  // The truth lacks every Secret.
  ListToken truth;
  const auto draw_for_truth = [&] { truth = Must(store->BeginList()); };
  draw_for_truth();
  row(
      "Reconcile: dry run",
      [&](std::size_t) {
        if (Must(store->Reconcile({.secrets = {{"team", "name", {}}}}, truth, {.dry_run = true}))
                .gone == 0) {
          Unexpected("Reconcile");
        }
      },
      draw_for_truth);
  row(
      "MakeBackup", [&](std::size_t) { Must(store->MakeBackup()); }, nothing);
  const std::filesystem::path file = micro.scratch.path() / "backup.mdb";
  row(
      "WriteBackup", [&](std::size_t) { Must(store->WriteBackup(file)); },
      [&] { std::filesystem::remove(file); });
  row(
      "Verify",
      [&](std::size_t) {
        if (!Must(store->Verify()).sound) Unexpected("Verify");
      },
      nothing);

  ImageList list{.images = ListOfImages(0, std::min(on.records, kMostListed))};
  const auto draw = [&] { list.token = Must(store->BeginList()); };
  draw();
  row(
      fmt::format("ObserveImages: {} recorded images", Grouped(list.images.size())),
      [&](std::size_t) {
        if (Must(store->ObserveImages(list)).listed != list.images.size()) {
          Unexpected("ObserveImages");
        }
      },
      draw);
  {
    ScratchStore fresh(micro.scratch.path() / fmt::format("lists-{}", on.records));
    fresh.Open();
    std::uint64_t first = kNewImages;
    const auto next = [&] {
      list.images = ListOfImages(first += list.images.size(), list.images.size());
      list.token = Must(fresh->BeginList());
    };
    next();
    row(
        fmt::format("ObserveImages: {} new images", Grouped(list.images.size())),
        [&](std::size_t) {
          if (Must(fresh->ObserveImages(list)).listed != list.images.size()) {
            Unexpected("ObserveImages");
          }
        },
        next);
    fresh.Close();
  }
  std::vector<ImageOnNode> images;
  for (const ImagePulledRecord& record : Must(store->ListRecords())) {
    images.push_back({.id = record.image_ref});
  }
  for (const LedgerEntry& entry : Must(store->ListLedger())) {
    images.push_back({.id = entry.image_ref});
  }
  ListToken token = Must(store->BeginList());
  row(
      "Prune: all are listed",
      [&](std::size_t) {
        if (Must(store->Prune(images, token)).removed != 0) Unexpected("Prune");
      },
      [&] { token = Must(store->BeginList()); });
  row(
      "PruneBefore: all are listed",
      [&](std::size_t) {
        if (Must(store->PruneBefore(images, SystemClock())).removed != 0) Unexpected("PruneBefore");
      },
      nothing);

  if (on.records <= kMostExported) {
    const std::filesystem::path kubelet =
        micro.scratch.path() / fmt::format("export-{}", on.records);
    std::filesystem::create_directory(kubelet);
    ExportOptions options;
    options.kubelet_directory = kubelet;
    options.images_on_node = images;
    row(
        "Export", [&](std::size_t) { Must(store->Export(options)); }, nothing);
  }

  store.Close();
  std::unique_ptr<NodeStore> opened;
  row(
      "NodeStore::Open", [&](std::size_t) { opened = Must(NodeStore::Open(store.Options())); },
      [&] {
        Must(opened->Close());
        opened.reset();
      });
  opened = Must(NodeStore::Open(store.Options()));
  row(
      "Close", [&](std::size_t) { Must(opened->Close()); },
      [&] {
        opened.reset();
        opened = Must(NodeStore::Open(store.Options()));
      });
  row(
      "Serve", [&](std::size_t) { Must(opened->Serve()); },
      [&] {
        Must(opened->Close());
        opened.reset();
        opened = Must(NodeStore::Open(store.Options()));
      });
  Must(opened->Close());
  opened.reset();
  row(
      "NodeStore::Observe",
      [&](std::size_t) { opened = Must(NodeStore::Observe({.directory = store.directory()})); },
      [&] { opened.reset(); });

  store.Open();

  // Of records alone, which version 1 can hold.
  ScratchStore plain(micro.scratch.path() / fmt::format("plain-{}", on.records));
  plain.Fill(on.records);
  plain.Close();
  const MigrateOptions down{.directory = plain.directory(), .to = 1};
  const MigrateOptions up{.directory = plain.directory()};
  row(
      "Migrate: down to version 1",
      [&](std::size_t) {
        if (Must(Migrate(down)).steps.empty()) Unexpected("Migrate");
      },
      [&] { Must(Migrate(up)); });
  Must(Migrate(down));
  row(
      "Migrate: up from version 1",
      [&](std::size_t) {
        if (Must(Migrate(up)).steps.empty()) Unexpected("Migrate");
      },
      [&] { Must(Migrate(down)); });
  Must(Migrate(up));
  std::vector<Backup> backups;
  row(
      "ListBackups",
      [&](std::size_t) {
        backups = Must(ListBackups(plain.directory()));
        if (backups.empty()) Unexpected("ListBackups");
      },
      nothing);
  row(
      "Restore",
      [&](std::size_t) {
        Must(Restore({.directory = plain.directory(), .backup = backups.front().path}));
      },
      nothing);
}

}  // namespace waybill::bench
