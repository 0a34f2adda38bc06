// The state of a store; operations on a whole store.

#include "bindings/c/store.h"

using namespace waybill::c;
using waybill::NodeStore;
using waybill::Result;

waybill_code waybill_get_metrics(waybill_store* store, waybill_metrics** metrics,
                                 waybill_error** error) {
  return Query(store, metrics, "metrics", error, [](NodeStore& node_store) {
    return Result<waybill::Metrics>(node_store.GetMetrics());
  });
}

waybill_code waybill_metrics_text(waybill_store* store, waybill_string** text,
                                  waybill_error** error) {
  return Query(store, text, "text", error, [](NodeStore& node_store) {
    return Result<std::string>(node_store.GetMetrics().ToPrometheusText());
  });
}

waybill_code waybill_write_backup(waybill_store* store, waybill_string file,
                                  waybill_progress progress, void* context, waybill_backup** backup,
                                  waybill_error** error) {
  if (backup != nullptr) *backup = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto path = arguments.Path(file, "file");
    if (!arguments.Given(backup, "backup") || !arguments.ok()) return arguments.error();
    return Give(node_store.WriteBackup(path, ToProgress(progress, context, store)), backup);
  });
}

waybill_code waybill_verify_with_progress(waybill_store* store, waybill_progress progress,
                                          void* context, waybill_verify_report** report,
                                          waybill_error** error) {
  return Query(store, report, "report", error, [&](NodeStore& node_store) {
    return node_store.Verify(ToProgress(progress, context, store));
  });
}

waybill_code waybill_export(waybill_store* store, const waybill_export_options* options,
                            waybill_export_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return OnStore(store, error, [&](NodeStore& node_store, Arguments& arguments) -> Result<void> {
    const auto o = arguments.Options(options, "options");
    waybill::ExportOptions to;
    to.kubelet_directory = arguments.Path(o.kubelet_directory, "kubelet_directory");
    to.api_version =
        arguments.OneOf(o.api_version, waybill::KubeletApiVersion::kV1Alpha1, "api_version");
    to.allow_empty = o.allow_empty;
    to.images_on_node = ListFromCIfAny(o.images_on_node, "images_on_node", arguments);
    if (!arguments.ok()) return arguments.error();
    return Give(node_store.Export(to), report);
  });
}

waybill_code waybill_migrate(const waybill_migrate_options* options,
                             waybill_migration_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto o = arguments.Options(options, "options");
    waybill::MigrateOptions to;
    to.directory = arguments.Path(o.directory, "directory");
    if (o.to != 0) to.to = o.to;
    to.dry_run = o.dry_run;
    to.accept_loss = o.accept_loss;
    to.progress = ToProgress(o.progress, o.progress_context, nullptr);
    to.clock = ToClock(o.clock, o.clock_context, nullptr);
    to.boot_clock = ToBootClock(o.boot_clock, o.boot_clock_context, nullptr);
    if (o.map_bytes != 0) to.map_bytes = o.map_bytes;
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::MigrateStore(to), report);
  });
}

waybill_code waybill_restore(const waybill_restore_options* options,
                             waybill_restore_report** report, waybill_error** error) {
  if (report != nullptr) *report = nullptr;
  return Call(error, [&](Arguments& arguments) -> Result<void> {
    const auto o = arguments.Options(options, "options");
    waybill::RestoreOptions to;
    to.directory = arguments.Path(o.directory, "directory");
    to.backup = arguments.Path(o.backup, "backup");
    to.dry_run = o.dry_run;
    to.clock = ToClock(o.clock, o.clock_context, nullptr);
    to.boot_clock = ToBootClock(o.boot_clock, o.boot_clock_context, nullptr);
    if (o.map_bytes != 0) to.map_bytes = o.map_bytes;
    if (!arguments.ok()) return arguments.error();
    return Give(waybill::RestoreStore(to), report);
  });
}
