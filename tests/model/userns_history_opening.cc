// The steps of a history of ID mappings that begin a new process.

#include <algorithm>
#include <utility>

#include "tests/model/userns_history.h"
#include "tests/support/temp_dir.h"

namespace waybill::testing {

namespace fs = std::filesystem;

void UsernsHistory::Stop() {
  if (draw_.OneIn(2)) {
    const auto closed = store_->Close();
    Expect(closed.has_value(), closed ? "" : closed.error().ToString());
  }
  store_.reset();
}

void UsernsHistory::RestartStep() {
  std::string what = "restart";
  if (draw_.OneIn(2)) {
    options_.pool = DrawPool(draw_);
    what += " with the pool " + std::to_string(options_.pool.first_id) + "+" +
            std::to_string(options_.pool.id_count) + " by " +
            std::to_string(options_.pool.ids_per_pod);
    ++counts_["other pool"];
  }
  options_.enabled = !draw_.OneIn(10);
  if (!options_.enabled) what += ", switched off";
  const bool with_pods = draw_.OneIn(2);
  Stop();
  if (with_pods) {
    if (!draw_.OneIn(5)) WritePods();
    what += ", pods:";
    for (const auto& [uid, file] : pods_) what += "\n    " + uid + " " + file.content;
  }
  Note(what);
  Open(with_pods);
}

// A process that is killed now leaves what is on the disk now.
void UsernsHistory::CrashStep() {
  Note("crash");
  const fs::path kept = scratch_ / "kept";
  const auto copy = [](const fs::path& from, const fs::path& to) {
    fs::remove_all(to);
    fs::copy(from, to, fs::copy_options::recursive);
  };
  fs::create_directories(kept);
  for (const char* name : {"store", "witness"}) copy(scratch_ / name, kept / name);
  Stop();
  for (const char* name : {"store", "witness"}) copy(kept / name, scratch_ / name);
  ++counts_["crash"];
  Open(false);
}

void UsernsHistory::WrongPoolStep() {
  Note("restart with a wrong pool");
  const IdPool pool = std::exchange(options_.pool, DrawWrongPool(draw_));
  const bool enabled = std::exchange(options_.enabled, true);
  Stop();
  const auto opened = TryToOpen(draw_.OneIn(2));
  Expect(!opened.has_value(), "opened with a wrong pool");
  ExpectCode(opened.error(), ErrorCode::kInvalidArgument);
  options_ = {enabled, pool};
  Open(false);
}

void UsernsHistory::UnreadableStep() {
  Note("restart with a directory of pods that is a file");
  Stop();
  fs::remove_all(pods());
  pods_.clear();
  WriteFile(pods(), "");
  const auto opened = TryToOpen(true);
  Expect(!opened.has_value(), "opened with pods that can't be read");
  model_.FailToImport();
  WritePods();
  Open(draw_.OneIn(2));
}

void UsernsHistory::WritePods() {
  pods_ = DrawPods(draw_, model_);
  fs::remove_all(pods());
  fs::create_directory(pods());
  for (const auto& [uid, file] : pods_) {
    fs::create_directory(pods() / uid);
    WriteFile(pods() / uid / "userns", file.content);
  }
}

Result<std::unique_ptr<NodeStore>> UsernsHistory::TryToOpen(bool with_pods) {
  NodeStoreOptions options{.directory = scratch_ / "store",
                           .witness = Witness::At(scratch_ / "witness")};
  options.clock = clock_.AsClock();
  options.map_bytes = std::uint64_t{16} << 20U;
  options.user_namespaces = options_;
  if (with_pods) options.pods_directory = pods();
  options.allow_empty = true;
  return NodeStore::Open(std::move(options));
}

void UsernsHistory::Open(bool with_pods) {
  const bool is_there = fs::exists(pods());
  auto opened = TryToOpen(with_pods && is_there);
  Expect(opened.has_value(), opened ? "" : opened.error().ToString());
  store_ = std::move(*opened);
  const OpeningReport& report = store_->recovery_report();
  Expect(!report.set_aside && !report.distrustful && report.findings.empty(),
         "opening did not find all as it was left");
  if (report.created) {
    const auto handlers = DrawUsernsHandlers(draw_);
    Expect(store_->ReplaceRuntimeHandlers(handlers, {.allow_empty = true}).has_value(),
           "the handlers are refused");
    model_.set_handlers(handlers);
  }
  const IdMappingReport& got = report.user_namespaces;
  const IdMappingReport expected = model_.Open(options_, with_pods && is_there ? &pods_ : nullptr);
  const auto same = [&](const char* what, std::uint64_t is, std::uint64_t wanted) {
    Expect(is == wanted, std::to_string(is) + " " + what + " instead of " + std::to_string(wanted));
  };
  same("files seen", got.files_seen, expected.files_seen);
  same("unchanged", got.unchanged, expected.unchanged);
  same("imported", got.imported, expected.imported);
  same("held", got.held, expected.held);
  same("problems", got.problems.size(), expected.problems.size());
  same("mappings", got.allocations, expected.allocations);
  same("held pods", got.held_pods, expected.held_pods);
  same("outside the pool", got.outside_pool, expected.outside_pool);
  same("of another length", got.other_length, expected.other_length);
  auto off_pool = got.off_pool;
  std::sort(off_pool.begin(), off_pool.end());
  Expect(off_pool == expected.off_pool, "other pods off the pool");
  Expect(got.refused_because.empty() != model_.Refuses(), "refuses, or not");
  counts_["imported"] += got.imported;
  counts_["held"] += got.held;
  counts_["off the pool"] += got.off_pool.size();
}

}  // namespace waybill::testing
